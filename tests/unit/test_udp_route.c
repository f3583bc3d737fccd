/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_udp_route.c - sends that fail with "no route": a host that this rank's kernel has no route
 * to is lost. One for which every send reports the error of a forged note, with nothing in the
 * error queue, is not.
 *
 * sendmsg() is this file's. The second half runs in a network name space without routes.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "conduits/udp/aq_udp.h"
#include "tests/unit/aq_unit.h"

#define S UINT64_C(1000000000)

static int forged; /* the error that each send reports */
static unsigned sends;

/* As the kernel does when a note arrives before each send and the receive buffer is full. */
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    sends++;
    if (forged != 0) {
        errno = forged;
        return -1;
    }
    return syscall(SYS_sendmsg, fd, msg, flags);
}

static void open_rank(void)
{
    socklen_t len = sizeof(aq_udp.self);

    memset(&aq_udp.self, 0, sizeof(aq_udp.self));
    aq_udp.self.v4.sin_family = AF_INET;
    aq_udp.self.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    aq_udp.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(aq_udp.fd, &aq_udp.self.any, sizeof(aq_udp.self.v4)), 0);
    assert_int_equal(getsockname(aq_udp.fd, &aq_udp.self.any, &len), 0);
}

static void open_peer(struct aq_udp_peer *peer, in_addr_t address)
{
    memset(peer, 0, sizeof(*peer));
    peer->fd = -1;
    peer->link.mtu = 1400;
    peer->address.v4.sin_family = AF_INET;
    peer->address.v4.sin_addr.s_addr = htonl(address);
    peer->address.v4.sin_port = aq_udp.self.v4.sin_port;
    peer->address_len = sizeof(peer->address.v4);
}

/* A minute of a rank that waits for the peer, or less if the peer is lost before. */
static enum aq_udp_note minute(struct aq_udp_peer *peer)
{
    uint8_t bytes[AQ_UDP_HEADER] = { 0 };
    const struct aq_udp_packet probe = { .head = bytes,
                                         .head_len = sizeof(bytes),
                                         .channel = AQ_UDP_CONTROL };
    uint64_t hash = 1;

    aq_udp_check_note(&peer->check, AQ_UDP_NOTE_UNREACHABLE, 0); /* anybody can say this */
    for (uint64_t now = 100 * S; now < 160 * S; now += S / 10) {
        if (aq_udp_check_step(&peer->check, now, 0, true)) {
            aq_udp_check_probed(&peer->check, hash++);
            (void)aq_udp_sock_send(peer, &probe, 1);
        }
        if (aq_udp_check_lost(&peer->check) != AQ_UDP_NOTE_NONE)
            break;
    }
    return aq_udp_check_lost(&peer->check);
}

static void test_forged(void **state)
{
    static const int errors[] = { EHOSTUNREACH, ENETUNREACH, ECONNREFUSED };

    (void)state;
    open_rank();
    for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        struct aq_udp_peer peer;

        open_peer(&peer, INADDR_LOOPBACK);
        forged = errors[i];
        sends = 0;
        assert_int_equal(minute(&peer), AQ_UDP_NOTE_NONE);
        assert_true(sends >= 10);
        forged = 0;
    }
    close(aq_udp.fd);
}

/* Returns false where a name space of one's own gives no rights in it. */
static bool loopback_up(void)
{
    struct ifreq lo = { .ifr_name = "lo" };
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_up;

    lo.ifr_flags = IFF_UP;
    is_up = ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
    close(fd);
    return is_up;
}

static void test_no_route(void **state)
{
    struct aq_udp_peer peer;

    (void)state;
    if ((unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        || !loopback_up())
        skip();
    open_rank();
    open_peer(&peer, 0x0a010203);
    assert_int_equal(minute(&peer), AQ_UDP_NOTE_UNREACHABLE);
    open_peer(&peer, INADDR_LOOPBACK);
    assert_int_equal(minute(&peer), AQ_UDP_NOTE_NONE);
    close(aq_udp.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_no_route),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
