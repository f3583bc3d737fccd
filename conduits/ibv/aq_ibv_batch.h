/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_ibv_batch.h - puts and gets that a thread begins together: one doorbell, one completion for
 * all of a list.
 *
 * Threads   each has a list of its own while an operation of its may hold transfers
 * Uses      aq_ibv_xfer.h
 */
#ifndef AQ_IBV_BATCH_H
#define AQ_IBV_BATCH_H

#include "conduits/ibv/aq_ibv_xfer.h"

#define AQ_IBV_BATCH_MAX \
    16u /* requests of a list: with a fence fewer than three quarters of the least queue has */
#define AQ_IBV_BATCH_LARGE  4096u /* bytes: a larger one does not wait for others */
#define AQ_IBV_BATCH_INLINE 128u  /* bytes of one that is inline */

struct aq_ibv_batch_slot {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    struct aq_ibv_rma_frag *frag;
    uint8_t data[AQ_IBV_BATCH_INLINE]; /* of an inline one */
};

struct aq_ibv_batch {
    struct aq_ibv_batch *next; /* while it is free */
    struct aq_op *op;          /* whose transfers may wait */
    unsigned count;            /* requests that wait */
    struct aq_ibv_qp *qp;      /* theirs */
    struct aq_ibv_batch_slot slots[AQ_IBV_BATCH_MAX];
};
/* This thread's; NULL: nothing may wait. A pointer, since a library that is loaded by dlopen() gets
 * few bytes of this kind. */
extern _Thread_local struct aq_ibv_batch *aq_ibv_batch __attribute__((tls_model("initial-exec")));

/* The table's entries. */
struct aq_op *aq_ibv_rma_batch_begin(struct aq_op *op);
void aq_ibv_rma_batch_end(struct aq_op *before);

/* Start those of this thread that wait, of which there are some; AQ_OK, or AQ_RETRY if there is no
 * room now. */
int aq_ibv_batch_flush(void);
/* One more request of a piece, as aq_ibv_rma_post(). Inline data, of AQ_IBV_BATCH_INLINE bytes at
 * most, is copied. */
int aq_ibv_batch_add(struct aq_ibv_qp *qp, const struct ibv_send_wr *wr,
                     const struct aq_ibv_local *local, struct aq_ibv_rma_frag *frag);

/* May a transfer of this operation wait for others? */
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

/* The queue pair for a request: that of those that wait, if it may wait too and goes to the same
 * peer. */
static inline struct aq_ibv_qp *aq_ibv_batch_qp(const struct aq_op *op, struct aq_ibv_peer *peer)
{
    if (aq_ibv_batch_takes(op) && aq_ibv_batch->count % AQ_IBV_BATCH_MAX != 0
        && aq_ibv_batch->qp->peer == peer)
        return aq_ibv_batch->qp;
    return aq_ibv_rma_qp(peer);
}

/* In every poll: whoever polls may wait for them. */
static inline void aq_ibv_batch_poll(void)
{
    if (AQ_UNLIKELY(aq_ibv_batch != NULL) && aq_ibv_batch->count != 0)
        (void)aq_ibv_batch_flush(); /* no room: the next poll tries again */
}

#endif
