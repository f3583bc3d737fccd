/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mpi_datagram.c - the sockets by which ranks of the mpi conduit wake each other: two
 * processes, with pipes for the MPI by which they exchange addresses. Wake-ups arrive and are told
 * from other datagrams; where the first ones are lost, or a rank wants none, there are no sockets.
 */
#include "tests/unit/aq_unit.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/aq_rc.h"
#include "conduits/mpi/aq_mpi_datagram.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "core/aq_job.h"

static int peer_fd;      /* to the other process */
static bool loses_first; /* the datagrams that verify the address */

/* --- an MPI of two ranks --- */

static int fake_allgather(const void *own, size_t len, void *all)
{
    char *at = all;

    memcpy(at + aq_job.rank * len, own, len);
    if (write(peer_fd, own, len) != (ssize_t)len)
        return 1;
    return recv(peer_fd, at + (1 - aq_job.rank) * len, len, MSG_WAITALL) != (ssize_t)len;
}

static int fake_barrier(void)
{
    char own = 0, all[2], bytes[64];
    const int error = fake_allgather(&own, 1, all);

    while (loses_first && recv(aq_mpi_datagram_fd(), bytes, sizeof(bytes), MSG_DONTWAIT) >= 0)
        continue;
    return error;
}

static const struct aq_spawn_mpi_lib fake_job = { .allgather = fake_allgather,
                                                  .barrier = fake_barrier };
static const struct aq_mpi_lib fake_lib = { .version = AQ_MPI_LIB_VERSION, .job = &fake_job };

/* --- the other process --- */

enum { TAKES_PART, STAYS_OUT };

/* Rank 1, in a process of its own: sends a wake-up for each byte that it is sent. */
static void other_rank(int how)
{
    bool works;
    char byte;

    aq_job.rank = 1;
    loses_first = false;
    if (aq_mpi_datagram_open(how == TAKES_PART, &works) != AQ_OK)
        _exit(1);
    while (read(peer_fd, &byte, 1) == 1)
        if (works)
            aq_mpi_datagram_send(0);
    aq_mpi_datagram_close();
    _exit(aq_mpi_datagram_fd() >= 0);
}

static pid_t other;

/* Opens this rank's socket and the other's. Returns whether wake-ups work. */
static bool opens(int how)
{
    static const uint32_t one_host[2] = { 0, 0 };
    bool works = true;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    aq_mpi.lib = &fake_lib;
    aq_job.rank = 0;
    aq_job.size = 2;
    aq_job.host_count = 1;
    aq_job.host_of = one_host;
    other = fork();
    if (other == 0) {
        close(pair[0]);
        peer_fd = pair[1];
        other_rank(how);
    }
    close(pair[1]);
    peer_fd = pair[0];
    assert_int_equal(aq_mpi_datagram_open(true, &works), AQ_OK);
    return works;
}

static void closes(void)
{
    int status;

    close(peer_fd);
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(status, 0);
    aq_mpi_datagram_close();
    assert_int_equal(aq_mpi_datagram_fd(), -1);
}

/* Takes what comes within a second. */
static bool takes(bool *genuine_out)
{
    struct pollfd pfd = { aq_mpi_datagram_fd(), POLLIN, 0 };

    assert_int_equal(poll(&pfd, 1, 1000), 1);
    return aq_mpi_datagram_take(genuine_out);
}

static bool has_any(void)
{
    struct pollfd pfd = { aq_mpi_datagram_fd(), POLLIN, 0 };

    return poll(&pfd, 1, 0) > 0;
}

/* --- the tests --- */

static void test_wakeups(void **state)
{
    bool genuine;

    (void)state;
    loses_first = false;
    assert_true(opens(TAKES_PART));
    aq_mpi_datagram_take(&genuine); /* a copy of what has verified the address is none */
    assert_false(genuine);
    for (unsigned i = 0; i < 3; i++) {
        assert_false(aq_mpi_datagram_take(&genuine));
        assert_int_equal(write(peer_fd, "", 1), 1);
        assert_true(takes(&genuine));
        assert_true(genuine);
    }
    closes();
}

/* Datagrams of any length, as anybody may send them, are taken, and are no wake-ups. */
static void test_forged(void **state)
{
    char bytes[2000] = { 1 };
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);
    const int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    bool genuine;

    (void)state;
    loses_first = false;
    assert_true(opens(TAKES_PART));
    aq_mpi_datagram_take(&genuine);
    assert_int_equal(getsockname(aq_mpi_datagram_fd(), (struct sockaddr *)&address, &len), 0);
    for (size_t nbytes = 0; nbytes < 20; nbytes++) {
        assert_true(sendto(fd, bytes, nbytes, 0, (struct sockaddr *)&address, len) >= 0);
        assert_true(takes(&genuine));
        assert_false(genuine);
    }
    (void)!sendto(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&address, len);
    assert_true(takes(&genuine));
    assert_false(genuine);
    for (unsigned i = 0; i < 1000; i++) /* more than the socket's buffer has space for */
        (void)!sendto(fd, bytes, 8, 0, (struct sockaddr *)&address, len);
    while (has_any())
        assert_true(aq_mpi_datagram_take(&genuine) && !genuine);
    assert_int_equal(write(peer_fd, "", 1), 1);
    assert_true(takes(&genuine));
    assert_true(genuine);
    close(fd);
    closes();
}

static void stays_closed(bool loses, int how)
{
    loses_first = loses;
    assert_false(opens(how));
    assert_int_equal(aq_mpi_datagram_fd(), -1);
    closes();
}

/* The first datagrams do not arrive, as behind a packet filter. */
static void test_lost(void **state)
{
    (void)state;
    stays_closed(true, TAKES_PART);
}

/* One of the ranks wants none. */
static void test_unwanted(void **state)
{
    (void)state;
    stays_closed(false, STAYS_OUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wakeups),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_unwanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
