/*
 * aq_coll_msg.c - the table of collectives' schedules, and the messages that arrive for them.
 *
 * A schedule is found by team and number of the collective. Messages of a collective that this rank
 * has not called yet are copied, and kept with an empty record until it does.
 *
 * Owns      the table; free records; early messages; the queue that polls carry on
 * Threads   any. Handlers copy data to its place without a lock, and note under the lock how much
 *           has arrived
 * States    EARLY (messages, no schedule) -> as aq_coll_sched.c says -> free
 * Promise   handlers only copy and queue
 * Wire      COLL_DATA(team, number, tag, offset; bytes), COLL_READY(team, number, tag, match id or
 *           0, bytes mod 2^32)
 * Uses      core/aq_am.h, core/aq_op.h, aq_coll_sched.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_coll_sched.h"

#include <stdlib.h>
#include <string.h>

#include "core/aq_am.h"
#include "core/aq_contention.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "extended/aq_barrier.h"

#define AQ_BUCKETS     1024u
#define AQ_TEMP_CACHED 65536u /* bytes: a record keeps so much memory for its next use */
#define AQ_DECLINES    4      /* messages without credits after which a poll gives up */

struct aq_msg_lists aq_msg AQ_JOB_STATE;
static struct aq_sched *aq_msg_buckets[AQ_BUCKETS] AQ_JOB_STATE; /* under aq_msg.lock */

/* --- the table; all under the lock --- */

static struct aq_sched **aq_msg_bucket(uint64_t team, uint32_t number)
{
    const uint64_t mixed = (team * UINT64_C(0x9E3779B97F4A7C15)) ^ number;

    return &aq_msg_buckets[(mixed ^ mixed >> 32) % AQ_BUCKETS];
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
struct aq_sched *aq_msg_record(uint64_t team, uint32_t number)
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
    sched->steps = sched->locals = sched->at = sched->ready_to = sched->first_open = 0;
    return sched;
}

static void aq_msg_release(struct aq_sched *sched)
{
    if (sched->temp_bytes > AQ_TEMP_CACHED) {
        free(sched->temp);
        sched->temp = NULL;
        sched->temp_bytes = 0;
    }
    sched->early = NULL; /* another record's by now */
    sched->next = aq_msg.free;
    aq_msg.free = sched;
}

void aq_msg_drop(struct aq_sched *sched)
{
    aq_msg_unlink(sched);
    aq_msg_release(sched);
}

void aq_msg_queue(struct aq_sched *sched)
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

bool aq_msg_is_open(uint64_t team)
{
    const struct aq_sched *sched = NULL;

    aq_lock_acquire(&aq_msg.lock);
    for (unsigned i = 0; sched == NULL && i < AQ_BUCKETS; i++) {
        sched = aq_msg_buckets[i];
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
        aq_contention_declined();
    return happened + declined; /* a message without credit needs another poll soon */
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

/* Under the conduit's lock perhaps, which no thread takes while it holds aq_msg.lock. */
void aq_msg_on_rndv(struct aq_rndv *rndv)
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

/* A message has come: to its step, or to wait for the schedule. The collective may begin while
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
        aq_msg_drop(found);
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
    aq_sched_submit(sched);
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

static void aq_msg_free_list(struct aq_sched *sched)
{
    while (sched != NULL) {
        struct aq_sched *next = sched->next;

        while (sched->early != NULL) {
            struct aq_early *early = sched->early;

            sched->early = early->next;
            free(early);
        }
        free(sched->step);
        free(sched->local);
        free(sched->temp);
        free(sched);
        sched = next;
    }
}

void aq_msg_fini(void)
{
    for (size_t i = 0; i < AQ_BUCKETS; i++)
        aq_msg_free_list(aq_msg_buckets[i]);
    aq_msg_free_list(aq_msg.free);
}
