/*
 * aq_shm_ring.h - what the parts of the message channels share; for conduits/smp only.
 *
 *   aq_shm_link.c   the private ends of the channels to a peer, made at first contact
 *   aq_shm_send.c   a message into a slot of the peer's ring
 *   aq_shm_recv.c   polling: a message out of its slot and to its handler
 *   aq_shm_pool.c   the blocks of payloads that do not fit a slot
 *
 * A ring has slots for an ordered pair of ranks. A sender fills its half of a slot and stores the
 * head last, with the number of the message in it; the receiver watches that word. Nothing else is
 * needed for a message, so that it costs the hand-over of one cache line. The receiver counts what
 * it is done with in a line that the sender reads only when the ring looks full or blocks run
 * short. struct aq_shm_half (aq_shm.h) says why request and reply share a line.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SHM_RING_H
#define AQ_SHM_RING_H

#include <string.h>

#include "base/aq_lock.h"
#include "base/aq_state.h"
#include "conduits/smp/aq_shm.h"
#include "core/aq_am_deliver.h"

#define AQ_SHM_MAX_SLOTS 64

/* A channel that may stay moves on all the same when these bits of the count are 0; counts begin at
 * AQ_SHM_FIRST. Debug builds let the numbers come round after 4096 messages, so that every test
 * sees it; each slot is used once in 1024. */
#if GASNET_DEBUG
#define AQ_SHM_MOVE_ON 0xfu
#define AQ_SHM_FIRST   0xfffff000u
#else
#define AQ_SHM_MOVE_ON 0xfffffu
#define AQ_SHM_FIRST   0u
#endif

struct aq_shm_rx;

/* The sender's end of a channel; what every message needs comes first. Of a power of two's size, so
 * that finding a channel's is a shift. */
struct aq_shm_tx {
    _Alignas(256) struct aq_shm_slot *slot; /* the last one used */
    struct aq_shm_slot *next;               /* the one after it */
    const struct aq_shm_rx *back; /* the receiving end of the other channel of this pair */
    /* not 0: there is more to do after a message, see aq_shm_tx_attend() */
    const _Atomic uint32_t *attention;
    uint32_t sent;          /* messages; the last one's number */
    uint32_t space;         /* messages that may be sent before looking at the receiver's count */
    _Atomic uint32_t taken; /* messages the receiver has taken, as its answers say */
    _Atomic uint32_t answered; /* par: messages the receiver is done with, as its answers say */
    aq_lock lock;
    int channel;
    bool greeted;   /* the receiver knows that it has to listen */
    uint32_t freed; /* messages the receiver is known to be done with, blocks taken back */
    uint32_t blocks_out;
    uint32_t reserved; /* par: slots taken off space for messages whose payload is being placed */
    char *pool;        /* this rank's blocks of the channel */
    struct aq_shm_ring *ring;
    struct aq_shm_control *control;   /* the receiver's */
    _Atomic uint8_t *mark;            /* at the receiver; NULL: there are none */
    uint32_t block[AQ_SHM_MAX_SLOTS]; /* by message number */
};

/* The receiver's end of a channel; what every poll and message needs is one line. */
struct aq_shm_rx {
    _Alignas(AQ_CACHE_LINE) struct aq_shm_slot *slot; /* where the last message was */
    struct aq_shm_slot *next;  /* the slot after it: the next message is in either */
    _Atomic uint32_t taken;    /* messages taken out of their slots */
    _Atomic bool streaming;    /* the last poll found a message here; a hint */
    struct aq_shm_tx *back;    /* the sending end of the other channel of this pair */
    _Atomic uint32_t *done;    /* where the sender learns what it may overwrite */
    gex_Rank_t jobrank;        /* the sender */
    aq_lock lock;              /* par: held while a message is taken, not while it is handled */
    _Atomic uint64_t finished; /* par: by number, taken messages whose handlers have returned */
    struct aq_shm_ring *ring;
    char *pool;    /* the sender's blocks of this pair */
    uint8_t *seen; /* the sender's in aq_rings.seen, or NULL */
};

/* All four ends that one rank has towards another. */
struct aq_shm_link {
    struct aq_shm_tx tx[AQ_CHANNELS];
    struct aq_shm_rx rx[AQ_CHANNELS];
    uint32_t local;
};

/* What the ends of all channels hang from. */
struct aq_shm_rings {
    struct aq_shm_link *_Atomic *links; /* [size] by local index; NULL: no contact yet */
    struct aq_shm_link **sources;       /* [source_count], in order of first contact */
    _Atomic uint32_t source_count;
    _Atomic uint32_t greetings_seen; /* AQ_SHM_MARKED: no greetings, there are marks */
    /* [AQ_CHANNELS][mark_bytes]: what the marks are when all has been taken; else NULL */
    uint8_t *seen;
    aq_lock greet_lock; /* growing sources */
    aq_lock link_lock;  /* making a link */
};
#define AQ_SHM_MARKED UINT32_MAX /* not a number of greetings */
extern struct aq_shm_rings aq_rings __attribute__((visibility("hidden")));

int aq_shm_ring_init(void);
void aq_shm_ring_fini(void);
/* Take back the blocks of messages that receivers are done with, of one channel, all peers. */
void aq_shm_ring_reclaim(int channel);
/* The link to a rank, made if there is none. */
__attribute__((cold)) struct aq_shm_link *aq_shm_link(uint32_t local);
/* Tell the receiver to listen. tx->lock is held. */
__attribute__((cold)) void aq_shm_tx_greet(struct aq_shm_tx *tx);
/* Peers have sent their first message: find out which, and listen to them. */
__attribute__((cold)) void aq_shm_welcome(uint32_t greetings);

/* --- payload blocks (aq_shm_pool.c) --- */

/* The free blocks of each size of one channel; the last one given back comes first. */
struct aq_shm_pool_channel {
    aq_lock lock;
    struct aq_shm_free {
        uint32_t count;
        uint32_t *blocks;
    } free[AQ_POOL_CLASSES];
};
extern struct aq_shm_pool_channel aq_shm_pools[AQ_CHANNELS] __attribute__((visibility("hidden")));

/* The class of the smallest block for a payload; AQ_POOL_CLASSES if none is large enough. */
static inline int aq_shm_class_of(size_t nbytes)
{
    return (nbytes > AQ_SHM_SMALL_BLOCK) + (nbytes > AQ_SHM_MIDDLE_BLOCK)
           + (nbytes > AQ_SHM_MAX_MEDIUM);
}

static inline int aq_shm_class_of_block(uint32_t block)
{
    const struct aq_shm_pool_plan *plan = &aq_shm.layout.pool;

    return (block >= plan->offset[1]) + (block >= plan->offset[2]);
}

/* Every caller leaves `keep` blocks of each size free. */
static inline uint32_t aq_shm_block_pop(int channel, int class, uint32_t keep)
{
    struct aq_shm_free *list = &aq_shm_pools[channel].free[class];

    return list->count > keep ? list->blocks[--list->count] : AQ_BLOCK_NONE;
}

/* The pool's lock is held, and no block of that size is free. */
uint32_t aq_shm_block_take_larger(int channel, size_t nbytes);

/* Takes the smallest free block of at least nbytes, of at most AQ_SHM_MAX_MEDIUM; or
 * AQ_BLOCK_NONE. */
static inline uint32_t aq_shm_block_take(int channel, size_t nbytes)
{
    uint32_t block;

    aq_lock_acquire(&aq_shm_pools[channel].lock);
    block = aq_shm_block_pop(channel, aq_shm_class_of(nbytes), 0);
    if (AQ_UNLIKELY(block == AQ_BLOCK_NONE))
        block = aq_shm_block_take_larger(channel, nbytes);
    aq_lock_release(&aq_shm_pools[channel].lock);
    return block;
}

static inline void aq_shm_block_release(int channel, uint32_t block)
{
    struct aq_shm_free *list = &aq_shm_pools[channel].free[aq_shm_class_of_block(block)];

    aq_lock_acquire(&aq_shm_pools[channel].lock);
    list->blocks[list->count++] = block;
    aq_lock_release(&aq_shm_pools[channel].lock);
}

/* --- links --- */

static inline struct aq_shm_link *aq_shm_link_find(uint32_t local)
{
    /* acquire: pairs with the release in aq_shm_link() */
    return atomic_load_explicit(&aq_rings.links[local], memory_order_acquire);
}

static inline struct aq_shm_tx *aq_shm_tx(uint32_t local, int channel)
{
    struct aq_shm_link *link = aq_shm_link_find(local);

    return AQ_LIKELY(link != NULL) ? &link->tx[channel] : &aq_shm_link(local)->tx[channel];
}

static inline uint64_t aq_head(uint32_t number, uint8_t handler, unsigned nargs, unsigned kind,
                               unsigned loc)
{
    return (uint64_t)number | (uint64_t)handler << 32 | (uint64_t)nargs << 40 | (uint64_t)kind << 48
           | (uint64_t)loc << 56;
}

static inline unsigned aq_head_loc(uint64_t head)
{
    return (unsigned)(head >> 56) & AQ_LOC_MASK;
}

static inline unsigned aq_head_kind(uint64_t head)
{
    return (uint8_t)(head >> 48);
}

/* What the handler's token says about a message. */
static inline void aq_head_token(uint64_t head, gex_Rank_t jobrank, int channel,
                                 struct aq_token *token)
{
    token->jobrank = jobrank;
    token->handler = (uint8_t)(head >> 32);
    token->nargs = (uint8_t)(head >> 40);
    token->kind = (uint8_t)(head >> 48);
    token->loc = (uint8_t)(head >> 56);
    token->is_reply = channel == AQ_CHANNEL_REPLY;
    token->replied = false;
}

/* Copies a payload that travels in the slot: at most 15 bytes. */
static inline void aq_shm_copy_few(void *to, const void *from, size_t nbytes)
{
    char *out = to;
    const char *in = from;

    if ((nbytes & 8) != 0) {
        memcpy(out, in, 8);
        out += 8, in += 8;
    }
    if ((nbytes & 4) != 0) {
        memcpy(out, in, 4);
        out += 4, in += 4;
    }
    if ((nbytes & 2) != 0) {
        memcpy(out, in, 2);
        out += 2, in += 2;
    }
    if ((nbytes & 1) != 0)
        *out = *in;
}

static inline struct aq_shm_slot *aq_slot_after(struct aq_shm_ring *ring, struct aq_shm_slot *slot)
{
    return slot + 1 == ring->slots + aq_shm.layout.slots ? ring->slots : slot + 1;
}

/* Where a slot's arguments are if they are many. */
static inline gex_AM_Arg_t *aq_slot_more(struct aq_shm_ring *ring, const struct aq_shm_slot *slot,
                                         int channel)
{
    struct aq_shm_more *more = (struct aq_shm_more *)(void *)(ring->slots + aq_shm.layout.slots);

    return more[(slot - ring->slots) * AQ_CHANNELS + channel].args;
}

/* How the marks of a sender are when the receiver has taken this many messages. */
static inline uint8_t aq_shm_mark(uint32_t number)
{
    return (uint8_t)number;
}

/* How many messages of a channel have been given back to their sender. */
static inline uint32_t aq_shm_rx_released(const struct aq_shm_rx *rx)
{
    /* acquire: pairs with the release in aq_shm_rx_give_back(); the handlers' reads are over */
    return AQ_SHM_FIRST + atomic_load_explicit(rx->done, memory_order_acquire);
}

/* par: what a message says of the other channel, in its place in the head. */
static inline unsigned aq_shm_rx_running(const struct aq_shm_rx *rx, uint32_t taken)
{
    const uint32_t running = taken - aq_shm_rx_released(rx);

    return (running < AQ_RUNNING_MANY ? running : AQ_RUNNING_MANY) << AQ_LOC_RUNNING;
}

/* par: the receiver is done with this many messages, unless we know of more. */
static inline void aq_shm_tx_note_answered(struct aq_shm_tx *tx, uint32_t answered)
{
    /* a lost race between two threads leaves the smaller of two true numbers until the next note */
    if ((int32_t)(answered - atomic_load_explicit(&tx->answered, memory_order_relaxed)) > 0)
        /* release: pairs with the acquire in aq_shm_tx_answered() */
        atomic_store_explicit(&tx->answered, answered, memory_order_release);
}

/* par: the same from a message that the receiver has sent. */
static inline void aq_shm_tx_learn(struct aq_shm_tx *tx, uint64_t head, uint32_t taken)
{
    const uint32_t running = head >> (56 + AQ_LOC_RUNNING) & AQ_RUNNING_MANY;

    if (running != AQ_RUNNING_MANY)
        aq_shm_tx_note_answered(tx, taken - running);
}

/* The receiver has taken this many messages, unless we know of more. */
static inline void aq_shm_tx_note_taken(struct aq_shm_tx *tx, uint32_t taken)
{
    /* a lost race between two threads leaves the smaller of two true numbers until the next note */
    if ((int32_t)(taken - atomic_load_explicit(&tx->taken, memory_order_relaxed)) > 0)
        /* release: pairs with the acquire in aq_shm_tx_slot() */
        atomic_store_explicit(&tx->taken, taken, memory_order_release);
}

#endif
