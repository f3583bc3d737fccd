/*
 * atomic.h - atomic domains, and operations on words of other processes' segments.
 *
 * The inline code serves a target that is mapped in this process by the processor's own atomic
 * instructions: one table look-up, one predictable branch, one instruction or a short
 * compare-and-swap loop, no event. The switch over operations is removed at compile time if the
 * opcode is a constant; if not, it is in the library. For other targets the out-of-line function
 * (extended/aq_ad.c) sends a message, whose handler executes the same instructions at the target,
 * so that the two paths are atomic with each other.
 *
 * The functions of each type are generated from atomic_forms.awk:
 *   gex_AD_OpNB_T(), gex_AD_OpNBI_T() with T one of I32 U32 I64 U64 FLT DBL
 *
 * Source: GASNet-EX specification 0.19, Remote atomics. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_ATOMIC_H
#define GASNET_ATOMIC_H 1

AQ_BEGIN_DECLS

typedef struct gex_AD_s *gex_AD_t;

#define GEX_AD_INVALID ((gex_AD_t)(uintptr_t)0)

/* The part of a domain that inline code reads. The tables belong to the team and to the job, and
 * say "not mapped" wherever inline transfers must call the out-of-line function. */
struct aq_ad_public {
    const intptr_t *delta;    /* by rank in the team */
    const intptr_t *jobdelta; /* by jobrank, for GEX_FLAG_RANK_IS_JOBRANK */
    gex_TM_t tm;
    gex_DT_t dt;
    gex_OP_t ops;
    gex_Flags_t flags;
};

static inline AQ_UNUSED const struct aq_ad_public *aq_ad_head_of(gex_AD_t ad)
{
    return (const struct aq_ad_public *)(const void *)ad;
}

/**
 * gex_AD_Create - make an atomic domain: a type and a set of operations on it.
 * ad_p   the domain, never GEX_AD_INVALID. Any thread may use it at once; no other process needs to
 *        have returned from its own call
 * tm     a team, not a TM-pair; collective over it
 * dt     one of GEX_DT_I32 U32 I64 U64 FLT DBL
 * ops    not empty: OR of operations that exist for the type (no AND, OR, XOR on FLT, DBL)
 * flags  0 or one of GEX_FLAG_AD_FAVOR_MY_RANK, _MY_NBRHD, _REMOTE, hints without effect here
 * Context ordinary code. dt, ops and flags are the same on every member
 * Errors none; a debug build ends the job on arguments that break these rules
 * Source: GASNet-EX specification 0.19, Remote atomics. Test: test_ad_domain.
 */
AQ_PUBLIC void gex_AD_Create(gex_AD_t *ad_p, gex_TM_t tm, gex_DT_t dt, gex_OP_t ops,
                             gex_Flags_t flags);

/**
 * gex_AD_Destroy - end a domain, before its team. Collective over the team; not a barrier.
 * Every operation on it is complete at all initiators before any process calls this.
 */
AQ_PUBLIC void gex_AD_Destroy(gex_AD_t ad);

/** gex_AD_SetCData, gex_AD_QueryCData - one pointer of the client's, NULL at first. Any context. */
AQ_PUBLIC void gex_AD_SetCData(gex_AD_t ad, const void *val);
AQ_PUBLIC void *gex_AD_QueryCData(gex_AD_t ad);

/** gex_AD_QueryFlags - flags at creation. This and the next three are legal in any context. */
static inline AQ_UNUSED gex_Flags_t gex_AD_QueryFlags(gex_AD_t ad)
{
    AQ_CHECK_HANDLE("atomic domain", ad);
    return aq_ad_head_of(ad)->flags;
}

/** gex_AD_QueryTM - the team of a domain. */
static inline AQ_UNUSED gex_TM_t gex_AD_QueryTM(gex_AD_t ad)
{
    AQ_CHECK_HANDLE("atomic domain", ad);
    return aq_ad_head_of(ad)->tm;
}

/** gex_AD_QueryDT - the type of a domain. */
static inline AQ_UNUSED gex_DT_t gex_AD_QueryDT(gex_AD_t ad)
{
    AQ_CHECK_HANDLE("atomic domain", ad);
    return aq_ad_head_of(ad)->dt;
}

/** gex_AD_QueryOps - the operations of a domain. */
static inline AQ_UNUSED gex_OP_t gex_AD_QueryOps(gex_AD_t ad)
{
    AQ_CHECK_HANDLE("atomic domain", ad);
    return aq_ad_head_of(ad)->ops;
}

/* --- parts of the generated functions --- */

/* A word for the processor's atomics; the client's object may have another type. */
typedef uint32_t AQ_ATTR((__may_alias__)) aq_ad_word4;
typedef uint64_t AQ_ATTR((__may_alias__)) aq_ad_word8;

/* The number of an operation, equal for its fetching form: the index of its bit in GEX_OP_*. */
#define AQ_AD_AND  0u
#define AQ_AD_OR   1u
#define AQ_AD_XOR  2u
#define AQ_AD_ADD  3u
#define AQ_AD_SUB  4u
#define AQ_AD_MULT 5u
#define AQ_AD_MIN  6u
#define AQ_AD_MAX  7u
#define AQ_AD_INC  8u
#define AQ_AD_DEC  9u
#define AQ_AD_SET  10u
#define AQ_AD_CAS  11u
#define AQ_AD_GET  12u

/* Distance from an operation's bit to that of its fetching form. */
#define AQ_AD_FETCHING 15u

static inline AQ_UNUSED unsigned aq_ad_number(gex_OP_t opcode)
{
    const unsigned bit = (unsigned)__builtin_ctz(opcode);

    return bit >= AQ_AD_FETCHING ? bit - AQ_AD_FETCHING : bit;
}

static inline AQ_UNUSED int aq_ad_fetches(gex_OP_t opcode)
{
    return opcode >= GEX_OP_FAND;
}

/* The fences below give the order; the atomic itself has none. A race detector does not understand
 * fences, so for it the atomic has every order. */
#if defined(__SANITIZE_THREAD__)
#define AQ_AD_ORDER __ATOMIC_SEQ_CST
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define AQ_AD_ORDER __ATOMIC_SEQ_CST
#endif
#endif
#ifndef AQ_AD_ORDER
#define AQ_AD_ORDER __ATOMIC_RELAXED
#endif

/* The fences that GEX_FLAG_AD_REL and GEX_FLAG_AD_ACQ stand for, around a relaxed atomic.
 *
 * In general a full fence on either side. What this thread did before is ordered before the whole
 * of the operation, including its load; what it does afterwards is ordered after the whole of it,
 * including its store. A release fence would let a load of the operation overtake older stores, and
 * a compare-and-swap that fails is nothing but a load. An acquire fence orders only the load of a
 * relaxed read-modify-write, and would let younger accesses overtake its store (in an exclusive
 * pair, for instance).
 *
 * On x86 every read-modify-write is one locked instruction, which is a full fence, also if its
 * comparison fails. Loads and stores stay in order, except that a load may overtake an older store
 * to another word. Only a plain load after older stores, and a plain store before younger loads,
 * therefore need an instruction; the other fences act on the compiler and cost nothing. */
static inline AQ_UNUSED void aq_ad_fence_before(unsigned number, gex_Flags_t flags)
{
    if ((flags & GEX_FLAG_AD_REL) == 0)
        return;
#if defined(__x86_64__) || defined(__i386__)
    if (number == AQ_AD_GET)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    else
        __atomic_thread_fence(__ATOMIC_RELEASE);
#else
    (void)number;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static inline AQ_UNUSED void aq_ad_fence_after(unsigned number, int fetches, gex_Flags_t flags)
{
    if ((flags & GEX_FLAG_AD_ACQ) == 0)
        return;
#if defined(__x86_64__) || defined(__i386__)
    if (number == AQ_AD_SET && !fetches)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    else
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
#else
    (void)number, (void)fetches;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Returns true if an operation that changes nothing may leave out its write: not if others wait for
 * the write. */
static inline AQ_UNUSED int aq_ad_is_unordered(gex_Flags_t flags)
{
    return (flags & (GEX_FLAG_AD_REL | GEX_FLAG_AD_ACQ)) == 0;
}

/* Always inline: the compiler estimates the size before the switch is removed. */
#ifdef __OPTIMIZE__
#define AQ_AD_INLINE inline AQ_UNUSED AQ_ATTR((__always_inline__))
#else
#define AQ_AD_INLINE inline AQ_UNUSED
#endif

static AQ_AD_INLINE intptr_t aq_ad_delta(gex_AD_t ad, gex_Rank_t tgt_rank, gex_Flags_t flags)
{
    const struct aq_ad_public *head = aq_ad_head_of(ad);

    return (flags & GEX_FLAG_RANK_IS_JOBRANK ? head->jobdelta : head->delta)[tgt_rank];
}

/* Out of line: targets that the tables call not mapped. Operands as words. */
AQ_PUBLIC gex_Event_t aq_ad_nb(gex_AD_t ad, void *result_p, gex_Rank_t tgt_rank, void *tgt_addr,
                               gex_OP_t opcode, uint64_t operand1, uint64_t operand2,
                               gex_Flags_t flags);
AQ_PUBLIC int aq_ad_nbi(gex_AD_t ad, void *result_p, gex_Rank_t tgt_rank, void *tgt_addr,
                        gex_OP_t opcode, uint64_t operand1, uint64_t operand2, gex_Flags_t flags);

/* Debug builds: ends the job if domain, type, opcode, rank, address, flags or context is wrong. The
 * result is not read; a pointer to const would make compilers warn of results without a value. */
AQ_PUBLIC void aq_ad_check(const char *call, gex_AD_t ad, gex_DT_t dt, void *result_p,
                           gex_Rank_t tgt_rank, const void *tgt_addr, gex_OP_t opcode,
                           gex_Flags_t flags);
#if GASNET_DEBUG
#define AQ_AD_CHECK(call, ad, dt, result_p, tgt_rank, tgt_addr, opcode, flags) \
    aq_ad_check(call, ad, dt, result_p, tgt_rank, tgt_addr, opcode, flags)
#else
#define AQ_AD_CHECK(call, ad, dt, result_p, tgt_rank, tgt_addr, opcode, flags) ((void)0)
#endif

/**
 * gex_AD_OpNB_T - start an atomic operation; gex_AD_OpNBI_T - the same, implicitly completed.
 * T, C           I32 int32_t, U32 uint32_t, I64 int64_t, U64 uint64_t, FLT float, DBL double
 * ad             a domain of that type
 * C *result_p    receives the old value of a fetching operation; not used by others. Local memory
 *                that is not itself a target
 * tgt_rank       a rank in the domain's team; with GEX_FLAG_RANK_IS_JOBRANK a member's jobrank
 * void *tgt_addr address at the owner: in the segment bound by the target, aligned to the type
 * opcode         one of the domain's operations
 * C operand1, C operand2  as many as the operation has; others are ignored
 * flags          0 or OR of GEX_FLAG_IMMEDIATE, GEX_FLAG_AD_REL (what this thread did before is
 *                ordered before the operation), GEX_FLAG_AD_ACQ (what the synchronising thread
 *                does after is ordered after it), GEX_FLAG_RANK_IS_JOBRANK, and the assertions
 *                GEX_FLAG_AD_MY_RANK or GEX_FLAG_AD_MY_NBRHD
 * Context        ordinary code, any thread in par; not in a handler, not holding an HSL
 * NB returns a root event; GEX_EVENT_INVALID if already complete; GEX_EVENT_NO_OP (only with
 * IMMEDIATE) if nothing was started. NBI returns 0, or non-zero (only with IMMEDIATE) if nothing
 * was started. Its category is GEX_EC_PUT for SET, GEX_EC_GET for GET, else GEX_EC_RMW.
 * Integers wrap. Compare-and-swap of FLT and DBL compares representations, never fails
 * spuriously. Errors: none; a debug build ends the job on what breaks these rules.
 * Source: GASNet-EX specification 0.19, Remote atomics. Tests: test_ad_*.
 */
#include "gasnet/atomic_forms.h"

AQ_END_DECLS

#endif
