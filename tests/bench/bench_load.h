/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_load.h - what the rows of a loaded machine share: distributions of times, and the programs
 * that stand beside ours there.
 *
 * A peer program does what ours does, by memory that its ranks share or by a UDP socket each, and
 * waits in one of two ways: it spins, or it gives its core away whenever it has looked in vain.
 *
 *   bench_load.c        inside a job: slices of ours and of both peer programs in turn
 *   bench_load_front.c  in front: busy processes, and a job for each number of them
 *   bench_load_peer.c   the peer programs
 *
 * Owns      the socket of one struct aq_load_peer
 * Threads   one in every process
 * Uses      bench.h, sockets
 */
#ifndef AQ_BENCH_LOAD_H
#define AQ_BENCH_LOAD_H

#include "bench.h"

/* --- distributions --- */

#define AQ_TIMES_BITS    6 /* of a time's leading digits that count: 1.6 % */
#define AQ_TIMES_BUCKETS (48u << AQ_TIMES_BITS)

/* How often an operation has taken so long: a bucket for each leading AQ_TIMES_BITS bits. */
struct aq_times {
    uint64_t count;
    uint32_t bucket[AQ_TIMES_BUCKETS];
};

static inline unsigned aq_times_bucket(uint64_t ns)
{
    const unsigned octave =
        ns < 2u << AQ_TIMES_BITS ? 0 : 63u - AQ_TIMES_BITS - (unsigned)__builtin_clzll(ns);
    const unsigned bucket = (octave << AQ_TIMES_BITS) + (unsigned)(ns >> octave);

    return bucket < AQ_TIMES_BUCKETS ? bucket : AQ_TIMES_BUCKETS - 1;
}

static inline void aq_times_add(struct aq_times *times, uint64_t ns)
{
    times->bucket[aq_times_bucket(ns)]++;
    times->count++;
}

/** aq_times_merge - adds what other has counted. aq_times_at - the time that this part of all
 *  operations did not exceed, ns; 0 if there were none. */
void aq_times_merge(struct aq_times *times, const struct aq_times *other);
double aq_times_at(const struct aq_times *times, double part);

/* --- peer programs --- */

#define AQ_LOAD_RANKS  8 /* of a job with peer programs, at most */
#define AQ_LOAD_ROUNDS 3 /* of a barrier by dissemination among so many */

/* Lies in rank 0's segment. */
struct aq_load_area {
    struct aq_limit_line remote_addr[AQ_LOAD_RANKS / 2], back[AQ_LOAD_RANKS / 2];
    struct aq_limit_line flags[AQ_LOAD_RANKS][AQ_LOAD_ROUNDS];
};

struct aq_load_peer {
    struct aq_load_area *area; /* NULL: the ranks have sockets */
    unsigned rank, ranks;
    bool yields;
    uint64_t trips, barriers; /* numbers of the last ones */
    int fd;
    uint16_t ports[AQ_LOAD_RANKS]; /* on the loopback interface, network byte order */
    uint64_t seen[AQ_LOAD_RANKS][1 + AQ_LOAD_ROUNDS]; /* the last number of each sender and kind */
    uint64_t looks;                                   /* in vain */
};

/** aq_load_peer_open - a socket on the loopback interface; its port is in ports[rank] then. 0, or
 *  -1 and errno. */
int aq_load_peer_open(struct aq_load_peer *p);

/** aq_load_peer_trip - one round trip between ranks 2k and 2k + 1, whichever this rank is of them.
 *  aq_load_peer_barrier - one barrier of all ranks. */
void aq_load_peer_trip(struct aq_load_peer *p);
void aq_load_peer_barrier(struct aq_load_peer *p);

#endif
