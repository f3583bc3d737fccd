/*
 * sleep_barrier.pml - wake-ups in a barrier of shared memory: conduits/smp/aq_shm_barrier.c, aq_shm_sleep.c.
 *
 * RANKS ranks enter a phase by a store each, and test whether any rank sleeps. Only then they fence and scan
 * all words; who finds that all have arrived wakes all sleepers. The others scan, announce sleep, scan again, sleep.
 * With LEADER the last rank arrives after all others have, which have to wake it for that.
 *
 * Store buffers and membarrier() are as in sleep.pml.
 *
 * Checked: no rank sleeps for ever. Variants that must fail:
 * NO_MEMBARRIER  a sleeper does without
 * NO_FENCE       who arrives scans without a fence before
 * LEADER_SLEEPS  the leader is not woken
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef RANKS
#define RANKS 3
#endif

bool arrived[RANKS];
bool arrives_later[RANKS]; /* in its store buffer */
byte sleepers;             /* announced, over all ranks */
bool sleeping[RANKS];
byte wakeup[RANKS];
bool on_futex[RANKS];

#define SEES(me, i) (arrived[i] || (i == me && arrives_later[i]))

inline fence(me)
{
    if
    :: arrives_later[me] -> arrives_later[me] = false; arrived[me] = true
    :: else
    fi
}

proctype stores(byte me)
{
end_quiet:
    do
    :: atomic { arrives_later[me] -> arrives_later[me] = false; arrived[me] = true }
    od
}

/* all: the first n have arrived, as this rank sees it. One word after the other. */
inline scan(me, n)
{
    i = 0;
    all = true;
    do
    :: i < n && all -> all = SEES(me, i); i++
    :: else -> break
    od;
    i = 0
}

inline wake(who)
{
    atomic { wakeup[who]++; on_futex[who] = false }
}

inline announce(me)
{
    if
    :: sleepers != 0 ->
#ifndef NO_FENCE
        atomic { fence(me) };
#endif
        scan(me, RANKS);
        if
        :: all ->
            j = 0;
            do
            :: j < RANKS ->
                if
                :: j != me && sleeping[j] -> atomic { fence(me) }; wake(j)
                :: else
                fi;
                j++
            :: else -> j = 0; break
            od
        :: else
        fi
    :: else
    fi
}

/* aq_shm_barrier_wake_leader() */
inline announce_to_leader(me)
{
    if
    :: me != RANKS - 1 && sleepers != 0 ->
        atomic { fence(me) };
        scan(me, RANKS - 1);
        if
        :: all && !arrived[RANKS - 1] -> wake(RANKS - 1)
        :: else
        fi
    :: else
    fi
}

inline membarrier()
{
    i = 0;
    do
    :: atomic { i < RANKS -> fence(i); i++ }
    :: else -> break
    od;
    i = 0
}

/* Until the first n have arrived. */
inline wait_for(me, n)
{
    do
    :: true ->
        scan(me, n);
        if
        :: all -> break
        :: else
        fi;
        count = wakeup[me];
        atomic { fence(me); sleeping[me] = true };
        sleepers++;
#ifndef NO_MEMBARRIER
        membarrier();
#endif
        scan(me, n);
        if
        :: !all ->
            atomic {
                if
                :: wakeup[me] == count -> on_futex[me] = true
                :: else
                fi
            };
            !on_futex[me]
        :: else
        fi;
        atomic { fence(me); sleeping[me] = false };
        sleepers--
    od
}

proctype rank(byte me)
{
    byte count, i, j;
    bool all;

#ifdef LEADER
    if
    :: me == RANKS - 1 -> wait_for(me, RANKS - 1)
    :: else
    fi;
#endif
    arrives_later[me] = true;
    announce(me);
#ifdef LEADER
#ifndef LEADER_SLEEPS
    announce_to_leader(me);
#endif
#endif
    wait_for(me, RANKS)
}

init
{
    byte i;

    atomic {
        i = 0;
        do
        :: i < RANKS -> run rank(i); run stores(i); i++
        :: else -> break
        od
    }
}
