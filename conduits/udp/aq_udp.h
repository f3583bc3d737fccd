/*
 * aq_udp.h - what the files of the udp conduit share.
 *
 *     aq_udp.c        the conduit table; start-up, polling, waiting
 *     aq_udp_end.c    shutdown; the end of the job
 *     aq_udp_peer.c   state of a remote rank; first contact; timers and flushing; lost peers
 *     aq_udp_am.c     active messages, sent and received
 *     aq_udp_rma.c    puts and gets, sent and received
 *     aq_udp_recv.c   receive path: from the socket to the two above
 *     aq_udp_sock.c   the socket: opening, sending, errors; aq_udp_sock_in.c: receiving
 *     aq_udp_addr.c   choice of the socket's address
 *     aq_udp_check.c  detection of lost peers
 *     aq_udp_flush.c   the flush timer of coalesced messages
 *     aq_udp_auth.c   the keyed hash; aq_udp_inject.c: fault injection; aq_udp_buf.c: buffers
 *     aq_udp_link.[ch], aq_udp_link_in.c, aq_udp_wire.h   the reliable engine and the wire format
 *
 * Owns      until the job ends: the socket; one struct aq_udp_peer for each remote rank that this
 *           rank has exchanged datagrams with; buffers
 * Threads   any. A peer's lock covers its link and queues for a few instructions and for one send
 *           call that does not block. No lock is held while a handler runs
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
#include "core/aq_fragment.h"
#include "conduits/udp/aq_udp_check.h"
#include "conduits/udp/aq_udp_link.h"
#include "core/aq_job.h"
#include "base/aq_lock.h"

struct aq_op;
struct aq_udp_deferred;

#define AQ_UDP_MAX_MEDIUM 65000u  /* bytes */
#define AQ_UDP_MAX_LONG   131072u /* bytes: 121 datagrams of the smallest size, with 16 arguments */
#define AQ_UDP_MIN_WINDOW 128u    /* datagrams: enough for a message of AQ_UDP_MAX_LONG */
#define AQ_UDP_MIN_MTU \
    1232u               /* bytes of a datagram that every path carries: 1280 of IPv6 without
                         * headers */
#define AQ_UDP_GETS 64u /* outstanding get requests to one peer */
#define AQ_UDP_KEY  32  /* bytes: 16 for the hash of heads, 16 for the hash of data */

/* --- what a rank publishes in the modex --- */

struct aq_udp_modex {
    uint8_t family; /* 4 or 6 */
    uint8_t unused;
    uint8_t port[2];     /* network order */
    uint8_t address[16]; /* the first 4 or all */
    uint8_t mtu[2];      /* largest datagram of its interface, bytes, network order */
};

union aq_udp_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* --- transfers --- */

enum aq_udp_xfer_type { AQ_UDP_X_PUT, AQ_UDP_X_GET, AQ_UDP_X_DATA };

/* A transfer in a queue: a put that reads the client's memory, a get that waits to be requested, or
 * data that a peer has requested. */
struct aq_udp_xfer {
    struct aq_udp_xfer *next;
    uint8_t type;
    bool counts_lc;      /* PUT: the op's local completion is counted too */
    bool is_callers;     /* PUT: lies in the frame of a caller that waits for done */
    uint32_t id;         /* DATA: the number that the peer's request carries */
    uint32_t unacked;    /* unacknowledged datagrams */
    uint8_t *copy;       /* PUT: the buffer that holds the data, if it was copied */
    char *local;         /* PUT, DATA: source; GET: destination */
    uint64_t remote;     /* PUT: destination; GET: source */
    uint64_t at, nbytes; /* bytes queued so far; bytes in all */
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
    uint32_t id; /* slot, and the slot's generation << 8 */
    bool used;
};

/* --- a fragmented message --- */

struct aq_udp_frag {
    struct aq_udp_frag *next;
    struct aq_reassembly base; /* a medium payload is in a buffer, a long one at its destination */
    uint32_t message;
};

/* --- a remote rank --- */

struct aq_udp_peer {
    _Alignas(AQ_CACHE_LINE) aq_lock lock;
    gex_Rank_t rank;
    struct aq_udp_link link;
    union aq_udp_address address;
    socklen_t address_len;
    uint8_t key_out[AQ_UDP_KEY], key_in[AQ_UDP_KEY];

    /* since when a thread waits for this rank after its disconnect; 0: no thread waits */
    uint64_t missed_ns;
    uint32_t mtu_goal;   /* largest datagram that both interfaces take, bytes */
    uint8_t mtu_tries;   /* lost padded datagrams of this size */
    bool mtu_asked;      /* a padded datagram is on its way */
    int fd;              /* connected, only for sending; 0: not made yet, -1: none will be made */
    uint32_t fd_wait;    /* sends through the common socket so far */
    uint64_t touched_ns; /* when a client's call last queued something */
    uint32_t run;        /* calls that have followed each other within AQ_TOGETHER_NS */
    uint32_t message[2]; /* [channel]: numbers of fragmented messages */
    struct aq_udp_frag *frags[2];   /* [channel] */
    struct aq_udp_queue own, serve; /* own puts and gets; data that the peer has requested */
    struct aq_udp_get *gets;        /* [AQ_UDP_GETS], allocated by the first get */
    uint32_t get_seq, gets_used;
    uint32_t deferred;         /* datagrams deferred while only replies were served */
    uint64_t sent, handled;    /* messages sent; messages sent and acknowledged */
    struct aq_udp_check check; /* state of the lost-peer check */

    bool dirty; /* in the list of peers to be flushed */
    struct aq_udp_peer *next_dirty;
    struct aq_udp_peer *next_active; /* next in the list of all peers; constant */
};

/* --- the process --- */

struct aq_udp_counters {
    aq_counter datagrams_in, bytes_in, unauthenticated, bad_hash, malformed, deferred, refused,
        errors, too_big;
    aq_counter sends, receives; /* system calls that sent or received something */
};

struct aq_udp {
    int fd;     /* -1: there are no remote ranks */
    bool alone; /* there are no remote ranks */
    bool gso, gro, hash_all, coalesce, inject;
    bool rx_batches;        /* receive calls take batches (aq_udp_sock_in.c) */
    uint32_t rx_singles;    /* receive calls since the last batch */
    uint32_t mtu;           /* largest datagram of this rank's interface, bytes */
    bool mtu_named;         /* set by GASNET_UDP_MTU */
    uint32_t rx_space;      /* bytes of messages that fit the socket's receive buffer */
    uint64_t lost_after_ns; /* GASNET_REQUESTTIMEOUT_MAX; 0: silence alone never loses a peer */
    union aq_udp_address self;
    char self_text[64];
    struct aq_udp_link_config config;
    struct aq_udp_peer *_Atomic *peers; /* [job size] */
    struct aq_udp_peer *_Atomic active;
    uint32_t peer_count;
    aq_lock make_lock;
    atomic_uint_fast64_t deadline; /* earliest deadline of all links, ns */
    atomic_bool sleeps_long;       /* a thread sleeps for longer than AQ_UDP_LONG_SLEEP_NS */

    aq_lock dirty_lock;
    struct aq_udp_peer *_Atomic dirty;
    atomic_uint_fast64_t send_batch;          /* see aq_udp_poll() */
    struct aq_udp_deferred *_Atomic deferred; /* requests for the next poll that serves them */
    struct aq_udp_counters counts;
};
extern struct aq_udp aq_udp;

/* --- the end (aq_udp_end.c) --- */

/* One round of what keeps the other side going, without handlers; leaving: peers that have
 * disconnected count for nothing. True: all is acknowledged. */
bool aq_udp_drain_once(bool leaving);
void aq_udp_exit(uint64_t max_ns);
void aq_udp_fini(void);

/* --- peers (aq_udp_peer.c) --- */

/* Returns the peer, and makes it at the first call. Ends the job if the peer's address cannot be
 * found in the modex. */
struct aq_udp_peer *aq_udp_peer_make(gex_Rank_t rank);

static inline struct aq_udp_peer *aq_udp_peer_look(gex_Rank_t rank)
{
    /* acquire: pairs with the release in aq_udp_peer_make() */
    return atomic_load_explicit(&aq_udp.peers[rank], memory_order_acquire);
}

/** aq_udp_wait_look - a client thread waits for rank, or for any if GEX_RANK_INVALID. Ends the job
 * if that rank has left. */
void aq_udp_wait_look(gex_Rank_t rank);

static inline struct aq_udp_peer *aq_udp_peer(gex_Rank_t rank)
{
    struct aq_udp_peer *peer = aq_udp_peer_look(rank);

    return AQ_LIKELY(peer != NULL) ? peer : aq_udp_peer_make(rank);
}

/* Lock held: reserves size bytes for a frame in the channel's open datagram, or in a new one.
 * *tx_out is the datagram's record, whose head then ends with the frame. Returns NULL if the
 * channel has no free slot. */
uint8_t *aq_udp_peer_reserve(struct aq_udp_peer *peer, enum aq_udp_channel channel, size_t size,
                             struct aq_udp_tx **tx_out);
/* Lock held: sends what the windows admit, after queueing waiting transfers on the RMA channel. */
void aq_udp_peer_pump(struct aq_udp_peer *peer, uint64_t now_ns);
/* Lock held: the peer has something that must leave by the end of this poll. */
void aq_udp_peer_mark(struct aq_udp_peer *peer);
/* May what a client's call has queued wait for more? */
enum aq_udp_delay {
    AQ_UDP_NO_DELAY,
    AQ_UDP_DELAY_PUT,    /* no poll follows: some of many take the others along */
    AQ_UDP_DELAY_MESSAGE /* the call ends with an AQ_POLL_OF_SEND, which counts them */
};
/* Lock held: a client's call has queued something. Sends it, or lets more join it. */
void aq_udp_peer_queued(struct aq_udp_peer *peer, enum aq_udp_delay delay, uint64_t now_ns);
/* Lock held: a message has begun to wait for coalescing (aq_udp_flush.c). */
void aq_udp_flush_timer_note(void);
/* Ends the thread, at the end of the job. */
void aq_udp_flush_timer_fini(void);
/* Frees all peers and their buffers, at the end of the job. */
void aq_udp_peers_fini(void);
/* Sends what marked peers have queued, open datagrams included. */
void aq_udp_flush(uint64_t now_ns);
/* Serves the timers that are due. */
void aq_udp_timers(uint64_t now_ns);
/* Sends every acknowledgement that is pending: this rank may not poll for a while. */
void aq_udp_flush_acks(uint64_t now_ns);
/* Records that the network reports an address as unreachable or its port as closed. quoted is the
 * hash of the datagram that the report quotes, or 0. Any context. */
void aq_udp_peer_note(const union aq_udp_address *address, enum aq_udp_note note, uint64_t quoted);
/* Lock held: returns true if the network has refused a probe of the running check. Sends probes
 * when due. */
bool aq_udp_peer_is_refused(struct aq_udp_peer *peer, uint64_t now_ns);
/* Lock held: a datagram of len bytes was too long for the path; the peer's datagram size steps
 * down. */
void aq_udp_peer_narrow(struct aq_udp_peer *peer, size_t len);
/* Returns true if the peer has the same address as this rank. */
bool aq_udp_peer_is_same_host(const struct aq_udp_peer *peer);
/* Formats an address as "10.0.0.2:4711". */
const char *aq_udp_address_text(const union aq_udp_address *address, char *buf, size_t size);

/* The earliest deadline has become much earlier: wakes a thread that sleeps for long. */
void aq_udp_wake_long_sleeper(void);

/* A sleep that is no longer may end late, after a deadline that is set meanwhile. */
#define AQ_UDP_LONG_SLEEP_NS UINT64_C(1000000000)

static inline void aq_udp_note_deadline(uint64_t deadline)
{
    uint64_t first = atomic_load_explicit(&aq_udp.deadline, memory_order_relaxed);

#if AQ_THREADED
    /* relaxed: a thread that reads the old value only polls its timers too early */
    while (deadline < first
           && !atomic_compare_exchange_weak_explicit(&aq_udp.deadline, &first, deadline,
                                                     memory_order_relaxed, memory_order_relaxed))
        continue;
#else
    if (deadline < first)
        atomic_store_explicit(&aq_udp.deadline, deadline, memory_order_relaxed);
#endif
    if (AQ_UNLIKELY(first > deadline && first - deadline > AQ_UDP_LONG_SLEEP_NS))
        aq_udp_wake_long_sleeper();
}

/* --- active messages (aq_udp_am.c) --- */

int aq_udp_am_send(const struct aq_am_out *out);
int aq_udp_am_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                    const gex_AM_Arg_t *args);
/* Runs the handlers of a new datagram of channel REQUEST or REPLY. Returns how many ran. */
unsigned aq_udp_am_receive(struct aq_udp_peer *peer, const struct aq_udp_header *header,
                           uint8_t *datagram, size_t len);

/* --- transfers (aq_udp_rma.c) --- */

int aq_udp_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags);
int aq_udp_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags);
/* Lock held: queues datagrams of waiting transfers while the channel has free slots. */
void aq_udp_rma_feed(struct aq_udp_peer *peer);
/* Processes a new datagram of the RMA channel. Returns how many events a waiting client thread may
 * see from it. */
unsigned aq_udp_rma_receive(struct aq_udp_peer *peer, const struct aq_udp_header *header,
                            const uint8_t *datagram, size_t len);
/* Lock held: a datagram of the RMA channel is acknowledged. */
void aq_udp_rma_acked(struct aq_udp_peer *peer, struct aq_udp_tx *tx);

/* --- receiving (aq_udp_recv.c) --- */

/* Receives once from the socket. Returns how many messages and transfers were processed. If that is
 * not 0, *now_ns_out is the time. */
unsigned aq_udp_receive(bool replies_only, uint64_t *now_ns_out);
/* Runs requests that were deferred while only replies were served. Returns how many handlers
 * ran. */
unsigned aq_udp_serve_deferred(void);
/* Like aq_udp_receive(), but processes acknowledgements only. */
void aq_udp_receive_acks(uint64_t now_ns);
/* Frees stored messages and receive buffers, at the end of the job. */
void aq_udp_recv_fini(void);

/* --- the socket (aq_udp_sock.c, aq_udp_addr.c) --- */

/* Opens and binds the socket and finds out what the kernel supports. AQ_OK or negative, logged. */
int aq_udp_sock_open(void);
void aq_udp_sock_close(void);
/* Chooses which of this host's addresses to use, and reads its interface's MTU. AQ_OK or negative,
 * logged. */
int aq_udp_addr_choose(union aq_udp_address *address_out, uint32_t *mtu_out);
/* Decides how datagrams are received. wanted: use UDP_GRO if the kernel has it. */
void aq_udp_sock_receive_init(bool wanted);
/* Called after a failed call on a socket of this rank. Ends the job if the descriptor is no socket
 * any more: the client has closed it, and this rank would be cut off. */
void aq_udp_sock_look_closed(int fd, int error);
#define AQ_UDP_ERROR_RETRIES \
    4 /* pending errors of earlier datagrams that a call may report before it does its work */
/* Reads a socket's error queue. Returns how many notes it held. */
unsigned aq_udp_sock_notes(int fd);
/* Sends a batch whose hashes are in place. Returns how many packets the socket took. */
unsigned aq_udp_sock_send(struct aq_udp_peer *peer, const struct aq_udp_packet *packets,
                          unsigned count);
#define AQ_UDP_RX_BYTES 65536
#define AQ_UDP_RX_BATCH 128u /* datagrams of a batch: UDP_SEGMENT's own limit */
struct aq_udp_rx_batch {
    uint8_t *buffer;    /* the caller's, AQ_UDP_RX_BYTES */
    size_t bytes, each; /* bytes in all; distance between the begins of two datagrams */
    unsigned count;
    uint32_t len[AQ_UDP_RX_BATCH];
};
/* Receives one datagram or a batch. Returns false if the socket had none. */
bool aq_udp_sock_receive(struct aq_udp_rx_batch *batch);

static inline socklen_t aq_udp_address_len(const union aq_udp_address *address)
{
    return address->any.sa_family == AF_INET ? sizeof(address->v4) : sizeof(address->v6);
}

/* --- hashes (aq_udp_auth.c) --- */

int aq_udp_auth_init(void);
/* Derives the key of datagrams from one rank to another. */
void aq_udp_auth_key(gex_Rank_t from, gex_Rank_t to, uint8_t key_out[AQ_UDP_KEY]);
/* Writes the hash into a packet's head. */
void aq_udp_auth_sign(const uint8_t *key, const struct aq_udp_packet *packet);
/* Returns true if the hash of a datagram is right. above: see aq_udp_above(). */
bool aq_udp_auth_check(const uint8_t *key, uint8_t *datagram, size_t len,
                       const struct aq_udp_header *header, uint64_t above);

/* --- fault injection (aq_udp_inject.c) --- */

/* Reads AQ_UDP_FAULTS and sets aq_udp.faults. */
void aq_udp_inject_init(void);
/* Sends a batch with faults: packets are dropped, sent twice, delayed or corrupted. Returns count:
 * every packet is taken. */
unsigned aq_udp_inject_send(struct aq_udp_peer *peer, const struct aq_udp_packet *packets,
                            unsigned count);
/* Sends delayed packets that are due. */
void aq_udp_inject_timer(uint64_t now_ns);
/* The job has ended: forget what was delayed. */
void aq_udp_inject_fini(void);

/* --- buffers (aq_udp_buf.c): aligned to 16 bytes --- */

uint8_t *aq_udp_buf_take(size_t size);
size_t aq_udp_buf_size(const uint8_t *buf);
void aq_udp_buf_give(uint8_t *buf);
/* The job has ended: returns the memory of those that are free. */
void aq_udp_buf_fini(void);

#endif
