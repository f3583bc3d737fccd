/*
 * names_calls.h - every call, type and value of the interface with its type, for C and C++ alike.
 *
 * VALUE(type, expression)   the expression (a call, a field, a constant) has exactly this type
 * DO(statement)             a call without a value compiles as a statement
 * SAME(type, type)          two types are the same
 * Included inside a function that is never called, which declares the variables used here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

/* types */
SAME(gex_Rank_t, uint32_t)
SAME(gex_EP_Index_t, uint16_t)
SAME(gex_Flags_t, uint32_t)
SAME(gex_EP_Capabilities_t, uint32_t)
SAME(gex_DT_t, uint32_t)
SAME(gex_OP_t, uint32_t)
SAME(gex_AM_Index_t, uint8_t)
SAME(gex_AM_Arg_t, int32_t)
SAME(gex_RMA_Value_t, uint64_t)
SAME(gex_Addr_t, void *)
SAME(gasnet_threadinfo_t, void *)
VALUE(gex_Rank_t, location.gex_rank)
VALUE(gex_EP_Index_t, location.gex_ep_index)
VALUE(void *, memvec.gex_addr)
VALUE(size_t, memvec.gex_len)
VALUE(gex_AM_Index_t, entry.gex_index)
VALUE(gex_AM_Fn_t, entry.gex_fnptr)
VALUE(gex_Flags_t, entry.gex_flags)
VALUE(unsigned int, entry.gex_nargs)
VALUE(const void *, entry.gex_cdata)
VALUE(const char *, entry.gex_name)
VALUE(gex_Rank_t, info.gex_srcrank)
VALUE(gex_EP_t, info.gex_ep)
VALUE(const gex_AM_Entry_t *, info.gex_entry)
INTEGRAL(info.gex_is_req)
INTEGRAL(info.gex_is_long)
VALUE(const char *, thread.gex_device_list)
VALUE(unsigned int, thread.gex_thread_roles)
VALUE(void *, thread.gex_progress_fn(thread.gex_progress_arg))
VALUE(void *, seginfo.addr)
VALUE(uintptr_t, seginfo.size)
VALUE(gex_Rank_t, nodeinfo.host)
VALUE(gex_Rank_t, nodeinfo.supernode)
VALUE(uintptr_t, nodeinfo.offset)

/* values */
VALUE(gex_Event_t, GEX_EVENT_INVALID)
VALUE(gex_Event_t, GEX_EVENT_NO_OP)
VALUE(gex_Event_t *, GEX_EVENT_NOW)
VALUE(gex_Event_t *, GEX_EVENT_DEFER)
VALUE(gex_Event_t *, GEX_EVENT_GROUP)
VALUE(gex_Client_t, GEX_CLIENT_INVALID)
VALUE(gex_EP_t, GEX_EP_INVALID)
VALUE(gex_TM_t, GEX_TM_INVALID)
VALUE(gex_Segment_t, GEX_SEGMENT_INVALID)
VALUE(gex_MK_t, GEX_MK_INVALID)
VALUE(gex_MK_t, GEX_MK_HOST)
VALUE(gex_AM_SrcDesc_t, GEX_AM_SRCDESC_NO_OP)
VALUE(gex_Rank_t, GEX_RANK_INVALID)
VALUE(gex_EC_t, GEX_EC_ALL)
VALUE(gasnet_threadinfo_t, GASNET_GET_THREADINFO())

/* job */
VALUE(gex_Rank_t, gex_System_QueryJobRank())
VALUE(gex_Rank_t, gex_System_QueryJobSize())
DO(gex_System_QueryNbrhdInfo(&rankinfo, &rank, &rank))
DO(gex_System_QueryHostInfo(&rankinfo, &rank, &rank))
VALUE(gex_Rank_t, rankinfo[0].gex_jobrank + 0u)
DO(gex_System_QueryMyPosition(&rank, &rank, &rank, &rank))
VALUE(uint64_t, gex_System_QueryMaxThreads())
VALUE(int, gex_System_QueryHiddenAMConcurrencyLevel())
VALUE(int, gex_System_QueryProgressThreads(client, &numargs, &threads, flags))
VALUE(int, gex_System_GetVerboseErrors())
DO(gex_System_SetVerboseErrors(1))

/* client */
VALUE(int, gex_Client_Init(&client, &ep, &tm, text, &argc, &argv, flags))
VALUE(gex_Flags_t, gex_Client_QueryFlags(client))
VALUE(const char *, gex_Client_QueryName(client))
DO(gex_Client_SetCData(client, data))
VALUE(void *, gex_Client_QueryCData(client))

/* segments */
VALUE(uintptr_t, gasnet_getMaxLocalSegmentSize())
VALUE(uintptr_t, gasnet_getMaxGlobalSegmentSize())
VALUE(int, gex_Segment_Attach(&segment, tm, size))
VALUE(int, gex_Segment_Create(&segment, client, addr, size, GEX_MK_HOST, flags))
DO(gex_Segment_Destroy(segment, flags))
VALUE(gex_Client_t, gex_Segment_QueryClient(segment))
VALUE(gex_Flags_t, gex_Segment_QueryFlags(segment))
VALUE(void *, gex_Segment_QueryAddr(segment))
VALUE(uintptr_t, gex_Segment_QuerySize(segment))
DO(gex_Segment_SetCData(segment, data))
VALUE(void *, gex_Segment_QueryCData(segment))
VALUE(gex_Event_t, gex_EP_QueryBoundSegmentNB(tm, rank, &addr, &addr, &size, flags))
VALUE(int, gex_Segment_QueryBound(tm, rank, &addr, &addr, &size))
VALUE(int, gasnet_getSegmentInfo(&seginfo, 1))
VALUE(int, gasnet_getNodeInfo(&nodeinfo, 1))
VALUE(const char *, gasnet_max_segsize_str)
VALUE(uint64_t, gasnet_max_segsize)
DO(gasnet_client_attach_hook = hook)

/* endpoints */
VALUE(int, gex_EP_Create(&ep, client, GEX_EP_CAPABILITY_RMA, flags))
VALUE(int, gex_EP_BindSegment(ep, segment, flags))
VALUE(int, gex_EP_PublishBoundSegment(tm, &ep, 1, flags))
VALUE(gex_Client_t, gex_EP_QueryClient(ep))
VALUE(gex_Flags_t, gex_EP_QueryFlags(ep))
VALUE(gex_Segment_t, gex_EP_QuerySegment(ep))
VALUE(gex_EP_Index_t, gex_EP_QueryIndex(ep))
DO(gex_EP_SetCData(ep, data))
VALUE(void *, gex_EP_QueryCData(ep))
VALUE(int, gex_EP_RegisterHandlers(ep, &entry, 1))

/* teams */
VALUE(gex_Client_t, gex_TM_QueryClient(tm))
VALUE(gex_EP_t, gex_TM_QueryEP(tm))
VALUE(gex_Flags_t, gex_TM_QueryFlags(tm))
VALUE(gex_Rank_t, gex_TM_QueryRank(tm))
VALUE(gex_Rank_t, gex_TM_QuerySize(tm))
DO(gex_TM_SetCData(tm, data))
VALUE(void *, gex_TM_QueryCData(tm))
VALUE(gex_Rank_t, gex_TM_TranslateRankToJobrank(tm, rank))
VALUE(gex_Rank_t, gex_TM_TranslateJobrankToRank(tm, rank))
VALUE(gex_EP_Location_t, gex_TM_TranslateRankToEP(tm, rank, flags))
VALUE(gex_TM_t, gex_TM_Pair(ep, index))
VALUE(size_t, gex_TM_Split(&tm, tm, 1, 1, addr, size, flags))
VALUE(size_t, gex_TM_Create(&tm, 1, tm, &location, 1, &addr, size, flags))
VALUE(int, gex_TM_Destroy(tm, &memvec, flags))

/* memory kinds */
VALUE(uint64_t, mk_args.gex_flags)
VALUE(gex_MK_Class_t, mk_args.gex_class)
VALUE(int, mk_args.gex_args.gex_class_cuda_uva.gex_CUdevice)
VALUE(int, mk_args.gex_args.gex_class_hip.gex_hipDevice)
VALUE(void *, mk_args.gex_args.gex_class_ze.gex_zeDevice)
VALUE(void *, mk_args.gex_args.gex_class_ze.gex_zeContext)
VALUE(uint32_t, mk_args.gex_args.gex_class_ze.gex_zeMemoryOrdinal)
VALUE(int, gex_MK_Create(&kind, client, &mk_args, flags))
DO(gex_MK_Destroy(kind, flags))
VALUE(gex_Client_t, gex_MK_QueryClient(kind))
VALUE(gex_MK_Class_t, gex_MK_QueryClass(kind))
VALUE(gex_Flags_t, gex_MK_QueryFlags(kind))
DO(gex_MK_SetCData(kind, data))
VALUE(void *, gex_MK_QueryCData(kind))

/* remote atomics */
VALUE(gex_AD_t, GEX_AD_INVALID)
DO(gex_AD_Create(&ad, tm, GEX_DT_I32, GEX_OP_ADD, flags))
DO(gex_AD_Destroy(ad))
VALUE(gex_Flags_t, gex_AD_QueryFlags(ad))
VALUE(gex_TM_t, gex_AD_QueryTM(ad))
VALUE(gex_DT_t, gex_AD_QueryDT(ad))
VALUE(gex_OP_t, gex_AD_QueryOps(ad))
DO(gex_AD_SetCData(ad, data))
VALUE(void *, gex_AD_QueryCData(ad))
VALUE(gex_Event_t,
      gex_AD_OpNB_I32(ad, (int32_t *)0, rank, addr, GEX_OP_ADD, (int32_t)1, (int32_t)0, flags))
VALUE(int,
      gex_AD_OpNBI_I32(ad, (int32_t *)0, rank, addr, GEX_OP_ADD, (int32_t)1, (int32_t)0, flags))
VALUE(gex_Event_t,
      gex_AD_OpNB_U32(ad, (uint32_t *)0, rank, addr, GEX_OP_ADD, (uint32_t)1, (uint32_t)0, flags))
VALUE(int,
      gex_AD_OpNBI_U32(ad, (uint32_t *)0, rank, addr, GEX_OP_ADD, (uint32_t)1, (uint32_t)0, flags))
VALUE(gex_Event_t,
      gex_AD_OpNB_I64(ad, (int64_t *)0, rank, addr, GEX_OP_ADD, (int64_t)1, (int64_t)0, flags))
VALUE(int,
      gex_AD_OpNBI_I64(ad, (int64_t *)0, rank, addr, GEX_OP_ADD, (int64_t)1, (int64_t)0, flags))
VALUE(gex_Event_t,
      gex_AD_OpNB_U64(ad, (uint64_t *)0, rank, addr, GEX_OP_ADD, (uint64_t)1, (uint64_t)0, flags))
VALUE(int,
      gex_AD_OpNBI_U64(ad, (uint64_t *)0, rank, addr, GEX_OP_ADD, (uint64_t)1, (uint64_t)0, flags))
VALUE(gex_Event_t,
      gex_AD_OpNB_FLT(ad, (float *)0, rank, addr, GEX_OP_ADD, (float)1, (float)0, flags))
VALUE(int, gex_AD_OpNBI_FLT(ad, (float *)0, rank, addr, GEX_OP_ADD, (float)1, (float)0, flags))
VALUE(gex_Event_t,
      gex_AD_OpNB_DBL(ad, (double *)0, rank, addr, GEX_OP_ADD, (double)1, (double)0, flags))
VALUE(int, gex_AD_OpNBI_DBL(ad, (double *)0, rank, addr, GEX_OP_ADD, (double)1, (double)0, flags))

/* active messages */
VALUE(unsigned int, gex_AM_MaxArgs())
VALUE(size_t, gex_AM_MaxRequestMedium(tm, rank, lc_in, flags, numargs))
VALUE(size_t, gex_AM_MaxReplyMedium(tm, rank, lc_in, flags, numargs))
VALUE(size_t, gex_AM_MaxRequestLong(tm, rank, lc_in, flags, numargs))
VALUE(size_t, gex_AM_MaxReplyLong(tm, rank, lc_in, flags, numargs))
VALUE(size_t, gex_Token_MaxReplyMedium(token, lc_in, flags, numargs))
VALUE(size_t, gex_Token_MaxReplyLong(token, lc_in, flags, numargs))
VALUE(size_t, gex_AM_LUBRequestMedium())
VALUE(size_t, gex_AM_LUBReplyMedium())
VALUE(size_t, gex_AM_LUBRequestLong())
VALUE(size_t, gex_AM_LUBReplyLong())

/* negotiated payload */
VALUE(gex_AM_SrcDesc_t, gex_AM_PrepareRequestMedium(tm, rank, data, size, size, lc, flags, numargs))
VALUE(gex_AM_SrcDesc_t, gex_AM_PrepareReplyMedium(token, data, size, size, lc, flags, numargs))
VALUE(gex_AM_SrcDesc_t,
      gex_AM_PrepareRequestLong(tm, rank, data, size, size, addr, lc, flags, numargs))
VALUE(gex_AM_SrcDesc_t, gex_AM_PrepareReplyLong(token, data, size, size, addr, lc, flags, numargs))
VALUE(void *, gex_AM_SrcDescAddr(sd))
VALUE(size_t, gex_AM_SrcDescSize(sd))
VALUE(int, gex_AM_CancelRequestMedium(sd, flags))
VALUE(int, gex_AM_CancelReplyMedium(sd, flags))
VALUE(int, gex_AM_CancelRequestLong(sd, flags))
VALUE(int, gex_AM_CancelReplyLong(sd, flags))
VALUE(gex_TI_t, gex_Token_Info(token, &info, GEX_TI_ALL))

/* locks */
DO(gex_HSL_Init(&hsl))
DO(gex_HSL_Destroy(&hsl))
DO(gex_HSL_Lock(&hsl))
DO(gex_HSL_Unlock(&hsl))
VALUE(int, gex_HSL_Trylock(&hsl))

/* polling, waiting, environment, errors */
VALUE(int, gasnet_AMPoll())
DO(GASNET_BLOCKUNTIL(rank == 0))
VALUE(int, gasnet_set_waitmode(GASNET_WAIT_BLOCK))
VALUE(char *, gasnet_getenv(text))
VALUE(const char *, gasnet_ErrorName(1))
VALUE(const char *, gasnet_ErrorDesc(1))

/* events */
VALUE(int, gex_Event_Test(event))
DO(gex_Event_Wait(event))
/* clients call these three for what they do to the events */
DO(gex_Event_TestSome(&event, 1, flags))
DO(gex_Event_TestAll(&event, 1, flags))
DO(gex_Event_QueryLeaf(event, GEX_EC_LC))
VALUE(int, gex_Event_TestSome(&event, 1, flags))
DO(gex_Event_WaitSome(&event, 1, flags))
VALUE(int, gex_Event_TestAll(&event, 1, flags))
DO(gex_Event_WaitAll(&event, 1, flags))
VALUE(gex_Event_t, gex_Event_QueryLeaf(event, GEX_EC_LC))
VALUE(int, gex_NBI_Test(GEX_EC_ALL, flags))
DO(gex_NBI_Wait(GEX_EC_ALL, flags))
DO(gex_NBI_BeginAccessRegion(flags))
VALUE(gex_Event_t, gex_NBI_EndAccessRegion(flags))

/* transfers */
VALUE(int, gex_RMA_PutBlocking(tm, rank, addr, data, size, flags))
VALUE(int, gex_RMA_PutNBI(tm, rank, addr, data, size, lc, flags))
VALUE(gex_Event_t, gex_RMA_PutNB(tm, rank, addr, data, size, lc, flags))
VALUE(int, gex_RMA_GetBlocking(tm, addr, rank, addr, size, flags))
VALUE(int, gex_RMA_GetNBI(tm, addr, rank, addr, size, flags))
VALUE(gex_Event_t, gex_RMA_GetNB(tm, addr, rank, addr, size, flags))
VALUE(gex_RMA_Value_t, gex_RMA_GetBlockingVal(tm, rank, addr, size, flags))
VALUE(int, gex_RMA_PutBlockingVal(tm, rank, addr, value, size, flags))
VALUE(int, gex_RMA_PutNBIVal(tm, rank, addr, value, size, flags))
VALUE(gex_Event_t, gex_RMA_PutNBVal(tm, rank, addr, value, size, flags))

/* transfers that are not contiguous */
VALUE(int, gex_VIS_VectorPutBlocking(tm, rank, size, &memvec, size, &memvec, flags))
VALUE(gex_Event_t, gex_VIS_VectorPutNB(tm, rank, size, &memvec, size, &memvec, flags))
VALUE(int, gex_VIS_VectorPutNBI(tm, rank, size, &memvec, size, &memvec, flags))
VALUE(int, gex_VIS_VectorGetBlocking(tm, size, &memvec, rank, size, &memvec, flags))
VALUE(gex_Event_t, gex_VIS_VectorGetNB(tm, size, &memvec, rank, size, &memvec, flags))
VALUE(int, gex_VIS_VectorGetNBI(tm, size, &memvec, rank, size, &memvec, flags))
VALUE(int, gex_VIS_IndexedPutBlocking(tm, rank, size, &addr, size, size, &addr, size, flags))
VALUE(gex_Event_t, gex_VIS_IndexedPutNB(tm, rank, size, &addr, size, size, &addr, size, flags))
VALUE(int, gex_VIS_IndexedPutNBI(tm, rank, size, &addr, size, size, &addr, size, flags))
VALUE(int, gex_VIS_IndexedGetBlocking(tm, size, &addr, size, rank, size, &addr, size, flags))
VALUE(gex_Event_t, gex_VIS_IndexedGetNB(tm, size, &addr, size, rank, size, &addr, size, flags))
VALUE(int, gex_VIS_IndexedGetNBI(tm, size, &addr, size, rank, size, &addr, size, flags))
VALUE(int,
      gex_VIS_StridedPutBlocking(tm, rank, addr, stride, addr, stride, size, counts, size, flags))
VALUE(gex_Event_t,
      gex_VIS_StridedPutNB(tm, rank, addr, stride, addr, stride, size, counts, size, flags))
VALUE(int, gex_VIS_StridedPutNBI(tm, rank, addr, stride, addr, stride, size, counts, size, flags))
VALUE(int,
      gex_VIS_StridedGetBlocking(tm, addr, stride, rank, addr, stride, size, counts, size, flags))
VALUE(gex_Event_t,
      gex_VIS_StridedGetNB(tm, addr, stride, rank, addr, stride, size, counts, size, flags))
VALUE(int, gex_VIS_StridedGetNBI(tm, addr, stride, rank, addr, stride, size, counts, size, flags))
DO(gex_VIS_SetPeerCompletionHandler(h, data, size, flags))
INTEGRAL(GEX_VIS_MAX_PEERCOMPLETION)

/* barriers */
VALUE(gex_Event_t, gex_Coll_BarrierNB(tm, flags))
DO(gex_Coll_BarrierBlocking(tm, flags))

/* collectives; (gasnet_coll_handle_t and gasnet_team_handle_t are EX handles) */
VALUE(gex_Event_t, gex_Coll_BroadcastNB(tm, rank, addr, data, size, flags))
VALUE(gex_Event_t, gex_Coll_ReduceToOneNB(tm, rank, addr, data, GEX_DT_I32, size, size, GEX_OP_ADD,
                                          0, addr, flags))
VALUE(gex_Event_t,
      gex_Coll_ReduceToAllNB(tm, addr, data, GEX_DT_USER, size, size, GEX_OP_USER, 0, addr, flags))
VALUE(gasnet_coll_handle_t,
      gasnet_coll_broadcast_nb(GASNET_TEAM_ALL, addr, rank, addr, size, GASNET_COLL_LOCAL))
VALUE(gasnet_coll_handle_t,
      gasnet_coll_scatter_nb(tm, addr, rank, addr, size, GASNET_COLL_IN_MYSYNC))
VALUE(gasnet_coll_handle_t,
      gasnet_coll_gather_nb(tm, rank, addr, addr, size, GASNET_COLL_OUT_MYSYNC))
VALUE(gasnet_coll_handle_t, gasnet_coll_gather_all_nb(tm, addr, addr, size, GASNET_COLL_IN_ALLSYNC))
VALUE(gasnet_coll_handle_t, gasnet_coll_exchange_nb(tm, addr, addr, size, GASNET_COLL_OUT_ALLSYNC))
DO(gasnet_coll_broadcast(tm, addr, rank, addr, size,
                         GASNET_COLL_IN_NOSYNC | GASNET_COLL_OUT_NOSYNC))
DO(gasnet_coll_scatter(tm, addr, rank, addr, size, GASNET_COLL_SYNC_FLAG_MASK))
DO(gasnet_coll_gather(tm, rank, addr, addr, size,
                      GASNET_COLL_SRC_IN_SEGMENT | GASNET_COLL_DST_IN_SEGMENT))
DO(gasnet_coll_gather_all(tm, addr, addr, size, GASNET_COLL_NO_IMAGES))
DO(gasnet_coll_exchange(tm, addr, addr, size, GASNET_COLL_LOCAL))
VALUE(int, gasnet_coll_try_sync(event))
VALUE(int, gasnet_coll_try_sync_some(&event, size))
VALUE(int, gasnet_coll_try_sync_all(&event, size))
DO(gasnet_coll_wait_sync(GASNET_COLL_INVALID_HANDLE))
DO(gasnet_coll_wait_sync_some(&event, size))
DO(gasnet_coll_wait_sync_all(&event, size))
DO(gasnet_coll_barrier_notify(GASNET_TEAM_ALL, 0, 0))
VALUE(int, gasnet_coll_barrier_wait(GASNET_TEAM_ALL, 0, 0))
VALUE(int, gasnet_coll_barrier_try(GASNET_TEAM_ALL, 0, 0))
VALUE(int, gasnet_coll_barrier(GASNET_TEAM_ALL, 0, 0))
DO(gasnet_barrier_notify(1, 0))
VALUE(int, gasnet_barrier_wait(1, 0))
VALUE(int, gasnet_barrier_try(1, 0))
VALUE(int, gasnet_barrier(1, 0))
VALUE(int, gasnet_barrier_result(&argc))

/* all 108 forms of fixed-payload messages and all 144 of Commit */
#define FORMS(N)                                                                            \
    VALUE(int, gex_AM_RequestShort##N(tm, rank, h, flags AQ_GIVEN(N)))                      \
    VALUE(int, gex_AM_RequestMedium##N(tm, rank, h, data, size, lc, flags AQ_GIVEN(N)))     \
    VALUE(int, gex_AM_RequestLong##N(tm, rank, h, data, size, addr, lc, flags AQ_GIVEN(N))) \
    VALUE(int, gex_AM_ReplyShort##N(token, h, flags AQ_GIVEN(N)))                           \
    VALUE(int, gex_AM_ReplyMedium##N(token, h, data, size, lc, flags AQ_GIVEN(N)))          \
    VALUE(int, gex_AM_ReplyLong##N(token, h, data, size, addr, lc, flags AQ_GIVEN(N)))      \
    VALUE(int, gex_AM_RequestShort(tm, rank, h, flags AQ_GIVEN(N)))                         \
    VALUE(int, gex_AM_RequestMedium(tm, rank, h, data, size, lc, flags AQ_GIVEN(N)))        \
    VALUE(int, gex_AM_RequestLong(tm, rank, h, data, size, addr, lc, flags AQ_GIVEN(N)))    \
    VALUE(int, gex_AM_ReplyShort(token, h, flags AQ_GIVEN(N)))                              \
    VALUE(int, gex_AM_ReplyMedium(token, h, data, size, lc, flags AQ_GIVEN(N)))             \
    VALUE(int, gex_AM_ReplyLong(token, h, data, size, addr, lc, flags AQ_GIVEN(N)))         \
    VALUE(int, gex_AM_CommitRequestMedium##N##_v2(sd, h, size, flags AQ_GIVEN(N)))          \
    VALUE(int, gex_AM_CommitReplyMedium##N##_v2(sd, h, size, flags AQ_GIVEN(N)))            \
    VALUE(int, gex_AM_CommitRequestLong##N##_v2(sd, h, size, addr, flags AQ_GIVEN(N)))      \
    VALUE(int, gex_AM_CommitReplyLong##N##_v2(sd, h, size, addr, flags AQ_GIVEN(N)))        \
    VALUE(int, gex_AM_CommitRequestMedium_v2(sd, h, size, flags AQ_GIVEN(N)))               \
    VALUE(int, gex_AM_CommitReplyMedium_v2(sd, h, size, flags AQ_GIVEN(N)))                 \
    VALUE(int, gex_AM_CommitRequestLong_v2(sd, h, size, addr, flags AQ_GIVEN(N)))           \
    VALUE(int, gex_AM_CommitReplyLong_v2(sd, h, size, addr, flags AQ_GIVEN(N)))             \
    DO(gex_AM_CommitRequestMedium##N(sd, h, size AQ_GIVEN(N)))                              \
    DO(gex_AM_CommitReplyMedium##N(sd, h, size AQ_GIVEN(N)))                                \
    DO(gex_AM_CommitRequestLong##N(sd, h, size, addr AQ_GIVEN(N)))                          \
    DO(gex_AM_CommitReplyLong##N(sd, h, size, addr AQ_GIVEN(N)))                            \
    DO(gex_AM_CommitRequestMedium(sd, h, size AQ_GIVEN(N)))                                 \
    DO(gex_AM_CommitReplyMedium(sd, h, size AQ_GIVEN(N)))                                   \
    DO(gex_AM_CommitRequestLong(sd, h, size, addr AQ_GIVEN(N)))                             \
    DO(gex_AM_CommitReplyLong(sd, h, size, addr AQ_GIVEN(N)))
AQ_EACH(FORMS)
