/*
 * aq_nosup.h - the entries of a conduit's table for what the conduit does not have.
 *
 * Each has the type of its entry in core/aq_conduit.h and does nothing: a wait has no limit, a
 * domain of atomics is not served, a rendezvous is declined. One calls a more general entry. Those
 * that no job may reach end it with a message.
 *
 * Threads   any
 * Uses      core/aq_conduit.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_NOSUP_H
#define AQ_NOSUP_H

#include "core/aq_conduit.h"

/* --- nothing to do --- */

int aq_nosup_init(void); /* AQ_OK */
void aq_nosup_fini(void);
void aq_nosup_quiesce(void);
int aq_nosup_segment_attach(uintptr_t size, void **base_io); /* AQ_OK */
int aq_nosup_segment_ready(void);                            /* AQ_OK */
void aq_nosup_segment_detach(void);
int aq_nosup_segment_bind(const struct aq_segment *segment); /* AQ_OK */
int aq_nosup_segment_discard(void *addr, size_t nbytes);     /* the local table's */
bool aq_nosup_segment_reaches(gex_Rank_t jobrank);           /* true */
void aq_nosup_exit(uint64_t max_ns);
unsigned aq_nosup_poll(enum aq_poll_kind kind);  /* 0 */
extern const atomic_uint_fast64_t aq_nosup_busy; /* 0 */
void aq_nosup_peer_counts(gex_Rank_t jobrank, uint64_t *sent_out, uint64_t *handled_out);
void aq_nosup_wait_arm(void);
uint64_t aq_nosup_wait_limit(uint64_t max_ns);  /* max_ns */
bool aq_nosup_is_one_sided(gex_Rank_t jobrank); /* false */
void aq_nosup_wait_look(gex_Rank_t peer);
bool aq_nosup_may_notify(void);                           /* true */
struct aq_op *aq_nosup_rma_batch_begin(struct aq_op *op); /* NULL */
void aq_nosup_rma_batch_end(struct aq_op *before);

/* --- declined: the caller has an alternative --- */

int aq_nosup_am_alloc(gex_Rank_t jobrank, bool is_reply, size_t min, size_t max,
                      struct aq_am_buffer *buffer_out);                /* AQ_ERR_NOSUP */
bool aq_nosup_ad_serves(gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags); /* false */
uint32_t aq_nosup_rndv_recv(gex_Rank_t jobrank, void *dest, size_t nbytes,
                            struct aq_rndv *rndv); /* 0 */
extern const struct aq_coll_ops aq_nosup_coll;     /* serves no call */

/* --- by another entry --- */

/* Calls am_send. */
int aq_nosup_am_medium(gex_Rank_t jobrank, bool is_reply, uint8_t handler, const void *src,
                       size_t nbytes, unsigned nargs, const gex_AM_Arg_t *args);

/* --- never reached: they end the job --- */

int aq_nosup_probe(char *why, size_t len);
int aq_nosup_am_send(const struct aq_am_out *out);
int aq_nosup_am_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                      const gex_AM_Arg_t *args);
void aq_nosup_am_free(bool is_reply, const struct aq_am_buffer *buffer);
uint32_t aq_nosup_sleep_prepare(bool waits);
void aq_nosup_sleep(uint32_t wakeup, uint64_t max_ns);
void aq_nosup_sleep_cancel(bool waits);
void aq_nosup_sleep_wake(void);
int aq_nosup_sleep_add_fd(int fd);
int aq_nosup_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
                 bool lc_now, gex_Flags_t flags);
int aq_nosup_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
                 gex_Flags_t flags);
int aq_nosup_ad_op(struct aq_op *op, gex_Rank_t jobrank, gex_DT_t dt, void *result_p,
                   void *tgt_addr, gex_OP_t opcode, uint64_t operand1, uint64_t operand2,
                   gex_Flags_t flags);
void aq_nosup_rndv_send(gex_Rank_t jobrank, uint32_t match_id, const void *src, size_t nbytes,
                        struct aq_rndv *rndv);
void aq_nosup_barrier_arrive(uint64_t k);
bool aq_nosup_barrier_done(uint64_t k, gex_Rank_t *missing_out);
void aq_nosup_named_arrive(uint64_t k, int id, int flags);
bool aq_nosup_named_done(uint64_t k, struct aq_barrier_name *name_out, gex_Rank_t *missing_out);

#endif
