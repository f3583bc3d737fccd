/*
 * aq_inquire.c - what clients ask about transfers: whether they need their target,
 * aqueduct_is_one_sided(); whether they need polls now, aqueduct_is_busy().
 *
 * Threads   any
 * Uses      the conduit tables
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aqueduct.h"

#include "base/aq_log.h"
#include "core/aq_job.h"

int aqueduct_is_one_sided(gex_Rank_t jobrank)
{
    const struct aq_conduit_ops *ops;

    aq_check_started(__func__);
    if (jobrank >= aq_job.size)
        return 0;
    ops = aq_job_is_local(jobrank) ? aq_job.local : aq_job.remote;
    return (ops->caps & AQ_CAP_ONE_SIDED) != 0 || ops->is_one_sided(jobrank);
}

int aqueduct_is_busy(void)
{
    aq_check_started(__func__);
    return aq_job_is_busy();
}
