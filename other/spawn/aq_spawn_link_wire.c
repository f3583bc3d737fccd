/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_link_wire.c - sockets, addresses and datagrams of aq_spawn_link.h.
 * Threads   the owner
 * Wire      struct aq_link_packet as it is in memory; an address is text: "name port address
 *           address ..."
 * How       one IPv6 socket serves IPv4 too. A host may have many addresses, and it cannot know
 *           which of them others can reach. The child therefore sends its first datagrams to all
 *           addresses of its parent. The parent answers to the source of a genuine datagram, and
 *           then both know the address. GASNET_UDP_INTERFACE or GASNET_WORKERIP name the one
 *           address to use
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "other/spawn/aq_host_address.h"
#include "other/spawn/aq_siphash.h"
#include "other/spawn/aq_spawn_link_internal.h"

#define AQ_LINK_MAGIC   0x61716c31u /* "aql1" */
#define AQ_LINK_AT_ONCE 256         /* datagrams; a flood must not block the monitor */
#define AQ_LINK_QUOTED  4           /* datagrams whose refusal counts: the last so many */

struct aq_link_packet {
    uint32_t magic;
    uint32_t from, to;   /* hosts */
    uint32_t version;    /* of note */
    uint32_t confirms;   /* the version of the receiver's note that the sender has */
    uint32_t want_reply; /* 1: the sender does not know whether the receiver has this version */
    uint64_t serial;     /* from 1, number of this sender's datagrams to this receiver */
    struct aq_link_note note;
    char name[AQ_LINK_NAME];
    uint64_t hash[2]; /* of everything before it */
};

void aq_link_make_keys(const uint8_t job_key[32])
{
    for (unsigned i = 0; i < 4; i++) {
        char use[] = "other/spawn: link 0";
        uint64_t word;

        use[sizeof(use) - 2] = (char)('0' + i);
        word = aq_siphash(job_key, use, sizeof(use)) ^ aq_siphash(job_key + 16, use, sizeof(use));
        memcpy(&aq_link_me.key[i / 2][i % 2 * 8], &word, sizeof(word));
    }
}

static struct sockaddr_in6 aq_link_mapped(struct in_addr in)
{
    return (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_addr = aq_host_address_of_v4(in) };
}

/* The address that the user prefers, for a socket that receives nothing else; without a preference
 * any address. */
static struct sockaddr_in6 aq_link_own_address(void)
{
    struct sockaddr_in6 sa = { .sin6_family = AF_INET6 };
    struct in6_addr address;
    bool preferred;

    if (aq_host_addresses(&address, 1, &preferred) != 0 && preferred)
        sa.sin6_addr = address;
    return sa;
}

static void aq_link_write_addr(char addr_text[AQ_LINK_ADDR_MAX], unsigned port)
{
    char name[AQ_LINK_NAME] = "?", text[INET6_ADDRSTRLEN];
    struct in6_addr addresses[AQ_LINK_ADDRESSES];
    bool preferred;
    const unsigned count = aq_host_addresses(addresses, AQ_LINK_ADDRESSES, &preferred);
    int at;

    gethostname(name, sizeof(name) - 1);
    at = snprintf(addr_text, AQ_LINK_ADDR_MAX, "%s %u", name[0] != '\0' ? name : "?", port);
    for (unsigned i = 0; i < count; i++)
        at += snprintf(addr_text + at, (size_t)(AQ_LINK_ADDR_MAX - at), " %s",
                       aq_host_address_text(&addresses[i], text));
    if (count == 0) /* then all "hosts" are on this machine */
        snprintf(addr_text + at, (size_t)(AQ_LINK_ADDR_MAX - at), " 127.0.0.1 ::1");
}

int aq_link_socket(char addr_out[AQ_LINK_ADDR_MAX])
{
    const struct sockaddr_in6 preferred = aq_link_own_address();
    struct sockaddr_in6 sa6 = preferred;
    struct sockaddr_in sa4 = { .sin_family = AF_INET };
    socklen_t len = sizeof(sa6);
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, off = 0;

    if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0
        && bind(fd, (struct sockaddr *)&sa6, sizeof(sa6)) == 0) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on));
    } else {
        if (fd >= 0)
            close(fd);
        fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (IN6_IS_ADDR_V4MAPPED(&preferred.sin6_addr))
            memcpy(&sa4.sin_addr, &preferred.sin6_addr.s6_addr[12], sizeof(sa4.sin_addr));
        if (fd < 0 || bind(fd, (struct sockaddr *)&sa4, sizeof(sa4)) != 0)
            return -1;
    }
    /* on a dual-stack socket this is for IPv4; refusals are then read from the socket's error
     * queue */
    setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
    if (getsockname(fd, (struct sockaddr *)&sa6, &len) != 0)
        return -1;
    /* the port has the same offset in both structures */
    aq_link_write_addr(addr_out, ntohs(sa6.sin6_port));
    return fd;
}

bool aq_link_set_parent(const char *addr_text)
{
    struct aq_link_area *a = aq_link_me.area;
    char copy[AQ_LINK_ADDR_MAX], *rest = NULL, *name, *port, *word;

    snprintf(copy, sizeof(copy), "%s", addr_text);
    name = strtok_r(copy, " ", &rest);
    port = strtok_r(NULL, " ", &rest);
    if (name == NULL || port == NULL)
        return false;
    snprintf(a->end[0].name, sizeof(a->end[0].name), "%s", name);
    while ((word = strtok_r(NULL, " ", &rest)) != NULL && a->candidates < AQ_LINK_ADDRESSES) {
        struct sockaddr_in6 sa = { .sin6_family = AF_INET6 };
        struct in_addr in;

        if (inet_pton(AF_INET, word, &in) == 1)
            sa = aq_link_mapped(in);
        else if (inet_pton(AF_INET6, word, &sa.sin6_addr) != 1)
            continue;
        sa.sin6_port = htons((uint16_t)atoi(port));
        a->candidate[a->candidates++] = sa;
    }
    return a->candidates > 0;
}

static void aq_link_hash(const struct aq_link_packet *p, uint64_t hash_out[2])
{
    for (int i = 0; i < 2; i++)
        hash_out[i] = aq_siphash(aq_link_me.key[i], p, offsetof(struct aq_link_packet, hash));
}

/* A failure counts as a lost datagram, which is retransmitted. */
static void aq_link_send_to(const struct aq_link_packet *p, const struct sockaddr_in6 *sa)
{
    struct sockaddr_in sa4 = { .sin_family = AF_INET, .sin_port = sa->sin6_port };

    if (sendto(aq_link_me.fd, p, sizeof(*p), MSG_DONTWAIT | MSG_NOSIGNAL,
               (const struct sockaddr *)sa, sizeof(*sa))
            >= 0
        || errno != EAFNOSUPPORT || !IN6_IS_ADDR_V4MAPPED(&sa->sin6_addr))
        return;
    /* a kernel without IPv6 */
    memcpy(&sa4.sin_addr, &sa->sin6_addr.s6_addr[12], sizeof(sa4.sin_addr));
    if (sendto(aq_link_me.fd, p, sizeof(*p), MSG_DONTWAIT | MSG_NOSIGNAL,
               (const struct sockaddr *)&sa4, sizeof(sa4))
        < 0)
        return;
}

void aq_link_send(struct aq_link_end *end)
{
    struct aq_link_area *a = aq_link_me.area;
    struct aq_link_packet p;

    memset(&p, 0, sizeof(p)); /* padding is hashed and sent too */
    p.magic = AQ_LINK_MAGIC;
    p.from = aq_link_me.info->host_index;
    p.to = end->host;
    p.version = end->version;
    p.confirms = end->last_seen_version;
    /* a neighbour that lives answers */
    p.want_reply = end->confirmed != end->version || end->refused > 0;
    p.serial = ++end->sent;
    p.note = end->said;
    gethostname(p.name, sizeof(p.name) - 1);
    aq_link_hash(&p, p.hash);
    if (end->addr.sin6_family != 0)
        aq_link_send_to(&p, &end->addr);
    else if (a->has_parent && end == &a->end[0])
        for (uint32_t i = 0; i < a->candidates; i++)
            aq_link_send_to(&p, &a->candidate[i]);
}

static struct aq_link_end *aq_link_find(uint32_t host)
{
    for (uint32_t i = 0; i < aq_link_me.area->count; i++)
        if (aq_link_me.area->end[i].host == host)
            return &aq_link_me.area->end[i];
    return NULL;
}

static bool aq_link_genuine(const struct aq_link_packet *p, ssize_t len, uint32_t from, uint32_t to)
{
    uint64_t hash[2];

    if (len != sizeof(*p) || p->magic != AQ_LINK_MAGIC || p->from != from || p->to != to)
        return false;
    aq_link_hash(p, hash);
    return ((hash[0] ^ p->hash[0]) | (hash[1] ^ p->hash[1])) == 0;
}

static void aq_link_take(const struct aq_link_packet *p, const struct sockaddr_in6 *from)
{
    struct aq_link_end *end = aq_link_find(p->from);

    /* Late, or recorded and replayed from elsewhere: it must not change the address. Of those that
     * a child sends to all addresses of its parent the first to arrive counts. */
    if (end == NULL || p->serial <= end->last_seen_serial)
        return;
    if (p->version < end->last_seen_version || p->confirms > end->version)
        return; /* an invalid sender */
    end->last_seen_serial = p->serial;
    end->last_seen_ns = aq_jobarea_now_ns();
    end->addr = *from;
    end->refused = 0;
    end->fresh = end->fresh || p->version > end->last_seen_version;
    end->last_seen_version = p->version;
    end->last_seen = p->note;
    end->answer = end->answer || p->want_reply != 0;
    if (p->confirms > end->confirmed)
        end->confirmed = p->confirms;
    memcpy(end->name, p->name, sizeof(end->name));
    end->name[sizeof(end->name) - 1] = '\0';
}

static struct sockaddr_in6 aq_link_address(const struct sockaddr_storage *from)
{
    const struct sockaddr_in *sa4 = (const struct sockaddr_in *)(const void *)from;
    struct sockaddr_in6 sa;

    if (from->ss_family == AF_INET6) {
        memcpy(&sa, from, sizeof(sa));
    } else {
        sa = aq_link_mapped(sa4->sin_addr);
        sa.sin6_port = sa4->sin_port;
    }
    return sa;
}

/* Anybody can forge a refusal, but not the datagram that it quotes, which must be one of the last
 * that this host has sent to a neighbour. Each counts once. */
static void aq_link_refused(const struct aq_link_packet *quoted)
{
    struct aq_link_end *end = aq_link_find(quoted->to);

    if (end == NULL || quoted->serial <= end->refused_serial
        || quoted->serial + AQ_LINK_QUOTED < end->sent)
        return;
    end->refused_serial = quoted->serial;
    end->refused += end->addr.sin6_family != 0;
}

/* Reads one entry of the socket's error queue: the datagram that was sent, and the error. */
static bool aq_link_receive_refusal(void)
{
    struct aq_link_packet p;
    char control[512];
    struct iovec iov = { &p, sizeof(p) };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
    };
    bool refused = false;
    ssize_t got;

    got = recvmsg(aq_link_me.fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT);
    if (got < 0)
        return false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
        struct sock_extended_err err;

        if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR)
            && !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
            continue;
        memcpy(&err, CMSG_DATA(c), sizeof(err));
        refused = refused || err.ee_errno == ECONNREFUSED;
    }
    if (refused && aq_link_genuine(&p, got, aq_link_me.info->host_index, p.to))
        aq_link_refused(&p);
    return true;
}

void aq_link_receive(void)
{
    struct aq_link_packet p;
    struct sockaddr_storage from;
    ssize_t got;

    for (int count = 0; count < AQ_LINK_AT_ONCE && aq_link_receive_refusal(); count++)
        continue;
    /* a refusal may be reported here too, once, in place of a datagram */
    for (int failures = 0, count = 0; failures < 4 && count < AQ_LINK_AT_ONCE; count++) {
        socklen_t len = sizeof(from);

        got = recvfrom(aq_link_me.fd, &p, sizeof(p), MSG_DONTWAIT, (struct sockaddr *)&from, &len);
        if (got < 0 && errno == EAGAIN)
            return;
        failures += got < 0;
        if (aq_link_genuine(&p, got, p.from, aq_link_me.info->host_index)) {
            struct sockaddr_in6 sa = aq_link_address(&from);

            aq_link_take(&p, &sa);
        }
    }
}
