/*
 * aq_ibv_rma.c - put and get with remote ranks: RDMA writes and reads.
 *
 * One request       the remote side is in a segment, and one work request does it
 *                   put   inline, if the device takes so much; from the own segment where it is;
 *                         else, up to some pages, from a bounce buffer that the source is copied to
 *                   get   into the own segment; else, up to some pages, through a bounce buffer
 *                   It allocates nothing. Without space it has no effect and is tried again
 * Transfer          everything else: several requests, see aq_ibv_xfer.c
 * Local completion  at return if the data was inline or copied; else with the transfer's, since the
 *                   device's acknowledgement is the first sign of either
 * Remote completion the completion of an RDMA write on a reliable connection: the data is in the
 *                   target's memory. On another rail than that of messages, whose device might be
 *                   faster, the completion of a read behind it
 * Threads           any; a completion runs under the reap lock of its rail
 * Uses              aq_ibv_rma.h; extended/aq_ref.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_rma.h"

#include <string.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_word.h"
#include "core/aq_poll.h"
#include "extended/aq_ref.h"

#define AQ_IBV_FENCE_MAX 8u /* bytes that a fence reads */

void aq_ibv_rma_init(struct aq_ibv_net *net)
{
    const uint64_t max = aq_env_size(AQ_ENV_NONBULKPUT_BOUNCE_LIMIT);

    aq_ibv_bounce_init(net);
    aq_ibv_rma.net = net;
    aq_ibv_rma.copy_now = max < AQ_IBV_BOUNCE_MAX ? (size_t)max : AQ_IBV_BOUNCE_MAX;
    if (net->rail_count > 1)
        aq_ibv_rma.fence = aq_ibv_bounce_take(AQ_IBV_FENCE_MAX);
}

void aq_ibv_rma_fini(void)
{
    aq_ibv_xfer_fini();
    aq_ibv_batch_fini();
    aq_ibv_bounce_fini();
}

/* --- completions; under the reap lock --- */

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
              1); /* first: the op may be freed after its last count */
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

/* --- one request --- */

/* Post a request that has been counted; without space nothing of it is left. */
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

static int aq_ibv_put_one(const struct aq_ibv_wanted *w)
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

static int aq_ibv_get_one(const struct aq_ibv_wanted *w)
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

/* Try until there is space. */
static __attribute__((noinline)) int aq_ibv_one_wait(const struct aq_ibv_wanted *w)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("space for a transfer", w->rank);
    int rc;

    waiter.no_wakeup = 1; /* the connector or firehose may be what it waits for */
    do {
        aq_wait_step(&waiter);
        rc = w->is_put ? aq_ibv_put_one(w) : aq_ibv_get_one(w);
    } while (rc == AQ_RETRY);
    aq_wait_end(&waiter);
    return rc;
}

/* --- transfers --- */

/* Transfers that wait have a queue; a client that starts ever more of them waits as well. */
static int aq_ibv_transfer(const struct aq_ibv_wanted *w, gex_Flags_t flags)
{
    if (AQ_UNLIKELY(aq_ibv_xfer_crowded())) {
        struct aq_waiter waiter = AQ_WAITER_INIT("space for a transfer", w->rank);

        if ((flags & GEX_FLAG_IMMEDIATE) != 0)
            return AQ_RETRY;
        waiter.no_wakeup = 1;
        do
            aq_wait_step(&waiter);
        while (aq_ibv_xfer_crowded());
        aq_wait_end(&waiter);
    }
    aq_ibv_xfer_start(w);
    return AQ_OK;
}

/* Is one request enough, and would spreading not help? */
static inline bool aq_ibv_is_one(const struct aq_ibv_wanted *w)
{
    const struct aq_ibv_peer *peer;

    if (w->nbytes <= AQ_IBV_STRIPE_MIN)
        return true;
    peer = aq_ibv_peer_look(w->rank);
    return w->nbytes <= AQ_IBV_FRAG_MAX && peer != NULL && peer->qp_count == 1;
}

/* --- table entries --- */

static bool aq_ibv_is_registered(gex_Rank_t jobrank, const void *addr, size_t nbytes)
{
    uint32_t rkey;

    return aq_ibv_remote_key(jobrank, 0, addr, nbytes, &rkey);
}

/* May firehose register the peer's memory? Not that of further endpoints' segments, unless all
 * memory is a segment: a peer must not make this rank pin any memory that it names. Such segments
 * are reached by messages, whose handlers check. */
static bool aq_ibv_by_firehose(gex_Rank_t jobrank, const void *addr, size_t nbytes)
{
#if GASNET_SEGMENT_EVERYTHING
    (void)jobrank, (void)addr, (void)nbytes;
    return true;
#else
    return aq_ibv_segments.on_demand && aq_bound_contains(jobrank, addr, nbytes);
#endif
}

int aq_ibv_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags)
{
    const struct aq_ibv_wanted wanted = { .op = op,
                                          .rank = jobrank,
                                          .is_put = true,
                                          .lc_now = lc_now,
                                          .copies = lc_now && nbytes <= aq_ibv_rma.copy_now,
                                          .laddr = (void *)(uintptr_t)src,
                                          .raddr = (uintptr_t)dest,
                                          .nbytes = nbytes };
    const size_t copied = lc_now ? aq_ibv_rma.copy_now : AQ_IBV_COPIED_MAX;
    const bool is_registered = aq_ibv_is_registered(jobrank, dest, nbytes);
    int rc;

    if (!is_registered && !aq_ibv_by_firehose(jobrank, dest, nbytes))
        return aq_ref_put(op, jobrank, dest, src, nbytes, lc_now, flags);
    if (lc_now && nbytes > copied && (flags & GEX_FLAG_IMMEDIATE) != 0)
        return AQ_RETRY; /* its source is free when the device has acknowledged all of it */
    if (!is_registered)
        return aq_ibv_transfer(&wanted, flags);
    if (nbytes > copied
        && (lc_now || !aq_ibv_is_one(&wanted)
            || !aq_bounds_contain(&aq_ibv_segments.own, src, nbytes)))
        return aq_ibv_transfer(&wanted, flags);
    rc = aq_ibv_put_one(&wanted);
    return AQ_LIKELY(rc != AQ_RETRY) || (flags & GEX_FLAG_IMMEDIATE) != 0
               ? rc
               : aq_ibv_one_wait(&wanted);
}

int aq_ibv_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags)
{
    const struct aq_ibv_wanted wanted = {
        .op = op, .rank = jobrank, .laddr = dest, .raddr = (uintptr_t)src, .nbytes = nbytes
    };
    int rc;

    if (!aq_ibv_is_registered(jobrank, src, nbytes))
        return aq_ibv_by_firehose(jobrank, src, nbytes)
                   ? aq_ibv_transfer(&wanted, flags)
                   : aq_ref_get(op, jobrank, dest, src, nbytes, flags);
    if (nbytes > AQ_IBV_COPIED_MAX
        && (!aq_ibv_is_one(&wanted) || !aq_bounds_contain(&aq_ibv_segments.own, dest, nbytes)))
        return aq_ibv_transfer(&wanted, flags);
    rc = aq_ibv_get_one(&wanted);
    return AQ_LIKELY(rc != AQ_RETRY) || (flags & GEX_FLAG_IMMEDIATE) != 0
               ? rc
               : aq_ibv_one_wait(&wanted);
}
