/*
 * aq_job_end.h - the part of core/aq_job_end.c that start-up uses.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_JOB_END_H
#define AQ_JOB_END_H

/** aq_job_save_state - called before a start changes any variable of the job. */
void aq_job_save_state(void);

/** aq_job_asked_conduit - the name that aqueduct_job_start() was given, or NULL. */
const char *aq_job_asked_conduit(void);

/** aq_job_absent - says why there is no job: the end of a sentence "NAME called ...". */
const char *aq_job_absent(void);

#endif
