/*
 * aq_mpi_measure.c - measures MPI's windows and messages between two ranks that share no memory.
 *
 * One of the two leads. They use a small window of their own, since the client decides where the
 * pages of segments lie:
 *
 *   one-sided   the partner makes no MPI call for AQ_MPI_AWAY_NS and then sends a message. Puts,
 *               small and large, and a get that complete before this message need no MPI calls of
 *               the target. Atomic operations are tested separately: an MPI may implement them
 *               differently
 *   speed       both ranks call MPI: times of a get, an atomic operation, a message with its
 *               answer, and two eager messages or a larger one with theirs. Where a machine is
 *               too busy to measure something, a table of usual times is used
 *
 * All of it takes some milliseconds, or 40 ms on a busy machine.
 *
 * Threads   one, with the lock around MPI
 * Uses      aq_mpi_measure.h, aq_mpi_lock.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_measure.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "conduits/mpi/aq_mpi_direct.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "conduits/mpi/aq_mpi_packet.h"
#include "core/aq_job.h"
#include "base/aq_log.h"

#define AQ_MPI_AWAY_NS    UINT64_C(2000000)
#define AQ_MPI_AWAY_TRIES 3
#define AQ_MPI_AWAY_MAX_NS \
    UINT64_C(25000) /* the partner must stop calling MPI within this time; the leader begins
                     * after twice as long */
#define AQ_MPI_LATE_TESTS 8
#define AQ_MPI_TIME_NS    UINT64_C(10000000)
#define AQ_MPI_PAIR_TAG   ((int)AQ_MPI_DIRECT_TAG_END) /* above the tags of direct transfers */
#define AQ_MPI_YIELD      256u                         /* tests between two yields */
#define AQ_MPI_REPEATS    16
#define AQ_MPI_WARM       4 /* repeats before them: memory of MPI's is used for the first time */
#define AQ_MPI_STEADY \
    1.5 /* the machine was quiet if half of the times are below this multiple of the minimum */
_Static_assert(AQ_MPI_PAIR_TAG <= 32767, "every MPI has tags up to this one");

const size_t aq_mpi_sizes[AQ_MPI_SIZES] = { 8, 1024, 8192 };
const size_t aq_mpi_whole_sizes[AQ_MPI_WHOLES] = { 4352, 7168 };

/* Repeated times of one thing, ns. */
struct aq_mpi_times {
    uint64_t ns[AQ_MPI_REPEATS];
    unsigned count;
};

struct aq_mpi_pair {
    const struct aq_mpi_lib_rma *lib;
    gex_Rank_t peer;
    uint32_t other; /* the partner's rank in the window of the pair */
    /* memory for the local side of transfers; memory of this rank's window */
    char *origin, *window;
    struct aq_mpi_times get[AQ_MPI_SIZES], message[AQ_MPI_SIZES], fetch, split,
        whole[AQ_MPI_WHOLES];
};

enum aq_mpi_trial { AQ_MPI_TRY_TRANSFERS, AQ_MPI_TRY_ATOMICS, AQ_MPI_TRIALS };

/* Usual times of windows without hardware support: MPICH 4.0 over UCX's shared memory, two
 * processes, a quiet machine. */
static const struct aq_mpi_latency aq_mpi_usual = {
    .get = { 393, 500, 2500 },
    .message = { 353, 500, 1500 },
    .fetch = 400,
};

/* --- requests of the pair --- */

/* Tests the requests once: *count_out have completed. Returns true if `number` is one of them. */
static bool aq_mpi_pair_test(const struct aq_mpi_pair *pair, unsigned number, unsigned *count_out)
{
    const unsigned *done;
    bool is_done = false;

    aq_mpi_check(pair->lib->test(&done, count_out), "measuring");
    for (unsigned i = 0; i < *count_out; i++)
        is_done = is_done || done[i] == number;
    return is_done;
}

/* Waits until `wanted` requests have completed. */
static void aq_mpi_pair_wait(const struct aq_mpi_pair *pair, unsigned wanted)
{
    unsigned count;

    for (unsigned tests = 1; wanted != 0; tests++, wanted -= count) {
        aq_mpi_pair_test(pair, 0, &count);
        if (tests % AQ_MPI_YIELD == 0) /* the partner may need this core */
            sched_yield();
    }
}

static void aq_mpi_pair_send(const struct aq_mpi_pair *pair, const void *src, size_t nbytes)
{
    aq_mpi_check(pair->lib->send(pair->peer, AQ_MPI_PAIR_TAG, src, nbytes), "measuring");
    aq_mpi_pair_wait(pair, 1);
}

static void aq_mpi_pair_recv(const struct aq_mpi_pair *pair, void *dest, size_t nbytes)
{
    aq_mpi_check(pair->lib->recv(pair->peer, AQ_MPI_PAIR_TAG, dest, nbytes), "measuring");
    aq_mpi_pair_wait(pair, 1);
}

static void aq_mpi_pair_pause(uint64_t ns)
{
    const uint64_t until = aq_now_ns() + ns;

    while (aq_now_ns() < until)
        if (aq_job.oversubscribed)
            sched_yield();
}

/* --- is the window one-sided? --- */

/* The partner: sends a message, makes no MPI call for a while, sends whether it stopped in time,
 * and receives whether there is another try. */
static void aq_mpi_pair_look_away(const struct aq_mpi_pair *pair)
{
    char word = 1;

    while (word) {
        const uint64_t began = aq_now_ns();

        aq_mpi_pair_send(pair, &word, 1);
        word = aq_now_ns() - began < AQ_MPI_AWAY_MAX_NS;
        aq_mpi_pair_pause(AQ_MPI_AWAY_NS);
        aq_mpi_pair_send(pair, &word, 1);
        aq_mpi_pair_recv(pair, &word, 1);
    }
}

/* Starts the operations that are to complete while the partner makes no MPI call. Request 0
 * receives the partner's message. Returns the number of requests. */
static unsigned aq_mpi_pair_act(const struct aq_mpi_pair *pair, enum aq_mpi_trial what)
{
    const struct aq_mpi_lib_rma *lib = pair->lib;

    if (what == AQ_MPI_TRY_TRANSFERS) {
        aq_mpi_check(lib->put(AQ_MPI_WIN_PAIR, pair->other, 0, pair->origin, 8), "measuring");
        aq_mpi_check(lib->flush(AQ_MPI_WIN_PAIR, pair->other), "measuring");
        aq_mpi_check(lib->put(AQ_MPI_WIN_PAIR, pair->other, 0, pair->origin, AQ_MPI_TRIED),
                     "measuring");
        aq_mpi_check(lib->flush(AQ_MPI_WIN_PAIR, pair->other), "measuring");
        aq_mpi_check(lib->get(AQ_MPI_WIN_PAIR, pair->other, 0, pair->origin, 8), "measuring");
    } else {
        aq_mpi_check(lib->fetch(AQ_MPI_WIN_PAIR, pair->other, 0, AQ_MPI_U64, AQ_MPI_SUM,
                                pair->origin, pair->origin + 8),
                     "measuring");
    }
    aq_mpi_check(lib->flush(AQ_MPI_WIN_PAIR, pair->other), "measuring");
    return what == AQ_MPI_TRY_TRANSFERS ? 1 : 2;
}

/* The partner has just stopped calling MPI. Returns true if all operations complete before its
 * message arrives. */
static bool aq_mpi_pair_is_quick(const struct aq_mpi_pair *pair, enum aq_mpi_trial what,
                                 unsigned *pending_out)
{
    unsigned pending = aq_mpi_pair_act(pair, what), count;
    bool is_back = false;

    for (unsigned tests = 0; tests < AQ_MPI_LATE_TESTS && !is_back; tests++, pending -= count)
        is_back = aq_mpi_pair_test(pair, 0, &count);
    *pending_out = pending;
    return !is_back;
}

/* The leader. A rank may lose its processor for a while, hence several tries. Atomics are tested
 * only if transfers are one-sided. */
static bool aq_mpi_pair_is_one_sided(const struct aq_mpi_pair *pair, enum aq_mpi_trial what)
{
    bool so = false;

    for (unsigned tries = 1; tries <= AQ_MPI_AWAY_TRIES && !so; tries++) {
        unsigned pending;
        char word, was_away;

        aq_mpi_pair_recv(pair, &word, 1);
        aq_mpi_pair_pause(2 * AQ_MPI_AWAY_MAX_NS);
        aq_mpi_check(pair->lib->recv(pair->peer, AQ_MPI_PAIR_TAG, &was_away, 1), "measuring");
        so = aq_mpi_pair_is_quick(pair, what, &pending);
        aq_mpi_pair_wait(pair, pending);
        aq_mpi_check(pair->lib->flush(AQ_MPI_WIN_PAIR, pair->other), "measuring");
        so = so && was_away;
        /* tells the partner whether there is another try or, if the result is one-sided, another
         * trial */
        word = so ? what + 1 < AQ_MPI_TRIALS : tries < AQ_MPI_AWAY_TRIES;
        aq_mpi_pair_send(pair, &word, 1);
    }
    return so;
}

/* --- speeds --- */

static void aq_mpi_pair_note(struct aq_mpi_times *times, uint64_t began)
{
    times->ns[times->count++] = aq_now_ns() - began;
}

/* The partner tests a receive in the meantime. */
static void aq_mpi_pair_time_window(struct aq_mpi_pair *pair, unsigned i)
{
    const struct aq_mpi_lib_rma *lib = pair->lib;
    const uint64_t began = aq_now_ns();

    aq_mpi_check(lib->rget(AQ_MPI_WIN_PAIR, pair->other, 0, pair->origin, aq_mpi_sizes[i]),
                 "measuring");
    aq_mpi_pair_wait(pair, 1);
    aq_mpi_pair_note(&pair->get[i], began);
}

static void aq_mpi_pair_time_fetch(struct aq_mpi_pair *pair)
{
    const struct aq_mpi_lib_rma *lib = pair->lib;
    const uint64_t began = aq_now_ns();

    aq_mpi_check(lib->fetch(AQ_MPI_WIN_PAIR, pair->other, 0, AQ_MPI_U64, AQ_MPI_SUM, pair->origin,
                            pair->origin + 8),
                 "measuring");
    aq_mpi_pair_wait(pair, 1);
    aq_mpi_check(lib->flush(AQ_MPI_WIN_PAIR, pair->other), "measuring");
    aq_mpi_pair_note(&pair->fetch, began);
}

/* Two eager messages one way and 8 bytes back. */
static void aq_mpi_pair_time_split(struct aq_mpi_pair *pair)
{
    const uint64_t began = aq_now_ns();

    pair->origin[0] = 2;
    aq_mpi_pair_send(pair, pair->origin, AQ_MPI_EAGER);
    aq_mpi_pair_send(pair, pair->origin, AQ_MPI_EAGER);
    aq_mpi_pair_recv(pair, pair->origin, 8);
    aq_mpi_pair_note(&pair->split, began);
}

/* Data one way and 8 bytes back. The first byte says how many messages an answer follows; 0: this
 * is the last message. */
static void aq_mpi_pair_time_message(const struct aq_mpi_pair *pair, size_t nbytes,
                                     struct aq_mpi_times *times)
{
    const uint64_t began = aq_now_ns();

    pair->origin[0] = 1;
    aq_mpi_pair_send(pair, pair->origin, nbytes);
    aq_mpi_pair_recv(pair, pair->origin, 8);
    aq_mpi_pair_note(times, began);
}

static void aq_mpi_pair_time_all(struct aq_mpi_pair *pair)
{
    aq_mpi_pair_time_fetch(pair);
    aq_mpi_pair_time_split(pair);
    for (unsigned i = 0; i < AQ_MPI_WHOLES; i++)
        aq_mpi_pair_time_message(pair, aq_mpi_whole_sizes[i], &pair->whole[i]);
    for (unsigned i = 0; i < AQ_MPI_SIZES; i++) {
        aq_mpi_pair_time_window(pair, i);
        aq_mpi_pair_time_message(pair, aq_mpi_sizes[i], &pair->message[i]);
    }
}

static void aq_mpi_pair_forget(struct aq_mpi_pair *pair)
{
    pair->fetch.count = pair->split.count = 0;
    for (unsigned i = 0; i < AQ_MPI_WHOLES; i++)
        pair->whole[i].count = 0;
    for (unsigned i = 0; i < AQ_MPI_SIZES; i++)
        pair->get[i].count = pair->message[i].count = 0;
}

/* Every size is measured at least once; on a busy machine not much more often. */
static void aq_mpi_pair_time(struct aq_mpi_pair *pair)
{
    uint64_t began = aq_now_ns();

    for (unsigned repeat = 0; repeat < AQ_MPI_WARM && aq_now_ns() - began < AQ_MPI_TIME_NS;
         repeat++)
        aq_mpi_pair_time_all(pair);
    aq_mpi_pair_forget(pair);
    began = aq_now_ns();
    for (unsigned repeat = 0; repeat < AQ_MPI_REPEATS && aq_now_ns() - began < AQ_MPI_TIME_NS;
         repeat++)
        aq_mpi_pair_time_all(pair);
    pair->origin[0] = 0;
    aq_mpi_pair_send(pair, pair->origin, 8);
}

static void aq_mpi_pair_serve(const struct aq_mpi_pair *pair)
{
    for (;;) {
        aq_mpi_pair_recv(pair, pair->origin, aq_mpi_sizes[AQ_MPI_SIZES - 1]);
        if (pair->origin[0] == 0)
            return;
        if (pair->origin[0] == 2)
            aq_mpi_pair_recv(pair, pair->origin, AQ_MPI_EAGER);
        aq_mpi_pair_send(pair, pair->origin, 8);
    }
}

/* --- evaluation --- */

/* Returns the minimum; sets *steady_io to false if there are few times or half of them are far from
 * it. */
static uint64_t aq_mpi_pair_min(const struct aq_mpi_times *times, bool *steady_io)
{
    uint64_t min = UINT64_MAX;
    unsigned close = 0;

    for (unsigned i = 0; i < times->count; i++)
        min = times->ns[i] < min ? times->ns[i] : min;
    for (unsigned i = 0; i < times->count; i++)
        close += (double)times->ns[i] <= AQ_MPI_STEADY * (double)min;
    *steady_io = *steady_io && close >= AQ_MPI_REPEATS / 4 && 2 * close >= times->count;
    return min;
}

/* What is compared with each other is usual or measured together. */
static struct aq_mpi_latency aq_mpi_pair_times(const struct aq_mpi_pair *pair)
{
    struct aq_mpi_latency min;
    bool steady = true, split_steady = true, fetch_steady = true;

    for (unsigned i = 0; i < AQ_MPI_SIZES; i++) {
        bool size_steady = true;

        min.get[i] = aq_mpi_pair_min(&pair->get[i], &size_steady);
        min.message[i] = aq_mpi_pair_min(&pair->message[i], &size_steady);
        steady = steady && size_steady;
        split_steady = split_steady && (i != AQ_MPI_SPLIT_SIZE || size_steady);
        fetch_steady = fetch_steady && (i != 0 || size_steady);
        if (size_steady)
            continue;
        min.get[i] = aq_mpi_usual.get[i];
        min.message[i] = aq_mpi_usual.message[i];
    }
    min.fetch = aq_mpi_pair_min(&pair->fetch, &fetch_steady);
    if (!fetch_steady)
        min.fetch = min.message[0] * aq_mpi_usual.fetch / aq_mpi_usual.message[0];
    min.split = aq_mpi_pair_min(&pair->split, &split_steady);
    if (!split_steady)
        min.split = UINT64_MAX;
    for (unsigned i = 0; i < AQ_MPI_WHOLES; i++) {
        bool whole_steady = split_steady;

        min.whole[i] = aq_mpi_pair_min(&pair->whole[i], &whole_steady);
        if (!whole_steady)
            min.whole[i] = UINT64_MAX;
    }
    if (!steady || !fetch_steady)
        AQ_LOG(INFO, MPI,
               "the machine is too busy to measure all transfers: usual times stand in for some");
    return min;
}

/* --- both sides --- */

static void aq_mpi_pair_lead(struct aq_mpi_pair *pair, struct aq_mpi_cost *cost)
{
    cost->one_sided = aq_mpi_pair_is_one_sided(pair, AQ_MPI_TRY_TRANSFERS);
    cost->atomics_one_sided = cost->one_sided && aq_mpi_pair_is_one_sided(pair, AQ_MPI_TRY_ATOMICS);
    aq_mpi_pair_time(pair);
    cost->min = aq_mpi_pair_times(pair);
    cost->known = true;
}

void aq_mpi_measure(const struct aq_mpi_lib_rma *lib, gex_Rank_t peer, bool leads,
                    struct aq_mpi_cost *cost_out)
{
    const size_t max = AQ_MPI_TRIED;
    struct aq_mpi_pair pair = { .lib = lib, .peer = peer };
    bool usable = false;
    uint32_t me = 0;

    *cost_out = (struct aq_mpi_cost){ .known = false };
    pair.origin = aligned_alloc(AQ_CACHE_LINE, 2 * max);
    if (pair.origin == NULL)
        aq_fatal("mpi: no memory to measure transfers");
    memset(pair.origin, 0, 2 * max);
    pair.window = pair.origin + max;
    if (lib->open_pair(peer, pair.window, max, &usable, &me) == 0 && usable) {
        pair.other = 1 - me;
        if (leads) {
            aq_mpi_pair_lead(&pair, cost_out);
        } else {
            aq_mpi_pair_look_away(&pair);
            aq_mpi_pair_serve(&pair);
        }
        aq_mpi_check(lib->close(AQ_MPI_WIN_PAIR), "measuring");
    }
    free(pair.origin);
}
