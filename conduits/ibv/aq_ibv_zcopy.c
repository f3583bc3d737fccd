/*
 * aq_ibv_zcopy.c - payloads that the client writes into registered buffers (negotiated payload).
 *
 * A payload that fits one fragment gets a send buffer, with space for the head before it. A larger
 * one gets a bounce buffer, AQ_IBV_BOUNCE_MAX contiguous bytes; the heads of its fragments are in a
 * send buffer, and the device gathers both. Neither is copied. If no buffer is allowed the
 * client gets memory from the heap, from which the payload is copied.
 *
 * Threads   any; posting under peer->flow.lock
 * Promise   clients have at most half of the buffers of a kind
 * Uses      aq_ibv_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_am.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"

#define AQ_IBV_HEAP      UINT64_MAX  /* buffer->own of a buffer from the heap */
#define AQ_IBV_TAG       UINT64_C(1) /* in buffer->own: it is the address of a bounce buffer */
#define AQ_IBV_FRAG_HEAD 128u        /* bytes for the head of a fragment */
_Static_assert(AQ_IBV_MSG_FRAGS *AQ_IBV_FRAG_HEAD <= AQ_IBV_BUF,
               "the heads of a message fit one buffer");

/* The send buffer under a client's, or NULL. */
static inline struct aq_ibv_buf *aq_ibv_zcopy_buf(const struct aq_am_buffer *buffer)
{
    return (buffer->own & AQ_IBV_TAG) != 0 ? NULL : (struct aq_ibv_buf *)(uintptr_t)buffer->own;
}

/* The bounce buffer under it, or NULL. */
static inline struct aq_ibv_bounce *aq_ibv_zcopy_bounce(const struct aq_am_buffer *buffer)
{
    return buffer->own == AQ_IBV_HEAP || (buffer->own & AQ_IBV_TAG) == 0
               ? NULL
               : (struct aq_ibv_bounce *)(uintptr_t)(buffer->own & ~AQ_IBV_TAG);
}

/* --- buffers for clients --- */

int aq_ibv_am_alloc(gex_Rank_t jobrank, bool is_reply, size_t min, size_t max,
                    struct aq_am_buffer *buffer_out)
{
    struct aq_ibv_bounce *bounce = NULL;
    struct aq_ibv_buf *buf = NULL;

    (void)min; /* there is always memory */
    if (aq_ibv_peer(jobrank) == NULL)
        return AQ_RETRY;
    if (max <= AQ_IBV_BUF - AQ_IBV_HEADROOM)
        buf = aq_ibv_buf_take_zcopy(is_reply ? AQ_IBV_REPLY : AQ_IBV_REQUEST);
    else
        bounce = aq_ibv_bounce_take_zcopy();
    if (buf != NULL) {
        *buffer_out = (struct aq_am_buffer){ .addr = buf->bytes + AQ_IBV_HEADROOM,
                                             .own = (uintptr_t)buf,
                                             .size = AQ_IBV_BUF - AQ_IBV_HEADROOM };
        return AQ_OK;
    }
    if (bounce != NULL) {
        *buffer_out = (struct aq_am_buffer){ .addr = bounce->bytes,
                                             .own = (uintptr_t)bounce | AQ_IBV_TAG,
                                             .size = AQ_IBV_BOUNCE_MAX };
        return AQ_OK;
    }
    *buffer_out = (struct aq_am_buffer){ .addr = malloc(max != 0 ? max : 1),
                                         .size = max,
                                         .own = AQ_IBV_HEAP };
    if (buffer_out->addr == NULL)
        aq_fatal("ibv: no memory for a payload of %zu bytes", max);
    return AQ_OK;
}

void aq_ibv_am_free(bool is_reply, const struct aq_am_buffer *buffer)
{
    (void)is_reply;
    if (buffer->own == AQ_IBV_HEAP)
        free(buffer->addr);
    else if (aq_ibv_zcopy_buf(buffer) != NULL)
        aq_ibv_buf_give(aq_ibv_zcopy_buf(buffer));
    else
        aq_ibv_bounce_give(aq_ibv_zcopy_bounce(buffer));
}

/* --- sending --- */

bool aq_ibv_zcopy_is_ours(const struct aq_am_out *out)
{
    return out->buffer != NULL && out->buffer->own != AQ_IBV_HEAP && out->nbytes != 0;
}

/* A payload that the client has elsewhere is copied to where it leaves from. */
static inline void aq_ibv_zcopy_gather(const struct aq_am_out *out)
{
    if (out->src != out->buffer->addr)
        memmove(out->buffer->addr, out->src, out->nbytes);
}

/* The head goes before the payload. */
static int aq_ibv_zcopy_send_one(struct aq_ibv_peer *peer, struct aq_ibv_fragment *fragment,
                                 const struct aq_am_out *out)
{
    struct aq_ibv_qp *qp = aq_ibv_peer_am_qp(peer);
    struct aq_ibv_buf *buf = aq_ibv_zcopy_buf(out->buffer);
    const size_t head = aq_ibv_data_at(fragment->head.type, fragment->head.nargs);
    uint8_t *begin = buf->bytes + AQ_IBV_HEADROOM - head;
    struct ibv_sge sge = { .addr = (uintptr_t)begin,
                           .length = (uint32_t)(head + out->nbytes),
                           .lkey = buf->lkey[qp->rail->dev->index] };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

    (void)aq_ibv_packet_write(begin, fragment);
    return aq_ibv_qp_post(qp, &wr, 1, &buf->done, 0);
}

/* Heads from a send buffer, the payload from where it is. */
static int aq_ibv_zcopy_send_frags(struct aq_ibv_peer *peer, unsigned channel,
                                   struct aq_ibv_fragment *fragment, const struct aq_am_out *out,
                                   unsigned count, size_t each)
{
    struct aq_ibv_bounce *bounce = aq_ibv_zcopy_bounce(out->buffer);
    const size_t head = aq_ibv_data_at(fragment->head.type, fragment->head.nargs);
    struct aq_ibv_qp *qp = aq_ibv_peer_am_qp(peer);
    const uint32_t dev = qp->rail->dev->index;
    struct aq_ibv_buf *heads = aq_ibv_buf_take(channel);
    struct ibv_send_wr wr[AQ_IBV_MSG_FRAGS];
    struct ibv_sge sge[AQ_IBV_MSG_FRAGS][2];
    int rc;

    if (heads == NULL)
        return AQ_RETRY;
    fragment->total = (uint32_t)out->nbytes;
    for (unsigned i = 0; i < count; i++) {
        const size_t at = i * each, len = aq_fragment_len(each, out->nbytes, at);
        uint8_t *bytes = heads->bytes + (size_t)i * AQ_IBV_FRAG_HEAD;

        fragment->at = (uint32_t)at;
        fragment->head.nbytes = (uint32_t)len;
        (void)aq_ibv_packet_write(bytes, fragment);
        sge[i][0] = (struct ibv_sge){ .addr = (uintptr_t)bytes,
                                      .length = (uint32_t)head,
                                      .lkey = heads->lkey[dev] };
        sge[i][1] = (struct ibv_sge){ .addr = (uintptr_t)bounce->bytes + at,
                                      .length = (uint32_t)len,
                                      .lkey = bounce->lkey[dev] };
        wr[i] = (struct ibv_send_wr){ .next = i + 1 < count ? &wr[i + 1] : NULL,
                                      .sg_list = sge[i],
                                      .num_sge = 2,
                                      .opcode = IBV_WR_SEND };
    }
    heads->rider = bounce;
    /* signalled: so large a buffer must not wait for later traffic */
    rc = aq_ibv_qp_post(qp, wr, count, &heads->done, AQ_IBV_POST_SIGNAL);
    if (rc == AQ_OK)
        return AQ_OK;
    heads->rider = NULL;
    aq_ibv_buf_give(heads);
    return rc;
}

int aq_ibv_zcopy_send(struct aq_ibv_peer *peer, unsigned channel, struct aq_ibv_fragment *fragment,
                      const struct aq_am_out *out, unsigned count, size_t each)
{
    int rc;

    aq_ibv_zcopy_gather(out);
    aq_ibv_am_head(peer, channel, &fragment->head);
    rc = aq_ibv_zcopy_buf(out->buffer) != NULL
             ? aq_ibv_zcopy_send_one(peer, fragment, out)
             : aq_ibv_zcopy_send_frags(peer, channel, fragment, out, count, each);
    if (rc == AQ_OK)
        aq_ibv_am_advertised(peer, &fragment->head);
    return rc;
}

/* --- long messages --- */

static void aq_ibv_zcopy_done(struct aq_ibv_done *done)
{
    struct aq_ibv_rma_frag *frag = aq_ibv_rma_frag_of(done);

    aq_ibv_bounce_give(frag->bounce);
    aq_ibv_rma_frag_give(frag);
}

int aq_ibv_zcopy_long(struct aq_ibv_peer *peer, const struct aq_am_out *out, uint32_t rkey)
{
    const uint32_t dev = aq_ibv_peer_am_qp(peer)->rail->dev->index;
    struct aq_ibv_buf *buf = aq_ibv_zcopy_buf(out->buffer);
    struct aq_ibv_bounce *bounce = aq_ibv_zcopy_bounce(out->buffer);
    struct aq_ibv_rma_frag *frag = NULL;
    struct ibv_sge sge = { .addr = (uintptr_t)out->buffer->addr,
                           .length = (uint32_t)out->nbytes,
                           .lkey = buf != NULL ? buf->lkey[dev] : bounce->lkey[dev] };
    struct ibv_send_wr write = { .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .wr.rdma = { .remote_addr = (uintptr_t)out->dest, .rkey = rkey } };
    int rc;

    aq_ibv_zcopy_gather(out);
    if (buf != NULL) {
        write.wr_id = (uintptr_t)&buf->done;
    } else {
        frag = aq_ibv_rma_frag_take();
        frag->bounce = bounce;
        frag->done.fn = aq_ibv_zcopy_done;
        write.wr_id = (uintptr_t)&frag->done;
    }
    rc = aq_ibv_am_post_placed(peer, out, &write, 1, frag != NULL ? AQ_IBV_POST_SIGNAL : 0);
    if (rc != AQ_OK && frag != NULL)
        aq_ibv_rma_frag_give(frag);
    return rc;
}
