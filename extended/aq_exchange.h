/*
 * aq_exchange.h - the allgather that collective set-up calls use.
 *
 * Every member contributes a block and receives all blocks. Splitting teams, publishing segments
 * and making atomic domains use it to agree; clients' data uses extended/aq_coll*.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_EXCHANGE_H
#define AQ_EXCHANGE_H

#include <stddef.h>

#include "gasnetex.h"

/**
 * aq_exchange_allgather - send data to every member of a team, and receive every member's.
 * tm    a team, not a TM-pair
 * own   len bytes, the same len on every member; 0 does nothing and waits for no member
 * all   len bytes for each member, by rank
 * Blocks, polling; returns when all members have called it. Collective over tm, in the order of its
 * collective calls; different teams are independent. Needs no segment.
 */
void aq_exchange_allgather(gex_TM_t tm, const void *own, size_t len, void *all);

/** aq_exchange_as - the same; call is the name of the caller for the stall report. */
void aq_exchange_as(const char *call, gex_TM_t tm, const void *own, size_t len, void *all);

/** aq_exchange_barrier - returns when all members have called it. */
void aq_exchange_barrier(const char *call, gex_TM_t tm);

/** aq_exchange_init - registers the handler. */
void aq_exchange_init(void);

/** aq_exchange_fini - the job has ended: frees boxes that no member has fetched. */
void aq_exchange_fini(void);

#endif
