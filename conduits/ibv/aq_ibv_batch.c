/*
 * aq_ibv_batch.c - posting of puts and gets: in turns over the queue pairs, with fences, in
 * batches.
 *
 * Batch     the operation of an access region, or of one VIS call, is not known to the client
 *           before its end, so that nobody can wait for one of its requests. These requests, to one
 *           peer, wait in a batch and leave with one doorbell: when the batch is full, when the
 *           next request goes to another peer, after a request of more than 4 KiB (a doorbell is
 *           cheap beside it), at the end of the region or call, and with every poll of the thread.
 *           Only the last request is signalled: requests of a queue pair complete in order. On a
 *           rail whose puts are fenced one read ends the batch, for all of its puts
 *           Everything else is posted and signalled at once: somebody may wait for a put outside of
 *           a region, and a completion that is requested later costs a request of its own
 * Lists     puts to consecutive remote addresses, or gets from them, join into one work request,
 *           whose list names their local pieces: a section that is contiguous at the target
 * Owns      the batches: a thread has one from rma_batch_begin to rma_batch_end
 * Threads   any
 * Promise   a request in a batch has been counted; it leaves without a further call of the client
 *           but the end or a poll
 * Uses      aq_ibv_rma.h, core/aq_poll.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_rma.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "core/aq_poll.h"

#define AQ_IBV_FENCE_MAX 8u /* bytes that a fence reads */

struct aq_ibv_rma aq_ibv_rma AQ_JOB_STATE;

_Thread_local struct aq_ibv_batch *aq_ibv_batch __attribute__((tls_model("initial-exec")));

static struct aq_freelist aq_ibv_batches AQ_JOB_STATE; /* free ones */

/* --- one request --- */

/* The read behind a put, and behind all requests before it on the queue pair. The acknowledgement
 * of a write says that the remote device has the data. What another device was given may reach
 * memory before that data. A read on the same queue pair finds the data in memory, and so does
 * everything later. */
static void aq_ibv_rma_make_fence(const struct aq_ibv_qp *qp, const struct ibv_send_wr *put,
                                  struct ibv_send_wr *fence_out, struct ibv_sge *sge_out)
{
    const uint32_t nbytes = put->sg_list->length;

    *sge_out = (struct ibv_sge){ .addr = (uintptr_t)aq_ibv_rma.fence->bytes,
                                 .length = nbytes < AQ_IBV_FENCE_MAX ? nbytes : AQ_IBV_FENCE_MAX,
                                 .lkey = aq_ibv_rma.fence->lkey[qp->rail->dev->index] };
    *fence_out = (struct ibv_send_wr){
        .sg_list = sge_out, .num_sge = 1, .opcode = IBV_WR_RDMA_READ, .wr = put->wr
    };
}

int aq_ibv_rma_post_fenced(struct aq_ibv_qp *qp, struct ibv_send_wr *wr,
                           struct aq_ibv_rma_frag *frag)
{
    struct ibv_send_wr fence;
    struct ibv_sge sge;
    int rc;

    aq_ibv_rma_make_fence(qp, wr, &fence, &sge);
    wr->next = &fence;
    rc = aq_ibv_qp_post(qp, wr, 2, &frag->done, AQ_IBV_POST_SIGNAL);
    if (AQ_LIKELY(rc == AQ_OK))
        aq_counter_add(&aq_ibv_rma.fences, 1);
    return rc;
}

struct aq_ibv_qp *aq_ibv_rma_qp(struct aq_ibv_peer *peer)
{
    static atomic_uint next_qp;
    unsigned own;

    if (AQ_LIKELY(peer->qp_count == 1))
        return peer->qps[0];
    /* relaxed, and not an atomic addition: two threads may take the same queue pair */
    own = atomic_load_explicit(&next_qp, memory_order_relaxed);
    atomic_store_explicit(&next_qp, own + 1, memory_order_relaxed);
    return peer->qps[own % peer->qp_count];
}

/* --- batches --- */

static struct aq_ibv_batch *aq_ibv_batch_take(void)
{
    struct aq_ibv_batch *batch =
        aq_freelist_thing(aq_freelist_take(&aq_ibv_batches), offsetof(struct aq_ibv_batch, item));

    if (batch == NULL && (batch = calloc(1, sizeof(*batch))) == NULL)
        aq_fatal("ibv: no memory for a batch of transfers (%zu bytes)", sizeof(*batch));
    return batch;
}

static void aq_ibv_batch_give(struct aq_ibv_batch *batch)
{
    aq_freelist_give(&aq_ibv_batches, &batch->item);
}

void aq_ibv_batch_fini(void)
{
    struct aq_freelist_item *item;

    while ((item = aq_freelist_pop(&aq_ibv_batches)) != NULL)
        free(aq_freelist_thing(item, offsetof(struct aq_ibv_batch, item)));
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
    aq_counter_add(&aq_ibv_rma.batches, 1);
    aq_counter_add(&aq_ibv_rma.batch_requests, count);
    aq_counter_add(&aq_ibv_rma.fences, fenced);
    return AQ_OK;
}

/* --- work requests of several transfers --- */

/* Ends all that have joined. */
static void aq_ibv_joined_done(struct aq_ibv_done *done)
{
    struct aq_ibv_rma_frag *frag = aq_ibv_rma_frag_of(done);

    while (frag != NULL) {
        struct aq_ibv_rma_frag *before = frag->joined;

        frag->fn(&frag->done);
        frag = before;
    }
}

static void aq_ibv_batch_link(struct aq_ibv_batch_slot *slot, struct aq_ibv_rma_frag *frag)
{
    struct aq_ibv_rma_frag *before = slot->frag;

    if (before->done.fn != aq_ibv_joined_done) {
        before->joined = NULL;
        before->fn = before->done.fn;
    }
    frag->joined = before;
    frag->fn = frag->done.fn;
    frag->done.fn = aq_ibv_joined_done;
    slot->frag = frag;
}

/* Inline data joins inline data, a list grows by one. Returns false if there is no space in it. */
static bool aq_ibv_batch_extend(struct aq_ibv_qp *qp, struct aq_ibv_batch_slot *slot,
                                const struct aq_ibv_local *local)
{
    struct ibv_sge *sge = slot->sges;
    const unsigned is_read = slot->wr.opcode == IBV_WR_RDMA_READ;

    if ((slot->wr.send_flags & IBV_SEND_INLINE) != 0) {
        if (sge->length + local->len > MIN(AQ_IBV_BATCH_INLINE, qp->max_inline))
            return false;
        memcpy(slot->data + sge->length, (const void *)local->addr, local->len);
        sge->length += (uint32_t)local->len;
        return true;
    }
    if (slot->wr.num_sge >= qp->max_gather[is_read])
        return false;
    sge[slot->wr.num_sge++] = (struct ibv_sge){ .addr = local->addr,
                                                .length = (uint32_t)local->len,
                                                .lkey = local->lkey[qp->rail->dev->index] };
    return true;
}

/* Does the transfer continue the batch's last request? Then it joins it. */
static bool aq_ibv_batch_join(struct aq_ibv_qp *qp, const struct ibv_send_wr *wr,
                              const struct aq_ibv_local *local, struct aq_ibv_rma_frag *frag)
{
    struct aq_ibv_batch *batch = aq_ibv_batch;
    struct aq_ibv_batch_slot *slot;

    if (batch->count == 0 || batch->qp != qp)
        return false;
    slot = &batch->slots[batch->count - 1];
    if (slot->remote_end != wr->wr.rdma.remote_addr || slot->wr.wr.rdma.rkey != wr->wr.rdma.rkey
        || slot->wr.opcode != wr->opcode || slot->wr.send_flags != wr->send_flags
        || qp->max_gather[0] < 2 || local->len > AQ_IBV_BATCH_LARGE
        || !aq_ibv_batch_extend(qp, slot, local))
        return false;
    slot->remote_end += local->len;
    aq_ibv_batch_link(slot, frag);
    aq_counter_add(&aq_ibv_rma.joined, 1);
    return true;
}

int aq_ibv_batch_add(struct aq_ibv_qp *qp, const struct ibv_send_wr *wr,
                     const struct aq_ibv_local *local, struct aq_ibv_rma_frag *frag)
{
    struct aq_ibv_batch *batch = aq_ibv_batch;
    struct aq_ibv_batch_slot *slot;

    if (aq_ibv_batch_join(qp, wr, local, frag))
        return AQ_OK;
    if (batch->count != 0 && (batch->qp != qp || batch->count == AQ_IBV_BATCH_MAX)
        && aq_ibv_batch_flush() != AQ_OK)
        return AQ_RETRY;
    slot = &batch->slots[batch->count++];
    batch->qp = qp;
    slot->frag = frag;
    slot->wr = *wr;
    slot->wr.sg_list = slot->sges;
    slot->wr.num_sge = 1;
    slot->remote_end = wr->wr.rdma.remote_addr + local->len;
    slot->sges[0] = (struct ibv_sge){ .addr = local->addr, .length = (uint32_t)local->len };
    if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
        memcpy(slot->data, (const void *)local->addr, local->len);
        slot->sges[0].addr = (uintptr_t)slot->data;
    } else {
        slot->sges[0].lkey = local->lkey[qp->rail->dev->index];
    }
    if (local->len > AQ_IBV_BATCH_LARGE)
        (void)aq_ibv_batch_flush(); /* no space: it waits for the next poll */
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
    struct aq_waiter waiter = AQ_WAITER_INIT("space for transfers", GEX_RANK_INVALID);
    struct aq_ibv_batch *batch = aq_ibv_batch;
    const bool over =
        batch->op != before; /* the end of a VIS call within a region is not that of the region */

    batch->op = before;
    if (over && batch->count != 0 && AQ_UNLIKELY(aq_ibv_batch_flush() != AQ_OK)) {
        do
            aq_wait_step(&waiter); /* its polls flush the batch */
        while (batch->count != 0);
        aq_wait_end(&waiter);
    }
    if (before == NULL) {
        aq_ibv_batch = NULL;
        aq_ibv_batch_give(batch);
    }
}
