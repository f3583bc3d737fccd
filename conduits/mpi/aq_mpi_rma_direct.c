/*
 * aq_mpi_rma_direct.c - transfers straight between the buffers of two ranks, which no window needs
 * to hold.
 *
 * An active message tells the peer what is wanted; the data then goes by one send of MPI's from
 * buffer to buffer, and what the MPI does for large messages (a single copy, RDMA) does the rest.
 * For a put the peer answers when it has the data.
 *
 * Wire      DIRECT_PUT(dest, nbytes, tag) -> data with 3 tag -> nothing with 3 tag + 2
 *           DIRECT_GET(src, nbytes, tag) -> data with 3 tag + 1
 *           The tag is the initiator's: from one rank to another the three kinds of messages never
 *           share one
 * Deadlock  an initiator posts its sends and receives as soon as it has asked, a peer posts its own
 *           as soon as it is asked, and none of them ever waits for room among the requests: so
 *           every send and receive finds its partner posted in the end, and is tested by polls,
 *           whoever else has how many under way. What bounds them is the number of tags, which an
 *           initiator takes before it asks
 * Owns      the tags
 * Threads   any; tags inside aq_mpi_lock()
 * Uses      aq_mpi_rma.h, core/aq_am.h, extended/aq_ref.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_rma.h"
#include "core/aq_am.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "core/aq_op.h"
#include "extended/aq_ref.h"

static uint64_t aq_mpi_tags_used[AQ_MPI_DIRECT_TAGS / 64];

/* --- tags --- */

void aq_mpi_direct_give_tag(uint16_t tag)
{
    aq_mpi_tag_give(aq_mpi_tags_used, tag);
}

/* A tag, or AQ_MPI_NO_TAG with IMMEDIATE. */
static uint16_t aq_mpi_direct_take_tag(gex_Rank_t rank, gex_Flags_t flags)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("room for a transfer", rank);
    uint16_t tag;

    for (;;) {
        aq_mpi_lock();
        tag = aq_mpi_tag_take(aq_mpi_tags_used, AQ_MPI_DIRECT_TAGS);
        aq_mpi_unlock();
        if (AQ_LIKELY(tag != AQ_MPI_NO_TAG) || (flags & GEX_FLAG_IMMEDIATE) != 0)
            break;
        aq_wait_step(&waiter);
    }
    aq_wait_end(&waiter);
    return tag;
}

static void aq_mpi_direct_drop_tag(uint16_t tag)
{
    aq_mpi_lock();
    aq_mpi_direct_give_tag(tag);
    aq_mpi_unlock();
}

/* --- at the initiator --- */

/* Tell the peer. AQ_OK, or AQ_RETRY with IMMEDIATE. */
static int aq_mpi_direct_ask(gex_Rank_t jobrank, enum aq_am_index what, const void *remote,
                             size_t nbytes, uint16_t tag, gex_Flags_t flags)
{
    const gex_TM_t tm = aq_tm_handle(aq_job.tm);
    const gex_AM_Arg_t args[] = { AQ_ARGS_OF_PTR(remote), (gex_AM_Arg_t)nbytes, (gex_AM_Arg_t)tag };

    return aq_am_request_short(tm, jobrank, (gex_AM_Index_t)what, flags & GEX_FLAG_IMMEDIATE, 4,
                               args)
                   == 0
               ? AQ_OK
               : AQ_RETRY;
}

static struct aq_mpi_xfer *aq_mpi_direct_xfer(enum aq_mpi_xfer_type type, struct aq_op *op,
                                              gex_Rank_t rank, uint16_t tag, void *local,
                                              size_t nbytes)
{
    struct aq_mpi_xfer *xfer = aq_mpi_xfer_new();

    xfer->type = (uint8_t)type;
    xfer->op = op;
    xfer->rank = rank;
    xfer->tag = tag;
    xfer->local = local;
    xfer->nbytes = nbytes;
    return xfer;
}

/* The peer knows: the data leaves. With lc_now, wait until it has. */
static void aq_mpi_direct_send(struct aq_op *op, gex_Rank_t jobrank, uint16_t tag, const void *src,
                               size_t nbytes, bool lc_now)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("the leaving of a put's data", jobrank);
    struct aq_mpi_xfer *xfer;
    atomic_bool left = false;

    if (!lc_now)
        aq_op_begin(op, GEX_EC_LC, 1);
    aq_mpi_lock();
    aq_mpi_xfer_start(aq_mpi_direct_xfer(AQ_MPI_X_ACK, op, jobrank, tag, NULL, 0));
    xfer = aq_mpi_direct_xfer(AQ_MPI_X_SEND, op, jobrank, tag, (void *)(uintptr_t)src, nbytes);
    xfer->counts_lc = !lc_now;
    xfer->left_out = lc_now ? &left : NULL;
    aq_mpi_xfer_start(xfer);
    aq_mpi_unlock();
    /* acquire: pairs with the release in aq_mpi_xfer_left() */
    while (lc_now && !atomic_load_explicit(&left, memory_order_acquire))
        aq_wait_step(&waiter);
    aq_wait_end(&waiter);
}

int aq_mpi_direct_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                      size_t nbytes, bool lc_now, gex_Flags_t flags)
{
    for (size_t at = 0; at < nbytes; at += AQ_MPI_FRAG_MAX) {
        const size_t frag = nbytes - at < AQ_MPI_FRAG_MAX ? nbytes - at : AQ_MPI_FRAG_MAX;
        const uint16_t tag = aq_mpi_direct_take_tag(jobrank, flags);

        if (tag == AQ_MPI_NO_TAG)
            return AQ_RETRY;
        aq_op_begin(op, GEX_EC_PUT, 1);
        if (aq_mpi_direct_ask(jobrank, AQ_HIDX_DIRECT_PUT, (char *)dest + at, frag, tag, flags)
            != AQ_OK) {
            aq_op_end(op, GEX_EC_PUT, 1);
            aq_mpi_direct_drop_tag(tag);
            return AQ_RETRY;
        }
        aq_mpi_direct_send(op, jobrank, tag, (const char *)src + at, frag, lc_now);
    }
    return AQ_OK;
}

int aq_mpi_direct_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                      size_t nbytes, gex_Flags_t flags)
{
    for (size_t at = 0; at < nbytes; at += AQ_MPI_FRAG_MAX) {
        const size_t frag = nbytes - at < AQ_MPI_FRAG_MAX ? nbytes - at : AQ_MPI_FRAG_MAX;
        const uint16_t tag = aq_mpi_direct_take_tag(jobrank, flags);

        if (tag == AQ_MPI_NO_TAG)
            return AQ_RETRY;
        aq_op_begin(op, GEX_EC_GET, 1);
        if (aq_mpi_direct_ask(jobrank, AQ_HIDX_DIRECT_GET, (const char *)src + at, frag, tag, flags)
            != AQ_OK) {
            aq_op_end(op, GEX_EC_GET, 1);
            aq_mpi_direct_drop_tag(tag);
            return AQ_RETRY;
        }
        aq_mpi_lock();
        aq_mpi_xfer_start(
            aq_mpi_direct_xfer(AQ_MPI_X_RECV, op, jobrank, tag, (char *)dest + at, frag));
        aq_mpi_unlock();
    }
    return AQ_OK;
}

/* --- at the peer --- */

static void aq_mpi_direct_serve(gex_Token_t token, enum aq_mpi_xfer_type type, void *local,
                                gex_AM_Arg_t nbytes, gex_AM_Arg_t tag)
{
    const gex_Rank_t rank = aq_token(token)->jobrank;

    aq_ref_check_range(token, type == AQ_MPI_X_SERVE_PUT ? "put" : "get", local, (uint32_t)nbytes);
    if ((uint32_t)nbytes > AQ_MPI_FRAG_MAX || (uint32_t)tag >= AQ_MPI_DIRECT_TAGS)
        aq_fatal(
            "mpi: rank %u asked for a transfer of %u bytes, number %u, which no rank of ours does",
            rank, (unsigned)nbytes, (unsigned)tag);
    aq_mpi_lock();
    aq_mpi_xfer_start(aq_mpi_direct_xfer(type, NULL, rank, (uint16_t)tag, local, (uint32_t)nbytes));
    aq_mpi_unlock();
}

static void aq_mpi_direct_on_put(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low,
                                 gex_AM_Arg_t nbytes, gex_AM_Arg_t tag)
{
    aq_mpi_direct_serve(token, AQ_MPI_X_SERVE_PUT, aq_ptr_of_args(high, low), nbytes, tag);
}

static void aq_mpi_direct_on_get(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low,
                                 gex_AM_Arg_t nbytes, gex_AM_Arg_t tag)
{
    aq_mpi_direct_serve(token, AQ_MPI_X_SERVE_GET, aq_ptr_of_args(high, low), nbytes, tag);
}

void aq_mpi_direct_init(void)
{
    const gex_Flags_t request = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST;

    aq_am_register_internal(AQ_HIDX_DIRECT_PUT, (gex_AM_Fn_t)aq_mpi_direct_on_put, request, 4,
                            "direct put");
    aq_am_register_internal(AQ_HIDX_DIRECT_GET, (gex_AM_Fn_t)aq_mpi_direct_on_get, request, 4,
                            "direct get");
}
