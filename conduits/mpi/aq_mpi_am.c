/*
 * aq_mpi_am.c - active messages to far ranks.
 *
 * A message and a payload up to AQ_MPI_INLINE bytes are one packet, copied into a buffer which MPI
 * has usually done with when the call returns. A larger payload follows its packet under a tag and
 * goes straight to where the receiver wants it: from where it is, if its sender can wait for its
 * local completion, else from a copy of ours.
 *
 * Threads   any
 * Promise   a message is sent whole or, with AQ_RETRY, not at all
 * Uses      aq_mpi_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_am.h"

#include <string.h>

#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "core/aq_am_lc.h"

/* Bytes of buffers that may be with MPI; more only if MPI is done with some. */
static const uint64_t aq_mpi_sending_max[AQ_MPI_CHANNELS] = {
    [AQ_MPI_REPLY] = 16 << 20, [AQ_MPI_REQUEST] = 64 << 20
};

struct aq_mpi_am aq_mpi_am;

static inline enum aq_mpi_channel aq_mpi_channel_of(bool is_reply)
{
    return is_reply ? AQ_MPI_REPLY : AQ_MPI_REQUEST;
}

/* --- what MPI has done --- */

static void aq_mpi_am_came(struct aq_mpi_buf *buf, size_t nbytes)
{
    const struct aq_mpi_coming *coming = aq_mpi_buf_bytes(buf);
    const unsigned channel = buf->channel;

    if (nbytes != coming->nbytes)
        aq_fatal("mpi: rank %u announced a payload of %u bytes and sent %zu", coming->source,
                 coming->nbytes, nbytes);
    buf->next = NULL;
    if (aq_mpi_am.ready[channel].first == NULL)
        aq_mpi_am.ready[channel].first = buf;
    else
        aq_mpi_am.ready[channel].last->next = buf;
    aq_mpi_am.ready[channel].last = buf;
}

/* MPI has done with a buffer, or with the client's memory that it stands for. */
static void aq_mpi_am_free(struct aq_mpi_buf *buf)
{
    struct aq_op *zcopy = NULL;

    if (AQ_UNLIKELY(buf->zcopy)) {
        zcopy = *(struct aq_op **)aq_mpi_buf_bytes(buf);
        aq_mpi_am.zcopy--;
    }
    aq_mpi_buf_give(buf);
    if (AQ_UNLIKELY(zcopy != NULL))
        aq_op_end(zcopy, GEX_EC_AM, 1);
}

bool aq_mpi_am_reclaim(void)
{
    struct aq_mpi_completion done[32];
    const int count = aq_mpi_am.lib->completes(done, 32);

    if (AQ_UNLIKELY(count < 0))
        aq_mpi_fatal(-count, "messages on their way");
    for (int i = 0; i < count; i++) {
        struct aq_mpi_buf *buf = done[i].owner;

        if (buf->coming) {
            aq_mpi_am_came(buf, done[i].nbytes);
            continue;
        }
        aq_mpi_am.sending[buf->channel] -= buf->size;
        aq_mpi_am_free(buf);
    }
    return count != 0;
}

/* Is there room for another buffer of size bytes? */
static inline bool aq_mpi_am_has_space(enum aq_mpi_channel channel, size_t size)
{
    while (AQ_UNLIKELY(aq_mpi_am.sending[channel] + size > aq_mpi_sending_max[channel]))
        if (!aq_mpi_am_reclaim())
            return false;
    return true;
}

/* --- packets --- */

/* A request leaves: a poll follows, and whoever waits for what it brings does not wait yet. */
static inline void aq_mpi_am_note_request(struct aq_mpi_peer *peer, uint32_t cost)
{
    aq_mpi_credit_spend(peer, cost);
    aq_mpi_am.quiet = 0;
    aq_mpi_am_batch.sent++;
    aq_mpi_am_batch.just_sent = true;
}

/* What a send has come to: true if its buffer is free again. */
static inline bool aq_mpi_am_sent(int rc, enum aq_mpi_channel channel, struct aq_mpi_buf *buf)
{
    if (AQ_LIKELY(rc == AQ_MPI_DONE))
        return true;
    if (AQ_UNLIKELY(rc < 0))
        aq_mpi_fatal(-rc, "a message cannot be sent");
    buf->channel = (uint8_t)channel;
    aq_mpi_am.sending[channel] += buf->size;
    return false;
}

/* A packet without a payload: the smallest buffer holds it. */
static inline void aq_mpi_am_send_small(gex_Rank_t jobrank, enum aq_mpi_channel channel,
                                        uint8_t kind, uint8_t handler, unsigned nargs,
                                        const gex_AM_Arg_t *args)
{
    struct aq_mpi_buf *buf = aq_mpi_am.reserve;
    struct aq_mpi_head head = { .kind = kind, .nargs = (uint8_t)nargs, .handler = handler };
    char *packet;
    int rc;

    if (AQ_UNLIKELY(buf == NULL))
        buf = aq_mpi_am.reserve = aq_mpi_buf_take(AQ_MPI_SMALL);
    packet = aq_mpi_buf_bytes(buf);
    aq_mpi_credit_advertise(&aq_mpi_am.peers[jobrank], &head.units, &head.messages);
    aq_mpi_head_put(packet, head);
    aq_mpi_packet_put_args(packet, nargs, args);
    rc = aq_mpi_am.lib->send(channel, jobrank, packet, aq_mpi_packet_head(kind, nargs), buf);
    if (!aq_mpi_am_sent(rc, channel, buf))
        aq_mpi_am.reserve = NULL;
}

void aq_mpi_am_send_credit(gex_Rank_t jobrank)
{
    aq_mpi_am_send_small(jobrank, AQ_MPI_REPLY, AQ_MPI_CREDIT, 0, 0, NULL);
}

/* Once for each lane, which is a constant then. */
static inline __attribute__((always_inline)) int aq_mpi_am_short_remote(gex_Rank_t jobrank,
                                                                        enum aq_mpi_channel channel,
                                                                        uint8_t handler,
                                                                        unsigned nargs,
                                                                        const gex_AM_Arg_t *args)
{
    struct aq_mpi_peer *peer = &aq_mpi_am.peers[jobrank];
    const bool is_reply = channel == AQ_MPI_REPLY;
    bool may_send;

    aq_mpi_lock();
    may_send = (is_reply || aq_mpi_credit_has(peer, aq_mpi_am.window, 1))
               && aq_mpi_am_has_space(channel, AQ_MPI_SMALL);
    if (AQ_LIKELY(may_send)) {
        if (!is_reply)
            aq_mpi_am_note_request(peer, 1);
        aq_mpi_am_send_small(jobrank, channel, AQ_AM_SHORT, handler, nargs, args);
    }
    aq_mpi_unlock();
    return AQ_LIKELY(may_send) ? AQ_OK : AQ_RETRY;
}

int aq_mpi_am_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                    const gex_AM_Arg_t *args)
{
    return is_reply ? aq_mpi_am_short_remote(jobrank, AQ_MPI_REPLY, handler, nargs, args)
                    : aq_mpi_am_short_remote(jobrank, AQ_MPI_REQUEST, handler, nargs, args);
}

/* --- payloads --- */

/* A payload that travels by itself: what MPI sends, and the buffer that it is in or that stands for
 * it. */
struct aq_mpi_payload {
    struct aq_mpi_buf *buf; /* NULL: the payload is in the packet */
    const void *bytes;
};

/* May it be sent from where it is? Not if the client wants it back at once: the call would wait
 * until the receiver has looked, which it may mean to do only after it has met the sender in the
 * program's own MPI. */
static inline bool aq_mpi_am_is_zcopy(const struct aq_am_out *out)
{
    return out->lc != NULL && !aq_am_lc_is_now(out);
}

/* Is there room for it now? size: of the buffer for a payload. Under the lock. */
static bool aq_mpi_am_may_send(const struct aq_am_out *out, enum aq_mpi_channel channel,
                               size_t size)
{
    return (out->is_reply
            || aq_mpi_credit_has(&aq_mpi_am.peers[out->jobrank], aq_mpi_am.window,
                                 aq_mpi_credit_cost(out->nbytes)))
           && aq_mpi_am_has_space(channel, size);
}

/* Under the lock, when there is room. */
static void aq_mpi_am_send_whole(const struct aq_am_out *out, enum aq_mpi_channel channel,
                                 struct aq_mpi_buf *packet, const struct aq_mpi_payload *payload)
{
    struct aq_mpi_peer *peer = &aq_mpi_am.peers[out->jobrank];
    uint32_t units, tag = 0;
    uint16_t messages;
    size_t nbytes;
    int rc;

    if (!out->is_reply)
        aq_mpi_am_note_request(peer, aq_mpi_credit_cost(out->nbytes));
    if (payload->buf != NULL)
        tag = peer->tag[channel] = (uint16_t)(peer->tag[channel] % AQ_MPI_TAGS + 1);
    aq_mpi_credit_advertise(peer, &units, &messages);
    nbytes = aq_mpi_packet_encode(aq_mpi_buf_bytes(packet), out, units, messages, tag);
    rc = aq_mpi_am.lib->send(channel, out->jobrank, aq_mpi_buf_bytes(packet), nbytes, packet);
    if (aq_mpi_am_sent(rc, channel, packet))
        aq_mpi_buf_give(packet);
    if (payload->buf == NULL)
        return;
    if (payload->buf->zcopy) {
        *(struct aq_op **)aq_mpi_buf_bytes(payload->buf) = aq_am_lc_take(out);
        aq_mpi_am.zcopy++;
    }
    rc = aq_mpi_am.lib->send_payload(channel, out->jobrank, tag, payload->bytes, out->nbytes,
                                     payload->buf);
    if (aq_mpi_am_sent(rc, channel, payload->buf))
        aq_mpi_am_free(payload->buf);
}

/* No use copying it if there is no room; and it is copied outside the lock. */
static bool aq_mpi_am_copy(const struct aq_am_out *out, enum aq_mpi_channel channel,
                           struct aq_mpi_payload *payload_out)
{
    bool may_send;

    aq_mpi_lock();
    may_send = aq_mpi_am_may_send(out, channel, out->nbytes);
    aq_mpi_unlock();
    if (!may_send)
        return false;
    payload_out->buf = aq_mpi_buf_take(out->nbytes);
    payload_out->bytes = memcpy(aq_mpi_buf_bytes(payload_out->buf), out->src, out->nbytes);
    return true;
}

static int aq_mpi_am_send_remote(const struct aq_am_out *out, enum aq_mpi_channel channel)
{
    const bool apart = !aq_mpi_packet_fits(out->nbytes);
    struct aq_mpi_payload payload = { .buf = NULL };
    struct aq_mpi_buf *packet;
    size_t size = out->nbytes;
    bool may_send;

    if (apart && aq_mpi_am_is_zcopy(out)) {
        payload.buf = aq_mpi_buf_take(sizeof(struct aq_op *));
        payload.buf->zcopy = true;
        payload.bytes = out->src;
        size = AQ_MPI_SMALL;
    } else if (apart && !aq_mpi_am_copy(out, channel, &payload)) {
        return AQ_RETRY;
    }
    packet = aq_mpi_buf_take(aq_mpi_packet_bytes(out->kind, out->nargs, apart ? 0 : out->nbytes));
    aq_mpi_lock();
    may_send = aq_mpi_am_may_send(out, channel, size);
    if (may_send)
        aq_mpi_am_send_whole(out, channel, packet, &payload);
    aq_mpi_unlock();
    if (may_send)
        return AQ_OK;
    aq_mpi_buf_give(packet);
    if (payload.buf != NULL)
        aq_mpi_buf_give(payload.buf);
    return AQ_RETRY;
}

int aq_mpi_am_send(const struct aq_am_out *out)
{
    if (out->kind == AQ_AM_SHORT)
        return aq_mpi_am_short(out->jobrank, out->is_reply, out->handler, out->nargs, out->args);
    return aq_mpi_am_send_remote(out, aq_mpi_channel_of(out->is_reply));
}
