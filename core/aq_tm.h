/*
 * aq_tm.h - teams as objects of one process: made from a list of members, and destroyed.
 *
 * extended/aq_team.c makes the members agree on the list.
 * Uses aq_job.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_TM_H
#define AQ_TM_H

#include "core/aq_job.h"

/** The parameters of a new team. */
struct aq_tm_plan {
    uint64_t id;
    gex_Rank_t size, rank;      /* number of members; rank of this process */
    const gex_Rank_t *jobranks; /* [size]; copied */
    gex_Flags_t flags;          /* result of gex_TM_QueryFlags() */
    gex_Memvec_t scratch;
};

/** aq_tm_create - makes a team with its tables; ends the job without memory. tm->coll is NULL. */
struct aq_tm *aq_tm_create(const struct aq_tm_plan *plan);

/** aq_tm_destroy - frees a team. No outstanding operation may point to it; its handle is dead. */
void aq_tm_destroy(struct aq_tm *tm);

/** aq_tm_rank - returns the rank of a process in a team, or GEX_RANK_INVALID. */
gex_Rank_t aq_tm_rank(const struct aq_tm *tm, gex_Rank_t jobrank);

/** aq_tm_create_primordial - makes the team of all ranks, with a table of AQ_NOT_MAPPED;
 * aq_job.rank and size are known. Sets aq_job.tm and aq_job.delta. */
void aq_tm_create_primordial(void);

/** aq_tm_segments_came - aq_job.delta has changed: teams and pairs copy their members' entries. */
void aq_tm_segments_came(void);

/** aq_tm_each_team - calls fn with each live team, the primordial one last. */
void aq_tm_each_team(void (*fn)(struct aq_tm *tm));

/** aq_tm_fini - the job has ended: frees all teams and pairs. */
void aq_tm_fini(void);

#endif
