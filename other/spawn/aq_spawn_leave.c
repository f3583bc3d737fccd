/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_leave.c - the last steps of a rank that its launcher's library has to say goodbye to.
 * Threads   any, any context: atomics, futexes and write only; the calls are made by the minder
 * How       one host: ranks wait for each other at the exit, looking at the board, and leave together.
 *           Several: the hosts tell each other (aq_spawn_link.h). Where they cannot, ranks that come to the
 *           exit meet those of other hosts in the launcher's fence, and who does not come within the exit
 *           timeout is left to the launcher's abort
 */
#include <unistd.h>

#include "other/spawn/aq_ending.h"
#include "other/spawn/aq_spawn_link.h"
#include "other/spawn/aq_spawn_minder_internal.h"

#define AQ_LEAVE_WHOLE_MS 300 /* for the hosts to find each other */

/* all ranks of the host have come to the exit, left or died */
static bool aq_minder_all_came(void)
{
    for (uint32_t i = 0; i < aq_minder.board->size; i++) {
        struct aq_board_rank *r = &aq_minder.board->rank[i];

        /* acquire: pairs with the release in aq_board_publish_exit() */
        if (atomic_load_explicit(&r->state, memory_order_acquire) < AQ_RANK_LEFT &&
            !aq_minder_dead(atomic_load_explicit(&r->pid, memory_order_relaxed)))
            return false;
    }
    return true;
}

/* The launcher may take the first process that ends badly as a reason to kill the others, so ranks
 * go together; the first rank's minder asks and kills in the meantime. */
static void aq_minder_wait_for_others(void)
{
    uint64_t end =
        aq_board_now_ns() + (aq_minder.board->exit_timeout_ms + AQ_MINDER_LAST_MS) * 1000000ull;

    while (!aq_minder_all_came() && aq_board_now_ns() < end) {
        /* acquire: pairs with the release in aq_board_publish_exit() */
        uint32_t seen = atomic_load_explicit(&aq_minder.board->exit_seen, memory_order_acquire);

        if (!aq_minder_all_came())
            aq_board_wait_word(&aq_minder.board->exit_seen, seen, 20);
    }
}

static bool aq_minder_request(enum aq_minder_request want)
{
    uint64_t one = 1;

    /* release: pairs with the acquire in aq_minder_serve() */
    atomic_store_explicit(&aq_minder.request, (uint32_t)want, memory_order_release);
    return write(aq_minder.own_fd, &one, sizeof(one)) > 0; /* else closed by the client */
}

/* Wait until the ranks of other hosts have come to the exit, too. False: have the launcher end them,
 * because nobody else will. */
static bool aq_minder_meet(void)
{
    uint64_t begin = aq_board_now_ns();
    uint64_t end = begin + (aq_minder.board->exit_timeout_ms + 2 * AQ_MINDER_LAST_MS) * 1000000ull;

    if (aq_minder_alone())
        return true;
    /* a short job: the hosts may just be about to find each other */
    while (!aq_link_is_whole() && aq_board_now_ns() < begin + AQ_LEAVE_WHOLE_MS * 1000000ull)
        aq_link_wait_whole(AQ_MINDER_ENDING_MS);
    if (!aq_link_is_whole())
        aq_minder_request(AQ_MINDER_MEET);
    /* acquire: pairs with the release in aq_minder_meet_main() */
    while (!aq_link_is_done() && atomic_load_explicit(&aq_minder.met, memory_order_acquire) == 0) {
        if (aq_board_now_ns() >= end)
            return aq_link_is_whole();
        aq_link_wait_done(AQ_MINDER_ENDING_MS);
    }
    return true;
}

/* The steps below, each of which is bounded; returns the job's exit code. */
static int aq_minder_say_goodbye(int code, enum aq_leave how)
{
    bool orderly = how != AQ_LEAVE_ABORT;
    uint64_t end;
    uint32_t now;

    if (orderly) {
        aq_minder_wait_for_others();
        orderly = aq_minder_meet() && !aq_link_has_silent();
        /* others may have published larger codes, or the job's was settled: everybody returns the same */
        code = atomic_load_explicit(&aq_minder.board->exit_code, memory_order_relaxed);
    }
    if (orderly && aq_minder.ops->part != NULL)
        aq_minder.ops->part(how);
    end = aq_board_now_ns() + AQ_MINDER_CALL_MS * 1000000ull;
    /* relaxed: the request is released after it */
    atomic_store_explicit(&aq_minder.code, code, memory_order_relaxed);
    if (!aq_minder_request(orderly ? AQ_MINDER_FINI : AQ_MINDER_ABORT))
        return code; /* the launcher sees us end */
    /* acquire: the library's work is done */
    while ((now = atomic_load_explicit(&aq_minder.request, memory_order_acquire)) !=
               AQ_MINDER_DONE &&
           aq_board_now_ns() < end)
        aq_board_wait_word(&aq_minder.request, now, 50);
    return code;
}

int aq_minder_leave(int code, enum aq_leave how)
{
    if (!aq_minder.running)
        return code;
    if (how == AQ_LEAVE_ABORT)
        return aq_minder_say_goodbye(code, how);
    /* relaxed, both: a flag on its own, see aq_minder_sign_of_life(); a first sign now, since its thread may be busy */
    atomic_store_explicit(&aq_minder.leaving, true, memory_order_relaxed);
    aq_ending_spare(&aq_minder.board->rank[aq_minder.slot], AQ_MINDER_SPARE_MS);
    code = aq_minder_say_goodbye(code, how);
    atomic_store_explicit(&aq_minder.leaving, false, memory_order_relaxed);
    return code;
}
