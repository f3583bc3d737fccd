/*
 * misuse_case.h - what the programs that break one rule have in common: cases by name, and the end
 * that is only reached if nothing was noticed.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MISUSE_CASE_H
#define MISUSE_CASE_H

#include "gasnet_coll.h"

#include <stdio.h>
#include <string.h>

struct misuse_case {
    const char *name;
    void (*run)(void);
};

#define MISUSE_CASE(NAME) { #NAME, c_##NAME },

static inline void misuse_barrier(gex_TM_t tm)
{
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
}

/* Rank 0 runs the case of that name, if there is one. */
static inline void misuse_run(gex_TM_t tm, const struct misuse_case *cases, size_t count,
                              const char *name)
{
    misuse_barrier(tm);
    for (size_t i = 0; i < count; i++)
        if (strcmp(cases[i].name, name) == 0 && gex_TM_QueryRank(tm) == 0)
            cases[i].run();
}

/* What was sent before the first barrier is handled before the last. */
static inline void misuse_survived(gex_TM_t tm)
{
    misuse_barrier(tm);
    gasnet_AMPoll();
    misuse_barrier(tm);
    if (gex_TM_QueryRank(tm) == 0)
        printf("SURVIVED\n");
    gasnet_exit(0);
}

#endif
