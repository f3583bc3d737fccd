/*
 * aq_mpi_attention.h - does a peer pay attention: does it answer messages at once?
 *
 * A small transfer by a message and its answer may be faster than by a one-sided window, but such a
 * transfer waits for a target that computes. Messages therefore go only to a target that has
 * answered one a moment ago. This rank asks another target, if transfers to that target follow each
 * other closely, by a message for which nobody waits; transfers go by the window until the answer
 * arrives. A target that has let this rank wait gets no messages for a while, each time for twice
 * as long, so that a target that turns away again and again costs less and less.
 *
 * Owns      nothing: what is known of a peer belongs to the caller
 * Threads   any: each value is a hint by itself, and the worst that a race brings is a transfer by
 *           the slower way
 * Uses      gasnetex.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_ATTENTION_H
#define AQ_MPI_ATTENTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gasnetex.h"

#define AQ_MPI_FRESH_NS    20000u   /* an answer so long ago still counts */
#define AQ_MPI_ASK_NS      100000u  /* between two questions */
#define AQ_MPI_POLLED_NS   20000u   /* between two polls for an answer that is slow to come */
#define AQ_MPI_LATE_NS     1000000u /* an answer that took longer is late */
#define AQ_MPI_LEAVE_NS    UINT64_C(20000000) /* no messages after the first late answer */
#define AQ_MPI_LEAVE_TIMES 128u               /* at most so many times as long */

/* What is known of a peer; at first 0. */
struct aq_mpi_attention {
    _Atomic uint64_t wanted_ns;   /* when a transfer last asked for its attention */
    _Atomic uint64_t answered_ns; /* when an answer in time came */
    _Atomic uint64_t asked_ns;
    _Atomic uint64_t polled_ns; /* for the answer to a question */
    _Atomic uint64_t left_ns;   /* no messages before this time */
    atomic_uint leave;          /* how many times AQ_MPI_LEAVE_NS the next absence takes */
    atomic_bool asking;         /* a question has no answer yet */
};

/* Registers the handlers. */
void aq_mpi_attention_init(void);

/* Returns true if a message to the rank is likely to be answered at once. Otherwise may ask, and
 * poll for the answer; peer stays where it is until the job ends. Without the lock. */
bool aq_mpi_attention_is_paid(struct aq_mpi_attention *peer, gex_Rank_t jobrank, uint64_t now_ns);
/* The same, without any question. */
bool aq_mpi_attention_is_fresh(const struct aq_mpi_attention *peer, uint64_t now_ns);
/* The answer to a message has come. waited: a caller has waited for it all the time, and
 * aq_mpi_attention_is_fresh() was true when it was sent; another answer is not late. */
void aq_mpi_attention_answered(struct aq_mpi_attention *peer, uint64_t sent_ns, uint64_t now_ns,
                               bool waited);

#endif
