/*
 * aq_ibv_lent.c - payloads that the client writes into registered buffers of ours (negotiated payload).
 *
 * A payload that fits one fragment gets a send buffer, with room for the head before it. A larger one gets a bounce
 * buffer, AQ_IBV_BOUNCE_MOST bytes in one piece; its fragments have their heads in a send buffer, and the device
 * gathers both. Neither is copied. If too many are lent the buffer is from the heap, and what leaves is a copy.
 *
 * Threads   any; posting under peer->lock
 * Promise   buffers are lent only while others of their kind stay
 * Uses      aq_ibv_am.h, aq_ibv_xfer.h, conduits/smp for near ranks. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "conduits/ibv/aq_ibv_am.h"
#include "conduits/ibv/aq_ibv_xfer.h"
#include "core/aq_am.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "conduits/smp/aq_shm.h"

#define AQ_IBV_HEAP UINT64_MAX     /* what a client's buffer from the heap is known by */
#define AQ_IBV_TAG UINT64_C(1)     /* in an address: a bounce buffer's */
#define AQ_IBV_PART_HEAD 128u      /* bytes for the head of a fragment */
_Static_assert(AQ_IBV_PARTS * AQ_IBV_PART_HEAD <= AQ_IBV_BUF, "the heads of a message fit one buffer");

/* The send buffer under a client's, or NULL. */
static inline struct aq_ibv_buf *aq_ibv_lent_buf(const struct aq_am_buffer *buffer)
{
    return (buffer->own & AQ_IBV_TAG) != 0 ? NULL : (struct aq_ibv_buf *)(uintptr_t)buffer->own;
}

/* The bounce buffer under it, or NULL. */
static inline struct aq_ibv_bounce *aq_ibv_lent_bounce(const struct aq_am_buffer *buffer)
{
    return buffer->own == AQ_IBV_HEAP || (buffer->own & AQ_IBV_TAG) == 0
               ? NULL
               : (struct aq_ibv_bounce *)(uintptr_t)(buffer->own & ~AQ_IBV_TAG);
}

/* --- to the client and back --- */

int aq_ibv_am_alloc(gex_Rank_t jobrank, bool is_reply, size_t least, size_t most, struct aq_am_buffer *buffer_out)
{
    struct aq_ibv_bounce *bounce = NULL;
    struct aq_ibv_buf *buf = NULL;

    if (aq_shm_is_near(jobrank))
        return aq_shm_am_alloc(jobrank, is_reply, least, most, buffer_out);
    if (aq_ibv_peer(jobrank) == NULL)
        return AQ_RETRY;
    if (most <= AQ_IBV_BUF - AQ_IBV_HEAD_ROOM)
        buf = aq_ibv_buf_lend(is_reply ? AQ_IBV_REPLY : AQ_IBV_REQUEST);
    else
        bounce = aq_ibv_bounce_lend();
    if (buf != NULL) {
        *buffer_out = (struct aq_am_buffer){ .addr = buf->bytes + AQ_IBV_HEAD_ROOM, .own = (uintptr_t)buf,
                                             .size = AQ_IBV_BUF - AQ_IBV_HEAD_ROOM };
        return AQ_OK;
    }
    if (bounce != NULL) {
        *buffer_out = (struct aq_am_buffer){ .addr = bounce->bytes, .own = (uintptr_t)bounce | AQ_IBV_TAG,
                                             .size = AQ_IBV_BOUNCE_MOST };
        return AQ_OK;
    }
    *buffer_out = (struct aq_am_buffer){ .addr = malloc(most != 0 ? most : 1), .size = most, .own = AQ_IBV_HEAP };
    if (buffer_out->addr == NULL)
        aq_fatal("ibv: no memory for a payload of %zu bytes", most);
    return AQ_OK;
}

void aq_ibv_am_free(bool is_reply, const struct aq_am_buffer *buffer)
{
    if (buffer->own <= UINT16_MAX) /* a near rank's: the number of a block */
        aq_shm_am_free(is_reply, buffer);
    else if (buffer->own == AQ_IBV_HEAP)
        free(buffer->addr);
    else if (aq_ibv_lent_buf(buffer) != NULL)
        aq_ibv_buf_give(aq_ibv_lent_buf(buffer));
    else
        aq_ibv_bounce_give(aq_ibv_lent_bounce(buffer));
}

/* --- from there --- */

bool aq_ibv_lent_is_ours(const struct aq_am_out *out)
{
    return out->buffer != NULL && out->buffer->own != AQ_IBV_HEAP && out->nbytes != 0;
}

/* What a client kept elsewhere comes to where it leaves from. */
static inline void aq_ibv_lent_gather(const struct aq_am_out *out)
{
    if (out->src != out->buffer->addr)
        memmove(out->buffer->addr, out->src, out->nbytes);
}

/* The head goes before the payload. */
static int aq_ibv_lent_send_one(struct aq_ibv_peer *peer, struct aq_ibv_fragment *fragment,
                                const struct aq_am_out *out)
{
    struct aq_ibv_qp *qp = peer->qps[peer->am_qp];
    struct aq_ibv_buf *buf = aq_ibv_lent_buf(out->buffer);
    const size_t head = aq_ibv_data_at(fragment->head.type, fragment->head.nargs);
    uint8_t *begin = buf->bytes + AQ_IBV_HEAD_ROOM - head;
    struct ibv_sge sge = { .addr = (uintptr_t)begin, .length = (uint32_t)(head + out->nbytes),
                           .lkey = buf->lkey[qp->rail->dev->index] };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

    (void)aq_ibv_packet_write(begin, fragment);
    return aq_ibv_qp_post(qp, &wr, 1, &buf->done, 0);
}

/* Heads from a send buffer, the payload from where it is. */
static int aq_ibv_lent_send_parts(struct aq_ibv_peer *peer, unsigned lane, struct aq_ibv_fragment *fragment,
                                  const struct aq_am_out *out, unsigned count, size_t each)
{
    struct aq_ibv_bounce *bounce = aq_ibv_lent_bounce(out->buffer);
    const size_t head = aq_ibv_data_at(fragment->head.type, fragment->head.nargs);
    struct aq_ibv_qp *qp = peer->qps[peer->am_qp];
    const uint32_t dev = qp->rail->dev->index;
    struct aq_ibv_buf *heads = aq_ibv_buf_take(lane);
    struct ibv_send_wr wr[AQ_IBV_PARTS];
    struct ibv_sge sge[AQ_IBV_PARTS][2];
    int rc;

    if (heads == NULL)
        return AQ_RETRY;
    fragment->total = (uint32_t)out->nbytes;
    for (unsigned i = 0; i < count; i++) {
        const size_t at = i * each, len = i + 1 < count ? each : out->nbytes - at;
        uint8_t *bytes = heads->bytes + (size_t)i * AQ_IBV_PART_HEAD;

        fragment->at = (uint32_t)at;
        fragment->head.nbytes = (uint32_t)len;
        (void)aq_ibv_packet_write(bytes, fragment);
        sge[i][0] = (struct ibv_sge){ .addr = (uintptr_t)bytes, .length = (uint32_t)head, .lkey = heads->lkey[dev] };
        sge[i][1] = (struct ibv_sge){ .addr = (uintptr_t)bounce->bytes + at, .length = (uint32_t)len,
                                      .lkey = bounce->lkey[dev] };
        wr[i] = (struct ibv_send_wr){ .next = i + 1 < count ? &wr[i + 1] : NULL, .sg_list = sge[i], .num_sge = 2,
                                      .opcode = IBV_WR_SEND };
    }
    heads->rider = bounce;
    /* signalled: a quiet peer must not keep so large a buffer */
    rc = aq_ibv_qp_post(qp, wr, count, &heads->done, AQ_IBV_POST_SIGNAL);
    if (rc == AQ_OK)
        return AQ_OK;
    heads->rider = NULL;
    aq_ibv_buf_give(heads);
    return rc;
}

int aq_ibv_lent_send(struct aq_ibv_peer *peer, unsigned lane, struct aq_ibv_fragment *fragment,
                     const struct aq_am_out *out, unsigned count, size_t each)
{
    int rc;

    aq_ibv_lent_gather(out);
    aq_ibv_am_head(peer, lane, &fragment->head);
    rc = aq_ibv_lent_buf(out->buffer) != NULL ? aq_ibv_lent_send_one(peer, fragment, out)
                                              : aq_ibv_lent_send_parts(peer, lane, fragment, out, count, each);
    if (rc == AQ_OK)
        aq_ibv_am_told(peer, &fragment->head);
    return rc;
}

/* --- long ones: written to where they belong --- */

static void aq_ibv_lent_done(struct aq_ibv_done *done)
{
    struct aq_ibv_piece *piece = (struct aq_ibv_piece *)(void *)done; /* its first member */

    aq_ibv_bounce_give(piece->bounce);
    aq_ibv_piece_give(piece);
}

int aq_ibv_lent_long(struct aq_ibv_peer *peer, const struct aq_am_out *out, uint32_t rkey)
{
    const uint32_t dev = peer->qps[peer->am_qp]->rail->dev->index;
    struct aq_ibv_buf *buf = aq_ibv_lent_buf(out->buffer);
    struct aq_ibv_bounce *bounce = aq_ibv_lent_bounce(out->buffer);
    struct aq_ibv_piece *piece = NULL;
    struct ibv_sge sge = { .addr = (uintptr_t)out->buffer->addr, .length = (uint32_t)out->nbytes,
                           .lkey = buf != NULL ? buf->lkey[dev] : bounce->lkey[dev] };
    struct ibv_send_wr write = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
                                 .wr.rdma = { .remote_addr = (uintptr_t)out->dest, .rkey = rkey } };
    int rc;

    aq_ibv_lent_gather(out);
    if (buf != NULL) {
        write.wr_id = (uintptr_t)&buf->done;
    } else {
        piece = aq_ibv_piece_take();
        piece->bounce = bounce;
        piece->done.fn = aq_ibv_lent_done;
        write.wr_id = (uintptr_t)&piece->done;
    }
    rc = aq_ibv_long_post(peer, out, &write, 1, piece != NULL ? AQ_IBV_POST_SIGNAL : 0);
    if (rc != AQ_OK && piece != NULL)
        aq_ibv_piece_give(piece);
    return rc;
}
