/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_spawn_link.c - the hosts of a job agree on its end. The hash is SipHash-2-4. Each "host" is
 * a process with a job area of its own; they communicate over the loopback interface. All learn the
 * code, that the other ranks are asked to end, and that all have ended. A host whose processes die
 * or become silent is noticed; a host to which all others are silent is not lost. Datagrams of an
 * unauthenticated peer, and replayed ones from elsewhere, are ignored.
 */
#include "tests/unit/aq_unit.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "other/spawn/aq_siphash.h"
#include "other/spawn/aq_spawn_link.h"

#define HOSTS 40 /* more than the tree's degree: host 33 is a child of host 1 */

/* what the hosts of a test find in common */
struct common {
    char address[HOSTS][AQ_LINK_ADDR_MAX];
    _Atomic uint32_t exits; /* 1 + host whose only rank is at the exit; 0: none yet */
    _Atomic uint32_t dies;  /* 1 + host that dies of SIGKILL */
    _Atomic uint32_t stops; /* 1 + host that stops for ever */
    _Atomic uint32_t whole;
};

static struct common *common;
static uint32_t host_of[HOSTS];
static const uint8_t key[32] = "a key that all hosts know: 32 b";

/* The first vectors of the paper's appendix: key 00 01 .. 0f, messages of 0, 1 and 15 bytes 00 01
 * ... */
static void test_siphash(void **state)
{
    uint8_t bytes[16];

    (void)state;
    for (int i = 0; i < 16; i++)
        bytes[i] = (uint8_t)i;
    assert_true(aq_siphash(bytes, bytes, 0) == 0x726fdb47dd0e0e31u);
    assert_true(aq_siphash(bytes, bytes, 1) == 0x74f839c593dc67fdu);
    assert_true(aq_siphash(bytes, bytes, 15) == 0xa129ca6149be45e5u);
}

static bool reached(_Atomic uint32_t *word, uint32_t value)
{
    return atomic_load_explicit(word, memory_order_relaxed) >= value;
}

/* Host h, of one rank, until the job has ended; returns the code it found, 200 after 10 s. */
static int live(uint32_t h, struct aq_jobarea *jobarea)
{
    uint64_t end = aq_jobarea_now_ns() + 10000000000ull;
    pid_t child[1] = { getpid() };
    struct aq_shutdown e;
    bool counted = false, ended = false;

    aq_shutdown_init(&e, jobarea, child);
    e.gentle = true;
    e.logged = true; /* no messages here */
    while (!(aq_link_is_done() && aq_link_is_settled()) && aq_jobarea_now_ns() < end) {
        int state = (int)atomic_load_explicit(&jobarea->exit_state, memory_order_relaxed);

        if (!counted && aq_link_is_whole())
            atomic_fetch_add_explicit(&common->whole, 1, memory_order_relaxed);
        counted = aq_link_is_whole();
        if (atomic_load_explicit(&common->dies, memory_order_relaxed) == h + 1)
            raise(SIGKILL);
        if (atomic_load_explicit(&common->stops, memory_order_relaxed) == h + 1)
            raise(SIGSTOP);
        if (!ended
            && (state >= AQ_EXIT_ASKED
                || atomic_load_explicit(&common->exits, memory_order_relaxed) == h + 1)) {
            aq_jobarea_publish_exit(jobarea, 0, AQ_RANK_ENDED, 7);
            ended = true;
        }
        /* what the ending does to ranks is not tried here: it would signal this very process */
        if (state == AQ_EXIT_SHUTDOWN && e.start_ns == 0)
            aq_shutdown_begin(&e, 50);
        if (e.start_ns != 0 && !e.follow && state < AQ_EXIT_ASKED
            && aq_jobarea_now_ns() >= e.ask_ns)
            aq_jobarea_raise_exit_state(jobarea, AQ_EXIT_ASKED);
        aq_link_step(&e, ended);
        usleep(2000);
    }
    return aq_link_is_done() ? atomic_load_explicit(&jobarea->exit_code, memory_order_relaxed)
                             : 200;
}

static void host_main(uint32_t h, uint32_t hosts, const int fds[2])
{
    struct aq_spawn_info info = { .rank = h,
                                  .size = hosts,
                                  .host_size = 1,
                                  .host_index = h,
                                  .host_count = hosts,
                                  .host_ranks = &h,
                                  .host_of = host_of };
    struct aq_jobarea *jobarea;
    int fd;

    alarm(20);
    jobarea = aq_jobarea_create(1, hosts, &fd);
    jobarea->rank[0].pid = 1 << 30; /* nobody: the ending must not signal this process */
    if (aq_link_attach(fds, &info, key) != 0
        || (h > 0 && !aq_link_set_parent(common->address[aq_link_parent(&info)])))
        _exit(201);
    _exit(live(h, jobarea));
}

/* so that nothing leaves the loopback interface */
static void local_addr_text(char address[AQ_LINK_ADDR_MAX], uint32_t h)
{
    unsigned port;

    assert_int_equal(sscanf(address, "%*s %u", &port), 1);
    snprintf(address, AQ_LINK_ADDR_MAX, "host%u %u 127.0.0.1", h, port);
}

/* relay: 0, or the port that host 1 takes for its parent's */
static void start_behind(uint32_t hosts, pid_t *pids, unsigned relay, unsigned *port_out)
{
    int fds[HOSTS][2];

    common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(common != MAP_FAILED);
    for (uint32_t h = 0; h < hosts; h++) {
        host_of[h] = h;
        assert_int_equal(aq_link_create(common->address[h], fds[h]), 0);
        local_addr_text(common->address[h], h);
    }
    if (relay != 0) {
        assert_int_equal(sscanf(common->address[0], "%*s %u", port_out), 1);
        snprintf(common->address[0], AQ_LINK_ADDR_MAX, "host0 %u 127.0.0.1", relay);
    }
    for (uint32_t h = 0; h < hosts; h++) {
        pids[h] = fork();
        if (pids[h] == 0) {
            /* a socket is closed when its last process ends: keep our own only */
            for (uint32_t i = 0; i < hosts; i++)
                if (i != h)
                    close(fds[i][0]);
            host_main(h, hosts, fds[h]);
        }
    }
    for (uint32_t h = 0; h < hosts; h++) {
        close(fds[h][0]);
        close(fds[h][1]);
    }
}

static void start(uint32_t hosts, pid_t *pids)
{
    start_behind(hosts, pids, 0, NULL);
}

static void wait_whole(uint32_t hosts)
{
    for (int i = 0; i < 5000 && !reached(&common->whole, hosts); i++)
        usleep(1000);
    assert_true(reached(&common->whole, hosts));
}

static void finish(uint32_t hosts, const pid_t *pids, uint32_t dead, int code)
{
    int status;

    for (uint32_t h = 0; h < hosts; h++) {
        assert_int_equal(waitpid(pids[h], &status, 0), pids[h]);
        if (h == dead)
            assert_true(WIFSIGNALED(status));
        else
            assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, code);
    }
    munmap(common, sizeof(*common));
}

static void exit_on(uint32_t hosts, uint32_t who)
{
    pid_t pids[HOSTS];

    start(hosts, pids);
    wait_whole(hosts);
    atomic_store_explicit(&common->exits, who + 1, memory_order_relaxed);
    finish(hosts, pids, UINT32_MAX, 7);
}

static void test_exit(void **state)
{
    (void)state;
    exit_on(2, 0);
    exit_on(2, 1);
    exit_on(5, 3);
    exit_on(HOSTS, 35); /* two levels up, and down everywhere */
}

static void die_on(uint32_t hosts, uint32_t who)
{
    pid_t pids[HOSTS];

    start(hosts, pids);
    wait_whole(hosts);
    atomic_store_explicit(&common->dies, who + 1, memory_order_relaxed);
    finish(hosts, pids, who, 128 + SIGKILL);
}

static void test_lost(void **state)
{
    (void)state;
    die_on(4, 2);
    die_on(4, 0);     /* the root: its children decide for themselves */
    die_on(HOSTS, 1); /* in the middle */
}

static void stop_on(uint32_t hosts, uint32_t who)
{
    pid_t pids[HOSTS];

    setenv("GASNET_HOST_TIMEOUT", "1", 1);
    start(hosts, pids);
    unsetenv("GASNET_HOST_TIMEOUT");
    wait_whole(hosts);
    atomic_store_explicit(&common->stops, who + 1, memory_order_relaxed);
    for (uint32_t h = 0; h < hosts; h++)
        if (h != who) {
            int status;

            assert_int_equal(waitpid(pids[h], &status, 0), pids[h]);
            assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 255);
        }
    kill(pids[who], SIGKILL);
    assert_int_equal(waitpid(pids[who], NULL, 0), pids[who]);
    munmap(common, sizeof(*common));
}

static void test_silent(void **state)
{
    (void)state;
    stop_on(4, 2);
    stop_on(4, 0);
}

/* all are stopped for longer than a host may be silent, and go on: nobody is lost */
static void test_pause(void **state)
{
    pid_t pids[HOSTS];

    (void)state;
    setenv("GASNET_HOST_TIMEOUT", "0.5", 1);
    start(3, pids);
    unsetenv("GASNET_HOST_TIMEOUT");
    wait_whole(3);
    for (int i = 0; i < 3; i++)
        kill(pids[i], SIGSTOP);
    usleep(1200000);
    for (int i = 0; i < 3; i++)
        kill(pids[i], SIGCONT);
    usleep(700000);
    atomic_store_explicit(&common->exits, 2, memory_order_relaxed);
    finish(3, pids, UINT32_MAX, 7);
}

/* what somebody on the way has recorded, sent again from a socket that then is closed, moves no
 * address */
static void test_replay(void **state)
{
    struct sockaddr_in sa = { .sin_family = AF_INET }, parent, child = { .sin_family = AF_INET },
                       from;
    char recorded[64][512], datagram[512];
    int relay = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), other, count = 0;
    ssize_t len, lens[64];
    socklen_t space = sizeof(sa);
    unsigned port;
    pid_t pids[HOSTS];

    (void)state;
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    parent = sa;
    assert_int_equal(bind(relay, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(getsockname(relay, (struct sockaddr *)&sa, &space), 0);
    start_behind(2, pids, ntohs(sa.sin_port), &port);
    parent.sin_port = htons((uint16_t)port);
    for (int i = 0; i < 5000; i++) {
        struct pollfd p = { relay, POLLIN, 0 };

        if (i == 1000) {
            other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
            for (int k = 0; k < count; k++)
                sendto(other, recorded[k], (size_t)lens[k], 0, (struct sockaddr *)&parent,
                       sizeof(parent));
            close(other);
        } else if (i == 3500) {
            assert_int_equal(waitpid(pids[0], NULL, WNOHANG), 0);
            assert_true(count > 0 && reached(&common->whole, 2));
            atomic_store_explicit(&common->exits, 2, memory_order_relaxed);
        }
        space = sizeof(from);
        if (poll(&p, 1, 1) != 1
            || (len = recvfrom(relay, datagram, sizeof(datagram), 0, (struct sockaddr *)&from,
                               &space))
                   < 0)
            continue;
        if (from.sin_port != parent.sin_port) {
            child = from;
            if (count < 64) {
                memcpy(recorded[count], datagram, (size_t)len);
                lens[count++] = len;
            }
        }
        sendto(relay, datagram, (size_t)len, 0,
               (struct sockaddr *)(from.sin_port == parent.sin_port ? &child : &parent),
               sizeof(child));
    }
    close(relay);
    finish(2, pids, UINT32_MAX, 7);
}

/* noise and words hashed with another key change nothing */
static void test_unauthenticated(void **state)
{
    struct sockaddr_in sa = { .sin_family = AF_INET };
    char noise[512] = "1lqa";
    pid_t pids[HOSTS];
    unsigned port;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void)state;
    start(3, pids);
    wait_whole(3);
    assert_int_equal(sscanf(common->address[0], "%*s %u", &port), 1);
    sa.sin_port = htons((uint16_t)port);
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (size_t len = 0; len < sizeof(noise); len += 3)
        assert_int_equal(sendto(fd, noise, len, 0, (struct sockaddr *)&sa, sizeof(sa)), (int)len);
    close(fd);
    usleep(50000);
    assert_int_equal(waitpid(pids[0], NULL, WNOHANG), 0);
    atomic_store_explicit(&common->exits, 2, memory_order_relaxed);
    finish(3, pids, UINT32_MAX, 7);
}

static uint16_t checksum(const uint8_t *bytes, size_t len)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < len; i += 2)
        sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t) ~(sum + (sum >> 16));
}

/* "Port unreachable", about a datagram from one port to another, both of this host. */
static void forge_refusal(int raw, unsigned from, unsigned to)
{
    struct sockaddr_in local = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    uint8_t icmp[8 + 20 + 8 + 64] = { 3, 3 }, *ip = icmp + 8, *udp = ip + 20;
    uint16_t sum;

    memcpy(ip, (uint8_t[]){ 0x45, 0, 0, 92, 0, 0, 0, 0, 64, IPPROTO_UDP }, 10);
    memcpy(ip + 12, &local.sin_addr, 4);
    memcpy(ip + 16, &local.sin_addr, 4);
    memcpy(
        udp,
        (uint8_t[]){ (uint8_t)(from >> 8), (uint8_t)from, (uint8_t)(to >> 8), (uint8_t)to, 0, 72 },
        6);
    sum = htons(checksum(icmp, sizeof(icmp)));
    memcpy(icmp + 2, &sum, sizeof(sum));
    assert_int_equal(sendto(raw, icmp, sizeof(icmp), 0, (struct sockaddr *)&local, sizeof(local)),
                     sizeof(icmp));
}

/* Refusals of what was never sent lose no host, however many. */
static void test_forged_refusals(void **state)
{
    const int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
    pid_t pids[HOSTS];
    unsigned port[2];

    (void)state;
    if (raw < 0)
        skip(); /* not root */
    start(2, pids);
    wait_whole(2);
    for (unsigned h = 0; h < 2; h++)
        assert_int_equal(sscanf(common->address[h], "%*s %u", &port[h]), 1);
    for (int i = 0; i < 200; i++) {
        forge_refusal(raw, port[0], port[1]);
        forge_refusal(raw, port[1], port[0]);
        usleep(1000);
    }
    close(raw);
    atomic_store_explicit(&common->exits, 1, memory_order_relaxed);
    finish(2, pids, HOSTS, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_siphash),
        cmocka_unit_test(test_exit),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_unauthenticated),
        cmocka_unit_test(test_forged_refusals),
        cmocka_unit_test(test_replay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
