/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spray.c - an unauthenticated peer that sends datagrams to the ranks of a running udp job, and
 * waits for an answer.
 *
 *   spray COUNT SECONDS SEED head|all PORT PORT
 *
 * Sends COUNT datagrams to the two ports of 127.0.0.1, over at most SECONDS. They are random or, if
 * it may capture traffic (root: an AF_PACKET socket on lo), recorded datagrams of the job:
 * unchanged, sent to the other rank, cut, lengthened, with bits inverted (in the hashed part only,
 * or anywhere), with the source address of the real peer (a raw socket) or from its own ports.
 * Prints what it did, and how many datagrams came back to its ports. Exit status 0 if none did, 1
 * if any, 4 if it could send less than a tenth.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RECORDS 2048
#define SOCKETS 8
#define HIGHEST 65507
#define HEADER  48 /* of the conduit's datagrams; the length of the hashed part is at 30 */

struct record {
    uint8_t *bytes;
    uint32_t len;
    uint16_t from, to; /* ports, network order */
};

static struct {
    uint64_t random;
    uint16_t port[2]; /* network order */
    int own[SOCKETS], raw, listen;
    struct record record[RECORDS];
    unsigned recorded; /* in all */
    bool all_bits;
    uint64_t sent, refused, spoofed, kind[8];
} spray;

static uint64_t next_random(void)
{
    uint64_t x = spray.random += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static double seconds(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* --- listening --- */

static int listen_open(void)
{
    struct sockaddr_ll at = { .sll_family = AF_PACKET,
                              .sll_protocol = htons(ETH_P_IP),
                              .sll_ifindex = (int)if_nametoindex("lo") };
    const int on = 1, size = 8 << 20;
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_IP));

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) != 0
        || bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The length of the hashed part that a datagram states; 0: the datagram is too short. */
static size_t hashed_of(const uint8_t *bytes, size_t len)
{
    return len < HEADER ? 0 : (size_t)(bytes[30] | bytes[31] << 8);
}

static void keep(const uint8_t *bytes, size_t len, uint16_t from, uint16_t to)
{
    struct record *record = &spray.record[spray.recorded % RECORDS];
    const size_t hashed = hashed_of(bytes, len);

    /* what only looks like the job's is our own, or another unauthenticated peer's: no part of it
     * need be hashed */
    if (hashed < HEADER || hashed > len)
        return;
    free(record->bytes);
    record->bytes = malloc(len);
    if (record->bytes == NULL)
        exit(3);
    memcpy(record->bytes, bytes, len);
    *record = (struct record){ record->bytes, (uint32_t)len, from, to };
    spray.recorded++;
}

/* A packet of the job: a datagram, or a GSO batch that the kernel has not cut yet. */
static void look_at(const uint8_t *packet, size_t len)
{
    struct virtio_net_hdr hdr;
    struct udphdr udp;
    const uint8_t *ip = packet + sizeof(hdr) + ETH_HLEN, *data;
    size_t at, each, bytes;

    if (len < sizeof(hdr) + ETH_HLEN + 28 || ip[9] != IPPROTO_UDP)
        return;
    memcpy(&hdr, packet, sizeof(hdr));
    at = (size_t)(ip[0] & 15) * 4;
    if (len < (size_t)(ip - packet) + at + sizeof(udp))
        return;
    memcpy(&udp, ip + at, sizeof(udp));
    if ((udp.source != spray.port[0] || udp.dest != spray.port[1])
        && (udp.source != spray.port[1] || udp.dest != spray.port[0]))
        return;
    data = ip + at + sizeof(udp);
    bytes = len - (size_t)(data - packet);
    each = hdr.gso_type != VIRTIO_NET_HDR_GSO_NONE && hdr.gso_size != 0 ? hdr.gso_size : bytes;
    for (at = 0; at < bytes; at += each)
        keep(data + at, bytes - at < each ? bytes - at : each, udp.source, udp.dest);
}

static void listen_more(int packets)
{
    static uint8_t packet[1 << 17];
    ssize_t len;

    while (spray.listen >= 0 && packets-- > 0
           && (len = recv(spray.listen, packet, sizeof(packet), 0)) > 0)
        look_at(packet, (size_t)len);
}

/* --- sending --- */

static void send_own(const uint8_t *bytes, size_t len, uint16_t port)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = port,
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };

    if (sendto(spray.own[next_random() % SOCKETS], bytes, len, MSG_DONTWAIT, (struct sockaddr *)&to,
               sizeof(to))
        < 0)
        spray.refused++;
    spray.sent++;
}

/* As if it came from another port, the peer's. */
static void send_spoofed(const uint8_t *bytes, size_t len, uint16_t from, uint16_t port)
{
    static uint8_t packet[28 + HIGHEST];
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    struct iphdr ip = { .version = 4,
                        .ihl = 5,
                        .ttl = 64,
                        .protocol = IPPROTO_UDP,
                        .saddr = htonl(INADDR_LOOPBACK),
                        .daddr = htonl(INADDR_LOOPBACK) };
    struct udphdr udp = { .source = from, .dest = port, .len = htons((uint16_t)(8 + len)) };

    if (spray.raw < 0) {
        send_own(bytes, len, port);
        return;
    }
    memcpy(packet, &ip, sizeof(ip));
    memcpy(packet + 20, &udp, sizeof(udp));
    memcpy(packet + 28, bytes, len);
    if (sendto(spray.raw, packet, 28 + len, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to)) < 0)
        spray.refused++;
    spray.sent++;
    spray.spoofed++;
}

static size_t make_random(uint8_t *bytes)
{
    const uint64_t choice = next_random() % 100;
    const size_t len = choice < 2   ? 0
                       : choice < 4 ? next_random() % (HIGHEST + 1)
                                    : next_random() % 1500;

    for (size_t i = 0; i < len; i += 8) {
        const uint64_t word = next_random();

        memcpy(bytes + i, &word, len - i < 8 ? len - i : 8);
    }
    if (choice % 2 != 0 && len >= HEADER) { /* passes a check of the first bytes */
        bytes[0] = 0xa1;
        bytes[1] &= 0x3f;
        memset(bytes + 4, 0, 8);
        bytes[4] = (uint8_t)(choice / 2 % 2);
        bytes[8] = (uint8_t)(1 - bytes[4]);
        bytes[31] = 0;
        bytes[30] = HEADER;
    }
    return len;
}

/* Something done to a recording. */
static size_t make_recorded(uint8_t *bytes, const struct record *record, unsigned kind)
{
    const size_t span = spray.all_bits ? record->len : hashed_of(record->bytes, record->len);
    size_t len = record->len;

    memcpy(bytes, record->bytes, len);
    if (kind == 1) {
        len = next_random() % len;
    } else if (kind == 2) {
        const size_t more = next_random() % 2000 + 1;

        len = len + more > HIGHEST ? HIGHEST : len + more;
    } else if (kind == 3) {
        for (uint64_t i = next_random() % 8 + 1; i > 0; i--)
            bytes[next_random() % span] ^= (uint8_t)(1u << next_random() % 8);
    }
    return len;
}

static void send_one(void)
{
    static uint8_t bytes[HIGHEST + 8];
    const unsigned kind = (unsigned)(next_random() % 6);
    const unsigned known = spray.recorded < RECORDS ? spray.recorded : RECORDS;
    const struct record *record;

    if (kind == 0 || known == 0) {
        const unsigned to = (unsigned)(next_random() % 2);
        const size_t len = make_random(bytes);

        spray.kind[0]++;
        if (next_random() % 2 == 0)
            send_own(bytes, len, spray.port[to]);
        else
            send_spoofed(bytes, len, spray.port[1 - to], spray.port[to]);
        return;
    }
    record = &spray.record[next_random() % known];
    spray.kind[kind]++;
    /* 1 cut off, 2 lengthened, 3 bits turned, 4 as it was, 5 to its own sender */
    if (next_random() % 2 == 0)
        send_own(bytes, make_recorded(bytes, record, kind), kind == 5 ? record->from : record->to);
    else
        send_spoofed(bytes, make_recorded(bytes, record, kind), record->from,
                     kind == 5 ? record->from : record->to);
}

/* What came back to us. */
static unsigned answers(void)
{
    uint8_t byte;
    unsigned count = 0;

    for (int i = 0; i < SOCKETS; i++)
        while (recv(spray.own[i], &byte, 1, MSG_DONTWAIT) >= 0)
            count++;
    return count;
}

static void sockets_open(void)
{
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };

    for (int i = 0; i < SOCKETS; i++) {
        spray.own[i] = socket(AF_INET, SOCK_DGRAM, 0);
        if (spray.own[i] < 0 || bind(spray.own[i], (struct sockaddr *)&any, sizeof(any)) != 0) {
            perror("spray: socket");
            exit(3);
        }
    }
    spray.raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
    spray.listen = listen_open();
}

int main(int argc, char **argv)
{
    const double began = seconds();
    uint64_t count;
    double limit;
    unsigned came;

    if (argc != 7)
        return 2;
    count = strtoull(argv[1], NULL, 10);
    limit = strtod(argv[2], NULL);
    spray.random = strtoull(argv[3], NULL, 10);
    spray.all_bits = strcmp(argv[4], "all") == 0;
    spray.port[0] = htons((uint16_t)atoi(argv[5]));
    spray.port[1] = htons((uint16_t)atoi(argv[6]));
    sockets_open();
    while (spray.listen >= 0 && spray.recorded < 500 && seconds() - began < 3)
        listen_more(100);
    while (spray.sent < count && seconds() - began < limit) {
        if (spray.sent % 4096 == 0)
            listen_more(64);
        send_one();
    }
    usleep(200000);
    came = answers();
    printf("%llu sent in %.1f s (%llu spoofed, %llu refused by the kernel): %llu random, %llu cut "
           "off, "
           "%llu lengthened, %llu with turned bits, %llu replayed, %llu reflected; %u recorded; %u "
           "answers\n",
           (unsigned long long)spray.sent, seconds() - began, (unsigned long long)spray.spoofed,
           (unsigned long long)spray.refused, (unsigned long long)spray.kind[0],
           (unsigned long long)spray.kind[1], (unsigned long long)spray.kind[2],
           (unsigned long long)spray.kind[3], (unsigned long long)spray.kind[4],
           (unsigned long long)spray.kind[5], spray.recorded, came);
    return came != 0 ? 1 : spray.sent < count / 10 ? 4 : 0;
}
