/*
 * aq_ibv_peer.h - the state of a remote rank, from the first message to it or from it.
 *
 * A rank without messages costs one pointer. A peer has queue pairs (one for each rail, or as
 * many as GASNET_NUM_QPS says), receive buffers, credits, and a cell: registered memory where the
 * peer writes credit updates.
 *
 * Owns      the peers and their cells, until aq_ibv_peers_fini()
 * Threads   making, opening and joining: under connect_lock, by a client thread or the connector. A
 *           client thread may use a peer once it is ready
 * Uses      aq_ibv_qp.h, aq_ibv_credit.h, aq_ibv_rbuf.h, aq_ibv_hello.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_PEER_H
#define AQ_IBV_PEER_H

#include <pthread.h>

#include "conduits/ibv/aq_ibv_credit.h"
#include "conduits/ibv/aq_ibv_error.h"
#include "conduits/ibv/aq_ibv_frag.h"
#include "conduits/ibv/aq_ibv_hello.h"
#include "conduits/ibv/aq_ibv_qp.h"

struct aq_ibv_peer {
    struct aq_ibv_remote remote; /* rank, host name, disconnected */
    atomic_int ready;            /* 1: the queue pairs can be used */
    atomic_int asked;            /* 1: this rank wants to send to the peer */
    uint32_t rails;              /* in use with this peer: as many as both sides have */
    uint32_t qp_count;
    struct aq_ibv_qp *qps[AQ_IBV_QPS]; /* qps[i] is on rail i % rails; messages use qps[0] */

    struct aq_ibv_flow flow; /* see aq_ibv_credit.h */
    uint64_t cell_addr;      /* of this rank's cell at the peer */
    uint32_t cell_rkey;
    bool disconnect_sent; /* this rank's disconnect was written there; the exiting thread's */
    struct aq_ibv_reasm *reasm[AQ_IBV_CHANNELS]; /* open messages; under the rail's recv_lock */

    /* the handshake; under connect_lock */
    struct aq_ibv_hello hello;
    bool warned; /* that the peer does not answer */

    /* the connector's */
    struct ibv_ah *ah; /* address of its datagrams; NULL: not known now */
    uint32_t ah_qpn, ah_qkey;
    bool sought;                     /* without success, in this round */
    bool no_way;                     /* a warning said so */
    struct aq_ibv_peer *next_active; /* list of all peers; constant */
};

/* The peers of the process. */
struct aq_ibv_peers {
    struct aq_ibv_net *net;
    uint32_t qps_wanted; /* queue pairs with each peer */
    bool fence_puts;     /* puts on other rails than that of messages are fenced */
    struct aq_ibv_qp_config qp;
    struct aq_ibv_peer *_Atomic *table; /* [job size] by rank */
    struct aq_ibv_peer *_Atomic active; /* list of all peers */
    pthread_mutex_t connect_lock;
    uint32_t count;
    aq_counter connects;
};
extern struct aq_ibv_peers aq_ibv_peers;

/* The peer, or NULL: no message has been exchanged with it. */
static inline struct aq_ibv_peer *aq_ibv_peer_look(gex_Rank_t rank)
{
    /* acquire: pairs with the release in aq_ibv_peer_make() */
    return atomic_load_explicit(&aq_ibv_peers.table[rank], memory_order_acquire);
}

static inline bool aq_ibv_peer_is_ready(const struct aq_ibv_peer *peer)
{
    /* acquire: pairs with the release in aq_ibv_connect.c; all of the peer is visible */
    return atomic_load_explicit(&((struct aq_ibv_peer *)(uintptr_t)peer)->ready,
                                memory_order_acquire)
           != 0;
}

static inline struct aq_ibv_peer *aq_ibv_peer_first(void)
{
    /* acquire: pairs with the release in aq_ibv_peer_make() */
    return atomic_load_explicit(&aq_ibv_peers.active, memory_order_acquire);
}

/* The queue pair of messages. */
static inline struct aq_ibv_qp *aq_ibv_peer_am_qp(const struct aq_ibv_peer *peer)
{
    return peer->qps[0];
}

static inline bool aq_ibv_peer_disconnected(const struct aq_ibv_peer *peer)
{
    return aq_ibv_remote_disconnected(&peer->remote);
}

static inline struct aq_ibv_peer *aq_ibv_peer_of_flow(struct aq_ibv_flow *flow)
{
    return (struct aq_ibv_peer *)(void *)((char *)flow - offsetof(struct aq_ibv_peer, flow));
}

/* Memory for the table. AQ_OK or negative, logged. */
int aq_ibv_peers_init(struct aq_ibv_net *net, const struct aq_ibv_qp_config *qp,
                      uint32_t qps_wanted, bool fence_puts);
/* Destroy the queue pairs with all peers, and free the peers; the connector has ended. */
void aq_ibv_peers_fini(void);
/* connect_lock held: the peer, made if there is none. */
struct aq_ibv_peer *aq_ibv_peer_make(gex_Rank_t rank);
/* connect_lock held: create its queue pairs and post the receive buffers that it may fill; what it
 * is told goes into hello.local. */
void aq_ibv_peer_open(struct aq_ibv_peer *peer);
/* connect_lock held: what the peer told is in hello.remote; from now on its messages are received.
 */
void aq_ibv_peer_join(struct aq_ibv_peer *peer);

#endif
