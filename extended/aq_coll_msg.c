/*
 * aq_coll_msg.c - collectives by messages: programs of sends, receives and reductions.
 *
 * Every member of a team writes a program for its part of a collective (aq_coll_bcast.c,
 * aq_coll_reduce.c), and this file carries it out, step by step. A record is found by team and
 * number of the collective. Messages for a collective that has not begun here yet are kept with
 * an empty record until it does; a large one is not sent before its receiver says that it is
 * ready, so that only small ones can pile up. With its word the receiver can send a ticket of the
 * conduit's, if it has such: then the data goes straight to its place (rndv_recv and rndv_send in
 * core/aq_conduit.h), not in messages.
 *
 * Owns      the table of records; all programs, steps, temporary memory, early messages
 * Threads   any. A record is carried out by one thread at a time; handlers copy data to its
 *           place without a lock, and note under the lock how much has come
 * States    EARLY (messages, no program) -> RUNNING <-> PARKED (its step waits for a message) or
 *           QUEUED (a poll is to carry it on) -> free
 * Promise   handlers only copy and queue; progress never blocks: what finds no room waits for the
 *           next poll; no lock is held while a client's operator runs
 * Wire      COLL_DATA(team, number, tag, offset; bytes), COLL_READY(team, number, tag, ticket or 0,
 *           bytes mod 2^32)
 * Uses      core/aq_am.h, core/aq_op.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_coll.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/aq_am.h"
#include "core/aq_am_out.h"
#include "base/aq_log.h"
#include "extended/aq_barrier.h"

#define AQ_BUCKETS     1024u
#define AQ_EAGER       16384u /* bytes: larger messages wait for their receiver */
#define AQ_TEMP_CACHED 65536u /* bytes: a record keeps so much memory for its next use */
#define AQ_TEMP_ALIGN  64u
#define AQ_DECLINES    4 /* messages without room after which a poll gives up */

enum aq_step_kind { AQ_STEP_SEND, AQ_STEP_RECV, AQ_STEP_COPY, AQ_STEP_REDUCE };

struct aq_step {
    uint8_t kind;    /* enum aq_step_kind */
    bool ready;      /* send: the receiver waits for it. Under the lock */
    bool offered;    /* receive: the conduit was asked for a ticket */
    gex_Rank_t peer; /* jobrank */
    uint32_t tag;
    uint32_t match_id; /* 0: messages. Of a send: under the lock, as ready */
    struct aq_rndv rndv;
    const void *src; /* and x of a reduction */
    void *dst;       /* and y */
    size_t nbytes;   /* elements of a reduction */
    size_t sent;     /* bytes that have left */
    atomic_size_t
        arrived; /* bytes that have come; 1 when an empty message has. Added under the lock */
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

static struct {
    aq_lock lock; /* everything below */
    struct aq_sched *bucket[AQ_BUCKETS];
    struct aq_sched *first, *last; /* queue */
    atomic_uint queued;            /* polls look before they lock */
    struct aq_sched *free;
} aq_msg;

/* --- the table; all under the lock --- */

static struct aq_sched **aq_msg_bucket(uint64_t team, uint32_t number)
{
    const uint64_t mixed = (team * UINT64_C(0x9E3779B97F4A7C15)) ^ number;

    return &aq_msg.bucket[(mixed ^ mixed >> 32) % AQ_BUCKETS];
}

static struct aq_sched *aq_msg_find(uint64_t team, uint32_t number)
{
    struct aq_sched *sched = *aq_msg_bucket(team, number);

    while (sched != NULL && (sched->team != team || sched->number != number))
        sched = sched->next;
    return sched;
}

static void aq_msg_link(struct aq_sched *sched)
{
    struct aq_sched **bucket = aq_msg_bucket(sched->team, sched->number);

    sched->next = *bucket;
    *bucket = sched;
}

static void aq_msg_unlink(struct aq_sched *sched)
{
    struct aq_sched **at = aq_msg_bucket(sched->team, sched->number);

    while (*at != sched)
        at = &(*at)->next;
    *at = sched->next;
}

/* An empty record; memory of the last use stays with it. */
static struct aq_sched *aq_msg_record(uint64_t team, uint32_t number)
{
    struct aq_sched *sched = aq_msg.free;

    if (sched != NULL)
        aq_msg.free = sched->next;
    else if ((sched = calloc(1, sizeof(*sched))) == NULL)
        aq_fatal("no memory for a collective (%zu bytes)", sizeof(*sched));
    sched->team = team;
    sched->number = number;
    sched->started = sched->running = sched->deferred = sched->gave = false;
    sched->sending = 0;
    sched->early = NULL;
    sched->steps = sched->at = sched->ready_to = sched->first_open = 0;
    return sched;
}

static void aq_msg_release(struct aq_sched *sched)
{
    if (sched->temp_bytes > AQ_TEMP_CACHED) {
        free(sched->temp);
        sched->temp = NULL;
        sched->temp_bytes = 0;
    }
    sched->next = aq_msg.free;
    aq_msg.free = sched;
}

static void aq_msg_queue(struct aq_sched *sched)
{
    sched->queued = NULL;
    if (aq_msg.first == NULL)
        aq_msg.first = sched;
    else
        aq_msg.last->queued = sched;
    aq_msg.last = sched;
    atomic_store_explicit(&aq_msg.queued, /* relaxed, both: lock held */
                          atomic_load_explicit(&aq_msg.queued, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    aq_pending_add(1);
}

static struct aq_sched *aq_msg_dequeue(void)
{
    struct aq_sched *sched = aq_msg.first;

    aq_msg.first = sched->queued;
    atomic_store_explicit(&aq_msg.queued, /* relaxed, both: lock held */
                          atomic_load_explicit(&aq_msg.queued, memory_order_relaxed) - 1,
                          memory_order_relaxed);
    aq_pending_add(-1);
    return sched;
}

/* --- writing a program --- */

struct aq_sched *aq_sched_begin(struct aq_coll_team *team, size_t temp_bytes, void **temp_out)
{
    struct aq_sched *sched;

    aq_lock_acquire(&aq_msg.lock);
    sched = aq_msg_record(team->id, team->next++);
    aq_lock_release(&aq_msg.lock);
    sched->of = team;
    if (sched->temp_bytes < temp_bytes) {
        free(sched->temp);
        sched->temp_bytes = aq_round_up(temp_bytes, AQ_TEMP_ALIGN);
        sched->temp = aligned_alloc(AQ_TEMP_ALIGN, sched->temp_bytes);
        if (sched->temp == NULL)
            aq_fatal("no memory for a collective over %u members (%zu bytes)", team->size,
                     temp_bytes);
    }
    if (temp_out != NULL)
        *temp_out = sched->temp;
    return sched;
}

static struct aq_step *aq_sched_step(struct aq_sched *sched, enum aq_step_kind kind)
{
    struct aq_step *step;

    if (sched->steps == sched->capacity) {
        const unsigned capacity = sched->capacity == 0 ? 16 : 2 * sched->capacity;

        step = realloc(sched->step, capacity * sizeof(*step));
        if (step == NULL)
            aq_fatal("no memory for a collective over %u members (%zu bytes)", sched->of->size,
                     capacity * sizeof(*step));
        sched->step = step;
        sched->capacity = capacity;
    }
    step = &sched->step[sched->steps++];
    memset(step, 0, sizeof(*step));
    step->kind = (uint8_t)kind;
    return step;
}

void aq_sched_send(struct aq_sched *sched, gex_Rank_t to, uint32_t tag, const void *src,
                   size_t nbytes)
{
    struct aq_step *step = aq_sched_step(sched, AQ_STEP_SEND);

    step->peer = aq_coll_jobrank(sched->of, to);
    step->tag = tag;
    step->src = src;
    step->nbytes = nbytes;
}

void aq_sched_recv(struct aq_sched *sched, gex_Rank_t from, uint32_t tag, void *dst, size_t nbytes)
{
    struct aq_step *step = aq_sched_step(sched, AQ_STEP_RECV);

    step->peer = aq_coll_jobrank(sched->of, from);
    step->tag = tag;
    step->dst = dst;
    step->nbytes = nbytes;
}

void aq_sched_copy(struct aq_sched *sched, void *dst, const void *src, size_t nbytes)
{
    struct aq_step *step;

    if (dst == src || nbytes == 0)
        return;
    step = aq_sched_step(sched, AQ_STEP_COPY);
    step->dst = dst;
    step->src = src;
    step->nbytes = nbytes;
}

void aq_sched_reduce(struct aq_sched *sched, const struct aq_coll_call *call, const void *x,
                     void *y, size_t count)
{
    struct aq_step *step = aq_sched_step(sched, AQ_STEP_REDUCE);

    sched->fn = call->fn;
    sched->cdata = call->cdata;
    step->src = x;
    step->dst = y;
    step->nbytes = count;
}

/* --- sending; without waiting for room and without running handlers --- */

static void aq_msg_on_rndv(struct aq_rndv *rndv);

#define AQ_ARGS_OF_U64(value) \
    (gex_AM_Arg_t)((uint64_t)(value) >> 32), (gex_AM_Arg_t)(uint32_t)(value)

static uint64_t aq_u64_of_args(gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}

static gex_TM_t aq_msg_job(void)
{
    return aq_tm_handle(aq_job.tm);
}

/* Send what has not left yet. False: no room for all of it. A conduit may go on reading what is
 * large: it counts that in the operation, and the step is over when aq_step_lc_done(). Not where
 * the receiver may have to wait for our core, and not what is sent before the receiver has called
 * for it, since the next receiver may be ready first. */
static bool aq_step_send(const struct aq_sched *sched, struct aq_step *step)
{
    const size_t max = aq_am_max_medium();
    const size_t copied =
        aq_job.oversubscribed || step->nbytes <= AQ_EAGER ? SIZE_MAX : AQ_AM_COPIED;
    struct aq_am_lc lc = { .opt = GEX_EVENT_GROUP, .op = sched->op };

    if (step->nbytes != 0 && step->sent == step->nbytes)
        return true;
    do {
        const size_t left = step->nbytes - step->sent;
        const size_t frag = left < max ? left : max;
        const gex_AM_Arg_t args[] = { AQ_ARGS_OF_U64(sched->team), (gex_AM_Arg_t)sched->number,
                                      (gex_AM_Arg_t)step->tag, AQ_ARGS_OF_U64(step->sent) };
        const struct aq_am_out out = { .jobrank = step->peer,
                                       .handler = AQ_HIDX_COLL_DATA,
                                       .nargs = 6,
                                       .kind = AQ_AM_MEDIUM,
                                       .args = args,
                                       .nbytes = frag,
                                       .src = (const char *)step->src + step->sent,
                                       .lc = frag > copied ? &lc : NULL };

        if (aq_am_try_send(&out) != 0)
            return false;
        step->sent += frag;
    } while (step->sent < step->nbytes);
    return true;
}

static inline bool aq_step_lc_done(const struct aq_sched *sched)
{
    return aq_op_cell_done(sched->op, AQ_CELL_LC);
}

/* A ticket for what a step receives, if the conduit has one. */
static void aq_step_rndv_recv(struct aq_sched *sched, struct aq_step *step)
{
    step->offered = true;
    step->rndv = (struct aq_rndv){ aq_msg_on_rndv, sched };
    step->match_id =
        aq_job_ops(step->peer)->rndv_recv(step->peer, step->dst, step->nbytes, &step->rndv);
}

/* Tell the sender of a large message that its place is ready. */
static bool aq_step_send_ready(struct aq_sched *sched, struct aq_step *step)
{
    if (!step->offered)
        aq_step_rndv_recv(sched, step);

    const gex_AM_Arg_t args[] = { AQ_ARGS_OF_U64(sched->team), (gex_AM_Arg_t)sched->number,
                                  (gex_AM_Arg_t)step->tag, (gex_AM_Arg_t)step->match_id,
                                  (gex_AM_Arg_t)(uint32_t)step->nbytes };

    return aq_am_request_short(aq_msg_job(), step->peer, AQ_HIDX_COLL_READY, GEX_FLAG_IMMEDIATE, 6,
                               args)
           == 0;
}

/* To a receiver that has a ticket for it: goes on by itself. */
static void aq_step_rndv_send(struct aq_sched *sched, struct aq_step *step)
{
    aq_lock_acquire(&aq_msg.lock);
    sched->sending++;
    aq_lock_release(&aq_msg.lock);
    sched->gave = true;
    step->rndv = (struct aq_rndv){ aq_msg_on_rndv, sched };
    aq_job_ops(step->peer)
        ->rndv_send(step->peer, step->match_id, step->src, step->nbytes, &step->rndv);
}

/* --- carrying out --- */

static bool aq_step_over(const struct aq_step *step)
{
    /* acquire: pairs with the release in aq_msg_write() */
    const size_t arrived = atomic_load_explicit(&step->arrived, memory_order_acquire);

    return arrived >= (step->nbytes == 0 ? 1 : step->nbytes);
}

/* The record is about to be parked, still ours, in a step that somebody else's message ends. */
static void aq_sched_blame(const struct aq_sched *sched, const struct aq_step *step)
{
    aq_op_set_peer(sched->op, step->peer);
}

/* May the step go on? If not, the record is parked, and whoever brings what it waits for queues
 * it: we are not to touch it any more. */
static bool aq_sched_may_proceed(struct aq_sched *sched, const struct aq_step *step)
{
    bool goes_on;

    if (step->kind == AQ_STEP_RECV && aq_step_over(step))
        return true;
    aq_lock_acquire(&aq_msg.lock);
    goes_on = step->kind == AQ_STEP_RECV ? aq_step_over(step) : step->ready;
    if (!goes_on)
        aq_sched_blame(sched, step);
    sched->first_open = sched->at;
    sched->running = goes_on;
    aq_lock_release(&aq_msg.lock);
    return goes_on;
}

/* Has everything left that was given to the conduit, so that it may be written to? If not, the
 * record is parked. */
static bool aq_sched_may_write(struct aq_sched *sched)
{
    bool deferred;

    if (!sched->gave)
        return true;
    aq_lock_acquire(&aq_msg.lock);
    deferred = sched->deferred = sched->sending != 0;
    sched->gave = deferred;
    sched->first_open = sched->at;
    sched->running = !deferred;
    aq_lock_release(&aq_msg.lock);
    return !deferred;
}

/* No room, or the data have not left: the next poll tries again. */
static void aq_sched_defer(struct aq_sched *sched)
{
    aq_lock_acquire(&aq_msg.lock);
    sched->running = false;
    aq_msg_queue(sched);
    aq_lock_release(&aq_msg.lock);
}

static void aq_sched_finish(struct aq_sched *sched)
{
    struct aq_op *op = sched->op;

    aq_lock_acquire(&aq_msg.lock);
    aq_msg_unlink(sched);
    aq_msg_release(sched);
    aq_lock_release(&aq_msg.lock);
    aq_op_end(op, GEX_EC_GET, 1);
}

/* What has become of a step. Unless it is over, the record may be another thread's already. */
enum aq_step_result { AQ_STEP_OVER, AQ_STEP_WAITS, AQ_STEP_NO_CREDIT };

static enum aq_step_result aq_sched_send_step(struct aq_sched *sched, struct aq_step *step)
{
    if (step->nbytes > AQ_EAGER && !aq_sched_may_proceed(sched, step))
        return AQ_STEP_WAITS;
    if (step->match_id != 0) {
        aq_step_rndv_send(sched, step);
        return AQ_STEP_OVER;
    }
    if (!aq_step_send(sched, step)) {
        aq_sched_defer(sched);
        return AQ_STEP_NO_CREDIT;
    }
    if (aq_step_lc_done(sched))
        return AQ_STEP_OVER;
    aq_sched_defer(sched); /* later steps may write where it is */
    return AQ_STEP_WAITS;
}

static enum aq_step_result aq_sched_one_step(struct aq_sched *sched, struct aq_step *step)
{
    if (step->kind == AQ_STEP_SEND)
        return aq_sched_send_step(sched, step);
    if (step->kind == AQ_STEP_RECV)
        return aq_sched_may_proceed(sched, step) ? AQ_STEP_OVER : AQ_STEP_WAITS;
    if (!aq_sched_may_write(sched))
        return AQ_STEP_WAITS;
    if (step->kind == AQ_STEP_COPY)
        memcpy(step->dst, step->src, step->nbytes);
    else
        aq_coll_apply(sched->fn, step->src, step->dst, step->nbytes, sched->cdata);
    return AQ_STEP_OVER;
}

/* Carry a record on as far as it goes. Returns false if a message found no room. */
static bool aq_sched_run(struct aq_sched *sched, unsigned *happened)
{
    for (; sched->ready_to < sched->steps; sched->ready_to++) {
        struct aq_step *step = &sched->step[sched->ready_to];

        if (step->kind == AQ_STEP_RECV && step->nbytes > AQ_EAGER
            && !aq_step_send_ready(sched, step)) {
            aq_sched_defer(sched);
            return false;
        }
    }
    for (; sched->at < sched->steps; sched->at++, ++*happened) {
        const enum aq_step_result result = aq_sched_one_step(sched, &sched->step[sched->at]);

        if (result != AQ_STEP_OVER)
            return result == AQ_STEP_WAITS;
    }
    if (!aq_sched_may_write(sched)) /* now the client may */
        return true;
    aq_sched_finish(sched);
    ++*happened;
    return true;
}

bool aq_msg_is_open(uint64_t team)
{
    const struct aq_sched *sched = NULL;

    aq_lock_acquire(&aq_msg.lock);
    for (unsigned i = 0; sched == NULL && i < AQ_BUCKETS; i++) {
        sched = aq_msg.bucket[i];
        while (sched != NULL && (sched->team != team || !sched->started))
            sched = sched->next;
    }
    aq_lock_release(&aq_msg.lock);
    return sched != NULL;
}

unsigned aq_msg_progress(void)
{
    unsigned happened = 0, declined = 0, max;

    /* relaxed: what another thread queues at this moment waits for the next poll */
    if (atomic_load_explicit(&aq_msg.queued, memory_order_relaxed) == 0)
        return 0;
    aq_lock_acquire(&aq_msg.lock);
    max = atomic_load_explicit(&aq_msg.queued, memory_order_relaxed); /* lock held */
    /* what was put off went to the queue's end: the next poll begins with others */
    for (; max > 0 && aq_msg.first != NULL && declined < AQ_DECLINES; max--) {
        struct aq_sched *sched = aq_msg_dequeue();

        sched->running = true;
        aq_lock_release(&aq_msg.lock);
        declined += !aq_sched_run(sched, &happened);
        aq_lock_acquire(&aq_msg.lock);
    }
    aq_lock_release(&aq_msg.lock);
    if (declined != 0)
        sched_yield();          /* the peer, if it shares our core, gets a chance to make room */
    return happened + declined; /* a message without room wants another poll soon */
}

/* --- messages that come --- */

/* The step of a started record that a message belongs to. Under the lock. */
static struct aq_step *aq_sched_step_of(const struct aq_sched *sched, enum aq_step_kind kind,
                                        gex_Rank_t peer, uint32_t tag)
{
    for (unsigned i = sched->first_open; i < sched->steps; i++) {
        struct aq_step *step = &sched->step[i];

        if (step->kind == kind && step->peer == peer && step->tag == tag)
            return step;
    }
    aq_fatal(
        "a message of rank %u for collective %u of team %llu (tag 0x%x) does not belong to what "
        "this rank called; all members of a team must make the same collective calls in the "
        "same order",
        peer, sched->number, (unsigned long long)sched->team, tag);
}

/* Something has come for a step: if the record waits for just that, polls are to carry it on.
 * Under the lock. */
static void aq_sched_wake(struct aq_sched *sched, const struct aq_step *step)
{
    if (!sched->running && step == &sched->step[sched->at]
        && (step->kind == AQ_STEP_SEND || aq_step_over(step)) && sched->ready_to == sched->steps)
        aq_msg_queue(sched);
}

/* Copy data to its place. The record cannot go away before all of it is there, so the copy needs
 * no lock. */
static void aq_msg_write(struct aq_sched *sched, struct aq_step *step, size_t offset,
                         const void *data, size_t nbytes)
{
    if (offset > step->nbytes || nbytes > step->nbytes - offset)
        aq_fatal("rank %u sent %zu bytes at offset %zu for collective %u of team %llu; this rank "
                 "expects %zu in all: all members of a team must pass the same sizes",
                 step->peer, nbytes, offset, sched->number, (unsigned long long)sched->team,
                 step->nbytes);
    if (nbytes > 0)
        memcpy((char *)step->dst + offset, data, nbytes);
    aq_lock_acquire(&aq_msg.lock);
    /* release: pairs with the acquire in aq_step_over() */
    atomic_fetch_add_explicit(&step->arrived, step->nbytes == 0 ? 1 : nbytes, memory_order_release);
    aq_sched_wake(sched, step);
    aq_lock_release(&aq_msg.lock);
}

static void aq_msg_clear(struct aq_sched *sched, struct aq_step *step, const struct aq_early *what)
{
    if (what->match_id != 0 && what->expected != (uint32_t)step->nbytes)
        aq_fatal("rank %u expects %u bytes (mod 2^32) of collective %u of team %llu; this rank "
                 "sends %zu: all members "
                 "of a team must pass the same sizes",
                 step->peer, (unsigned)what->expected, sched->number,
                 (unsigned long long)sched->team, step->nbytes);
    aq_lock_acquire(&aq_msg.lock);
    step->ready = true;
    step->match_id = what->match_id;
    aq_sched_wake(sched, step);
    aq_lock_release(&aq_msg.lock);
}

/* Under the conduit's lock perhaps, which nobody takes who has ours. */
static void aq_msg_on_rndv(struct aq_rndv *rndv)
{
    struct aq_step *step =
        (struct aq_step *)(void *)((char *)rndv - offsetof(struct aq_step, rndv));
    struct aq_sched *sched = rndv->owner;

    aq_lock_acquire(&aq_msg.lock);
    if (step->kind == AQ_STEP_RECV) {
        /* release: pairs with the acquire in aq_step_over() */
        atomic_store_explicit(&step->arrived, step->nbytes, memory_order_release);
        aq_sched_wake(sched, step);
    } else if (--sched->sending == 0 && sched->deferred) {
        sched->deferred = false;
        aq_msg_queue(sched);
    }
    aq_lock_release(&aq_msg.lock);
}

static void aq_msg_deliver(struct aq_sched *sched, struct aq_step *step,
                           const struct aq_early *what, const void *data)
{
    if (what->is_ready)
        aq_msg_clear(sched, step, what);
    else
        aq_msg_write(sched, step, what->offset, data, what->nbytes);
}

/* The record of a team's collective, made if need be, and, if it has begun, the step. */
static struct aq_step *aq_msg_look_up(uint64_t team, uint32_t number, const struct aq_early *what,
                                      struct aq_sched **sched_out)
{
    struct aq_sched *sched = aq_msg_find(team, number);

    if (sched == NULL) {
        sched = aq_msg_record(team, number);
        aq_msg_link(sched);
    }
    *sched_out = sched;
    return sched->started ? aq_sched_step_of(sched, what->is_ready ? AQ_STEP_SEND : AQ_STEP_RECV,
                                             what->from, what->tag)
                          : NULL;
}

static struct aq_early *aq_msg_copy(const struct aq_early *what, const void *data)
{
    struct aq_early *early = malloc(sizeof(*early) + what->nbytes);

    if (early == NULL)
        aq_fatal("no memory for data of a collective that this rank has not called yet (%zu bytes)",
                 what->nbytes);
    *early = *what;
    if (what->nbytes > 0)
        memcpy(early->data, data, what->nbytes);
    return early;
}

/* A message has come: to its step, or to wait for the program. The collective may begin while
 * we copy. */
static void aq_msg_take(uint64_t team, uint32_t number, const struct aq_early *what,
                        const void *data)
{
    struct aq_early *early;
    struct aq_sched *sched;
    struct aq_step *step;

    aq_lock_acquire(&aq_msg.lock);
    step = aq_msg_look_up(team, number, what, &sched);
    aq_lock_release(&aq_msg.lock);
    if (step != NULL) {
        aq_msg_deliver(sched, step, what, data);
        return;
    }
    early = aq_msg_copy(what, data);
    aq_lock_acquire(&aq_msg.lock);
    step = aq_msg_look_up(team, number, what, &sched);
    if (step == NULL) {
        early->next = sched->early;
        sched->early = early;
    }
    aq_lock_release(&aq_msg.lock);
    if (step != NULL) {
        aq_msg_deliver(sched, step, what, data);
        free(early);
    }
}

static gex_Rank_t aq_msg_sender(gex_Token_t token)
{
    return aq_token(token)->jobrank;
}

static void aq_msg_on_data(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t team_high,
                           gex_AM_Arg_t team_low, gex_AM_Arg_t number, gex_AM_Arg_t tag,
                           gex_AM_Arg_t offset_high, gex_AM_Arg_t offset_low)
{
    const struct aq_early what = { .from = aq_msg_sender(token),
                                   .tag = (uint32_t)tag,
                                   .offset = aq_u64_of_args(offset_high, offset_low),
                                   .nbytes = nbytes };

    aq_msg_take(aq_u64_of_args(team_high, team_low), (uint32_t)number, &what, buf);
}

static void aq_msg_on_ready(gex_Token_t token, gex_AM_Arg_t team_high, gex_AM_Arg_t team_low,
                            gex_AM_Arg_t number, gex_AM_Arg_t tag, gex_AM_Arg_t match_id,
                            gex_AM_Arg_t expected)
{
    const struct aq_early what = { .from = aq_msg_sender(token),
                                   .tag = (uint32_t)tag,
                                   .is_ready = true,
                                   .match_id = (uint32_t)match_id,
                                   .expected = (uint32_t)expected };

    aq_msg_take(aq_u64_of_args(team_high, team_low), (uint32_t)number, &what, "");
}

/* --- starting --- */

gex_Event_t aq_sched_start(struct aq_sched *sched, const struct aq_op_kind *kind)
{
    struct aq_op *op = aq_op_create(kind, GEX_RANK_INVALID);
    struct aq_early *early = NULL;
    struct aq_sched *found;
    unsigned happened = 0;

    aq_op_begin(op, GEX_EC_GET, 1);
    sched->op = op;
    aq_lock_acquire(&aq_msg.lock);
    found = aq_msg_find(sched->team, sched->number);
    if (found != NULL) {
        early = found->early;
        aq_msg_unlink(found);
        aq_msg_release(found);
    }
    aq_msg_link(sched);
    sched->started = sched->running = true;
    aq_lock_release(&aq_msg.lock);

    while (early != NULL) {
        struct aq_early *next = early->next;
        struct aq_step *step = aq_sched_step_of(
            sched, early->is_ready ? AQ_STEP_SEND : AQ_STEP_RECV, early->from, early->tag);

        aq_msg_deliver(sched, step, early, early->data);
        free(early);
        early = next;
    }
    aq_sched_run(sched, &happened);
    return aq_op_expose(op);
}

void aq_msg_init(void)
{
    aq_am_register_internal(AQ_HIDX_COLL_DATA, (gex_AM_Fn_t)aq_msg_on_data,
                            GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 6, "collective data");
    aq_am_register_internal(AQ_HIDX_COLL_READY, (gex_AM_Fn_t)aq_msg_on_ready,
                            GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 6, "collective ready");
}
