/*
 * aq_udp.h - what the files of the udp conduit share.
 *
 *     aq_udp.c        the table; start, polling, sleeping
 *     aq_udp_end.c    leaving; the end of the job
 *     aq_udp_peer.c   what is kept of a rank; first contact; timers and flushing
 *     aq_udp_am.c     active messages, out and in
 *     aq_udp_rma.c    puts and gets, out and in
 *     aq_udp_recv.c   from the socket to the above
 *     aq_udp_sock.c   the socket: sending, errors; aq_udp_sock_in.c: receiving
 *     aq_udp_addr.c   which address it has
 *     aq_udp_check.c  is a peer lost?
 *     aq_udp_flush.c   the last messages of a batch
 *     aq_udp_auth.c   the keyed hash; aq_udp_inject.c: a bad network; aq_udp_buf.c: buffers
 *     aq_udp_link.[ch], aq_udp_link_in.c, aq_udp_wire.h   the engine and the format
 *
 * Owns      the socket, one struct aq_udp_peer for each remote rank that was ever spoken to,
 *           buffers: until the job ends
 * Threads   any. A peer's lock covers its link and queues for a few instructions and for a send
 *           that does not block; no lock is held while a handler runs
 * Uses      core, other/spawn, SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_UDP_H
#define AQ_UDP_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/aq_conduit.h"
#include "conduits/udp/aq_udp_check.h"
#include "conduits/udp/aq_udp_link.h"
#include "core/aq_job.h"
#include "base/aq_lock.h"

struct aq_op;
struct aq_udp_deferred;

#define AQ_UDP_MAX_MEDIUM 65000u  /* bytes */
#define AQ_UDP_MAX_LONG   131072u /* bytes: 121 datagrams of the least size with 16 arguments */
#define AQ_UDP_MIN_WINDOW 128u    /* datagrams: they fit */
#define AQ_UDP_MIN_MTU \
    1232u               /* bytes of a datagram that passes everywhere: IPv6's 1280 less heads */
#define AQ_UDP_GETS 64u /* gets that a rank may have under way at one other */
#define AQ_UDP_KEY  32  /* bytes: 16 for heads, 16 for data */

/* --- what a rank tells the others about itself --- */

struct aq_udp_modex {
    uint8_t family; /* 4 or 6 */
    uint8_t unused;
    uint8_t port[2];     /* network order */
    uint8_t address[16]; /* the first 4 or all */
    uint8_t mtu[2];      /* bytes of a datagram on its interface, network order */
};

union aq_udp_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* --- transfers --- */

enum aq_udp_xfer_type { AQ_UDP_X_PUT, AQ_UDP_X_GET, AQ_UDP_X_DATA };

/* A put that reads the client's memory, a get that waits for its turn, or data that a peer wants.
 * */
struct aq_udp_xfer {
    struct aq_udp_xfer *next;
    uint8_t type;
    bool counts_lc;      /* PUT: the op's local completion is counted too */
    bool is_callers;     /* PUT: in the frame of somebody who waits for done */
    uint32_t id;         /* DATA: the peer's */
    uint32_t unacked;    /* datagrams under way */
    uint8_t *copy;       /* PUT: what here is in, if it is ours */
    char *local;         /* PUT, DATA: read from; GET: written to */
    uint64_t remote;     /* PUT: written to; GET: read from */
    uint64_t at, nbytes; /* so far queued, in all */
    struct aq_op *op;
    atomic_bool done;
};

struct aq_udp_queue {
    struct aq_udp_xfer *first, **last;
    uint32_t length;
};

struct aq_udp_get {
    struct aq_op *op;
    char *dest;
    uint64_t nbytes, got;
    uint32_t id; /* slot | turn << 8 */
    bool used;
};

/* --- a message that comes in parts --- */

struct aq_udp_frag {
    struct aq_udp_frag *next;
    uint32_t message, total, got;
    uint8_t type;
    char *payload;
};

/* --- a remote rank --- */

struct aq_udp_peer {
    _Alignas(AQ_CACHE_LINE) aq_lock lock;
    gex_Rank_t rank;
    struct aq_udp_link link;
    union aq_udp_address address;
    socklen_t address_len;
    uint8_t key_out[AQ_UDP_KEY], key_in[AQ_UDP_KEY];

    uint64_t missed_ns;  /* a thread waits for it although it has left, since then; 0: none */
    uint32_t mtu_goal;   /* bytes of a datagram that both interfaces take */
    uint8_t mtu_tries;   /* padded datagrams of this size that were lost */
    bool mtu_asked;      /* one is on its way */
    int fd;              /* connected, only for sending; 0: none yet, -1: there will be none */
    uint32_t fd_wait;    /* sends without it */
    uint64_t touched_ns; /* when something was last queued by a client's call */
    uint32_t run;        /* how many such calls have followed each other at a stroke */
    uint32_t message[2]; /* [channel]: numbers of messages sent in parts */
    struct aq_udp_frag *frags[2];   /* [channel] */
    struct aq_udp_queue own, serve; /* puts and gets; data for the peer */
    struct aq_udp_get *gets;        /* [AQ_UDP_GETS], made at the first */
    uint32_t get_seq, gets_used;
    uint32_t deferred;         /* datagrams deferred because only replies were served */
    uint64_t sent, handled;    /* messages; handled: acknowledged */
    struct aq_udp_check check; /* is it lost? */

    bool dirty; /* in the list of those to be flushed */
    struct aq_udp_peer *next_dirty;
    struct aq_udp_peer *next_active; /* all peers there are; constant */
};

/* --- the process --- */

struct aq_udp_counters {
    aq_counter datagrams_in, bytes_in, unauthenticated, bad_hash, malformed, deferred, refused,
        errors, too_big;
    aq_counter sends, receives; /* system calls that moved something */
};

struct aq_udp {
    int fd;     /* -1: all ranks are local */
    bool alone; /* no remote ranks */
    bool gso, gro, hash_all, coalesce, inject;
    bool rx_batches;        /* receive calls take batches (aq_udp_sock_in.c) */
    uint32_t rx_singles;    /* what they are judged by */
    uint32_t mtu;           /* bytes of a datagram on our interface */
    bool mtu_named;         /* by GASNET_UDP_MTU */
    uint32_t rx_space;      /* bytes of messages that fit the socket's receive buffer */
    uint64_t lost_after_ns; /* 0: silence alone is no reason */
    union aq_udp_address self;
    char self_text[64];
    struct aq_udp_link_config config;
    struct aq_udp_peer *_Atomic *peers; /* [job size] */
    struct aq_udp_peer *_Atomic active;
    uint32_t peer_count;
    aq_lock make_lock;
    atomic_uint_fast64_t deadline; /* the first of all links'; ns */

    aq_lock dirty_lock;
    struct aq_udp_peer *_Atomic dirty;
    atomic_uint_fast64_t send_batch;          /* see aq_udp_poll() */
    struct aq_udp_deferred *_Atomic deferred; /* requests for the next poll that serves them */
    struct aq_udp_counters counts;
};
extern struct aq_udp aq_udp;

/* --- the end (aq_udp_end.c) --- */

/* One round of what keeps the other side going, without handlers; leaving: peers that are gone
 * count for nothing. True: all is acknowledged. */
bool aq_udp_drain_once(bool leaving);
void aq_udp_exit(uint64_t max_ns);
void aq_udp_fini(void);

/* --- peers (aq_udp_peer.c) --- */

/* The peer, made if need be. Ends the job if its address cannot be had. */
struct aq_udp_peer *aq_udp_peer_make(gex_Rank_t rank);

static inline struct aq_udp_peer *aq_udp_peer_look(gex_Rank_t rank)
{
    /* acquire: pairs with the release in aq_udp_peer_make() */
    return atomic_load_explicit(&aq_udp.peers[rank], memory_order_acquire);
}

/** aq_udp_wait_look - a thread waits for rank, or GEX_RANK_INVALID: ends the job if that rank has
 * left. */
void aq_udp_wait_look(gex_Rank_t rank);

static inline struct aq_udp_peer *aq_udp_peer(gex_Rank_t rank)
{
    struct aq_udp_peer *peer = aq_udp_peer_look(rank);

    return AQ_LIKELY(peer != NULL) ? peer : aq_udp_peer_make(rank);
}

/* Lock held: room for a frame of size bytes in the channel's open datagram, or in one of its own;
 * *tx_out is the datagram's record, whose head now ends with the frame. NULL: no slot. */
uint8_t *aq_udp_peer_reserve(struct aq_udp_peer *peer, enum aq_udp_channel channel, size_t size,
                             struct aq_udp_tx **tx_out);
/* Lock held: send what may be sent; feeds the RMA channel first. */
void aq_udp_peer_pump(struct aq_udp_peer *peer, uint64_t now_ns);
/* Lock held: the peer has something that must leave at the end of this poll at the latest. */
void aq_udp_peer_mark(struct aq_udp_peer *peer);
/* Lock held: something was queued by a client's call: send it, or, in a batch, let more join. */
void aq_udp_peer_queued(struct aq_udp_peer *peer, bool may_wait, uint64_t now_ns);
/* Lock held: a message has begun to wait to be coalesced (aq_udp_flush.c). */
void aq_udp_flush_timer_note(void);
/* The job has ended: end the thread. */
void aq_udp_flush_timer_fini(void);
/* The job has ended: free all peers and what they keep. */
void aq_udp_peers_fini(void);
/* Send what marked peers have, open datagrams included. */
void aq_udp_flush(uint64_t now_ns);
/* Serve timers that are due. */
void aq_udp_timers(uint64_t now_ns);
/* Send every acknowledgement that is owed: nobody may poll for a while. */
void aq_udp_flush_acks(uint64_t now_ns);
/* The network says that nobody listens at an address, or that it cannot be reached.
 * quoted: the hash of the datagram that it quotes, 0: none. Any context. */
void aq_udp_peer_note(const union aq_udp_address *address, enum aq_udp_note note, uint64_t quoted);
/* Lock held: did the network turn back a probe of the running check? Sends probes when due. */
bool aq_udp_peer_is_refused(struct aq_udp_peer *peer, uint64_t now_ns);
/* Lock held: a datagram of len bytes is too long for the path. */
void aq_udp_peer_narrow(struct aq_udp_peer *peer, size_t len);
/* Has it the same address as this rank? */
bool aq_udp_peer_is_same_host(const struct aq_udp_peer *peer);
/* "10.0.0.2:4711" */
const char *aq_udp_address_text(const union aq_udp_address *address, char *buf, size_t size);

static inline void aq_udp_note_deadline(uint64_t deadline)
{
    uint64_t first = atomic_load_explicit(&aq_udp.deadline, memory_order_relaxed);

#if AQ_THREADED
    /* relaxed: whoever looks too early looks again */
    while (deadline < first
           && !atomic_compare_exchange_weak_explicit(&aq_udp.deadline, &first, deadline,
                                                     memory_order_relaxed, memory_order_relaxed))
        continue;
#else
    if (deadline < first)
        atomic_store_explicit(&aq_udp.deadline, deadline, memory_order_relaxed);
#endif
}

/* --- active messages (aq_udp_am.c) --- */

int aq_udp_am_send(const struct aq_am_out *out);
int aq_udp_am_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                    const gex_AM_Arg_t *args);
/* Run the handlers of a datagram of channels REQUEST and REPLY that was taken over. Returns how
 * many. */
unsigned aq_udp_am_receive(struct aq_udp_peer *peer, const struct aq_udp_header *header,
                           uint8_t *datagram, size_t len);

/* --- transfers (aq_udp_rma.c) --- */

int aq_udp_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags);
int aq_udp_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags);
/* Lock held: queue datagrams of transfers that wait, as far as there are slots. */
void aq_udp_rma_feed(struct aq_udp_peer *peer);
/* Deal with a datagram of the RMA channel that was taken over. Returns how much of it waiters may
 * wait for. */
unsigned aq_udp_rma_receive(struct aq_udp_peer *peer, const struct aq_udp_header *header,
                            const uint8_t *datagram, size_t len);
/* Lock held: a datagram of the RMA channel is acknowledged. */
void aq_udp_rma_acked(struct aq_udp_peer *peer, struct aq_udp_tx *tx);

/* --- receiving (aq_udp_recv.c) --- */

/* Take what the socket has, once. Returns how many messages and transfers were dealt with; if that
 * is not 0, the clock has been read into *now_ns_out. */
unsigned aq_udp_receive(bool replies_only, uint64_t *now_ns_out);
/* Requests that were deferred while only replies were served. */
unsigned aq_udp_serve_deferred(void);
/* The same as aq_udp_receive(), but nothing is handed over: only acknowledgements count. */
void aq_udp_receive_acks(uint64_t now_ns);
/* The job has ended: free what is kept of what has come. */
void aq_udp_recv_fini(void);

/* --- the socket (aq_udp_sock.c, aq_udp_addr.c) --- */

/* Open and bind it, learn what it can do. AQ_OK or negative, logged. */
int aq_udp_sock_open(void);
void aq_udp_sock_close(void);
/* Which of this host's addresses to use, and its interface's MTU. AQ_OK or negative, logged. */
int aq_udp_addr_choose(union aq_udp_address *address_out, uint32_t *mtu_out);
/* Decide how datagrams are received; wanted: by UDP_GRO, if the kernel has it. */
void aq_udp_sock_receive_init(bool wanted);
/* A call on a socket of ours has failed. Ends the job if the descriptor is no socket any more: that
 * is not the network's fault, and no peer would ever hear of this rank again. */
void aq_udp_sock_look_closed(int fd, int error);
#define AQ_UDP_ERROR_RETRIES \
    4 /* errors of the past that a call may report before it does its work */
/* Read what the network says of what was sent by a socket. Returns how many notes there were. */
unsigned aq_udp_sock_notes(int fd);
/* Send a batch whose hashes are in place. Returns how many it took. */
unsigned aq_udp_sock_send(struct aq_udp_peer *peer, const struct aq_udp_packet *packets,
                          unsigned count);
#define AQ_UDP_RX_BYTES 65536
#define AQ_UDP_RX_BATCH 128u /* datagrams of a batch: UDP_SEGMENT's own limit */
struct aq_udp_rx_batch {
    uint8_t *buffer;    /* the caller's, AQ_UDP_RX_BYTES */
    size_t bytes, each; /* in all; from one datagram's begin to the next */
    unsigned count;
    uint32_t len[AQ_UDP_RX_BATCH];
};
/* What one call takes from the socket. False: there was nothing. */
bool aq_udp_sock_receive(struct aq_udp_rx_batch *batch);

static inline socklen_t aq_udp_address_len(const union aq_udp_address *address)
{
    return address->any.sa_family == AF_INET ? sizeof(address->v4) : sizeof(address->v6);
}

/* --- hashes (aq_udp_auth.c) --- */

int aq_udp_auth_init(void);
/* The key of datagrams from one rank to another. */
void aq_udp_auth_key(gex_Rank_t from, gex_Rank_t to, uint8_t key_out[AQ_UDP_KEY]);
/* Put the hash into a head; piece is what follows. */
void aq_udp_auth_sign(const uint8_t *key, const struct aq_udp_packet *packet);
/* Is the hash of a datagram right? above: aq_udp_above() */
bool aq_udp_auth_check(const uint8_t *key, uint8_t *datagram, size_t len,
                       const struct aq_udp_header *header, uint64_t above);

/* --- a bad network (aq_udp_inject.c) --- */

/* Read AQ_UDP_FAULTS; sets aq_udp.faults. */
void aq_udp_inject_init(void);
/* Send a batch, or not, or twice, later, or with an error in it. Returns how many it took: all. */
unsigned aq_udp_inject_send(struct aq_udp_peer *peer, const struct aq_udp_packet *packets,
                            unsigned count);
/* Send what was delayed and is due. */
void aq_udp_inject_timer(uint64_t now_ns);
/* The job has ended: forget what was delayed. */
void aq_udp_inject_fini(void);

/* --- buffers (aq_udp_buf.c): aligned to 16 bytes --- */

uint8_t *aq_udp_buf_take(size_t size);
size_t aq_udp_buf_size(const uint8_t *buf);
void aq_udp_buf_give(uint8_t *buf);
/* The job has ended: free those that nobody has. */
void aq_udp_buf_fini(void);

#endif
