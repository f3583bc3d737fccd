/*
 * aq_shm_ring.h - the private ends of the message channels; for other/shm only.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SHM_RING_H
#define AQ_SHM_RING_H

#include "core/aq_lock.h"
#include "other/shm/aq_shm.h"

#define AQ_SHM_MAX_SLOTS 64

/* The sender's end of a lane of a channel; what every message needs comes first. */
struct aq_shm_tx {
    struct aq_shm_slot *slot;       /* the next one */
    struct aq_shm_slot *end;        /* of the ring */
    struct aq_shm_control *control; /* the receiver's */
    uint32_t lap;                   /* what the next slot's head will carry */
    uint32_t room; /* messages that may be sent before looking at the receiver's count */
    aq_lock lock;
    int lane;
    uint32_t freed;      /* messages the receiver is known to be done with, blocks taken back */
    uint32_t blocks_out;
    struct aq_shm_channel *channel;
    uint16_t block[AQ_SHM_MAX_SLOTS]; /* by slot */
};

/* A peer we have spoken to. */
struct aq_shm_peer {
    struct aq_shm_tx tx[AQ_LANES];
};

/* The receiver's end of a lane of a channel. */
struct aq_shm_rx {
    struct aq_shm_slot *slot;   /* the next one */
    struct aq_shm_slot *end;    /* of the ring */
    uint32_t lap;               /* what the next slot's head will carry */
    uint32_t next;              /* messages claimed */
    _Atomic uint32_t *done;     /* where the sender learns what it may overwrite */
    gex_Rank_t jobrank;         /* the sender */
    _Atomic bool streaming;     /* the last poll found a message here; a hint */
    aq_lock lock;               /* par: held while a message is claimed, not while it is handled */
    uint32_t released;          /* par: messages given back to the sender */
    _Atomic uint64_t finished;  /* par: by slot, claimed messages whose handlers have returned */
    struct aq_shm_channel *channel;
    char *pool;                 /* the sender's blocks of this lane */
};

/* A peer that has spoken to us. */
struct aq_shm_source {
    struct aq_shm_rx rx[AQ_LANES];
};

int aq_shm_ring_init(void);
/* Take back the blocks of messages that receivers are done with, of one lane, all peers. */
void aq_shm_ring_reclaim(int lane);

#endif
