/*
 * aq_ibv_am_long.c - long messages: the payload by RDMA write, then the message on the same queue
 * pair.
 *
 * A queue pair delivers in order, so the message arrives after its payload. (A write with immediate
 * data would save the message's own packet only without arguments, and if the length and the
 * handler fitted 32 bits together; and it would not carry credit updates.) The writes and the
 * message leave as one chain with one doorbell, or not at all.
 *
 * Short payload     in the message; the receiver places it (GASNET_PACKEDLONG_LIMIT)
 * Client's buffer   a payload in a registered buffer that the client was given is written from
 *                   there (aq_ibv_zcopy.c)
 * Own segment       the payload is written from where it is, if it is long or its sender learns
 *                   later that it is free; the device's acknowledgement is the first sign of that
 *                   (core/aq_am_lc.h)
 * Other             copied into send buffers, written from there; free at return
 * Longest           from other memory, or longer than a request: a transfer (aq_ibv_xfer.c), which
 *                   ends with the message; free when all of it is acknowledged
 * Not registered    where the target's segment is not: fragments that the
 *                   receiver places; beyond AQ_IBV_MAX_MEDIUM a stream, which has the channel to
 *                   itself until its end. No circle of waiting arises: a fragment needs no handler
 *                   at the receiver and its credit comes back at once, and a sender that waits for
 *                   a credit takes fragments of others and returns their credits
 *
 * Threads   any
 * Promise   with AQ_RETRY the destination was not touched
 * Uses      aq_ibv_am.h, core/aq_am_lc.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_am.h"

#include <sched.h>
#include <string.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "core/aq_am_lc.h"
#include "core/aq_exit.h"

#define AQ_IBV_LONG_COPY_MAX 32768u /* bytes that are copied rather than waited for */
/* send buffers of a payload that may not be waited for */
#define AQ_IBV_LONG_BUFS (AQ_IBV_MAX_MEDIUM / AQ_IBV_BUF)

/* One step of waiting for the device. */
static void aq_ibv_long_step(unsigned *polls)
{
    (void)aq_ibv_qp_reap_all(aq_ibv_am.net);
    if (++*polls % 64 == 0 || aq_ibv_am.net->software)
        sched_yield(); /* a software device needs a core */
    else
        aq_cpu_relax();
}

/* --- by RDMA --- */

/* The source is free; under the reap lock. */
static void aq_ibv_long_done(struct aq_ibv_done *done)
{
    struct aq_ibv_rma_frag *frag = aq_ibv_rma_frag_of(done);
    struct aq_op *op = frag->op;

    aq_ibv_rma_frag_give(frag);
    aq_op_end(op, GEX_EC_AM, 1);
}

/* From where the payload is. */
static int aq_ibv_long_direct(struct aq_ibv_peer *peer, const struct aq_am_out *out, uint32_t lkey,
                              uint32_t rkey)
{
    struct ibv_sge sge = { .addr = (uintptr_t)out->src,
                           .length = (uint32_t)out->nbytes,
                           .lkey = lkey };
    struct ibv_send_wr write = { .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .wr.rdma = { .remote_addr = (uintptr_t)out->dest, .rkey = rkey } };
    struct aq_ibv_rma_frag *frag = aq_ibv_rma_frag_take();
    struct aq_op *op = aq_am_lc_take(out);
    int rc;

    frag->op = op;
    frag->done.fn = aq_ibv_long_done;
    write.wr_id = (uintptr_t)&frag->done;
    rc = aq_ibv_am_post_placed(peer, out, &write, 1, AQ_IBV_POST_SIGNAL);
    if (AQ_UNLIKELY(rc != AQ_OK)) {
        aq_ibv_rma_frag_give(frag);
        aq_op_end(op, GEX_EC_AM, 1);
    }
    return rc;
}

/* Through send buffers: at most AQ_IBV_MAX_MEDIUM bytes. */
static int aq_ibv_long_copied(struct aq_ibv_peer *peer, const struct aq_am_out *out, uint32_t rkey)
{
    const uint32_t dev = aq_ibv_peer_am_qp(peer)->rail->dev->index;
    const unsigned count = (unsigned)((out->nbytes + AQ_IBV_BUF - 1) / AQ_IBV_BUF);
    struct aq_ibv_buf *bufs = aq_ibv_buf_take_chain(out->is_reply ? AQ_IBV_REPLY : AQ_IBV_REQUEST,
                                                    count),
                      *buf = bufs;
    struct ibv_send_wr writes[AQ_IBV_LONG_BUFS];
    struct ibv_sge sges[AQ_IBV_LONG_BUFS];
    int rc;

    if (bufs == NULL)
        return AQ_RETRY;
    for (unsigned i = 0; i < count; i++, buf = buf->chain) {
        const size_t at = (size_t)i * AQ_IBV_BUF, left = out->nbytes - at,
                     len = left < AQ_IBV_BUF ? left : AQ_IBV_BUF;

        memcpy(buf->bytes, (const uint8_t *)out->src + at, len);
        sges[i] = (struct ibv_sge){ .addr = (uintptr_t)buf->bytes,
                                    .length = (uint32_t)len,
                                    .lkey = buf->lkey[dev] };
        writes[i] = (struct ibv_send_wr){ .next = i + 1 < count ? &writes[i + 1] : NULL,
                                          .sg_list = &sges[i],
                                          .num_sge = 1,
                                          .opcode = IBV_WR_RDMA_WRITE,
                                          .wr.rdma = { .remote_addr = (uintptr_t)out->dest + at,
                                                       .rkey = rkey } };
    }
    writes[count - 1].wr_id = (uintptr_t)&bufs->done; /* gives all back */
    rc = aq_ibv_am_post_placed(peer, out, writes, count, 0);
    if (AQ_UNLIKELY(rc != AQ_OK))
        bufs->done.fn(&bufs->done);
    return rc;
}

/* As a transfer: the credit is claimed now and used when the whole payload is under way. */
static int aq_ibv_long_transfer(struct aq_ibv_peer *peer, const struct aq_am_out *out)
{
    const unsigned channel = out->is_reply ? AQ_IBV_REPLY : AQ_IBV_REQUEST;
    struct aq_ibv_wanted wanted = { .rank = out->jobrank,
                                    .is_put = true,
                                    .lc_now = true,
                                    .laddr = (void *)(uintptr_t)out->src,
                                    .raddr = (uintptr_t)out->dest,
                                    .nbytes = out->nbytes };
    struct aq_ibv_follow follow = { .send = aq_ibv_am_post_follow,
                                    .dest = out->dest,
                                    .nbytes = out->nbytes,
                                    .is_reply = out->is_reply,
                                    .handler = out->handler,
                                    .nargs = out->nargs };
    bool claimed;

    if (aq_ibv_xfer_crowded())
        return AQ_RETRY;
    aq_lock_acquire(&peer->flow.lock);
    claimed = aq_ibv_am_claim(peer, channel, 1, aq_ibv_am_reserve(channel, out->handler));
    aq_lock_release(&peer->flow.lock);
    if (!claimed)
        return AQ_RETRY;
    wanted.op = aq_am_lc_take(out);
    memcpy(follow.args, out->args, out->nargs * sizeof(gex_AM_Arg_t));
    aq_ibv_xfer_start_long(&wanted, &follow);
    return AQ_OK;
}

/* --- in fragments --- */

/* The next fragments of a stream, as many as there are credits for. Returns how many left; 0: none
 * now. */
static unsigned aq_ibv_stream_some(struct aq_ibv_peer *peer, const struct aq_am_out *out, size_t at,
                                   size_t each)
{
    const unsigned channel = out->is_reply ? AQ_IBV_REPLY : AQ_IBV_REQUEST;
    const size_t left = (out->nbytes - at + each - 1) / each;
    struct aq_ibv_credit_out *credit = &peer->flow.out[channel];
    const unsigned reserve = aq_ibv_am_reserve(channel, out->handler);
    struct aq_ibv_fragment fragment = { .head = { .type = 0 } };
    unsigned count = left < AQ_IBV_MSG_FRAGS ? (unsigned)left : AQ_IBV_MSG_FRAGS;
    uint32_t credits;
    int rc = AQ_RETRY;

    aq_ibv_am_fill(&fragment, AQ_IBV_T_LONG_FRAG, out, out->nbytes);
    aq_lock_acquire(&peer->flow.lock);
    if (at != 0)
        credit->barred = 0; /* this stream has set it */
    credits = aq_ibv_credit_left(credit, peer->flow.cell, channel);
    if (credits > reserve && credits - reserve < count)
        /* one credit is enough to go on: the receiver may not be able to return others */
        count = credits - reserve;
    if (aq_ibv_am_claim(peer, channel, count, reserve)) {
        rc = aq_ibv_am_post_frags(peer, channel, &fragment, out, at, count, each);
        if (rc != AQ_OK)
            credit->base.sent -= count;
        else if (count == left)
            peer->flow.sent++;
    }
    if (rc == AQ_OK ? count != left : at != 0)
        credit->barred = AQ_IBV_BARRED;
    aq_lock_release(&peer->flow.lock);
    return rc == AQ_OK ? count : 0;
}

int aq_ibv_am_long_stream(struct aq_ibv_peer *peer, const struct aq_am_out *out, size_t each)
{
    unsigned polls = 0;

    for (size_t at = 0; at < out->nbytes;) {
        const unsigned count = aq_ibv_stream_some(peer, out, at, each);

        at += count * each;
        if (count != 0)
            continue;
        if (at == 0)
            return AQ_RETRY;
        if (aq_exit_in_progress())
            return AQ_OK;
        aq_ibv_receive_quietly();
        aq_ibv_updates_poll(&aq_ibv_am.updates, true);
        aq_ibv_long_step(&polls);
    }
    if (out->buffer != NULL)
        aq_ibv_am_free(out->is_reply, out->buffer);
    return AQ_OK;
}

/* --- the choice --- */

int aq_ibv_am_long_rdma(struct aq_ibv_peer *peer, const struct aq_am_out *out, uint32_t rkey)
{
    const struct aq_ibv_rail *rail = aq_ibv_peer_am_qp(peer)->rail;
    uint32_t lkey;
    int rc;

    if (aq_ibv_zcopy_is_ours(out))
        return aq_ibv_zcopy_long(peer, out, rkey);
    if (out->immediate && out->nbytes > AQ_IBV_MAX_MEDIUM && aq_am_lc_is_now(out))
        return AQ_RETRY; /* the device would have to be waited for */
    if (out->lc == NULL || (out->immediate && aq_am_lc_is_now(out))
        || (out->nbytes <= AQ_IBV_LONG_COPY_MAX && aq_am_lc_is_now(out)))
        rc = aq_ibv_long_copied(peer, out, rkey);
    else if (out->nbytes <= AQ_IBV_FRAG_MAX
             && aq_ibv_local_key(rail->dev, out->src, out->nbytes, &lkey))
        rc = aq_ibv_long_direct(peer, out, lkey, rkey);
    else if (out->nbytes <= AQ_IBV_LONG_COPY_MAX)
        rc = aq_ibv_long_copied(peer, out, rkey);
    else
        rc = aq_ibv_long_transfer(peer, out);
    if (rc == AQ_OK && out->buffer != NULL)
        aq_ibv_am_free(out->is_reply, out->buffer);
    return rc;
}
