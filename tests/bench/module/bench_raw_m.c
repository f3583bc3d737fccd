/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_raw_m.c - ping-pong, flood, stream, one-sided transfers and collectives by bare MPI.
 * Owns      a communicator, a window, two private buffers: from open to close
 * Threads   the one that calls MPI in the process
 * Uses      MPI-3, bench_raw.h
 *
 * While rank 0 puts, gets or adds, rank 1 waits in MPI_Recv for the word that it is over, so that
 * an MPI which needs the target for progress has it. Streams and floods have their receives posted
 * before the messages come, and end with an empty message back: all has arrived.
 *
 * The window lies over memory of the program's own (MPI_Win_create), as those over segments do.
 * Memory that the MPI has allocated may be mapped by all ranks of a host, and then a put is a store
 * and no limit of a network; AQ_BENCH_WINDOW=allocate measures against such a window. An MPI that
 * makes no window, as Open MPI 4 over TCP for threads, is measured by messages alone.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_raw.h"

#define TAG_DATA  1
#define TAG_END   2
#define TAG_READY 3

#define WINDOW       64                  /* messages under way, at most */
#define WINDOW_BYTES ((uint64_t)4 << 20) /* and bytes; at least two messages */
#define HUGE_PAGE    ((size_t)2 << 20)

static struct {
    MPI_Comm comm;
    MPI_Win window; /* MPI_WIN_NULL: MPI makes none */
    int rank;
    unsigned char *base, *src, *dst;
    unsigned char *own; /* the window's memory, if it is not MPI's */
} raw;

/* --- opening --- */

static unsigned char *raw_memory(size_t size, int value)
{
    unsigned char *p = aligned_alloc(HUGE_PAGE, (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);

    if (p != NULL)
        memset(p, value, size);
    return p;
}

/* What rank 0 puts into rank 1's window it must get back: a limit that moves nothing is none. */
static bool raw_check(void)
{
    bool same = true;

    if (raw.rank == 0) {
        memset(raw.src, 0x5a, 4096);
        MPI_Put(raw.src, 4096, MPI_BYTE, 1, 0, 4096, MPI_BYTE, raw.window);
        MPI_Win_flush(1, raw.window);
        MPI_Get(raw.dst, 4096, MPI_BYTE, 1, 0, 4096, MPI_BYTE, raw.window);
        MPI_Win_flush(1, raw.window);
        same = memcmp(raw.src, raw.dst, 4096) == 0;
    }
    MPI_Barrier(raw.comm);
    return same;
}

static int raw_make_window(size_t size)
{
    const char *kind = getenv("AQ_BENCH_WINDOW");

    if (kind != NULL && strcmp(kind, "allocate") == 0)
        return MPI_Win_allocate((MPI_Aint)size, 1, MPI_INFO_NULL, raw.comm, &raw.base, &raw.window);
    raw.base = raw.own = raw_memory(size, 3);
    if (raw.own == NULL)
        return MPI_ERR_NO_MEM;
    return MPI_Win_create(raw.base, (MPI_Aint)size, 1, MPI_INFO_NULL, raw.comm, &raw.window);
}

/* Collective. Makes the window if MPI can on both ranks. Returns what is wrong, or NULL. */
static const char *raw_open_window(size_t size)
{
    int error, made, all;

    raw.window = MPI_WIN_NULL;
    MPI_Comm_set_errhandler(raw.comm, MPI_ERRORS_RETURN);
    error = raw_make_window(size);
    MPI_Comm_set_errhandler(raw.comm, MPI_ERRORS_ARE_FATAL);
    made = error == MPI_SUCCESS;
    MPI_Allreduce(&made, &all, 1, MPI_INT, MPI_MIN, raw.comm);
    if (!made)
        raw.window = MPI_WIN_NULL;
    if (made != all || error == MPI_ERR_NO_MEM)
        return "no window can be made";
    if (!all) {
        if (raw.rank == 0)
            fprintf(stderr, "aq-bench: this MPI makes no window; messages are the only limit\n");
        return NULL;
    }
    memset(raw.base, 3, size);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, raw.window);
    MPI_Barrier(raw.comm);
    return raw_check() ? NULL : "MPI_Get does not bring what MPI_Put put";
}

static const char *raw_open(uint32_t rank, size_t largest, aq_raw_exchange_fn *exchange)
{
    int size = 0;

    (void)exchange; /* MPI knows the way */
    raw.rank = (int)rank;
    if (MPI_Comm_split(MPI_COMM_WORLD, 0, raw.rank, &raw.comm) != MPI_SUCCESS)
        return "MPI_Comm_split failed";
    MPI_Comm_size(raw.comm, &size);
    raw.src = raw_memory(largest, 1);
    raw.dst = raw_memory(largest, 2);
    if (size < 2 || raw.src == NULL || raw.dst == NULL)
        return "no memory";
    return raw_open_window(largest);
}

static void raw_close(void)
{
    if (raw.window != MPI_WIN_NULL) {
        MPI_Win_unlock_all(raw.window);
        MPI_Win_free(&raw.window);
    }
    MPI_Comm_free(&raw.comm);
    free(raw.src);
    free(raw.dst);
    free(raw.own);
}

/* --- messages --- */

static int raw_peer(void)
{
    return raw.rank == 0 ? 1 : 0;
}

static void raw_say(int tag)
{
    MPI_Send(NULL, 0, MPI_BYTE, raw_peer(), tag, raw.comm);
}

static void raw_hear(int tag)
{
    MPI_Recv(NULL, 0, MPI_BYTE, raw_peer(), tag, raw.comm, MPI_STATUS_IGNORE);
}

static void raw_ready(void)
{
    raw_say(TAG_READY);
}

static bool raw_is_ready(void)
{
    int found = 0;

    MPI_Iprobe(1, TAG_READY, raw.comm, &found, MPI_STATUS_IGNORE);
    if (found)
        raw_hear(TAG_READY);
    return found != 0;
}

/* forth bytes from rank 0 to rank 1, then back bytes. */
static void raw_ping(int forth, int back, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++) {
        if (raw.rank == 0) {
            MPI_Send(raw.src, forth, MPI_BYTE, 1, TAG_DATA, raw.comm);
            MPI_Recv(raw.dst, back, MPI_BYTE, 1, TAG_DATA, raw.comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(raw.dst, forth, MPI_BYTE, 0, TAG_DATA, raw.comm, MPI_STATUS_IGNORE);
            MPI_Send(raw.src, back, MPI_BYTE, 0, TAG_DATA, raw.comm);
        }
    }
}

static uint64_t raw_window(size_t n)
{
    uint64_t window = n > 0 ? WINDOW_BYTES / n : WINDOW;

    return window < 2 ? 2 : window > WINDOW ? WINDOW : window;
}

static void raw_start(bool sender, int n, MPI_Request *request)
{
    if (sender)
        MPI_Isend(raw.src, n, MPI_BYTE, raw_peer(), TAG_DATA, raw.comm, request);
    else
        MPI_Irecv(raw.dst, n, MPI_BYTE, raw_peer(), TAG_DATA, raw.comm, request);
}

static void raw_stream_end(bool sender)
{
    if (sender)
        raw_hear(TAG_END);
    else
        raw_say(TAG_END);
}

/* A window of messages; each that is done makes space for another. */
static void raw_stream(bool sender, size_t n, uint64_t iters)
{
    uint64_t window = raw_window(n);
    MPI_Request requests[WINDOW];

    for (uint64_t i = 0; i < iters + window; i++) {
        MPI_Request *request = &requests[i % window];

        if (i >= window && i - window < iters)
            MPI_Wait(request, MPI_STATUS_IGNORE);
        if (i < iters)
            raw_start(sender, (int)n, request);
    }
    raw_stream_end(sender);
}

/* Two windows; one that is done as a whole makes space for another. */
static void raw_stream_batches(bool sender, size_t n, uint64_t iters)
{
    uint64_t window = raw_window(n), started = 0;
    MPI_Request requests[2][WINDOW];
    int count[2] = { 0, 0 };

    for (int half = 0; started < iters; half ^= 1) {
        MPI_Waitall(count[half], requests[half], MPI_STATUSES_IGNORE);
        count[half] = 0;
        for (; started < iters && count[half] < (int)window; started++)
            raw_start(sender, (int)n, &requests[half][count[half]++]);
    }
    MPI_Waitall(count[0], requests[0], MPI_STATUSES_IGNORE);
    MPI_Waitall(count[1], requests[1], MPI_STATUSES_IGNORE);
    raw_stream_end(sender);
}

/* --- one-sided --- */

static void raw_start_one_sided(enum aq_raw_kind kind, int n)
{
    if (kind == AQ_RAW_PUT || kind == AQ_RAW_PUT_STREAM)
        MPI_Put(raw.src, n, MPI_BYTE, 1, 0, n, MPI_BYTE, raw.window);
    else
        MPI_Get(raw.dst, n, MPI_BYTE, 1, 0, n, MPI_BYTE, raw.window);
}

/* Rank 0: a flush after each window of operations. Rank 1 waits in the library. */
static void raw_one_sided(enum aq_raw_kind kind, size_t n, uint64_t iters, uint64_t window)
{
    if (raw.rank != 0) {
        raw_hear(TAG_END);
        return;
    }
    for (uint64_t i = 0; i < iters; i++) {
        raw_start_one_sided(kind, (int)n);
        if ((i + 1) % window == 0 || i + 1 == iters)
            MPI_Win_flush(1, raw.window);
    }
    raw_say(TAG_END);
}

static void raw_fadd(uint64_t iters)
{
    const int64_t one = 1;
    int64_t old;

    if (raw.rank != 0) {
        raw_hear(TAG_END);
        return;
    }
    for (uint64_t i = 0; i < iters; i++) {
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 1, 0, MPI_SUM, raw.window);
        MPI_Win_flush(1, raw.window);
    }
    raw_say(TAG_END);
}

/* --- collectives --- */

static void raw_collective(enum aq_raw_kind kind, size_t n, uint64_t iters)
{
    const int doubles = (int)(n / sizeof(double));

    for (uint64_t i = 0; i < iters; i++) {
        switch (kind) {
        case AQ_RAW_BROADCAST:
            MPI_Bcast(raw.rank == 0 ? raw.src : raw.dst, (int)n, MPI_BYTE, 0, raw.comm);
            break;
        case AQ_RAW_REDUCE:
            MPI_Reduce(raw.src, raw.dst, doubles, MPI_DOUBLE, MPI_SUM, 0, raw.comm);
            break;
        case AQ_RAW_ALLREDUCE:
            MPI_Allreduce(raw.src, raw.dst, doubles, MPI_DOUBLE, MPI_SUM, raw.comm);
            break;
        default:
            MPI_Barrier(raw.comm);
        }
    }
}

/* --- the table --- */

static const struct {
    unsigned ways, ways_large;
    const char *names[AQ_RAW_WAYS];
} raw_kinds[] = {
    [AQ_RAW_PING] = { 1, 1, { "MPI_Send, MPI_Recv" } },
    [AQ_RAW_FLOOD] = { 2, 2, { "MPI_Isend, MPI_Wait", "MPI_Isend, MPI_Waitall" } },
    [AQ_RAW_PUT] = { 1, 2, { "MPI_Put, MPI_Win_flush", "MPI_Send, answer" } },
    [AQ_RAW_GET] = { 1, 2, { "MPI_Get, MPI_Win_flush", "question, MPI_Recv" } },
    [AQ_RAW_PUT_STREAM] = { 3,
                            3,
                            { "MPI_Put, flush of many", "MPI_Isend, MPI_Wait",
                              "MPI_Isend, MPI_Waitall" } },
    [AQ_RAW_GET_STREAM] = { 3,
                            3,
                            { "MPI_Get, flush of many", "MPI_Isend, MPI_Wait",
                              "MPI_Isend, MPI_Waitall" } },
    [AQ_RAW_FADD] = { 1, 1, { "MPI_Fetch_and_op, flush" } },
    [AQ_RAW_BARRIER] = { 1, 1, { "MPI_Barrier" } },
    [AQ_RAW_BROADCAST] = { 1, 1, { "MPI_Bcast" } },
    [AQ_RAW_REDUCE] = { 1, 1, { "MPI_Reduce" } },
    [AQ_RAW_ALLREDUCE] = { 1, 1, { "MPI_Allreduce" } },
};

/* How many ways are left out: without a window the first one of transfers. */
static unsigned raw_first_way(enum aq_raw_kind kind)
{
    return raw.window == MPI_WIN_NULL && kind >= AQ_RAW_PUT && kind <= AQ_RAW_GET_STREAM;
}

static unsigned raw_ways(enum aq_raw_kind kind, size_t n)
{
    if (raw.window == MPI_WIN_NULL && kind == AQ_RAW_FADD)
        return 0;
    return (n >= AQ_RAW_LARGE || raw_first_way(kind) ? raw_kinds[kind].ways_large
                                                     : raw_kinds[kind].ways)
           - raw_first_way(kind);
}

static const char *raw_name(enum aq_raw_kind kind, unsigned way)
{
    return raw_kinds[kind].names[(way + raw_first_way(kind)) % AQ_RAW_WAYS];
}

/* sender: this rank is where the data come from. */
static void raw_run_messages(bool sender, unsigned way, size_t n, uint64_t iters)
{
    if (way == 0)
        raw_stream(sender, n, iters);
    else
        raw_stream_batches(sender, n, iters);
}

static void raw_run(enum aq_raw_kind kind, unsigned way, size_t n, uint64_t iters)
{
    const size_t min = n < AQ_RAW_MIN ? AQ_RAW_MIN : n;

    way += raw_first_way(kind);
    switch (kind) {
    case AQ_RAW_PING:
        raw_ping((int)min, (int)min, iters);
        break;
    case AQ_RAW_FLOOD:
        raw_run_messages(raw.rank == 0, way, min, iters);
        break;
    case AQ_RAW_PUT:
    case AQ_RAW_GET:
        if (way == 0)
            raw_one_sided(kind, n, iters, 1);
        else
            raw_ping(kind == AQ_RAW_PUT ? (int)n : 0, kind == AQ_RAW_PUT ? 0 : (int)n, iters);
        break;
    case AQ_RAW_PUT_STREAM:
    case AQ_RAW_GET_STREAM:
        if (way == 0)
            raw_one_sided(kind, n, iters, raw_window(n));
        else
            raw_run_messages((raw.rank == 0) == (kind == AQ_RAW_PUT_STREAM), way - 1, n, iters);
        break;
    case AQ_RAW_FADD:
        raw_fadd(iters);
        break;
    default:
        raw_collective(kind, n, iters);
    }
}

/* Name and number of what MPI says: "Open MPI v4.1.4, package ...", "MPICH Version:\t4.0.2\n..." */
static const char *raw_version(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    char *word;
    int length;

    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = '\0';
    word = strstr(text, "Version:\t");
    if (word != NULL)
        memmove(word, word + 9, strlen(word + 9) + 1);
    return text;
}

const struct aq_raw_lib aq_bench_raw = {
    .open = raw_open,
    .close = raw_close,
    .ways = raw_ways,
    .name = raw_name,
    .version = raw_version,
    .ready = raw_ready,
    .is_ready = raw_is_ready,
    .run = raw_run,
};
