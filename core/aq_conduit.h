/*
 * conduit.h - the table a conduit fills in.
 *
 * A conduit is one constant struct. What it must write itself is little: probe, init, attach,
 * send a message, poll, sleep, exit. Every other entry names its own function or the
 * reference one (aq_ref_*, in extended/, over active messages), so that one look at a
 * conduit's table says what is native. docs/adding-a-conduit.md walks through it.
 *
 * Depends on the public headers. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_CONDUIT_H
#define AQ_CONDUIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gasnetex.h"

struct aq_op;             /* core/aq_op.h: one operation, counting what it waits for */
struct aq_spawn_provider; /* other/spawn/aq_spawn_provider.h: a way for ranks to find each other */

/* A large part of a collective on its way between the memory of two ranks. */
struct aq_rndv {
    /* It has come, or has left. In a poll, on any thread; may not call the conduit. */
    void (*done)(struct aq_rndv *rndv);
    void *owner; /* whose done it is */
};

enum aq_am_kind { AQ_AM_SHORT, AQ_AM_MEDIUM, AQ_AM_LONG };

/* Room for the payload of one message, handed out before the message is known. */
struct aq_am_buffer {
    void *addr; /* aligned for any type */
    size_t size;
    uint64_t own; /* the conduit's */
};

/* A message on its way out. The conduit reads args during the call only, and src too, unless it
 * takes lc over. */
struct aq_am_out {
    gex_Rank_t jobrank;
    uint8_t handler;
    uint8_t nargs;
    uint8_t kind; /* enum aq_am_kind */
    uint8_t is_reply;
    bool immediate; /* long: neither the conduit nor, for its local completion, the call may wait:
                     * rather AQ_RETRY */
    const gex_AM_Arg_t *args;
    const void *src; /* medium, long */
    size_t nbytes;
    void *dest;                        /* long: in the target's address space */
    const struct aq_am_buffer *buffer; /* from am_alloc, or NULL; src may be its address: then the
                                        * payload is there already */
    struct aq_am_lc *
        lc; /* how the client wants to hear that src may be reused; aq_am_lc_take() lets the conduit
                          * read src after the call. NULL: it may not, and nbytes is at most
                          * max_medium */
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

/* What a conduit can do: start-up compares these bits with the pointers. */
#define AQ_CAP_AM        (1u << 0)
#define AQ_CAP_ONE_SIDED (1u << 1) /* transfers need no call by the target */
#define AQ_CAP_NETWORK   (1u << 2) /* ranks that share no memory reach each other */

struct aq_conduit_ops {
    const char *name;  /* as in GASNET_CONDUIT: "smp" */
    const char *about; /* one line for aq-info */
    uint32_t caps;
    size_t min_medium,
        min_long; /* bytes: the limits that init sets are never below; at least 512 */
    /* How this conduit's ranks find each other, if the library beneath it has a way of its own and
     * any other would be in its way. NULL: as other/spawn finds out. */
    const struct aq_spawn_provider *spawn;

    /* May this process use the conduit? AQ_OK, or negative and the reason in why[len]. */
    int (*probe)(char *why, size_t len);
    /* After spawning: make AMs work. Sets the limits below through aq_limits. */
    int (*init)(void);
    /* Collective: allocate this process's segment of *size bytes, reach the others'.
     * Fills aq_job.bound and aq_job.map. */
    int (*segment_attach)(uintptr_t size, void **base_out);
    /* Collective, once the client's attach hook has run on the segment: for what touches its pages,
     * such as registering them with a device. AQ_OK, or negative on every process, logged. NULL:
     * nothing to do. */
    int (*segment_ready)(void);
    /* Collective: the attach is refused after all. Give back what segment_attach and segment_ready
     * have taken, if they have come so far. NULL: what was taken stays, and nobody names it. */
    void (*segment_detach)(void);
    /* This process binds [addr, addr+size) to a further endpoint: from now on others may aim put
     * and get at it. NULL: nothing to prepare. AQ_OK or negative, logged. */
    int (*segment_bind)(void *addr, uintptr_t size);
    /* Called once as the process leaves in order, on any thread, perhaps in a handler, with the
     * job's end announced: see for at most max_ns that the others have got what was sent to them.
     * Runs no handler. NULL: what is sent has arrived. What must not outlive the process is tied to
     * it. */
    void (*exit)(uint64_t max_ns);

    /* Send one message without blocking: AQ_OK, or AQ_RETRY if there is no room, and then without
     * any effect: a long's destination is as it was. A reply must not depend on room that only
     * running requests could free. */
    int (*am_send)(const struct aq_am_out *out);
    /* The same for a short message, all in registers. */
    int (*am_short)(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                    const gex_AM_Arg_t *args);
    /* A buffer for the payload of a message to jobrank, without blocking: of most bytes if it can
     * be had, of at least least bytes in any case; or AQ_RETRY, also if the message itself would
     * find no room now. Only the caller touches it until am_send takes it over in out->buffer (if
     * that returns AQ_OK; out has the jobrank and is_reply given here) or am_free gives it back.
     * However many are out, and for however long, a message without one finds room in the end. Both
     * from any thread; am_free also as a thread ends. NULL, both: the core keeps a buffer for each
     * thread and sends from it. */
    int (*am_alloc)(gex_Rank_t jobrank, bool is_reply, size_t min, size_t max,
                    struct aq_am_buffer *buffer_out);
    void (*am_free)(bool is_reply, const struct aq_am_buffer *buffer);
    /* Deliver waiting messages through aq_am_deliver(); requests too unless replies_only.
     * Returns how many were delivered. Never blocks, in par not even behind another poller. */
    unsigned (*poll)(bool replies_only);
    /* Sleeping in the kernel. prepare: from now on whoever brings work rings our doorbell;
     * returns its present value. The caller then looks once more whether there is something
     * to do, and calls sleep (returns when the bell has rung since, or after max_ns), and
     * cancel once for each prepare. ring: wake sleepers of this process. */
    uint32_t (*sleep_prepare)(void);
    void (*sleep)(uint32_t wakeup, uint64_t max_ns);
    void (*sleep_cancel)(void);
    void (*sleep_wake)(void);
    /* With GASNET_SEGMENT_EVERYTHING: may this rank tell near ranks something by storing where they
     * look, as the collectives of shared memory do? If not, it asks again after a poll. NULL:
     * always. */
    bool (*may_notify)(void);
    /* A thread of the client's has waited in vain for a while, for peer if that is not
     * GEX_RANK_INVALID, and is about to wait on: if that is no use, ends the job. NULL: nothing is
     * to be said. */
    void (*wait_look)(gex_Rank_t peer);
    /* Messages sent to and handled by a peer, for the stall report. */
    void (*peer_counts)(gex_Rank_t jobrank, uint64_t *sent_out, uint64_t *handled_out);

    /* One-sided transfers for peers that are not mapped, and of memory outside the segment that
     * is: that of further endpoints (aq_bound_contains() tells). Each part still on its way has
     * been counted with aq_op_begin(); AQ_OK, or AQ_RETRY with GEX_FLAG_IMMEDIATE. src may be
     * reused on return if lc_now, else once the op's LC count is down. */
    int (*put)(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags);
    int (*get)(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags);

    /* From hold to go nobody waits for this operation, and its puts and gets by this thread may
     * wait for one another, to be started together: at go at the latest, and in every poll of the
     * thread. hold returns the operation that this was so for before, or NULL: go is told which. go
     * may poll. NULL, both: nothing is gained by it. */
    struct aq_op *(*rma_batch_begin)(struct aq_op *op);
    void (*rma_batch_end)(struct aq_op *before);

    /* Would atomic domains of this type, with no operations but these, be served by the conduit:
     * every operation on every target, this process and near ones included? The same answer on
     * every process. NULL: never. */
    bool (*ad_serves)(gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags);
    /* An operation of such a domain, as put: counted in the category of its opcode
     * (extended/aq_ad.h). */
    int (*ad_op)(struct aq_op *op, gex_Rank_t jobrank, gex_DT_t dt, void *result_p, void *tgt_addr,
                 gex_OP_t opcode, uint64_t operand1, uint64_t operand2, gex_Flags_t flags);

    /* Large parts of collectives, from the memory of one rank to that of another, whatever it is.
     * rndv_recv: nbytes of jobrank will come to dest, whose sender is to name the ticket; 0, never
     * a ticket: not so, and the data comes in messages. rndv_send: sends them to a rank that has
     * such a ticket for them. part is the conduit's from a call that did not return 0 until done.
     * Neither blocks; any number may be on their way, in any order. NULL, both: all data of
     * collectives is sent in messages. */
    uint32_t (*rndv_recv)(gex_Rank_t jobrank, void *dest, size_t nbytes, struct aq_rndv *rndv);
    void (*rndv_send)(gex_Rank_t jobrank, uint32_t match_id, const void *src, size_t nbytes,
                      struct aq_rndv *rndv);

    /* Barriers over the job. arrive: this process has entered phase k = 1, 2, ...; done: has
     * everybody? If not, *missing_out is somebody who has not, or GEX_RANK_INVALID. Any
     * number of phases may be open. */
    void (*barrier_arrive)(uint64_t k);
    bool (*barrier_done)(uint64_t k, gex_Rank_t *missing_out);
    /* Named barriers: one phase open at a time; id and flags as in gasnet_barrier_notify(). */
    void (*named_arrive)(uint64_t k, int id, int flags);
    bool (*named_done)(uint64_t k, struct aq_barrier_name *name_out, gex_Rank_t *missing_out);
};

/* Limits of the running conduit, set by its init. */
struct aq_limits {
    size_t max_medium; /* bytes, both directions, any peer */
    size_t max_long;
    uint64_t host_bytes;     /* of host memory that the conduit's queues can come to use */
    uint64_t segment_max;    /* bytes of a rank's segment that the conduit can serve; 0: any */
    const char *segment_why; /* with that: where it comes from, and what to do about it */
    uint32_t poll_ns;        /* what a poll costs that finds nothing; 0: about 50 ns */
};
extern struct aq_limits aq_limits;

/* The conduits this library holds, best first, ended by NULL (conduits/aq_conduit_list.c). */
extern const struct aq_conduit_ops *const aq_conduits[];

#endif
