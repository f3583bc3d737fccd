/*
 * aq_mpi_datagram.c - the UDP socket by which other ranks wake this one.
 *
 * On one host the socket is bound to the loopback. Between hosts a host offers the addresses of its
 * interfaces, since it cannot know which of them others can reach, and each rank is sent a datagram
 * at all of them by a rank of another host. The first address at which one arrives at a host's
 * first rank is the host's.
 * Then the first rank of each host is sent one by that of every other host: a packet filter may let
 * datagrams through between some hosts, or in one direction. A barrier follows the sends, so that
 * what has not arrived soon after it will not arrive.
 *
 * Owns      the socket, the addresses of the ranks
 * Threads   see aq_mpi_datagram.h
 * Uses      aq_mpi_lock.h, other/spawn; sockets. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_datagram.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/aq_log.h"
#include "base/aq_platform.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "core/aq_job.h"
#include "other/spawn/aq_host_address.h"
#include "other/spawn/aq_siphash.h"
#include "other/spawn/aq_spawn.h"

#define AQ_MPI_DATAGRAM_MS      100 /* for a datagram on its way */
#define AQ_MPI_DATAGRAM_COPIES  2   /* sent at start to each address */
#define AQ_MPI_DATAGRAM_OFFERS  4   /* addresses */
#define AQ_MPI_DATAGRAM_AT_ONCE 64  /* taken in one call */
#define AQ_MPI_DATAGRAM_NOTHING UINT32_MAX
#define AQ_MPI_DATAGRAM_HOSTS   32   /* that verify a host at the same time */
#define AQ_MPI_DATAGRAM_BUFFER  4096 /* one datagram says as much as many */
/* At start all of them count, of the next hosts too; the kernel counts up to 2 KiB for one. */
#define AQ_MPI_DATAGRAM_START_BUFFER (2 * AQ_MPI_DATAGRAM_HOSTS * AQ_MPI_DATAGRAM_COPIES * 2048)

struct aq_mpi_datagram_wire {
    uint64_t number;
    /* verifies the address with this index, or the way from host (what - AQ_MPI_DATAGRAM_OFFERS) */
    uint32_t what;
};
#define AQ_MPI_WIRE_WAKEUP sizeof(uint64_t)
#define AQ_MPI_WIRE_VERIFY (sizeof(uint64_t) + sizeof(uint32_t))

struct aq_mpi_datagram_peer {
    struct in6_addr address;
    in_port_t port;
};

/* What a rank offers the others. */
struct aq_mpi_datagram_offer {
    in_port_t port; /* 0: it does not take part */
    uint16_t count;
    struct in6_addr addresses[AQ_MPI_DATAGRAM_OFFERS];
};

static struct {
    int fd;
    bool v4;                            /* the kernel has no IPv6 */
    uint64_t number;                    /* this rank's */
    struct aq_mpi_datagram_peer *peers; /* [size], by jobrank */
} aq_mpi_datagram AQ_JOB_STATE = { .fd = -1 };

int aq_mpi_datagram_fd(void)
{
    return aq_mpi_datagram.fd;
}

static uint64_t aq_mpi_datagram_number(gex_Rank_t jobrank)
{
    char use[] = "conduits/mpi: wake-up of rank 0000";

    memcpy(use + sizeof(use) - 1 - sizeof(jobrank), &jobrank, sizeof(jobrank));
    return aq_siphash(aq_spawn_key(), use, sizeof(use));
}

/* --- sending and taking --- */

static void aq_mpi_datagram_send_to(const struct in6_addr *address, in_port_t port,
                                    const struct aq_mpi_datagram_wire *wire, size_t nbytes)
{
    struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = *address };
    struct sockaddr_in sa4 = { .sin_family = AF_INET, .sin_port = port };

    if (!aq_mpi_datagram.v4) {
        (void)!sendto(aq_mpi_datagram.fd, wire, nbytes, MSG_DONTWAIT, (struct sockaddr *)&sa,
                      sizeof(sa));
        return;
    }
    if (!IN6_IS_ADDR_V4MAPPED(address))
        return;
    memcpy(&sa4.sin_addr, &address->s6_addr[12], sizeof(sa4.sin_addr));
    (void)!sendto(aq_mpi_datagram.fd, wire, nbytes, MSG_DONTWAIT, (struct sockaddr *)&sa4,
                  sizeof(sa4));
}

void aq_mpi_datagram_send(gex_Rank_t jobrank)
{
    const struct aq_mpi_datagram_peer *peer = &aq_mpi_datagram.peers[jobrank];
    const struct aq_mpi_datagram_wire wire = { .number = aq_mpi_datagram_number(jobrank) };

    aq_mpi_datagram_send_to(&peer->address, peer->port, &wire, AQ_MPI_WIRE_WAKEUP);
}

/* Takes one datagram. Returns its length; 0: it is none of this job's; negative: there is none. */
static ssize_t aq_mpi_datagram_take_one(struct aq_mpi_datagram_wire *wire)
{
    char bytes[AQ_MPI_WIRE_VERIFY + 1];
    const ssize_t got = recv(aq_mpi_datagram.fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (got < 0)
        return -1;
    if (got != AQ_MPI_WIRE_WAKEUP && got != AQ_MPI_WIRE_VERIFY)
        return 0;
    memcpy(wire, bytes, (size_t)got);
    return wire->number == aq_mpi_datagram.number ? got : 0;
}

bool aq_mpi_datagram_take(bool *genuine_out)
{
    struct aq_mpi_datagram_wire wire;
    unsigned count = 0;

    *genuine_out = false;
    for (; count < AQ_MPI_DATAGRAM_AT_ONCE; count++) {
        const ssize_t got = aq_mpi_datagram_take_one(&wire);

        if (got < 0)
            break;
        *genuine_out = *genuine_out || got == AQ_MPI_WIRE_WAKEUP;
    }
    return count != 0;
}

/* --- opening --- */

static unsigned aq_mpi_datagram_addresses(struct in6_addr addresses[AQ_MPI_DATAGRAM_OFFERS])
{
    const struct in_addr loopback = { htonl(INADDR_LOOPBACK) };
    bool preferred;

    if (aq_job.host_count > 1)
        return aq_host_addresses(addresses, AQ_MPI_DATAGRAM_OFFERS, &preferred);
    addresses[0] = aq_host_address_of_v4(loopback);
    return 1;
}

static void aq_mpi_datagram_buffer(int nbytes)
{
    setsockopt(aq_mpi_datagram.fd, SOL_SOCKET, SO_RCVBUF, &nbytes, sizeof(nbytes));
}

/* Binds the socket to the address, or to any. */
static bool aq_mpi_datagram_bind(bool v4, const struct in6_addr *address)
{
    struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_addr = *address };
    struct sockaddr_in sa4 = { .sin_family = AF_INET };
    const int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int off = 0;
    int rc;

    if (fd < 0)
        return false;
    if (!v4)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (v4 && IN6_IS_ADDR_V4MAPPED(address))
        memcpy(&sa4.sin_addr, &address->s6_addr[12], sizeof(sa4.sin_addr));
    rc = v4 ? bind(fd, (struct sockaddr *)&sa4, sizeof(sa4))
            : bind(fd, (struct sockaddr *)&sa, sizeof(sa));
    if (rc != 0) {
        close(fd);
        return false;
    }
    aq_mpi_datagram.fd = fd;
    aq_mpi_datagram.v4 = v4;
    return true;
}

/* Fills in the offer; without a socket its port stays 0. */
static void aq_mpi_datagram_offer(struct aq_mpi_datagram_offer *own)
{
    const struct in6_addr any = IN6ADDR_ANY_INIT;
    const struct in6_addr *address = &any;
    struct sockaddr_in6 sa;
    socklen_t len = sizeof(sa);

    own->count = (uint16_t)aq_mpi_datagram_addresses(own->addresses);
    if (own->count == 1) /* the only one, or the user's choice */
        address = &own->addresses[0];
    if (own->count == 0
        || (!aq_mpi_datagram_bind(false, address) && !aq_mpi_datagram_bind(true, address)))
        return;
    aq_mpi_datagram_buffer(AQ_MPI_DATAGRAM_START_BUFFER);
    /* the port has the same offset in both structures */
    if (getsockname(aq_mpi_datagram.fd, (struct sockaddr *)&sa, &len) == 0)
        own->port = sa.sin6_port;
}

/* --- verification --- */

/* The rank whose datagrams verify the address of another: the rank before it, on another host if
 * there are several. */
static gex_Rank_t aq_mpi_datagram_verifier(gex_Rank_t rank)
{
    gex_Rank_t by = rank;

    do
        by = (by == 0 ? aq_job.size : by) - 1;
    while (aq_job.host_count > 1 && aq_job.host_of[by] == aq_job.host_of[rank]);
    return by;
}

static void aq_mpi_datagram_verify(const struct aq_mpi_datagram_offer *offers)
{
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++) {
        struct aq_mpi_datagram_wire wire = { .number = aq_mpi_datagram_number(rank) };

        if (aq_mpi_datagram_verifier(rank) != aq_job.rank)
            continue;
        for (unsigned copy = 0; copy < AQ_MPI_DATAGRAM_COPIES; copy++)
            for (wire.what = 0; wire.what < offers[rank].count; wire.what++)
                aq_mpi_datagram_send_to(&offers[rank].addresses[wire.what], offers[rank].port,
                                        &wire, AQ_MPI_WIRE_VERIFY);
    }
}

/* Calls take() with each verification that arrives, and with NOTHING first, until it returns true,
 * or for as long as a datagram may take. Returns whether it has returned true. */
static bool aq_mpi_datagram_await(bool (*take)(void *arg, uint32_t what), void *arg)
{
    const uint64_t end = aq_now_ns() + AQ_MPI_DATAGRAM_MS * UINT64_C(1000000);
    struct pollfd pfd = { aq_mpi_datagram.fd, POLLIN, 0 };
    struct aq_mpi_datagram_wire wire;
    bool done = take(arg, AQ_MPI_DATAGRAM_NOTHING);

    while (!done && aq_now_ns() < end) {
        (void)!poll(&pfd, 1, 10);
        for (unsigned count = 0; count < AQ_MPI_DATAGRAM_AT_ONCE; count++) {
            const ssize_t got = aq_mpi_datagram_take_one(&wire);

            if (got < 0)
                break;
            if (got == AQ_MPI_WIRE_VERIFY)
                done = take(arg, wire.what);
        }
    }
    return done;
}

/* arg: 1 plus the lowest index so far of an address at which a datagram has arrived; 0: none. */
static bool aq_mpi_datagram_at_address(void *arg, uint32_t what)
{
    uint8_t *first = arg;

    if (what < AQ_MPI_DATAGRAM_OFFERS && (*first == 0 || what + 1 < *first))
        *first = (uint8_t)(what + 1);
    return *first != 0;
}

/* --- between hosts --- */

struct aq_mpi_datagram_hosts {
    gex_Rank_t *first_rank; /* [host_count] */
    bool *seen;             /* [host_count]: a datagram of the host has arrived */
    gex_Rank_t begin, n;    /* hosts at this distance before the own one are awaited */
};

static gex_Rank_t aq_mpi_datagram_host(gex_Rank_t distance)
{
    return (aq_job.host_of[aq_job.rank] + distance) % aq_job.host_count;
}

static bool aq_mpi_datagram_from_host(void *arg, uint32_t what)
{
    struct aq_mpi_datagram_hosts *hosts = arg;
    gex_Rank_t left = 0;

    if (what >= AQ_MPI_DATAGRAM_OFFERS && what - AQ_MPI_DATAGRAM_OFFERS < aq_job.host_count)
        hosts->seen[what - AQ_MPI_DATAGRAM_OFFERS] = true;
    for (gex_Rank_t i = 0; i < hosts->n; i++)
        left += !hosts->seen[aq_mpi_datagram_host(aq_job.host_count - hosts->begin - i)];
    return left == 0;
}

static void aq_mpi_datagram_verify_hosts(const struct aq_mpi_datagram_hosts *hosts)
{
    for (gex_Rank_t i = 0; i < hosts->n * AQ_MPI_DATAGRAM_COPIES; i++) {
        const gex_Rank_t host = aq_mpi_datagram_host(hosts->begin + i % hosts->n);
        const gex_Rank_t rank = hosts->first_rank[host];
        const struct aq_mpi_datagram_wire wire = {
            aq_mpi_datagram_number(rank), AQ_MPI_DATAGRAM_OFFERS + aq_mpi_datagram_host(0)
        };
        const struct aq_mpi_datagram_peer *peer = &aq_mpi_datagram.peers[rank];

        aq_mpi_datagram_send_to(&peer->address, peer->port, &wire, AQ_MPI_WIRE_VERIFY);
    }
}

static void aq_mpi_datagram_gather(const void *own, size_t len, void *all)
{
    aq_mpi_lock();
    aq_mpi_check(aq_mpi.lib->job->allgather(own, len, all), "exchanging addresses");
    aq_mpi_unlock();
}

static void aq_mpi_datagram_barrier(void)
{
    aq_mpi_lock();
    aq_mpi_check(aq_mpi.lib->job->barrier(), "exchanging addresses");
    aq_mpi_unlock();
}

/* Collective. Returns true on every rank if every host's first rank has received a datagram of each
 * other host's. */
static bool aq_mpi_datagram_hosts_agree(struct aq_mpi_datagram_hosts *hosts, uint8_t *found)
{
    uint8_t own = true;

    for (hosts->begin = 1; hosts->begin < aq_job.host_count; hosts->begin += hosts->n) {
        const bool is_first = hosts->first_rank[aq_mpi_datagram_host(0)] == aq_job.rank;

        hosts->n = MIN(aq_job.host_count - hosts->begin, (gex_Rank_t)AQ_MPI_DATAGRAM_HOSTS);
        if (is_first)
            aq_mpi_datagram_verify_hosts(hosts);
        aq_mpi_datagram_barrier();
        if (is_first)
            own = own && aq_mpi_datagram_await(aq_mpi_datagram_from_host, hosts);
    }
    aq_mpi_datagram_gather(&own, sizeof(own), found);
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++)
        own = own && found[rank];
    return own;
}

/* The address of a rank: that of its host's first rank, which the hosts verify, if it has it. */
static struct aq_mpi_datagram_peer aq_mpi_datagram_choose(const struct aq_mpi_datagram_offer *offer,
                                                          uint8_t first_found, uint8_t found)
{
    const unsigned index = (first_found <= offer->count ? first_found : found) - 1u;

    return (struct aq_mpi_datagram_peer){ offer->addresses[index], offer->port };
}

/* Collective. Returns true if every rank has received a datagram; then the addresses are known. */
static bool aq_mpi_datagram_agree(const struct aq_mpi_datagram_offer *offers,
                                  const gex_Rank_t *first_rank, uint8_t *found)
{
    uint8_t own = 0;
    bool all = true;

    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++)
        all = all && offers[rank].port != 0;
    if (!all) /* on every rank alike */
        return false;
    aq_mpi_datagram_verify(offers);
    aq_mpi_datagram_barrier();
    aq_mpi_datagram_await(aq_mpi_datagram_at_address, &own);
    aq_mpi_datagram_gather(&own, sizeof(own), found);
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++) {
        const uint8_t first_found = found[first_rank[aq_job.host_of[rank]]];

        if (found[rank] == 0 || first_found == 0)
            return false;
        aq_mpi_datagram.peers[rank] =
            aq_mpi_datagram_choose(&offers[rank], first_found, found[rank]);
    }
    return true;
}

int aq_mpi_datagram_open(bool wanted, bool *works_out)
{
    struct aq_mpi_datagram_offer own = { .port = 0 };
    struct aq_mpi_datagram_offer *offers = malloc(aq_job.size * sizeof(*offers));
    struct aq_mpi_datagram_hosts hosts = { malloc(aq_job.host_count * sizeof(*hosts.first_rank)),
                                           calloc(aq_job.host_count, sizeof(*hosts.seen)), 0, 0 };
    uint8_t *found = malloc(aq_job.size);
    int rc = AQ_OK;

    aq_mpi_datagram.peers = malloc(aq_job.size * sizeof(*aq_mpi_datagram.peers));
    *works_out = false;
    if (offers == NULL || found == NULL || hosts.first_rank == NULL || hosts.seen == NULL
        || aq_mpi_datagram.peers == NULL) {
        rc = aq_fail(AQ_ERR_NOMEM, "mpi: no memory for the addresses of %u ranks", aq_job.size);
        goto free_all;
    }
    aq_mpi_datagram.number = aq_mpi_datagram_number(aq_job.rank);
    if (wanted)
        aq_mpi_datagram_offer(&own);
    aq_mpi_datagram_gather(&own, sizeof(own), offers);
    for (gex_Rank_t rank = aq_job.size; rank-- > 0;)
        hosts.first_rank[aq_job.host_of[rank]] = rank;
    *works_out = aq_mpi_datagram_agree(offers, hosts.first_rank, found)
                 && aq_mpi_datagram_hosts_agree(&hosts, found);
free_all:
    free(offers);
    free(found);
    free(hosts.first_rank);
    free(hosts.seen);
    if (!*works_out)
        aq_mpi_datagram_close();
    else
        aq_mpi_datagram_buffer(AQ_MPI_DATAGRAM_BUFFER);
    return rc;
}

void aq_mpi_datagram_close(void)
{
    if (aq_mpi_datagram.fd >= 0)
        close(aq_mpi_datagram.fd);
    free(aq_mpi_datagram.peers);
    aq_mpi_datagram.fd = -1;
    aq_mpi_datagram.peers = NULL;
}
