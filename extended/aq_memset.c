/*
 * aq_memset.c - gasnet_memset() of peers that are not mapped in this process, over active messages.
 *
 * A fill is sent as requests for one chunk each, acknowledged as puts are. Chunks are small enough
 * that the target's other messages need not wait long.
 *
 * Threads   any; acknowledgements are counted on whatever thread polls
 * Wire      MEMSET(dest, op, nbytes, val) -> PUT_ACK(op)
 * Uses      core/aq_am.h, core/aq_op.h
 * See       GASNet specification 1.8, Extended API; include/gasnet/gasnet1_rma.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "gasnet.h"

#include "core/aq_am.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "core/aq_trace.h"
#include "extended/aq_gasnet1.h"
#include "core/aq_op.h"
#include "extended/aq_ref.h"

/* Some hundreds of microseconds of processor time. */
#define AQ_MEMSET_FRAG ((size_t)4 << 20)

static const struct aq_op_kind aq_memset_blocking = { .waits_in = "gasnet_memset",
                                                      .name = "gasnet_memset",
                                                      .hides_lc = true };
static const struct aq_op_kind aq_memset_nb = { .waits_in = "gasnet_wait_syncnb (gasnet_memset_nb)",
                                                .name = "gasnet_memset_nb",
                                                .hides_lc = true };

/* --- at the target --- */

static void aq_memset_on_request(gex_Token_t token, gex_AM_Arg_t dest_high, gex_AM_Arg_t dest_low,
                                 gex_AM_Arg_t op_high, gex_AM_Arg_t op_low, gex_AM_Arg_t size,
                                 gex_AM_Arg_t val)
{
    const gex_AM_Arg_t args[] = { op_high, op_low };
    void *dest = aq_ptr_of_args(dest_high, dest_low);
    const size_t nbytes = (uint32_t)size;

    aq_ref_check_range(token, "memset", dest, nbytes);
    memset(dest, val, nbytes);
    aq_am_reply_short(token, AQ_HIDX_PUT_ACK, 0, 2, args);
}

/* --- at the initiator --- */

static void aq_memset_start(struct aq_op *op, gasnet_node_t node, void *dest, int val,
                            size_t nbytes)
{
    /* traced calls come here for mapped peers too */
    if (aq_job.map[node] != AQ_NOT_MAPPED && (aq_job.local->caps & AQ_CAP_LOAD_STORE) != 0) {
        aq_gasnet1_memset_mapped(aq_job.map[node], dest, val, nbytes);
        return;
    }
    for (size_t at = 0; at < nbytes;) {
        const size_t frag = nbytes - at < AQ_MEMSET_FRAG ? nbytes - at : AQ_MEMSET_FRAG;
        const gex_AM_Arg_t args[] = { AQ_ARGS_OF_PTR((char *)dest + at), AQ_ARGS_OF_PTR(op),
                                      (gex_AM_Arg_t)frag, val & 0xff };

        aq_op_begin(op, GEX_EC_PUT, 1);
        aq_am_request_short(aq_gasnet1_tm, node, AQ_HIDX_MEMSET, 0, 6, args);
        at += frag;
    }
}

void aq_gasnet1_memset(gasnet_node_t node, void *dest, int val, size_t nbytes)
{
    AQ_TRACE_SCOPE(AQ_TRACE_MEMSET, node, nbytes);
    struct aq_op *op;

    if (nbytes == 0)
        return;
    op = aq_op_create(&aq_memset_blocking, node);
    aq_memset_start(op, node, dest, val, nbytes);
    aq_op_wait(op);
}

gasnet_handle_t aq_gasnet1_memset_nb(gasnet_node_t node, void *dest, int val, size_t nbytes)
{
    AQ_TRACE_SCOPE(AQ_TRACE_MEMSET_NB, node, nbytes);
    struct aq_op *op;

    if (nbytes == 0)
        return GASNET_INVALID_HANDLE;
    op = aq_op_create(&aq_memset_nb, node);
    aq_memset_start(op, node, dest, val, nbytes);
    return aq_op_expose(op);
}

void aq_gasnet1_memset_nbi(gasnet_node_t node, void *dest, int val, size_t nbytes)
{
    AQ_TRACE_SCOPE(AQ_TRACE_MEMSET_NBI, node, nbytes);

    if (nbytes != 0)
        aq_memset_start(aq_op_implicit(node), node, dest, val, nbytes);
}

void aq_memset_init(void)
{
    aq_am_register_internal(AQ_HIDX_MEMSET, (gex_AM_Fn_t)aq_memset_on_request,
                            GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 6, "memset");
}
