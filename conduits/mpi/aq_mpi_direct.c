/*
 * aq_mpi_direct.c - transfers between the buffers of two ranks by one MPI message, without a
 * window.
 *
 * An active message announces the transfer. The data is then one MPI message from buffer to buffer,
 * for which the MPI uses its fastest means (a single copy, RDMA). After a put the peer acknowledges
 * the data.
 *
 * Wire      put: DIRECT_PUT(dest, nbytes, n) -> data, tag 3n -> acknowledgement, tag 3n + 2
 *           get: DIRECT_GET(src, nbytes, n) -> data, tag 3n + 1
 *           The initiator chooses n, so the three kinds of messages from one rank to another never
 *           share a tag
 * Deadlock  cannot happen. The initiator posts its sends and receives as soon as the active message
 *           is sent, the peer as soon as it has arrived, and none of them waits for space. Each
 *           therefore finds its partner, and polls test it. The number of transfers is bounded,
 *           since the initiator takes a number before it sends the active message
 * Owns      the numbers
 * Threads   any; numbers with the lock
 * Uses      aq_mpi_direct.h, aq_mpi_tags.h, core/aq_am.h, extended/aq_ref.h.
 *           SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_direct.h"

#include "conduits/mpi/aq_mpi_lock.h"
#include "conduits/mpi/aq_mpi_tags.h"
#include "core/aq_am.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "core/aq_poll.h"
#include "extended/aq_ref.h"

/* The messages of a transfer; their tag is this plus 3 times its number. */
enum { AQ_MPI_PUT_DATA, AQ_MPI_GET_DATA, AQ_MPI_PUT_ACK };

static uint64_t aq_mpi_direct_numbers[AQ_MPI_DIRECT_TAGS / 64] AQ_JOB_STATE;

/* --- numbers --- */

/* Takes a number. Returns AQ_MPI_NO_TAG with IMMEDIATE if none is free. */
static uint16_t aq_mpi_direct_take(gex_Rank_t rank, gex_Flags_t flags)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("space for a transfer", rank);
    uint16_t number;

    for (;;) {
        aq_mpi_lock();
        number = aq_mpi_tag_take(aq_mpi_direct_numbers, AQ_MPI_DIRECT_TAGS);
        aq_mpi_unlock();
        if (AQ_LIKELY(number != AQ_MPI_NO_TAG) || (flags & GEX_FLAG_IMMEDIATE) != 0)
            break;
        aq_wait_step(&waiter);
    }
    aq_wait_end(&waiter);
    return number;
}

static void aq_mpi_direct_give(uint16_t number)
{
    aq_mpi_lock();
    aq_mpi_tag_give(aq_mpi_direct_numbers, number);
    aq_mpi_unlock();
}

/* --- at the initiator --- */

/* Sends the announcement. AQ_OK, or AQ_RETRY with IMMEDIATE. */
static int aq_mpi_direct_ask(gex_Rank_t jobrank, enum aq_am_index what, const void *remote,
                             size_t nbytes, uint16_t number, gex_Flags_t flags)
{
    const gex_TM_t tm = aq_tm_handle(aq_job.tm);
    const gex_AM_Arg_t args[] = { AQ_ARGS_OF_PTR(remote), (gex_AM_Arg_t)nbytes,
                                  (gex_AM_Arg_t)number };

    return aq_am_request_short(tm, jobrank, (gex_AM_Index_t)what, flags & GEX_FLAG_IMMEDIATE, 4,
                               args)
                   == 0
               ? AQ_OK
               : AQ_RETRY;
}

/* --- MPI messages --- */

static struct aq_mpi_xfer *aq_mpi_direct_xfer(enum aq_mpi_xfer_type type, gex_Rank_t rank,
                                              uint16_t number, unsigned message, void *local,
                                              size_t nbytes)
{
    struct aq_mpi_xfer *xfer = aq_mpi_xfer_new(&aq_mpi_rma.xfers);

    xfer->type = (uint8_t)type;
    xfer->rank = rank;
    xfer->tag = (uint16_t)(3 * number + message);
    xfer->local = local;
    xfer->nbytes = nbytes;
    return xfer;
}

/* At the initiator: the peer has acknowledged a put, or the data of a get has arrived. */
static bool aq_mpi_direct_ended(struct aq_mpi_xfer *xfer)
{
    const bool is_put = xfer->tag % 3 == AQ_MPI_PUT_ACK;

    aq_mpi_tag_give(aq_mpi_direct_numbers, xfer->tag / 3);
    aq_op_end(xfer->op, is_put ? GEX_EC_PUT : GEX_EC_GET, 1);
    return false;
}

static void aq_mpi_direct_await(struct aq_op *op, gex_Rank_t rank, uint16_t number,
                                unsigned message, void *local, size_t nbytes)
{
    struct aq_mpi_xfer *xfer =
        aq_mpi_direct_xfer(AQ_MPI_X_RECV, rank, number, message, local, nbytes);

    xfer->op = op;
    xfer->ended = aq_mpi_direct_ended;
    aq_mpi_xfer_start(&aq_mpi_rma.xfers, xfer);
}

/* At the peer: the data of a put has arrived. */
static bool aq_mpi_direct_acknowledge(struct aq_mpi_xfer *xfer)
{
    xfer->type = AQ_MPI_X_SEND;
    xfer->tag = (uint16_t)(xfer->tag - AQ_MPI_PUT_DATA + AQ_MPI_PUT_ACK);
    xfer->nbytes = 0;
    xfer->ended = NULL;
    aq_mpi_xfer_restart(&aq_mpi_rma.xfers, xfer);
    return true;
}

/* The transfer has been announced: sends the data. With lc_now, waits until the source is free. */
static void aq_mpi_direct_send(struct aq_op *op, gex_Rank_t jobrank, uint16_t number,
                               const void *src, size_t nbytes, bool lc_now)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("local completion of a put", jobrank);
    struct aq_mpi_xfer *xfer;
    atomic_bool left = false;

    if (!lc_now)
        aq_op_begin(op, GEX_EC_LC, 1);
    aq_mpi_lock();
    aq_mpi_direct_await(op, jobrank, number, AQ_MPI_PUT_ACK, NULL, 0);
    xfer = aq_mpi_direct_xfer(AQ_MPI_X_SEND, jobrank, number, AQ_MPI_PUT_DATA,
                              (void *)(uintptr_t)src, nbytes);
    xfer->op = op;
    xfer->counts_lc = !lc_now;
    xfer->left_out = lc_now ? &left : NULL;
    aq_mpi_xfer_start(&aq_mpi_rma.xfers, xfer);
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
        const uint16_t number = aq_mpi_direct_take(jobrank, flags);

        if (number == AQ_MPI_NO_TAG)
            return AQ_RETRY;
        aq_op_begin(op, GEX_EC_PUT, 1);
        if (aq_mpi_direct_ask(jobrank, AQ_HIDX_DIRECT_PUT, (char *)dest + at, frag, number, flags)
            != AQ_OK) {
            aq_op_end(op, GEX_EC_PUT, 1);
            aq_mpi_direct_give(number);
            return AQ_RETRY;
        }
        aq_mpi_direct_send(op, jobrank, number, (const char *)src + at, frag, lc_now);
    }
    return AQ_OK;
}

int aq_mpi_direct_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                      size_t nbytes, gex_Flags_t flags)
{
    for (size_t at = 0; at < nbytes; at += AQ_MPI_FRAG_MAX) {
        const size_t frag = nbytes - at < AQ_MPI_FRAG_MAX ? nbytes - at : AQ_MPI_FRAG_MAX;
        const uint16_t number = aq_mpi_direct_take(jobrank, flags);

        if (number == AQ_MPI_NO_TAG)
            return AQ_RETRY;
        aq_op_begin(op, GEX_EC_GET, 1);
        if (aq_mpi_direct_ask(jobrank, AQ_HIDX_DIRECT_GET, (const char *)src + at, frag, number,
                              flags)
            != AQ_OK) {
            aq_op_end(op, GEX_EC_GET, 1);
            aq_mpi_direct_give(number);
            return AQ_RETRY;
        }
        aq_mpi_lock();
        aq_mpi_direct_await(op, jobrank, number, AQ_MPI_GET_DATA, (char *)dest + at, frag);
        aq_mpi_unlock();
    }
    return AQ_OK;
}

/* --- at the peer --- */

/* Ends the job if the request cannot come from a rank of this library. */
static void aq_mpi_direct_check(gex_Token_t token, const char *what, void *local,
                                gex_AM_Arg_t nbytes, gex_AM_Arg_t number)
{
    aq_ref_check_range(token, what, local, (uint32_t)nbytes);
    if ((uint32_t)nbytes > AQ_MPI_FRAG_MAX || (uint32_t)number >= AQ_MPI_DIRECT_TAGS)
        aq_fatal(
            "mpi: rank %u asked for a transfer of %u bytes, number %u, which no rank of ours does",
            aq_token(token)->jobrank, (unsigned)nbytes, (unsigned)number);
}

static void aq_mpi_direct_on_put(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low,
                                 gex_AM_Arg_t nbytes, gex_AM_Arg_t number)
{
    void *local = aq_ptr_of_args(high, low);
    struct aq_mpi_xfer *xfer;

    aq_mpi_direct_check(token, "put", local, nbytes, number);
    aq_mpi_lock();
    xfer = aq_mpi_direct_xfer(AQ_MPI_X_RECV, aq_token(token)->jobrank, (uint16_t)number,
                              AQ_MPI_PUT_DATA, local, (uint32_t)nbytes);
    xfer->ended = aq_mpi_direct_acknowledge;
    aq_mpi_xfer_start(&aq_mpi_rma.xfers, xfer);
    aq_mpi_unlock();
}

static void aq_mpi_direct_on_get(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low,
                                 gex_AM_Arg_t nbytes, gex_AM_Arg_t number)
{
    void *local = aq_ptr_of_args(high, low);

    aq_mpi_direct_check(token, "get", local, nbytes, number);
    aq_mpi_lock();
    aq_mpi_xfer_start(&aq_mpi_rma.xfers,
                      aq_mpi_direct_xfer(AQ_MPI_X_SEND, aq_token(token)->jobrank, (uint16_t)number,
                                         AQ_MPI_GET_DATA, local, (uint32_t)nbytes));
    aq_mpi_unlock();
}

void aq_mpi_direct_init(void)
{
    const gex_Flags_t request = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST;

    aq_am_register_internal(AQ_HIDX_DIRECT_PUT, (gex_AM_Fn_t)aq_mpi_direct_on_put, request, 4,
                            "direct put");
    aq_am_register_internal(AQ_HIDX_DIRECT_GET, (gex_AM_Fn_t)aq_mpi_direct_on_get, request, 4,
                            "direct get");
}
