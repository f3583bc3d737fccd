/*
 * aq_rma.c - put and get of peers that are not mapped in this process: the out-of-line part of
 * include/gasnet/rma.h, and the debug checks of all of them.
 *
 * Each call makes an operation (or takes the thread's implicit one), lets the conduit or the
 * reference version start it, and derives the call's result from the operation's state.
 *
 * Threads   any; a transfer declined with GEX_FLAG_IMMEDIATE leaves no trace in any counter
 * Uses      core/aq_op.h, extended/aq_ref.h, the conduit table
 * See       GASNet-EX specification 0.19, RMA
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h"

#include "core/aq_ep.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "core/aq_thread.h"
#include "core/aq_trace.h"
#include "core/aq_op.h"
#include "extended/aq_ref.h"

static const struct aq_op_kind aq_put_blocking = { .waits_in = "gex_RMA_PutBlocking",
                                                   .name = "gex_RMA_PutBlocking",
                                                   .hides_lc = true,
                                                   .blocks = true };
static const struct aq_op_kind aq_get_blocking = { .waits_in = "gex_RMA_GetBlocking",
                                                   .name = "gex_RMA_GetBlocking",
                                                   .hides_lc = true,
                                                   .blocks = true };
static const struct aq_op_kind aq_put_nb = { .waits_in = "gex_Event_Wait (gex_RMA_PutNB)",
                                             .name = "gex_RMA_PutNB",
                                             .hides_lc = true };
static const struct aq_op_kind aq_put_nb_leaf = { .waits_in = "gex_Event_Wait (gex_RMA_PutNB)",
                                                  .name = "gex_RMA_PutNB" };
static const struct aq_op_kind aq_get_nb = { .waits_in = "gex_Event_Wait (gex_RMA_GetNB)",
                                             .name = "gex_RMA_GetNB",
                                             .hides_lc = true };

/* --- debug checks --- */

#define AQ_RMA_FLAGS (GEX_FLAG_IMMEDIATE | GEX_FLAG_PEER_NEVER_SELF | GEX_FLAG_PEER_NEVER_NBRHD)

static void aq_rma_check_flags(const char *call, gex_Rank_t jobrank, gex_Flags_t flags)
{
    const gex_Flags_t self = flags
                             & (GEX_FLAG_SELF_SEG_UNKNOWN | GEX_FLAG_SELF_SEG_SOME
                                | GEX_FLAG_SELF_SEG_BOUND | GEX_FLAG_SELF_SEG_OFFSET);
    const gex_Flags_t peer = flags
                             & (GEX_FLAG_PEER_SEG_UNKNOWN | GEX_FLAG_PEER_SEG_SOME
                                | GEX_FLAG_PEER_SEG_BOUND | GEX_FLAG_PEER_SEG_OFFSET);

    if ((flags & ~(AQ_RMA_FLAGS | self | peer)) != 0)
        aq_fatal("%s: flags 0x%x hold some that this call does not have: 0x%x", call,
                 (unsigned)flags, (unsigned)(flags & ~(AQ_RMA_FLAGS | self | peer)));
    if ((self & (self - 1)) != 0 || (peer & (peer - 1)) != 0)
        aq_fatal("%s: flags 0x%x hold more than one GEX_FLAG_SELF_SEG_* or GEX_FLAG_PEER_SEG_*",
                 call, (unsigned)flags);
    if ((flags & (GEX_FLAG_SELF_SEG_OFFSET | GEX_FLAG_PEER_SEG_OFFSET)) != 0)
        aq_fatal("%s: flags 0x%x ask for offsets instead of addresses, which this version of the "
                 "interface does not have",
                 call, (unsigned)flags);
    if ((flags & GEX_FLAG_PEER_NEVER_SELF) != 0 && jobrank == aq_job.rank)
        aq_fatal("%s: GEX_FLAG_PEER_NEVER_SELF, but the peer is this process, rank %u", call,
                 jobrank);
    if ((flags & GEX_FLAG_PEER_NEVER_NBRHD) != 0
        && aq_job.nbrhd_of[jobrank] == aq_job.nbrhd_of[aq_job.rank])
        aq_fatal("%s: GEX_FLAG_PEER_NEVER_NBRHD, but rank %u is in the neighborhood of rank %u",
                 call, jobrank, aq_job.rank);
}

static void aq_rma_check_range(const char *call, gex_Rank_t jobrank, gex_EP_Index_t index,
                               const void *remote, size_t nbytes)
{
    struct aq_bound bound;

    if (aq_job.bound == NULL)
        aq_fatal("%s: no process has a segment yet; call gex_Segment_Attach first", call);
    bound = aq_bound_find(jobrank, index);
    if (bound.size != 0 && aq_bounds_contain(&bound, remote, nbytes))
        return;
    if (index == 0)
        aq_fatal("%s: [%p, +%zu) is not inside the segment of rank %u, which is [%p, +%zu)", call,
                 remote, nbytes, jobrank, bound.addr, (size_t)bound.size);
    if (bound.size == 0)
        aq_fatal(
            "%s: endpoint %u of rank %u has no segment that this process knows of; bind one and "
            "let both take part in gex_EP_PublishBoundSegment",
            call, index, jobrank);
    aq_fatal("%s: [%p, +%zu) is not inside the segment of endpoint %u of rank %u, which is "
             "[%p, +%zu)",
             call, remote, nbytes, index, jobrank, bound.addr, (size_t)bound.size);
}

void aq_rma_check(const char *call, gex_TM_t tm, gex_Rank_t rank, const void *remote, size_t nbytes,
                  gex_Flags_t flags)
{
    aq_check_started(call);
    if (tm == GEX_TM_INVALID)
        aq_fatal("%s: the team is GEX_TM_INVALID", call);
    aq_thread_check_main(call);
    if (rank >= aq_tm_head_of(tm)->size)
        aq_fatal("%s: rank %u is outside 0..%u", call, rank, aq_tm_head_of(tm)->size - 1);
    aq_rma_check_flags(call, aq_tm_jobrank(tm, rank), flags);
    if (nbytes != 0)
        aq_rma_check_range(call, aq_tm_jobrank(tm, rank), aq_tm(tm)->peer_index, remote, nbytes);
}

void aq_rma_check_local(const char *call, const char *what, const void *addr, size_t nbytes)
{
    if (addr == NULL && nbytes != 0)
        aq_fatal("%s: the %s is NULL, but %zu bytes are to be copied", call, what, nbytes);
}

void aq_rma_check_lc(const char *call, const gex_Event_t *lc_opt, int is_nbi)
{
    if (lc_opt == NULL)
        aq_fatal("%s: lc_opt is NULL; pass GEX_EVENT_NOW, GEX_EVENT_DEFER or %s", call,
                 is_nbi ? "GEX_EVENT_GROUP" : "the address of an event");
    if (is_nbi && aq_lc_is_variable(lc_opt))
        aq_fatal("%s: lc_opt is the address %p; implicit puts have GEX_EVENT_NOW, GEX_EVENT_DEFER "
                 "and GEX_EVENT_GROUP",
                 call, (const void *)lc_opt);
    if (!is_nbi && lc_opt == GEX_EVENT_GROUP)
        aq_fatal("%s: lc_opt is GEX_EVENT_GROUP, which only implicit puts have; pass "
                 "GEX_EVENT_NOW, GEX_EVENT_DEFER or the address of an event",
                 call);
}

void aq_rma_check_val(const char *call, size_t nbytes)
{
    if (nbytes < 1 || nbytes > SIZEOF_GEX_RMA_VALUE_T)
        aq_fatal("%s: nbytes is %zu; values have 1 to %d bytes", call, nbytes,
                 SIZEOF_GEX_RMA_VALUE_T);
}

/* --- to a local or a remote rank --- */

static inline int aq_rma_start_put(struct aq_op *op, gex_Rank_t jobrank, void *dest,
                                   const void *src, size_t nbytes, bool lc_now, gex_Flags_t flags)
{
    return aq_job_ops(jobrank)->put(op, jobrank, dest, src, nbytes, lc_now, flags);
}

static inline int aq_rma_start_get(struct aq_op *op, gex_Rank_t jobrank, void *dest,
                                   const void *src, size_t nbytes, gex_Flags_t flags)
{
    return aq_job_ops(jobrank)->get(op, jobrank, dest, src, nbytes, flags);
}

/* --- puts --- */

static inline int aq_rma_do_put(gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
                                gex_Flags_t flags)
{
    struct aq_op *op;

    if (nbytes == 0)
        return 0;
    op = aq_op_create(&aq_put_blocking, jobrank);
    if (aq_rma_start_put(op, jobrank, dest, src, nbytes, false, flags) == AQ_RETRY) {
        aq_op_retire(op);
        return 1;
    }
    aq_op_wait(op);
    return 0;
}

static inline gex_Event_t aq_rma_do_put_nb(gex_Rank_t jobrank, void *dest, const void *src,
                                           size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags)
{
    const bool has_leaf = aq_lc_is_variable(lc_opt);
    gex_Event_t root = GEX_EVENT_INVALID, leaf = GEX_EVENT_INVALID;

    if (nbytes != 0) {
        struct aq_op *op = aq_op_create(has_leaf ? &aq_put_nb_leaf : &aq_put_nb, jobrank);

        if (aq_rma_start_put(op, jobrank, dest, src, nbytes, lc_opt == GEX_EVENT_NOW, flags)
            == AQ_RETRY) {
            aq_op_retire(op);
            return GEX_EVENT_NO_OP;
        }
        root = aq_op_expose(op);
        if (root != GEX_EVENT_INVALID)
            leaf = aq_op_leaf(op, AQ_CELL_LC);
    }
    if (has_leaf)
        *lc_opt = leaf;
    return root;
}

static inline int aq_rma_do_put_nbi(gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
                                    gex_Event_t *lc_opt, gex_Flags_t flags)
{
    if (nbytes == 0)
        return 0;
    return aq_rma_start_put(aq_op_implicit(jobrank), jobrank, dest, src, nbytes,
                            lc_opt == GEX_EVENT_NOW, flags)
           == AQ_RETRY;
}

/* A declined transfer did not happen: it is neither traced nor counted. */
static inline void aq_rma_traced(enum aq_trace_kind kind, uint64_t began, bool declined,
                                 gex_Rank_t jobrank, size_t nbytes)
{
    aq_trace_end(kind, declined ? 0 : began, jobrank, nbytes);
}

int aq_rma_put_blocking(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                        gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_PUT);
    const gex_Rank_t jobrank = aq_tm_jobrank(tm, rank);
    const int declined = aq_rma_do_put(jobrank, dest, src, nbytes, flags);

    aq_rma_traced(AQ_TRACE_PUT, began, declined, jobrank, nbytes);
    return declined;
}

gex_Event_t aq_rma_put_nb(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                          gex_Event_t *lc_opt, gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_PUT_NB);
    const gex_Rank_t jobrank = aq_tm_jobrank(tm, rank);
    const gex_Event_t event = aq_rma_do_put_nb(jobrank, dest, src, nbytes, lc_opt, flags);

    aq_rma_traced(AQ_TRACE_PUT_NB, began, event == GEX_EVENT_NO_OP, jobrank, nbytes);
    return event;
}

int aq_rma_put_nbi(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                   gex_Event_t *lc_opt, gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_PUT_NBI);
    const gex_Rank_t jobrank = aq_tm_jobrank(tm, rank);
    const int declined = aq_rma_do_put_nbi(jobrank, dest, src, nbytes, lc_opt, flags);

    aq_rma_traced(AQ_TRACE_PUT_NBI, began, declined, jobrank, nbytes);
    return declined;
}

int aq_rma_put_val(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value, size_t nbytes,
                   gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_PUT_VAL);
    const gex_Rank_t jobrank = aq_tm_jobrank(tm, rank);
    const int declined =
        aq_rma_do_put(jobrank, dest, (const char *)&value + aq_val_offset(nbytes), nbytes, flags);

    aq_rma_traced(AQ_TRACE_PUT_VAL, began, declined, jobrank, nbytes);
    return declined;
}

gex_Event_t aq_rma_put_val_nb(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                              size_t nbytes, gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_PUT_VAL_NB);
    const gex_Rank_t jobrank = aq_tm_jobrank(tm, rank);
    const gex_Event_t event = aq_rma_do_put_nb(
        jobrank, dest, (const char *)&value + aq_val_offset(nbytes), nbytes, GEX_EVENT_NOW, flags);

    aq_rma_traced(AQ_TRACE_PUT_VAL_NB, began, event == GEX_EVENT_NO_OP, jobrank, nbytes);
    return event;
}

int aq_rma_put_val_nbi(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                       size_t nbytes, gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_PUT_VAL_NBI);
    const gex_Rank_t jobrank = aq_tm_jobrank(tm, rank);
    const int declined = aq_rma_do_put_nbi(
        jobrank, dest, (const char *)&value + aq_val_offset(nbytes), nbytes, GEX_EVENT_NOW, flags);

    aq_rma_traced(AQ_TRACE_PUT_VAL_NBI, began, declined, jobrank, nbytes);
    return declined;
}

/* --- gets --- */

static inline int aq_rma_do_get(void *dest, gex_Rank_t jobrank, const void *src, size_t nbytes,
                                gex_Flags_t flags)
{
    struct aq_op *op;

    if (nbytes == 0)
        return 0;
    op = aq_op_create(&aq_get_blocking, jobrank);
    if (aq_rma_start_get(op, jobrank, dest, src, nbytes, flags) == AQ_RETRY) {
        aq_op_retire(op);
        return 1;
    }
    aq_op_wait(op);
    return 0;
}

static inline gex_Event_t aq_rma_do_get_nb(void *dest, gex_Rank_t jobrank, const void *src,
                                           size_t nbytes, gex_Flags_t flags)
{
    struct aq_op *op;

    if (nbytes == 0)
        return GEX_EVENT_INVALID;
    op = aq_op_create(&aq_get_nb, jobrank);
    if (aq_rma_start_get(op, jobrank, dest, src, nbytes, flags) == AQ_RETRY) {
        aq_op_retire(op);
        return GEX_EVENT_NO_OP;
    }
    return aq_op_expose(op);
}

static inline int aq_rma_do_get_nbi(void *dest, gex_Rank_t jobrank, const void *src, size_t nbytes,
                                    gex_Flags_t flags)
{
    if (nbytes == 0)
        return 0;
    return aq_rma_start_get(aq_op_implicit(jobrank), jobrank, dest, src, nbytes, flags) == AQ_RETRY;
}

int aq_rma_get_blocking(gex_TM_t tm, void *dest, gex_Rank_t rank, const void *src, size_t nbytes,
                        gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_GET);
    const gex_Rank_t jobrank = aq_tm_jobrank(tm, rank);
    const int declined = aq_rma_do_get(dest, jobrank, src, nbytes, flags);

    aq_rma_traced(AQ_TRACE_GET, began, declined, jobrank, nbytes);
    return declined;
}

gex_Event_t aq_rma_get_nb(gex_TM_t tm, void *dest, gex_Rank_t rank, const void *src, size_t nbytes,
                          gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_GET_NB);
    const gex_Rank_t jobrank = aq_tm_jobrank(tm, rank);
    const gex_Event_t event = aq_rma_do_get_nb(dest, jobrank, src, nbytes, flags);

    aq_rma_traced(AQ_TRACE_GET_NB, began, event == GEX_EVENT_NO_OP, jobrank, nbytes);
    return event;
}

int aq_rma_get_nbi(gex_TM_t tm, void *dest, gex_Rank_t rank, const void *src, size_t nbytes,
                   gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_GET_NBI);
    const gex_Rank_t jobrank = aq_tm_jobrank(tm, rank);
    const int declined = aq_rma_do_get_nbi(dest, jobrank, src, nbytes, flags);

    aq_rma_traced(AQ_TRACE_GET_NBI, began, declined, jobrank, nbytes);
    return declined;
}

gex_RMA_Value_t aq_rma_get_val(gex_TM_t tm, gex_Rank_t rank, const void *src, size_t nbytes,
                               gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_GET_VAL);
    const gex_Rank_t jobrank = aq_tm_jobrank(tm, rank);
    gex_RMA_Value_t value = 0;

    /* without IMMEDIATE, since the result could not say that it was declined */
    aq_rma_do_get((char *)&value + aq_val_offset(nbytes), jobrank, src, nbytes,
                  flags & ~GEX_FLAG_IMMEDIATE);
    aq_trace_end(AQ_TRACE_GET_VAL, began, jobrank, nbytes);
    return value;
}
