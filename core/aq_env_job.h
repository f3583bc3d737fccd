/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_env_job.h - one environment for the whole job when the ranks were started with several.
 * Threads   one, at init
 * Uses      base/aq_env.h, other/spawn (exchange)
 */
#ifndef AQ_ENV_JOB_H
#define AQ_ENV_JOB_H

/**
 * aq_env_exchange - make all ranks see the same variables, collective over the job.
 * If the environments differ, apart from what launchers set for each process, the largest one
 * (of the lowest rank that has it) goes to every rank and wins over the local one; otherwise
 * nothing changes. Call between aq_spawn_init() and the reading of what must agree; not needed
 * when all ranks were forked by one process.
 */
void aq_env_exchange(void);

#endif
