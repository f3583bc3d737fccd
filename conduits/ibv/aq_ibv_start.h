/*
 * aq_ibv_start.h - start and end of the conduit's parts, for aq_ibv.c.
 *
 * Threads   start-up's only
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_START_H
#define AQ_IBV_START_H

#include <stddef.h>

/* The library's table; AQ_OK, or negative and the reason in why[len] (aq_ibv_load.c). */
int aq_ibv_load(char *why, size_t len);
/* The table's entry probe. */
int aq_ibv_probe(char *why, size_t len);
/* Choose and open devices; make each rail's queues (aq_ibv_device.c). AQ_OK or negative, logged. */
int aq_ibv_device_open(void);
/* The first buffers of each rail (aq_ibv_rbuf.c). */
int aq_ibv_rbuf_init(void);

#endif
