/*
 * aq_ad.c - atomic domains: creation, queries, and the out-of-line part of include/gasnet/atomic.h.
 *
 * A domain decides at its creation how targets are served, the same for all its operations. Targets
 * that are mapped in this process are served by the processor's atomics, all others by messages
 * whose handlers use the same atomics at the target (aq_ad_ref.c). If the conduit offers it for all
 * operations of the domain, the conduit's atomics serve every target. Operations on one word are
 * therefore atomic with each other, whichever path they take. A domain needs no state at the
 * target: it may be used before others have made it.
 *
 * Owns      domains, from Create to Destroy
 * Threads   any; a domain does not change, except the client's pointer
 * Promise   GEX_FLAG_AD_REL orders before the message leaves. GEX_FLAG_AD_ACQ orders once the
 *           operation is known to be complete: at return if there is no event, else in the call
 *           that finds the event or the category complete, whose loads of the counts acquire
 * Uses      core/aq_op.h, extended/aq_ad.h
 * See       GASNet-EX specification 0.19, Remote atomics
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_ad.h"

#include <stdlib.h>

#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "core/aq_thread.h"
#include "core/aq_trace.h"
#include "core/aq_op.h"

_Static_assert(__atomic_always_lock_free(4, 0) && __atomic_always_lock_free(8, 0),
               "words in shared memory need atomics without locks");

static const struct aq_op_kind aq_ad_kind = { .waits_in = "gex_Event_Wait (gex_AD_OpNB)",
                                              .name = "gex_AD_OpNB",
                                              .hides_lc = true };

static inline struct aq_ad *aq_ad(gex_AD_t ad)
{
    return (struct aq_ad *)(void *)ad;
}

/* --- operations --- */

#define AQ_AD_OPS_ANY                                                                          \
    (GEX_OP_ADD | GEX_OP_SUB | GEX_OP_MULT | GEX_OP_MIN | GEX_OP_MAX | GEX_OP_INC | GEX_OP_DEC \
     | GEX_OP_SET | GEX_OP_CAS | GEX_OP_FADD | GEX_OP_FSUB | GEX_OP_FMULT | GEX_OP_FMIN        \
     | GEX_OP_FMAX | GEX_OP_FINC | GEX_OP_FDEC | GEX_OP_SWAP | GEX_OP_FCAS | GEX_OP_GET)
#define AQ_AD_OPS_BITS \
    (GEX_OP_AND | GEX_OP_OR | GEX_OP_XOR | GEX_OP_FAND | GEX_OP_FOR | GEX_OP_FXOR)

gex_OP_t aq_ad_ops_of(gex_DT_t dt)
{
    switch (dt) {
    case GEX_DT_I32:
    case GEX_DT_U32:
    case GEX_DT_I64:
    case GEX_DT_U64:
        return AQ_AD_OPS_ANY | AQ_AD_OPS_BITS;
    case GEX_DT_FLT:
    case GEX_DT_DBL:
        return AQ_AD_OPS_ANY;
    default:
        return 0;
    }
}

/* A switch over opcodes, for calls whose opcode is not a constant. */
#define AQ_AD_DEFINE_APPLY(T, t, C, word)                                        \
    void aq_ad_apply_##t(word *at, C *result_p, gex_OP_t opcode, word a, word b, \
                         gex_Flags_t flags)                                      \
    {                                                                            \
        aq_ad_run_##t(at, result_p, opcode, a, b, flags);                        \
    }
AQ_AD_TYPES(AQ_AD_DEFINE_APPLY)

void aq_ad_apply(gex_DT_t dt, void *at, void *result_p, gex_OP_t opcode, uint64_t operand1,
                 uint64_t operand2, gex_Flags_t flags)
{
#define AQ_AD_CASE(T, t, C, word)                                                     \
    case GEX_DT_##T:                                                                  \
        aq_ad_apply_##t(at, result_p, opcode, (word)operand1, (word)operand2, flags); \
        break;

    switch (dt) {
        AQ_AD_TYPES(AQ_AD_CASE)
    default:
        aq_fatal("an atomic operation on type 0x%x, which no domain can have", (unsigned)dt);
    }
}

/* --- live domains --- */

static aq_lock aq_ad_lock = AQ_LOCK_INITIALIZER;
static struct aq_ad *aq_ad_live AQ_JOB_STATE;

static void aq_ad_enlist(struct aq_ad *ad)
{
    aq_lock_acquire(&aq_ad_lock);
    ad->next = aq_ad_live;
    aq_ad_live = ad;
    aq_lock_release(&aq_ad_lock);
}

static void aq_ad_delist(const struct aq_ad *ad)
{
    struct aq_ad **at = &aq_ad_live;

    aq_lock_acquire(&aq_ad_lock);
    while (*at != ad)
        at = &(*at)->next;
    *at = ad->next;
    aq_lock_release(&aq_ad_lock);
}

#if GASNET_DEBUG

static void aq_ad_check_handle(const char *call, gex_AD_t handle)
{
    const struct aq_ad *ad;

    aq_lock_acquire(&aq_ad_lock);
    for (ad = aq_ad_live; ad != NULL && ad != aq_ad(handle); ad = ad->next)
        ;
    aq_lock_release(&aq_ad_lock);
    if (ad == NULL)
        aq_fatal("%s: %p is %s", call, (void *)handle,
                 handle == GEX_AD_INVALID ? "GEX_AD_INVALID, not an atomic domain"
                                          : "not an atomic domain, or one that was destroyed");
}

void aq_ad_check_team(gex_TM_t tm)
{
    const struct aq_ad *ad;

    aq_lock_acquire(&aq_ad_lock);
    for (ad = aq_ad_live; ad != NULL && ad->head.tm != tm; ad = ad->next)
        ;
    aq_lock_release(&aq_ad_lock);
    if (ad != NULL)
        aq_fatal("gex_TM_Destroy: the team still has an atomic domain, %p; call gex_AD_Destroy "
                 "first",
                 (const void *)ad);
}

static void aq_ad_check_create(const gex_AD_t *ad_p, gex_TM_t tm, gex_DT_t dt, gex_OP_t ops,
                               gex_Flags_t flags)
{
    const char *const call = "gex_AD_Create";
    const gex_Flags_t favors =
        GEX_FLAG_AD_FAVOR_MY_RANK | GEX_FLAG_AD_FAVOR_MY_NBRHD | GEX_FLAG_AD_FAVOR_REMOTE;
    /* flags without effect on a domain, which gex_AD_QueryFlags returns */
    const gex_Flags_t hints = GEX_FLAG_SELF_SEG_UNKNOWN | GEX_FLAG_SELF_SEG_SOME
                              | GEX_FLAG_SELF_SEG_BOUND | GEX_FLAG_SELF_SEG_OFFSET
                              | GEX_FLAG_PEER_SEG_UNKNOWN | GEX_FLAG_PEER_SEG_SOME
                              | GEX_FLAG_PEER_SEG_BOUND | GEX_FLAG_PEER_SEG_OFFSET;
    const gex_Flags_t favor = flags & favors;

    aq_thread_check_main(call);
    if (ad_p == NULL)
        aq_fatal("%s: ad_p is NULL", call);
    if (tm == GEX_TM_INVALID || aq_tm(tm)->is_pair)
        aq_fatal("%s: tm is %s, not a team", call,
                 tm == GEX_TM_INVALID ? "GEX_TM_INVALID" : "a TM-pair");
    if (aq_ad_ops_of(dt) == 0)
        aq_fatal("%s: dt is 0x%x; domains have one of GEX_DT_I32, U32, I64, U64, FLT and DBL", call,
                 (unsigned)dt);
    if (ops == 0)
        aq_fatal("%s: ops is 0; name the operations that the domain is for", call);
    if ((ops & ~aq_ad_ops_of(dt)) != 0)
        aq_fatal("%s: ops holds 0x%x, which atomics on this type do not have", call,
                 (unsigned)(ops & ~aq_ad_ops_of(dt)));
    if ((flags & ~(favors | hints)) != 0 || (favor & (favor - 1)) != 0)
        aq_fatal("%s: flags are 0x%x; at most one GEX_FLAG_AD_FAVOR_* is allowed", call,
                 (unsigned)flags);
}

#else

static inline void aq_ad_check_handle(const char *call, gex_AD_t handle)
{
    (void)call, (void)handle;
}

void aq_ad_check_team(gex_TM_t tm)
{
    (void)tm;
}

static inline void aq_ad_check_create(const gex_AD_t *ad_p, gex_TM_t tm, gex_DT_t dt, gex_OP_t ops,
                                      gex_Flags_t flags)
{
    (void)ad_p, (void)tm, (void)dt, (void)ops, (void)flags;
}

#endif

/* --- creation and queries --- */

void gex_AD_Create(gex_AD_t *ad_p, gex_TM_t tm, gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags)
{
    aq_check_started(__func__);
    const uint64_t began = aq_trace_begin(AQ_TRACE_AD_CREATE);
    struct aq_ad *ad;

    aq_ad_check_create(ad_p, tm, dt, ops, flags);
    ad = calloc(1, sizeof(*ad));
    if (ad == NULL)
        aq_fatal("gex_AD_Create: no memory for an atomic domain (%zu bytes)", sizeof(*ad));
    ad->head = (struct aq_ad_public){ .delta = aq_tm_deltas(tm),
                                      .jobdelta = aq_job.delta,
                                      .tm = tm,
                                      .dt = dt,
                                      .ops = ops,
                                      .flags = flags };
    ad->by_conduit = aq_job.remote->ad_serves(dt, ops, flags);
    ad->native = !ad->by_conduit && (aq_job.local->caps & AQ_CAP_LOAD_STORE) != 0;
    /* a table where nothing is mapped: inline operations call the out-of-line function */
    if (ad->by_conduit)
        ad->head.delta = ad->head.jobdelta =
            aq_tm_deltas(gex_TM_Pair((gex_EP_t)(void *)&aq_job.ep, 1));
    aq_ad_enlist(ad);
    *ad_p = (gex_AD_t)(void *)ad;
    aq_trace_end(AQ_TRACE_AD_CREATE, began, GEX_RANK_INVALID, 0);
}

void aq_ad_fini(void)
{
    while (aq_ad_live != NULL) {
        struct aq_ad *ad = aq_ad_live;

        aq_ad_live = ad->next;
        free(ad);
    }
}

void gex_AD_Destroy(gex_AD_t handle)
{
    AQ_CHECK_STARTED();
    const uint64_t began = aq_trace_begin(AQ_TRACE_AD_DESTROY);

#if GASNET_DEBUG
    aq_thread_check_main("gex_AD_Destroy");
#endif
    aq_ad_check_handle("gex_AD_Destroy", handle);
    aq_ad_delist(aq_ad(handle));
    free(aq_ad(handle));
    aq_trace_end(AQ_TRACE_AD_DESTROY, began, GEX_RANK_INVALID, 0);
}

void gex_AD_SetCData(gex_AD_t ad, const void *val)
{
    AQ_CHECK_STARTED();
    aq_ad_check_handle("gex_AD_SetCData", ad);
    /* release: pairs with the acquire in the query, on any thread */
    atomic_store_explicit(&aq_ad(ad)->cdata, (void *)(uintptr_t)val, memory_order_release);
}

void *gex_AD_QueryCData(gex_AD_t ad)
{
    AQ_CHECK_STARTED();
    aq_ad_check_handle("gex_AD_QueryCData", ad);
    /* acquire: the object behind the pointer is seen as it was when the pointer was set */
    return atomic_load_explicit(&aq_ad(ad)->cdata, memory_order_acquire);
}

/* --- debug checks of an operation --- */

static void aq_ad_check_rank(const char *call, const struct aq_ad_public *head, gex_Rank_t rank,
                             gex_Flags_t flags)
{
    const gex_Rank_t size = aq_tm_head_of(head->tm)->size;

    if ((flags & GEX_FLAG_RANK_IS_JOBRANK) == 0) {
        if (rank >= size)
            aq_fatal("%s: rank %u is outside 0..%u", call, rank, size - 1);
        return;
    }
    if (rank >= aq_job.size)
        aq_fatal("%s: jobrank %u is outside 0..%u", call, rank, aq_job.size - 1);
    if (gex_TM_TranslateJobrankToRank(head->tm, rank) == GEX_RANK_INVALID)
        aq_fatal("%s: jobrank %u (GEX_FLAG_RANK_IS_JOBRANK) is not a member of the domain's team",
                 call, rank);
}

static void aq_ad_check_flags(const char *call, gex_Rank_t jobrank, gex_Flags_t flags)
{
    const gex_Flags_t hints = GEX_FLAG_AD_MY_RANK | GEX_FLAG_AD_MY_NBRHD;

    if ((flags & (GEX_FLAG_SELF_SEG_OFFSET | GEX_FLAG_PEER_SEG_OFFSET)) != 0)
        aq_fatal("%s: flags 0x%x ask for offsets instead of addresses, which this version of the "
                 "interface does not have",
                 call, (unsigned)flags);
    if ((flags & hints) == hints)
        aq_fatal("%s: flags hold both GEX_FLAG_AD_MY_RANK and GEX_FLAG_AD_MY_NBRHD", call);
    if ((flags & GEX_FLAG_AD_MY_RANK) != 0 && jobrank != aq_job.rank)
        aq_fatal("%s: GEX_FLAG_AD_MY_RANK, but the target is rank %u of the job, not this process, "
                 "rank %u",
                 call, jobrank, aq_job.rank);
    if ((flags & GEX_FLAG_AD_MY_NBRHD) != 0
        && aq_job.nbrhd_of[jobrank] != aq_job.nbrhd_of[aq_job.rank])
        aq_fatal("%s: GEX_FLAG_AD_MY_NBRHD, but rank %u is not in the neighborhood of rank %u",
                 call, jobrank, aq_job.rank);
}

static void aq_ad_check_target(const char *call, gex_Rank_t jobrank, const void *addr, size_t size)
{
    if (((uintptr_t)addr & (size - 1)) != 0)
        aq_fatal("%s: tgt_addr %p is not aligned to %zu bytes", call, addr, size);
#if !GASNET_SEGMENT_EVERYTHING
    if (aq_job.bound == NULL || aq_job.bound[jobrank].size == 0)
        aq_fatal("%s: rank %u has no segment yet; call gex_Segment_Attach first", call, jobrank);
    if (!aq_bound_contains(jobrank, addr, size))
        aq_fatal("%s: [%p, +%zu) is not inside the segment of rank %u, which is [%p, +%zu)", call,
                 addr, size, jobrank, aq_job.bound[jobrank].addr,
                 (size_t)aq_job.bound[jobrank].size);
#else
    (void)jobrank;
#endif
}

void aq_ad_check(const char *call, gex_AD_t ad, gex_DT_t dt, void *result_p, gex_Rank_t tgt_rank,
                 const void *tgt_addr, gex_OP_t opcode, gex_Flags_t flags)
{
    aq_check_started(call);
    const struct aq_ad_public *head = aq_ad_head_of(ad);
    gex_Rank_t jobrank;

    aq_ad_check_handle(call, ad);
    aq_thread_check_main(call);
    if (head->dt != dt)
        aq_fatal("%s: the domain's type is GEX_DT 0x%x; this call needs 0x%x", call,
                 (unsigned)head->dt, (unsigned)dt);
    if (opcode == 0 || (opcode & (opcode - 1)) != 0)
        aq_fatal("%s: opcode 0x%x is not one operation", call, (unsigned)opcode);
    if ((head->ops & opcode) == 0)
        aq_fatal("%s: opcode 0x%x is not among the operations of the domain, 0x%x", call,
                 (unsigned)opcode, (unsigned)head->ops);
    aq_ad_check_rank(call, head, tgt_rank, flags);
    jobrank = flags & GEX_FLAG_RANK_IS_JOBRANK ? tgt_rank : aq_tm_jobrank(head->tm, tgt_rank);
    aq_ad_check_flags(call, jobrank, flags);
    aq_ad_check_target(call, jobrank, tgt_addr, aq_ad_size(dt));
    if (aq_ad_fetches(opcode) && result_p == NULL)
        aq_fatal("%s: result_p is NULL, but opcode 0x%x is a fetching one", call, (unsigned)opcode);
    if (aq_ad_fetches(opcode) && jobrank == aq_job.rank && result_p == tgt_addr)
        aq_fatal("%s: result_p is %p, which is the target itself", call, result_p);
}

/* --- out of line --- */

/* A domain's table may say "not mapped" to disable inline operations; the job's table says whether
 * it is true. */
static inline bool aq_ad_is_local(const struct aq_ad *ad, gex_Rank_t jobrank)
{
    return ad->native && aq_job.map[jobrank] != AQ_NOT_MAPPED;
}

static inline gex_Rank_t aq_ad_jobrank(const struct aq_ad *ad, gex_Rank_t rank, gex_Flags_t flags)
{
    return flags & GEX_FLAG_RANK_IS_JOBRANK ? rank : aq_tm_jobrank(ad->head.tm, rank);
}

/* The message orders only what its sender did, and on mapped memory only if the conduit happens to
 * do so; the fence implements the flag. */
static inline int aq_ad_send(struct aq_op *op, const struct aq_ad *ad, gex_Rank_t jobrank,
                             void *result_p, void *tgt_addr, gex_OP_t opcode, uint64_t operand1,
                             uint64_t operand2, gex_Flags_t flags)
{
    if ((flags & GEX_FLAG_AD_REL) != 0)
        atomic_thread_fence(memory_order_seq_cst); /* for every opcode; a message costs more */
    if (ad->by_conduit)
        return aq_job.remote->ad_op(op, jobrank, ad->head.dt, result_p, tgt_addr, opcode, operand1,
                                    operand2, flags);
    return aq_ref_ad(op, jobrank, ad->head.dt, result_p, tgt_addr, opcode, operand1, operand2,
                     flags);
}

gex_Event_t aq_ad_nb(gex_AD_t handle, void *result_p, gex_Rank_t tgt_rank, void *tgt_addr,
                     gex_OP_t opcode, uint64_t operand1, uint64_t operand2, gex_Flags_t flags)
{
    const struct aq_ad *ad = aq_ad(handle);
    const gex_Rank_t jobrank = aq_ad_jobrank(ad, tgt_rank, flags);
    const uint64_t began = aq_trace_begin(AQ_TRACE_AD_OP_NB);
    gex_Event_t root = GEX_EVENT_INVALID;

    if (aq_ad_is_local(ad, jobrank)) {
        aq_ad_apply(ad->head.dt, aq_rma_ptr(aq_job.map[jobrank], tgt_addr), result_p, opcode,
                    operand1, operand2, flags);
    } else {
        struct aq_op *op = aq_op_create(&aq_ad_kind, jobrank);

        if (aq_ad_send(op, ad, jobrank, result_p, tgt_addr, opcode, operand1, operand2, flags)
            == AQ_RETRY) {
            aq_op_retire(op);
            return GEX_EVENT_NO_OP;
        }
        root = aq_op_expose(op);
    }
    aq_trace_end(AQ_TRACE_AD_OP_NB, began, jobrank, aq_ad_size(ad->head.dt));
    return root;
}

int aq_ad_nbi(gex_AD_t handle, void *result_p, gex_Rank_t tgt_rank, void *tgt_addr, gex_OP_t opcode,
              uint64_t operand1, uint64_t operand2, gex_Flags_t flags)
{
    const struct aq_ad *ad = aq_ad(handle);
    const gex_Rank_t jobrank = aq_ad_jobrank(ad, tgt_rank, flags);
    const uint64_t began = aq_trace_begin(AQ_TRACE_AD_OP_NBI);

    if (aq_ad_is_local(ad, jobrank))
        aq_ad_apply(ad->head.dt, aq_rma_ptr(aq_job.map[jobrank], tgt_addr), result_p, opcode,
                    operand1, operand2, flags);
    else if (aq_ad_send(aq_op_implicit(jobrank), ad, jobrank, result_p, tgt_addr, opcode, operand1,
                        operand2, flags)
             == AQ_RETRY)
        return 1;
    aq_trace_end(AQ_TRACE_AD_OP_NBI, began, jobrank, aq_ad_size(ad->head.dt));
    return 0;
}
