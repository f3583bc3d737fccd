/*
 * aq_ibv_xfer.c - transfers of more than one request, or of memory that is not registered for good.
 *
 * A transfer goes piece by piece: hold the peer's memory (firehose; not if it is in the segment),
 * then ours (firehose, or through a bounce buffer where pinning is refused), post, go on. What is
 * pinned already goes whole; chunks that are not begin with a page and double, so that the device
 * moves one while the processor pins the next.
 *
 * A long message's payload is a transfer too, on the queue pair of messages, which the message
 * itself ends.
 *
 * It never blocks. What it lacks (room in a queue pair, a connection, an answer of firehose, memory
 * that may be pinned) parks it; the next poll goes on. Its operation counts it once, from beginning
 * to end.
 *
 * States    fed by one thread at a time: its beginner, or whoever took it out of the parked;
 *           PENDING at firehose it is nobody's until done() parks it. It ends with its last piece
 * Holds     the peer's memory first, then ours: what holds neither waits for either, what holds the
 *           peer's waits for ours only, which no peer's wish keeps. The requests of a hold of the
 *           peer's go through one queue pair, where completions are in order: the last one releases
 *           it
 * Threads   any; done() of a piece under the reap lock
 * Uses      aq_ibv_xfer.h, extended/aq_ref.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "conduits/ibv/aq_ibv_xfer_state.h"
#include "base/aq_env.h"
#include "base/aq_log.h"
#include "core/aq_poll.h"
#include "base/aq_rc.h"
#include "base/aq_word.h"
#include "extended/aq_ref.h"

#define AQ_XFER_BY_MESSAGE 32768u /* bytes of a message, where the peer cannot pin */

/* --- the end --- */

/* One of its pieces, or the feeder, is done. */
static void aq_ibv_xfer_complete(struct aq_ibv_xfer *x)
{
    struct aq_op *op = x->w.op;
    atomic_bool *finished = x->finished;
    const gex_EC_t category = x->is_long ? GEX_EC_AM : x->w.is_put ? GEX_EC_PUT : GEX_EC_GET;
    const bool counts_lc = x->counts_lc;

    if (aq_counter_add(&x->pending, (uint64_t)-1) != 0)
        return;
    aq_ibv_xfer_give(x);
    if (counts_lc)
        aq_op_end(op, GEX_EC_LC, 1);
    aq_op_end(op, category, 1);
    if (finished != NULL)
        /* release: pairs with the acquire of the waiter, who then leaves the frame it is in */
        atomic_store_explicit(finished, true, memory_order_release);
}

static void aq_ibv_xfer_frag_done(struct aq_ibv_done *done)
{
    struct aq_ibv_rma_frag *frag = (struct aq_ibv_rma_frag *)(void *)done; /* its first member */
    struct aq_ibv_xfer *x = frag->xfer;

    if (frag->dest != NULL) {
        aq_op_acquire(x->w.op);
        memcpy(frag->dest, frag->bounce->bytes, frag->nbytes);
    }
    if (frag->bounce != NULL)
        aq_ibv_bounce_give(frag->bounce);
    if (frag->local.region != NULL)
        aq_fh_release(aq_fh_job, &frag->local);
    if (frag->remote.region != NULL)
        aq_fh_release(aq_fh_job, &frag->remote);
    aq_ibv_rma_frag_give(frag);
    aq_ibv_xfer_complete(x);
}

/* --- what a piece needs --- */

static void aq_ibv_xfer_advance(struct aq_ibv_xfer *x, size_t nbytes)
{
    x->w.laddr = (char *)x->w.laddr + nbytes;
    x->w.raddr += nbytes;
    x->w.nbytes -= nbytes;
}

/* Firehose has answered; any thread. */
static void aq_ibv_xfer_answered(struct aq_fh_request *request)
{
    aq_ibv_xfer_park(request->arg);
}

/* The outcome of a wish. AQ_OK: something is held, or bytes travelled, or messages have to do it.
 * */
static int aq_ibv_xfer_take_answer(struct aq_ibv_xfer *x)
{
    x->answered = false;
    if (x->request.rc == AQ_RETRY)
        return AQ_RETRY;
    if (x->request.rc < 0) {
        x->by_message = true;
        return AQ_OK;
    }
    aq_ibv_xfer_advance(x, x->request.carried);
    x->remote_hold = x->request.hold;
    return AQ_OK;
}

/* Hold the peer's memory. AQ_OK, AQ_RETRY, or AQ_PENDING: it is not ours any more. */
static int aq_ibv_xfer_reach(struct aq_ibv_xfer *x)
{
    const struct aq_fh_chunks before = x->remote_chunks;
    size_t chunk;
    int rc;

    if (aq_fh_job == NULL) {
        x->by_message = true;
        return AQ_OK;
    }
    chunk = aq_fh_chunk(&x->remote_chunks, x->w.raddr, x->w.nbytes, aq_fh_max_chunk(aq_fh_job));
    x->request = (struct aq_fh_request){ .peer = x->w.rank,
                                         .write = x->w.is_put,
                                         .addr = x->w.raddr,
                                         .nbytes = x->w.nbytes,
                                         .chunk = chunk,
                                         .put = x->w.is_put ? x->w.laddr : NULL,
                                         .get = x->w.is_put ? NULL : x->w.laddr,
                                         .done = aq_ibv_xfer_answered,
                                         .arg = x };
    x->answered = true; /* now: another thread may go on before the call returns */
    rc = aq_fh_remote(aq_fh_job, &x->request);
    if (rc == AQ_PENDING)
        return AQ_PENDING;
    x->answered = false;
    if (rc == AQ_OK)
        x->remote_hold = x->request.hold;
    else
        x->remote_chunks = before;
    x->by_message = rc < 0;
    return rc < 0 ? AQ_OK : rc;
}

/* One message's worth, where the peer cannot pin. AQ_OK or AQ_RETRY. */
static int aq_ibv_xfer_message(struct aq_ibv_xfer *x)
{
    const size_t limit = aq_limits.max_medium & ~(size_t)7;
    const size_t max = limit < AQ_XFER_BY_MESSAGE ? limit : AQ_XFER_BY_MESSAGE;
    const size_t nbytes = x->w.nbytes < max ? x->w.nbytes : max;
    const int rc = x->w.is_put ? aq_ref_put(x->w.op, x->w.rank, (void *)x->w.raddr, x->w.laddr,
                                            nbytes, false, GEX_FLAG_IMMEDIATE)
                               : aq_ref_get(x->w.op, x->w.rank, x->w.laddr, (void *)x->w.raddr,
                                            nbytes, GEX_FLAG_IMMEDIATE);

    if (rc == AQ_OK) {
        aq_ibv_xfer_advance(x, nbytes);
    }
    return rc;
}

/* Our side of the next piece, of at most nbytes: segment, pinned, or a bounce buffer. */
static int aq_ibv_xfer_local(struct aq_ibv_xfer *x, size_t nbytes, struct aq_ibv_rma_frag *frag,
                             struct aq_ibv_local *local_out)
{
    int rc = AQ_ERR_RESOURCE;

    if (x->copy != NULL) {
        aq_ibv_local_bounce(x->copy, x->w.laddr, nbytes, local_out);
        return AQ_OK;
    }
    if (aq_ibv_local_own(x->w.laddr, nbytes, local_out))
        return AQ_OK;
    if (aq_fh_job != NULL && !x->refused && x->w.nbytes > AQ_IBV_COPIED_MAX) {
        const struct aq_fh_chunks before = x->local_chunks;
        const uintptr_t laddr = (uintptr_t)x->w.laddr;

        rc = aq_fh_local_chunk(
            aq_fh_job, laddr, nbytes,
            aq_fh_chunk(&x->local_chunks, laddr, nbytes, aq_fh_max_chunk(aq_fh_job)), !x->w.is_put,
            &frag->local);
        if (rc == AQ_OK) {
            aq_ibv_reg_local(&frag->local, local_out);
            return AQ_OK;
        }
        frag->local.region = NULL;
        if (rc == AQ_RETRY) {
            x->local_chunks = before;
            return AQ_RETRY;
        }
        x->refused = rc != AQ_ERR_NOMEM; /* that may pass */
    }
    nbytes = nbytes < AQ_IBV_BOUNCE_MAX ? nbytes : AQ_IBV_BOUNCE_MAX;
    frag->bounce = aq_ibv_bounce_take(nbytes);
    if (frag->bounce == NULL)
        return AQ_RETRY;
    if (x->w.is_put)
        memcpy(frag->bounce->bytes, x->w.laddr, nbytes);
    else
        frag->dest = x->w.laddr;
    frag->nbytes = (uint32_t)nbytes;
    aq_ibv_local_bounce(frag->bounce, frag->bounce->bytes, nbytes, local_out);
    return AQ_OK;
}

static void aq_ibv_rma_frag_undo(struct aq_ibv_rma_frag *frag)
{
    if (frag->bounce != NULL)
        aq_ibv_bounce_give(frag->bounce);
    if (frag->local.region != NULL)
        aq_fh_release(aq_fh_job, &frag->local);
    aq_ibv_rma_frag_give(frag);
}

/* --- feeding --- */

/* Post a piece whose local side is ready; the last of a hold takes the hold along. */
static int aq_ibv_xfer_post(struct aq_ibv_xfer *x, struct aq_ibv_qp *qp,
                            const struct aq_ibv_local *local, struct aq_ibv_rma_frag *frag)
{
    struct ibv_send_wr wr = { .opcode = x->w.is_put ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
                              .wr.rdma.remote_addr = x->w.raddr };
    const bool ends_hold = x->remote_hold.region != NULL && local->len == x->remote_hold.len;
    int rc;

    if (x->registered)
        aq_ibv_remote_key(x->w.rank, qp->rail->index, (void *)x->w.raddr, local->len,
                          &wr.wr.rdma.rkey);
    else
        wr.wr.rdma.rkey = x->remote_hold.reg->key[qp->rail->index];
    frag->xfer = x;
    frag->op = x->w.op;
    frag->done.fn = aq_ibv_xfer_frag_done;
    if (ends_hold)
        frag->remote = x->remote_hold;
    else
        frag->remote.region = NULL;
    aq_counter_add(&x->pending, 1); /* before it can complete */
    rc = aq_ibv_rma_post(qp, &wr, local, frag);
    if (rc != AQ_OK) {
        aq_counter_add(&x->pending, (uint64_t)-1);
        return rc;
    }
    if (ends_hold) {
        x->remote_hold.region = NULL;
    } else if (x->remote_hold.region != NULL) {
        x->remote_hold.addr += local->len;
        x->remote_hold.len -= local->len;
    }
    aq_ibv_xfer_advance(x, local->len);
    return AQ_OK;
}

static int aq_ibv_xfer_frag(struct aq_ibv_xfer *x, struct aq_ibv_peer *peer)
{
    size_t max = x->registered ? x->w.nbytes : x->remote_hold.len;
    struct aq_ibv_rma_frag *frag;
    struct aq_ibv_local local;
    int rc;

    if (x->qp == NULL || x->remote_hold.region == NULL)
        x->qp = x->is_long ? peer->qps[peer->am_qp] : aq_ibv_rma_qp(peer);
    if (aq_ibv_qp_space(x->qp) == 0)
        return AQ_RETRY;
    max = max < x->stripe ? max : x->stripe;
    frag = aq_ibv_rma_frag_take();
    frag->bounce = NULL;
    frag->dest = NULL;
    frag->local.region = NULL;
    rc = aq_ibv_xfer_local(x, max, frag, &local);
    if (rc == AQ_OK)
        rc = aq_ibv_xfer_post(x, x->qp, &local, frag);
    if (rc != AQ_OK)
        aq_ibv_rma_frag_undo(frag);
    return rc;
}

/* The message behind the data; its credit was claimed at the start. */
static int aq_ibv_xfer_follow(struct aq_ibv_xfer *x, struct aq_ibv_peer *peer)
{
    const struct aq_ibv_follow *follow = &x->follow;
    struct aq_ibv_fragment fragment = { .head = { .type = AQ_IBV_T_PLACED,
                                                  .handler = follow->handler,
                                                  .nargs = follow->nargs,
                                                  .nbytes = (uint32_t)follow->nbytes },
                                        .address = (uintptr_t)follow->dest,
                                        .args = follow->args };
    int rc;

    aq_lock_acquire(&peer->lock);
    rc = aq_ibv_am_post_inline(peer, follow->is_reply ? AQ_IBV_REPLY : AQ_IBV_REQUEST, &fragment,
                               NULL, 0, 0);
    if (rc == AQ_OK) {
        peer->sent++;
        x->follows = false;
    }
    aq_lock_release(&peer->lock);
    return rc;
}

/* The next step. AQ_OK: there may be more; AQ_RETRY: not now; AQ_PENDING: firehose has it. */
static int aq_ibv_xfer_step(struct aq_ibv_xfer *x)
{
    struct aq_ibv_peer *peer;

    if (x->answered)
        return aq_ibv_xfer_take_answer(x);
    if (x->by_message)
        return aq_ibv_xfer_message(x);
    peer = aq_ibv_peer(x->w.rank);
    if (peer == NULL || (x->w.is_put && !aq_ibv_rma_is_quiet()))
        return AQ_RETRY;
    if (x->w.nbytes == 0)
        return aq_ibv_xfer_follow(x, peer);
    if (x->stripe == 0) {
        const size_t share =
            (x->w.nbytes / peer->qp_count + AQ_FH_PAGE - 1) & ~(size_t)(AQ_FH_PAGE - 1);

        x->stripe = x->is_long || peer->qp_count == 1 || share > AQ_IBV_FRAG_MAX ? AQ_IBV_FRAG_MAX
                    : share < AQ_IBV_STRIPE_MIN                                  ? AQ_IBV_STRIPE_MIN
                                                                                 : share;
    }
    if (!x->registered && x->remote_hold.region == NULL)
        return aq_ibv_xfer_reach(x);
    return aq_ibv_xfer_frag(x, peer);
}

/* Go on until something is lacking. Returns whether anything moved. */
static bool aq_ibv_xfer_feed(struct aq_ibv_xfer *x)
{
    bool moved = false;
    int rc = AQ_OK;

    while (x->answered || x->w.nbytes != 0 || x->follows) {
        rc = aq_ibv_xfer_step(x);
        if (rc != AQ_OK)
            break;
        moved = true;
    }
    if (rc == AQ_PENDING)
        return true; /* not ours any more */
    if (rc == AQ_RETRY) {
        aq_ibv_xfer_park(x);
        return moved;
    }
    aq_ibv_xfer_complete(x);
    return true;
}

unsigned aq_ibv_xfer_feed_parked(bool longs)
{
    struct aq_ibv_xfer *next;
    unsigned moved = 0;

    for (struct aq_ibv_xfer *x = aq_ibv_xfer_unpark(longs); x != NULL; x = next) {
        next = x->next;
        moved += aq_ibv_xfer_feed(x);
    }
    return moved;
}

/* For comparison: register all of our side before the first byte leaves. It stays so as a victim of
 * firehose. */
static __attribute__((noinline, cold)) void aq_ibv_xfer_reg_first(
    const struct aq_ibv_wanted *wanted)
{
    struct aq_fh_hold hold;
    size_t at = 0;

    while (at < wanted->nbytes
           && aq_fh_local(aq_fh_job, (uintptr_t)wanted->laddr + at, wanted->nbytes - at,
                          !wanted->is_put, &hold)
                  == AQ_OK) {
        at += hold.len;
        aq_fh_release(aq_fh_job, &hold);
    }
}

/* A new one; with a copy of its source, if that is to be free at once and a buffer can be had. */
static struct aq_ibv_xfer *aq_ibv_xfer_make(const struct aq_ibv_wanted *wanted)
{
    struct aq_ibv_xfer *x = aq_ibv_xfer_take(wanted);
    uint32_t rkey;

    x->w = *wanted;
    if (wanted->copies && (x->copy = aq_ibv_bounce_take(wanted->nbytes)) != NULL) {
        x->w.laddr = x->copy->bytes;
        memcpy(x->w.laddr, wanted->laddr, wanted->nbytes);
    }
    x->registered =
        aq_ibv_remote_key(wanted->rank, 0, (void *)wanted->raddr, wanted->nbytes, &rkey);
    x->counts_lc = wanted->is_put && !wanted->lc_now;
    aq_counter_add(&x->pending, 1);
    return x;
}

void aq_ibv_xfer_long(struct aq_op *op, const struct aq_am_out *out)
{
    const struct aq_ibv_wanted wanted = { .op = op,
                                          .rank = out->jobrank,
                                          .is_put = true,
                                          .lc_now = true,
                                          .laddr = (void *)(uintptr_t)out->src,
                                          .raddr = (uintptr_t)out->dest,
                                          .nbytes = out->nbytes };
    struct aq_ibv_xfer *x = aq_ibv_xfer_make(&wanted);

    x->is_long = x->follows = true;
    x->follow.dest = out->dest;
    x->follow.nbytes = out->nbytes;
    x->follow.is_reply = out->is_reply;
    x->follow.handler = out->handler;
    x->follow.nargs = out->nargs;
    memcpy(x->follow.args, out->args, out->nargs * sizeof(gex_AM_Arg_t));
    aq_ibv_xfer_feed(x);
}

void aq_ibv_xfer_start(const struct aq_ibv_wanted *wanted)
{
    struct aq_ibv_xfer *x = aq_ibv_xfer_make(wanted);
    const bool waits = wanted->lc_now && x->copy == NULL;
    atomic_bool finished = false;

    x->finished = waits ? &finished : NULL;
    if (x->counts_lc)
        aq_op_begin(wanted->op, GEX_EC_LC, 1);
    aq_op_begin(wanted->op, wanted->is_put ? GEX_EC_PUT : GEX_EC_GET, 1);
    if (AQ_UNLIKELY(!aq_env_bool(AQ_ENV_AQ_IBV_OVERLAP)) && aq_fh_job != NULL && x->copy == NULL
        && !aq_bounds_contain(&aq_ibv_own.bound, wanted->laddr, wanted->nbytes))
        aq_ibv_xfer_reg_first(wanted);
    aq_ibv_xfer_feed(x);
    if (waits) {
        struct aq_waiter waiter =
            AQ_WAITER_INIT("the end of a put whose source is to be free", wanted->rank);

        /* acquire: pairs with the release in aq_ibv_xfer_complete() */
        while (!atomic_load_explicit(&finished, memory_order_acquire))
            aq_wait_step(&waiter);
        aq_wait_end(&waiter);
    }
}
