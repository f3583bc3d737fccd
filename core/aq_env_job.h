/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_env_job.h - one environment for the whole job when the ranks were started with several.
 * Threads   one, at init
 * Uses      base/aq_env.h, other/spawn (exchange)
 */
#ifndef AQ_ENV_JOB_H
#define AQ_ENV_JOB_H

/**
 * aq_env_exchange - make all ranks see the same variables. Collective over the job.
 * If the environments differ, apart from variables that launchers set for each process, the largest
 * one (of the lowest rank that has it) is sent to every rank and overrides the local one; otherwise
 * nothing changes. Called between aq_spawn_init() and the first read of a variable that must agree;
 * not needed when one process has forked all ranks.
 */
void aq_env_exchange(void);

#endif
