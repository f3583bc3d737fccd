/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_group.h - ranks that a program has connected itself, by struct aqueduct_group.
 * Owns      a copy of the group; the data that its processes have exchanged, until the job has
 *           ended
 * Threads   aq_spawn_group_set() and the start on one; lookup of addresses from any. The group's
 *           functions are called on the thread that starts or ends the job, abort on any
 * Uses      aq_spawn_kvs.h: the group's allgather serves as a key-value store. Hosts, job area,
 *           monitor and the link between hosts are the same as under a launcher
 */
#ifndef AQ_SPAWN_GROUP_H
#define AQ_SPAWN_GROUP_H

#include <stdbool.h>

#include "gasnet/group.h"

/** aq_spawn_group_set - the next job uses this group. */
void aq_spawn_group_set(const struct aqueduct_group *group);

/** aq_spawn_group - returns the group of the next or the running job; NULL: a launcher starts
 * it. */
const struct aqueduct_group *aq_spawn_group(void);

#endif
