/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_group.h - ranks that a program brings together itself, by struct aqueduct_group.
 * Owns      a copy of the group; what its processes have told each other, until the job has ended
 * Threads   aq_spawn_group_set() and the start on one; lookup of addresses from any. The group's
 *           functions are called on the thread that starts or ends the job, abort on any
 * Uses      aq_spawn_kvs.h: the group's allgather is made a key-value store, and all else, hosts,
 *           job area, monitor and the link between hosts, is as under a launcher
 */
#ifndef AQ_SPAWN_GROUP_H
#define AQ_SPAWN_GROUP_H

#include <stdbool.h>

#include "gasnet/group.h"

/** aq_spawn_group_set - the next job is over this group. */
void aq_spawn_group_set(const struct aqueduct_group *group);

/** aq_spawn_group - the group of the next or the running job; NULL: a launcher's. */
const struct aqueduct_group *aq_spawn_group(void);

#endif
