/*
 * aq_ibv_recv.h - receive buffers, between aq_ibv_rbuf.c and aq_ibv_recv.c.
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
struct aq_ibv_part {
    uint32_t total, got;
    uint8_t type;
    uint8_t *payload; /* medium: ours; long: where it belongs */
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
    struct aq_ibv_part *whole; /* with this piece the message is complete */
    bool runs;                 /* a handler */
};

/* Start: the mutex, counts. */
int aq_ibv_rbuf_init(void);
/* count more for a rail's queue, posted on return, spare ones first; false, and the reason in why: it cannot be had.
 * Any thread, the connector too. */
bool aq_ibv_rbuf_grow(struct aq_ibv_rail *rail, uint32_t count, char *why, size_t len);
/* Post those that were read again, in one call. */
void aq_ibv_rbuf_repost(struct aq_ibv_rail *rail, struct aq_ibv_rbuf *const *bufs, unsigned count);
/* One is not to be posted again. */
void aq_ibv_rbuf_spare(struct aq_ibv_rail *rail, struct aq_ibv_rbuf *buf);
/* How many the budget has left (GASNET_RBUF_COUNT); a hint. */
uint32_t aq_ibv_rbuf_budget(void);
/* Bytes that buffers take now, for reports and tests. */
uint64_t aq_ibv_rbuf_bytes(void);

#endif
