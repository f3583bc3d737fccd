/*
 * aq_ad_ops.h - lists of the types and operations of remote atomics, for the programs that try all
 * of them.
 *
 * AQ_AD_EACH_TYPE(X)      X(T, C) for each type: the name in calls and its C type
 * AQ_AD_EACH_OP(X)        X(OP) for each operation every type has, without the prefix GEX_OP_
 * AQ_AD_EACH_BIT_OP(X)    X(OP) for each that only integers have
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_AD_OPS_H
#define AQ_AD_OPS_H

#include "gasnet_ratomic.h"

#include <stdbool.h>

#define AQ_AD_EACH_INTEGER(X)  X(I32, int32_t) X(U32, uint32_t) X(I64, int64_t) X(U64, uint64_t)
#define AQ_AD_EACH_FLOATING(X) X(FLT, float) X(DBL, double)
#define AQ_AD_EACH_TYPE(X)     AQ_AD_EACH_INTEGER(X) AQ_AD_EACH_FLOATING(X)

/* clang-format off */
#define AQ_AD_EACH_OP(X)                                                                           \
    X(ADD) X(SUB) X(MULT) X(MIN) X(MAX) X(INC) X(DEC) X(SET) X(CAS) X(FADD) X(FSUB) X(FMULT)       \
    X(FMIN) X(FMAX) X(FINC) X(FDEC) X(SWAP) X(FCAS) X(GET)
/* clang-format on */
#define AQ_AD_EACH_BIT_OP(X) X(AND) X(OR) X(XOR) X(FAND) X(FOR) X(FXOR)

#define AQ_AD_OR_IN(OP)    | GEX_OP_##OP
#define AQ_AD_OPS_FLOATING (0u AQ_AD_EACH_OP(AQ_AD_OR_IN))
#define AQ_AD_OPS_INTEGER  (AQ_AD_OPS_FLOATING AQ_AD_EACH_BIT_OP(AQ_AD_OR_IN))

/* The category that covers an implicit operation. */
static inline gex_EC_t aq_ad_ec(gex_OP_t op)
{
    return op == GEX_OP_SET ? GEX_EC_PUT : op == GEX_OP_GET ? GEX_EC_GET : GEX_EC_RMW;
}

static inline bool aq_ad_is_fetching(gex_OP_t op)
{
    return op >= GEX_OP_FAND;
}

#endif
