/*
 * aq_ibv_credit.c - the receiver's side of credits; see aq_ibv_credit.h.
 *
 * Threads   the caller holds the lock of what is received from this peer
 * Promise   the sum of granted - gone over all peers, and those that are posted for nobody, are
 *           posted or in the hands of handlers, at any time: a fragment that was granted finds a
 *           buffer
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_credit.h"

void aq_ibv_credit_open(struct aq_ibv_credit_in *in, uint32_t window)
{
    atomic_init(&in->credits, window);
    atomic_init(&in->advertised, window);
    in->arrived = in->retired = 0;
    in->window = in->written = window;
    in->want_at = 0;
}

bool aq_ibv_credit_arrive(struct aq_ibv_credit_in *in, uint32_t skip)
{
    const uint32_t arrived = in->arrived + 1 + skip;

    if (skip >= in->window || aq_ibv_count_after(arrived, aq_ibv_credit_latest(in)))
        return false;
    in->arrived = arrived;
    in->retired += skip; /* no handler will do it: their buffers are for anybody's next ones */
    in->window -= skip;
    return true;
}

void aq_ibv_credit_return(struct aq_ibv_credit_in *in, bool left_out)
{
    in->retired++;
    if (left_out)
        aq_ibv_credit_add(in, 1);
}

void aq_ibv_credit_add(struct aq_ibv_credit_in *in, uint32_t n)
{
    /* relaxed: only receivers write it, under the lock; release: the buffers are posted */
    const uint32_t credits = atomic_load_explicit(&in->credits, memory_order_relaxed);

    atomic_store_explicit(&in->credits, credits + n, memory_order_release);
}

void aq_ibv_credit_grow(struct aq_ibv_credit_in *in, uint32_t n)
{
    in->window += n;
    aq_ibv_credit_add(in, n);
}

uint32_t aq_ibv_credit_growth(const struct aq_ibv_credit_in *in, uint32_t max, uint32_t budget)
{
    const uint32_t goal = 2 * in->window > max ? max : 2 * in->window;
    const uint32_t more = goal > in->window ? goal - in->window : 0;

    return more > budget ? budget : more;
}

uint32_t aq_ibv_credit_request(struct aq_ibv_credit_in *in, uint32_t n)
{
    const uint32_t goal = in->arrived + n, credits = aq_ibv_credit_latest(in);
    const uint32_t lacks = n > in->window ? n - in->window : 0;

    /* Credits that long messages took before this wish may be used after it, at most a window's.
     * Until those messages have come and were handled the sender lacks as many more: it hears of
     * everything up to there. */
    in->want_at = goal + in->window;
    if (!aq_ibv_count_after(goal, credits))
        return 0;
    return goal - credits < lacks ? goal - credits
                                  : lacks; /* the rest as handlers return what they have */
}
