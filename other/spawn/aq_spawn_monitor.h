/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_monitor.h - a thread that looks after the job where no supervisor of ours does.
 * Owns      one thread a rank, asleep in the kernel until something ends. On the host's first rank
 *           it watches all ranks of the host and does what a supervisor does (aq_shutdown.h); on
 *           the others it watches the first rank. It also makes the calls to the launcher's library
 *           that a signal handler must not make
 * Threads   aq_monitor_start(): one; the others from anywhere, signal handlers included
 * Uses      pidfd_open, eventfd; without pidfd it looks twice a second
 */
#ifndef AQ_SPAWN_MONITOR_H
#define AQ_SPAWN_MONITOR_H

#include <stdbool.h>

#include "other/spawn/aq_spawn_kvs.h"

/** aq_monitor_start - event_fd: shared by the host's ranks, readable once the job is ending. */
int aq_monitor_start(struct aq_jobarea *jobarea, uint32_t slot, int event_fd,
                     const struct aq_kvs_ops *ops);

/**
 * aq_monitor_stop - the job ends and the processes go on: the thread ends, and the end of a process
 * says nothing any more. Waits for the thread. Not in a signal handler.
 */
void aq_monitor_stop(void);

/** aq_monitor_notify - the job area has changed. Async-signal-safe. */
void aq_monitor_notify(void);

/** aq_monitor_launcher_lost - the launcher's library says that its daemon is gone. Any thread. */
void aq_monitor_launcher_lost(void);

/** aq_monitor_forget_launcher - the connection that ops->life_fd() told is about to be closed in
 *  order, by whoever owns it: from now on its end says nothing of the launcher. Any thread. */
void aq_monitor_forget_launcher(void);

/** aq_monitor_is_orphan - has aq_monitor_launcher_lost() been called? Also before there is a
 * monitor. */
bool aq_monitor_is_orphan(void);

/** aq_monitor_shutdown - wait for the host's other ranks, then have ops->fini() or ops->abort()
 * called. */
int aq_monitor_shutdown(int code, enum aq_shutdown_mode how);

#endif
