/*
 * aq_mpi_attention.c - does a peer pay attention: does it answer messages at once?
 *
 * Wire      ATTENTION(peer) -> ATTENTION_PAID(peer)
 * Owns      nothing. Threads: any
 * Uses      aq_mpi_am_out.h, core/aq_am.h, extended/aq_ref.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_attention.h"

#include "base/aq_rc.h"
#include "conduits/mpi/aq_mpi_am_out.h"
#include "core/aq_am.h"
#include "core/aq_poll.h"
#include "extended/aq_ref.h"

#define AQ_MPI_ATTENTION_ARGS 2u

/* relaxed, throughout: hints, see the head of aq_mpi_attention.h */
static inline uint64_t aq_mpi_attention_get(const _Atomic uint64_t *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

static inline void aq_mpi_attention_set(_Atomic uint64_t *at, uint64_t value)
{
    atomic_store_explicit(at, value, memory_order_relaxed);
}

static inline bool aq_mpi_attention_is_asking(const struct aq_mpi_attention *peer)
{
    return atomic_load_explicit(&peer->asking, memory_order_relaxed);
}

/* Asks without waiting: without credit a later call asks. What the answer is compared with is
 * stored before the question leaves. */
static void aq_mpi_attention_ask(struct aq_mpi_attention *peer, gex_Rank_t jobrank, uint64_t now_ns)
{
    const gex_AM_Arg_t args[AQ_MPI_ATTENTION_ARGS] = { AQ_ARGS_OF_PTR(peer) };

    aq_mpi_attention_set(&peer->asked_ns, now_ns);
    atomic_store_explicit(&peer->asking, true, memory_order_relaxed);
    if (aq_mpi_am_short(&aq_mpi_am, jobrank, false, AQ_HIDX_ATTENTION, AQ_MPI_ATTENTION_ARGS, args)
        != AQ_OK)
        atomic_store_explicit(&peer->asking, false, memory_order_relaxed);
}

static __attribute__((noinline)) void aq_mpi_attention_look(struct aq_mpi_attention *peer,
                                                            gex_Rank_t jobrank, uint64_t now_ns)
{
    const uint64_t asked_ns = aq_mpi_attention_get(&peer->asked_ns);
    const uint64_t wanted_ns = aq_mpi_attention_get(&peer->wanted_ns);

    aq_mpi_attention_set(&peer->wanted_ns, now_ns);
    if (now_ns < aq_mpi_attention_get(&peer->left_ns))
        return;
    if (!aq_mpi_attention_is_asking(peer)) {
        if (now_ns - wanted_ns < AQ_MPI_FRESH_NS && now_ns - asked_ns >= AQ_MPI_ASK_NS)
            aq_mpi_attention_ask(peer, jobrank, now_ns);
    } else if (now_ns - asked_ns < AQ_MPI_FRESH_NS
               || now_ns - aq_mpi_attention_get(&peer->polled_ns) >= AQ_MPI_POLLED_NS) {
        aq_mpi_attention_set(&peer->polled_ns, now_ns);
        aq_mpi_am_batch.just_sent = false; /* MPI is polled, whatever this thread has sent */
        aq_poll_of_send(); /* short transfers by the window do not poll for messages */
    }
}

bool aq_mpi_attention_is_fresh(const struct aq_mpi_attention *peer, uint64_t now_ns)
{
    return now_ns < aq_mpi_attention_get(&peer->answered_ns) + AQ_MPI_FRESH_NS
           && now_ns >= aq_mpi_attention_get(&peer->left_ns);
}

bool aq_mpi_attention_is_paid(struct aq_mpi_attention *peer, gex_Rank_t jobrank, uint64_t now_ns)
{
    if (aq_mpi_attention_is_fresh(peer, now_ns))
        return true;
    aq_mpi_attention_look(peer, jobrank, now_ns);
    return false;
}

/* The peer is left alone; for as long as the first time, if messages to it have been answered for
 * long before this one. */
static void aq_mpi_attention_leave(struct aq_mpi_attention *peer, uint64_t sent_ns, uint64_t now_ns)
{
    const uint64_t left_ns = aq_mpi_attention_get(&peer->left_ns);
    unsigned times = atomic_load_explicit(&peer->leave, memory_order_relaxed);

    if (now_ns < left_ns || sent_ns < left_ns)
        return; /* one of several answers that are late together, or sent before the absence */
    if (times == 0 || sent_ns - left_ns > 16 * times * AQ_MPI_LEAVE_NS)
        times = 1;
    aq_mpi_attention_set(&peer->left_ns, now_ns + times * AQ_MPI_LEAVE_NS);
    if (times < AQ_MPI_LEAVE_TIMES)
        times *= 2;
    atomic_store_explicit(&peer->leave, times, memory_order_relaxed);
}

void aq_mpi_attention_answered(struct aq_mpi_attention *peer, uint64_t sent_ns, uint64_t now_ns,
                               bool waited)
{
    if (now_ns - sent_ns <= AQ_MPI_LATE_NS)
        aq_mpi_attention_set(&peer->answered_ns, now_ns);
    else if (waited)
        aq_mpi_attention_leave(peer, sent_ns, now_ns);
}

/* --- handlers --- */

static void aq_mpi_attention_on_question(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    const gex_AM_Arg_t args[AQ_MPI_ATTENTION_ARGS] = { high, low };

    aq_am_reply_short(token, AQ_HIDX_ATTENTION_PAID, 0, AQ_MPI_ATTENTION_ARGS, args);
}

/* A late answer to a question has cost nobody any time, so that the peer is asked again. */
static void aq_mpi_attention_on_answer(gex_Token_t token, gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    struct aq_mpi_attention *peer = aq_ptr_of_args(high, low);
    const uint64_t now_ns = aq_now_ns();

    (void)token;
    if (now_ns <= aq_mpi_attention_get(&peer->asked_ns) + AQ_MPI_LATE_NS)
        aq_mpi_attention_set(&peer->answered_ns, now_ns);
    atomic_store_explicit(&peer->asking, false, memory_order_relaxed);
}

void aq_mpi_attention_init(void)
{
    aq_am_register_internal(AQ_HIDX_ATTENTION, (gex_AM_Fn_t)aq_mpi_attention_on_question,
                            GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, AQ_MPI_ATTENTION_ARGS,
                            "question for attention");
    aq_am_register_internal(AQ_HIDX_ATTENTION_PAID, (gex_AM_Fn_t)aq_mpi_attention_on_answer,
                            GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, AQ_MPI_ATTENTION_ARGS,
                            "attention is paid");
}
