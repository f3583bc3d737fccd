/*
 * aq_stall.h - the stall report: what a rank that waits for long waits for, and for which rank.
 *
 * Owns      the time of the first report, and whether a signal has asked for one
 * Threads   any; each thread tells of its own wait
 * Promise   a wait that ends soon pays nothing
 * Uses      the job area, the conduit table. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_STALL_H
#define AQ_STALL_H

#include "core/aq_poll.h"
#include "other/spawn/aq_spawn.h"

/* Every now and then a waiter looks at the clock: tells the launcher and, if it is time, prints. */
void aq_stall_look(struct aq_waiter *waiter);

/* What kind of wait aq_waiter.what describes. */
enum aq_wait_kind aq_stall_kind(const char *what);

/* Read the settings; once, as the job starts. */
void aq_stall_init(void);

#endif
