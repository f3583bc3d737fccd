/*
 * aq_contention.c - see aq_contention.h.
 *
 * A yield that returns as fast as the fastest so far has found nobody: whoever was seen on this
 * core sleeps, or has moved since it published its own. Looks are then left out for a while. A
 * yield that takes a good part of a scheduler period, and after which few messages are there, gave
 * the core to a program that does not wait: for a while, the longer the more it took and the more
 * often that happens, threads sleep where they would have yielded.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "core/aq_contention.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_platform.h"
#include "base/aq_state.h"
#include "other/spawn/aq_spawn.h"

#define AQ_SLOW_YIELD_NS   1000000u /* no chain of a few ranks that only poll takes so long */
#define AQ_SLOW_RANK_NS    40000u   /* and for each rank of a core so much longer */
#define AQ_SLOW_MAX_NS     2200000u /* who keeps a core for longer is a program: its time slice */
#define AQ_SLOW_WEIGHT     8u       /* so many yields must be fast to make up for a slow one */
#define AQ_SLOW_MANY       16u      /* two, if few of the yields between them were fast */
#define AQ_PAUSE_UNIT      8u   /* a pause of so much leaves yields out for as long as one took */
#define AQ_PAUSE_MIN       32u  /* the first pause; a fast yield makes the next one shorter by 1 */
#define AQ_PAUSE_MAX       256u /* if yields turn out slow again and again */
#define AQ_SPIN_TRIAL      8u   /* a wait in so many spins first although that was in vain */
#define AQ_SPIN_NS         60000u /* a wake-up of a peer, and its answer */
#define AQ_SPIN_NETWORK_NS 20000u /* an answer that may come over a network */
#define AQ_SPIN_GAIN       4u     /* an answer while spinning makes up for so many waits in vain */
#define AQ_SPIN_LUCK_MAX   32u
#define AQ_STAYS_MAX       4096u     /* messages for which a thread does not give way: about 2 ms */
#define AQ_DECLINED_NS     50000u    /* sleep where a yield is slow and a message had no credit */
#define AQ_LOOKS_LEFT_OUT  64u       /* looks */
#define AQ_MOVE_NS         1000000u  /* between two moves, at least */
#define AQ_MOVE_LATER_NS   10000000u /* of sharing, before ranks other than the core's last move */
#define AQ_MOVE_NOWHERE_NS 50000000u /* before the next look for a free core, if there was none */
#define AQ_YIELD_TO_NOBODY 2u        /* a yield that nobody used takes less than so many min_ns */

_Thread_local struct aq_contention aq_contention_self;
unsigned aq_contention_ranks_per_core AQ_JOB_STATE;

static _Atomic uint16_t *aq_contention_cores(void)
{
    return aq_jobarea_cores(aq_spawn_jobarea());
}

/* relaxed, here and below: hints */
static void aq_contention_publish(uint16_t core)
{
    aq_contention_self.core = core;
    atomic_store_explicit(&aq_contention_cores()[aq_spawn_info()->host_rank], core,
                          memory_order_relaxed);
}

static uint32_t aq_contention_count_peers(uint16_t core)
{
    const struct aq_spawn_info *info = aq_spawn_info();
    const _Atomic uint16_t *cores = aq_contention_cores();

    uint32_t peers = 0;

    for (uint32_t i = 0; i < info->host_size && peers < AQ_CROWD; i++)
        peers +=
            atomic_load_explicit(&cores[i], memory_order_relaxed) == core && i != info->host_rank;
    return peers;
}

enum aq_contention_place aq_contention_place_of(uint32_t jobrank)
{
    const struct aq_spawn_info *info = aq_spawn_info();
    uint16_t core;

    /* between jobs there are no peers; in a job of one host jobrank is the slot, too */
    if (aq_spawn_jobarea() == NULL || jobrank >= info->host_size
        || info->host_ranks[jobrank] != jobrank)
        return AQ_PLACE_UNKNOWN;
    core = atomic_load_explicit(&aq_contention_cores()[jobrank], memory_order_relaxed);
    if (core == 0)
        return AQ_PLACE_UNKNOWN;
    return core == aq_contention_self.core ? AQ_PLACE_OWN_CORE : AQ_PLACE_OTHER_CORE;
}

bool aq_contention_look(void)
{
    struct aq_contention *self = &aq_contention_self;
    const int number = sched_getcpu();

    self->peers = 0;
    if (number < 0 || aq_spawn_jobarea() == NULL) /* between jobs there are no peers */
        return false;
    /* another thread of this rank may have published another core meanwhile; the next move tells */
    if (self->core != (uint16_t)(number + 1)) {
        aq_contention_publish((uint16_t)(number + 1));
        self->shared_since = 0;
    }
    if (self->unneeded != 0) {
        self->unneeded--;
        return false;
    }
    self->peers = aq_contention_count_peers(self->core);
    if (self->peers == 0)
        self->shared_since = 0;
    return self->peers != 0;
}

/* --- moving to another core --- */

/* The cores that this thread may use and no rank of this host has published. */
static bool aq_contention_free_cores(const cpu_set_t *allowed, cpu_set_t *free_out)
{
    const struct aq_spawn_info *info = aq_spawn_info();
    const _Atomic uint16_t *cores = aq_contention_cores();

    *free_out = *allowed;
    for (uint32_t i = 0; i < info->host_size; i++) {
        const uint16_t core = atomic_load_explicit(&cores[i], memory_order_relaxed);

        if (core != 0 && core <= CPU_SETSIZE)
            CPU_CLR(core - 1, free_out);
    }
    return CPU_COUNT(free_out) != 0;
}

/* The number of the nth core of a set, counted from 0. */
static int aq_contention_nth(const cpu_set_t *set, uint32_t n)
{
    int number = -1;

    do {
        do
            number++;
        while (!CPU_ISSET(number, set));
    } while (n-- != 0);
    return number;
}

/* Of the ranks on a core the last one moves first: if all did, they would meet again. */
static bool aq_contention_is_last(void)
{
    const struct aq_spawn_info *info = aq_spawn_info();
    const _Atomic uint16_t *cores = aq_contention_cores();

    for (uint32_t i = info->host_rank + 1; i < info->host_size; i++)
        if (atomic_load_explicit(&cores[i], memory_order_relaxed) == aq_contention_self.core)
            return false;
    return true;
}

/* Moves to a free core, if there is one; the scheduler may bring the thread back later. */
static bool aq_contention_move_now(void)
{
    cpu_set_t allowed, others, one;
    int number;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2
        || !aq_contention_free_cores(&allowed, &others))
        return false;
    number = aq_contention_nth(&others, aq_spawn_info()->host_rank % (uint32_t)CPU_COUNT(&others));
    CPU_ZERO(&one);
    CPU_SET(number, &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0)
        return false;
    if (sched_setaffinity(0, sizeof(allowed), &allowed) != 0) /* they were taken away meanwhile */
        aq_warn("a thread stays on core %d, the others are forbidden now: %s", number,
                strerror(errno));
    aq_contention_publish((uint16_t)(number + 1));
    return true;
}

/* All ranks on the core but the last leave it to that one to move, while sharing has just begun. */
static bool aq_contention_may_move(const struct aq_contention *self, uint64_t now, bool last)
{
    return last || now - self->shared_since >= AQ_MOVE_LATER_NS;
}

bool aq_contention_move(void)
{
    struct aq_contention *self = &aq_contention_self;
    const uint64_t now = aq_now_ns();
    bool last;

    if (self->shared_since == 0)
        self->shared_since = now;
    if (now < self->no_move_until)
        return false;
    last = aq_contention_is_last();
    if (!aq_contention_may_move(self, now, last)) {
        self->no_move_until = MIN(self->shared_since + AQ_MOVE_LATER_NS, now + AQ_MOVE_NS);
        return false;
    }
    if (!aq_contention_move_now()) {
        self->no_move_until = now + AQ_MOVE_NOWHERE_NS;
        return false;
    }
    self->no_move_until = now + (last ? AQ_MOVE_NS : AQ_MOVE_LATER_NS);
    self->shared_since = 0;
    self->peers = 0;
    return true;
}

/* For how long a wait spins first beyond the polls that an answer in shared memory takes. */
static uint64_t aq_contention_spin_ns(void)
{
    if (!aq_contention_yields_well())
        return AQ_SPIN_NS;
    return aq_job.has_remote ? AQ_SPIN_NETWORK_NS : 0;
}

bool aq_contention_stays(void)
{
    return !aq_contention_is_crowd() && ++aq_contention_self.stays % AQ_STAYS_MAX != 0;
}

bool aq_contention_spins_first(void)
{
    struct aq_contention *self = &aq_contention_self;
    const uint64_t ns = aq_contention_spin_ns();

    if (!aq_contention_stays() || (self->spin_luck == 0 && ++self->spin_waits % AQ_SPIN_TRIAL != 0))
        return false;
    self->spin_until = ns == 0 ? 0 : aq_now_ns() + ns;
    return true;
}

bool aq_contention_spins_on(void)
{
    const struct aq_contention *self = &aq_contention_self;

    return self->spin_until != 0 && aq_now_ns() < self->spin_until;
}

void aq_contention_note_spin(bool answered)
{
    struct aq_contention *self = &aq_contention_self;

    if (answered)
        self->spin_luck = MIN(self->spin_luck + AQ_SPIN_GAIN, AQ_SPIN_LUCK_MAX);
    else
        self->spin_luck -= MIN(self->spin_luck, self->spin_until == 0 ? 1 : AQ_SPIN_GAIN);
}

void aq_contention_retire(void)
{
    if (aq_spawn_jobarea() != NULL)
        aq_contention_publish(0);
}

/* Nobody took the core: look less often, since peers asleep or gone look like this again. */
static void aq_contention_note_nobody(struct aq_contention *self)
{
    self->backoff = self->backoff == 0 ? 1 : MIN(2 * self->backoff, AQ_LOOKS_LEFT_OUT);
    self->unneeded = self->backoff;
    self->peers = 0;
}

/* One slow yield in many is a period that any program may lose. */
static void aq_contention_note_slow(struct aq_contention *self, uint64_t now, uint64_t took)
{
    self->slow += AQ_SLOW_WEIGHT;
    if (self->slow < AQ_SLOW_MANY)
        return;
    self->slow = AQ_SLOW_MANY - AQ_SLOW_WEIGHT; /* the next yield decides */
    self->pause = MIN(MAX(2 * self->pause, AQ_PAUSE_MIN), AQ_PAUSE_MAX);
    self->slow_until = now + self->pause * took / AQ_PAUSE_UNIT;
}

uint64_t aq_contention_yield(void)
{
    const uint64_t began = aq_now_ns();

    sched_yield();
    return aq_now_ns() - began;
}

static uint64_t aq_contention_slow_ns(void)
{
    const uint64_t chain =
        AQ_SLOW_YIELD_NS + (uint64_t)AQ_SLOW_RANK_NS * aq_contention_ranks_per_core;

    return MIN(chain, AQ_SLOW_MAX_NS);
}

void aq_contention_judge(uint64_t took, unsigned served)
{
    struct aq_contention *self = &aq_contention_self;

    if (took / (1 + served) >= aq_contention_slow_ns()) {
        aq_contention_note_slow(self, aq_now_ns(), took);
        return;
    }
    self->slow_until = 0;
    self->slow -= self->slow != 0;
    self->pause -= self->pause != 0;
    if (self->min_ns == 0 || took < self->min_ns)
        self->min_ns = (uint32_t)took;
    if (took < AQ_YIELD_TO_NOBODY * (uint64_t)self->min_ns)
        aq_contention_note_nobody(self);
    else
        self->backoff = 0;
}

void aq_contention_declined(void)
{
    const struct timespec pause = { .tv_nsec = AQ_DECLINED_NS };

    if (aq_contention_yields_well())
        aq_contention_judge(aq_contention_yield(), 0);
    else
        nanosleep(&pause, NULL);
}

bool aq_contention_yields_well(void)
{
    return aq_contention_self.slow_until == 0 || aq_now_ns() >= aq_contention_self.slow_until;
}
