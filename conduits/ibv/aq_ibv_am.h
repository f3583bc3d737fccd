/*
 * aq_ibv_am.h - active messages: send buffers, receiving, sending.
 *
 *     aq_ibv_buf.c       send buffers
 *     aq_ibv_update.c    writes into a peer's cell: credit updates, disconnects
 *     aq_ibv_recv.c      completions in, handlers, receive buffers back
 *     aq_ibv_post.c      fragments out: credits, heads, work requests
 *     aq_ibv_zcopy.c     payloads that the client writes into registered buffers
 *     aq_ibv_am_long.c   long messages: the ways of their payload
 *     aq_ibv_am.c        table entries: the choice between all these
 *
 * Threads   any; peer->flow.lock where it is named
 * Uses      aq_ibv_rma.h, aq_ibv_rbuf.h, core/aq_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_AM_H
#define AQ_IBV_AM_H

#include "conduits/ibv/aq_ibv_rbuf.h"
#include "conduits/ibv/aq_ibv_rma.h"
#include "core/aq_am.h"

/* before the payload of a zcopy send buffer: the longest head of one fragment */
#define AQ_IBV_HEADROOM 96u

/* What the AM part shares, and counts. */
struct aq_ibv_am {
    struct aq_ibv_net *net;
    uint32_t packed_max; /* bytes of a long payload that travel in the message */
    uint32_t window_max; /* credits of a channel that a peer can come to have */
    struct aq_ibv_updates updates;
    aq_counter deferred, credit_requests, skips;
};
extern struct aq_ibv_am aq_ibv_am;

/* Credits that a message of this handler leaves to others: one for firehose's requests, where there
 * are any. A handler may wait until a peer has been told, by such a request, to forget memory. That
 * request could never leave if all credits with the peer belonged to messages which wait there for
 * handlers that wait likewise. (A request for credits may take the last one: its buffer is posted
 * again at once.) */
static inline unsigned aq_ibv_am_reserve(unsigned channel, uint8_t handler)
{
#if GASNET_SEGMENT_EVERYTHING
    return channel == AQ_IBV_REQUEST && handler != AQ_HIDX_FIREHOSE;
#else
    (void)channel, (void)handler; /* no handler waits for firehose: memory of a segment goes only by
                                   * aqueduct_segment_discard(), which no handler calls */
    return 0;
#endif
}

/* --- send buffers (aq_ibv_buf.c) --- */

/* AQ_IBV_BUF bytes, registered. */
struct aq_ibv_buf {
    struct aq_ibv_done done;      /* gives it back */
    struct aq_freelist_item item; /* while it is free */
    struct aq_ibv_buf *chain;     /* given back together with this one */
    uint8_t *bytes;
    struct aq_ibv_bounce *rider; /* given back together with this one, or NULL */
    uint8_t channel;
    bool zcopy;                  /* a client has it and writes a payload into it */
    uint32_t lkey[AQ_IBV_RAILS]; /* by dev->index */
};
void aq_ibv_buf_init(struct aq_ibv_net *net);
/* Free all of them; none is in use. */
void aq_ibv_buf_fini(void);
/* NULL: none now. Requests and replies have buffers of their own. */
struct aq_ibv_buf *aq_ibv_buf_take(unsigned channel);
/* So many, chained: done of the first one gives all back. */
struct aq_ibv_buf *aq_ibv_buf_take_chain(unsigned channel, unsigned count);
/* One for a client, as aq_ibv_zcopy_allowed() says. */
struct aq_ibv_buf *aq_ibv_buf_take_zcopy(unsigned channel);
void aq_ibv_buf_give(struct aq_ibv_buf *buf);

/* --- the peer's cell (aq_ibv_update.c) --- */

/* Write words into the peer's cell, at bytes from its beginning; flags as for aq_ibv_qp_post().
 * False: no space now. */
bool aq_ibv_cell_write(struct aq_ibv_peer *peer, size_t at, const uint64_t *words, size_t nbytes,
                       unsigned flags);
/* struct aq_ibv_updates.write */
bool aq_ibv_update_to_cell(struct aq_ibv_flow *flow, const uint64_t words[AQ_IBV_CELL_WORDS]);

/* --- receiving (aq_ibv_recv.c) --- */

/* Take what arrived, run handlers; returns the number of messages. */
unsigned aq_ibv_receive(bool replies_only);
/* Take what arrived and defer it, without handlers: only its credit updates are used. */
void aq_ibv_receive_quietly(void);
/* Drop the messages that no poll has served. */
void aq_ibv_recv_fini(void);

/* --- fragments out (aq_ibv_post.c); peer->flow.lock held --- */

/* Take so many credits and leave reserve; false: there are too few, none was taken. */
bool aq_ibv_am_claim(struct aq_ibv_peer *peer, unsigned channel, unsigned fragments,
                     unsigned reserve);
/* Credits claimed: fill in what every head says. */
void aq_ibv_am_head(struct aq_ibv_peer *peer, unsigned channel, struct aq_ibv_head *head);
/* The limits in a head are on their way. */
void aq_ibv_am_advertised(struct aq_ibv_peer *peer, const struct aq_ibv_head *head);
/* What a fragment of this type says of the message. No lock. */
void aq_ibv_am_fill(struct aq_ibv_fragment *fragment, uint8_t type, const struct aq_am_out *out,
                    size_t nbytes);
/* Credit claimed: a fragment of at most AQ_IBV_INLINE_MAX bytes. flags: AQ_IBV_POST_*. */
int aq_ibv_am_post_inline(struct aq_ibv_peer *peer, unsigned channel,
                          struct aq_ibv_fragment *fragment, const void *data, size_t nbytes,
                          unsigned flags);
/* Credit claimed: a message in one fragment, copied into a send buffer. */
int aq_ibv_am_post_copied(struct aq_ibv_peer *peer, unsigned channel,
                          struct aq_ibv_fragment *fragment, const struct aq_am_out *out,
                          unsigned flags);
/* count credits claimed: count fragments of a message from byte `from` on, of `each`
 * bytes, with one doorbell. fragment says what is the same in all. */
int aq_ibv_am_post_frags(struct aq_ibv_peer *peer, unsigned channel,
                         struct aq_ibv_fragment *fragment, const struct aq_am_out *out, size_t from,
                         unsigned count, size_t each);
/* Takes the lock and claims the credit: the writes of a long message's payload, then the message,
 * with one doorbell. AQ_RETRY: nothing left. */
int aq_ibv_am_post_placed(struct aq_ibv_peer *peer, const struct aq_am_out *out,
                          struct ibv_send_wr *writes, unsigned count, unsigned flags);
/* Takes the lock; credit claimed before: the message behind a transfer (struct aq_ibv_follow). */
int aq_ibv_am_post_follow(struct aq_ibv_peer *peer, const struct aq_ibv_follow *follow);
/* Takes the lock if it is free: give up credits that were not used for a while. */
void aq_ibv_am_skip(struct aq_ibv_peer *peer);

/* --- the client's buffers (aq_ibv_zcopy.c) --- */

/* Is the payload in a registered buffer that the client was given, and not empty? */
bool aq_ibv_zcopy_is_ours(const struct aq_am_out *out);
/* Send from that buffer: as aq_ibv_am_post_frags(); with AQ_OK it takes the buffer over. */
int aq_ibv_zcopy_send(struct aq_ibv_peer *peer, unsigned channel, struct aq_ibv_fragment *fragment,
                      const struct aq_am_out *out, unsigned count, size_t each);
/* The same for a long message whose destination is registered. */
int aq_ibv_zcopy_long(struct aq_ibv_peer *peer, const struct aq_am_out *out, uint32_t rkey);
/* Table entries. */
int aq_ibv_am_alloc(gex_Rank_t jobrank, bool is_reply, size_t min, size_t max,
                    struct aq_am_buffer *buffer_out);
void aq_ibv_am_free(bool is_reply, const struct aq_am_buffer *buffer);

/* --- long messages (aq_ibv_am_long.c) --- */

/* Beyond GASNET_PACKEDLONG_LIMIT, to registered memory: by RDMA. Takes a client's buffer over. */
int aq_ibv_am_long_rdma(struct aq_ibv_peer *peer, const struct aq_am_out *out, uint32_t rkey);
/* To memory that is not registered, in more fragments than are granted at once: the receiver places
 * them. Takes a client's buffer over. */
int aq_ibv_am_long_stream(struct aq_ibv_peer *peer, const struct aq_am_out *out, size_t each);

/* --- table entries (aq_ibv_am.c) --- */

void aq_ibv_am_init(struct aq_ibv_net *net, uint32_t packed_max, uint32_t window_max);
int aq_ibv_am_send(const struct aq_am_out *out);
int aq_ibv_am_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                    const gex_AM_Arg_t *args);

#endif
