/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hybrid.c - the half of hybrid.f90 that calls Aqueduct.
 * Owns      a segment with space for two halo cells
 * Threads   one
 * Uses      gasnetex.h
 *
 * The left edge goes to the left neighbour by a put, the right edge to the right neighbour by an
 * active message.
 */
#include <stdio.h>
#include <string.h>

#include <gasnetex.h>

enum { HIDX_EDGE = GEX_AM_INDEX_BASE };

static gex_TM_t team;
static int rank, ranks;
static volatile double *halo; /* in the segment: from the right; here: from the left */
static volatile double from_left;
static volatile int edges;

static void on_edge(gex_Token_t token, void *buf, size_t n)
{
    double value = 0;

    (void)token;
    if (n == sizeof(value))
        memcpy(&value, buf, sizeof(value));
    from_left = value;
    edges++;
}

int hybrid_start(int *rank_out, int *ranks_out)
{
    gex_AM_Entry_t edge = {
        HIDX_EDGE, (gex_AM_Fn_t)on_edge, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "edge"
    };
    gex_Client_t client;
    gex_EP_t ep;
    gex_Segment_t segment;

    if (gex_Client_Init(&client, &ep, &team, "HYBRID", NULL, NULL, 0) != GASNET_OK)
        return 1;
    gex_EP_RegisterHandlers(ep, &edge, 1);
    if (gex_Segment_Attach(&segment, team, GASNET_PAGESIZE) != GASNET_OK)
        return 1;
    halo = gex_Segment_QueryAddr(segment);
    *rank_out = rank = (int)gex_TM_QueryRank(team);
    *ranks_out = ranks = (int)gex_TM_QuerySize(team);
    *halo = 0;
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    return 0;
}

void hybrid_halo(const double *left_edge, const double *right_edge, double *left_halo,
                 double *right_halo)
{
    const int expected = edges + (rank > 0);
    void *remote_addr;

    /* nobody puts before all have left the step before, or sends before all have read its message
     * */
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    if (rank > 0) {
        gex_Segment_QueryBound(team, (gex_Rank_t)rank - 1, &remote_addr, NULL, NULL);
        gex_RMA_PutBlocking(team, (gex_Rank_t)rank - 1, remote_addr, left_edge, sizeof(*left_edge),
                            0);
    }
    if (rank < ranks - 1)
        gex_AM_RequestMedium0(team, (gex_Rank_t)rank + 1, HIDX_EDGE, right_edge,
                              sizeof(*right_edge), GEX_EVENT_NOW, 0);
    GASNET_BLOCKUNTIL(edges >= expected);
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    *left_halo = rank > 0 ? from_left : 0;
    *right_halo = rank < ranks - 1 ? *halo : 0;
}

void hybrid_exit(int code)
{
    gasnet_exit(code);
}
