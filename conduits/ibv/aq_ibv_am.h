/*
 * aq_ibv_am.h - between the files that send active messages: aq_ibv_am.c, aq_ibv_am_long.c.
 *
 * Threads   peer->lock where it says so
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_AM_H
#define AQ_IBV_AM_H

#include "conduits/ibv/aq_ibv.h"
#include "conduits/ibv/aq_ibv_packet.h"
#include "core/aq_am.h"

#define AQ_IBV_HEADROOM \
    96u /* before the payload of a lent buffer: the longest head of one fragment */
#define AQ_IBV_MSG_FRAGS \
    9u /* fragments of a message of AQ_IBV_MAX_MEDIUM bytes with 16 arguments */
#define AQ_IBV_WANT_MAX \
    (AQ_IBV_MSG_FRAGS + 1)     /* credits that a message needs at once, and the one that is kept */
#define AQ_IBV_INLINE_MAX 448u /* bytes that are ever sent inline */

/* Credits that a message of this handler leaves to others: one for firehose's requests, where there
 * are any. A handler may wait until a peer has been told, by such a request, to forget memory. That
 * could never leave if all our credits with the peer were those of messages which wait there for
 * handlers that wait likewise. (A wish for credits may take it: its buffer comes back at once.) */
static inline unsigned aq_ibv_am_reserve(unsigned channel, uint8_t handler)
{
#if GASNET_SEGMENT_EVERYTHING
    return channel == AQ_IBV_REQUEST && handler != AQ_HIDX_FIREHOSE;
#else
    (void)channel, (void)handler; /* no peer aims at memory through firehose */
    return 0;
#endif
}

/* Peer's lock held. Take so many credits, and leave kept; false: there are not as many, none was
 * taken. */
bool aq_ibv_am_claim(struct aq_ibv_peer *peer, unsigned channel, unsigned fragments,
                     unsigned reserve);
/* Peer's lock held, credit claimed: fill in what every head says. */
void aq_ibv_am_head(struct aq_ibv_peer *peer, unsigned channel, struct aq_ibv_head *head);
/* Peer's lock held: news that a head told are under way. */
void aq_ibv_am_advertised(struct aq_ibv_peer *peer, const struct aq_ibv_head *head);
/* Peer's lock held, credit claimed: a fragment of at most AQ_IBV_INLINE_MAX bytes. flags:
 * AQ_IBV_POST_*. */
int aq_ibv_am_post_inline(struct aq_ibv_peer *peer, unsigned channel,
                          struct aq_ibv_fragment *fragment, const void *data, size_t nbytes,
                          unsigned flags);
/* The same without data, behind count requests that are linked by next, the last one writes[count -
 * 1]: one doorbell, all or nothing. flags: AQ_IBV_POST_*. */
int aq_ibv_am_post_behind(struct aq_ibv_peer *peer, unsigned channel,
                          struct aq_ibv_fragment *fragment, struct ibv_send_wr *writes,
                          unsigned count, unsigned flags);
/* Peer's lock held, as many credits claimed: so many fragments of a message from byte from on, each
 * bytes in every one but the message's last, by one doorbell. fragment says what is the same in
 * all. */
int aq_ibv_am_send_frags(struct aq_ibv_peer *peer, unsigned channel,
                         struct aq_ibv_fragment *fragment, const struct aq_am_out *out, size_t from,
                         unsigned count, size_t each);
/* What a fragment of this type says of the message. */
void aq_ibv_am_fill(struct aq_ibv_fragment *fragment, uint8_t type, const struct aq_am_out *out,
                    size_t nbytes);
/* Its payload is in a registered buffer that was lent to the client, and not empty
 * (aq_ibv_zcopy.c). */
bool aq_ibv_zcopy_is_ours(const struct aq_am_out *out);
/* Such a one, from that buffer: peer's lock held, count credits claimed, as aq_ibv_am_send_frags();
 * with AQ_OK it takes the buffer over. */
int aq_ibv_zcopy_send(struct aq_ibv_peer *peer, unsigned channel, struct aq_ibv_fragment *fragment,
                      const struct aq_am_out *out, unsigned count, size_t each);
/* The same for a long one whose destination is registered. */
int aq_ibv_zcopy_long(struct aq_ibv_peer *peer, const struct aq_am_out *out, uint32_t rkey);
/* The writes of a long message's payload, then the message: a credit, one doorbell; AQ_RETRY:
 * nothing left (aq_ibv_am_long.c). */
int aq_ibv_long_post(struct aq_ibv_peer *peer, const struct aq_am_out *out,
                     struct ibv_send_wr *writes, unsigned count, unsigned flags);
/* Medium, or a long message that the receiver places; takes a buffer of the client's over. */
int aq_ibv_am_eager(struct aq_ibv_peer *peer, const struct aq_am_out *out);
/* A long message; takes a buffer of the client's over. */
int aq_ibv_am_long(struct aq_ibv_peer *peer, const struct aq_am_out *out);
/* A long message that the receiver places, of more fragments than are granted at once; takes a
 * buffer of the client's over. */
int aq_ibv_am_stream(struct aq_ibv_peer *peer, const struct aq_am_out *out, size_t each);
/* Credits that were given up: once in a while for each peer. */
void aq_ibv_am_skip(struct aq_ibv_peer *peer);

#endif
