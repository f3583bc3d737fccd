/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_link_internal.h - internal header of aq_spawn_link.c and aq_spawn_link_wire.c.
 * Owns      struct aq_link, this process's view; struct aq_link_area, the page that the host's
 *           ranks share
 * Threads   see aq_spawn_link.h
 */
#ifndef AQ_SPAWN_LINK_INTERNAL_H
#define AQ_SPAWN_LINK_INTERNAL_H

#include <netinet/in.h>
#include <sys/types.h>

#include "other/spawn/aq_spawn_link.h"

#define AQ_LINK_DEGREE    32
#define AQ_LINK_ADDRESSES 6  /* maximum number in an address text */
#define AQ_LINK_NAME      48 /* bytes of a host's name in a datagram, NUL included */

/* what a host tells a neighbour; flags are 0 or 1 and never return to 0 */
struct aq_link_note {
    uint8_t begun;  /* the shutdown has begun */
    uint8_t logged; /* the one message about it is printed */
    uint8_t asked;  /* the code is settled */
    uint8_t done;   /* up: this subtree has ended; down: the job has */
    /* up: all of this subtree receives from this host; down: all hosts receive from each other */
    uint8_t linked;
    uint8_t unused[3];
    int32_t code;    /* the job's */
    uint32_t ask_ms; /* until ranks that have not come to the exit are asked */
};

struct aq_link_end {
    struct sockaddr_in6 addr; /* source of its last genuine datagram; family 0: none yet */
    char name[AQ_LINK_NAME];
    struct aq_link_note last_seen, said;
    uint64_t sent_ns, last_seen_ns;  /* 0: never */
    uint64_t sent, last_seen_serial; /* datagrams are numbered: a replayed one is old */
    /* serial number of the last of this host's datagrams that was refused */
    uint64_t refused_serial;
    uint32_t host;
    uint32_t last_seen_version;
    uint32_t version;   /* version of `said` */
    uint32_t confirmed; /* the version that the neighbour has */
    uint32_t pause_ms;  /* until `said` is retransmitted */
    uint32_t refused;   /* refusals in a row */
    bool fresh;         /* `heard` has just arrived */
    bool answer;        /* the neighbour asks which version this host has */
    bool lost;
};

struct aq_link_area {
    _Atomic int32_t owner;                 /* pid */
    _Atomic uint32_t whole, done, settled; /* flags for all ranks of the host; futexes */
    _Atomic uint32_t silent; /* a neighbour was lost that its launcher may regard as alive */
    uint64_t done_ns, step_ns;
    uint32_t count;  /* number of end[] */
    bool has_parent; /* the parent is end[0] */
    uint32_t candidates;
    struct sockaddr_in6 candidate[AQ_LINK_ADDRESSES]; /* possible addresses of the parent */
    struct aq_link_end end[AQ_LINK_DEGREE + 1];
};

struct aq_link {
    struct aq_link_area *area;
    const struct aq_spawn_info *info;
    int fd;
    pid_t self;
    uint64_t silence_ns;       /* GASNET_HOST_TIMEOUT; 0: never */
    uint32_t alive_ms;         /* longest time without a datagram */
    atomic_bool disconnecting; /* see aq_link_disconnect() */
    uint8_t key[2][16];
};

extern struct aq_link aq_link_me;

/** aq_link_socket - opens a UDP socket and describes it in addr_out; -1 with errno. */
int aq_link_socket(char addr_out[AQ_LINK_ADDR_MAX]);

/** aq_link_make_keys - derives the keys of the link from the job's key. */
void aq_link_make_keys(const uint8_t job_key[32]);

/** aq_link_send - sends end->said to the neighbour's address, or to its possible addresses. */
void aq_link_send(struct aq_link_end *end);

/** aq_link_receive - reads all pending datagrams and refusals. */
void aq_link_receive(void);

#endif
