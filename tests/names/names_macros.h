/*
 * names_macros.h - every name that has to be a preprocessor macro.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_CONDUIT_NAME
#error "GASNET_CONDUIT_NAME is not a macro"
#endif
#ifndef GASNET_CONDUIT_NAME_STR
#error "GASNET_CONDUIT_NAME_STR is not a macro"
#endif
#ifndef GASNET_CORE_NAME
#error "GASNET_CORE_NAME is not a macro"
#endif
#ifndef GASNET_CORE_NAME_STR
#error "GASNET_CORE_NAME_STR is not a macro"
#endif
#ifndef GASNET_CORE_VERSION
#error "GASNET_CORE_VERSION is not a macro"
#endif
#ifndef GASNET_CORE_VERSION_STR
#error "GASNET_CORE_VERSION_STR is not a macro"
#endif
#ifndef GASNET_EXTENDED_NAME
#error "GASNET_EXTENDED_NAME is not a macro"
#endif
#ifndef GASNET_EXTENDED_NAME_STR
#error "GASNET_EXTENDED_NAME_STR is not a macro"
#endif
#ifndef GASNET_EXTENDED_VERSION
#error "GASNET_EXTENDED_VERSION is not a macro"
#endif
#ifndef GASNET_EXTENDED_VERSION_STR
#error "GASNET_EXTENDED_VERSION_STR is not a macro"
#endif
#ifndef GASNET_ALIGNED_SEGMENTS
#error "GASNET_ALIGNED_SEGMENTS is not a macro"
#endif
#ifndef GASNET_NULL_ARGV_OK
#error "GASNET_NULL_ARGV_OK is not a macro"
#endif
#ifndef GASNET_MAXNODES
#error "GASNET_MAXNODES is not a macro"
#endif
#ifndef GASNET_MAXEPS
#error "GASNET_MAXEPS is not a macro"
#endif
#ifndef GASNET_PAGESIZE
#error "GASNET_PAGESIZE is not a macro"
#endif
#ifndef GASNET_HIDDEN_AM_CONCURRENCY_LEVEL
#error "GASNET_HIDDEN_AM_CONCURRENCY_LEVEL is not a macro"
#endif
#ifndef GASNET_SUPPORTS_TI_SRCRANK
#error "GASNET_SUPPORTS_TI_SRCRANK is not a macro"
#endif
#ifndef GASNET_SUPPORTS_TI_EP
#error "GASNET_SUPPORTS_TI_EP is not a macro"
#endif
#ifndef GASNET_HAVE_MK_CLASS_HOST
#error "GASNET_HAVE_MK_CLASS_HOST is not a macro"
#endif
#ifndef GASNET_CONFIG_STRING
#error "GASNET_CONFIG_STRING is not a macro"
#endif
#ifndef SIZEOF_GEX_RMA_VALUE_T
#error "SIZEOF_GEX_RMA_VALUE_T is not a macro"
#endif
#ifndef GEX_SPEC_VERSION_MAJOR
#error "GEX_SPEC_VERSION_MAJOR is not a macro"
#endif
#ifndef GEX_SPEC_VERSION_MINOR
#error "GEX_SPEC_VERSION_MINOR is not a macro"
#endif
#ifndef GASNET_RELEASE_VERSION_MAJOR
#error "GASNET_RELEASE_VERSION_MAJOR is not a macro"
#endif
#ifndef GASNET_RELEASE_VERSION_MINOR
#error "GASNET_RELEASE_VERSION_MINOR is not a macro"
#endif
#ifndef GASNET_RELEASE_VERSION_PATCH
#error "GASNET_RELEASE_VERSION_PATCH is not a macro"
#endif
#ifndef GASNET_OK
#error "GASNET_OK is not a macro"
#endif
#ifndef GASNET_ERR_NOT_INIT
#error "GASNET_ERR_NOT_INIT is not a macro"
#endif
#ifndef GASNET_ERR_RESOURCE
#error "GASNET_ERR_RESOURCE is not a macro"
#endif
#ifndef GASNET_ERR_BAD_ARG
#error "GASNET_ERR_BAD_ARG is not a macro"
#endif
#ifndef GASNET_ERR_NOT_READY
#error "GASNET_ERR_NOT_READY is not a macro"
#endif
#ifndef GASNET_ERR_BARRIER_MISMATCH
#error "GASNET_ERR_BARRIER_MISMATCH is not a macro"
#endif
#ifndef GEX_RANK_INVALID
#error "GEX_RANK_INVALID is not a macro"
#endif
#ifndef GEX_CLIENT_INVALID
#error "GEX_CLIENT_INVALID is not a macro"
#endif
#ifndef GEX_EP_INVALID
#error "GEX_EP_INVALID is not a macro"
#endif
#ifndef GEX_TM_INVALID
#error "GEX_TM_INVALID is not a macro"
#endif
#ifndef GEX_SEGMENT_INVALID
#error "GEX_SEGMENT_INVALID is not a macro"
#endif
#ifndef GEX_MK_INVALID
#error "GEX_MK_INVALID is not a macro"
#endif
#ifndef GEX_MK_HOST
#error "GEX_MK_HOST is not a macro"
#endif
#ifndef GEX_AM_SRCDESC_NO_OP
#error "GEX_AM_SRCDESC_NO_OP is not a macro"
#endif
#ifndef GEX_EVENT_INVALID
#error "GEX_EVENT_INVALID is not a macro"
#endif
#ifndef GEX_EVENT_NO_OP
#error "GEX_EVENT_NO_OP is not a macro"
#endif
#ifndef GEX_EVENT_NOW
#error "GEX_EVENT_NOW is not a macro"
#endif
#ifndef GEX_EVENT_DEFER
#error "GEX_EVENT_DEFER is not a macro"
#endif
#ifndef GEX_EVENT_GROUP
#error "GEX_EVENT_GROUP is not a macro"
#endif
#ifndef GEX_AM_INDEX_BASE
#error "GEX_AM_INDEX_BASE is not a macro"
#endif
#ifndef GEX_HSL_INITIALIZER
#error "GEX_HSL_INITIALIZER is not a macro"
#endif
#ifndef GEX_THREAD_ROLE_RCV
#error "GEX_THREAD_ROLE_RCV is not a macro"
#endif
#ifndef GEX_THREAD_ROLE_SND
#error "GEX_THREAD_ROLE_SND is not a macro"
#endif
#ifndef GEX_TI_SRCRANK
#error "GEX_TI_SRCRANK is not a macro"
#endif
#ifndef GEX_TI_EP
#error "GEX_TI_EP is not a macro"
#endif
#ifndef GEX_TI_ENTRY
#error "GEX_TI_ENTRY is not a macro"
#endif
#ifndef GEX_TI_IS_REQ
#error "GEX_TI_IS_REQ is not a macro"
#endif
#ifndef GEX_TI_IS_LONG
#error "GEX_TI_IS_LONG is not a macro"
#endif
#ifndef GEX_TI_ALL
#error "GEX_TI_ALL is not a macro"
#endif
#ifndef GEX_EC_PUT
#error "GEX_EC_PUT is not a macro"
#endif
#ifndef GEX_EC_GET
#error "GEX_EC_GET is not a macro"
#endif
#ifndef GEX_EC_RMW
#error "GEX_EC_RMW is not a macro"
#endif
#ifndef GEX_EC_LC
#error "GEX_EC_LC is not a macro"
#endif
#ifndef GEX_EC_AM
#error "GEX_EC_AM is not a macro"
#endif
#ifndef GEX_EC_ALL
#error "GEX_EC_ALL is not a macro"
#endif
#ifndef GASNET_BLOCKUNTIL
#error "GASNET_BLOCKUNTIL is not a macro"
#endif
#ifndef GASNET_BEGIN_FUNCTION
#error "GASNET_BEGIN_FUNCTION is not a macro"
#endif
#ifndef GASNET_GET_THREADINFO
#error "GASNET_GET_THREADINFO is not a macro"
#endif
#ifndef GASNET_POST_THREADINFO
#error "GASNET_POST_THREADINFO is not a macro"
#endif
#ifndef GASNET_WAIT_SPIN
#error "GASNET_WAIT_SPIN is not a macro"
#endif
#ifndef GASNET_WAIT_BLOCK
#error "GASNET_WAIT_BLOCK is not a macro"
#endif
#ifndef GASNET_WAIT_SPINBLOCK
#error "GASNET_WAIT_SPINBLOCK is not a macro"
#endif
#ifndef GASNET_BARRIERFLAG_ANONYMOUS
#error "GASNET_BARRIERFLAG_ANONYMOUS is not a macro"
#endif
#ifndef GASNET_BARRIERFLAG_MISMATCH
#error "GASNET_BARRIERFLAG_MISMATCH is not a macro"
#endif
#ifndef GASNET_BARRIERFLAG_UNNAMED
#error "GASNET_BARRIERFLAG_UNNAMED is not a macro"
#endif
#ifndef gex_AM_RequestShort
#error "gex_AM_RequestShort is not a macro"
#endif
#ifndef gex_AM_RequestMedium
#error "gex_AM_RequestMedium is not a macro"
#endif
#ifndef gex_AM_RequestLong
#error "gex_AM_RequestLong is not a macro"
#endif
#ifndef gex_AM_ReplyShort
#error "gex_AM_ReplyShort is not a macro"
#endif
#ifndef gex_AM_ReplyMedium
#error "gex_AM_ReplyMedium is not a macro"
#endif
#ifndef gex_AM_ReplyLong
#error "gex_AM_ReplyLong is not a macro"
#endif
#ifndef gex_AM_CommitRequestMedium
#error "gex_AM_CommitRequestMedium is not a macro"
#endif
#ifndef gex_AM_CommitRequestMedium_v2
#error "gex_AM_CommitRequestMedium_v2 is not a macro"
#endif
#ifndef gex_AM_CommitRequestLong
#error "gex_AM_CommitRequestLong is not a macro"
#endif
#ifndef gex_AM_CommitRequestLong_v2
#error "gex_AM_CommitRequestLong_v2 is not a macro"
#endif
#ifndef gex_AM_CommitReplyMedium
#error "gex_AM_CommitReplyMedium is not a macro"
#endif
#ifndef gex_AM_CommitReplyMedium_v2
#error "gex_AM_CommitReplyMedium_v2 is not a macro"
#endif
#ifndef gex_AM_CommitReplyLong
#error "gex_AM_CommitReplyLong is not a macro"
#endif
#ifndef gex_AM_CommitReplyLong_v2
#error "gex_AM_CommitReplyLong_v2 is not a macro"
#endif
#ifndef _STRINGIFY
#error "_STRINGIFY is not a macro"
#endif
#ifndef _CONCAT
#error "_CONCAT is not a macro"
#endif
#ifndef MIN
#error "MIN is not a macro"
#endif
#ifndef MAX
#error "MAX is not a macro"
#endif
#ifndef if_pf
#error "if_pf is not a macro"
#endif
#ifndef if_pt
#error "if_pt is not a macro"
#endif
#ifndef PRIuSZ
#error "PRIuSZ is not a macro"
#endif
#ifndef GEX_FLAG_IMMEDIATE
#error "GEX_FLAG_IMMEDIATE is not a macro"
#endif
#ifndef GEX_FLAG_AM_PREPARE_LEAST_CLIENT
#error "GEX_FLAG_AM_PREPARE_LEAST_CLIENT is not a macro"
#endif
#ifndef GEX_FLAG_AM_PREPARE_LEAST_ALLOC
#error "GEX_FLAG_AM_PREPARE_LEAST_ALLOC is not a macro"
#endif
#ifndef GEX_FLAG_SELF_SEG_UNKNOWN
#error "GEX_FLAG_SELF_SEG_UNKNOWN is not a macro"
#endif
#ifndef GEX_FLAG_SELF_SEG_SOME
#error "GEX_FLAG_SELF_SEG_SOME is not a macro"
#endif
#ifndef GEX_FLAG_SELF_SEG_BOUND
#error "GEX_FLAG_SELF_SEG_BOUND is not a macro"
#endif
#ifndef GEX_FLAG_SELF_SEG_OFFSET
#error "GEX_FLAG_SELF_SEG_OFFSET is not a macro"
#endif
#ifndef GEX_FLAG_PEER_SEG_UNKNOWN
#error "GEX_FLAG_PEER_SEG_UNKNOWN is not a macro"
#endif
#ifndef GEX_FLAG_PEER_SEG_SOME
#error "GEX_FLAG_PEER_SEG_SOME is not a macro"
#endif
#ifndef GEX_FLAG_PEER_SEG_BOUND
#error "GEX_FLAG_PEER_SEG_BOUND is not a macro"
#endif
#ifndef GEX_FLAG_PEER_SEG_OFFSET
#error "GEX_FLAG_PEER_SEG_OFFSET is not a macro"
#endif
#ifndef GEX_FLAG_PEER_NEVER_SELF
#error "GEX_FLAG_PEER_NEVER_SELF is not a macro"
#endif
#ifndef GEX_FLAG_PEER_NEVER_NBRHD
#error "GEX_FLAG_PEER_NEVER_NBRHD is not a macro"
#endif
#ifndef GEX_FLAG_AM_SHORT
#error "GEX_FLAG_AM_SHORT is not a macro"
#endif
#ifndef GEX_FLAG_AM_MEDIUM
#error "GEX_FLAG_AM_MEDIUM is not a macro"
#endif
#ifndef GEX_FLAG_AM_LONG
#error "GEX_FLAG_AM_LONG is not a macro"
#endif
#ifndef GEX_FLAG_AM_MEDLONG
#error "GEX_FLAG_AM_MEDLONG is not a macro"
#endif
#ifndef GEX_FLAG_AM_REQUEST
#error "GEX_FLAG_AM_REQUEST is not a macro"
#endif
#ifndef GEX_FLAG_AM_REPLY
#error "GEX_FLAG_AM_REPLY is not a macro"
#endif
#ifndef GEX_FLAG_AM_REQREP
#error "GEX_FLAG_AM_REQREP is not a macro"
#endif
#ifndef GEX_FLAG_USES_GASNET1
#error "GEX_FLAG_USES_GASNET1 is not a macro"
#endif
#ifndef GEX_FLAG_DEFER_THREADS
#error "GEX_FLAG_DEFER_THREADS is not a macro"
#endif
#ifndef GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED
#error "GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED is not a macro"
#endif
#ifndef GEX_FLAG_TM_SCRATCH_SIZE_MIN
#error "GEX_FLAG_TM_SCRATCH_SIZE_MIN is not a macro"
#endif
#ifndef GEX_FLAG_TM_GLOBAL_SCRATCH
#error "GEX_FLAG_TM_GLOBAL_SCRATCH is not a macro"
#endif
#ifndef GEX_FLAG_TM_LOCAL_SCRATCH
#error "GEX_FLAG_TM_LOCAL_SCRATCH is not a macro"
#endif
#ifndef GEX_FLAG_TM_SYMMETRIC_SCRATCH
#error "GEX_FLAG_TM_SYMMETRIC_SCRATCH is not a macro"
#endif
#ifndef GEX_FLAG_TM_NO_SCRATCH
#error "GEX_FLAG_TM_NO_SCRATCH is not a macro"
#endif
#ifndef GEX_FLAG_SCRATCH_SEG_OFFSET
#error "GEX_FLAG_SCRATCH_SEG_OFFSET is not a macro"
#endif
#ifndef GEX_FLAG_GLOBALLY_QUIESCED
#error "GEX_FLAG_GLOBALLY_QUIESCED is not a macro"
#endif
#ifndef GEX_FLAG_RANK_IS_JOBRANK
#error "GEX_FLAG_RANK_IS_JOBRANK is not a macro"
#endif
#ifndef GEX_FLAG_AD_MY_RANK
#error "GEX_FLAG_AD_MY_RANK is not a macro"
#endif
#ifndef GEX_FLAG_AD_MY_NBRHD
#error "GEX_FLAG_AD_MY_NBRHD is not a macro"
#endif
#ifndef GEX_FLAG_AD_FAVOR_MY_RANK
#error "GEX_FLAG_AD_FAVOR_MY_RANK is not a macro"
#endif
#ifndef GEX_FLAG_AD_FAVOR_MY_NBRHD
#error "GEX_FLAG_AD_FAVOR_MY_NBRHD is not a macro"
#endif
#ifndef GEX_FLAG_AD_FAVOR_REMOTE
#error "GEX_FLAG_AD_FAVOR_REMOTE is not a macro"
#endif
#ifndef GEX_FLAG_AD_ACQ
#error "GEX_FLAG_AD_ACQ is not a macro"
#endif
#ifndef GEX_FLAG_AD_REL
#error "GEX_FLAG_AD_REL is not a macro"
#endif
#ifndef GEX_FLAG_ENABLE_LEAF_LC
#error "GEX_FLAG_ENABLE_LEAF_LC is not a macro"
#endif
#ifndef GEX_FLAG_HINT_ACCEL_AD
#error "GEX_FLAG_HINT_ACCEL_AD is not a macro"
#endif
#ifndef GEX_FLAG_HINT_ACCEL_COLL
#error "GEX_FLAG_HINT_ACCEL_COLL is not a macro"
#endif
#ifndef GEX_FLAG_HINT_ACCEL_ALL
#error "GEX_FLAG_HINT_ACCEL_ALL is not a macro"
#endif
#ifndef GEX_EP_CAPABILITY_RMA
#error "GEX_EP_CAPABILITY_RMA is not a macro"
#endif
#ifndef GEX_EP_CAPABILITY_AM
#error "GEX_EP_CAPABILITY_AM is not a macro"
#endif
#ifndef GEX_EP_CAPABILITY_VIS
#error "GEX_EP_CAPABILITY_VIS is not a macro"
#endif
#ifndef GEX_EP_CAPABILITY_COLL
#error "GEX_EP_CAPABILITY_COLL is not a macro"
#endif
#ifndef GEX_EP_CAPABILITY_AD
#error "GEX_EP_CAPABILITY_AD is not a macro"
#endif
#ifndef GEX_EP_CAPABILITY_ALL
#error "GEX_EP_CAPABILITY_ALL is not a macro"
#endif
#ifndef GEX_DT_I32
#error "GEX_DT_I32 is not a macro"
#endif
#ifndef GEX_DT_U32
#error "GEX_DT_U32 is not a macro"
#endif
#ifndef GEX_DT_I64
#error "GEX_DT_I64 is not a macro"
#endif
#ifndef GEX_DT_U64
#error "GEX_DT_U64 is not a macro"
#endif
#ifndef GEX_DT_FLT
#error "GEX_DT_FLT is not a macro"
#endif
#ifndef GEX_DT_DBL
#error "GEX_DT_DBL is not a macro"
#endif
#ifndef GEX_DT_USER
#error "GEX_DT_USER is not a macro"
#endif
#ifndef GEX_OP_AND
#error "GEX_OP_AND is not a macro"
#endif
#ifndef GEX_OP_OR
#error "GEX_OP_OR is not a macro"
#endif
#ifndef GEX_OP_XOR
#error "GEX_OP_XOR is not a macro"
#endif
#ifndef GEX_OP_ADD
#error "GEX_OP_ADD is not a macro"
#endif
#ifndef GEX_OP_SUB
#error "GEX_OP_SUB is not a macro"
#endif
#ifndef GEX_OP_MULT
#error "GEX_OP_MULT is not a macro"
#endif
#ifndef GEX_OP_MIN
#error "GEX_OP_MIN is not a macro"
#endif
#ifndef GEX_OP_MAX
#error "GEX_OP_MAX is not a macro"
#endif
#ifndef GEX_OP_INC
#error "GEX_OP_INC is not a macro"
#endif
#ifndef GEX_OP_DEC
#error "GEX_OP_DEC is not a macro"
#endif
#ifndef GEX_OP_SET
#error "GEX_OP_SET is not a macro"
#endif
#ifndef GEX_OP_CAS
#error "GEX_OP_CAS is not a macro"
#endif
#ifndef GEX_OP_FAND
#error "GEX_OP_FAND is not a macro"
#endif
#ifndef GEX_OP_FOR
#error "GEX_OP_FOR is not a macro"
#endif
#ifndef GEX_OP_FXOR
#error "GEX_OP_FXOR is not a macro"
#endif
#ifndef GEX_OP_FADD
#error "GEX_OP_FADD is not a macro"
#endif
#ifndef GEX_OP_FSUB
#error "GEX_OP_FSUB is not a macro"
#endif
#ifndef GEX_OP_FMULT
#error "GEX_OP_FMULT is not a macro"
#endif
#ifndef GEX_OP_FMIN
#error "GEX_OP_FMIN is not a macro"
#endif
#ifndef GEX_OP_FMAX
#error "GEX_OP_FMAX is not a macro"
#endif
#ifndef GEX_OP_FINC
#error "GEX_OP_FINC is not a macro"
#endif
#ifndef GEX_OP_FDEC
#error "GEX_OP_FDEC is not a macro"
#endif
#ifndef GEX_OP_SWAP
#error "GEX_OP_SWAP is not a macro"
#endif
#ifndef GEX_OP_FCAS
#error "GEX_OP_FCAS is not a macro"
#endif
#ifndef GEX_OP_CSWAP
#error "GEX_OP_CSWAP is not a macro"
#endif
#ifndef GEX_OP_GET
#error "GEX_OP_GET is not a macro"
#endif
#ifndef GEX_OP_USER
#error "GEX_OP_USER is not a macro"
#endif
#ifndef GEX_OP_USER_NC
#error "GEX_OP_USER_NC is not a macro"
#endif

/* Usable in #if, where a cast or an enumerator would not do. */
#if GEX_FLAG_IMMEDIATE == 0
#error "GEX_FLAG_IMMEDIATE is 0"
#endif
#if GEX_FLAG_AM_PREPARE_LEAST_CLIENT == 0
#error "GEX_FLAG_AM_PREPARE_LEAST_CLIENT is 0"
#endif
#if GEX_FLAG_AM_PREPARE_LEAST_ALLOC == 0
#error "GEX_FLAG_AM_PREPARE_LEAST_ALLOC is 0"
#endif
#if GEX_FLAG_SELF_SEG_UNKNOWN == 0
#error "GEX_FLAG_SELF_SEG_UNKNOWN is 0"
#endif
#if GEX_FLAG_SELF_SEG_SOME == 0
#error "GEX_FLAG_SELF_SEG_SOME is 0"
#endif
#if GEX_FLAG_SELF_SEG_BOUND == 0
#error "GEX_FLAG_SELF_SEG_BOUND is 0"
#endif
#if GEX_FLAG_SELF_SEG_OFFSET == 0
#error "GEX_FLAG_SELF_SEG_OFFSET is 0"
#endif
#if GEX_FLAG_PEER_SEG_UNKNOWN == 0
#error "GEX_FLAG_PEER_SEG_UNKNOWN is 0"
#endif
#if GEX_FLAG_PEER_SEG_SOME == 0
#error "GEX_FLAG_PEER_SEG_SOME is 0"
#endif
#if GEX_FLAG_PEER_SEG_BOUND == 0
#error "GEX_FLAG_PEER_SEG_BOUND is 0"
#endif
#if GEX_FLAG_PEER_SEG_OFFSET == 0
#error "GEX_FLAG_PEER_SEG_OFFSET is 0"
#endif
#if GEX_FLAG_PEER_NEVER_SELF == 0
#error "GEX_FLAG_PEER_NEVER_SELF is 0"
#endif
#if GEX_FLAG_PEER_NEVER_NBRHD == 0
#error "GEX_FLAG_PEER_NEVER_NBRHD is 0"
#endif
#if GEX_FLAG_AM_SHORT == 0
#error "GEX_FLAG_AM_SHORT is 0"
#endif
#if GEX_FLAG_AM_MEDIUM == 0
#error "GEX_FLAG_AM_MEDIUM is 0"
#endif
#if GEX_FLAG_AM_LONG == 0
#error "GEX_FLAG_AM_LONG is 0"
#endif
#if GEX_FLAG_AM_MEDLONG == 0
#error "GEX_FLAG_AM_MEDLONG is 0"
#endif
#if GEX_FLAG_AM_REQUEST == 0
#error "GEX_FLAG_AM_REQUEST is 0"
#endif
#if GEX_FLAG_AM_REPLY == 0
#error "GEX_FLAG_AM_REPLY is 0"
#endif
#if GEX_FLAG_AM_REQREP == 0
#error "GEX_FLAG_AM_REQREP is 0"
#endif
#if GEX_FLAG_USES_GASNET1 == 0
#error "GEX_FLAG_USES_GASNET1 is 0"
#endif
#if GEX_FLAG_DEFER_THREADS == 0
#error "GEX_FLAG_DEFER_THREADS is 0"
#endif
#if GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED == 0
#error "GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED is 0"
#endif
#if GEX_FLAG_TM_SCRATCH_SIZE_MIN == 0
#error "GEX_FLAG_TM_SCRATCH_SIZE_MIN is 0"
#endif
#if GEX_FLAG_TM_GLOBAL_SCRATCH == 0
#error "GEX_FLAG_TM_GLOBAL_SCRATCH is 0"
#endif
#if GEX_FLAG_TM_LOCAL_SCRATCH == 0
#error "GEX_FLAG_TM_LOCAL_SCRATCH is 0"
#endif
#if GEX_FLAG_TM_SYMMETRIC_SCRATCH == 0
#error "GEX_FLAG_TM_SYMMETRIC_SCRATCH is 0"
#endif
#if GEX_FLAG_TM_NO_SCRATCH == 0
#error "GEX_FLAG_TM_NO_SCRATCH is 0"
#endif
#if GEX_FLAG_SCRATCH_SEG_OFFSET == 0
#error "GEX_FLAG_SCRATCH_SEG_OFFSET is 0"
#endif
#if GEX_FLAG_GLOBALLY_QUIESCED == 0
#error "GEX_FLAG_GLOBALLY_QUIESCED is 0"
#endif
#if GEX_FLAG_RANK_IS_JOBRANK == 0
#error "GEX_FLAG_RANK_IS_JOBRANK is 0"
#endif
#if GEX_FLAG_AD_MY_RANK == 0
#error "GEX_FLAG_AD_MY_RANK is 0"
#endif
#if GEX_FLAG_AD_MY_NBRHD == 0
#error "GEX_FLAG_AD_MY_NBRHD is 0"
#endif
#if GEX_FLAG_AD_FAVOR_MY_RANK == 0
#error "GEX_FLAG_AD_FAVOR_MY_RANK is 0"
#endif
#if GEX_FLAG_AD_FAVOR_MY_NBRHD == 0
#error "GEX_FLAG_AD_FAVOR_MY_NBRHD is 0"
#endif
#if GEX_FLAG_AD_FAVOR_REMOTE == 0
#error "GEX_FLAG_AD_FAVOR_REMOTE is 0"
#endif
#if GEX_FLAG_AD_ACQ == 0
#error "GEX_FLAG_AD_ACQ is 0"
#endif
#if GEX_FLAG_AD_REL == 0
#error "GEX_FLAG_AD_REL is 0"
#endif
#if GEX_FLAG_ENABLE_LEAF_LC == 0
#error "GEX_FLAG_ENABLE_LEAF_LC is 0"
#endif
#if GEX_FLAG_HINT_ACCEL_AD == 0
#error "GEX_FLAG_HINT_ACCEL_AD is 0"
#endif
#if GEX_FLAG_HINT_ACCEL_COLL == 0
#error "GEX_FLAG_HINT_ACCEL_COLL is 0"
#endif
#if GEX_FLAG_HINT_ACCEL_ALL == 0
#error "GEX_FLAG_HINT_ACCEL_ALL is 0"
#endif
#if GEX_EP_CAPABILITY_RMA == 0
#error "GEX_EP_CAPABILITY_RMA is 0"
#endif
#if GEX_EP_CAPABILITY_AM == 0
#error "GEX_EP_CAPABILITY_AM is 0"
#endif
#if GEX_EP_CAPABILITY_VIS == 0
#error "GEX_EP_CAPABILITY_VIS is 0"
#endif
#if GEX_EP_CAPABILITY_COLL == 0
#error "GEX_EP_CAPABILITY_COLL is 0"
#endif
#if GEX_EP_CAPABILITY_AD == 0
#error "GEX_EP_CAPABILITY_AD is 0"
#endif
#if GEX_EP_CAPABILITY_ALL == 0
#error "GEX_EP_CAPABILITY_ALL is 0"
#endif
#if GEX_DT_I32 == 0
#error "GEX_DT_I32 is 0"
#endif
#if GEX_DT_U32 == 0
#error "GEX_DT_U32 is 0"
#endif
#if GEX_DT_I64 == 0
#error "GEX_DT_I64 is 0"
#endif
#if GEX_DT_U64 == 0
#error "GEX_DT_U64 is 0"
#endif
#if GEX_DT_FLT == 0
#error "GEX_DT_FLT is 0"
#endif
#if GEX_DT_DBL == 0
#error "GEX_DT_DBL is 0"
#endif
#if GEX_DT_USER == 0
#error "GEX_DT_USER is 0"
#endif
#if GEX_OP_AND == 0
#error "GEX_OP_AND is 0"
#endif
#if GEX_OP_OR == 0
#error "GEX_OP_OR is 0"
#endif
#if GEX_OP_XOR == 0
#error "GEX_OP_XOR is 0"
#endif
#if GEX_OP_ADD == 0
#error "GEX_OP_ADD is 0"
#endif
#if GEX_OP_SUB == 0
#error "GEX_OP_SUB is 0"
#endif
#if GEX_OP_MULT == 0
#error "GEX_OP_MULT is 0"
#endif
#if GEX_OP_MIN == 0
#error "GEX_OP_MIN is 0"
#endif
#if GEX_OP_MAX == 0
#error "GEX_OP_MAX is 0"
#endif
#if GEX_OP_INC == 0
#error "GEX_OP_INC is 0"
#endif
#if GEX_OP_DEC == 0
#error "GEX_OP_DEC is 0"
#endif
#if GEX_OP_SET == 0
#error "GEX_OP_SET is 0"
#endif
#if GEX_OP_CAS == 0
#error "GEX_OP_CAS is 0"
#endif
#if GEX_OP_FAND == 0
#error "GEX_OP_FAND is 0"
#endif
#if GEX_OP_FOR == 0
#error "GEX_OP_FOR is 0"
#endif
#if GEX_OP_FXOR == 0
#error "GEX_OP_FXOR is 0"
#endif
#if GEX_OP_FADD == 0
#error "GEX_OP_FADD is 0"
#endif
#if GEX_OP_FSUB == 0
#error "GEX_OP_FSUB is 0"
#endif
#if GEX_OP_FMULT == 0
#error "GEX_OP_FMULT is 0"
#endif
#if GEX_OP_FMIN == 0
#error "GEX_OP_FMIN is 0"
#endif
#if GEX_OP_FMAX == 0
#error "GEX_OP_FMAX is 0"
#endif
#if GEX_OP_FINC == 0
#error "GEX_OP_FINC is 0"
#endif
#if GEX_OP_FDEC == 0
#error "GEX_OP_FDEC is 0"
#endif
#if GEX_OP_SWAP == 0
#error "GEX_OP_SWAP is 0"
#endif
#if GEX_OP_FCAS == 0
#error "GEX_OP_FCAS is 0"
#endif
#if GEX_OP_CSWAP == 0
#error "GEX_OP_CSWAP is 0"
#endif
#if GEX_OP_GET == 0
#error "GEX_OP_GET is 0"
#endif
#if GEX_OP_USER == 0
#error "GEX_OP_USER is 0"
#endif
#if GEX_OP_USER_NC == 0
#error "GEX_OP_USER_NC is 0"
#endif
#if GEX_AM_INDEX_BASE < 1
#error "GEX_AM_INDEX_BASE is not a positive number"
#endif
#if GASNET_MAXEPS < 1
#error "GASNET_MAXEPS is not a positive number"
#endif
#if GASNET_PAGESIZE < 1
#error "GASNET_PAGESIZE is not a positive number"
#endif
#if GASNET_MAXNODES < 1
#error "GASNET_MAXNODES is not a positive number"
#endif
#if SIZEOF_GEX_RMA_VALUE_T < 1
#error "SIZEOF_GEX_RMA_VALUE_T is not a positive number"
#endif
#if GASNET_RELEASE_VERSION_MAJOR < 1
#error "GASNET_RELEASE_VERSION_MAJOR is not a positive number"
#endif
