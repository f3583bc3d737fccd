/*
 * aq_ibv_recv.h - receiving: between aq_ibv_recv.c and aq_ibv_rbuf.c, aq_ibv_reasm.c,
 * aq_ibv_deferred.c, aq_ibv_credit_update.c.
 *
 * Threads   a buffer belongs to the device while it is posted, then to whoever took its completion
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_RECV_H
#define AQ_IBV_RECV_H

#include "conduits/ibv/aq_ibv.h"
#include "conduits/ibv/aq_ibv_packet.h"

struct aq_ibv_chunk;

/* A message that comes in pieces. */
struct aq_ibv_reasm {
    struct aq_ibv_reasm *next; /* while it is spare */
    uint32_t total, got;
    uint8_t type;
    uint8_t *payload;           /* medium: own; long: where it belongs */
    _Alignas(16) uint8_t own[]; /* [AQ_IBV_MAX_MEDIUM] */
};

struct aq_ibv_rbuf {
    struct aq_ibv_rbuf *next; /* while it waits: held, or spare */
    struct aq_ibv_chunk *chunk;
    struct ibv_recv_wr wr;
    struct ibv_sge sge;
    uint8_t *bytes;

    /* what came */
    struct aq_ibv_peer *peer;
    struct aq_ibv_fragment fragment;
    struct aq_ibv_reasm *whole; /* with this piece the message is complete */
    bool runs;                  /* a handler */
};

static inline unsigned aq_ibv_rbuf_channel(const struct aq_ibv_rbuf *buf)
{
    return (buf->fragment.head.flags & AQ_IBV_F_REPLY) != 0 ? AQ_IBV_REPLY : AQ_IBV_REQUEST;
}

/* --- fragments (aq_ibv_reasm.c), under the rail's recv_lock --- */

/* A piece of a message: put it where it belongs; true: it was the last, and buf->whole is the
 * message. */
bool aq_ibv_reasm_take(const struct aq_ibv_rail *rail, const struct ibv_wc *wc,
                       struct aq_ibv_rbuf *buf);
/* The message has been handled. */
void aq_ibv_reasm_give(struct aq_ibv_reasm *reasm);
/* Ends the job if a long message's payload does not lie inside a segment. */
void aq_ibv_reasm_check(const struct aq_ibv_peer *peer, uint64_t dest, size_t nbytes);
/* Ends the job: what came is no message (aq_ibv_recv.c). */
void aq_ibv_recv_malformed(const struct aq_ibv_rail *rail, const struct ibv_wc *wc,
                           const struct aq_ibv_rbuf *buf, const char *what);

/* --- messages that wait (aq_ibv_deferred.c) --- */

/* Their queues: the lanes, and firehose's requests, which are apart: a peer whose memory has gone
 * may say nothing until we have heard of it, not even in a reply that somebody waits in; so each
 * poll serves them. */
#define AQ_IBV_FIREHOSE        AQ_IBV_CHANNELS
#define AQ_IBV_DEFERRED_QUEUES (AQ_IBV_CHANNELS + 1)
struct aq_ibv_deferred {
    aq_lock lock;
    struct aq_ibv_rbuf *_Atomic first;
    struct aq_ibv_rbuf *last;
};
extern struct aq_ibv_deferred aq_ibv_deferred[AQ_IBV_DEFERRED_QUEUES];
void aq_ibv_deferred_add(struct aq_ibv_rbuf *buf, unsigned queue);
/* All of a queue, linked by next; or NULL. */
struct aq_ibv_rbuf *aq_ibv_deferred_take(unsigned queue);

static inline bool aq_ibv_deferred_any(unsigned queue)
{
    /* relaxed: what is seen too late is there at the next poll */
    return atomic_load_explicit(&aq_ibv_deferred[queue].first, memory_order_relaxed) != NULL;
}

/* --- grants (aq_ibv_credit_update.c) --- */

/* The peer is to hear of news of a lane some time, or with the next poll if it is due; in_lock
 * held. */
void aq_ibv_credit_update_queue(struct aq_ibv_peer *peer, unsigned channel);

/* --- buffers (aq_ibv_rbuf.c) --- */

/* Start: the mutex, counts. */
int aq_ibv_rbuf_init(void);
/* count more for a rail's queue, posted on return, spare ones first; false, and the reason in why:
 * it cannot be had. Any thread, the connector too. */
bool aq_ibv_rbuf_grow(struct aq_ibv_rail *rail, uint32_t count, char *why, size_t len);
/* Post those that were read again, in one call. */
void aq_ibv_rbuf_repost(struct aq_ibv_rail *rail, struct aq_ibv_rbuf *const *bufs, unsigned count);
/* One is not to be posted again. */
void aq_ibv_rbuf_reserve(struct aq_ibv_rail *rail, struct aq_ibv_rbuf *buf);
/* How many the budget has left (GASNET_RBUF_COUNT); a hint. */
uint32_t aq_ibv_rbuf_budget(void);
/* Bytes that buffers take now, for reports and tests. */
uint64_t aq_ibv_rbuf_bytes(void);

#endif
