/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mix_mpi.c - MPI operations under way together with Aqueduct's: messages, collectives, windows,
 * communicators.
 * Owns      nothing that outlives a scenario
 * Threads   one
 * Uses      interop.h
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interop.h"

enum order { MPI_FIRST, AQUEDUCT_FIRST, IN_TURNS, ORDERS };

/* Below and above what an MPI sends without asking. */
static const int sizes[] = { 0, 1, 100, 5000, 70000, 1 << 20 };
#define SIZES ((int)(sizeof(sizes) / sizeof(sizes[0])))

/* Starts traffic, finishes requests and traffic in this order, and synchronizes in both libraries.
 * mpi_started: the requests have been started already. */
static void finish_both(enum order order, MPI_Request *requests, int count, uint32_t seed)
{
    const bool large = order == IN_TURNS; /* else nobody may need us while we wait in MPI */
    struct traffic t;
    int done = 0;

    traffic_start(&t, 0, seed, large);
    if (order == MPI_FIRST) {
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(it.comm);
    }
    while (order == IN_TURNS) {
        bool traffic = traffic_done(&t);

        if (!done)
            MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
        if (done && traffic)
            break;
    }
    traffic_finish(&t);
    barrier();
    traffic_arrived(0, seed, large);
    if (order == AQUEDUCT_FIRST)
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(it.comm); /* the next round's puts follow every rank's check */
}

/* --- messages --- */

static void messages_round(enum order order, uint32_t seed)
{
    unsigned char *in[SIZES], *out[SIZES];
    MPI_Request requests[2 * SIZES];

    for (int i = 0; i < SIZES; i++) {
        in[i] = calloc(1, (size_t)sizes[i] + 1);
        out[i] = malloc((size_t)sizes[i] + 1);
        fill(out[i], (size_t)sizes[i], seed + (uint32_t)(it.rank * SIZES + i));
        MPI_Irecv(in[i], sizes[i], MPI_BYTE, left(), i, it.comm, &requests[i]);
    }
    for (int i = 0; i < SIZES; i++)
        MPI_Isend(out[i], sizes[i], MPI_BYTE, right(), i, it.comm, &requests[SIZES + i]);
    finish_both(order, requests, 2 * SIZES, seed);
    for (int i = 0; i < SIZES; i++) {
        compare("an MPI message", in[i], (size_t)sizes[i], seed + (uint32_t)(left() * SIZES + i));
        free(in[i]);
        free(out[i]);
    }
}

void mix_messages(void)
{
    for (unsigned round = 0; round < it.rounds; round++)
        messages_round((enum order)(round % ORDERS), 7 * round + 1);
}

/* --- collectives --- */

#define COUNT 3000

static void check_sums(const char *what, const long *sums, long each)
{
    for (int i = 0; i < COUNT; i++) {
        const long expected = each * ((long)it.size * i + (long)it.size * (it.size - 1) / 2);

        if (!equal(what, sums[i], expected)) {
            failed("it is sum %d", i);
            return;
        }
    }
}

static void collectives_round(enum order order, uint32_t seed)
{
    long *input = malloc(COUNT * sizeof(long)), *remote = malloc(COUNT * sizeof(long));
    long *ours = malloc(COUNT * sizeof(long)), *blocking = malloc(COUNT * sizeof(long));
    int *to = malloc((size_t)it.size * sizeof(int)), *from = malloc((size_t)it.size * sizeof(int));
    unsigned char *text = malloc(AREA);
    const int root = (int)(seed % (uint32_t)it.size);
    MPI_Request requests[3];
    gex_Event_t event;

    for (int i = 0; i < COUNT; i++)
        input[i] = (long)seed * (i + it.rank);
    for (int r = 0; r < it.size; r++)
        to[r] = (int)seed + 100 * it.rank + r;
    if (it.rank == root)
        fill(text, AREA, seed);
    event = gex_Coll_ReduceToAllNB(it.tm, ours, input, GEX_DT_I64, sizeof(long), COUNT, GEX_OP_ADD,
                                   NULL, NULL, 0);
    MPI_Iallreduce(input, remote, COUNT, MPI_LONG, MPI_SUM, it.comm, &requests[0]);
    MPI_Ibcast(text, AREA, MPI_BYTE, root, it.comm, &requests[1]);
    MPI_Ialltoall(to, 1, MPI_INT, from, 1, MPI_INT, it.comm, &requests[2]);
    if (order == MPI_FIRST) { /* a blocking one in between; Aqueduct's stays under way */
        MPI_Allreduce(input, blocking, COUNT, MPI_LONG, MPI_SUM, it.comm);
        check_sums("MPI_Allreduce", blocking, (long)seed);
    }
    finish_both(order, requests, 3, seed);
    gex_Event_Wait(event);
    check_sums("gex_Coll_ReduceToAllNB", ours, (long)seed);
    check_sums("MPI_Iallreduce", remote, (long)seed);
    compare("MPI_Ibcast", text, AREA, seed);
    for (int r = 0; r < it.size; r++)
        equal("MPI_Ialltoall", from[r], (long)seed + 100 * r + it.rank);
    gex_Event_Wait(gex_Coll_BroadcastNB(it.tm, (gex_Rank_t)root, text, text, AREA, 0));
    compare("gex_Coll_BroadcastNB", text, AREA, seed);
    barrier();
    free(input), free(remote), free(ours), free(blocking), free(to), free(from), free(text);
}

void mix_collectives(void)
{
    for (unsigned round = 0; round < it.rounds; round++)
        collectives_round((enum order)(round % ORDERS), 11 * round + 3);
}

/* --- windows --- */

/* A window of the client's: [0, AREA) is put by the left neighbour, the longs behind it are added
 * to by all. */
static void windows_round(MPI_Win window, unsigned char *base, enum order order, uint32_t seed)
{
    unsigned char *src = malloc(AREA), *back = calloc(1, AREA);
    const long one = 1;
    long *count = (long *)(void *)(base + AREA);

    *count = 0;
    MPI_Win_sync(window);
    MPI_Barrier(it.comm);
    fill(src, AREA, seed + (uint32_t)it.rank);
    MPI_Put(src, (int)AREA, MPI_BYTE, right(), 0, (int)AREA, MPI_BYTE, window);
    for (int r = 0; r < it.size; r++)
        MPI_Accumulate(&one, 1, MPI_LONG, r, (MPI_Aint)AREA, 1, MPI_LONG, MPI_SUM, window);
    if (order == MPI_FIRST) {
        MPI_Win_flush_all(window);
        finish_both(order, NULL, 0, seed);
    } else {
        finish_both(order, NULL, 0, seed);
        MPI_Win_flush_all(window);
    }
    MPI_Barrier(it.comm);
    MPI_Win_sync(window);
    compare("MPI_Put", base, AREA, seed + (uint32_t)left());
    equal("MPI_Accumulate", *count, it.size);
    MPI_Get(back, (int)AREA, MPI_BYTE, right(), 0, (int)AREA, MPI_BYTE, window);
    MPI_Win_flush(right(), window);
    compare("MPI_Get", back, AREA, seed + (uint32_t)it.rank);
    MPI_Barrier(it.comm);
    free(src), free(back);
}

static void windows_fence(uint32_t seed)
{
    unsigned char *base = calloc(1, AREA), *src = malloc(AREA);
    struct traffic t;
    MPI_Win window;

    fill(src, AREA, seed + (uint32_t)it.rank);
    MPI_Win_create(base, (MPI_Aint)AREA, 1, MPI_INFO_NULL, it.comm, &window);
    MPI_Win_fence(0, window);
    traffic_start(&t, 0, seed, false);
    MPI_Put(src, (int)AREA, MPI_BYTE, right(), 0, (int)AREA, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    compare("MPI_Put between fences", base, AREA, seed + (uint32_t)left());
    traffic_finish(&t);
    barrier();
    traffic_arrived(0, seed, false);
    MPI_Win_free(&window);
    free(base), free(src);
}

void mix_windows(void)
{
    unsigned char *base;
    MPI_Win window;

    /* whole pages: MPICH 4.0 mistakes the others' addresses otherwise */
    MPI_Win_allocate((MPI_Aint)(2 * AREA), 1, MPI_INFO_NULL, it.comm, &base, &window);
    MPI_Win_lock_all(0, window);
    for (unsigned round = 0; round < it.rounds; round++)
        windows_round(window, base, (enum order)(round % ORDERS), 13 * round + 5);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    if (it.size > 1) /* Open MPI 4.1 has no way to make such a window of one rank */
        windows_fence(77);
}

/* --- communicators --- */

void mix_communicators(void)
{
    for (unsigned round = 0; round < it.rounds; round++) {
        MPI_Comm same, half;
        struct traffic t;
        int sum = 0, expected = 0;

        traffic_start(&t, 0, 17 * round + 9, false);
        MPI_Comm_dup(it.comm, &same);
        MPI_Comm_split(same, it.rank % 2, it.rank, &half);
        MPI_Allreduce(&it.rank, &sum, 1, MPI_INT, MPI_SUM, half);
        MPI_Comm_free(&half);
        MPI_Comm_free(&same);
        MPI_Barrier(it.comm);
        traffic_finish(&t);
        barrier();
        traffic_arrived(0, 17 * round + 9, false);
        for (int r = it.rank % 2; r < it.size; r += 2)
            expected += r;
        equal("MPI_Allreduce in a part", sum, expected);
        MPI_Barrier(it.comm);
    }
}

/* A receive for anything from anybody sees the program's own messages and no others. */
void mix_wildcards(void)
{
    unsigned char in[64], out[64];

    for (unsigned round = 0; round < it.rounds; round++) {
        MPI_Request requests[2];
        MPI_Status status;
        int stolen = 0, probed = 0, count = 0;

        MPI_Irecv(in, sizeof(in), MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                  &requests[0]);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &probed, MPI_STATUS_IGNORE);
        finish_both(IN_TURNS, NULL, 0, 19 * round + 2);
        MPI_Test(&requests[0], &stolen, &status);
        equal("messages that the program did not send", stolen + probed, 0);
        MPI_Barrier(it.comm);
        if (stolen)
            continue;
        fill(out, sizeof(out), round + (uint32_t)it.mpi_rank);
        MPI_Isend(out, (int)sizeof(out), MPI_BYTE, (it.mpi_rank + 1) % it.mpi_size, (int)round,
                  MPI_COMM_WORLD, &requests[1]);
        MPI_Wait(&requests[0], &status);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Get_count(&status, MPI_BYTE, &count);
        equal("the tag of a message for anybody", status.MPI_TAG, (long)round);
        equal("its bytes", count, (long)sizeof(in));
        equal("its sender", status.MPI_SOURCE, (it.mpi_rank + it.mpi_size - 1) % it.mpi_size);
        compare("a message for anybody", in, sizeof(in), round + (uint32_t)status.MPI_SOURCE);
        MPI_Barrier(it.comm);
    }
}

/* --- much of both --- */

void mix_flood(void)
{
    enum { MANY = 8, LONG = 256 << 10 };
    unsigned char *in = calloc(MANY, LONG), *out = malloc((size_t)MANY * LONG);
    MPI_Request requests[2 * MANY];
    struct traffic t[CHANNELS];
    int done = 0;

    for (unsigned round = 0; round < it.rounds; round++) {
        for (int i = 0; i < MANY; i++) {
            fill(out + i * LONG, LONG, (uint32_t)i + (uint32_t)it.rank * 31 + round);
            MPI_Irecv(in + i * LONG, LONG, MPI_BYTE, left(), 500 + i, it.comm, &requests[i]);
        }
        for (int i = 0; i < MANY; i++)
            MPI_Isend(out + i * LONG, LONG, MPI_BYTE, right(), 500 + i, it.comm,
                      &requests[MANY + i]);
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            traffic_start(&t[channel], channel, 23 * round + channel, true);
        for (done = 0; !done; gasnet_AMPoll())
            MPI_Testall(2 * MANY, requests, &done, MPI_STATUSES_IGNORE);
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            traffic_finish(&t[channel]);
        barrier();
        for (unsigned channel = 0; channel < CHANNELS; channel++)
            traffic_arrived(channel, 23 * round + channel, true);
        for (int i = 0; i < MANY; i++)
            compare("a long MPI message", in + i * LONG, LONG,
                    (uint32_t)i + (uint32_t)left() * 31 + round);
        barrier();
    }
    free(in), free(out);
}

/* --- a rank that waits in Aqueduct moves the program's messages --- */

/* The first rank waits, and has nothing to do for long enough to fall asleep. Returns how long the
 * second one's calls of MPI took, which need polls of the first. */
static double asleep_once(uint32_t seed)
{
    enum { LONG = 1 << 20 };
    unsigned char *in = calloc(1, LONG), *out = malloc(LONG);
    const int peer = 1 - it.rank;
    MPI_Request requests[2];
    double took = 0;

    fill(out, LONG, seed + (uint32_t)it.rank);
    MPI_Barrier(it.comm);
    if (it.rank == 1)
        usleep(150000);
    took = MPI_Wtime();
    if (it.rank < 2) {
        MPI_Irecv(in, LONG, MPI_BYTE, peer, 700, it.comm, &requests[0]);
        MPI_Isend(out, LONG, MPI_BYTE, peer, 700, it.comm, &requests[1]);
    }
    if (it.rank == 1)
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    took = MPI_Wtime() - took;
    barrier();
    if (it.rank == 0)
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (it.rank < 2)
        compare("a message of a rank that waits", in, LONG, seed + (uint32_t)peer);
    free(in), free(out);
    MPI_Bcast(&took, 1, MPI_DOUBLE, 1, it.comm);
    return took;
}

/* Other programs may keep the cores during one attempt, not during all. */
void mix_asleep(void)
{
    double took = 1;

    gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK);
    for (uint32_t attempt = 0; it.size > 1 && attempt < 4 && took > 0.3; attempt++)
        took = asleep_once(attempt);
    gasnet_set_waitmode(GASNET_WAIT_SPIN);
    equal("tenths of a second in MPI with a rank that waits in Aqueduct",
          it.size > 1 && took > 0.3 ? (long)(10 * took) : 0, 0);
}
