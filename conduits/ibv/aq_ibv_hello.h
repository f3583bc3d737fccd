/*
 * aq_ibv_hello.h - the handshake of two ranks, over datagrams that may be lost, duplicated and
 * reordered.
 *
 * Each packet says what its sender's queue pairs are, and the sender's step:
 *
 *     ASK     my queue pairs are made; I do not know yours
 *     HAVE    I know yours, and receive on mine
 *     READY   I know that you receive on yours
 *
 * A rank that gets a packet knows the sender's queue pairs and is at HAVE at least. A rank that
 * gets HAVE or READY is at READY and may send. ASK and HAVE are answered, READY is not. A rank
 * below READY repeats its packet. Both sides may start at the same time. A packet that comes late
 * or twice says nothing new.
 *
 * Trust     a packet carries a keyed hash (SipHash-2-4, under a key derived from the job's) over
 *           everything, sender and receiver included: an unauthenticated sender can neither connect
 *           nor divert a connection. The first statement of a rank counts: a later packet with
 *           other queue pairs is refused
 * Threads   none of its own; the connector calls, under connect_lock
 * Uses      other/spawn/aq_siphash.h; knows neither devices nor clocks, so that tests run it over a
 *           simulated network
 * See       tests/model/ibv_hello.pml. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_HELLO_H
#define AQ_IBV_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* queue pairs between two ranks: so many fit a datagram of 256 bytes */
#define AQ_IBV_QPS         4u
#define AQ_IBV_HELLO_BYTES 256u
/* bytes of a host's name, with the zero: what an address has space for */
#define AQ_IBV_HOST 36u

enum aq_ibv_hello_step {
    AQ_IBV_HELLO_NONE,
    AQ_IBV_HELLO_ASK,
    AQ_IBV_HELLO_HAVE,
    AQ_IBV_HELLO_READY
};

/* A queue pair, and the port that it is on. */
struct aq_ibv_hello_qp {
    uint8_t gid[16];
    uint32_t number, psn; /* 24 bits each */
    uint16_t lid;
    uint8_t mtu;      /* enum ibv_mtu */
    uint8_t gid_type; /* enum aq_ibv_gid_type */
    uint8_t reads;    /* RDMA reads and atomics that it serves at a time */
};

struct aq_ibv_hello_info {
    uint32_t count, rails;
    struct aq_ibv_hello_qp qps[AQ_IBV_QPS];
    uint64_t cell; /* address of a struct aq_ibv_cell: where the sender receives credit updates */
    uint32_t cell_rkey;
    uint32_t window; /* credits of each channel at the start */
};

/* Where a rank's datagrams go; published at the start. */
struct aq_ibv_address {
    uint8_t gid[16];
    uint32_t qpn, qkey; /* qpn 0: it has no remote ranks */
    uint16_t lid;
    uint8_t gid_type; /* enum aq_ibv_gid_type */
    uint8_t rails;
    char host[AQ_IBV_HOST]; /* host name, for messages; perhaps cut */
};

_Static_assert(sizeof(struct aq_ibv_address) == 64, "as large as aq_spawn_publish() takes");

/* The handshake with one peer. */
struct aq_ibv_hello {
    uint32_t step;     /* enum aq_ibv_hello_step */
    uint32_t me, peer; /* ranks */
    uint8_t key[16];
    struct aq_ibv_hello_info local, remote;
    uint64_t next_ns, wait_ns; /* when to repeat; how long then */
    uint64_t again_ns;         /* when to try what could not be sent; 0: nothing */
    uint64_t since_ns;         /* of the first packet */
    uint32_t tries;
    bool answer; /* a packet is due */
};

struct aq_ibv_hello_times {
    uint64_t first_ns, max_ns; /* between repetitions */
};

/* The key of two ranks, the same for both. */
void aq_ibv_hello_key(const uint8_t job_key[32], uint32_t a, uint32_t b, uint8_t key_out[16]);
/* Start: local is filled in. */
void aq_ibv_hello_begin(struct aq_ibv_hello *hello, uint64_t now_ns,
                        const struct aq_ibv_hello_times *times);
/* The packet to send now; returns its length. */
size_t aq_ibv_hello_encode(const struct aq_ibv_hello *hello,
                           uint8_t packet_out[AQ_IBV_HELLO_BYTES]);
/* The sender's rank, not verified, of what may be a packet for rank me; false: it is none. */
bool aq_ibv_hello_from(const uint8_t *packet, size_t len, uint32_t me, uint32_t *from_out);

/* Is the packet authentic? For a sender that has no handshake yet. */
bool aq_ibv_hello_is_genuine(const uint8_t job_key[32], uint32_t me, uint32_t from,
                             const uint8_t *packet, size_t len);

/* What a packet brought: flags; 0: nothing new. */
#define AQ_IBV_HELLO_BAD \
    1u /* not the peer's, or it contradicts the peer's first statement: it is ignored */
#define AQ_IBV_HELLO_MET  2u /* remote is known: connect the queue pairs before anything is sent */
#define AQ_IBV_HELLO_DONE 4u /* the peer receives: messages may be sent */
unsigned aq_ibv_hello_take(struct aq_ibv_hello *hello, const uint8_t *packet, size_t len);
/* Is a packet to be sent now? Counts it as sent. */
bool aq_ibv_hello_due(struct aq_ibv_hello *hello, uint64_t now_ns,
                      const struct aq_ibv_hello_times *times);
/* The packet could not be sent: try again at when_ns. */
void aq_ibv_hello_again(struct aq_ibv_hello *hello, uint64_t when_ns);
/* When to call aq_ibv_hello_due(); UINT64_MAX: never. */
uint64_t aq_ibv_hello_deadline(const struct aq_ibv_hello *hello);

#endif
