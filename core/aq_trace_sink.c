/*
 * aq_trace_sink.c - the files of traces and statistics.
 *
 * A name with % in it stands for one file for each rank. Without %, all ranks append to one file:
 * blocks of whole lines, each in one write, under a lock on the file. If a dying rank or a full
 * disk has cut a block, its incomplete line is removed, so that the file has whole lines only.
 *
 * Owns      both sinks; the memory that the ranks of a host share, for their sums and to find the
 *           last one to write
 * Threads   opening: one, at start; writing: under aq_trace_lock()
 * Promise   a file that cannot be opened or written is reported once in a job, which then goes on.
 *           So is a file whose reader takes nothing: no write waits longer than AQ_SINK_STALL_MS
 *           nor, at shutdown, than half of GASNET_EXITTIMEOUT
 * Uses      core/aq_trace_internal.h, other/spawn
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "core/aq_trace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "other/spawn/aq_spawn.h"

#define AQ_TRACE_FD      7     /* slot of aq_spawn_host_fd() */
#define AQ_SINK_LOCK_MS  2000  /* limit of the wait for a rank that holds the file's lock */
#define AQ_SINK_STALL_MS 10000 /* limit of the wait for a pipe, a terminal or a socket */
#define AQ_SINK_TAIL     65536 /* bytes in which the last whole line of a file is searched */

struct aq_trace_sink aq_trace_sink AQ_JOB_STATE = { .variable = "GASNET_TRACEFILE", .fd = -1 };
struct aq_trace_sink aq_stats_sink AQ_JOB_STATE = { .variable = "GASNET_STATSFILE", .fd = -1 };
struct aq_trace_common *aq_trace_common AQ_JOB_STATE;
static size_t aq_trace_common_bytes AQ_JOB_STATE; /* bytes mapped; 0: from the heap */

static struct aq_trace_sink *const aq_sinks[2] = { &aq_trace_sink, &aq_stats_sink };

/* What ranks exchange at start. */
struct aq_trace_hello {
    int32_t error[2]; /* errno of opening; 0: opened, or not tried */
    uint8_t listed[2];
    uint64_t mono, real; /* the two clocks, ns */
};

/* --- names --- */

static int aq_sink_index(const struct aq_trace_sink *sink)
{
    return sink == &aq_stats_sink;
}

/* Recognises -, stdout and stderr as names of descriptors; else returns -1. */
static int aq_sink_console(const char *name)
{
    if (strcmp(name, "-") == 0 || strcasecmp(name, "stderr") == 0)
        return STDERR_FILENO;
    return strcasecmp(name, "stdout") == 0 ? STDOUT_FILENO : -1;
}

/* Replaces each % by the rank. */
static void aq_sink_expand(struct aq_trace_sink *sink, const char *name, gex_Rank_t rank)
{
    struct aq_trace_out out = { sink->path, sink->path + sizeof(sink->path) - 1 };

    for (; *name != '\0'; name++) {
        if (*name == '%')
            aq_trace_put_number(&out, rank);
        else
            aq_trace_put_char(&out, *name);
    }
    *out.at = '\0';
}

/* --- opening --- */

/* Opens stdout or stderr. O_NONBLOCK belongs to the open file, which the program and its shell
 * share: a terminal or a pipe is opened a second time. Where that is not allowed, poll() precedes
 * each write. */
static int aq_sink_open_console(int console)
{
    struct stat status;
    char path[32];
    int fd = -1;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", console);
    if (fstat(console, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)))
        fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    return fd >= 0 ? fd : fcntl(console, F_DUPFD_CLOEXEC, 3);
}

static int aq_sink_open_file(struct aq_trace_sink *sink, bool create)
{
    /* O_NONBLOCK: does not wait for a pipe's reader */
    const int flags =
        O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (create ? O_TRUNC : 0);
    const int console = aq_sink_console(sink->path);
    struct stat status;

    if (console >= 0) {
        sink->fd = aq_sink_open_console(console);
    } else {
        sink->fd = open(sink->path, O_RDWR | flags, 0666);
        if (sink->fd < 0 && errno == EACCES) /* may be written but not read */
            sink->fd = open(sink->path, O_WRONLY | flags, 0666);
    }
    if (sink->fd < 0)
        return errno;
    if (fstat(sink->fd, &status) == 0) {
        sink->is_file = console < 0 && S_ISREG(status.st_mode);
        sink->is_socket = S_ISSOCK(status.st_mode);
    }
    if (create && sink == &aq_trace_sink && write(sink->fd, "[\n", 2) != 2)
        return errno != 0 ? errno : EIO;
    return 0;
}

static void aq_sink_close(struct aq_trace_sink *sink)
{
    if (sink->fd >= 0)
        close(sink->fd);
    sink->fd = -1;
}

/* Opens the ranks' own files and, on rank 0, the common one, before others append to it. */
static void aq_sink_open_first(struct aq_trace_sink *sink, const char *name, bool listed,
                               struct aq_trace_hello *hello)
{
    const int i = aq_sink_index(sink);

    if (name == NULL || *name == '\0')
        return;
    sink->listed = listed;
    hello->listed[i] = listed;
    sink->is_shared = strchr(name, '%') == NULL;
    aq_sink_expand(sink, name, aq_job.rank);
    if (sink->is_shared ? aq_job.rank == 0 : listed)
        hello->error[i] = aq_sink_open_file(sink, true);
}

/* Runs when all ranks have done the above. Reports once what could not be opened. */
static void aq_sink_open_rest(struct aq_trace_sink *sink, const struct aq_trace_hello *all)
{
    const int i = aq_sink_index(sink);
    gex_Rank_t failed = 0, first = aq_job.size;
    int error = 0;

    for (gex_Rank_t rank = aq_job.size; rank-- > 0;)
        if (all[rank].error[i] != 0) {
            failed++;
            first = rank;
            error = all[rank].error[i];
        }
    if (first == aq_job.rank)
        aq_warn("%s: cannot write to %s%s: %s; the job goes on without", sink->variable, sink->path,
                failed > 1 ? " and others like it" : "", strerror(error));
    if (!sink->listed || all[aq_job.rank].error[i] != 0 || (sink->is_shared && failed != 0)) {
        aq_sink_close(sink);
        return;
    }
    if (sink->is_shared && aq_job.rank != 0 && (error = aq_sink_open_file(sink, false)) != 0)
        aq_warn("%s: cannot write to %s: %s; this rank goes on without", sink->variable, sink->path,
                strerror(error));
}

/* Sets rank 0's time 0, and the offset of this host's clock from rank 0's: nothing on one host. */
static void aq_trace_align_clocks(const struct aq_trace_hello *all)
{
    const uint32_t own = aq_spawn_info()->host_ranks[0]; /* equal for all ranks of this host */

    aq_trace_state.base = all[0].mono;
    aq_trace_state.offset =
        own == 0 ? 0
                 : (int64_t)(all[own].real - all[own].mono) - (int64_t)(all[0].real - all[0].mono);
}

static uint64_t aq_trace_real_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Maps the memory that the ranks of this host share; private memory if that fails, without common
 * sums. */
static void aq_trace_map_shared(const struct aq_trace_hello *all)
{
    const struct aq_spawn_info *spawn = aq_spawn_info();
    const size_t bytes =
        sizeof(struct aq_trace_common)
        + (size_t)spawn->host_size * AQ_TRACE_KIND_COUNT * sizeof(struct aq_trace_count);
    const int fd = aq_spawn_host_fd(AQ_TRACE_FD, 0);
    void *at = MAP_FAILED;
    bool mapped;

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    mapped = at != MAP_FAILED;
    if (!mapped) {
        at = calloc(1, bytes);
        if (at == NULL)
            aq_fatal("no memory for the sums of GASNET_STATSFILE: %zu bytes", bytes);
    }
    aq_trace_common = at;
    aq_trace_common_bytes = mapped ? bytes : 0;
    for (int i = 0; i < 2; i++) {
        uint32_t writers = 0;
        gex_Rank_t first = aq_job.rank;

        for (uint32_t k = spawn->host_size; k-- > 0;) {
            const gex_Rank_t rank = spawn->host_ranks[k];

            if (all[rank].listed[i] && all[rank].error[i] == 0) {
                writers++;
                first = rank;
            }
        }
        if (spawn->host_rank == 0) { /* the others read it when they end */
            aq_trace_common->writers[i] = writers;
            aq_trace_common->first[i] = first;
        }
    }
}

void aq_trace_sinks_open(void)
{
    struct aq_trace_hello own, *all = calloc(aq_job.size, sizeof(*all));

    if (all == NULL)
        aq_fatal("no memory for opening GASNET_TRACEFILE: %zu bytes", aq_job.size * sizeof(*all));
    memset(&own, 0, sizeof(own));
    own.mono = aq_now_ns();
    own.real = aq_trace_real_ns();
    aq_sink_open_first(&aq_trace_sink, aq_env_str(AQ_ENV_TRACEFILE),
                       aq_env_rank_listed(AQ_ENV_TRACENODES, aq_job.rank), &own);
    aq_sink_open_first(&aq_stats_sink, aq_env_str(AQ_ENV_STATSFILE),
                       aq_env_rank_listed(AQ_ENV_STATSNODES, aq_job.rank), &own);
    if (aq_spawn_allgather(&own, sizeof(own), all) != AQ_OK)
        aq_fatal("the ranks could not agree on GASNET_TRACEFILE at start");
    for (int i = 0; i < 2; i++)
        if (aq_sinks[i]->path[0] != '\0')
            aq_sink_open_rest(aq_sinks[i], all);
    aq_trace_align_clocks(all);
    aq_trace_map_shared(all);
    free(all);
}

/* --- writing --- */

/* The deadline of a wait that begins now. */
static uint64_t aq_sink_limit(unsigned ms)
{
    const uint64_t limit = aq_now_ns() + ms * UINT64_C(1000000);

    return aq_trace_state.end_by != 0 && aq_trace_state.end_by < limit ? aq_trace_state.end_by
                                                                       : limit;
}

/* Locks the file against other ranks; continues without the lock after a timeout. */
static void aq_sink_lock(const struct aq_trace_sink *sink, short how)
{
    struct flock lock = { .l_type = how, .l_whence = SEEK_SET };
    const struct timespec ms = { 0, 1000000 };
    const uint64_t limit = aq_sink_limit(AQ_SINK_LOCK_MS);

    while (fcntl(sink->fd, F_OFD_SETLK, &lock) != 0 && (errno == EAGAIN || errno == EACCES)
           && aq_now_ns() < limit)
        nanosleep(&ms, NULL);
}

/* Returns the file's length, after removing an incomplete line at its end. */
static off_t aq_sink_whole(const struct aq_trace_sink *sink)
{
    static char tail[AQ_SINK_TAIL];
    off_t length = lseek(sink->fd, 0, SEEK_END);
    const size_t look =
        length < (off_t)sizeof(tail) ? (size_t)(length > 0 ? length : 0) : sizeof(tail);
    ssize_t got;

    if (look == 0 || pread(sink->fd, tail, 1, length - 1) != 1 || tail[0] == '\n')
        return length;
    got = pread(sink->fd, tail, look, length - (off_t)look);
    while (got > 0 && tail[got - 1] != '\n')
        got--;
    if (got <= 0)
        return length;
    length += (off_t)got - (off_t)look;
    return ftruncate(sink->fd, length) == 0 ? length : lseek(sink->fd, 0, SEEK_END);
}

/* The first rank that finds a failure reports it. */
static void aq_sink_complain(struct aq_trace_sink *sink, int error, bool in_signal)
{
    atomic_uint *warned =
        aq_trace_common != NULL ? &aq_trace_common->warned[aq_sink_index(sink)] : NULL;

    sink->failed = true;
    /* relaxed: any one of several may report it */
    if (!in_signal
        && (warned == NULL || atomic_exchange_explicit(warned, 1, memory_order_relaxed) == 0))
        aq_warn("%s: cannot write to %s: %s; nothing more is written there, and the job goes on",
                sink->variable, sink->path,
                error == EAGAIN ? "its reader takes nothing" : strerror(error));
    aq_sink_close(sink);
}

/* Returns how much of text a pipe takes atomically, up to the end of a line if there is one. */
static size_t aq_sink_whole_lines(const char *text, size_t len)
{
    const char *end;

    if (len <= PIPE_BUF)
        return len;
    end = memrchr(text, '\n', PIPE_BUF);
    return end != NULL ? (size_t)(end + 1 - text) : PIPE_BUF;
}

/* write() with a timeout for a reader that takes nothing: EAGAIN */
static ssize_t aq_sink_put(const struct aq_trace_sink *sink, const char *text, size_t len)
{
    const uint64_t limit = aq_sink_limit(AQ_SINK_STALL_MS);
    struct pollfd pfd = { sink->fd, POLLOUT, 0 };
    ssize_t wrote;

    if (sink->is_file)
        return write(sink->fd, text, len);
    len = aq_sink_whole_lines(text, len);
    do {
        const uint64_t now = aq_now_ns();

        if (poll(&pfd, 1, now < limit ? (int)((limit - now) / 1000000) + 1 : 0) == 0) {
            errno = EAGAIN;
            return -1;
        }
        wrote =
            sink->is_socket ? send(sink->fd, text, len, MSG_DONTWAIT) : write(sink->fd, text, len);
    } while (wrote < 0 && errno == EAGAIN && aq_now_ns() < limit); /* another rank was faster */
    return wrote;
}

bool aq_trace_sink_write(struct aq_trace_sink *sink, const char *text, size_t len, bool in_signal)
{
    off_t start = 0;
    size_t done = 0;
    int error = 0;

    if (sink->fd < 0)
        return false;
    if (sink->is_file && sink->is_shared)
        aq_sink_lock(sink, F_WRLCK);
    if (sink->is_file)
        start = aq_sink_whole(sink);
    while (done < len && error == 0) {
        const ssize_t wrote = aq_sink_put(sink, text + done, len - done);

        if (wrote >= 0)
            done += (size_t)wrote;
        else if (errno != EINTR)
            error = errno;
    }
    if (error != 0 && sink->is_file && done != 0 && ftruncate(sink->fd, start) != 0)
        error = errno; /* readers must do without the last line */
    if (sink->is_file && sink->is_shared)
        aq_sink_lock(sink, F_UNLCK);
    if (error != 0)
        aq_sink_complain(sink, error, in_signal);
    return error == 0;
}

void aq_trace_sink_reopen(struct aq_trace_sink *sink)
{
    const gex_Rank_t first = aq_trace_common->first[aq_sink_index(sink)];

    if (sink->is_shared || first == aq_job.rank)
        return;
    aq_sink_close(sink);
    aq_sink_expand(sink, aq_env_str(sink == &aq_stats_sink ? AQ_ENV_STATSFILE : AQ_ENV_TRACEFILE),
                   first);
    (void)aq_sink_open_file(sink, false); /* a failure is ignored */
}

bool aq_trace_sink_last(struct aq_trace_sink *sink)
{
    const int i = aq_sink_index(sink);

    /* acq_rel: the last rank sees the others' sums, which were stored before */
    return atomic_fetch_add_explicit(&aq_trace_common->finished[i], 1, memory_order_acq_rel) + 1
           == aq_trace_common->writers[i];
}

void aq_trace_sinks_close(void)
{
    for (int i = 0; i < 2; i++)
        aq_sink_close(aq_sinks[i]);
    if (aq_trace_common_bytes != 0)
        munmap(aq_trace_common, aq_trace_common_bytes);
    else
        free(aq_trace_common);
}
