/*
 * caffeine_like.c - a client in the manner of Caffeine: the C half of a Fortran run-time library.
 *
 * caffeine_like.f90 calls these through iso_c_binding and passes team handles through type(c_ptr).
 * Blocking strided transfers with any number of dimensions, collectives in place over teams without
 * scratch, atomics on I64. SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnetex.h>
#include <gasnet_coll.h>
#include <gasnet_ratomic.h>
#include <gasnet_tools.h>
#include <gasnet_vis.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static gex_Client_t client;
static gex_EP_t endpoint;
static gex_TM_t world;
static gex_AD_t domain = GEX_AD_INVALID;
static gasnett_mutex_t lock = GASNETT_MUTEX_INITIALIZER;
static char *base;

#define STRING_OF(token) #token
#define NAME_OF(token)   STRING_OF(token)
GASNETT_IDENT(caf_ident, "$CaffeineLikeConduit: " NAME_OF(GASNET_CONDUIT_NAME) " $");

/* indexed by operation, as this client's table is */
static const gex_OP_t twin[] = {
    [0] = GEX_OP_ADD, [1] = GEX_OP_AND, [2] = GEX_OP_OR, [3] = GEX_OP_XOR
};

void caf_init(void **team, int *rank, int *size, void **segment_base)
{
    gex_Segment_t segment;
    void *owner = NULL, *local = NULL;
    uintptr_t bytes = 0;

    gex_Client_Init(&client, &endpoint, &world, "caffeine", NULL, NULL, 0);
    if (gasnet_getMaxGlobalSegmentSize() < (1 << 20))
        gasnett_fatalerror("no room for a segment in %s", GASNET_CONFIG_STRING);
    int rc = gex_Segment_Attach(&segment, world, 1 << 20);
    if_pf(rc != GASNET_OK)
        gasnett_fatalerror("attach: %s (%s)", gasnet_ErrorName(rc), gasnet_ErrorDesc(rc));
    base = gex_Segment_QueryAddr(segment);
    gex_Event_Wait(
        gex_EP_QueryBoundSegmentNB(world, gex_TM_QueryRank(world), &owner, &local, &bytes, 0));
    if (owner != base || local != base || bytes != gex_Segment_QuerySize(segment))
        gasnett_fatalerror_nopos("own segment: %" PRIuSZ " bytes", (size_t)bytes);
    gex_AD_Create(&domain, world, GEX_DT_I64,
                  GEX_OP_ADD | GEX_OP_FADD | GEX_OP_AND | GEX_OP_OR | GEX_OP_XOR | GEX_OP_FCAS
                      | GEX_OP_GET | GEX_OP_SET | GEX_OP_INC,
                  GEX_FLAG_AD_FAVOR_MY_RANK);
    *team = world;
    *rank = (int)gex_TM_QueryRank(world);
    *size = (int)gex_TM_QuerySize(world);
    *segment_base = base;
}

static char *caf_base_of(gex_TM_t tm, int rank)
{
    void *owner;
    uintptr_t bytes;

    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, (gex_Rank_t)rank, &owner, NULL, &bytes, 0));
    return owner;
}

void caf_form_team(void *parent, int64_t number, void **team)
{
    gex_TM_t tm;

    gex_TM_Split(&tm, parent, (int)number, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    *team = tm;
}

void caf_team_info(void *team, int *rank, int *size)
{
    *rank = (int)gex_TM_QueryRank(team);
    *size = (int)gex_TM_QuerySize(team);
}

void caf_sync(void *team)
{
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
}

void caf_broadcast(void *team, int root, void *data, size_t bytes)
{
    gex_Event_Wait(gex_Coll_BroadcastNB(team, (gex_Rank_t)root, data, data, bytes, 0));
}

void caf_sum_int64(void *team, int64_t *data, size_t count)
{
    gex_Event_Wait(gex_Coll_ReduceToAllNB(team, data, data, GEX_DT_I64, sizeof(*data), count,
                                          GEX_OP_ADD, NULL, NULL, 0));
}

typedef void (*caf_operation)(const void *left, void *right_and_result);

static void caf_apply(const void *left, void *right, size_t count, const void *cdata)
{
    caf_operation operation = *(const caf_operation *)cdata;
    const double(*a)[2] = left;
    double(*b)[2] = right;

    for (size_t i = 0; i < count; i++)
        operation(a[i], b[i]);
}

/* a reduction of pairs of doubles by a function written in Fortran */
void caf_reduce_pairs(void *team, double *data, size_t count, caf_operation operation)
{
    gex_Event_Wait(gex_Coll_ReduceToAllNB(team, data, data, GEX_DT_USER, 2 * sizeof(double), count,
                                          GEX_OP_USER, caf_apply, &operation, 0));
}

/* dims counts; strides may be negative; dims may be 0 */
void caf_put_strided(int rank, size_t offset, const ptrdiff_t *remote_stride, void *first,
                     const ptrdiff_t *stride, size_t element, const size_t *extent, size_t dims)
{
    gex_VIS_StridedPutBlocking(world, (gex_Rank_t)rank, caf_base_of(world, rank) + offset,
                               remote_stride, first, stride, element, extent, dims, 0);
}

void caf_get_strided(int rank, size_t offset, const ptrdiff_t *remote_stride, void *first,
                     const ptrdiff_t *stride, size_t element, const size_t *extent, size_t dims)
{
    gex_VIS_StridedGetBlocking(world, first, stride, (gex_Rank_t)rank,
                               caf_base_of(world, rank) + offset, remote_stride, element, extent,
                               dims, 0);
}

void caf_event_post(int rank, size_t offset)
{
    gex_AD_OpNBI_I64(domain, NULL, (gex_Rank_t)rank, caf_base_of(world, rank) + offset, GEX_OP_INC,
                     0, 0, GEX_FLAG_AD_REL | GEX_FLAG_RANK_IS_JOBRANK);
    gex_NBI_Wait(GEX_EC_RMW, 0);
}

int64_t caf_atomic(int rank, size_t offset, int which, int64_t operand)
{
    int64_t old = 0;

    gex_Event_Wait(gex_AD_OpNB_I64(domain, NULL, (gex_Rank_t)rank,
                                   caf_base_of(world, rank) + offset, twin[which], operand, 0, 0));
    gex_Event_Wait(gex_AD_OpNB_I64(domain, &old, (gex_Rank_t)rank,
                                   caf_base_of(world, rank) + offset, GEX_OP_GET, 0, 0,
                                   GEX_FLAG_AD_ACQ));
    return old;
}

/* waits for an event variable of this image, polled by atomic gets */
void caf_event_wait(size_t offset, int64_t threshold)
{
    int64_t count = 0, *variable = (int64_t *)(void *)(base + offset);
    const gex_Rank_t me = gex_TM_QueryRank(world);

    gasnett_mutex_lock(&lock);
    gasnett_mutex_unlock(&lock);
    GASNET_BLOCKUNTIL((gex_Event_Wait(gex_AD_OpNB_I64(domain, &count, me, variable, GEX_OP_GET, 0,
                                                      0, GEX_FLAG_AD_ACQ)),
                       count >= threshold));
    gasnett_local_mb();
}

void caf_stop(int code)
{
    gasnett_flush_streams();
    gasnet_exit(code);
}
