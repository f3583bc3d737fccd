/*
 * aq_mpi_am_in.c - receiving active messages.
 *
 * A poll takes one message with the lock, releases the lock, and runs the handler. After a request
 * it takes the next message, up to a bound. After a reply it returns, since the caller may have
 * waited for this reply. A rendezvous or split payload is received where it belongs, and its
 * handler runs when it has arrived. The handler of a payload that was put there runs at once.
 *
 * Threads   any; handlers run without a lock
 * Promise   no length, address or credit of a packet is used before it was found to be valid
 * Uses      aq_mpi_am_in.h, aq_mpi_am_out.h, core/aq_am_deliver.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <sched.h>
#include <string.h>

#include "conduits/mpi/aq_mpi_am_in.h"
#include "conduits/mpi/aq_mpi_am_out.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "core/aq_am_deliver.h"
#include "core/aq_ep.h"
#include "base/aq_log.h"

#define AQ_IN_ALL        (1u << AQ_MPI_REPLY | 1u << AQ_MPI_REQUEST) /* both channels */
#define AQ_IN_REPLIES    32u /* replies in a row before a test for requests only */
#define AQ_IN_COMING_MAX 32u /* payloads of a channel received at a time */
#define AQ_IN_MAX        8u  /* handlers that one poll runs */
/* tests per poll after a poll that found nothing: the caller probably waits */
#define AQ_IN_LOOKS 8u
#define AQ_IN_BOTH  2u  /* one in each channel */
#define AQ_IN_HARD  64u /* polls in a row that find nothing before every slot is tested */
/* polls that find the lock taken before one of them yields the core */
#define AQ_IN_YIELD       4u
#define AQ_IN_RECLAIM     16u   /* polls between two tests of outstanding sends */
#define AQ_IN_PENDING     16u   /* sends and receives that are not left to pile up under load */
#define AQ_IN_ROUNDS      8u    /* of completing them in one poll */
#define AQ_IN_ROUND_ROBIN 1024u /* polls between two tests of every slot, even under load */

/* The result of a poll. */
struct aq_mpi_found {
    struct aq_mpi_buf *buf;        /* a message whose payload has arrived behind it, or NULL */
    struct aq_mpi_arrival arrival; /* otherwise the packet that has arrived, */
    struct aq_mpi_message message; /* and its contents */
    bool run;                      /* false: it carries credit only */
};

_Noreturn static void aq_mpi_in_malformed(uint32_t source, const char *what)
{
    aq_fatal("mpi: rank %u sent a packet that is not one of this library's: %s", source, what);
}

/* --- under the lock --- */

/* Receives what is not in the packet: a rendezvous payload as one message, the rest of a split one
 * in fragments as long as the packet. */
static void aq_mpi_in_receive(struct aq_mpi_am *am, const struct aq_mpi_arrival *arrival,
                              const struct aq_mpi_message *message, struct aq_mpi_buf *buf)
{
    struct aq_mpi_coming *coming = aq_mpi_buf_bytes(buf);
    const uint32_t frag = message->eager != 0 ? arrival->nbytes : coming->missing;

    coming->frags = (coming->missing + frag - 1) / frag;
    for (uint32_t at = message->eager; at < message->nbytes; at += frag) {
        const uint32_t left = message->nbytes - at;
        const int rc = am->lib->receive_payload(
            (enum aq_mpi_channel)arrival->channel, arrival->source, message->tag,
            (char *)coming->payload + at, left < frag ? left : frag, buf);

        if (rc < 0)
            aq_mpi_fatal(-rc, "a payload cannot be received");
    }
}

/* The packet is the head of a message whose payload is not, or not whole, in it: starts to receive
 * the payload. */
static __attribute__((noinline)) void aq_mpi_in_begin(struct aq_mpi_am *am,
                                                      const struct aq_mpi_arrival *arrival,
                                                      const struct aq_mpi_message *message)
{
    const bool is_long = message->head.kind == AQ_AM_LONG;
    struct aq_mpi_buf *buf = aq_mpi_buf_take(aq_mpi_packet_padded(sizeof(struct aq_mpi_coming))
                                             + (is_long ? 0 : message->nbytes));
    struct aq_mpi_coming *coming = aq_mpi_buf_bytes(buf);

    buf->coming = true;
    buf->channel = (uint8_t)arrival->channel;
    coming->head = message->head;
    coming->source = arrival->source;
    coming->nbytes = message->nbytes;
    coming->missing = message->nbytes - message->eager;
    coming->payload =
        is_long ? message->dest : (char *)coming + aq_mpi_packet_padded(sizeof(*coming));
    memcpy(coming->args, message->args, 4 * (size_t)message->head.nargs);
    if (is_long) {
        aq_bound_check_long(arrival->source, message->dest, message->nbytes);
        aq_bound_place_long(arrival->source, message->dest, message->payload, message->eager);
    } else if (message->eager != 0) {
        memcpy(coming->payload, message->payload, message->eager);
    }
    am->coming[arrival->channel]++;
    aq_mpi_in_receive(am, arrival, message, buf);
    aq_mpi_ring_done(&am->rings, arrival);
}

/* Processes a packet. Returns true if the caller has a handler to run or an event to report. */
static inline bool aq_mpi_in_packet(struct aq_mpi_am *am, struct aq_mpi_found *found)
{
    const struct aq_mpi_arrival *arrival = &found->arrival;
    struct aq_mpi_message *message = &found->message;

    /* the limit is the protocol's; this process's own limit for Long may be lower than the
     * sender's */
    if (AQ_UNLIKELY(!aq_mpi_packet_decode(aq_mpi_ring_packet(&am->rings, arrival), arrival->nbytes,
                                          aq_limits.max_medium, AQ_MPI_MAX_LONG, message)))
        aq_mpi_in_malformed(arrival->source, "its length or kind");
    if (AQ_UNLIKELY(!aq_mpi_credit_take(&am->peers[arrival->source], am->window, message->head.done,
                                        message->head.messages)))
        aq_mpi_in_malformed(arrival->source, "credit for requests that were not sent");
    aq_mpi_wakeup_seen(&am->wakeup, &am->peers[arrival->source]);
    found->run = AQ_LIKELY(message->head.kind != AQ_MPI_CREDIT);
    if (!found->run) {
        aq_mpi_ring_done(&am->rings, arrival);
        return true;
    }
    if (AQ_LIKELY(!message->head.apart) || message->tag == AQ_MPI_PLACED)
        return true;
    aq_mpi_in_begin(am, arrival, message);
    return false;
}

/* Takes a message whose payload has arrived behind it. */
static __attribute__((noinline)) bool aq_mpi_in_ready(struct aq_mpi_am *am, unsigned channels,
                                                      struct aq_mpi_found *found)
{
    for (unsigned channel = 0; channel < AQ_MPI_CHANNELS; channel++) {
        struct aq_mpi_buf *buf = am->ready[channel].first;

        if ((channels & 1u << channel) == 0 || buf == NULL)
            continue;
        am->ready[channel].first = buf->next;
        am->coming[channel]--;
        found->buf = buf;
        found->run = true;
        return true;
    }
    return false;
}

/* Sends credit messages that are due because another thread held the lock. */
static __attribute__((cold)) void aq_mpi_in_send_credits(struct aq_mpi_am *am)
{
    /* acquire, by an exchange: if this reads what aq_mpi_in_return_credit() has written, it sees
     * the counts too; otherwise the flag is written after this and stays set */
    (void)atomic_exchange_explicit(&am->due, false, memory_order_acquire);
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++)
        if (aq_mpi_credit_due(&am->peers[rank], am->window))
            aq_mpi_am_send_credit(am, rank);
}

/* Nothing has arrived: completes sends and receives, and tests every slot now and then. */
static __attribute__((noinline)) bool aq_mpi_in_idle(struct aq_mpi_am *am, unsigned channels,
                                                     struct aq_mpi_found *found)
{
    const uint32_t idle = am->idle++;
    const uint32_t coming = am->coming[AQ_MPI_REPLY] + am->coming[AQ_MPI_REQUEST];

    am->quiet = 1;
    if (channels == AQ_IN_ALL)
        aq_mpi_wakeup_empty(&am->wakeup);
    else
        aq_mpi_wakeup_repeat_due(&am->wakeup); /* a request may be there */
    aq_mpi_ring_restart(&am->rings, true);
    if (coming != 0 || am->zcopy != 0 || (idle % AQ_IN_RECLAIM == 0 && am->lib->pending() != 0)) {
        aq_mpi_am_reclaim(am);
        if (aq_mpi_in_ready(am, channels, found))
            return true;
    }
    if (!am->behind && ++am->hollow % AQ_IN_HARD != 0
        && !atomic_load_explicit(&am->before_sleep, memory_order_relaxed))
        return false;
    atomic_store_explicit(
        &am->before_sleep, false,
        memory_order_relaxed); /* relaxed: a hint, set again by a thread that is about to sleep */
    if (!aq_mpi_ring_take(&am->rings, channels, 0, &found->arrival))
        return false;
    am->behind = true; /* complete packets may lie behind an incomplete one */
    return aq_mpi_in_packet(am, found);
}

/* Does the same under load, when no poll is idle: completes sends and receives, and tests the slots
 * behind an incomplete packet. Buffers that come back soon are still in the cache. */
static __attribute__((noinline)) bool aq_mpi_in_round_robin(struct aq_mpi_am *am, unsigned channels,
                                                            struct aq_mpi_found *found)
{
    if (am->zcopy != 0 || am->coming[AQ_MPI_REPLY] + am->coming[AQ_MPI_REQUEST] != 0)
        aq_mpi_am_reclaim(am);
    for (unsigned round = 0; round < AQ_IN_ROUNDS && am->lib->pending() >= AQ_IN_PENDING; round++)
        if (!aq_mpi_am_reclaim(am))
            break;
    channels &= 1u << am->polls
                          / AQ_IN_ROUND_ROBIN
                          /* round robin: one channel may always have something */
                          % AQ_MPI_CHANNELS;
    if (am->polls % AQ_IN_ROUND_ROBIN != 0
        || !aq_mpi_ring_take(&am->rings, channels, 0, &found->arrival))
        return false;
    aq_mpi_ring_check(&am->rings);
    return aq_mpi_in_packet(am, found);
}

/* Returns true if a payload is being received. */
static inline bool aq_mpi_in_is_coming(const struct aq_mpi_am *am)
{
    return (am->coming[AQ_MPI_REPLY] | am->coming[AQ_MPI_REQUEST]) != 0;
}

/* Replies come first, but they must not starve requests. */
static inline bool aq_mpi_in_take(struct aq_mpi_am *am, unsigned channels, unsigned looks,
                                  struct aq_mpi_arrival *arrival)
{
    if (AQ_UNLIKELY(am->replies >= AQ_IN_REPLIES) && (channels & 1u << AQ_MPI_REQUEST) != 0) {
        am->replies = 0;
        if (aq_mpi_ring_take(&am->rings, 1u << AQ_MPI_REQUEST, 1, arrival))
            return true;
    }
    if (!aq_mpi_ring_take(&am->rings, channels, looks, arrival))
        return false;
    am->replies = arrival->channel == AQ_MPI_REPLY ? am->replies + 1 : 0;
    return true;
}

/* hurried: see aq_mpi_am_poll(). Over some networks a test of MPI takes longer than the rest of a
 * poll together. */
static bool aq_mpi_in_find(struct aq_mpi_am *am, bool replies_only, bool hurried,
                           struct aq_mpi_found *found)
{
    const unsigned channels = 1u << AQ_MPI_REPLY | (replies_only ? 0u : 1u << AQ_MPI_REQUEST);
    const unsigned looks = am->quiet == 0                       ? 1
                           : hurried || aq_mpi_in_is_coming(am) ? AQ_IN_BOTH
                                                                : AQ_IN_LOOKS;
    unsigned open = channels;

    found->buf = NULL;
    if (AQ_UNLIKELY(atomic_load_explicit(&am->due, memory_order_relaxed)))
        aq_mpi_in_send_credits(am);
    for (unsigned channel = 0; channel < AQ_MPI_CHANNELS; channel++)
        if (AQ_UNLIKELY(am->coming[channel]
                        >= AQ_IN_COMING_MAX)) /* receives no more payloads before some have
                                               * arrived */
            open &= ~(1u << channel);
    if (AQ_UNLIKELY(++am->polls % AQ_IN_RECLAIM == 0) && aq_mpi_in_round_robin(am, open, found))
        return true;
    if (AQ_UNLIKELY(am->ready[AQ_MPI_REPLY].first != NULL
                    || am->ready[AQ_MPI_REQUEST].first != NULL)
        && aq_mpi_in_ready(am, channels, found))
        return true;
    while (aq_mpi_in_take(am, open, looks, &found->arrival)) {
        const bool is_complete = aq_mpi_in_packet(am, found);

        am->quiet = am->hollow = 0;
        am->behind = false;
        aq_mpi_ring_check(&am->rings);
        if (AQ_LIKELY(is_complete))
            return true;
        if (am->coming[found->arrival.channel] >= AQ_IN_COMING_MAX)
            break;
    }
    return aq_mpi_in_idle(am, open, found);
}

/* --- without the lock --- */

/* A request's handler has returned: its sender gets the credit back. */
static inline void aq_mpi_in_return_credit(struct aq_mpi_am *am, uint32_t source, size_t nbytes)
{
    struct aq_mpi_peer *peer = &am->peers[source];

    aq_mpi_credit_done(peer, aq_mpi_credit_cost(nbytes));
    if (AQ_LIKELY(!aq_mpi_credit_due(peer, am->window)))
        return;
    if (!aq_mpi_try_lock()) { /* the owner of the lock, or the next one, sends the credit */
        /* release, by an exchange: see aq_mpi_in_send_credits() */
        (void)atomic_exchange_explicit(&am->due, true, memory_order_release);
        return;
    }
    if (aq_mpi_credit_due(peer, am->window))
        aq_mpi_am_send_credit(am, source);
    aq_mpi_unlock();
}

static inline void aq_mpi_in_run(const struct aq_mpi_head *head, uint32_t source, bool is_reply,
                                 const gex_AM_Arg_t *args, void *payload, size_t nbytes)
{
    struct aq_am_in in = { .token = { .jobrank = source,
                                      .handler = head->handler,
                                      .nargs = head->nargs,
                                      .kind = head->kind,
                                      .is_reply = is_reply },
                           .args = args,
                           .payload = payload,
                           .nbytes = nbytes };

    if (head->kind == AQ_AM_SHORT)
        aq_am_deliver_short(&in.token, args);
    else
        aq_am_deliver(&in);
}

/* Runs the handler of a packet. Returns true if it was a reply. */
static inline bool aq_mpi_in_run_packet(struct aq_mpi_am *am, struct aq_mpi_found *found)
{
    const struct aq_mpi_message *message = &found->message;
    const uint32_t source = found->arrival.source;
    const bool is_reply = found->arrival.channel == AQ_MPI_REPLY;
    void *payload = message->payload;

    if (message->head.kind == AQ_AM_LONG) {
        if (AQ_UNLIKELY(message->head.apart))
            aq_bound_check_long(source, message->dest, message->nbytes);
        else
            aq_bound_place_long(source, message->dest, payload, message->nbytes);
        payload = message->dest;
    } else if (message->head.kind == AQ_AM_MEDIUM && payload == NULL) {
        payload = (void *)(uintptr_t)message->args; /* an empty payload still needs an address */
    }
    aq_mpi_in_run(&message->head, source, is_reply, message->args, payload, message->nbytes);
    aq_mpi_ring_done(&am->rings, &found->arrival);
    if (!is_reply)
        aq_mpi_in_return_credit(am, source, message->nbytes);
    return is_reply;
}

static __attribute__((noinline)) bool aq_mpi_in_run_buf(struct aq_mpi_am *am,
                                                        struct aq_mpi_buf *buf)
{
    const struct aq_mpi_coming *coming = aq_mpi_buf_bytes(buf);
    const bool is_reply = buf->channel == AQ_MPI_REPLY;
    const uint32_t source = coming->source, nbytes = coming->nbytes;

    aq_mpi_in_run(&coming->head, source, is_reply, coming->args, coming->payload, nbytes);
    aq_mpi_buf_give(buf);
    if (!is_reply)
        aq_mpi_in_return_credit(am, source, nbytes);
    return is_reply;
}

/* Another thread holds the lock. It may need this core to release it, so every few polls yield. */
static bool aq_mpi_am_backoff(void)
{
    static _Thread_local uint32_t times;

    if (AQ_THREADED && ++times % AQ_IN_YIELD == 0)
        sched_yield();
    return false;
}

unsigned aq_mpi_am_poll(struct aq_mpi_am *am, bool replies_only, bool hurried)
{
    struct aq_mpi_found found;
    unsigned served = 0;
    bool any, last = false;

    aq_mpi_am_batch.sent = 0;
    while (!last && served < AQ_IN_MAX && (AQ_LIKELY(aq_mpi_try_lock()) || aq_mpi_am_backoff())) {
        any = aq_mpi_in_find(am, replies_only, hurried, &found);
        aq_mpi_unlock();
        if (!any)
            break;
        served++;
        if (found.run)
            last = found.buf != NULL ? aq_mpi_in_run_buf(am, found.buf)
                                     : aq_mpi_in_run_packet(am, &found);
    }
    return served;
}

/* --- waiting, shutdown --- */

bool aq_mpi_am_is_moving(const struct aq_mpi_am *am)
{
    return am->lib->pending() != 0 || am->ready[AQ_MPI_REPLY].first != NULL
           || am->ready[AQ_MPI_REQUEST].first != NULL;
}

/* Does it matter that this message is dropped? Nobody waits for questions and their answers. */
static bool aq_mpi_in_matters(const struct aq_mpi_found *found)
{
    const uint8_t handler = found->message.head.handler;

    return found->run
           && (found->buf != NULL
               || (handler != AQ_HIDX_ATTENTION && handler != AQ_HIDX_ATTENTION_PAID));
}

bool aq_mpi_am_drain(struct aq_mpi_am *am)
{
    struct aq_mpi_found found;
    bool any = true;

    while (any) {
        while (aq_mpi_am_reclaim(am))
            ;
        atomic_store_explicit(&am->before_sleep, true, memory_order_relaxed); /* test every slot */
        any = aq_mpi_in_find(am, false, false, &found);
        am->dropped = am->dropped || (any && aq_mpi_in_matters(&found));
        if (any && found.run && found.buf != NULL)
            aq_mpi_buf_give(found.buf);
        else if (any && found.run)
            aq_mpi_ring_done(&am->rings, &found.arrival);
    }
    return am->lib->pending() == 0;
}
