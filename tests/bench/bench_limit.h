/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_limit.h - the physical limits that rows are compared with: cache-line hand-overs and
 * plain copies.
 * Owns      nothing: struct aq_limit_area lies in memory that both ranks have mapped
 * Threads   one driver and one responder per area, each in its own process
 * Uses      the C library only, so that the MPI and OpenSHMEM peers have the same limits
 *
 * The cache-line ping-pong uses one line a direction, as a pair of mailboxes does, and nothing
 * else: what two cores need to tell each other one word and hear one back. A waiting side may spin
 * with or without a pause instruction; which is faster depends on whether the two cores share
 * execution units, so the driver tries both and the limit is the faster. A row of its own shows
 * the same with both directions on a single line.
 */
#ifndef AQ_BENCH_LIMIT_H
#define AQ_BENCH_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AQ_LIMIT_RING    256   /* lines in the flood ring */
#define AQ_LIMIT_PLACES  4     /* places of a payload to choose from */
#define AQ_LIMIT_RANKS   64    /* ranks the barrier limit can hold */
#define AQ_LIMIT_PAYLOAD 65536 /* largest payload that the hand-over limits carry */

/* A word alone on its line; 128 bytes because neighbouring lines are fetched in pairs. */
struct aq_limit_line {
    _Alignas(128) _Atomic uint64_t seq;
};

struct aq_limit_slot {
    _Alignas(64) _Atomic uint64_t seq;
    uint64_t args[7];
};

struct aq_limit_area {
    struct aq_limit_line remote_addr, back, credit, shared;
    struct aq_limit_line flags[AQ_LIMIT_RANKS][6];
    struct aq_limit_slot ring[AQ_LIMIT_RING];
    _Alignas(4096) unsigned char peer_buf[AQ_LIMIT_PAYLOAD];
    unsigned char back_buf[AQ_LIMIT_PAYLOAD];
    unsigned char ring_buf[4][AQ_LIMIT_PAYLOAD];
};

/* One side's private view of an area. Both sides start zeroed and run the same rounds. */
struct aq_limit {
    struct aq_limit_area *area;
    uint64_t seq;      /* last round of the ping-pong */
    uint64_t ring_seq; /* last message of the flood */
    uint64_t shared_seq, barrier_seq;
    const unsigned char *pages;         /* private memory; src lies there */
    const void *src;                    /* nbytes readable bytes, private */
    size_t nbytes;                      /* payload of a hand-over; 0: the word alone */
    unsigned char *peer_buf, *back_buf; /* shared memory the payload is copied to, by direction */
    unsigned char *ring_buf; /* the same for the flood: four places, ring_stride bytes apart */
    size_t ring_stride;
    bool read_payload; /* the receiver reads all of it */
    bool pause;        /* spin with a pause instruction */
};

/** aq_limit_payload - payload of n bytes: in the area if it fits there, else in shared memory at
 *  large (4 x n). */
void aq_limit_payload(struct aq_limit *l, const void *src, size_t n, unsigned char *large);

/** aq_limit_place - uses other pages for the same payload, number < AQ_LIMIT_PLACES. Where two
 *  buffers lie decides whether they get in each other's way in a cache; a limit is the best
 *  place's. */
void aq_limit_place(struct aq_limit *l, unsigned number);

/** aq_limit_ping - driver: iters round trips; aq_limit_pong - responder of the same iters. */
void aq_limit_ping(struct aq_limit *l, uint64_t iters);
void aq_limit_pong(struct aq_limit *l, uint64_t iters);

/** aq_limit_shared - both directions over one single line; first: this side moves first. */
void aq_limit_shared(struct aq_limit *l, uint64_t iters, bool first);

/** aq_limit_send - one-way flood through a ring of lines; aq_limit_drain - the receiver of the
 *  same iters. */
void aq_limit_send(struct aq_limit *l, uint64_t iters);
void aq_limit_drain(struct aq_limit *l, uint64_t iters);

/** aq_limit_barrier - dissemination barrier of ranks over one line a step, iters times. */
void aq_limit_barrier(struct aq_limit *l, uint64_t iters, uint32_t rank, uint32_t ranks);

/** aq_limit_sum - reads every word of a buffer; the result keeps the compiler from leaving it
 *  out. */
uint64_t aq_limit_sum(const void *buf, size_t nbytes);

/** aq_limit_pause - the instruction for a loop that waits, where the processor has one. */
static inline void aq_limit_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/** aq_limit_compiler_barrier - a compiler barrier: nothing is kept in registers or moved across. */
static inline void aq_limit_compiler_barrier(void)
{
    __asm__ volatile("" ::: "memory");
}

#endif
