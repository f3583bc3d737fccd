/*
 * aq_segment.h - segment limits, computed once at start.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SEGMENT_H
#define AQ_SEGMENT_H

#include <stddef.h>
#include <stdint.h>

/* Computes limits from GASNET_MAX_SEGSIZE, memory and the ranks of this host; after the conduit's
 * init. Collective over the job. */
void aq_segment_init_limits(void);

/* Explains in words and figures where the limit came from, for messages and aq-info. */
void aq_segment_explain(char *text, size_t len);

/* The limit for one of host_size ranks of a host; `taken` bytes of its memory are in use by the
 * library. */
uintptr_t aq_segment_limit(unsigned host_size, uint64_t taken);

/** aq_segment_fini - the job has ended: frees the segments that the client has made and not
 * destroyed. */
void aq_segment_fini(void);

#endif
