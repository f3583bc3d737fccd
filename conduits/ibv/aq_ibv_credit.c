/*
 * aq_ibv_credit.c - the receiver's side of credits; see aq_ibv_credit.h.
 *
 * Threads   the caller holds the lock of what is received from this peer
 * Promise   the sum of granted - gone over all peers, and those that are posted for nobody, are posted or in the hands
 *           of handlers, at any time: a fragment that was granted finds a buffer
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_credit.h"

void aq_ibv_credit_open(struct aq_ibv_credit_in *in, uint32_t window)
{
    atomic_init(&in->granted, window);
    atomic_init(&in->told, window);
    in->arrived = in->gone = 0;
    in->window = in->written = window;
    in->want_at = 0;
}

bool aq_ibv_credit_arrive(struct aq_ibv_credit_in *in, uint32_t skip)
{
    const uint32_t arrived = in->arrived + 1 + skip;

    if (skip >= in->window || aq_ibv_count_after(arrived, aq_ibv_credit_news(in)))
        return false;
    in->arrived = arrived;
    in->gone += skip; /* no handler will do it: their buffers are for anybody's next ones */
    in->window -= skip;
    return true;
}

void aq_ibv_credit_return(struct aq_ibv_credit_in *in, bool left_out)
{
    in->gone++;
    if (left_out)
        aq_ibv_credit_grant(in, 1);
}

void aq_ibv_credit_grant(struct aq_ibv_credit_in *in, uint32_t n)
{
    /* relaxed: only receivers write it, under the lock; release: the buffers are posted */
    const uint32_t granted = atomic_load_explicit(&in->granted, memory_order_relaxed);

    atomic_store_explicit(&in->granted, granted + n, memory_order_release);
}

void aq_ibv_credit_grow(struct aq_ibv_credit_in *in, uint32_t n)
{
    in->window += n;
    aq_ibv_credit_grant(in, n);
}

uint32_t aq_ibv_credit_growth(const struct aq_ibv_credit_in *in, uint32_t most, uint32_t budget)
{
    const uint32_t goal = 2 * in->window > most ? most : 2 * in->window;
    const uint32_t more = goal > in->window ? goal - in->window : 0;

    return more > budget ? budget : more;
}

uint32_t aq_ibv_credit_want(struct aq_ibv_credit_in *in, uint32_t n)
{
    const uint32_t goal = in->arrived + n, granted = aq_ibv_credit_news(in);
    const uint32_t lacks = n > in->window ? n - in->window : 0;

    /* Credits that long messages took before this wish may be used after it, at most a window's. Until those messages
     * have come and were handled the sender lacks as many more: it hears of everything up to there. */
    in->want_at = goal + in->window;
    if (!aq_ibv_count_after(goal, granted))
        return 0;
    return goal - granted < lacks ? goal - granted : lacks; /* the rest as handlers return what they have */
}
