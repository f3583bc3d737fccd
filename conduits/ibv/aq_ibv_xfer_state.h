/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_ibv_xfer_state.h - what a transfer is, between aq_ibv_xfer.c, which feeds transfers, and
 * aq_ibv_xfer_state.c, where they come from and wait.
 *
 * Threads   as in aq_ibv_xfer.c
 */
#ifndef AQ_IBV_XFER_STATE_H
#define AQ_IBV_XFER_STATE_H

#include "conduits/ibv/aq_ibv_am.h"
#include "conduits/ibv/aq_ibv_xfer.h"

/* The message behind the data of a long one. */
struct aq_ibv_follow {
    void *dest;
    size_t nbytes;
    uint8_t is_reply, handler, nargs;
    gex_AM_Arg_t args[AQ_IBV_ARGS];
};

struct aq_ibv_xfer {
    struct aq_fh_request request;
    struct aq_ibv_wanted w; /* here, there and nbytes: what is left */
    struct aq_fh_chunks remote_chunks, local_chunks;
    struct aq_ibv_qp *qp; /* of the hold */
    struct aq_fh_hold
        remote_hold;    /* of the peer's memory, for the bytes that follow; region NULL: none */
    size_t stripe;      /* most bytes of a piece */
    aq_counter pending; /* pieces, and one for whoever feeds it */
    bool registered;    /* the far side is in the segment */
    bool counts_lc;
    bool is_long;               /* a long message's */
    bool follows;               /* its message is still to be sent */
    bool by_message;            /* the peer could not pin what followed: all the rest goes so */
    bool refused;               /* our side cannot be pinned: buffers */
    bool answered;              /* wish has an outcome */
    atomic_bool *finished;      /* somebody waits for the end */
    struct aq_ibv_bounce *copy; /* of its source, or NULL */
    struct aq_ibv_xfer *next;   /* parked, or free */
    struct aq_ibv_follow follow;
};

/* One that is nothing yet but follow, which is undefined. Ends the job if memory is out. */
struct aq_ibv_xfer *aq_ibv_xfer_take(const struct aq_ibv_wanted *wanted);
void aq_ibv_xfer_give(struct aq_ibv_xfer *x);

/* It waits for a poll. */
void aq_ibv_xfer_park(struct aq_ibv_xfer *x);
/* All of them, linked by next. */
struct aq_ibv_xfer *aq_ibv_xfer_unpark(bool longs);

#endif
