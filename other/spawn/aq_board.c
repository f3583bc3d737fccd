/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_board.c - the job board; see aq_board.h.
 * Threads   the barrier is entered by one thread a rank; the rest from any context
 * Uses      memfd, futex, getrandom; base/aq_env.h's parsers for the exit timeout
 */
#include "other/spawn/aq_board.h"

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

#define AQ_BOARD_VERSION 4u
#define AQ_BOARD_SPINS   4000 /* a few microseconds: about what a sleep and wake-up costs */
#define AQ_BOARD_FAR_LEAST (64u << 10) /* bytes for one round of an exchange between hosts */
#define AQ_BOARD_FAR_MOST  (4u << 20)
#define AQ_BOARD_MEANWHILE_MS 5 /* the same, if there is something to do meanwhile */
#define AQ_BOARD_LOOK_MS 500  /* how often a waiter looks whether the job still lives */

static const char *const aq_wait_names[AQ_WAIT_KINDS] = {
    [AQ_WAIT_NONE] = "nothing",
    [AQ_WAIT_START] = "the start-up exchange",
    [AQ_WAIT_BARRIER] = "a barrier",
    [AQ_WAIT_EVENT] = "the completion of an operation",
    [AQ_WAIT_QUEUE] = "room in a message queue",
    [AQ_WAIT_BLOCKUNTIL] = "a condition of the program (GASNET_BLOCKUNTIL)",
    [AQ_WAIT_COLL] = "a collective operation",
};

static size_t aq_board_bytes(uint32_t size, uint32_t *blackboard_out)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t slots = sizeof(struct aq_board) + (size_t)size * sizeof(struct aq_board_rank);
    size_t head = (slots + page - 1) & ~(page - 1);

    *blackboard_out = (uint32_t)head;
    /* two rounds, so that a fast rank may write the next while a slow one reads the last */
    return head + 2 * (size_t)size * AQ_BOARD_CHUNK;
}

static uint64_t aq_board_area(uint64_t *bytes, uint64_t wanted)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = *bytes;

    *bytes += (wanted + page - 1) & ~(page - 1);
    return at;
}

/* the areas behind the blackboard; pages that nobody touches cost nothing */
static uint64_t aq_board_far_layout(struct aq_board *b, const struct aq_board_place *place, uint64_t bytes)
{
    uint64_t room = (uint64_t)place->job_size * 256;

    b->far_room = (uint32_t)(room < AQ_BOARD_FAR_LEAST ? AQ_BOARD_FAR_LEAST
                             : room > AQ_BOARD_FAR_MOST ? AQ_BOARD_FAR_MOST
                                                        : room);
    bytes = (bytes + AQ_BOARD_CHUNK * 64 - 1) & ~(uint64_t)(AQ_BOARD_CHUNK * 64 - 1); /* any page size */
    b->host_of_offset = aq_board_area(&bytes, place->job_size * sizeof(uint32_t));
    b->far_offset[0] = aq_board_area(&bytes, b->far_room);
    b->far_offset[1] = aq_board_area(&bytes, b->far_room);
    b->cards_offset = aq_board_area(&bytes, (uint64_t)place->job_size * AQ_BOARD_CARD);
    b->environment_offset = aq_board_area(&bytes, place->environment_bytes);
    return bytes;
}

static void aq_board_far_fill(struct aq_board *board, const struct aq_board_place *place)
{
    uint32_t *host_of = (uint32_t *)(void *)((char *)board + board->host_of_offset), rank = 0;

    for (uint32_t h = 0; h < place->host_count; h++)
        for (uint32_t i = 0; i < place->host_ranks[h] && rank < place->job_size; i++)
            host_of[rank++] = h;
    memcpy(board->job_key, place->job_key, sizeof(board->job_key));
    board->environment_bytes = place->environment_bytes;
    if (place->environment_bytes > 0)
        memcpy((char *)board + board->environment_offset, place->environment, place->environment_bytes);
}

static struct aq_board *aq_board_make(uint32_t size, uint32_t job_size, const struct aq_board_place *place,
                                      int *fd_out)
{
    struct aq_board *board, layout = {.rank_base = 0, .host_count = 1};
    uint32_t blackboard;
    uint64_t bytes = aq_board_bytes(size, &blackboard);
    int fd = memfd_create("aq-board", MFD_CLOEXEC);

    if (fd < 0)
        return NULL;
    if (place != NULL)
        bytes = aq_board_far_layout(&layout, place, bytes);
    if (ftruncate(fd, (off_t)bytes) != 0)
        goto close_fd;
    board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (board == MAP_FAILED)
        goto close_fd;
    *board = layout;
    /* two: parts of the first are seen in names and in ranks' environments, of the second nothing is */
    if (getrandom(board->key, sizeof(board->key), 0) != (ssize_t)sizeof(board->key) ||
        getrandom(board->job_key, sizeof(board->job_key), 0) != (ssize_t)sizeof(board->job_key))
        goto unmap;
    board->bytes = bytes;
    board->version = AQ_BOARD_VERSION;
    board->size = size;
    board->job_size = job_size;
    board->link_fd = -1;
    board->blackboard_offset = blackboard;
    board->exit_timeout_ms = aq_board_timeout_env(job_size);
    if (place != NULL) {
        board->rank_base = place->rank_base;
        board->host_index = place->host_index;
        board->host_count = place->host_count;
        aq_board_far_fill(board, place);
    }
    for (uint32_t i = 0; i < size; i++)
        board->rank[i].jobrank = board->rank_base + i;
    board->magic = AQ_BOARD_MAGIC;
    *fd_out = fd;
    return board;
unmap:
    munmap(board, bytes);
close_fd:
    close(fd);
    return NULL;
}

struct aq_board *aq_board_create(uint32_t size, uint32_t job_size, int *fd_out)
{
    return aq_board_make(size, job_size, NULL, fd_out);
}

struct aq_board *aq_board_create_far(uint32_t size, const struct aq_board_place *place, int *fd_out)
{
    return aq_board_make(size, place->job_size, place, fd_out);
}

struct aq_board *aq_board_map(int fd)
{
    struct aq_board *board;
    struct stat st;

    if (fstat(fd, &st) != 0)
        return NULL;
    if ((size_t)st.st_size < sizeof(*board)) {
        errno = EINVAL;
        return NULL;
    }
    board = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (board == MAP_FAILED)
        return NULL;
    if (board->magic != AQ_BOARD_MAGIC || board->version != AQ_BOARD_VERSION ||
        board->bytes != (uint64_t)st.st_size) {
        munmap(board, (size_t)st.st_size);
        errno = EINVAL;
        return NULL;
    }
    return board;
}

void aq_board_wait_word(_Atomic uint32_t *word, uint32_t value, int timeout_ms)
{
    struct timespec ts = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};

    syscall(SYS_futex, word, FUTEX_WAIT, value, timeout_ms < 0 ? NULL : &ts, NULL, 0);
}

void aq_board_wake_word(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Written before there is a second thread in the library. */
static void (*aq_board_meanwhile)(void);

void aq_board_set_meanwhile(void (*fn)(void))
{
    aq_board_meanwhile = fn;
}

int aq_board_barrier(struct aq_board *board, bool spin)
{
    /* relaxed: only our own arrival below can let the round move on */
    uint32_t round = atomic_load_explicit(&board->round, memory_order_relaxed);
    int spins = spin ? AQ_BOARD_SPINS : 0;

    /* acq_rel: the last to arrive has seen what all others wrote, and passes it on by the store of round */
    if (atomic_fetch_add_explicit(&board->arrived, 1, memory_order_acq_rel) + 1 == board->size) {
        /* relaxed: ordered before the release below, and nobody arrives again before that */
        atomic_store_explicit(&board->arrived, 0, memory_order_relaxed);
        /* release: pairs with the acquire of the waiters */
        atomic_store_explicit(&board->round, round + 1, memory_order_release);
        aq_board_wake_word(&board->round);
        return 0;
    }
    /* acquire: pairs with the release of the last to arrive */
    while (atomic_load_explicit(&board->round, memory_order_acquire) == round) {
        if (spins-- > 0)
            continue;
        /* relaxed: decides only that we give up */
        if (atomic_load_explicit(&board->exit_state, memory_order_relaxed) >= AQ_EXIT_ASKED)
            return -ESHUTDOWN;
        if (aq_board_meanwhile != NULL)
            aq_board_meanwhile();
        aq_board_wait_word(&board->round, round, aq_board_meanwhile != NULL ? AQ_BOARD_MEANWHILE_MS
                                                                            : AQ_BOARD_LOOK_MS);
    }
    return 0;
}

void aq_board_raise_exit_code(struct aq_board *board, int code)
{
    /* relaxed: the code is read after the ranks are gone, or by ranks that only repeat it */
    int32_t old = atomic_load_explicit(&board->exit_code, memory_order_relaxed);

    while (old < code &&
           !atomic_compare_exchange_weak_explicit(&board->exit_code, &old, code,
                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
}

uint32_t aq_board_raise_exit_state(struct aq_board *board, enum aq_exit_state state)
{
    /* acq_rel: who sees a state also sees the code and messages that led to it */
    uint32_t old = atomic_load_explicit(&board->exit_state, memory_order_acquire);

    while (old < (uint32_t)state &&
           !atomic_compare_exchange_weak_explicit(&board->exit_state, &old, (uint32_t)state,
                                                  memory_order_acq_rel, memory_order_acquire))
        continue;
    return old;
}

void aq_board_publish_exit(struct aq_board *board, uint32_t slot, enum aq_rank_state state,
                           int code)
{
    struct aq_board_rank *r = &board->rank[slot];

    /* acquire: an asked rank must not add its code any more, the job's code is settled */
    if (atomic_load_explicit(&board->exit_state, memory_order_acquire) < AQ_EXIT_ASKED)
        aq_board_raise_exit_code(board, code & 0xff);
    /* relaxed, then release: who sees the state sees the code */
    atomic_store_explicit(&r->code, code & 0xff, memory_order_relaxed);
    atomic_store_explicit(&r->state, (uint32_t)state, memory_order_release);
    aq_board_raise_exit_state(board, AQ_EXIT_ENDING);
    /* release: pairs with the acquire of those who count the ranks that have come */
    atomic_fetch_add_explicit(&board->exit_seen, 1, memory_order_release);
    aq_board_wake_word(&board->exit_seen);
}

void aq_board_report(struct aq_board *board, int fd, uint64_t min_ms)
{
    uint64_t now = aq_board_now_ns();

    for (uint32_t i = 0; i < board->size; i++) {
        struct aq_board_rank *r = &board->rank[i];
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

/* a wrong value is reported by aq_env_init() in the ranks; here it only must do no harm */
static double aq_board_seconds_env(const char *name, double dflt)
{
    const char *text = getenv(name);
    double value;

    if (text != NULL && *text != '\0' && aq_env_parse_time(text, "s", &value) && value >= 0)
        return value;
    return dflt;
}

uint32_t aq_board_timeout_env(uint32_t size)
{
    double max = aq_board_seconds_env("GASNET_EXITTIMEOUT_MAX", 5.0);
    double min = aq_board_seconds_env("GASNET_EXITTIMEOUT_MIN", 1.0);
    double each = aq_board_seconds_env("GASNET_EXITTIMEOUT_FACTOR", 0.1);
    double wanted = min + each * (double)size;

    wanted = aq_board_seconds_env("GASNET_EXITTIMEOUT", wanted < max ? wanted : max);
    if (wanted < 0.1)
        wanted = 0.1; /* less could not tell order from disorder */
    return wanted > 4e6 ? 4000000000u : (uint32_t)(wanted * 1000.0);
}
