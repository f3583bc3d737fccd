/*
 * aq_vis_ref.c - transfers that are not contiguous over active messages; peer completion.
 *
 * A put is cut into parcels: where the bytes go (*what*), then the bytes, gathered here; the peer
 * scatters them and acknowledges. A get sends the what of a parcel; the peer gathers and replies,
 * and the bytes are scattered here. A parcel is at most one medium message. A strided what is the
 * whole shape of the peer's end and a place in it, if that is small; else, and for lists, it is a
 * piece of a list.
 *
 * Owns      one *transfer* for each that is under way, from its call until its last answer; the
 *           list of those that can go on; staging buffers
 * States    BUSY (a thread is sending) -> READY (in the list: found no room, or has a window again)
 *           or PARKED (as many parcels on their way as may be) or WAITING (all sent). Answers turn
 *           PARKED into READY, and end a WAITING transfer with the last of them. A put with a peer
 *           completion becomes READY once more and ends when that message has left
 * Threads   any; states and counts are under one lock, for a few instructions. Handlers only count
 *           and copy; what is to be sent then is sent by polls
 * Promise   a call sends its first parcel, waiting for room unless it is IMMEDIATE, and whatever
 *           else goes without waiting. No more than AQ_VIS_WINDOW parcels of a transfer are on
 *           their way. A put is locally complete when its last parcel has left
 * Wire      VIS_PUT(transfer, form, n) + what + data -> VIS_ACK(transfer)
 *           VIS_GET(transfer, form, n, slot, nbytes) + what -> VIS_DATA(transfer, slot) + data
 *           VIS_NOTICE(handler) + payload
 *           what, in 8-byte words: STRIDED  base, element, place: element, byte; n counts, n
 *                                  strides
 *                                  ADDRESSES  length, n addresses    PIECES  n times address,
 *                                             length
 * Uses      core/aq_am.h, core/aq_op.h, aq_vis.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_vis.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/aq_am_deliver.h"
#include "base/aq_env.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "extended/aq_barrier.h"
#include "core/aq_op.h"
#include "extended/aq_ref.h"

#define AQ_VIS_WINDOW   8 /* parcels of one transfer on their way */
#define AQ_VIS_DECLINES 4 /* transfers without room after which a poll gives up */
#define AQ_WORD         ((size_t)8)

struct aq_vis_limits aq_vis_limits;

enum aq_vis_what { AQ_VIS_WHAT_STRIDED, AQ_VIS_WHAT_ADDRESSES, AQ_VIS_WHAT_RUNS, AQ_VIS_WHATS };

enum aq_vis_state { AQ_VIS_BUSY, AQ_VIS_READY, AQ_VIS_PARKED, AQ_VIS_WAITING };

/* What one message carries. */
struct aq_vis_frag {
    enum aq_vis_what form;
    unsigned n;
    size_t what, data;      /* bytes */
    struct aq_vis_pos next; /* in the peer's stream, after it */
};

/* A get's parcel on its way: where its bytes belong here. */
struct aq_vis_slot {
    struct aq_vis_pos at;
    size_t nbytes; /* 0: free */
};

struct aq_vis_transfer {
    struct aq_vis_transfer *next; /* while READY */
    struct aq_op *op;
    gex_Rank_t jobrank;
    bool is_put, counts_lc;
    uint8_t state;     /* under the lock */
    unsigned inflight; /* parcels; under the lock */
    size_t nbytes, sent, grain;
    struct aq_vis_side local, remote;
    struct aq_vis_pos local_at, remote_at;
    struct aq_vis_stage *stage; /* holds a parcel that found no room, or NULL */
    struct aq_vis_frag frag;
    struct aq_vis_slot slot[AQ_VIS_WINDOW]; /* gets; under the lock */
    gex_AM_Index_t notice;                  /* peer completion; 0: none, or sent */
    size_t notice_size;
    char notice_payload[GEX_VIS_MAX_PEERCOMPLETION];
    uint64_t arrays[]; /* counts and strides of strided sides */
};

/* A buffer for one message. */
struct aq_vis_stage {
    struct aq_vis_stage *next;
    char bytes[];
};

static struct {
    aq_lock lock;
    struct aq_vis_transfer *first, **last; /* READY */
    atomic_uint ready;                     /* how many; read without the lock as a hint */
    struct aq_vis_stage *stages;           /* free */
    size_t space;                          /* bytes of a stage: the largest message */
} aq_vis = { .last = &aq_vis.first };

/* --- staging buffers: as many as were ever needed at a time --- */

static struct aq_vis_stage *aq_vis_stage_take(void)
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

static void aq_vis_stage_give(struct aq_vis_stage *stage)
{
    aq_lock_acquire(&aq_vis.lock);
    stage->next = aq_vis.stages;
    aq_vis.stages = stage;
    aq_lock_release(&aq_vis.lock);
}

/* --- the list of transfers that can go on; under the lock --- */

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

/* Copies a side; the arrays of a strided one go to *at, which moves on. */
static void aq_vis_keep_side(struct aq_vis_side *to, const struct aq_vis_side *from, uint64_t **at)
{
    *to = *from;
    if (from->form != AQ_VIS_STRIDED || from->levels == 0) /* then there are no arrays */
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

/* Every parcel was answered. */
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

/* --- composing parcels --- */

static void aq_vis_put_word(char *to, size_t index, uint64_t value)
{
    memcpy(to + index * AQ_WORD, &value, AQ_WORD);
}

static uint64_t aq_vis_word(const char *from, size_t index)
{
    uint64_t value;

    memcpy(&value, from + index * AQ_WORD, AQ_WORD);
    return value;
}

static size_t aq_vis_strided_what(unsigned levels)
{
    return (4 + 2 * (size_t)levels) * AQ_WORD;
}

/* How much of `left` bytes to take into `room`: whole elements, or at least whole words. */
static size_t aq_vis_cut(size_t left, size_t space, size_t grain)
{
    if (left <= space)
        return left;
    if (grain != 0 && grain <= space)
        return space - space % grain;
    return space > AQ_WORD ? space - space % AQ_WORD : space;
}

static void aq_vis_compose_strided(const struct aq_vis_transfer *transfer, char *to,
                                   struct aq_vis_frag *frag)
{
    const struct aq_vis_side *side = &transfer->remote;
    const size_t what = aq_vis_strided_what(side->levels);
    const size_t space = transfer->is_put ? aq_vis.space - what : aq_vis.space;

    frag->form = AQ_VIS_WHAT_STRIDED;
    frag->n = side->levels;
    frag->what = what;
    frag->data = aq_vis_cut(transfer->nbytes - transfer->sent, space, transfer->grain);
    aq_vis_put_word(to, 0, side->base);
    aq_vis_put_word(to, 1, side->chunk);
    aq_vis_put_word(to, 2, frag->next.chunk);
    aq_vis_put_word(to, 3, frag->next.offset);
    for (unsigned d = 0; d < side->levels; d++) {
        aq_vis_put_word(to, 4 + d, side->count[d]);
        aq_vis_put_word(to, 4 + side->levels + d, (uint64_t)side->stride[d]);
    }
    aq_vis_skip(side, &frag->next, frag->data);
}

/* Whole chunks of one length. Returns false if none would fit. */
static bool aq_vis_compose_addresses(const struct aq_vis_transfer *transfer, char *to,
                                     struct aq_vis_frag *frag)
{
    const struct aq_vis_side *side = &transfer->remote;
    const size_t len = side->chunk, space = aq_vis.space - AQ_WORD;
    const size_t left = (transfer->nbytes - transfer->sent) / len;
    size_t n =
        transfer->is_put ? space / (AQ_WORD + len) : MIN(space / AQ_WORD, aq_vis.space / len);

    if (n > left)
        n = left;
    if (n == 0 || frag->next.offset % len != 0)
        return false;
    frag->form = AQ_VIS_WHAT_ADDRESSES;
    frag->n = (unsigned)n;
    frag->what = (1 + n) * AQ_WORD;
    frag->data = n * len;
    aq_vis_put_word(to, 0, len);
    for (size_t i = 0; i < n; i++) {
        uintptr_t address;

        aq_vis_next_run(side, &frag->next, len, &address);
        aq_vis_put_word(to, 1 + i, address);
    }
    return true;
}

/* Chunks, or parts of them, of any length. */
static void aq_vis_compose_runs(const struct aq_vis_transfer *transfer, char *to,
                                struct aq_vis_frag *frag)
{
    const size_t left = transfer->nbytes - transfer->sent;

    frag->form = AQ_VIS_WHAT_RUNS;
    frag->n = 0;
    frag->what = frag->data = 0;
    while (frag->data < left) {
        const size_t what = frag->what + 2 * AQ_WORD;
        const size_t used = transfer->is_put ? what + frag->data : MAX(what, frag->data);
        uintptr_t address;
        size_t n;

        if (used + (frag->n != 0 ? AQ_WORD : 1) > aq_vis.space)
            break;
        n = aq_vis_next_run(
            &transfer->remote, &frag->next,
            aq_vis_cut(left - frag->data, aq_vis.space - (transfer->is_put ? used : frag->data), 0),
            &address);
        aq_vis_put_word(to, 2 * (size_t)frag->n, address);
        aq_vis_put_word(to, 2 * (size_t)frag->n + 1, n);
        frag->n++;
        frag->what = what;
        frag->data += n;
    }
}

static void aq_vis_compose(struct aq_vis_transfer *transfer)
{
    const struct aq_vis_side *side = &transfer->remote;
    struct aq_vis_frag *frag = &transfer->frag;
    char *to;

    transfer->stage = aq_vis_stage_take();
    to = transfer->stage->bytes;
    frag->next = transfer->remote_at;
    if (side->form == AQ_VIS_STRIDED && aq_vis_strided_what(side->levels) <= aq_vis.space / 2)
        aq_vis_compose_strided(transfer, to, frag);
    else if (side->form == AQ_VIS_VECTOR || !aq_vis_compose_addresses(transfer, to, frag))
        aq_vis_compose_runs(transfer, to, frag);
    if (transfer->is_put)
        aq_vis_gather(&transfer->local, &transfer->local_at, to + frag->what, frag->data);
}

/* --- sending --- */

/* Take part in the window. Returns a get's slot. */
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
                                    frag->what + frag->data, GEX_EVENT_NOW, flags, 4, args);
    return aq_am_request_medium(tm, transfer->jobrank, AQ_HIDX_VIS_GET, transfer->stage->bytes,
                                frag->what, GEX_EVENT_NOW, flags, 6, args);
}

/* The next parcel, from a BUSY transfer with room in its window. Returns false if it found no room.
 * */
static bool aq_vis_send_next(struct aq_vis_transfer *transfer, gex_Flags_t flags)
{
    unsigned slot;

    if (transfer->stage == NULL)
        aq_vis_compose(transfer);
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

/* Nothing more can be sent now: leave the transfer to the answers, or to the polls. */
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

/* Send what goes without waiting; the transfer is BUSY, and not ours afterwards. Returns false
 * if a parcel found no room; *sent_out counts the others. */
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

/* An answer has come. */
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

/* --- at the peer --- */

/* What a message says, checked. */
struct aq_vis_view {
    gex_Token_t token;
    const char *call; /* for diagnoses */
    enum aq_vis_what form;
    size_t n;
    const char *what;
    size_t data; /* bytes */
};

static __attribute__((cold, noreturn)) void aq_vis_refuse(const struct aq_vis_view *view,
                                                          const char *why)
{
    gex_Token_Info_t info;

    gex_Token_Info(view->token, &info, GEX_TI_SRCRANK);
    aq_fatal("rank %u asked for a %s that %s", info.gex_srcrank, view->call, why);
}

/* Bytes of the what, or the message is refused. */
static size_t aq_vis_what_size(const struct aq_vis_view *view, size_t nbytes)
{
    const size_t max = nbytes / AQ_WORD;
    size_t words = 0;

    switch (view->form) {
    case AQ_VIS_WHAT_STRIDED:
        words = view->n <= AQ_VIS_LEVELS ? 4 + 2 * view->n : SIZE_MAX;
        break;
    case AQ_VIS_WHAT_ADDRESSES:
        words = view->n < max ? 1 + view->n : SIZE_MAX;
        break;
    case AQ_VIS_WHAT_RUNS:
        words = view->n <= max / 2 ? 2 * view->n : SIZE_MAX;
        break;
    default:
        words = SIZE_MAX;
    }
    if (words > max)
        aq_vis_refuse(view, "is longer than its message");
    return words * AQ_WORD;
}

/* The lowest and the highest byte of a strided side, and how many it has. */
static void aq_vis_check_strided(const struct aq_vis_view *view, const struct aq_vis_side *side,
                                 const struct aq_vis_pos *pos)
{
    uintptr_t low = side->base, high = side->base;
    size_t elements = 1, bytes;
    bool over = side->chunk == 0 || pos->offset >= side->chunk;

    for (unsigned d = 0; d < side->levels; d++) {
        const ptrdiff_t stride = side->stride[d];
        const size_t step = stride < 0 ? -(size_t)stride : (size_t)stride;
        size_t extent;

        over |= side->count[d] == 0 || __builtin_mul_overflow(elements, side->count[d], &elements);
        over |= __builtin_mul_overflow(step, side->count[d] - 1, &extent);
        if (stride < 0)
            over |= __builtin_sub_overflow(low, extent, &low);
        else
            over |= __builtin_add_overflow(high, extent, &high);
    }
    over |= __builtin_add_overflow(high, side->chunk, &high);
    over |= __builtin_mul_overflow(elements, side->chunk, &bytes);
    if (over || pos->chunk >= elements
        || view->data > bytes - (pos->chunk * side->chunk + pos->offset))
        aq_vis_refuse(view, "has no such place");
    aq_ref_check_range(view->token, view->call, aq_vis_at(low), high - low);
}

static void aq_vis_serve_strided(const struct aq_vis_view *view, char *data, bool is_put)
{
    const size_t n = view->n;
    size_t count[AQ_VIS_LEVELS];
    ptrdiff_t stride[AQ_VIS_LEVELS];
    struct aq_vis_side side = { .form = AQ_VIS_STRIDED,
                                .levels = (unsigned)n,
                                .base = (uintptr_t)aq_vis_word(view->what, 0),
                                .chunk = aq_vis_word(view->what, 1),
                                .count = count,
                                .stride = stride };
    struct aq_vis_pos pos = { aq_vis_word(view->what, 2), aq_vis_word(view->what, 3) };

    memcpy(count, view->what + 4 * AQ_WORD, n * AQ_WORD);
    memcpy(stride, view->what + (4 + n) * AQ_WORD, n * AQ_WORD);
    aq_vis_check_strided(view, &side, &pos);
    if (is_put)
        aq_vis_scatter(&side, &pos, data, view->data);
    else
        aq_vis_gather(&side, &pos, data, view->data);
}

static void aq_vis_serve_list(const struct aq_vis_view *view, char *data, bool is_put)
{
    const bool alike = view->form == AQ_VIS_WHAT_ADDRESSES;
    size_t left = view->data, len = alike ? aq_vis_word(view->what, 0) : 0;

    for (size_t i = 0; i < view->n; i++) {
        const uintptr_t at = aq_vis_word(view->what, alike ? 1 + i : 2 * i);

        if (!alike)
            len = aq_vis_word(view->what, 2 * i + 1);
        if (len > left)
            aq_vis_refuse(view, "is longer than its message");
        aq_ref_check_range(view->token, view->call, aq_vis_at(at), len);
        if (is_put)
            aq_vis_copy_run(aq_vis_at(at), data, len);
        else
            aq_vis_copy_run(data, aq_vis_at(at), len);
        data += len;
        left -= len;
    }
    if (left != 0)
        aq_vis_refuse(view, "is shorter than its message");
}

static void aq_vis_serve(const struct aq_vis_view *view, char *data, bool is_put)
{
    if (view->form == AQ_VIS_WHAT_STRIDED)
        aq_vis_serve_strided(view, data, is_put);
    else
        aq_vis_serve_list(view, data, is_put);
}

static void aq_vis_on_put(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t high,
                          gex_AM_Arg_t low, gex_AM_Arg_t form, gex_AM_Arg_t n)
{
    const gex_AM_Arg_t args[] = { high, low };
    struct aq_vis_view view = { .token = token,
                                .call = "VIS put",
                                .form = (enum aq_vis_what)form,
                                .n = (uint32_t)n,
                                .what = buf };
    const size_t what = aq_vis_what_size(&view, nbytes);

    view.data = nbytes - what;
    aq_vis_serve(&view, (char *)buf + what, true);
    aq_am_reply_short(token, AQ_HIDX_VIS_ACK, 0, 2, args);
}

static void aq_vis_on_get(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t high,
                          gex_AM_Arg_t low, gex_AM_Arg_t form, gex_AM_Arg_t n, gex_AM_Arg_t slot,
                          gex_AM_Arg_t size)
{
    const gex_AM_Arg_t args[] = { high, low, slot };
    struct aq_vis_view view = { .token = token,
                                .call = "VIS get",
                                .form = (enum aq_vis_what)form,
                                .n = (uint32_t)n,
                                .what = buf,
                                .data = (uint32_t)size };
    struct aq_vis_stage *stage;

    if (aq_vis_what_size(&view, nbytes) != nbytes || view.data > aq_vis.space)
        aq_vis_refuse(&view, "is longer than its message");
    stage = aq_vis_stage_take();
    aq_vis_serve(&view, stage->bytes, false);
    aq_am_reply_medium(token, AQ_HIDX_VIS_DATA, stage->bytes, view.data, GEX_EVENT_NOW, 0, 3, args);
    aq_vis_stage_give(stage);
}

/* --- peer completion --- */

/* The client's handler sees a reply from the rank that put. */
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

/* --- for the polls, and start-up --- */

/* One READY transfer goes on. Returns false if a message found no room. */
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
    aq_vis_finish(transfer); /* or once more */
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
        sched_yield();          /* the peer, if it shares our core, gets a chance to make room */
    return happened + declined; /* a message without room wants another poll soon */
}

/* bytes from which runs go by themselves where they leave in numbers and the target has no part in
 * it */
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
    aq_am_register_internal(AQ_HIDX_VIS_PUT, (gex_AM_Fn_t)aq_vis_on_put, request, 4, "VIS put");
    aq_am_register_internal(AQ_HIDX_VIS_GET, (gex_AM_Fn_t)aq_vis_on_get, request, 6, "VIS get");
    aq_am_register_internal(AQ_HIDX_VIS_NOTICE, (gex_AM_Fn_t)aq_vis_on_notice, request, 1,
                            "VIS peer completion");
    aq_am_register_internal(AQ_HIDX_VIS_ACK, (gex_AM_Fn_t)aq_vis_on_ack,
                            GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 2, "VIS acknowledgement");
    aq_am_register_internal(AQ_HIDX_VIS_DATA, (gex_AM_Fn_t)aq_vis_on_data,
                            GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 3, "VIS data");
}
