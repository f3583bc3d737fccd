/*
 * armci_protocol.h - the ways in which bytes go to and come from a rank that shares no memory with
 * the caller: settings that force one, and counters that show which were used.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_ARMCI_PROTOCOL_H
#define AQ_ARMCI_PROTOCOL_H 1

#include <stdbool.h>
#include <stddef.h>

/* AQ_ARMCI_PUT, AQ_ARMCI_GET: how a contiguous transfer goes. */
enum aq_armci_way_of {
    AQ_ARMCI_WAY_AUTO,
    AQ_ARMCI_WAY_DIRECT,   /* one put or get, from or to the program's memory */
    AQ_ARMCI_WAY_BUFFERED, /* chunk by chunk through buffers of the segment */
    AQ_ARMCI_WAY_ASSISTED, /* gets: the target's service thread puts the chunks */
};

/* AQ_ARMCI_STRIDED: how a section goes. */
enum aq_armci_strided {
    AQ_ARMCI_STRIDED_AUTO,     /* one call, whose runs are packed if they are short */
    AQ_ARMCI_STRIDED_PACKED,   /* one call, whose runs are packed whatever their length */
    AQ_ARMCI_STRIDED_SEGMENTS, /* a put or get for each run */
};

#define AQ_ARMCI_MAX_BUFFERS 16

struct aq_armci_protocol {
    enum aq_armci_way_of put, get;
    enum aq_armci_strided strided;
    size_t long_put, long_get; /* runs of so many bytes go by themselves: AUTO */
    bool aggregate; /* AQ_ARMCI_AGGREGATE: what an aggregate handle collects goes together */
    bool stats;     /* AQ_ARMCI_STATS: the counters are printed at the end */
    int buffers;    /* AQ_ARMCI_BUFFERS */
    size_t chunk;   /* AQ_ARMCI_CHUNK: bytes of a buffer */
    size_t first;   /* AQ_ARMCI_FIRST_CHUNK: bytes of the first chunk; the next ones double */
};
extern struct aq_armci_protocol aq_armci_protocol;

/* What only transfers between ranks without common memory count. */
#define AQ_ARMCI_COUNTERS(X)                                           \
    X(put_direct) /* contiguous puts, each way */                      \
    X(put_buffered)                                                    \
    X(put_chunks) /* of the buffered ones */                           \
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
    X(acc_messages)

#define AQ_ARMCI_COUNTER_ID(name) AQ_ARMCI_COUNT_##name,
enum aq_armci_counter { AQ_ARMCI_COUNTERS(AQ_ARMCI_COUNTER_ID) AQ_ARMCI_COUNT_END };

/* Written by the program's thread. */
extern unsigned long aq_armci_counters[AQ_ARMCI_COUNT_END];
#define AQ_ARMCI_COUNT(name, n) (aq_armci_counters[AQ_ARMCI_COUNT_##name] += (unsigned long)(n))

/* Before Aqueduct starts: what it has to know. After: the rest. At the end of ARMCI: buffers and
 * report. */
void aq_armci_protocol_prepare(void);
void aq_armci_protocol_start(void);
void aq_armci_protocol_end(void);

/* A section of such runs goes by segments. */
bool aq_armci_by_segments(size_t run, bool is_put);

/* A contiguous transfer of bytes > 0 with proc, whose memory is not mapped, by the chosen way if it
 * is not the direct one: true if it is done. The source of a put may then be reused; a get is
 * complete. */
bool aq_armci_put_chunks(int proc, void *owner, const void *src, size_t bytes);
bool aq_armci_get_chunks(int proc, void *dst, const void *owner, size_t bytes);
/* Waits for chunks of puts to proc that have not arrived. */
void aq_armci_wait_chunks(int proc);

#endif
