/*
 * aq_ibv_rma.c - put and get with far ranks: RDMA writes and reads.
 *
 * The short way   the far side is in a segment, which is registered for good, and one work request
 *                     does it: put   inline, if the device takes so much; from our own segment
 *                           where it is; else, up to some pages, from a bounce buffer that it is
 *                           copied to
 *                     get   into our own segment; else, up to some pages, through a bounce buffer
 *                 It allocates nothing, and what finds no room now has no effect and is tried again
 * The long way    everything else is a transfer of several requests, see aq_ibv_xfer.c
 * Local completion  with inline or copied data at return; else with the transfer's: the device's
 *                 acknowledgement is the first that is heard of it
 * Remote completion the completion of an RDMA write on a reliable connection: the data is in the
 *                 target's memory. On another rail than that of messages, whose device might be
 *                 quicker, that of a read behind it
 * Threads         any; a completion counts under the reap lock of its rail
 * Uses            aq_ibv_xfer.h; extended/aq_ref.h.
 *                 SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "conduits/ibv/aq_ibv_batch.h"
#include "base/aq_env.h"
#include "base/aq_log.h"
#include "core/aq_poll.h"
#include "base/aq_rc.h"
#include "base/aq_word.h"
#include "extended/aq_ref.h"

#define AQ_IBV_FENCE 8u /* bytes that a fence reads at most */

static struct {
    size_t copy_now; /* bytes: copied rather than waited for, if the source must be free at once */
} aq_rma_limits = { .copy_now = AQ_IBV_BOUNCE_MAX };

static struct aq_ibv_bounce *aq_rma_fence; /* where fences read to; nobody looks at it */

int aq_ibv_rma_init(void)
{
    const uint64_t max = aq_env_size(AQ_ENV_NONBULKPUT_BOUNCE_LIMIT);

    aq_rma_limits.copy_now = max < AQ_IBV_BOUNCE_MAX ? (size_t)max : AQ_IBV_BOUNCE_MAX;
    if (aq_ibv.rail_count > 1)
        aq_rma_fence = aq_ibv_bounce_take(AQ_IBV_FENCE);
    return aq_ibv_reg_init();
}

void aq_ibv_rma_plan_fences(struct aq_ibv_peer *peer)
{
    const bool fenced = aq_env_bool(AQ_ENV_USE_FENCED_PUTS);

    for (uint32_t i = 0; i < peer->qp_count; i++)
        peer->qps[i]->fences = fenced && peer->qps[i]->rail != peer->qps[peer->am_qp]->rail;
}

/* The acknowledgement of a write says that the far device has the data. What a device was given
 * through another queue may get to memory before that; but a read of the same queue pair finds it
 * in memory, and so does all that comes later. */
void aq_ibv_rma_make_fence(const struct aq_ibv_qp *qp, const struct ibv_send_wr *put,
                           struct ibv_send_wr *fence_out, struct ibv_sge *sge_out)
{
    const uint32_t nbytes = put->sg_list->length;

    *sge_out = (struct ibv_sge){ .addr = (uintptr_t)aq_rma_fence->bytes,
                                 .length = nbytes < AQ_IBV_FENCE ? nbytes : AQ_IBV_FENCE,
                                 .lkey = aq_rma_fence->lkey[qp->rail->dev->index] };
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
        aq_counter_add(&aq_ibv.counts.fences, 1);
    return rc;
}

struct aq_ibv_qp *aq_ibv_rma_qp(struct aq_ibv_peer *peer)
{
    static atomic_uint next_qp;
    unsigned own;

    if (AQ_LIKELY(peer->qp_count == 1))
        return peer->qps[0];
    /* relaxed, and not one addition: two threads that take the same turn do no harm */
    own = atomic_load_explicit(&next_qp, memory_order_relaxed);
    atomic_store_explicit(&next_qp, own + 1, memory_order_relaxed);
    return peer->qps[own % peer->qp_count];
}

/* --- completions; under the reap lock --- */

static inline struct aq_ibv_rma_frag *aq_ibv_rma_frag_of(struct aq_ibv_done *done)
{
    return (struct aq_ibv_rma_frag *)(void *)done; /* its first member */
}

static void aq_ibv_put_done(struct aq_ibv_done *done)
{
    struct aq_ibv_rma_frag *frag = aq_ibv_rma_frag_of(done);
    struct aq_op *op = frag->op;

    aq_ibv_rma_frag_give(frag);
    aq_op_end(op, GEX_EC_PUT, 1);
}

static void aq_ibv_put_lc_done(struct aq_ibv_done *done)
{
    aq_op_end(aq_ibv_rma_frag_of(done)->op, GEX_EC_LC,
              1); /* first: the op may be gone after its last count */
    aq_ibv_put_done(done);
}

static void aq_ibv_put_copy_done(struct aq_ibv_done *done)
{
    aq_ibv_bounce_give(aq_ibv_rma_frag_of(done)->bounce);
    aq_ibv_put_done(done);
}

static void aq_ibv_get_done(struct aq_ibv_done *done)
{
    struct aq_ibv_rma_frag *frag = aq_ibv_rma_frag_of(done);
    struct aq_op *op = frag->op;

    aq_ibv_rma_frag_give(frag);
    aq_op_end(op, GEX_EC_GET, 1);
}

static void aq_ibv_get_copy_done(struct aq_ibv_done *done)
{
    struct aq_ibv_rma_frag *frag = aq_ibv_rma_frag_of(done);

    aq_op_acquire(frag->op);
    aq_word_write(frag->dest, frag->bounce->bytes, frag->nbytes);
    aq_ibv_bounce_give(frag->bounce);
    aq_ibv_get_done(done);
}

/* --- the short way --- */

/* Post the one request of a transfer that has been counted. Nothing of it is left if there is no
 * room. */
static inline int aq_ibv_post_counted(struct aq_ibv_qp *qp, struct ibv_send_wr *wr,
                                      const struct aq_ibv_local *local,
                                      struct aq_ibv_rma_frag *frag, bool counts_lc)
{
    const int rc = aq_ibv_batch_takes(frag->op) ? aq_ibv_batch_add(qp, wr, local, frag)
                                                : aq_ibv_rma_post(qp, wr, local, frag);

    if (AQ_LIKELY(rc == AQ_OK))
        return AQ_OK;
    if (counts_lc)
        aq_op_end(frag->op, GEX_EC_LC, 1);
    aq_op_end(frag->op, wr->opcode == IBV_WR_RDMA_READ ? GEX_EC_GET : GEX_EC_PUT, 1);
    if (frag->bounce != NULL)
        aq_ibv_bounce_give(frag->bounce);
    aq_ibv_rma_frag_give(frag);
    return rc;
}

static int aq_ibv_put_short(const struct aq_ibv_wanted *w)
{
    struct aq_ibv_peer *peer = aq_ibv_peer(w->rank);
    struct aq_ibv_local local = { .addr = (uintptr_t)w->laddr, .len = w->nbytes };
    struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .wr.rdma.remote_addr = w->raddr };
    struct aq_ibv_bounce *bounce = NULL;
    struct aq_ibv_rma_frag *frag;
    struct aq_ibv_qp *qp;
    bool counts_lc = false;

    if (AQ_UNLIKELY(peer == NULL || !aq_ibv_rma_is_quiet()))
        return AQ_RETRY;
    qp = aq_ibv_batch_qp(w->op, peer);
    if (AQ_UNLIKELY(aq_ibv_qp_space(qp) == 0))
        return AQ_RETRY;
    aq_ibv_remote_key(w->rank, qp->rail->index, (void *)w->raddr, w->nbytes, &wr.wr.rdma.rkey);
    if (aq_ibv_batch_inlines(w->op, qp, w->nbytes)) {
        wr.send_flags = IBV_SEND_INLINE;
    } else if (w->lc_now || !aq_ibv_local_own(w->laddr, w->nbytes, &local)) {
        bounce = aq_ibv_bounce_take(w->nbytes);
        if (bounce == NULL)
            return AQ_RETRY;
        memcpy(bounce->bytes, w->laddr, w->nbytes);
        aq_ibv_local_bounce(bounce, bounce->bytes, w->nbytes, &local);
    } else {
        counts_lc = true;
    }
    frag = aq_ibv_rma_frag_take();
    frag->op = w->op;
    frag->bounce = bounce;
    frag->done.fn = counts_lc        ? aq_ibv_put_lc_done
                    : bounce != NULL ? aq_ibv_put_copy_done
                                     : aq_ibv_put_done;
    if (counts_lc)
        aq_op_begin(w->op, GEX_EC_LC, 1);
    aq_op_begin(w->op, GEX_EC_PUT, 1);
    return aq_ibv_post_counted(qp, &wr, &local, frag, counts_lc);
}

static int aq_ibv_get_short(const struct aq_ibv_wanted *w)
{
    struct aq_ibv_peer *peer = aq_ibv_peer(w->rank);
    struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ, .wr.rdma.remote_addr = w->raddr };
    struct aq_ibv_bounce *bounce = NULL;
    struct aq_ibv_rma_frag *frag;
    struct aq_ibv_local local;
    struct aq_ibv_qp *qp;

    if (AQ_UNLIKELY(peer == NULL))
        return AQ_RETRY;
    qp = aq_ibv_batch_qp(w->op, peer);
    if (AQ_UNLIKELY(aq_ibv_qp_space(qp) == 0))
        return AQ_RETRY;
    aq_ibv_remote_key(w->rank, qp->rail->index, (void *)w->raddr, w->nbytes, &wr.wr.rdma.rkey);
    if (!aq_ibv_local_own(w->laddr, w->nbytes, &local)) {
        bounce = aq_ibv_bounce_take(w->nbytes);
        if (bounce == NULL)
            return AQ_RETRY;
        aq_ibv_local_bounce(bounce, bounce->bytes, w->nbytes, &local);
    }
    frag = aq_ibv_rma_frag_take();
    frag->op = w->op;
    frag->bounce = bounce;
    frag->dest = w->laddr;
    frag->nbytes = (uint32_t)w->nbytes;
    frag->done.fn = bounce != NULL ? aq_ibv_get_copy_done : aq_ibv_get_done;
    aq_op_begin(w->op, GEX_EC_GET, 1);
    return aq_ibv_post_counted(qp, &wr, &local, frag, false);
}

/* Try until there is room, unless the client would rather hear of it. */
static __attribute__((noinline)) int aq_ibv_short_wait(const struct aq_ibv_wanted *w)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("room for a transfer", w->rank);
    int rc;

    waiter.unrung = 1; /* the connector, or firehose, may be what it waits for */
    do {
        aq_wait_step(&waiter);
        rc = w->is_put ? aq_ibv_put_short(w) : aq_ibv_get_short(w);
    } while (rc == AQ_RETRY);
    aq_wait_end(&waiter);
    return rc;
}

/* --- the long way --- */

/* Transfers wait in a queue of their own; a client that begins more and more of them has to wait as
 * well. */
static int aq_ibv_long(const struct aq_ibv_wanted *w, gex_Flags_t flags)
{
    if (AQ_UNLIKELY(aq_ibv_xfer_crowded())) {
        struct aq_waiter waiter = AQ_WAITER_INIT("room for a transfer", w->rank);

        if ((flags & GEX_FLAG_IMMEDIATE) != 0)
            return AQ_RETRY;
        waiter.unrung = 1;
        do
            aq_wait_step(&waiter);
        while (aq_ibv_xfer_crowded());
        aq_wait_end(&waiter);
    }
    aq_ibv_xfer_start(w);
    return AQ_OK;
}

/* One request is enough, and spreading it would not help. */
static inline bool aq_ibv_is_one(const struct aq_ibv_wanted *w)
{
    const struct aq_ibv_peer *peer;

    if (w->nbytes <= AQ_IBV_STRIPE_MIN)
        return true;
    peer = aq_ibv_peer_look(w->rank);
    return w->nbytes <= AQ_IBV_FRAG_MAX && peer != NULL && peer->qp_count == 1;
}

/* --- the table's entries --- */

static bool aq_ibv_is_registered(gex_Rank_t jobrank, const void *addr, size_t nbytes)
{
    uint32_t rkey;

    return aq_ibv_remote_key(jobrank, 0, addr, nbytes, &rkey);
}

#if !GASNET_SEGMENT_EVERYTHING
/* Segments of further endpoints are not registered, and a peer's word is not enough to pin whatever
 * it names: messages, whose handlers check, reach them. */
#define AQ_IBV_REMOTE_BY_MESSAGE true
#else
#define AQ_IBV_REMOTE_BY_MESSAGE false
#endif

int aq_ibv_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags)
{
    const struct aq_ibv_wanted wanted = { .op = op,
                                          .rank = jobrank,
                                          .is_put = true,
                                          .lc_now = lc_now,
                                          .copies = lc_now && nbytes <= aq_rma_limits.copy_now,
                                          .laddr = (void *)(uintptr_t)src,
                                          .raddr = (uintptr_t)dest,
                                          .nbytes = nbytes };
    size_t copied;
    int rc;

    if (!aq_ibv_is_registered(jobrank, dest, nbytes))
        return AQ_IBV_REMOTE_BY_MESSAGE ? aq_ref_put(op, jobrank, dest, src, nbytes, lc_now, flags)
                                        : aq_ibv_long(&wanted, flags);
    copied = lc_now ? aq_rma_limits.copy_now : AQ_IBV_COPIED_MAX;
    if (lc_now && nbytes > copied && (flags & GEX_FLAG_IMMEDIATE) != 0)
        return AQ_RETRY; /* its source is free when the device has acknowledged all of it */
    if (nbytes > copied
        && (lc_now || !aq_ibv_is_one(&wanted)
            || !aq_bounds_contain(&aq_ibv_own.bound, src, nbytes)))
        return aq_ibv_long(&wanted, flags);
    rc = aq_ibv_put_short(&wanted);
    return AQ_LIKELY(rc != AQ_RETRY) || (flags & GEX_FLAG_IMMEDIATE) != 0
               ? rc
               : aq_ibv_short_wait(&wanted);
}

int aq_ibv_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags)
{
    const struct aq_ibv_wanted wanted = {
        .op = op, .rank = jobrank, .laddr = dest, .raddr = (uintptr_t)src, .nbytes = nbytes
    };
    int rc;

    if (!aq_ibv_is_registered(jobrank, src, nbytes))
        return AQ_IBV_REMOTE_BY_MESSAGE ? aq_ref_get(op, jobrank, dest, src, nbytes, flags)
                                        : aq_ibv_long(&wanted, flags);
    if (nbytes > AQ_IBV_COPIED_MAX
        && (!aq_ibv_is_one(&wanted) || !aq_bounds_contain(&aq_ibv_own.bound, dest, nbytes)))
        return aq_ibv_long(&wanted, flags);
    rc = aq_ibv_get_short(&wanted);
    return AQ_LIKELY(rc != AQ_RETRY) || (flags & GEX_FLAG_IMMEDIATE) != 0
               ? rc
               : aq_ibv_short_wait(&wanted);
}
