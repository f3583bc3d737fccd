/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mix_memory.c - a flood of messages to a rank that serves MPI, which takes in what comes, but not
 * Aqueduct: neither there nor at the senders may memory grow with the length of the flood.
 * Owns      nothing
 * Threads   one
 * Uses      interop.h, /proc/self/statm
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "interop.h"

#define HIDX_DROP (GEX_AM_INDEX_BASE + 10)
#define SECONDS   1.5
#define TAG       771
#define GROWTH_MAX \
    ((size_t)64 << 20)               /* the conduit's promise; a flood without bounds is some GiB */
#define FLOOD_MIN ((size_t)16 << 10) /* far fewer would not have been a flood */

static const size_t sizes[] = { 0, 500, 4096, 8192, 9000, 65000 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static atomic_ullong arrived;

static void on_drop(gex_Token_t token, void *buf, size_t n)
{
    (void)token, (void)buf;
    atomic_fetch_add(&arrived, n + 1);
}

void memory_register(gex_EP_t ep)
{
    gex_AM_Entry_t table[] = {
        { HIDX_DROP, (gex_AM_Fn_t)on_drop, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL,
          "drop" },
    };

    gex_EP_RegisterHandlers(ep, table, 1);
}

/* Bytes of this process's memory that are in use. */
static size_t resident(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f == NULL || fscanf(f, "%*u %lu", &pages) != 1)
        failed("/proc/self/statm cannot be read");
    if (f != NULL)
        fclose(f);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Whatever is accepted; each message counts for its bytes and one. */
static unsigned long long flood(size_t *max)
{
    const double end = now() + SECONDS;
    unsigned char *src = calloc(1, sizes[SIZES - 1]);
    unsigned long long sent = 0;

    for (unsigned i = 0; now() < end; i++) {
        const size_t n = sizes[i / 64 % SIZES];

        if (gex_AM_RequestMedium0(it.tm, 0, HIDX_DROP, src, n, GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE)
            == 0)
            sent += n + 1;
        if (i % 64 == 0 && resident() > *max)
            *max = resident();
    }
    free(src);
    return sent;
}

/* MPI's progress, until all ranks have reported how much they have sent. */
static unsigned long long look_away(size_t *max)
{
    unsigned long long total = 0, one = 0;

    for (int left = it.size - 1; left != 0;) {
        int self = 0;

        MPI_Iprobe(MPI_ANY_SOURCE, TAG, it.comm, &self, MPI_STATUS_IGNORE);
        if (self) {
            MPI_Recv(&one, 1, MPI_UNSIGNED_LONG_LONG, MPI_ANY_SOURCE, TAG, it.comm,
                     MPI_STATUS_IGNORE);
            total += one;
            left--;
        }
        if (resident() > *max)
            *max = resident();
    }
    return total;
}

void mix_memory(void)
{
    size_t before = resident(), max = before;
    unsigned long long sent;

    atomic_store(&arrived, 0);
    barrier();
    if (it.rank == 0) {
        sent = look_away(&max);
        GASNET_BLOCKUNTIL(atomic_load(&arrived) >= sent);
        if (it.size > 1 && sent < FLOOD_MIN)
            failed("the flood was only %llu bytes", sent);
        equal("bytes of a flood that have come", (long)atomic_load(&arrived), (long)sent);
    } else {
        sent = flood(&max);
        MPI_Send(&sent, 1, MPI_UNSIGNED_LONG_LONG, 0, TAG, it.comm);
    }
    barrier();
    if (resident() > max)
        max = resident();
    if (max - before > GROWTH_MAX)
        failed("a flood to a rank that looks away takes %zu MiB here", (max - before) >> 20);
    if (it.rank <= 1)
        printf("# memory: rank %d grows by %zu KiB; %llu bytes\n", it.rank, (max - before) >> 10,
               sent);
}
