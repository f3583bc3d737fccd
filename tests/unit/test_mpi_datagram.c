/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mpi_datagram.c - the sockets by which ranks of the mpi conduit wake each other: two or more
 * processes, with shared memory for the MPI by which they exchange addresses. Wake-ups arrive and
 * are told from other datagrams; where the first ones are lost, of one pair of hosts too, or a rank
 * wants none, there are no sockets.
 */
#include "tests/unit/aq_unit.h"

#include <arpa/inet.h>
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/aq_rc.h"
#include "conduits/mpi/aq_mpi_datagram.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "core/aq_job.h"
#include "other/spawn/aq_host_address.h"

#define MAX_RANKS 70 /* hosts verify 32 others at the same time */

static int peer_fd;  /* to the other processes */
static int loses_in; /* the barrier before which this rank's datagrams are lost; 0: none */
static int barriers; /* so far */

/* --- an MPI in shared memory --- */

static struct shared {
    pthread_barrier_t barrier;
    char data[MAX_RANKS][128];
} * shared;

static int fake_allgather(const void *own, size_t len, void *all)
{
    assert(len <= sizeof(shared->data[0]));
    memcpy(shared->data[aq_job.rank], own, len);
    pthread_barrier_wait(&shared->barrier);
    for (unsigned r = 0; r < aq_job.size; r++)
        memcpy((char *)all + r * len, shared->data[r], len);
    pthread_barrier_wait(&shared->barrier);
    return 0;
}

static int fake_barrier(void)
{
    char bytes[64];

    pthread_barrier_wait(&shared->barrier);
    barriers++;
    while (loses_in == barriers
           && recv(aq_mpi_datagram_fd(), bytes, sizeof(bytes), MSG_DONTWAIT) >= 0)
        continue;
    return 0;
}

static const struct aq_spawn_mpi_lib fake_job = { .allgather = fake_allgather,
                                                  .barrier = fake_barrier };
static const struct aq_mpi_lib fake_lib = { .version = AQ_MPI_LIB_VERSION, .job = &fake_job };

/* --- the other processes --- */

enum { TAKES_PART, STAYS_OUT };

static uint32_t host_of[MAX_RANKS];

/* A rank in a process of its own: the first sends a wake-up for each byte that it is sent. */
static void other_rank(unsigned rank, int how, bool expected)
{
    bool works;
    char byte;

    aq_job.rank = rank;
    if (aq_mpi_datagram_open(how == TAKES_PART, &works) != AQ_OK || works != expected
        || (aq_mpi_datagram_fd() >= 0) != works)
        _exit(1);
    while (rank == 1 && read(peer_fd, &byte, 1) == 1)
        if (works)
            aq_mpi_datagram_send(0);
    aq_mpi_datagram_close();
    _exit(aq_mpi_datagram_fd() >= 0);
}

static pid_t others[MAX_RANKS];

static void shares(unsigned ranks)
{
    pthread_barrierattr_t attr;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attr, ranks);
}

/* Opens this rank's socket and the others', on one host or so many of a host each. Wake-ups work on
 * all ranks, or on none. Rank `loser` loses the datagrams before barrier `loses`. */
static void opens(unsigned ranks, unsigned of_a_host, int how, unsigned loser, int loses)
{
    const bool expected = how == TAKES_PART && loses == 0;
    bool works = !expected;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    shares(ranks);
    aq_mpi.lib = &fake_lib;
    aq_job.rank = 0;
    aq_job.size = ranks;
    aq_job.host_count = of_a_host == 0 ? 1 : ranks / of_a_host;
    aq_job.host_of = host_of;
    barriers = 0;
    for (unsigned r = 0; r < ranks; r++)
        host_of[r] = of_a_host == 0 ? 0 : r / of_a_host;
    for (unsigned r = 1; r < ranks; r++) {
        others[r] = fork();
        if (others[r] == 0) {
            loses_in = r == loser ? loses : 0;
            close(pair[0]);
            peer_fd = pair[1];
            other_rank(r, how, expected);
        }
    }
    close(pair[1]);
    peer_fd = pair[0];
    assert_int_equal(aq_mpi_datagram_open(true, &works), AQ_OK);
    assert_int_equal(works, expected);
}

static void closes(void)
{
    int status;

    close(peer_fd);
    for (unsigned r = 1; r < aq_job.size; r++) {
        assert_int_equal(waitpid(others[r], &status, 0), others[r]);
        assert_int_equal(status, 0);
    }
    aq_mpi_datagram_close();
    assert_int_equal(aq_mpi_datagram_fd(), -1);
    munmap(shared, sizeof(*shared));
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
    opens(2, 0, TAKES_PART, 0, 0);
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
    opens(2, 0, TAKES_PART, 0, 0);
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

/* An address of this machine that other hosts could reach: without one, tests of several hosts have
 * nothing to try. */
static void needs_an_address(void)
{
    struct in6_addr address;
    bool preferred;

    if (aq_host_addresses(&address, 1, &preferred) == 0)
        skip();
}

/* The same between hosts. */
static void wakes_between_hosts(unsigned ranks, unsigned of_a_host)
{
    bool genuine;

    needs_an_address();
    opens(ranks, of_a_host, TAKES_PART, 0, 0);
    aq_mpi_datagram_take(&genuine);
    assert_false(genuine);
    assert_int_equal(write(peer_fd, "", 1), 1);
    assert_true(takes(&genuine));
    assert_true(genuine);
    closes();
}

static void test_hosts(void **state)
{
    (void)state;
    wakes_between_hosts(3, 1);
    wakes_between_hosts(6, 2);
}

static void test_many_hosts(void **state)
{
    (void)state;
    wakes_between_hosts(MAX_RANKS, 1);
}

static void stays_closed(unsigned ranks, unsigned of_a_host, int how, unsigned loser, int loses)
{
    opens(ranks, of_a_host, how, loser, loses);
    assert_int_equal(aq_mpi_datagram_fd(), -1);
    closes();
}

/* The first datagrams do not arrive, as behind a packet filter. */
static void test_lost(void **state)
{
    (void)state;
    stays_closed(2, 0, TAKES_PART, 1, 1);
}

/* Each rank has an address that somebody reaches, but a host receives nothing from some others. */
static void test_lost_between_hosts(void **state)
{
    (void)state;
    needs_an_address();
    stays_closed(3, 1, TAKES_PART, 1, 2);
    stays_closed(6, 2, TAKES_PART, 2, 2);
    stays_closed(MAX_RANKS, 1, TAKES_PART, 1, 2); /* in the first of three rounds */
}

/* One of the ranks wants none. */
static void test_unwanted(void **state)
{
    (void)state;
    stays_closed(2, 0, STAYS_OUT, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wakeups),  cmocka_unit_test(test_forged),
        cmocka_unit_test(test_hosts),    cmocka_unit_test(test_many_hosts),
        cmocka_unit_test(test_lost),     cmocka_unit_test(test_lost_between_hosts),
        cmocka_unit_test(test_unwanted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
