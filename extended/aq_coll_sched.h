/*
 * aq_coll_sched.h - schedules of collectives, inside: what their two files share.
 *
 *     aq_coll_sched.c   writing a schedule; carrying out its steps
 *     aq_coll_msg.c     the table of schedules; messages that arrive for them; polls
 *
 * Uses      extended/aq_coll.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_COLL_SCHED_H
#define AQ_COLL_SCHED_H

#include "extended/aq_coll.h"

#define AQ_EAGER      16384u /* bytes: larger messages wait for their receiver */
#define AQ_TEMP_ALIGN 64u

enum aq_step_kind {
    AQ_STEP_SEND,
    AQ_STEP_RECV,
    AQ_STEP_COPY,
    AQ_STEP_REDUCE,
    AQ_STEP_OPEN,
    AQ_STEP_WAIT
};

struct aq_step {
    uint8_t kind;      /* enum aq_step_kind */
    bool ready;        /* send: the receiver waits for it. Under the lock */
    bool offered;      /* receive: the conduit was asked for a match id */
    bool unsent;       /* reduction: no send reads where it writes */
    gex_Rank_t peer;   /* jobrank */
    uint32_t tag;      /* and number of a local call */
    uint32_t match_id; /* 0: messages. Of a send: under the lock, as ready */
    struct aq_rndv rndv;
    const void *src; /* and x of a reduction */
    void *dst;       /* and y */
    size_t nbytes;   /* elements of a reduction */
    size_t sent;     /* bytes that have left */
    atomic_size_t
        arrived; /* bytes that have come; 1 when an empty message has. Added under the lock */
};

/* A call inside the neighborhood. */
struct aq_sched_local {
    struct aq_coll_part part;
    struct aq_sched *sched;
    struct aq_coll_local *shm;
    struct aq_coll_call call;
    bool over; /* under the lock */
};

/* A message that was here before its receiver. */
struct aq_early {
    struct aq_early *next;
    gex_Rank_t from;
    uint32_t tag;
    bool is_ready; /* COLL_READY, and with it: */
    uint32_t match_id, expected;
    size_t offset, nbytes;
    char data[];
};

struct aq_sched {
    struct aq_sched *next;   /* in its bucket, or free */
    struct aq_sched *queued; /* behind it in the queue */
    uint64_t team;
    uint32_t number;
    bool started;
    bool running;
    struct aq_early *early;
    struct aq_step *step;
    unsigned steps, capacity;
    struct aq_sched_local *local;
    unsigned locals, local_capacity;
    unsigned at;         /* the step being carried out */
    unsigned ready_to;   /* receives up to here have told their senders */
    unsigned first_open; /* steps before it are over; under the lock */
    unsigned sending;    /* parts that the conduit has not sent yet, */
    bool deferred;       /* and the step waits until there are none; both under the lock */
    bool gave;           /* there may be some */
    gex_Coll_ReduceFn_t fn;
    const void *cdata;
    const struct aq_coll_team *of;
    struct aq_op *op;
    void *temp;
    size_t temp_bytes;
};

/* What the files share; everything in it is under its lock. */
struct aq_msg_lists {
    aq_lock lock;
    struct aq_sched *first, *last; /* queue of schedules that a poll carries on */
    atomic_uint queued;            /* polls look before they lock */
    struct aq_sched *free;
};
extern struct aq_msg_lists aq_msg;

static inline bool aq_step_over(const struct aq_step *step)
{
    /* acquire: pairs with the release in aq_msg_write() */
    const size_t arrived = atomic_load_explicit(&step->arrived, memory_order_acquire);

    return arrived >= (step->nbytes == 0 ? 1 : step->nbytes);
}

/* --- aq_coll_msg.c --- */

/** aq_msg_record - an empty schedule; memory of its last use stays with it. Under the lock. */
struct aq_sched *aq_msg_record(uint64_t team, uint32_t number);

/** aq_msg_drop - take a schedule out of the table and free it. Under the lock. */
void aq_msg_drop(struct aq_sched *sched);

/** aq_msg_queue - polls are to carry a schedule on. Under the lock. */
void aq_msg_queue(struct aq_sched *sched);

/** aq_msg_on_rndv - the conduit has moved the data of a step by rendezvous. */
void aq_msg_on_rndv(struct aq_rndv *rndv);

/* --- aq_coll_sched.c --- */

/** aq_sched_submit - start the local calls of a schedule. */
void aq_sched_submit(struct aq_sched *sched);

/** aq_sched_run - carry a schedule on as far as it goes; *happened counts. The caller owns the
 *  schedule during the call, not after. Returns false if a message found no credits. */
bool aq_sched_run(struct aq_sched *sched, unsigned *happened);

#endif
