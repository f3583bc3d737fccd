/*
 * aq_credit.h - credits: how much a sender may send before the receiver has handled some of it.
 *
 * Two counts run on for ever, modulo 2^32, in a unit that the conduit chooses (buffers, bytes). The
 * sender counts what it has sent. The receiver counts up to where the sender may send: the limit.
 * The limit starts at a window, and goes up with everything that the receiver has handled. The
 * sender may send while it is below the limit; else its conduit returns AQ_RETRY, and core polls
 * and tries again, or returns to a client that said GEX_FLAG_IMMEDIATE. A limit that arrives late,
 * or twice, is older than the one known and changes nothing. A receiver advertises its limit in
 * every message that goes back, and in a message of its own when half the window is not advertised:
 * half a window lets the sender go on while the update travels.
 *
 * How a limit travels, what a unit is, and whether a window can grow is the conduit's.
 *
 * Owner     the conduit keeps a struct aq_credit_out and a struct aq_credit_in for each channel of
 *           each peer
 * Threads   the sender's side: one at a time, by a lock of the conduit, except where a function
 *           says more. The receiver's side: as each function says
 * Uses      base/aq_lock.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_CREDIT_H
#define AQ_CREDIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/aq_lock.h"

/* Is count a later than count b? The two are less than 2^31 apart. */
static inline bool aq_credit_after(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

/* May a sender that has sent so much send cost more? The limit is at or after sent. */
static inline bool aq_credit_covers(uint32_t limit, uint32_t sent, uint32_t cost)
{
    return limit - sent >= cost;
}

/* --- the sender --- */

struct aq_credit_out {
    uint32_t sent;
    _Atomic uint32_t limit; /* the latest that the receiver is known to have advertised */
};

static inline void aq_credit_out_open(struct aq_credit_out *out, uint32_t window)
{
    out->sent = 0;
    atomic_init(&out->limit, window);
}

/* relaxed: it says how much, and orders nothing */
static inline uint32_t aq_credit_limit(const struct aq_credit_out *out)
{
    return atomic_load_explicit(&((struct aq_credit_out *)(uintptr_t)out)->limit,
                                memory_order_relaxed);
}

/* A limit has arrived. True: it is later than the one known, and is known now. One thread at a
 * time, which need not be the one that sends. */
static inline bool aq_credit_learn(struct aq_credit_out *out, uint32_t limit)
{
    if (!aq_credit_after(limit, aq_credit_limit(out)))
        return false;
    atomic_store_explicit(&out->limit, limit, memory_order_relaxed);
    return true;
}

/* --- the receiver --- */

struct aq_credit_in {
    _Atomic uint32_t limit;
    _Atomic uint32_t advertised; /* the limit that the sender knows, or that is on its way */
};

static inline void aq_credit_in_open(struct aq_credit_in *in, uint32_t window)
{
    atomic_init(&in->limit, window);
    atomic_init(&in->advertised, window);
}

/* The limit to advertise to the sender. */
static inline uint32_t aq_credit_latest(const struct aq_credit_in *in)
{
    /* acquire: pairs with the release in aq_credit_add(): what the receiver did before it raised
     * the limit, such as posting buffers, comes first */
    return atomic_load_explicit(&((struct aq_credit_in *)(uintptr_t)in)->limit,
                                memory_order_acquire);
}

/* So much was handled, or may be sent beside. One thread at a time. */
static inline void aq_credit_add(struct aq_credit_in *in, uint32_t n)
{
    /* relaxed: only one thread at a time writes it; release: pairs with aq_credit_latest() */
    const uint32_t limit = atomic_load_explicit(&in->limit, memory_order_relaxed);

    atomic_store_explicit(&in->limit, limit + n, memory_order_release);
}

/* The same; any thread. */
static inline void aq_credit_add_shared(struct aq_credit_in *in, uint32_t n)
{
#if AQ_THREADED
    /* release: pairs with aq_credit_latest() */
    atomic_fetch_add_explicit(&in->limit, n, memory_order_release);
#else
    aq_credit_add(in, n);
#endif
}

/* The limit is on its way. Any thread. If two advertise at the same time, the older count may stay:
 * the newer one is then advertised again. */
static inline void aq_credit_advertise(struct aq_credit_in *in, uint32_t limit)
{
    atomic_store_explicit(&in->advertised, limit, memory_order_relaxed);
}

/* relaxed: a hint to all but the thread that advertises the limit */
static inline uint32_t aq_credit_advertised(const struct aq_credit_in *in)
{
    return atomic_load_explicit(&((struct aq_credit_in *)(uintptr_t)in)->advertised,
                                memory_order_relaxed);
}

/* Is it time for a message of its own? Any thread.
 *
 * The two loads need no order between them. A limit that is not after the advertised one is older
 * than it: the thread that advertised it has covered this limit too. A thread that has raised the
 * limit reads its own store or a later one, so its own credits are found due by it, or are
 * advertised by another thread. An advertised limit that is read late costs a message more, and
 * loses none. */
static inline bool aq_credit_due(const struct aq_credit_in *in, uint32_t window)
{
    const uint32_t limit = aq_credit_latest(in), advertised = aq_credit_advertised(in);

    return aq_credit_after(limit, advertised) && 2 * (limit - advertised) >= window;
}

#endif
