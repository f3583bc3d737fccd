/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bench_wire.c - the limits over sockets between two processes on loopback: every kind comes
 * to its end without a wait that was given up, streams arrive where they should, and nobody hangs
 * when the other side is silent.
 * Owns      a child process as the other side
 * Threads   one in each
 * Uses      cmocka, bench_wire.h
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_stat.h"
#include "bench_wire.h"

#define LARGEST    ((size_t)1 << 20)
#define PATIENT_NS 5e9 /* the other side may be off its processor for long */
#define BRIEF_NS   2e8 /* nobody will answer */

static struct aq_wire wire;
static int control; /* to the child */

/* The responder's part of one test. */
typedef void (*part_fn)(void);

static void part_pong(void)
{
    aq_wire_pong(&wire, 64, 500);
    aq_wire_pong(&wire, 65536, 20);
    aq_wire_put_peer(&wire, 4096, 100);
    aq_wire_get_peer(&wire, 4096, 100);
    aq_wire_exchange(&wire, 64, 100);
}

static void part_drain(void)
{
    aq_wire_drain(&wire, 64, 10000);
    aq_wire_drain(&wire, 32768, 500);
}

static void part_stream(void)
{
    for (wire.way = 0; wire.way < wire.count; wire.way++) {
        aq_wire_receive(&wire, LARGEST, 8, false, false);
        aq_wire_receive(&wire, 100000, 8, true, false);
        aq_wire_send(&wire, 300000, 8, true, true);
        aq_wire_send(&wire, LARGEST, 8, false, false);
    }
    if (memcmp(wire.target + 1000, "\1\2\3", 3) == 0 && wire.target[LARGEST - 1] == 7)
        aq_wire_ready(&wire);
}

static const part_fn parts[] = { part_pong, part_drain, part_stream };

static void serve(int from)
{
    unsigned char number;

    while (read(from, &number, 1) == 1) {
        unsigned char spoilt;

        wire.spoilt = 0;
        aq_wire_ready(&wire);
        parts[number]();
        spoilt = wire.spoilt != 0;
        if (write(from, &spoilt, 1) != 1)
            return;
    }
}

static void begin(unsigned char number)
{
    wire.spoilt = 0;
    aq_wire_forget(&wire);
    assert_int_equal(write(control, &number, 1), 1);
    while (!aq_wire_is_ready(&wire))
        continue;
}

static void end(void)
{
    unsigned char spoilt;

    assert_int_equal(read(control, &spoilt, 1), 1);
    assert_int_equal(spoilt, 0);
    assert_int_equal(wire.spoilt, 0);
}

static void test_messages(void **state)
{
    (void)state;
    begin(0);
    aq_wire_ping(&wire, 64, 500);
    aq_wire_ping(&wire, 65536, 20);
    aq_wire_put(&wire, 4096, 100);
    aq_wire_get(&wire, 4096, 100);
    aq_wire_exchange(&wire, 64, 100);
    end();
}

static void test_flood(void **state)
{
    (void)state;
    begin(1);
    aq_wire_flood(&wire, 64, 10000);
    aq_wire_flood(&wire, 32768, 500);
    end();
}

static void test_streams(void **state)
{
    char name[64];

    (void)state;
    memcpy(wire.source + 1000, "\1\2\3", 3);
    wire.source[LARGEST - 1] = 7;
    begin(2);
    assert_true(wire.count >= 2);
    for (wire.way = 0; wire.way < wire.count; wire.way++) {
        aq_wire_send(&wire, LARGEST, 8, false, false);
        aq_wire_send(&wire, 100000, 8, true, false);
        aq_wire_receive(&wire, 300000, 8, true, true);
        aq_wire_receive(&wire, LARGEST, 8, false, false);
    }
    end();
    assert_true(aq_wire_is_ready(&wire)); /* the bytes were the right ones */
    wire.way = 0;
    aq_wire_way_name(&wire, name, sizeof(name));
    assert_string_equal(name, "datagrams 65507, 256 KiB open");
}

/* The child does not answer: each call gives up once. */
static void test_silence(void **state)
{
    double start = aq_bench_now();

    (void)state;
    wire.spoilt = 0;
    aq_wire_timeout_ns = BRIEF_NS;
    aq_wire_ping(&wire, 64, 1000);
    aq_wire_exchange(&wire, 64, 1000);
    aq_wire_send(&wire, LARGEST, 100, true, true);
    aq_wire_receive(&wire, LARGEST, 100, false, false);
    assert_int_equal(wire.spoilt, 4);
    assert_true(aq_bench_now() - start < 10 * 4 * BRIEF_NS);
    aq_wire_timeout_ns = PATIENT_NS;
    test_messages(state); /* and afterwards all is well again */
}

static void connect_to(int fd)
{
    struct aq_wire_address self, remote_addr;

    if (aq_wire_open(&wire, htonl(INADDR_LOOPBACK), LARGEST, &self) != 0
        || write(fd, &self, sizeof(self)) != sizeof(self)
        || read(fd, &remote_addr, sizeof(remote_addr)) != sizeof(remote_addr)
        || aq_wire_connect(&wire, &remote_addr) != 0)
        _exit(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_silence),
    };
    int fds[2], failed;
    pid_t pid;

    aq_wire_timeout_ns = PATIENT_NS;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0 || (pid = fork()) < 0)
        return 2;
    control = fds[pid == 0];
    close(fds[pid != 0]);
    connect_to(control);
    if (pid == 0) {
        serve(control);
        _exit(0);
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    close(control);
    waitpid(pid, NULL, 0);
    aq_wire_close(&wire);
    return failed != 0;
}
