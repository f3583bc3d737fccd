/*
 * aq_udp_flush.c - the flush timer: coalesced messages leave although the client makes no call.
 *
 * Messages of a batch share datagrams (aq_udp_peer_queued()). The last message may wait for others
 * that never come, while the client computes or waits outside the library. In par a thread flushes
 * it. The thread is woken when a message begins to wait, checks every AQ_FLUSH_NS, and sleeps again
 * after AQ_FLUSH_IDLE checks that found nothing. It runs no handler and receives nothing. seq has
 * no second thread: there the next call that polls or sends flushes the message.
 *
 * Owns      the thread, made at the first batch, until the job ends
 * Threads   aq_udp_flush_timer_note(): any, under a peer's lock
 * Promise   a waiting message leaves within two checks, as far as the windows allow
 * Uses      aq_udp.h, futex. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "base/aq_state.h"
#include "conduits/udp/aq_udp.h"

#if AQ_THREADED

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define AQ_FLUSH_NS   100000 /* between two checks */
#define AQ_FLUSH_IDLE 8      /* checks that find nothing before the thread sleeps */

static struct {
    _Atomic uint32_t awake; /* a futex */
    bool made;              /* the thread exists; set by the caller that first sets awake */
    bool runs;
    atomic_bool stopping;
    pthread_t thread; /* if it runs */
} aq_udp_flush_timer AQ_JOB_STATE;

static bool aq_udp_flush_timer_is_due(void)
{
    /* seq_cst: in one order with awake, see aq_udp_flush_timer_note() */
    return atomic_load_explicit(&aq_udp.dirty, memory_order_seq_cst) != NULL;
}

static bool aq_udp_flush_timer_goes_on(void)
{
    /* seq_cst: whoever has cleared awake after aq_udp_flush_timer_fini() has set it sees this */
    return !atomic_load_explicit(&aq_udp_flush_timer.stopping, memory_order_seq_cst);
}

static void *aq_udp_flush_timer_main(void *arg)
{
    const struct timespec delay = { 0, AQ_FLUSH_NS };

    (void)arg;
    while (aq_udp_flush_timer_goes_on()) {
        for (unsigned idle = 0; idle < AQ_FLUSH_IDLE; idle++) {
            nanosleep(&delay, NULL);
            if (aq_udp_flush_timer_is_due()) {
                aq_udp_flush(aq_now_ns());
                idle = 0;
            }
        }
        /* seq_cst: either this thread sees the waiting message, or its sender sees that this thread
         * sleeps */
        atomic_store_explicit(&aq_udp_flush_timer.awake, 0, memory_order_seq_cst);
        if (aq_udp_flush_timer_is_due()) {
            atomic_store_explicit(&aq_udp_flush_timer.awake, 1,
                                  memory_order_relaxed); /* relaxed: this thread wrote it */
            continue;
        }
        while (atomic_load_explicit(&aq_udp_flush_timer.awake, memory_order_relaxed)
                   == 0 /* a wakeup without data */
               && aq_udp_flush_timer_goes_on())
            syscall(SYS_futex, &aq_udp_flush_timer.awake, FUTEX_WAIT, 0, NULL, NULL, 0);
    }
    return NULL;
}

static void aq_udp_flush_timer_make(void)
{
    sigset_t all, old;

    sigfillset(&all);
    /* the thread inherits the mask: signals are for the client's threads */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    aq_udp_flush_timer.runs =
        pthread_create(&aq_udp_flush_timer.thread, NULL, aq_udp_flush_timer_main, NULL) == 0;
    if (!aq_udp_flush_timer.runs)
        aq_udp.coalesce = false; /* no thread can be made: nothing is coalesced */
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void aq_udp_flush_timer_note(void)
{
    /* pairs with the seq_cst operations above */
    atomic_thread_fence(memory_order_seq_cst);
    if (AQ_LIKELY(atomic_load_explicit(&aq_udp_flush_timer.awake, memory_order_relaxed) != 0)
        || atomic_exchange_explicit(&aq_udp_flush_timer.awake, 1, memory_order_seq_cst) != 0)
        return;
    /* awake is 0 only before the first batch and while the thread sleeps: one caller gets here */
    if (!aq_udp_flush_timer.made) {
        aq_udp_flush_timer.made = true;
        aq_udp_flush_timer_make();
        return;
    }
    syscall(SYS_futex, &aq_udp_flush_timer.awake, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void aq_udp_flush_timer_fini(void)
{
    if (!aq_udp_flush_timer.runs)
        return;
    /* seq_cst, both: see aq_udp_flush_timer_goes_on() */
    atomic_store_explicit(&aq_udp_flush_timer.stopping, true, memory_order_seq_cst);
    atomic_store_explicit(&aq_udp_flush_timer.awake, 1, memory_order_seq_cst);
    syscall(SYS_futex, &aq_udp_flush_timer.awake, FUTEX_WAKE, 1, NULL, NULL, 0);
    pthread_join(aq_udp_flush_timer.thread, NULL);
}

#else

void aq_udp_flush_timer_note(void)
{
}

void aq_udp_flush_timer_fini(void)
{
}

#endif
