/*
 * aq_gasnet1.h - the start-up of GASNet-1 clients, which the EX interface does not cover.
 *
 * The calls are inline in include/gasnet/gasnet1_*.h, or in aq_gasnet1.c, aq_memset.c and
 * aq_valget.c. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_GASNET1_H
#define AQ_GASNET1_H

/** aq_gasnet1_start - called at start-up, once the client's flags are known. */
void aq_gasnet1_start(void);

/** aq_gasnet1_fini - the job has ended: gasnet_init may be called again. */
void aq_gasnet1_fini(void);

/** aq_memset_init - registers the handler. */
void aq_memset_init(void);

#endif
