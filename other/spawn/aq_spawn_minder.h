/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_minder.h - a thread that looks after the job where no supervisor of ours does.
 * Owns      one thread a rank, asleep in the kernel until something ends. On the host's first rank it
 *           watches all ranks of the host and does what a supervisor does (aq_ending.h); on the
 *           others it watches the first rank. It also makes the calls to the launcher's library that
 *           a signal handler must not make
 * Threads   aq_minder_start(): one; the others from anywhere, signal handlers included
 * Uses      pidfd_open, eventfd; without pidfd it looks twice a second
 */
#ifndef AQ_SPAWN_MINDER_H
#define AQ_SPAWN_MINDER_H

#include <stdbool.h>

#include "other/spawn/aq_spawn_kvs.h"

/** aq_minder_start - event_fd: shared by the host's ranks, readable once the job is ending. */
int aq_minder_start(struct aq_board *board, uint32_t slot, int event_fd, const struct aq_kvs_ops *ops);

/** aq_minder_notify - the board has changed. Async-signal-safe. */
void aq_minder_notify(void);

/** aq_minder_launcher_lost - the launcher's library says that its daemon is gone. Any thread. */
void aq_minder_launcher_lost(void);

/** aq_minder_forget_launcher - the connection that ops->life_fd() told is about to be closed in order, by whoever owns
 *  it: from now on its end says nothing of the launcher. Any thread. */
void aq_minder_forget_launcher(void);

/** aq_minder_is_orphan - has aq_minder_launcher_lost() been called? Also before there is a minder. */
bool aq_minder_is_orphan(void);

/** aq_minder_leave - wait for the host's other ranks, then have ops->fini() or ops->abort() called. */
int aq_minder_leave(int code, enum aq_leave how);

#endif
