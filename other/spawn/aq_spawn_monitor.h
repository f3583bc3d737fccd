/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_monitor.h - the monitor: a thread that watches the job where no supervisor does.
 * Owns      one thread in each rank, asleep in the kernel until a process ends. On the host's first
 *           rank it watches all ranks of the host and acts as their supervisor (aq_shutdown.h); on
 *           the others it watches the first rank. It also makes the calls to the launcher's library
 *           that a signal handler must not make
 * Threads   aq_monitor_start(): one; the others from anywhere, signal handlers included
 * Uses      pidfd_open, eventfd; without pidfd it polls twice a second
 */
#ifndef AQ_SPAWN_MONITOR_H
#define AQ_SPAWN_MONITOR_H

#include <stdbool.h>

#include "other/spawn/aq_spawn_kvs.h"

/** aq_monitor_start - event_fd: shared by the host's ranks, readable once the job is shutting
 * down. */
int aq_monitor_start(struct aq_jobarea *jobarea, uint32_t slot, int event_fd,
                     const struct aq_kvs_ops *ops);

/**
 * aq_monitor_stop - the job ends and the processes go on: the thread ends, and the end of this
 * process is no loss any more. Waits for the thread. Called when all ranks of the job have told
 * their links that they disconnect (aq_link_disconnect()). Not in a signal handler.
 */
void aq_monitor_stop(void);

/** aq_monitor_notify - the job area has changed. Async-signal-safe. */
void aq_monitor_notify(void);

/** aq_monitor_launcher_lost - the launcher's library reports that its daemon has ended. Any
 * thread. */
void aq_monitor_launcher_lost(void);

/** aq_monitor_forget_launcher - the connection that ops->life_fd() returned is about to be closed
 * in order: from now on its end is no loss of the launcher. Any thread. */
void aq_monitor_forget_launcher(void);

/** aq_monitor_is_orphan - returns true if aq_monitor_launcher_lost() has been called. Also before
 * there is a monitor. */
bool aq_monitor_is_orphan(void);

/** aq_monitor_shutdown - waits for the host's other ranks, then has ops->fini() or ops->abort()
 * called. */
int aq_monitor_shutdown(int code, enum aq_shutdown_mode how);

#endif
