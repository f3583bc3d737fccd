/*
 * aq_shm_recv.c - polling: messages come out of their slots and go to their handlers.
 *
 * Threads   any. par: a lock of the channel claims a message; no lock is held while a handler runs,
 *           and a poller skips a channel that another one holds
 * Promise   a message is given back to its sender only after its handler has returned, unless it
 *           was copied out of the slot
 * Uses      core/aq_am_deliver.h for delivery
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "conduits/smp/aq_shm_ring.h"
#include "core/aq_job.h"

/* Eight marks as one number. */
typedef uint64_t aq_shm_eight __attribute__((may_alias));

#define AQ_SHM_POLL_BUDGET 32 /* messages of one channel in one poll: others get their turn */

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
    /* release: pairs with the acquires in aq_shm_tx_reclaim() and aq_shm_rx_released() */
    atomic_store_explicit(rx->done, count - AQ_SHM_FIRST, memory_order_release);
}

/* Where there are marks: notes that every message of the channel up to the last one taken has been
 * seen. par: rx->lock is held, so that an older number never replaces a newer one. */
static inline void aq_shm_rx_note_seen(const struct aq_shm_rx *rx)
{
    /* relaxed: a poller that reads the old one looks at the channel once more */
    __atomic_store_n(rx->seen, aq_shm_mark(atomic_load_explicit(&rx->taken, memory_order_relaxed)),
                     __ATOMIC_RELAXED);
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
            aq_shm_copy_few(message->payload, &inline_args[in->token.nargs & 3], in->nbytes);
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
    uint32_t released = aq_shm_rx_released(rx);
    /* acquire: the handlers' reads are over */
    uint64_t finished = atomic_load_explicit(&rx->finished, memory_order_acquire);
    uint64_t collected = 0;

    while (released != taken && (finished >> released % AQ_SHM_MAX_SLOTS & 1) != 0) {
        const uint64_t bit = UINT64_C(1) << released % AQ_SHM_MAX_SLOTS;

        finished &= ~bit;
        collected |= bit;
        released++;
    }
    if (collected == 0)
        return;
    /* relaxed: a bit is set again only after the message was given back, below, and its number
     * plus 64 taken, under the lock we hold */
    atomic_fetch_and_explicit(&rx->finished, ~collected, memory_order_relaxed);
    aq_shm_rx_give_back(rx, released);
}

/* The message before which so many were taken is done with: gives it back, unless an earlier one is
 * not. rx->lock is held. Mostly no other handler runs, and the bits are left alone. */
static inline void aq_shm_rx_finish(struct aq_shm_rx *rx, uint32_t before)
{
    if (AQ_LIKELY(aq_shm_rx_released(rx) == before)) {
        aq_shm_rx_give_back(rx, before + 1);
        /* relaxed: a bit that is set without the lock at this moment is seen by a later poll */
        if (AQ_LIKELY(atomic_load_explicit(&rx->finished, memory_order_relaxed) == 0))
            return;
    } else {
        /* relaxed: whoever collects it holds the lock */
        atomic_fetch_or_explicit(&rx->finished, UINT64_C(1) << before % AQ_SHM_MAX_SLOTS,
                                 memory_order_relaxed);
    }
    aq_shm_rx_collect(rx);
}

/* After a handler: takes the lock, if it is to be had. With marks nobody looks at the channel again
 * before its next message, so that what is not collected now might stay: then waits for it. */
static inline bool aq_shm_rx_may_collect(struct aq_shm_rx *rx)
{
    if (rx->seen == NULL)
        return aq_lock_try(&rx->lock);
    aq_lock_acquire(&rx->lock);
    return true;
}

/* A Short whose arguments are in the slot. rx->lock is held, and released before the handler. */
static inline void aq_shm_rx_serve_short(struct aq_shm_rx *rx, int channel,
                                         struct aq_shm_slot *slot, uint64_t head)
{
    const struct aq_shm_half *half = &slot->half[channel];
    const uint32_t before = atomic_load_explicit(&rx->taken, memory_order_relaxed);
    gex_AM_Arg_t args[AQ_AM_MAX_ARGS]; /* only so many are set as the slot has */
    struct aq_token token;

    memcpy(args, half->short_args, sizeof(half->short_args));
    aq_shm_tx_learn(rx->back, head, half->taken);
    aq_shm_rx_take(rx, slot, half);
    if (rx->seen != NULL)
        aq_shm_rx_note_seen(rx);
    aq_shm_rx_finish(rx, before);
    aq_lock_release(&rx->lock);
    aq_head_token(head, rx->jobrank, channel, &token);
    aq_am_deliver_short(&token, args);
}

/* Any other message, likewise. */
static inline void aq_shm_rx_serve_large(struct aq_shm_rx *rx, int channel,
                                         struct aq_shm_slot *slot, uint64_t head)
{
    const uint32_t before = atomic_load_explicit(&rx->taken, memory_order_relaxed);
    const bool in_block = aq_head_loc(head) >= AQ_LOC_BLOCK;
    struct aq_shm_message message;
    struct aq_am_in in;

    aq_shm_rx_copy(rx, slot, channel, head, &message);
    aq_shm_tx_learn(rx->back, head, message.half.taken);
    aq_shm_rx_take(rx, slot, &message.half);
    if (rx->seen != NULL)
        aq_shm_rx_note_seen(rx);
    if (!in_block)
        aq_shm_rx_finish(rx, before);
    aq_lock_release(&rx->lock);
    aq_shm_rx_describe(rx, channel, head, &message, &in);
    aq_am_deliver(&in);
    if (!in_block)
        return;
    if (aq_shm_rx_may_collect(rx)) {
        aq_shm_rx_finish(rx, before);
        aq_lock_release(&rx->lock);
    } else {
        /* release: the handler's reads are over before the sender may overwrite the block */
        atomic_fetch_or_explicit(&rx->finished, UINT64_C(1) << before % AQ_SHM_MAX_SLOTS,
                                 memory_order_release);
    }
}

/* Take one message, run its handler, give it back. The lock is held only to take it; a block is
 * given back when the handler has returned. */
enum aq_shm_served { AQ_SERVED_NONE, AQ_SERVED_ONE, AQ_SERVED_BY_ANOTHER };

static enum aq_shm_served aq_shm_rx_serve(struct aq_shm_rx *rx, int channel)
{
    struct aq_shm_slot *slot;
    uint64_t head;

    if (!aq_lock_try(&rx->lock))
        return AQ_SERVED_BY_ANOTHER;
    slot = aq_shm_rx_look(rx, channel, &head);
    if (slot == NULL) {
        aq_shm_rx_collect(rx);
        aq_lock_release(&rx->lock);
        return AQ_SERVED_NONE;
    }
    if (AQ_LIKELY(aq_head_kind(head) == AQ_AM_SHORT && (head >> 56 & AQ_LOC_ARGS) == 0))
        aq_shm_rx_serve_short(rx, channel, slot, head);
    else
        aq_shm_rx_serve_large(rx, channel, slot, head);
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

/* Serves at most budget messages of a channel that has work. */
static inline unsigned aq_shm_rx_serve_some(struct aq_shm_rx *rx, int channel, unsigned budget)
{
    unsigned served = 0;

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

static inline unsigned aq_shm_rx_drain(struct aq_shm_rx *rx, int channel)
{
    if (AQ_LIKELY(!aq_shm_rx_has_work(rx, channel))) {
        atomic_store_explicit(&rx->streaming, false, memory_order_relaxed);
        return 0;
    }
    return aq_shm_rx_serve_some(rx, channel, aq_shm_rx_is_streaming(rx) ? AQ_SHM_POLL_BUDGET : 1);
}

/* A channel whose mark differs: it says how many messages there are, so that no look is for
 * nothing. Too many if another poller has taken some since: the look after the last ends it. */
static inline unsigned aq_shm_rx_drain_marked(struct aq_shm_rx *rx, int channel, uint8_t mark)
{
    const uint8_t taken = aq_shm_mark(atomic_load_explicit(&rx->taken, memory_order_relaxed));
    const unsigned waiting = (uint8_t)(mark - taken);

    if (!aq_shm_rx_has_work(rx, channel))
        return 0;
    return aq_shm_rx_serve_some(rx, channel, MIN(waiting, AQ_SHM_POLL_BUDGET));
}

#else /* one thread */

/* A medium message. */
static __attribute__((noinline)) void aq_shm_rx_handle_medium(struct aq_shm_rx *rx, int channel,
                                                              struct aq_shm_slot *slot,
                                                              uint64_t head)
{
    const struct aq_shm_half *half = &slot->half[channel];
    const size_t nbytes = half->nbytes;
    _Alignas(16) unsigned char few[16]; /* AQ_LOC_INLINE: aligned for any type */
    gex_AM_Arg_t args[AQ_AM_MAX_ARGS];
    void *payload = few;
    struct aq_token token;
    uint32_t taken;

    aq_head_token(head, rx->jobrank, channel, &token);
    if (AQ_LIKELY((head >> 56 & AQ_LOC_ARGS) == 0))
        memcpy(args, half->medium_args, sizeof(half->medium_args));
    else
        memcpy(args, aq_slot_more(rx->ring, slot, channel), sizeof(args));
    if (aq_head_loc(head) == AQ_LOC_BLOCK)
        payload = rx->pool + half->offset;
    else
        aq_shm_copy_few(few, &half->medium_args[token.nargs & 3], nbytes);
    aq_shm_rx_take(rx, slot, half);
    taken = atomic_load_explicit(&rx->taken, memory_order_relaxed);
    aq_am_deliver_payload(&token, payload, nbytes, args);
    aq_shm_rx_give_back(rx, taken);
}

/* A Long, or a Short with many arguments. */
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
        if (aq_head_kind(head) == AQ_AM_MEDIUM)
            aq_shm_rx_handle_medium(rx, channel, slot, head);
        else
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
                                                           struct aq_shm_slot *slot, uint64_t head,
                                                           unsigned budget)
{
    unsigned served = 0;

    do {
        aq_shm_rx_handle(rx, channel, slot, head);
        served++;
    } while (served < budget && (slot = aq_shm_rx_look(rx, channel, &head)) != NULL);
    return served;
}

static inline __attribute__((always_inline)) unsigned aq_shm_rx_serve(struct aq_shm_rx *rx,
                                                                      int channel,
                                                                      struct aq_shm_slot *slot,
                                                                      uint64_t head)
{
    if (aq_shm_rx_is_streaming(rx))
        return aq_shm_rx_stream(rx, channel, slot, head, AQ_SHM_POLL_BUDGET);
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

/* A channel whose mark differs: it says how many messages there are, so that no look is for
 * nothing. */
static unsigned aq_shm_rx_drain_marked(struct aq_shm_rx *rx, int channel, uint8_t mark)
{
    const uint8_t taken = aq_shm_mark(atomic_load_explicit(&rx->taken, memory_order_relaxed));
    const unsigned waiting = (uint8_t)(mark - taken);
    unsigned served = 0;
    uint64_t head;
    struct aq_shm_slot *slot = aq_shm_rx_look(rx, channel, &head);

    if (AQ_LIKELY(slot != NULL))
        served = aq_shm_rx_stream(rx, channel, slot, head, MIN(waiting, AQ_SHM_POLL_BUDGET));
    aq_shm_rx_note_seen(rx);
    return served;
}

#endif

/* --- marks --- */

static inline struct aq_shm_rx *aq_shm_rx(uint32_t local, int channel)
{
    struct aq_shm_link *link = aq_shm_link_find(local);

    return AQ_LIKELY(link != NULL) ? &link->rx[channel] : &aq_shm_link(local)->rx[channel];
}

/* Eight sources of which some have sent. */
static unsigned aq_shm_poll_eight(uint32_t first, int channel, const _Atomic uint8_t *marks,
                                  const uint8_t *seen)
{
    unsigned served = 0;

    for (uint32_t i = first; i < first + sizeof(uint64_t); i++) {
        /* acquire: pairs with aq_shm_tx_mark(); what the mark tells of is there */
        const uint8_t mark = atomic_load_explicit(&marks[i], memory_order_acquire);

        /* relaxed: see aq_shm_rx_note_seen() */
        if (mark != __atomic_load_n(&seen[i], __ATOMIC_RELAXED))
            served += aq_shm_rx_drain_marked(aq_shm_rx(i, channel), channel, mark);
    }
    return served;
}

/* The channels whose marks differ from what was taken. */
static unsigned aq_shm_poll_channel(int channel)
{
    const uint32_t bytes = aq_shm.layout.mark_bytes;
    const _Atomic uint8_t *marks = aq_shm_marks(aq_shm.me, channel);
    const uint8_t *seen = aq_rings.seen + (size_t)channel * bytes;
    unsigned served = 0;

    for (uint32_t i = 0; i < aq_shm.size; i += sizeof(uint64_t))
        /* relaxed: eight marks at a time are a hint; one that comes at this moment stays for the
         * next poll, as a message would */
        if (__atomic_load_n((const aq_shm_eight *)(const void *)&marks[i], __ATOMIC_RELAXED)
            != __atomic_load_n((const aq_shm_eight *)(const void *)&seen[i], __ATOMIC_RELAXED))
            served += aq_shm_poll_eight(i, channel, marks, seen);
    return served;
}

static __attribute__((noinline)) unsigned aq_shm_poll_marks(bool replies_only)
{
    unsigned served = aq_shm_poll_channel(AQ_CHANNEL_REPLY);

    if (!replies_only)
        served += aq_shm_poll_channel(AQ_CHANNEL_REQUEST);
    return served;
}

unsigned aq_shm_poll(enum aq_poll_kind kind)
{
    const bool replies_only = kind == AQ_POLL_REPLIES;
    /* acquire: pairs with aq_shm_tx_greet() */
    const uint32_t greetings = atomic_load_explicit(&aq_shm.self->greetings, memory_order_acquire);
    unsigned served = 0;
    uint32_t count;

    if (AQ_UNLIKELY(greetings
                    != atomic_load_explicit(&aq_rings.greetings_seen, memory_order_relaxed))) {
        if (aq_rings.seen != NULL)
            return aq_shm_poll_marks(replies_only);
        aq_shm_welcome(greetings);
    }
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
