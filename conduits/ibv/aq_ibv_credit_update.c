/*
 * aq_ibv_credit_update.c - telling peers what they may send.
 *
 * A peer hears of grants with the next message to it, or by an RDMA write into its cell if there is
 * none and half its window, or a want, is due (aq_ibv_credit.h). Those who are owed news are in a
 * list, so that nobody else is looked at; and the list only once something in it is due, or
 * everything is to be told.
 *
 * A peer that has disconnected sends nothing any more, and may be gone: it is told nothing.
 *
 * Owns      the list
 * Threads   any
 * Uses      aq_ibv_credit.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "conduits/ibv/aq_ibv_recv.h"
#include "base/aq_rc.h"

static void aq_ibv_credit_update_link(struct aq_ibv_peer *peer)
{
    peer->update_pending = true;
    aq_lock_acquire(&aq_ibv.pending_lock);
    peer->next_pending = atomic_load_explicit(&aq_ibv.update_pending, memory_order_relaxed);
    atomic_store_explicit(&aq_ibv.update_pending, peer, memory_order_relaxed);
    aq_lock_release(&aq_ibv.pending_lock);
}

void aq_ibv_credit_update_queue(struct aq_ibv_peer *peer, unsigned channel)
{
    if (!peer->update_pending) /* written under in_lock, which we hold */
        aq_ibv_credit_update_link(peer);
    /* relaxed: after the peer is in the list, which has a lock; see aq_ibv_credit_update_walk() */
    if (AQ_UNLIKELY(aq_ibv_credit_due(&peer->in[channel])))
        atomic_store_explicit(&aq_ibv.updates_due, true, memory_order_relaxed);
}

bool aq_ibv_cell_write(struct aq_ibv_peer *peer, size_t at, const uint64_t *words, size_t nbytes,
                       unsigned flags)
{
    struct aq_ibv_qp *qp = peer->qps[peer->am_qp];
    struct ibv_sge sge = { .addr = (uintptr_t)words, .length = (uint32_t)nbytes };
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_INLINE
    };
    struct aq_ibv_buf *buf = NULL;

    wr.wr.rdma.remote_addr = peer->cell_addr + at;
    wr.wr.rdma.rkey = peer->cell_rkey;
    if (AQ_UNLIKELY(qp->max_inline < nbytes)) { /* a device without */
        buf = aq_ibv_buf_take(AQ_IBV_REPLY);
        if (buf == NULL)
            return false;
        memcpy(buf->bytes, words, nbytes);
        sge.addr = (uintptr_t)buf->bytes;
        sge.lkey = buf->lkey[qp->rail->dev->index];
        wr.send_flags = 0;
    }
    if (aq_ibv_qp_post(qp, &wr, 1, buf != NULL ? &buf->done : NULL,
                       flags | AQ_IBV_POST_RESERVE | AQ_IBV_POST_WORD)
        == AQ_OK)
        return true;
    if (buf != NULL)
        aq_ibv_buf_give(buf);
    return false;
}

/* Write what is granted into the peer's cell; false: no room now. */
static bool aq_ibv_credit_update_write(struct aq_ibv_peer *peer)
{
    uint64_t words[AQ_IBV_CELL_WORDS];
    uint32_t update[AQ_IBV_CHANNELS];

    for (unsigned channel = 0; channel < AQ_IBV_CHANNELS; channel++) {
        update[channel] = aq_ibv_credit_latest(&peer->in[channel]);
        words[channel] = aq_ibv_cell_word(update[channel]);
    }
    words[AQ_IBV_CHANNELS] = peer->handled;
    if (!aq_ibv_cell_write(peer, 0, words, sizeof(words), 0))
        return false;
    for (unsigned channel = 0; channel < AQ_IBV_CHANNELS; channel++)
        aq_ibv_credit_wrote(&peer->in[channel], update[channel]);
    aq_counter_add(&aq_ibv.counts.updates_written, 1);
    return true;
}

/* Serve one of those who are owed something; true: it may leave the list. */
static bool aq_ibv_credit_update_peer(struct aq_ibv_peer *peer, bool all)
{
    bool update = false, due = false;

    aq_lock_acquire(&peer->in_lock);
    for (unsigned channel = 0; channel < AQ_IBV_CHANNELS && !aq_ibv_peer_disconnected(peer);
         channel++) {
        /* relaxed: see aq_ibv_credit_advertised() */
        update =
            update
            || aq_ibv_credit_latest(&peer->in[channel])
                   != atomic_load_explicit(&peer->in[channel].advertised, memory_order_relaxed);
        due = due || aq_ibv_credit_due(&peer->in[channel]);
    }
    if ((due || (all && update)) && aq_ibv_credit_update_write(peer))
        update = due = false;
    if (due) /* no room now */
        atomic_store_explicit(&aq_ibv.updates_due, true, memory_order_relaxed);
    if (!update)
        peer->update_pending = false;
    aq_lock_release(&peer->in_lock);
    return !update;
}

/* update_lock held. */
static void aq_ibv_credit_update_walk(bool all)
{
    struct aq_ibv_peer *list, *remaining = NULL, **last = &remaining;

    /* relaxed, and before any lock below is taken: who sets it under one of these after we had it
     * sets it for good; who set it before we had it has left us the peer, and what is due to it */
    atomic_store_explicit(&aq_ibv.updates_due, false, memory_order_relaxed);
    aq_lock_acquire(&aq_ibv.pending_lock);
    list = atomic_load_explicit(&aq_ibv.update_pending, memory_order_relaxed);
    atomic_store_explicit(&aq_ibv.update_pending, NULL, memory_order_relaxed);
    aq_lock_release(&aq_ibv.pending_lock);
    while (list != NULL) {
        struct aq_ibv_peer *peer = list;

        list = peer->next_pending; /* before it can be in the list again */
        if (aq_ibv_credit_update_peer(peer, all))
            continue;
        *last = peer;
        last = &peer->next_pending;
    }
    if (remaining == NULL)
        return;
    aq_lock_acquire(&aq_ibv.pending_lock);
    *last = atomic_load_explicit(&aq_ibv.update_pending, memory_order_relaxed);
    atomic_store_explicit(&aq_ibv.update_pending, remaining, memory_order_relaxed);
    aq_lock_release(&aq_ibv.pending_lock);
}

/* One at a time: no peer is in another one's hands while its news turn due and the mark is taken
 * away. A thread that finds another one at it waits: that one may have passed what is due now, and
 * nobody else may poll for long. */
void aq_ibv_credit_update_now(bool all)
{
    aq_lock_acquire(&aq_ibv.update_lock);
    /* relaxed: whoever had the lock before has left the mark as it is to be */
    if (all || atomic_load_explicit(&aq_ibv.updates_due, memory_order_relaxed))
        aq_ibv_credit_update_walk(all);
    aq_lock_release(&aq_ibv.update_lock);
}
