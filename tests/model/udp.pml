/*
 * udp.pml - flow control between ranks of the udp conduit: absence of deadlock.
 *
 * RANKS ranks; each sends REQUESTS requests, each to any other rank it likes. The handler of a request
 * replies; with LONG_REPLIES the payload of the reply goes ahead of it in the RMA channel. Each channel between
 * two ranks has room for WINDOW frames that were sent and not acknowledged, and the receiver keeps at
 * most WINDOW frames that no handler took yet. What is modelled is who serves what while waiting:
 *
 *   for room for a request         requests, replies, RMA
 *   for room for a reply (RMA too) replies, RMA
 *
 * The network is a process for each channel, which moves a frame, and later its acknowledgement, whenever it
 * likes. Frames of a channel are taken in any order. A lost datagram that is sent again is a slow one here, and
 * a duplicate is none, since the receiver knows its number: udp_link.pml shows both. The receiver
 * acknowledges what it keeps and refuses what it has no room for; with ACK_TAKEN it acknowledges what a handler took.
 *
 * With DIRECT there is no network, and a channel is a queue of DIRECT frames: WINDOW frames deferred and WINDOW on
 * their way, or with ACK_TAKEN WINDOW in all. That finds the same deadlocks with far fewer states: nobody
 * here does anything because there is no room or because nothing came, so the network may as well
 * deliver and acknowledge as early as it can, which leaves just the queue.
 *
 * Checked: no state in which nothing can move but not all is answered, and, under weak fairness, that all
 * requests are answered. With SHARED_CHANNEL one channel carries everything, and both must fail.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef WINDOW
#define WINDOW 1
#endif
#ifndef REQUESTS
#define REQUESTS 2
#endif

#define REQUEST 0
#define REPLY   1
#define RMA     2

#ifdef SHARED_CHANNEL
#define CHANNELS 1
#define CHANNEL(kind) 0
#else
#define CHANNELS 3
#define CHANNEL(kind) (kind)
#endif

/* A flow is a channel from one rank to another; pairs are numbered without (r, r). */
#define FLOW(from, to, kind) (((from) * (RANKS - 1) + (to) - ((to) > (from) -> 1 : 0)) * CHANNELS + CHANNEL(kind))
#define FLOWS (RANKS * (RANKS - 1) * CHANNELS)

byte answered;                            /* replies that were handled, in all ranks */

#ifdef DIRECT

chan deferred[FLOWS] = [DIRECT] of { byte };  /* sent, not handled */

#define SPACE(f)       nfull(deferred[f])
#define SEND(f, kind) deferred[f]!kind
#define TAKEN(f)      skip

#else

chan wire[FLOWS] = [WINDOW] of { byte };  /* frames on their way, by kind */
chan deferred[FLOWS] = [WINDOW] of { byte };  /* at the receiver, for its handlers */
byte unacked[FLOWS];                      /* sent, and the acknowledgement has not come back */
byte acks[FLOWS];                         /* acknowledgements on their way back */

#define SPACE(f)       (unacked[f] < WINDOW)
#define SEND(f, kind) wire[f]!kind; unacked[f]++

#ifdef ACK_TAKEN
#define TAKEN(f) acks[f]++
#define KEPT(f)  skip
#else
#define TAKEN(f) skip
#define KEPT(f)  acks[f]++
#endif

/* Moves one frame or acknowledgement of one flow. */
proctype Network(byte f)
{
    byte kind;

end_idle:
    do
    :: atomic { nempty(wire[f]) && nfull(deferred[f]) -> wire[f]?kind; deferred[f]!kind; KEPT(f); kind = 0 }
    :: atomic { acks[f] > 0 -> acks[f]--; unacked[f]-- }
    od
}

#endif

/* What comes in from one rank and may be handled in a reply's wait, as guarded commands of a do. */
#define SERVE_REPLIES_OF(x) \
    :: atomic { x != me && deferred[FLOW(x, me, REPLY)]??[REPLY] -> \
                deferred[FLOW(x, me, REPLY)]??REPLY; TAKEN(FLOW(x, me, REPLY)); answered++ } \
    :: atomic { x != me && deferred[FLOW(x, me, RMA)]??[RMA] -> \
                deferred[FLOW(x, me, RMA)]??RMA; TAKEN(FLOW(x, me, RMA)) }

#define TAKE_REQUEST_OF(x) \
    :: atomic { x != me && deferred[FLOW(x, me, REQUEST)]??[REQUEST] -> \
                deferred[FLOW(x, me, REQUEST)]??REQUEST; TAKEN(FLOW(x, me, REQUEST)); asker = x } ANSWER

#if RANKS == 2
#define SERVE_REPLIES SERVE_REPLIES_OF(0) SERVE_REPLIES_OF(1)
#define TAKE_REQUESTS TAKE_REQUEST_OF(0) TAKE_REQUEST_OF(1)
#else
#define SERVE_REPLIES SERVE_REPLIES_OF(0) SERVE_REPLIES_OF(1) SERVE_REPLIES_OF(2)
#define TAKE_REQUESTS TAKE_REQUEST_OF(0) TAKE_REQUEST_OF(1) TAKE_REQUEST_OF(2)
#endif

/* Send a frame of a reply, serving replies until there is room. */
#define SEND_ANSWER(kind) \
    do \
    :: atomic { SPACE(FLOW(me, asker, kind)) -> SEND(FLOW(me, asker, kind), kind); break } \
    SERVE_REPLIES \
    od

#ifdef LONG_REPLIES
#define ANSWER SEND_ANSWER(RMA); SEND_ANSWER(REPLY); asker = 0
#else
#define ANSWER SEND_ANSWER(REPLY); asker = 0
#endif

proctype Rank(byte me)
{
    byte left = REQUESTS, target, asker;

    do
    :: left > 0 ->
        select (target : 0 .. RANKS - 2);
        target = (target >= me -> target + 1 : target);
        do
        :: atomic { SPACE(FLOW(me, target, REQUEST)) -> SEND(FLOW(me, target, REQUEST), REQUEST); break }
        SERVE_REPLIES
        TAKE_REQUESTS
        od;
        atomic { left--; target = 0 }
    :: left == 0 -> break
    od;

    /* All sent: the rank waits for its answers and, in a barrier, for the others. */
end_serving:
    do
    SERVE_REPLIES
    TAKE_REQUESTS
    od
}

init {
    byte i;

    atomic {
        for (i : 0 .. RANKS - 1) {
            run Rank(i)
        }
#ifndef DIRECT
        for (i : 0 .. FLOWS - 1) {
#ifndef LONG_REPLIES
            if
            :: i % CHANNELS != RMA -> run Network(i)
            :: else
            fi
#else
            run Network(i)
#endif
        }
#endif
    }
    answered == RANKS * REQUESTS    /* no end label: to stay before this line is a deadlock */
}

#ifdef PROGRESS
ltl all_answered { <> (answered == RANKS * REQUESTS) }
#endif
