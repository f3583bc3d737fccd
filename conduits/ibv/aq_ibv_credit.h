/*
 * aq_ibv_credit.h - credits: flow control that gives every message a receive buffer.
 *
 * A connection has two channels, requests and replies. Each channel has a window: so many buffers
 * of the receiver's shared receive queue are there for this channel of this peer. All counts start
 * at 0, only go up, and run modulo 2^32. The limit and what was sent are those of core/aq_credit.h,
 * where a window stays as it is; here it grows and shrinks, and two ways advertise the limit:
 *
 *     sender     sent      fragments sent, and credits given up
 *                limit     what may have been sent in all, by heads; the cell may hold a later one
 *     receiver   limit     the buffers were posted before the limit was raised
 *                retired   fragments handled, and credits given up by the sender
 *
 * Credit updates
 *           The receiver advertises the limit in the head of every message to the sender. Without
 *           such a message it writes the limit into a cell in the sender's memory by RDMA: that
 *           takes no buffer of the sender, so it needs no credit, and a repeated update does no
 *           harm. A word of the cell holds the count and its complement: a word that is read half
 *           written is ignored
 * Wrapping  the order of two counts is known while they are less than 2^31 apart. Traffic that uses
 *           only heads, or only the cell, leaves the other count behind. So a sender takes over
 *           the cell's count when heads are far behind it, and a receiver writes the cell when the
 *           cell is far behind; a request for credits expires when its count is far ahead
 * Growing   a sender with few credits left says so in the head (credit_low), and the receiver
 *           enlarges the window within a budget. A sender that needs n credits at once, for a
 *           message of n fragments, asks for them in a message of its own (want); it has a credit
 *           for that as soon as any credit is given. A window of n it always gets
 * Shrinking a sender that was idle for a while gives credits up (skip), down to the minimum; the
 *           receiver does not post as many buffers again
 * Threads   each side under its owner's lock (struct aq_ibv_flow); the cell is written by the
 *           network
 * Uses      core/aq_credit.h, base/aq_lock.h; knows neither devices nor peers, so that tests run it
 *           alone. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_CREDIT_H
#define AQ_IBV_CREDIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/aq_lock.h"
#include "base/aq_platform.h"
#include "core/aq_credit.h"

enum aq_ibv_channel { AQ_IBV_REQUEST, AQ_IBV_REPLY, AQ_IBV_CHANNELS };

/* Credits of a channel that a connection starts with and keeps. With fewer, a reply to each request
 * would not be enough to advertise the limit. */
#define AQ_IBV_WINDOW_MIN 4u

/* What a peer writes into this rank's memory. */
struct aq_ibv_cell {
    _Alignas(32) _Atomic uint64_t word[AQ_IBV_CHANNELS]; /* limits */
    _Atomic uint64_t handled;                            /* messages that the peer has handled */
    _Atomic uint64_t disconnected; /* not 0: the peer is in its exit and waits for nothing */
};
#define AQ_IBV_CELL_WORDS (AQ_IBV_CHANNELS + 1) /* those of a credit update: the first ones */

#define AQ_IBV_BARRED (UINT32_C(1) << 30)

/* Counts that are further apart are brought together again. */
#define AQ_IBV_COUNT_APART (UINT32_C(1) << 24)
/* More than a peer ever asks for: a count that is further ahead is an old one. */
#define AQ_IBV_COUNT_AHEAD (UINT32_C(1) << 16)

struct aq_ibv_credit_out {
    struct aq_credit_out base;
    uint32_t idle_at; /* sent, at the last tick */
    uint32_t wanted;  /* the limit that was asked for: no second request until it is reached */
    /* 0, or AQ_IBV_BARRED while a message of many fragments has the channel to itself: more than is
     * ever given */
    uint32_t barred;
};

struct aq_ibv_credit_in {
    struct aq_credit_in base;
    uint32_t arrived; /* fragments that arrived, and credits given up */
    uint32_t retired;
    uint32_t window;  /* limit - retired, once every buffer is posted again */
    uint32_t want_at; /* the peer waits for this limit: until then every update is due */
    uint32_t written; /* the limit in the last write of the peer's cell */
};

/* Flow control with one peer, both ways. */
struct aq_ibv_flow {
    _Alignas(AQ_CACHE_LINE) aq_lock lock; /* of sending */
    struct aq_ibv_credit_out out[AQ_IBV_CHANNELS];
    struct aq_ibv_cell *cell; /* registered; the peer writes it */
    uint64_t sent;            /* messages */

    _Alignas(AQ_CACHE_LINE) struct aq_ibv_credit_in in[AQ_IBV_CHANNELS]; /* under in_lock */
    aq_lock in_lock;
    bool update_pending;              /* in the list of struct aq_ibv_updates; under in_lock */
    struct aq_ibv_flow *next_pending; /* there */
    uint64_t handled;                 /* messages of the peer; under in_lock */
};

static inline uint64_t aq_ibv_cell_word(uint32_t count)
{
    return (uint64_t)~count << 32 | count;
}

/* Is the count `at` still ahead of now? Not if it is so far ahead that it must be an old one. */
static inline bool aq_ibv_count_pending(uint32_t at, uint32_t now)
{
    return at - now - 1 < AQ_IBV_COUNT_AHEAD;
}

/* --- the sender; under flow->lock --- */

/* Heads are far behind the cell. */
static inline void aq_ibv_credit_catch_up(struct aq_ibv_credit_out *out, uint32_t advertised,
                                          uint32_t written)
{
    /* relaxed, as in aq_credit_learn(); if a head changes it at the same time, that count is a
     * later one */
    (void)atomic_compare_exchange_strong_explicit(&out->base.limit, &advertised, written,
                                                  memory_order_relaxed, memory_order_relaxed);
}

/* The limit: what may have been sent in all. */
static inline uint32_t aq_ibv_credit_limit(struct aq_ibv_credit_out *out, struct aq_ibv_cell *cell,
                                           unsigned channel)
{
    /* acquire: what the peer did before it raised the limit comes first; relaxed: either count may
     * be the later one */
    const uint64_t word = atomic_load_explicit(&cell->word[channel], memory_order_acquire);
    const uint32_t advertised = aq_credit_limit(&out->base), written = (uint32_t)word;

    if (word != aq_ibv_cell_word(written) || !aq_credit_after(written, advertised))
        return advertised;
    if (written - advertised > AQ_IBV_COUNT_APART)
        aq_ibv_credit_catch_up(out, advertised, written);
    return written;
}

static inline uint32_t aq_ibv_credit_left(struct aq_ibv_credit_out *out, struct aq_ibv_cell *cell,
                                          unsigned channel)
{
    return aq_ibv_credit_limit(out, cell, channel) - out->base.sent;
}

/* Take so many credits and leave reserve; false: there are too few, none was taken. */
static inline bool aq_ibv_credit_claim(struct aq_ibv_credit_out *out, struct aq_ibv_cell *cell,
                                       unsigned channel, uint32_t fragments, uint32_t reserve)
{
    const uint32_t limit = aq_ibv_credit_limit(out, cell, channel);

    if (AQ_UNLIKELY(!aq_credit_covers(limit, out->base.sent, fragments + reserve + out->barred)))
        return false;
    out->base.sent += fragments;
    return true;
}

/* A head brought a limit; under the receiver's lock of the rail. The only other writer is
 * aq_ibv_credit_limit(), whose count the cell holds as well: no harm if an older one replaces
 * it. */
static inline void aq_ibv_credit_learn(struct aq_ibv_credit_out *out, uint32_t limit)
{
    (void)aq_credit_learn(&out->base, limit);
}

/* Has the sender asked for credits that it has not got? */
static inline bool aq_ibv_credit_is_requested(const struct aq_ibv_credit_out *out, uint32_t limit)
{
    return aq_ibv_count_pending(out->wanted, limit);
}

/* The sender needs n credits at once and has too few. True: one credit was taken for a message that
 * asks for n; false: it was asked for already, or there is no credit for asking. */
bool aq_ibv_credit_ask(struct aq_ibv_credit_out *out, struct aq_ibv_cell *cell, unsigned channel,
                       uint32_t n);
/* That message was not sent after all. */
void aq_ibv_credit_unask(struct aq_ibv_credit_out *out);

/* A tick: how many credits a sender that was idle since the last tick gives up, beside the one for
 * the message that says so; 0: none. */
static inline uint32_t aq_ibv_credit_surplus(struct aq_ibv_credit_out *out,
                                             struct aq_ibv_cell *cell, unsigned channel)
{
    const uint32_t left = aq_ibv_credit_left(out, cell, channel), limit = out->base.sent + left;
    const bool idle = out->idle_at == out->base.sent;

    out->idle_at = out->base.sent;
    if (aq_ibv_credit_is_requested(out, limit))
        return 0; /* it waits for more, and needs what it has */
    out->wanted = limit;
    return idle && left > 2 * AQ_IBV_WINDOW_MIN ? left - AQ_IBV_WINDOW_MIN - 1 : 0;
}

/* --- the receiver; under flow->in_lock --- */

/* The limit to advertise to the peer. */
static inline uint32_t aq_ibv_credit_latest(const struct aq_ibv_credit_in *in)
{
    return aq_credit_latest(&in->base);
}

/* A connection starts: so many buffers are posted. */
void aq_ibv_credit_open(struct aq_ibv_credit_in *in, uint32_t window);
/* A fragment arrived, and with it skip credits were given up, whose buffers are in excess from now
 * on. False: the peer had no credit for that. */
bool aq_ibv_credit_arrive(struct aq_ibv_credit_in *in, uint32_t skip);
/* A fragment was handled. left_out: a buffer in excess takes the place of its buffer, and the
 * credit is given at once; else the buffer is to be posted again, then aq_ibv_credit_add(). */
void aq_ibv_credit_return(struct aq_ibv_credit_in *in, bool left_out);
/* n buffers were posted again. */
static inline void aq_ibv_credit_add(struct aq_ibv_credit_in *in, uint32_t n)
{
    aq_credit_add(&in->base, n);
}
/* n more were posted: the window grows. */
void aq_ibv_credit_grow(struct aq_ibv_credit_in *in, uint32_t n);
/* How much to grow for a peer that is low on credits: at most budget more, up to max in all. */
uint32_t aq_ibv_credit_growth(const struct aq_ibv_credit_in *in, uint32_t max, uint32_t budget);
/* The same for a peer that wants n at once; until they are given every update is due. */
uint32_t aq_ibv_credit_request(struct aq_ibv_credit_in *in, uint32_t n);

/* A write of the peer's cell is on its way. */
static inline void aq_ibv_credit_wrote(struct aq_ibv_credit_in *in, uint32_t limit)
{
    in->written = limit;
    aq_credit_advertise(&in->base, limit);
}

/* Is it time to write the peer's cell? */
static inline bool aq_ibv_credit_due(const struct aq_ibv_credit_in *in)
{
    const uint32_t advertised = aq_credit_advertised(&in->base);

    if (aq_credit_latest(&in->base) == advertised)
        return false;
    return aq_credit_due(&in->base, in->window) || aq_ibv_count_pending(in->want_at, advertised)
           || aq_credit_after(advertised, in->written + AQ_IBV_COUNT_APART);
}

/* --- updates that are pending --- */

/* The peers to which a limit is to be advertised. A peer is in the list at most once; the list is
 * walked only when an update is due, or all are to be sent. */
struct aq_ibv_updates {
    aq_lock list_lock;
    struct aq_ibv_flow *_Atomic first;
    atomic_bool due;   /* an update of a peer in the list is, by aq_ibv_credit_due() */
    aq_lock walk_lock; /* of the thread that sends updates */
    /* Write the limits into the peer's cell; false: no space now. flow->in_lock is held. */
    bool (*write)(struct aq_ibv_flow *flow, const uint64_t words[AQ_IBV_CELL_WORDS]);
    aq_counter written; /* updates */
};

/* The limit of a channel is to be advertised to the peer some time, or with the next poll if that
 * is due; under flow->in_lock. */
void aq_ibv_update_queue(struct aq_ibv_updates *updates, struct aq_ibv_flow *flow,
                         unsigned channel);
/* Send the updates that are due; all: every update that is pending. */
void aq_ibv_updates_send(struct aq_ibv_updates *updates, bool all);

/* In every poll. */
static inline void aq_ibv_updates_poll(struct aq_ibv_updates *updates, bool all)
{
    /* relaxed: what another thread adds now is for that thread to send */
    if (AQ_UNLIKELY(atomic_load_explicit(&updates->due, memory_order_relaxed))
        || (all
            && AQ_UNLIKELY(atomic_load_explicit(&updates->first, memory_order_relaxed) != NULL)))
        aq_ibv_updates_send(updates, all);
}

#endif
