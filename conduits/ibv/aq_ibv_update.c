/*
 * aq_ibv_update.c - writes into a peer's cell, by RDMA: credit updates, and the notice that this
 * rank disconnects.
 *
 * Such a write needs no buffer of the peer, hence no credit. It may use the reserved slots of the
 * queue pair, and its failure does not matter once the peer has disconnected.
 *
 * Threads   any
 * Uses      aq_ibv_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_am.h"

#include <string.h>

#include "base/aq_rc.h"

bool aq_ibv_cell_write(struct aq_ibv_peer *peer, size_t at, const uint64_t *words, size_t nbytes,
                       unsigned flags)
{
    struct aq_ibv_qp *qp = aq_ibv_peer_am_qp(peer);
    struct ibv_sge sge = { .addr = (uintptr_t)words, .length = (uint32_t)nbytes };
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_INLINE
    };
    struct aq_ibv_buf *buf = NULL;

    wr.wr.rdma.remote_addr = peer->cell_addr + at;
    wr.wr.rdma.rkey = peer->cell_rkey;
    if (AQ_UNLIKELY(qp->max_inline < nbytes)) { /* the device takes no inline data */
        buf = aq_ibv_buf_take(AQ_IBV_REPLY);
        if (buf == NULL)
            return false;
        memcpy(buf->bytes, words, nbytes);
        sge.addr = (uintptr_t)buf->bytes;
        sge.lkey = buf->lkey[qp->rail->dev->index];
        wr.send_flags = 0;
    }
    if (aq_ibv_qp_post(qp, &wr, 1, buf != NULL ? &buf->done : NULL,
                       flags | AQ_IBV_POST_RESERVE | AQ_IBV_POST_NOTICE)
        == AQ_OK)
        return true;
    if (buf != NULL)
        aq_ibv_buf_give(buf);
    return false;
}

bool aq_ibv_update_to_cell(struct aq_ibv_flow *flow, const uint64_t words[AQ_IBV_CELL_WORDS])
{
    return aq_ibv_cell_write(aq_ibv_peer_of_flow(flow), 0, words,
                             AQ_IBV_CELL_WORDS * sizeof(words[0]), 0);
}
