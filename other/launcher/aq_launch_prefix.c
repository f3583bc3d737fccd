/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_launch_prefix.c - writes the rank before each line of output (-l, --prefix-output).
 * Owns      a pipe for stdout and one for stderr of each rank, and their incomplete lines
 * Threads   one
 * Promise   lines never mix; no output is dropped: while gasnetrun's stdout or stderr is full,
 *           ranks wait
 * Not used  without -l: ranks then write to gasnetrun's own descriptors, which costs nothing, keeps
 *           the order of stdout and stderr, and lets programs see the terminal
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "other/launcher/aq_launch.h"

#define AQ_PREFIX_LINE 4096 /* a longer line is split */
#define AQ_PREFIX_HEAD 16
/* after the last rank has ended: for output of processes that it left behind */
#define AQ_PREFIX_DRAIN_MS 200

struct aq_prefix_stream {
    int read_fd, write_fd; /* -1 when closed */
    int to;                /* the launcher's stdout or stderr */
    uint32_t rank;
    size_t len;
    char line[AQ_PREFIX_HEAD + AQ_PREFIX_LINE];
    size_t head;
};

struct aq_prefix {
    uint32_t count;  /* streams: 2 for each rank */
    uint32_t *shown; /* stream of each pollfd */
    struct aq_prefix_stream *stream;
    struct aq_supervise_io io;
};

static void aq_prefix_raise_nofile(const struct aq_launch *lo)
{
    struct rlimit lim;
    rlim_t need = (rlim_t)lo->ranks * 4 + 64;

    if (getrlimit(RLIMIT_NOFILE, &lim) != 0 || lim.rlim_cur >= need)
        return;
    if (lim.rlim_max < need)
        aq_launch_error(
            lo,
            "--prefix-output for %u ranks needs %llu file descriptors, ulimit -n -H allows %llu; "
            "leave the option out or raise the limit",
            lo->ranks, (unsigned long long)need, (unsigned long long)lim.rlim_max);
    lim.rlim_cur = need;
    setrlimit(RLIMIT_NOFILE, &lim);
}

static void aq_prefix_pipe(const struct aq_launch *lo, struct aq_prefix_stream *st, uint32_t rank,
                           int to)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0)
        aq_launch_error(lo, "--prefix-output: pipe: %s", strerror(errno));
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    st->read_fd = fds[0];
    st->write_fd = fds[1];
    st->to = to;
    st->rank = rank;
    st->head = (size_t)snprintf(st->line, AQ_PREFIX_HEAD, "[%u] ", rank);
}

static void aq_prefix_write(int to, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t done = write(to, text, len);

        if (done < 0 && errno == EAGAIN) {
            struct pollfd p = { to, POLLOUT, 0 };

            poll(&p, 1, -1);
        } else if (done < 0 && errno != EINTR) {
            return; /* the reader has closed */
        } else if (done > 0) {
            text += done;
            len -= (size_t)done;
        }
    }
}

/* writes the complete lines; everything if `all`, or if a line is longer than the buffer */
static void aq_prefix_lines(struct aq_prefix_stream *st, bool all)
{
    char *at = st->line + st->head, *end = at + st->len, *nl;
    size_t space = AQ_PREFIX_LINE - AQ_PREFIX_HEAD;

    while (at < end) {
        char saved[AQ_PREFIX_HEAD];
        size_t len;
        bool whole;

        nl = memchr(at, '\n', (size_t)(end - at));
        whole = nl != NULL;
        if (!whole && !all && (size_t)(end - at) < space)
            break;
        len = whole ? (size_t)(nl + 1 - at) : (size_t)(end - at);
        /* the prefix is written before the text in place, so that both leave in one write */
        memcpy(saved, at - st->head, st->head);
        snprintf(at - st->head, st->head, "[%u]", st->rank);
        at[-1] = ' ';
        if (!whole) {
            aq_prefix_write(st->to, at - st->head, len + st->head);
            aq_prefix_write(st->to, "\n", 1);
        } else {
            aq_prefix_write(st->to, at - st->head, len + st->head);
        }
        memcpy(at - st->head, saved, st->head);
        at += len;
    }
    st->len = (size_t)(end - at);
    memmove(st->line + st->head, at, st->len);
}

/* returns false at end of file */
static bool aq_prefix_read(struct aq_prefix_stream *st)
{
    size_t space = AQ_PREFIX_LINE - AQ_PREFIX_HEAD;
    ssize_t got = read(st->read_fd, st->line + st->head + st->len, space - st->len);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0) {
        aq_prefix_lines(st, true);
        close(st->read_fd);
        st->read_fd = -1;
        return false;
    }
    st->len += (size_t)got;
    aq_prefix_lines(st, false);
    return true;
}

static bool aq_prefix_can_write(int fd)
{
    struct pollfd p = { fd, POLLOUT, 0 };

    return poll(&p, 1, 0) != 0; /* an error counts as ready: the write reports it */
}

/* ranks whose output descriptor is full are not read; that descriptor is polled instead */
static int aq_prefix_fill(void *arg, struct pollfd *fds)
{
    struct aq_prefix *px = arg;
    bool ready[3] = { false, aq_prefix_can_write(STDOUT_FILENO),
                      aq_prefix_can_write(STDERR_FILENO) };
    int n = 0;

    for (uint32_t i = 0; i < px->count; i++) {
        if (px->stream[i].read_fd < 0 || !ready[px->stream[i].to])
            continue;
        fds[n] = (struct pollfd){ px->stream[i].read_fd, POLLIN, 0 };
        px->shown[n++] = i;
    }
    for (int to = STDOUT_FILENO; to <= STDERR_FILENO; to++) {
        if (!ready[to]) {
            fds[n] = (struct pollfd){ to, POLLOUT, 0 };
            px->shown[n++] = UINT32_MAX;
        }
    }
    return n;
}

static void aq_prefix_serve(void *arg, const struct pollfd *fds, int count)
{
    struct aq_prefix *px = arg;

    for (int i = 0; i < count; i++)
        if (fds[i].revents != 0 && px->shown[i] != UINT32_MAX)
            aq_prefix_read(&px->stream[px->shown[i]]);
}

static void aq_prefix_finish(void *arg)
{
    struct aq_prefix *px = arg;

    for (uint32_t i = 0; i < px->count; i++) {
        struct aq_prefix_stream *st = &px->stream[i];

        while (st->read_fd >= 0) {
            struct pollfd p = { st->read_fd, POLLIN, 0 };

            /* a process that a rank left behind may hold the pipe open: do not wait for it */
            if (poll(&p, 1, AQ_PREFIX_DRAIN_MS) <= 0) {
                aq_prefix_lines(st, true);
                break;
            }
            aq_prefix_read(st);
        }
    }
}

struct aq_prefix *aq_prefix_open(const struct aq_launch *lo)
{
    struct aq_prefix *px = calloc(1, sizeof(*px));

    aq_prefix_raise_nofile(lo);
    if (px != NULL) {
        px->count = lo->ranks * 2;
        px->stream = calloc(px->count, sizeof(*px->stream));
        px->shown = calloc(px->count + 2, sizeof(*px->shown));
    }
    if (px == NULL || px->stream == NULL || px->shown == NULL)
        aq_launch_error(lo, "--prefix-output: out of memory");
    for (uint32_t r = 0; r < lo->ranks; r++) {
        aq_prefix_pipe(lo, &px->stream[2 * r], r, STDOUT_FILENO);
        aq_prefix_pipe(lo, &px->stream[2 * r + 1], r, STDERR_FILENO);
    }
    return px;
}

void aq_prefix_child(struct aq_prefix *px, uint32_t rank)
{
    dup2(px->stream[2 * rank].write_fd, STDOUT_FILENO);
    dup2(px->stream[2 * rank + 1].write_fd, STDERR_FILENO);
}

struct aq_supervise_io *aq_prefix_started(struct aq_prefix *px)
{
    for (uint32_t i = 0; i < px->count; i++) {
        close(px->stream[i].write_fd);
        px->stream[i].write_fd = -1;
    }
    /* without a reader gasnetrun goes on; SIGPIPE must not end it before the ranks */
    signal(SIGPIPE, SIG_IGN);
    px->io = (struct aq_supervise_io){
        .fill = aq_prefix_fill,
        .serve = aq_prefix_serve,
        .finish = aq_prefix_finish,
        .arg = px,
        .max = (int)px->count + 2,
    };
    return &px->io;
}
