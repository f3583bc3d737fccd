/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_minder.c - the watching thread; see aq_spawn_minder.h.
 * Threads   the minder itself has all signals blocked; requests to it are one atomic word
 * See       aq_spawn_leave.c for how ranks leave
 */
#include "other/spawn/aq_spawn_minder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "other/spawn/aq_ending.h"
#include "other/spawn/aq_spawn_link.h"
#include "other/spawn/aq_spawn_minder_internal.h"

struct aq_minder aq_minder;

static bool aq_minder_leads(void)
{
    return aq_minder.slot == 0;
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
    for (int i = AQ_MINDER_FIXED_FDS; i < aq_minder.fd_count; i++) {
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

/* In a thread of its own, which ends with the process: who is gone never comes to the fence. */
static void *aq_minder_meet_main(void *arg)
{
    (void)arg;
    if (aq_minder.ops->fence(false) == AQ_OK)
        /* release: pairs with the acquire in aq_minder_meet() */
        atomic_store_explicit(&aq_minder.met, 1, memory_order_release);
    return NULL;
}

/* In a thread of its own, too: the library waits for an answer of the launcher's, which may be gone, or its
 * abort calls exit(). The minder goes on meanwhile, speaks to other hosts and sees when the time is up. */
static void *aq_minder_part_main(void *arg)
{
    /* acquire: the code was written before the request */
    uint32_t request = atomic_load_explicit(&aq_minder.request, memory_order_acquire);

    (void)arg;
    if (request == AQ_MINDER_FINI && !aq_link_has_silent())
        aq_minder.ops->fini();
    else
        /* relaxed: see above */
        aq_minder.ops->abort(atomic_load_explicit(&aq_minder.code, memory_order_relaxed),
                             "the job was aborted");
    /* release, both: the library's work is done before the process goes */
    atomic_store_explicit(&aq_minder.gone, 1, memory_order_release);
    atomic_store_explicit(&aq_minder.request, AQ_MINDER_DONE, memory_order_release);
    aq_board_wake_word(&aq_minder.request);
    return NULL;
}

static void aq_minder_serve(void)
{
    /* acquire: the code was written before the request */
    uint32_t request = atomic_load_explicit(&aq_minder.request, memory_order_acquire), old = AQ_MINDER_MEET;

    /* relaxed: the next request may be here already */
    if (request == AQ_MINDER_MEET &&
        atomic_compare_exchange_strong_explicit(&aq_minder.request, &old, AQ_MINDER_NOTHING,
                                                memory_order_relaxed, memory_order_relaxed))
        aq_minder_thread(aq_minder_meet_main);
    if (request != AQ_MINDER_FINI && request != AQ_MINDER_ABORT)
        return;
    /* who speaks for this host stays until the others know what it knows */
    if (request == AQ_MINDER_FINI && aq_link_is_done() && !aq_link_is_settled() && aq_link_own())
        return;
    if (aq_minder.parting) {
        /* acquire: the library's work is done; a signal's handler on top of the first request asks again */
        if (atomic_load_explicit(&aq_minder.gone, memory_order_acquire) != 0)
            /* release: as in aq_minder_part_main() */
            atomic_store_explicit(&aq_minder.request, AQ_MINDER_DONE, memory_order_release);
        return;
    }
    aq_minder.parting = true;
    aq_minder_thread(aq_minder_part_main); /* if there is no thread, the process goes without */
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

static bool aq_minder_has_ended(uint32_t slot)
{
    uint32_t state = aq_minder_state(slot);

    return state >= AQ_RANK_ENDED || state == AQ_RANK_LEFT;
}

static bool aq_minder_all_ended(void)
{
    for (uint32_t i = 0; i < aq_minder.board->size; i++)
        if (!aq_minder_has_ended(i))
            return false;
    return true;
}

/* the same, and those count too that did not live to say so */
static bool aq_minder_none_left(const struct aq_ending *e)
{
    for (uint32_t i = 0; i < aq_minder.board->size; i++) {
        /* relaxed: joined long ago */
        pid_t pid = atomic_load_explicit(&aq_minder.board->rank[i].pid, memory_order_relaxed);

        if (aq_minder_has_ended(i))
            continue;
        if (i == aq_minder.slot || (aq_minder_leads() ? e->child[i] != 0 : !aq_minder_dead(pid)))
            return false;
    }
    return true;
}

/* hear and tell other hosts, if we are the one to do so; ms until the next time */
static int aq_minder_speak(struct aq_ending *e, int wait)
{
    int next;

    if (!aq_link_own())
        return wait;
    aq_minder.fds[2].fd = aq_link_fd();
    next = aq_link_step(e, aq_minder_none_left(e));
    return wait < 0 || next < wait ? next : wait;
}

/* Shall this rank end, though its threads will not do it: is it asked in vain, or is the time up? */
static bool aq_minder_must_end(void)
{
    /* acquire: with the state comes the code */
    uint32_t state = atomic_load_explicit(&aq_minder.board->exit_state, memory_order_acquire);

    if (state == AQ_EXIT_ASKED && !aq_minder.deaf && !aq_minder.listens) {
        aq_minder.deaf = !aq_ending_catches(aq_minder.self, SIGQUIT);
        aq_minder.listens = !aq_minder.deaf;
    }
    return state >= AQ_EXIT_KILLING || (state == AQ_EXIT_ASKED && aq_minder.deaf);
}

static void *aq_minder_fini_main(void *arg)
{
    (void)arg;
    /* a host that fell silent: its launcher may wait for it unless it is told to end the job */
    if (aq_minder_alone() || (aq_link_is_whole() && !aq_link_has_silent()))
        aq_minder.ops->fini();
    else
        /* relaxed: settled long ago */
        aq_minder.ops->abort(atomic_load_explicit(&aq_minder.board->exit_code, memory_order_relaxed),
                             "ranks did not end in time");
    /* release: the library's work is done before the process goes */
    atomic_store_explicit(&aq_minder.gone, 1, memory_order_release);
    aq_board_wake_word(&aq_minder.gone);
    return NULL;
}

/* The library waits for an answer of the launcher's; that may be gone, or busy killing us. */
static _Noreturn void aq_minder_fini_and_exit(int code)
{
    uint64_t end = aq_board_now_ns() + AQ_MINDER_CALL_MS * 1000000ull;

    if (aq_minder_thread(aq_minder_fini_main) == 0)
        /* acquire: as above */
        while (atomic_load_explicit(&aq_minder.gone, memory_order_acquire) == 0 && aq_board_now_ns() < end)
            aq_board_wait_word(&aq_minder.gone, 0, AQ_MINDER_ENDING_MS);
    _exit(code);
}

/* does a rank of this host, still there, write out its last words? */
static bool aq_minder_any_flushes(void)
{
    for (uint32_t i = 0; i < aq_minder.board->size; i++)
        if (aq_minder_state(i) == AQ_RANK_FLUSHING
            /* relaxed: joined long ago */
            && !aq_minder_dead(atomic_load_explicit(&aq_minder.board->rank[i].pid, memory_order_relaxed)))
            return true;
    return false;
}

/* A thread of the client is on its way out, and each step of that is bounded, but for last words, which take as long as
 * their reader; ranks may wait for each other's. Should it hang all the same, on a lock that a thread held which is no
 * more: nobody but us ends the process of the host's first rank. */
static void aq_minder_limit(uint64_t now)
{
    if (!aq_minder_time_is_up())
        return;
    if (aq_minder.limit_ns == 0 || aq_minder_any_flushes())
        aq_minder.limit_ns = now + (2 * (uint64_t)aq_minder.board->exit_timeout_ms + 4 * AQ_MINDER_LAST_MS +
                                    AQ_MINDER_CALL_MS) * 1000000ull;
    if (now >= aq_minder.limit_ns)
        /* relaxed: settled long ago */
        _exit(atomic_load_explicit(&aq_minder.board->exit_code, memory_order_relaxed));
}

/* End the process for the client's threads, as well as can be. A launcher that saw us die of SIGKILL
 * would report that instead of the job's exit code; one that saw a single rank fail might kill the
 * others, so ranks go together if all of them can. */
static void aq_minder_end_self(const struct aq_ending *e)
{
    uint64_t now = aq_board_now_ns();
    int code;

    if (!aq_minder.ending) {
        uint32_t state = aq_minder_state(aq_minder.slot);

        /* a thread of the client is on its way out; it may be stuck there, on a lock that it held when
         * a signal took it away */
        if (state >= AQ_RANK_LEFT && !(state == AQ_RANK_EXITING && aq_minder_time_is_up())) {
            aq_minder_limit(now);
            return;
        }
        aq_minder.ending = true;
        aq_minder.latest = now + (aq_minder.board->exit_timeout_ms + 2 * AQ_MINDER_LAST_MS) * 1000000ull;
        /* the code does not count at this stage */
        aq_board_publish_exit(aq_minder.board, aq_minder.slot, AQ_RANK_ENDED, 0);
    }
    if (!e->killed && !aq_minder_all_ended() && now < aq_minder.latest)
        return;
    /* the same for other hosts; and who speaks for this one has a word to say yet */
    if (aq_link_is_whole() && now < aq_minder.latest &&
        (!aq_link_is_done() || (aq_link_own() && !aq_link_is_settled())))
        return;
    /* relaxed: settled long ago */
    code = atomic_load_explicit(&aq_minder.board->exit_code, memory_order_relaxed);
    aq_minder_fini_and_exit(code);
}

void aq_minder_launcher_lost(void)
{
    uint64_t one = 1;

    /* relaxed: a flag on its own */
    atomic_store_explicit(&aq_minder.orphaned, true, memory_order_relaxed);
    if (aq_minder.running && write(aq_minder.own_fd, &one, sizeof(one)) < 0)
        return; /* closed by the client */
}

bool aq_minder_is_orphan(void)
{
    /* relaxed: a flag on its own */
    return atomic_load_explicit(&aq_minder.orphaned, memory_order_relaxed);
}

void aq_minder_forget_launcher(void)
{
    /* release: pairs with the acquire in aq_minder_step(), which comes before the next poll */
    atomic_store_explicit(&aq_minder.forgotten, true, memory_order_release);
}

/* Nobody would miss us, end us or take our output: the job ends itself. */
static void aq_minder_look_for_launcher(struct aq_ending *e)
{
    if (aq_minder.fds[3].revents != 0) {
        aq_minder.fds[3].fd = -1;
        aq_minder.fds[3].revents = 0;
        atomic_store_explicit(&aq_minder.orphaned, true, memory_order_relaxed);
    }
    if (e->start_ns != 0 || !atomic_load_explicit(&aq_minder.orphaned, memory_order_relaxed) ||
        aq_board_is_ending(aq_minder.board))
        return;
    if (!e->told)
        aq_ending_say("FATAL ERROR", "the launcher's process on this host is gone; ending the job");
    e->told = true;
    aq_ending_fail(e, 1);
}

/* Who says goodbye to the launcher's library is not killed for it, as long as it is alive: a launcher would take that
 * for the job's result, and on a busy machine the goodbye takes its time. What bounds it is aq_minder_limit(). */
static void aq_minder_sign_of_life(void)
{
    /* relaxed: a flag on its own */
    if (atomic_load_explicit(&aq_minder.leaving, memory_order_relaxed))
        aq_ending_spare(&aq_minder.board->rank[aq_minder.slot], AQ_MINDER_SPARE_MS);
}

/* milliseconds to sleep, -1 for ever */
static int aq_minder_step(struct aq_ending *e)
{
    bool ending;
    int wait = -1;

    aq_minder_sign_of_life(); /* before I look who is to be killed: that may be me */
    /* its number may be another file's by now */
    if (atomic_load_explicit(&aq_minder.forgotten, memory_order_acquire)) {
        aq_minder.fds[3].fd = -1;
        aq_minder.fds[3].revents = 0;
    }
    if (aq_minder_leads() || e->child[0] == 0) {
        aq_minder_look_for_launcher(e);
        /* a later step kills who has not ended himself; I come after that */
        if (aq_minder_time_is_up())
            e->child[aq_minder.slot] = 0;
        wait = aq_ending_step(e);
        wait = aq_minder_speak(e, wait);
    }
    if (aq_minder_must_end())
        aq_minder_end_self(e);
    ending = aq_board_is_ending(aq_minder.board);
    /* the news may have come from another host */
    if (ending && !aq_minder.alarmed)
        aq_minder_notify();
    aq_minder.alarmed = ending;
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
    size_t watched = AQ_MINDER_FIXED_FDS + (slot == 0 ? board->size : 1);
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
    aq_minder.fds[2] = (struct pollfd){-1, POLLIN, 0};
    aq_minder.fds[3] = (struct pollfd){ops->life_fd != NULL ? ops->life_fd() : -1, POLLRDHUP, 0};
    aq_minder.fd_count = AQ_MINDER_FIXED_FDS;
    aq_minder.running = true; /* before the thread, which may have something to tell at once */
    rc = aq_minder_thread(aq_minder_main);
    if (rc == 0)
        return AQ_OK;
    aq_minder.running = false;
    return aq_fail(AQ_ERR_RESOURCE, "spawn: cannot start a thread to watch the job: %s", strerror(rc));
}

void aq_minder_notify(void)
{
    uint64_t one = 1;

    if (aq_minder.running && write(aq_minder.event_fd, &one, sizeof(one)) < 0)
        return; /* full or closed by the client: our end is noticed too */
}
