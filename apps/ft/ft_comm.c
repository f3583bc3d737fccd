/*
 * ft_comm.c - everything in ft that calls the communication library.
 *
 * Puts with implicit completion move the field. Split barriers separate the steps. Active messages
 * carry checksums and statistics to rank 0, and its verdict to all ranks.
 *
 * Owns      the process's client, its segment, and the statistics
 * Threads   one; handlers run inside library calls of that thread
 * Uses      gasnetex.h only
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnetex.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ft.h"

enum { HANDLER_GATHER = GEX_AM_INDEX_BASE, HANDLER_AGREE, HANDLER_ADDRESS };

static gex_TM_t team;
static gex_Rank_t my_rank, ranks;
/* [ranks]: the base of each rank's memory, in the address space of its owner */
static char **peer_base;
static gex_Event_t barrier_event;
static bool barrier_started;
static struct ft_comm_stats stats;

static char (*inbox)[FT_GATHER_MAX]; /* [ranks], on rank 0: data of the current gather */
static gex_Rank_t inbox_count;
static int agreed_number;
static bool agreed;
#if GASNET_SEGMENT_EVERYTHING
static gex_Rank_t address_count;
#endif

double ft_comm_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct ft_comm_stats *ft_comm_stats(void)
{
    return &stats;
}

void ft_comm_stats_reset(void)
{
    memset(&stats, 0, sizeof(stats));
    stats.sent.smallest = UINT64_MAX;
}

/* ---- active messages ---------------------------------------------------------------- */

static void handle_gather(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t source)
{
    (void)token;
    memcpy(inbox[source], buf, nbytes);
    inbox_count++;
}

static void handle_agree(gex_Token_t token, gex_AM_Arg_t number)
{
    (void)token;
    agreed_number = (int)number;
    agreed = true;
}

#if GASNET_SEGMENT_EVERYTHING
static void handle_address(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t source)
{
    (void)token;
    memcpy(&peer_base[source], buf, nbytes);
    address_count++;
}
#endif

void ft_comm_gather(const void *own, size_t bytes, void *all)
{
    gex_AM_RequestMedium1(team, 0, HANDLER_GATHER, own, bytes, GEX_EVENT_NOW, 0, my_rank);
    if (my_rank != 0)
        return;
    GASNET_BLOCKUNTIL(inbox_count == ranks);
    inbox_count = 0;
    for (gex_Rank_t r = 0; r < ranks; r++)
        memcpy((char *)all + r * bytes, inbox[r], bytes);
}

int ft_comm_agree(int number)
{
    if (my_rank == 0)
        for (gex_Rank_t r = 0; r < ranks; r++)
            gex_AM_RequestShort1(team, r, HANDLER_AGREE, 0, number);
    GASNET_BLOCKUNTIL(agreed);
    return agreed_number;
}

/* ---- start and end ------------------------------------------------------------------ */

/* Ends the job on failure of a call before the ranks can communicate. */
static void check(int rc, const char *call)
{
    if (rc == GASNET_OK)
        return;
    fprintf(stderr, "ft: %s: %s (%s)\n", call, gasnet_ErrorName(rc), gasnet_ErrorDesc(rc));
    gasnet_exit(1);
}

void ft_comm_init(int *argc, char ***argv)
{
    gex_AM_Entry_t handlers[] = {
        { HANDLER_GATHER, (gex_AM_Fn_t)handle_gather, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1,
          NULL, "gather" },
        { HANDLER_AGREE, (gex_AM_Fn_t)handle_agree, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1,
          NULL, "agree" },
#if GASNET_SEGMENT_EVERYTHING
        { HANDLER_ADDRESS, (gex_AM_Fn_t)handle_address, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1,
          NULL, "address" },
#endif
    };
    gex_Client_t client;
    gex_EP_t endpoint;

    check(gex_Client_Init(&client, &endpoint, &team, "FT", argc, argv, 0), "gex_Client_Init");
    check(gex_EP_RegisterHandlers(endpoint, handlers, sizeof(handlers) / sizeof(handlers[0])),
          "gex_EP_RegisterHandlers");
    my_rank = gex_TM_QueryRank(team);
    ranks = gex_TM_QuerySize(team);
    peer_base = calloc(ranks, sizeof(*peer_base));
    inbox = calloc(ranks, sizeof(*inbox));
    if (peer_base == NULL || inbox == NULL) {
        fprintf(stderr, "ft: rank %" PRIu32 ": no memory for a table of %" PRIu32 " ranks\n",
                my_rank, ranks);
        gasnet_exit(1);
    }
    ft_comm_stats_reset();
}

int ft_comm_rank(void)
{
    return (int)my_rank;
}

int ft_comm_ranks(void)
{
    return (int)ranks;
}

size_t ft_comm_memory_limit(void)
{
    return gasnet_getMaxGlobalSegmentSize();
}

#if GASNET_SEGMENT_EVERYTHING
/* Allocates the memory and tells its address to all ranks; every rank can then be reached. */
static void *obtain_memory(size_t bytes)
{
    char *base = aligned_alloc(GASNET_PAGESIZE, bytes);
    gex_Segment_t segment;

    check(gex_Segment_Attach(&segment, team, bytes), "gex_Segment_Attach");
    if (base == NULL)
        return NULL;
    for (gex_Rank_t r = 0; r < ranks; r++)
        gex_AM_RequestMedium1(team, r, HANDLER_ADDRESS, &base, sizeof(base), GEX_EVENT_NOW, 0,
                              my_rank);
    GASNET_BLOCKUNTIL(address_count == ranks);
    return base;
}
#else
static void *obtain_memory(size_t bytes)
{
    gex_Segment_t segment;

    check(gex_Segment_Attach(&segment, team, bytes), "gex_Segment_Attach");
    for (gex_Rank_t r = 0; r < ranks; r++) {
        void *base;

        if (gex_Segment_QueryBound(team, r, &base, NULL, NULL) != 0)
            return NULL;
        peer_base[r] = base;
    }
    return gex_Segment_QueryAddr(segment);
}
#endif

void *ft_comm_memory(size_t bytes)
{
    size_t page = GASNET_PAGESIZE;
    void *base = obtain_memory((bytes + page - 1) / page * page);

    if (base == NULL)
        fprintf(stderr, "ft: rank %" PRIu32 ": no segment of %zu MiB\n", my_rank, bytes >> 20);
    return base;
}

void ft_comm_exit(int code)
{
    ft_comm_barrier();
    fflush(stdout);
    gasnet_exit(code);
}

void ft_comm_abort(void)
{
    gasnet_exit(1);
}

/* ---- puts and barriers, with a clock ------------------------------------------------ */

void ft_comm_put(int rank, size_t offset, const void *src, size_t bytes)
{
    double before = ft_comm_now();

    /* DEFER: the source stays unchanged until ft_comm_put_wait(), so no local completion is
     * needed. */
    gex_RMA_PutNBI(team, (gex_Rank_t)rank, peer_base[rank] + offset, src, bytes, GEX_EVENT_DEFER,
                   0);
    stats.start += ft_comm_now() - before;
    stats.sent.messages++;
    stats.sent.bytes += bytes;
    if (bytes < stats.sent.smallest)
        stats.sent.smallest = bytes;
    if (bytes > stats.sent.largest)
        stats.sent.largest = bytes;
}

void ft_comm_put_wait(void)
{
    double before = ft_comm_now();

    gex_NBI_Wait(GEX_EC_PUT, 0);
    stats.completion += ft_comm_now() - before;
}

void ft_comm_barrier_start(void)
{
    double before = ft_comm_now();

    barrier_event = gex_Coll_BarrierNB(team, 0);
    barrier_started = true;
    stats.barrier += ft_comm_now() - before;
}

void ft_comm_barrier_end(void)
{
    if (!barrier_started)
        return;
    double before = ft_comm_now();

    gex_Event_Wait(barrier_event);
    barrier_started = false;
    stats.barrier += ft_comm_now() - before;
}

void ft_comm_barrier(void)
{
    ft_comm_barrier_end();
    ft_comm_barrier_start();
    ft_comm_barrier_end();
}
