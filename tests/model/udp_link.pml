/*
 * udp_link.pml - one channel between two ranks over a network that loses, repeats and reorders.
 *
 * The sender may have WINDOW frames that are not acknowledged, in a ring of WINDOW slots for sending again. The
 * receiver hands a frame over when it comes, in no order: it claims the frame's bit in a ring of bits, so that
 * it is new once, places the data, which takes a while, and acknowledges what is placed: all
 * below a number, and a bitmap of what is above. It may refuse a frame, which then is as if lost.
 * FRAMES frames are sent, more than the rings hold.
 *
 * The network is a set of frames and two slots of acknowledgements: it delivers any of them at any time, any
 * number of times, and may lose LOSSES datagrams, or any number if that is not defined. The sender may send
 * again whatever it does not know to have arrived, whenever it likes: that covers every rule for when to.
 *
 * Checked: each frame is handed over once, undamaged, and acknowledged only when it is placed, whatever happens;
 * and with LOSSES, under weak fairness, everything is placed and the sender knows. Variants that must
 * fail: ACK_REFUSED acknowledges what was refused, ACK_CLAIMED what is not placed yet, WINDOW_LONG sends
 * one frame more than the receiver's ring of bits tells apart, SACK_FREES frees a slot by a selective acknowledgement
 * while older ones are open.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef WINDOW
#define WINDOW 2
#endif
#ifndef FRAMES
#define FRAMES 4
#endif
#define NOTHING 255

#ifdef WINDOW_LONG
#define SLOTS (WINDOW + 1)
#else
#define SLOTS WINDOW
#endif

/* sender */
byte next;                /* number of the next new frame */
byte acked;               /* all below have arrived */
byte sacked;              /* bits of those above that have */
byte ring[SLOTS];         /* what each slot holds */

/* receiver: numbers below `below` are placed; bits by number % WINDOW are of those above */
byte below;
bool claimed[WINDOW], placed[WINDOW];
byte handed[FRAMES];      /* how often each was handed over */
bool there[FRAMES];       /* it is placed */

/* network */
byte flying[FRAMES] = NOTHING;  /* content of the frame on its way */
bool ack_used[2];
byte ack_below[2], ack_early[2];

#ifdef LOSSES
byte losses = LOSSES;
#define MAY_LOSE (losses > 0)
#define LOST losses--
#else
#define MAY_LOSE true
#define LOST skip
#endif

#define BIT(n) (1 << (n))

#ifdef SACK_FREES
#define SENDER_ROOM (next - acked - (sacked != 0 -> 1 : 0) < SLOTS)
#else
#define SENDER_ROOM (next - acked < SLOTS)
#endif

#ifdef ACK_CLAIMED
#define ARRIVED claimed
#else
#define ARRIVED placed
#endif

/* New frames, while there is room. */
active proctype Sender()
{
    do
    :: d_step { next < FRAMES && SENDER_ROOM ->
        ring[next % SLOTS] = next;
        flying[next] = next;
        next++ }
    :: next == FRAMES -> break
    od;
    acked == FRAMES
}

/* Sends frame n again, as long as it is not known to have arrived. */
proctype Timer(byte n)
{
end_acked:
    do
    :: d_step { next > n && acked <= n && !(sacked & BIT(n)) && flying[n] == NOTHING ->
        assert(ring[n % SLOTS] == n);
        flying[n] = ring[n % SLOTS] }
    :: acked > n || (sacked & BIT(n)) -> break
    od
}

byte k;   /* for d_steps, 0 between them */

/* An acknowledgement with all there is to tell, in a free slot; or in place of an older one, which is lost. */
inline acknowledge(s)
{
    ack_used[s] = true;
    ack_below[s] = below;
    ack_early[s] = 0;
    k = below;
    do
    :: k < FRAMES && k < below + WINDOW ->
        if
        :: ARRIVED[k % WINDOW] -> ack_early[s] = ack_early[s] | BIT(k)
        :: else
        fi;
        k++
    :: else -> break
    od;
    k = 0
}

inline advance()
{
    do
    :: ARRIVED[below % WINDOW] ->
        placed[below % WINDOW] = false; claimed[below % WINDOW] = false; below++
    :: else -> break
    od
}

inline arrive(n, content)
{
    if
    :: n >= below && !claimed[n % WINDOW] ->
#ifndef WINDOW_LONG
        assert(n < below + WINDOW);    /* the sender's window and acknowledgements see to that */
#endif
        claimed[n % WINDOW] = true;
        assert(content == n);
        handed[n]++;
        assert(handed[n] == 1)
    :: else                            /* had it */
    fi;
#ifdef ACK_CLAIMED
    advance();
#endif
    acknowledge(n % 2)
}

inline refuse(n)
{
#ifdef ACK_REFUSED
    if
    :: n >= below && !claimed[n % WINDOW] -> claimed[n % WINDOW] = true; placed[n % WINDOW] = true; advance()
    :: else
    fi;
#endif
    acknowledge(n % 2)
}

/* One for each frame: the network carries it to the receiver, maybe more than once. */
proctype Carrier(byte n)
{
    byte content;

end_nothing:
    do
    :: d_step { flying[n] != NOTHING ->
        content = flying[n]; flying[n] = NOTHING; arrive(n, content); content = 0 }
#ifdef DUPLICATES
    :: d_step { flying[n] != NOTHING -> content = flying[n]; arrive(n, content); content = 0 }
#endif
    :: d_step { flying[n] != NOTHING && MAY_LOSE && handed[n] == 0 -> flying[n] = NOTHING; LOST; refuse(n) }
    :: d_step { flying[n] != NOTHING && MAY_LOSE -> flying[n] = NOTHING; LOST }
    od
}

/* One for each frame: its data get where they belong. */
proctype Placer(byte n)
{
end_nothing:
    d_step { handed[n] == 1 ->
        there[n] = true;
#ifndef ACK_CLAIMED
        placed[n % WINDOW] = true;
        advance();
        acknowledge(n % 2)
#endif
    }
}

/* One for each slot: carries an acknowledgement back. */
proctype Returner(bit s)
{
end_nothing:
    do
    :: d_step { ack_used[s] ->
        ack_used[s] = false;
        acked = (ack_below[s] > acked -> ack_below[s] : acked);
        sacked = (sacked | ack_early[s]) & ~(BIT(acked) - 1);
        ack_below[s] = 0; ack_early[s] = 0;
        k = 0;
        do
        :: k < FRAMES -> assert(there[k] || (k >= acked && !(sacked & BIT(k)))); k++
        :: else -> break
        od;
        k = 0 }
    :: d_step { ack_used[s] && MAY_LOSE -> ack_used[s] = false; ack_below[s] = 0; ack_early[s] = 0; LOST }
    od
}

init {
    byte i;

    atomic {
        for (i : 0 .. FRAMES - 1) {
            run Timer(i);
            run Carrier(i);
            run Placer(i)
        }
        run Returner(0);
        run Returner(1)
    }
}

#ifdef PROGRESS
ltl all_known { <> (acked == FRAMES) }
#endif
