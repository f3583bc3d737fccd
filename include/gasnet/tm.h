/*
 * tm.h - teams, TM-pairs, and the table that turns a peer's address into one of ours.
 *
 * A team and a TM-pair begin with the same head, so that the fast paths need not tell them
 * apart: head.delta[rank] is what must be added to an address of that peer's segment to
 * reach it in this process, or AQ_NOT_MAPPED.
 *
 * Source: GASNet-EX specification 0.19, Teams; TM-pairs. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_TM_H
#define GASNET_TM_H 1

AQ_BEGIN_DECLS

struct aq_tm_public {
    const intptr_t *delta; /* [size], by rank in this team; by jobrank in a TM-pair */
    gex_EP_t ep;           /* the local endpoint */
    gex_Rank_t rank;       /* mine; GEX_RANK_INVALID in a TM-pair */
    gex_Rank_t size;       /* members; processes of the job in a TM-pair */
};

/* Segments are page-aligned at both ends, so no real difference is odd. */
#define AQ_NOT_MAPPED ((intptr_t)1)

static inline AQ_UNUSED const struct aq_tm_public *aq_tm_head_of(gex_TM_t tm)
{
    return (const struct aq_tm_public *)(const void *)tm;
}

/** gex_TM_QueryClient - the owner. These six are legal in every context, not for TM-pairs. */
AQ_PUBLIC gex_Client_t gex_TM_QueryClient(gex_TM_t tm);
/** gex_TM_QueryFlags - flags at creation. */
AQ_PUBLIC gex_Flags_t gex_TM_QueryFlags(gex_TM_t tm);
/** gex_TM_SetCData, gex_TM_QueryCData - the client's own pointer. */
AQ_PUBLIC void gex_TM_SetCData(gex_TM_t tm, const void *val);
AQ_PUBLIC void *gex_TM_QueryCData(gex_TM_t tm);

/** gex_TM_QueryEP - the local endpoint of a team. */
static inline AQ_UNUSED gex_EP_t gex_TM_QueryEP(gex_TM_t tm)
{
    return aq_tm_head_of(tm)->ep;
}

/** gex_TM_QueryRank - this process's rank in a team. */
static inline AQ_UNUSED gex_Rank_t gex_TM_QueryRank(gex_TM_t tm)
{
    return aq_tm_head_of(tm)->rank;
}

/** gex_TM_QuerySize - members of a team. */
static inline AQ_UNUSED gex_Rank_t gex_TM_QuerySize(gex_TM_t tm)
{
    return aq_tm_head_of(tm)->size;
}

/** gex_TM_TranslateRankToJobrank - the jobrank of a member; rank < size. Ordinary code only. */
AQ_PUBLIC gex_Rank_t gex_TM_TranslateRankToJobrank(gex_TM_t tm, gex_Rank_t rank);
/** gex_TM_TranslateJobrankToRank - a process's rank in tm, or GEX_RANK_INVALID. */
AQ_PUBLIC gex_Rank_t gex_TM_TranslateJobrankToRank(gex_TM_t tm, gex_Rank_t jobrank);
/** gex_TM_TranslateRankToEP - jobrank and endpoint index of a member; flags 0. */
AQ_PUBLIC gex_EP_Location_t gex_TM_TranslateRankToEP(gex_TM_t tm, gex_Rank_t rank,
                                                     gex_Flags_t flags);

/**
 * gex_TM_Pair - name the endpoints with a given index through a local endpoint.
 * local_ep, remote_index  remote_index < GASNET_MAXEPS
 * Context legal everywhere; takes no resources and is never freed
 * Returns a value for point-to-point calls, where rank is then a jobrank; equal
 * arguments give equal values.
 */
AQ_PUBLIC gex_TM_t gex_TM_Pair(gex_EP_t local_ep, gex_EP_Index_t remote_index);

AQ_END_DECLS

#endif
