/*
 * aq_shm_send.c - a message goes into a slot of the ring that it shares with the receiver.
 *
 * Threads   any. par: a lock of the channel orders the senders of this process
 * Promise   a slot or a block is written again only after the receiver has given it back
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/aq_rc.h"
#include "conduits/smp/aq_shm_ring.h"
#include "core/aq_job.h"

#define AQ_SHM_BLOCKS_LAZY 4 /* blocks out before a sender looks for finished ones */

/* Take back the blocks of the first `done` messages, and count the free slots. tx->lock is held. */
static inline void aq_shm_tx_take_back(struct aq_shm_tx *tx, int channel, uint32_t done)
{
    if (tx->blocks_out == 0 && (int32_t)(done - tx->freed) > 0)
        tx->freed = done;
    for (; (int32_t)(done - tx->freed) > 0; tx->freed++) {
        uint32_t *block = &tx->block[tx->freed % AQ_SHM_MAX_SLOTS];

        if (*block != AQ_BLOCK_NONE) {
            aq_shm_block_release(channel, *block);
            *block = AQ_BLOCK_NONE;
            tx->blocks_out--;
        }
    }
    tx->space = aq_shm.layout.slots - (tx->sent - tx->freed) - tx->reserved;
}

/* Ask the receiver's count what it is done with. tx->lock is held. */
static __attribute__((noinline)) void aq_shm_tx_reclaim(struct aq_shm_tx *tx)
{
    /* acquire: pairs with aq_shm_rx_give_back(); the handlers' reads are over */
    const uint32_t done =
        AQ_SHM_FIRST
        + atomic_load_explicit(&tx->ring->done[tx->channel].count, memory_order_acquire);

    if (AQ_UNLIKELY(!tx->greeted))
        aq_shm_tx_greet(tx);
    aq_shm_tx_take_back(tx, tx->channel, done);
    /* what is done was taken: a channel without answers must not look empty when the count of its
     * messages comes round to the last answer's */
    aq_shm_tx_note_taken(tx, tx->freed);
    if (AQ_THREADED)
        aq_shm_tx_note_answered(tx, tx->freed);
}

/* How many messages the receiver is done with, as far as its answers tell. In par they say how many
 * it had taken and not given back. In seq they need not: it was done with all that it had taken
 * when it sent a request; when it sent a reply, with all but the request that it replies to. */
static inline uint32_t aq_shm_tx_answered(const struct aq_shm_tx *tx, int channel)
{
    if (AQ_THREADED)
        /* acquire: pairs with the release in aq_shm_tx_note_answered() */
        return atomic_load_explicit(&tx->answered, memory_order_acquire);
    /* relaxed: this thread has stored it, after aq_shm_rx_look() had acquired the answer; the
     * handlers' reads were over before that was sent */
    return atomic_load_explicit(&tx->taken, memory_order_relaxed)
           - (channel == AQ_CHANNEL_REQUEST ? 1 : 0);
}

/* If one message more has been answered, as in a request for each reply, its block may have the
 * size that the next one needs. */
static inline uint32_t aq_shm_tx_block_again(struct aq_shm_tx *tx, int channel, size_t nbytes)
{
    uint32_t *slot = &tx->block[tx->freed % AQ_SHM_MAX_SLOTS];
    const uint32_t block = *slot;

    if (aq_shm_tx_answered(tx, channel) - tx->freed != 1 || block == AQ_BLOCK_NONE
        || aq_shm_class_of_block(block) != aq_shm_class_of(nbytes))
        return AQ_BLOCK_NONE;
    *slot = AQ_BLOCK_NONE;
    tx->blocks_out--;
    tx->freed++;
    tx->space++;
    return block;
}

/* The same as aq_shm_tx_reclaim() without a line that the receiver writes. */
static inline void aq_shm_tx_reclaim_answered(struct aq_shm_tx *tx, int channel)
{
    const uint32_t done = aq_shm_tx_answered(tx, channel);

    if ((int32_t)(done - tx->freed) > 0)
        aq_shm_tx_take_back(tx, channel, done);
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

/* The next message has this block. */
static inline void aq_shm_tx_note_block(struct aq_shm_tx *tx, uint32_t block)
{
    tx->block[tx->sent % AQ_SHM_MAX_SLOTS] = block; /* messages count from 1, blocks from 0 */
    tx->blocks_out++;
}

/* A block of the pool, or AQ_BLOCK_NONE. */
static uint32_t aq_shm_tx_take_block(struct aq_shm_tx *tx, int channel, size_t nbytes)
{
    uint32_t block;

    aq_shm_tx_reclaim_answered(tx, channel);
    if (tx->blocks_out >= AQ_SHM_BLOCKS_LAZY)
        aq_shm_tx_reclaim(tx);
    block = aq_shm_block_take(channel, nbytes);
    if (AQ_LIKELY(block != AQ_BLOCK_NONE))
        return block;
    /* aq_shm_ring_reclaim() passes over the channel whose lock we hold */
    aq_shm_tx_reclaim(tx);
    aq_shm_ring_reclaim(channel);
    return aq_shm_block_take(channel, nbytes);
}

/* Put a payload in a block of its size. AQ_RETRY if there is none. */
static inline int aq_shm_put_block(struct aq_shm_tx *tx, int channel, const void *src,
                                   size_t nbytes, uint32_t *block_out)
{
    uint32_t block = aq_shm_tx_block_again(tx, channel, nbytes);

    if (block == AQ_BLOCK_NONE) {
        block = aq_shm_tx_take_block(tx, channel, nbytes);
        if (AQ_UNLIKELY(block == AQ_BLOCK_NONE))
            return AQ_RETRY;
    }
    aq_shm_tx_note_block(tx, block);
    memcpy(tx->pool + block, src, nbytes);
    *block_out = block;
    return AQ_OK;
}

/* The same for a message that may have a block already, with its payload in it or elsewhere. */
static int aq_shm_put_payload(struct aq_shm_tx *tx, const struct aq_am_out *out,
                              uint32_t *block_out)
{
    if (AQ_UNLIKELY(out->nbytes > AQ_SHM_MAX_MEDIUM))
        aq_fatal("a Long of %zu bytes to rank %u at %p: that memory is in no segment that the rank "
                 "has bound and published",
                 out->nbytes, out->jobrank, out->dest);
    if (out->buffer == NULL)
        return aq_shm_put_block(tx, tx->channel, out->src, out->nbytes, block_out);
    *block_out = (uint32_t)out->buffer->own;
    aq_shm_tx_note_block(tx, *block_out);
    if (out->src != out->buffer->addr)
        memcpy(out->buffer->addr, out->src, out->nbytes);
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

/* Is there space for the payload behind the arguments? */
static inline bool aq_shm_medium_fits(unsigned nargs, size_t nbytes)
{
    return nbytes + nargs * sizeof(gex_AM_Arg_t) <= AQ_INLINE_MEDIUM * sizeof(gex_AM_Arg_t);
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
    } else if (aq_shm_medium_fits(out->nargs, out->nbytes)) {
        aq_shm_copy_few(&half->medium_args[out->nargs], out->src, out->nbytes);
        loc |= AQ_LOC_INLINE;
    } else {
        if (aq_shm_put_payload(tx, out, &half->offset) != AQ_OK)
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
        if (aq_shm_put_payload(tx, out, &half->long_offset) != AQ_OK)
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
 * none. Other senders just find fewer slots. Its owner waits for nothing before it comes back, so
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
 * move on until they are where the requests are, and now and then both channels do: so that no
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

#if GASNET_DEBUG && !AQ_THREADED
/* aq_shm_tx_reclaim_answered() relies on this. */
static void aq_shm_check_sender(int channel)
{
    if (channel == AQ_CHANNEL_REQUEST && aq_thread_self()->context == AQ_CTX_REPLY)
        aq_fatal("a handler of a reply sends a request: this is a fault of the library");
}
#define AQ_SHM_CHECK_SENDER(channel) aq_shm_check_sender(channel)
#else
#define AQ_SHM_CHECK_SENDER(channel) ((void)0)
#endif

/* The filled slot becomes a message. tx->lock is held. */
static inline void aq_shm_tx_publish(struct aq_shm_tx *tx, int channel, struct aq_shm_slot *slot,
                                     uint8_t handler, unsigned nargs, unsigned kind, unsigned loc)
{
    struct aq_shm_half *half = &slot->half[channel];

    AQ_SHM_CHECK_SENDER(channel);
    /* acquire: pairs with aq_shm_rx_take(); what another thread read there, it read before */
    half->taken = atomic_load_explicit(&tx->back->taken, memory_order_acquire);
    if (AQ_THREADED)
        loc |= aq_shm_rx_running(tx->back, half->taken);
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

/* Under the lock a mark never goes back: it tells of all messages that were sent before. */
static inline void aq_shm_tx_mark(struct aq_shm_tx *tx)
{
    aq_lock_acquire(&tx->lock);
    /* release: whoever sees the mark sees the messages */
    atomic_store_explicit(tx->mark, aq_shm_mark(tx->sent), memory_order_release);
    aq_lock_release(&tx->lock);
}

/* A message was published: leave the mark, if there are marks; ring if the receiver sleeps. The
 * mark comes before the look, as a message does where there are none: either this process sees the
 * sleeper, or the sleeper's last look sees the mark. */
static __attribute__((noinline)) int aq_shm_tx_attend(struct aq_shm_tx *tx)
{
    if (tx->mark != NULL)
        aq_shm_tx_mark(tx);
    aq_shm_order_before_look();
    if (AQ_UNLIKELY(atomic_load_explicit(&tx->control->sleeping, memory_order_relaxed) != 0))
        return aq_shm_wake(tx->control);
    return AQ_OK;
}

/* After a message was published. Returns AQ_OK. */
static inline int aq_shm_tx_wake(struct aq_shm_tx *tx)
{
    aq_shm_order_before_look();
    if (AQ_UNLIKELY(atomic_load_explicit(tx->attention, memory_order_relaxed) != 0))
        return aq_shm_tx_attend(tx);
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
    uint32_t block;
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
    buffer->addr = aq_shm_pool(aq_shm.me, is_reply) + block;
    buffer->size = aq_shm_block_size(block);
    buffer->own = block;
    return AQ_OK;
}

void aq_shm_am_free(bool is_reply, const struct aq_am_buffer *buffer)
{
    aq_shm_block_release(is_reply, (uint32_t)buffer->own);
}

/* First contact, no free slot at first sight, many arguments, a lock that is held: the general
 * way. */
static __attribute__((noinline, cold)) int aq_shm_am_short_slow(gex_Rank_t jobrank, bool is_reply,
                                                                uint8_t handler, unsigned nargs,
                                                                const gex_AM_Arg_t *args)
{
    const struct aq_am_out out = aq_am_out_short(jobrank, is_reply, handler, nargs, args);

    return aq_shm_am_send(&out);
}

/* The quick way begins: a channel, locked and with a free slot. NULL: the general way. */
static inline __attribute__((always_inline)) struct aq_shm_tx *aq_shm_channel(gex_Rank_t jobrank,
                                                                              int channel)
{
    struct aq_shm_link *link;
    struct aq_shm_tx *tx;

    if (AQ_UNLIKELY(!aq_job.nbrhd_in_a_row))
        return NULL;
    link = aq_shm_link_find(jobrank - aq_job.nbrhd_first);
    if (AQ_UNLIKELY(link == NULL))
        return NULL;
    tx = &link->tx[channel];
    if (AQ_UNLIKELY(!aq_lock_try(&tx->lock)))
        return NULL;
    if (AQ_LIKELY(tx->space != 0))
        return tx;
    aq_lock_release(&tx->lock);
    return NULL;
}

/* Its every step is one that a message needs. channel is known to the compiler. */
static inline __attribute__((always_inline)) int aq_shm_channel_short(gex_Rank_t jobrank,
                                                                      int channel, uint8_t handler,
                                                                      unsigned nargs,
                                                                      const gex_AM_Arg_t *args)
{
    struct aq_shm_tx *tx = nargs <= AQ_INLINE_SHORT ? aq_shm_channel(jobrank, channel) : NULL;
    struct aq_shm_slot *slot;

    if (AQ_UNLIKELY(tx == NULL))
        return aq_shm_am_short_slow(jobrank, channel, handler, nargs, args);
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

static __attribute__((noinline, cold)) int aq_shm_am_medium_slow(gex_Rank_t jobrank, bool is_reply,
                                                                 uint8_t handler, const void *src,
                                                                 size_t nbytes, unsigned nargs,
                                                                 const gex_AM_Arg_t *args)
{
    const struct aq_am_out out =
        aq_am_out_medium(jobrank, is_reply, handler, src, nbytes, nargs, args);

    return aq_shm_am_send(&out);
}

static inline __attribute__((always_inline)) int aq_shm_channel_medium(
    gex_Rank_t jobrank, int channel, uint8_t handler, const void *src, size_t nbytes,
    unsigned nargs, const gex_AM_Arg_t *args)
{
    struct aq_shm_tx *tx = nargs <= AQ_INLINE_MEDIUM ? aq_shm_channel(jobrank, channel) : NULL;
    unsigned loc = AQ_LOC_INLINE;
    struct aq_shm_slot *slot;
    struct aq_shm_half *half;

    if (AQ_UNLIKELY(tx == NULL))
        return aq_shm_am_medium_slow(jobrank, channel, handler, src, nbytes, nargs, args);
    slot = aq_shm_tx_slot(tx, channel);
    half = &slot->half[channel];
    if (aq_shm_medium_fits(nargs, nbytes)) {
        aq_shm_copy_few(&half->medium_args[nargs], src, nbytes);
    } else {
        loc = AQ_LOC_BLOCK;
        if (AQ_UNLIKELY(aq_shm_put_block(tx, channel, src, nbytes, &half->offset) != AQ_OK)) {
            aq_lock_release(&tx->lock);
            return AQ_RETRY;
        }
    }
    if (nargs != 0)
        aq_shm_copy_args(half->medium_args, args, nargs);
    half->nbytes = (uint32_t)nbytes;
    aq_shm_tx_publish(tx, channel, slot, handler, nargs, AQ_AM_MEDIUM, loc);
    aq_lock_release(&tx->lock);
    return aq_shm_tx_wake(tx);
}

int aq_shm_am_medium(gex_Rank_t jobrank, bool is_reply, uint8_t handler, const void *src,
                     size_t nbytes, unsigned nargs, const gex_AM_Arg_t *args)
{
    return is_reply
               ? aq_shm_channel_medium(jobrank, AQ_CHANNEL_REPLY, handler, src, nbytes, nargs, args)
               : aq_shm_channel_medium(jobrank, AQ_CHANNEL_REQUEST, handler, src, nbytes, nargs,
                                       args);
}
