/*
 * aq_ibv_credit.h - what a peer may send: counted so that no message ever finds the receive queue
 * empty.
 *
 * A connection has two lanes, requests and replies, and each lane a window: so many buffers of the
 * receiver's shared queue are there for this lane of this peer. Everything is counted up from 0 and
 * never down, modulo 2^32:
 *
 *     sender     sent      fragments sent, or credits given up
 *     receiver   granted   what the sender may have sent at most; it was posted before it is told
 *                gone      fragments handled and posted again, or given up by the sender
 *
 * The receiver tells granted in the head of every message it sends, and otherwise writes it into a
 * cell in the sender's memory, by an RDMA write: that takes none of the sender's buffers, so needs
 * no credit, and telling twice does no harm. A cell's word holds the count and its complement: a
 * word that is read half written is not believed.
 *
 * Wrapping  of two counts the later one is known while they are less than 2^31 apart, and traffic
 *           that uses only heads, or only the cell, leaves the other one behind. So a sender takes
 *           over what the cell says when heads are far behind it, a receiver writes the cell when
 *           that is far behind, and what was wanted once is soon forgotten
 *
 * Growing   a sender with little left says so in the head (hungry); the receiver adds to the
 *           window, within a budget. One that needs n at once for a message of n fragments says so
 *           in a message of its own (want), if it has a credit for that, as it has as soon as
 *           anything is granted; a window of that much it always gets
 * Shrinking a sender that has not sent for a while gives credits up (skip), down to the least; the
 *           receiver does not post as many buffers again
 * Threads   none of its own: each side under its owner's lock; the cell is written by the network
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_CREDIT_H
#define AQ_IBV_CREDIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum aq_ibv_channel { AQ_IBV_REQUEST, AQ_IBV_REPLY, AQ_IBV_CHANNELS };

/* Credits of a lane that a connection begins with, and keeps: with fewer, a reply to each request
 * would not be enough to tell what is granted. */
#define AQ_IBV_WINDOW_MIN 4u

/* What a peer grants, in this rank's memory, by lane; how many messages it has handled; and whether
 * it has disconnected: it has come to its exit, and waits for nothing of ours. */
struct aq_ibv_cell {
    _Alignas(32) _Atomic uint64_t word[AQ_IBV_CHANNELS];
    _Atomic uint64_t handled;
    _Atomic uint64_t disconnected;
};
#define AQ_IBV_CELL_WORDS (AQ_IBV_CHANNELS + 1) /* those of a grant, the first ones */

#define AQ_IBV_BARRED (UINT32_C(1) << 30)

#define AQ_IBV_COUNT_APART \
    (UINT32_C(1) << 24) /* counts that are further apart are brought together again */
#define AQ_IBV_COUNT_AHEAD \
    (UINT32_C(1) << 16) /* more than anybody ever asks for: what is further ahead is long past */

struct aq_ibv_credit_out {
    uint32_t sent;
    atomic_uint credits; /* as heads told; the cell may know more */
    uint32_t idle_at;    /* sent, at the last tick */
    uint32_t wanted;     /* asked for: not again until that is granted */
    uint32_t
        /* 0; or more than is ever granted, while a message of many fragments has the lane */
        barred;
};

struct aq_ibv_credit_in {
    atomic_uint credits, advertised; /* told: the peer knows, or the news is under way */
    uint32_t arrived;                /* fragments that came, and credits given up */
    uint32_t retired;
    uint32_t window;  /* granted - gone, once everything is posted again */
    uint32_t want_at; /* the peer waits for this to be granted: until then it hears of everything */
    uint32_t written; /* granted, when the peer's cell was last written */
};

static inline uint64_t aq_ibv_cell_word(uint32_t count)
{
    return (uint64_t)~count << 32 | count;
}

/* a after b, in the order of counts that are less than 2^31 apart. */
static inline bool aq_ibv_count_after(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

/* Is the count `at` still to come? Not if it lies so far ahead that it must be one of long ago. */
static inline bool aq_ibv_count_pending(uint32_t at, uint32_t now)
{
    return at - now - 1 < AQ_IBV_COUNT_AHEAD;
}

/* --- the sender --- */

/* What may have been sent in all. The caller holds the sender's lock. */
static inline uint32_t aq_ibv_credit_limit(struct aq_ibv_credit_out *out, struct aq_ibv_cell *cell,
                                           unsigned channel)
{
    /* acquire: what the peer did before it granted, it did; relaxed: either may be the newer one */
    const uint64_t word = atomic_load_explicit(&cell->word[channel], memory_order_acquire);
    uint32_t advertised = atomic_load_explicit(&out->credits, memory_order_relaxed);
    const uint32_t written = (uint32_t)word;

    if (word != aq_ibv_cell_word(written) || !aq_ibv_count_after(written, advertised))
        return advertised;
    if (written - advertised > AQ_IBV_COUNT_APART)
        /* relaxed, as in aq_ibv_credit_learn(); if a head comes in between it has said something
         * newer than told */
        (void)atomic_compare_exchange_strong_explicit(&out->credits, &advertised, written,
                                                      memory_order_relaxed, memory_order_relaxed);
    return written;
}

static inline uint32_t aq_ibv_credit_left(struct aq_ibv_credit_out *out, struct aq_ibv_cell *cell,
                                          unsigned channel)
{
    return aq_ibv_credit_limit(out, cell, channel) - out->sent;
}

/* A head brought news; the caller holds the lock of receiving. The only other writer is
 * aq_ibv_credit_limit(), whose count the cell holds as well: it does no harm if an older one
 * replaces it. */
static inline void aq_ibv_credit_learn(struct aq_ibv_credit_out *out, uint32_t credits)
{
    /* relaxed: it says how much, and orders nothing */
    if (aq_ibv_count_after(credits, atomic_load_explicit(&out->credits, memory_order_relaxed)))
        atomic_store_explicit(&out->credits, credits, memory_order_relaxed);
}

/* Has it asked for credits that it has not got? */
static inline bool aq_ibv_credit_is_requested(const struct aq_ibv_credit_out *out, uint32_t limit)
{
    return aq_ibv_count_pending(out->wanted, limit);
}

/* A tick: how many credits a sender that was idle since the last gives up beside the one for
 * telling so; 0: none. */
static inline uint32_t aq_ibv_credit_surplus(struct aq_ibv_credit_out *out,
                                             struct aq_ibv_cell *cell, unsigned channel)
{
    const uint32_t left = aq_ibv_credit_left(out, cell, channel), limit = out->sent + left;
    const bool idle = out->idle_at == out->sent;

    out->idle_at = out->sent;
    if (aq_ibv_credit_is_requested(out, limit))
        return 0; /* it waits for more, and needs what it has */
    out->wanted = limit;
    return idle && left > 2 * AQ_IBV_WINDOW_MIN ? left - AQ_IBV_WINDOW_MIN - 1 : 0;
}

/* --- the receiver --- */

/* What to tell the peer. */
static inline uint32_t aq_ibv_credit_latest(const struct aq_ibv_credit_in *in)
{
    /* acquire: pairs with the release in aq_ibv_credit_add(): told is what was posted before */
    return atomic_load_explicit(&((struct aq_ibv_credit_in *)(uintptr_t)in)->credits,
                                memory_order_acquire);
}

/* It is on its way. Two threads may tell at a time: the older news then counts, and is told again.
 * */
static inline void aq_ibv_credit_advertised(struct aq_ibv_credit_in *in, uint32_t credits)
{
    atomic_store_explicit(&in->advertised, credits, memory_order_relaxed);
}

/* A connection begins: so many buffers are posted. */
void aq_ibv_credit_open(struct aq_ibv_credit_in *in, uint32_t window);
/* A fragment came, with skip credits given up, whose buffers are now posted for nobody: as many may
 * be left out when anybody's come back. False: the peer had no credit for that. */
bool aq_ibv_credit_arrive(struct aq_ibv_credit_in *in, uint32_t skip);
/* A fragment was handled, and its buffer is to be posted again, then granted; left_out: one that is
 * posted for nobody takes its place, and is granted at once. */
void aq_ibv_credit_return(struct aq_ibv_credit_in *in, bool left_out);
/* n buffers were posted again. */
void aq_ibv_credit_add(struct aq_ibv_credit_in *in, uint32_t n);
/* n more were posted: the window grows. */
void aq_ibv_credit_grow(struct aq_ibv_credit_in *in, uint32_t n);
/* By how much to grow for a peer that is hungry, with at most budget more, up to most in all. */
uint32_t aq_ibv_credit_growth(const struct aq_ibv_credit_in *in, uint32_t max, uint32_t budget);
/* The same for one that wants n at once; until they are granted, it hears of everything. */
uint32_t aq_ibv_credit_request(struct aq_ibv_credit_in *in, uint32_t n);

/* The peer's cell is on its way. */
static inline void aq_ibv_credit_wrote(struct aq_ibv_credit_in *in, uint32_t credits)
{
    in->written = credits;
    aq_ibv_credit_advertised(in, credits);
}

/* Is it time to write the peer's cell? */
static inline bool aq_ibv_credit_due(const struct aq_ibv_credit_in *in)
{
    /* relaxed: a wrong answer is put right at the next fragment */
    const uint32_t advertised = atomic_load_explicit(
        &((struct aq_ibv_credit_in *)(uintptr_t)in)->advertised, memory_order_relaxed);
    const uint32_t update = aq_ibv_credit_latest(in) - advertised;

    return update != 0
           && (2 * update >= in->window || aq_ibv_count_pending(in->want_at, advertised)
               || aq_ibv_count_after(advertised, in->written + AQ_IBV_COUNT_APART));
}

#endif
