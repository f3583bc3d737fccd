/*
 * gasnet_fwd.h - only the constants and simple types of the EX interface.
 *
 * A client's own public headers may include this file without choosing a thread
 * mode: it needs only <stdint.h>, declares no function, and creates no name outside
 * GEX_*, _GEX_* and gex_*. Every constant can be used in #if, in a static
 * initialiser and as a C++ constant expression.
 *
 * Source: GASNet-EX specification 0.19. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _GEX_FWD_H
#define _GEX_FWD_H 1

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t gex_Rank_t;
typedef uint16_t gex_EP_Index_t;
typedef uint32_t gex_Flags_t;
typedef uint32_t gex_DT_t;
typedef uint32_t gex_OP_t;
typedef uint32_t gex_EP_Capabilities_t;
typedef void *gex_Addr_t;
typedef struct gex_Event_s *gex_Event_t;

typedef struct gex_EP_Location_s {
    gex_Rank_t gex_rank;
    gex_EP_Index_t gex_ep_index;
} gex_EP_Location_t;

/* Larger than every possible rank. */
#define GEX_RANK_INVALID 0xffffffffu

/* Event results: the zero value is "already complete". */
#define GEX_EVENT_INVALID ((gex_Event_t)(uintptr_t)0)
#define GEX_EVENT_NO_OP   ((gex_Event_t)(uintptr_t)1)

/* Local-completion choices, distinct from any real variable's address. */
#define GEX_EVENT_NOW   ((gex_Event_t *)(uintptr_t)1)
#define GEX_EVENT_DEFER ((gex_Event_t *)(uintptr_t)2)
#define GEX_EVENT_GROUP ((gex_Event_t *)(uintptr_t)3)

/* Flags of communication calls. */
#define GEX_FLAG_IMMEDIATE               (1u << 0)
#define GEX_FLAG_SELF_SEG_UNKNOWN        (1u << 3)
#define GEX_FLAG_SELF_SEG_SOME           (1u << 4)
#define GEX_FLAG_SELF_SEG_BOUND          (1u << 5)
#define GEX_FLAG_SELF_SEG_OFFSET         (1u << 6)
#define GEX_FLAG_PEER_SEG_UNKNOWN        (1u << 7)
#define GEX_FLAG_PEER_SEG_SOME           (1u << 8)
#define GEX_FLAG_PEER_SEG_BOUND          (1u << 9)
#define GEX_FLAG_PEER_SEG_OFFSET         (1u << 10)
#define GEX_FLAG_ENABLE_LEAF_LC          (1u << 11)
#define GEX_FLAG_AM_PREPARE_LEAST_CLIENT (1u << 11)
#define GEX_FLAG_AM_PREPARE_LEAST_ALLOC  (1u << 12)
#define GEX_FLAG_PEER_NEVER_NBRHD        (1u << 14)
#define GEX_FLAG_PEER_NEVER_SELF         (1u << 15)

/* Flags of atomic domains and of their operations. */
#define GEX_FLAG_AD_REL            (1u << 1)
#define GEX_FLAG_AD_ACQ            (1u << 2)
#define GEX_FLAG_AD_MY_RANK        (1u << 11)
#define GEX_FLAG_AD_MY_NBRHD       (1u << 12)
#define GEX_FLAG_RANK_IS_JOBRANK   (1u << 13)
#define GEX_FLAG_AD_FAVOR_MY_RANK  (1u << 0)
#define GEX_FLAG_AD_FAVOR_MY_NBRHD (1u << 1)
#define GEX_FLAG_AD_FAVOR_REMOTE   (1u << 2)

/* Flags of team calls. */
#define GEX_FLAG_TM_SCRATCH_SIZE_MIN         (1u << 0)
#define GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED (1u << 1)
#define GEX_FLAG_TM_GLOBAL_SCRATCH           (1u << 2)
#define GEX_FLAG_TM_LOCAL_SCRATCH            (1u << 3)
#define GEX_FLAG_TM_SYMMETRIC_SCRATCH        (1u << 4)
#define GEX_FLAG_TM_NO_SCRATCH               (1u << 5)
#define GEX_FLAG_SCRATCH_SEG_OFFSET          (1u << 6)
#define GEX_FLAG_GLOBALLY_QUIESCED           (1u << 13)

/* Flags of handler registration: one of each group. */
#define GEX_FLAG_AM_SHORT   (1u << 0)
#define GEX_FLAG_AM_MEDIUM  (1u << 1)
#define GEX_FLAG_AM_LONG    (1u << 2)
#define GEX_FLAG_AM_MEDLONG ((1u << 1) | (1u << 2))
#define GEX_FLAG_AM_REQUEST (1u << 3)
#define GEX_FLAG_AM_REPLY   (1u << 4)
#define GEX_FLAG_AM_REQREP  ((1u << 3) | (1u << 4))

/* Flags of client and endpoint creation. */
#define GEX_FLAG_USES_GASNET1    (1u << 0)
#define GEX_FLAG_DEFER_THREADS   (1u << 1)
#define GEX_FLAG_HINT_ACCEL_AD   (1u << 0)
#define GEX_FLAG_HINT_ACCEL_COLL (1u << 1)
#define GEX_FLAG_HINT_ACCEL_ALL  ((1u << 0) | (1u << 1))

/* Data types: disjoint bits. */
#define GEX_DT_I32  (1u << 0)
#define GEX_DT_U32  (1u << 1)
#define GEX_DT_I64  (1u << 2)
#define GEX_DT_U64  (1u << 3)
#define GEX_DT_FLT  (1u << 4)
#define GEX_DT_DBL  (1u << 5)
#define GEX_DT_USER (1u << 6)

/* Operations: disjoint bits; a set of operations is their OR. */
#define GEX_OP_AND     (1u << 0)
#define GEX_OP_OR      (1u << 1)
#define GEX_OP_XOR     (1u << 2)
#define GEX_OP_ADD     (1u << 3)
#define GEX_OP_SUB     (1u << 4)
#define GEX_OP_MULT    (1u << 5)
#define GEX_OP_MIN     (1u << 6)
#define GEX_OP_MAX     (1u << 7)
#define GEX_OP_INC     (1u << 8)
#define GEX_OP_DEC     (1u << 9)
#define GEX_OP_SET     (1u << 10)
#define GEX_OP_CAS     (1u << 11)
#define GEX_OP_FAND    (1u << 15)
#define GEX_OP_FOR     (1u << 16)
#define GEX_OP_FXOR    (1u << 17)
#define GEX_OP_FADD    (1u << 18)
#define GEX_OP_FSUB    (1u << 19)
#define GEX_OP_FMULT   (1u << 20)
#define GEX_OP_FMIN    (1u << 21)
#define GEX_OP_FMAX    (1u << 22)
#define GEX_OP_FINC    (1u << 23)
#define GEX_OP_FDEC    (1u << 24)
#define GEX_OP_SWAP    (1u << 25)
#define GEX_OP_FCAS    (1u << 26)
#define GEX_OP_CSWAP   GEX_OP_FCAS
#define GEX_OP_GET     (1u << 27)
#define GEX_OP_USER    (1u << 30)
#define GEX_OP_USER_NC (1u << 31)

/* From a non-fetching operation to its fetching form, and back. */
#define GEX_OP_TO_FETCHING(op)    ((op) << 15)
#define GEX_OP_TO_NONFETCHING(op) ((op) >> 15)

/* Endpoint capabilities. */
#define GEX_EP_CAPABILITY_RMA  (1u << 0)
#define GEX_EP_CAPABILITY_AM   (1u << 1)
#define GEX_EP_CAPABILITY_VIS  (1u << 2)
#define GEX_EP_CAPABILITY_COLL (1u << 3)
#define GEX_EP_CAPABILITY_AD   (1u << 4)
#define GEX_EP_CAPABILITY_ALL                                                                      \
    (GEX_EP_CAPABILITY_RMA | GEX_EP_CAPABILITY_AM | GEX_EP_CAPABILITY_VIS | GEX_EP_CAPABILITY_COLL \
     | GEX_EP_CAPABILITY_AD)

#ifdef __cplusplus
}
#endif

#endif
