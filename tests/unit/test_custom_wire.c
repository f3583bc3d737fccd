/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_custom_wire.c - the encrypted line to a worker of SPAWNFN=C: a peer without the secret is
 * refused, and an attacker who changes a byte or cuts the line cannot change what arrives.
 */
#include "tests/unit/aq_unit.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define AQ_HAVE_SODIUM 1 /* this test is built with that conduit only */
#include "other/launcher/aq_custom_wire.c"

#include <stdlib.h>

#define BYTES 100000u

static uint8_t pattern[BYTES], first[AQ_CUSTOM_CPUS];
static int result_fd;

/* both sides' views after a full handshake; the keys differ in wrong bits */
static bool handshake(struct aq_custom_handshake *w, struct aq_custom_handshake *m, unsigned wrong)
{
    uint8_t hello[AQ_CUSTOM_HELLO], reply[AQ_CUSTOM_REPLY], claim[AQ_CUSTOM_CLAIM];
    struct aq_worker_info info = { .host = "h", .machine = "m", .rank = "3" }, got;

    assert_true(aq_custom_random(w->key, sizeof(w->key)));
    memcpy(m->key, w->key, sizeof(m->key));
    m->key[31] ^= (uint8_t)wrong;
    aq_custom_hello(w, hello);
    assert_true(aq_custom_reply(m, hello, reply));
    if (!aq_custom_check_reply(w, reply))
        return false;
    aq_custom_claim(w, &info, claim);
    if (!aq_custom_check_claim(m, claim, &got))
        return false;
    assert_memory_equal(&info, &got, sizeof(info));
    claim[5] ^= 1; /* what the worker says of itself cannot be changed either */
    assert_false(aq_custom_check_claim(m, claim, &got));
    return true;
}

static void test_handshake(void **state)
{
    uint8_t hello[AQ_CUSTOM_HELLO] = "GET / HTTP/1.0", reply[AQ_CUSTOM_REPLY], keys[4][32];
    struct aq_custom_handshake w, m;

    (void)state;
    assert_true(handshake(&w, &m, 0));
    aq_custom_keys(&w, keys[0], keys[1]);
    aq_custom_keys(&m, keys[2], keys[3]);
    assert_memory_equal(keys[0], keys[2], 32);
    assert_memory_equal(keys[1], keys[3], 32);
    assert_memory_not_equal(keys[0], keys[1], 32);
    assert_false(handshake(&w, &m, 1));
    assert_false(aq_custom_reply(&m, hello, reply));
}

static bool begin(struct aq_custom_line *line, const uint8_t *data, size_t len)
{
    if (len != sizeof(first) || memcmp(data, first, len) != 0)
        return false;
    line->plain_in = open("/dev/null", O_RDONLY);
    line->plain_out = dup(result_fd);
    return true;
}

/* one side of the line in a process of its own */
static pid_t side(bool master, int sock, const struct aq_custom_handshake *s)
{
    struct aq_custom_line line = { .plain_in = -1, .plain_out = -1, .sock = sock };
    int fds[2];
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    alarm(20);
    signal(SIGPIPE, SIG_IGN);
    aq_custom_keys(s, master ? line.tx_key : line.rx_key, master ? line.rx_key : line.tx_key);
    if (!master)
        _exit(aq_custom_relay(&line, NULL, 0, begin) ? 0 : 1);
    if (pipe(fds) != 0)
        _exit(2);
    if (fork() == 0) {
        close(fds[0]);
        for (size_t at = 0; at < BYTES;) {
            ssize_t n = write(fds[1], pattern + at, BYTES - at);

            if (n <= 0)
                break;
            at += (size_t)n;
        }
        _exit(0);
    }
    close(fds[1]);
    line.plain_in = fds[0];
    line.plain_out = open("/dev/null", O_WRONLY);
    _exit(aq_custom_relay(&line, first, sizeof(first), NULL) ? 0 : 1);
}

/* carry bytes from one to the other; the one at `flip` is changed, the line is cut before `cut` */
static void in_between(int from, int to, size_t flip, size_t cut)
{
    uint8_t data[4096];
    size_t at = 0;
    ssize_t n;

    while (at < cut && (n = read(from, data, sizeof(data))) > 0) {
        if ((size_t)n > cut - at)
            n = (ssize_t)(cut - at);
        if (flip >= at && flip < at + (size_t)n)
            data[flip - at] ^= 0x20;
        if (send(to, data, (size_t)n, MSG_NOSIGNAL) != n)
            break;
        at += (size_t)n;
    }
    shutdown(to, SHUT_WR);
}

/* how much arrived; the worker's verdict in *fine */
static size_t through(size_t flip, size_t cut, bool *fine)
{
    int a[2], b[2], status = -1;
    struct aq_custom_handshake w, m;
    uint8_t got[BYTES + 1];
    pid_t pids[2];
    ssize_t n;

    assert_true(handshake(&w, &m, 0));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b), 0);
    assert_int_equal(ftruncate(result_fd, 0), 0);
    lseek(result_fd, 0, SEEK_SET);
    pids[0] = side(true, a[0], &m);
    pids[1] = side(false, b[0], &w);
    close(a[0]);
    close(b[0]);
    in_between(a[1], b[1], flip, cut);
    shutdown(a[1], SHUT_RDWR);
    waitpid(pids[1], &status, 0);
    close(a[1]);
    close(b[1]);
    waitpid(pids[0], NULL, 0);
    *fine = status == 0;
    n = pread(result_fd, got, sizeof(got), 0);
    assert_in_range(n, 0, BYTES);
    assert_memory_equal(got, pattern, (size_t)n); /* whatever happened: nothing but what was sent */
    return (size_t)n;
}

static void test_line(void **state)
{
    /* in the header, a length, the first message, later ones */
    static const size_t places[] = { 0, 23, 24, 27, 28, 60, 180, 200, 5000, 40000, 90000 };
    bool fine;

    (void)state;
    assert_int_equal(through(SIZE_MAX, SIZE_MAX, &fine), BYTES);
    assert_true(fine);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        assert_true(through(places[i], SIZE_MAX, &fine) < BYTES);
        assert_false(fine);
    }
    for (size_t i = 1; i < sizeof(places) / sizeof(places[0]); i++)
        assert_true(through(SIZE_MAX, places[i], &fine) < BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handshake),
        cmocka_unit_test(test_line),
    };

    for (size_t i = 0; i < BYTES; i++)
        pattern[i] = (uint8_t)(i * 7 + (i >> 8));
    memset(first, 0x55, sizeof(first));
    result_fd = memfd_create("result", MFD_CLOEXEC);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
