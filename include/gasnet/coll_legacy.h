/*
 * coll_legacy.h - the collectives that preceded gex_Coll_*, as far as clients still call them.
 *
 * Each process is one image, and an image is a rank of the team. Every call names one IN flag (when
 * data may begin to move), one OUT flag (when it may be reported as complete) and
 * GASNET_COLL_LOCAL: each member passes its own addresses; those of root-only arguments are ignored
 * elsewhere.
 *
 * Source: notes on the collectives of GASNet 1.32 and of the 2025 release. Part of gasnet_coll.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_COLL_LEGACY_H
#define GASNET_COLL_LEGACY_H 1

AQ_BEGIN_DECLS

typedef uint32_t gasnet_image_t;
typedef gex_TM_t gasnet_team_handle_t; /* GASNET_TEAM_ALL or any team of gex_TM_* */
typedef gex_Event_t gasnet_coll_handle_t;

#define GASNET_TEAM_ALL            ((gasnet_team_handle_t)(uintptr_t)1)
#define GASNET_COLL_INVALID_HANDLE GEX_EVENT_INVALID

#define GASNET_COLL_IN_NOSYNC (1 << 0) /* data may move once any member has called */
/* data may move once the owners of the source and of the destination have called */
#define GASNET_COLL_IN_MYSYNC  (1 << 1)
#define GASNET_COLL_IN_ALLSYNC (1 << 2) /* data may move once all members have called */
/* complete at any time, at the last member after all movement */
#define GASNET_COLL_OUT_NOSYNC             (1 << 3)
#define GASNET_COLL_OUT_MYSYNC             (1 << 4) /* complete when this member's buffers are */
#define GASNET_COLL_OUT_ALLSYNC            (1 << 5) /* complete when all members' buffers are */
#define GASNET_COLL_SYNC_FLAG_MASK         0x3f
#define GASNET_COLL_LOCAL                  (1 << 7)
#define GASNET_COLL_FIXED_THREADS_PER_NODE (1 << 9)
#define GASNET_COLL_DST_IN_SEGMENT         (1 << 10)
#define GASNET_COLL_SRC_IN_SEGMENT         (1 << 11)
#define GASNET_COLL_DISABLE_AUTOTUNE       (1 << 18)
#define GASNET_COLL_NO_IMAGES              (1 << 19)

/* Flags of reduction functions, which no call takes any more. */
#define GASNET_COLL_AMSAFE  (1 << 0)
#define GASNET_COLL_NONCOMM (1 << 1)

typedef enum gasnet_coll_optype_e {
    GASNET_COLL_BROADCAST_OP,
    GASNET_COLL_SCATTER_OP,
    GASNET_COLL_GATHER_OP,
    GASNET_COLL_GATHER_ALL_OP,
    GASNET_COLL_EXCHANGE_OP,
    GASNET_COLL_NUM_COLL_OPTYPES
} gasnet_coll_optype_t;

typedef uint32_t gasnet_coll_tuning_param_type_t;

/**
 * gasnet_coll_broadcast - nbytes bytes from src of image srcimage to dst of every member.
 * flags   one GASNET_COLL_IN_*, one GASNET_COLL_OUT_*, GASNET_COLL_LOCAL; hints
 * Context collective over team, in one order everywhere; ordinary code. nbytes > 0
 * Test: test_coll_legacy. The forms ending in _nb return an event to synchronise.
 */
AQ_PUBLIC void gasnet_coll_broadcast(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage,
                                     void *src, size_t nbytes, int flags);
AQ_PUBLIC gasnet_coll_handle_t gasnet_coll_broadcast_nb(gasnet_team_handle_t team, void *dst,
                                                        gasnet_image_t srcimage, void *src,
                                                        size_t nbytes, int flags) AQ_MUST_USE;
/** gasnet_coll_scatter - block i of src at srcimage, nbytes bytes, to dst of image i. */
AQ_PUBLIC void gasnet_coll_scatter(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage,
                                   void *src, size_t nbytes, int flags);
AQ_PUBLIC gasnet_coll_handle_t gasnet_coll_scatter_nb(gasnet_team_handle_t team, void *dst,
                                                      gasnet_image_t srcimage, void *src,
                                                      size_t nbytes, int flags) AQ_MUST_USE;
/** gasnet_coll_gather - src of image i, nbytes bytes, to block i of dst at dstimage. */
AQ_PUBLIC void gasnet_coll_gather(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst,
                                  void *src, size_t nbytes, int flags);
AQ_PUBLIC gasnet_coll_handle_t gasnet_coll_gather_nb(gasnet_team_handle_t team,
                                                     gasnet_image_t dstimage, void *dst, void *src,
                                                     size_t nbytes, int flags) AQ_MUST_USE;
/** gasnet_coll_gather_all - src of image i, nbytes bytes, to block i of dst at every member. */
AQ_PUBLIC void gasnet_coll_gather_all(gasnet_team_handle_t team, void *dst, void *src,
                                      size_t nbytes, int flags);
AQ_PUBLIC gasnet_coll_handle_t gasnet_coll_gather_all_nb(gasnet_team_handle_t team, void *dst,
                                                         void *src, size_t nbytes,
                                                         int flags) AQ_MUST_USE;
/** gasnet_coll_exchange - block i of src at image j becomes block j of dst at image i. */
AQ_PUBLIC void gasnet_coll_exchange(gasnet_team_handle_t team, void *dst, void *src, size_t nbytes,
                                    int flags);
AQ_PUBLIC gasnet_coll_handle_t gasnet_coll_exchange_nb(gasnet_team_handle_t team, void *dst,
                                                       void *src, size_t nbytes,
                                                       int flags) AQ_MUST_USE;

/** gasnet_coll_barrier_notify and its kin - gasnet_barrier_*() over a team. */
AQ_PUBLIC void gasnet_coll_barrier_notify(gasnet_team_handle_t team, int id, int flags);
AQ_PUBLIC int gasnet_coll_barrier_try(gasnet_team_handle_t team, int id, int flags);
AQ_PUBLIC int gasnet_coll_barrier_wait(gasnet_team_handle_t team, int id, int flags);
AQ_PUBLIC int gasnet_coll_barrier(gasnet_team_handle_t team, int id, int flags);
AQ_PUBLIC int gasnet_coll_barrier_result(gasnet_team_handle_t team, int *id);

/** gasnet_coll_try_sync - one poll, then GASNET_OK (done) or GASNET_ERR_NOT_READY. */
static inline AQ_UNUSED int gasnet_coll_try_sync(gasnet_coll_handle_t handle)
{
    gasnet_AMPoll();
    return gex_Event_Test(handle);
}
/** gasnet_coll_try_sync_some, _all - the same for arrays, as gex_Event_TestSome, TestAll. */
static inline AQ_UNUSED int gasnet_coll_try_sync_some(gasnet_coll_handle_t *handles, size_t n)
{
    gasnet_AMPoll();
    return gex_Event_TestSome(handles, n, 0);
}
static inline AQ_UNUSED int gasnet_coll_try_sync_all(gasnet_coll_handle_t *handles, size_t n)
{
    gasnet_AMPoll();
    return gex_Event_TestAll(handles, n, 0);
}
/** gasnet_coll_wait_sync, _some, _all - as gex_Event_Wait, WaitSome, WaitAll. */
static inline AQ_UNUSED void gasnet_coll_wait_sync(gasnet_coll_handle_t handle)
{
    gex_Event_Wait(handle);
}
static inline AQ_UNUSED void gasnet_coll_wait_sync_some(gasnet_coll_handle_t *handles, size_t n)
{
    gex_Event_WaitSome(handles, n, 0);
}
static inline AQ_UNUSED void gasnet_coll_wait_sync_all(gasnet_coll_handle_t *handles, size_t n)
{
    gex_Event_WaitAll(handles, n, 0);
}

/** gasnet_coll_loadTuningState and the following - without effect: the library chooses algorithms
 * itself. */
AQ_PUBLIC void gasnet_coll_loadTuningState(char *filename, gasnet_team_handle_t team);
AQ_PUBLIC void gasnet_coll_dumpTuningState(char *filename, gasnet_team_handle_t team);
AQ_PUBLIC void gasnet_coll_dumpProfile(char *filename, gasnet_team_handle_t team);
AQ_PUBLIC int gasnet_coll_get_num_tree_classes(gasnet_team_handle_t team,
                                               gasnet_coll_optype_t optype);
AQ_PUBLIC void gasnet_coll_set_tree_kind(gasnet_team_handle_t team, int tree_type, int fanout,
                                         gasnet_coll_optype_t optype);
AQ_PUBLIC void gasnet_coll_set_dissem_limit(gasnet_team_handle_t team, size_t dissemination_limit,
                                            gasnet_coll_optype_t optype);

AQ_END_DECLS

#endif
