/*
 * mutex.pml - sleep and wake-up at a mutex of ARMCI: runtimes/armci/armci_mutex_part.c.
 *
 * RANKS ranks that map the mutex take and release it, the first ROUNDS times, the others OTHERS
 * times. They sleep on a futex, for a limited time after a wake-up. REMOTES ranks of other hosts, for
 * which a handler acts, wait in a queue. A rank that releases the mutex again and again does so
 * quietly: it relies on the sleeper that it woke, which looks again by itself, and looks at the time
 * afterwards. All changes of the word are compare-and-swaps; the queue is under a lock.
 *
 * A signal ends one sleep. The look at the time after a quiet release may find that it was late, at
 * any time, and wakes a sleeper then.
 *
 * Time passes in ticks. A sleep of limited time lasts for a tick at least; the longest sleep, which
 * only keeps a defect from lasting for ever, has no end here.
 *
 * Checked: two never hold the mutex, and no rank waits for ever.
 * Variants that must fail:
 * QUIET_ALWAYS   a quiet release whether there was a wake-up or not, no look at the time after it
 * NO_LOOK        no look at the time after a quiet release
 * WOKE_NOBODY    a quiet release also after a wake-up that has ended no sleep
 * LONG_AGAIN     no limited sleep after a wake-up
 * SIGNAL_LONG    no limited sleep after one that a signal has ended
 * LATE_LONG      no limited sleep after an attempt that came too late to sleep
 * FREE_FOR_QUEUE the mutex is made free for the queue, too
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef REMOTES
#define REMOTES 0
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef OTHERS
#define OTHERS ROUNDS
#endif
#if REMOTES > 3
#error "the queue has space for 3"
#endif
#ifndef TICKS
#define TICKS 3
#endif
#define NOBODY 255

bool locked, sleepers, queue; /* the word */
byte turn, contenders;
byte woken = NOBODY; /* the tick of a wake-up whose sleeper has not taken the mutex yet */
byte waker = NOBODY; /* whose wake-up this was */
bool slept;          /* the last turn went to a contender */
bool part_lock;
bool interrupts = true; /* the signal has not come yet */
byte now;
byte holders;
bool on_futex[RANKS];
bool granted[RANKS + REMOTES]; /* a hand-off to a rank of the queue */
chan waiting = [3] of { byte };

/* One sleeper at the most, any. */
inline futex_wake()
{
    woke = true;
    if
    :: on_futex[0] -> on_futex[0] = false
#if RANKS > 1
    :: on_futex[1] -> on_futex[1] = false
#endif
#if RANKS > 2
    :: on_futex[2] -> on_futex[2] = false
#endif
    :: else -> woke = false
    fi
}

inline enter()
{
    holders++;
    assert(holders == 1)
}

/* aq_armci_mutex_take(); the spins are the first look. */
inline take(me)
{
    atomic {
        taken = !locked;
        if
        :: taken -> locked = true
        :: else
        fi
    };
    if
    :: !taken ->
        contenders++;
        limited = false;
        do
        :: true ->
            seen = turn;
            atomic {
                if
                :: !locked ->
                    locked = true;
                    taken = true;
                    sleepers = true
                :: else
                fi
            };
            if
            :: taken -> break
            :: else
            fi;
            atomic { /* the mark; again if the mutex is free now */
                if
                :: locked -> sleepers = true; marked = true
                :: else -> marked = false
                fi
            };
            if
            :: marked ->
                began = now;
                atomic {
                    if
                    :: turn == seen -> on_futex[me] = true; asleep = true
                    :: else -> asleep = false
                    fi
                };
                if
#ifdef LATE_LONG
                :: !on_futex[me] -> limited = asleep
#else
                :: !on_futex[me] -> limited = limited || asleep
#endif
                :: atomic { interrupts && on_futex[me] -> on_futex[me] = false; interrupts = false };
#ifdef SIGNAL_LONG
                    limited = false
#endif
                :: atomic { limited && on_futex[me] && (now > began || now == TICKS) ->
                            on_futex[me] = false; limited = false }
                fi;
#ifdef LONG_AGAIN
                limited = false
#endif
            :: else
            fi
        od;
        woken = NOBODY;
        contenders--
    :: else
    fi
}

inline wake_sleeper()
{
    any = contenders > 0;
    woken = (any -> now : NOBODY);
    waker = me;
    relies = false;
    atomic { holders--; locked = false; sleepers = sleepers && any };
    turn = (turn + 1) % 8;
    atomic { futex_wake() };
#ifdef WOKE_NOBODY
    relies = any
#else
    relies = any && woke
#endif
}

/* give(), by a rank or, for a remote one, by a handler */
inline give()
{
    gave = false;
    atomic {
        if
        :: !sleepers && !queue -> holders--; locked = false; gave = true
        :: else
        fi
    };
    if
    :: !gave ->
        before = woken;
        if /* what a rank remembers of its last release only saves time */
        :: again = true
        :: again = false
        fi;
#ifndef QUIET_ALWAYS
        again = again && relies && before != NOBODY && waker == me;
#endif
        atomic {
            if
            :: again && sleepers && !queue -> holders--; locked = false; gave = true
            :: else
            fi
        };
#if !defined(NO_LOOK) && !defined(QUIET_ALWAYS)
        if
        :: gave -> turn = (turn + 1) % 8; atomic { futex_wake() }
        :: !gave || (now == before && now != TICKS)
        fi
#endif
    :: else
    fi;
    if
    :: !gave ->
        atomic { !part_lock -> part_lock = true };
        if
#ifdef FREE_FOR_QUEUE
        :: true -> wake_sleeper()
#else
        :: !queue || (contenders > 0 && !slept) -> slept = true; wake_sleeper()
        :: else ->
            slept = false;
            waiting ? next;
            if
            :: empty(waiting) -> queue = false
            :: nempty(waiting)
            fi;
            atomic { holders--; granted[next] = true }
#endif
        fi;
        part_lock = false
    :: else
    fi
}

proctype rank(byte me)
{
    byte round, seen, began, next, before;
    bool taken, marked, asleep, limited, gave, again, any, woke;
    bool relies; /* the last wake-up of this rank has ended a sleep */

    do
    :: round < (me == 0 -> ROUNDS : OTHERS) ->
        take(me);
        enter();
        give();
        round++
    :: else -> break
    od
}

/* A rank of another host, and the handler that acts for it. */
proctype remote(byte me)
{
    byte round, next, before;
    bool taken, gave, again, any, woke, relies;

    do
    :: round < OTHERS ->
        atomic { !part_lock -> part_lock = true };
        atomic {
            taken = !locked;
            if
            :: taken -> locked = true
            :: else -> queue = true
            fi
        };
        if
        :: !taken -> waiting ! me
        :: else
        fi;
        part_lock = false;
        if
        :: !taken -> atomic { granted[me] -> granted[me] = false }
        :: else
        fi;
        enter();
        give();
        round++
    :: else -> break
    od
}

active proctype clock()
{
end_of_time:
    do
    :: now < TICKS -> now++
    :: else -> break
    od
}

init
{
    byte i;

    atomic {
        i = 0;
        do
        :: i < RANKS -> run rank(i); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < REMOTES -> run remote(RANKS + i); i++
        :: else -> break
        od
    }
}
