/*
 * aq_ibv_rbuf.h - receive buffers: chunks of registered memory, and which buffers are posted.
 *
 * The buffers of a rail are posted to its shared receive queue. A connection adds as many as its
 * credit windows have, load adds more. A buffer that is not needed any more is in reserve; a chunk
 * whose buffers are all in reserve is given back to the system.
 *
 * Threads   a buffer belongs to the device while it is posted, then to the thread that took its
 *           completion. Growing and shrinking: any, under a mutex, since the connector grows too
 * Uses      aq_ibv_reg.h, aq_ibv_frag.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_RBUF_H
#define AQ_IBV_RBUF_H

#include "conduits/ibv/aq_ibv_device.h"
#include "conduits/ibv/aq_ibv_frag.h"

struct aq_ibv_chunk;
struct aq_ibv_peer;

struct aq_ibv_rbuf {
    struct aq_ibv_rbuf *next; /* while it is deferred, or in reserve */
    struct aq_ibv_chunk *chunk;
    struct ibv_recv_wr wr;
    struct ibv_sge sge;
    uint8_t *bytes;

    /* the fragment that arrived in it */
    struct aq_ibv_peer *peer;
    struct aq_ibv_fragment fragment;
    struct aq_ibv_reasm *whole; /* the message that this fragment completes */
    bool runs;                  /* a handler */
};

static inline unsigned aq_ibv_rbuf_channel(const struct aq_ibv_rbuf *buf)
{
    return aq_ibv_fragment_channel(&buf->fragment);
}

/* max: buffers of all rails beyond which windows do not grow (GASNET_RBUF_COUNT). */
void aq_ibv_rbuf_init(int64_t max);
/* Free all buffers; no queue pair is left that could fill one. */
void aq_ibv_rbuf_fini(void);
/* Post count more on a rail, those in reserve first; false, and the reason in why: there is no
 * memory or no space. Any thread, the connector too. */
bool aq_ibv_rbuf_grow(struct aq_ibv_rail *rail, uint32_t count, char *why, size_t len);
/* Post handled buffers again, in one call. */
void aq_ibv_rbuf_repost(struct aq_ibv_rail *rail, struct aq_ibv_rbuf *const *bufs, unsigned count);
/* Put a handled buffer in reserve instead. */
void aq_ibv_rbuf_reserve(struct aq_ibv_rail *rail, struct aq_ibv_rbuf *buf);
/* Buffers that the budget has left; a hint. */
uint32_t aq_ibv_rbuf_budget(void);
/* Bytes of all chunks, for reports and tests. */
uint64_t aq_ibv_rbuf_bytes(void);

/* Credits for so many buffers were given up: as many buffers are in excess. */
void aq_ibv_rbuf_excess_add(struct aq_ibv_rail *rail, uint32_t count);
/* Take one buffer off the excess: a handled buffer then need not be posted again. */
bool aq_ibv_rbuf_excess_take(struct aq_ibv_rail *rail);

#endif
