/*
 * aq_ibv_burst.c - puts and gets that a thread begins together.
 *
 * The operation of an access region, or of one call for a list of pieces (VIS), is not known to the client before its
 * end, so that nobody can wait for a part of it. So its requests to one peer wait in a list, and leave with one
 * doorbell: when the list is full, when the next one goes elsewhere, after one of more than 4 KiB, whose time a
 * doorbell is nothing to, at the end of the region or call, and with every poll of this thread. Only the last of a list
 * is signalled; requests of a queue pair complete in order, so that its completion stands for all. On a rail whose puts
 * are fenced one read ends the list, for all of its puts.
 *
 * Everything else is posted and signalled as it comes: a put outside of a region is one that somebody may wait for at
 * once, and a completion that is asked for later costs a request of its own.
 *
 * Owns      the lists: a thread has one from hold to go, and gives it back for the next that needs one
 * Threads   any
 * Promise   what is in the list has been counted; it starts without a further call of the client's but End or a poll
 * Uses      aq_ibv_burst.h, core/aq_poll.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_burst.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_log.h"
#include "core/aq_poll.h"
#include "base/aq_rc.h"

_Thread_local struct aq_ibv_burst *aq_ibv_burst __attribute__((tls_model("initial-exec")));

static struct {
    aq_lock lock;
    struct aq_ibv_burst *free;
} aq_ibv_bursts;

/* --- lists --- */

static struct aq_ibv_burst *aq_ibv_burst_take(void)
{
    struct aq_ibv_burst *burst;

    aq_lock_acquire(&aq_ibv_bursts.lock);
    burst = aq_ibv_bursts.free;
    if (burst != NULL)
        aq_ibv_bursts.free = burst->next;
    aq_lock_release(&aq_ibv_bursts.lock);
    if (burst == NULL && (burst = calloc(1, sizeof(*burst))) == NULL)
        aq_fatal("ibv: no memory for a list of transfers (%zu bytes)", sizeof(*burst));
    return burst;
}

static void aq_ibv_burst_give(struct aq_ibv_burst *burst)
{
    aq_lock_acquire(&aq_ibv_bursts.lock);
    burst->next = aq_ibv_bursts.free;
    aq_ibv_bursts.free = burst;
    aq_lock_release(&aq_ibv_bursts.lock);
}

int aq_ibv_burst_flush(void)
{
    struct aq_ibv_burst *burst = aq_ibv_burst;
    const unsigned count = burst->count;
    struct aq_ibv_burst_slot *last = &burst->slots[count - 1];
    struct ibv_send_wr fence;
    struct ibv_sge sge;
    bool fenced = false;
    int rc;

    for (unsigned i = 0; i < count; i++) {
        struct aq_ibv_burst_slot *slot = &burst->slots[i];

        slot->wr.next = i + 1 < count ? &burst->slots[i + 1].wr : NULL;
        slot->wr.wr_id = (uintptr_t)&slot->piece->done;
        if (burst->qp->fences && slot->wr.opcode == IBV_WR_RDMA_WRITE) {
            aq_ibv_rma_make_fence(burst->qp, &slot->wr, &fence, &sge);
            fenced = true;
        }
    }
    if (fenced)
        last->wr.next = &fence;
    rc = aq_ibv_qp_post(burst->qp, &burst->slots[0].wr, count + fenced, fenced ? NULL : &last->piece->done,
                        AQ_IBV_POST_SIGNAL);
    if (rc != AQ_OK)
        return rc;
    burst->count = 0;
    aq_counter_add(&aq_ibv.counts.bursts, 1);
    aq_counter_add(&aq_ibv.counts.burst_requests, count);
    aq_counter_add(&aq_ibv.counts.fences, fenced);
    return AQ_OK;
}

int aq_ibv_burst_add(struct aq_ibv_qp *qp, const struct ibv_send_wr *wr, const struct aq_ibv_local *local,
                     struct aq_ibv_piece *piece)
{
    struct aq_ibv_burst *burst = aq_ibv_burst;
    struct aq_ibv_burst_slot *slot;

    if (burst->count != 0 && (burst->qp != qp || burst->count == AQ_IBV_BURST) && aq_ibv_burst_flush() != AQ_OK)
        return AQ_RETRY;
    slot = &burst->slots[burst->count++];
    burst->qp = qp;
    slot->piece = piece;
    slot->wr = *wr;
    slot->wr.sg_list = &slot->sge;
    slot->wr.num_sge = 1;
    slot->sge = (struct ibv_sge){ .addr = local->addr, .length = (uint32_t)local->len };
    if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
        memcpy(slot->data, (const void *)local->addr, local->len);
        slot->sge.addr = (uintptr_t)slot->data;
    } else {
        slot->sge.lkey = local->lkey[qp->rail->dev->index];
    }
    if (local->len > AQ_IBV_BURST_LARGE)
        (void)aq_ibv_burst_flush(); /* no room: it waits for the next poll */
    return AQ_OK;
}

/* --- the table's entries --- */

struct aq_op *aq_ibv_rma_hold(struct aq_op *op)
{
    struct aq_op *before = NULL;

    if (aq_ibv_burst != NULL)
        before = aq_ibv_burst->op;
    else
        aq_ibv_burst = aq_ibv_burst_take();
    aq_ibv_burst->op = op;
    return before;
}

void aq_ibv_rma_go(struct aq_op *before)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("room for transfers", GEX_RANK_INVALID);
    struct aq_ibv_burst *burst = aq_ibv_burst;
    const bool over = burst->op != before; /* a call for a list within a region is not the region's end */

    burst->op = before;
    if (over && burst->count != 0 && AQ_UNLIKELY(aq_ibv_burst_flush() != AQ_OK)) {
        do
            aq_wait_step(&waiter); /* its polls start them */
        while (burst->count != 0);
        aq_wait_end(&waiter);
    }
    if (before == NULL) {
        aq_ibv_burst = NULL;
        aq_ibv_burst_give(burst);
    }
}
