/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_report.c - see base/aq_report.h.
 */
#include "base/aq_report.h"

#include "base/aq_rc.h"
#include "core/aq_conduit.h"
#include "core/aq_segment.h"

bool aq_report_conduit(size_t i, struct aq_conduit_report *report_out)
{
    const struct aq_conduit_ops *ops;

    for (size_t before = 0; before <= i; before++)
        if (aq_conduits[before] == NULL)
            return false;
    ops = aq_conduits[i];
    *report_out = (struct aq_conduit_report){ .info = ops->info,
                                              .one_sided = (ops->caps & AQ_CAP_ONE_SIDED) != 0,
                                              .network = (ops->caps & AQ_CAP_NETWORK) != 0,
                                              .min_medium = ops->min_medium,
                                              .min_long = ops->min_long };
    report_out->works = ops->probe(report_out->why, sizeof(report_out->why)) == AQ_OK;
    return true;
}

void aq_report_job(struct aq_job_report *report_out)
{
    report_out->host_bytes = aq_limits.host_bytes;
    aq_segment_explain(report_out->segment_from, sizeof(report_out->segment_from));
}
