/*
 * aq_ibv_firehose.h - the job's firehose (other/firehose): its settings, agreed among the ranks,
 * and its messages.
 *
 * Threads   start: start-up's thread; the messages: any
 * Uses      aq_ibv_reg.h, aq_ibv_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_FIREHOSE_H
#define AQ_IBV_FIREHOSE_H

#include "conduits/ibv/aq_ibv_device.h"

/* Read the settings, agree on them with the other ranks (collective), and open aq_fh_job. AQ_OK or
 * negative, logged. */
int aq_ibv_firehose_start(struct aq_ibv_net *net);
/* The own segment is registered: firehose has so much less, and need not monitor it. */
void aq_ibv_firehose_segment(const struct aq_ibv_net *net, void *addr, size_t nbytes);
/* The own segment is not registered: peers may have references to it, and to nothing else. Its
 * pages change only by aq_ibv_firehose_discard(). */
void aq_ibv_firehose_segment_on_demand(void *addr, size_t nbytes);
/* [addr, addr+nbytes) has got fresh pages: drops its registrations, and waits until no peer uses
 * one any more. Polls. */
void aq_ibv_firehose_discard(void *addr, size_t nbytes);
/* Unregister all memory and end the memory monitor; no transfer is under way. */
void aq_ibv_firehose_fini(void);
/* Figures, for people. */
void aq_ibv_firehose_report(void);

#endif
