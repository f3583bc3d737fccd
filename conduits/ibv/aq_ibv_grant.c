/*
 * aq_ibv_grant.c - telling peers what they may send.
 *
 * A peer hears of grants with the next message to it, or by an RDMA write into its cell if there is none and half its
 * window, or a want, is due (aq_ibv_credit.h). Those who are owed news are in a list, so that nobody else is looked at;
 * and the list only once something in it is due, or everything is to be told.
 *
 * A peer that has parted sends nothing any more, and may be gone: it is told nothing.
 *
 * Owns      the list
 * Threads   any
 * Uses      aq_ibv_credit.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "conduits/ibv/aq_ibv_recv.h"
#include "base/aq_rc.h"

static void aq_ibv_grant_list(struct aq_ibv_peer *peer)
{
    peer->owes = true;
    aq_lock_acquire(&aq_ibv.owes_lock);
    peer->next_owes = atomic_load_explicit(&aq_ibv.owes, memory_order_relaxed);
    atomic_store_explicit(&aq_ibv.owes, peer, memory_order_relaxed);
    aq_lock_release(&aq_ibv.owes_lock);
}

void aq_ibv_owe(struct aq_ibv_peer *peer, unsigned lane)
{
    if (!peer->owes) /* written under in_lock, which we hold */
        aq_ibv_grant_list(peer);
    /* relaxed: after the peer is in the list, which has a lock; see aq_ibv_grant_walk() */
    if (AQ_UNLIKELY(aq_ibv_credit_due(&peer->in[lane])))
        atomic_store_explicit(&aq_ibv.grants_due, true, memory_order_relaxed);
}

bool aq_ibv_cell_write(struct aq_ibv_peer *peer, size_t at, const uint64_t *words, size_t nbytes, unsigned flags)
{
    struct aq_ibv_qp *qp = peer->qps[peer->am_qp];
    struct ibv_sge sge = { .addr = (uintptr_t)words, .length = (uint32_t)nbytes };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
                              .send_flags = IBV_SEND_INLINE };
    struct aq_ibv_buf *buf = NULL;

    wr.wr.rdma.remote_addr = peer->cell_there + at;
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
                       flags | AQ_IBV_POST_RESERVE | AQ_IBV_POST_WORD) == AQ_OK)
        return true;
    if (buf != NULL)
        aq_ibv_buf_give(buf);
    return false;
}

/* Write what is granted into the peer's cell; false: no room now. */
static bool aq_ibv_grant_write(struct aq_ibv_peer *peer)
{
    uint64_t words[AQ_IBV_CELL_WORDS];
    uint32_t news[AQ_IBV_LANES];

    for (unsigned lane = 0; lane < AQ_IBV_LANES; lane++) {
        news[lane] = aq_ibv_credit_news(&peer->in[lane]);
        words[lane] = aq_ibv_cell_word(news[lane]);
    }
    words[AQ_IBV_LANES] = peer->handled;
    if (!aq_ibv_cell_write(peer, 0, words, sizeof(words), 0))
        return false;
    for (unsigned lane = 0; lane < AQ_IBV_LANES; lane++)
        aq_ibv_credit_wrote(&peer->in[lane], news[lane]);
    aq_counter_add(&aq_ibv.counts.grants_written, 1);
    return true;
}

/* Serve one of those who are owed something; true: it may leave the list. */
static bool aq_ibv_grant_one(struct aq_ibv_peer *peer, bool all)
{
    bool news = false, due = false;

    aq_lock_acquire(&peer->in_lock);
    for (unsigned lane = 0; lane < AQ_IBV_LANES && !aq_ibv_peer_parted(peer); lane++) {
        /* relaxed: see aq_ibv_credit_told() */
        news = news || aq_ibv_credit_news(&peer->in[lane])
                           != atomic_load_explicit(&peer->in[lane].told, memory_order_relaxed);
        due = due || aq_ibv_credit_due(&peer->in[lane]);
    }
    if ((due || (all && news)) && aq_ibv_grant_write(peer))
        news = due = false;
    if (due) /* no room now */
        atomic_store_explicit(&aq_ibv.grants_due, true, memory_order_relaxed);
    if (!news)
        peer->owes = false;
    aq_lock_release(&peer->in_lock);
    return !news;
}

/* grant_lock held. */
static void aq_ibv_grant_walk(bool all)
{
    struct aq_ibv_peer *list, *kept = NULL, **last = &kept;

    /* relaxed, and before any lock below is taken: who sets it under one of these after we had it sets it for good;
     * who set it before we had it has left us the peer, and what is due to it */
    atomic_store_explicit(&aq_ibv.grants_due, false, memory_order_relaxed);
    aq_lock_acquire(&aq_ibv.owes_lock);
    list = atomic_load_explicit(&aq_ibv.owes, memory_order_relaxed);
    atomic_store_explicit(&aq_ibv.owes, NULL, memory_order_relaxed);
    aq_lock_release(&aq_ibv.owes_lock);
    while (list != NULL) {
        struct aq_ibv_peer *peer = list;

        list = peer->next_owes; /* before it can be in the list again */
        if (aq_ibv_grant_one(peer, all))
            continue;
        *last = peer;
        last = &peer->next_owes;
    }
    if (kept == NULL)
        return;
    aq_lock_acquire(&aq_ibv.owes_lock);
    *last = atomic_load_explicit(&aq_ibv.owes, memory_order_relaxed);
    atomic_store_explicit(&aq_ibv.owes, kept, memory_order_relaxed);
    aq_lock_release(&aq_ibv.owes_lock);
}

/* One at a time: no peer is in another one's hands while its news turn due and the mark is taken away. Who finds
 * another one at it waits: that may have passed what is due now, and nobody else may poll for long. */
void aq_ibv_grant_now(bool all)
{
    aq_lock_acquire(&aq_ibv.grant_lock);
    /* relaxed: whoever had the lock before has left the mark as it is to be */
    if (all || atomic_load_explicit(&aq_ibv.grants_due, memory_order_relaxed))
        aq_ibv_grant_walk(all);
    aq_lock_release(&aq_ibv.grant_lock);
}
