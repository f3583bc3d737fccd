/*
 * aq_callback.h - the functions that the layer above core must define.
 *
 * Core includes nothing of extended/; these few names are how it tells the layer above that
 * the job starts, that progress can be made, and that a thread is gone.
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

/* AQ_NO_OVERRIDES: a copy of a table, made for good, in which the reference versions stand for what
 * the conduit has of its own. */
struct aq_conduit_ops;
const struct aq_conduit_ops *aq_callback_reference(const struct aq_conduit_ops *native);

/* From polls outside handlers, while aq_callback_pending is not 0: move operations on.
 * Returns how many completed. May be called by several threads at once. */
extern atomic_int aq_callback_pending;
unsigned aq_callback_progress(void);

/* A thread ends: give its extended state a new home. */
void aq_callback_thread_exit(struct aq_thread *thread);

/* A team is about to be given to the client, or has been destroyed: make and free tm->coll. The
 * primordial team is made before the first message. Not collective, but every member comes here
 * once; others may have sent messages about the team already. */
struct aq_tm;
void aq_callback_team_created(struct aq_tm *tm);
void aq_callback_team_destroyed(struct aq_tm *tm);

/* Over the job, by messages, from aq_callback_team_created() of the primordial team on: all[i * len
 * ..] becomes rank i's mine[0 .. len). Collective. */
void aq_callback_allgather(const void *own, size_t len, void *all);

/* A message has left, or was declined, whose local completion the conduit took over: hand the event
 * out, or wait if the client wants its source now; replies_only: serving replies only, as in a
 * handler. */
struct aq_am_lc;
void aq_callback_am_sent(struct aq_am_lc *lc, bool replies_only);
void aq_callback_am_declined(struct aq_am_lc *lc);

/* The job ends, in two steps. Before: say what is still open, or NULL. After, with no message under
 * way and no thread in the library: free the collectives' part of every team, and all else. */
const char *aq_callback_open(void);
void aq_callback_fini(void);

/* The start-up barrier over the job. */
void aq_callback_barrier(void);

#endif
