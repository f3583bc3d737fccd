/*
 * aq_mpi_choose.c - by which way transfers go: a few milliseconds of measuring when segments are attached.
 *
 * What a window is worth differs from one MPI, network and setting to the next, and no table would know them all. Rank 0
 * and one that is far from it, on another host if there is one, try on a small window of their own:
 *
 *   one-sided   the far one looks away from MPI, by agreement, for AQ_MPI_AWAY_NS, and sends a word when it is back: a put
 *               and a get that complete before that comes need no attention. Such a window serves every transfer,
 *               whatever messages would take: that the target need not look is worth more than a microsecond. Else
 *               puts and atomics stay with messages: they are done only when flushed, which would hold up this rank,
 *               inside MPI, until the target looks
 *   speed       both look: a window serves gets of the sizes at which it is not slower than a message and its answer. On a machine
 *               too busy to tell, a table of what is usual stands in for the times
 *
 * What rank 0 finds holds for all. The segments' own memory is not touched: its pages are the client's to place.
 *
 * Threads   one; collective over the job
 * Uses      aq_mpi_rma.h, core/aq_env.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conduits/mpi/aq_mpi_rma.h"
#include "core/aq_env.h"
#include "core/aq_job.h"
#include "core/aq_log.h"
#include "core/aq_rc.h"

#define AQ_MPI_AWAY_NS UINT64_C(2000000)
#define AQ_MPI_AWAY_TRIES 3
#define AQ_MPI_LEAVE_NS UINT64_C(25000) /* to be away within: twice that later the other side begins */
#define AQ_MPI_LATE_TESTS 8
#define AQ_MPI_TIME_NS UINT64_C(10000000)
#define AQ_MPI_PAIR_TAG 1000   /* above those of direct transfers */
#define AQ_MPI_YIELD 256u        /* tests between them */
#define AQ_MPI_SIZES 5
#define AQ_MPI_REPEATS 12
#define AQ_MPI_SLACK 1.3       /* an active message with its answer, over the same of bare MPI: what a window may take */
#define AQ_MPI_STEADY 1.5      /* half of the times are below so much of the least: the machine was quiet */

/* What is measured, and the least size, 2 to that power, that it stands for. */
static const size_t aq_mpi_sizes[AQ_MPI_SIZES] = { 8, 1024, 8192, 65536, 262144 };
static const unsigned aq_mpi_stands_from[AQ_MPI_SIZES + 1] = { 0, 9, 12, 15, 17, 64 };

/* Repeated times of one thing, ns. */
struct aq_mpi_times {
    uint64_t ns[AQ_MPI_REPEATS];
    unsigned count;
};

enum { AQ_MPI_RMA_AUTO, AQ_MPI_RMA_WINDOW, AQ_MPI_RMA_MESSAGES }; /* order of the words in aq_env.def */

/* Least times, ns. */
struct aq_mpi_least {
    uint64_t get[AQ_MPI_SIZES], message[AQ_MPI_SIZES];
};

struct aq_mpi_pair {
    gex_Rank_t peer;
    uint32_t other; /* its rank in the window of the two */
    bool leads;     /* this is rank 0 */
    char *near, *far; /* memory of the other side of transfers, and of this one's window */
    struct aq_mpi_times get[AQ_MPI_SIZES], message[AQ_MPI_SIZES];
};

/* What windows without hardware behind them show: MPICH 4.0 over UCX's shared memory, two processes, a quiet machine. */
static const struct aq_mpi_least aq_mpi_usual = {
    .get = { 393, 500, 2500, 9000, 33000 },
    .message = { 353, 500, 1500, 7500, 23000 },
};

/* What rank 0 tells the others. */
struct aq_mpi_verdict {
    struct aq_mpi_paths paths;
    bool window; /* of the sender's */
};

/* --- between the two --- */

/* Test the requests once: is the one of this number done? *count_out of them are. */
static bool aq_mpi_pair_test(unsigned number, unsigned *count_out)
{
    const unsigned *done;
    bool is_done = false;

    aq_mpi_check(aq_mpi_rma.lib->test(&done, count_out), "measuring");
    for (unsigned i = 0; i < *count_out; i++)
        is_done = is_done || done[i] == number;
    return is_done;
}

/* Until so many requests are done. */
static void aq_mpi_pair_wait(unsigned wanted)
{
    unsigned count;

    for (unsigned tests = 1; wanted != 0; tests++, wanted -= count) {
        aq_mpi_pair_test(0, &count);
        if (tests % AQ_MPI_YIELD == 0) /* the other one may need this core */
            sched_yield();
    }
}

static void aq_mpi_pair_send(const struct aq_mpi_pair *pair, const void *src, size_t nbytes)
{
    aq_mpi_check(aq_mpi_rma.lib->send(pair->peer, AQ_MPI_PAIR_TAG, src, nbytes), "measuring");
    aq_mpi_pair_wait(1);
}

static void aq_mpi_pair_recv(const struct aq_mpi_pair *pair, void *dest, size_t nbytes)
{
    aq_mpi_check(aq_mpi_rma.lib->recv(pair->peer, AQ_MPI_PAIR_TAG, dest, nbytes), "measuring");
    aq_mpi_pair_wait(1);
}

static void aq_mpi_pair_pause(uint64_t ns)
{
    const uint64_t until = aq_now_ns() + ns;

    while (aq_now_ns() < until)
        if (aq_job.oversubscribed)
            sched_yield();
}

/* --- does the window need the target's attention? --- */

/* The far one's part: say so, look away, say that it is back and whether it was away in time, ask whether that was all. */
static void aq_mpi_pair_look_away(const struct aq_mpi_pair *pair)
{
    char word = 1;

    while (word) {
        const uint64_t began = aq_now_ns();

        aq_mpi_pair_send(pair, &word, 1);
        word = aq_now_ns() - began < AQ_MPI_LEAVE_NS;
        aq_mpi_pair_pause(AQ_MPI_AWAY_NS);
        aq_mpi_pair_send(pair, &word, 1);
        aq_mpi_pair_recv(pair, &word, 1);
    }
}

/* The far one has just looked away. Are a put and a get done while its word that it is back, request 0, has not come? */
static bool aq_mpi_pair_is_quick(const struct aq_mpi_pair *pair, unsigned *pending_out)
{
    const struct aq_mpi_lib_rma *lib = aq_mpi_rma.lib;
    unsigned count = 0;

    aq_mpi_check(lib->put(AQ_MPI_WIN_PAIR, pair->other, 0, pair->near, 8), "measuring");
    aq_mpi_check(lib->flush(AQ_MPI_WIN_PAIR, pair->other), "measuring");
    aq_mpi_check(lib->get(AQ_MPI_WIN_PAIR, pair->other, 0, pair->near, 8), "measuring");
    aq_mpi_check(lib->flush(AQ_MPI_WIN_PAIR, pair->other), "measuring");
    for (unsigned tests = 0; tests < AQ_MPI_LATE_TESTS && count == 0; tests++)
        aq_mpi_pair_test(0, &count);
    *pending_out = 1 - count;
    return count == 0;
}

/* Rank 0's part. A rank that loses its processor for a while must not spoil it: more than one try. */
static bool aq_mpi_pair_is_one_sided(const struct aq_mpi_pair *pair)
{
    bool so = false;

    for (unsigned tries = 1; tries <= AQ_MPI_AWAY_TRIES && !so; tries++) {
        unsigned pending;
        char word, was_away;

        aq_mpi_pair_recv(pair, &word, 1);
        aq_mpi_pair_pause(2 * AQ_MPI_LEAVE_NS);
        aq_mpi_check(aq_mpi_rma.lib->recv(pair->peer, AQ_MPI_PAIR_TAG, &was_away, 1), "measuring");
        so = aq_mpi_pair_is_quick(pair, &pending);
        aq_mpi_pair_wait(pending);
        aq_mpi_check(aq_mpi_rma.lib->flush(AQ_MPI_WIN_PAIR, pair->other), "measuring");
        so = so && was_away;
        word = !so && tries < AQ_MPI_AWAY_TRIES;
        aq_mpi_pair_send(pair, &word, 1);
    }
    return so;
}

/* --- speeds --- */

static void aq_mpi_pair_note(struct aq_mpi_times *times, uint64_t began)
{
    times->ns[times->count++] = aq_now_ns() - began;
}

/* The far one tests a receive meanwhile. */
static void aq_mpi_pair_time_window(struct aq_mpi_pair *pair, unsigned i)
{
    const struct aq_mpi_lib_rma *lib = aq_mpi_rma.lib;
    const uint64_t began = aq_now_ns();

    aq_mpi_check(lib->rget(AQ_MPI_WIN_PAIR, pair->other, 0, pair->near, aq_mpi_sizes[i]), "measuring");
    aq_mpi_pair_wait(1);
    aq_mpi_pair_note(&pair->get[i], began);
}

/* Data one way and a word back, as a message with its answer costs. The first byte says whether more comes. */
static void aq_mpi_pair_time_message(struct aq_mpi_pair *pair, unsigned i)
{
    const uint64_t began = aq_now_ns();

    pair->near[0] = 1;
    aq_mpi_pair_send(pair, pair->near, aq_mpi_sizes[i]);
    aq_mpi_pair_recv(pair, pair->near, 8);
    aq_mpi_pair_note(&pair->message[i], began);
}

/* All sizes at least once; on a machine that is busy otherwise, not much more. */
static void aq_mpi_pair_time(struct aq_mpi_pair *pair)
{
    const uint64_t began = aq_now_ns();

    for (unsigned repeat = 0; repeat < AQ_MPI_REPEATS && aq_now_ns() - began < AQ_MPI_TIME_NS; repeat++) {
        for (unsigned i = 0; i < AQ_MPI_SIZES; i++) {
            aq_mpi_pair_time_window(pair, i);
            aq_mpi_pair_time_message(pair, i);
        }
    }
    pair->near[0] = 0;
    aq_mpi_pair_send(pair, pair->near, 8);
}

static void aq_mpi_pair_serve(const struct aq_mpi_pair *pair)
{
    for (;;) {
        aq_mpi_pair_recv(pair, pair->near, aq_mpi_sizes[AQ_MPI_SIZES - 1]);
        if (pair->near[0] == 0)
            return;
        aq_mpi_pair_send(pair, pair->near, 8);
    }
}

/* --- what follows from it --- */

/* The least of them; *steady_io becomes false if most were far from it. */
static uint64_t aq_mpi_choose_least(const struct aq_mpi_times *times, bool *steady_io)
{
    uint64_t least = UINT64_MAX;
    unsigned close = 0;

    for (unsigned i = 0; i < times->count; i++)
        least = times->ns[i] < least ? times->ns[i] : least;
    for (unsigned i = 0; i < times->count; i++)
        close += (double)times->ns[i] <= AQ_MPI_STEADY * (double)least;
    *steady_io = *steady_io && 2 * close >= AQ_MPI_REPEATS;
    return least;
}

static struct aq_mpi_least aq_mpi_choose_times(const struct aq_mpi_pair *pair)
{
    struct aq_mpi_least least;
    bool steady = true;

    for (unsigned i = 0; i < AQ_MPI_SIZES; i++) {
        least.get[i] = aq_mpi_choose_least(&pair->get[i], &steady);
        least.message[i] = aq_mpi_choose_least(&pair->message[i], &steady);
    }
    if (!steady)
        AQ_LOG(INFO, MPI, "the machine is too busy to measure transfers: usual times stand in for measured ones");
    return steady ? least : aq_mpi_usual;
}

/* The sizes at which the window is not slower. */
static uint64_t aq_mpi_choose_sizes(const uint64_t *window, const uint64_t *message)
{
    uint64_t sizes = 0;

    for (unsigned i = 0; i < AQ_MPI_SIZES; i++)
        for (unsigned power = aq_mpi_stands_from[i]; power < aq_mpi_stands_from[i + 1]; power++)
            if ((double)window[i] <= AQ_MPI_SLACK * (double)message[i])
                sizes |= UINT64_C(1) << power;
    return sizes;
}

/* As the lead: what the window of the two is worth. */
static void aq_mpi_choose_lead(struct aq_mpi_pair *pair, struct aq_mpi_paths *paths)
{
    struct aq_mpi_least least;

    paths->one_sided = paths->atomics = aq_mpi_pair_is_one_sided(pair);
    aq_mpi_pair_time(pair);
    least = aq_mpi_choose_times(pair);
    paths->put = paths->one_sided ? UINT64_MAX : 0;
    paths->get = paths->one_sided ? UINT64_MAX : aq_mpi_choose_sizes(least.get, least.message);
    for (unsigned i = 0; i < AQ_MPI_SIZES; i++)
        AQ_LOG(INFO, MPI, "%zu bytes: get %llu ns by a window, %llu ns by a message", aq_mpi_sizes[i],
               (unsigned long long)least.get[i], (unsigned long long)least.message[i]);
    AQ_LOG(INFO, MPI, "the window %s", paths->one_sided ? "is one-sided" : "needs its target to look");
}

/* The two of them; nobody else. */
static void aq_mpi_choose_measure(gex_Rank_t peer, struct aq_mpi_paths *paths)
{
    const size_t most = aq_mpi_sizes[AQ_MPI_SIZES - 1];
    struct aq_mpi_pair pair = { .peer = aq_job.rank == 0 ? peer : 0, .leads = aq_job.rank == 0 };
    bool usable = false;
    uint32_t me = 0;

    pair.near = malloc(2 * most);
    if (pair.near == NULL)
        aq_fatal("mpi: no memory to measure transfers");
    memset(pair.near, 0, 2 * most);
    pair.far = pair.near + most;
    aq_mpi_enter();
    if (aq_mpi_rma.lib->open_pair(pair.peer, pair.far, most, &usable, &me) == 0 && usable) {
        pair.other = 1 - me;
        if (pair.leads) {
            aq_mpi_choose_lead(&pair, paths);
        } else {
            aq_mpi_pair_look_away(&pair);
            aq_mpi_pair_serve(&pair);
        }
        aq_mpi_check(aq_mpi_rma.lib->close(AQ_MPI_WIN_PAIR), "measuring");
    }
    aq_mpi_leave();
    free(pair.near);
}

/* The first rank that shares no memory with rank 0, on another host if there is one. */
static gex_Rank_t aq_mpi_choose_peer(void)
{
    gex_Rank_t peer = 0;

    for (gex_Rank_t rank = 1; rank < aq_job.size; rank++) {
        if (aq_job.host_of[rank] != aq_job.host_of[0])
            return rank;
        if (peer == 0 && aq_job.nbrhd_of[rank] != aq_job.nbrhd_of[0])
            peer = rank;
    }
    return peer;
}

void aq_mpi_choose_none(struct aq_mpi_paths *paths)
{
    *paths = (struct aq_mpi_paths){ .direct = (size_t)aq_env_size(AQ_ENV_MPI_DIRECT) };
}

/* Sizes of at least so many bytes; between powers of two, from the next one on. */
static uint64_t aq_mpi_choose_from(uint64_t bytes)
{
    return bytes <= 1 ? UINT64_MAX : bytes > UINT64_C(1) << 62 ? 0 : UINT64_MAX << (64 - __builtin_clzll(bytes - 1));
}

/* "0 B and more", "512 B to 4 KB", "never": the first such range. */
static const char *aq_mpi_choose_text(uint64_t sizes, char *text, size_t len)
{
    char from[32], to[32];
    unsigned low, high;

    if (sizes == 0)
        return "never";
    low = (unsigned)__builtin_ctzll(sizes);
    high = ~(sizes >> low) == 0 ? 64 - low : (unsigned)__builtin_ctzll(~(sizes >> low));
    aq_env_format_size(low == 0 ? 0 : UINT64_C(1) << low, from, sizeof(from));
    if (low + high >= 64)
        snprintf(text, len, "from %s on", from);
    else
        snprintf(text, len, "from %s to %s%s", from, aq_env_format_size(UINT64_C(1) << (low + high), to, sizeof(to)),
                 sizes >> (low + high) != 0 ? " and some larger" : "");
    return text;
}

/* What the user says, over what was measured. */
static void aq_mpi_choose_settings(struct aq_mpi_paths *paths)
{
    const unsigned atomics = aq_env_choice(AQ_ENV_MPI_ATOMICS);
    char text[128];

    if (aq_env_choice(AQ_ENV_MPI_RMA) == AQ_MPI_RMA_WINDOW)
        paths->put = paths->get = UINT64_MAX;
    if (aq_env_is_set(AQ_ENV_MPI_PUT_FROM))
        paths->put = aq_mpi_choose_from(aq_env_size(AQ_ENV_MPI_PUT_FROM));
    else
        aq_env_set_computed(AQ_ENV_MPI_PUT_FROM, aq_mpi_choose_text(paths->put, text, sizeof(text)));
    if (aq_env_is_set(AQ_ENV_MPI_GET_FROM))
        paths->get = aq_mpi_choose_from(aq_env_size(AQ_ENV_MPI_GET_FROM));
    else
        aq_env_set_computed(AQ_ENV_MPI_GET_FROM, aq_mpi_choose_text(paths->get, text, sizeof(text)));
    if (atomics != AQ_MPI_RMA_AUTO)
        paths->atomics = atomics == AQ_MPI_RMA_WINDOW;
}

static void aq_mpi_choose_tell(const struct aq_mpi_paths *paths)
{
    char put[128], get[128];

    if (aq_job.rank == 0)
        AQ_LOG(INFO, MPI, "transfers: puts by a window %s, gets %s, else directly from %zu bytes on; atomics by %s",
               aq_mpi_choose_text(paths->put, put, sizeof(put)), aq_mpi_choose_text(paths->get, get, sizeof(get)),
               paths->direct, paths->atomics ? "the window where they may" : "messages");
}

bool aq_mpi_choose_wants_window(void)
{
    return aq_env_choice(AQ_ENV_MPI_RMA) != AQ_MPI_RMA_MESSAGES;
}

int aq_mpi_choose(bool window)
{
    const gex_Rank_t peer = aq_mpi_choose_peer();
    struct aq_mpi_verdict mine = { .window = window };
    struct aq_mpi_verdict *all = malloc(aq_job.size * sizeof(*all));

    if (all == NULL)
        return aq_fail(AQ_ERR_NOMEM, "mpi: no memory to agree on transfers with %u ranks", aq_job.size);
    aq_mpi_choose_none(&mine.paths);
    if (window && (aq_job.rank == 0 || aq_job.rank == peer))
        aq_mpi_choose_measure(peer, &mine.paths);
    if (aq_job_allgather(&mine, sizeof(mine), all) != AQ_OK) {
        free(all);
        return AQ_ERR_SYS;
    }
    mine.paths = all[0].paths;
    mine.paths.window = true;
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++)
        mine.paths.window = mine.paths.window && all[rank].window;
    free(all);
    if (mine.paths.window)
        aq_mpi_choose_settings(&mine.paths);
    else
        aq_mpi_choose_none(&mine.paths);
    aq_mpi_rma.paths = mine.paths;
    aq_mpi_choose_tell(&mine.paths);
    return AQ_OK;
}
