/*
 * armci_mutex_part.h - the mutexes of one host: words and queues in its segment. Ranks of the host
 * take them by compare-and-swap, its handler takes them for ranks of other hosts.
 *
 * States    a word is a sum of bits: LOCKED; SLEEPERS: ranks sleep in the kernel; QUEUE: remote
 *           ranks wait in a list by rank (a rank waits for one mutex at a time). An unlock of a
 *           word that is LOCKED alone is one instruction
 * Queue     under the lock of the part. Ranks that share memory with the host do all steps
 *           themselves. For remote ranks the host's handler does them
 * Fairness  if a queue and local contenders exist, the mutex goes to each in turn. The mutex is
 *           made free only if a contender is certain to take it: a free mutex would leave the queue
 *           unserved
 * Wake-ups  a rank that unlocks wakes a sleeper, unless it does so again at once: see
 *           aq_armci_mutex_give_quietly()
 * Uses      armci_impl.h, armci_lock.h
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_ARMCI_MUTEX_PART_H
#define AQ_ARMCI_MUTEX_PART_H 1

#include "armci_impl.h"

#include "gasnet_tools.h" /* after gasnetex.h, which armci_impl.h has */

enum { AQ_ARMCI_MUTEX_LOCKED = 1, AQ_ARMCI_MUTEX_SLEEPERS = 2, AQ_ARMCI_MUTEX_QUEUE = 4 };
enum { AQ_ARMCI_MUTEX_REFUSED, AQ_ARMCI_MUTEX_GRANTED, AQ_ARMCI_MUTEX_QUEUED };
enum { AQ_ARMCI_MUTEX_NOT_OWNER = -3 }; /* in place of the next rank */

struct aq_armci_mutex {
    _Alignas(64) _Atomic uint32_t word;
    _Atomic uint32_t turn;      /* wake-ups so far; ranks sleep on it */
    int32_t head, tail;         /* of the queue: ranks, -1 for none */
    _Atomic int32_t contenders; /* ranks that map the mutex and wait for it, asleep or not */
    int32_t slept;              /* 1: the last turn went to a contender */
    int32_t owner;              /* debug builds: the rank that holds the mutex */
    /* when a sleeper was woken that has not taken the mutex yet; 0: none. Only the holder's */
    gasnett_tick_t woken;
};

/* The part of a set that one host has in its segment. */
struct aq_armci_mutex_part {
    struct aq_armci_lock lock;
    int32_t count;
    int32_t pad;
    /* behind this: count mutexes; then, for each rank, the next rank in its queue */
};

static inline struct aq_armci_mutex *aq_armci_mutex_at(struct aq_armci_mutex_part *part, int mutex)
{
    return (struct aq_armci_mutex *)(void *)(part + 1) + mutex;
}

static inline int32_t *aq_armci_mutex_next(struct aq_armci_mutex_part *part)
{
    return (int32_t *)(void *)aq_armci_mutex_at(part, part->count);
}

static inline size_t aq_armci_mutex_part_size(int count)
{
    return sizeof(struct aq_armci_mutex_part) + (size_t)count * sizeof(struct aq_armci_mutex)
           + (size_t)aq_armci.nproc * sizeof(int32_t);
}

/* Takes the mutex if it is free, and keeps its other bits. *word is the bits that are expected, and
 * receives those that were read. */
static inline bool aq_armci_mutex_take_expected(struct aq_armci_mutex *mutex, uint32_t extra,
                                                uint32_t *word)
{
    while (!(*word & AQ_ARMCI_MUTEX_LOCKED))
        /* acquire: pairs with the release of the unlock */
        if (atomic_compare_exchange_weak_explicit(&mutex->word, word,
                                                  *word | AQ_ARMCI_MUTEX_LOCKED | extra,
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

/* The same, without an expectation. */
static inline bool aq_armci_mutex_take_keeping(struct aq_armci_mutex *mutex, uint32_t extra,
                                               uint32_t *word)
{
    /* relaxed: the compare-and-swap acquires */
    *word = atomic_load_explicit(&mutex->word, memory_order_relaxed);
    return aq_armci_mutex_take_expected(mutex, extra, word);
}

/* Releases the mutex if no rank waits for it. */
static inline bool aq_armci_mutex_try_give(struct aq_armci_mutex *mutex)
{
    uint32_t word = AQ_ARMCI_MUTEX_LOCKED;

    /* release: pairs with the acquires of taking it */
    return atomic_compare_exchange_strong_explicit(&mutex->word, &word, 0, memory_order_release,
                                                   memory_order_relaxed);
}

/* Releases the mutex while others sleep, without a wake-up. Does so if this rank has released it a
 * moment ago, too, and a sleeper looks again soon by itself. */
bool aq_armci_mutex_give_quietly(struct aq_armci_mutex *mutex);

/* The mutex that this rank has released the last time while others slept, as far as it knows; NULL:
 * none. */
extern _Atomic(struct aq_armci_mutex *) aq_armci_mutex_again;
static inline bool aq_armci_mutex_is_again(const struct aq_armci_mutex *mutex)
{
    /* relaxed: a hint */
    return atomic_load_explicit(&aq_armci_mutex_again, memory_order_relaxed) == mutex;
}

/* Takes the mutex, after a sleep if it is held. The mutex is mapped. */
void aq_armci_mutex_take(struct aq_armci_mutex *mutex);

/* Releases the mutex for rank. Returns the rank of the queue that holds it from now on, to which
 * the caller sends a hand-off; -1: none. A debug build returns NOT_OWNER if the rank does not hold
 * the mutex. */
int aq_armci_mutex_give(struct aq_armci_mutex_part *part, struct aq_armci_mutex *mutex, int rank);

/* For a remote rank: takes the mutex (GRANTED), or appends the rank to the queue (QUEUED). REFUSED:
 * the mutex is held and try_only. */
int aq_armci_mutex_queue(struct aq_armci_mutex_part *part, struct aq_armci_mutex *mutex, int rank,
                         bool try_only);

/* Makes count free mutexes in new memory. */
void aq_armci_mutex_part_init(struct aq_armci_mutex_part *part, int count);

#endif
