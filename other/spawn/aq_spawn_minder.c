/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_minder.c - the watching thread; see aq_spawn_minder.h.
 * Threads   the minder itself has all signals blocked; requests to it are one atomic word
 */
#include "other/spawn/aq_spawn_minder.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/aq_log.h"
#include "core/aq_rc.h"
#include "other/spawn/aq_ending.h"

#define AQ_MINDER_LOOK_MS   500  /* without pidfd */
#define AQ_MINDER_LAST_MS   500  /* beyond the exit timeout: for the killed to go */
#define AQ_MINDER_ENDING_MS 20   /* how often minders look once the job is ending */
#define AQ_MINDER_CALL_MS   3000 /* how long the launcher's library may take to say goodbye */

enum aq_minder_request { AQ_MINDER_NOTHING = 0, AQ_MINDER_FINI, AQ_MINDER_ABORT, AQ_MINDER_DONE };

static struct {
    struct aq_board *board;
    const struct aq_kvs_ops *ops;
    uint32_t slot;
    pid_t self;
    int event_fd;             /* the host's: written once the job ends, never read */
    int own_fd;               /* this rank's */
    _Atomic uint32_t request; /* a futex */
    atomic_int code;
    _Atomic uint32_t met; /* the ranks of other hosts have come to the exit too; a futex */
    bool running;
    /* the thread's own */
    pid_t *child;       /* [size] watched processes, 0 = gone or not mine to watch */
    struct pollfd *fds; /* event_fd, own_fd, then the watched */
    uint32_t *fd_slot;
    int fd_count;
    bool blind;  /* no pidfd */
    bool ending; /* ends the process itself: the client's threads have not come */
} aq_minder;

static bool aq_minder_leads(void)
{
    return aq_minder.slot == 0;
}

static bool aq_minder_dead(pid_t pid)
{
    return kill(pid, 0) != 0 && errno == ESRCH;
}

/* The first rank watches all, the others the first. */
static void aq_minder_watch(void)
{
    uint32_t watched = aq_minder_leads() ? aq_minder.board->size : 1;

    for (uint32_t i = 0; i < watched; i++) {
        /* relaxed: joined before the fence that came before this thread */
        pid_t pid = atomic_load_explicit(&aq_minder.board->rank[i].pid, memory_order_relaxed);
        int fd;

        aq_minder.child[i] = pid;
        if (i == aq_minder.slot)
            continue;
        fd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (fd < 0) {
            aq_minder.blind = true;
            continue;
        }
        aq_minder.fds[aq_minder.fd_count] = (struct pollfd){fd, POLLIN, 0};
        aq_minder.fd_slot[aq_minder.fd_count++] = i;
    }
}

/* calls gone() for each watched process that has ended */
static void aq_minder_look(void (*gone)(void *, uint32_t), void *arg)
{
    for (int i = 2; i < aq_minder.fd_count; i++) {
        if (aq_minder.fds[i].revents == 0 || aq_minder.fds[i].fd < 0)
            continue;
        close(aq_minder.fds[i].fd);
        aq_minder.fds[i].fd = -1; /* poll() passes over it */
        if (aq_minder.child[aq_minder.fd_slot[i]] > 0)
            gone(arg, aq_minder.fd_slot[i]);
    }
    if (!aq_minder.blind)
        return;
    for (uint32_t i = 0; i < aq_minder.board->size; i++)
        if (aq_minder.child[i] > 0 && i != aq_minder.slot && aq_minder_dead(aq_minder.child[i]))
            gone(arg, i);
}

static void aq_minder_gone(void *arg, uint32_t slot)
{
    aq_ending_gone(arg, slot, -1);
}

/* the host's first rank is gone without having waited for us: end this process */
static void aq_minder_orphaned(void *arg, uint32_t slot)
{
    struct aq_ending *e = arg;
    uint32_t nobody = 0;

    /* relaxed: only one of us shall print the message */
    if (!atomic_compare_exchange_strong_explicit(&aq_minder.board->lost, &nobody,
                                                 aq_minder.board->rank[slot].jobrank + 1,
                                                 memory_order_relaxed, memory_order_relaxed))
        e->told = true;
    aq_ending_gone(e, slot, -1);
    e->child[aq_minder.slot] = aq_minder.self; /* from now on I ask and kill myself */
}

static int aq_minder_thread(void *(*fn)(void *));

static void *aq_minder_meet_main(void *arg)
{
    (void)arg;
    if (aq_minder.ops->fence() == AQ_OK) {
        /* release: pairs with the acquire in aq_minder_meet() */
        atomic_store_explicit(&aq_minder.met, 1, memory_order_release);
        aq_board_wake_word(&aq_minder.met);
    }
    return NULL;
}

/* Meet the ranks of other hosts at the exit. False if they do not come within the exit timeout; the
 * fence goes on waiting in a thread of its own, which ends with the process. */
static bool aq_minder_meet(void)
{
    uint64_t end = aq_board_now_ns() + aq_minder.board->exit_timeout_ms * 1000000ull;

    if (aq_minder.board->job_size == aq_minder.board->size)
        return true;
    if (aq_minder_thread(aq_minder_meet_main) != 0)
        return false;
    /* acquire: pairs with the release in aq_minder_meet_main() */
    while (atomic_load_explicit(&aq_minder.met, memory_order_acquire) == 0) {
        if (aq_board_now_ns() >= end)
            return false;
        aq_board_wait_word(&aq_minder.met, 0, AQ_MINDER_ENDING_MS);
    }
    return true;
}

static void aq_minder_serve(void)
{
    /* acquire: the code was written before the request */
    uint32_t request = atomic_load_explicit(&aq_minder.request, memory_order_acquire);

    if (request != AQ_MINDER_FINI && request != AQ_MINDER_ABORT)
        return;
    if (request == AQ_MINDER_FINI && aq_minder_meet())
        aq_minder.ops->fini();
    else
        /* relaxed: see above */
        aq_minder.ops->abort(atomic_load_explicit(&aq_minder.code, memory_order_relaxed),
                             "the job was aborted");
    /* release: the library's work is done before the process goes */
    atomic_store_explicit(&aq_minder.request, AQ_MINDER_DONE, memory_order_release);
    aq_board_wake_word(&aq_minder.request);
}

static bool aq_minder_time_is_up(void)
{
    /* acquire: with the state comes the code */
    return atomic_load_explicit(&aq_minder.board->exit_state, memory_order_acquire) >=
           AQ_EXIT_KILLING;
}

static uint32_t aq_minder_state(uint32_t slot)
{
    /* acquire: pairs with the release of who publishes a state */
    return atomic_load_explicit(&aq_minder.board->rank[slot].state, memory_order_acquire);
}

static bool aq_minder_all_ended(void)
{
    for (uint32_t i = 0; i < aq_minder.board->size; i++)
        if (aq_minder_state(i) < AQ_RANK_ENDED && aq_minder_state(i) != AQ_RANK_LEFT)
            return false;
    return true;
}

/* Time is up and the client's threads have not come: end the process for them, as well as can be. A
 * launcher that saw us die of SIGKILL would report that instead of the job's exit code; one that saw
 * a single rank fail might kill the others, so ranks go together if all of them can. */
static void aq_minder_end_self(bool now)
{
    int code;

    if (!aq_minder.ending) {
        if (aq_minder_state(aq_minder.slot) >= AQ_RANK_LEFT)
            return; /* a thread of the client is on its way out */
        aq_minder.ending = true;
        /* the code does not count at this stage */
        aq_board_publish_exit(aq_minder.board, aq_minder.slot, AQ_RANK_ENDED, 0);
    }
    if (!now && !aq_minder_all_ended())
        return;
    /* relaxed: settled long ago */
    code = atomic_load_explicit(&aq_minder.board->exit_code, memory_order_relaxed);
    if (aq_minder.board->job_size == aq_minder.board->size)
        aq_minder.ops->fini();
    else
        aq_minder.ops->abort(code, "a rank did not end in time");
    _exit(code);
}

/* milliseconds to sleep, -1 for ever */
static int aq_minder_step(struct aq_ending *e)
{
    bool ending = aq_board_is_ending(aq_minder.board);
    int wait = -1;

    if (aq_minder_leads() || e->child[0] == 0) {
        /* a later step kills who has not ended himself; I come after that */
        if (aq_minder_time_is_up())
            e->child[aq_minder.slot] = 0;
        wait = aq_ending_step(e);
    }
    if (aq_minder_time_is_up())
        aq_minder_end_self(e->killed);
    /* nobody reads the host's eventfd, so that no minder misses it: look at the board from now on */
    if (ending)
        aq_minder.fds[0].fd = -1;
    if (ending && (wait < 0 || wait > AQ_MINDER_ENDING_MS))
        wait = AQ_MINDER_ENDING_MS;
    if (aq_minder.blind && (wait < 0 || wait > AQ_MINDER_LOOK_MS))
        wait = AQ_MINDER_LOOK_MS;
    return wait;
}

static void *aq_minder_main(void *arg)
{
    struct aq_ending e;
    uint64_t count;

    (void)arg;
    aq_minder_watch();
    aq_ending_init(&e, aq_minder.board, aq_minder.child);
    e.gentle = true;
    for (;;) {
        if (poll(aq_minder.fds, (nfds_t)aq_minder.fd_count, aq_minder_step(&e)) < 0)
            continue;
        if (aq_minder.fds[1].revents != 0 && read(aq_minder.fds[1].fd, &count, sizeof(count)) < 0)
            aq_minder.fds[1].fd = -1; /* closed by the client */
        aq_minder_look(aq_minder_leads() ? aq_minder_gone : aq_minder_orphaned, &e);
        aq_minder_serve();
    }
    return NULL;
}

static int aq_minder_thread(void *(*fn)(void *))
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, old;
    int rc;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* inherited: signals are for the client's threads */
    rc = pthread_create(&thread, &attr, fn, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return rc;
}

int aq_minder_start(struct aq_board *board, uint32_t slot, int event_fd,
                    const struct aq_kvs_ops *ops)
{
    size_t watched = 2 + (slot == 0 ? board->size : 1);
    int rc;

    aq_minder.board = board;
    aq_minder.slot = slot;
    aq_minder.ops = ops;
    aq_minder.self = getpid();
    aq_minder.event_fd = event_fd;
    aq_minder.own_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    aq_minder.child = calloc(board->size, sizeof(*aq_minder.child));
    aq_minder.fds = calloc(watched, sizeof(*aq_minder.fds));
    aq_minder.fd_slot = calloc(watched, sizeof(*aq_minder.fd_slot));
    if (aq_minder.own_fd < 0 || aq_minder.child == NULL || aq_minder.fds == NULL ||
        aq_minder.fd_slot == NULL)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory or descriptors to watch %u ranks",
                       board->size);
    aq_minder.fds[0] = (struct pollfd){event_fd, POLLIN, 0};
    aq_minder.fds[1] = (struct pollfd){aq_minder.own_fd, POLLIN, 0};
    aq_minder.fd_count = 2;
    rc = aq_minder_thread(aq_minder_main);
    if (rc != 0)
        return aq_fail(AQ_ERR_RESOURCE, "spawn: cannot start a thread to watch the job: %s",
                       strerror(rc));
    aq_minder.running = true;
    return AQ_OK;
}

void aq_minder_notify(void)
{
    uint64_t one = 1;

    if (aq_minder.running && write(aq_minder.event_fd, &one, sizeof(one)) < 0)
        return; /* full or closed by the client: our end is noticed too */
}

/* all ranks of the host have come to the exit, left or died */
static bool aq_minder_all_came(void)
{
    for (uint32_t i = 0; i < aq_minder.board->size; i++) {
        struct aq_board_rank *r = &aq_minder.board->rank[i];

        /* acquire: pairs with the release in aq_board_publish_exit() */
        if (atomic_load_explicit(&r->state, memory_order_acquire) < AQ_RANK_LEFT &&
            !aq_minder_dead(atomic_load_explicit(&r->pid, memory_order_relaxed)))
            return false;
    }
    return true;
}

/* The launcher may take the first process that ends badly as a reason to kill the others, so ranks
 * go together; the first rank's minder asks and kills in the meantime. */
static void aq_minder_wait_for_others(void)
{
    uint64_t end =
        aq_board_now_ns() + (aq_minder.board->exit_timeout_ms + AQ_MINDER_LAST_MS) * 1000000ull;

    while (!aq_minder_all_came() && aq_board_now_ns() < end) {
        /* acquire: pairs with the release in aq_board_publish_exit() */
        uint32_t seen = atomic_load_explicit(&aq_minder.board->exit_seen, memory_order_acquire);

        if (!aq_minder_all_came())
            aq_board_wait_word(&aq_minder.board->exit_seen, seen, 20);
    }
}

int aq_minder_leave(int code, bool orderly)
{
    uint64_t one = 1, end = aq_board_now_ns() + AQ_MINDER_CALL_MS * 1000000ull;
    uint32_t want = orderly ? AQ_MINDER_FINI : AQ_MINDER_ABORT, now;

    if (!aq_minder.running)
        return code;
    if (orderly) {
        aq_minder_wait_for_others();
        end = aq_board_now_ns() + AQ_MINDER_CALL_MS * 1000000ull;
        if (aq_minder.board->job_size > aq_minder.board->size)
            end += aq_minder.board->exit_timeout_ms * 1000000ull;
        /* others may have published larger codes, or the job's was settled: everybody returns the same */
        code = atomic_load_explicit(&aq_minder.board->exit_code, memory_order_relaxed);
    }
    /* relaxed, release: pairs with the acquire in aq_minder_serve() */
    atomic_store_explicit(&aq_minder.code, code, memory_order_relaxed);
    atomic_store_explicit(&aq_minder.request, want, memory_order_release);
    if (write(aq_minder.own_fd, &one, sizeof(one)) < 0)
        return code; /* closed by the client: the launcher sees us end */
    /* acquire: the library's work is done */
    while ((now = atomic_load_explicit(&aq_minder.request, memory_order_acquire)) !=
               AQ_MINDER_DONE &&
           aq_board_now_ns() < end)
        aq_board_wait_word(&aq_minder.request, now, 50);
    return code;
}
