/*
 * sleep.pml - sleeping and waking of a rank: core/aq_wait.c, conduits/smp/aq_shm_sleep.c.
 *
 * THREADS of one rank wait until all messages are handled, the first of two only for one; each handles what it finds. WAKERS, other ranks, send
 * MESSAGES each through shared memory, and wake who has announced sleep. With LISTENER the rank has sockets: one sleeper
 * waits for its own socket, where wakers send a byte, and for the network's, where DATAGRAMS come; others wait on the
 * wake-up count.
 *
 * Memory is that of a processor with store buffers: what a process has stored reaches the others later, in order, at the
 * latest with its next atomic read-modify-write. A waker stores, then loads the count of sleepers: nothing orders the
 * two but membarrier(), by which the sleeper has every process's stores written out. No sleep has a limit here.
 *
 * Checked: no process sleeps for ever, which is an invalid end state. Variants that must fail:
 * NO_MEMBARRIER    the sleeper does without
 * NO_LAST_LOOK     it does not look once more after it has announced itself
 * COUNT_LATE       it reads the wake-up count only after that look
 * LISTENER_FIRST   a waker looks for a listener before it raises the count
 * ANNOUNCE_LATE    a listener reads the count before it announces itself
 * ALONE            a listener that wakes does not wake the others
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef THREADS
#define THREADS 1
#endif
#ifndef WAKERS
#define WAKERS 1
#endif
#ifndef MESSAGES
#define MESSAGES 1
#endif
#ifndef DATAGRAMS
#define DATAGRAMS 0
#endif
#define ALL (WAKERS * MESSAGES + DATAGRAMS)

byte sent[WAKERS];        /* messages that are visible */
byte sent_later[WAKERS];  /* in the sender's store buffer */
byte taken[WAKERS];
byte datagrams;           /* in the network's socket */
byte handled;             /* of all messages, visible */
byte handled_later[THREADS];

byte sleeping;            /* threads that have announced sleep */
byte wakeup;              /* the count: a futex */
bool listening;           /* wakers are to send a byte */
bool listens;             /* some thread is the listener */
byte clears_later[THREADS]; /* in a listener's store buffer: 2 both flags, 1 the second one */
bool on_futex[THREADS];
bool rung;                /* a byte is in the listener's socket */

/* --- store buffers --- */

inline write_out_clears(me)
{
    if
    :: clears_later[me] == 2 -> listening = false; clears_later[me] = 1
    :: clears_later[me] == 1 -> listens = false; clears_later[me] = 0
    fi
}

inline write_out_thread(me)
{
    do
    :: clears_later[me] != 0 -> write_out_clears(me)
    :: else -> break
    od;
    handled = handled + handled_later[me];
    handled_later[me] = 0
}

inline write_out_waker(me)
{
    sent[me] = sent[me] + sent_later[me];
    sent_later[me] = 0
}

/* Time passes: a store becomes visible. */
proctype stores_of_thread(byte me)
{
end_quiet:
    do
    :: atomic { clears_later[me] != 0 -> write_out_clears(me) }
    :: atomic { handled_later[me] != 0 -> handled_later[me]--; handled++ }
    od
}

proctype stores_of_waker(byte me)
{
end_quiet:
    do
    :: atomic { sent_later[me] != 0 -> sent_later[me]--; sent[me]++ }
    od
}

/* --- waking: aq_shm_wake() --- */

inline wake_all_on_futex()
{
    i = 0;
    do
    :: i < THREADS -> on_futex[i] = false; i++
    :: else -> break
    od;
    i = 0
}

/* The count is raised by an atomic instruction, before which its process's stores are written out. */
#ifdef LISTENER_FIRST
#define LOOK_BEFORE seen = listening
#define LOOK_AFTER  skip
#else
#define LOOK_BEFORE skip
#define LOOK_AFTER  seen = listening
#endif

inline wake_raised()
{
    atomic { wake_all_on_futex() };
    LOOK_AFTER;
    if
    :: seen -> rung = true
    :: else
    fi
}

inline wake_by_waker(me)
{
    LOOK_BEFORE;
    atomic { write_out_waker(me); wakeup++ };
    wake_raised()
}

inline wake_by_thread(me)
{
    LOOK_BEFORE;
    atomic { write_out_thread(me); wakeup++ };
    wake_raised()
}

proctype waker(byte me)
{
    byte k, i;
    bool seen;

    do
    :: k < MESSAGES ->
        k++;
        sent_later[me]++;
        if
        :: sleeping != 0 -> wake_by_waker(me)
        :: else
        fi
    :: else -> break
    od
}

#if DATAGRAMS
/* The kernel's sockets are no store buffer's business. */
proctype network()
{
    byte k;

    do
    :: k < DATAGRAMS -> k++; datagrams++
    :: else -> break
    od
}
#endif

/* --- a thread of the rank --- */

inline membarrier()
{
    i = 0;
    do
    :: atomic { i < WAKERS -> write_out_waker(i); i++ }
    :: else -> break
    od;
    i = 0;
    do
    :: atomic { i < THREADS -> write_out_thread(i); i++ }
    :: atomic { else -> i = 0; break }
    od
}

/* One poll: a message, if there is one; its handler has run, and sleepers of this rank that may have waited for that are
 * woken: aq_poll_notify(). */
inline poll(me)
{
    atomic {
        got = false;
        i = 0;
        do
        :: i < WAKERS && !got -> if
            :: taken[i] < sent[i] -> taken[i]++; got = true
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = 0;
        if
        :: !got && datagrams != 0 -> datagrams--; got = true
        :: else
        fi
    };
    if
    :: got ->
        handled_later[me]++;
#if THREADS > 1
        if
        :: sleeping != 0 -> wake_by_thread(me)
        :: else
        fi
#endif
    :: else
    fi
}

inline sleep_on_futex(me)
{
    atomic {
        if
        :: wakeup == count -> on_futex[me] = true
        :: else
        fi
    };
    !on_futex[me]
}

/* aq_sleep_listen() */
inline sleep_listening(me)
{
#ifdef ANNOUNCE_LATE
    seen = (wakeup == count);
    atomic { write_out_thread(me); listening = true };
#else
    atomic { write_out_thread(me); listening = true };
    seen = (wakeup == count);
#endif
    if
    :: seen -> (rung || datagrams != 0); rung = false
    :: else
    fi;
    atomic { clears_later[me] == 0 -> clears_later[me] = 2 };
#ifndef ALONE
    if
    :: sleeping > 1 -> atomic { write_out_thread(me); wakeup++ }; atomic { wake_all_on_futex() }
    :: else
    fi
#endif
}

inline sleep(me)
{
#ifdef LISTENER
    atomic { write_out_thread(me); seen = listens; listens = true };
    if
    :: seen -> sleep_on_futex(me)
    :: else -> sleep_listening(me)
    fi
#else
    sleep_on_futex(me)
#endif
}

/* Thread 0 waits for the first message only, and leaves the library. */
#if THREADS > 1
#define GOAL(me) (me == 0 -> 1 : ALL)
#else
#define GOAL(me) ALL
#endif
#define DONE(me) (handled + handled_later[me] >= GOAL(me))

proctype thread(byte me)
{
    byte count, i;
    bool got, seen;

    do
    :: DONE(me) -> break
    :: else ->
        poll(me);
        if
        :: got || DONE(me) -> skip
        :: else ->
#ifndef COUNT_LATE
            count = wakeup;
#endif
            atomic { write_out_thread(me); sleeping++ };
#ifndef NO_MEMBARRIER
            membarrier();
#endif
#ifndef NO_LAST_LOOK
            poll(me);
#endif
#ifdef COUNT_LATE
            count = wakeup;
#endif
            if
            :: got || DONE(me) -> skip
            :: else -> sleep(me)
            fi;
            atomic { write_out_thread(me); sleeping-- }
        fi
    od
}

init
{
    byte i;

    atomic {
        i = 0;
        do
        :: i < WAKERS -> run waker(i); run stores_of_waker(i); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < THREADS -> run thread(i); run stores_of_thread(i); i++
        :: else -> break
        od;
#if DATAGRAMS
        run network()
#endif
    }
}
