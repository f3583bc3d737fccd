/*
 * aq_ibv_end.h - the end of a rank: disconnecting from the peers; freeing, where the process goes
 * on.
 *
 * Threads   the thread that exits, or ends the job
 * Uses      aq_ibv_am.h, aq_ibv_firehose.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_END_H
#define AQ_IBV_END_H

#include <stdint.h>

#include "conduits/ibv/aq_ibv_device.h"

/* Wait at most max_ns until what was sent has reached the peers that still need it, and tell the
 * peers that this rank has disconnected. */
void aq_ibv_disconnect_peers(struct aq_ibv_net *net, uint64_t max_ns);
/* Free all parts, the devices too. Every rank has disconnected, and aq_ibv_connect_stop() was
 * called; the variables of the parts are as before the start afterwards, by AQ_JOB_STATE. */
void aq_ibv_free(struct aq_ibv_net *net);

#endif
