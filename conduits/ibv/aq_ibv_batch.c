/*
 * aq_ibv_batch.c - puts and gets that a thread begins together.
 *
 * The operation of an access region, or of one call for a list of pieces (VIS), is not known to the
 * client before its end, so that nobody can wait for a part of it. So its requests to one peer wait
 * in a list, and leave with one doorbell: when the list is full, when the next one goes elsewhere,
 * after one of more than 4 KiB, whose time a doorbell is nothing to, at the end of the region or
 * call, and with every poll of this thread. Only the last of a list is signalled; requests of a
 * queue pair complete in order, so that its completion stands for all. On a rail whose puts are
 * fenced one read ends the list, for all of its puts.
 *
 * Everything else is posted and signalled as it comes: a put outside of a region is one that
 * somebody may wait for at once, and a completion that is asked for later costs a request of its
 * own.
 *
 * Owns      the lists: a thread has one from hold to go, and gives it back for the next that needs
 *           one
 * Threads   any
 * Promise   what is in the list has been counted; it starts without a further call of the client's
 *           but End or a poll
 * Uses      aq_ibv_batch.h, core/aq_poll.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_log.h"
#include "core/aq_poll.h"
#include "base/aq_rc.h"

_Thread_local struct aq_ibv_batch *aq_ibv_batch __attribute__((tls_model("initial-exec")));

static struct {
    aq_lock lock;
    struct aq_ibv_batch *free;
} aq_ibv_batches;

/* --- lists --- */

static struct aq_ibv_batch *aq_ibv_batch_take(void)
{
    struct aq_ibv_batch *batch;

    aq_lock_acquire(&aq_ibv_batches.lock);
    batch = aq_ibv_batches.free;
    if (batch != NULL)
        aq_ibv_batches.free = batch->next;
    aq_lock_release(&aq_ibv_batches.lock);
    if (batch == NULL && (batch = calloc(1, sizeof(*batch))) == NULL)
        aq_fatal("ibv: no memory for a list of transfers (%zu bytes)", sizeof(*batch));
    return batch;
}

static void aq_ibv_batch_give(struct aq_ibv_batch *batch)
{
    aq_lock_acquire(&aq_ibv_batches.lock);
    batch->next = aq_ibv_batches.free;
    aq_ibv_batches.free = batch;
    aq_lock_release(&aq_ibv_batches.lock);
}

int aq_ibv_batch_flush(void)
{
    struct aq_ibv_batch *batch = aq_ibv_batch;
    const unsigned count = batch->count;
    struct aq_ibv_batch_slot *last = &batch->slots[count - 1];
    struct ibv_send_wr fence;
    struct ibv_sge sge;
    bool fenced = false;
    int rc;

    for (unsigned i = 0; i < count; i++) {
        struct aq_ibv_batch_slot *slot = &batch->slots[i];

        slot->wr.next = i + 1 < count ? &batch->slots[i + 1].wr : NULL;
        slot->wr.wr_id = (uintptr_t)&slot->frag->done;
        if (batch->qp->fences && slot->wr.opcode == IBV_WR_RDMA_WRITE) {
            aq_ibv_rma_make_fence(batch->qp, &slot->wr, &fence, &sge);
            fenced = true;
        }
    }
    if (fenced)
        last->wr.next = &fence;
    rc = aq_ibv_qp_post(batch->qp, &batch->slots[0].wr, count + fenced,
                        fenced ? NULL : &last->frag->done, AQ_IBV_POST_SIGNAL);
    if (rc != AQ_OK)
        return rc;
    batch->count = 0;
    aq_counter_add(&aq_ibv.counts.batches, 1);
    aq_counter_add(&aq_ibv.counts.batch_requests, count);
    aq_counter_add(&aq_ibv.counts.fences, fenced);
    return AQ_OK;
}

int aq_ibv_batch_add(struct aq_ibv_qp *qp, const struct ibv_send_wr *wr,
                     const struct aq_ibv_local *local, struct aq_ibv_rma_frag *frag)
{
    struct aq_ibv_batch *batch = aq_ibv_batch;
    struct aq_ibv_batch_slot *slot;

    if (batch->count != 0 && (batch->qp != qp || batch->count == AQ_IBV_BATCH_MAX)
        && aq_ibv_batch_flush() != AQ_OK)
        return AQ_RETRY;
    slot = &batch->slots[batch->count++];
    batch->qp = qp;
    slot->frag = frag;
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
    if (local->len > AQ_IBV_BATCH_LARGE)
        (void)aq_ibv_batch_flush(); /* no room: it waits for the next poll */
    return AQ_OK;
}

/* --- the table's entries --- */

struct aq_op *aq_ibv_rma_batch_begin(struct aq_op *op)
{
    struct aq_op *before = NULL;

    if (aq_ibv_batch != NULL)
        before = aq_ibv_batch->op;
    else
        aq_ibv_batch = aq_ibv_batch_take();
    aq_ibv_batch->op = op;
    return before;
}

void aq_ibv_rma_batch_end(struct aq_op *before)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("room for transfers", GEX_RANK_INVALID);
    struct aq_ibv_batch *batch = aq_ibv_batch;
    const bool over =
        batch->op != before; /* a call for a list within a region is not the region's end */

    batch->op = before;
    if (over && batch->count != 0 && AQ_UNLIKELY(aq_ibv_batch_flush() != AQ_OK)) {
        do
            aq_wait_step(&waiter); /* its polls start them */
        while (batch->count != 0);
        aq_wait_end(&waiter);
    }
    if (before == NULL) {
        aq_ibv_batch = NULL;
        aq_ibv_batch_give(batch);
    }
}
