/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fdpass.c - passes descriptors to the other ranks of a host; see aq_fdpass.h.
 * Threads   one on each side
 */
#include "other/spawn/aq_fdpass.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define AQ_FDPASS_KEY 32
#define AQ_FDPASS_PEER_MS \
    2000 /* how long an unauthenticated peer that sends nothing may delay the others */

static socklen_t aq_fdpass_address(struct sockaddr_un *addr, const char *name)
{
    memset(addr, 0, sizeof(*addr));
    addr->sun_family = AF_UNIX;
    /* a leading NUL makes the name abstract */
    snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1, "%s", name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(addr->sun_path + 1));
}

static int aq_fdpass_same_user(int sock)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
        return -errno;
    return peer.uid == geteuid() ? 0 : -EPERM;
}

static int64_t aq_fdpass_now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int aq_fdpass_listen(const char *name, uint32_t takers)
{
    struct sockaddr_un addr;
    socklen_t len = aq_fdpass_address(&addr, name);
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

    if (sock < 0)
        return -errno;
    if (bind(sock, (struct sockaddr *)&addr, len) == 0 && listen(sock, (int)takers + 8) == 0)
        return sock;
    rc = -errno;
    close(sock);
    return rc;
}

static int aq_fdpass_poll(int sock, short events, int timeout_ms)
{
    struct pollfd p = { sock, events, 0 };
    int rc;

    do
        rc = poll(&p, 1, timeout_ms);
    while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return -errno;
    return rc == 0 ? -ETIMEDOUT : 0;
}

static int aq_fdpass_send(int sock, const int *fds, int count, int error)
{
    union {
        char space[CMSG_SPACE(sizeof(int) * AQ_FDPASS_MAX)];
        struct cmsghdr align;
    } control;
    struct iovec iov = { &error, sizeof(error) };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (count > 0) {
        struct cmsghdr *c;

        memset(&control, 0, sizeof(control));
        msg.msg_control = control.space;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
        c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)count);
    }
    return sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* returns 0 if the peer was authenticated and served */
static int aq_fdpass_serve(int peer, const uint8_t *key, const int *fds, int count, int error)
{
    uint8_t said[AQ_FDPASS_KEY];
    int rc = aq_fdpass_same_user(peer);

    if (rc == 0)
        rc = aq_fdpass_poll(peer, POLLIN, AQ_FDPASS_PEER_MS);
    if (rc == 0 && recv(peer, said, sizeof(said), 0) != (ssize_t)sizeof(said))
        rc = -EPROTO;
    if (rc == 0 && memcmp(said, key, sizeof(said)) != 0)
        rc = -EPERM;
    return rc == 0 ? aq_fdpass_send(peer, fds, count, error) : rc;
}

int aq_fdpass_give(int sock, uint32_t takers, const uint8_t key[32], const int *fds, int count,
                   int error, int timeout_ms)
{
    int64_t end = aq_fdpass_now_ms() + timeout_ms;

    while (takers > 0) {
        int left = (int)(end - aq_fdpass_now_ms());
        int rc = aq_fdpass_poll(sock, POLLIN, left > 0 ? left : 0), peer;

        if (rc != 0)
            return rc;
        peer = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
        if (peer < 0) {
            if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
                continue;
            return -errno;
        }
        if (aq_fdpass_serve(peer, key, fds, count, error) == 0)
            takers--;
        close(peer);
    }
    return 0;
}

static int aq_fdpass_receive(int sock, int *fds_out, int count)
{
    union {
        char space[CMSG_SPACE(sizeof(int) * AQ_FDPASS_MAX)];
        struct cmsghdr align;
    } control;
    int error = 0;
    struct iovec iov = { &error, sizeof(error) };
    struct msghdr msg = { .msg_iov = &iov,
                          .msg_iovlen = 1,
                          .msg_control = control.space,
                          .msg_controllen = sizeof(control.space) };
    ssize_t got = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    struct cmsghdr *c;

    if (got < 0)
        return -errno;
    if (got != (ssize_t)sizeof(error))
        return -EPROTO;
    if (error != 0)
        return -error;
    c = CMSG_FIRSTHDR(&msg);
    /* if the descriptor table is full, the kernel delivers fewer descriptors and sets this flag */
    if ((msg.msg_flags & MSG_CTRUNC) != 0)
        return -EMFILE;
    if (c == NULL || c->cmsg_type != SCM_RIGHTS
        || c->cmsg_len != CMSG_LEN(sizeof(int) * (size_t)count))
        return -EPROTO;
    memcpy(fds_out, CMSG_DATA(c), sizeof(int) * (size_t)count);
    return 0;
}

int aq_fdpass_take(const char *name, const uint8_t key[32], int *fds_out, int count, int timeout_ms)
{
    struct sockaddr_un addr;
    socklen_t len = aq_fdpass_address(&addr, name);
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), rc = 0;

    if (sock < 0)
        return -errno;
    if (connect(sock, (struct sockaddr *)&addr, len) != 0)
        rc = -errno;
    if (rc == 0)
        rc = aq_fdpass_same_user(sock);
    if (rc == 0 && send(sock, key, AQ_FDPASS_KEY, MSG_NOSIGNAL) != AQ_FDPASS_KEY)
        rc = -errno;
    if (rc == 0)
        rc = aq_fdpass_poll(sock, POLLIN, timeout_ms);
    if (rc == 0)
        rc = aq_fdpass_receive(sock, fds_out, count);
    close(sock);
    return rc;
}
