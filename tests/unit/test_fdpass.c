/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fdpass.c - descriptors passed over a socket: they arrive, close-on-exec; a peer without the
 * key gets nothing and delays no other; failures and timeouts are reported.
 */
#include "tests/unit/aq_unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "other/spawn/aq_fdpass.h"

static const uint8_t key[32] = "the key that both sides know: 32";
static const uint8_t other_key[32] = "some other key, of another job..";
static char name[AQ_SOCKET_NAME];

static void make_name(void)
{
    static int count;

    snprintf(name, sizeof(name), "aq-test-%d-%d", (int)getpid(), ++count);
}

/* A child takes count descriptors with a key. Its status is the errno it got. If all is well it is
 * 200, which no errno is. */
static pid_t start_taker(const uint8_t *with, int count)
{
    int fds[AQ_FDPASS_MAX], rc;
    pid_t child = fork();

    if (child != 0)
        return child;
    alarm(20);
    rc = aq_fdpass_take(name, with, fds, count, 5000);
    if (rc != 0)
        _exit(-rc);
    for (int i = 0; i < count; i++) {
        char byte = 0;

        if (pread(fds[i], &byte, 1, 0) != 1 || byte != 'a' + i)
            _exit(201);
        if ((fcntl(fds[i], F_GETFD) & FD_CLOEXEC) == 0)
            _exit(202);
    }
    _exit(200);
}

static int taker_result(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void make_files(int *fds, int count)
{
    for (int i = 0; i < count; i++) {
        char byte = (char)('a' + i);

        fds[i] = memfd_create("aq-test", MFD_CLOEXEC);
        assert_true(fds[i] >= 0);
        assert_int_equal(write(fds[i], &byte, 1), 1);
    }
}

static void close_files(const int *fds, int count)
{
    for (int i = 0; i < count; i++)
        close(fds[i]);
}

static void test_several_takers(void **state)
{
    int fds[3], sock;
    pid_t taker[4];

    (void)state;
    make_name();
    make_files(fds, 3);
    sock = aq_fdpass_listen(name, 4);
    assert_true(sock >= 0);
    for (int i = 0; i < 4; i++)
        taker[i] = start_taker(key, 3);
    assert_int_equal(aq_fdpass_give(sock, 4, key, fds, 3, 0, 10000), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(taker_result(taker[i]), 200);
    close(sock);
    close_files(fds, 3);
}

/* What one name shows tells nothing of another, nor of the key. */
static void test_names(void **state)
{
    static const char *const uses[] = { "jobarea", "host descriptor", "listener of rank" };
    char names[3 * 4][AQ_SOCKET_NAME], again[AQ_SOCKET_NAME], text[3] = "";
    uint8_t zeros[32] = { 0 };
    unsigned count = 0, shown = 0;

    (void)state;
    for (unsigned use = 0; use < 3; use++)
        for (uint32_t number = 0; number < 4; number++)
            aq_socket_name(names[count++], key, uses[use], number);
    aq_socket_name(again, key, uses[0], 0);
    assert_string_equal(again, names[0]);
    aq_socket_name(again, zeros, uses[0], 0);
    assert_string_not_equal(again, names[0]);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(strlen(names[i]), 3 + 32);
        for (unsigned k = 0; k < i; k++) {
            assert_memory_not_equal(names[i] + 3, names[k] + 3, 16);
            assert_memory_not_equal(names[i] + 3 + 16, names[k] + 3 + 16, 16);
        }
    }
    for (unsigned i = 0; i < 32; i++) {
        snprintf(text, sizeof(text), "%02x", key[i]);
        shown += strncmp(names[0] + 3 + i % 16 * 2, text, 2) == 0;
    }
    assert_true(shown < 8);
}

static void test_unauthenticated(void **state)
{
    int fds[1], sock;
    pid_t unauthenticated, friend;

    (void)state;
    make_name();
    make_files(fds, 1);
    sock = aq_fdpass_listen(name, 2);
    assert_true(sock >= 0);
    unauthenticated = start_taker(other_key, 1);
    usleep(50000);
    friend = start_taker(key, 1);
    assert_int_equal(aq_fdpass_give(sock, 1, key, fds, 1, 0, 10000), 0);
    assert_int_equal(taker_result(friend), 200);
    close(sock);
    assert_true(taker_result(unauthenticated) < 200); /* an error, and no descriptor */
    close_files(fds, 1);
}

static void test_error_is_reported(void **state)
{
    int sock;
    pid_t taker;

    (void)state;
    make_name();
    sock = aq_fdpass_listen(name, 1);
    assert_true(sock >= 0);
    taker = start_taker(key, 1);
    assert_int_equal(aq_fdpass_give(sock, 1, key, NULL, 0, ENOMEM, 10000), 0);
    assert_int_equal(taker_result(taker), ENOMEM);
    close(sock);
}

static void test_nobody_comes(void **state)
{
    int fds[1], sock;

    (void)state;
    make_name();
    make_files(fds, 1);
    sock = aq_fdpass_listen(name, 1);
    assert_true(sock >= 0);
    assert_int_equal(aq_fdpass_give(sock, 1, key, fds, 1, 0, 50), -ETIMEDOUT);
    close(sock);
    close_files(fds, 1);
}

static void test_nobody_listens(void **state)
{
    int fds[1];

    (void)state;
    make_name();
    assert_int_equal(aq_fdpass_take(name, key, fds, 1, 1000), -ECONNREFUSED);
}

static void test_name_is_taken(void **state)
{
    int sock;

    (void)state;
    make_name();
    sock = aq_fdpass_listen(name, 1);
    assert_true(sock >= 0);
    assert_int_equal(aq_fdpass_listen(name, 1), -EADDRINUSE);
    close(sock);
    sock = aq_fdpass_listen(name, 1); /* an abstract name goes with its socket */
    assert_true(sock >= 0);
    close(sock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_several_takers),  cmocka_unit_test(test_names),
        cmocka_unit_test(test_unauthenticated), cmocka_unit_test(test_error_is_reported),
        cmocka_unit_test(test_nobody_comes),    cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_name_is_taken),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
