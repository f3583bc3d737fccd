/*
 * aq_test.h - the harness every conformance program is built on.
 *
 * A program starts the job, registers its handlers, names each rule it is about to check with
 * rule("core 20.3: ..."), checks it, and finishes. All ranks agree on the verdict; rank 0 prints
 * one TAP line for each rule. Nothing here waits for ever: a wait that takes too long says which
 * rule and which line it was in and ends the job, and a watchdog ends a program stuck inside a
 * library call.
 *
 * Owns      handler indices AQ_TEST_BASE .. AQ_TEST_BASE + AQ_TEST_OWN - 1, SIGALRM
 * Threads   checks may be made by any thread and in handlers; the rest by the main thread
 * Uses      gasnetex.h, the C library and POSIX; nothing private to the library
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_TEST_H
#define AQ_TEST_H

#include "gasnetex.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AQ_TEST_BASE GEX_AM_INDEX_BASE /* first handler index the harness takes for itself */
#define AQ_TEST_OWN  4                 /* how many it takes */
#define AQ_TEST_FREE (AQ_TEST_BASE + AQ_TEST_OWN) /* first index a program may fix for itself */

/** A counter that handlers raise and aq_test_wait() watches. */
typedef atomic_int aq_test_count_t;

extern gex_Client_t aq_test_client;
extern gex_EP_t aq_test_ep;
extern gex_TM_t aq_test_tm;
extern gex_Segment_t aq_test_seg;
extern gex_Rank_t aq_test_me; /* my jobrank */
extern gex_Rank_t aq_test_n;  /* ranks in the job */
extern bool aq_test_crowded;  /* more ranks than cores */
extern bool aq_test_quick;    /* AQ_TEST_QUICK=1: smaller loops */
extern bool aq_test_slow;     /* AQ_TEST_PATIENCE is set: emulated processors, say */

/** aq_test_start - initialise client "AQ_TEST"; the program is skipped below min_ranks. */
void aq_test_start(int *argc, char ***argv, gex_Rank_t min_ranks);

/** aq_test_start_flags - the same with flags for gex_Client_Init. */
void aq_test_start_flags(int *argc, char ***argv, gex_Rank_t min_ranks, gex_Flags_t flags);

/** aq_test_join - the rest of aq_test_start, for a program that has started the job by itself. */
void aq_test_join(gex_Client_t client, gex_EP_t ep, gex_TM_t tm, gex_Rank_t min_ranks);

/** aq_test_handlers - register a table and wait until every rank has done so. */
void aq_test_handlers(gex_AM_Entry_t *table, size_t n);

/** aq_test_segment - attach size bytes (rounded up to pages) and learn every rank's base. */
void aq_test_segment(size_t size);

/** aq_test_learn_bases - the same for a segment that the program has attached by itself. */
void aq_test_learn_bases(size_t size);

/** aq_test_base - base of rank's segment as its owner sees it. */
void *aq_test_base(gex_Rank_t rank);

/** aq_test_finish - agree on the result; prints TAP on rank 0 and ends the job with 0 or 1. */
int aq_test_finish(void);

/** aq_test_skip - end the program on every rank as "skipped" for the given reason (collective). */
_Noreturn void aq_test_skip(const char *reason);

/** rule - name the rule that the following checks belong to. */
void rule(const char *name);

/** aq_test_fail - record a failed check of the present rule. */
void aq_test_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** aq_test_die - report and end the job at once. */
_Noreturn void aq_test_die(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** aq_test_barrier - a barrier over the job that cannot hang. */
void aq_test_barrier(void);

/** aq_test_peer - the rank k places after mine, around the ring. */
static inline gex_Rank_t aq_test_peer(gex_Rank_t k)
{
    return (gex_Rank_t)((aq_test_me + k) % aq_test_n);
}

/** aq_test_clock - seconds on the monotonic clock. */
double aq_test_clock(void);

/** aq_test_relax - poll, and leave the core to another rank when there are too few cores. */
void aq_test_relax(void);

/** aq_test_yield - leave the core to another rank when there are too few, without polling. */
void aq_test_yield(void);

/** aq_test_limit - seconds after which a wait counts as a hang. */
double aq_test_limit(void);

/** aq_test_random - the next number of the sequence that *state stands for. */
uint64_t aq_test_random(uint64_t *state);

/** aq_test_fill - write the bytes that belong to seed. */
void aq_test_fill(void *buf, size_t len, uint64_t seed);

/** aq_test_same - true if buf holds the bytes that aq_test_fill would write. */
bool aq_test_same(const void *buf, size_t len, uint64_t seed);

/** aq_test_all - true if each of the len bytes equals value. */
bool aq_test_all(const void *buf, int value, size_t len);

void aq_test_wait_at(aq_test_count_t *count, int n, const char *file, int line, const char *what);
void aq_test_sync_at(gex_Event_t event, const char *file, int line);
void aq_test_threads_at(int n, void *(*fn)(void *), int seconds, const char *file, int line);

/* Polls until *COUNT has reached N; ends the job if that takes too long. */
#define aq_test_wait(COUNT, N) aq_test_wait_at((COUNT), (N), __FILE__, __LINE__, #COUNT)

/* Tests and polls until EVENT is complete; ends the job if that takes too long. */
#define aq_test_sync(EVENT) aq_test_sync_at((EVENT), __FILE__, __LINE__)

/* Runs FN(number) in N threads while the main thread polls, and joins them. */
#define aq_test_threads(N, FN) aq_test_threads_at((N), (FN), 0, __FILE__, __LINE__)

/* The same for threads that are meant to run for SECONDS. */
#define aq_test_threads_for(N, FN, SECONDS) \
    aq_test_threads_at((N), (FN), (SECONDS), __FILE__, __LINE__)

/* Waits until EXPR is true, polling; ends the job if that takes too long. */
#define AQ_UNTIL(EXPR)                                                           \
    do {                                                                         \
        const double aq_until = aq_test_clock() + aq_test_limit();               \
        while (!(EXPR)) {                                                        \
            aq_test_relax();                                                     \
            if (aq_test_clock() > aq_until)                                      \
                aq_test_die(__FILE__, __LINE__, "never became true: %s", #EXPR); \
        }                                                                        \
    } while (0)

#define AQ_CHECK(COND)                                     \
    do {                                                   \
        if (!(COND))                                       \
            aq_test_fail(__FILE__, __LINE__, "%s", #COND); \
    } while (0)

#define AQ_CHECK_EQ(A, B)                                                                        \
    do {                                                                                         \
        const long long aq_a = (long long)(A), aq_b = (long long)(B);                            \
        if (aq_a != aq_b)                                                                        \
            aq_test_fail(__FILE__, __LINE__, "%s: got %lld, expected %lld (%s)", #A, aq_a, aq_b, \
                         #B);                                                                    \
    } while (0)

#define AQ_CHECK_PTR(A, B)                                                                        \
    do {                                                                                          \
        const void *aq_a = (const void *)(A), *aq_b = (const void *)(B);                          \
        if (aq_a != aq_b)                                                                         \
            aq_test_fail(__FILE__, __LINE__, "%s: got %p, expected %p (%s)", #A, aq_a, aq_b, #B); \
    } while (0)

/* One entry of a handler table, in the order that positional initialisers rely on. */
#define AQ_ENTRY(INDEX, FN, FLAGS, NARGS)                       \
    {                                                           \
        (INDEX), (gex_AM_Fn_t)(FN), (FLAGS), (NARGS), NULL, #FN \
    }
#define AQ_LENGTH(ARRAY) (sizeof(ARRAY) / sizeof((ARRAY)[0]))

/* Flags as handler tables want them, short enough for a line. */
#define AQ_SQ (GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST)
#define AQ_SP (GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY)
#define AQ_MQ (GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST)
#define AQ_MP (GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY)
#define AQ_LQ (GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST)
#define AQ_LP (GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY)

/* A pointer as two handler arguments, and back. */
#define AQ_HI(P) ((gex_AM_Arg_t)((uint64_t)(uintptr_t)(P) >> 32))
#define AQ_LO(P) ((gex_AM_Arg_t)(uint64_t)(uintptr_t)(P))
static inline void *aq_test_pointer(gex_AM_Arg_t hi, gex_AM_Arg_t lo)
{
    return (void *)(uintptr_t)(((uint64_t)(uint32_t)hi << 32) | (uint32_t)lo);
}

#endif
