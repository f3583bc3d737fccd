/*
 * aq_ibv_hello.h - how two ranks agree on a connection, over datagrams that may be lost, doubled
 * and overtaken.
 *
 * Each packet says what its sender's queue pairs are and how far it is:
 *
 *     ASK     my queue pairs are made; I do not know yours
 *     HAVE    I know yours, and receive on mine
 *     READY   I know that you receive on yours
 *
 * The receiver of a packet knows the sender's queue pairs, so is at HAVE at least; a receiver of
 * HAVE or READY is at READY, and may send. ASK and HAVE are answered, READY is not; who is below
 * READY repeats himself. Both sides may begin at the same time: there is nothing to be decided. A
 * packet that comes late or twice says what is known already.
 *
 * Trust     a packet carries a keyed hash (SipHash-2-4, under a key made of the job's) over
 *           everything, sender and receiver included: strangers neither connect nor divert. What a
 *           rank says first is what counts: a later packet with other queue pairs is refused
 * Threads   none of its own; the connector calls, under aq_ibv.connect_lock
 * Uses      other/spawn/aq_siphash.h; knows neither devices nor clocks, so that tests run it over a
 *           simulated network
 * See       tests/model/ibv_hello.pml. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_HELLO_H
#define AQ_IBV_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AQ_IBV_RAILS 4u /* ports that a process uses */
/* queue pairs between two ranks: so many fit a datagram of 256 bytes */
#define AQ_IBV_QPS         4u
#define AQ_IBV_HELLO_BYTES 256u
#define AQ_IBV_HOST        36u /* bytes of a host's name, with the zero: what a card has room for */

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
    uint64_t cell; /* struct aq_ibv_cell, for what is granted to the sender */
    uint32_t cell_rkey;
    uint32_t window; /* credits of each lane to begin with */
};

/* Where a rank's datagrams go; published at the start. */
struct aq_ibv_address {
    uint8_t gid[16];
    uint32_t qpn, qkey; /* qpn 0: it has no far ranks */
    uint16_t lid;
    uint8_t gid_type; /* enum aq_ibv_gid_type */
    uint8_t rails;
    char host[AQ_IBV_HOST]; /* the name of its host, for messages; perhaps cut */
};

_Static_assert(sizeof(struct aq_ibv_address) == 64, "as large as aq_spawn_publish() takes");

/* What is kept of a peer. */
struct aq_ibv_hello {
    uint32_t step;     /* enum aq_ibv_hello_step */
    uint32_t me, peer; /* ranks */
    uint8_t key[16];
    struct aq_ibv_hello_info local, remote;
    uint64_t next_ns, wait_ns; /* when to repeat; how long then */
    uint64_t again_ns;         /* when to try what could not be sent; 0: nothing */
    uint64_t since_ns;         /* of the first packet */
    uint32_t tries;
    bool answer; /* a packet is owed */
};

struct aq_ibv_hello_times {
    uint64_t first_ns, max_ns; /* between repetitions */
};

/* The key of two ranks, the same for both. */
void aq_ibv_hello_key(const uint8_t job_key[32], uint32_t a, uint32_t b, uint8_t key_out[16]);
/* Begin: mine is filled in. */
void aq_ibv_hello_begin(struct aq_ibv_hello *hello, uint64_t now_ns,
                        const struct aq_ibv_hello_times *times);
/* The packet to send now; returns its length. */
size_t aq_ibv_hello_encode(const struct aq_ibv_hello *hello,
                           uint8_t packet_out[AQ_IBV_HELLO_BYTES]);
/* The sender's rank, unproven, of something that may be a packet for me; false: it is none. */
bool aq_ibv_hello_from(const uint8_t *packet, size_t len, uint32_t me, uint32_t *from_out);

/* The same with proof, for a sender of whom nothing is kept yet. */
bool aq_ibv_hello_is_genuine(const uint8_t job_key[32], uint32_t me, uint32_t from,
                             const uint8_t *packet, size_t len);

/* What a packet brought; 0: nothing new. */
#define AQ_IBV_HELLO_BAD \
    1u /* not the peer's, or it contradicts what the peer said: it counts for nothing */
#define AQ_IBV_HELLO_MET  2u /* theirs is there: join the queue pairs before anything is sent */
#define AQ_IBV_HELLO_DONE 4u /* the peer receives: messages may be sent */
unsigned aq_ibv_hello_take(struct aq_ibv_hello *hello, const uint8_t *packet, size_t len);
/* Is a packet to be sent now? Counts it as sent. */
bool aq_ibv_hello_due(struct aq_ibv_hello *hello, uint64_t now_ns,
                      const struct aq_ibv_hello_times *times);
/* It could not be sent: try again at when_ns. */
void aq_ibv_hello_again(struct aq_ibv_hello *hello, uint64_t when_ns);
/* When to ask again; UINT64_MAX: never. */
uint64_t aq_ibv_hello_deadline(const struct aq_ibv_hello *hello);

#endif
