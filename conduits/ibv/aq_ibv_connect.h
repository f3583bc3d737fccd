/*
 * aq_ibv_connect.h - connections on demand: the connector, and its datagrams.
 *
 * A rank that first sends to another asks for a connection and polls until it is there. The
 * connector, a thread of each process that sleeps in the kernel, exchanges datagrams with the
 * peer's connector (aq_ibv_hello.h), whatever the programs are doing. The connector also reads the
 * devices' events and reports failures (aq_ibv_error.h).
 *
 * Threads   aq_ibv_peer(): any; aq_ibv_dgram_*(): the connector, once the queue is open
 * Uses      aq_ibv_peer.h, other/spawn for the addresses. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_CONNECT_H
#define AQ_IBV_CONNECT_H

#include "conduits/ibv/aq_ibv_peer.h"

/* --- datagrams (aq_ibv_dgram.c) --- */

/* Open the queue on the first rail; addr_out is what peers need to know. AQ_OK or negative, logged.
 */
int aq_ibv_dgram_open(struct aq_ibv_net *net, struct aq_ibv_address *addr_out);
/* Close the queue, and forget the addresses of all peers; the connector has ended. */
void aq_ibv_dgram_close(void);
/* Is there a free send slot? If not, a completion frees one. */
bool aq_ibv_dgram_has_slot(void);
/* Find a peer's address, which may take time; false: there is no route now. Without a lock. */
bool aq_ibv_dgram_find(struct aq_ibv_peer *peer);
/* Send a packet to a peer whose address is known; false: not now. */
bool aq_ibv_dgram_send(struct aq_ibv_peer *peer, const uint8_t *packet, size_t len);
/* The next packet that arrived, or NULL; its buffer is given back by aq_ibv_dgram_done(). */
const uint8_t *aq_ibv_dgram_receive(size_t *len_out);
void aq_ibv_dgram_done(const uint8_t *packet);
/* The descriptor that becomes readable when packets arrive; arm it before a last look. */
int aq_ibv_dgram_fd(void);
void aq_ibv_dgram_arm(void);
/* Frees the peer's address handle, unless a datagram under way needs it. The next datagram to the
 * peer makes a new one. */
void aq_ibv_dgram_forget(struct aq_ibv_peer *peer);

struct aq_ibv_dgram_counts {
    aq_counter sent, received, refused;
};
extern struct aq_ibv_dgram_counts aq_ibv_dgram_counts;

/* --- the connector (aq_ibv_connect.c) --- */

/* Open the datagram queue, publish its address, start the connector. AQ_OK or negative, logged. */
int aq_ibv_connect_start(struct aq_ibv_net *net);
/* Nobody connects any more: the connector ends soon. */
void aq_ibv_connect_stop(void);
/* After aq_ibv_connect_stop(), while no peer sends: wait for the connector, close its queue. */
void aq_ibv_connect_fini(void);

/* The peer if it can be used now. Else NULL: the connector connects it, and the caller polls. */
struct aq_ibv_peer *aq_ibv_peer_connect(gex_Rank_t rank);
static inline struct aq_ibv_peer *aq_ibv_peer(gex_Rank_t rank)
{
    struct aq_ibv_peer *peer = aq_ibv_peer_look(rank);

    if (AQ_LIKELY(peer != NULL && aq_ibv_peer_is_ready(peer)))
        return peer;
    return aq_ibv_peer_connect(rank);
}

#endif
