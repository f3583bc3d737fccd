/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_wire.h - the limits of rows whose ranks reach each other over UDP: what plain sockets
 * between the same two processes can do.
 * Owns      the sockets and buffers of one struct aq_wire, made by aq_wire_open()
 * Threads   one driver and one responder, each in its own process
 * Uses      sockets and the C library only
 *
 * Two connected sockets a side: messages, credits and requests on one, streams on the other. Nobody
 * sleeps: both sides spin with MSG_DONTWAIT. Nothing is lost on a link that loses nothing: streams
 * and floods are paced by credits. Where something is lost all the same, a wait ends after
 * aq_wire_timeout_ns and the slice is spoilt, but nobody hangs.
 *
 * A stream may go as plain datagrams or as GSO batches that the kernel cuts (UDP_SEGMENT), the
 * receiver letting it join them again (UDP_GRO); with datagrams as large as the interface takes, or
 * smaller ones that stay in a cache. Each of these is a way; who measures tries all and takes the
 * fastest as the limit.
 */
#ifndef AQ_BENCH_WIRE_H
#define AQ_BENCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AQ_WIRE_MIN      64    /* bytes of a message with no payload to speak of */
#define AQ_WIRE_SMALL    32768 /* operations up to here travel as one message */
#define AQ_WIRE_DATAGRAM 65507 /* largest payload of a UDP datagram over IPv4 */

extern double
    aq_wire_timeout_ns; /* how long a wait lasts at most; who waits on a busy machine wants more */

/* How a stream travels. */
struct aq_wire_way {
    unsigned datagram; /* bytes on the wire at a time */
    unsigned batch;    /* bytes given to one call; more than datagram: the kernel cuts it */
    unsigned window;   /* bytes sent and not yet credited, at most */
};

#define AQ_WIRE_WAYS 16

/* Where a side can be reached: IPv4 address and two ports, as in the headers of packets; and how
 * many bytes the kernel keeps for it. */
struct aq_wire_address {
    uint32_t host;
    uint16_t message_port, stream_port;
    uint32_t space;
};

struct aq_wire {
    int message, stream;            /* connected sockets; negative: none */
    uint64_t round;                 /* number of the last message round */
    unsigned char *source, *target; /* of streams, largest + a datagram bytes each */
    size_t largest;
    uint32_t space; /* bytes that either side's socket keeps, the kernel's own not counted */
    struct aq_wire_way ways[AQ_WIRE_WAYS];
    unsigned count, way; /* ways that work here; the one in use */
    unsigned spoilt;     /* waits that were given up */
};

/** aq_wire_open - sockets bound to host (network byte order), buffers for streams of operations up
 *  to largest bytes; 0, or -1 and errno. */
int aq_wire_open(struct aq_wire *w, uint32_t host, size_t largest,
                 struct aq_wire_address *self_out);

/** aq_wire_connect - to the other side; finds the ways that work. 0, or -1 and errno. */
int aq_wire_connect(struct aq_wire *w, const struct aq_wire_address *remote_addr);

void aq_wire_close(struct aq_wire *w);

/** aq_wire_way_name - the way in use, in words. */
void aq_wire_way_name(const struct aq_wire *w, char *buf, size_t size);

/** aq_wire_ready, aq_wire_is_ready - the responder says that it listens to its sockets now; has it
 *  said so? Both first forget what is left over from before. */
void aq_wire_ready(struct aq_wire *w);
bool aq_wire_is_ready(struct aq_wire *w);
void aq_wire_forget(struct aq_wire *w);

/** aq_wire_ping, aq_wire_pong - messages of n bytes there and back, iters times. */
void aq_wire_ping(struct aq_wire *w, size_t n, uint64_t iters);
void aq_wire_pong(struct aq_wire *w, size_t n, uint64_t iters);

/** aq_wire_put, aq_wire_get - n bytes there and a small message back, or the other way round: what
 *  a blocking put or get of few bytes needs. n <= AQ_WIRE_SMALL. */
void aq_wire_put(struct aq_wire *w, size_t n, uint64_t iters);
void aq_wire_put_peer(struct aq_wire *w, size_t n, uint64_t iters);
void aq_wire_get(struct aq_wire *w, size_t n, uint64_t iters);
void aq_wire_get_peer(struct aq_wire *w, size_t n, uint64_t iters);

/** aq_wire_exchange - both send a message and wait for the other's, iters times: a barrier of two.
 * */
void aq_wire_exchange(struct aq_wire *w, size_t n, uint64_t iters);

/** aq_wire_flood, aq_wire_drain - one send() a message of n bytes; the receiver's recv(). */
void aq_wire_flood(struct aq_wire *w, size_t n, uint64_t iters);
void aq_wire_drain(struct aq_wire *w, size_t n, uint64_t iters);

/** aq_wire_send, aq_wire_receive - a stream of iters operations of n bytes the way in use. each: an
 *  operation begins when the one before has arrived, and, for requests, when the receiver has asked
 *  for it. */
void aq_wire_send(struct aq_wire *w, size_t n, uint64_t iters, bool each, bool requests);
void aq_wire_receive(struct aq_wire *w, size_t n, uint64_t iters, bool each, bool requests);

#endif
