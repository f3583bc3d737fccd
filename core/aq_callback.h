/*
 * aq_callback.h - the functions that the layer above core must define.
 *
 * Core includes nothing of extended/. Through these few functions it tells the layer above that the
 * job starts, that operations can make progress, and that a thread has ended.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_CALLBACK_H
#define AQ_CALLBACK_H

#include <stdbool.h>
#include <stddef.h>

#include <stdatomic.h>

struct aq_thread;

/* At the end of start-up, before the first message: register internal handlers. */
void aq_callback_init(void);

/* AQ_NO_OVERRIDES: returns a copy of a table, which aq_job_free_transports() frees, in which
 * reference versions replace the conduit's own functions. */
struct aq_conduit_ops;
const struct aq_conduit_ops *aq_callback_reference(const struct aq_conduit_ops *native);

/* Called in polls outside handlers, while aq_callback_pending is not 0: makes progress on
 * operations. Returns how many completed. Several threads may call it at once. */
extern atomic_int aq_callback_pending;
unsigned aq_callback_progress(void);

/* A thread ends: passes its extended state on. */
void aq_callback_thread_exit(struct aq_thread *thread);

/* A team is about to be returned to the client, or has been destroyed: makes and frees tm->coll.
 * The primordial team is made before the first message. Not collective, but every member calls it
 * once; others may have sent messages about the team already. */
struct aq_tm;
void aq_callback_team_created(struct aq_tm *tm);
void aq_callback_team_destroyed(struct aq_tm *tm);

/* Collective over the job, by messages: all[i * len ..] receives rank i's own[0 .. len). Usable
 * from aq_callback_team_created() of the primordial team on. */
void aq_callback_allgather(const void *own, size_t len, void *all);

/* A message whose local completion the conduit took over has been sent or declined: returns the
 * event to the client, or waits if the client needs its source now. replies_only: serves replies
 * only while waiting, as in a handler. */
struct aq_am_lc;
void aq_callback_am_sent(struct aq_am_lc *lc, bool replies_only);
void aq_callback_am_declined(struct aq_am_lc *lc);

/* The job ends, in two steps. aq_callback_open() says what is still open, or returns NULL. The
 * second, called with no message in flight and no thread in the library, frees the collectives'
 * part of every team, and all else. */
const char *aq_callback_open(void);
void aq_callback_fini(void);

/* The start-up barrier over the job. */
void aq_callback_barrier(void);

#endif
