/*
 * aq_contention.h - who else wants the core that this thread runs on, and what giving way costs.
 *
 * Each rank publishes its core in the job area, in looks that only polls in vain make. A rank of
 * this host on the same core cannot run while this one polls, so polling for its answer is in vain.
 * Yielding the core lets it run; but where other programs have work too, the scheduler may give
 * them a whole period first, and then sleeping is better: a sleeper comes back as soon as it is
 * woken. Where two peers that talk happen to run at the same time, each on a core that it shares
 * with others, they answer each other in less time than a yield takes: spinning first pays as long
 * as it lasts.
 *
 * Owns      each thread's view: whether a peer shares its core, whether yields are slow,
 *           whether spinning pays nevertheless. What ranks publish is the job area's
 * Threads   any; a rank's threads publish in one place, the last one counts
 * Promise   hints only: nothing but time depends on what is published here
 * Uses      the job area. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_CONTENTION_H
#define AQ_CONTENTION_H

#include <stdbool.h>
#include <stdint.h>

#define AQ_CROWD 4u

struct aq_contention {
    uint32_t peers;         /* that the last look found on this core; AQ_CROWD: so many or more */
    uint16_t core;          /* published: number + 1 */
    uint32_t unneeded;      /* looks that are still left out, since nobody took the core */
    uint32_t backoff;       /* how many were left out the last time */
    uint32_t spin_luck;     /* of waits that spun first on a shared core, many were answered */
    uint32_t spin_waits;    /* that were begun without such luck */
    uint32_t stays;         /* messages that came on a shared core while it did not give way */
    uint64_t spin_until;    /* the end of the present one, 0: none */
    uint32_t min_ns;        /* of a yield: what it takes if nobody else is there; 0: not known */
    uint32_t slow;          /* slow yields of late, weighed against fast ones */
    uint32_t pause;         /* how long they were left out, in eighths of what the last one took;
                             * each fast one counts it down */
    uint64_t slow_until;    /* until then yields are taken for slow; 0: they are not */
    uint64_t shared_since;  /* the first of the looks in a row that found a peer here; 0: none */
    uint64_t no_move_until; /* until then this thread does not move to another core */
};
extern _Thread_local struct aq_contention aq_contention_self
    __attribute__((tls_model("initial-exec")));

/* The ranks of this host for each core, rounded down; set as the job starts. */
extern unsigned aq_contention_ranks_per_core;

/* Did the last look of this thread find a peer on its core? */
static inline bool aq_contention_was_shared(void)
{
    return aq_contention_self.peers != 0;
}

/* Where a rank has waited the last time, as seen from this thread's core. */
enum aq_contention_place {
    AQ_PLACE_UNKNOWN, /* it has not waited, or for long, or the job has several hosts */
    AQ_PLACE_OWN_CORE,
    AQ_PLACE_OTHER_CORE
};
enum aq_contention_place aq_contention_place_of(uint32_t jobrank);

/* This core is shared. May a peer that runs on another core at this moment answer a wait sooner
 * than giving way would? So it was of late, or this wait is one of those that find out. */
bool aq_contention_spins_first(void);

/* Such a wait has spun for as long as an answer in shared memory takes. Over a network it spins for
 * longer, and where giving way means to sleep for as long as a wake-up and an answer take. */
bool aq_contention_spins_on(void);

/* May this thread, whose core is shared, stay since messages come? Not in a crowd, and not always:
 * a peer that waits for the core may be the one whose message is missing. */
bool aq_contention_stays(void);

/* Learn from its end. */
void aq_contention_note_spin(bool answered);

/* So many that a yield brings messages whatever it takes? */
static inline bool aq_contention_is_crowd(void)
{
    return aq_contention_self.peers >= AQ_CROWD;
}

/* Publish this thread's core. Does a rank of this host want the same one? */
bool aq_contention_look(void);

/* A look has found a peer on this core. Is there a core that this thread may use and that no rank
 * of this host has published? Then moves there, not often, and returns true. The thread's affinity
 * is what it was afterwards. Test: tests/unit/test_contention.c. */
bool aq_contention_move(void);

/* This rank has waited for long and is asleep: nobody need give way to it. */
void aq_contention_retire(void);

/* Give the core to whoever waits for it. Returns how long that took, ns. */
uint64_t aq_contention_yield(void);

/* Learn from a yield that took so long, after which a poll served so many messages. */
void aq_contention_judge(uint64_t took, unsigned served);

/* A message has found no credit: lets the peer that returns credit run, if it shares this core. */
void aq_contention_declined(void);

/* Does a yield return soon, as far as this thread knows? If not, sleep instead. */
bool aq_contention_yields_well(void);

#endif
