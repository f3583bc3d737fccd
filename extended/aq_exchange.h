/*
 * aq_exchange.h - the exchange that collective set-up calls are made of.
 *
 * Everybody gives a piece and gets everybody's. It is what splitting teams, publishing
 * segments and making atomic domains need to agree; clients' data takes extended/aq_coll*.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_EXCHANGE_H
#define AQ_EXCHANGE_H

#include <stddef.h>

#include "gasnetex.h"

/**
 * aq_exchange_allgather - tell every member of a team, and learn what every member tells.
 * tm    a team, not a TM-pair
 * mine  len bytes, the same len on every member; 0 does nothing and waits for nobody
 * all   len bytes for each member, by rank
 * Blocks, polling; nobody returns before everybody has called. Collective over tm, in the order of
 * its collective calls; different teams do not disturb each other. Needs no segment.
 */
void aq_exchange_allgather(gex_TM_t tm, const void *own, size_t len, void *all);

/** aq_exchange_as - the same, with the call that wants it, for the report of who waits for whom. */
void aq_exchange_as(const char *call, gex_TM_t tm, const void *own, size_t len, void *all);

/** aq_exchange_barrier - nobody returns before everybody has called. */
void aq_exchange_barrier(const char *call, gex_TM_t tm);

/** aq_exchange_init - register the handler. */
void aq_exchange_init(void);

/** aq_exchange_fini - the job has ended: free what nobody has fetched. */
void aq_exchange_fini(void);

#endif
