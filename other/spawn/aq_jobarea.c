/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_jobarea.c - the job area; see aq_jobarea.h.
 * Threads   the barrier is entered by one thread of each rank; the rest from any context
 * Uses      memfd, futex, getrandom; base/aq_env.h's parsers for the exit timeout
 */
#include "other/spawn/aq_jobarea.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "base/aq_platform.h"

#define AQ_JOBAREA_VERSION      8u
#define AQ_JOBAREA_SPINS        4000 /* a few microseconds: about the cost of sleep and wake-up */
#define AQ_JOBAREA_EXCHANGE_MIN (64u << 10) /* bytes for one round of an exchange between hosts */
#define AQ_JOBAREA_EXCHANGE_MAX (4u << 20)
#define AQ_JOBAREA_MEANWHILE_MS 5 /* the same with a meanwhile function */
/* interval at which a waiter checks whether the job is shutting down */
#define AQ_JOBAREA_POLL_MS 500

static const char *const aq_wait_names[AQ_WAIT_KINDS] = {
    [AQ_WAIT_NONE] = "nothing",
    [AQ_WAIT_START] = "the start-up exchange",
    [AQ_WAIT_BARRIER] = "a barrier",
    [AQ_WAIT_EVENT] = "the completion of an operation",
    [AQ_WAIT_QUEUE] = "space in a message queue",
    [AQ_WAIT_BLOCKUNTIL] = "a condition of the program (GASNET_BLOCKUNTIL)",
    [AQ_WAIT_COLL] = "a collective operation",
};

static size_t aq_jobarea_bytes(uint32_t size, struct aq_jobarea *layout)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t slots = sizeof(struct aq_jobarea) + (size_t)size * sizeof(struct aq_jobarea_rank);
    size_t head = (slots + size * sizeof(uint16_t) + page - 1) & ~(page - 1);

    layout->cores_offset = (uint32_t)slots;
    layout->local_exchange_offset = (uint32_t)head;
    /* two rounds: a fast rank may write the next while a slow one reads the last */
    return head + 2 * (size_t)size * AQ_JOBAREA_CHUNK;
}

static uint64_t aq_jobarea_section(uint64_t *bytes, uint64_t wanted)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = *bytes;

    *bytes += (wanted + page - 1) & ~(page - 1);
    return at;
}

/* the areas behind the local exchange area; untouched pages cost nothing */
static uint64_t aq_jobarea_layout_multihost(struct aq_jobarea *b,
                                            const struct aq_jobarea_topo *topo, uint64_t bytes)
{
    uint64_t space = (uint64_t)topo->job_size * 256;

    b->exchange_bytes = (uint32_t)(space < AQ_JOBAREA_EXCHANGE_MIN   ? AQ_JOBAREA_EXCHANGE_MIN
                                   : space > AQ_JOBAREA_EXCHANGE_MAX ? AQ_JOBAREA_EXCHANGE_MAX
                                                                     : space);
    bytes = (bytes + AQ_JOBAREA_CHUNK * 64 - 1)
            & ~(uint64_t)(AQ_JOBAREA_CHUNK * 64 - 1); /* any page size */
    b->host_of_offset = aq_jobarea_section(&bytes, topo->job_size * sizeof(uint32_t));
    b->exchange_offset[0] = aq_jobarea_section(&bytes, b->exchange_bytes);
    b->exchange_offset[1] = aq_jobarea_section(&bytes, b->exchange_bytes);
    b->addrs_offset = aq_jobarea_section(&bytes, (uint64_t)topo->job_size * AQ_JOBAREA_ADDR_MAX);
    b->environment_offset = aq_jobarea_section(&bytes, topo->environment_bytes);
    return bytes;
}

static void aq_jobarea_fill_multihost(struct aq_jobarea *jobarea,
                                      const struct aq_jobarea_topo *topo)
{
    uint32_t *host_of = (uint32_t *)(void *)((char *)jobarea + jobarea->host_of_offset), rank = 0;

    for (uint32_t h = 0; h < topo->host_count; h++)
        for (uint32_t i = 0; i < topo->host_ranks[h] && rank < topo->job_size; i++)
            host_of[rank++] = h;
    memcpy(jobarea->job_key, topo->job_key, sizeof(jobarea->job_key));
    jobarea->environment_bytes = topo->environment_bytes;
    if (topo->environment_bytes > 0)
        memcpy((char *)jobarea + jobarea->environment_offset, topo->environment,
               topo->environment_bytes);
}

const char *aq_jobarea_remedy(int error)
{
    return error == EMFILE  ? "; raise ulimit -n"
           : error == EFBIG ? "; raise the file size limit: ulimit -f unlimited"
                            : "";
}

/* As ftruncate(), without a signal. */
static int aq_jobarea_size_file(int fd, uint64_t bytes)
{
    if (bytes <= aq_file_size_max())
        return ftruncate(fd, (off_t)bytes);
    errno = EFBIG;
    return -1;
}

static struct aq_jobarea *aq_jobarea_make(uint32_t size, uint32_t job_size,
                                          const struct aq_jobarea_topo *topo, int *fd_out)
{
    struct aq_jobarea *jobarea, layout = { .rank_base = 0, .host_count = 1 };
    uint64_t bytes = aq_jobarea_bytes(size, &layout);
    int fd = memfd_create("aq-jobarea", MFD_CLOEXEC);

    if (fd < 0)
        return NULL;
    if (topo != NULL)
        bytes = aq_jobarea_layout_multihost(&layout, topo, bytes);
    if (aq_jobarea_size_file(fd, bytes) != 0)
        goto close_fd;
    jobarea = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (jobarea == MAP_FAILED)
        goto close_fd;
    *jobarea = layout;
    /* two keys: parts of the first are visible in names and in ranks' environments, nothing of the
     * second is */
    if (getrandom(jobarea->key, sizeof(jobarea->key), 0) != (ssize_t)sizeof(jobarea->key)
        || getrandom(jobarea->job_key, sizeof(jobarea->job_key), 0)
               != (ssize_t)sizeof(jobarea->job_key))
        goto unmap;
    jobarea->bytes = bytes;
    jobarea->version = AQ_JOBAREA_VERSION;
    jobarea->size = size;
    jobarea->job_size = job_size;
    jobarea->link_fd = -1;
    jobarea->exit_timeout_ms = aq_jobarea_timeout_env(job_size);
    jobarea->orderly_timeout_ms = aq_jobarea_orderly_env();
    if (topo != NULL) {
        jobarea->rank_base = topo->rank_base;
        jobarea->host_index = topo->host_index;
        jobarea->host_count = topo->host_count;
        aq_jobarea_fill_multihost(jobarea, topo);
    }
    for (uint32_t i = 0; i < size; i++)
        jobarea->rank[i].jobrank = jobarea->rank_base + i;
    jobarea->magic = AQ_JOBAREA_MAGIC;
    *fd_out = fd;
    return jobarea;
unmap:
    munmap(jobarea, bytes);
close_fd:
    close(fd);
    return NULL;
}

struct aq_jobarea *aq_jobarea_create(uint32_t size, uint32_t job_size, int *fd_out)
{
    return aq_jobarea_make(size, job_size, NULL, fd_out);
}

struct aq_jobarea *aq_jobarea_create_multihost(uint32_t size, const struct aq_jobarea_topo *topo,
                                               int *fd_out)
{
    return aq_jobarea_make(size, topo->job_size, topo, fd_out);
}

struct aq_jobarea *aq_jobarea_map(int fd)
{
    struct aq_jobarea *jobarea;
    struct stat st;

    if (fstat(fd, &st) != 0)
        return NULL;
    if ((size_t)st.st_size < sizeof(*jobarea)) {
        errno = EINVAL;
        return NULL;
    }
    jobarea = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (jobarea == MAP_FAILED)
        return NULL;
    if (jobarea->magic != AQ_JOBAREA_MAGIC || jobarea->version != AQ_JOBAREA_VERSION
        || jobarea->bytes != (uint64_t)st.st_size) {
        munmap(jobarea, (size_t)st.st_size);
        errno = EINVAL;
        return NULL;
    }
    return jobarea;
}

void aq_jobarea_wait_word(_Atomic uint32_t *word, uint32_t value, int timeout_ms)
{
    struct timespec ts = { timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000 };

    syscall(SYS_futex, word, FUTEX_WAIT, value, timeout_ms < 0 ? NULL : &ts, NULL, 0);
}

void aq_jobarea_wake_word(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Written before there is a second thread in the library. */
static void (*aq_jobarea_meanwhile)(void);

void aq_jobarea_set_meanwhile(void (*fn)(void))
{
    aq_jobarea_meanwhile = fn;
}

int aq_jobarea_barrier(struct aq_jobarea *jobarea, bool spin)
{
    /* relaxed: only this rank's own arrival below can complete the round */
    uint32_t round = atomic_load_explicit(&jobarea->round, memory_order_relaxed);
    int spins = spin ? AQ_JOBAREA_SPINS : 0;

    /* acq_rel: the last to arrive has seen what all others wrote, and passes it on by the store of
     * round */
    if (atomic_fetch_add_explicit(&jobarea->arrived, 1, memory_order_acq_rel) + 1
        == jobarea->size) {
        /* relaxed: ordered by the release below, and no rank arrives again before that */
        atomic_store_explicit(&jobarea->arrived, 0, memory_order_relaxed);
        /* release: pairs with the acquire of the waiters */
        atomic_store_explicit(&jobarea->round, round + 1, memory_order_release);
        aq_jobarea_wake_word(&jobarea->round);
        return 0;
    }
    /* acquire: pairs with the release of the last to arrive */
    while (atomic_load_explicit(&jobarea->round, memory_order_acquire) == round) {
        if (spins-- > 0)
            continue;
        /* relaxed: decides only whether to give up */
        if (atomic_load_explicit(&jobarea->exit_state, memory_order_relaxed) >= AQ_EXIT_ASKED)
            return -ESHUTDOWN;
        if (aq_jobarea_meanwhile != NULL)
            aq_jobarea_meanwhile();
        aq_jobarea_wait_word(&jobarea->round, round,
                             aq_jobarea_meanwhile != NULL ? AQ_JOBAREA_MEANWHILE_MS
                                                          : AQ_JOBAREA_POLL_MS);
    }
    return 0;
}

void aq_jobarea_raise_exit_code(struct aq_jobarea *jobarea, int code)
{
    /* relaxed: the code is read after the ranks have ended, or by ranks that only repeat it */
    int32_t old = atomic_load_explicit(&jobarea->exit_code, memory_order_relaxed);

    while (old < code
           && !atomic_compare_exchange_weak_explicit(&jobarea->exit_code, &old, code,
                                                     memory_order_relaxed, memory_order_relaxed))
        continue;
}

uint32_t aq_jobarea_raise_exit_state(struct aq_jobarea *jobarea, enum aq_exit_state state)
{
    /* acq_rel: a reader of a state also sees the code and the messages that led to it */
    uint32_t old = atomic_load_explicit(&jobarea->exit_state, memory_order_acquire);

    while (old < (uint32_t)state
           && !atomic_compare_exchange_weak_explicit(&jobarea->exit_state, &old, (uint32_t)state,
                                                     memory_order_acq_rel, memory_order_acquire))
        continue;
    return old;
}

static void aq_jobarea_wake_exits(struct aq_jobarea *jobarea)
{
    /* release: pairs with the acquire of readers that look at the ranks at the exit */
    atomic_fetch_add_explicit(&jobarea->exit_seen, 1, memory_order_release);
    aq_jobarea_wake_word(&jobarea->exit_seen);
}

void aq_jobarea_publish_flushed(struct aq_jobarea *jobarea, uint32_t slot)
{
    /* release: the output is written */
    atomic_store_explicit(&jobarea->rank[slot].flushed, 1, memory_order_release);
    atomic_store_explicit(&jobarea->rank[slot].state, AQ_RANK_ENDED, memory_order_release);
    aq_jobarea_wake_exits(jobarea);
}

void aq_jobarea_publish_exit(struct aq_jobarea *jobarea, uint32_t slot, enum aq_rank_state state,
                             int code)
{
    struct aq_jobarea_rank *r = &jobarea->rank[slot];

    /* acquire: a rank that was asked to end must not add its code any more: the job's code is
     * settled */
    if (atomic_load_explicit(&jobarea->exit_state, memory_order_acquire) < AQ_EXIT_ASKED)
        aq_jobarea_raise_exit_code(jobarea, code & 0xff);
    /* relaxed, then release: a reader of the state sees the code */
    atomic_store_explicit(&r->code, code & 0xff, memory_order_relaxed);
    atomic_store_explicit(&r->state, (uint32_t)state, memory_order_release);
    aq_jobarea_raise_exit_state(jobarea, AQ_EXIT_SHUTDOWN);
    aq_jobarea_wake_exits(jobarea);
}

void aq_jobarea_report(struct aq_jobarea *jobarea, int fd, uint64_t min_ms)
{
    uint64_t now = aq_jobarea_now_ns();

    for (uint32_t i = 0; i < jobarea->size; i++) {
        struct aq_jobarea_rank *r = &jobarea->rank[i];
        /* relaxed: a report may be off by one event */
        uint64_t note = atomic_load_explicit(&r->wait, memory_order_relaxed);
        uint64_t since = atomic_load_explicit(&r->wait_since, memory_order_relaxed);
        uint64_t sent = atomic_load_explicit(&r->counter[AQ_COUNT_AM_SENT], memory_order_relaxed);
        uint64_t done =
            atomic_load_explicit(&r->counter[AQ_COUNT_AM_HANDLED], memory_order_relaxed);
        uint32_t kind = (uint32_t)(note >> 32), peer = (uint32_t)note;
        char line[256], who[32] = "";

        if (kind == AQ_WAIT_NONE || kind >= AQ_WAIT_KINDS || now < since + min_ms * 1000000u)
            continue;
        if (peer != AQ_WAIT_ANYONE)
            snprintf(who, sizeof(who), " for rank %u", peer);
        int len = snprintf(
            line, sizeof(line),
            "*** NOTICE (proc %u): waits %llu s in %s%s; %llu messages sent, %llu handled\n",
            r->jobrank, (unsigned long long)((now - since) / 1000000000u), aq_wait_names[kind], who,
            (unsigned long long)sent, (unsigned long long)done);
        if (len > 0 && write(fd, line, (size_t)len) < 0)
            return;
    }
}

/* a wrong value is reported by aq_env_init() in the ranks; here the default is used */
static double aq_jobarea_seconds_env(const char *name, double dflt)
{
    const char *text = getenv(name);
    double value;

    if (text != NULL && *text != '\0' && aq_env_parse_time(text, "s", &value) && value >= 0)
        return value;
    return dflt;
}

static uint32_t aq_jobarea_ms(double seconds)
{
    return seconds > 4e6 ? 4000000000u : (uint32_t)(seconds * 1000.0);
}

uint32_t aq_jobarea_orderly_env(void)
{
    return aq_jobarea_ms(aq_jobarea_seconds_env("AQ_EXITTIMEOUT_ORDERLY", 0));
}

uint32_t aq_jobarea_timeout_env(uint32_t size)
{
    double max = aq_jobarea_seconds_env("GASNET_EXITTIMEOUT_MAX", 5.0);
    double min = aq_jobarea_seconds_env("GASNET_EXITTIMEOUT_MIN", 1.0);
    double each = aq_jobarea_seconds_env("GASNET_EXITTIMEOUT_FACTOR", 0.1);
    double wanted = min + each * (double)size;

    wanted = aq_jobarea_seconds_env("GASNET_EXITTIMEOUT", wanted < max ? wanted : max);
    if (wanted < 0.1)
        wanted = 0.1; /* a shorter timeout could not distinguish order from disorder */
    return aq_jobarea_ms(wanted);
}

void aq_jobarea_unmap(struct aq_jobarea *jobarea)
{
    munmap(jobarea, jobarea->bytes);
}
