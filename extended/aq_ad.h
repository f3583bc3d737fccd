/*
 * aq_ad.h - internal header of atomic domains: struct aq_ad, and execution of an operation, for
 * aq_ad.c, the reference version (aq_ad_ref.c) and conduits with atomics of their own.
 *
 * Owns      the domains, each from its creation to gex_AD_Destroy() or aq_ad_fini()
 * Threads   any; a domain does not change, except the client's pointer. aq_ad_fini(): alone
 * Uses      gasnet_ratomic.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_AD_H
#define AQ_AD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "gasnet_ratomic.h"

struct aq_op;

/* Constant once made, except the client's pointer. */
struct aq_ad {
    struct aq_ad_public head;
    bool native;     /* processor atomics of this process serve mapped targets */
    bool by_conduit; /* the conduit's atomics serve all targets, mapped ones too */
    void *_Atomic cdata;
    struct aq_ad *next; /* in the list of live domains */
};

/* --- operations --- */

/* Returns every operation that a domain of this type may have; 0: no domain has this type. */
gex_OP_t aq_ad_ops_of(gex_DT_t dt);

/* The category that counts an implicit operation. */
static inline gex_EC_t aq_ad_category(gex_OP_t opcode)
{
    return opcode == GEX_OP_SET ? GEX_EC_PUT : opcode == GEX_OP_GET ? GEX_EC_GET : GEX_EC_RMW;
}

/* Size of a type's word: 4 or 8 bytes. */
static inline size_t aq_ad_size(gex_DT_t dt)
{
    return (dt & (GEX_DT_I32 | GEX_DT_U32 | GEX_DT_FLT)) != 0 ? 4 : 8;
}

/**
 * aq_ad_apply - execute an operation on a word of this process's memory, atomically with every
 * other call of this function and with the inline operations, in all processes that map the word.
 * result_p  fetching operations: receives the old value, an object of type dt
 */
void aq_ad_apply(gex_DT_t dt, void *at, void *result_p, gex_OP_t opcode, uint64_t operand1,
                 uint64_t operand2, gex_Flags_t flags);

/* --- the reference version: aq_ad_ref.c --- */

/**
 * aq_ref_ad - send an operation to its target, where a handler executes it with aq_ad_apply().
 * Returns AQ_OK, or AQ_RETRY (only with GEX_FLAG_IMMEDIATE) if nothing was sent.
 */
int aq_ref_ad(struct aq_op *op, gex_Rank_t jobrank, gex_DT_t dt, void *result_p, void *tgt_addr,
              gex_OP_t opcode, uint64_t operand1, uint64_t operand2, gex_Flags_t flags);

/** aq_ref_ad_init - registers the handlers. */
void aq_ref_ad_init(void);

/** aq_ad_fini - the job has ended: frees the domains that the client has not destroyed. */
void aq_ad_fini(void);

/* --- debug builds --- */

/** aq_ad_check_team - a team is about to be destroyed: ends the job if it has domains left. */
void aq_ad_check_team(gex_TM_t tm);

#endif
