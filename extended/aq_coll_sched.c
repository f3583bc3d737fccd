/*
 * aq_coll_sched.c - schedules of collectives: writing them, carrying out their steps.
 *
 * Every member of a team writes a schedule for its part of a collective: sends, receives, copies
 * and reductions, carried out one after the other. Receives are ready for their data from the
 * start, whichever step is being carried out. A send of more than AQ_EAGER bytes waits for
 * COLL_READY from its receiver, so that only small messages can arrive early. COLL_READY may name a
 * match id of the conduit's rendezvous: then the conduit moves the data straight to its place
 * (rndv_recv and rndv_send in core/aq_conduit.h), not in messages. Calls through shared memory
 * inside a neighborhood start with the schedule; steps open them or wait for them.
 *
 * Owns      steps and temporary memory of each schedule
 * Threads   one thread at a time carries out a schedule; whoever parks or queues it under
 *           aq_msg.lock gives it up
 * States    RUNNING <-> PARKED (its step waits for a message) or QUEUED (a poll carries it on) ->
 *           free
 * Promise   nothing blocks: a message without credits waits for the next poll. No lock is held
 *           while a client's operator runs
 * Uses      core/aq_am.h, core/aq_op.h, aq_coll_sched.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_coll_sched.h"

#include <stdlib.h>
#include <string.h>

#include "core/aq_am.h"
#include "core/aq_am_out.h"
#include "base/aq_log.h"

/* --- writing a schedule --- */

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
                     void *y, size_t count, bool unsent)
{
    struct aq_step *step = aq_sched_step(sched, AQ_STEP_REDUCE);

    sched->fn = call->fn;
    sched->cdata = call->cdata;
    step->src = x;
    step->dst = y;
    step->nbytes = count;
    step->unsent = unsent;
}

unsigned aq_sched_local(struct aq_sched *sched, struct aq_coll_local *shm,
                        const struct aq_coll_call *call, bool closed)
{
    struct aq_sched_local *local;

    if (sched->locals == sched->local_capacity) {
        const unsigned capacity = sched->local_capacity == 0 ? 4 : 2 * sched->local_capacity;

        local = realloc(sched->local, capacity * sizeof(*local));
        if (local == NULL)
            aq_fatal("no memory for a collective over %u members (%zu bytes)", sched->of->size,
                     capacity * sizeof(*local));
        sched->local = local;
        sched->local_capacity = capacity;
    }
    local = &sched->local[sched->locals];
    *local = (struct aq_sched_local){ .sched = sched, .shm = shm, .call = *call };
    atomic_init(&local->part.closed, closed);
    return sched->locals++;
}

void aq_sched_open(struct aq_sched *sched, unsigned local)
{
    aq_sched_step(sched, AQ_STEP_OPEN)->tag = local;
}

void aq_sched_wait(struct aq_sched *sched, unsigned local)
{
    aq_sched_step(sched, AQ_STEP_WAIT)->tag = local;
}

/* --- local calls --- */

/* In a poll or a call, by any thread; perhaps under the lock of a neighborhood's memory, which
 * no thread takes while it holds aq_msg.lock. The schedule may be freed before this returns. */
static void aq_sched_local_done(struct aq_coll_part *part)
{
    struct aq_sched_local *local = (struct aq_sched_local *)(void *)part;
    struct aq_sched *sched = local->sched;

    aq_lock_acquire(&aq_msg.lock);
    local->over = true;
    if (!sched->running && sched->at < sched->steps && sched->ready_to == sched->steps) {
        const struct aq_step *step = &sched->step[sched->at];

        if (step->kind == AQ_STEP_WAIT && &sched->local[step->tag] == local)
            aq_msg_queue(sched);
    }
    aq_lock_release(&aq_msg.lock);
}

void aq_sched_submit(struct aq_sched *sched)
{
    for (unsigned i = 0; i < sched->locals; i++) {
        struct aq_sched_local *local = &sched->local[i];

        local->part.done = aq_sched_local_done;
        aq_job.local->coll->submit_part(local->shm, &local->call, sched->op, &local->part);
    }
}

/* Is a local call over? If not, the record is parked, as in aq_sched_may_proceed(). */
static bool aq_sched_local_over(struct aq_sched *sched, const struct aq_sched_local *local)
{
    bool over;

    aq_lock_acquire(&aq_msg.lock);
    over = local->over;
    if (!over) /* polls of the neighborhood's memory name who is missing there */
        aq_op_set_peer(sched->op, GEX_RANK_INVALID);
    sched->first_open = sched->at;
    sched->running = over;
    aq_lock_release(&aq_msg.lock);
    return over;
}

/* --- sending; without waiting for space and without running handlers --- */

static gex_TM_t aq_msg_job(void)
{
    return aq_tm_handle(aq_job.tm);
}

/* Send what has not left yet. False: no space for all of it. A conduit may go on reading what is
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

/* Asks the conduit for a match id for what a step receives. */
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

/* Sends to a receiver that named a match id. The conduit completes the transfer. */
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

/* The record, which this thread still owns, is about to be parked, in a step that a peer's message
 * ends. */
static void aq_sched_blame(const struct aq_sched *sched, const struct aq_step *step)
{
    aq_op_set_peer(sched->op, step->peer);
}

/* May the step go on? If not, the record is parked, and the thread that brings the missing data
 * queues the record. The caller must not touch it any more. */
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

/* No space, or the data have not left: the next poll tries again. */
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
    aq_msg_drop(sched);
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
    if (step->kind == AQ_STEP_WAIT)
        return aq_sched_local_over(sched, &sched->local[step->tag]) ? AQ_STEP_OVER : AQ_STEP_WAITS;
    if (step->kind == AQ_STEP_OPEN) {
        struct aq_sched_local *local = &sched->local[step->tag];

        aq_job.local->coll->open_part(local->shm, &local->part);
        return AQ_STEP_OVER;
    }
    if (!step->unsent && !aq_sched_may_write(sched))
        return AQ_STEP_WAITS;
    if (step->kind == AQ_STEP_COPY)
        memcpy(step->dst, step->src, step->nbytes);
    else
        aq_coll_apply(sched->fn, step->src, step->dst, step->nbytes, sched->cdata);
    return AQ_STEP_OVER;
}

/* Carry a record on as far as it goes. Returns false if a message found no space. */
bool aq_sched_run(struct aq_sched *sched, unsigned *happened)
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
