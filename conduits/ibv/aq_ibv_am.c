/*
 * aq_ibv_am.c - active messages to remote ranks: the table entries, and the way a message takes.
 *
 * Inline    a message that fits the queue pair's inline data leaves from the stack
 * Eager     others are copied into send buffers, one for each fragment; a payload in a registered
 *           buffer that the client was given leaves from there (aq_ibv_zcopy.c)
 * Long      by RDMA, if it is large and its destination registered (aq_ibv_am_long.c)
 *
 * Threads   any; credits and the order of fragments under peer->flow.lock
 * Promise   a message is sent whole or, with AQ_RETRY, not at all
 * Uses      aq_ibv_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_am.h"

#include <string.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"

void aq_ibv_am_init(struct aq_ibv_net *net, uint32_t packed_max, uint32_t window_max)
{
    aq_ibv_am.net = net;
    aq_ibv_am.packed_max = packed_max;
    aq_ibv_am.window_max = window_max;
    aq_ibv_am.updates.write = aq_ibv_update_to_cell;
}

/* --- what may leave --- */

static inline bool aq_ibv_am_is_firehose(uint8_t handler)
{
    return handler == AQ_HIDX_FIREHOSE || handler == AQ_HIDX_FIREHOSE_REPLY;
}

/* May a message leave now? While a peer could still use a reference to memory that this process has
 * unmapped, none leaves (to local ranks neither, which might pass it on), except for those that put
 * this right. */
static inline bool aq_ibv_am_may(uint8_t handler)
{
    return AQ_LIKELY(aq_ibv_rma_is_quiet()) || aq_ibv_am_is_firehose(handler);
}

/* Is the message of no use to a peer that has disconnected? The program does not know of firehose's
 * messages, except for those that its transfers wait for. */
static inline bool aq_ibv_am_is_notice(const struct aq_am_out *out)
{
    return AQ_UNLIKELY(aq_ibv_am_is_firehose(out->handler))
           && (out->handler == AQ_HIDX_FIREHOSE_REPLY || aq_fh_is_notice(out->src));
}

static inline unsigned aq_ibv_am_flags(const struct aq_am_out *out)
{
    return aq_ibv_am_is_notice(out) ? AQ_IBV_POST_NOTICE : 0;
}

/* --- table entries --- */

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
    aq_lock_acquire(&peer->flow.lock);
    if (AQ_LIKELY(aq_ibv_am_claim(peer, channel, 1, aq_ibv_am_reserve(channel, handler)))) {
        rc = aq_ibv_am_post_inline(peer, channel, &fragment, NULL, 0, 0);
        if (AQ_LIKELY(rc == AQ_OK))
            peer->flow.sent++;
        else
            peer->flow.out[channel].base.sent--;
    }
    aq_lock_release(&peer->flow.lock);
    return rc;
}

/* Medium, or a long message that the receiver places; takes a buffer of the client's over. */
static int aq_ibv_am_eager(struct aq_ibv_peer *peer, const struct aq_am_out *out)
{
    const unsigned channel = out->is_reply ? AQ_IBV_REPLY : AQ_IBV_REQUEST;
    const bool is_long = out->kind == AQ_AM_LONG;
    const struct aq_ibv_cut cut = aq_ibv_cut(is_long, out->nargs, out->nbytes, AQ_IBV_BUF);
    const bool zcopy = aq_ibv_zcopy_is_ours(out);
    struct aq_ibv_fragment fragment = { .head = { .type = 0 } };
    int rc = AQ_RETRY;

    if (AQ_UNLIKELY(cut.base.count > AQ_IBV_MSG_FRAGS))
        return out->immediate ? AQ_RETRY : aq_ibv_am_long_stream(peer, out, cut.base.each);
    aq_ibv_am_fill(&fragment, cut.type, out, out->nbytes);
    aq_lock_acquire(&peer->flow.lock);
    if (aq_ibv_am_claim(peer, channel, cut.base.count, aq_ibv_am_reserve(channel, out->handler))) {
        if (zcopy)
            rc = aq_ibv_zcopy_send(peer, channel, &fragment, out, cut.base.count, cut.base.each);
        else if (cut.base.count > 1)
            rc = aq_ibv_am_post_frags(peer, channel, &fragment, out, 0, cut.base.count,
                                      cut.base.each);
        else if (aq_ibv_data_at(cut.type, out->nargs) + out->nbytes
                 <= aq_ibv_peer_am_qp(peer)->max_inline)
            rc = aq_ibv_am_post_inline(peer, channel, &fragment, out->src, out->nbytes,
                                       aq_ibv_am_flags(out));
        else
            rc = aq_ibv_am_post_copied(peer, channel, &fragment, out, aq_ibv_am_flags(out));
        if (rc == AQ_OK)
            peer->flow.sent++;
        else
            peer->flow.out[channel].base.sent -= cut.base.count;
    }
    aq_lock_release(&peer->flow.lock);
    if (rc == AQ_OK && out->buffer != NULL && !zcopy)
        aq_ibv_am_free(out->is_reply, out->buffer);
    return rc;
}

static int aq_ibv_am_long(struct aq_ibv_peer *peer, const struct aq_am_out *out)
{
    uint32_t rkey;

    if (out->nbytes <= aq_ibv_am.packed_max
        || !aq_ibv_remote_key(out->jobrank, aq_ibv_peer_am_qp(peer)->rail->index, out->dest,
                              out->nbytes, &rkey))
        return aq_ibv_am_eager(peer, out);
    return aq_ibv_am_long_rdma(peer, out, rkey);
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
    if (aq_ibv_am_is_notice(out) && aq_ibv_peer_disconnected(peer))
        return AQ_OK; /* the peer returns no credits any more */
    return out->kind == AQ_AM_LONG ? aq_ibv_am_long(peer, out) : aq_ibv_am_eager(peer, out);
}
