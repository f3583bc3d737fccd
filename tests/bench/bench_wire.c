/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_wire.c - ping-pong, flood and stream over plain UDP sockets between two processes.
 * Owns      what struct aq_wire holds
 * Threads   one a side
 * Uses      sockets and the C library only
 * See       bench_wire.h
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench_wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench_stat.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define AQ_WIRE_BUFFER   (4 << 20) /* socket buffers asked for */
#define AQ_WIRE_BATCH    64 /* datagrams of a GSO batch: every kernel with UDP_SEGMENT allows it */
#define AQ_WIRE_KERNEL   1280 /* bytes that the kernel needs besides for a datagram, at most */
#define AQ_WIRE_FRAGMENT AQ_WIRE_SMALL /* longer messages travel in pieces */
#define AQ_WIRE_SPACE    (1u << 17)    /* for one recv(), however much has been joined */
#define AQ_WIRE_OVERHEAD 28            /* bytes of IPv4 and UDP headers */

/* --- waiting --- */

double aq_wire_timeout_ns = 2e8;

/* Spins; looks at the clock once in a while. */
struct aq_wire_wait {
    double until;
    unsigned spins;
};

static bool aq_wire_patient(struct aq_wire_wait *wait)
{
    if (++wait->spins % 4096 != 0)
        return true;
    if (wait->until == 0)
        wait->until = aq_bench_now() + aq_wire_timeout_ns;
    return aq_bench_now() < wait->until;
}

static void aq_wire_transmit(int fd, const void *buf, size_t n)
{
    struct aq_wire_wait wait = { 0, 0 };

    while (send(fd, buf, n, MSG_DONTWAIT) < 0 && aq_wire_patient(&wait))
        continue;
}

/* One datagram; 0 after the timeout. */
static size_t aq_wire_take(struct aq_wire *w, int fd, void *buf, size_t n)
{
    struct aq_wire_wait wait = { 0, 0 };
    ssize_t got;

    do
        got = recv(fd, buf, n, MSG_DONTWAIT);
    while (got <= 0 && aq_wire_patient(&wait));
    w->spoilt += got <= 0;
    return got > 0 ? (size_t)got : 0;
}

/* A message of n bytes with this number in front, in as many datagrams as it needs. */
static void aq_wire_say(struct aq_wire *w, size_t n, uint64_t number)
{
    n = n < AQ_WIRE_MIN ? AQ_WIRE_MIN : n;
    for (size_t at = 0; at < n; at += AQ_WIRE_FRAGMENT) {
        memcpy(w->source + at, &number, sizeof(number));
        aq_wire_transmit(w->message, w->source + at,
                         n - at < AQ_WIRE_FRAGMENT ? n - at : AQ_WIRE_FRAGMENT);
    }
}

/* Waits for all of the message with this number; older ones are from a round that was given up. */
static bool aq_wire_hear(struct aq_wire *w, size_t n, uint64_t number)
{
    n = n < AQ_WIRE_MIN ? AQ_WIRE_MIN : n;
    for (size_t at = 0; at < n;) {
        uint64_t found;
        size_t got = aq_wire_take(w, w->message, w->target + at, AQ_WIRE_FRAGMENT);

        if (got < sizeof(found))
            return false;
        memcpy(&found, w->target + at, sizeof(found));
        if (found == number)
            at += got;
    }
    return true;
}

/* --- opening --- */

static int aq_wire_socket(uint32_t host, uint16_t *port_out)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = host };
    socklen_t length = sizeof(address);
    int size = AQ_WIRE_BUFFER;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    if (bind(fd, (struct sockaddr *)&address, length) != 0
        || getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
        close(fd);
        return -1;
    }
    *port_out = address.sin_port;
    return fd;
}

/* Bytes that may wait in a socket: the kernel says twice what was asked for, for its own
 * structures. */
static uint32_t aq_wire_space(int fd)
{
    int size = 0;
    socklen_t length = sizeof(size);

    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &length);
    return (uint32_t)size / 2;
}

static unsigned char *aq_wire_memory(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    madvise(p, size, MADV_HUGEPAGE);
    memset(p, 1, size);
    return p;
}

int aq_wire_open(struct aq_wire *w, uint32_t host, size_t largest, struct aq_wire_address *self_out)
{
    memset(w, 0, sizeof(*w));
    w->round = UINT64_C(1) << 63; /* no credit looks like that */
    w->largest = largest + AQ_WIRE_SPACE;
    w->source = aq_wire_memory(w->largest);
    w->target = aq_wire_memory(w->largest);
    self_out->host = host;
    self_out->space = 0;
    w->message = aq_wire_socket(host, &self_out->message_port);
    w->stream = aq_wire_socket(host, &self_out->stream_port);
    if (w->source != NULL && w->target != NULL && w->message >= 0 && w->stream >= 0) {
        self_out->space = w->space = aq_wire_space(w->stream);
        return 0;
    }
    aq_wire_close(w);
    return -1;
}

void aq_wire_close(struct aq_wire *w)
{
    if (w->message >= 0)
        close(w->message);
    if (w->stream >= 0)
        close(w->stream);
    if (w->source != NULL)
        munmap(w->source, w->largest);
    if (w->target != NULL)
        munmap(w->target, w->largest);
    memset(w, 0, sizeof(*w));
    w->message = w->stream = -1;
}

static void aq_wire_add_way(struct aq_wire *w, unsigned datagram, unsigned datagrams)
{
    unsigned windows[] = { 256u << 10, 1u << 20 };

    for (size_t i = 0; i < 2 && w->count < AQ_WIRE_WAYS; i++) {
        if (windows[i] > w->space / 2)
            windows[i] = w->space / 2;
        w->ways[w->count++] = (struct aq_wire_way){ datagram, datagram * datagrams, windows[i] };
    }
}

/* Everything that could be the fastest, given what fits into a packet of the interface. */
static void aq_wire_find_ways(struct aq_wire *w)
{
    unsigned max = 1500 - AQ_WIRE_OVERHEAD, fits;
    int mtu = 0, on = 1, off = 0;
    socklen_t length = sizeof(mtu);

    if (getsockopt(w->stream, IPPROTO_IP, IP_MTU, &mtu, &length) == 0 && mtu > AQ_WIRE_OVERHEAD)
        max = (unsigned)mtu - AQ_WIRE_OVERHEAD;
    max = max < AQ_WIRE_DATAGRAM ? max : AQ_WIRE_DATAGRAM;
    aq_wire_add_way(w, AQ_WIRE_DATAGRAM, 1);
    if (max > 61440)
        aq_wire_add_way(w, 61440, 1); /* whole pages */
    aq_wire_add_way(w, max < 32768 ? max : 32768, 1);
    if (setsockopt(w->stream, IPPROTO_UDP, UDP_SEGMENT, &off, sizeof(off)) != 0
        || setsockopt(w->stream, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) != 0)
        return;
    for (unsigned k = 0; k < 3; k++) {
        const unsigned segments[] = { max < 32000 ? max : 0, max > 8972 ? 8972 : 0,
                                      max > 1472 ? 1472 : 0 };

        if (segments[k] == 0)
            continue;
        fits = AQ_WIRE_DATAGRAM / segments[k];
        aq_wire_add_way(w, segments[k], fits < AQ_WIRE_BATCH ? fits : AQ_WIRE_BATCH);
    }
}

int aq_wire_connect(struct aq_wire *w, const struct aq_wire_address *remote_addr)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = remote_addr->host };

    address.sin_port = remote_addr->message_port;
    if (connect(w->message, (struct sockaddr *)&address, sizeof(address)) != 0)
        return -1;
    address.sin_port = remote_addr->stream_port;
    if (connect(w->stream, (struct sockaddr *)&address, sizeof(address)) != 0)
        return -1;
    if (remote_addr->space < w->space)
        w->space = remote_addr->space;
    aq_wire_find_ways(w);
    return 0;
}

void aq_wire_way_name(const struct aq_wire *w, char *buf, size_t size)
{
    const struct aq_wire_way *way = &w->ways[w->way];

    if (way->batch > way->datagram)
        snprintf(buf, size, "GSO %u x %u, %u KiB open", way->batch / way->datagram, way->datagram,
                 way->window >> 10);
    else
        snprintf(buf, size, "datagrams %u, %u KiB open", way->datagram, way->window >> 10);
}

/* --- beginning together --- */

void aq_wire_forget(struct aq_wire *w)
{
    while (recv(w->message, w->target, AQ_WIRE_DATAGRAM, MSG_DONTWAIT) > 0)
        continue;
    while (recv(w->stream, w->target, AQ_WIRE_DATAGRAM, MSG_DONTWAIT) > 0)
        continue;
}

/* The word says which round the responder is in: after one that was given up the two may differ. */
struct aq_wire_word {
    char text[8];
    uint64_t round;
};

void aq_wire_ready(struct aq_wire *w)
{
    struct aq_wire_word word = { "ready", w->round };

    aq_wire_forget(w);
    aq_wire_transmit(w->message, &word, sizeof(word));
}

bool aq_wire_is_ready(struct aq_wire *w)
{
    struct aq_wire_word word;

    if (recv(w->message, &word, sizeof(word), MSG_DONTWAIT) != sizeof(word)
        || strcmp(word.text, "ready") != 0)
        return false;
    w->round = word.round;
    return true;
}

/* --- messages --- */

/* One side of iters rounds of there and back bytes. */
static void aq_wire_drive(struct aq_wire *w, size_t remote_addr, size_t back, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++) {
        aq_wire_say(w, remote_addr, ++w->round);
        if (!aq_wire_hear(w, back, w->round))
            return;
    }
}

static void aq_wire_respond(struct aq_wire *w, size_t remote_addr, size_t back, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++) {
        if (!aq_wire_hear(w, remote_addr, ++w->round))
            return;
        aq_wire_say(w, back, w->round);
    }
}

void aq_wire_ping(struct aq_wire *w, size_t n, uint64_t iters)
{
    aq_wire_drive(w, n, n, iters);
}

void aq_wire_pong(struct aq_wire *w, size_t n, uint64_t iters)
{
    aq_wire_respond(w, n, n, iters);
}

void aq_wire_put(struct aq_wire *w, size_t n, uint64_t iters)
{
    aq_wire_drive(w, n, 0, iters);
}

void aq_wire_put_peer(struct aq_wire *w, size_t n, uint64_t iters)
{
    aq_wire_respond(w, n, 0, iters);
}

void aq_wire_get(struct aq_wire *w, size_t n, uint64_t iters)
{
    aq_wire_drive(w, 0, n, iters);
}

void aq_wire_get_peer(struct aq_wire *w, size_t n, uint64_t iters)
{
    aq_wire_respond(w, 0, n, iters);
}

void aq_wire_exchange(struct aq_wire *w, size_t n, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++) {
        aq_wire_say(w, n, ++w->round);
        if (!aq_wire_hear(w, n, w->round))
            return;
    }
}

/* Messages of a flood for each credit; two such lots may be open, which the receiver's socket holds
 * for certain. */
static uint64_t aq_wire_lot(const struct aq_wire *w, size_t n)
{
    uint64_t lot = w->space / (4 * (n + AQ_WIRE_KERNEL));

    return lot > 0 ? lot : 1;
}

void aq_wire_flood(struct aq_wire *w, size_t n, uint64_t iters)
{
    uint64_t lot = aq_wire_lot(w, n), credit = 0;

    n = n < AQ_WIRE_MIN ? AQ_WIRE_MIN : n;
    for (uint64_t i = 1; i <= iters; i++) {
        aq_wire_transmit(w->stream, w->source, n);
        while ((i - credit >= 2 * lot || i == iters) && credit < i) {
            if (aq_wire_take(w, w->message, &credit, sizeof(credit)) != sizeof(credit))
                return;
            if (i < iters)
                break;
        }
    }
}

void aq_wire_drain(struct aq_wire *w, size_t n, uint64_t iters)
{
    uint64_t lot = aq_wire_lot(w, n);

    n = n < AQ_WIRE_MIN ? AQ_WIRE_MIN : n;
    for (uint64_t i = 1, bytes = 0; i <= iters; i = bytes / n + 1) {
        size_t got = aq_wire_take(w, w->stream, w->target, AQ_WIRE_SPACE);
        uint64_t before = bytes / n, after;

        if (got == 0)
            return;
        bytes += got;
        after = bytes / n;
        if (after / lot != before / lot || after >= iters)
            aq_wire_transmit(w->message, &after, sizeof(after));
    }
}

/* --- streams --- */

/* One call: at most n bytes, cut into the way's datagrams. */
static size_t aq_wire_batch(struct aq_wire *w, const struct aq_wire_way *way, size_t at, size_t n)
{
    struct iovec frag = { w->source + at, n < way->batch ? n : way->batch };
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(uint16_t))];
    } control;
    struct msghdr message = { .msg_iov = &frag, .msg_iovlen = 1 };
    struct aq_wire_wait wait = { 0, 0 };

    if (frag.iov_len > way->datagram) {
        uint16_t segment = (uint16_t)way->datagram;
        struct cmsghdr *c;

        message.msg_control = control.space;
        message.msg_controllen = sizeof(control.space);
        c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = IPPROTO_UDP;
        c->cmsg_type = UDP_SEGMENT;
        c->cmsg_len = CMSG_LEN(sizeof(segment));
        memcpy(CMSG_DATA(c), &segment, sizeof(segment));
    }
    while (sendmsg(w->stream, &message, MSG_DONTWAIT) < 0 && aq_wire_patient(&wait))
        continue;
    return frag.iov_len;
}

/* What the receiver has by now; waits until it is at least so much. */
static uint64_t aq_wire_credit(struct aq_wire *w, uint64_t have, uint64_t min)
{
    while (have < min) {
        if (aq_wire_take(w, w->message, &have, sizeof(have)) != sizeof(have))
            return min;
    }
    return have;
}

void aq_wire_send(struct aq_wire *w, size_t n, uint64_t iters, bool each, bool requests)
{
    const struct aq_wire_way *way = &w->ways[w->way];
    uint64_t sent = 0, credit = 0;

    for (uint64_t i = 0; i < iters; i++) {
        if (requests) {
            if (!aq_wire_hear(w, 0, ++w->round))
                return;
            credit = sent; /* who asks for more has all of what came before */
        }
        for (size_t at = 0; at < n;) {
            size_t next = n - at < way->batch ? n - at : way->batch;

            if (sent + next > credit + way->window)
                credit = aq_wire_credit(w, credit, sent + next - way->window);
            at += next = aq_wire_batch(w, way, at, n - at);
            sent += next;
        }
        if ((each && !requests) || i + 1 == iters)
            credit = aq_wire_credit(w, credit, sent);
    }
}

void aq_wire_receive(struct aq_wire *w, size_t n, uint64_t iters, bool each, bool requests)
{
    const struct aq_wire_way *way = &w->ways[w->way];
    const uint64_t total = iters * n;
    uint64_t reported = 0, have = 0;

    if (requests)
        aq_wire_say(w, 0, ++w->round);
    while (have < total) {
        size_t at = (size_t)(have % n);
        size_t got = aq_wire_take(w, w->stream, w->target + at, AQ_WIRE_SPACE);

        if (got == 0)
            return;
        have += got;
        if (have - reported >= way->window / 4 || have >= total
            || (each && !requests && have % n == 0)) {
            aq_wire_transmit(w->message, &have, sizeof(have));
            reported = have;
        }
        if (requests && have % n == 0 && have < total)
            aq_wire_say(w, 0, ++w->round);
    }
}
