/*
 * aq_ibv_progress.h - polling and sleeping; and the shutdown, which disconnects from the peers.
 *
 * Threads   any; aq_ibv_disconnect_peers(): the thread that exits
 * Uses      aq_ibv_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_PROGRESS_H
#define AQ_IBV_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "conduits/ibv/aq_ibv_device.h"

/* Serve the network once; returns how much was done. */
unsigned aq_ibv_progress(struct aq_ibv_net *net, bool replies_only);
/* Before a sleep: send all updates, arm the completion queues. */
void aq_ibv_progress_sleep(struct aq_ibv_net *net);
/* Times that a thread prepared to sleep. */
uint64_t aq_ibv_progress_sleeps(void);

/* At the exit (aq_ibv_shutdown.c): wait at most max_ns until what was sent has reached the peers
 * that still need it, and tell the peers that this rank is gone. */
void aq_ibv_disconnect_peers(struct aq_ibv_net *net, uint64_t max_ns);

#endif
