/*
 * aq_ibv_am.c - active messages to far ranks.
 *
 * A message that fits the queue pair's inline data leaves from the stack. Others are copied into
 * buffers, one for each fragment, and all fragments of a message leave with one doorbell. A payload
 * that the client wrote into a buffer of ours leaves from there (aq_ibv_zcopy.c).
 *
 * Threads   any; credits and the order of fragments under peer->lock
 * Promise   a message is sent whole or, with AQ_RETRY, not at all; credits first, so that it finds
 *           its buffers
 * Uses      aq_ibv_packet.h, SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_am.h"

#include <stdlib.h>
#include <string.h>

#include "conduits/ibv/aq_ibv_xfer.h"
#include "core/aq_am.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"

static inline bool aq_ibv_am_is_firehose(uint8_t handler)
{
    return handler == AQ_HIDX_FIREHOSE || handler == AQ_HIDX_FIREHOSE_REPLY;
}

/* May a message leave now? While a peer could still aim at memory that this process has unmapped,
 * none leaves, not to near ranks either, who might pass it on; but for those that put this right.
 * */
static inline bool aq_ibv_am_may(uint8_t handler)
{
    return AQ_LIKELY(aq_ibv_rma_is_quiet()) || aq_ibv_am_is_firehose(handler);
}

/* Does it matter to nobody once the peer has disconnected? The program does not know of firehose's
 * messages, but for those that its transfers wait for. */
static inline bool aq_ibv_am_is_word(const struct aq_am_out *out)
{
    return AQ_UNLIKELY(aq_ibv_am_is_firehose(out->handler))
           && (out->handler == AQ_HIDX_FIREHOSE_REPLY || aq_fh_is_word(out->src));
}

static inline unsigned aq_ibv_am_flags(const struct aq_am_out *out)
{
    return aq_ibv_am_is_word(out) ? AQ_IBV_POST_WORD : 0;
}

/* --- credits --- */

/* Says that n are needed at once, unless that is said; costs one, which there is. */
static void aq_ibv_am_request_credit(struct aq_ibv_peer *peer, unsigned channel, unsigned n,
                                     uint32_t limit)
{
    struct aq_ibv_credit_out *out = &peer->out[channel];
    struct aq_ibv_fragment fragment = { .head = { .type = AQ_IBV_T_CONTROL, .want = (uint16_t)n } };

    if (aq_ibv_credit_is_requested(out, limit))
        return;
    out->sent++;
    if (aq_ibv_am_post_inline(peer, channel, &fragment, NULL, 0, 0) != AQ_OK) {
        out->sent--;
        return;
    }
    out->wanted = out->sent + n;
    aq_counter_add(&aq_ibv.counts.credit_requests, 1);
}

bool aq_ibv_am_claim(struct aq_ibv_peer *peer, unsigned channel, unsigned fragments,
                     unsigned reserve)
{
    struct aq_ibv_credit_out *out = &peer->out[channel];
    uint32_t limit = aq_ibv_credit_limit(out, peer->cell, channel);

    if (AQ_UNLIKELY(limit - out->sent < fragments + reserve + out->barred)) {
        /* what was granted may be told in messages that nobody has looked at */
        aq_ibv_receive_quietly();
        if (out->barred != 0)
            return false;
        limit = aq_ibv_credit_limit(out, peer->cell, channel);
        if (limit - out->sent < fragments + reserve) {
            if (fragments > 1 && limit != out->sent)
                aq_ibv_am_request_credit(peer, channel, fragments + reserve, limit);
            return false;
        }
    }
    out->sent += fragments;
    return true;
}

/* --- heads --- */

/* What every fragment says: who, which lane, what the other side may send. */
void aq_ibv_am_head(struct aq_ibv_peer *peer, unsigned channel, struct aq_ibv_head *head)
{
    struct aq_ibv_credit_out *out = &peer->out[channel];

    head->from = aq_job.rank;
    head->flags = channel == AQ_IBV_REPLY ? AQ_IBV_F_REPLY : 0;
    if (aq_ibv_credit_left(out, peer->cell, channel) <= aq_ibv_am_reserve(channel, 0))
        head->flags |= AQ_IBV_F_CREDIT_LOW;
    for (unsigned i = 0; i < AQ_IBV_CHANNELS; i++)
        head->credits[i] = aq_ibv_credit_latest(&peer->in[i]);
}

/* It is under way. */
void aq_ibv_am_advertised(struct aq_ibv_peer *peer, const struct aq_ibv_head *head)
{
    for (unsigned i = 0; i < AQ_IBV_CHANNELS; i++)
        aq_ibv_credit_advertised(&peer->in[i], head->credits[i]);
}

void aq_ibv_am_fill(struct aq_ibv_fragment *fragment, uint8_t type, const struct aq_am_out *out,
                    size_t nbytes)
{
    fragment->head.type = type;
    fragment->head.handler = out->handler;
    fragment->head.nargs = out->nargs;
    fragment->head.nbytes = (uint32_t)nbytes;
    fragment->address = (uintptr_t)out->dest;
    fragment->args = out->args;
}

/* --- posting --- */

/* A fragment from the stack, or a buffer if the device takes so little; behind the count requests
 * before it. */
static inline int aq_ibv_am_post_small(struct aq_ibv_peer *peer, unsigned channel,
                                       struct aq_ibv_fragment *fragment, const void *data,
                                       size_t nbytes, struct ibv_send_wr *before, unsigned count,
                                       unsigned flags)
{
    uint8_t packet[AQ_IBV_INLINE_MAX + 64];
    struct aq_ibv_qp *qp = peer->qps[peer->am_qp];
    struct ibv_sge sge = { .addr = (uintptr_t)packet };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
    struct aq_ibv_buf *buf = NULL;
    uint8_t *end;
    int rc;

    aq_ibv_am_head(peer, channel, &fragment->head);
    end = aq_ibv_packet_write(packet, fragment);
    if (nbytes != 0)
        memcpy(end, data, nbytes);
    sge.length = (uint32_t)(end - packet) + (uint32_t)nbytes;
    if (AQ_LIKELY(sge.length <= qp->max_inline)) {
        wr.send_flags = IBV_SEND_INLINE;
    } else { /* a device with little room */
        buf = aq_ibv_buf_take(channel);
        if (buf == NULL)
            return AQ_RETRY;
        memcpy(buf->bytes, packet, sge.length);
        sge.addr = (uintptr_t)buf->bytes;
        sge.lkey = buf->lkey[qp->rail->dev->index];
    }
    if (count != 0)
        before[count - 1].next = &wr;
    rc = aq_ibv_qp_post(qp, count != 0 ? before : &wr, count + 1, buf != NULL ? &buf->done : NULL,
                        flags);
    if (rc == AQ_OK)
        aq_ibv_am_advertised(peer, &fragment->head);
    else if (buf != NULL)
        aq_ibv_buf_give(buf);
    return rc;
}

int aq_ibv_am_post_inline(struct aq_ibv_peer *peer, unsigned channel,
                          struct aq_ibv_fragment *fragment, const void *data, size_t nbytes,
                          unsigned flags)
{
    return aq_ibv_am_post_small(peer, channel, fragment, data, nbytes, NULL, 0, flags);
}

int aq_ibv_am_post_behind(struct aq_ibv_peer *peer, unsigned channel,
                          struct aq_ibv_fragment *fragment, struct ibv_send_wr *writes,
                          unsigned count, unsigned flags)
{
    return aq_ibv_am_post_small(peer, channel, fragment, NULL, 0, writes, count, flags);
}

/* One buffer, with the fragment from bytes on. */
static int aq_ibv_am_post_buf(struct aq_ibv_peer *peer, struct aq_ibv_buf *buf, uint8_t *bytes,
                              size_t len, unsigned flags)
{
    struct aq_ibv_qp *qp = peer->qps[peer->am_qp];
    struct ibv_sge sge = { .addr = (uintptr_t)bytes,
                           .length = (uint32_t)len,
                           .lkey = buf->lkey[qp->rail->dev->index] };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

    return aq_ibv_qp_post(qp, &wr, 1, &buf->done, flags);
}

/* A message in one fragment that is not inline. */
static int aq_ibv_am_send_one(struct aq_ibv_peer *peer, unsigned channel,
                              struct aq_ibv_fragment *fragment, const struct aq_am_out *out)
{
    struct aq_ibv_buf *buf = aq_ibv_buf_take(channel);
    uint8_t *end;
    int rc;

    if (buf == NULL)
        return AQ_RETRY;
    aq_ibv_am_head(peer, channel, &fragment->head);
    end = aq_ibv_packet_write(buf->bytes, fragment);
    if (out->nbytes != 0)
        memcpy(end, out->src, out->nbytes);
    rc = aq_ibv_am_post_buf(peer, buf, buf->bytes, (size_t)(end - buf->bytes) + out->nbytes,
                            aq_ibv_am_flags(out));
    if (rc == AQ_OK)
        aq_ibv_am_advertised(peer, &fragment->head);
    else
        aq_ibv_buf_give(buf);
    return rc;
}

int aq_ibv_am_send_frags(struct aq_ibv_peer *peer, unsigned channel,
                         struct aq_ibv_fragment *fragment, const struct aq_am_out *out, size_t from,
                         unsigned count, size_t each)
{
    struct ibv_send_wr wr[AQ_IBV_MSG_FRAGS];
    struct ibv_sge sge[AQ_IBV_MSG_FRAGS];
    struct aq_ibv_qp *qp = peer->qps[peer->am_qp];
    struct aq_ibv_buf *bufs = aq_ibv_buf_take_chain(channel, count), *buf = bufs;
    int rc;

    if (bufs == NULL)
        return AQ_RETRY;
    aq_ibv_am_head(peer, channel, &fragment->head);
    fragment->total = (uint32_t)out->nbytes;
    for (unsigned i = 0; i < count; i++, buf = buf->chain) {
        const size_t at = from + i * each, len = out->nbytes - at < each ? out->nbytes - at : each;
        uint8_t *end;

        fragment->at = (uint32_t)at;
        fragment->head.nbytes = (uint32_t)len;
        end = aq_ibv_packet_write(buf->bytes, fragment);
        memcpy(end, (const uint8_t *)out->src + at, len);
        sge[i] = (struct ibv_sge){ .addr = (uintptr_t)buf->bytes,
                                   .length = (uint32_t)(end - buf->bytes + len),
                                   .lkey = buf->lkey[qp->rail->dev->index] };
        wr[i] = (struct ibv_send_wr){ .next = i + 1 < count ? &wr[i + 1] : NULL,
                                      .sg_list = &sge[i],
                                      .num_sge = 1,
                                      .opcode = IBV_WR_SEND };
    }
    rc = aq_ibv_qp_post(qp, wr, count, &bufs->done, 0);
    if (rc == AQ_OK)
        aq_ibv_am_advertised(peer, &fragment->head);
    else
        bufs->done.fn(&bufs->done);
    return rc;
}

/* --- out --- */

int aq_ibv_am_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                    const gex_AM_Arg_t *args)
{
    const unsigned channel = is_reply ? AQ_IBV_REPLY : AQ_IBV_REQUEST;
    struct aq_ibv_fragment fragment = {
        .head = { .type = AQ_IBV_T_SHORT, .handler = handler, .nargs = (uint8_t)nargs },
        .args = args
    };
    struct aq_ibv_peer *peer;
    int rc = AQ_RETRY;

    if (AQ_UNLIKELY(!aq_ibv_am_may(handler)))
        return AQ_RETRY;
    peer = aq_ibv_peer(jobrank);
    if (AQ_UNLIKELY(peer == NULL))
        return AQ_RETRY;
    aq_lock_acquire(&peer->lock);
    if (AQ_LIKELY(aq_ibv_am_claim(peer, channel, 1, aq_ibv_am_reserve(channel, handler)))) {
        rc = aq_ibv_am_post_inline(peer, channel, &fragment, NULL, 0, 0);
        if (AQ_LIKELY(rc == AQ_OK))
            peer->sent++;
        else
            peer->out[channel].sent--;
    }
    aq_lock_release(&peer->lock);
    return rc;
}

int aq_ibv_am_eager(struct aq_ibv_peer *peer, const struct aq_am_out *out)
{
    const unsigned channel = out->is_reply ? AQ_IBV_REPLY : AQ_IBV_REQUEST;
    const bool is_long = out->kind == AQ_AM_LONG;
    const uint8_t whole = is_long ? AQ_IBV_T_LONG : AQ_IBV_T_MEDIUM;
    const uint8_t reasm = is_long ? AQ_IBV_T_LONG_FRAG : AQ_IBV_T_MEDIUM_FRAG;
    const size_t each = aq_ibv_data_space(reasm, out->nargs, AQ_IBV_BUF) & ~(size_t)15;
    const bool fits = out->nbytes <= aq_ibv_data_space(whole, out->nargs, AQ_IBV_BUF);
    const unsigned count = fits ? 1 : (unsigned)((out->nbytes + each - 1) / each);
    const bool zcopy = aq_ibv_zcopy_is_ours(out);
    struct aq_ibv_fragment fragment = { .head = { .type = 0 } };
    int rc = AQ_RETRY;

    if (AQ_UNLIKELY(count > AQ_IBV_MSG_FRAGS))
        return out->immediate ? AQ_RETRY : aq_ibv_am_stream(peer, out, each);
    aq_ibv_am_fill(&fragment, fits ? whole : reasm, out, out->nbytes);
    aq_lock_acquire(&peer->lock);
    if (aq_ibv_am_claim(peer, channel, count, aq_ibv_am_reserve(channel, out->handler))) {
        if (zcopy)
            rc = aq_ibv_zcopy_send(peer, channel, &fragment, out, count, each);
        else if (!fits)
            rc = aq_ibv_am_send_frags(peer, channel, &fragment, out, 0, count, each);
        else if (aq_ibv_data_at(whole, out->nargs) + out->nbytes
                 <= peer->qps[peer->am_qp]->max_inline)
            rc = aq_ibv_am_post_inline(peer, channel, &fragment, out->src, out->nbytes,
                                       aq_ibv_am_flags(out));
        else
            rc = aq_ibv_am_send_one(peer, channel, &fragment, out);
        if (rc == AQ_OK)
            peer->sent++;
        else
            peer->out[channel].sent -= count;
    }
    aq_lock_release(&peer->lock);
    if (rc == AQ_OK && out->buffer != NULL && !zcopy)
        aq_ibv_am_free(out->is_reply, out->buffer);
    return rc;
}

int aq_ibv_am_send(const struct aq_am_out *out)
{
    struct aq_ibv_peer *peer;

    if (AQ_UNLIKELY(!aq_ibv_am_may(out->handler)))
        return AQ_RETRY;
    if (out->kind == AQ_AM_SHORT)
        return aq_ibv_am_short(out->jobrank, out->is_reply, out->handler, out->nargs, out->args);
    peer = aq_ibv_peer(out->jobrank);
    if (peer == NULL)
        return AQ_RETRY;
    if (aq_ibv_am_is_word(out) && aq_ibv_peer_disconnected(peer))
        return AQ_OK; /* its credits come back no more */
    return out->kind == AQ_AM_LONG ? aq_ibv_am_long(peer, out) : aq_ibv_am_eager(peer, out);
}

/* --- giving back --- */

void aq_ibv_am_skip(struct aq_ibv_peer *peer)
{
    if (aq_ibv_peer_disconnected(peer) || !aq_lock_try(&peer->lock))
        return; /* it may be gone, or is in use */
    for (unsigned channel = 0; channel < AQ_IBV_CHANNELS; channel++) {
        const uint32_t surplus = aq_ibv_credit_surplus(&peer->out[channel], peer->cell, channel);
        struct aq_ibv_fragment fragment = { .head = { .type = AQ_IBV_T_CONTROL,
                                                      .skip = (uint16_t)surplus } };

        if (surplus == 0 || surplus > UINT16_MAX)
            continue;
        peer->out[channel].sent += surplus + 1;
        if (aq_ibv_am_post_inline(peer, channel, &fragment, NULL, 0, AQ_IBV_POST_WORD) != AQ_OK)
            peer->out[channel].sent -= surplus + 1;
        else
            aq_counter_add(&aq_ibv.counts.skips, 1);
    }
    aq_lock_release(&peer->lock);
}
