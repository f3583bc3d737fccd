/*
 * aq_mpi_coalesce.c - coalescing: small implicit puts to one peer share a message.
 *
 * A put of up to GASNET_MPI_COALESCE bytes is copied into the open batch of its peer. The batch
 * becomes one request, whose reply completes all its puts.
 *
 * Which     puts of gex_RMA_PutNBI and gasnet_put_nbi*, in and outside of access regions: the
 *           client waits for many of them at once. A put with an event starts at once, since the
 *           client asked to be told of that one
 * Windows   such puts share messages also where a one-sided window serves all others: a share of a
 *           message costs less than a tenth of a transfer of MPI's. They are then complete only
 *           once their target has polled, as the interface allows. The user can ask for the window
 *           (aq_mpi_choose_coalesced())
 * Leaving   a batch leaves at once if few batches to its peer are unanswered, so single puts are
 *           not deferred; else when it is full, with the next poll of any thread (every wait,
 *           barrier, collective and blocking call polls, and requests do now and then), and at the
 *           end of an access region
 * Pace      every 16th put polls, as every request does, but keeps the open batch, which others
 *           are to join. A put that comes long after the one before also sends it
 * Progress  a batch without credit waits for it in polls, as a request does. Only a put that finds
 *           the open batch full and without credit waits in its call
 * Owns      aq_mpi_coalesce
 * Threads   any; the lock around MPI protects batches that are not sent yet. A sent batch belongs
 *           to the handler of its reply
 * Promise   the data of a put is readable at the target before its operation is complete
 * Wire      PUTS(batch) + puts as in aq_mpi_puts.h -> PUTS_DONE(batch)
 * Uses      aq_mpi_am_out.h, aq_mpi_puts.h, core/aq_am.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_coalesce.h"

#include <stdlib.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "conduits/mpi/aq_mpi_am_out.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "core/aq_am.h"
#include "core/aq_ep.h"
#include "core/aq_job.h"
#include "core/aq_poll.h"
#include "core/aq_trace.h"
#include "extended/aq_ref.h"

#define AQ_MPI_BATCH_OPS  8u /* operations that the puts of one batch belong to */
#define AQ_MPI_BATCH_ARGS 2u
#define AQ_MPI_PACE_PUTS  16u
#define AQ_MPI_PACE_NS    20000u /* puts that are further apart do not wait for others */

_Static_assert(AQ_MPI_PUTS_BATCH <= AQ_MPI_INLINE, "a batch is the payload of one packet");

/* Puts to one peer, waiting to be sent or for their reply. */
struct aq_mpi_batch {
    struct aq_freelist_item item; /* while it is free */
    struct aq_mpi_batch *all;
    struct aq_mpi_coalesce_peer *peer;
    struct aq_mpi_buf *packet; /* NULL: sent */
    size_t nbytes;             /* of puts in the packet */
    unsigned ops;
    struct {
        struct aq_op *op;
        uint64_t puts;
    } of[AQ_MPI_BATCH_OPS];
};

struct aq_mpi_coalesce_peer {
    struct aq_mpi_batch *open; /* to be sent, or NULL */
    struct aq_mpi_coalesce_peer *next;
    bool listed;
    atomic_uint unanswered; /* batches */
};

struct aq_mpi_coalesce aq_mpi_coalesce AQ_JOB_STATE;
_Thread_local struct aq_mpi_coalesce_pace aq_mpi_coalesce_pace;

/* --- batches, with the lock --- */

static __attribute__((noinline)) struct aq_mpi_batch *aq_mpi_batch_new(void)
{
    struct aq_mpi_batch *batch = calloc(1, sizeof(*batch));

    if (batch == NULL)
        aq_fatal("mpi: no memory for a batch of puts (%zu bytes)", sizeof(*batch));
    batch->all = aq_mpi_coalesce.all;
    aq_mpi_coalesce.all = batch;
    return batch;
}

static struct aq_mpi_batch *aq_mpi_batch_open(struct aq_mpi_coalesce_peer *peer)
{
    struct aq_mpi_batch *batch = aq_freelist_thing(aq_freelist_take(&aq_mpi_coalesce.free),
                                                   offsetof(struct aq_mpi_batch, item));

    if (AQ_UNLIKELY(batch == NULL))
        batch = aq_mpi_batch_new();
    batch->peer = peer;
    batch->packet = aq_mpi_buf_take(AQ_MPI_PACKET);
    batch->nbytes = 0;
    batch->ops = 0;
    return batch;
}

/* Counts a put of op. Returns false if the batch has puts of too many other operations. */
static inline bool aq_mpi_batch_count(struct aq_mpi_batch *batch, struct aq_op *op)
{
    for (unsigned i = 0; i < batch->ops; i++)
        if (batch->of[i].op == op) {
            batch->of[i].puts++;
            return true;
        }
    if (batch->ops == AQ_MPI_BATCH_OPS)
        return false;
    batch->of[batch->ops].op = op;
    batch->of[batch->ops++].puts = 1;
    return true;
}

static inline char *aq_mpi_batch_payload(struct aq_mpi_batch *batch)
{
    return (char *)aq_mpi_buf_bytes(batch->packet)
           + aq_mpi_packet_payload(AQ_AM_MEDIUM, AQ_MPI_BATCH_ARGS);
}

/* Returns false if the batch is full. */
static inline bool aq_mpi_batch_add(struct aq_mpi_batch *batch, struct aq_op *op, void *dest,
                                    const void *src, size_t nbytes)
{
    const size_t bytes = aq_mpi_puts_bytes(nbytes);

    if (batch->nbytes + bytes > AQ_MPI_PUTS_BATCH || !aq_mpi_batch_count(batch, op))
        return false;
    aq_mpi_puts_write(aq_mpi_batch_payload(batch) + batch->nbytes, dest, src, nbytes);
    batch->nbytes += bytes;
    return true;
}

/* Sends the open batch of a peer: AQ_OK, or AQ_RETRY. */
static int aq_mpi_batch_send(struct aq_mpi_coalesce_peer *peer)
{
    struct aq_mpi_batch *batch = peer->open;
    const gex_AM_Arg_t args[AQ_MPI_BATCH_ARGS] = { AQ_ARGS_OF_PTR(batch) };
    const struct aq_am_out out = { .jobrank = (gex_Rank_t)(peer - aq_mpi_coalesce.peers),
                                   .handler = AQ_HIDX_PUTS,
                                   .nargs = AQ_MPI_BATCH_ARGS,
                                   .kind = AQ_AM_MEDIUM,
                                   .args = args,
                                   .nbytes = batch->nbytes };
    struct aq_mpi_buf *packet = batch->packet;
    const uint64_t began =
        AQ_UNLIKELY(aq_trace_is_on()) ? aq_trace_begin(aq_trace_send_kind(&out, false)) : 0;

    if (aq_mpi_am_send_filled(&aq_mpi_am, &out, packet) != AQ_OK)
        return AQ_RETRY;
    if (AQ_UNLIKELY(aq_trace_is_on()))
        aq_trace_end_send(began, &out, false);
    batch->packet = NULL;
    peer->open = NULL;
    /* relaxed: a hint to the next put */
    atomic_fetch_add_explicit(&peer->unanswered, 1, memory_order_relaxed);
    return AQ_OK;
}

void aq_mpi_coalesce_flush(void)
{
    struct aq_mpi_coalesce_peer **at = &aq_mpi_coalesce.listed;

    while (*at != NULL) {
        struct aq_mpi_coalesce_peer *peer = *at;

        if (peer->open != NULL && aq_mpi_batch_send(peer) != AQ_OK) {
            at = &peer->next; /* no credit: it waits for the next poll */
            continue;
        }
        *at = peer->next;
        peer->listed = false;
    }
    /* relaxed: see aq_mpi_coalesce_is_pending() */
    atomic_store_explicit(&aq_mpi_coalesce.pending, aq_mpi_coalesce.listed != NULL,
                          memory_order_relaxed);
}

void aq_mpi_coalesce_drop(void)
{
    for (struct aq_mpi_coalesce_peer *peer = aq_mpi_coalesce.listed; peer != NULL;
         peer = peer->next) {
        peer->listed = false;
        if (peer->open == NULL)
            continue;
        aq_mpi_buf_give(peer->open->packet);
        peer->open->packet = NULL;
        peer->open = NULL;
        aq_mpi_coalesce.dropped = true;
    }
    aq_mpi_coalesce.listed = NULL;
    /* relaxed: see aq_mpi_coalesce_is_pending() */
    atomic_store_explicit(&aq_mpi_coalesce.pending, false, memory_order_relaxed);
}

/* --- puts --- */

static inline void aq_mpi_coalesce_list(struct aq_mpi_coalesce_peer *peer)
{
    if (AQ_LIKELY(peer->listed))
        return;
    peer->listed = true;
    peer->next = aq_mpi_coalesce.listed;
    aq_mpi_coalesce.listed = peer;
    /* relaxed: see aq_mpi_coalesce_is_pending() */
    atomic_store_explicit(&aq_mpi_coalesce.pending, true, memory_order_relaxed);
}

/* With the lock: adds a put to the open batch. Returns false if there is no space. *sent_io is set
 * if a batch has left. */
static inline bool aq_mpi_coalesce_add(struct aq_mpi_coalesce_peer *peer, struct aq_op *op,
                                       void *dest, const void *src, size_t nbytes, bool *sent_io)
{
    if (AQ_LIKELY(peer->open != NULL)) {
        if (AQ_LIKELY(aq_mpi_batch_add(peer->open, op, dest, src, nbytes)))
            return true;
        if (aq_mpi_batch_send(peer) != AQ_OK)
            return false;
        *sent_io = true;
    }
    peer->open = aq_mpi_batch_open(peer);
    (void)aq_mpi_batch_add(peer->open, op, dest, src, nbytes); /* an empty one has space */
    /* relaxed: a hint. An answer that arrives now is for the next put */
    if (atomic_load_explicit(&peer->unanswered, memory_order_relaxed) < AQ_MPI_COALESCE_AT_ONCE
        && aq_mpi_batch_send(peer) == AQ_OK)
        *sent_io = true;
    else
        aq_mpi_coalesce_list(peer);
    return true;
}

static inline bool aq_mpi_coalesce_try(struct aq_op *op, gex_Rank_t jobrank, void *dest,
                                       const void *src, size_t nbytes, bool *sent_io)
{
    bool added;

    aq_mpi_lock();
    added = aq_mpi_coalesce_add(&aq_mpi_coalesce.peers[jobrank], op, dest, src, nbytes, sent_io);
    aq_mpi_unlock();
    return added;
}

/* The open batch is full and cannot be sent yet. */
static __attribute__((noinline, cold)) void aq_mpi_coalesce_wait(struct aq_op *op,
                                                                 gex_Rank_t jobrank, void *dest,
                                                                 const void *src, size_t nbytes)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("space for puts", jobrank);
    bool sent = false;

    waiter.no_wakeup = 1; /* credit arrives without a wake-up */
    do
        aq_wait_step(&waiter); /* its polls send the batch */
    while (!aq_mpi_coalesce_try(op, jobrank, dest, src, nbytes, &sent));
    aq_wait_end(&waiter);
}

static __attribute__((noinline)) void aq_mpi_coalesce_poll(struct aq_mpi_coalesce_pace *pace,
                                                           uint64_t now_ns)
{
    pace->keeps = now_ns - pace->polled_ns < AQ_MPI_PACE_NS;
    if (!pace->keeps)
        aq_mpi_am_batch.just_sent = false; /* MPI is polled, whatever this thread has sent */
    pace->polled_ns = now_ns;
    pace->puts = 0;
    aq_poll_of_send();
    pace->keeps = false;
}

void aq_mpi_coalesce_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                         size_t nbytes)
{
    struct aq_mpi_coalesce_pace *pace = &aq_mpi_coalesce_pace;
    uint64_t now_ns;
    bool sent = false;

    aq_op_begin(op, GEX_EC_PUT, 1);
    if (AQ_UNLIKELY(!aq_mpi_coalesce_try(op, jobrank, dest, src, nbytes, &sent)))
        aq_mpi_coalesce_wait(op, jobrank, dest, src, nbytes);
    now_ns = aq_now_ns();
    if (sent || ++pace->puts == AQ_MPI_PACE_PUTS || now_ns - pace->polled_ns >= AQ_MPI_PACE_NS)
        aq_mpi_coalesce_poll(pace, now_ns); /* a rank that only puts serves others */
}

/* --- handlers --- */

static void aq_mpi_coalesce_on_puts(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t high,
                                    gex_AM_Arg_t low)
{
    const gex_AM_Arg_t args[AQ_MPI_BATCH_ARGS] = { high, low };
    struct aq_mpi_puts_one put;

    for (size_t at = 0; at < nbytes;) {
        if (AQ_UNLIKELY(!aq_mpi_puts_read(buf, nbytes, &at, &put)))
            aq_fatal("mpi: rank %u sent puts that are not in this library's form",
                     aq_token(token)->jobrank);
        aq_ref_check_range(token, "put", put.dest, put.nbytes);
        aq_mk_at(put.dest, put.nbytes)->copy_in(put.dest, put.data, put.nbytes);
    }
    aq_am_reply_short(token, AQ_HIDX_PUTS_DONE, 0, AQ_MPI_BATCH_ARGS, args);
}

static void aq_mpi_coalesce_on_done(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    struct aq_mpi_batch *batch = aq_ptr_of_args(high, low), done = *batch;

    (void)token;
    /* relaxed: a hint to the next put */
    atomic_fetch_sub_explicit(&batch->peer->unanswered, 1, memory_order_relaxed);
    aq_freelist_give(&aq_mpi_coalesce.free, &batch->item);
    /* last: the client may end the job once its operations are complete */
    for (unsigned i = 0; i < done.ops; i++)
        aq_op_end(done.of[i].op, GEX_EC_PUT, done.of[i].puts);
}

/* --- start and end --- */

int aq_mpi_coalesce_init(size_t max)
{
    aq_mpi_coalesce.max = max;
    aq_am_register_internal(AQ_HIDX_PUTS, (gex_AM_Fn_t)aq_mpi_coalesce_on_puts,
                            GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, AQ_MPI_BATCH_ARGS, "puts");
    aq_am_register_internal(AQ_HIDX_PUTS_DONE, (gex_AM_Fn_t)aq_mpi_coalesce_on_done,
                            GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, AQ_MPI_BATCH_ARGS,
                            "puts' acknowledgement");
    aq_mpi_coalesce.peers = calloc(aq_job.size, sizeof(*aq_mpi_coalesce.peers));
    if (aq_mpi_coalesce.peers == NULL)
        return aq_fail(AQ_ERR_NOMEM, "mpi: no memory for the batches of %u peers", aq_job.size);
    return AQ_OK;
}

void aq_mpi_coalesce_fini(void)
{
    struct aq_mpi_batch *batch = aq_mpi_coalesce.all;

    while (batch != NULL) {
        struct aq_mpi_batch *next = batch->all;

        if (batch->packet != NULL)
            aq_mpi_buf_give(batch->packet);
        free(batch);
        batch = next;
    }
    free(aq_mpi_coalesce.peers);
}
