/*
 * types.h - handles, error codes and the structs that clients fill in or read.
 *
 * Source: GASNet-EX specification 0.19, types and constants. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_TYPES_H
#define GASNET_TYPES_H 1

AQ_BEGIN_DECLS

/* --- error codes --- */

#define GASNET_OK                   0
#define GASNET_ERR_NOT_INIT         10001
#define GASNET_ERR_RESOURCE         10002
#define GASNET_ERR_BAD_ARG          10003
#define GASNET_ERR_NOT_READY        10004
#define GASNET_ERR_BARRIER_MISMATCH 10005

/* --- opaque handles: pointers to distinct incomplete structs --- */

typedef struct gex_Client_s *gex_Client_t;
typedef struct gex_EP_s *gex_EP_t;
typedef struct gex_TM_s *gex_TM_t;
typedef struct gex_Segment_s *gex_Segment_t;
typedef struct gex_MK_s *gex_MK_t;
typedef struct gex_AM_SrcDesc_s *gex_AM_SrcDesc_t;
typedef struct gex_Token_s *gex_Token_t;

#define GEX_CLIENT_INVALID   ((gex_Client_t)(uintptr_t)0)
#define GEX_EP_INVALID       ((gex_EP_t)(uintptr_t)0)
#define GEX_TM_INVALID       ((gex_TM_t)(uintptr_t)0)
#define GEX_SEGMENT_INVALID  ((gex_Segment_t)(uintptr_t)0)
#define GEX_MK_INVALID       ((gex_MK_t)(uintptr_t)0)
#define GEX_MK_HOST          ((gex_MK_t)(uintptr_t)1)
#define GEX_AM_SRCDESC_NO_OP ((gex_AM_SrcDesc_t)(uintptr_t)0)

/* --- active messages --- */

typedef uint8_t gex_AM_Index_t;
typedef int32_t gex_AM_Arg_t;

/* C: a function of any arguments; C++: cast to this type. The empty list is the interface's. */
#ifndef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif
typedef void (*gex_AM_Fn_t)();
#ifndef __cplusplus
#pragma GCC diagnostic pop
#endif

#define GEX_AM_INDEX_BASE 128

/* One row of a handler table; positional initialisers rely on this order. */
typedef struct gex_AM_Entry_s {
    gex_AM_Index_t gex_index; /* 0: the library assigns one, from 255 downwards */
    gex_AM_Fn_t gex_fnptr;
    gex_Flags_t gex_flags; /* one category flag and one request/reply flag */
    unsigned int gex_nargs;
    const void *gex_cdata;
    const char *gex_name;
} gex_AM_Entry_t;

typedef unsigned int gex_TI_t;

#define GEX_TI_SRCRANK (1u << 0)
#define GEX_TI_EP      (1u << 1)
#define GEX_TI_ENTRY   (1u << 2)
#define GEX_TI_IS_REQ  (1u << 3)
#define GEX_TI_IS_LONG (1u << 4)
#define GEX_TI_ALL     31u

typedef struct gex_Token_Info_s {
    gex_Rank_t gex_srcrank; /* the sender's jobrank */
    gex_EP_t gex_ep;        /* the receiving endpoint */
    const gex_AM_Entry_t *gex_entry;
    uint8_t gex_is_req;
    uint8_t gex_is_long;
} gex_Token_Info_t;

/* --- transfers --- */

typedef uint64_t gex_RMA_Value_t;
typedef unsigned int gex_EC_t;

#define GEX_EC_LC  ((gex_EC_t)1)
#define GEX_EC_AM  ((gex_EC_t)1)
#define GEX_EC_PUT ((gex_EC_t)3) /* its own bit, and the local completion of the same puts */
#define GEX_EC_GET ((gex_EC_t)4)
#define GEX_EC_RMW ((gex_EC_t)8)
#define GEX_EC_ALL (~(gex_EC_t)0)

typedef struct gex_Memvec_s {
    void *gex_addr;
    size_t gex_len;
} gex_Memvec_t;

/* --- job, hosts, progress threads --- */

typedef const struct gex_RankInfo_s {
    gex_Rank_t gex_jobrank;
} gex_RankInfo_t;

typedef struct gasnet_seginfo_s {
    void *addr;
    uintptr_t size;
} gasnet_seginfo_t;

typedef struct gasnet_nodeinfo_s {
    gex_Rank_t host;      /* dense number of the host */
    gex_Rank_t supernode; /* dense number of the neighborhood */
    uintptr_t offset;     /* owner's segment address + offset = address in this process */
} gasnet_nodeinfo_t;

#define GEX_THREAD_ROLE_RCV (1u << 0)
#define GEX_THREAD_ROLE_SND (1u << 1)

typedef struct gex_ProgressThreadInfo_s {
    const char *gex_device_list;
    unsigned int gex_thread_roles;
    void *(*gex_progress_fn)(void *);
    void *gex_progress_arg;
} gex_ProgressThreadInfo_t;

AQ_END_DECLS

#endif
