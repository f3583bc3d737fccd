/*
 * aq_ibv_rma.h - put, get and atomics: bounce buffers, batches, transfers.
 *
 *     aq_ibv_bounce.c   requests under way and bounce buffers
 *     aq_ibv_batch.c    posting: one request, a fenced put, or a batch with one doorbell
 *     aq_ibv_xfer.c     transfers: more than one request, or memory that is not in a segment
 *     aq_ibv_rma.c      put and get: the choice between one request and a transfer
 *     aq_ibv_atomic.c   atomic operations that the target's device executes
 *
 * Threads   any; a completion runs under the reap lock of its rail
 * Uses      aq_ibv_connect.h, aq_ibv_reg.h, other/firehose/aq_fh.h, core/aq_op.h.
 *           SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_RMA_H
#define AQ_IBV_RMA_H

#include <string.h>

#include "conduits/ibv/aq_ibv_connect.h"
#include "conduits/ibv/aq_ibv_reg.h"
#include "core/aq_freelist.h"
#include "core/aq_op.h"
#include "other/firehose/aq_fh.h"

/* bytes of one request: within what each device takes */
#define AQ_IBV_FRAG_MAX ((size_t)4 << 20)
/* a transfer is spread over queue pairs in fragments of at least so many bytes */
#define AQ_IBV_STRIPE_MIN ((size_t)128 << 10)
#define AQ_IBV_BOUNCE_MAX 65536u /* bytes of the largest bounce buffer */
/* Bytes that are copied rather than registered: a lookup of a registration costs about as much. */
#define AQ_IBV_COPIED_MAX 16384u

/* What the RMA part shares, and counts. */
struct aq_ibv_rma {
    struct aq_ibv_net *net;
    size_t copy_now;             /* bytes that are copied if the source must be free at return */
    struct aq_ibv_bounce *fence; /* destination of the reads behind fenced puts; never read */
    atomic_uint parked[2];       /* transfers that wait: of long messages [1], others [0] */
    aq_counter batches, batch_requests, joined, fences;
};
extern struct aq_ibv_rma aq_ibv_rma;

/* --- requests under way and bounce buffers (aq_ibv_bounce.c) --- */

struct aq_ibv_xfer;

struct aq_ibv_bounce {
    struct aq_freelist_item item; /* while it is free */
    char *bytes;
    uint32_t size_class;
    bool zcopy;                  /* a client has it and writes a payload into it */
    uint32_t lkey[AQ_IBV_RAILS]; /* by dev->index */
};

/* One work request under way: its operation, and what it holds. */
struct aq_ibv_rma_frag {
    union {
        _Alignas(AQ_CACHE_LINE) struct aq_ibv_done done; /* set after each aq_ibv_rma_frag_take() */
        struct aq_freelist_item item;                    /* while it is free */
    };
    struct aq_op *op;
    struct aq_ibv_xfer *xfer; /* the transfer that it belongs to, or NULL */
    struct aq_ibv_bounce *bounce;
    struct aq_ibv_rma_frag *joined;       /* the frag before it in a work request of several */
    void (*fn)(struct aq_ibv_done *done); /* its own end, if the request has several */
    void *dest; /* where the bounce buffer is copied to at the end, or NULL */
    uint32_t nbytes;
    gex_EC_t category;               /* of an atomic operation */
    struct aq_fh_hold local, remote; /* region NULL: none */
};

void aq_ibv_bounce_init(const struct aq_ibv_net *net);
/* Free all of it; nothing is under way. */
void aq_ibv_bounce_fini(void);

/* Ends the job if memory is out. The fields are not set, but no region is held. */
struct aq_ibv_rma_frag *aq_ibv_rma_frag_take(void);
void aq_ibv_rma_frag_give(struct aq_ibv_rma_frag *frag);
/* The frag of a completion. */
static inline struct aq_ibv_rma_frag *aq_ibv_rma_frag_of(struct aq_ibv_done *done)
{
    return (struct aq_ibv_rma_frag *)(void *)done; /* its first member */
}

/* A buffer of at least nbytes, at most AQ_IBV_BOUNCE_MAX; NULL: none now. */
struct aq_ibv_bounce *aq_ibv_bounce_take(size_t nbytes);
/* May clients have one more of count buffers, when they have zcopy of them? A client may keep a
 * buffer for long, so half of a pool stays with the conduit. */
static inline bool aq_ibv_zcopy_allowed(uint32_t zcopy, uint32_t count)
{
    return 2 * (zcopy + 1) <= count;
}
/* A buffer of AQ_IBV_BOUNCE_MAX bytes for a client, as aq_ibv_zcopy_allowed() says. NULL: none
 * now. */
struct aq_ibv_bounce *aq_ibv_bounce_take_zcopy(void);
void aq_ibv_bounce_give(struct aq_ibv_bounce *bounce);

/* A part of a bounce buffer, from addr on, as a device is told of it. */
static inline void aq_ibv_local_bounce(const struct aq_ibv_bounce *bounce, const void *addr,
                                       size_t nbytes, struct aq_ibv_local *local_out)
{
    local_out->addr = (uintptr_t)addr;
    local_out->len = nbytes;
    memcpy(local_out->lkey, bounce->lkey, sizeof(bounce->lkey));
}

/* --- posting (aq_ibv_batch.c) --- */

/* The queue pair of the next request to a peer: they take turns. */
struct aq_ibv_qp *aq_ibv_rma_qp(struct aq_ibv_peer *peer);
/* A put, and a read behind it that completes with it. */
int aq_ibv_rma_post_fenced(struct aq_ibv_qp *qp, struct ibv_send_wr *wr,
                           struct aq_ibv_rma_frag *frag);

/* Post one request; wr has opcode, flags and the remote address. AQ_OK or AQ_RETRY. */
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

/* requests of a batch: with a fence fewer than three quarters of the smallest queue */
#define AQ_IBV_BATCH_MAX    16u
#define AQ_IBV_BATCH_LARGE  4096u /* bytes: a larger request leaves at once */
#define AQ_IBV_BATCH_INLINE 128u  /* bytes of an inline request */

/* A work request. Puts to, or gets from, consecutive remote addresses join it: their local pieces
 * are its list. */
struct aq_ibv_batch_slot {
    struct ibv_send_wr wr;
    struct ibv_sge sges[AQ_IBV_GATHER_MAX];
    uint64_t remote_end;               /* the remote address behind it */
    struct aq_ibv_rma_frag *frag;      /* of the last transfer that has joined */
    uint8_t data[AQ_IBV_BATCH_INLINE]; /* of an inline request */
};

struct aq_ibv_batch {
    struct aq_freelist_item item; /* while it is free */
    struct aq_op *op;             /* the operation whose requests may wait */
    unsigned count;               /* requests that wait */
    struct aq_ibv_qp *qp;         /* of these */
    struct aq_ibv_batch_slot slots[AQ_IBV_BATCH_MAX];
};
/* The batch of this thread; NULL: no request may wait. A pointer, since a library that dlopen()
 * loads gets few bytes of initial-exec storage. */
extern _Thread_local struct aq_ibv_batch *aq_ibv_batch __attribute__((tls_model("initial-exec")));

/* Table entries. */
struct aq_op *aq_ibv_rma_batch_begin(struct aq_op *op);
void aq_ibv_rma_batch_end(struct aq_op *before);

/* Post the batch of this thread, which is not empty; AQ_OK, or AQ_RETRY if there is no space
 * now. */
int aq_ibv_batch_flush(void);
/* Free the batches; no thread has one. */
void aq_ibv_batch_fini(void);
/* Add a request, or join the last one; as aq_ibv_rma_post(). Inline data, at most
 * AQ_IBV_BATCH_INLINE bytes, is copied. */
int aq_ibv_batch_add(struct aq_ibv_qp *qp, const struct ibv_send_wr *wr,
                     const struct aq_ibv_local *local, struct aq_ibv_rma_frag *frag);

/* May a request of this operation wait for others? */
static inline bool aq_ibv_batch_takes(const struct aq_op *op)
{
    return AQ_UNLIKELY(aq_ibv_batch != NULL) && aq_ibv_batch->op == op;
}

/* May so many bytes go inline? */
static inline bool aq_ibv_batch_inlines(const struct aq_op *op, const struct aq_ibv_qp *qp,
                                        size_t nbytes)
{
    return nbytes <= qp->max_inline && (!aq_ibv_batch_takes(op) || nbytes <= AQ_IBV_BATCH_INLINE);
}

/* The queue pair of a request: that of the batch, if the request may wait in it and goes to the
 * same peer. */
static inline struct aq_ibv_qp *aq_ibv_batch_qp(const struct aq_op *op, struct aq_ibv_peer *peer)
{
    if (aq_ibv_batch_takes(op) && aq_ibv_batch->count % AQ_IBV_BATCH_MAX != 0
        && aq_ibv_batch->qp->remote == &peer->remote)
        return aq_ibv_batch->qp;
    return aq_ibv_rma_qp(peer);
}

/* In every poll: the polling thread may wait for its batch. */
static inline void aq_ibv_batch_poll(void)
{
    if (AQ_UNLIKELY(aq_ibv_batch != NULL) && aq_ibv_batch->count != 0)
        (void)aq_ibv_batch_flush(); /* no space: the next poll tries again */
}

/* --- unmapped memory --- */

/* In every poll, also of those that serve only replies: a rank that may send nothing until its
 * peers have been told of unmapped memory would otherwise wait for ever. */
static inline void aq_ibv_firehose_poll(void)
{
    if (aq_fh_job != NULL && AQ_UNLIKELY(aq_fh_has_work(aq_fh_job)))
        aq_fh_progress(aq_fh_job);
}

/* May a message or a put leave, to any rank? Not while a peer could still use a reference to memory
 * that this process has unmapped. Where all memory that peers reach is in segments, memory goes
 * only by aqueduct_segment_discard(), which waits until no peer can. */
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

/* --- transfers (aq_ibv_xfer.c) --- */

/* What a client asks for. */
struct aq_ibv_wanted {
    struct aq_op *op;
    gex_Rank_t rank;
    bool is_put;
    bool lc_now; /* the source is free at return */
    bool
        copies; /* with lc_now: the source is copied rather than waited for, if there is a buffer */
    void *laddr; /* source of a put */
    uintptr_t raddr;
    size_t nbytes;
};

/* The message behind the payload of a long one; its credit is claimed. */
struct aq_ibv_follow {
    /* Send it on the queue pair of messages. AQ_OK or AQ_RETRY. */
    int (*send)(struct aq_ibv_peer *peer, const struct aq_ibv_follow *follow);
    void *dest;
    size_t nbytes;
    uint8_t is_reply, handler, nargs;
    gex_AM_Arg_t args[AQ_IBV_ARGS];
};

/* Start a transfer, which its operation counts, and feed it as far as possible; polls do the rest.
 * With lc_now the call returns when the source may be reused. */
void aq_ibv_xfer_start(const struct aq_ibv_wanted *wanted);
/* The same for the payload of a long message, with the message behind it. One GEX_EC_AM of
 * wanted->op ends when the source is free. */
void aq_ibv_xfer_start_long(const struct aq_ibv_wanted *wanted, const struct aq_ibv_follow *follow);
/* Do so many transfers wait that no more should start? */
bool aq_ibv_xfer_crowded(void);
/* Feed those that wait; returns how many made progress. */
unsigned aq_ibv_xfer_feed_parked(bool longs);
/* Free what transfers have used; none is under way. */
void aq_ibv_xfer_fini(void);

/* In every poll. replies_only: transfers of long messages only. Returns how many made progress. */
static inline unsigned aq_ibv_xfer_poll(bool replies_only)
{
    unsigned moved = 0;

    /* relaxed: a hint */
    if (AQ_UNLIKELY(atomic_load_explicit(&aq_ibv_rma.parked[1], memory_order_relaxed) != 0))
        moved += aq_ibv_xfer_feed_parked(true);
    if (AQ_UNLIKELY(!replies_only
                    && atomic_load_explicit(&aq_ibv_rma.parked[0], memory_order_relaxed) != 0))
        moved += aq_ibv_xfer_feed_parked(false);
    return moved;
}

/* --- put, get, atomics (aq_ibv_rma.c, aq_ibv_atomic.c) --- */

/* After devices are open. */
void aq_ibv_rma_init(struct aq_ibv_net *net);
/* Free everything that transfers use; none is under way. */
void aq_ibv_rma_fini(void);
/* Table entries. */
int aq_ibv_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags);
int aq_ibv_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags);
bool aq_ibv_ad_serves(gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags);
int aq_ibv_ad_op(struct aq_op *op, gex_Rank_t jobrank, gex_DT_t dt, void *result_p, void *tgt_addr,
                 gex_OP_t opcode, uint64_t operand1, uint64_t operand2, gex_Flags_t flags);

#endif
