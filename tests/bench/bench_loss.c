/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_loss.c - what is left of the bandwidth of a stream of puts when a part of the datagrams is
 * lost.
 * Owns      nothing
 * Threads   one
 * Uses      bench.h; the conduit's own fault layer, through its environment variable
 *
 * Jobs with loss alternate with jobs without. A job's figure is the mean over all of its time, so
 * that every wait for a retransmission counts.
 */
#include "bench.h"

#include <stdlib.h>

#define AQ_LOSS_VARIABLE "AQ_UDP_FAULTS"
#define AQ_LOSS_SETTING  "drop=1%"
#define AQ_LOSS_BUDGET   2.0 /* half of the bandwidth: twice the time */
#define AQ_LOSS_MIN      9   /* jobs with loss; more, until enough were steady */
#define AQ_LOSS_MAX      15
#define AQ_LOSS_QUICK    3
#define AQ_LOSS_LIMIT_S  60.0

size_t aq_loss_count(const struct aq_options *options)
{
    if (!options->remote || options->raw)
        return 0;
    if (options->only != NULL)
        return aq_row_name_wanted(options, "put_loss_1pct") ? 1 : 0;
    return options->table == NULL || strcmp(options->table, "latency") != 0 ? 1 : 0;
}

static void aq_loss_line(void *arg, const char *line)
{
    sscanf(line, "STREAM %lf", (double *)arg);
}

/* Nanoseconds of a put; 0 if the job failed. */
static double aq_loss_job(const struct aq_options *options, bool lossy)
{
    double ns = 0;
    int rc;

    if (lossy)
        setenv(AQ_LOSS_VARIABLE, AQ_LOSS_SETTING, 1);
    rc = aq_front_job(options, "stream", 2, AQ_LOSS_LIMIT_S, aq_loss_line, &ns);
    unsetenv(AQ_LOSS_VARIABLE);
    return rc == 0 ? ns : 0;
}

void aq_loss_run(const struct aq_options *options, struct aq_out *out)
{
    double before[AQ_LOSS_MAX], lossy[AQ_LOSS_MAX], after[AQ_LOSS_MAX];
    size_t min = options->quick ? AQ_LOSS_QUICK : AQ_LOSS_MIN, count = 0;
    size_t max = options->quick ? AQ_LOSS_QUICK : AQ_LOSS_MAX;
    struct aq_result r = { .unsteady = true };
    double clean;

    if (aq_loss_count(options) == 0)
        return;
    aq_out_running(out, "put_loss_1pct");
    clean = aq_loss_job(options, false);
    while ((count < min || (count < max && r.unsteady)) && clean > 0 && !aq_front_stop()) {
        before[count] = clean;
        lossy[count] = aq_loss_job(options, true);
        after[count] = clean = aq_loss_job(options, false);
        if (lossy[count] <= 0 || clean <= 0)
            break;
        count++;
        aq_stat_reduce(lossy, before, after, count, &r);
    }
    if (count == 0)
        return;
    memset(&r, 0, sizeof(r));
    snprintf(r.who, sizeof(r.who), "aqueduct");
    snprintf(r.name, sizeof(r.name), "put_loss_1pct");
    snprintf(r.unit, sizeof(r.unit), "ns");
    snprintf(r.limit_name, sizeof(r.limit_name), "the same without loss");
    r.size = 1u << 20;
    r.budget = AQ_LOSS_BUDGET;
    aq_stat_reduce(lossy, before, after, count, &r);
    aq_out_result(out, &r);
}
