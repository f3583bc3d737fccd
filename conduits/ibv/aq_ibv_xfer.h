/*
 * aq_ibv_xfer.h - what the files of transfers share.
 *
 *     aq_ibv_rma.c      put and get: the short way of a single work request; else a transfer
 *     aq_ibv_batch.c    several of those that leave together
 *     aq_ibv_xfer.c     transfers: several requests, memory that is pinned as they go; never blocks
 *     aq_ibv_bounce.c   pieces, which stand for one request, and registered buffers
 *     aq_ibv_atomic.c   atomic operations by the device
 *     aq_ibv_segment.c  segments, registered for good, and their keys
 *     aq_ibv_reg.c      other memory: what firehose asks of this conduit
 *
 * Uses      aq_ibv.h, other/firehose/aq_fh.h, core/aq_op.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_XFER_H
#define AQ_IBV_XFER_H

#include <string.h>

#include "conduits/ibv/aq_ibv.h"
#include "core/aq_op.h"
#include "other/firehose/aq_fh.h"

#define AQ_IBV_FRAG_MAX ((size_t)4 << 20) /* bytes of one request: within what each device takes */
#define AQ_IBV_STRIPE_MIN \
    ((size_t)128 << 10)           /* a transfer is spread over queue pairs in pieces of so much */
#define AQ_IBV_BOUNCE_MAX  65536u /* bytes of the largest bounce buffer */
#define AQ_IBV_BOUNCE_PAGE 4096u  /* bytes of bounce buffers for each of GASNET_BBUF_COUNT */
/* Copied rather than pinned: as long as pinning, even when it has been done before, costs about as
 * much. */
#define AQ_IBV_COPIED_MAX 16384u

/* --- pieces and bounce buffers (aq_ibv_bounce.c) --- */

struct aq_ibv_xfer;

struct aq_ibv_bounce {
    struct aq_ibv_bounce *next; /* while free */
    char *bytes;
    uint32_t size_class;
    bool zcopy;                  /* a client writes its payload into it */
    uint32_t lkey[AQ_IBV_RAILS]; /* by dev->index */
};

/* One work request under way: who is told, and what it holds. */
struct aq_ibv_rma_frag {
    _Alignas(AQ_CACHE_LINE) struct aq_ibv_done done;
    struct aq_ibv_rma_frag *next; /* while free */
    struct aq_op *op;
    struct aq_ibv_xfer *xfer; /* that it is a part of, or NULL */
    struct aq_ibv_bounce *bounce;
    void *dest; /* of what the bounce buffer will hold, or NULL */
    uint32_t nbytes;
    gex_EC_t category;               /* that it is counted in, without a xfer */
    struct aq_fh_hold local, remote; /* region NULL: none */
};

/* Memory of this process as a device is told of it. */
struct aq_ibv_local {
    uintptr_t addr;
    size_t len;
    uint32_t lkey[AQ_IBV_RAILS]; /* by dev->index */
};

/* Ends the job if memory is out. Its fields are not set, but no region is held. */
struct aq_ibv_rma_frag *aq_ibv_rma_frag_take(void);
void aq_ibv_rma_frag_give(struct aq_ibv_rma_frag *frag);

/* A buffer of at least nbytes, at most AQ_IBV_BOUNCE_MAX; NULL: none now. */
struct aq_ibv_bounce *aq_ibv_bounce_take(size_t nbytes);
/* One of AQ_IBV_BOUNCE_MAX for somebody who may keep it for long: half of them stay. NULL: none
 * now. */
struct aq_ibv_bounce *aq_ibv_bounce_lend(void);
void aq_ibv_bounce_give(struct aq_ibv_bounce *bounce);

/* A part of a buffer, from addr on, as a device sees it. */
static inline void aq_ibv_local_bounce(const struct aq_ibv_bounce *bounce, const void *addr,
                                       size_t nbytes, struct aq_ibv_local *local_out)
{
    local_out->addr = (uintptr_t)addr;
    local_out->len = nbytes;
    memcpy(local_out->lkey, bounce->lkey, sizeof(bounce->lkey));
}

/* --- queue pairs for transfers --- */

/* They take turns; see aq_ibv_batch.h for those that leave together. */
struct aq_ibv_qp *aq_ibv_rma_qp(struct aq_ibv_peer *peer);

/* The read behind a put, after which that and all before it on its queue pair are in memory. */
void aq_ibv_rma_make_fence(const struct aq_ibv_qp *qp, const struct ibv_send_wr *put,
                           struct ibv_send_wr *fence_out, struct ibv_sge *sge_out);
/* A put, and a read behind it that completes with it. */
int aq_ibv_rma_post_fenced(struct aq_ibv_qp *qp, struct ibv_send_wr *wr,
                           struct aq_ibv_rma_frag *frag);

/* Post a request of a piece; wr has opcode, flags and what is far. AQ_OK or AQ_RETRY. */
static inline int aq_ibv_rma_post(struct aq_ibv_qp *qp, struct ibv_send_wr *wr,
                                  const struct aq_ibv_local *local, struct aq_ibv_rma_frag *frag)
{
    struct ibv_sge sge = { .addr = local->addr,
                           .length = (uint32_t)local->len,
                           .lkey = local->lkey[qp->rail->dev->index] };

    wr->sg_list = &sge;
    wr->num_sge = 1;
    wr->next = NULL;
    if (AQ_UNLIKELY(qp->fences) && wr->opcode == IBV_WR_RDMA_WRITE)
        return aq_ibv_rma_post_fenced(qp, wr, frag);
    return aq_ibv_qp_post(qp, wr, 1, &frag->done, AQ_IBV_POST_SIGNAL);
}

/* In every poll, of those that serve replies only too: who may say nothing until peers have been
 * told of memory that has gone would else wait for ever. */
static inline void aq_ibv_rma_progress(void)
{
    if (aq_fh_job != NULL && AQ_UNLIKELY(aq_fh_has_work(aq_fh_job)))
        aq_fh_progress(aq_fh_job);
}

/* How many transfers wait, of long messages [1] or others [0] (aq_ibv_xfer_state.c). */
extern atomic_uint aq_ibv_xfers_parked[2];

static inline unsigned aq_ibv_xfer_parked(bool longs)
{
    return atomic_load_explicit(&aq_ibv_xfers_parked[longs], memory_order_relaxed); /* a hint */
}

/* Go on with those that wait; returns how many moved. */
unsigned aq_ibv_xfer_feed_parked(bool longs);

/* In each poll: transfers that waited for room. replies_only: those of long messages. Returns how
 * many moved on. */
static inline unsigned aq_ibv_rma_poll(bool replies_only)
{
    unsigned moved = 0;

    if (AQ_UNLIKELY(aq_ibv_xfer_parked(true) != 0))
        moved += aq_ibv_xfer_feed_parked(true);
    if (AQ_UNLIKELY(!replies_only && aq_ibv_xfer_parked(false) != 0))
        moved += aq_ibv_xfer_feed_parked(false);
    return moved;
}

/* May a message or a put leave, for whomever? Not while a peer could still aim at memory that this
 * process has unmapped. Nobody aims at any where all is in segments. */
static inline bool aq_ibv_rma_is_quiet(void)
{
#if GASNET_SEGMENT_EVERYTHING
    if (AQ_LIKELY(aq_fh_job == NULL || aq_fh_is_quiet(aq_fh_job)))
        return true;
    aq_fh_settle(aq_fh_job);
    return aq_fh_is_quiet(aq_fh_job);
#else
    return true;
#endif
}

/* --- registration (aq_ibv_segment.c, aq_ibv_reg.c) --- */

/* Our own segment. */
struct aq_ibv_own {
    struct aq_bound bound; /* size 0: none */
    uint32_t lkey[AQ_IBV_RAILS];
};
extern struct aq_ibv_own aq_ibv_own;

/* Is all of it registered for good, here? Then how. */
static inline bool aq_ibv_local_own(const void *addr, size_t nbytes, struct aq_ibv_local *local_out)
{
    if (!aq_bounds_contain(&aq_ibv_own.bound, addr, nbytes) || aq_ibv_own.bound.size == 0)
        return false;
    local_out->addr = (uintptr_t)addr;
    local_out->len = nbytes;
    for (unsigned i = 0; i < AQ_IBV_RAILS; i++)
        local_out->lkey[i] = aq_ibv_own.lkey[i];
    return true;
}

/* The table's entries for what comes after the client's attach hook, and for atomic domains
 * (aq_ibv_atomic.c). */
int aq_ibv_segment_ready(void);
void aq_ibv_segment_detach(void);
bool aq_ibv_ad_serves(gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags);
int aq_ibv_ad_op(struct aq_op *op, gex_Rank_t jobrank, gex_DT_t dt, void *result_p, void *tgt_addr,
                 gex_OP_t opcode, uint64_t operand1, uint64_t operand2, gex_Flags_t flags);
/* May devices serve domains? The same on every rank, once the segments are ready. */
bool aq_ibv_atomics_agreed(void);

/* Start firehose. AQ_OK or negative, logged. */
int aq_ibv_reg_init(void);
/* Once devices are open: how large a segment may be, into aq_limits. */
void aq_ibv_reg_limits(void);
/* The segment is registered: firehose has so much less, and need not watch it. */
void aq_ibv_reg_segment(void *addr, size_t nbytes);
/* Figures, for people. */
void aq_ibv_reg_report(void);
/* The same of a held region. */
void aq_ibv_reg_local(const struct aq_fh_hold *hold, struct aq_ibv_local *local_out);

/* --- transfers (aq_ibv_xfer.c) --- */

/* What a client asks for. */
struct aq_ibv_wanted {
    struct aq_op *op;
    gex_Rank_t rank;
    bool is_put;
    bool lc_now;
    bool
        copies; /* with lc_now: the source is copied rather than waited for, if there is a buffer */
    void *laddr; /* source of a put */
    uintptr_t raddr;
    size_t nbytes;
};

/* Begin one, counted in its operation, and let it go as far as it can; what is left goes on in
 * polls. With lc_now it returns when the source may be reused. */
void aq_ibv_xfer_start(const struct aq_ibv_wanted *wanted);
/* The payload of a long message, then the message, whose credit is claimed; one GEX_EC_AM of op
 * ends when the source is free. */
struct aq_am_out;
void aq_ibv_xfer_long(struct aq_op *op, const struct aq_am_out *out);
/* Are so many waiting that no more should begin? */
bool aq_ibv_xfer_crowded(void);

#endif
