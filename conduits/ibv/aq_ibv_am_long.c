/*
 * aq_ibv_am_long.c - long messages: the payload by RDMA write, then the message on the same queue pair.
 *
 * A queue pair delivers in order, so that the message comes after its data. (A write with immediate data would save the
 * message's own packet only if there were no arguments and the length fitted 32 bits together with the handler; and
 * it would not carry grants.)
 *
 * Short payload     in the message; the receiver places it (GASNET_PACKEDLONG_LIMIT)
 * Longer            copied into send buffers, written from there: nobody waits
 * Longest           if the source is in our segment, written from where it is; the call returns when the write is
 *                   complete, since the client may use the source again then. Otherwise copied piece by piece, as
 *                   buffers come back. Completing needs nobody but the two devices, so that nobody waits in a circle
 * Not registered    where the target's memory is not (segment everything), in fragments that the receiver places;
 *                   beyond AQ_IBV_MAX_MEDIUM as a stream, which has the lane to itself until its end. Nobody waits in a
 *                   circle there either: a part needs no handler at the receiver and its credit comes back at once, and
 *                   who waits for one takes parts of others and returns theirs
 *
 * Threads   any
 * Promise   with AQ_RETRY the destination was not touched: the credit, and the first place, are taken before
 * Uses      aq_ibv_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "conduits/ibv/aq_ibv_am.h"
#include "conduits/ibv/aq_ibv_xfer.h"
#include "core/aq_env.h"
#include "core/aq_exit.h"
#include "core/aq_log.h"
#include "core/aq_rc.h"

#define AQ_IBV_LONG_COPY_MOST 32768u /* bytes that are rather copied than waited for */

struct aq_ibv_long_done {
    struct aq_ibv_done done;
    atomic_bool is_done;
};

static void aq_ibv_long_complete(struct aq_ibv_done *done)
{
    struct aq_ibv_long_done *self = (struct aq_ibv_long_done *)(void *)done;

    /* release: pairs with the acquire in aq_ibv_long_wait(), after which it is freed */
    atomic_store_explicit(&self->is_done, true, memory_order_release);
}

/* A step of waiting for the device. */
static void aq_ibv_long_step(unsigned *turns)
{
    (void)aq_ibv_qp_reap_all();
    if (++*turns % 64 == 0 || aq_ibv.software)
        sched_yield(); /* a software device needs a core */
    else
        aq_cpu_relax();
}

/* Waits, and frees it. If the job ends before, it stays: its completion may still come, to whoever drains the queue. */
static void aq_ibv_long_wait(struct aq_ibv_long_done *done)
{
    unsigned turns = 0;

    while (!atomic_load_explicit(&done->is_done, memory_order_acquire)) {
        if (aq_exit_in_progress())
            return;
        aq_ibv_long_step(&turns);
    }
    free(done);
}

/* The message that follows the data; its credit is claimed. Waits for a place in the queue. */
static void aq_ibv_long_follow(struct aq_ibv_peer *peer, const struct aq_am_out *out)
{
    const unsigned lane = out->is_reply ? AQ_IBV_REPLY : AQ_IBV_REQUEST;
    struct aq_ibv_fragment fragment = { .head = { .type = AQ_IBV_T_PLACED, .handler = out->handler,
                                                  .nargs = out->nargs, .nbytes = (uint32_t)out->nbytes },
                                        .address = (uintptr_t)out->dest, .args = out->args };
    unsigned turns = 0;
    int rc;

    for (;;) {
        aq_lock_acquire(&peer->lock);
        rc = aq_ibv_am_post_inline(peer, lane, &fragment, NULL, 0);
        if (rc == AQ_OK)
            peer->sent++;
        aq_lock_release(&peer->lock);
        if (rc == AQ_OK || aq_exit_in_progress())
            return;
        aq_ibv_long_step(&turns);
    }
}

/* One write; first: AQ_RETRY is possible. */
static int aq_ibv_long_write(struct aq_ibv_qp *qp, const struct ibv_sge *sge, uint64_t dest, uint32_t rkey,
                             struct aq_ibv_done *done, unsigned flags, bool first)
{
    unsigned turns = 0;
    int rc;

    do {
        struct ibv_sge piece = *sge;
        struct ibv_send_wr wr = { .sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };

        wr.wr.rdma.remote_addr = dest;
        wr.wr.rdma.rkey = rkey;
        rc = aq_ibv_qp_post(qp, &wr, 1, done, flags);
        if (rc == AQ_OK || first || aq_exit_in_progress())
            return rc;
        aq_ibv_long_step(&turns);
    } while (true);
}

/* From where it is. */
static int aq_ibv_long_direct(struct aq_ibv_peer *peer, const struct aq_am_out *out, uint32_t lkey, uint32_t rkey)
{
    struct aq_ibv_qp *qp = peer->qps[peer->am_qp];
    struct aq_ibv_long_done *done = malloc(sizeof(*done));
    size_t at = 0;

    if (done == NULL)
        aq_fatal("ibv: no memory for a message of %zu bytes", out->nbytes);
    *done = (struct aq_ibv_long_done){ .done = { aq_ibv_long_complete } };
    while (at < out->nbytes) {
        const size_t len = out->nbytes - at < AQ_IBV_PIECE_MOST ? out->nbytes - at : AQ_IBV_PIECE_MOST;
        const bool last = at + len == out->nbytes;
        struct ibv_sge sge = { .addr = (uintptr_t)out->src + at, .length = (uint32_t)len, .lkey = lkey };

        if (aq_ibv_long_write(qp, &sge, (uintptr_t)out->dest + at, rkey, last ? &done->done : NULL,
                              last ? AQ_IBV_POST_SIGNAL : 0, at == 0) != AQ_OK) {
            if (at == 0)
                free(done); /* else the job is ending */
            return AQ_RETRY;
        }
        at += len;
    }
    aq_ibv_long_follow(peer, out);
    aq_ibv_long_wait(done);
    return AQ_OK;
}

/* Through send buffers. */
static int aq_ibv_long_copied(struct aq_ibv_peer *peer, const struct aq_am_out *out, uint32_t rkey)
{
    const unsigned lane = out->is_reply ? AQ_IBV_REPLY : AQ_IBV_REQUEST;
    struct aq_ibv_qp *qp = peer->qps[peer->am_qp];
    unsigned turns = 0;

    for (size_t at = 0; at < out->nbytes;) {
        const size_t len = out->nbytes - at < AQ_IBV_BUF ? out->nbytes - at : AQ_IBV_BUF;
        struct aq_ibv_buf *buf = aq_ibv_buf_take(lane);
        struct ibv_sge sge;

        if (buf == NULL && at == 0)
            return AQ_RETRY;
        if (buf == NULL) {
            if (aq_exit_in_progress())
                return AQ_OK;
            aq_ibv_long_step(&turns);
            continue;
        }
        memcpy(buf->bytes, (const uint8_t *)out->src + at, len);
        sge = (struct ibv_sge){ .addr = (uintptr_t)buf->bytes, .length = (uint32_t)len,
                                .lkey = buf->lkey[qp->rail->dev->index] };
        if (aq_ibv_long_write(qp, &sge, (uintptr_t)out->dest + at, rkey, &buf->done, 0, at == 0) != AQ_OK) {
            aq_ibv_buf_give(buf);
            return AQ_RETRY;
        }
        at += len;
    }
    aq_ibv_long_follow(peer, out);
    return AQ_OK;
}

/* --- in fragments --- */

/* The next fragments of a stream, as many as there are credits for. Returns how many left, 0: none now. */
static unsigned aq_ibv_stream_some(struct aq_ibv_peer *peer, const struct aq_am_out *out, size_t at, size_t each)
{
    const unsigned lane = out->is_reply ? AQ_IBV_REPLY : AQ_IBV_REQUEST;
    const size_t left = (out->nbytes - at + each - 1) / each;
    struct aq_ibv_credit_out *credit = &peer->out[lane];
    struct aq_ibv_fragment fragment = { .head = { .type = 0 } };
    unsigned count = left < AQ_IBV_PARTS ? (unsigned)left : AQ_IBV_PARTS;
    uint32_t granted;
    int rc = AQ_RETRY;

    aq_ibv_am_fill(&fragment, AQ_IBV_T_LONG_PART, out, out->nbytes);
    aq_lock_acquire(&peer->lock);
    if (at != 0)
        credit->barred = 0; /* it was us */
    granted = aq_ibv_credit_left(credit, peer->cell, lane);
    if (granted != 0 && granted < count)
        count = granted; /* one credit is enough to go on: the receiver may not be able to return others */
    if (aq_ibv_am_claim(peer, lane, count)) {
        rc = aq_ibv_am_send_parts(peer, lane, &fragment, out, at, count, each);
        if (rc != AQ_OK)
            credit->sent -= count;
        else if (count == left)
            peer->sent++;
    }
    if (rc == AQ_OK ? count != left : at != 0)
        credit->barred = AQ_IBV_BARRED;
    aq_lock_release(&peer->lock);
    return rc == AQ_OK ? count : 0;
}

int aq_ibv_am_stream(struct aq_ibv_peer *peer, const struct aq_am_out *out, size_t each)
{
    unsigned turns = 0;

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
        aq_ibv_grant(true);
        aq_ibv_long_step(&turns);
    }
    if (out->buffer != NULL)
        aq_ibv_am_free(out->is_reply, out->buffer);
    return AQ_OK;
}

/* --- the choice --- */

static bool aq_ibv_long_claim(struct aq_ibv_peer *peer, unsigned lane)
{
    bool claimed;

    aq_lock_acquire(&peer->lock);
    claimed = aq_ibv_am_claim(peer, lane, 1);
    aq_lock_release(&peer->lock);
    return claimed;
}

int aq_ibv_am_long(struct aq_ibv_peer *peer, const struct aq_am_out *out)
{
    const unsigned lane = out->is_reply ? AQ_IBV_REPLY : AQ_IBV_REQUEST;
    const struct aq_ibv_rail *rail = peer->qps[peer->am_qp]->rail;
    uint32_t lkey, rkey;
    int rc;

    if (out->nbytes <= aq_ibv.packed_most
        || !aq_ibv_remote_key(out->jobrank, rail->index, out->dest, out->nbytes, &rkey))
        return aq_ibv_am_eager(peer, out);
    if (!aq_ibv_long_claim(peer, lane))
        return AQ_RETRY;
    if (out->nbytes > AQ_IBV_LONG_COPY_MOST && aq_ibv_local_key(rail->dev, out->src, out->nbytes, &lkey))
        rc = aq_ibv_long_direct(peer, out, lkey, rkey);
    else
        rc = aq_ibv_long_copied(peer, out, rkey);
    if (rc == AQ_OK && out->buffer != NULL)
        aq_ibv_am_free(out->is_reply, out->buffer);
    if (rc != AQ_OK) {
        aq_lock_acquire(&peer->lock);
        peer->out[lane].sent--;
        aq_lock_release(&peer->lock);
    }
    return rc;
}
