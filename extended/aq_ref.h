/*
 * aq_ref.h - reference versions, over active messages, of what a conduit may leave out.
 *
 * A conduit's table names them where the conduit has no implementation of its own. With
 * AQ_NO_OVERRIDES=1 they serve every conduit, which is how the tests reach them. Signatures and
 * promises are those of the table in core/aq_conduit.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_REF_H
#define AQ_REF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gasnetex.h"

#include "core/aq_conduit.h"

struct aq_op;

/* --- transfers: aq_rma_ref.c --- */

/**
 * aq_ref_put - send the data in messages, with one reply for each. src may be reused at return or,
 * if op counts it, when its local completion has happened.
 * Returns AQ_OK, or AQ_RETRY (only with GEX_FLAG_IMMEDIATE) if nothing was sent.
 */
int aq_ref_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags);

/** aq_ref_get - send requests for chunks, answered by messages with the data. Returns as above. */
int aq_ref_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags);

/** aq_ref_check_range - for request handlers: ends the job unless [addr, addr+nbytes), the target
 * of `what` (such as "put"), is inside this process's segments. */
void aq_ref_check_range(gex_Token_t token, const char *what, const void *addr, size_t nbytes);

/** aq_ref_rma_init - registers the handlers, reads the settings. */
void aq_ref_rma_init(void);

/* --- barriers: aq_barrier_ref.c --- */

void aq_ref_barrier_arrive(uint64_t k);
bool aq_ref_barrier_done(uint64_t k, gex_Rank_t *missing_out);
void aq_ref_named_arrive(uint64_t k, int id, int flags);
bool aq_ref_named_done(uint64_t k, struct aq_barrier_name *name_out, gex_Rank_t *missing_out);

/** aq_ref_barrier_init - registers the handlers. */
void aq_ref_barrier_init(void);

/** aq_ref_barrier_fini - the job has ended: free the list of leaders. */
void aq_ref_barrier_fini(void);

/**
 * aq_ref_barrier_progress - send what may be sent; never blocks, runs no handler.
 * Returns how many messages were sent or declined, and barriers completed: not 0 means poll again.
 */
unsigned aq_ref_barrier_progress(void);

#endif
