/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent_node.c - the loop of a node: polls descriptors, and checks that parent and children are
 * alive.
 * Threads   one
 * See       aq_agent.h
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aq_config.h"
#include "other/launcher/aq_agent.h"

#define AQ_NODE_SHUTDOWN_MS 5000 /* for children that were told to exit */
#define AQ_NODE_SOON_MS     50   /* between checks while something is pending */
#define AQ_NODE_WRITE_MS    1000 /* for output after the user's signal */
#define AQ_NODE_GIVE_UP_MS  3000 /* for the end after the user's second signal */

void aq_node_fail(struct aq_node *n, int code, const char *fmt, ...)
{
    char text[900];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (!n->shutdown->logged)
        aq_shutdown_say("FATAL ERROR", "%s", text);
    n->shutdown->logged = true;
    aq_shutdown_fail(n->shutdown, code);
}

void aq_node_tell_children(struct aq_node *n, enum aq_frame_type type, uint8_t arg,
                           const void *data, size_t len)
{
    for (uint32_t i = 0; i < n->children; i++)
        if (n->child[i].state == AQ_LINK_OPEN || n->child[i].state == AQ_LINK_DONE)
            aq_link_send(&n->child[i], type, arg, data, len);
}

/* splits hosts [first, end) among as many children as the out-degree allows */
void aq_node_children(struct aq_node *n, uint32_t first, uint32_t end)
{
    uint32_t hosts = end - first, count = hosts;
    uint32_t space;

    if (n->plan.degree > 0 && count > n->plan.degree)
        count = n->plan.degree;
    n->child = calloc((size_t)count + 1, sizeof(*n->child));
    n->children = n->child != NULL ? count : 0;
    for (uint32_t i = 0; i < n->children; i++) {
        struct aq_link *l = &n->child[i];

        aq_link_init(l, -1, -1, -1);
        l->first = first;
        l->end = first + hosts / count + (i < hosts % count);
        first = l->end;
    }
    space = (8u << 20) / (count > 0 ? count : 1);
    n->window = space > (256u << 10) ? 256u << 10 : space < (16u << 10) ? 16u << 10 : space;
}

void aq_node_signal(struct aq_node *n, int sig)
{
    char text[4096];
    ssize_t got;
    int fd;

    if (sig != SIGUSR1 && sig != SIGUSR2)
        return;
    aq_supervise_forward(n->sv, sig);
    fd = sig == SIGUSR2 ? memfd_create("aq-report", MFD_CLOEXEC) : -1;
    if (fd < 0)
        return;
    aq_jobarea_report(n->sv->jobarea, fd, 0);
    lseek(fd, 0, SEEK_SET);
    while ((got = read(fd, text, sizeof(text))) > 0)
        aq_out_push(n, STDERR_FILENO, AQ_AGENT_NOBODY, text, (size_t)got);
    close(fd);
}

/* ---- what is polled ---- */

static int aq_node_poll(struct aq_node *n, struct pollfd *fds, int at, int fd, short events,
                        enum aq_ref_kind kind, uint32_t index)
{
    if (fd < 0 || events == 0)
        return at;
    fds[at] = (struct pollfd){ fd, events, 0 };
    n->ref[at] = (struct aq_ref){ kind, index };
    return at + 1;
}

static int aq_node_poll_link(struct aq_node *n, struct pollfd *fds, int at, struct aq_link *l,
                             uint32_t index)
{
    if (l->eof_ns == 0)
        at = aq_node_poll(n, fds, at, l->in, POLLIN, AQ_REF_IN, index);
    if (aq_link_has_output(l))
        at = aq_node_poll(n, fds, at, l->out, POLLOUT, AQ_REF_OUT, index);
    return aq_node_poll(n, fds, at, l->err, POLLIN, AQ_REF_ERR, index);
}

static int aq_node_fill(void *arg, struct pollfd *fds)
{
    struct aq_node *n = arg;
    int at = 0;

    if (!n->is_root)
        at = aq_node_poll_link(n, fds, at, &n->up, AQ_AGENT_NOBODY);
    for (uint32_t i = 0; i < n->children; i++)
        at = aq_node_poll_link(n, fds, at, &n->child[i], i);
    for (uint32_t i = 0; i < n->streams; i++)
        if (aq_stream_may_read(n, &n->stream[i]))
            at = aq_node_poll(n, fds, at, n->stream[i].fd, POLLIN, AQ_REF_STREAM, i);
    if (n->feed.len > n->feed_head)
        at = aq_node_poll(n, fds, at, n->feed_fd, POLLOUT, AQ_REF_FEED, 0);
    at = aq_node_poll(n, fds, at, n->local_fd, POLLIN, AQ_REF_LOCAL, 0);
    if (!n->is_root)
        return at;
    for (uint32_t i = 0; i < n->lo->idles; i++)
        at = aq_node_poll(n, fds, at, n->lo->idle[i].fd, POLLRDHUP, AQ_REF_IDLE, i);
    for (uint32_t i = STDOUT_FILENO; i <= STDERR_FILENO; i++)
        if (n->out[i].head != NULL)
            at = aq_node_poll(n, fds, at, n->console[i].fd, POLLOUT, AQ_REF_CONSOLE, i);
    if (!n->stdin_end && n->child[0].state == AQ_LINK_OPEN && n->child[0].credit[0] > 0
        && aq_console_may_read(&n->console[STDIN_FILENO]))
        at = aq_node_poll(n, fds, at, n->console[STDIN_FILENO].fd, POLLIN, AQ_REF_STDIN, 0);
    return at;
}

static void aq_node_read_stdin(struct aq_node *n)
{
    struct aq_link *l = &n->child[0];
    char buf[8192];
    size_t cap = l->credit[0] < sizeof(buf) ? l->credit[0] : sizeof(buf);
    ssize_t got = aq_console_read(&n->console[STDIN_FILENO], buf, cap);

    if (got < 0)
        return;
    n->stdin_end = got == 0;
    l->credit[0] -= (size_t)got;
    aq_link_send(l, AQ_FRAME_STDIN, 0, buf, (size_t)got);
}

/* ---- the parent ---- */

static void aq_node_orphaned(struct aq_node *n)
{
    n->orphan = true;
    n->shutdown->logged = true;
    n->shutdown->stopped = true;
    aq_jobarea_raise_exit_code(n->sv->jobarea, AQ_AGENT_LOST);
    aq_shutdown_now(n->shutdown);
    for (uint32_t i = 0; i < n->children; i++) {
        if (n->child[i].pid > 0)
            kill(n->child[i].pid, SIGKILL);
        aq_link_close(&n->child[i]);
    }
    aq_link_close(&n->up);
}

static void aq_node_frames_up(struct aq_node *n)
{
    struct aq_frame f;
    int rc = 0;

    while (n->up.state != AQ_LINK_CLOSED && (rc = aq_frame_next(&n->up.rx, &f)) > 0)
        aq_node_take_up(n, &f);
    if (rc < 0)
        aq_node_orphaned(n);
}

static void aq_node_read_up(struct aq_node *n)
{
    bool connected = aq_link_receive(&n->up);

    aq_node_frames_up(n);
    if (connected || n->orphan)
        return;
    if (n->in_shutdown)
        n->up.eof_ns = aq_jobarea_now_ns();
    else
        aq_node_orphaned(n);
}

static void aq_node_check_up(struct aq_node *n, uint64_t now)
{
    uint64_t limit = n->plan.timeout_ms * AQ_AGENT_MS;

    if (n->orphan)
        return;
    if (!aq_link_flush(&n->up) && !n->in_shutdown)
        aq_node_orphaned(n);
    if (n->orphan || n->paused || limit == 0)
        return;
    if (now - n->up.last_seen_ns > limit && !n->in_shutdown)
        aq_node_orphaned(n);
    else if (now - n->up.last_sent_ns > limit / 4)
        aq_link_send(&n->up, AQ_FRAME_PING, 0, NULL, 0);
}

/* ---- a turn of the loop ---- */

static void aq_node_serve_one(struct aq_node *n, struct aq_ref ref)
{
    struct aq_link *l = ref.index == AQ_AGENT_NOBODY ? &n->up
                        : ref.kind <= AQ_REF_ERR     ? &n->child[ref.index]
                                                     : NULL;

    /* an event that was served before may have closed it */
    if (l != NULL && l->state == AQ_LINK_CLOSED)
        return;
    switch (ref.kind) {
    case AQ_REF_IN:
        if (l == &n->up)
            aq_node_read_up(n);
        else
            aq_child_read(n, l);
        break;
    case AQ_REF_ERR:
        aq_link_read_err(n, l);
        break;
    case AQ_REF_STREAM:
        if (n->stream[ref.index].fd >= 0)
            aq_stream_read(n, &n->stream[ref.index]);
        break;
    case AQ_REF_STDIN:
        aq_node_read_stdin(n);
        break;
    case AQ_REF_LOCAL:
        if (n->local_fd >= 0)
            aq_round_local(n);
        break;
    case AQ_REF_IDLE:
        aq_root_lose_idle(n, &n->lo->idle[ref.index]);
        break;
    default: /* output is possible: the step writes in each turn */
        break;
    }
}

static void aq_node_serve(void *arg, const struct pollfd *fds, int count)
{
    struct aq_node *n = arg;

    for (int i = 0; i < count; i++)
        if (fds[i].revents != 0)
            aq_node_serve_one(n, n->ref[i]);
}

static bool aq_node_children_done(const struct aq_node *n)
{
    for (uint32_t i = 0; i < n->children; i++)
        if (n->child[i].state < AQ_LINK_DONE)
            return false;
    return true;
}

static void aq_node_shutdown(struct aq_node *n, uint64_t now)
{
    bool all_closed = true;

    if (n->shutdown_ns == 0) {
        n->shutdown_ns = now;
        aq_node_tell_children(n, AQ_FRAME_SHUTDOWN, 0, NULL, 0);
    }
    for (uint32_t i = 0; i < n->children; i++) {
        struct aq_link *l = &n->child[i];

        if (now - n->shutdown_ns > AQ_NODE_SHUTDOWN_MS * AQ_AGENT_MS && l->pid > 0)
            kill(l->pid, SIGKILL);
        aq_link_flush(l);
        all_closed = all_closed && l->state == AQ_LINK_CLOSED && l->pid == 0;
    }
    n->finished = all_closed;
}

/* The user has ended the job: returns true if output that the terminal does not accept at once is
 * to be dropped. */
static bool aq_node_stops_writing(struct aq_node *n, uint64_t now)
{
    if (!n->shutdown->stopped)
        return false;
    if (n->stop_ns == 0)
        n->stop_ns = now;
    return now - n->stop_ns > AQ_NODE_WRITE_MS * AQ_AGENT_MS;
}

/* Checks whether everything below has ended and all output is written. Returns true if it soon will
 * be. */
static bool aq_node_look_for_end(struct aq_node *n, uint64_t now)
{
    bool enough;

    if (n->in_shutdown || n->orphan) {
        if (n->in_shutdown)
            aq_node_shutdown(n, now);
        return true;
    }
    if (n->alive > 0
        || (n->start != NULL && n->started < n->sv->jobarea->size && n->shutdown->start_ns == 0))
        return false;
    if (!n->is_root && n->drained_ns == 0)
        n->drained_ns = now;
    enough = aq_node_stops_writing(n, now);
    if (!n->is_root && !aq_stream_drained(n, now) && !enough)
        return true;
    if (!aq_node_children_done(n))
        return n->shutdown->stopped;
    aq_out_pump(n);
    if (!aq_out_is_empty(n) && !enough)
        return n->shutdown->stopped;
    if (n->is_root)
        n->in_shutdown = true;
    else if (!n->done_sent)
        aq_link_send(&n->up, AQ_FRAME_DONE, 0, NULL, 0);
    n->done_sent = true;
    return n->in_shutdown;
}

/* the user has insisted, and a child still does not end: closing the connections ends everything */
static void aq_node_give_up(struct aq_node *n, uint64_t now)
{
    /* relaxed: this thread is the one that moves it there */
    if (!n->is_root || !n->shutdown->stopped
        || atomic_load_explicit(&n->sv->jobarea->exit_state, memory_order_relaxed)
               < AQ_EXIT_KILLING)
        return;
    if (n->kill_ns == 0)
        n->kill_ns = now;
    if (now - n->kill_ns < AQ_NODE_GIVE_UP_MS * AQ_AGENT_MS)
        return;
    for (uint32_t i = 0; i < n->children; i++) {
        if (n->child[i].pid > 0)
            kill(n->child[i].pid, SIGKILL);
        aq_link_close(&n->child[i]);
    }
    n->finished = true;
}

/* Time during which this process was stopped does not count as silence of others. */
static void aq_node_look_absent(struct aq_node *n, uint64_t now)
{
    const uint64_t limit = n->plan.timeout_ms * AQ_AGENT_MS;
    const uint64_t gap = n->step_ns == 0 ? 0 : now - n->step_ns;

    n->step_ns = now;
    if (limit == 0 || gap <= limit / 2)
        return;
    n->absent_ns = gap;
    n->back_ns = now;
    n->up.last_seen_ns = now;
    for (uint32_t i = 0; i < n->children; i++)
        n->child[i].last_seen_ns = now;
}

bool aq_node_was_absent(const struct aq_node *n, uint64_t now)
{
    const uint64_t limit = n->plan.timeout_ms * AQ_AGENT_MS;

    /* a child that exited in the meantime is noticed at once, but ssh may need time to report it */
    return n->is_root && n->absent_ns > limit && now - n->back_ns < limit;
}

static int aq_node_step(void *arg, struct aq_shutdown *shutdown)
{
    struct aq_node *n = arg;
    uint64_t now = aq_jobarea_now_ns();
    bool soon = false, starting;

    n->shutdown = shutdown;
    aq_node_look_absent(n, now);
    if (!n->is_root)
        aq_node_frames_up(n); /* frames that arrived together with the setup */
    if (n->start != NULL)
        aq_host_start_some(n);
    n->alive = shutdown->alive;
    aq_node_send_state(n);
    aq_feed_write(n);
    soon = aq_stream_tidy(n, now);
    aq_out_pump(n);
    for (uint32_t i = 0; i < n->children; i++)
        soon = aq_child_check(n, &n->child[i], now) || soon;
    aq_node_give_up(n, now);
    soon = aq_node_look_for_end(n, now) || soon;
    if (!n->is_root)
        aq_node_check_up(n, now);
    if (n->orphan)
        return 0;
    aq_node_send_state(n);
    for (uint32_t i = 0; i < n->children; i++)
        aq_link_flush(&n->child[i]);
    if (!n->is_root)
        aq_link_flush(&n->up);
    starting = n->start != NULL && n->started < n->sv->jobarea->size && shutdown->start_ns == 0;
    if (starting || n->finished)
        return 0;
    if (soon)
        return AQ_NODE_SOON_MS;
    return n->plan.timeout_ms > 0 && n->plan.timeout_ms < 4000 ? (int)n->plan.timeout_ms / 4 : 1000;
}

static bool aq_node_busy(void *arg)
{
    struct aq_node *n = arg;

    return !n->finished && !n->orphan;
}

static void aq_node_reaped(void *arg, pid_t pid, int status)
{
    struct aq_node *n = arg;

    for (uint32_t i = 0; i < n->children; i++) {
        if (n->child[i].pid != pid)
            continue;
        n->child[i].pid = 0;
        n->child[i].status = status;
        return;
    }
}

static void aq_node_resume(struct aq_node *n)
{
    uint64_t now = aq_jobarea_now_ns();

    n->step_ns = now; /* the others were stopped too */
    for (uint32_t i = 0; i < n->children; i++)
        n->child[i].last_seen_ns = now;
    aq_node_tell_children(n, AQ_FRAME_RESUME, 0, NULL, 0);
}

static void aq_node_suspend(struct aq_node *n)
{
    aq_node_tell_children(n, AQ_FRAME_PAUSE, 0, NULL, 0);
    for (uint32_t i = 0; i < n->children; i++)
        aq_link_flush(&n->child[i]);
    kill(getpid(), SIGSTOP); /* shows the shell that the job has stopped */
    aq_node_resume(n);
}

static bool aq_node_signalled(void *arg, struct aq_shutdown *shutdown, int sig)
{
    struct aq_node *n = arg;

    n->shutdown = shutdown;
    if (!n->is_root)
        return false;
    if (sig == SIGTSTP) {
        aq_node_suspend(n);
        return true;
    }
    if (sig != SIGUSR1 && sig != SIGUSR2)
        return false;
    aq_node_tell_children(n, AQ_FRAME_SIGNAL, (uint8_t)sig, NULL, 0);
    return true;
}

static void aq_node_finish(void *arg)
{
    struct aq_node *n = arg;

    if (!n->is_root)
        aq_link_flush(&n->up);
}

bool aq_node_run_io(struct aq_node *n)
{
    n->io = (struct aq_supervise_io){
        .fill = aq_node_fill,
        .serve = aq_node_serve,
        .finish = aq_node_finish,
        .step = aq_node_step,
        .busy = aq_node_busy,
        .reaped = aq_node_reaped,
        .signalled = aq_node_signalled,
        .arg = n,
        .max = (int)(3 * (n->children + 1) + n->streams + 6 + (n->is_root ? n->lo->idles : 0)),
    };
    n->ref = calloc((size_t)n->io.max, sizeof(*n->ref));
    n->sv->io = &n->io;
    return n->ref != NULL;
}
