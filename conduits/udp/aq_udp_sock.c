/*
 * aq_udp_sock.c - the socket: opening, sending, and the errors that the network reports.
 *
 * Send      one datagram leaves by send() or sendmsg(). A batch of one size leaves by one sendmsg()
 *           with UDP_SEGMENT, which the kernel splits, or by sendmmsg() where the kernel cannot
 * Size      datagrams must not be fragmented by IP. The kernel reports one that is too long for the
 *           path, and the peer's datagram size steps down. A datagram that was built longer may be
 *           fragmented once
 * Threads   any, concurrently; no call blocks
 * Uses      sockets; Linux 4.18 for UDP_SEGMENT, optional. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <time.h> /* before errqueue.h, which needs it */
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#include "conduits/udp/aq_udp.h"
#include "base/aq_env.h"
#include "core/aq_exit.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define AQ_UDP_CONNECT_AFTER 32u  /* sends to a peer until it gets a socket of its own */
#define AQ_UDP_CONNECTED     256u /* peers that may have one */

static aq_lock aq_udp_cut_lock AQ_JOB_STATE; /* held while IP may fragment datagrams */

/* --- opening --- */

static void aq_udp_sock_buffers(void)
{
    const int want = (int)aq_env_size(AQ_ENV_SOCKETBUFFER_MAX);
    int have = 0;
    socklen_t len = sizeof(have);

    /* each as large as this user may have it */
    setsockopt(aq_udp.fd, SOL_SOCKET, SO_RCVBUF, &want, sizeof(want));
    setsockopt(aq_udp.fd, SOL_SOCKET, SO_RCVBUFFORCE, &want, sizeof(want));
    setsockopt(aq_udp.fd, SOL_SOCKET, SO_SNDBUF, &want, sizeof(want));
    setsockopt(aq_udp.fd, SOL_SOCKET, SO_SNDBUFFORCE, &want, sizeof(want));
    getsockopt(aq_udp.fd, SOL_SOCKET, SO_RCVBUF, &have, &len);
    /* the kernel counts its own structures too: they take as much again for large datagrams, three
     * times as much for small ones */
    aq_udp.rx_space = (uint32_t)have / 4;
    if (aq_udp.rx_space < 2 * AQ_UDP_RX_BYTES)
        aq_notice(
            "udp: the kernel gives a socket %d bytes for what arrives, which makes large transfers "
            "slow; more is allowed with: sysctl -w net.core.rmem_max=4194304",
            have);
}

static void aq_udp_sock_options(void)
{
    const bool v6 = aq_udp.self.any.sa_family == AF_INET6;
    const int on = 1, whole = v6 ? IPV6_PMTUDISC_DO : IP_PMTUDISC_DO;
    const bool wanted = aq_env_bool(AQ_ENV_UDP_GSO);
    int zero = 0;

    setsockopt(aq_udp.fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER,
               &whole, sizeof(whole));
    setsockopt(aq_udp.fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVERR : IP_RECVERR, &on,
               sizeof(on));
    aq_udp.gso =
        wanted && setsockopt(aq_udp.fd, IPPROTO_UDP, UDP_SEGMENT, &zero, sizeof(zero)) == 0;
    aq_udp_sock_receive_init(wanted);
    aq_udp_sock_buffers();
}

/* Sets the datagram size: what the interface carries, or what the user asks for. */
static void aq_udp_sock_size(uint32_t mtu)
{
    const int64_t named = aq_env_int(AQ_ENV_UDP_MTU);

    aq_udp.mtu_named = named > 0;
    if (named > 0)
        mtu = named > AQ_UDP_MAX_DATAGRAM ? AQ_UDP_MAX_DATAGRAM : (uint32_t)named;
    if (mtu > AQ_UDP_MAX_DATAGRAM)
        mtu = AQ_UDP_MAX_DATAGRAM;
    aq_udp.mtu = mtu < AQ_UDP_MIN_MTU ? AQ_UDP_MIN_MTU : mtu & ~15u;
}

int aq_udp_sock_open(void)
{
    socklen_t len = sizeof(aq_udp.self);
    uint32_t mtu;

    if (aq_udp_addr_choose(&aq_udp.self, &mtu) != AQ_OK)
        return AQ_ERR_SYS;
    aq_udp_sock_size(mtu - (aq_udp.self.any.sa_family == AF_INET ? 28 : 48));
    aq_udp.fd = socket(aq_udp.self.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (aq_udp.fd < 0)
        return aq_fail(AQ_ERR_SYS, "udp: no socket: %s", strerror(errno));
    if (bind(aq_udp.fd, &aq_udp.self.any, aq_udp_address_len(&aq_udp.self)) != 0
        || getsockname(aq_udp.fd, &aq_udp.self.any, &len) != 0) {
        aq_fail(AQ_ERR_SYS,
                "udp: cannot use the address %s: %s; choose another with GASNET_UDP_INTERFACE, "
                "for example GASNET_UDP_INTERFACE=eth0",
                aq_udp_address_text(&aq_udp.self, aq_udp.self_text, sizeof(aq_udp.self_text)),
                strerror(errno));
        close(aq_udp.fd);
        return AQ_ERR_SYS;
    }
    aq_udp_address_text(&aq_udp.self, aq_udp.self_text, sizeof(aq_udp.self_text));
    aq_udp_sock_options();
    AQ_LOG(INFO, UDP,
           "at %s; datagrams of %u bytes; segmentation offload %s, receive offload %s; receive "
           "space %u bytes",
           aq_udp.self_text, aq_udp.mtu, aq_udp.gso ? "on" : "off", aq_udp.gro ? "on" : "off",
           aq_udp.rx_space);
    return AQ_OK;
}

void aq_udp_sock_close(void)
{
    if (aq_udp.fd >= 0)
        close(aq_udp.fd);
    aq_udp.fd = -1;
}

void aq_udp_sock_look_closed(int fd, int error)
{
    if (AQ_LIKELY(error != EBADF && error != ENOTSOCK) || aq_exit_in_progress())
        return;
    aq_fatal("udp: descriptor %d, the socket of rank %u, has been closed; a program may close only "
             "descriptors that it has opened",
             fd, aq_job.rank);
}

/* --- errors that the network reports --- */

static enum aq_udp_note aq_udp_sock_note_of(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return AQ_UDP_NOTE_REFUSED;
    case EHOSTUNREACH:
    case ENETUNREACH:
        return AQ_UDP_NOTE_UNREACHABLE;
    default:
        return AQ_UDP_NOTE_NONE;
    }
}

/* Reads one note from the error queue; it quotes the begin of a datagram. Returns false if there is
 * none. */
static bool aq_udp_sock_note(int fd)
{
    union aq_udp_address to;
    uint8_t control[512], head[AQ_UDP_HEADER];
    struct iovec iov = { head, sizeof(head) };
    ssize_t quoted;
    struct msghdr msg = { .msg_name = &to,
                          .msg_namelen = sizeof(to),
                          .msg_iov = &iov,
                          .msg_iovlen = 1,
                          .msg_control = control,
                          .msg_controllen = sizeof(control) };

    quoted = recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT);
    if (quoted < 0)
        return false;
    aq_counter_add(&aq_udp.counts.errors, 1);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
        struct sock_extended_err error;
        enum aq_udp_note note;

        if (!((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR)
              || (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR)))
            continue;
        memcpy(&error, CMSG_DATA(c), sizeof(error));
        note = aq_udp_sock_note_of((int)error.ee_errno);
        if (note != AQ_UDP_NOTE_NONE)
            aq_udp_peer_note(&to, note,
                             quoted < AQ_UDP_HEADER ? 0 : aq_udp_get64(head + AQ_UDP_HASH_AT));
    }
    return true;
}

unsigned aq_udp_sock_notes(int fd)
{
    unsigned count = 0;

    while (count < 64 && aq_udp_sock_note(fd))
        count++;
    return count;
}

/* --- sending --- */

static size_t aq_udp_packet_iov(const struct aq_udp_packet *packet, struct iovec *iov)
{
    iov[0] = (struct iovec){ packet->head, packet->head_len };
    if (packet->body_len == 0)
        return 1;
    if (packet->body == (const void *)(packet->head + packet->head_len)) {
        iov[0].iov_len += packet->body_len;
        return 1;
    }
    iov[1] = (struct iovec){ (void *)(uintptr_t)packet->body, packet->body_len };
    return 2;
}

/* Sends one datagram that IP may fragment. */
static void aq_udp_sock_send_cut(const struct msghdr *msg)
{
    const bool v6 = aq_udp.self.any.sa_family == AF_INET6;
    const int level = v6 ? IPPROTO_IPV6 : IPPROTO_IP,
              what = v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER;
    const int cut = v6 ? IPV6_PMTUDISC_DONT : IP_PMTUDISC_DONT;
    const int whole = v6 ? IPV6_PMTUDISC_DO : IP_PMTUDISC_DO;

    aq_lock_acquire(&aq_udp_cut_lock);
    setsockopt(aq_udp.fd, level, what, &cut, sizeof(cut));
    (void)!sendmsg(aq_udp.fd, msg, MSG_DONTWAIT); /* a failure counts as a loss */
    setsockopt(aq_udp.fd, level, what, &whole, sizeof(whole));
    aq_lock_release(&aq_udp_cut_lock);
}

/* The socket by which datagrams to a peer leave. */
static inline int aq_udp_sock_of(const struct aq_udp_peer *peer)
{
    return peer->fd > 0 ? peer->fd : aq_udp.fd;
}

enum aq_udp_sent { AQ_SENT, AQ_SENT_NOT_NOW, AQ_SENT_NOT_SO };

/* Says what a failed send means. SENT: treat it as sent and lost. NOT_SO: this batch must be sent
 * by another call. */
static enum aq_udp_sent aq_udp_sock_failed(struct aq_udp_peer *peer, int error, size_t len,
                                           bool packets)
{
    switch (error) {
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
        return AQ_SENT_NOT_NOW;
    case EMSGSIZE:
        (void)aq_udp_sock_notes(
            /* the failed send left a note too, which would wake sleepers for ever */
            aq_udp_sock_of(peer));
        aq_udp_peer_narrow(peer, len);
        return AQ_SENT_NOT_SO;
    case EINVAL:
    case EIO:
    case EOPNOTSUPP:
        return packets ? AQ_SENT_NOT_SO : AQ_SENT;
    default: /* no route, a packet filter's EPERM, a link that is down */
        return AQ_SENT;
    }
}

/* A peer at the same address that is sent to often gets a connected socket of its own, for which
 * the kernel looks up no route: some 300 ns less for each message. It is used for sending only; the
 * peer still sends to the common socket. */
static void aq_udp_sock_connect(struct aq_udp_peer *peer)
{
    static atomic_uint count AQ_JOB_STATE;
    const bool v6 = aq_udp.self.any.sa_family == AF_INET6;
    const int whole = v6 ? IPV6_PMTUDISC_DO : IP_PMTUDISC_DO, on = 1;
    const int few = 8192; /* no data arrives here, but error notes need space */
    const int size = (int)aq_env_size(AQ_ENV_SOCKETBUFFER_MAX);
    union aq_udp_address self = aq_udp.self;

    peer->fd = -1;
    if (!aq_udp_peer_is_same_host(
            peer)) /* between hosts, packet filters may admit only answers to the common port */
        return;
    /* relaxed: only a count */
    if (atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) >= AQ_UDP_CONNECTED)
        return;
    peer->fd = socket(self.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (peer->fd == 0) { /* the client has closed its stdin, and 0 means no socket here */
        peer->fd = dup(0);
        close(0);
    }
    if (peer->fd < 0)
        return;
    if (v6)
        self.v6.sin6_port = 0;
    else
        self.v4.sin_port = 0;
    setsockopt(peer->fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER,
               &whole, sizeof(whole));
    setsockopt(peer->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    setsockopt(peer->fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
    setsockopt(peer->fd, SOL_SOCKET, SO_RCVBUF, &few, sizeof(few));
    setsockopt(peer->fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVERR : IP_RECVERR, &on,
               sizeof(on));
    if (bind(peer->fd, &self.any, aq_udp_address_len(&self)) != 0
        || connect(peer->fd, &peer->address.any, peer->address_len) != 0) {
        close(peer->fd);
        peer->fd = -1;
    }
}

/* One send call, the cheapest that fits. */
static inline ssize_t aq_udp_sock_call(struct aq_udp_peer *peer, const struct msghdr *msg)
{
    struct msghdr connected;

    if (AQ_UNLIKELY(peer->fd == 0) && ++peer->fd_wait >= AQ_UDP_CONNECT_AFTER)
        aq_udp_sock_connect(peer);
    if (peer->fd <= 0)
        return sendmsg(aq_udp.fd, msg, MSG_DONTWAIT);
    connected = *msg;
    connected.msg_name = NULL;
    connected.msg_namelen = 0;
    return sendmsg(peer->fd, &connected, MSG_DONTWAIT);
}

/* Returns true if the error is about this datagram. Other errors may report an earlier one. */
static inline bool aq_udp_sock_is_own(int error)
{
    return error == EAGAIN || error == ENOBUFS || error == ENOMEM || error == EMSGSIZE;
}

/* Asks this host's own kernel, by the connect() of a socket that nobody else knows: it looks up the
 * route and sends nothing. What the network says, true or forged, is not asked. A host that has
 * lost its address has no route, either. */
static bool aq_udp_sock_has_no_route(const struct aq_udp_peer *peer)
{
    union aq_udp_address self = aq_udp.self;
    const int fd = socket(self.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool no_route;

    if (fd < 0)
        return false;
    if (self.any.sa_family == AF_INET6)
        self.v6.sin6_port = 0;
    else
        self.v4.sin_port = 0;
    if (bind(fd, &self.any, aq_udp_address_len(&self)) != 0)
        no_route = errno == EADDRNOTAVAIL;
    else
        no_route = connect(fd, &peer->address.any, peer->address_len) != 0
                   && aq_udp_sock_note_of(errno) == AQ_UDP_NOTE_UNREACHABLE;
    close(fd);
    return no_route;
}

static int aq_udp_sock_try(struct aq_udp_peer *peer, const struct msghdr *msg)
{
    int error = 0, silent = 0;

    for (int i = 0; i < AQ_UDP_ERROR_RETRIES && silent < 2; i++) {
        if (aq_udp_sock_call(peer, msg) >= 0) {
            aq_counter_add(&aq_udp.counts.sends, 1);
            return 0;
        }
        error = errno;
        if (aq_udp_sock_is_own(error))
            return error;
        aq_udp_sock_look_closed(aq_udp_sock_of(peer), error);
        if (error != EINTR)
            silent += aq_udp_sock_notes(aq_udp_sock_of(peer)) == 0;
    }
    /* two failures, and no note that explains them: either this host's own kernel has no route, or
     * the error queue has no space for the notes, which anybody can forge */
    if (silent == 2 && aq_udp_sock_note_of(error) == AQ_UDP_NOTE_UNREACHABLE
        && aq_udp_sock_has_no_route(peer)) {
        aq_udp_check_verified(&peer->check, AQ_UDP_NOTE_UNREACHABLE);
        aq_udp_note_deadline(0);
    }
    return error;
}

/* Sends one datagram, in one buffer, over a connected socket. Returns false if that is impossible,
 * or not possible now. */
static inline bool aq_udp_sock_send_plain(struct aq_udp_peer *peer,
                                          const struct aq_udp_packet *packet)
{
    const bool whole =
        packet->body_len == 0 || packet->body == (const void *)(packet->head + packet->head_len);

    if (peer->fd <= 0 || !whole)
        return false;
    if (AQ_UNLIKELY(send(peer->fd, packet->head, packet->head_len + packet->body_len, MSG_DONTWAIT)
                    < 0)) {
        if (!aq_udp_sock_is_own(errno))
            (void)aq_udp_sock_notes(peer->fd); /* the error of an earlier datagram */
        return false;
    }
    aq_counter_add(&aq_udp.counts.sends, 1);
    return true;
}

/* Returns true if the datagram was sent, or counts as sent and lost. */
static bool aq_udp_sock_send_one(struct aq_udp_peer *peer, const struct aq_udp_packet *packet)
{
    struct iovec iov[2];
    struct msghdr msg = { .msg_name = &peer->address,
                          .msg_namelen = peer->address_len,
                          .msg_iov = iov,
                          .msg_iovlen = aq_udp_packet_iov(packet, iov) };
    const size_t len = packet->head_len + packet->body_len;
    /* a test of the size, or built before the path's limit became smaller */
    const bool longer = len > peer->link.mtu;
    int error;

    if (AQ_UNLIKELY(packet->again && longer)) {
        aq_udp_sock_send_cut(&msg);
        return true;
    }
    error = aq_udp_sock_try(peer, &msg);
    if (AQ_LIKELY(error == 0))
        return true;
    switch (aq_udp_sock_failed(peer, error, len, false)) {
    case AQ_SENT_NOT_NOW:
        return false;
    case AQ_SENT_NOT_SO:
        if (!longer)
            aq_udp_sock_send_cut(&msg);
        return true; /* otherwise it counts as lost */
    default:
        return true;
    }
}

/* Sends equal datagrams, the last perhaps smaller, in one call. */
static enum aq_udp_sent aq_udp_sock_send_gso(struct aq_udp_peer *peer,
                                             const struct aq_udp_packet *packets, unsigned count)
{
    struct iovec iov[2 * AQ_UDP_GSO_BATCH];
    union {
        struct cmsghdr align;
        uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
    } control;
    struct msghdr msg = { .msg_name = &peer->address,
                          .msg_namelen = peer->address_len,
                          .msg_iov = iov,
                          .msg_control = &control,
                          .msg_controllen = sizeof(control) };
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    const uint16_t each = (uint16_t)(packets[0].head_len + packets[0].body_len);
    int error;

    for (unsigned i = 0; i < count; i++)
        msg.msg_iovlen += aq_udp_packet_iov(&packets[i], &iov[msg.msg_iovlen]);
    memset(&control, 0, sizeof(control));
    c->cmsg_level = IPPROTO_UDP;
    c->cmsg_type = UDP_SEGMENT;
    c->cmsg_len = CMSG_LEN(sizeof(each));
    memcpy(CMSG_DATA(c), &each, sizeof(each));
    error = aq_udp_sock_try(peer, &msg);
    return AQ_LIKELY(error == 0) ? AQ_SENT : aq_udp_sock_failed(peer, error, each, true);
}

/* Sends several datagrams in one call without UDP_SEGMENT. Returns how many left. */
static unsigned aq_udp_sock_send_many(struct aq_udp_peer *peer, const struct aq_udp_packet *packets,
                                      unsigned count)
{
    struct mmsghdr many[AQ_UDP_GSO_BATCH];
    struct iovec iov[2 * AQ_UDP_GSO_BATCH];
    int sent;

    memset(many, 0, count * sizeof(many[0]));
    for (unsigned i = 0; i < count; i++) {
        many[i].msg_hdr.msg_iov = &iov[2 * i];
        many[i].msg_hdr.msg_iovlen = aq_udp_packet_iov(&packets[i], &iov[2 * i]);
        many[i].msg_hdr.msg_name = peer->fd > 0 ? NULL : &peer->address;
        many[i].msg_hdr.msg_namelen = peer->fd > 0 ? 0 : peer->address_len;
    }
    sent = sendmmsg(aq_udp_sock_of(peer), many, count, MSG_DONTWAIT);
    if (sent > 0)
        aq_counter_add(&aq_udp.counts.sends, 1);
    return sent > 0 ? (unsigned)sent : 0;
}

unsigned aq_udp_sock_send(struct aq_udp_peer *peer, const struct aq_udp_packet *packets,
                          unsigned count)
{
    const uint32_t mtu = peer->link.mtu;
    bool failed = false;
    unsigned sent = 0;

    if (AQ_LIKELY(count == 1 && !packets->again) && aq_udp_sock_send_plain(peer, packets))
        return 1;
    if (count > 1 && aq_udp.gso && packets[0].head_len + packets[0].body_len <= mtu)
        switch (aq_udp_sock_send_gso(peer, packets, count)) {
        case AQ_SENT:
            return count;
        case AQ_SENT_NOT_NOW:
            return 0;
        case AQ_SENT_NOT_SO:
            failed = true;
            break;
        }
    else if (count > 1 && packets[0].head_len + packets[0].body_len <= mtu)
        sent = aq_udp_sock_send_many(peer, packets, count);
    while (sent < count && aq_udp_sock_send_one(peer, &packets[sent]))
        sent++;
    if (AQ_UNLIKELY(failed) && sent != 0 && peer->link.mtu == mtu)
        aq_udp.gso = false; /* the size is not the cause: this interface cannot do it */
    return sent;
}
