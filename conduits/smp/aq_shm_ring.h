/*
 * aq_shm_ring.h - the private ends of the message channels; for conduits/smp only.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SHM_RING_H
#define AQ_SHM_RING_H

#include "base/aq_lock.h"
#include "conduits/smp/aq_shm.h"

#define AQ_SHM_MAX_SLOTS 64

struct aq_shm_rx;

/* The sender's end of a channel; what every message needs comes first. Of a power of two's size, so
 * that finding a channel's is a shift. */
struct aq_shm_tx {
    _Alignas(256) struct aq_shm_slot *slot; /* the last one used */
    struct aq_shm_slot *next;               /* the one after it */
    const struct aq_shm_rx *back;   /* the receiving end of the other channel of this pair */
    struct aq_shm_control *control; /* the receiver's */
    uint32_t sent;                  /* messages; the last one's number */
    uint32_t space;         /* messages that may be sent before looking at the receiver's count */
    _Atomic uint32_t taken; /* messages the receiver has taken, as its answers say */
    aq_lock lock;
    int channel;
    bool greeted;   /* the receiver knows that it has to listen */
    uint32_t freed; /* messages the receiver is known to be done with, blocks taken back */
    uint32_t blocks_out;
    uint32_t reserved; /* par: slots taken off room for messages whose payload is being placed */
    struct aq_shm_ring *ring;
    uint16_t block[AQ_SHM_MAX_SLOTS]; /* by message number */
};

/* The receiver's end of a channel. */
struct aq_shm_rx {
    struct aq_shm_slot *slot;  /* where the last message was */
    struct aq_shm_slot *next;  /* the slot after it: the next message is in either */
    _Atomic uint32_t taken;    /* messages taken out of their slots */
    _Atomic bool streaming;    /* the last poll found a message here; a hint */
    struct aq_shm_tx *back;    /* the sending end of the other channel of this pair */
    _Atomic uint32_t *done;    /* where the sender learns what it may overwrite */
    gex_Rank_t jobrank;        /* the sender */
    aq_lock lock;              /* par: held while a message is taken, not while it is handled */
    uint32_t released;         /* par: messages given back to the sender */
    _Atomic uint64_t finished; /* par: by number, taken messages whose handlers have returned */
    struct aq_shm_ring *ring;
    char *pool; /* the sender's blocks of this pair */
};

/* All four ends that one rank has towards another. */
struct aq_shm_link {
    struct aq_shm_tx tx[AQ_CHANNELS];
    struct aq_shm_rx rx[AQ_CHANNELS];
    uint32_t local;
};

int aq_shm_ring_init(void);
void aq_shm_ring_fini(void);
/* Take back the blocks of messages that receivers are done with, of one channel, all peers. */
void aq_shm_ring_reclaim(int channel);

#endif
