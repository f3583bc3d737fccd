/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_env_source.h - the sources of a variable's text: the process's environment at the start, one
 *                   environment for the whole job, what the client sets. For aq_env.c only.
 *                   aq_env_get(), aq_env_get_live(), aq_env_change() and aq_env_snapshot(), in
 *                   aq_env.h, are for all.
 * Threads   the first two calls: while the process has one thread
 * Uses      libc only
 */
#ifndef AQ_ENV_SOURCE_H
#define AQ_ENV_SOURCE_H

#include <stddef.h>

/** aq_env_take_snapshot - copies the process's environment, decoded unless
 * GASNET_DISABLE_ENVDECODE is set. */
void aq_env_take_snapshot(void);

/** aq_env_keep_job_block - copies len bytes of NAME=VALUE strings, which override the process's
 * own from now on. */
void aq_env_keep_job_block(const char *block, size_t len);

/** aq_env_own_entry - returns the i-th NAME=VALUE string of the process's environment; NULL after
 * the last. */
const char *aq_env_own_entry(size_t i);

/** aq_env_drop_blocks - frees both blocks, and with them every text that came from them. */
void aq_env_drop_blocks(void);

#endif
