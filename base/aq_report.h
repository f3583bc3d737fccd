/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_report.h - what aq-info prints about the library's conduits and about a running job.
 *
 * core/aq_report.c implements it. The header is in base, so that programs that only ask need no
 * header of core.
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
    char why[256];               /* reason if not */
    bool one_sided;              /* transfers need no call by the target */
    bool network;                /* ranks that share no memory reach each other */
    size_t min_medium, min_long; /* minimum limits of messages between such ranks, bytes */
};

/** aq_report_conduit - describes the library's conduit number i = 0, 1, ...; false if there is
 * none. */
bool aq_report_conduit(size_t i, struct aq_conduit_report *report_out);

struct aq_job_report {
    uint64_t host_bytes;    /* maximum bytes of host memory for the library's queues */
    char segment_from[256]; /* what limits the segment */
};

/** aq_report_job - describes the running job, after gex_Client_Init(). */
void aq_report_job(struct aq_job_report *report_out);

#endif
