/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_ibv_burst.h - puts and gets that a thread begins together: one doorbell, one completion for all of a list.
 *
 * Threads   each has a list of its own while an operation of its may hold transfers
 * Uses      aq_ibv_xfer.h
 */
#ifndef AQ_IBV_BURST_H
#define AQ_IBV_BURST_H

#include "conduits/ibv/aq_ibv_xfer.h"

#define AQ_IBV_BURST 16u /* requests of a list: with a fence fewer than three quarters of the least queue has */
#define AQ_IBV_BURST_LARGE 4096u /* bytes: a larger one does not wait for others */
#define AQ_IBV_BURST_INLINE 128u /* bytes of one that is inline */

struct aq_ibv_burst_slot {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    struct aq_ibv_piece *piece;
    uint8_t data[AQ_IBV_BURST_INLINE]; /* of an inline one */
};

struct aq_ibv_burst {
    struct aq_ibv_burst *next; /* while it is free */
    struct aq_op *op; /* whose transfers may wait */
    unsigned count; /* requests that wait */
    struct aq_ibv_qp *qp; /* theirs */
    struct aq_ibv_burst_slot slots[AQ_IBV_BURST];
};
/* This thread's; NULL: nothing may wait. A pointer, since a library that is loaded by dlopen() gets few bytes of this
 * kind. */
extern _Thread_local struct aq_ibv_burst *aq_ibv_burst __attribute__((tls_model("initial-exec")));

/* The table's entries. */
struct aq_op *aq_ibv_rma_hold(struct aq_op *op);
void aq_ibv_rma_go(struct aq_op *before);

/* Start those of this thread that wait, of which there are some; AQ_OK, or AQ_RETRY if there is no room now. */
int aq_ibv_burst_flush(void);
/* One more request of a piece, as aq_ibv_rma_post(). Inline data, of AQ_IBV_BURST_INLINE bytes at most, is copied. */
int aq_ibv_burst_add(struct aq_ibv_qp *qp, const struct ibv_send_wr *wr, const struct aq_ibv_local *local,
                     struct aq_ibv_piece *piece);

/* May a transfer of this operation wait for others? */
static inline bool aq_ibv_burst_takes(const struct aq_op *op)
{
    return AQ_UNLIKELY(aq_ibv_burst != NULL) && aq_ibv_burst->op == op;
}

/* May so many bytes go inline? */
static inline bool aq_ibv_burst_inlines(const struct aq_op *op, const struct aq_ibv_qp *qp, size_t nbytes)
{
    return nbytes <= qp->max_inline && (!aq_ibv_burst_takes(op) || nbytes <= AQ_IBV_BURST_INLINE);
}

/* The queue pair for a request: that of those that wait, if it may wait too and goes to the same peer. */
static inline struct aq_ibv_qp *aq_ibv_burst_qp(const struct aq_op *op, struct aq_ibv_peer *peer)
{
    if (aq_ibv_burst_takes(op) && aq_ibv_burst->count % AQ_IBV_BURST != 0 && aq_ibv_burst->qp->peer == peer)
        return aq_ibv_burst->qp;
    return aq_ibv_rma_qp(peer);
}

/* In every poll: whoever polls may wait for them. */
static inline void aq_ibv_burst_poll(void)
{
    if (AQ_UNLIKELY(aq_ibv_burst != NULL) && aq_ibv_burst->count != 0)
        (void)aq_ibv_burst_flush(); /* no room: the next poll tries again */
}

#endif
