/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_raw.h - the limits of rows over the mpi and ibv conduits: what bare MPI, or bare verbs, can
 * do between the same two processes.
 * Owns      nothing
 * Threads   one in every process
 * Uses      the C library only; the table is filled in by a module, which alone sees the library's
 *           header: module/bench_raw_m.c mpi.h, module/bench_verbs_m.c infiniband/verbs.h
 *
 * The module for MPI is compiled by the wrapper that the conduit's own module is compiled by, so
 * both use the same MPI, which the conduit has initialised. It has a communicator of its own, and a
 * window, if the MPI makes one; receives that the conduit has posted stay posted while a limit
 * runs. The one for verbs has a queue pair of its own on the device that the conduit uses.
 *
 * Where there is more than one way for the same thing (one-sided or a message; waiting for each or
 * for many), each is a way: who measures tries all and takes the fastest as the limit.
 */
#ifndef AQ_BENCH_RAW_H
#define AQ_BENCH_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum aq_raw_kind {
    AQ_RAW_NONE,  /* the row has no such limit */
    AQ_RAW_PING,  /* a message there and one back */
    AQ_RAW_FLOOD, /* messages one way */
    AQ_RAW_PUT,   /* the next begins when the last has arrived */
    AQ_RAW_GET,
    AQ_RAW_PUT_STREAM, /* many under way */
    AQ_RAW_GET_STREAM,
    AQ_RAW_FADD,
    AQ_RAW_BARRIER,
    AQ_RAW_BROADCAST,
    AQ_RAW_REDUCE,
    AQ_RAW_ALLREDUCE
};

#define AQ_RAW_MIN   8    /* bytes of a message with no payload to speak of */
#define AQ_RAW_LARGE 4096 /* from here on an operation may also travel as a message */
#define AQ_RAW_WAYS  4

/* Ranks 0 and 1 give each other size bytes, 128 at most; what the other gave is in theirs. */
typedef void aq_raw_exchange_fn(const void *ours, void *remote, size_t size);

struct aq_raw_lib {
    /* Collective: rank of the job's rank here, operations of at most largest bytes. NULL, or what
     * failed. */
    const char *(*open)(uint32_t rank, size_t largest, aq_raw_exchange_fn *exchange);
    void (*close)(void);                               /* collective */
    unsigned (*ways)(enum aq_raw_kind kind, size_t n); /* 0: no such limit */
    const char *(*name)(enum aq_raw_kind kind, unsigned way);
    const char *(*version)(void); /* of the library, in words */
    /* The responder, rank 1, says that it is in the module now; has it said so? */
    void (*ready)(void);
    bool (*is_ready)(void);
    /* This rank's part of iters operations of n bytes. Rank 0 drives. */
    void (*run)(enum aq_raw_kind kind, unsigned way, size_t n, uint64_t iters);
};

/* What the module is looked up by; %s is the conduit. */
#define AQ_RAW_FILE   "aq-bench-%s.so"
#define AQ_RAW_SYMBOL "aq_bench_raw"
extern const struct aq_raw_lib aq_bench_raw;

#endif
