/*
 * aq_ibv_qp.h - queue pairs: creation, connection, posting, completions.
 *
 * Few requests are signalled: those whose completion a thread waits for, and one in every quarter
 * of the queue. The requests of a queue pair complete in order, so that one completion retires all
 * requests before it. A ring beside the queue names the waiter of each request.
 *
 * Space     a request needs a slot of the queue, which one completion may free for many requests. A
 *           signalled request also needs an entry of the rail's completion queue; it is claimed
 *           before the request is posted and given back when its completion is read, so the
 *           completion queue cannot overflow
 * Threads   posting: any, under qp->lock; reaping: one thread per rail at a time (reap_lock, tried
 *           and never waited for); creation and connection: the caller's lock
 * Uses      aq_ibv_device.h, aq_ibv_error.h, aq_ibv_hello.h for what the peers exchange.
 *           SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_QP_H
#define AQ_IBV_QP_H

#include "conduits/ibv/aq_ibv_device.h"
#include "conduits/ibv/aq_ibv_error.h"
#include "conduits/ibv/aq_ibv_hello.h"

#define AQ_IBV_QP_DEPTH_MAX 256u /* work requests of a queue pair */
#define AQ_IBV_INLINE_MAX   448u /* bytes that are ever sent inline */
#define AQ_IBV_GATHER_MAX   16u  /* local pieces of one request, at most */
/* A queue pair's address ends in so many zeros that a slot number fits there: see wr_id. */
#define AQ_IBV_QP_ALIGN 512u

/* What all queue pairs of a process share. */
struct aq_ibv_qp_config {
    uint32_t depth;      /* slots of a queue; a power of two */
    uint32_t inline_max; /* bytes; lowered if a device takes less */
    uint32_t gather_max; /* local pieces of a request */
};

/* A waiter for work requests, embedded in the waiter's own struct. fn runs once, when all of its
 * requests are complete, on any thread, under the rail's reap lock. fn may count (aq_op_end) and
 * free; fn must neither post nor poll. */
struct aq_ibv_done {
    void (*fn)(struct aq_ibv_done *done);
};

struct aq_ibv_qp {
    _Alignas(AQ_CACHE_LINE) aq_lock lock; /* of posting */
    struct ibv_qp *qp;
    struct aq_ibv_rail *rail;
    const struct aq_ibv_remote *remote;
    uint32_t depth;     /* requests that may be outstanding; a power of two */
    uint32_t head;      /* requests posted so far; under lock */
    uint32_t signalled; /* head when the last signalled request was posted; under lock */
    atomic_uint tail;   /* requests completed so far; written under the reap lock */
    uint32_t max_inline, max_reads;
    uint8_t max_gather[2]; /* local pieces of an RDMA write, of a read [1] */
    /* puts are followed by a read: messages use another queue pair and might overtake a put on the
     * way to memory */
    bool fences;
    struct aq_ibv_done *waits[AQ_IBV_QP_DEPTH_MAX]; /* [depth] the waiter of each slot, or NULL */
    uint8_t
        opcodes[AQ_IBV_QP_DEPTH_MAX]; /* [depth] opcode, with AQ_IBV_POST_NOTICE: for messages */
};

/* A thread waits for the completion: signal it. */
#define AQ_IBV_POST_SIGNAL 1u
/* A credit update: may use the slots that others leave free. */
#define AQ_IBV_POST_RESERVE 2u
/* A notice that is of no use to a peer that has disconnected: its failure then is none. */
#define AQ_IBV_POST_NOTICE 0x80u

/**
 * aq_ibv_qp_post - post a chain of work requests with one doorbell.
 * wr     a chain of count requests linked by next; IBV_SEND_SIGNALED is set here. wr_id of each but
 *        the last is 0, or the address of a struct aq_ibv_done for that request
 * done   called when the last request is complete, and with it all others; NULL: no waiter
 * flags  AQ_IBV_POST_*. Without AQ_IBV_POST_SIGNAL done may be called as late as with the next
 *        signalled request of the queue pair: enough for a buffer's return, not for an operation
 * Returns AQ_OK, or AQ_RETRY if there is no space: nothing was posted. Ends the job on other
 * errors. Takes qp->lock.
 */
int aq_ibv_qp_post(struct aq_ibv_qp *qp, struct ibv_send_wr *wr, unsigned count,
                   struct aq_ibv_done *done, unsigned flags);

/* Take completions from a rail's send queue; returns the number of waiters called. */
unsigned aq_ibv_qp_reap(struct aq_ibv_rail *rail);
/* The same for all rails on which a completion is due. */
static inline unsigned aq_ibv_qp_reap_all(struct aq_ibv_net *net)
{
    unsigned called = 0;

    for (uint32_t i = 0; i < net->rail_count; i++)
        if (aq_counter_get(&net->rails[i].send_claimed) != 0)
            called += aq_ibv_qp_reap(&net->rails[i]);
    return called;
}

/* Free slots; a hint without the lock. */
static inline uint32_t aq_ibv_qp_space(const struct aq_ibv_qp *qp)
{
    /* acquire: pairs with the release in aq_ibv_qp_retire(): slots behind tail may be reused */
    return qp->depth
           - (qp->head
              - atomic_load_explicit(&((struct aq_ibv_qp *)(uintptr_t)qp)->tail,
                                     memory_order_acquire));
}

/* Is nothing outstanding? If something is and no completion is due, requests one. */
bool aq_ibv_qp_drained(struct aq_ibv_qp *qp);

/* Create a queue pair in state INIT. others: ranks that this process has queue pairs with, for the
 * message. Ends the job with the reason. */
struct aq_ibv_qp *aq_ibv_qp_create(struct aq_ibv_qp_config *config, struct aq_ibv_rail *rail,
                                   const struct aq_ibv_remote *remote, uint32_t others);
/* Destroy it; what is outstanding on it is dropped, and no waiter is called. */
void aq_ibv_qp_destroy(struct aq_ibv_qp *qp);
/* Connect it: what the remote side said of its own, and the packet number of this side. */
void aq_ibv_qp_join(struct aq_ibv_qp *qp, const struct aq_ibv_hello_qp *remote, uint32_t psn);
/* Reads and atomics at a time: the least of the device, the other side and the user's setting. */
uint8_t aq_ibv_qp_reads(int64_t device, uint8_t other);

#endif
