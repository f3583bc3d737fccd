/*
 * aq_mpi_coalesce.c - coalescing: small transfers with one peer share messages.
 *
 * A put of up to GASNET_MPI_COALESCE bytes is copied into the open batch of puts of its peer. The
 * batch becomes one request, whose reply completes all its puts. Gets are gathered likewise; their
 * reply brings the data.
 *
 * Which     puts of gex_RMA_PutNBI and gasnet_put_nbi*, in and outside of access regions: the
 *           client waits for many of them at once. Of others, and of gets, where a window would
 *           serve them, those of a rank that pays attention (aq_mpi_rma.c)
 * Windows   implicit puts share messages also where a one-sided window serves all others: a share
 *           of a message costs less than a tenth of a transfer of MPI's. They are then complete
 *           only once their target has polled, as the interface allows. The user can ask for the
 *           window (aq_mpi_choose_coalesced())
 * Leaving   a batch leaves at once if few batches to its peer are unanswered, so single transfers
 *           are not deferred; else when it is full, with the next poll of any thread (every wait,
 *           barrier, collective and blocking call polls, and requests do now and then), and at the
 *           end of an access region
 * Pace      every 16th transfer polls, as every request does, but keeps the open batches, which
 *           others are to join. One that comes long after the one before also sends them
 * Progress  a batch without credit waits for it in polls, as a request does. Only a transfer that
 *           finds the open batch full and without credit waits in its call
 * Owns      aq_mpi_coalesce
 * Threads   any; the lock around MPI protects batches that are not sent yet. A sent batch belongs
 *           to the handler of its reply
 * Promise   the data of a put is readable at the target, and that of a get at its destination,
 *           before the operation is complete
 * Wire      PUTS(batch) + puts as in aq_mpi_puts.h -> PUTS_DONE(batch)
 *           GETS(batch) + gets as in aq_mpi_puts.h -> GETS_DATA(batch) + data
 * Uses      aq_mpi_am_out.h, aq_mpi_attention.h, aq_mpi_puts.h, core/aq_am.h.
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

#define AQ_MPI_BATCH_OPS  8u  /* operations that the transfers of one batch belong to */
#define AQ_MPI_BATCH_GETS 64u /* gets in one batch */
#define AQ_MPI_BATCH_ARGS 2u
#define AQ_MPI_PACE_COUNT 16u
#define AQ_MPI_PACE_NS    20000u /* transfers that are further apart do not wait for others */

_Static_assert(AQ_MPI_PUTS_BATCH <= AQ_MPI_INLINE, "a batch is the payload of one packet");
_Static_assert(2 * AQ_MPI_PUTS_WORD * AQ_MPI_BATCH_GETS <= AQ_MPI_PUTS_BATCH, "so are gets");

enum aq_mpi_batch_kind { AQ_MPI_BATCH_OF_PUTS, AQ_MPI_BATCH_OF_GETS, AQ_MPI_BATCH_KINDS };

/* A transfer that is to join a batch. */
struct aq_mpi_small {
    enum aq_mpi_batch_kind kind;
    gex_Rank_t jobrank;
    struct aq_op *op;
    void *dest;
    const void *src;
    size_t nbytes;
    uint64_t now_ns; /* one look at the clock serves all that it is needed for */
};

/* The operations that a batch's transfers belong to. */
struct aq_mpi_batch_ops {
    unsigned count;
    struct {
        struct aq_op *op;
        uint64_t transfers;
    } of[AQ_MPI_BATCH_OPS];
};

/* Transfers with one peer, waiting to be sent or for their reply. */
struct aq_mpi_batch {
    struct aq_freelist_item item; /* while it is free */
    struct aq_mpi_batch *all;
    struct aq_mpi_coalesce_peer *peer;
    struct aq_mpi_buf *packet; /* NULL: sent */
    uint64_t sent_ns;
    bool waited; /* a blocking call waits for it; then see aq_mpi_attention_answered() */
    enum aq_mpi_batch_kind kind;
    size_t nbytes; /* of puts or gets in the packet */
    size_t answer; /* of data in the answer */
    struct aq_mpi_batch_ops done;
    unsigned gets;
    struct {
        void *dest;
        size_t nbytes;
    } got[AQ_MPI_BATCH_GETS];
};

struct aq_mpi_coalesce_peer {
    struct aq_mpi_batch *open[AQ_MPI_BATCH_KINDS]; /* to be sent, or NULL */
    struct aq_mpi_coalesce_peer *next;
    gex_Rank_t jobrank;
    bool listed;
    atomic_uint unanswered; /* batches */
    struct aq_mpi_attention attention;
};

struct aq_mpi_coalesce aq_mpi_coalesce AQ_JOB_STATE;
_Thread_local struct aq_mpi_coalesce_pace aq_mpi_coalesce_pace;

/* --- peers --- */

/* With the lock. */
static __attribute__((noinline)) struct aq_mpi_coalesce_peer *aq_mpi_peer_new(gex_Rank_t jobrank)
{
    struct aq_mpi_coalesce_peer *peer = calloc(1, sizeof(*peer));

    if (peer == NULL)
        aq_fatal("mpi: no memory for transfers with rank %u (%zu bytes)", jobrank, sizeof(*peer));
    peer->jobrank = jobrank;
    /* release: who finds the peer without the lock finds what is in it */
    atomic_store_explicit(&aq_mpi_coalesce.peers[jobrank], peer, memory_order_release);
    return peer;
}

/* NULL: there is none yet. */
static inline struct aq_mpi_coalesce_peer *aq_mpi_peer_find(gex_Rank_t jobrank)
{
    /* acquire: pairs with the release in aq_mpi_peer_new() */
    return atomic_load_explicit(&aq_mpi_coalesce.peers[jobrank], memory_order_acquire);
}

/* With the lock. */
static inline struct aq_mpi_coalesce_peer *aq_mpi_peer_of(gex_Rank_t jobrank)
{
    struct aq_mpi_coalesce_peer *peer = aq_mpi_peer_find(jobrank);

    return AQ_LIKELY(peer != NULL) ? peer : aq_mpi_peer_new(jobrank);
}

bool aq_mpi_coalesce_is_attentive(gex_Rank_t jobrank)
{
    struct aq_mpi_coalesce_peer *peer = aq_mpi_peer_find(jobrank);

    if (AQ_UNLIKELY(peer == NULL)) {
        aq_mpi_lock();
        peer = aq_mpi_peer_of(jobrank);
        aq_mpi_unlock();
    }
    return aq_mpi_attention_is_paid(&peer->attention, jobrank, aq_now_ns());
}

/* --- batches, with the lock --- */

static __attribute__((noinline)) struct aq_mpi_batch *aq_mpi_batch_new(void)
{
    struct aq_mpi_batch *batch = calloc(1, sizeof(*batch));

    if (batch == NULL)
        aq_fatal("mpi: no memory for a batch of transfers (%zu bytes)", sizeof(*batch));
    batch->all = aq_mpi_coalesce.all;
    aq_mpi_coalesce.all = batch;
    return batch;
}

static struct aq_mpi_batch *aq_mpi_batch_open(struct aq_mpi_coalesce_peer *peer,
                                              enum aq_mpi_batch_kind kind)
{
    struct aq_mpi_batch *batch = aq_freelist_thing(aq_freelist_take(&aq_mpi_coalesce.free),
                                                   offsetof(struct aq_mpi_batch, item));

    if (AQ_UNLIKELY(batch == NULL))
        batch = aq_mpi_batch_new();
    batch->peer = peer;
    batch->packet = aq_mpi_buf_take(AQ_MPI_PACKET);
    batch->kind = kind;
    batch->nbytes = batch->answer = 0;
    batch->done.count = batch->gets = 0;
    batch->waited = false;
    return batch;
}

/* Counts a transfer of op. Returns false if the batch has some of too many other operations. */
static inline bool aq_mpi_batch_count(struct aq_mpi_batch_ops *ops, struct aq_op *op)
{
    for (unsigned i = 0; i < ops->count; i++)
        if (ops->of[i].op == op) {
            ops->of[i].transfers++;
            return true;
        }
    if (ops->count == AQ_MPI_BATCH_OPS)
        return false;
    ops->of[ops->count].op = op;
    ops->of[ops->count++].transfers = 1;
    return true;
}

static inline char *aq_mpi_batch_payload(struct aq_mpi_batch *batch)
{
    return (char *)aq_mpi_buf_bytes(batch->packet)
           + aq_mpi_packet_payload(AQ_AM_MEDIUM, AQ_MPI_BATCH_ARGS);
}

static inline bool aq_mpi_batch_add_put(struct aq_mpi_batch *batch, const struct aq_mpi_small *put)
{
    const size_t bytes = aq_mpi_puts_bytes(put->nbytes);

    if (batch->nbytes + bytes > AQ_MPI_PUTS_BATCH || !aq_mpi_batch_count(&batch->done, put->op))
        return false;
    aq_mpi_puts_write(aq_mpi_batch_payload(batch) + batch->nbytes, put->dest, put->src,
                      put->nbytes);
    batch->nbytes += bytes;
    return true;
}

static inline bool aq_mpi_batch_add_get(struct aq_mpi_batch *batch, const struct aq_mpi_small *get)
{
    const size_t answer = batch->answer + aq_mpi_puts_padded(get->nbytes);
    char *at = aq_mpi_batch_payload(batch) + batch->nbytes;

    if (batch->gets == AQ_MPI_BATCH_GETS || answer > AQ_MPI_PUTS_BATCH
        || !aq_mpi_batch_count(&batch->done, get->op))
        return false;
    batch->nbytes += (size_t)(aq_mpi_puts_write_head(at, get->src, get->nbytes) - at);
    batch->answer = answer;
    batch->got[batch->gets].dest = get->dest;
    batch->got[batch->gets++].nbytes = get->nbytes;
    return true;
}

/* Returns false if the batch is full. */
static inline bool aq_mpi_batch_add(struct aq_mpi_batch *batch, const struct aq_mpi_small *small)
{
    batch->waited = batch->waited || small->op->kind->blocks;
    return small->kind == AQ_MPI_BATCH_OF_PUTS ? aq_mpi_batch_add_put(batch, small)
                                               : aq_mpi_batch_add_get(batch, small);
}

/* Sends an open batch of a peer: AQ_OK, or AQ_RETRY. */
static int aq_mpi_batch_send(struct aq_mpi_coalesce_peer *peer, enum aq_mpi_batch_kind kind,
                             uint64_t now_ns)
{
    struct aq_mpi_batch *batch = peer->open[kind];
    const gex_AM_Arg_t args[AQ_MPI_BATCH_ARGS] = { AQ_ARGS_OF_PTR(batch) };
    const struct aq_am_out out = { .jobrank = peer->jobrank,
                                   .handler =
                                       kind == AQ_MPI_BATCH_OF_PUTS ? AQ_HIDX_PUTS : AQ_HIDX_GETS,
                                   .nargs = AQ_MPI_BATCH_ARGS,
                                   .kind = AQ_AM_MEDIUM,
                                   .args = args,
                                   .nbytes = batch->nbytes };
    struct aq_mpi_buf *packet = batch->packet;
    const uint64_t began =
        AQ_UNLIKELY(aq_trace_is_on()) ? aq_trace_begin(aq_trace_send_kind(&out, false)) : 0;

    batch->sent_ns = now_ns;
    batch->waited = batch->waited && aq_mpi_attention_is_fresh(&peer->attention, now_ns);
    if (aq_mpi_am_send_filled(&aq_mpi_am, &out, packet) != AQ_OK)
        return AQ_RETRY;
    if (AQ_UNLIKELY(aq_trace_is_on()))
        aq_trace_end_send(began, &out, false);
    batch->packet = NULL;
    peer->open[kind] = NULL;
    /* relaxed: a hint to the next transfer */
    atomic_fetch_add_explicit(&peer->unanswered, 1, memory_order_relaxed);
    return AQ_OK;
}

/* Returns false if a batch of the peer has no credit. */
static bool aq_mpi_coalesce_flush_peer(struct aq_mpi_coalesce_peer *peer, uint64_t now_ns)
{
    bool all = true;

    for (unsigned kind = 0; kind < AQ_MPI_BATCH_KINDS; kind++)
        if (peer->open[kind] != NULL
            && aq_mpi_batch_send(peer, (enum aq_mpi_batch_kind)kind, now_ns) != AQ_OK)
            all = false;
    return all;
}

void aq_mpi_coalesce_flush(void)
{
    struct aq_mpi_coalesce_peer **at = &aq_mpi_coalesce.listed;
    const uint64_t now_ns = aq_now_ns();

    while (*at != NULL) {
        struct aq_mpi_coalesce_peer *peer = *at;

        if (!aq_mpi_coalesce_flush_peer(peer, now_ns)) {
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

static void aq_mpi_batch_drop(struct aq_mpi_batch *batch)
{
    aq_mpi_buf_give(batch->packet);
    batch->packet = NULL;
    aq_mpi_coalesce.dropped = true;
}

void aq_mpi_coalesce_drop(void)
{
    for (struct aq_mpi_coalesce_peer *peer = aq_mpi_coalesce.listed; peer != NULL;
         peer = peer->next) {
        peer->listed = false;
        for (unsigned kind = 0; kind < AQ_MPI_BATCH_KINDS; kind++)
            if (peer->open[kind] != NULL) {
                aq_mpi_batch_drop(peer->open[kind]);
                peer->open[kind] = NULL;
            }
    }
    aq_mpi_coalesce.listed = NULL;
    /* relaxed: see aq_mpi_coalesce_is_pending() */
    atomic_store_explicit(&aq_mpi_coalesce.pending, false, memory_order_relaxed);
}

/* --- transfers --- */

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

/* With the lock: adds a transfer to the open batch. Returns false if there is no space. *sent_io is
 * set if a batch has left. */
static inline bool aq_mpi_coalesce_add(struct aq_mpi_coalesce_peer *peer,
                                       const struct aq_mpi_small *small, bool *sent_io)
{
    struct aq_mpi_batch **open = &peer->open[small->kind];

    if (AQ_LIKELY(*open != NULL)) {
        if (AQ_LIKELY(aq_mpi_batch_add(*open, small)))
            return true;
        if (aq_mpi_batch_send(peer, small->kind, small->now_ns) != AQ_OK)
            return false;
        *sent_io = true;
    }
    *open = aq_mpi_batch_open(peer, small->kind);
    (void)aq_mpi_batch_add(*open, small); /* an empty one has space */
    /* relaxed: a hint. An answer that arrives now is for the next transfer */
    if (atomic_load_explicit(&peer->unanswered, memory_order_relaxed) < AQ_MPI_COALESCE_AT_ONCE
        && aq_mpi_batch_send(peer, small->kind, small->now_ns) == AQ_OK)
        *sent_io = true;
    else
        aq_mpi_coalesce_list(peer);
    return true;
}

static inline bool aq_mpi_coalesce_try(const struct aq_mpi_small *small, bool *sent_io)
{
    bool added;

    aq_mpi_lock();
    added = aq_mpi_coalesce_add(aq_mpi_peer_of(small->jobrank), small, sent_io);
    aq_mpi_unlock();
    return added;
}

/* The open batch is full and cannot be sent yet. */
static __attribute__((noinline, cold)) void aq_mpi_coalesce_wait(const struct aq_mpi_small *small)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("space for small transfers", small->jobrank);
    struct aq_mpi_small late = *small;
    bool sent = false;

    waiter.no_wakeup = 1; /* credit arrives without a wake-up */
    do {
        aq_wait_step(&waiter); /* its polls send the batch */
        late.now_ns = aq_now_ns();
    } while (!aq_mpi_coalesce_try(&late, &sent));
    aq_wait_end(&waiter);
}

static __attribute__((noinline)) void aq_mpi_coalesce_poll(struct aq_mpi_coalesce_pace *pace,
                                                           uint64_t now_ns)
{
    pace->keeps = now_ns - pace->polled_ns < AQ_MPI_PACE_NS;
    if (!pace->keeps)
        aq_mpi_am_batch.just_sent = false; /* MPI is polled, whatever this thread has sent */
    pace->polled_ns = now_ns;
    pace->count = 0;
    aq_poll_of_send();
    pace->keeps = false;
}

static inline void aq_mpi_coalesce_start(const struct aq_mpi_small *small)
{
    struct aq_mpi_coalesce_pace *pace = &aq_mpi_coalesce_pace;
    bool sent = false;

    if (AQ_UNLIKELY(!aq_mpi_coalesce_try(small, &sent)))
        aq_mpi_coalesce_wait(small);
    if (sent || ++pace->count == AQ_MPI_PACE_COUNT
        || small->now_ns - pace->polled_ns >= AQ_MPI_PACE_NS)
        aq_mpi_coalesce_poll(pace, small->now_ns); /* a rank that only puts serves others */
}

void aq_mpi_coalesce_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                         size_t nbytes)
{
    const struct aq_mpi_small put = { AQ_MPI_BATCH_OF_PUTS, jobrank, op, dest, src, nbytes,
                                      aq_now_ns() };

    aq_op_begin(op, GEX_EC_PUT, 1);
    aq_mpi_coalesce_start(&put);
}

void aq_mpi_coalesce_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                         size_t nbytes)
{
    const struct aq_mpi_small get = { AQ_MPI_BATCH_OF_GETS, jobrank, op, dest, src, nbytes,
                                      aq_now_ns() };

    aq_op_begin(op, GEX_EC_GET, 1);
    aq_mpi_coalesce_start(&get);
}

/* --- handlers --- */

static __attribute__((noreturn, cold)) void aq_mpi_coalesce_bad(gex_Token_t token, const char *what)
{
    aq_fatal("mpi: rank %u sent %s that are not in this library's form", aq_token(token)->jobrank,
             what);
}

static void aq_mpi_coalesce_on_puts(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t high,
                                    gex_AM_Arg_t low)
{
    const gex_AM_Arg_t args[AQ_MPI_BATCH_ARGS] = { high, low };
    struct aq_mpi_puts_one put;

    for (size_t at = 0; at < nbytes;) {
        if (AQ_UNLIKELY(!aq_mpi_puts_read(buf, nbytes, &at, &put)))
            aq_mpi_coalesce_bad(token, "puts");
        aq_ref_check_range(token, "put", put.addr, put.nbytes);
        aq_mk_at(put.addr, put.nbytes)->copy_in(put.addr, put.data, put.nbytes);
    }
    aq_am_reply_short(token, AQ_HIDX_PUTS_DONE, 0, AQ_MPI_BATCH_ARGS, args);
}

static void aq_mpi_coalesce_on_gets(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t high,
                                    gex_AM_Arg_t low)
{
    const gex_AM_Arg_t args[AQ_MPI_BATCH_ARGS] = { high, low };
    _Alignas(AQ_MPI_PUTS_WORD) char data[AQ_MPI_PUTS_BATCH];
    struct aq_mpi_puts_one get;
    size_t end = 0;

    for (size_t at = 0; at < nbytes;) {
        if (AQ_UNLIKELY(!aq_mpi_puts_read_head(buf, nbytes, &at, &get)
                        || end + aq_mpi_puts_padded(get.nbytes) > sizeof(data)))
            aq_mpi_coalesce_bad(token, "gets");
        aq_ref_check_range(token, "get", get.addr, get.nbytes);
        memset(data + end + aq_mpi_puts_padded(get.nbytes) - AQ_MPI_PUTS_WORD, 0, AQ_MPI_PUTS_WORD);
        aq_mk_at(get.addr, get.nbytes)->copy_out(data + end, get.addr, get.nbytes);
        end += aq_mpi_puts_padded(get.nbytes);
    }
    aq_am_reply_medium(token, AQ_HIDX_GETS_DATA, data, end, GEX_EVENT_NOW, 0, AQ_MPI_BATCH_ARGS,
                       args);
}

/* The answer of a batch has come. */
static void aq_mpi_batch_end(struct aq_mpi_batch *batch)
{
    struct aq_mpi_batch_ops done = batch->done;
    struct aq_mpi_coalesce_peer *peer = batch->peer;
    const unsigned cell = batch->kind == AQ_MPI_BATCH_OF_PUTS ? GEX_EC_PUT : GEX_EC_GET;

    aq_mpi_attention_answered(&peer->attention, batch->sent_ns, aq_now_ns(), batch->waited);
    /* relaxed: a hint to the next transfer */
    atomic_fetch_sub_explicit(&peer->unanswered, 1, memory_order_relaxed);
    aq_freelist_give(&aq_mpi_coalesce.free, &batch->item);
    /* last: the client may end the job once its operations are complete */
    for (unsigned i = 0; i < done.count; i++)
        aq_op_end(done.of[i].op, cell, done.of[i].transfers);
}

static void aq_mpi_coalesce_on_done(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    (void)token;
    aq_mpi_batch_end(aq_ptr_of_args(high, low));
}

static void aq_mpi_coalesce_on_data(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t high,
                                    gex_AM_Arg_t low)
{
    struct aq_mpi_batch *batch = aq_ptr_of_args(high, low);
    const char *data = buf;

    if (AQ_UNLIKELY(nbytes != batch->answer))
        aq_mpi_coalesce_bad(token, "answers to gets");
    for (unsigned i = 0; i < batch->done.count; i++)
        aq_op_acquire(batch->done.of[i].op);
    for (unsigned i = 0; i < batch->gets; i++) {
        const size_t length = batch->got[i].nbytes;

        aq_mk_at(batch->got[i].dest, length)->copy_in(batch->got[i].dest, data, length);
        data += aq_mpi_puts_padded(length);
    }
    aq_mpi_batch_end(batch);
}

/* --- start and end --- */

int aq_mpi_coalesce_init(size_t max_put, size_t max_get)
{
    aq_mpi_coalesce.max_put = max_put;
    aq_mpi_coalesce.max_get = max_get;
    aq_am_register_internal(AQ_HIDX_PUTS, (gex_AM_Fn_t)aq_mpi_coalesce_on_puts,
                            GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, AQ_MPI_BATCH_ARGS, "puts");
    aq_am_register_internal(AQ_HIDX_PUTS_DONE, (gex_AM_Fn_t)aq_mpi_coalesce_on_done,
                            GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, AQ_MPI_BATCH_ARGS,
                            "puts' acknowledgement");
    aq_am_register_internal(AQ_HIDX_GETS, (gex_AM_Fn_t)aq_mpi_coalesce_on_gets,
                            GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, AQ_MPI_BATCH_ARGS, "gets");
    aq_am_register_internal(AQ_HIDX_GETS_DATA, (gex_AM_Fn_t)aq_mpi_coalesce_on_data,
                            GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, AQ_MPI_BATCH_ARGS,
                            "gets' data");
    aq_mpi_attention_init();
    aq_mpi_coalesce.peers = calloc(aq_job.size, sizeof(*aq_mpi_coalesce.peers));
    if (aq_mpi_coalesce.peers == NULL)
        return aq_fail(AQ_ERR_NOMEM, "mpi: no memory to find %u peers", aq_job.size);
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
    for (gex_Rank_t rank = 0; aq_mpi_coalesce.peers != NULL && rank < aq_job.size; rank++)
        free(aq_mpi_peer_find(rank));
    free(aq_mpi_coalesce.peers);
}
