/*
 * aq_conduit.h - the table that a conduit fills in.
 *
 * A job has two tables of this type. aq_job.local reaches the ranks that share memory with this one
 * and is filled in by conduits/smp. aq_job.remote reaches all others and is filled in by the
 * network conduit, or by aq_conduit_none. Core and extended choose by aq_job_ops(rank), so a
 * conduit knows only its own network.
 *
 * Every entry names a function: the conduit's own, a reference version over active messages
 * (aq_ref_*, extended/aq_ref.h), or aq_nosup_* (core/aq_nosup.h) for what the conduit does not
 * have. A table therefore shows what is native, and no caller tests for NULL.
 * docs/adding-a-conduit.md explains a table entry by entry.
 *
 * Depends on the public headers. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_CONDUIT_H
#define AQ_CONDUIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/aq_conduit_info.h"
#include "gasnetex.h"

struct aq_segment;        /* core/aq_job.h: memory that this process offers to others */
struct aq_op;             /* core/aq_op.h: one operation, with counts of what it waits for */
struct aq_spawn_provider; /* other/spawn/aq_spawn_provider.h: how jobs are started */
struct aq_coll_team;      /* extended/aq_coll.h: the collectives' state of a team */
struct aq_coll_call;      /* extended/aq_coll.h: one collective call */
struct aq_coll_part;      /* extended/aq_coll.h: a call that is a part of a larger collective */
struct aq_coll_local;     /* conduits/smp: a team's shared memory for collectives */

/* The rendezvous of a large block of a collective: from one rank's memory to another's. */
struct aq_rndv {
    /* The transfer is complete. Called in a poll, on any thread; may not call the conduit. */
    void (*done)(struct aq_rndv *rndv);
    void *owner; /* for the function done */
};

enum aq_am_kind { AQ_AM_SHORT, AQ_AM_MEDIUM, AQ_AM_LONG };

#define AQ_AM_COPIED 8192u /* bytes: mediums up to this size are always copied */

/* A buffer for the payload of one message, allocated before the message is known. */
struct aq_am_buffer {
    void *addr; /* aligned for any type */
    size_t size;
    uint64_t own; /* private to the conduit */
};

/* An outgoing message. The conduit reads args during the call only. It reads src during the call
 * only, unless it takes the local completion over with aq_am_lc_take(). */
struct aq_am_out {
    gex_Rank_t jobrank;
    uint8_t handler;
    uint8_t nargs;
    uint8_t kind; /* enum aq_am_kind */
    uint8_t is_reply;
    /* long: the call must not wait, for credit or for local completion: it returns AQ_RETRY
     * instead */
    bool immediate;
    const gex_AM_Arg_t *args;
    const void *src; /* medium, long */
    size_t nbytes;
    void *dest; /* long: address at the target */
    /* from am_alloc, or NULL; if src is its address, the payload is in place already */
    const struct aq_am_buffer *buffer;
    /* local completion; NULL: src may not be read after the call, nbytes is at most max_medium */
    struct aq_am_lc *lc;
};

/* A Short message, whose arguments and ranks came in registers. */
static inline struct aq_am_out aq_am_out_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler,
                                               unsigned nargs, const gex_AM_Arg_t *args)
{
    return (struct aq_am_out){ .jobrank = jobrank,
                               .handler = handler,
                               .nargs = (uint8_t)nargs,
                               .kind = AQ_AM_SHORT,
                               .is_reply = is_reply,
                               .args = args };
}

/* A medium message that is copied: its source may not be read after the call. */
static inline struct aq_am_out aq_am_out_medium(gex_Rank_t jobrank, bool is_reply, uint8_t handler,
                                                const void *src, size_t nbytes, unsigned nargs,
                                                const gex_AM_Arg_t *args)
{
    return (struct aq_am_out){ .jobrank = jobrank,
                               .handler = handler,
                               .nargs = (uint8_t)nargs,
                               .kind = AQ_AM_MEDIUM,
                               .is_reply = is_reply,
                               .args = args,
                               .src = src,
                               .nbytes = nbytes };
}

/* The local completion of a message, on its sender's stack. */
struct aq_am_lc {
    /* of the client: GEX_EVENT_NOW, GEX_EVENT_GROUP, or where to store the event */
    gex_Event_t *opt;
    struct aq_op *op; /* counts the completion; NULL: the conduit did not take it over */
};

/* The outcome of a named barrier phase. */
struct aq_barrier_name {
    bool mismatch;
    bool named;
    int id;
};

/* Collectives of a team whose members all share memory, or of its members that do. */
struct aq_coll_ops {
    /* Collective over the team: makes the state of its collectives. NULL if they use messages. */
    struct aq_coll_local *(*make)(struct aq_coll_team *team);
    void (*free)(struct aq_coll_local *shm);
    /* Returns true if the call is served here. The answer is the same at every member. shm may be
     * NULL. */
    bool (*serves)(const struct aq_coll_local *shm, const struct aq_coll_call *call);
    /* Returns true if a call of the team is not complete yet. */
    bool (*is_open)(const struct aq_coll_local *shm);
    /* Starts a call and returns its event. */
    gex_Event_t (*submit)(struct aq_coll_local *shm, const struct aq_coll_call *call);
    /* An area is memory for the collectives of those members of a team that share memory. One of
     * them reserves it, or gets AQ_COLL_NO_AREA, and sends its number to the others; each member
     * makes its view. give_back() is legal while no member has made a view. */
    uint32_t (*reserve)(void);
    void (*give_back)(uint32_t area);
    struct aq_coll_local *(*make_local)(const struct aq_coll_team *team, uint32_t area);
    /* Starts a call as a part of op. The call's ranks are indices among those members. part->done
     * is set when the call is complete; part and the memory of the call must exist until then.
     * While part->closed is set, this member's operand is not ready, and neither this call nor a
     * later one begins at this member. */
    void (*submit_part)(struct aq_coll_local *shm, const struct aq_coll_call *call,
                        struct aq_op *op, struct aq_coll_part *part);
    /* Opens a closed part: the operand is ready. */
    void (*open_part)(struct aq_coll_local *shm, struct aq_coll_part *part);
    /* Makes progress on all open calls; returns how many completed. Never blocks. */
    unsigned (*progress)(void);
};

/* Capabilities of a conduit. */
#define AQ_CAP_AM         (1u << 0) /* active messages: every conduit */
#define AQ_CAP_ONE_SIDED  (1u << 1) /* transfers need no call by the target */
#define AQ_CAP_NETWORK    (1u << 2) /* ranks that share no memory reach each other */
#define AQ_CAP_LOAD_STORE (1u << 3) /* aq_job.map holds addresses for loads and stores */
#define AQ_CAP_RMA_BATCH  (1u << 4) /* rma_batch_begin improves throughput */

/* Why core polls. */
enum aq_poll_kind {
    AQ_POLL_ALL,
    AQ_POLL_REPLIES, /* a reply waits for space: no request may run */
    AQ_POLL_OF_SEND /* ends a call that has sent, and does not mean that the client waits: a conduit
                      * that collects messages may leave most of these out */
};

/* Entries of the local table only: sleep_*, segment_reaches. Entries of the remote table only:
 * busy, quiesce, exit, wait_*, may_notify, is_one_sided, rma_batch_*, ad_*. The other table has
 * aq_nosup_* there. */
struct aq_conduit_ops {
    const struct aq_conduit_info *info; /* what programs without a job may know about the conduit */
    uint32_t caps;
    size_t min_medium, min_long; /* bytes, at least 512: init sets no limit below */
    /* The provider that starts jobs, if the library below the conduit requires its own. NULL:
     * other/spawn chooses one. */
    const struct aq_spawn_provider *spawn;
    /* The same for a job over a group that is made of an MPI communicator. NULL: by the group's
     * functions if spawn is NULL, else not at all. */
    const struct aq_spawn_provider *spawn_group;

    /* --- start and end --- */

    /* Tests whether this process may use the conduit. AQ_OK, or negative and the reason in
     * why[len]. */
    int (*probe)(char *why, size_t len);
    /* Collective, after the spawn provider has connected the ranks: makes active messages work,
     * sets aq_limits. The remote table's is called only if some rank is remote. AQ_OK or negative,
     * logged. */
    int (*init)(void);
    /* The job has ended and the process goes on: frees what init and the functions after it
     * allocated: descriptors, memory, threads, registrations. Called on every rank after exit, with
     * nothing in flight; the caller resets variables with AQ_JOB_STATE. */
    void (*fini)(void);
    /* Collective: completes every transfer in flight. Afterwards the ranks wait for each other
     * outside active messages. */
    void (*quiesce)(void);
    /* Collective. local: allocates this process's segment of size bytes, maps the local ranks'
     * segments, fills in aq_job.bound and aq_job.map. remote: prepares the segment at *base_io.
     * AQ_OK or negative on every rank, logged. */
    int (*segment_attach)(uintptr_t size, void **base_io);
    /* Collective, after the client's attach hook has run on the segment: work that touches its
     * pages, such as registration with a device. AQ_OK or negative on every rank, logged. */
    int (*segment_ready)(void);
    /* Collective: the attach is refused. Undoes segment_attach and segment_ready. */
    void (*segment_detach)(void);
    /* This process binds a segment to a further endpoint: from now on its memory, of whatever kind
     * (segment->mk), is a target of put and get. AQ_OK or negative, logged. */
    int (*segment_bind)(const struct aq_segment *segment);
    /* Gives whole pages of this process's segment back to the system. AQ_OK; or AQ_ERR_RESOURCE
     * without effect. Core calls the remote table's: it calls the local table's, which drops the
     * pages, unless the network has them pinned; it may poll, and returns when no peer can reach
     * the old pages any more. */
    int (*segment_discard)(void *addr, size_t nbytes);
    /* Do long messages of any length reach memory of jobrank that is bound and not mapped? */
    bool (*segment_reaches)(gex_Rank_t jobrank);
    /* Called once as the process ends in order, on any thread, perhaps in a handler, after the
     * job's shutdown is announced. Waits at most max_ns until the peers have received what was sent
     * to them. Runs no handler. */
    void (*exit)(uint64_t max_ns);

    /* --- active messages --- */

    /* Sends one message without blocking. AQ_OK; or AQ_RETRY without any effect if there is no
     * credit. A reply never waits for credit that only running requests could return. */
    int (*am_send)(const struct aq_am_out *out);
    /* The same for a short message, with all arguments in registers. */
    int (*am_short)(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                    const gex_AM_Arg_t *args);
    /* The same for a medium message of at most AQ_AM_COPIED bytes without local completion or
     * buffer. After AQ_RETRY, and while tracing is on, core sends such messages by am_send. */
    int (*am_medium)(gex_Rank_t jobrank, bool is_reply, uint8_t handler, const void *src,
                     size_t nbytes, unsigned nargs, const gex_AM_Arg_t *args);
    /* Allocates a buffer for the payload of a message to jobrank: of max bytes if possible, of at
     * least min bytes. AQ_OK; AQ_RETRY if there is no buffer now, or no credit for the message;
     * AQ_ERR_NOSUP if the conduit has no such buffers: core then keeps one for each thread. Never
     * blocks. The caller owns the buffer until am_send returns AQ_OK with it in out->buffer, for
     * the jobrank and is_reply given here, or until am_free. However many buffers are allocated,
     * and for however long, a message without one is sent in the end. Any thread; am_free also as a
     * thread ends. */
    int (*am_alloc)(gex_Rank_t jobrank, bool is_reply, size_t min, size_t max,
                    struct aq_am_buffer *buffer_out);
    void (*am_free)(bool is_reply, const struct aq_am_buffer *buffer);
    /* Delivers messages that have arrived, through aq_am_deliver(); requests too unless kind is
     * AQ_POLL_REPLIES. Returns how many were delivered. Never blocks; in par it does not wait for
     * another polling thread. */
    unsigned (*poll)(enum aq_poll_kind kind);
    /* Not 0: polls have work in progress, so core leaves none of them out. */
    const atomic_uint_fast64_t *busy;
    /* Number of messages sent to a peer, and number handled by it, for the stall report. */
    void (*peer_counts)(gex_Rank_t jobrank, uint64_t *sent_out, uint64_t *handled_out);

    /* --- waiting: core/aq_wait.c --- */

    /* Sleeping in the kernel. sleep_prepare announces a sleeper and returns the wakeup count. The
     * caller tests once more for work and calls sleep, which returns when the count has changed
     * since, or after max_ns. It calls sleep_cancel once for each sleep_prepare, with the same
     * waits: true for a thread that waits itself; false for one that serves the others, which the
     * end of a barrier does not wake. sleep_wake wakes the sleepers of this process. sleep_add_fd:
     * sleepers also wake when fd becomes readable. */
    uint32_t (*sleep_prepare)(bool waits);
    void (*sleep)(uint32_t wakeup, uint64_t max_ns);
    void (*sleep_cancel)(bool waits);
    void (*sleep_wake)(void);
    int (*sleep_add_fd)(int fd);
    /* A thread is about to sleep. Sends deferred messages, and makes the network wake the thread
     * through a descriptor that was given to aq_wait_add_fd(). */
    void (*wait_arm)(void);
    /* Called after wait_arm and the last test for work. Returns how long the thread may sleep, at
     * most max_ns; 0: not at all. */
    uint64_t (*wait_limit)(uint64_t max_ns);
    /* Called when a client thread has waited longer than it spins. peer is the remote rank it waits
     * for, or GEX_RANK_INVALID: any. Ends the job if the wait can never finish. */
    void (*wait_look)(gex_Rank_t peer);
    /* With GASNET_SEGMENT_EVERYTHING: returns true if this rank may notify local ranks by a store,
     * as the collectives of shared memory do. If not, the caller asks again after a poll. */
    bool (*may_notify)(void);

    /* --- transfers --- */

    /* Returns true if puts and gets of this rank's and the peer's segments need no call by the
     * peer. Asked only where caps has no AQ_CAP_ONE_SIDED. After attach. */
    bool (*is_one_sided)(gex_Rank_t jobrank);
    /* Transfers that the inline path does not serve: to ranks that are not mapped, and of memory
     * outside the segment of the primordial endpoint (see aq_bound_contains()). Each fragment in
     * flight is counted by aq_op_begin(). A put of an operation that counts many may be deferred
     * until the next poll of any thread. AQ_OK, or AQ_RETRY with GEX_FLAG_IMMEDIATE. src may be
     * reused on return if lc_now, else when the LC count of op is 0. */
    int (*put)(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags);
    int (*get)(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags);
    /* Between begin and end, puts and gets of op by this thread may be deferred, to be started
     * together: at rma_batch_end at the latest, and in polls of the thread. No thread waits for op
     * in the meantime. rma_batch_begin returns the operation whose batch was open before, or NULL;
     * rma_batch_end takes that as an argument, and may poll. */
    struct aq_op *(*rma_batch_begin)(struct aq_op *op);
    void (*rma_batch_end)(struct aq_op *before);

    /* --- atomics --- */

    /* Returns true if the network serves atomic domains of this type with no operations but these:
     * every operation on every target, this process and local ranks included. The answer is the
     * same on every process. */
    bool (*ad_serves)(gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags);
    /* Starts an operation of such a domain, like put; counted in the category of its opcode
     * (extended/aq_ad.h). */
    int (*ad_op)(struct aq_op *op, gex_Rank_t jobrank, gex_DT_t dt, void *result_p, void *tgt_addr,
                 gex_OP_t opcode, uint64_t operand1, uint64_t operand2, gex_Flags_t flags);

    /* --- collectives --- */

    const struct aq_coll_ops *coll;
    /* Rendezvous of large blocks, between any memory of two ranks. rndv_recv: nbytes from
     * jobrank are expected at dest; returns the match id that the sender must name, or 0 if the
     * data must be sent in messages. rndv_send: sends them to a rank that named match_id. rndv
     * belongs to the conduit until its done is called. Neither blocks; any number may be in
     * flight, in any order. */
    uint32_t (*rndv_recv)(gex_Rank_t jobrank, void *dest, size_t nbytes, struct aq_rndv *rndv);
    void (*rndv_send)(gex_Rank_t jobrank, uint32_t match_id, const void *src, size_t nbytes,
                      struct aq_rndv *rndv);
    /* Barriers over the job; the remote table's if some rank is remote. barrier_arrive: this
     * process enters phase k = 1, 2, ... barrier_done: returns true if every rank has entered phase
     * k; if not, *missing_out is a rank that has not, or GEX_RANK_INVALID. Where a rank is remote,
     * the local table reports the lowest such rank. Any number of phases may be open. */
    void (*barrier_arrive)(uint64_t k);
    bool (*barrier_done)(uint64_t k, gex_Rank_t *missing_out);
    /* Named barriers: one phase open at a time; id and flags as in gasnet_barrier_notify().
     * While a phase is open, name_out is undefined; that of shared memory is what the ranks before
     * the missing one say. */
    void (*named_arrive)(uint64_t k, int id, int flags);
    bool (*named_done)(uint64_t k, struct aq_barrier_name *name_out, gex_Rank_t *missing_out);
};

/* Bytes of the largest long message that shared memory never refuses. */
#if GASNET_SEGMENT_EVERYTHING
#define AQ_MIN_LONG 65536 /* such a message may have to go through a payload block */
#else
#define AQ_MIN_LONG INT32_MAX
#endif

/* Limits of the running conduits, set by their init. */
struct aq_limits {
    size_t max_medium; /* bytes, both directions, any peer */
    size_t max_long;
    uint64_t host_bytes;     /* maximum bytes of host memory for the conduits' queues */
    uint64_t segment_max;    /* maximum bytes of a rank's segment; 0: no limit */
    const char *segment_why; /* the cause of that limit, and its remedy */
    uint32_t poll_ns;        /* cost of a poll that finds nothing; 0: about 50 ns */
};
extern struct aq_limits aq_limits;

/* The conduits in this library, best first, ended by NULL (conduits/aq_conduit_list.c). */
extern const struct aq_conduit_ops *const aq_conduits[];

/* The local table of every job, which is all of the smp conduit (conduits/smp). */
extern const struct aq_conduit_ops aq_smp_conduit;

/* The remote table of a job without remote ranks: reaches no rank (core/aq_nosup.c). */
extern const struct aq_conduit_ops aq_conduit_none;

#endif
