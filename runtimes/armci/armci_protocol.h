/*
 * armci_protocol.h - the protocols of transfers between ranks that share no memory: settings that
 * force one, and counters that show which were used.
 *
 * Owns      aq_armci_protocol, aq_armci_counters
 * Threads   the program's
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_ARMCI_PROTOCOL_H
#define AQ_ARMCI_PROTOCOL_H 1

#include <stdbool.h>
#include <stddef.h>

/* AQ_ARMCI_PUT: the protocol of a contiguous put. */
enum aq_armci_put {
    AQ_ARMCI_PUT_AUTO,
    AQ_ARMCI_PUT_DIRECT,   /* one put, from the program's memory */
    AQ_ARMCI_PUT_BUFFERED, /* chunk by chunk through buffers of the segment */
    AQ_ARMCI_PUT_EAGER,    /* blocking ones, of sections too: messages (armci_stream.h) */
};

/* AQ_ARMCI_GET: the protocol of a contiguous get. */
enum aq_armci_get {
    AQ_ARMCI_GET_AUTO,
    AQ_ARMCI_GET_DIRECT,   /* one get, to the program's memory */
    AQ_ARMCI_GET_BUFFERED, /* chunk by chunk through buffers of the segment */
    AQ_ARMCI_GET_ASSISTED, /* the target's service thread puts the chunks */
};

/* AQ_ARMCI_STRIDED: the protocol of a section. */
enum aq_armci_strided {
    AQ_ARMCI_STRIDED_AUTO,     /* see armci_choose.c */
    AQ_ARMCI_STRIDED_PACKED,   /* one call, which packs all runs */
    AQ_ARMCI_STRIDED_SEGMENTS, /* a put or get for each run */
};

#define AQ_ARMCI_MAX_BUFFERS 16

struct aq_armci_protocol {
    enum aq_armci_put put;
    enum aq_armci_get get;
    enum aq_armci_strided strided;
    bool aggregate; /* AQ_ARMCI_AGGREGATE: operations of an aggregate handle go as one transfer */
    bool stats;     /* AQ_ARMCI_STATS: the counters are printed at the end */
    size_t eager;   /* AQ_ARMCI_EAGER: bytes that a blocking put sends as a message at most */
    int buffers;    /* AQ_ARMCI_BUFFERS */
    size_t chunk;   /* AQ_ARMCI_CHUNK: bytes of a buffer */
    size_t first;   /* AQ_ARMCI_FIRST_CHUNK: bytes of the first chunk; the next ones double */
};
extern struct aq_armci_protocol aq_armci_protocol;

/* Counters of transfers between ranks that share no memory. */
#define AQ_ARMCI_COUNTERS(X)                                           \
    X(put_direct) /* contiguous puts by protocol */                    \
    X(put_buffered)                                                    \
    X(put_chunks) /* of the buffered ones */                           \
    X(put_eager)  /* blocking puts, of sections too, that went as */   \
    X(put_messages)                                                    \
    X(get_direct)                                                      \
    X(get_buffered)                                                    \
    X(get_assisted)                                                    \
    X(get_chunks)       /* of the last two */                          \
    X(stalls)           /* waits for a buffer that was still in use */ \
    X(bytes_copied)     /* through buffers */                          \
    X(strided_calls)    /* sections that went as one call */           \
    X(strided_segments) /* runs that went by themselves */             \
    X(vector_calls)     /* lists that went as one call */              \
    X(aggregated)       /* operations that aggregate handles took */   \
    X(aggregate_calls)  /* vector transfers that they became */        \
    X(acc_messages)                                                    \
    X(run_ns) /* the time of a run by itself, as measured at start */

#define AQ_ARMCI_COUNTER_ID(name) AQ_ARMCI_COUNT_##name,
enum aq_armci_counter { AQ_ARMCI_COUNTERS(AQ_ARMCI_COUNTER_ID) AQ_ARMCI_COUNT_END };

/* Written by the program's thread. */
extern unsigned long aq_armci_counters[AQ_ARMCI_COUNT_END];
#define AQ_ARMCI_COUNT(name, n) (aq_armci_counters[AQ_ARMCI_COUNT_##name] += (unsigned long)(n))

/* prepare: before Aqueduct starts, sets what Aqueduct reads. start: afterwards, reads the settings.
 * end: frees the buffers and prints the counters. */
void aq_armci_protocol_prepare(void);
void aq_armci_protocol_start(void);
void aq_armci_protocol_end(void);

/* Transfers bytes > 0 to or from proc, whose memory is not mapped, by a protocol with buffers.
 * Returns false if the direct protocol is chosen: the caller then does the transfer. True: the
 * source of the put may be reused; the get is complete. */
bool aq_armci_put_chunks(int proc, void *owner, const void *src, size_t bytes);
bool aq_armci_get_chunks(int proc, void *dst, const void *owner, size_t bytes);
/* Waits until the chunks of puts to proc have arrived. */
void aq_armci_wait_chunks(int proc);

#endif
