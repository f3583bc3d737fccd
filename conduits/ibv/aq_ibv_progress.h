/*
 * aq_ibv_progress.h - polling and sleeping.
 *
 * Threads   any
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

#endif
