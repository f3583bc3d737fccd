/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_conduit_choice.h - which of the library's conduits serves the job.
 * Rule      GASNET_CONDUIT, else what the client was compiled for, else the first of the list that
 *           can be used; if the launcher has put the ranks on several hosts, the first that joins
 *           these, the same on all
 * Threads   one, during gex_Client_Init()
 * Uses      core/aq_conduit.h, base/aq_env.h, other/spawn/aq_spawn.h
 */
#ifndef AQ_CONDUIT_CHOICE_H
#define AQ_CONDUIT_CHOICE_H

#include "core/aq_conduit.h"
#include "other/spawn/aq_spawn.h"

struct aq_conduit_choice {
    const struct aq_conduit_ops *conduit; /* NULL: the library does not hold it */
    char name[32];
    const char *who; /* has asked for it by name; NULL if nobody did */
};

/**
 * aq_conduit_choose - before the job is joined, for which a conduit may have a way of its own.
 * asked  by aqueduct_job_start(), or NULL
 * ident  the client's, "$GASNetConduitName: SMP $" or ""
 * What is wrong with the one that is named is said by aq_conduit_settle(), when all ranks can speak
 * with one voice; but a conduit with a way of its own to start a job is asked here.
 */
struct aq_conduit_choice aq_conduit_choose(const char *asked, const char *ident);

/**
 * aq_conduit_settle - once the job is joined: can what is chosen be used, and does it reach all
 * hosts? Collective over the job. Returns the conduit; ends the job if there is none.
 */
const struct aq_conduit_ops *aq_conduit_settle(struct aq_conduit_choice choice,
                                               const struct aq_spawn_info *spawn);

#endif
