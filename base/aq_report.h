/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_report.h - what aq-info tells about the library's conduits and about a running job.
 *
 * core/aq_report.c answers; this header is in base so that programs that only ask need not know
 * the core's structures.
 */
#ifndef AQ_REPORT_H
#define AQ_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/aq_conduit_info.h"

struct aq_conduit_report {
    const struct aq_conduit_info *info;
    bool works;                  /* this process may use it */
    char why[256];               /* why not */
    bool one_sided;              /* transfers need no call by the target */
    bool network;                /* ranks that share no memory reach each other */
    size_t min_medium, min_long; /* bytes: what messages between such ranks always take */
};

/** aq_report_conduit - about the library's conduit number i = 0, 1, ...; false if there is none. */
bool aq_report_conduit(size_t i, struct aq_conduit_report *report_out);

struct aq_job_report {
    uint64_t host_bytes;    /* of host memory that the library's queues can come to use */
    char segment_from[256]; /* what the greatest segment follows from */
};

/** aq_report_job - about the running job, after gex_Client_Init(). */
void aq_report_job(struct aq_job_report *report_out);

#endif
