/*
 * aq_tm.h - teams as objects of one process: made from a list of members, kept, given back.
 *
 * How the members agree on the list is the business of extended/aq_team.c.
 * Uses aq_job.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_TM_H
#define AQ_TM_H

#include "core/aq_job.h"

/** What a new team is to be. */
struct aq_tm_plan {
    uint64_t id;
    gex_Rank_t size, rank;      /* members; my place among them */
    const gex_Rank_t *jobranks; /* [size]; copied */
    gex_Flags_t flags;          /* the client's, for gex_TM_QueryFlags() */
    gex_Memvec_t scratch;
};

/** aq_tm_create - a team with its tables; ends the job if memory is out. tm->coll is NULL. */
struct aq_tm *aq_tm_create(const struct aq_tm_plan *plan);

/** aq_tm_destroy - give it back. Nothing that goes on may point to it; its handle is dead. */
void aq_tm_destroy(struct aq_tm *tm);

/** aq_tm_rank - the rank of a process in a team, or GEX_RANK_INVALID. */
gex_Rank_t aq_tm_rank(const struct aq_tm *tm, gex_Rank_t jobrank);

/** aq_tm_create_primordial - the team of all, its table all AQ_NOT_MAPPED; aq_job.rank and size are
 *  known. Sets aq_job.tm and aq_job.delta. */
void aq_tm_create_primordial(void);

/** aq_tm_segments_came - aq_job.delta has changed: teams and pairs take over their members'
 * entries. */
void aq_tm_segments_came(void);

/** aq_tm_check_team - debug builds: tm is a team of this process; ends the job if it is not. */
void aq_tm_check_team(const char *call, gex_TM_t tm);

/** aq_tm_each_team - call fn with each team that lives, the primordial one last. */
void aq_tm_each_team(void (*fn)(struct aq_tm *tm));

/** aq_tm_fini - the job has ended: free all teams and pairs. */
void aq_tm_fini(void);

#endif
