/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mix.c - MPI and Aqueduct side by side: who starts and ends MPI, then scenarios with operations of
 * both under way.
 * Owns      struct interop
 * Threads   as the scenarios
 * Uses      interop.h
 *
 * usage: mix --start client|library [--level single|funneled|serialized|multiple]
 *            --end finalize|exit|return|late|abort|after-WHAT [--rounds N] [--spoil] SCENARIO...
 *
 * --start   client: this program initialises MPI, with that level, before Aqueduct; library:
 *           Aqueduct does it
 * --end     finalize: MPI_Finalize, then gasnet_exit; exit: gasnet_exit alone; return: from main;
 *           late: from main, with an exit handler, older than Aqueduct's, that finalises MPI;
 *           abort: rank 1 calls MPI_Abort; after-barrier, after-put, after-immediate, after-thread,
 *           after-wait, after-spin: MPI_Finalize, and then the program communicates; after-work: it
 *           does not; after-leave, after-leave-alone: a thread ends the job (mix_after.c)
 * --spoil   each comparison finds a mistake once: all of them must be reported
 * Each rank for which everything was right prints "rank R of N right"; exit status 0 if all were.
 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interop.h"

struct interop it = { .rounds = 6 };

static atomic_int failures;

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    { "messages", mix_messages },   { "collectives", mix_collectives },
    { "windows", mix_windows },     { "communicators", mix_communicators },
    { "wildcards", mix_wildcards }, { "flood", mix_flood },
    { "threads", mix_threads },     { "turns", mix_turns },
    { "memory", mix_memory },       { "asleep", mix_asleep },
};
#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

struct options {
    const char *start, *level, *end;
    int scenarios; /* index of the first in argv */
};

/* --- what the scenarios use --- */

void failed(const char *format, ...)
{
    char text[200];
    va_list args;

    if (atomic_fetch_add(&failures, 1) >= 10 && !it.spoil)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "mix: rank %d: %s\n", it.rank,
            text); /* all of it at once: other ranks write there, too */
}

static uint32_t next_word(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

void fill(void *buf, size_t n, uint32_t seed)
{
    unsigned char *p = buf;

    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)next_word(&seed);
}

/* With --spoil: is it the first time that this is compared? */
static bool to_spoil(const char *what)
{
    static const char *_Atomic known[64];

    if (!it.spoil)
        return false;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const char *none = NULL;

        if (atomic_compare_exchange_strong(&known[i], &none, what))
            return true;
        if (strcmp(none, what) == 0)
            return false;
    }
    fprintf(stderr,
            "mix: rank %d: no room in known[] for \"%s\": what is compared from here on would not "
            "be spoilt\n",
            it.rank, what);
    gasnet_exit(3); /* not 1, which is what a spoilt run ends with */
    return false;
}

/* A deliberate error is in the expected data, not in buf, which other ranks may read, by an MPI_Get
 * for instance. */
bool compare(const char *what, const void *buf, size_t n, uint32_t seed)
{
    const unsigned char *p = buf;
    const unsigned char mistake = n != 0 && to_spoil(what);

    for (size_t i = 0; i < n; i++) {
        unsigned char expected = (unsigned char)next_word(&seed);

        if (i == n - 1)
            expected ^= mistake;
        if (p[i] != expected) {
            failed("%s: byte %zu of %zu is %u, not %u", what, i, n, p[i], expected);
            return false;
        }
    }
    return true;
}

bool equal(const char *what, long value, long expected)
{
    value += to_spoil(what);
    if (value != expected)
        failed("%s: %ld, not %ld", what, value, expected);
    return value == expected;
}

/* --- start --- */

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: mix --start client|library [--level L] --end "
                    "finalize|exit|return|late|abort|after-WHAT "
                    "SCENARIO...\n");
    exit(2);
}

static void parse(struct options *o, int argc, char **argv)
{
    int i = 1;

    *o = (struct options){ .start = "library", .level = "multiple", .end = "exit" };
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--spoil") == 0)
            it.spoil = true;
        else if (i + 1 == argc)
            usage();
        else if (strcmp(argv[i], "--start") == 0)
            o->start = argv[++i];
        else if (strcmp(argv[i], "--level") == 0)
            o->level = argv[++i];
        else if (strcmp(argv[i], "--end") == 0)
            o->end = argv[++i];
        else if (strcmp(argv[i], "--rounds") == 0)
            it.rounds = (unsigned)atoi(argv[++i]);
        else
            usage();
    }
    o->scenarios = i;
}

static int level_of(const char *name)
{
    static const struct {
        const char *name;
        int level;
    } levels[] = { { "single", MPI_THREAD_SINGLE },
                   { "funneled", MPI_THREAD_FUNNELED },
                   { "serialized", MPI_THREAD_SERIALIZED },
                   { "multiple", MPI_THREAD_MULTIPLE } };

    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        if (strcmp(levels[i].name, name) == 0)
            return levels[i].level;
    }
    usage();
}

static void finalize_late(void)
{
    int finalized = 0;

    MPI_Finalized(&finalized);
    if (!finalized)
        MPI_Finalize();
}

static void start_mpi(const struct options *o, int *argc, char ***argv)
{
    int provided = -1, initialized = 0;

    MPI_Initialized(&initialized);
    if (initialized)
        failed("MPI is initialised before anybody has asked for it");
    if (strcmp(o->start, "client") != 0)
        return;
    MPI_Init_thread(argc, argv, level_of(o->level), &provided);
    if (provided < level_of(o->level)) {
        fprintf(stderr, "mix: this MPI has no level %s\n", o->level);
        MPI_Finalize();
        exit(77);
    }
}

static void start_aqueduct(int *argc, char ***argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_Segment_t segment;

    if (gex_Client_Init(&client, &ep, &it.tm, "INTEROP", argc, argv, 0) != GASNET_OK) {
        fprintf(stderr, "mix: gex_Client_Init failed\n");
        exit(1);
    }
    it.rank = (int)gex_TM_QueryRank(it.tm);
    it.size = (int)gex_TM_QuerySize(it.tm);
    traffic_register(ep);
    memory_register(ep);
    if (gex_Segment_Attach(&segment, it.tm, CHANNELS * CHANNEL_BYTES) != GASNET_OK) {
        fprintf(stderr, "mix: gex_Segment_Attach failed\n");
        gasnet_exit(1);
    }
    it.segment = gex_Segment_QueryAddr(segment);
    for (unsigned channel = 0; channel < CHANNELS; channel++)
        fill(it.segment + channel * CHANNEL_BYTES, AREA, (uint32_t)it.rank * 1000 + channel);
    barrier();
}

/* Both count the same processes, each once. */
static void compare_ranks(void)
{
    int *seen, initialized = 0;

    MPI_Initialized(&initialized);
    if (!initialized) {
        failed("MPI is not initialised after gex_Client_Init");
        return;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &it.mpi_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &it.mpi_size);
    equal("ranks of MPI", it.mpi_size, it.size);
    seen = calloc((size_t)it.mpi_size, sizeof(*seen));
    MPI_Allgather(&it.rank, 1, MPI_INT, seen, 1, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < it.mpi_size; rank++) {
        int times = 0;

        for (int i = 0; i < it.mpi_size; i++)
            times += seen[i] == rank;
        if (!equal("processes of MPI with one rank of Aqueduct", times, 1))
            failed("it is rank %d", rank);
    }
    free(seen);
    MPI_Comm_split(MPI_COMM_WORLD, 0, it.rank, &it.comm);
}

/* --- end --- */

static void run_scenarios(int count, char **names)
{
    for (int k = 0; k < count; k++) {
        size_t i = 0;

        while (i < SCENARIOS && strcmp(scenarios[i].name, names[k]) != 0)
            i++;
        if (i == SCENARIOS)
            usage();
        scenarios[i].run();
        barrier();
        MPI_Barrier(it.comm);
    }
}

/* The same on all ranks: how many things were wrong. */
static int all_failures(void)
{
    int ours = atomic_load(&failures), all = 0;

    MPI_Allreduce(&ours, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static int end(const struct options *o)
{
    const int all = all_failures(), code = all > 0;

    if (atomic_load(&failures) == 0)
        printf("rank %d of %d right\n", it.rank, it.size), fflush(stdout);
    MPI_Comm_free(&it.comm);
    barrier();
    if (strcmp(o->end, "abort") == 0) {
        if (it.rank == 1)
            MPI_Abort(MPI_COMM_WORLD, 7);
        for (;;)
            GASNET_BLOCKUNTIL(false);
    }
    if (mix_after(o->end))
        printf("rank %d was not stopped\n", it.rank), fflush(stdout);
    if (strcmp(o->end, "finalize") == 0)
        MPI_Finalize();
    if (strcmp(o->end, "finalize") == 0 || strcmp(o->end, "exit") == 0)
        gasnet_exit(code);
    return code;
}

int main(int argc, char **argv)
{
    struct options o;

    parse(&o, argc, argv);
    if (strcmp(o.end, "late") == 0)
        atexit(finalize_late);
    start_mpi(&o, &argc, &argv);
    start_aqueduct(&argc, &argv);
    compare_ranks();
    run_scenarios(argc - o.scenarios, argv + o.scenarios);
    return end(&o);
}
