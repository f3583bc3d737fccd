/*
 * aq_ibv.h - what the files of the ibv conduit share.
 *
 *     aq_ibv.c          the table; start, polling, sleeping, leaving
 *     aq_ibv_load.c     the library behind aq_ibv_lib.h; the probe
 *     aq_ibv_device.c   opens devices and ports; aq_ibv_choose.c, _ports.c, _gid.c, _near.c,
 *                       _hwloc.c: which ones
 *     aq_ibv_connect.c  connections on demand: a thread, asleep in the kernel; aq_ibv_dgram.c,
 *                       aq_ibv_hello.[ch]: how two ranks agree, over datagrams; aq_ibv_peer.c: what
 *                       is kept of a rank
 *     aq_ibv_error.c    what went wrong, and what to do about it
 *     aq_ibv_qp.c       queue pairs: posting and completions
 *     aq_ibv_am.c, aq_ibv_am_long.c, aq_ibv_zcopy.c   active messages out; aq_ibv_recv.c, _part.c,
 *                       _held.c: in; aq_ibv_packet.h: format
 *     aq_ibv_credit.h, aq_ibv_credit.c   what a peer may send; aq_ibv_credit_update.c: telling it;
 *                       aq_ibv_rbuf.c, aq_ibv_buf.c: buffers in and out; aq_ibv_disconnect.c:
 *                       parting from peers
 *     aq_ibv_segment.c, aq_ibv_rma.c, aq_ibv_reg.c, ...   transfers and registration
 *
 * Words     a rail is a port in use; rank i's rail r talks with every other rank's rail r. A device
 *           has one protection domain, and keys are a device's: two ports of a device share them
 * Threads   any, and one of ours, the connector. In seq locks are empty: what the connector shares
 *           with the client's thread is under a mutex (slow paths), or handed over by release and
 *           acquire
 * Uses      core, other/spawn, verbs. SPDX-License-Identifier:
 *           BSD-3-Clause
 */
#ifndef AQ_IBV_H
#define AQ_IBV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/aq_conduit.h"
#include "conduits/ibv/aq_ibv_credit.h"
#include "conduits/ibv/aq_ibv_hello.h"
#include "conduits/ibv/aq_ibv_lib.h"
#include "core/aq_job.h"
#include "base/aq_lock.h"

#define AQ_IBV_MAX_MEDIUM   65536u /* bytes */
#define AQ_IBV_BUF          8192u  /* bytes of a buffer, in or out */
#define AQ_IBV_QP_DEPTH_MAX 256u   /* work requests of a queue pair */
#define AQ_IBV_QP_ALIGN \
    512u /* addresses of queue pairs end in zeros, where completions have a place's number */

/* --- devices and rails --- */

struct aq_ibv_dev {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *comp_channel; /* of all its completion queues */
    struct ibv_device_attr attr;
    const char *name;
    uint32_t index;
    bool software; /* rxe, siw: its work is done by this host's cores */
};

struct aq_ibv_rail {
    uint32_t index;
    struct aq_ibv_dev *dev;
    uint8_t port;
    bool ethernet;    /* RoCE: addressed by GID alone */
    atomic_bool down; /* the port, as its device said last */
    uint64_t down_ns; /* since when; the connector's */
    uint16_t lid;
    uint16_t pkey_index;
    uint16_t pkey;
    uint8_t sl;
    enum ibv_mtu mtu;
    struct aq_ibv_gid_row gid;

    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    uint32_t srq_space;  /* buffers that srq holds, and recv_cq completions */
    uint32_t send_space; /* completions that send_cq holds */
    aq_counter
        send_claimed; /* signalled requests that may still complete into it, at most send_space */
    _Alignas(AQ_CACHE_LINE) aq_lock reap_lock; /* who polls send_cq */
    _Alignas(AQ_CACHE_LINE) aq_lock recv_lock; /* who polls recv_cq */
    atomic_uint excess; /* buffers in srq whose credits were given up; written under excess_lock */
    aq_lock excess_lock;
};

/* --- queue pairs --- */

/* Somebody who waits for work requests: embedded in the waiter's own struct. fn runs once all of
 * them are complete, on any thread, under the rail's reap lock: it may count (aq_op_end) and free,
 * and must neither post nor poll. */
struct aq_ibv_done {
    void (*fn)(struct aq_ibv_done *done);
};

struct aq_ibv_qp {
    _Alignas(AQ_CACHE_LINE) aq_lock lock; /* of posting */
    struct ibv_qp *qp;
    struct aq_ibv_rail *rail;
    struct aq_ibv_peer *peer;
    uint32_t depth;     /* requests that may be outstanding; a power of two */
    uint32_t head;      /* posted so far; under lock */
    uint32_t signalled; /* head as the last signalled one was posted; under lock */
    atomic_uint tail;   /* completed so far; written by whoever reaps */
    uint32_t max_inline, max_reads;
    bool
        /* puts are followed by a read: messages go another way, and might overtake them in memory
         * */
        fences;
    struct aq_ibv_done
        *waits[AQ_IBV_QP_DEPTH_MAX]; /* [depth] who waits for the request in that place, or NULL */
    uint8_t
        opcodes[AQ_IBV_QP_DEPTH_MAX]; /* [depth] what it was, with AQ_IBV_POST_WORD: for messages */
};

/* --- a far rank --- */

struct aq_ibv_reasm;

struct aq_ibv_peer {
    gex_Rank_t rank;
    atomic_int ready; /* 1: the queue pairs can be used */
    atomic_int asked; /* 1: this rank wants to send to it */
    uint32_t rails;   /* in use with this peer: as many as both have */
    uint32_t qp_count;
    struct aq_ibv_qp *qps[AQ_IBV_QPS]; /* qps[i] is on rail i % rails */
    uint32_t am_qp;                    /* the one of messages */

    /* messages; see aq_ibv_credit.h */
    _Alignas(AQ_CACHE_LINE) aq_lock lock; /* of sending messages */
    struct aq_ibv_credit_out out[AQ_IBV_CHANNELS];
    struct aq_ibv_cell *cell; /* registered: where the peer writes what it grants us */
    uint64_t cell_addr;       /* where ours go */
    uint32_t cell_rkey;
    bool disconnect_sent; /* it was written there; by the thread that leaves */
    uint64_t sent;        /* messages */
    _Alignas(AQ_CACHE_LINE) struct aq_ibv_credit_in in[AQ_IBV_CHANNELS]; /* under in_lock */
    aq_lock in_lock;
    uint64_t handled;                            /* messages of the peer's; under in_lock */
    struct aq_ibv_reasm *reasm[AQ_IBV_CHANNELS]; /* aq_ibv_recv.h; under the rail's recv_lock */
    bool update_pending; /* in the list of those who are to hear of grants; under in_lock */
    struct aq_ibv_peer *next_pending;

    /* agreement; under aq_ibv.connect_lock */
    struct aq_ibv_hello hello;
    bool warned; /* that it does not answer */

    /* the connector's alone */
    struct ibv_ah *ah; /* where its datagrams go */
    uint32_t ah_qpn, ah_qkey;
    bool sought;                     /* in vain, in this turn */
    bool no_way;                     /* that was said */
    _Atomic(const char *) host;      /* its name, or NULL: not known yet; for messages */
    struct aq_ibv_peer *next_active; /* all peers there are; constant */
};

/* Has it come to its exit? It waits for nothing of ours then, and may be gone. The peer is ready.
 * */
static inline bool aq_ibv_peer_disconnected(const struct aq_ibv_peer *peer)
{
    /* acquire: all that it sent came before */
    return atomic_load_explicit(&peer->cell->disconnected, memory_order_acquire) != 0;
}

/* --- the process --- */

struct aq_ibv_counters {
    aq_counter deferred, updates_written, credit_requests, skips, connects, hellos_out, hellos_in,
        hellos_bad, sleeps;
    aq_counter batches, batch_requests, fences;
};

struct aq_ibv {
    const struct aq_ibv_lib *lib;
    bool alone;    /* no far ranks */
    bool software; /* some device is */
    uint32_t dev_count, rail_count, qps_wanted;
    struct aq_ibv_dev devs[AQ_IBV_RAILS];
    struct aq_ibv_rail rails[AQ_IBV_RAILS];
    uint32_t qp_depth, inline_max;
    uint32_t packed_max; /* bytes of a long payload that travel in the message */
    uint32_t window_max; /* credits of a lane that a peer can come to have */

    struct aq_ibv_peer *_Atomic *peers; /* [job size] */
    struct aq_ibv_peer *_Atomic active;
    pthread_mutex_t connect_lock;
    uint32_t peer_count;

    aq_lock pending_lock;
    struct aq_ibv_peer *_Atomic update_pending;
    atomic_bool updates_due; /* to some of them, by aq_ibv_credit_due() */
    aq_lock update_lock;     /* of who tells them */
    struct aq_ibv_counters counts;
};
extern struct aq_ibv aq_ibv;

/* --- peers (aq_ibv_peer.c, aq_ibv_connect.c) --- */

/* The peer if it can be used now, else NULL; then a connection has been asked for, which the
 * connector makes, and whoever waits polls until it is there. */
struct aq_ibv_peer *aq_ibv_peer_connect(gex_Rank_t rank);

static inline struct aq_ibv_peer *aq_ibv_peer_look(gex_Rank_t rank)
{
    /* acquire: pairs with the release in aq_ibv_peer_make() */
    return atomic_load_explicit(&aq_ibv.peers[rank], memory_order_acquire);
}

static inline struct aq_ibv_peer *aq_ibv_peer(gex_Rank_t rank)
{
    struct aq_ibv_peer *peer = aq_ibv_peer_look(rank);

    /* acquire: pairs with the release in aq_ibv_connect.c; all of the peer is visible */
    if (AQ_LIKELY(peer != NULL && atomic_load_explicit(&peer->ready, memory_order_acquire) != 0))
        return peer;
    return aq_ibv_peer_connect(rank);
}

#define AQ_IBV_WHO 96u
/* "rank 3 on node7", or "rank 3", for messages; returns text. */
const char *aq_ibv_peer_who(const struct aq_ibv_peer *peer, char *text, size_t size);

/* connect_lock held: the peer's record, made if need be. */
struct aq_ibv_peer *aq_ibv_peer_make(gex_Rank_t rank);
/* connect_lock held: make its queue pairs, post the receive buffers that it may fill; what it is
 * told is in hello.mine. */
void aq_ibv_peer_open(struct aq_ibv_peer *peer);
/* connect_lock held: what it told is in hello.theirs: from now on its messages are received. */
void aq_ibv_peer_join(struct aq_ibv_peer *peer);

/* Open the datagram queue, leave the card, start the connector. AQ_OK or negative, logged. */
int aq_ibv_connect_start(void);
/* The connector is to look around. */
void aq_ibv_connect_wake(void);
/* Nobody connects any more. */
void aq_ibv_connect_stop(void);

/* The datagram queue (aq_ibv_dgram.c): the connector's alone, once it is open. */
int aq_ibv_dgram_open(struct aq_ibv_address *addr_out);
/* Is there room for a packet? Else a completion makes some. */
bool aq_ibv_dgram_has_slot(void);
/* Find out where a peer's datagrams go, which takes its time; false: no way leads there now. The
 * connector's, without a lock. */
bool aq_ibv_dgram_find(struct aq_ibv_peer *peer);
/* Send a packet to a peer that was found; false: not now. */
bool aq_ibv_dgram_send(struct aq_ibv_peer *peer, const uint8_t *packet, size_t len);
/* The next packet that came, or NULL; its buffer goes back with aq_ibv_dgram_done(). */
const uint8_t *aq_ibv_dgram_receive(size_t *len_out);
void aq_ibv_dgram_done(const uint8_t *packet);
/* What is to be watched for packets; arm it before a last look. */
int aq_ibv_dgram_fd(void);
void aq_ibv_dgram_arm(void);
/* The peer needs no datagrams for now. */
void aq_ibv_dgram_forget(struct aq_ibv_peer *peer);

/* --- queue pairs (aq_ibv_qp.c) --- */

/* whoever waits, waits now: have it complete as soon as it is done */
#define AQ_IBV_POST_SIGNAL  1u
#define AQ_IBV_POST_RESERVE 2u    /* for grants: may use the places that others leave free */
#define AQ_IBV_POST_WORD    0x80u /* what matters to nobody once the peer has disconnected */

/**
 * aq_ibv_qp_post - post a chain of work requests, one doorbell.
 * wr     a chain of count requests linked by next; IBV_SEND_SIGNALED is set here. wr_id of all but
 *        the last is 0, or the address of a struct aq_ibv_done of that request's own
 * done   called when the last of them is complete, and with it all; NULL: nobody waits
 * flags  AQ_IBV_POST_*; with done but without AQ_IBV_POST_SIGNAL the call can come as late as with
 *        the next signalled request of the queue pair (a buffer's return, not an operation's end)
 * Returns AQ_OK, or AQ_RETRY if there is no room: nothing was posted. Ends the job on other errors.
 * Takes qp->lock.
 */
int aq_ibv_qp_post(struct aq_ibv_qp *qp, struct ibv_send_wr *wr, unsigned count,
                   struct aq_ibv_done *done, unsigned flags);
/* Take completions from a rail's send queue; returns how many waiters were called. */
unsigned aq_ibv_qp_reap(struct aq_ibv_rail *rail);
/* Of all rails, as far as something in them was asked for. */
static inline unsigned aq_ibv_qp_reap_all(void)
{
    unsigned called = 0;

    for (uint32_t i = 0; i < aq_ibv.rail_count; i++)
        if (aq_counter_get(&aq_ibv.rails[i].send_claimed) != 0)
            called += aq_ibv_qp_reap(&aq_ibv.rails[i]);
    return called;
}
/* Places that are free; a hint without the lock. */
static inline uint32_t aq_ibv_qp_space(const struct aq_ibv_qp *qp)
{
    /* acquire: pairs with the release in aq_ibv_qp_reap(); places behind it may be used again */
    return qp->depth
           - (qp->head
              - atomic_load_explicit(&((struct aq_ibv_qp *)(uintptr_t)qp)->tail,
                                     memory_order_acquire));
}
/* Is anything outstanding? Asks for a completion if what is there has none coming. */
bool aq_ibv_qp_drained(struct aq_ibv_qp *qp);
/* Make one on a rail, in state INIT; reset to ready by join. Ends the job with the reason. */
struct aq_ibv_qp *aq_ibv_qp_create(struct aq_ibv_peer *peer, struct aq_ibv_rail *rail);
/* Reads and atomics at a time: what a device can, another one does, and the user wishes. */
uint8_t aq_ibv_qp_reads(int64_t device, uint8_t other);
void aq_ibv_qp_join(struct aq_ibv_qp *qp, const struct aq_ibv_hello_qp *remote, uint32_t psn);

/* --- registered memory (aq_ibv_device.c) --- */

/* Register with every device in use; mrs_out by dev->index. Access by atomics goes to the devices
 * that have some. AQ_OK; AQ_ERR_NOMEM: too much is locked, or AQ_ERR_RESOURCE: not such memory;
 * logged unless quiet, with what ulimit -l should be. */
int aq_ibv_register(void *addr, size_t len, int access, bool quiet,
                    struct ibv_mr *mrs_out[AQ_IBV_RAILS]);
void aq_ibv_unregister(struct ibv_mr *mrs[AQ_IBV_RAILS]);
/* The number that scanf's format finds in a line of /proc/self/status, or 0. */
unsigned long long aq_ibv_process_status(const char *format);
/* The message for a registration that failed with error. */
void aq_ibv_register_why(char *text, size_t size, const struct aq_ibv_dev *dev, size_t len,
                         int error);

/* --- active messages (aq_ibv_am.c, aq_ibv_am_long.c, aq_ibv_recv.c) --- */

int aq_ibv_am_send(const struct aq_am_out *out);
int aq_ibv_am_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                    const gex_AM_Arg_t *args);
int aq_ibv_am_alloc(gex_Rank_t jobrank, bool is_reply, size_t min, size_t max,
                    struct aq_am_buffer *buffer_out);
void aq_ibv_am_free(bool is_reply, const struct aq_am_buffer *buffer);
/* Take what came, run handlers; returns how many messages were dealt with. */
unsigned aq_ibv_receive(bool replies_only);
/* Take what came into the queues of held messages, without handlers: grants count. */
void aq_ibv_receive_quietly(void);
/* Tell peers what they may send, as far as it is due; all: whatever there is to tell. */
void aq_ibv_credit_update_now(bool all);
static inline void aq_ibv_credit_update(bool all)
{
    /* relaxed: what another thread adds now is that thread's to serve */
    if (AQ_UNLIKELY(atomic_load_explicit(&aq_ibv.updates_due, memory_order_relaxed))
        || (all
            && AQ_UNLIKELY(atomic_load_explicit(&aq_ibv.update_pending, memory_order_relaxed)
                           != NULL)))
        aq_ibv_credit_update_now(all);
}
/* Write words into the peer's cell, at so many bytes from its beginning; flags as for
 * aq_ibv_qp_post(). False: no room now. */
bool aq_ibv_cell_write(struct aq_ibv_peer *peer, size_t at, const uint64_t *words, size_t nbytes,
                       unsigned flags);
/* On the way out: wait until what is under way has reached the peers that still need it, at most so
 * long. */
void aq_ibv_disconnect_peers(uint64_t max_ns);
/* Once in a while: what is not used is given back. */
void aq_ibv_tick(uint64_t now_ns);

/* --- buffers --- */

struct aq_ibv_bounce; /* aq_ibv_xfer.h */

/* Out (aq_ibv_buf.c). AQ_IBV_BUF bytes, registered; NULL: none now. Replies have some of their own.
 * */
struct aq_ibv_buf {
    struct aq_ibv_done done;  /* gives it back */
    struct aq_ibv_buf *next;  /* while it is free */
    struct aq_ibv_buf *chain; /* given back together with this one */
    uint8_t *bytes;
    struct aq_ibv_bounce *rider; /* given back together with this one, or NULL */
    uint8_t channel;
    bool zcopy;                  /* a client writes its payload into it */
    uint32_t lkey[AQ_IBV_RAILS]; /* by dev->index */
};
int aq_ibv_buf_init(void);
struct aq_ibv_buf *aq_ibv_buf_take(unsigned channel);
/* So many, chained: the first one's done gives all back. */
struct aq_ibv_buf *aq_ibv_buf_take_chain(unsigned channel, unsigned count);
/* One for somebody who may keep it for long: half of them stay. */
struct aq_ibv_buf *aq_ibv_buf_lend(unsigned channel);
void aq_ibv_buf_give(struct aq_ibv_buf *buf);

/* --- faults (aq_ibv_error.c) --- */

/* A work request failed: soon ends the job with peer, opcode, status, likely cause and remedy;
 * silent if it is ending then. But true if it mattered to nobody: a word to a peer that has
 * disconnected. Any lock may be held. */
bool aq_ibv_error_completion(const struct aq_ibv_rail *rail, const struct aq_ibv_qp *qp,
                             const struct ibv_wc *wc);
/* Has one? Then others fail too, and nothing needs to be said of them. */
bool aq_ibv_error_is_known(void);
/* From polls, without a lock: reports it, if the connector has not for long: it may be gone, with
 * its descriptors. */
void aq_ibv_error_overdue(uint64_t now_ns);
/* An asynchronous event of a device. */
void aq_ibv_error_event(const struct aq_ibv_dev *dev, const struct ibv_async_event *event);
/* Ends the job for a request that failed, or a port that has been down for too long. Returns when
 * to look again, or UINT64_MAX. The connector's, without a lock. */
uint64_t aq_ibv_error_check(uint64_t now_ns);
/* The peer's port cannot be reached from this one, whatever the network: another kind of address.
 * Ends the job. */
_Noreturn void aq_ibv_error_gid_types(const struct aq_ibv_rail *rail,
                                      const struct aq_ibv_peer *peer, const uint8_t gid[16],
                                      uint32_t type);
/* The words for a completion: for the above, and tests. */
void aq_ibv_error_text(char *text, size_t size, const char *opcode, enum ibv_wc_status status,
                       uint32_t vendor);

/* --- transfers: aq_ibv_segment.c, aq_ibv_rma.c, aq_ibv_reg.c --- */

/* After devices are open, before the segment. AQ_OK or negative, logged. */
int aq_ibv_rma_init(void);
/* The table's entries, near ranks included. */
int aq_ibv_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags);
int aq_ibv_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags);
/* A peer's queue pairs are joined: which puts need a fence. */
void aq_ibv_rma_plan_fences(struct aq_ibv_peer *peer);
/* Key by which a peer's rail reaches [addr, +nbytes) of its rank; false: it is not registered for
 * good. */
bool aq_ibv_remote_key(gex_Rank_t jobrank, uint32_t rail, const void *addr, size_t nbytes,
                       uint32_t *rkey_out);
/* Key by which a device of ours reads our own [addr, +nbytes); false: it is not registered for
 * good. */
bool aq_ibv_local_key(const struct aq_ibv_dev *dev, const void *addr, size_t nbytes,
                      uint32_t *lkey_out);

#endif
