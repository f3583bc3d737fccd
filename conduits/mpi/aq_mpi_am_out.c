/*
 * aq_mpi_am_out.c - sending active messages.
 *
 * Eager       a message with a payload of up to AQ_MPI_INLINE bytes is one packet, copied into a
 *             buffer. MPI has usually finished with the buffer when the send call returns
 * Rendezvous  a larger payload is an MPI message of its own. The packet names its tag, and the
 *             receiver receives it directly into its destination. MPI sends it from client memory
 *             if the client can wait for local completion, else from a copy
 * Split       a payload up to AQ_MPI_SPLIT_MAX bytes, where several eager messages are faster than
 *             one by MPI's rendezvous (aq_mpi_choose.c): the first part is in the packet, the rest
 *             in fragments, which are messages of their own
 * Placed      the payload of a long whose source must be free at once is put to its destination
 *             first, if the path of puts needs nobody at the target. The packet says so
 *
 * Owns      aq_mpi_am
 * Threads   any
 * Promise   a message is sent whole or, with AQ_RETRY, not at all
 * Uses      aq_mpi_am_out.h, aq_mpi_lock.h, core/aq_am_lc.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_am_out.h"

#include <string.h>

#include "conduits/mpi/aq_mpi_lock.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "core/aq_am_lc.h"
#include "core/aq_op.h"

/* Bytes of buffers that MPI may hold. At this limit a send waits until MPI has finished with
 * some. */
static const uint64_t aq_mpi_sending_max[AQ_MPI_CHANNELS] = {
    [AQ_MPI_REPLY] = 16 << 20, [AQ_MPI_REQUEST] = 64 << 20
};

struct aq_mpi_am aq_mpi_am AQ_JOB_STATE;
_Thread_local struct aq_mpi_am_batch aq_mpi_am_batch __attribute__((tls_model("initial-exec")));

static inline enum aq_mpi_channel aq_mpi_channel_of(bool is_reply)
{
    return is_reply ? AQ_MPI_REPLY : AQ_MPI_REQUEST;
}

/* --- completed sends --- */

static void aq_mpi_am_came(struct aq_mpi_am *am, struct aq_mpi_buf *buf, size_t nbytes)
{
    struct aq_mpi_coming *coming = aq_mpi_buf_bytes(buf);
    const unsigned channel = buf->channel;

    coming->missing -= (uint32_t)nbytes; /* MPI receives no more than was asked for */
    if (--coming->frags != 0)
        return;
    if (coming->missing != 0)
        aq_fatal("mpi: rank %u announced a payload of %u bytes and sent %u", coming->source,
                 coming->nbytes, coming->nbytes - coming->missing);
    buf->next = NULL;
    if (am->ready[channel].first == NULL)
        am->ready[channel].first = buf;
    else
        am->ready[channel].last->next = buf;
    am->ready[channel].last = buf;
}

/* MPI has finished with a buffer, or with the client memory that the buffer represents. */
static void aq_mpi_am_free(struct aq_mpi_am *am, struct aq_mpi_buf *buf)
{
    struct aq_op *zcopy = NULL;

    if (AQ_UNLIKELY(buf->zcopy)) {
        zcopy = *(struct aq_op **)aq_mpi_buf_bytes(buf);
        am->zcopy--;
    }
    aq_mpi_buf_give(buf);
    if (AQ_UNLIKELY(zcopy != NULL))
        aq_op_end(zcopy, GEX_EC_AM, 1);
}

bool aq_mpi_am_reclaim(struct aq_mpi_am *am)
{
    struct aq_mpi_completion done[32];
    const int count = am->lib->completes(done, 32);

    if (AQ_UNLIKELY(count < 0))
        aq_mpi_fatal(-count, "messages on their way");
    for (int i = 0; i < count; i++) {
        struct aq_mpi_buf *buf = done[i].owner;

        if (buf->coming) {
            aq_mpi_am_came(am, buf, done[i].nbytes);
            continue;
        }
        am->sending[buf->channel] -= buf->size;
        /* a peer that had received the first part only may have gone to sleep */
        aq_mpi_wakeup_sent(&am->wakeup, buf->dest, &am->peers[buf->dest], true);
        aq_mpi_am_free(am, buf);
    }
    return count != 0;
}

/* Returns true if another buffer of size bytes is within the limit. */
static inline bool aq_mpi_am_has_space(struct aq_mpi_am *am, enum aq_mpi_channel channel,
                                       size_t size)
{
    while (AQ_UNLIKELY(am->sending[channel] + size > aq_mpi_sending_max[channel]))
        if (!aq_mpi_am_reclaim(am))
            return false;
    return true;
}

/* --- packets --- */

/* A request has been sent. A poll of the client's follows it; that poll does not mean that the
 * client waits. */
static inline void aq_mpi_am_note_request(struct aq_mpi_am *am, struct aq_mpi_peer *peer,
                                          uint32_t cost)
{
    aq_mpi_credit_spend(peer, cost);
    am->quiet = 0;
    aq_mpi_am_batch.sent++;
    aq_mpi_am_batch.just_sent = true;
}

/* Evaluates the result of a send. Returns true if its buffer is free again. */
static inline bool aq_mpi_am_sent(struct aq_mpi_am *am, int rc, enum aq_mpi_channel channel,
                                  gex_Rank_t dest, struct aq_mpi_buf *buf)
{
    if (AQ_LIKELY(rc == AQ_MPI_DONE))
        return true;
    if (AQ_UNLIKELY(rc < 0))
        aq_mpi_fatal(-rc, "a message cannot be sent");
    buf->channel = (uint8_t)channel;
    buf->dest = dest;
    am->sending[channel] += buf->size;
    return false;
}

/* Sends a packet without a payload; the smallest buffer holds it. */
static inline void aq_mpi_am_send_small(struct aq_mpi_am *am, gex_Rank_t jobrank,
                                        enum aq_mpi_channel channel, uint8_t kind, uint8_t handler,
                                        unsigned nargs, const gex_AM_Arg_t *args)
{
    struct aq_mpi_buf *buf = am->reserve;
    struct aq_mpi_head head = { .kind = kind, .nargs = (uint8_t)nargs, .handler = handler };
    char *packet;
    int rc;

    if (AQ_UNLIKELY(buf == NULL))
        buf = am->reserve = aq_mpi_buf_take(AQ_MPI_SMALL);
    packet = aq_mpi_buf_bytes(buf);
    aq_mpi_credit_advertise(&am->peers[jobrank], &head.done, &head.messages);
    aq_mpi_head_put(packet, head);
    aq_mpi_packet_put_args(packet, nargs, args);
    rc = am->lib->send(channel, jobrank, packet, aq_mpi_packet_head(kind, nargs), buf);
    if (!aq_mpi_am_sent(am, rc, channel, jobrank, buf))
        am->reserve = NULL;
    aq_mpi_wakeup_sent(&am->wakeup, jobrank, &am->peers[jobrank], channel == AQ_MPI_REPLY);
}

void aq_mpi_am_send_credit(struct aq_mpi_am *am, gex_Rank_t jobrank)
{
    aq_mpi_am_send_small(am, jobrank, AQ_MPI_REPLY, AQ_MPI_CREDIT, 0, 0, NULL);
}

/* Expanded once for each channel, which is then a constant. */
static inline __attribute__((always_inline)) int aq_mpi_am_short_remote(
    struct aq_mpi_am *am, gex_Rank_t jobrank, enum aq_mpi_channel channel, uint8_t handler,
    unsigned nargs, const gex_AM_Arg_t *args)
{
    struct aq_mpi_peer *peer = &am->peers[jobrank];
    const bool is_reply = channel == AQ_MPI_REPLY;
    bool may_send;

    aq_mpi_lock();
    may_send =
        (is_reply || aq_mpi_credit_has(peer, 1)) && aq_mpi_am_has_space(am, channel, AQ_MPI_SMALL);
    if (AQ_LIKELY(may_send)) {
        if (!is_reply)
            aq_mpi_am_note_request(am, peer, 1);
        aq_mpi_am_send_small(am, jobrank, channel, AQ_AM_SHORT, handler, nargs, args);
    }
    aq_mpi_unlock();
    return AQ_LIKELY(may_send) ? AQ_OK : AQ_RETRY;
}

int aq_mpi_am_short(struct aq_mpi_am *am, gex_Rank_t jobrank, bool is_reply, uint8_t handler,
                    unsigned nargs, const gex_AM_Arg_t *args)
{
    return is_reply ? aq_mpi_am_short_remote(am, jobrank, AQ_MPI_REPLY, handler, nargs, args)
                    : aq_mpi_am_short_remote(am, jobrank, AQ_MPI_REQUEST, handler, nargs, args);
}

/* --- payloads --- */

/* What MPI sends besides the packet. */
struct aq_mpi_payload {
    size_t eager; /* bytes of the payload that are in the packet */
    bool placed;  /* the payload is at its destination */
    unsigned count;
    struct {
        struct aq_mpi_buf *buf; /* contains the bytes, or represents them */
        const void *bytes;
        size_t nbytes;
    } frag[AQ_MPI_FRAGS];
};

/* Returns true if the payload may be sent from client memory. Not if the client wants it back at
 * once: the call would then wait until the receiver polls, and the receiver may do so only after
 * both have met in the program's own MPI calls. */
static bool aq_mpi_am_is_zcopy(const struct aq_am_out *out)
{
    return !aq_mpi_packet_fits(out->nbytes) && out->lc != NULL && !aq_am_lc_is_now(out);
}

/* Returns true if MPI is faster with several eager messages. A payload that would otherwise be
 * copied is split up to twice as long as one that would not. */
static bool aq_mpi_am_is_split(const struct aq_mpi_am *am, const struct aq_am_out *out)
{
    const size_t max = aq_mpi_am_is_zcopy(out) ? AQ_MPI_SPLIT_MAX / 2 : AQ_MPI_SPLIT_MAX;
    const size_t packet = aq_mpi_packet_payload(out->kind, out->nargs) + out->nbytes;
    size_t above;

    if (out->nbytes > max || packet <= AQ_MPI_EAGER)
        return false;
    above = atomic_load_explicit(
        &am->split_above[aq_mpi_class_of(aq_job.host_of, aq_job.rank, out->jobrank)],
        memory_order_relaxed); /* either form is right at any time */
    return above != 0 && packet > above;
}

/* Returns true if the payload is to be put to its destination before the packet is sent. */
static bool aq_mpi_am_is_placed(const struct aq_mpi_am *am, const struct aq_am_out *out)
{
    return am->place != NULL && out->kind == AQ_AM_LONG && !out->immediate
           && !aq_mpi_packet_fits(out->nbytes) && !aq_mpi_am_is_split(am, out)
           && !aq_mpi_am_is_zcopy(out);
}

/* With the lock: returns true if credit and buffers allow the message now. size: of the payload's
 * buffers. */
static bool aq_mpi_am_may_send(struct aq_mpi_am *am, const struct aq_am_out *out,
                               enum aq_mpi_channel channel, size_t size)
{
    return (out->is_reply
            || aq_mpi_credit_has(&am->peers[out->jobrank], aq_mpi_credit_cost(out->nbytes)))
           && aq_mpi_am_has_space(am, channel, size);
}

/* With the lock. */
static void aq_mpi_am_send_frags(struct aq_mpi_am *am, const struct aq_am_out *out,
                                 enum aq_mpi_channel channel, uint32_t tag,
                                 const struct aq_mpi_payload *payload)
{
    for (unsigned i = 0; i < payload->count; i++) {
        struct aq_mpi_buf *buf = payload->frag[i].buf;
        int rc;

        if (buf->zcopy) {
            *(struct aq_op **)aq_mpi_buf_bytes(buf) = aq_am_lc_take(out);
            am->zcopy++;
        }
        rc = am->lib->send_payload(channel, out->jobrank, tag, payload->frag[i].bytes,
                                   payload->frag[i].nbytes, buf);
        if (aq_mpi_am_sent(am, rc, channel, out->jobrank, buf))
            aq_mpi_am_free(am, buf);
    }
}

/* With the lock, after aq_mpi_am_may_send(). */
static void aq_mpi_am_send_whole(struct aq_mpi_am *am, const struct aq_am_out *out,
                                 enum aq_mpi_channel channel, struct aq_mpi_buf *packet,
                                 const struct aq_mpi_payload *payload)
{
    struct aq_mpi_peer *peer = &am->peers[out->jobrank];
    uint32_t done, tag = payload->placed ? AQ_MPI_PLACED : 0;
    uint16_t messages;
    size_t nbytes;
    int rc;

    if (!out->is_reply)
        aq_mpi_am_note_request(am, peer, aq_mpi_credit_cost(out->nbytes));
    if (payload->count != 0)
        tag = peer->tag[channel] = (uint16_t)(peer->tag[channel] % AQ_MPI_TAGS + 1);
    aq_mpi_credit_advertise(peer, &done, &messages);
    nbytes =
        aq_mpi_packet_encode(aq_mpi_buf_bytes(packet), out, done, messages, tag, payload->eager);
    rc = am->lib->send(channel, out->jobrank, aq_mpi_buf_bytes(packet), nbytes, packet);
    if (aq_mpi_am_sent(am, rc, channel, out->jobrank, packet))
        aq_mpi_buf_give(packet);
    aq_mpi_am_send_frags(am, out, channel, tag, payload);
    aq_mpi_wakeup_sent(&am->wakeup, out->jobrank, peer, out->is_reply);
}

int aq_mpi_am_send_filled(struct aq_mpi_am *am, const struct aq_am_out *out,
                          struct aq_mpi_buf *packet)
{
    struct aq_mpi_peer *peer = &am->peers[out->jobrank];
    char *bytes = aq_mpi_buf_bytes(packet);
    uint16_t messages;
    uint32_t done;
    int rc;

    if (!aq_mpi_am_may_send(am, out, AQ_MPI_REQUEST, packet->size))
        return AQ_RETRY;
    aq_mpi_am_note_request(am, peer, aq_mpi_credit_cost(out->nbytes));
    aq_mpi_credit_advertise(peer, &done, &messages);
    (void)aq_mpi_packet_encode_head(bytes, out, done, messages, 0);
    rc = am->lib->send(AQ_MPI_REQUEST, out->jobrank, bytes,
                       aq_mpi_packet_bytes(out->kind, out->nargs, out->nbytes), packet);
    if (aq_mpi_am_sent(am, rc, AQ_MPI_REQUEST, out->jobrank, packet))
        aq_mpi_buf_give(packet);
    aq_mpi_wakeup_sent(&am->wakeup, out->jobrank, peer, false);
    return AQ_OK;
}

/* Copies what is not in the packet, outside the lock, in fragments of up to frag bytes. */
static void aq_mpi_am_copy(const struct aq_am_out *out, size_t frag, struct aq_mpi_payload *payload)
{
    for (size_t at = payload->eager; at < out->nbytes; at += frag) {
        const size_t left = out->nbytes - at, nbytes = left < frag ? left : frag;
        struct aq_mpi_buf *buf = aq_mpi_buf_take(nbytes);

        payload->frag[payload->count].bytes =
            memcpy(aq_mpi_buf_bytes(buf), (const char *)out->src + at, nbytes);
        payload->frag[payload->count].nbytes = nbytes;
        payload->frag[payload->count++].buf = buf;
    }
}

/* The buffer represents client memory. */
static void aq_mpi_am_represent(const struct aq_am_out *out, struct aq_mpi_payload *payload)
{
    struct aq_mpi_buf *buf = aq_mpi_buf_take(sizeof(struct aq_op *));

    buf->zcopy = true;
    payload->frag[0].buf = buf;
    payload->frag[0].bytes = out->src;
    payload->frag[0].nbytes = out->nbytes;
    payload->count = 1;
}

/* Returns false if the message could not be sent now anyway. size: of the payload's buffers. */
static bool aq_mpi_am_may_copy(struct aq_mpi_am *am, const struct aq_am_out *out,
                               enum aq_mpi_channel channel, size_t size)
{
    bool may_send;

    aq_mpi_lock();
    may_send = aq_mpi_am_may_send(am, out, channel, size);
    aq_mpi_unlock();
    return may_send;
}

/* Prepares what is sent besides the packet. Returns false if the message could not be sent now.
 * *size_out: bytes of the payload's buffers at most. */
static bool aq_mpi_am_prepare(struct aq_mpi_am *am, const struct aq_am_out *out,
                              enum aq_mpi_channel channel, struct aq_mpi_payload *payload_out,
                              size_t *size_out)
{
    const bool is_split = aq_mpi_am_is_split(am, out);

    payload_out->placed = false;
    payload_out->count = 0;
    *size_out = out->nbytes;
    if (!is_split && aq_mpi_packet_fits(out->nbytes)) {
        payload_out->eager = out->nbytes;
        return true;
    }
    payload_out->eager = is_split ? AQ_MPI_EAGER - aq_mpi_packet_payload(out->kind, out->nargs) : 0;
    if (!is_split && aq_mpi_am_is_zcopy(out)) {
        aq_mpi_am_represent(out, payload_out);
        *size_out = AQ_MPI_SMALL;
        return true;
    }
    if (!aq_mpi_am_may_copy(am, out, channel, out->nbytes))
        return false;
    aq_mpi_am_copy(out, is_split ? AQ_MPI_EAGER : out->nbytes, payload_out);
    return true;
}

/* Puts the payload to its destination and sends the packet, both with the lock, so that a message
 * that is not sent leaves its destination as it was. AQ_ERR_NOSUP if the payload cannot be put. */
static int aq_mpi_am_send_placed(struct aq_mpi_am *am, const struct aq_am_out *out,
                                 enum aq_mpi_channel channel)
{
    const struct aq_mpi_payload placed = { .placed = true };
    struct aq_mpi_buf *packet = aq_mpi_buf_take(aq_mpi_packet_bytes(out->kind, out->nargs, 0));
    int rc = AQ_RETRY;

    aq_mpi_lock();
    if (aq_mpi_am_may_send(am, out, channel, AQ_MPI_SMALL)) {
        rc = am->place(out->jobrank, out->dest, out->src, out->nbytes) ? AQ_OK : AQ_ERR_NOSUP;
        if (rc == AQ_OK)
            aq_mpi_am_send_whole(am, out, channel, packet, &placed);
    }
    aq_mpi_unlock();
    if (rc != AQ_OK)
        aq_mpi_buf_give(packet);
    return rc;
}

static int aq_mpi_am_send_remote(struct aq_mpi_am *am, const struct aq_am_out *out,
                                 enum aq_mpi_channel channel)
{
    struct aq_mpi_payload payload;
    struct aq_mpi_buf *packet;
    size_t size;
    bool may_send;

    if (!aq_mpi_am_prepare(am, out, channel, &payload, &size))
        return AQ_RETRY;
    packet = aq_mpi_buf_take(aq_mpi_packet_bytes(out->kind, out->nargs, payload.eager));
    aq_mpi_lock();
    may_send = aq_mpi_am_may_send(am, out, channel, size);
    if (may_send)
        aq_mpi_am_send_whole(am, out, channel, packet, &payload);
    aq_mpi_unlock();
    if (may_send)
        return AQ_OK;
    aq_mpi_buf_give(packet);
    for (unsigned i = 0; i < payload.count; i++)
        aq_mpi_buf_give(payload.frag[i].buf);
    return AQ_RETRY;
}

int aq_mpi_am_send(struct aq_mpi_am *am, const struct aq_am_out *out)
{
    const enum aq_mpi_channel channel = aq_mpi_channel_of(out->is_reply);

    if (out->kind == AQ_AM_SHORT)
        return aq_mpi_am_short(am, out->jobrank, out->is_reply, out->handler, out->nargs,
                               out->args);
    if (aq_mpi_am_is_placed(am, out)) {
        const int rc = aq_mpi_am_send_placed(am, out, channel);

        if (rc != AQ_ERR_NOSUP)
            return rc;
    }
    return aq_mpi_am_send_remote(am, out, channel);
}
