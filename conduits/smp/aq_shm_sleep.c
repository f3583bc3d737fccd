/*
 * aq_shm_sleep.c - sleeping in the kernel until a local rank or the network brings work.
 *
 * A rank that wants to sleep says so in its control line; whoever gives it something looks at
 * that line afterwards and wakes it. Between "give" and "look" a full fence would be needed, in
 * every message; instead the sleeper pays for both sides with membarrier(), which makes every
 * running thread of the job pass a fence before the sleeper looks one last time.
 *
 * With shared memory alone sleepers wait on the wake-up count, a futex. A futex and sockets cannot
 * be waited for together. So where a conduit has sockets, one thread of the sleepers, the listener,
 * sleeps in poll() on them and on a datagram socket of its own, to which a waker sends a byte;
 * the others wait on the wake-up count, which the listener raises when it wakes.
 *
 * Owns      the listener's socket, under an abstract name made of the host's secret key: no path,
 *           nothing to leave behind; a process that guesses the name can wake this rank, and no
 *           more
 * Threads   any; several threads of a rank may sleep, on one wake-up count
 * Promise   a sleeper that found the wake-up count unchanged wakes when it is raised: a waker
 *           raises the wake-up count before it looks for a listener, a listener announces itself
 *           before it looks at the count; the byte stays in the socket until a listener has taken
 *           it
 * Uses      futex, membarrier, Unix sockets. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "core/aq_job.h"
#include "base/aq_lock.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "conduits/smp/aq_shm.h"
#include "other/spawn/aq_socket_name.h"
#include "other/spawn/aq_spawn.h"

/* Where there is no membarrier (an old or locked-down kernel), a wake-up can be missed:
 * nobody then sleeps longer than this. */
#define AQ_SHORT_SLEEP_NS 200000u

#define AQ_SLEEP_FDS \
    8 /* descriptors that sleepers of this process wait for, the listener's own first */

static bool aq_shm_has_membarrier AQ_JOB_STATE;

static struct {
    struct pollfd fds[AQ_SLEEP_FDS];
    nfds_t count;        /* 0: sleepers wait on the wake-up count alone */
    int sender;          /* wakes other ranks' listeners; -1 until a thread listens */
    atomic_flag listens; /* some thread is the listener */
} aq_sleep AQ_JOB_STATE = { .sender = -1, .listens = ATOMIC_FLAG_INIT };

void aq_shm_sleep_init(void)
{
    aq_shm_has_membarrier =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/* --- the listener's socket --- */

static socklen_t aq_sleep_address(gex_Rank_t jobrank, struct sockaddr_un *address)
{
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX; /* a name that begins with a zero byte is abstract */
    aq_socket_name(address->sun_path + 1, aq_spawn_jobarea()->key, "listener of rank", jobrank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address->sun_path + 1));
}

static int aq_sleep_open(void)
{
    struct sockaddr_un address;
    const socklen_t len = aq_sleep_address(aq_job.rank, &address);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    aq_sleep.sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || aq_sleep.sender < 0 || bind(fd, (struct sockaddr *)&address, len) != 0)
        return aq_fail(AQ_ERR_SYS, "rank %u has no socket to be woken by: %s%s", aq_job.rank,
                       strerror(errno), errno == EMFILE ? "; raise ulimit -n" : "");
    aq_sleep.fds[0] = (struct pollfd){ fd, POLLIN, 0 };
    aq_sleep.count = 1;
    return AQ_OK;
}

int aq_shm_sleep_add_fd(int fd)
{
    if (aq_sleep.count == 0 && aq_sleep_open() != AQ_OK)
        return AQ_ERR_SYS;
    if (aq_sleep.count == AQ_SLEEP_FDS)
        return aq_fail(AQ_ERR_ARG, "more than %d descriptors to sleep on", AQ_SLEEP_FDS - 1);
    aq_sleep.fds[aq_sleep.count++] = (struct pollfd){ fd, POLLIN, 0 };
    return AQ_OK;
}

void aq_shm_sleep_fini(void)
{
    if (aq_sleep.count > 0)
        close(aq_sleep.fds[0].fd); /* the others are their owners' */
    if (aq_sleep.sender >= 0)
        close(aq_sleep.sender);
}

/* --- sleeping --- */

uint32_t aq_shm_sleep_prepare(bool waits)
{
    struct aq_shm_control *self = aq_shm.self;
    uint32_t wakeup = atomic_load_explicit(&self->wakeup, memory_order_relaxed);

    /* seq_cst: the announcement comes before the caller's last look at everything */
    if (waits) {
        atomic_fetch_add_explicit(&self->waiting, 1, memory_order_seq_cst);
        atomic_fetch_add_explicit(&aq_shm_common()->waiting, 1, memory_order_seq_cst);
    }
    atomic_fetch_add_explicit(&self->sleeping, 1, memory_order_seq_cst);
    atomic_fetch_add_explicit(&aq_shm_common()->sleepers, 1, memory_order_seq_cst);
    if (aq_shm_has_membarrier)
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    return wakeup;
}

static struct timespec aq_sleep_limit(uint64_t max_ns)
{
    return (struct timespec){ .tv_sec = (time_t)(max_ns / 1000000000u),
                              .tv_nsec = (long)(max_ns % 1000000000u) };
}

static void aq_sleep_on_futex(uint32_t wakeup, uint64_t max_ns)
{
    const struct timespec limit = aq_sleep_limit(max_ns);

    /* returns at once if the wake-up count has changed since; a spurious return is harmless */
    syscall(SYS_futex, &aq_shm.self->wakeup, FUTEX_WAIT, wakeup, &limit, NULL, 0);
}

static void aq_sleep_wake_futex(struct aq_shm_control *control)
{
    /* seq_cst: the new wake-up count comes before the look for a listener, as the listener's
     * announcement comes before its look at the wake-up count; and what was given is visible to
     * whoever sees the new count */
    atomic_fetch_add_explicit(&control->wakeup, 1, memory_order_seq_cst);
    syscall(SYS_futex, &control->wakeup, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The listener: what wakes it, wakes the other sleepers of this process as well, one of whom may
 * have to listen next. */
static void aq_sleep_listen(uint32_t wakeup, uint64_t max_ns)
{
    struct aq_shm_control *self = aq_shm.self;
    struct pollfd fds[AQ_SLEEP_FDS];
    const struct timespec limit = aq_sleep_limit(max_ns);
    char bytes[16];

    memcpy(fds, aq_sleep.fds, sizeof(fds));
    /* seq_cst: see aq_sleep_wake_futex() */
    atomic_store_explicit(&self->listening, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&self->wakeup, memory_order_seq_cst) == wakeup
        && ppoll(fds, aq_sleep.count, &limit, NULL) > 0 && fds[0].revents != 0)
        while (recv(fds[0].fd, bytes, sizeof(bytes), MSG_DONTWAIT) >= 0)
            ; /* all that have come: each only says "look" */
    /* relaxed: a byte too many wakes the next listener for nothing */
    atomic_store_explicit(&self->listening, 0, memory_order_relaxed);
    /* release: the next listener's announcement comes after it */
    atomic_flag_clear_explicit(&aq_sleep.listens, memory_order_release);
    /* relaxed: one sleeper is this thread; who comes later finds the flag clear */
    if (AQ_THREADED && atomic_load_explicit(&self->sleeping, memory_order_relaxed) > 1)
        aq_sleep_wake_futex(self);
}

void aq_shm_sleep(uint32_t wakeup, uint64_t max_ns)
{
    if (!aq_shm_has_membarrier && max_ns > AQ_SHORT_SLEEP_NS)
        max_ns = AQ_SHORT_SLEEP_NS;
    /* acquire: pairs with the release in aq_sleep_listen() */
    if (aq_sleep.count == 0
        || atomic_flag_test_and_set_explicit(&aq_sleep.listens, memory_order_acquire))
        aq_sleep_on_futex(wakeup, max_ns);
    else
        aq_sleep_listen(wakeup, max_ns);
}

void aq_shm_sleep_cancel(bool waits)
{
    /* relaxed: a waker that sees the old numbers wakes for nothing */
    if (waits) {
        atomic_fetch_sub_explicit(&aq_shm.self->waiting, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&aq_shm_common()->waiting, 1, memory_order_relaxed);
    }
    atomic_fetch_sub_explicit(&aq_shm.self->sleeping, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&aq_shm_common()->sleepers, 1, memory_order_relaxed);
}

/* --- waking --- */

__attribute__((noinline, cold)) int aq_shm_wake(struct aq_shm_control *control)
{
    struct sockaddr_un address;
    socklen_t len;

    aq_sleep_wake_futex(control);
    /* seq_cst: see aq_sleep_wake_futex() */
    if (aq_sleep.sender >= 0
        && atomic_load_explicit(&control->listening, memory_order_seq_cst) != 0) {
        len = aq_sleep_address(aq_shm.jobrank_of[control - aq_shm_control(0)], &address);
        /* fails if its queue is full, and then it has a byte to wake by; or if the rank has
         * ended */
        (void)!sendto(aq_sleep.sender, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL,
                      (struct sockaddr *)&address, len);
    }
    return AQ_OK;
}

void aq_shm_sleep_wake(void)
{
    struct aq_shm_control *self = aq_shm.self;

    aq_shm_order_before_look();
    if (AQ_UNLIKELY(atomic_load_explicit(&self->sleeping, memory_order_relaxed) != 0))
        aq_shm_wake(self);
}

void aq_shm_wake_waiting(void)
{
    aq_shm_order_before_look();
    for (uint32_t local = 0; local < aq_shm.size; local++)
        if (atomic_load_explicit(&aq_shm_control(local)->waiting, memory_order_relaxed) != 0)
            aq_shm_wake(aq_shm_control(local));
}
