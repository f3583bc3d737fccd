/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent_stream.c - stdout and stderr of the ranks on an agent's host, and rank 0's stdin.
 * Threads   one
 * How       a pipe for each. Output is split into lines, with the rank before each line if
 *           requested. Half a line waits AQ_STREAM_HALF_MS for its end (with -l: without limit).
 *           While the queue is full the pipes are not read, so the ranks wait
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "other/launcher/aq_agent.h"

#define AQ_STREAM_QUEUE   (64u << 10) /* bytes of this host's output that may wait for credit */
#define AQ_STREAM_HALF_MS 100
/* after the last rank has ended: for output of processes that it left behind */
#define AQ_STREAM_DRAIN_MS 200

void aq_stream_open(struct aq_node *n, uint32_t slots)
{
    struct rlimit lim;
    rlim_t need = (rlim_t)slots * 2 + n->children * 3 + 128;

    if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < need) {
        n->start->limit = lim;
        n->start->limit_back = true;
        lim.rlim_cur = lim.rlim_max < need ? lim.rlim_max : need;
        setrlimit(RLIMIT_NOFILE, &lim);
    }
    n->stream = calloc((size_t)slots * 2 + 1, sizeof(*n->stream));
    n->streams = n->stream != NULL ? slots * 2 : 0;
    for (uint32_t i = 0; i < n->streams; i++) {
        n->stream[i].fd = -1;
        n->stream[i].which = i % 2 == 0 ? STDOUT_FILENO : STDERR_FILENO;
        n->stream[i].rank = n->plan.host_first[n->host] + i / 2;
    }
}

bool aq_stream_make(struct aq_node *n, uint32_t slot, int stdio_out[3])
{
    int in[2] = { -1, -1 }, fds[2];

    stdio_out[0] = stdio_out[1] = stdio_out[2] = -1;
    if (n->plan.host_first[n->host] + slot == 0) {
        if (pipe2(in, O_CLOEXEC) != 0)
            return false;
        stdio_out[0] = in[0];
        n->feed_fd = in[1];
        fcntl(in[1], F_SETFL, O_NONBLOCK);
    }
    for (int i = 0; i < 2; i++) {
        if (pipe2(fds, O_CLOEXEC) != 0)
            return false; /* the caller closes what is open */
        fcntl(fds[0], F_SETFL, O_NONBLOCK);
        n->stream[2 * slot + (uint32_t)i].fd = fds[0];
        stdio_out[1 + i] = fds[1];
    }
    return true;
}

bool aq_stream_may_read(const struct aq_node *n, const struct aq_stream *s)
{
    return s->fd >= 0 && n->out[s->which].own < AQ_STREAM_QUEUE;
}

/* writes "[rank] " before each line of text */
static void aq_stream_prefixed(struct aq_node *n, const struct aq_stream *s, size_t len)
{
    const char *at = s->line, *end = s->line + len;
    char out[AQ_AGENT_HEAD + AQ_AGENT_LINE + 1];

    while (at < end) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        size_t take = nl != NULL ? (size_t)(nl + 1 - at) : (size_t)(end - at);
        size_t head = (size_t)snprintf(out, AQ_AGENT_HEAD, "[%u] ", s->rank);

        memcpy(out + head, at, take);
        if (nl == NULL)
            out[head + take] = '\n';
        aq_out_push(n, s->which, AQ_AGENT_NOBODY, out, head + take + (nl == NULL));
        at += take;
    }
}

/* queues the first len bytes */
static void aq_stream_send(struct aq_node *n, struct aq_stream *s, size_t len)
{
    if (len == 0)
        return;
    if (n->plan.prefix)
        aq_stream_prefixed(n, s, len);
    else
        aq_out_push(n, s->which, AQ_AGENT_NOBODY, s->line, len);
    s->len -= (uint32_t)len;
    memmove(s->line, s->line + len, s->len);
    s->since_ns = aq_jobarea_now_ns();
}

void aq_stream_read(struct aq_node *n, struct aq_stream *s)
{
    ssize_t got = read(s->fd, s->line + s->len, sizeof(s->line) - s->len);
    const char *nl;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    n->drained_ns = aq_jobarea_now_ns();
    if (got <= 0) {
        aq_stream_send(n, s, s->len);
        close(s->fd);
        s->fd = -1;
        return;
    }
    if (s->len == 0)
        s->since_ns = n->drained_ns;
    s->len += (uint32_t)got;
    nl = memrchr(s->line, '\n', s->len);
    if (nl != NULL)
        aq_stream_send(n, s, (size_t)(nl + 1 - s->line));
    else if (s->len == sizeof(s->line))
        aq_stream_send(n, s, s->len);
}

bool aq_stream_tidy(struct aq_node *n, uint64_t now)
{
    bool waiting = false;

    for (uint32_t i = 0; i < n->streams && !n->plan.prefix; i++) {
        struct aq_stream *s = &n->stream[i];

        if (s->len == 0)
            continue;
        if (s->fd >= 0 && !aq_stream_may_read(n, s))
            s->since_ns = now; /* the end of the line may be in the pipe */
        if (now - s->since_ns >= AQ_STREAM_HALF_MS * AQ_AGENT_MS)
            aq_stream_send(n, s, s->len);
        else
            waiting = true;
    }
    return waiting;
}

/* The ranks have ended. A process that a rank left behind may hold a pipe open: wait for a moment,
 * kill it if it is of this session, and then wait no longer. */
bool aq_stream_drained(struct aq_node *n, uint64_t now)
{
    bool open = false;

    for (uint32_t i = 0; i < n->streams; i++) {
        open = open || n->stream[i].fd >= 0;
        if (n->stream[i].fd >= 0 && !aq_stream_may_read(n, &n->stream[i]))
            n->drained_ns = now; /* the reader of the output is slow */
    }
    if (!open && n->drain_round > 0)
        return true;
    if (open && now - n->drained_ns < AQ_STREAM_DRAIN_MS * AQ_AGENT_MS)
        return false;
    if (n->drain_round++ == 0) {
        aq_supervise_end_others(n->sv);
        n->drained_ns = now;
        return !open;
    }
    for (uint32_t i = 0; i < n->streams; i++) {
        struct aq_stream *s = &n->stream[i];

        if (s->fd < 0)
            continue;
        aq_stream_send(n, s, s->len);
        close(s->fd);
        s->fd = -1;
    }
    return true;
}

void aq_feed_write(struct aq_node *n)
{
    ssize_t done = 0;

    if (n->feed_fd < 0)
        return;
    if (n->feed.len > n->feed_head)
        done = write(n->feed_fd, n->feed.buf + n->feed_head, n->feed.len - n->feed_head);
    if (done < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (done > 0) {
        n->feed_head += (size_t)done;
        aq_out_credit_update(n, &n->up, 0, (size_t)done);
    }
    if (n->feed_head == n->feed.len)
        n->feed_head = n->feed.len = 0;
    if (done < 0 || (n->feed_end && n->feed.len == 0)) {
        close(n->feed_fd);
        n->feed_fd = -1;
    }
}

void aq_feed_take(struct aq_node *n, const struct aq_frame *f)
{
    if (f->len == 0)
        n->feed_end = true;
    else if (n->feed_fd >= 0 || n->started == 0)
        aq_pack_bytes(&n->feed, f->data, f->len);
    aq_feed_write(n);
}
