/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * interop.h - a program that uses MPI and Aqueduct side by side: header of its parts.
 * Owns      nothing
 * Threads   those of mix_threads.c; else one
 * Uses      MPI, gasnetex.h
 *
 *   mix.c          options, start and end of MPI, the ranks of both, the result
 *   mix_traffic.c  Aqueduct operations that are started, left outstanding, and finished
 *   mix_mpi.c      MPI operations that are outstanding in the meantime: messages, collectives,
 *                  windows, communicators
 *   mix_threads.c  threads that call one library while others call the other
 *   mix_memory.c   a flood to a rank that serves MPI only
 *   mix_after.c    communication after MPI_Finalize, which is an error
 *
 * All data are patterns that follow from a seed, and are compared byte by byte where they arrive.
 *
 * The rules are those of docs/design/mpi.md: operations of both may be outstanding together, but
 * waiting in one library does not serve the other. A blocking wait is therefore used only for
 * operations that all ranks have started, and all ranks meet in a barrier of one library before any
 * of them waits in the other.
 */
#ifndef INTEROP_H
#define INTEROP_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <gasnetex.h>
#include <gasnet_coll.h>

#define CHANNELS      4                  /* traffic that may be under way at a time, one a thread */
#define AREA          ((size_t)64 << 10) /* bytes of each part of a channel's share */
#define CHANNEL_BYTES (3 * AREA) /* what others get; what they put; where their Longs arrive */

struct interop {
    gex_TM_t tm;
    int rank, size;         /* Aqueduct's */
    int mpi_rank, mpi_size; /* MPI's, of MPI_COMM_WORLD */
    MPI_Comm comm;          /* all ranks, in Aqueduct's order */
    unsigned char *segment;
    unsigned rounds;
    bool
        /* the test of the test: the first time that each is compared, there is a mistake in it */
        spoil;
};
extern struct interop it;

/* --- mix.c --- */

/** failed - reports an error and records it. */
void failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** fill - n bytes that follow from seed; compare - are they these? If not it is a failure of what.
 * */
void fill(void *buf, size_t n, uint32_t seed);
bool compare(const char *what, const void *buf, size_t n, uint32_t seed);

/** equal - the same of a number. */
bool equal(const char *what, long value, long expected);

static inline int left(void)
{
    return (it.rank + it.size - 1) % it.size;
}

static inline int right(void)
{
    return (it.rank + 1) % it.size;
}

/** barrier - of Aqueduct. */
static inline void barrier(void)
{
    gex_Event_Wait(gex_Coll_BarrierNB(it.tm, 0));
}

/* --- mix_traffic.c --- */

/* Operations under way in a channel: to the right neighbour, and from the left one's memory. */
struct traffic {
    unsigned channel;
    uint32_t seed;
    unsigned sent; /* messages to be answered */
    size_t transfer;
    unsigned char *src, *dst;
    gex_Event_t put, get;
};

/** traffic_register - the handlers; before the segment is attached. */
void traffic_register(gex_EP_t ep);

/** traffic_start - messages of all kinds, a put and a get in this channel. Few of each, so that
 * they can start without the other ranks; large: as much as there is space for. */
void traffic_start(struct traffic *t, unsigned channel, uint32_t seed, bool large);

/** traffic_done - polls once; returns true if all of them are complete. */
bool traffic_done(struct traffic *t);

/** traffic_finish - waits for all of them, and compares what the get brought. */
void traffic_finish(struct traffic *t);

/** traffic_read_back - compares what this rank's finished put of that seed has left at the right
 *  neighbour's; each round. */
void traffic_read_back(unsigned channel, uint32_t seed, bool large);

/** traffic_arrived - compares what the left neighbour has put; when all have finished this seed's.
 * */
void traffic_arrived(unsigned channel, uint32_t seed, bool large);

/* --- mix_mpi.c, mix_threads.c, mix_memory.c: the scenarios --- */

void mix_messages(void);
void mix_collectives(void);
void mix_windows(void);
void mix_communicators(void);
void mix_wildcards(void);
void mix_flood(void);
void mix_asleep(void);
void mix_threads(void);
void mix_turns(void);
void mix_memory(void);

/* memory_register - the handler of mix_memory; before the segment is attached. */
void memory_register(gex_EP_t ep);

/* --- mix_after.c --- */

/** mix_after - with how "after-...": MPI_Finalize, and what comes after it, which does not return.
 *  False: another end. */
bool mix_after(const char *how);

#endif
