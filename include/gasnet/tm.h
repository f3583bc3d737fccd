/*
 * tm.h - teams, TM-pairs, and the table that converts a peer's address to one of this process.
 *
 * A handle points to a head, which is the same for teams and TM-pairs, so that the fast paths need
 * not distinguish them. The table of displacements follows the head: one load, indexed from the
 * handle, returns what must be added to an address in that peer's segment to reach it in this
 * process, or AQ_NOT_MAPPED.
 *
 * Source: GASNet-EX specification 0.19, Teams; TM-pairs. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_TM_H
#define GASNET_TM_H 1

AQ_BEGIN_DECLS

struct aq_tm_public {
    gex_EP_t ep;     /* the local endpoint */
    gex_Rank_t rank; /* of this process; GEX_RANK_INVALID in a TM-pair */
    gex_Rank_t size; /* members; processes of the job in a TM-pair */
};

/* Debug builds: ends the job if tm is no team, but a TM-pair for instance. Any context. */
AQ_PUBLIC void aq_check_team(const char *call, gex_TM_t tm);
#if GASNET_DEBUG
#define AQ_CHECK_TEAM(tm) aq_check_team(__func__, tm)
#else
#define AQ_CHECK_TEAM(tm) ((void)0)
#endif

/* Segments are page-aligned at both ends, so a real displacement is never odd. */
#define AQ_NOT_MAPPED ((intptr_t)1)

static inline AQ_UNUSED const struct aq_tm_public *aq_tm_head_of(gex_TM_t tm)
{
    return (const struct aq_tm_public *)(const void *)tm;
}

/* [size], by rank in this team; by jobrank in a TM-pair. Not a flexible array member: C++ has none.
 * */
static inline AQ_UNUSED const intptr_t *aq_tm_deltas(gex_TM_t tm)
{
    return (const intptr_t *)(const void *)(aq_tm_head_of(tm) + 1);
}

/** gex_TM_QueryClient - the owner. Queries are legal in every context, but not for TM-pairs. */
AQ_PUBLIC gex_Client_t gex_TM_QueryClient(gex_TM_t tm);
/** gex_TM_QueryFlags - flags at creation. */
AQ_PUBLIC gex_Flags_t gex_TM_QueryFlags(gex_TM_t tm);
/** gex_TM_SetCData, gex_TM_QueryCData - one pointer of the client's. */
AQ_PUBLIC void gex_TM_SetCData(gex_TM_t tm, const void *val);
AQ_PUBLIC void *gex_TM_QueryCData(gex_TM_t tm);

/** gex_TM_QueryEP - the local endpoint of a team. */
static inline AQ_UNUSED gex_EP_t gex_TM_QueryEP(gex_TM_t tm)
{
    AQ_CHECK_TEAM(tm);
    return aq_tm_head_of(tm)->ep;
}

/** gex_TM_QueryRank - this process's rank in a team. */
static inline AQ_UNUSED gex_Rank_t gex_TM_QueryRank(gex_TM_t tm)
{
    AQ_CHECK_TEAM(tm);
    return aq_tm_head_of(tm)->rank;
}

/** gex_TM_QuerySize - members of a team. */
static inline AQ_UNUSED gex_Rank_t gex_TM_QuerySize(gex_TM_t tm)
{
    AQ_CHECK_TEAM(tm);
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
 * gex_TM_Pair - name all endpoints of a given index, through a local endpoint.
 * local_ep, remote_index  remote_index < GASNET_MAXEPS
 * Context legal everywhere; the result is never freed
 * Returns a value for point-to-point calls, in which rank is a jobrank; equal arguments give equal
 * values.
 */
AQ_PUBLIC gex_TM_t gex_TM_Pair(gex_EP_t local_ep, gex_EP_Index_t remote_index);

/**
 * gex_TM_Split - divide a team into new ones by color.
 * new_tm_p  output; NULL: take part in the call, join no team
 * parent    the team
 * color     callers with the same color form one team; any int
 * key       ranks are by increasing key, equal keys in the parent's order; any int
 * scratch_addr, scratch_size  memory inside this process's segment, in use until gex_TM_Destroy;
 *           the size is not 0 and the same for all members of a new team
 * flags     0; GEX_FLAG_TM_NO_SCRATCH: the two are ignored; GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED:
 *           make nothing, return the scratch size, more than 0, or 0 if new_tm_p is NULL
 * Context   collective over parent; blocks; may precede gex_Segment_Attach
 * Returns the requested size, else 0. The team can be used at once.
 */
AQ_PUBLIC size_t gex_TM_Split(gex_TM_t *new_tm_p, gex_TM_t parent, int color, int key,
                              void *scratch_addr, size_t scratch_size, gex_Flags_t flags);

/**
 * gex_TM_Create - make teams from lists of members.
 * new_tms, num_new  output: a handle for each endpoint of this process in args: at most one, since
 *           only primordial endpoints can be members
 * parent    a team with a member in every process that any caller names
 * args, numargs  the members in rank order; gex_rank is a rank in parent, or with
 *           GEX_FLAG_RANK_IS_JOBRANK a jobrank; gex_ep_index is 0. Equal on all members. numargs 0:
 *           take part in the call, make no team
 * scratch_addrs, scratch_size  with GEX_FLAG_TM_LOCAL_SCRATCH num_new addresses, with
 *           GEX_FLAG_TM_GLOBAL_SCRATCH numargs, with GEX_FLAG_TM_SYMMETRIC_SCRATCH one for all;
 *           ignored with GEX_FLAG_TM_NO_SCRATCH
 * flags     one of those four, perhaps with GEX_FLAG_RANK_IS_JOBRANK; or a query as in gex_TM_Split
 * Context   collective over parent; blocks
 * Returns the requested size, 0 if numargs is 0; else 0. Contains a barrier over each new team.
 */
AQ_PUBLIC size_t gex_TM_Create(gex_TM_t *new_tms, size_t num_new, gex_TM_t parent,
                               gex_EP_Location_t *args, size_t numargs, gex_Addr_t *scratch_addrs,
                               size_t scratch_size, gex_Flags_t flags);

/**
 * gex_TM_Destroy - end a team; its endpoints stay.
 * tm        not the primordial team; its collectives are synchronised, its atomic domains
 *           destroyed. Puts, gets and messages that were started through it may still be in flight,
 *           and complete
 * scratch_p output: the scratch space of the team; may be NULL
 * flags     0; GEX_FLAG_GLOBALLY_QUIESCED: all members have reached this point, so none is waited
 *           for
 * Context   collective over tm
 * Returns 1 if *scratch_p was written, else 0: it was NULL, or the team had no scratch space.
 */
AQ_PUBLIC int gex_TM_Destroy(gex_TM_t tm, gex_Memvec_t *scratch_p, gex_Flags_t flags);

AQ_END_DECLS

#endif
