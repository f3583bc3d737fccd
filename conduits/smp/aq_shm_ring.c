/*
 * aq_shm_ring.c - messages between ranks of a host: a ring of slots for each ordered pair.
 *
 * A sender fills its half of a slot and stores the head last, with the number of the lap in it;
 * the receiver watches that word. Nothing else is needed for a message, so that it costs the
 * hand-over of one cache line. The receiver counts what it is done with in a line that the
 * sender reads only when the ring looks full or blocks run short.
 *
 * Owns      the private ends (peers, sources), made at first contact
 * Threads   any. par: a tx lock orders senders of this process, an rx lock claims a message; no
 *           lock is held while a handler runs, and a poller skips a channel that another one holds
 * Promise   a message is given back to its sender only after its handler has returned, unless it
 *           was copied out of the slot
 * Uses      core/aq_am.h for delivery
 * See       struct aq_shm_half for why request and reply share a line
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/smp/aq_shm_ring.h"

#include <stdlib.h>
#include <string.h>

#include "core/aq_am_deliver.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "other/spawn/aq_jobarea.h"

#define AQ_SHM_POLL_BUDGET 32 /* messages of one channel in one poll: others get their turn */

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
#define AQ_SHM_BLOCKS_LAZY 4 /* blocks out before a sender looks for finished ones */

static struct {
    struct aq_shm_link *_Atomic *links; /* [size] by local index; NULL: no contact yet */
    struct aq_shm_link **sources;       /* [source_count], in order of first contact */
    _Atomic uint32_t source_count;
    _Atomic uint32_t greetings_seen;
    aq_lock greet_lock; /* growing sources */
    aq_lock link_lock;  /* making a link */
} aq_rings AQ_JOB_STATE;

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

/* --- first contact --- */

int aq_shm_ring_init(void)
{
    aq_rings.links = calloc(aq_shm.size, sizeof(*aq_rings.links));
    aq_rings.sources = calloc(aq_shm.size, sizeof(*aq_rings.sources));
    if (aq_rings.links == NULL || aq_rings.sources == NULL)
        return aq_fail(AQ_ERR_NOMEM, "no memory for the table of %u peers", aq_shm.size);
    return AQ_OK;
}

void aq_shm_ring_fini(void)
{
    for (uint32_t local = 0; local < aq_shm.size && aq_rings.links != NULL; local++)
        /* relaxed: no other thread is in the library */
        free(atomic_load_explicit(&aq_rings.links[local], memory_order_relaxed));
    free(aq_rings.links);
    free(aq_rings.sources);
}

/* Both ends of a channel begin at the last slot: the first message is in the one after it. */
static void aq_shm_tx_create(struct aq_shm_link *link, int channel, struct aq_shm_ring *ring)
{
    struct aq_shm_tx *tx = &link->tx[channel];

    tx->ring = ring;
    tx->channel = channel;
    tx->slot = ring->slots + aq_shm.layout.slots - 1;
    tx->next = ring->slots;
    tx->back = &link->rx[!channel];
    tx->control = aq_shm_control(link->local);
    tx->sent = tx->freed = AQ_SHM_FIRST;
    atomic_init(&tx->taken, AQ_SHM_FIRST);
    for (size_t i = 0; i < AQ_SHM_MAX_SLOTS; i++)
        tx->block[i] = AQ_BLOCK_NONE;
}

static void aq_shm_rx_create(struct aq_shm_link *link, int channel, struct aq_shm_ring *ring)
{
    struct aq_shm_rx *rx = &link->rx[channel];

    rx->ring = ring;
    rx->slot = ring->slots + aq_shm.layout.slots - 1;
    rx->next = ring->slots;
    rx->back = &link->tx[!channel];
    rx->released = AQ_SHM_FIRST;
    atomic_init(&rx->taken, AQ_SHM_FIRST);
    rx->done = &ring->done[channel].count;
    rx->pool = aq_shm_pool(link->local, channel);
    rx->jobrank = aq_shm.jobrank_of[link->local];
}

static struct aq_shm_link *aq_shm_link_create(uint32_t local)
{
    struct aq_shm_ring *ours = aq_shm_ring(aq_shm.me, local);
    struct aq_shm_ring *peer_ring = aq_shm_ring(local, aq_shm.me);
    struct aq_shm_link *link = aligned_alloc(_Alignof(struct aq_shm_link), sizeof(*link));

    if (link == NULL)
        aq_fatal("no memory for the link to rank %u (%zu bytes)", aq_shm.jobrank_of[local],
                 sizeof(*link));
    memset(link, 0, sizeof(*link));
    link->local = local;
    aq_shm_tx_create(link, AQ_CHANNEL_REQUEST, ours);
    aq_shm_rx_create(link, AQ_CHANNEL_REPLY, ours);
    aq_shm_rx_create(link, AQ_CHANNEL_REQUEST, peer_ring);
    aq_shm_tx_create(link, AQ_CHANNEL_REPLY, peer_ring);
    return link;
}

static inline struct aq_shm_link *aq_shm_link_find(uint32_t local)
{
    /* acquire: pairs with the release in aq_shm_link() */
    return atomic_load_explicit(&aq_rings.links[local], memory_order_acquire);
}

/* The link to a rank, made at first contact in either direction. */
static __attribute__((noinline, cold)) struct aq_shm_link *aq_shm_link(uint32_t local)
{
    struct aq_shm_link *link;

    aq_lock_acquire(&aq_rings.link_lock);
    link = aq_shm_link_find(local);
    if (link == NULL) {
        link = aq_shm_link_create(local);
        atomic_store_explicit(&aq_rings.links[local], link, memory_order_release);
    }
    aq_lock_release(&aq_rings.link_lock);
    return link;
}

static inline struct aq_shm_tx *aq_shm_tx(uint32_t local, int channel)
{
    struct aq_shm_link *link = aq_shm_link_find(local);

    return AQ_LIKELY(link != NULL) ? &link->tx[channel] : &aq_shm_link(local)->tx[channel];
}

/* Tell the receiver to listen. tx->lock is held. */
static __attribute__((noinline, cold)) void aq_shm_tx_greet(struct aq_shm_tx *tx)
{
    const uint32_t local = (uint32_t)(tx->control - aq_shm_control(0));

    tx->greeted = true;
    /* release: whoever sees the count sees the flag */
    atomic_store_explicit(aq_shm_hello(local, aq_shm.me), 1, memory_order_release);
    atomic_fetch_add_explicit(&tx->control->greetings, 1, memory_order_release);
}

/* Somebody spoke to us for the first time: find out who, and listen. */
static __attribute__((noinline, cold)) void aq_shm_welcome(uint32_t greetings)
{
    static bool known[AQ_SPAWN_MAX_RANKS] AQ_JOB_STATE; /* by local index; under greet_lock */

    if (!aq_lock_try(&aq_rings.greet_lock))
        return;
    for (uint32_t local = 0; local < aq_shm.size; local++) {
        uint32_t count = atomic_load_explicit(&aq_rings.source_count, memory_order_relaxed);

        if (known[local]
            || atomic_load_explicit(aq_shm_hello(aq_shm.me, local), memory_order_acquire) == 0)
            continue;
        known[local] = true;
        aq_rings.sources[count] = aq_shm_link(local);
        /* release: a poller that sees the count sees the entry */
        atomic_store_explicit(&aq_rings.source_count, count + 1, memory_order_release);
    }
    atomic_store_explicit(&aq_rings.greetings_seen, greetings, memory_order_relaxed);
    aq_lock_release(&aq_rings.greet_lock);
}

/* --- sending --- */

/* The receiver has taken this many messages, unless we know of more. */
static inline void aq_shm_tx_note_taken(struct aq_shm_tx *tx, uint32_t taken)
{
    /* a lost race between two threads leaves the smaller of two true numbers until the next note */
    if ((int32_t)(taken - atomic_load_explicit(&tx->taken, memory_order_relaxed)) > 0)
        /* release: pairs with the acquire in aq_shm_tx_slot() */
        atomic_store_explicit(&tx->taken, taken, memory_order_release);
}

/* Take back the blocks of messages that the receiver is done with, and count the room. tx->lock is
 * held. */
static void aq_shm_tx_reclaim(struct aq_shm_tx *tx)
{
    /* acquire: pairs with aq_shm_rx_give_back(); the handlers' reads are over */
    const uint32_t done =
        AQ_SHM_FIRST
        + atomic_load_explicit(&tx->ring->done[tx->channel].count, memory_order_acquire);

    if (AQ_UNLIKELY(!tx->greeted))
        aq_shm_tx_greet(tx);
    if (tx->blocks_out == 0)
        tx->freed = done;
    for (; tx->freed != done; tx->freed++) {
        uint16_t *block = &tx->block[tx->freed % AQ_SHM_MAX_SLOTS];

        if (*block != AQ_BLOCK_NONE) {
            aq_shm_block_release(tx->channel, *block);
            *block = AQ_BLOCK_NONE;
            tx->blocks_out--;
        }
    }
    tx->space = aq_shm.layout.slots - (tx->sent - tx->freed) - tx->reserved;
    /* what is done was taken: a channel without answers must not look empty when the count of its
     * messages comes round to the last answer's */
    aq_shm_tx_note_taken(tx, tx->freed);
}

void aq_shm_ring_reclaim(int channel)
{
    for (uint32_t local = 0; local < aq_shm.size; local++) {
        struct aq_shm_link *link = aq_shm_link_find(local);
        struct aq_shm_tx *tx = link == NULL ? NULL : &link->tx[channel];

        /* par: the caller may hold the lock of one of them, and then looks at that one itself */
        if (tx == NULL || !aq_lock_try(&tx->lock))
            continue;
        if (tx->blocks_out != 0)
            aq_shm_tx_reclaim(tx);
        aq_lock_release(&tx->lock);
    }
}

static inline void aq_shm_copy_args(gex_AM_Arg_t *to, const gex_AM_Arg_t *from, unsigned count)
{
    /* a jump into straight code: no loop set-up, no call, nothing read beyond the last */
    switch (count) {
    case 16:
        to[15] = from[15]; /* fall through */
    case 15:
        to[14] = from[14]; /* fall through */
    case 14:
        to[13] = from[13]; /* fall through */
    case 13:
        to[12] = from[12]; /* fall through */
    case 12:
        to[11] = from[11]; /* fall through */
    case 11:
        to[10] = from[10]; /* fall through */
    case 10:
        to[9] = from[9]; /* fall through */
    case 9:
        to[8] = from[8]; /* fall through */
    case 8:
        to[7] = from[7]; /* fall through */
    case 7:
        to[6] = from[6]; /* fall through */
    case 6:
        to[5] = from[5]; /* fall through */
    case 5:
        to[4] = from[4]; /* fall through */
    case 4:
        to[3] = from[3]; /* fall through */
    case 3:
        to[2] = from[2]; /* fall through */
    case 2:
        to[1] = from[1]; /* fall through */
    case 1:
        to[0] = from[0]; /* fall through */
    default:
        break;
    }
}

/* Put the payload in a block, unless it is in one already. AQ_RETRY if there is none. */
static int aq_shm_put_block(struct aq_shm_tx *tx, const struct aq_am_out *out, uint32_t *offset_out)
{
    uint16_t block;
    char *loc;

    if (out->buffer != NULL) {
        block = (uint16_t)out->buffer->own;
    } else {
        if (tx->blocks_out >= AQ_SHM_BLOCKS_LAZY)
            aq_shm_tx_reclaim(tx);
        block = aq_shm_block_take(tx->channel, out->nbytes, out->nbytes);
        if (AQ_UNLIKELY(block == AQ_BLOCK_NONE)) {
            /* aq_shm_ring_reclaim() has passed over the channel whose lock we hold */
            aq_shm_tx_reclaim(tx);
            block = aq_shm_block_take(tx->channel, out->nbytes, out->nbytes);
            if (block == AQ_BLOCK_NONE)
                return AQ_RETRY;
        }
    }
    tx->block[tx->sent % AQ_SHM_MAX_SLOTS] = block; /* messages count from 1, blocks from 0 */
    tx->blocks_out++;
    *offset_out = (uint32_t)aq_shm_block_offset(block);
    loc = aq_shm_pool(aq_shm.me, tx->channel) + *offset_out;
    if (out->src != loc)
        memcpy(loc, out->src, out->nbytes);
    return AQ_OK;
}

/* Arguments go with the head if they fit. */
static inline unsigned aq_shm_put_args(const struct aq_shm_tx *tx, const struct aq_shm_slot *slot,
                                       gex_AM_Arg_t *inline_args, unsigned space, unsigned nargs,
                                       const gex_AM_Arg_t *args)
{
    if (AQ_LIKELY(nargs <= space)) {
        aq_shm_copy_args(inline_args, args, nargs);
        return 0;
    }
    aq_shm_copy_args(aq_slot_more(tx->ring, slot, tx->channel), args, nargs);
    return AQ_LOC_ARGS;
}

static int aq_shm_fill_medium(struct aq_shm_tx *tx, struct aq_shm_slot *slot,
                              const struct aq_am_out *out, unsigned *loc_out)
{
    struct aq_shm_half *half = &slot->half[tx->channel];
    unsigned loc =
        aq_shm_put_args(tx, slot, half->medium_args, AQ_INLINE_MEDIUM, out->nargs, out->args);

    half->nbytes = (uint32_t)out->nbytes;
    if (out->nbytes == 0) {
        loc |= AQ_LOC_NONE;
    } else if (out->nbytes + out->nargs * sizeof(gex_AM_Arg_t) <= sizeof(half->medium_args)) {
        memcpy(&half->medium_args[out->nargs], out->src, out->nbytes);
        loc |= AQ_LOC_INLINE;
    } else {
        if (aq_shm_put_block(tx, out, &half->offset) != AQ_OK)
            return AQ_RETRY;
        loc |= AQ_LOC_BLOCK;
    }
    *loc_out = loc;
    return AQ_OK;
}

/* A long payload goes straight to its address, through the mapping or by the kernel, unless
 * neither reaches it. The kernel was tried when the peer published a segment that nobody maps. */
static inline bool aq_shm_long_is_direct(const struct aq_am_out *out)
{
    return out->nbytes == 0 || aq_job.map[out->jobrank] != AQ_NOT_MAPPED
           || aq_shm_cma_has_reached(aq_job_local_index(out->jobrank));
}

/* Put it there; before the message is made, and holding no lock. */
static void aq_shm_put_long(const struct aq_am_out *out)
{
    const intptr_t map = aq_job.map[out->jobrank];

    if (AQ_LIKELY(map != AQ_NOT_MAPPED))
        aq_copy(aq_rma_ptr(map, out->dest), out->src, out->nbytes);
    else
        aq_shm_cma_write(aq_job_local_index(out->jobrank), out->dest, out->src, out->nbytes);
}

static int aq_shm_fill_long(struct aq_shm_tx *tx, struct aq_shm_slot *slot,
                            const struct aq_am_out *out, unsigned *loc_out)
{
    struct aq_shm_half *half = &slot->half[tx->channel];
    unsigned loc =
        aq_shm_put_args(tx, slot, half->long_args, AQ_INLINE_LONG, out->nargs, out->args);

    memcpy(half->dest, &out->dest, sizeof(out->dest));
    half->long_nbytes = (uint32_t)out->nbytes;
    if (!aq_shm_long_is_direct(out)) {
        if (aq_shm_put_block(tx, out, &half->long_offset) != AQ_OK)
            return AQ_RETRY;
        loc |= AQ_LOC_COPY;
    }
    *loc_out = loc;
    return AQ_OK;
}

/* Is there a slot? tx->lock is held. */
static inline bool aq_shm_tx_has_space(struct aq_shm_tx *tx)
{
    if (AQ_UNLIKELY(tx->space == 0))
        aq_shm_tx_reclaim(tx);
    return tx->space != 0;
}

/* Set a slot aside for a message that will be made later, and let go of tx->lock. False if there is
 * none. Other senders just find less room. Its owner waits for nothing before it comes back, so
 * that a channel is never kept full by more than copies that are being made. */
static bool aq_shm_tx_reserve(struct aq_shm_tx *tx)
{
    const bool space = aq_shm_tx_has_space(tx);

    if (AQ_THREADED && space) {
        tx->space--;
        tx->reserved++;
    }
    aq_lock_release(&tx->lock);
    return space;
}

/* Take the lock again: the slot is there. */
static void aq_shm_tx_claim(struct aq_shm_tx *tx)
{
    aq_lock_acquire(&tx->lock);
    if (AQ_THREADED) {
        tx->reserved--;
        tx->space++;
    }
}

/* Where the next message goes. A channel that is known to be empty stays where it is; but replies
 * move on until they are where the requests are, and now and then everybody does: so that no
 * slot keeps a number for so long that numbers have come round to it. tx->lock is held. */
static inline struct aq_shm_slot *aq_shm_tx_slot(const struct aq_shm_tx *tx, int channel)
{
    /* acquire: the receiver's reads of the slot are over before we overwrite it */
    const bool empty = atomic_load_explicit(&tx->taken, memory_order_acquire) == tx->sent;

    if (!empty || (tx->sent & AQ_SHM_MOVE_ON) == 0)
        return tx->next;
    if (channel == AQ_CHANNEL_REPLY
        && __atomic_load_n(&tx->back->slot, __ATOMIC_RELAXED) != tx->slot) /* a hint */
        return tx->next;
    return tx->slot;
}

/* The filled slot becomes a message. tx->lock is held. */
static inline void aq_shm_tx_publish(struct aq_shm_tx *tx, int channel, struct aq_shm_slot *slot,
                                     uint8_t handler, unsigned nargs, unsigned kind, unsigned loc)
{
    struct aq_shm_half *half = &slot->half[channel];

    /* acquire: pairs with aq_shm_rx_take(); what another thread read there, it read before */
    half->taken = atomic_load_explicit(&tx->back->taken, memory_order_acquire);
    const uint32_t number = tx->sent + 1;

    __atomic_store_n(&tx->sent, number, __ATOMIC_RELAXED); /* aq_shm_peer_counts() holds no lock */
    /* release: pairs with the acquire in aq_shm_rx_look(); all of the message is visible
     * before its head */
    atomic_store_explicit(&half->head, aq_head(number, handler, nargs, kind, loc),
                          memory_order_release);
    tx->space--;
    if (slot == tx->next) {
        tx->slot = slot;
        tx->next = aq_slot_after(tx->ring, slot);
    }
}

/* After a message was published: ring if its receiver sleeps. Returns AQ_OK. */
static inline int aq_shm_tx_wake(const struct aq_shm_tx *tx)
{
    aq_shm_order_before_look();
    if (AQ_UNLIKELY(atomic_load_explicit(&tx->control->sleeping, memory_order_relaxed) != 0))
        return aq_shm_wake(tx->control);
    return AQ_OK;
}

static int aq_shm_tx_send(struct aq_shm_tx *tx, const struct aq_am_out *out)
{
    struct aq_shm_slot *slot;
    unsigned loc = AQ_LOC_NONE;
    int rc = AQ_OK;

    if (!aq_shm_tx_has_space(tx))
        return AQ_RETRY;
    slot = aq_shm_tx_slot(tx, tx->channel);
    if (out->kind == AQ_AM_SHORT)
        loc = aq_shm_put_args(tx, slot, slot->half[tx->channel].short_args, AQ_INLINE_SHORT,
                              out->nargs, out->args);
    else if (out->kind == AQ_AM_MEDIUM)
        rc = aq_shm_fill_medium(tx, slot, out, &loc);
    else
        rc = aq_shm_fill_long(tx, slot, out, &loc);
    if (rc != AQ_OK)
        return rc;
    aq_shm_tx_publish(tx, tx->channel, slot, out->handler, out->nargs, out->kind, loc);
    if (out->buffer != NULL && (loc & AQ_LOC_MASK) < AQ_LOC_BLOCK)
        aq_shm_am_free(out->is_reply, out->buffer); /* the payload is elsewhere */
    return AQ_OK;
}

int aq_shm_am_send(const struct aq_am_out *out)
{
    struct aq_shm_tx *tx = aq_shm_tx(aq_job_local_index(out->jobrank), out->is_reply);
    int rc;

    aq_lock_acquire(&tx->lock);
    if (out->kind == AQ_AM_LONG && out->nbytes != 0 && aq_shm_long_is_direct(out)) {
        /* a long copy must not keep other threads from sending; nor may it be made for a message
         * that is then declined */
        if (!aq_shm_tx_reserve(tx))
            return AQ_RETRY;
        aq_shm_put_long(out);
        aq_shm_tx_claim(tx);
    }
    rc = aq_shm_tx_send(tx, out);
    aq_lock_release(&tx->lock);
    return rc == AQ_OK ? aq_shm_tx_wake(tx) : rc;
}

int aq_shm_am_alloc(gex_Rank_t jobrank, bool is_reply, size_t min, size_t max,
                    struct aq_am_buffer *buffer)
{
    struct aq_shm_tx *tx = aq_shm_tx(aq_job_local_index(jobrank), is_reply);
    uint16_t block;
    bool space;

    aq_lock_acquire(&tx->lock);
    space = aq_shm_tx_has_space(tx);
    if (space && tx->blocks_out >= AQ_SHM_BLOCKS_LAZY)
        aq_shm_tx_reclaim(tx);
    aq_lock_release(&tx->lock);
    if (!space)
        return AQ_RETRY;
    block = aq_shm_block_lend(is_reply, min, max);
    if (block == AQ_BLOCK_NONE)
        return AQ_RETRY;
    buffer->addr = aq_shm_pool(aq_shm.me, is_reply) + aq_shm_block_offset(block);
    buffer->size = aq_shm_block_size(block);
    buffer->own = block;
    return AQ_OK;
}

void aq_shm_am_free(bool is_reply, const struct aq_am_buffer *buffer)
{
    aq_shm_block_release(is_reply, (uint16_t)buffer->own);
}

/* First contact, no room at first sight, many arguments, a lock that is held: the general way. */
static __attribute__((noinline, cold)) int aq_shm_am_short_slow(gex_Rank_t jobrank, bool is_reply,
                                                                uint8_t handler, unsigned nargs,
                                                                const gex_AM_Arg_t *args)
{
    const struct aq_am_out out = { .jobrank = jobrank,
                                   .handler = handler,
                                   .nargs = (uint8_t)nargs,
                                   .kind = AQ_AM_SHORT,
                                   .is_reply = is_reply,
                                   .args = args };

    return aq_shm_am_send(&out);
}

/* The quick way; its every step is one that a message needs. channel is known to the compiler. */
static inline __attribute__((always_inline)) int aq_shm_channel_short(gex_Rank_t jobrank,
                                                                      int channel, uint8_t handler,
                                                                      unsigned nargs,
                                                                      const gex_AM_Arg_t *args)
{
    struct aq_shm_link *link;
    struct aq_shm_slot *slot;
    struct aq_shm_tx *tx;

    if (AQ_UNLIKELY(!aq_job.nbrhd_in_a_row || nargs > AQ_INLINE_SHORT))
        return aq_shm_am_short_slow(jobrank, channel, handler, nargs, args);
    link = aq_shm_link_find(jobrank - aq_job.nbrhd_first);
    if (AQ_UNLIKELY(link == NULL))
        return aq_shm_am_short_slow(jobrank, channel, handler, nargs, args);
    tx = &link->tx[channel];
    if (AQ_UNLIKELY(!aq_lock_try(&tx->lock)))
        return aq_shm_am_short_slow(jobrank, channel, handler, nargs, args);
    if (AQ_UNLIKELY(tx->space == 0)) {
        aq_lock_release(&tx->lock);
        return aq_shm_am_short_slow(jobrank, channel, handler, nargs, args);
    }
    slot = aq_shm_tx_slot(tx, channel);
    if (nargs != 0)
        aq_shm_copy_args(slot->half[channel].short_args, args, nargs);
    aq_shm_tx_publish(tx, channel, slot, handler, nargs, AQ_AM_SHORT, AQ_LOC_NONE);
    aq_lock_release(&tx->lock);
    return aq_shm_tx_wake(tx);
}

int aq_shm_am_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                    const gex_AM_Arg_t *args)
{
    return is_reply ? aq_shm_channel_short(jobrank, AQ_CHANNEL_REPLY, handler, nargs, args)
                    : aq_shm_channel_short(jobrank, AQ_CHANNEL_REQUEST, handler, nargs, args);
}

/* --- receiving --- */

/* The next message of a channel, if it has come: in the slot of the last one or in the one after.
 * */
static inline struct aq_shm_slot *aq_shm_rx_look(const struct aq_shm_rx *rx, int channel,
                                                 uint64_t *head_out)
{
    const uint32_t number = atomic_load_explicit(&rx->taken, memory_order_relaxed) + 1;
    struct aq_shm_slot *slot = __atomic_load_n(&rx->slot, __ATOMIC_RELAXED);

    /* acquire: pairs with the release in aq_shm_tx_publish() */
    *head_out = atomic_load_explicit(&slot->half[channel].head, memory_order_acquire);
    if ((uint32_t)*head_out == number)
        return slot;
    slot = __atomic_load_n(&rx->next, __ATOMIC_RELAXED);
    *head_out = atomic_load_explicit(&slot->half[channel].head, memory_order_acquire);
    return AQ_UNLIKELY((uint32_t)*head_out == number) ? slot : NULL;
}

/* All of the message has been read: the sender may overwrite the slot once it hears of it. The
 * places are atomic for the sake of pollers that look without the lock. */
static inline void aq_shm_rx_take(struct aq_shm_rx *rx, struct aq_shm_slot *slot,
                                  const struct aq_shm_half *half)
{
    aq_shm_tx_note_taken(rx->back, half->taken);
    if (slot == rx->next) {
        __atomic_store_n(&rx->slot, slot, __ATOMIC_RELAXED);
        __atomic_store_n(&rx->next, aq_slot_after(rx->ring, slot), __ATOMIC_RELAXED);
    }
    /* release: pairs with the acquire in aq_shm_tx_publish() */
    atomic_store_explicit(&rx->taken, atomic_load_explicit(&rx->taken, memory_order_relaxed) + 1,
                          memory_order_release);
}

/* The sender may take back the blocks of this many messages. */
static inline void aq_shm_rx_give_back(struct aq_shm_rx *rx, uint32_t count)
{
    /* release: pairs with the acquire in aq_shm_tx_reclaim() */
    atomic_store_explicit(rx->done, count - AQ_SHM_FIRST, memory_order_release);
}

/* Take more than one message from this channel? Looking for a second one is a cache miss when there
 * is none, and what the caller does next (send an answer, perhaps) would wait for it to
 * retire; so only a channel that had messages at two polls in a row is drained further. */
static inline bool aq_shm_rx_is_streaming(struct aq_shm_rx *rx)
{
    const bool streaming = atomic_load_explicit(&rx->streaming, memory_order_relaxed);

    atomic_store_explicit(&rx->streaming, true, memory_order_relaxed);
    return streaming;
}

/* What is copied out of a slot so that it can be reused while the handler runs. */
struct aq_shm_message {
    _Alignas(16) unsigned char payload[16]; /* AQ_LOC_INLINE: aligned for any type */
    struct aq_shm_half half;
    gex_AM_Arg_t args[16]; /* AQ_LOC_ARGS */
};

static inline void aq_shm_rx_copy(const struct aq_shm_rx *rx, const struct aq_shm_slot *slot,
                                  int channel, uint64_t head, struct aq_shm_message *message)
{
    const struct aq_shm_half *half = &slot->half[channel];

    message->half.taken = half->taken;
    memcpy(message->half.short_args, half->short_args, sizeof(half->short_args));
    if (AQ_UNLIKELY((head >> 56 & AQ_LOC_ARGS) != 0))
        memcpy(message->args, aq_slot_more(rx->ring, slot, channel), sizeof(message->args));
}

/* A copied message as delivery wants it. */
static inline void aq_shm_rx_describe(const struct aq_shm_rx *rx, int channel, uint64_t head,
                                      struct aq_shm_message *message, struct aq_am_in *in)
{
    const struct aq_shm_half *half = &message->half;
    const gex_AM_Arg_t *inline_args = half->short_args;

    aq_head_token(head, rx->jobrank, channel, &in->token);
    if (aq_head_kind(head) == AQ_AM_MEDIUM) {
        inline_args = half->medium_args;
        in->nbytes = half->nbytes;
        in->payload = rx->pool + half->offset;
        if (aq_head_loc(head) != AQ_LOC_BLOCK) {
            in->payload = message->payload;
            memcpy(message->payload, &inline_args[in->token.nargs & 3], in->nbytes & 15);
        }
    } else if (aq_head_kind(head) == AQ_AM_LONG) {
        inline_args = half->long_args;
        in->nbytes = half->long_nbytes;
        memcpy(&in->payload, half->dest, sizeof(in->payload));
        if (AQ_UNLIKELY(aq_head_loc(head) == AQ_LOC_COPY))
            memcpy(in->payload, rx->pool + half->long_offset, in->nbytes);
    }
    in->args = AQ_LIKELY((head >> 56 & AQ_LOC_ARGS) == 0) ? inline_args : message->args;
}

#if AQ_THREADED

/* Give back the messages whose handlers have returned, in order. rx->lock is held. */
static inline void aq_shm_rx_collect(struct aq_shm_rx *rx)
{
    const uint32_t taken = atomic_load_explicit(&rx->taken, memory_order_relaxed);
    /* acquire: the handlers' reads are over */
    uint64_t finished = atomic_load_explicit(&rx->finished, memory_order_acquire);
    uint64_t collected = 0;

    while (rx->released != taken && (finished >> rx->released % AQ_SHM_MAX_SLOTS & 1) != 0) {
        const uint64_t bit = UINT64_C(1) << rx->released % AQ_SHM_MAX_SLOTS;

        finished &= ~bit;
        collected |= bit;
        rx->released++;
    }
    if (collected == 0)
        return;
    /* relaxed: a bit is set again only after the message was given back, below, and its number
     * plus 64 taken, under the lock we hold */
    atomic_fetch_and_explicit(&rx->finished, ~collected, memory_order_relaxed);
    aq_shm_rx_give_back(rx, rx->released);
}

/* Take one message, run its handler, give it back. The lock is held only to take it; a block is
 * given back when the handler has returned. */
enum aq_shm_served { AQ_SERVED_NONE, AQ_SERVED_ONE, AQ_SERVED_BY_ANOTHER };

static enum aq_shm_served aq_shm_rx_serve(struct aq_shm_rx *rx, int channel)
{
    struct aq_am_in in;
    struct aq_shm_message message;
    struct aq_shm_slot *slot;
    uint64_t head, bit;
    bool in_block;

    if (!aq_lock_try(&rx->lock))
        return AQ_SERVED_BY_ANOTHER;
    slot = aq_shm_rx_look(rx, channel, &head);
    if (slot == NULL) {
        aq_shm_rx_collect(rx);
        aq_lock_release(&rx->lock);
        return AQ_SERVED_NONE;
    }
    bit = UINT64_C(1) << atomic_load_explicit(&rx->taken, memory_order_relaxed) % AQ_SHM_MAX_SLOTS;
    in_block = aq_head_loc(head) >= AQ_LOC_BLOCK;
    aq_shm_rx_copy(rx, slot, channel, head, &message);
    aq_shm_rx_take(rx, slot, &message.half);
    if (!in_block) {
        atomic_fetch_or_explicit(&rx->finished, bit, memory_order_relaxed); /* under the lock */
        aq_shm_rx_collect(rx);
    }
    aq_lock_release(&rx->lock);

    aq_shm_rx_describe(rx, channel, head, &message, &in);
    aq_am_deliver(&in);
    if (in_block) {
        /* release: the handler's reads are over before the sender may overwrite the block */
        atomic_fetch_or_explicit(&rx->finished, bit, memory_order_release);
        if (aq_lock_try(&rx->lock)) {
            aq_shm_rx_collect(rx);
            aq_lock_release(&rx->lock);
        }
    }
    return AQ_SERVED_ONE;
}

/* Is there anything to do for this channel? A look without the lock: another poller may be moving
 * on at this moment, and then serves the message itself. */
static inline bool aq_shm_rx_has_work(const struct aq_shm_rx *rx, int channel)
{
    uint64_t head;

    return aq_shm_rx_look(rx, channel, &head) != NULL
           || atomic_load_explicit(&rx->finished, memory_order_relaxed) != 0;
}

static inline unsigned aq_shm_rx_drain(struct aq_shm_rx *rx, int channel)
{
    unsigned budget, served = 0;

    if (AQ_LIKELY(!aq_shm_rx_has_work(rx, channel))) {
        atomic_store_explicit(&rx->streaming, false, memory_order_relaxed);
        return 0;
    }
    budget = aq_shm_rx_is_streaming(rx) ? AQ_SHM_POLL_BUDGET : 1;
    do {
        const enum aq_shm_served what = aq_shm_rx_serve(rx, channel);

        if (what == AQ_SERVED_BY_ANOTHER)
            return served + 1; /* there is something: nobody may sleep on this look */
        if (what == AQ_SERVED_NONE)
            break;
        served++;
    } while (served < budget && aq_shm_rx_has_work(rx, channel));
    return served;
}

#else /* one thread */

/* A payload or many arguments. */
static __attribute__((noinline)) void aq_shm_rx_handle_large(struct aq_shm_rx *rx, int channel,
                                                             struct aq_shm_slot *slot,
                                                             uint64_t head)
{
    struct aq_am_in in;
    struct aq_shm_message message;
    uint32_t taken;

    aq_shm_rx_copy(rx, slot, channel, head, &message);
    aq_shm_rx_take(rx, slot, &message.half);
    taken = atomic_load_explicit(&rx->taken, memory_order_relaxed);
    aq_shm_rx_describe(rx, channel, head, &message, &in);
    aq_am_deliver(&in);
    aq_shm_rx_give_back(rx, taken);
}

static inline __attribute__((always_inline)) void aq_shm_rx_handle(struct aq_shm_rx *rx,
                                                                   int channel,
                                                                   struct aq_shm_slot *slot,
                                                                   uint64_t head)
{
    const struct aq_shm_half *half = &slot->half[channel];
    gex_AM_Arg_t args[AQ_INLINE_SHORT];
    struct aq_token token;

    if (AQ_UNLIKELY(aq_head_kind(head) != AQ_AM_SHORT || (head >> 56 & AQ_LOC_ARGS) != 0)) {
        aq_shm_rx_handle_large(rx, channel, slot, head);
        return;
    }
    memcpy(args, half->short_args, sizeof(args));
    aq_shm_rx_take(rx, slot, half);
    aq_shm_rx_give_back(rx, atomic_load_explicit(&rx->taken, memory_order_relaxed));
    aq_head_token(head, rx->jobrank, channel, &token);
    aq_am_deliver_short(&token, args);
}

static __attribute__((noinline)) unsigned aq_shm_rx_stream(struct aq_shm_rx *rx, int channel,
                                                           struct aq_shm_slot *slot, uint64_t head)
{
    unsigned served = 0;

    do {
        aq_shm_rx_handle(rx, channel, slot, head);
        served++;
    } while (served < AQ_SHM_POLL_BUDGET && (slot = aq_shm_rx_look(rx, channel, &head)) != NULL);
    return served;
}

static inline __attribute__((always_inline)) unsigned aq_shm_rx_serve(struct aq_shm_rx *rx,
                                                                      int channel,
                                                                      struct aq_shm_slot *slot,
                                                                      uint64_t head)
{
    if (aq_shm_rx_is_streaming(rx))
        return aq_shm_rx_stream(rx, channel, slot, head);
    aq_shm_rx_handle(rx, channel, slot, head);
    return 1;
}

static __attribute__((noinline)) unsigned aq_shm_rx_serve_requests(struct aq_shm_rx *rx,
                                                                   struct aq_shm_slot *slot,
                                                                   uint64_t head)
{
    return aq_shm_rx_serve(rx, AQ_CHANNEL_REQUEST, slot, head);
}

static __attribute__((noinline)) unsigned aq_shm_rx_serve_replies(struct aq_shm_rx *rx,
                                                                  struct aq_shm_slot *slot,
                                                                  uint64_t head)
{
    return aq_shm_rx_serve(rx, AQ_CHANNEL_REPLY, slot, head);
}

static inline unsigned aq_shm_rx_drain(struct aq_shm_rx *rx, int channel)
{
    uint64_t head;
    struct aq_shm_slot *slot = aq_shm_rx_look(rx, channel, &head);

    if (AQ_LIKELY(slot == NULL)) {
        atomic_store_explicit(&rx->streaming, false, memory_order_relaxed);
        return 0;
    }
    return channel == AQ_CHANNEL_REPLY ? aq_shm_rx_serve_replies(rx, slot, head)
                                       : aq_shm_rx_serve_requests(rx, slot, head);
}

#endif

unsigned aq_shm_poll(bool replies_only)
{
    /* acquire: pairs with aq_shm_tx_greet() */
    const uint32_t greetings = atomic_load_explicit(&aq_shm.self->greetings, memory_order_acquire);
    unsigned served = 0;
    uint32_t count;

    if (AQ_UNLIKELY(greetings
                    != atomic_load_explicit(&aq_rings.greetings_seen, memory_order_relaxed)))
        aq_shm_welcome(greetings);
    /* acquire: pairs with aq_shm_welcome() */
    count = atomic_load_explicit(&aq_rings.source_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct aq_shm_link *link = aq_rings.sources[i];

        served += aq_shm_rx_drain(&link->rx[AQ_CHANNEL_REPLY], AQ_CHANNEL_REPLY);
        if (!replies_only)
            served += aq_shm_rx_drain(&link->rx[AQ_CHANNEL_REQUEST], AQ_CHANNEL_REQUEST);
    }
    return served;
}

void aq_shm_peer_counts(gex_Rank_t jobrank, uint64_t *sent_out, uint64_t *handled_out)
{
    const uint32_t local = aq_job_local_index(jobrank);

    struct aq_shm_link *link = local == UINT32_MAX ? NULL : aq_shm_link_find(local);

    *sent_out = *handled_out = 0;
    for (int channel = 0; link != NULL && channel < AQ_CHANNELS; channel++) {
        *sent_out += __atomic_load_n(&link->tx[channel].sent, __ATOMIC_RELAXED) - AQ_SHM_FIRST;
        *handled_out += atomic_load_explicit(&link->tx[channel].ring->done[channel].count,
                                             memory_order_relaxed);
    }
}
