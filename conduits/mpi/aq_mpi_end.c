/*
 * aq_mpi_end.c - the way out: who calls MPI_Finalize, and when may it be called?
 *
 * Rules     Who has called MPI_Init calls MPI_Finalize; but after gasnet_exit(), which never
 *           returns, we do, whoever has started MPI. The program may call it before its exit, or
 *           after ours (in a function that exit() runs)
 * How       MPI_Finalize waits for all ranks, so all have to agree. Not willing is a rank that a
 *           signal has taken from where it was, perhaps from within MPI; that is on another thread
 *           than the one MPI knows; from which something is still to be sent; or that has died. On
 *           a host the board counts the votes, MPI itself between hosts. If one is not willing, all
 *           leave without, and say goodbye to the launcher (aq_mpi_disconnect.c) What is the
 *           conduit's is given back at the beginning of MPI_Finalize, whoever calls it: what is on
 *           its way arrives, at all ranks; then receives, windows and communicators go. If the
 *           program has called it, who communicates later is told so, and the job ends
 * Bounds    MPI_Finalize gets a few seconds: a rank may die in it, and the others would wait for
 *           that one. Then they leave it where it is and say goodbye without it
 * Threads   the one that leaves; fini and abort on others
 * Uses      the board, unwind.h. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include "conduits/mpi/aq_mpi.h"
#include "conduits/mpi/aq_mpi_am.h"
#include "conduits/mpi/aq_mpi_job.h"
#include "conduits/mpi/aq_mpi_rma.h"
#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "other/spawn/aq_spawn_monitor.h"

#define AQ_MPI_OWN_MS     200  /* for a thread of ours to come out of MPI */
#define AQ_MPI_VOTE_MS    1000 /* for the other ranks, which all have come to their exit, to vote */
#define AQ_MPI_FINALIZE_S 5    /* beyond the exit timeout */
#define AQ_MPI_GO_MS      500  /* for the others of this host to be ready to go */
#define AQ_MPI_MS         UINT64_C(1000000)
#define AQ_MPI_LOOKS      64u /* between naps of who waits for others at the end */

/* On the board: a rank's vote, and the result, which whoever sees it first writes down; then, that
 * it has nothing left to do but to end. */
enum aq_mpi_vote { AQ_MPI_NO_VOTE = 0, AQ_MPI_FINALIZE, AQ_MPI_HASTE, AQ_MPI_GO };

static struct {
    struct aq_jobarea *jobarea;
    uint32_t slot;
    bool closed;  /* what is the conduit's has been given back, or it never can be */
    bool owned;   /* MPI is ours: no other thread of the library enters it any more */
    bool left_on; /* MPI is still the program's to end */
    pthread_mutex_t
        mutex; /* once it is owned: the thread that leaves, or the one that waits in the fence, */
    bool shutdown_vote;               /* which the former ends */
    pthread_t exit_thread;            /* in MPI_Finalize; */
    sigjmp_buf way_out;               /* and out of it, if it takes too long, */
    volatile sig_atomic_t finalizing; /* as long as this is true */
    bool cut_short;                   /* that was so */
} aq_mpi_end = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* --- what this thread is in the middle of --- */

struct aq_mpi_frames {
    const void *object; /* NULL: look for a signal's frame */
    bool found;
};

static _Unwind_Reason_Code aq_mpi_on_frame(struct _Unwind_Context *context, void *arg)
{
    struct aq_mpi_frames *frames = arg;
    int interrupted = 0;
    const uintptr_t ip = _Unwind_GetIPInfo(context, &interrupted);
    Dl_info info;

    if (frames->object == NULL)
        frames->found = interrupted != 0;
    else
        frames->found = dladdr((const void *)ip, &info) != 0 && info.dli_fbase == frames->object;
    return frames->found ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* Has a signal brought us here, or MPI itself (MPI_Abort calls exit())? */
static bool aq_mpi_interrupted(void)
{
    struct aq_mpi_frames signals = { NULL, false }, calls = { NULL, false };
    Dl_info info;

    _Unwind_Backtrace(aq_mpi_on_frame, &signals);
    if (signals.found || dladdr(aq_mpi.lib->job.code, &info) == 0)
        return true;
    calls.object = info.dli_fbase;
    _Unwind_Backtrace(aq_mpi_on_frame, &calls);
    return calls.found;
}

static void aq_mpi_backoff(void)
{
    const struct timespec delay = { .tv_nsec = 200000 };

    nanosleep(&delay, NULL);
}

/* Inside: moves on what is on its way to and from us. True: there is nothing. */
static bool aq_mpi_is_empty(void)
{
    return aq_mpi_is_alone() || aq_mpi_am.lib == NULL || (aq_mpi_am_drain() && aq_mpi_rma_drain());
}

/* Keeps the library's other threads out of MPI from now on; false if one stays in there, or
 * something is on its way. */
static bool aq_mpi_own(void)
{
    const uint64_t end = aq_jobarea_now_ns() + AQ_MPI_OWN_MS * AQ_MPI_MS;

    for (;;) {
        if (aq_mpi_try_lock()) {
            if (aq_mpi_is_empty())
                return true;
            aq_mpi_unlock();
        }
        if (aq_jobarea_now_ns() >= end)
            return false;
        aq_mpi_backoff();
    }
}

/* Meanwhile others get rid of what is still on its way to us. We own MPI. */
static void aq_mpi_backoff_progress(void)
{
    (void)aq_mpi_is_empty();
    aq_mpi_backoff();
}

/* --- giving back what is ours --- */

/* Until what is on its way between us and others has arrived, everywhere: credit, or the thanks for
 * a transfer, may hang behind a rank that looks no more, and no receive or communicator may go
 * before it. MPI_Finalize waits for all ranks, and so does this; what bounds the one bounds the
 * other. */
static void aq_mpi_drain(void)
{
    const uint64_t end = aq_jobarea_now_ns() + AQ_MPI_OWN_MS * AQ_MPI_MS;
    bool entered = false, all = false;

    for (unsigned looks = 1; !all; looks++) {
        const bool drained = aq_mpi_am_drain(), moved = aq_mpi_rma_drain();

        /* transfers that nobody has waited for may have lost their partner: they get a moment */
        if (!entered && drained && (moved || aq_jobarea_now_ns() >= end)) {
            entered = aq_mpi.lib->job.ibarrier() == 0;
            if (!entered) /* nor does anything else work in this MPI any more */
                return;
        }
        if (entered && aq_mpi.lib->job.ibarrier_test(&all) != 0)
            return;
        if (looks % AQ_MPI_LOOKS == 0)
            aq_mpi_backoff();
    }
}

/* Has any rank come to MPI_Finalize with something under way that ends nowhere? All are there. */
static bool aq_mpi_any_lost(void)
{
    const uint32_t size = aq_mpi.lib->job.size();
    const char own = aq_mpi_am.dropped || aq_mpi_rma_busy();
    char *lost = malloc(size);
    bool any = lost == NULL || aq_mpi.lib->job.allgather(&own, 1, lost) != 0;

    for (uint32_t i = 0; i < size && !any; i++)
        any = lost[i] != 0;
    free(lost);
    return any;
}

/* At the beginning of MPI_Finalize, on every rank. Nobody of ours enters MPI after it: the lock is
 * kept. */
static void aq_mpi_close(void)
{
    const bool by_client = !aq_mpi_end.owned && !aq_mpi_end.left_on;

    if (!aq_mpi_end.owned)
        aq_mpi_lock();
    aq_mpi_end.owned = true;
    if (aq_mpi_end.closed)
        return;
    aq_mpi_end.closed = true;
    aq_monitor_forget_launcher(); /* MPI_Finalize closes MPI's connection to it */
    if (aq_mpi_am.lib != NULL) {
        aq_mpi_drain();
        aq_mpi.lost = by_client && aq_mpi_any_lost();
        aq_mpi_am.lib->close();
    }
    aq_mpi_rma_fini();
    /* release: pairs with the acquire in aq_mpi_check_over(). A program that leaves has its end
     * anyhow */
    atomic_store_explicit(&aq_mpi.over, by_client, memory_order_release);
    atomic_store_explicit(&aq_mpi.alone, true, memory_order_relaxed); /* polls look no more */
    aq_mpi.lib->job.close();
}

void aq_mpi_end_set_jobarea(struct aq_jobarea *jobarea, uint32_t slot)
{
    aq_mpi_end.jobarea = jobarea;
    aq_mpi_end.slot = slot;
}

int aq_mpi_end_init(void)
{
    const int error = aq_mpi.lib->job.on_finalize(aq_mpi_close);
    char text[512];

    if (error == 0)
        return AQ_OK;
    aq_mpi.lib->job.text(error, text, sizeof(text));
    return aq_fail(AQ_ERR_SYS, "mpi: an attribute on MPI_COMM_SELF: %s", text);
}

/* --- the vote --- */

static bool aq_mpi_willing(enum aq_shutdown_mode how)
{
    if (how == AQ_SHUTDOWN_ABORT || aq_mpi_end.left_on || aq_mpi_end.owned
        || !aq_env_bool(AQ_ENV_MPI_FINALIZE))
        return false;
    /* in this order: MPI can be asked at all */
    return !aq_mpi_interrupted() && !aq_mpi.lib->job.is_finalized()
           && aq_mpi.lib->job.is_main_thread() && aq_mpi_own();
}

void aq_mpi_end_decide(enum aq_shutdown_mode how)
{
    enum aq_mpi_vote vote;

    aq_mpi_end.left_on = how == AQ_SHUTDOWN_RETURN && !aq_mpi_job.ours;
    if (aq_mpi_end.jobarea == NULL) /* the job has not been joined: there is nobody to agree with */
        return;
    vote = aq_mpi_willing(how) ? AQ_MPI_FINALIZE : AQ_MPI_HASTE;
    if (vote == AQ_MPI_FINALIZE)
        aq_mpi_end.owned = true;
    /* release: who counts the vote finds us out of MPI */
    atomic_store_explicit(&aq_mpi_end.jobarea->rank[aq_mpi_end.slot].shutdown_vote, (uint32_t)vote,
                          memory_order_release);
}

static bool aq_mpi_is_dead(const struct aq_jobarea_rank *rank)
{
    /* relaxed: written as it joined */
    return kill(atomic_load_explicit(&rank->pid, memory_order_relaxed), 0) != 0 && errno == ESRCH;
}

/* The vote of a rank of this host that has come to its exit, or has died. */
static enum aq_mpi_vote aq_mpi_vote_of(const struct aq_jobarea_rank *rank, uint64_t end)
{
    for (;;) {
        /* acquire: pairs with the release in aq_mpi_end_decide() */
        const uint32_t vote = atomic_load_explicit(&rank->shutdown_vote, memory_order_acquire);
        /* relaxed: looked at again soon */
        const uint32_t state = atomic_load_explicit(&rank->state, memory_order_relaxed);

        if (vote != AQ_MPI_NO_VOTE)
            return vote == AQ_MPI_FINALIZE ? AQ_MPI_FINALIZE : AQ_MPI_HASTE;
        if (state == AQ_RANK_CRASHED || state == AQ_RANK_LEFT || aq_mpi_is_dead(rank))
            return AQ_MPI_HASTE;
        /* one that writes out its last words takes as long as their reader */
        if (state != AQ_RANK_FLUSHING && aq_jobarea_now_ns() >= end)
            return AQ_MPI_HASTE;
        aq_mpi_backoff_progress();
    }
}

static bool aq_mpi_host_agrees(void)
{
    struct aq_jobarea *jobarea = aq_mpi_end.jobarea;
    const uint64_t end = aq_jobarea_now_ns() + AQ_MPI_VOTE_MS * AQ_MPI_MS;
    uint32_t result = AQ_MPI_FINALIZE, before = AQ_MPI_NO_VOTE;

    for (uint32_t i = 0; i < jobarea->size && result == AQ_MPI_FINALIZE; i++)
        result = (uint32_t)aq_mpi_vote_of(&jobarea->rank[i], end);
    /* relaxed: one word, that nothing else goes with */
    if (!atomic_compare_exchange_strong_explicit(&jobarea->shutdown_vote, &before, result,
                                                 memory_order_relaxed, memory_order_relaxed))
        result = before;
    return result == AQ_MPI_FINALIZE;
}

int aq_mpi_end_fence(void)
{
    bool all = false, over = aq_mpi_rma.lib == NULL;

    while (!all && !over) {
        pthread_mutex_lock(&aq_mpi_end.mutex);
        over = aq_mpi_end.shutdown_vote || aq_mpi_end.closed || !aq_mpi_end.owned
               || aq_mpi_rma.lib->ibarrier(&all) != 0;
        pthread_mutex_unlock(&aq_mpi_end.mutex);
        if (!all && !over)
            aq_mpi_backoff();
    }
    return all ? AQ_OK : AQ_ERR_SYS;
}

/* Ranks of hosts that do not agree never come to this meeting; others may hear late that all hosts
 * have come to their exit, but within the exit timeout. */
static bool aq_mpi_hosts_agree(void)
{
    const uint64_t end =
        aq_jobarea_now_ns() + (AQ_MPI_VOTE_MS + aq_mpi_end.jobarea->exit_timeout_ms) * AQ_MPI_MS;
    bool all = aq_mpi_end.jobarea->size == aq_mpi_end.jobarea->job_size;

    if (all || aq_mpi.lib->job.ibarrier() != 0)
        return all;
    while (!all && aq_mpi.lib->job.ibarrier_test(&all) == 0 && aq_jobarea_now_ns() < end)
        aq_mpi_backoff_progress();
    return all;
}

/* --- MPI_Finalize --- */

/* On the thread that is in MPI_Finalize, wherever the kernel has thought fit to tell it. */
static void aq_mpi_on_alarm(int sig)
{
    if (!pthread_equal(pthread_self(), aq_mpi_end.exit_thread))
        pthread_kill(aq_mpi_end.exit_thread, sig);
    else if (aq_mpi_end.finalizing)
        siglongjmp(aq_mpi_end.way_out, 1);
}

static void aq_mpi_set_alarm(unsigned seconds)
{
    const struct itimerval limit = { .it_value = { .tv_sec = seconds } };
    struct sigaction act;
    sigset_t set;

    aq_mpi_end.exit_thread = pthread_self();
    memset(&act, 0, sizeof(act));
    act.sa_handler = aq_mpi_on_alarm;
    sigaction(SIGALRM, &act, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    setitimer(ITIMER_REAL, &limit, NULL);
}

/* Bounded: a rank may die in it, and MPICH 4.0 hangs in it by itself over UCX's TCP, where a rank
 * flushes its connections to others that wait at the launcher's barrier already. Then we leave as
 * if it had not been called. */
static void aq_mpi_finalize(void)
{
    if (sigsetjmp(aq_mpi_end.way_out, 1) == 0) {
        aq_mpi_end.finalizing = 1;
        aq_mpi_set_alarm(aq_mpi_end.jobarea->exit_timeout_ms / 1000 + AQ_MPI_FINALIZE_S);
        aq_mpi.lib->job.finalize();
    } else {
        aq_mpi_end.cut_short = true;
    }
    aq_mpi_end.finalizing = 0;
    aq_mpi_set_alarm(0);
}

bool aq_mpi_end_is_cut_short(void)
{
    return aq_mpi_end.cut_short;
}

static void aq_mpi_set_state(enum aq_rank_state state)
{
    /* release: as with every state of a rank */
    atomic_store_explicit(&aq_mpi_end.jobarea->rank[aq_mpi_end.slot].state, (uint32_t)state,
                          memory_order_release);
}

void aq_mpi_end_disconnect(enum aq_shutdown_mode how)
{
    (void)how; /* it is in the vote */
    if (!aq_mpi_end.owned || aq_mpi_end.closed)
        return;
    pthread_mutex_lock(&aq_mpi_end.mutex);
    aq_mpi_end.shutdown_vote = true;
    pthread_mutex_unlock(&aq_mpi_end.mutex);
    if (!aq_mpi_host_agrees())
        return;
    /* the state in which nobody is killed for taking his time; all of it is bounded */
    aq_mpi_set_state(AQ_RANK_FLUSHING);
    if (aq_mpi_hosts_agree())
        aq_mpi_finalize();
    aq_mpi_set_state(AQ_RANK_ENDED);
}

/* The first rank that ends with a code other than 0 makes Open MPI's mpirun kill the rest, for
 * which it takes a second; so they end together. */
static void aq_mpi_go_together(void)
{
    struct aq_jobarea *jobarea = aq_mpi_end.jobarea;
    const uint64_t end = aq_jobarea_now_ns() + AQ_MPI_GO_MS * AQ_MPI_MS;

    /* relaxed, both: nothing else goes with the word */
    atomic_store_explicit(&jobarea->rank[aq_mpi_end.slot].shutdown_vote, (uint32_t)AQ_MPI_GO,
                          memory_order_relaxed);
    for (uint32_t i = 0; i < jobarea->size; i++)
        while (atomic_load_explicit(&jobarea->rank[i].shutdown_vote, memory_order_relaxed)
                   != AQ_MPI_GO
               && !aq_mpi_is_dead(&jobarea->rank[i]) && aq_jobarea_now_ns() < end)
            aq_mpi_backoff();
}

void aq_mpi_end_fini(void)
{
    if (aq_mpi_end.left_on || aq_mpi_end.jobarea == NULL)
        return;
    aq_mpi_disconnect();
    aq_mpi_go_together();
}

/* After all functions that exit() runs: none of them has called MPI_Finalize. */
static __attribute__((destructor)) void aq_mpi_end_last(void)
{
    if (!aq_mpi_end.left_on)
        return;
    aq_mpi_disconnect();
    aq_mpi_go_together();
}
