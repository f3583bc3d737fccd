/*
 * aq_vis_ref.c - non-contiguous transfers over active messages; peer completion.
 *
 * A put sends fragments: a description of the places, then the bytes, gathered here. The peer
 * scatters the bytes and acknowledges. A get sends descriptions; the peer gathers and replies, and
 * the bytes are scattered here. A fragment fits one medium message.
 *
 * Owns      one transfer for each that is in progress, from its call until its last answer; the
 *           list of READY transfers; the staging buffers
 * States    BUSY      a thread is sending
 *           READY     in the list: a message found no credits, or the window is open again
 *           PARKED    AQ_VIS_WINDOW fragments are in flight
 *           WAITING   everything is sent
 *           An answer turns PARKED into READY. The last answer ends a WAITING transfer. A put with
 *           a peer completion becomes READY once more and ends when that message is sent
 * Threads   any; states and counts are under one lock, for a few instructions. Handlers only count
 *           and copy; polls send
 * Promise   a call sends its first fragment, and waits for credits unless it is IMMEDIATE; further
 *           fragments never wait. A put is locally complete when its last fragment is sent
 * Uses      core/aq_am.h, core/aq_op.h, aq_vis_ref.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_vis_ref.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/aq_am_deliver.h"
#include "core/aq_contention.h"
#include "base/aq_env.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "extended/aq_barrier.h"
#include "core/aq_op.h"

#define AQ_VIS_DECLINES 4 /* transfers without credit after which a poll stops */

struct aq_vis_limits aq_vis_limits AQ_JOB_STATE;

static struct {
    aq_lock lock;
    struct aq_vis_transfer *first, **last; /* READY */
    atomic_uint ready;                     /* length of the list; read without the lock as a hint */
    struct aq_vis_stage *stages;           /* free */
    size_t space;                          /* bytes of a stage: the largest message */
} aq_vis AQ_JOB_STATE = { .last = &aq_vis.first };

/* --- staging buffers: as many as the maximum in use at a time --- */

struct aq_vis_stage *aq_vis_stage_take(void)
{
    struct aq_vis_stage *stage;

    aq_lock_acquire(&aq_vis.lock);
    stage = aq_vis.stages;
    if (stage != NULL)
        aq_vis.stages = stage->next;
    aq_lock_release(&aq_vis.lock);
    if (stage == NULL && (stage = malloc(sizeof(*stage) + aq_vis.space)) == NULL)
        aq_fatal("no memory for packing a transfer (%zu bytes)", aq_vis.space);
    return stage;
}

void aq_vis_stage_give(struct aq_vis_stage *stage)
{
    aq_lock_acquire(&aq_vis.lock);
    stage->next = aq_vis.stages;
    aq_vis.stages = stage;
    aq_lock_release(&aq_vis.lock);
}

size_t aq_vis_stage_size(void)
{
    return aq_vis.space;
}

/* --- the list of READY transfers; under the lock --- */

static void aq_vis_enlist(struct aq_vis_transfer *transfer)
{
    /* relaxed: written under the lock */
    const unsigned ready = atomic_load_explicit(&aq_vis.ready, memory_order_relaxed);

    transfer->state = AQ_VIS_READY;
    transfer->next = NULL;
    *aq_vis.last = transfer;
    aq_vis.last = &transfer->next;
    atomic_store_explicit(&aq_vis.ready, ready + 1, memory_order_relaxed);
    if (ready == 0)
        aq_pending_add(1);
}

static struct aq_vis_transfer *aq_vis_delist(void)
{
    const unsigned ready = atomic_load_explicit(&aq_vis.ready, memory_order_relaxed);
    struct aq_vis_transfer *transfer = aq_vis.first;

    if (transfer == NULL)
        return NULL;
    aq_vis.first = transfer->next;
    if (aq_vis.first == NULL)
        aq_vis.last = &aq_vis.first;
    atomic_store_explicit(&aq_vis.ready, ready - 1, memory_order_relaxed);
    if (ready == 1)
        aq_pending_add(-1);
    transfer->state = AQ_VIS_BUSY;
    return transfer;
}

/* --- making and ending transfers --- */

/* Copies a side; the arrays of a strided one go to *at, which is advanced. */
static void aq_vis_keep_side(struct aq_vis_side *to, const struct aq_vis_side *from, uint64_t **at)
{
    *to = *from;
    if (from->form != AQ_VIS_STRIDED || from->levels == 0) /* no arrays */
        return;
    to->count = memcpy(*at, from->count, from->levels * sizeof(*from->count));
    *at += from->levels;
    to->stride = memcpy(*at, from->stride, from->levels * sizeof(*from->stride));
    *at += from->levels;
}

static struct aq_vis_transfer *aq_vis_transfer_create(const struct aq_vis_request *request)
{
    const size_t arrays = 2 * ((size_t)request->local.levels + request->remote.levels);
    const size_t nbytes = sizeof(struct aq_vis_transfer) + arrays * sizeof(uint64_t);
    struct aq_vis_transfer *transfer = malloc(nbytes);
    uint64_t *at;

    if (transfer == NULL)
        aq_fatal("no memory for a transfer (%zu bytes): synchronise some before starting more",
                 nbytes);
    *transfer = (struct aq_vis_transfer){ .op = request->op,
                                          .jobrank = request->jobrank,
                                          .is_put = request->is_put,
                                          .counts_lc = request->counts_lc,
                                          .state = AQ_VIS_BUSY,
                                          .nbytes = request->nbytes,
                                          .grain = request->grain,
                                          .notice = request->arming.handler,
                                          .notice_size = request->arming.nbytes };
    at = transfer->arrays;
    aq_vis_keep_side(&transfer->local, &request->local, &at);
    aq_vis_keep_side(&transfer->remote, &request->remote, &at);
    if (transfer->notice != 0 && transfer->notice_size != 0)
        memcpy(transfer->notice_payload, request->arming.source, transfer->notice_size);
    return transfer;
}

static void aq_vis_transfer_destroy(struct aq_vis_transfer *transfer)
{
    if (transfer->stage != NULL)
        aq_vis_stage_give(transfer->stage);
    free(transfer);
}

static gex_EC_t aq_vis_category(const struct aq_vis_transfer *transfer)
{
    return transfer->is_put ? GEX_EC_PUT : GEX_EC_GET;
}

/* Every fragment has been answered. */
static void aq_vis_finish(struct aq_vis_transfer *transfer)
{
    struct aq_op *op = transfer->op;
    const gex_EC_t category = aq_vis_category(transfer);

    if (transfer->notice != 0) { /* a poll sends it */
        aq_lock_acquire(&aq_vis.lock);
        aq_vis_enlist(transfer);
        aq_lock_release(&aq_vis.lock);
        return;
    }
    aq_vis_transfer_destroy(transfer);
    aq_op_end(op, category, 1);
}

/* --- sending --- */

/* Enters one fragment in the window. Returns the slot of a get. */
static unsigned aq_vis_enter_window(struct aq_vis_transfer *transfer)
{
    unsigned slot = 0;

    aq_lock_acquire(&aq_vis.lock);
    transfer->inflight++;
    if (!transfer->is_put) {
        while (transfer->slot[slot].nbytes != 0)
            slot++;
        transfer->slot[slot] = (struct aq_vis_slot){ transfer->local_at, transfer->frag.data };
    }
    aq_lock_release(&aq_vis.lock);
    return slot;
}

static void aq_vis_exit_window(struct aq_vis_transfer *transfer, unsigned slot)
{
    aq_lock_acquire(&aq_vis.lock);
    transfer->inflight--;
    transfer->slot[slot].nbytes = 0;
    aq_lock_release(&aq_vis.lock);
}

static int aq_vis_send(const struct aq_vis_transfer *transfer, unsigned slot, gex_Flags_t flags)
{
    const gex_TM_t tm = aq_tm_handle(aq_job.tm);
    const struct aq_vis_frag *frag = &transfer->frag;
    const gex_AM_Arg_t args[] = { AQ_ARGS_OF_PTR(transfer), (gex_AM_Arg_t)frag->form,
                                  (gex_AM_Arg_t)frag->n, (gex_AM_Arg_t)slot,
                                  (gex_AM_Arg_t)frag->data };

    if (transfer->is_put)
        return aq_am_request_medium(tm, transfer->jobrank, AQ_HIDX_VIS_PUT, transfer->stage->bytes,
                                    frag->desc + frag->data, GEX_EVENT_NOW, flags, 4, args);
    return aq_am_request_medium(tm, transfer->jobrank, AQ_HIDX_VIS_GET, transfer->stage->bytes,
                                frag->desc, GEX_EVENT_NOW, flags, 6, args);
}

/* Sends the next fragment of a BUSY transfer that has space in its window. Returns false if there
 * was no credit. */
static bool aq_vis_send_next(struct aq_vis_transfer *transfer, gex_Flags_t flags)
{
    unsigned slot;

    if (transfer->stage == NULL)
        aq_vis_frag_compose(transfer);
    slot = aq_vis_enter_window(transfer);
    if (aq_vis_send(transfer, slot, flags) != 0) {
        aq_vis_exit_window(transfer, slot);
        return false;
    }
    aq_vis_stage_give(transfer->stage);
    transfer->stage = NULL;
    transfer->remote_at = transfer->frag.next;
    if (!transfer->is_put)
        aq_vis_skip(&transfer->local, &transfer->local_at, transfer->frag.data);
    transfer->sent += transfer->frag.data;
    return true;
}

static bool aq_vis_window_full(struct aq_vis_transfer *transfer)
{
    bool full;

    aq_lock_acquire(&aq_vis.lock);
    full = transfer->inflight >= AQ_VIS_WINDOW;
    aq_lock_release(&aq_vis.lock);
    return full;
}

/* No more can be sent now: answers, or polls, will continue the transfer. */
static void aq_vis_rest(struct aq_vis_transfer *transfer, bool may_send)
{
    const bool all_sent = transfer->sent == transfer->nbytes;
    bool finished = false;

    if (all_sent && transfer->counts_lc)
        aq_op_end(transfer->op, GEX_EC_LC, 1);
    aq_lock_acquire(&aq_vis.lock);
    if (all_sent) {
        transfer->state = AQ_VIS_WAITING;
        finished = transfer->inflight == 0;
    } else if (!may_send || transfer->inflight < AQ_VIS_WINDOW) {
        aq_vis_enlist(transfer);
    } else {
        transfer->state = AQ_VIS_PARKED;
    }
    aq_lock_release(&aq_vis.lock);
    if (finished)
        aq_vis_finish(transfer);
}

/* Sends what can be sent without waiting. The transfer is BUSY, and must not be used afterwards.
 * Returns false if a fragment found no credit; *sent_out counts the others. */
static bool aq_vis_pump(struct aq_vis_transfer *transfer, unsigned *sent_out)
{
    bool may_send = true;

    while (may_send && transfer->sent < transfer->nbytes && !aq_vis_window_full(transfer)) {
        may_send = aq_vis_send_next(transfer, GEX_FLAG_IMMEDIATE);
        *sent_out += may_send;
    }
    aq_vis_rest(transfer, may_send);
    return may_send;
}

/* An answer has arrived. */
static void aq_vis_answered(struct aq_vis_transfer *transfer, unsigned slot)
{
    bool finished = false;

    aq_lock_acquire(&aq_vis.lock);
    transfer->inflight--;
    transfer->slot[slot].nbytes = 0;
    if (transfer->state == AQ_VIS_WAITING)
        finished = transfer->inflight == 0;
    else if (transfer->state == AQ_VIS_PARKED && transfer->inflight <= AQ_VIS_WINDOW / 2)
        aq_vis_enlist(transfer);
    aq_lock_release(&aq_vis.lock);
    if (finished)
        aq_vis_finish(transfer);
}

int aq_vis_ref_start(const struct aq_vis_request *request, gex_Flags_t flags)
{
    struct aq_vis_transfer *transfer = aq_vis_transfer_create(request);
    unsigned sent = 0;

    aq_op_begin(request->op, aq_vis_category(transfer), 1);
    if (request->counts_lc)
        aq_op_begin(request->op, GEX_EC_LC, 1);
    if (!aq_vis_send_next(transfer, flags & GEX_FLAG_IMMEDIATE)) {
        if (request->counts_lc)
            aq_op_end(request->op, GEX_EC_LC, 1);
        aq_op_end(request->op, aq_vis_category(transfer), 1);
        aq_vis_transfer_destroy(transfer);
        return AQ_RETRY;
    }
    aq_vis_pump(transfer, &sent);
    return AQ_OK;
}

/* --- answers --- */

static void aq_vis_on_ack(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    (void)token;
    aq_vis_answered(aq_ptr_of_args(high, low), 0);
}

static void aq_vis_on_data(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t high,
                           gex_AM_Arg_t low, gex_AM_Arg_t number)
{
    struct aq_vis_transfer *transfer = aq_ptr_of_args(high, low);
    struct aq_vis_slot slot = { .nbytes = 0 };
    gex_Token_Info_t info;

    aq_lock_acquire(&aq_vis.lock);
    if (number >= 0 && number < AQ_VIS_WINDOW)
        slot = transfer->slot[number];
    aq_lock_release(&aq_vis.lock);
    if (slot.nbytes == 0 || slot.nbytes != nbytes) {
        gex_Token_Info(token, &info, GEX_TI_SRCRANK);
        aq_fatal("rank %u answered a get of %zu bytes with %zu", info.gex_srcrank, slot.nbytes,
                 nbytes);
    }
    aq_op_acquire(transfer->op);
    aq_vis_scatter(&transfer->local, &slot.at, buf, nbytes);
    aq_vis_answered(transfer, (unsigned)number);
}

/* --- peer completion --- */

/* The client's handler gets a token that looks like a reply from the rank that put. */
static void aq_vis_on_notice(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t handler)
{
    struct aq_am_in in = {
        .token = *aq_token(token), .args = NULL, .payload = buf, .nbytes = nbytes
    };

    in.token.handler = (uint8_t)handler;
    in.token.nargs = 0;
    in.token.kind = AQ_AM_MEDIUM;
    in.token.is_reply = true;
    aq_am_deliver(&in);
}

static int aq_vis_send_notice(gex_Rank_t jobrank, gex_AM_Index_t handler, const void *payload,
                              size_t nbytes, gex_Flags_t flags)
{
    const gex_AM_Arg_t args[] = { handler };

    return aq_am_request_medium(aq_tm_handle(aq_job.tm), jobrank, AQ_HIDX_VIS_NOTICE, payload,
                                nbytes, GEX_EVENT_NOW, flags, 1, args);
}

void aq_vis_notify(gex_Rank_t jobrank, const struct aq_vis_arming *arming)
{
    aq_vis_send_notice(jobrank, arming->handler, arming->source, arming->nbytes, 0);
}

/* --- polls and start-up --- */

/* Continues one READY transfer. Returns false if a message found no credit. */
static bool aq_vis_go_on(struct aq_vis_transfer *transfer, unsigned *happened)
{
    if (transfer->sent < transfer->nbytes)
        return aq_vis_pump(transfer, happened);
    if (aq_vis_send_notice(transfer->jobrank, transfer->notice, transfer->notice_payload,
                           transfer->notice_size, GEX_FLAG_IMMEDIATE)
        == 0) {
        transfer->notice = 0;
        *happened += 1;
    }
    const bool may_send = transfer->notice == 0;
    aq_vis_finish(transfer); /* or becomes READY once more */
    return may_send;
}

unsigned aq_vis_progress(void)
{
    /* relaxed: a poll that misses a transfer is followed by another */
    unsigned left = atomic_load_explicit(&aq_vis.ready, memory_order_relaxed);
    unsigned happened = 0, declined = 0;

    for (; left > 0 && declined < AQ_VIS_DECLINES; left--) {
        struct aq_vis_transfer *transfer;

        aq_lock_acquire(&aq_vis.lock);
        transfer = aq_vis_delist();
        aq_lock_release(&aq_vis.lock);
        if (transfer == NULL)
            break;
        declined += !aq_vis_go_on(transfer, &happened);
    }
    if (declined != 0)
        aq_contention_declined();
    return happened + declined; /* a message without credit needs another poll soon */
}

/* bytes from which runs are individual transfers, if they are batched and the target takes no
 * part */
#define AQ_VIS_ONE_SIDED ((size_t)4096)

static size_t aq_vis_run_limit(enum aq_env_id id)
{
    const uint32_t wanted = AQ_CAP_ONE_SIDED | AQ_CAP_RMA_BATCH;
    const bool one_sided = (aq_job.remote->caps & wanted) == wanted;

    if (aq_env_is_set(id))
        return aq_env_size(id);
    if (aq_env_is_set(AQ_ENV_VIS_MAXCHUNK))
        return aq_env_size(AQ_ENV_VIS_MAXCHUNK);
    return one_sided ? MIN(AQ_VIS_ONE_SIDED, aq_am_max_medium()) : aq_am_max_medium();
}

static size_t aq_vis_message_size(void)
{
    const size_t max = aq_am_max_medium();
    size_t wanted = max;

    if (aq_env_is_set(AQ_ENV_AQ_VIS_MESSAGE))
        wanted = aq_env_size(AQ_ENV_AQ_VIS_MESSAGE);
    return wanted > max ? max : MAX(wanted, (size_t)256);
}

void aq_vis_init(void)
{
    const gex_Flags_t request = GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST;

    aq_vis.space = aq_vis_message_size();
    aq_vis_limits.put_run = aq_vis_run_limit(AQ_ENV_VIS_PUT_MAXCHUNK);
    aq_vis_limits.get_run = aq_vis_run_limit(AQ_ENV_VIS_GET_MAXCHUNK);
    if (!aq_env_bool(AQ_ENV_VIS_AMPIPE))
        aq_vis_limits.put_run = aq_vis_limits.get_run = 0;
    aq_vis_serve_init();
    aq_am_register_internal(AQ_HIDX_VIS_NOTICE, (gex_AM_Fn_t)aq_vis_on_notice, request, 1,
                            "VIS peer completion");
    aq_am_register_internal(AQ_HIDX_VIS_ACK, (gex_AM_Fn_t)aq_vis_on_ack,
                            GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 2, "VIS acknowledgement");
    aq_am_register_internal(AQ_HIDX_VIS_DATA, (gex_AM_Fn_t)aq_vis_on_data,
                            GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 3, "VIS data");
}

void aq_vis_fini(void)
{
    while (aq_vis.stages != NULL) {
        struct aq_vis_stage *stage = aq_vis.stages;

        aq_vis.stages = stage->next;
        free(stage);
    }
}
