/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_conduit_choice.h - chooses the job's conduit among those in the library.
 * Rule      GASNET_CONDUIT, else the conduit that the client was compiled for, else the first of
 *           the list that can be used. If the launcher has put the ranks on several hosts: the
 *           first that connects these, the same on all
 * Threads   one, during gex_Client_Init()
 * Uses      core/aq_conduit.h, base/aq_env.h, other/spawn/aq_spawn.h
 */
#ifndef AQ_CONDUIT_CHOICE_H
#define AQ_CONDUIT_CHOICE_H

#include "core/aq_conduit.h"
#include "other/spawn/aq_spawn.h"

struct aq_conduit_choice {
    const struct aq_conduit_ops *conduit; /* NULL: the library does not contain it */
    char name[32];
    const char *who; /* the setting that asked for it by name; NULL: none did */
};

/**
 * aq_conduit_choose - called before the job is joined, for which a conduit may have its own
 * provider.
 * asked  by aqueduct_job_start(), or NULL
 * ident  the client's, "$GASNetConduitName: SMP $" or ""
 * If the named conduit cannot be used, aq_conduit_settle() reports it, when all ranks can agree on
 * one message; but a conduit with its own provider is tested here.
 */
struct aq_conduit_choice aq_conduit_choose(const char *asked, const char *ident);

/**
 * aq_conduit_expect - what aq_conduit_choose() would return in the present environment, by name;
 * without a message and without a change of the job's variables. NULL: the library does not contain
 * it.
 */
const char *aq_conduit_expect(const char *asked, const char *ident);

/**
 * aq_conduit_settle - called once the job is joined: tests whether the choice can be used and
 * reaches all hosts. Collective over the job. Returns the conduit; ends the job if there is none.
 */
const struct aq_conduit_ops *aq_conduit_settle(struct aq_conduit_choice choice,
                                               const struct aq_spawn_info *spawn);

#endif
