/*
 * aq_ibv_credit.c - credits, the receiver's side, and the list of pending updates; see
 * aq_ibv_credit.h.
 *
 * Threads   the receiver's side: flow->in_lock; the list: its own locks
 * Promise   the sum of limit - retired over all peers, and the buffers in excess, are posted or
 *           in the hands of handlers, at any time: a fragment within its limit finds a buffer
 * Uses      aq_ibv_credit.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_credit.h"

/* --- the sender --- */

bool aq_ibv_credit_ask(struct aq_ibv_credit_out *out, struct aq_ibv_cell *cell, unsigned channel,
                       uint32_t n)
{
    const uint32_t limit = aq_ibv_credit_limit(out, cell, channel);

    if (out->barred != 0 || limit == out->base.sent || aq_ibv_credit_is_requested(out, limit))
        return false;
    out->base.sent++;
    out->wanted = out->base.sent + n;
    return true;
}

void aq_ibv_credit_unask(struct aq_ibv_credit_out *out)
{
    out->base.sent--;
    out->wanted = out->base.sent; /* not ahead of any limit */
}

/* --- the receiver --- */

void aq_ibv_credit_open(struct aq_ibv_credit_in *in, uint32_t window)
{
    aq_credit_in_open(&in->base, window);
    in->arrived = in->retired = 0;
    in->window = in->written = window;
    in->want_at = 0;
}

bool aq_ibv_credit_arrive(struct aq_ibv_credit_in *in, uint32_t skip)
{
    const uint32_t arrived = in->arrived + 1 + skip;

    if (skip >= in->window || aq_credit_after(arrived, aq_ibv_credit_latest(in)))
        return false;
    in->arrived = arrived;
    in->retired += skip; /* no handler retires them: their buffers are in excess */
    in->window -= skip;
    return true;
}

void aq_ibv_credit_return(struct aq_ibv_credit_in *in, bool left_out)
{
    in->retired++;
    if (left_out)
        aq_ibv_credit_add(in, 1);
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
    const uint32_t goal = in->arrived + n, limit = aq_ibv_credit_latest(in);
    const uint32_t lacks = n > in->window ? n - in->window : 0;

    /* Up to a window of credits that messages took before this request may be used after it. Until
     * those messages have arrived and were handled, the sender lacks as many more: every update up
     * to there is due. */
    in->want_at = goal + in->window;
    if (!aq_credit_after(goal, limit))
        return 0;
    return goal - limit < lacks ? goal - limit : lacks; /* handlers return the rest */
}

/* --- pending updates --- */

void aq_ibv_update_queue(struct aq_ibv_updates *updates, struct aq_ibv_flow *flow, unsigned channel)
{
    if (!flow->update_pending) {
        flow->update_pending = true;
        aq_lock_acquire(&updates->list_lock);
        /* relaxed: under the lock */
        flow->next_pending = atomic_load_explicit(&updates->first, memory_order_relaxed);
        atomic_store_explicit(&updates->first, flow, memory_order_relaxed);
        aq_lock_release(&updates->list_lock);
    }
    /* relaxed: after the peer is in the list, which has a lock; see aq_ibv_updates_walk() */
    if (AQ_UNLIKELY(aq_ibv_credit_due(&flow->in[channel])))
        atomic_store_explicit(&updates->due, true, memory_order_relaxed);
}

/* Write the limits into the peer's cell; false: no space now. */
static bool aq_ibv_update_write(struct aq_ibv_updates *updates, struct aq_ibv_flow *flow)
{
    uint64_t words[AQ_IBV_CELL_WORDS];
    uint32_t limits[AQ_IBV_CHANNELS];

    for (unsigned channel = 0; channel < AQ_IBV_CHANNELS; channel++) {
        limits[channel] = aq_ibv_credit_latest(&flow->in[channel]);
        words[channel] = aq_ibv_cell_word(limits[channel]);
    }
    words[AQ_IBV_CHANNELS] = flow->handled;
    if (!updates->write(flow, words))
        return false;
    for (unsigned channel = 0; channel < AQ_IBV_CHANNELS; channel++)
        aq_ibv_credit_wrote(&flow->in[channel], limits[channel]);
    aq_counter_add(&updates->written, 1);
    return true;
}

/* Serve a peer of the list; true: it may leave the list. A peer that has disconnected sends nothing
 * any more, and no limit is advertised to it. */
static bool aq_ibv_update_serve(struct aq_ibv_updates *updates, struct aq_ibv_flow *flow, bool all)
{
    bool pending = false, due = false;

    aq_lock_acquire(&flow->in_lock);
    /* acquire: as in aq_ibv_remote_disconnected() */
    if (atomic_load_explicit(&flow->cell->disconnected, memory_order_acquire) == 0)
        for (unsigned channel = 0; channel < AQ_IBV_CHANNELS; channel++) {
            const struct aq_ibv_credit_in *in = &flow->in[channel];

            pending = pending || aq_ibv_credit_latest(in) != aq_credit_advertised(&in->base);
            due = due || aq_ibv_credit_due(in);
        }
    if ((due || (all && pending)) && aq_ibv_update_write(updates, flow))
        pending = due = false;
    if (due) /* no space now */
        atomic_store_explicit(&updates->due, true, memory_order_relaxed);
    if (!pending)
        flow->update_pending = false;
    aq_lock_release(&flow->in_lock);
    return !pending;
}

/* walk_lock held. */
static void aq_ibv_updates_walk(struct aq_ibv_updates *updates, bool all)
{
    struct aq_ibv_flow *list, *remaining = NULL, **last = &remaining;

    /* relaxed, and before any lock below is taken: a thread that sets it under one of these locks
     * after this one sets it for the next walk; one that set it before has left the peer in the
     * list */
    atomic_store_explicit(&updates->due, false, memory_order_relaxed);
    aq_lock_acquire(&updates->list_lock);
    list = atomic_load_explicit(&updates->first, memory_order_relaxed);
    atomic_store_explicit(&updates->first, NULL, memory_order_relaxed);
    aq_lock_release(&updates->list_lock);
    while (list != NULL) {
        struct aq_ibv_flow *flow = list;

        list = flow->next_pending; /* before it can be in the list again */
        if (aq_ibv_update_serve(updates, flow, all))
            continue;
        *last = flow;
        last = &flow->next_pending;
    }
    if (remaining == NULL)
        return;
    aq_lock_acquire(&updates->list_lock);
    *last = atomic_load_explicit(&updates->first, memory_order_relaxed);
    atomic_store_explicit(&updates->first, remaining, memory_order_relaxed);
    aq_lock_release(&updates->list_lock);
}

/* One thread at a time: otherwise an update could become due while its peer is in another thread's
 * hands, and `due` be cleared with it. A thread that finds the lock taken waits: the other one may
 * have passed what is due now, and no other thread may poll for long. */
void aq_ibv_updates_send(struct aq_ibv_updates *updates, bool all)
{
    aq_lock_acquire(&updates->walk_lock);
    /* relaxed: the thread that had the lock before has left the flag as it is to be */
    if (all || atomic_load_explicit(&updates->due, memory_order_relaxed))
        aq_ibv_updates_walk(updates, all);
    aq_lock_release(&updates->walk_lock);
}
