/*
 * aq_transport.c - the two transports of a job: the local and the remote table.
 *
 * Threads   start-up only; the tables are constant afterwards
 * Uses      core/aq_job.h, core/aq_callback.h, core/aq_nosup.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "base/aq_log.h"
#include "core/aq_callback.h"
#include "core/aq_job.h"
#include "core/aq_nosup.h"

uint32_t aq_job_find_local(gex_Rank_t jobrank)
{
    const gex_RankInfo_t *nbrhd = aq_job.nbrhd;
    uint32_t low = 0, high = aq_job.nbrhd_size;

    while (low < high) {
        const uint32_t middle = (low + high) / 2;

        if (nbrhd[middle].gex_jobrank < jobrank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < aq_job.nbrhd_size && nbrhd[low].gex_jobrank == jobrank ? low : UINT32_MAX;
}

/* A table consists of pointers from one of its entries to the end: none of them may be NULL. */
static void aq_transport_check(const struct aq_conduit_ops *ops)
{
    const size_t first = offsetof(struct aq_conduit_ops, probe);
    const void *const *entry = (const void *const *)(const void *)((const char *)ops + first);

    for (size_t i = 0; i < (sizeof(*ops) - first) / sizeof(*entry); i++)
        if (entry[i] == NULL)
            aq_fatal("the table of the %s conduit names nothing for entry %zu behind probe "
                     "(core/aq_conduit.h): name the conduit's function, aq_ref_* or aq_nosup_*",
                     ops->info->name, i);
}

void aq_job_choose_transports(void)
{
    aq_job.nbrhd_first = aq_job.nbrhd[0].gex_jobrank;
    aq_job.nbrhd_in_a_row = aq_job.nbrhd[aq_job.nbrhd_size - 1].gex_jobrank - aq_job.nbrhd_first
                            == aq_job.nbrhd_size - 1;
    aq_job.has_remote = aq_job.nbrhd_count > 1;
    aq_job.local = &aq_smp_conduit;
    aq_job.remote = aq_job.has_remote ? aq_job.conduit : &aq_conduit_none;
    aq_transport_check(aq_job.local);
    aq_transport_check(aq_job.remote);
    if (aq_job.no_overrides) {
        aq_job.local = aq_callback_reference(aq_job.local);
        aq_job.remote = aq_callback_reference(aq_job.remote);
    }
}

void aq_job_free_transports(void)
{
    free((void *)(uintptr_t)aq_job.local);
    free((void *)(uintptr_t)aq_job.remote);
}
