/*
 * ibv_hello.pml - how two ranks agree on a connection of the ibv conduit: conduits/ibv/aq_ibv_hello.h.
 *
 * Each side is at NONE, ASK (its queue pairs are made), HAVE (it knows the other's, and receives on its own) or READY
 * (it knows that the other receives). A packet says how far its sender is. ASK and HAVE are answered and repeated.
 *
 * The network is a set of packets for each side: it delivers any of them at any time; it may deliver one again and again
 * (DUPLICATES), and lose LOSSES of them, or any number if that is not defined. One side begins; with BOTH the other one
 * may, too, at any time. A rank below READY may send again at any time, which covers every rule for retransmission.
 *
 * Checked: the peer of a rank that is READY receives, and no rank returns to an earlier step; with LOSSES, under weak fairness, both
 * get to READY. Variants that must fail: EAGER sends messages as soon as it knows the other's queue pairs; MUTE does not
 * answer HAVE once it is READY.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define NONE 0
#define ASK 1
#define HAVE 2
#define READY 3

/* With LOSSES a side takes what has come before it repeats itself, as the connector does: fairness among the choices of one
 * process is nothing that spin knows of. */
#ifdef LOSSES
#define PATIENT(me) (!net[4 * me + ASK] && !net[4 * me + HAVE] && !net[4 * me + READY])
#else
#define PATIENT(me) true
#endif

byte step[2];
bool receives[2]; /* its queue pairs are joined */
bool sends[2];    /* messages may leave */
bool net[8];      /* [4 * to + step]: such a packet is under way */
#ifdef LOSSES
byte lost;
#endif

inline answer(me)
{
    net[4 * (1 - me) + step[me]] = true
}

/* Joining comes before the step is told. */
inline take(me, told)
{
    if
    :: step[me] <= ASK -> receives[me] = true; step[me] = HAVE
    :: else
    fi;
    if
    :: told != ASK && step[me] < READY -> step[me] = READY
    :: else
    fi;
#ifdef EAGER
    sends[me] = true;
    assert(receives[1 - me]);
#else
    if
    :: step[me] == READY -> sends[me] = true; assert(receives[1 - me])
    :: else
    fi;
#endif
#ifdef MUTE
    if
    :: told == ASK || (told == HAVE && step[me] < READY) -> answer(me)
    :: else
    fi
#else
    if
    :: told != READY -> answer(me)
    :: else
    fi
#endif
}

/* One side: it gets what the network has for it, and repeats itself. */
proctype side(byte me)
{
    byte told;

    do
    :: step[me] != NONE && step[me] != READY && !net[4 * (1 - me) + step[me]] && PATIENT(me) -> answer(me)
    :: atomic { net[4 * me + ASK] -> told = ASK; net[4 * me + ASK] = false; take(me, told) }
    :: atomic { net[4 * me + HAVE] -> told = HAVE; net[4 * me + HAVE] = false; take(me, told) }
    :: atomic { net[4 * me + READY] -> told = READY; net[4 * me + READY] = false; take(me, told) }
#ifdef DUPLICATES
    :: atomic { net[4 * me + ASK] -> told = ASK; take(me, told) }
    :: atomic { net[4 * me + HAVE] -> told = HAVE; take(me, told) }
    :: atomic { net[4 * me + READY] -> told = READY; take(me, told) }
#endif
    :: step[0] == READY && step[1] == READY && !net[1] && !net[2] && !net[3] && !net[5] && !net[6] && !net[7] -> break
    od
}

proctype network()
{
end_network:
    do
#ifdef LOSSES
    :: atomic { lost < LOSSES && net[1] -> net[1] = false; lost++ }
    :: atomic { lost < LOSSES && net[2] -> net[2] = false; lost++ }
    :: atomic { lost < LOSSES && net[3] -> net[3] = false; lost++ }
    :: atomic { lost < LOSSES && net[5] -> net[5] = false; lost++ }
    :: atomic { lost < LOSSES && net[6] -> net[6] = false; lost++ }
    :: atomic { lost < LOSSES && net[7] -> net[7] = false; lost++ }
#else
    :: net[1] -> net[1] = false
    :: net[2] -> net[2] = false
    :: net[3] -> net[3] = false
    :: net[5] -> net[5] = false
    :: net[6] -> net[6] = false
    :: net[7] -> net[7] = false
#endif
    od
}

#ifdef BOTH
/* The other rank's client sends at some time; or it has been connected before it does. */
proctype client()
{
    atomic {
        if
        :: step[1] == NONE -> step[1] = ASK
        :: step[1] != NONE
        fi
    }
}
#endif

init
{
    atomic {
        step[0] = ASK;
        run side(0);
        run side(1);
#ifdef BOTH
        run client();
#endif
        run network()
    }
}

#ifdef PROGRESS
ltl agreed { <>(step[0] == READY && step[1] == READY && sends[0] && sends[1]) }
#endif
