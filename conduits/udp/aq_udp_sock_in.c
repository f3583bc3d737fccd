/*
 * aq_udp_sock_in.c - receiving: one datagram, or several in one call.
 *
 * One datagram on its own is received by recv(), which costs least. While datagrams come in
 * batches, recvmsg() with UDP_GRO takes what the kernel has joined, or recvmmsg() several where the
 * kernel joins nothing. aq_udp_sock_adapt() decides.
 *
 * Threads   any, all at once; no call blocks
 * Uses      sockets; Linux 5.0 for UDP_GRO, optional. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "conduits/udp/aq_udp.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define AQ_UDP_BATCHES_AFTER 8u  /* datagrams without an empty look between them */
#define AQ_UDP_SINGLES_AFTER 64u /* receive calls without a batch, the last before an empty look */

/* --- receiving --- */

/* Decides whether a failed receive call is repeated: at most AQ_UDP_ERROR_RETRIES times, pending
 * errors first. Returns false if the socket has no data. */
static bool aq_udp_sock_receive_again(ssize_t got, int tries)
{
    if (AQ_LIKELY(got < 0 && errno == EAGAIN) || got > 0 || tries >= AQ_UDP_ERROR_RETRIES)
        return false;
    if (got < 0) { /* otherwise an empty datagram, which no rank sends */
        aq_udp_sock_look_closed(aq_udp.fd, errno);
        (void)aq_udp_sock_notes(aq_udp.fd);
    }
    return true;
}

/* Without UDP_GRO: several datagrams in one call, each in a slot of the buffer. */
static bool aq_udp_sock_receive_many(struct aq_udp_rx_batch *batch)
{
    const size_t slot = (aq_udp.mtu + 63u) & ~(size_t)63;
    const unsigned slots =
        AQ_UDP_RX_BYTES / slot < AQ_UDP_RX_BATCH ? AQ_UDP_RX_BYTES / slot : AQ_UDP_RX_BATCH;
    struct mmsghdr many[AQ_UDP_RX_BATCH];
    struct iovec iov[AQ_UDP_RX_BATCH];
    int got, tries = 0;

    memset(many, 0, slots * sizeof(many[0]));
    for (unsigned i = 0; i < slots; i++) {
        iov[i] = (struct iovec){ batch->buffer + i * slot, slot };
        many[i].msg_hdr.msg_iov = &iov[i];
        many[i].msg_hdr.msg_iovlen = 1;
    }
    do
        got = recvmmsg(aq_udp.fd, many, slots, MSG_DONTWAIT, NULL);
    while (aq_udp_sock_receive_again(got, tries++));
    if (got <= 0)
        return false;
    batch->each = slot;
    batch->count = (unsigned)got;
    batch->bytes = 0;
    for (unsigned i = 0; i < batch->count; i++) {
        batch->len[i] = many[i].msg_len;
        batch->bytes += many[i].msg_len;
    }
    return true;
}

/* Finds where the datagrams of a GRO batch begin and end. */
static void aq_udp_sock_split(struct aq_udp_rx_batch *batch, size_t each)
{
    batch->each = each;
    batch->count = (unsigned)((batch->bytes + each - 1) / each);
    if (batch->count > AQ_UDP_RX_BATCH)
        batch->count = AQ_UDP_RX_BATCH;
    for (unsigned i = 0; i < batch->count; i++)
        batch->len[i] = (uint32_t)each;
    batch->len[batch->count - 1] = (uint32_t)(batch->bytes - (batch->count - 1) * each);
}

/* With UDP_GRO: receives one datagram, or a batch that the kernel has joined. */
static bool aq_udp_sock_receive_gro(struct aq_udp_rx_batch *batch)
{
    struct iovec iov = { batch->buffer, AQ_UDP_RX_BYTES };
    union {
        struct cmsghdr align;
        uint8_t bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };
    size_t each;
    ssize_t got;
    int tries = 0;

    do {
        msg.msg_controllen = sizeof(control);
        got = recvmsg(aq_udp.fd, &msg, MSG_DONTWAIT);
    } while (aq_udp_sock_receive_again(got, tries++));
    if (got <= 0)
        return false;
    batch->bytes = each = (size_t)got;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c))
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int size;

            memcpy(&size, CMSG_DATA(c), sizeof(size));
            if (size > 0)
                each = (size_t)size;
        }
    aq_udp_sock_split(batch, each);
    return true;
}

/* Receives one datagram by the cheapest call. */
static inline bool aq_udp_sock_receive_one(struct aq_udp_rx_batch *batch)
{
    ssize_t got;
    int tries = 0;

    do
        got = recv(aq_udp.fd, batch->buffer, AQ_UDP_RX_BYTES, MSG_DONTWAIT);
    while (aq_udp_sock_receive_again(got, tries++));
    if (got <= 0)
        return false;
    batch->bytes = batch->each = (size_t)got;
    batch->len[0] = (uint32_t)got;
    batch->count = 1;
    return true;
}

/* --- the choice between single datagrams and batches --- */

static bool aq_udp_sock_set_gro(int on)
{
    return aq_udp.gro && setsockopt(aq_udp.fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) == 0;
}

void aq_udp_sock_receive_init(bool wanted)
{
    aq_udp.gro = wanted;
    aq_udp.gro = aq_udp_sock_set_gro(1);
    /* with several threads the choice would need synchronization */
    aq_udp.rx_batches = AQ_THREADED;
    if (!aq_udp.rx_batches)
        (void)aq_udp_sock_set_gro(0);
}

/* Several datagrams have arrived in a row: from now on they are received in batches. */
static void aq_udp_sock_batches_begin(void)
{
    aq_udp.gro = aq_udp_sock_set_gro(1);
    aq_udp.rx_singles = 0;
    aq_udp.rx_batches = true;
}

/* No batch for a while, and the socket is empty. A batch that the kernel has joined in the meantime
 * is read while its size is still reported. One that another processor joins at this very moment is
 * malformed as a single datagram, and is retransmitted. */
static void aq_udp_sock_batches_end(void)
{
    uint8_t first;

    aq_udp.rx_singles = 0;
    (void)aq_udp_sock_set_gro(0);
    if (recv(aq_udp.fd, &first, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN)
        aq_udp.rx_batches = false;
    else
        (void)aq_udp_sock_set_gro(1);
}

/* Batches cost a single message a cache miss in the kernel (UDP_GRO) and the copy of a header
 * (recvmsg()). The counts are hints: threads may lose some. */
static inline void aq_udp_sock_adapt(unsigned count)
{
    if (AQ_LIKELY(!aq_udp.rx_batches)) {
        if (count == 0)
            aq_udp.rx_singles = 0;
        else if (AQ_UNLIKELY(++aq_udp.rx_singles >= AQ_UDP_BATCHES_AFTER))
            aq_udp_sock_batches_begin();
    } else if (count > 1) {
        aq_udp.rx_singles = 0;
    } else if (count == 1) {
        aq_udp.rx_singles++;
    } else if (aq_udp.rx_singles >= AQ_UDP_SINGLES_AFTER) {
        aq_udp_sock_batches_end();
    }
}

bool aq_udp_sock_receive(struct aq_udp_rx_batch *batch)
{
    bool got;

    if (AQ_LIKELY(!aq_udp.rx_batches))
        got = aq_udp_sock_receive_one(batch);
    else
        got = aq_udp.gro ? aq_udp_sock_receive_gro(batch) : aq_udp_sock_receive_many(batch);
    if (!AQ_THREADED)
        aq_udp_sock_adapt(got ? batch->count : 0);
    return got;
}
