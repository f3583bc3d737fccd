/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_link_internal.h - shared by the two files behind aq_spawn_link.h.
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
#define AQ_LINK_ADDRESSES 6  /* that an address names at most */
#define AQ_LINK_NAME      48 /* bytes of a host's name in a datagram, NUL included */

/* what is said; flags are 0 or 1 and never go back */
struct aq_link_note {
    uint8_t begun;  /* the end has begun */
    uint8_t logged; /* the one message about it is out */
    uint8_t asked;  /* the code is settled */
    uint8_t done;   /* up: my part of the tree has ended; down: the job has */
    uint8_t linked; /* up: all of my part hears me; down: everybody hears everybody */
    uint8_t unused[3];
    int32_t code;    /* the job's */
    uint32_t ask_ms; /* until those are asked who have not come to the exit */
};

struct aq_link_end {
    struct sockaddr_in6 addr; /* where its last genuine datagram came from; family 0: none yet */
    char name[AQ_LINK_NAME];
    struct aq_link_note last_seen, said;
    uint64_t sent_ns, last_seen_ns; /* 0: never */
    uint64_t sent,
        last_seen_serial;    /* datagrams are numbered: one recorded and sent again is old */
    uint64_t refused_serial; /* of ours, the last that was refused */
    uint32_t host;
    uint32_t last_seen_version;
    uint32_t version;   /* of said */
    uint32_t confirmed; /* the version that it has */
    uint32_t pause_ms;  /* until said is sent again */
    uint32_t refused;   /* so many times in a row */
    bool fresh;         /* heard has just come */
    bool answer;        /* it wants to know what we have */
    bool lost;
};

struct aq_link_area {
    _Atomic int32_t owner;                 /* pid */
    _Atomic uint32_t whole, done, settled; /* flags for all ranks of the host; futexes */
    _Atomic uint32_t silent; /* a neighbour was lost that its launcher may think alive */
    uint64_t done_ns, step_ns;
    uint32_t count;  /* of end[] */
    bool has_parent; /* it is end[0] */
    uint32_t candidates;
    struct sockaddr_in6 candidate[AQ_LINK_ADDRESSES]; /* where the parent may be */
    struct aq_link_end end[AQ_LINK_DEGREE + 1];
};

struct aq_link {
    struct aq_link_area *area;
    const struct aq_spawn_info *info;
    int fd;
    pid_t self;
    uint64_t silence_ns; /* GASNET_HOST_TIMEOUT; 0: never */
    uint32_t alive_ms;   /* something is said so often */
    uint8_t key[2][16];
};

extern struct aq_link aq_link_me;

/** aq_link_socket - a new UDP socket, described in addr_out; -1 with errno. */
int aq_link_socket(char addr_out[AQ_LINK_ADDR_MAX]);

/** aq_link_make_keys - this use's own keys, out of the job's. */
void aq_link_make_keys(const uint8_t job_key[32]);

/** aq_link_send - what is in end->said, to where the neighbour is or may be. */
void aq_link_send(struct aq_link_end *end);

/** aq_link_receive - read all that has come, refusals as well. */
void aq_link_receive(void);

#endif
