/*
 * aq_ibv_post.c - fragments out: credits, heads, work requests.
 *
 * A fragment that fits the queue pair's inline data leaves from the stack. Others are copied into
 * send buffers. All fragments of a message leave with one doorbell.
 *
 * Threads   peer->flow.lock held, unless aq_ibv_am.h says otherwise
 * Promise   a message is posted whole or, with AQ_RETRY, not at all. Credits are claimed first, so
 *           that the message finds its receive buffers
 * Uses      aq_ibv_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_am.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"

/* --- credits --- */

/* Tell the peer that n credits are needed at once. */
static void aq_ibv_am_request_credit(struct aq_ibv_peer *peer, unsigned channel, unsigned n)
{
    struct aq_ibv_credit_out *out = &peer->flow.out[channel];
    struct aq_ibv_fragment fragment = { .head = { .type = AQ_IBV_T_CONTROL, .want = (uint16_t)n } };

    if (!aq_ibv_credit_ask(out, peer->flow.cell, channel, n))
        return;
    if (aq_ibv_am_post_inline(peer, channel, &fragment, NULL, 0, 0) != AQ_OK)
        aq_ibv_credit_unask(out);
    else
        aq_counter_add(&aq_ibv_am.credit_requests, 1);
}

bool aq_ibv_am_claim(struct aq_ibv_peer *peer, unsigned channel, unsigned fragments,
                     unsigned reserve)
{
    struct aq_ibv_credit_out *out = &peer->flow.out[channel];

    if (AQ_LIKELY(aq_ibv_credit_claim(out, peer->flow.cell, channel, fragments, reserve)))
        return true;
    /* the limit may be in messages that nobody has looked at */
    aq_ibv_receive_quietly();
    if (aq_ibv_credit_claim(out, peer->flow.cell, channel, fragments, reserve))
        return true;
    if (fragments > 1)
        aq_ibv_am_request_credit(peer, channel, fragments + reserve);
    return false;
}

/* --- heads --- */

void aq_ibv_am_head(struct aq_ibv_peer *peer, unsigned channel, struct aq_ibv_head *head)
{
    struct aq_ibv_credit_out *out = &peer->flow.out[channel];

    head->from = aq_job.rank;
    head->flags = channel == AQ_IBV_REPLY ? AQ_IBV_F_REPLY : 0;
    if (aq_ibv_credit_left(out, peer->flow.cell, channel) <= aq_ibv_am_reserve(channel, 0))
        head->flags |= AQ_IBV_F_CREDIT_LOW;
    for (unsigned i = 0; i < AQ_IBV_CHANNELS; i++)
        head->credits[i] = aq_ibv_credit_latest(&peer->flow.in[i]);
}

void aq_ibv_am_advertised(struct aq_ibv_peer *peer, const struct aq_ibv_head *head)
{
    for (unsigned i = 0; i < AQ_IBV_CHANNELS; i++)
        aq_credit_advertise(&peer->flow.in[i].base, head->credits[i]);
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

/* A fragment from the stack, or from a send buffer if the device takes less inline; behind count
 * other requests, the last of which is before[count - 1]. */
static inline int aq_ibv_am_post_small(struct aq_ibv_peer *peer, unsigned channel,
                                       struct aq_ibv_fragment *fragment, const void *data,
                                       size_t nbytes, struct ibv_send_wr *before, unsigned count,
                                       unsigned flags)
{
    uint8_t packet[AQ_IBV_INLINE_MAX + 64];
    struct aq_ibv_qp *qp = aq_ibv_peer_am_qp(peer);
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
    } else { /* the device takes less */
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

/* A send buffer, with the fragment from bytes on. */
static int aq_ibv_am_post_buf(struct aq_ibv_peer *peer, struct aq_ibv_buf *buf, uint8_t *bytes,
                              size_t len, unsigned flags)
{
    struct aq_ibv_qp *qp = aq_ibv_peer_am_qp(peer);
    struct ibv_sge sge = { .addr = (uintptr_t)bytes,
                           .length = (uint32_t)len,
                           .lkey = buf->lkey[qp->rail->dev->index] };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

    return aq_ibv_qp_post(qp, &wr, 1, &buf->done, flags);
}

int aq_ibv_am_post_copied(struct aq_ibv_peer *peer, unsigned channel,
                          struct aq_ibv_fragment *fragment, const struct aq_am_out *out,
                          unsigned flags)
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
    rc = aq_ibv_am_post_buf(peer, buf, buf->bytes, (size_t)(end - buf->bytes) + out->nbytes, flags);
    if (rc == AQ_OK)
        aq_ibv_am_advertised(peer, &fragment->head);
    else
        aq_ibv_buf_give(buf);
    return rc;
}

int aq_ibv_am_post_frags(struct aq_ibv_peer *peer, unsigned channel,
                         struct aq_ibv_fragment *fragment, const struct aq_am_out *out, size_t from,
                         unsigned count, size_t each)
{
    struct ibv_send_wr wr[AQ_IBV_MSG_FRAGS];
    struct ibv_sge sge[AQ_IBV_MSG_FRAGS];
    struct aq_ibv_qp *qp = aq_ibv_peer_am_qp(peer);
    struct aq_ibv_buf *bufs = aq_ibv_buf_take_chain(channel, count), *buf = bufs;
    int rc;

    if (bufs == NULL)
        return AQ_RETRY;
    aq_ibv_am_head(peer, channel, &fragment->head);
    fragment->total = (uint32_t)out->nbytes;
    for (unsigned i = 0; i < count; i++, buf = buf->chain) {
        const size_t at = from + i * each, len = aq_fragment_len(each, out->nbytes, at);
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

/* --- long messages --- */

int aq_ibv_am_post_placed(struct aq_ibv_peer *peer, const struct aq_am_out *out,
                          struct ibv_send_wr *writes, unsigned count, unsigned flags)
{
    const unsigned channel = out->is_reply ? AQ_IBV_REPLY : AQ_IBV_REQUEST;
    struct aq_ibv_fragment fragment = { .head = { .type = 0 } };
    int rc = AQ_RETRY;

    aq_ibv_am_fill(&fragment, AQ_IBV_T_PLACED, out, out->nbytes);
    aq_lock_acquire(&peer->flow.lock);
    if (AQ_LIKELY(aq_ibv_am_claim(peer, channel, 1, aq_ibv_am_reserve(channel, out->handler)))) {
        rc = aq_ibv_am_post_small(peer, channel, &fragment, NULL, 0, writes, count, flags);
        if (AQ_LIKELY(rc == AQ_OK))
            peer->flow.sent++;
        else
            peer->flow.out[channel].base.sent--;
    }
    aq_lock_release(&peer->flow.lock);
    return rc;
}

int aq_ibv_am_post_follow(struct aq_ibv_peer *peer, const struct aq_ibv_follow *follow)
{
    struct aq_ibv_fragment fragment = { .head = { .type = AQ_IBV_T_PLACED,
                                                  .handler = follow->handler,
                                                  .nargs = follow->nargs,
                                                  .nbytes = (uint32_t)follow->nbytes },
                                        .address = (uintptr_t)follow->dest,
                                        .args = follow->args };
    int rc;

    aq_lock_acquire(&peer->flow.lock);
    rc = aq_ibv_am_post_inline(peer, follow->is_reply ? AQ_IBV_REPLY : AQ_IBV_REQUEST, &fragment,
                               NULL, 0, 0);
    if (rc == AQ_OK)
        peer->flow.sent++;
    aq_lock_release(&peer->flow.lock);
    return rc;
}

/* --- giving credits up --- */

void aq_ibv_am_skip(struct aq_ibv_peer *peer)
{
    if (aq_ibv_peer_disconnected(peer) || !aq_lock_try(&peer->flow.lock))
        return; /* the peer may have ended, or is in use */
    for (unsigned channel = 0; channel < AQ_IBV_CHANNELS; channel++) {
        const uint32_t surplus =
            aq_ibv_credit_surplus(&peer->flow.out[channel], peer->flow.cell, channel);
        struct aq_ibv_fragment fragment = { .head = { .type = AQ_IBV_T_CONTROL,
                                                      .skip = (uint16_t)surplus } };

        if (surplus == 0 || surplus > UINT16_MAX)
            continue;
        peer->flow.out[channel].base.sent += surplus + 1;
        if (aq_ibv_am_post_inline(peer, channel, &fragment, NULL, 0, AQ_IBV_POST_NOTICE) != AQ_OK)
            peer->flow.out[channel].base.sent -= surplus + 1;
        else
            aq_counter_add(&aq_ibv_am.skips, 1);
    }
    aq_lock_release(&peer->flow.lock);
}
