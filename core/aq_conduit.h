/*
 * aq_conduit.h - the table that a conduit fills in.
 *
 * A job has two tables of this type. aq_job.local reaches the ranks that share memory with this one
 * and is filled by conduits/smp. aq_job.remote reaches all others and is filled by the network
 * conduit, or by aq_conduit_none. Core and extended choose by aq_job_ops(rank), so that a conduit
 * knows its own network and nothing else.
 *
 * Every entry names a function: the conduit's own, a reference version over active messages
 * (aq_ref_*, extended/aq_ref.h), or aq_nosup_* (core/aq_nosup.h) for what the conduit does not
 * have. One look at a table says what is native; no caller asks for NULL.
 * docs/adding-a-conduit.md walks through a table.
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

struct aq_op;             /* core/aq_op.h: one operation, counting what it waits for */
struct aq_spawn_provider; /* other/spawn/aq_spawn_provider.h: a way for ranks to find each other */
struct aq_coll_team;      /* extended/aq_coll.h: what a team's collectives keep */
struct aq_coll_call;      /* extended/aq_coll.h: one collective call */
struct aq_coll_part;      /* extended/aq_coll.h: a call that is a part of a larger collective */
struct aq_shm_coll;       /* conduits/smp: a team's shared memory for collectives */

/* The rendezvous of a large block of a collective: from one rank's memory to another's. */
struct aq_rndv {
    /* The transfer is complete. Called in a poll, on any thread; may not call the conduit. */
    void (*done)(struct aq_rndv *rndv);
    void *owner; /* whose done it is */
};

enum aq_am_kind { AQ_AM_SHORT, AQ_AM_MEDIUM, AQ_AM_LONG };

/* Memory for the payload of one message, handed out before the message is known. */
struct aq_am_buffer {
    void *addr; /* aligned for any type */
    size_t size;
    uint64_t own; /* the conduit's */
};

/* An outgoing message. The conduit reads args during the call only. The conduit reads src during
 * the call only, unless it takes the local completion over with aq_am_lc_take(). */
struct aq_am_out {
    gex_Rank_t jobrank;
    uint8_t handler;
    uint8_t nargs;
    uint8_t kind; /* enum aq_am_kind */
    uint8_t is_reply;
    /* long: the call returns AQ_RETRY rather than wait, for credit or for local completion */
    bool immediate;
    const gex_AM_Arg_t *args;
    const void *src; /* medium, long */
    size_t nbytes;
    void *dest; /* long: in the target's address space */
    /* from am_alloc, or NULL; if src is its address, the payload is in place already */
    const struct aq_am_buffer *buffer;
    /* local completion; NULL: src may not be read after the call, nbytes is at most max_medium */
    struct aq_am_lc *lc;
};

/* The local completion of a message, on its sender's stack. */
struct aq_am_lc {
    gex_Event_t *opt; /* the client's: GEX_EVENT_NOW, GEX_EVENT_GROUP, or where its event goes */
    struct aq_op *op; /* that the conduit counts it in; NULL: it was not taken over */
};

/* The outcome of a named barrier phase. */
struct aq_barrier_name {
    bool mismatch;
    bool named;
    int id;
};

/* Collectives of a team whose members all share memory, or of its members that do. */
struct aq_coll_ops {
    /* Collective over the team: the state of its collectives, or NULL if they go by messages. */
    struct aq_shm_coll *(*make)(struct aq_coll_team *team);
    void (*free)(struct aq_shm_coll *shm);
    /* Is the call served here? The same answer at every member. shm may be NULL. */
    bool (*serves)(const struct aq_shm_coll *shm, const struct aq_coll_call *call);
    /* Is a call of the team not complete yet? */
    bool (*is_open)(const struct aq_shm_coll *shm);
    /* Start a call; returns its event. */
    gex_Event_t (*submit)(struct aq_shm_coll *shm, const struct aq_coll_call *call);
    /* A place for the collectives of those of a team's members that share memory with this one: one
     * of them reserves it, or gets AQ_COLL_NO_PLACE, and tells the others; each makes its view. A
     * place can be given back that nobody has made a view of. */
    uint32_t (*reserve)(void);
    void (*give_back)(uint32_t place);
    struct aq_shm_coll *(*make_local)(const struct aq_coll_team *team, uint32_t place);
    /* Start a call, whose ranks are indices among those members, as a part of op; part->done says
     * that it is complete. part and what the call points at stay until then. While part->closed is
     * set this member's operand is not there: neither this call nor a later one begins here. */
    void (*submit_part)(struct aq_shm_coll *shm, const struct aq_coll_call *call, struct aq_op *op,
                        struct aq_coll_part *part);
    /* The operand is there. */
    void (*open_part)(struct aq_shm_coll *shm, struct aq_coll_part *part);
    /* Move all open calls on; returns how many completed. Never blocks. */
    unsigned (*progress)(void);
};

/* What a conduit can do. */
#define AQ_CAP_AM         (1u << 0) /* active messages: every conduit */
#define AQ_CAP_ONE_SIDED  (1u << 1) /* transfers need no call by the target */
#define AQ_CAP_NETWORK    (1u << 2) /* ranks that share no memory reach each other */
#define AQ_CAP_LOAD_STORE (1u << 3) /* aq_job.map holds addresses for loads and stores */
#define AQ_CAP_RMA_BATCH  (1u << 4) /* rma_batch_begin gains something */

/* Entries of the local table only: sleep_*, segment_reaches. Of the remote table only: busy,
 * quiesce, exit, wait_*, may_notify, rma_batch_*, ad_*. The other table names aq_nosup_* there. */
struct aq_conduit_ops {
    const struct aq_conduit_info *info; /* what programs without a job know of it too */
    uint32_t caps;
    size_t min_medium, min_long; /* bytes, at least 512: init sets no limit below */
    /* How the ranks find each other if the library below has its own way, which excludes any other.
     * NULL: other/spawn finds a way. */
    const struct aq_spawn_provider *spawn;

    /* The job has ended and the process goes on: give back what init and the functions after it
     * took: descriptors, memory, threads, registrations. Called on every rank after exit, with
     * nothing under way; the caller resets variables with AQ_JOB_STATE. NULL: a job over this
     * conduit ends with its processes only. */
    void (*fini)(void);

    /* --- start and end --- */

    /* May this process use the conduit? AQ_OK, or negative and the reason in why[len]. */
    int (*probe)(char *why, size_t len);
    /* Collective, after the ranks have found each other: make active messages work, set aq_limits.
     * The remote table's is called only if some rank is remote. AQ_OK or negative, logged. */
    int (*init)(void);
    /* Collective: end every transfer in flight. Afterwards the ranks wait for each other outside
     * active messages. */
    void (*quiesce)(void);
    /* Collective. local: allocate this process's segment of size bytes, map the local ranks', fill
     * aq_job.bound and aq_job.map. remote: prepare the segment at *base_io. AQ_OK or negative on
     * every rank, logged. */
    int (*segment_attach)(uintptr_t size, void **base_io);
    /* Collective, after the client's attach hook has run on the segment: what touches its pages,
     * such as registration with a device. AQ_OK or negative on every rank, logged. */
    int (*segment_ready)(void);
    /* Collective: the attach is refused. Give back what segment_attach and segment_ready took. */
    void (*segment_detach)(void);
    /* This process binds [addr, addr+size) to a further endpoint: from now on it is a target of put
     * and get. AQ_OK or negative, logged. */
    int (*segment_bind)(void *addr, uintptr_t size);
    /* Do long messages of any length reach memory of jobrank that is bound and not mapped? */
    bool (*segment_reaches)(gex_Rank_t jobrank);
    /* Called once as the process ends in order, on any thread, perhaps in a handler, after the end
     * of the job is announced. Waits at most max_ns until the peers have what was sent to them.
     * Runs no handler. */
    void (*exit)(uint64_t max_ns);

    /* --- active messages --- */

    /* Send one message without blocking. AQ_OK; or AQ_RETRY without any effect if there is no
     * credit. A reply never waits for credit that only running requests could return. */
    int (*am_send)(const struct aq_am_out *out);
    /* The same for a short message, all in registers. */
    int (*am_short)(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                    const gex_AM_Arg_t *args);
    /* A buffer for the payload of a message to jobrank: of max bytes if possible, of at least min
     * bytes. AQ_OK; AQ_RETRY if there is none now, or no credit for the message; AQ_ERR_NOSUP if
     * the conduit has no such buffers: core then keeps one for each thread. Never blocks. The
     * caller owns the buffer until am_send returns AQ_OK with it in out->buffer, for the jobrank
     * and is_reply given here, or until am_free. However many buffers are out, and for however
     * long, a message without one is sent in the end. Any thread; am_free also as a thread ends. */
    int (*am_alloc)(gex_Rank_t jobrank, bool is_reply, size_t min, size_t max,
                    struct aq_am_buffer *buffer_out);
    void (*am_free)(bool is_reply, const struct aq_am_buffer *buffer);
    /* Deliver messages that have arrived through aq_am_deliver(); requests too unless replies_only.
     * Returns how many were delivered. Never blocks, in par not even behind another poller. */
    unsigned (*poll)(bool replies_only);
    /* Not 0: polls have something to move on, and core leaves none of them out. */
    const atomic_uint_fast64_t *busy;
    /* Messages sent to a peer and handled by it, for the stall report. */
    void (*peer_counts)(gex_Rank_t jobrank, uint64_t *sent_out, uint64_t *handled_out);

    /* --- waiting: core/aq_poll.c --- */

    /* Sleeping in the kernel. sleep_prepare announces a sleeper and returns the wake-up count. The
     * caller looks once more for work, calls sleep, which returns when the count has changed since
     * or after max_ns, and calls sleep_cancel once for each sleep_prepare. sleep_wake wakes the
     * sleepers of this process. sleep_add_fd: sleepers also wake when fd becomes readable. */
    uint32_t (*sleep_prepare)(void);
    void (*sleep)(uint32_t wakeup, uint64_t max_ns);
    void (*sleep_cancel)(void);
    void (*sleep_wake)(void);
    int (*sleep_add_fd)(int fd);
    /* A thread is about to sleep. Send what waits for more, and let the network wake the thread
     * through a descriptor that aq_wait_add_fd() was given. */
    void (*wait_arm)(void);
    /* Called after wait_arm and the last look for work. Returns how long the thread may sleep, at
     * most max_ns; 0: not at all. */
    uint64_t (*wait_limit)(uint64_t max_ns);
    /* Called when a client thread has waited longer than it spins. peer is the rank it waits for,
     * or GEX_RANK_INVALID. Ends the job if the wait can never finish. */
    void (*wait_look)(gex_Rank_t peer);
    /* With GASNET_SEGMENT_EVERYTHING: may this rank notify local ranks by a store, as the
     * collectives of shared memory do? If not, the caller asks again after a poll. */
    bool (*may_notify)(void);

    /* --- transfers --- */

    /* Transfers that the inline path does not serve: to ranks that are not mapped, and of memory
     * outside the segment of the primordial endpoint (aq_bound_contains() tells). Each fragment in
     * flight is counted by aq_op_begin(). AQ_OK, or AQ_RETRY with GEX_FLAG_IMMEDIATE. src may be
     * reused on return if lc_now, else when the LC count of op is 0. */
    int (*put)(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags);
    int (*get)(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags);
    /* Between the two the puts and gets of op by this thread may be deferred, to start together: at
     * rma_batch_end at the latest, and in polls of the thread. Nobody waits for op meanwhile.
     * rma_batch_begin returns the operation whose batch was open before, or NULL; rma_batch_end is
     * told which, and may poll. */
    struct aq_op *(*rma_batch_begin)(struct aq_op *op);
    void (*rma_batch_end)(struct aq_op *before);

    /* --- atomics --- */

    /* Does the network serve atomic domains of this type with no operations but these: every
     * operation on every target, this process and local ranks included? The same answer on every
     * process. */
    bool (*ad_serves)(gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags);
    /* An operation of such a domain, as put: counted in the category of its opcode
     * (extended/aq_ad.h). */
    int (*ad_op)(struct aq_op *op, gex_Rank_t jobrank, gex_DT_t dt, void *result_p, void *tgt_addr,
                 gex_OP_t opcode, uint64_t operand1, uint64_t operand2, gex_Flags_t flags);

    /* --- collectives --- */

    const struct aq_coll_ops *coll;
    /* Rendezvous of large blocks, between any memory of two ranks. rndv_recv: nbytes from jobrank
     * are expected at dest; returns the match id that the sender must name, or 0 if the data must
     * come in messages. rndv_send: send them to a rank that named match_id. rndv belongs to the
     * conduit until its done is called. Neither blocks; any number may be in flight, in any order.
     * */
    uint32_t (*rndv_recv)(gex_Rank_t jobrank, void *dest, size_t nbytes, struct aq_rndv *rndv);
    void (*rndv_send)(gex_Rank_t jobrank, uint32_t match_id, const void *src, size_t nbytes,
                      struct aq_rndv *rndv);
    /* Barriers over the job; the remote table's if some rank is remote. barrier_arrive: this
     * process has entered phase k = 1, 2, ...; barrier_done: has every rank entered phase k? If
     * not, *missing_out is a rank that has not, or GEX_RANK_INVALID; the local table names the
     * lowest. Any number of phases may be open. */
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
#define AQ_MIN_LONG 65536 /* it may have to go through a payload block */
#else
#define AQ_MIN_LONG INT32_MAX
#endif

/* Limits of the running conduits, set by their init. */
struct aq_limits {
    size_t max_medium; /* bytes, both directions, any peer */
    size_t max_long;
    uint64_t host_bytes;     /* of host memory that the conduits' queues can come to use */
    uint64_t segment_max;    /* bytes of a rank's segment that the conduit can serve; 0: any */
    const char *segment_why; /* with that: where it comes from, and what to do about it */
    uint32_t poll_ns;        /* what a poll costs that finds nothing; 0: about 50 ns */
};
extern struct aq_limits aq_limits;

/* The conduits this library holds, best first, ended by NULL (conduits/aq_conduit_list.c). */
extern const struct aq_conduit_ops *const aq_conduits[];

/* The local table of every job, and all of the smp conduit (conduits/smp). */
extern const struct aq_conduit_ops aq_smp_conduit;

/* The remote table of a job without remote ranks: reaches nobody (core/aq_nosup.c). */
extern const struct aq_conduit_ops aq_conduit_none;

#endif
