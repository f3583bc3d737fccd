/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_load_peer.c - the programs beside ours on a loaded machine: round trips and barriers by
 * words in shared memory, or by a UDP socket, whose ranks spin or yield.
 * Owns      nothing
 * Threads   one in every process
 * Uses      bench_load.h, sockets
 *
 * A rank that has looked in vain for very long polls the library once: a peer may still need an
 * answer to what this rank sent before it left the library.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench_load.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#define AQ_LOAD_LOOKS 65536u /* looks in vain between polls of the library */

/* A message: as small as the other limits over sockets have them. */
struct aq_load_message {
    uint64_t rank, kind, number;
    unsigned char rest[AQ_WIRE_MIN - 24];
};

static inline void aq_load_idle(struct aq_load_peer *p)
{
    if (p->yields)
        sched_yield();
    else
        aq_limit_pause();
    if (++p->looks % AQ_LOAD_LOOKS == 0)
        gasnet_AMPoll();
}

/* --- shared memory --- */

/* release and acquire: what the sender did before is visible */
static inline void aq_load_tell(struct aq_limit_line *line, uint64_t number)
{
    atomic_store_explicit(&line->seq, number, memory_order_release);
}

static inline void aq_load_await(struct aq_load_peer *p, struct aq_limit_line *line,
                                 uint64_t number)
{
    while (atomic_load_explicit(&line->seq, memory_order_acquire) < number)
        aq_load_idle(p);
}

static void aq_load_trip_shared(struct aq_load_peer *p, uint64_t number)
{
    struct aq_limit_line *remote_addr = &p->area->remote_addr[p->rank / 2],
                         *back = &p->area->back[p->rank / 2];

    if (p->rank % 2 == 0) {
        aq_load_tell(remote_addr, number);
        aq_load_await(p, back, number);
    } else {
        aq_load_await(p, remote_addr, number);
        aq_load_tell(back, number);
    }
}

/* --- sockets --- */

int aq_load_peer_open(struct aq_load_peer *p)
{
    struct sockaddr_in self = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(self);

    p->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (p->fd < 0 || bind(p->fd, (struct sockaddr *)&self, size) != 0
        || getsockname(p->fd, (struct sockaddr *)&self, &size) != 0)
        return -1;
    p->ports[p->rank] = self.sin_port;
    return 0;
}

static void aq_load_send(struct aq_load_peer *p, unsigned to, unsigned kind, uint64_t number)
{
    const struct sockaddr_in remote_addr = { .sin_family = AF_INET,
                                             .sin_port = p->ports[to],
                                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const struct aq_load_message m = { .rank = p->rank, .kind = kind, .number = number };

    (void)!sendto(p->fd, &m, sizeof(m), 0, (const struct sockaddr *)&remote_addr,
                  sizeof(remote_addr));
}

static void aq_load_receive(struct aq_load_peer *p, unsigned from, unsigned kind, uint64_t number)
{
    struct aq_load_message m;

    while (p->seen[from][kind] < number) {
        if (recv(p->fd, &m, sizeof(m), MSG_DONTWAIT) != (ssize_t)sizeof(m))
            aq_load_idle(p);
        else if (m.rank < p->ranks && m.kind <= AQ_LOAD_ROUNDS)
            p->seen[m.rank][m.kind] = MAX(p->seen[m.rank][m.kind], m.number);
    }
}

static void aq_load_trip_sockets(struct aq_load_peer *p, uint64_t number)
{
    const unsigned other = p->rank ^ 1u;

    if (p->rank % 2 == 0) {
        aq_load_send(p, other, 0, number);
        aq_load_receive(p, other, 0, number);
    } else {
        aq_load_receive(p, other, 0, number);
        aq_load_send(p, other, 0, number);
    }
}

/* --- both --- */

void aq_load_peer_trip(struct aq_load_peer *p)
{
    const uint64_t number = ++p->trips;

    if (p->area != NULL)
        aq_load_trip_shared(p, number);
    else
        aq_load_trip_sockets(p, number);
}

void aq_load_peer_barrier(struct aq_load_peer *p)
{
    const uint64_t number = ++p->barriers;

    for (unsigned round = 0; 1u << round < p->ranks; round++) {
        const unsigned to = (p->rank + (1u << round)) % p->ranks;
        const unsigned from = (p->rank + p->ranks - (1u << round)) % p->ranks;

        if (p->area != NULL) {
            aq_load_tell(&p->area->flags[to][round], number);
            aq_load_await(p, &p->area->flags[p->rank][round], number);
        } else {
            aq_load_send(p, to, 1 + round, number);
            aq_load_receive(p, from, 1 + round, number);
        }
    }
}
