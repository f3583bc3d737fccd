/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_monitor.c - the monitor thread; see aq_spawn_monitor.h.
 * Threads   the monitor has all signals blocked; requests to it are one atomic word
 * See       aq_spawn_shutdown.c for how ranks leave
 */
#include "other/spawn/aq_spawn_monitor.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "other/spawn/aq_shutdown.h"
#include "other/spawn/aq_spawn_link.h"
#include "other/spawn/aq_spawn_monitor_internal.h"

struct aq_monitor aq_monitor AQ_JOB_STATE;

static bool aq_monitor_leads(void)
{
    return aq_monitor.slot == 0;
}

/* The first rank watches all ranks of the host, the others watch the first. */
static void aq_monitor_track(void)
{
    uint32_t tracked = aq_monitor_leads() ? aq_monitor.jobarea->size : 1;

    for (uint32_t i = 0; i < tracked; i++) {
        /* relaxed: the rank joined before the fence that precedes this thread */
        pid_t pid = atomic_load_explicit(&aq_monitor.jobarea->rank[i].pid, memory_order_relaxed);
        int fd;

        aq_monitor.child[i] = pid;
        if (i == aq_monitor.slot)
            continue;
        fd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (fd < 0) {
            aq_monitor.blind = true;
            continue;
        }
        aq_monitor.fds[aq_monitor.fd_count] = (struct pollfd){ fd, POLLIN, 0 };
        aq_monitor.fd_slot[aq_monitor.fd_count++] = i;
    }
}

/* calls disconnected() for each watched process that has ended */
static void aq_monitor_check(void (*disconnected)(void *, uint32_t), void *arg)
{
    for (int i = AQ_MONITOR_FIXED_FDS; i < aq_monitor.fd_count; i++) {
        if (aq_monitor.fds[i].revents == 0 || aq_monitor.fds[i].fd < 0)
            continue;
        close(aq_monitor.fds[i].fd);
        aq_monitor.fds[i].fd = -1; /* poll() skips it */
        if (aq_monitor.child[aq_monitor.fd_slot[i]] > 0)
            disconnected(arg, aq_monitor.fd_slot[i]);
    }
    if (!aq_monitor.blind)
        return;
    for (uint32_t i = 0; i < aq_monitor.jobarea->size; i++)
        if (aq_monitor.child[i] > 0 && i != aq_monitor.slot && aq_monitor_dead(aq_monitor.child[i]))
            disconnected(arg, i);
}

static void aq_monitor_exited(void *arg, uint32_t slot)
{
    aq_shutdown_exited(arg, slot, -1);
}

/* the host's first rank has ended without waiting for this one: end this process */
static void aq_monitor_orphaned(void *arg, uint32_t slot)
{
    struct aq_shutdown *shutdown = arg;
    uint32_t nobody = 0;

    /* relaxed: only one rank prints the message */
    if (!atomic_compare_exchange_strong_explicit(&aq_monitor.jobarea->lost, &nobody,
                                                 aq_monitor.jobarea->rank[slot].jobrank + 1,
                                                 memory_order_relaxed, memory_order_relaxed))
        shutdown->logged = true;
    aq_shutdown_exited(shutdown, slot, -1);
    /* from now on this thread asks and kills its own rank */
    shutdown->child[aq_monitor.slot] = aq_monitor.self;
}

static int aq_monitor_thread(void *(*fn)(void *));

/* In a thread of its own, which ends with the process: a rank that has died never enters the
 * fence. */
static void *aq_monitor_fence_main(void *arg)
{
    (void)arg;
    if (aq_monitor.ops->fence(false) == AQ_OK)
        /* release: pairs with the acquire in aq_monitor_fence() */
        atomic_store_explicit(&aq_monitor.fenced, 1, memory_order_release);
    return NULL;
}

/* In a thread of its own too: the library waits for an answer of the launcher, which may have
 * ended, or its abort calls exit(). The monitor meanwhile continues, exchanges notes with other
 * hosts and notices when the time is up. */
static void *aq_monitor_disconnect_main(void *arg)
{
    /* acquire: the code was written before the request */
    uint32_t request = atomic_load_explicit(&aq_monitor.request, memory_order_acquire);

    (void)arg;
    if (request == AQ_MONITOR_FINI && !aq_link_has_silent())
        aq_monitor.ops->fini();
    else
        /* relaxed: the acquire above precedes it */
        aq_monitor.ops->abort(atomic_load_explicit(&aq_monitor.code, memory_order_relaxed),
                              "the job was aborted");
    /* release, both: the library's work is done before the process ends */
    atomic_store_explicit(&aq_monitor.disconnected, 1, memory_order_release);
    atomic_store_explicit(&aq_monitor.request, AQ_MONITOR_DONE, memory_order_release);
    aq_jobarea_wake_word(&aq_monitor.request);
    return NULL;
}

static void aq_monitor_serve(void)
{
    /* acquire: the code was written before the request */
    uint32_t request = atomic_load_explicit(&aq_monitor.request, memory_order_acquire),
             old = AQ_MONITOR_FENCE;

    /* relaxed: the next request may have arrived already */
    if (request == AQ_MONITOR_FENCE
        && atomic_compare_exchange_strong_explicit(&aq_monitor.request, &old, AQ_MONITOR_NONE,
                                                   memory_order_relaxed, memory_order_relaxed))
        aq_monitor_thread(aq_monitor_fence_main);
    if (request != AQ_MONITOR_FINI && request != AQ_MONITOR_ABORT)
        return;
    /* the process that owns the link stays until the other hosts know what it knows */
    if (request == AQ_MONITOR_FINI && aq_link_is_done() && !aq_link_is_settled() && aq_link_own())
        return;
    if (aq_monitor.serving) {
        /* acquire: the library's work is done; the handler of a signal during the first request
         * asks again */
        if (atomic_load_explicit(&aq_monitor.disconnected, memory_order_acquire) != 0)
            /* release: as in aq_monitor_disconnect_main() */
            atomic_store_explicit(&aq_monitor.request, AQ_MONITOR_DONE, memory_order_release);
        return;
    }
    aq_monitor.serving = true;
    aq_monitor_thread(
        aq_monitor_disconnect_main); /* without a thread the process ends without disconnecting */
}

static bool aq_monitor_timed_out(void)
{
    /* acquire: the code is visible with the state */
    return atomic_load_explicit(&aq_monitor.jobarea->exit_state, memory_order_acquire)
           >= AQ_EXIT_KILLING;
}

static uint32_t aq_monitor_state(uint32_t slot)
{
    /* acquire: pairs with the release of the rank that publishes its state */
    return atomic_load_explicit(&aq_monitor.jobarea->rank[slot].state, memory_order_acquire);
}

static bool aq_monitor_has_ended(uint32_t slot)
{
    uint32_t state = aq_monitor_state(slot);

    return state >= AQ_RANK_ENDED || state == AQ_RANK_LEFT || state == AQ_RANK_DISCONNECTED;
}

static bool aq_monitor_all_ended(void)
{
    for (uint32_t i = 0; i < aq_monitor.jobarea->size; i++)
        if (!aq_monitor_has_ended(i))
            return false;
    return true;
}

/* the same; ranks that died without publishing a state count too */
static bool aq_monitor_none_left(const struct aq_shutdown *shutdown)
{
    for (uint32_t i = 0; i < aq_monitor.jobarea->size; i++) {
        /* relaxed: the rank joined long ago */
        pid_t pid = atomic_load_explicit(&aq_monitor.jobarea->rank[i].pid, memory_order_relaxed);

        if (aq_monitor_has_ended(i))
            continue;
        if (i == aq_monitor.slot
            || (aq_monitor_leads() ? shutdown->child[i] != 0 : !aq_monitor_dead(pid)))
            return false;
    }
    return true;
}

/* exchanges notes with other hosts, if this rank owns the link; returns ms until the next time */
static int aq_monitor_speak(struct aq_shutdown *shutdown, int wait)
{
    int next;

    if (!aq_link_own())
        return wait;
    aq_monitor.fds[2].fd = aq_link_fd();
    next = aq_link_step(shutdown, aq_monitor_none_left(shutdown));
    return wait < 0 || next < wait ? next : wait;
}

/* Returns true if this thread must end its rank, because the rank does not react to being asked, or
 * the time is up. */
static bool aq_monitor_must_end(void)
{
    /* acquire: the code is visible with the state */
    uint32_t state = atomic_load_explicit(&aq_monitor.jobarea->exit_state, memory_order_acquire);

    if (state == AQ_EXIT_ASKED && !aq_monitor.deaf && !aq_monitor.listens) {
        aq_monitor.deaf = !aq_shutdown_catches(aq_monitor.self, SIGQUIT);
        aq_monitor.listens = !aq_monitor.deaf;
    }
    return state >= AQ_EXIT_KILLING || (state == AQ_EXIT_ASKED && aq_monitor.deaf);
}

static void *aq_monitor_fini_main(void *arg)
{
    (void)arg;
    /* a host that became silent: its launcher may wait for it unless it is told to end the job */
    if (aq_monitor_alone() || (aq_link_is_whole() && !aq_link_has_silent()))
        aq_monitor.ops->fini();
    else
        /* relaxed: settled long ago */
        aq_monitor.ops->abort(
            atomic_load_explicit(&aq_monitor.jobarea->exit_code, memory_order_relaxed),
            "ranks did not end in time");
    /* release: the library's work is done before the process goes */
    atomic_store_explicit(&aq_monitor.disconnected, 1, memory_order_release);
    aq_jobarea_wake_word(&aq_monitor.disconnected);
    return NULL;
}

/* Waits a bounded time for the library, which waits for the launcher's answer; the launcher may
 * have ended, or be killing this process. */
static _Noreturn void aq_monitor_fini_and_exit(int code)
{
    uint64_t end = aq_jobarea_now_ns() + AQ_MONITOR_CALL_MS * 1000000ull;

    if (aq_monitor_thread(aq_monitor_fini_main) == 0)
        /* acquire: as above */
        while (atomic_load_explicit(&aq_monitor.disconnected, memory_order_acquire) == 0
               && aq_jobarea_now_ns() < end)
            aq_jobarea_wait_word(&aq_monitor.disconnected, 0, AQ_MONITOR_SHUTDOWN_MS);
    _exit(code);
}

/* returns true if a living rank of this host flushes its output */
static bool aq_monitor_any_flushes(void)
{
    for (uint32_t i = 0; i < aq_monitor.jobarea->size; i++)
        if (aq_monitor_state(i) == AQ_RANK_FLUSHING
            /* relaxed: the rank joined long ago */
            && !aq_monitor_dead(
                atomic_load_explicit(&aq_monitor.jobarea->rank[i].pid, memory_order_relaxed)))
            return true;
    return false;
}

/* A client thread is shutting down. Each step of that is bounded, except the flush of output, which
 * takes as long as its reader, and ranks may wait for each other's flush. The thread may still
 * hang, on a lock that a dead thread held: only the monitor ends the process of the host's first
 * rank then. */
static void aq_monitor_limit(uint64_t now)
{
    if (!aq_monitor_timed_out())
        return;
    if (aq_monitor.limit_ns == 0 || aq_monitor_any_flushes())
        aq_monitor.limit_ns = now
                              + (2 * (uint64_t)aq_jobarea_exit_ms(aq_monitor.jobarea)
                                 + 4 * AQ_MONITOR_LAST_MS + AQ_MONITOR_CALL_MS)
                                    * 1000000ull;
    if (now >= aq_monitor.limit_ns)
        /* relaxed: settled long ago */
        _exit(atomic_load_explicit(&aq_monitor.jobarea->exit_code, memory_order_relaxed));
}

/* Ends the process in place of the client's threads. A launcher that saw this process die of
 * SIGKILL would report that instead of the job's exit code; a launcher that saw a single rank fail
 * might kill the others. Ranks therefore end together if all of them can. */
static void aq_monitor_end_self(const struct aq_shutdown *shutdown)
{
    uint64_t now = aq_jobarea_now_ns();
    int code;

    if (!aq_monitor.exiting) {
        uint32_t state = aq_monitor_state(aq_monitor.slot);

        /* a client thread is shutting down; it may hang there on a lock that it held when a signal
         * interrupted it */
        if (state >= AQ_RANK_LEFT && !(state == AQ_RANK_EXITING && aq_monitor_timed_out())) {
            aq_monitor_limit(now);
            return;
        }
        aq_monitor.exiting = true;
        aq_monitor.latest =
            now + (aq_jobarea_exit_ms(aq_monitor.jobarea) + 2 * AQ_MONITOR_LAST_MS) * 1000000ull;
        /* the code does not count at this stage */
        aq_jobarea_publish_exit(aq_monitor.jobarea, aq_monitor.slot, AQ_RANK_ENDED, 0);
    }
    if (!shutdown->killed && !aq_monitor_all_ended() && now < aq_monitor.latest)
        return;
    /* the same for other hosts; the owner of the link has one more note to send */
    if (aq_link_is_whole() && now < aq_monitor.latest
        && (!aq_link_is_done() || (aq_link_own() && !aq_link_is_settled())))
        return;
    /* relaxed: settled long ago */
    code = atomic_load_explicit(&aq_monitor.jobarea->exit_code, memory_order_relaxed);
    aq_monitor_fini_and_exit(code);
}

void aq_monitor_launcher_lost(void)
{
    uint64_t one = 1;

    /* relaxed: the flag needs no other data */
    atomic_store_explicit(&aq_monitor.orphaned, true, memory_order_relaxed);
    if (aq_monitor.running && write(aq_monitor.own_fd, &one, sizeof(one)) < 0)
        return; /* closed by the client */
}

bool aq_monitor_is_orphan(void)
{
    /* relaxed: a flag on its own */
    return atomic_load_explicit(&aq_monitor.orphaned, memory_order_relaxed);
}

void aq_monitor_forget_launcher(void)
{
    /* release: pairs with the acquire in aq_monitor_step(), which comes before the next poll */
    atomic_store_explicit(&aq_monitor.forgotten, true, memory_order_release);
}

/* No launcher, other host or supervisor would end this job or take its output: the job ends
 * itself. */
static void aq_monitor_check_launcher(struct aq_shutdown *shutdown)
{
    if (aq_monitor.fds[3].revents != 0) {
        aq_monitor.fds[3].fd = -1;
        aq_monitor.fds[3].revents = 0;
        atomic_store_explicit(&aq_monitor.orphaned, true, memory_order_relaxed);
    }
    if (shutdown->start_ns != 0 || !atomic_load_explicit(&aq_monitor.orphaned, memory_order_relaxed)
        || aq_jobarea_in_shutdown(aq_monitor.jobarea))
        return;
    if (!shutdown->logged)
        aq_shutdown_say("FATAL ERROR",
                        "the launcher's process on this host is gone; ending the job");
    shutdown->logged = true;
    aq_shutdown_fail(shutdown, 1);
}

/* A rank that disconnects from the launcher's library is not killed while it lives: a launcher
 * would take that for the job's result, and on a busy machine the disconnect takes its time.
 * aq_monitor_limit() bounds it. */
static void aq_monitor_keepalive(void)
{
    /* relaxed: the flag needs no other data */
    if (atomic_load_explicit(&aq_monitor.in_shutdown, memory_order_relaxed))
        aq_shutdown_defer_kill(&aq_monitor.jobarea->rank[aq_monitor.slot], AQ_MONITOR_DEFER_MS);
}

/* returns milliseconds to sleep, -1 for no limit */
static int aq_monitor_step(struct aq_shutdown *shutdown)
{
    bool exiting;
    int wait = -1;

    /* before the test of which rank is to be killed, which may be this one */
    aq_monitor_keepalive();
    /* the descriptor's number may belong to another file by now */
    if (atomic_load_explicit(&aq_monitor.forgotten, memory_order_acquire)) {
        aq_monitor.fds[3].fd = -1;
        aq_monitor.fds[3].revents = 0;
    }
    if (aq_monitor_leads() || shutdown->child[0] == 0) {
        aq_monitor_check_launcher(shutdown);
        /* a later step kills ranks that have not ended themselves; this rank ends after that */
        if (aq_monitor_timed_out())
            shutdown->child[aq_monitor.slot] = 0;
        wait = aq_shutdown_step(shutdown);
        wait = aq_monitor_speak(shutdown, wait);
    }
    if (aq_monitor_must_end())
        aq_monitor_end_self(shutdown);
    exiting = aq_jobarea_in_shutdown(aq_monitor.jobarea);
    /* the notice of the shutdown may have arrived from another host */
    if (exiting && !aq_monitor.alarmed)
        aq_monitor_notify();
    aq_monitor.alarmed = exiting;
    /* the host's eventfd is never read, so that no monitor misses it: from now on the job area is
     * polled */
    if (exiting)
        aq_monitor.fds[0].fd = -1;
    if (exiting && (wait < 0 || wait > AQ_MONITOR_SHUTDOWN_MS))
        wait = AQ_MONITOR_SHUTDOWN_MS;
    if (aq_monitor.blind && (wait < 0 || wait > AQ_MONITOR_POLL_MS))
        wait = AQ_MONITOR_POLL_MS;
    return wait;
}

static void *aq_monitor_main(void *arg)
{
    struct aq_shutdown shutdown;
    uint64_t count;

    (void)arg;
    aq_monitor_track();
    aq_shutdown_init(&shutdown, aq_monitor.jobarea, aq_monitor.child);
    shutdown.gentle = true;
    /* relaxed: aq_monitor_stop() wakes the thread after it has set the flag. A shutdown for another
     * reason in the meantime is handled */
    while (!atomic_load_explicit(&aq_monitor.stopping, memory_order_relaxed)
           || aq_jobarea_in_shutdown(aq_monitor.jobarea)) {
        if (poll(aq_monitor.fds, (nfds_t)aq_monitor.fd_count, aq_monitor_step(&shutdown)) < 0)
            continue;
        if (aq_monitor.fds[1].revents != 0 && read(aq_monitor.fds[1].fd, &count, sizeof(count)) < 0)
            aq_monitor.fds[1].fd = -1; /* closed by the client */
        aq_monitor_check(aq_monitor_leads() ? aq_monitor_exited : aq_monitor_orphaned, &shutdown);
        aq_monitor_serve();
    }
    return NULL;
}

static int aq_monitor_make_thread(pthread_t *thread_out, void *(*fn)(void *))
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* inherited: signals are for the client's threads */
    rc = pthread_create(thread_out, NULL, fn, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

/* starts a detached thread */
static int aq_monitor_thread(void *(*fn)(void *))
{
    pthread_t thread;
    const int rc = aq_monitor_make_thread(&thread, fn);

    if (rc == 0)
        pthread_detach(thread);
    return rc;
}

int aq_monitor_start(struct aq_jobarea *jobarea, uint32_t slot, int event_fd,
                     const struct aq_kvs_ops *ops)
{
    size_t tracked = AQ_MONITOR_FIXED_FDS + (slot == 0 ? jobarea->size : 1);
    int rc;

    aq_monitor.jobarea = jobarea;
    aq_monitor.slot = slot;
    aq_monitor.ops = ops;
    aq_monitor.self = getpid();
    aq_monitor.event_fd = event_fd;
    aq_monitor.own_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    aq_monitor.child = calloc(jobarea->size, sizeof(*aq_monitor.child));
    aq_monitor.fds = calloc(tracked, sizeof(*aq_monitor.fds));
    aq_monitor.fd_slot = calloc(tracked, sizeof(*aq_monitor.fd_slot));
    if (aq_monitor.own_fd < 0 || aq_monitor.child == NULL || aq_monitor.fds == NULL
        || aq_monitor.fd_slot == NULL)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory or descriptors to watch %u ranks",
                       jobarea->size);
    aq_monitor.fds[0] = (struct pollfd){ event_fd, POLLIN, 0 };
    aq_monitor.fds[1] = (struct pollfd){ aq_monitor.own_fd, POLLIN, 0 };
    aq_monitor.fds[2] = (struct pollfd){ -1, POLLIN, 0 };
    aq_monitor.fds[3] = (struct pollfd){ ops->life_fd != NULL ? ops->life_fd() : -1, POLLRDHUP, 0 };
    aq_monitor.fd_count = AQ_MONITOR_FIXED_FDS;
    /* before the thread starts, which may have something to report at once */
    aq_monitor.running = true;
    rc = aq_monitor_make_thread(&aq_monitor.thread, aq_monitor_main);
    if (rc == 0)
        return AQ_OK;
    aq_monitor.running = false;
    return aq_fail(AQ_ERR_RESOURCE, "spawn: cannot start a thread to watch the job: %s",
                   strerror(rc));
}

void aq_monitor_stop(void)
{
    const uint64_t one = 1;

    if (!aq_monitor.running)
        return;
    /* relaxed: the write below follows it, and wakes the thread */
    atomic_store_explicit(&aq_monitor.stopping, true, memory_order_relaxed);
    if (write(aq_monitor.own_fd, &one, sizeof(one)) < 0)
        aq_fatal("the descriptor %d, of the thread that watches the job, was closed by the client",
                 aq_monitor.own_fd);
    pthread_join(aq_monitor.thread, NULL);
    aq_monitor.running = false;
    /* release: as with every state of a rank. Other monitors may still run, and this process may
     * end at any time */
    atomic_store_explicit(&aq_monitor.jobarea->rank[aq_monitor.slot].state, AQ_RANK_DISCONNECTED,
                          memory_order_release);
    for (int i = AQ_MONITOR_FIXED_FDS; i < aq_monitor.fd_count; i++)
        if (aq_monitor.fds[i].fd >= 0)
            close(aq_monitor.fds[i].fd);
    close(aq_monitor.own_fd);
    close(aq_monitor.event_fd);
    free(aq_monitor.child);
    free(aq_monitor.fds);
    free(aq_monitor.fd_slot);
}

void aq_monitor_notify(void)
{
    uint64_t one = 1;

    if (aq_monitor.running && write(aq_monitor.event_fd, &one, sizeof(one)) < 0)
        return; /* full, or closed by the client: the end of this process is noticed too */
}
