/*
 * aq_ibv_xfer.c - transfers of more than one request, or of memory that is not in a segment.
 *
 * A transfer goes request by request: hold the peer's memory (firehose; not if it is in a segment),
 * then the local memory (firehose, or through a bounce buffer where registration is refused), post,
 * go on. Memory that is registered already goes whole. Other memory goes in chunks that start with
 * some pages and double, so that the device moves one chunk while the processor registers the next.
 *
 * The payload of a long message is a transfer too, on the queue pair of messages; the message ends
 * it.
 *
 * A transfer never blocks. What it lacks (space in a queue pair, a connection, an answer of
 * firehose, memory that may be registered) parks it, and the next poll feeds it. Its operation
 * counts it once, from start to end.
 *
 * States    fed by one thread at a time: the thread that starts it, or one that takes it out of the
 *           parked ones. While a request of it is PENDING at firehose no thread has it; done() then
 *           parks it. It ends with its last request
 * Holds     the peer's memory first, then the local memory. A transfer with neither waits for
 *           either; a transfer with the peer's waits for the local memory only, which no request of
 *           a peer keeps. The requests within a hold of the peer's memory use one queue pair, where
 *           completions are in order: the last one releases the hold
 * Threads   any; completions under the reap lock
 * Uses      aq_ibv_rma.h, extended/aq_ref.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_rma.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "base/aq_word.h"
#include "core/aq_poll.h"
#include "extended/aq_ref.h"

#define AQ_XFER_BY_MESSAGE 32768u /* bytes of a message, where the peer cannot register */
#define AQ_XFER_PARKED_MAX 1024u  /* transfers that may wait before clients do */

struct aq_ibv_xfer {
    struct aq_fh_request request;
    struct aq_ibv_wanted w; /* laddr, raddr and nbytes: what is left */
    struct aq_fh_chunks remote_chunks, local_chunks;
    struct aq_ibv_qp *qp; /* of the requests within remote_hold */
    struct aq_fh_hold
        remote_hold;    /* the peer's memory of the bytes that follow; region NULL: none */
    size_t stripe;      /* most bytes of a request */
    aq_counter pending; /* requests, and one for the feeding thread */
    bool registered;    /* the remote side is in a segment */
    bool counts_lc;
    bool is_long;               /* the payload of a long message */
    bool follows;               /* the message behind it is still to be sent */
    bool by_message;            /* the peer cannot register the rest: messages carry it */
    bool refused;               /* the local side cannot be registered: bounce buffers */
    bool answered;              /* request has an outcome */
    atomic_bool *finished;      /* not NULL: a thread waits for the end */
    struct aq_ibv_bounce *copy; /* of its source, or NULL */
    union {
        struct aq_ibv_xfer *next;     /* while it is parked */
        struct aq_freelist_item item; /* while it is free */
    };
    struct aq_ibv_follow follow;
};

/* --- free and parked transfers --- */

/* Transfers that wait. Those of long messages are apart: they need no messages of others, so polls
 * of handlers feed them too, since a handler may wait for the source of its reply. */
static struct {
    aq_lock lock;
    struct aq_ibv_xfer *first, **last;
} aq_ibv_parked[2] AQ_JOB_STATE = { { .last = &aq_ibv_parked[0].first },
                                    { .last = &aq_ibv_parked[1].first } };

static struct aq_freelist aq_ibv_xfers AQ_JOB_STATE; /* free ones */

static struct aq_ibv_xfer *aq_ibv_xfer_take(const struct aq_ibv_wanted *wanted)
{
    struct aq_ibv_xfer *x =
        aq_freelist_thing(aq_freelist_take(&aq_ibv_xfers), offsetof(struct aq_ibv_xfer, item));

    if (AQ_UNLIKELY(x == NULL) && (x = malloc(sizeof(*x))) == NULL)
        aq_fatal("ibv: no memory for a transfer of %zu bytes with rank %u", wanted->nbytes,
                 wanted->rank);
    memset(x, 0, offsetof(struct aq_ibv_xfer, follow));
    return x;
}

static void aq_ibv_xfer_give(struct aq_ibv_xfer *x)
{
    if (x->copy != NULL)
        aq_ibv_bounce_give(x->copy);
    aq_freelist_give(&aq_ibv_xfers, &x->item);
}

void aq_ibv_xfer_fini(void)
{
    struct aq_freelist_item *item;

    while ((item = aq_freelist_pop(&aq_ibv_xfers)) != NULL)
        free(aq_freelist_thing(item, offsetof(struct aq_ibv_xfer, item)));
}

/* --- parked --- */

static void aq_ibv_xfer_park(struct aq_ibv_xfer *x)
{
    const unsigned which = x->is_long;

    x->next = NULL;
    aq_lock_acquire(&aq_ibv_parked[which].lock);
    *aq_ibv_parked[which].last = x;
    aq_ibv_parked[which].last = &x->next;
    /* relaxed: a hint, written under the lock; what it counts is under the lock too */
    atomic_store_explicit(&aq_ibv_rma.parked[which],
                          atomic_load_explicit(&aq_ibv_rma.parked[which], memory_order_relaxed) + 1,
                          memory_order_relaxed);
    aq_lock_release(&aq_ibv_parked[which].lock);
}

bool aq_ibv_xfer_crowded(void)
{
    /* relaxed: a hint */
    return atomic_load_explicit(&aq_ibv_rma.parked[0], memory_order_relaxed)
               + atomic_load_explicit(&aq_ibv_rma.parked[1], memory_order_relaxed)
           >= AQ_XFER_PARKED_MAX;
}

static struct aq_ibv_xfer *aq_ibv_xfer_unpark(bool longs)
{
    struct aq_ibv_xfer *x;

    aq_lock_acquire(&aq_ibv_parked[longs].lock);
    x = aq_ibv_parked[longs].first;
    aq_ibv_parked[longs].first = NULL;
    aq_ibv_parked[longs].last = &aq_ibv_parked[longs].first;
    atomic_store_explicit(&aq_ibv_rma.parked[longs], 0,
                          memory_order_relaxed); /* see aq_ibv_xfer_park() */
    aq_lock_release(&aq_ibv_parked[longs].lock);
    return x;
}

/* --- the end --- */

/* One of its requests is complete, or the feeding thread is done. */
static void aq_ibv_xfer_complete(struct aq_ibv_xfer *x)
{
    struct aq_op *op = x->w.op;
    atomic_bool *finished = x->finished;
    const gex_EC_t category = x->is_long ? GEX_EC_AM : x->w.is_put ? GEX_EC_PUT : GEX_EC_GET;
    const bool counts_lc = x->counts_lc;

    if (aq_counter_add(&x->pending, (uint64_t)-1) != 0)
        return;
    aq_ibv_xfer_give(x);
    if (counts_lc)
        aq_op_end(op, GEX_EC_LC, 1);
    aq_op_end(op, category, 1);
    if (finished != NULL)
        /* release: pairs with the acquire of the waiter, who then leaves the frame it is in */
        atomic_store_explicit(finished, true, memory_order_release);
}

static void aq_ibv_xfer_frag_done(struct aq_ibv_done *done)
{
    struct aq_ibv_rma_frag *frag = aq_ibv_rma_frag_of(done);
    struct aq_ibv_xfer *x = frag->xfer;

    if (frag->dest != NULL) {
        aq_op_acquire(x->w.op);
        memcpy(frag->dest, frag->bounce->bytes, frag->nbytes);
    }
    if (frag->bounce != NULL)
        aq_ibv_bounce_give(frag->bounce);
    if (frag->local.region != NULL)
        aq_fh_release(aq_fh_job, &frag->local);
    if (frag->remote.region != NULL)
        aq_fh_release(aq_fh_job, &frag->remote);
    aq_ibv_rma_frag_give(frag);
    aq_ibv_xfer_complete(x);
}

/* --- what a request needs --- */

static void aq_ibv_xfer_advance(struct aq_ibv_xfer *x, size_t nbytes)
{
    x->w.laddr = (char *)x->w.laddr + nbytes;
    x->w.raddr += nbytes;
    x->w.nbytes -= nbytes;
}

/* Firehose has answered. Any thread. */
static void aq_ibv_xfer_answered(struct aq_fh_request *request)
{
    aq_ibv_xfer_park(request->arg);
}

/* The outcome of a request to firehose. AQ_OK: memory is held, or bytes were carried, or messages
 * have to do it. */
static int aq_ibv_xfer_take_answer(struct aq_ibv_xfer *x)
{
    x->answered = false;
    if (x->request.rc == AQ_RETRY)
        return AQ_RETRY;
    if (x->request.rc < 0) {
        x->by_message = true;
        return AQ_OK;
    }
    aq_ibv_xfer_advance(x, x->request.carried);
    x->remote_hold = x->request.hold;
    return AQ_OK;
}

/* Hold the peer's memory. AQ_OK, AQ_RETRY, or AQ_PENDING: firehose has the transfer. */
static int aq_ibv_xfer_reach(struct aq_ibv_xfer *x)
{
    const struct aq_fh_chunks before = x->remote_chunks;
    size_t chunk;
    int rc;

    if (aq_fh_job == NULL) {
        x->by_message = true;
        return AQ_OK;
    }
    chunk = aq_fh_chunk(&x->remote_chunks, x->w.raddr, x->w.nbytes, aq_fh_max_chunk(aq_fh_job));
    x->request = (struct aq_fh_request){ .peer = x->w.rank,
                                         .write = x->w.is_put,
                                         .addr = x->w.raddr,
                                         .nbytes = x->w.nbytes,
                                         .chunk = chunk,
                                         .put = x->w.is_put ? x->w.laddr : NULL,
                                         .get = x->w.is_put ? NULL : x->w.laddr,
                                         .done = aq_ibv_xfer_answered,
                                         .arg = x };
    x->answered = true; /* before the call: another thread may go on before it returns */
    rc = aq_fh_remote(aq_fh_job, &x->request);
    if (rc == AQ_PENDING)
        return AQ_PENDING;
    x->answered = false;
    if (rc == AQ_OK)
        x->remote_hold = x->request.hold;
    else
        x->remote_chunks = before;
    x->by_message = rc < 0;
    return rc < 0 ? AQ_OK : rc;
}

/* One message's worth, where the peer cannot register. AQ_OK or AQ_RETRY. */
static int aq_ibv_xfer_message(struct aq_ibv_xfer *x)
{
    const size_t limit = aq_limits.max_medium & ~(size_t)7;
    const size_t max = limit < AQ_XFER_BY_MESSAGE ? limit : AQ_XFER_BY_MESSAGE;
    const size_t nbytes = x->w.nbytes < max ? x->w.nbytes : max;
    const int rc = x->w.is_put ? aq_ref_put(x->w.op, x->w.rank, (void *)x->w.raddr, x->w.laddr,
                                            nbytes, false, GEX_FLAG_IMMEDIATE)
                               : aq_ref_get(x->w.op, x->w.rank, x->w.laddr, (void *)x->w.raddr,
                                            nbytes, GEX_FLAG_IMMEDIATE);

    if (rc == AQ_OK) {
        aq_ibv_xfer_advance(x, nbytes);
    }
    return rc;
}

/* The local side of the next request, of at most nbytes: segment, registered, or a bounce
 * buffer. */
static int aq_ibv_xfer_local(struct aq_ibv_xfer *x, size_t nbytes, struct aq_ibv_rma_frag *frag,
                             struct aq_ibv_local *local_out)
{
    int rc = AQ_ERR_RESOURCE;

    if (x->copy != NULL) {
        aq_ibv_local_bounce(x->copy, x->w.laddr, nbytes, local_out);
        return AQ_OK;
    }
    if (aq_ibv_local_own(x->w.laddr, nbytes, local_out))
        return AQ_OK;
    if (aq_fh_job != NULL && !x->refused && x->w.nbytes > AQ_IBV_COPIED_MAX) {
        const struct aq_fh_chunks before = x->local_chunks;
        const uintptr_t laddr = (uintptr_t)x->w.laddr;

        rc = aq_fh_local_chunk(
            aq_fh_job, laddr, nbytes,
            aq_fh_chunk(&x->local_chunks, laddr, nbytes, aq_fh_max_chunk(aq_fh_job)), !x->w.is_put,
            &frag->local);
        if (rc == AQ_OK) {
            aq_ibv_region_local(aq_ibv_rma.net, &frag->local, local_out);
            return AQ_OK;
        }
        frag->local.region = NULL;
        if (rc == AQ_RETRY) {
            x->local_chunks = before;
            return AQ_RETRY;
        }
        x->refused = rc != AQ_ERR_NOMEM; /* no memory now: try again later */
    }
    nbytes = nbytes < AQ_IBV_BOUNCE_MAX ? nbytes : AQ_IBV_BOUNCE_MAX;
    frag->bounce = aq_ibv_bounce_take(nbytes);
    if (frag->bounce == NULL)
        return AQ_RETRY;
    if (x->w.is_put)
        memcpy(frag->bounce->bytes, x->w.laddr, nbytes);
    else
        frag->dest = x->w.laddr;
    frag->nbytes = (uint32_t)nbytes;
    aq_ibv_local_bounce(frag->bounce, frag->bounce->bytes, nbytes, local_out);
    return AQ_OK;
}

static void aq_ibv_rma_frag_undo(struct aq_ibv_rma_frag *frag)
{
    if (frag->bounce != NULL)
        aq_ibv_bounce_give(frag->bounce);
    if (frag->local.region != NULL)
        aq_fh_release(aq_fh_job, &frag->local);
    aq_ibv_rma_frag_give(frag);
}

/* --- feeding --- */

/* Post a request whose local side is ready; the last request within a hold releases it. */
static int aq_ibv_xfer_post(struct aq_ibv_xfer *x, struct aq_ibv_qp *qp,
                            const struct aq_ibv_local *local, struct aq_ibv_rma_frag *frag)
{
    struct ibv_send_wr wr = { .opcode = x->w.is_put ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
                              .wr.rdma.remote_addr = x->w.raddr };
    const bool ends_hold = x->remote_hold.region != NULL && local->len == x->remote_hold.len;
    int rc;

    if (x->registered)
        aq_ibv_remote_key(x->w.rank, qp->rail->index, (void *)x->w.raddr, local->len,
                          &wr.wr.rdma.rkey);
    else
        wr.wr.rdma.rkey = x->remote_hold.reg->key[qp->rail->index];
    frag->xfer = x;
    frag->op = x->w.op;
    frag->done.fn = aq_ibv_xfer_frag_done;
    if (ends_hold)
        frag->remote = x->remote_hold;
    else
        frag->remote.region = NULL;
    aq_counter_add(&x->pending, 1); /* before the request can complete */
    rc = aq_ibv_rma_post(qp, &wr, local, frag);
    if (rc != AQ_OK) {
        aq_counter_add(&x->pending, (uint64_t)-1);
        return rc;
    }
    if (ends_hold) {
        x->remote_hold.region = NULL;
    } else if (x->remote_hold.region != NULL) {
        x->remote_hold.addr += local->len;
        x->remote_hold.len -= local->len;
    }
    aq_ibv_xfer_advance(x, local->len);
    return AQ_OK;
}

static int aq_ibv_xfer_frag(struct aq_ibv_xfer *x, struct aq_ibv_peer *peer)
{
    size_t max = x->registered ? x->w.nbytes : x->remote_hold.len;
    struct aq_ibv_rma_frag *frag;
    struct aq_ibv_local local;
    int rc;

    if (x->qp == NULL || x->remote_hold.region == NULL)
        x->qp = x->is_long ? aq_ibv_peer_am_qp(peer) : aq_ibv_rma_qp(peer);
    if (aq_ibv_qp_space(x->qp) == 0)
        return AQ_RETRY;
    max = max < x->stripe ? max : x->stripe;
    frag = aq_ibv_rma_frag_take();
    frag->bounce = NULL;
    frag->dest = NULL;
    frag->local.region = NULL;
    rc = aq_ibv_xfer_local(x, max, frag, &local);
    if (rc == AQ_OK)
        rc = aq_ibv_xfer_post(x, x->qp, &local, frag);
    if (rc != AQ_OK)
        aq_ibv_rma_frag_undo(frag);
    return rc;
}

/* The message behind the payload. */
static int aq_ibv_xfer_follow(struct aq_ibv_xfer *x, struct aq_ibv_peer *peer)
{
    const int rc = x->follow.send(peer, &x->follow);

    x->follows = rc != AQ_OK;
    return rc;
}

/* The next step. AQ_OK: there may be more; AQ_RETRY: not now; AQ_PENDING: firehose has it. */
static int aq_ibv_xfer_step(struct aq_ibv_xfer *x)
{
    struct aq_ibv_peer *peer;

    if (x->answered)
        return aq_ibv_xfer_take_answer(x);
    if (x->by_message)
        return aq_ibv_xfer_message(x);
    peer = aq_ibv_peer(x->w.rank);
    if (peer == NULL || (x->w.is_put && !aq_ibv_rma_is_quiet()))
        return AQ_RETRY;
    if (x->w.nbytes == 0)
        return aq_ibv_xfer_follow(x, peer);
    if (x->stripe == 0) {
        const size_t share =
            (x->w.nbytes / peer->qp_count + AQ_FH_PAGE - 1) & ~(size_t)(AQ_FH_PAGE - 1);

        x->stripe = x->is_long || peer->qp_count == 1 || share > AQ_IBV_FRAG_MAX ? AQ_IBV_FRAG_MAX
                    : share < AQ_IBV_STRIPE_MIN                                  ? AQ_IBV_STRIPE_MIN
                                                                                 : share;
    }
    if (!x->registered && x->remote_hold.region == NULL)
        return aq_ibv_xfer_reach(x);
    return aq_ibv_xfer_frag(x, peer);
}

/* Go on until something is lacking. Returns whether there was progress. */
static bool aq_ibv_xfer_feed(struct aq_ibv_xfer *x)
{
    bool moved = false;
    int rc = AQ_OK;

    while (x->answered || x->w.nbytes != 0 || x->follows) {
        rc = aq_ibv_xfer_step(x);
        if (rc != AQ_OK)
            break;
        moved = true;
    }
    if (rc == AQ_PENDING)
        return true; /* firehose has it */
    if (rc == AQ_RETRY) {
        aq_ibv_xfer_park(x);
        return moved;
    }
    aq_ibv_xfer_complete(x);
    return true;
}

unsigned aq_ibv_xfer_feed_parked(bool longs)
{
    struct aq_ibv_xfer *next;
    unsigned moved = 0;

    for (struct aq_ibv_xfer *x = aq_ibv_xfer_unpark(longs); x != NULL; x = next) {
        next = x->next;
        moved += aq_ibv_xfer_feed(x);
    }
    return moved;
}

/* For comparison (AQ_IBV_OVERLAP=0): register all of the local side before the first byte leaves.
 * Firehose keeps it as a victim. */
static __attribute__((noinline, cold)) void aq_ibv_xfer_reg_first(
    const struct aq_ibv_wanted *wanted)
{
    struct aq_fh_hold hold;
    size_t at = 0;

    while (at < wanted->nbytes
           && aq_fh_local(aq_fh_job, (uintptr_t)wanted->laddr + at, wanted->nbytes - at,
                          !wanted->is_put, &hold)
                  == AQ_OK) {
        at += hold.len;
        aq_fh_release(aq_fh_job, &hold);
    }
}

/* A new transfer; with a copy of its source, if that is to be free at once and there is a
 * buffer. */
static struct aq_ibv_xfer *aq_ibv_xfer_make(const struct aq_ibv_wanted *wanted)
{
    struct aq_ibv_xfer *x = aq_ibv_xfer_take(wanted);
    uint32_t rkey;

    x->w = *wanted;
    if (wanted->copies && (x->copy = aq_ibv_bounce_take(wanted->nbytes)) != NULL) {
        x->w.laddr = x->copy->bytes;
        memcpy(x->w.laddr, wanted->laddr, wanted->nbytes);
    }
    x->registered =
        aq_ibv_remote_key(wanted->rank, 0, (void *)wanted->raddr, wanted->nbytes, &rkey);
    x->counts_lc = wanted->is_put && !wanted->lc_now;
    aq_counter_add(&x->pending, 1);
    return x;
}

void aq_ibv_xfer_start_long(const struct aq_ibv_wanted *wanted, const struct aq_ibv_follow *follow)
{
    struct aq_ibv_xfer *x = aq_ibv_xfer_make(wanted);

    x->is_long = x->follows = true;
    x->follow = *follow;
    aq_ibv_xfer_feed(x);
}

void aq_ibv_xfer_start(const struct aq_ibv_wanted *wanted)
{
    struct aq_ibv_xfer *x = aq_ibv_xfer_make(wanted);
    const bool waits = wanted->lc_now && x->copy == NULL;
    atomic_bool finished = false;

    x->finished = waits ? &finished : NULL;
    if (x->counts_lc)
        aq_op_begin(wanted->op, GEX_EC_LC, 1);
    aq_op_begin(wanted->op, wanted->is_put ? GEX_EC_PUT : GEX_EC_GET, 1);
    if (AQ_UNLIKELY(!aq_env_bool(AQ_ENV_AQ_IBV_OVERLAP)) && aq_fh_job != NULL && x->copy == NULL
        && !aq_bounds_contain(&aq_ibv_segments.own, wanted->laddr, wanted->nbytes))
        aq_ibv_xfer_reg_first(wanted);
    aq_ibv_xfer_feed(x);
    if (waits) {
        struct aq_waiter waiter =
            AQ_WAITER_INIT("the end of a put whose source is to be free", wanted->rank);

        /* acquire: pairs with the release in aq_ibv_xfer_complete() */
        while (!atomic_load_explicit(&finished, memory_order_acquire))
            aq_wait_step(&waiter);
        aq_wait_end(&waiter);
    }
}
