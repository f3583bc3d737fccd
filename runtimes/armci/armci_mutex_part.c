/*
 * armci_mutex_part.c - the slow paths of armci_mutex_part.h: sleeps, wake-ups and the queue.
 *
 * Threads   the program's; for remote ranks the service thread or the program's
 * Uses      armci_mutex_part.h
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_mutex_part.h"

#include <errno.h>
#include <string.h>

#define WAKE_NS  1000000  /* between two wake-ups by a rank that locks again at once */
#define AGAIN_NS 50000    /* longest time between two unlocks of such a rank */
#define POLL_NS  1000000  /* longest sleep of a rank that must poll for other ranks, */
#define SLEEP_NS 20000000 /* and of one with a service thread */
#define SPINS    100

_Atomic(struct aq_armci_mutex *) aq_armci_mutex_again;
static _Atomic gasnett_tick_t given_again;     /* when it was released, or a sleeper woken */
static gasnett_tick_t wake_ticks, again_ticks; /* WAKE_NS, AGAIN_NS */

/* Sleeps until the mutex is taken. A rank that has slept sets SLEEPERS, since other ranks may still
 * sleep. A rank that was woken in vain looks again after WAKE_NS: the rank whose wake-up this
 * was relies on that (aq_armci_mutex_give_quietly()). */
static void sleep_for(struct aq_armci_mutex *mutex)
{
    const long long_ns = aq_armci.must_poll ? POLL_NS : SLEEP_NS;
    long sleep_ns = long_ns;
    uint32_t word, turn;
    int ended_by;

    for (;;) {
        /* acquire: pairs with the release in wake_one(); whoever sees the turn sees the word
         * as it was released then */
        turn = atomic_load_explicit(&mutex->turn, memory_order_acquire);
        if (aq_armci_mutex_take_keeping(mutex, AQ_ARMCI_MUTEX_SLEEPERS, &word))
            break;
        /* release: the count is visible with the bit. A failure means that the word has changed */
        if (!(word & AQ_ARMCI_MUTEX_SLEEPERS)
            && !atomic_compare_exchange_strong_explicit(&mutex->word, &word,
                                                        word | AQ_ARMCI_MUTEX_SLEEPERS,
                                                        memory_order_release, memory_order_relaxed))
            continue;
        ended_by = aq_armci_futex_wait(&mutex->turn, turn, sleep_ns);
        if (ended_by == 0)
            sleep_ns = WAKE_NS;
        else if (ended_by == ETIMEDOUT)
            sleep_ns = long_ns; /* else the sleep was cut short, or did not begin: once more */
        gasnet_AMPoll();
        aq_armci_mpi_step();
    }
    mutex->woken = 0;
}

void aq_armci_mutex_take(struct aq_armci_mutex *mutex)
{
    uint32_t word;

    for (int i = 0; i < SPINS; i++) {
        if (aq_armci_mutex_take_keeping(mutex, 0, &word))
            return;
        aq_armci_cpu_pause();
    }
    /* relaxed: give() only chooses by the count, and a contender counts itself before it can take
     * the mutex */
    atomic_fetch_add_explicit(&mutex->contenders, 1, memory_order_relaxed);
    sleep_for(mutex);
    atomic_fetch_sub_explicit(&mutex->contenders, 1, memory_order_relaxed); /* as above */
}

/* Returns false if no rank slept. */
static bool wake_one(struct aq_armci_mutex *mutex)
{
    /* release: pairs with the acquire in sleep_for() */
    atomic_fetch_add_explicit(&mutex->turn, 1, memory_order_release);
    return aq_armci_futex_wake(&mutex->turn) > 0;
}

static void wake_sleeper(struct aq_armci_mutex *mutex)
{
    /* relaxed: a contender that counts itself later is woken, too; its next holder sets the bit */
    const bool any = atomic_load_explicit(&mutex->contenders, memory_order_relaxed) > 0;

    mutex->woken = any ? gasnett_ticks_now() : 0;
    /* relaxed, and wherever else the two are used: only this rank's threads do, as hints */
    atomic_store_explicit(&given_again, mutex->woken, memory_order_relaxed);
    atomic_store_explicit(&aq_armci_mutex_again, NULL, memory_order_relaxed);
    /* release: the next holder sees the writes of this holder */
    atomic_fetch_and_explicit(
        &mutex->word,
        ~(uint32_t)(any ? AQ_ARMCI_MUTEX_LOCKED : AQ_ARMCI_MUTEX_LOCKED | AQ_ARMCI_MUTEX_SLEEPERS),
        memory_order_release);
    if (wake_one(mutex) && any)
        atomic_store_explicit(&aq_armci_mutex_again, mutex, memory_order_relaxed);
}

/* The last wake-up was this rank's, and less than WAKE_NS ago: the rank that was woken looks again
 * by itself, WAKE_NS after it or later. A wake-up takes longer than the short section of a
 * rank that locks again at once, and who is woken finds the mutex taken again.
 *
 * The clock is read once, after the release; the reading of the last release, or of this rank's own
 * wake-up, stands for the time before it. (If another rank sent the last wake-up, that reading is
 * earlier than it, the difference wraps, and the release is not quiet.) If the release was late
 * after all, a wake-up makes up for it: this rank has kept the mutex for long, or it has lost its
 * core, and a sleeper may have looked meanwhile. */
bool aq_armci_mutex_give_quietly(struct aq_armci_mutex *mutex)
{
    const gasnett_tick_t given = atomic_load_explicit(&given_again, memory_order_relaxed);
    const gasnett_tick_t woken = mutex->woken;
    uint32_t word = AQ_ARMCI_MUTEX_LOCKED | AQ_ARMCI_MUTEX_SLEEPERS;
    gasnett_tick_t now;

    if (!aq_armci_mutex_is_again(mutex))
        return false;
    if (woken == 0 || given - woken >= wake_ticks - again_ticks) {
        atomic_store_explicit(&aq_armci_mutex_again, NULL, memory_order_relaxed);
        return false;
    }
    /* release: the next holder sees the writes of this holder */
    if (!atomic_compare_exchange_strong_explicit(&mutex->word, &word, AQ_ARMCI_MUTEX_SLEEPERS,
                                                 memory_order_release, memory_order_relaxed)) {
        atomic_store_explicit(&aq_armci_mutex_again, NULL, memory_order_relaxed);
        return false;
    }
    now = gasnett_ticks_now();
    atomic_store_explicit(&given_again, now, memory_order_relaxed);
    if ((now - given >= again_ticks || now - woken >= wake_ticks) && !wake_one(mutex))
        atomic_store_explicit(&aq_armci_mutex_again, NULL, memory_order_relaxed);
    return true;
}

/* aq_armci_mutex_give() without the check of a debug build. */
static int give(struct aq_armci_mutex_part *part, struct aq_armci_mutex *mutex)
{
    uint32_t word;
    int next = -1;

    if (aq_armci_mutex_try_give(mutex) || aq_armci_mutex_give_quietly(mutex))
        return -1;
    aq_armci_lock_take(&part->lock);
    word = atomic_load_explicit(&mutex->word,
                                memory_order_acquire); /* pairs with the release that sets QUEUE */
    /* relaxed: a contender takes the mutex before it leaves the count, and no rank takes the mutex
     * while it is held */
    if (!(word & AQ_ARMCI_MUTEX_QUEUE)
        || (atomic_load_explicit(&mutex->contenders, memory_order_relaxed) > 0 && !mutex->slept)) {
        mutex->slept = 1;
        wake_sleeper(mutex);
    } else {
        next = mutex->head;
        if (AQ_ARMCI_CHECKS)
            mutex->owner = next;
        mutex->slept = 0;
        mutex->head = aq_armci_mutex_next(part)[next];
        if (mutex->head < 0) /* the lock orders the queue; relaxed would suffice */
            atomic_fetch_and_explicit(&mutex->word, ~(uint32_t)AQ_ARMCI_MUTEX_QUEUE,
                                      memory_order_release);
    }
    aq_armci_lock_give(&part->lock);
    return next;
}

int aq_armci_mutex_give(struct aq_armci_mutex_part *part, struct aq_armci_mutex *mutex, int rank)
{
    if (AQ_ARMCI_CHECKS) {
        if (mutex->owner != rank)
            return AQ_ARMCI_MUTEX_NOT_OWNER;
        mutex->owner = -1;
    }
    return give(part, mutex);
}

int aq_armci_mutex_queue(struct aq_armci_mutex_part *part, struct aq_armci_mutex *mutex, int rank,
                         bool try_only)
{
    uint32_t word;
    int state = try_only ? AQ_ARMCI_MUTEX_REFUSED : AQ_ARMCI_MUTEX_QUEUED;

    aq_armci_lock_take(&part->lock);
    for (;;) {
        if (aq_armci_mutex_take_keeping(mutex, 0, &word)) {
            state = AQ_ARMCI_MUTEX_GRANTED;
            break;
        }
        /* release: pairs with the acquire in give(), which reads the queue under the lock */
        if (try_only || (word & AQ_ARMCI_MUTEX_QUEUE)
            || atomic_compare_exchange_strong_explicit(&mutex->word, &word,
                                                       word | AQ_ARMCI_MUTEX_QUEUE,
                                                       memory_order_release, memory_order_relaxed))
            break;
    }
    if (AQ_ARMCI_CHECKS && state == AQ_ARMCI_MUTEX_GRANTED)
        mutex->owner = rank;
    if (state == AQ_ARMCI_MUTEX_QUEUED) {
        aq_armci_mutex_next(part)[rank] = -1;
        if (word & AQ_ARMCI_MUTEX_QUEUE && mutex->head >= 0)
            aq_armci_mutex_next(part)[mutex->tail] = rank;
        else
            mutex->head = rank;
        mutex->tail = rank;
    }
    aq_armci_lock_give(&part->lock);
    return state;
}

/* Once, before the first set has mutexes that a handler of the service thread could release. */
static void set_ticks(void)
{
    const uint64_t ns = gasnett_ticks_to_ns(1000000);

    if (wake_ticks != 0)
        return;
    wake_ticks = WAKE_NS * UINT64_C(1000000) / ns;
    again_ticks = AGAIN_NS * UINT64_C(1000000) / ns;
}

void aq_armci_mutex_part_init(struct aq_armci_mutex_part *part, int count)
{
    const size_t head = sizeof(part->lock);

    set_ticks();
    memset((char *)part + head, 0, aq_armci_mutex_part_size(count) - head);
    part->count = count;
    for (int i = 0; i < count; i++) {
        aq_armci_mutex_at(part, i)->head = -1;
        aq_armci_mutex_at(part, i)->owner = -1;
    }
    /* release: a thread that takes the lock, the service thread too, sees the rest */
    atomic_store_explicit(&part->lock.word, AQ_ARMCI_LOCK_FREE, memory_order_release);
}
