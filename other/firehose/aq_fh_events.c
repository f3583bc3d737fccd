/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_events.c - userfaultfd as a source of unmap, remap and remove events.
 *
 * Mappings are registered for write protection, and nothing is ever protected. So no page fault of
 * the program arrives here, only the events, and a program without privilege may use them
 * (UFFD_USER_MODE_ONLY).
 *
 * Why no change is missed. In the kernel, a call that changes an armed mapping
 *   1  counts itself as "changing" (under the lock of the address space, before anything changes);
 *   2  unmaps, or moves; releases that lock. From here on another thread's mmap() can get the same
 *      addresses;
 *   3  queues its event and sleeps;
 *   4  wakes when the event is read; is no longer "changing"; returns. (Emptying: the pages go now,
 *      see aq_fh_memmon.c.)
 * The event thread raises `unsettled` before each read, so before 4. A thread that uses a
 * registration first asks whether something is changing, then reads `unsettled`. Memory that the
 * thread knows of, by its own mmap() or from another thread, was mapped after step 2 of the change
 * that had unmapped it. That change is either past 4, and `unsettled` shows it, or "changing".
 * `unsettled` alone would not do: between 2 and 4 it is 0.
 *
 * Why no thread waits for ever. The event thread depends on nothing: no lock, no malloc, no page
 * that causes an event. When it is to end, mappings are disarmed first; then it reads until nothing
 * is changing, and closes the descriptor as its last act, which wakes every thread that sleeps in
 * 3. exec and exit close the descriptor; a dying process does not sleep in 3. A forked child has no
 * events, since the kernel does not pass registrations on unless asked. The child must not read
 * those of its parent, and closes the descriptor.
 */
#include "other/firehose/aq_fh_events.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/aq_platform.h"
#include "base/aq_rc.h"

/* Newer than some kernel headers. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#define AQ_FH_FEATURE_EXACT \
    (1ull << 11) /* Linux 5.18; before, "changing" could be wrong with several threads */
#define AQ_FH_FEATURE_WP_ASYNC \
    (1ull << 15) /* Linux 6.7: private mappings of files too, such as a program's data */
#define AQ_FH_FEATURES                                                   \
    ((uint64_t)UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_UNMAP \
     | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE | AQ_FH_FEATURE_EXACT)

#define AQ_FH_READ         16          /* events at a time */
#define AQ_FH_VERIFY_NS    2000000000u /* for what takes 100 us on an idle machine */
#define AQ_FH_VERIFY_PAGES 5

enum { AQ_FH_VERIFY_RUNNING, AQ_FH_VERIFY_MADE, AQ_FH_VERIFY_PASSED, AQ_FH_VERIFY_FAILED };

/* The descriptor that a forked child has to close; a job has one monitor, unit tests have several.
 * */
static struct aq_fh_events *aq_fh_events_newest;

static int aq_fh_events_fd(struct aq_fh_events *events)
{
    /* relaxed: a number; who sees the old one at the end asks a closed descriptor, which nobody may
     * do then */
    return atomic_load_explicit(&events->fd, memory_order_relaxed);
}

/* --- arming --- */

int aq_fh_events_arm(struct aq_fh_events *events, uintptr_t start, uintptr_t end)
{
    struct uffdio_register range = { .range = { .start = start, .len = end - start },
                                     .mode = UFFDIO_REGISTER_MODE_WP };

    return ioctl(aq_fh_events_fd(events), UFFDIO_REGISTER, &range) == 0 ? AQ_OK : AQ_ERR_SYS;
}

void aq_fh_events_disarm(struct aq_fh_events *events, uintptr_t start, uintptr_t end)
{
    struct uffdio_range range = { .start = start, .len = end - start };

    /* it fails if something else has been mapped there, and then there is nothing to do */
    (void)ioctl(aq_fh_events_fd(events), UFFDIO_UNREGISTER, &range);
}

bool aq_fh_events_changing(struct aq_fh_events *events)
{
    /* A request that could do nothing: no bytes. While something is changing it fails with EAGAIN,
     * else with EINVAL. */
    struct uffdio_writeprotect nothing = { .range = { 0, 0 }, .mode = 0 };
    const int before = errno;
    const bool changing =
        ioctl(aq_fh_events_fd(events), UFFDIO_WRITEPROTECT, &nothing) != 0 && errno == EAGAIN;

    errno = before;
    return changing;
}

/* --- the thread --- */

static struct aq_fh_event aq_fh_events_from(const struct uffd_msg *msg)
{
    if (msg->event == UFFD_EVENT_REMAP)
        return (struct aq_fh_event){ AQ_FH_EVENT_MOVE, (uintptr_t)msg->arg.remap.from,
                                     (uintptr_t)msg->arg.remap.to, (size_t)msg->arg.remap.len };
    return (struct aq_fh_event){ msg->event == UFFD_EVENT_REMOVE ? AQ_FH_EVENT_EMPTY
                                                                 : AQ_FH_EVENT_UNMAP,
                                 (uintptr_t)msg->arg.remove.start, 0,
                                 (size_t)(msg->arg.remove.end - msg->arg.remove.start) };
}

static void aq_fh_events_put(struct aq_fh_events *events, const struct uffd_msg *msg)
{
    /* relaxed: only this thread writes it */
    const unsigned head = atomic_load_explicit(&events->head, memory_order_relaxed);

    /* acquire: pairs with the release in aq_fh_events_take(): the place has been read */
    if (head - atomic_load_explicit(&events->tail, memory_order_acquire) >= AQ_FH_EVENTS_RING) {
        /* relaxed: the release on `finished` comes after it */
        atomic_store_explicit(&events->flood, true, memory_order_relaxed);
        return;
    }
    events->ring[head % AQ_FH_EVENTS_RING] = aq_fh_events_from(msg);
    /* release: pairs with the acquire in aq_fh_events_take(): the event is there */
    atomic_store_explicit(&events->head, head + 1, memory_order_release);
}

/* One read. Returns whether there was something. */
static bool aq_fh_events_read(struct aq_fh_events *events)
{
    struct uffd_msg msg[AQ_FH_READ];
    ssize_t n;

    /* Before the read, which lets the changing calls return. The kernel's lock on the queue of
     * events, which the read releases and the sleeping call acquires, makes it visible to whoever
     * that call returns to; seq_cst, so that nothing of ours moves past the system call either way.
     * */
    atomic_fetch_add_explicit(events->unsettled, 1, memory_order_seq_cst);
    n = read(aq_fh_events_fd(events), msg, sizeof(msg));
    if (n <= 0) {
        /* relaxed: no call was released, nothing was written */
        atomic_fetch_sub_explicit(events->unsettled, 1, memory_order_relaxed);
        return false;
    }
    for (ssize_t i = 0; i * (ssize_t)sizeof(msg[0]) < n; i++)
        aq_fh_events_put(events, &msg[i]);
    /* release: pairs with the acquire in aq_fh_events_take(): the events of this read, and a flood,
     * are visible */
    atomic_fetch_add_explicit(&events->finished, 1, memory_order_release);
    return true;
}

static size_t aq_fh_events_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* The calls that aq_fh_events_verify() checks. */
static void aq_fh_events_act(struct aq_fh_events *events)
{
    const size_t page = aq_fh_events_page();
    char *test = events->test;
    bool done;

    done = munmap(test, page) == 0;
    done = madvise(test + page, page, MADV_DONTNEED) == 0 && done;
    done = syscall(SYS_mremap, test + 2 * page, page, page, MREMAP_MAYMOVE | MREMAP_FIXED,
                   test + 4 * page)
               == (long)(uintptr_t)(test + 4 * page)
           && done;
    /* release: pairs with the acquire in aq_fh_events_verify_act() */
    atomic_store_explicit(&events->verify, done ? AQ_FH_VERIFY_MADE : AQ_FH_VERIFY_FAILED,
                          memory_order_release);
}

static int aq_fh_events_verify_state(struct aq_fh_events *events)
{
    /* acquire: pairs with the releases that set it */
    return atomic_load_explicit(&events->verify, memory_order_acquire);
}

/* Sleeps until there are events, or the time is over. Returns true if the thread is to end. */
static bool aq_fh_events_sleep(int wake, int fd, int timeout_ms)
{
    struct pollfd fds[2] = { { .fd = wake, .events = POLLIN }, { .fd = fd, .events = POLLIN } };

    return poll(fds, 2, timeout_ms) > 0 && fds[0].revents != 0;
}

static void *aq_fh_events_main(void *arg)
{
    struct aq_fh_events *events = arg;

    aq_fh_events_act(events);
    while (aq_fh_events_verify_state(events) < AQ_FH_VERIFY_PASSED)
        aq_fh_events_sleep(-1, -1, 1); /* a millisecond; the opening thread is about to decide */
    while (!aq_fh_events_sleep(events->wake, aq_fh_events_fd(events), -1))
        aq_fh_events_read(events);
    /* mappings have been let go: what is changing now is the last of it */
    while (aq_fh_events_fd(events) >= 0 && aq_fh_events_changing(events))
        if (!aq_fh_events_read(events))
            sched_yield();
    /* The kernel disarms what is still armed and wakes the calls that wait before close() returns:
     * so no thread is left waiting, this one neither, when its stack is freed. relaxed: see
     * aq_fh_events_fd() */
    close(atomic_exchange_explicit(&events->fd, -1, memory_order_relaxed));
    return NULL;
}

static int aq_fh_events_start(struct aq_fh_events *events)
{
    sigset_t all, old;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* inherited: signals are for the client's threads */
    error = pthread_create(&events->thread, NULL, aq_fh_events_main, events);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error == 0)
        pthread_setname_np(events->thread, "aq-fh-events");
    return error;
}

/* --- verification at start --- */

/* What one event says of the test; its bit, or 0 if it is not as it must be. */
static unsigned aq_fh_events_check(struct aq_fh_events *events, const struct uffd_msg *msg)
{
    const struct aq_fh_event event = aq_fh_events_from(msg);
    const uintptr_t test = (uintptr_t)events->test;
    const size_t page = aq_fh_events_page();

    if (event.len != page)
        return 0;
    if (event.kind == AQ_FH_EVENT_UNMAP && event.addr == test)
        return 1;
    if (event.kind == AQ_FH_EVENT_EMPTY && event.addr == test + page)
        return 2;
    return event.kind == AQ_FH_EVENT_MOVE && event.addr == test + 2 * page
                   && event.to == test + 4 * page
               ? 4
               : 0;
}

/* Reads events while the thread acts. True if each call waited for us, and told what it did. */
static bool aq_fh_events_verify_act(struct aq_fh_events *events)
{
    const uint64_t end = aq_now_ns() + AQ_FH_VERIFY_NS;
    bool waited = true;
    unsigned seen = 0;

    while (aq_fh_events_verify_state(events) == AQ_FH_VERIFY_RUNNING && aq_now_ns() < end) {
        struct pollfd fd = { .fd = aq_fh_events_fd(events), .events = POLLIN };
        struct uffd_msg msg;

        if (poll(&fd, 1, 1) <= 0)
            continue;
        waited = waited && aq_fh_events_changing(events)
                 && aq_fh_events_verify_state(events) == AQ_FH_VERIFY_RUNNING;
        if (read(fd.fd, &msg, sizeof(msg)) == sizeof(msg))
            seen |= aq_fh_events_check(events, &msg);
    }
    while (aq_fh_events_changing(events) && aq_now_ns() < end)
        sched_yield();
    return waited && seen == 7 && aq_fh_events_verify_state(events) == AQ_FH_VERIFY_MADE
           && !aq_fh_events_changing(events);
}

static void aq_fh_events_join(struct aq_fh_events *events)
{
    while (eventfd_write(events->wake, 1) != 0 && errno == EINTR)
        continue;
    pthread_join(events->thread, NULL);
}

/* The thread is started and may go on if it has passed, else it is ended again. */
static bool aq_fh_events_judge(struct aq_fh_events *events, bool passed)
{
    /* wakes the thread if it is asleep in one of its calls; relaxed: see aq_fh_events_fd() */
    if (!passed)
        close(atomic_exchange_explicit(&events->fd, -1, memory_order_relaxed));
    while (aq_fh_events_verify_state(events) == AQ_FH_VERIFY_RUNNING)
        sched_yield();
    /* release: pairs with the acquire in aq_fh_events_verify_state() */
    atomic_store_explicit(&events->verify, passed ? AQ_FH_VERIFY_PASSED : AQ_FH_VERIFY_FAILED,
                          memory_order_release);
    if (!passed)
        aq_fh_events_join(events);
    return passed;
}

/* Starts the thread, which unmaps, empties and moves pages of a mapping of ours first, while we
 * look. */
static int aq_fh_events_verify(struct aq_fh_events *events, const char **why_out)
{
    const size_t size = AQ_FH_VERIFY_PAGES * aq_fh_events_page();
    char *test = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool passed = false;

    if (test == MAP_FAILED) {
        *why_out = "there is no memory";
        return AQ_ERR_SYS;
    }
    events->test = test;
    if (aq_fh_events_arm(events, (uintptr_t)test, (uintptr_t)test + size) != AQ_OK) {
        *why_out = "this kernel cannot monitor memory in this way";
    } else if (aq_fh_events_start(events) != 0) {
        *why_out = "no thread could be started: see ulimit -u";
    } else {
        passed = aq_fh_events_judge(events, aq_fh_events_verify_act(events));
        if (!passed)
            *why_out = "events do not come as they must";
    }
    aq_fh_events_disarm(events, (uintptr_t)test, (uintptr_t)test + size);
    munmap(test, size);
    return passed ? AQ_OK : AQ_ERR_SYS;
}

/* --- open and close --- */

/* In a forked child: its mappings are not monitored, and its parent's events are not for it. */
static void aq_fh_events_in_child(void)
{
    if (aq_fh_events_newest != NULL)
        close(atomic_exchange_explicit(&aq_fh_events_newest->fd, -1,
                                       memory_order_relaxed)); /* relaxed: one thread */
}

static int aq_fh_events_descriptor(void)
{
    const int flags = O_CLOEXEC | O_NONBLOCK;
    int fd = (int)syscall(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY);

    if (fd < 0 && errno == EINVAL) /* before Linux 5.11 */
        fd = (int)syscall(SYS_userfaultfd, flags);
    return fd;
}

/* A descriptor with the features we need; more if there are. */
static int aq_fh_events_request(const char **why_out)
{
    const int fd = aq_fh_events_descriptor();
    struct uffdio_api api = { .api = UFFD_API,
                              .features = AQ_FH_FEATURES | AQ_FH_FEATURE_WP_ASYNC };

    if (fd < 0) {
        *why_out = errno == ENOSYS ? "the kernel has no userfaultfd"
                                   : "userfaultfd is not permitted (seccomp, as in containers)";
        return -1;
    }
    if (ioctl(fd, UFFDIO_API, &api) == 0)
        return fd;
    api = (struct uffdio_api){ .api = UFFD_API, .features = AQ_FH_FEATURES };
    if (ioctl(fd, UFFDIO_API, &api) == 0)
        return fd;
    close(fd);
    *why_out = "the kernel is older than Linux 5.18";
    return -1;
}

int aq_fh_events_open(struct aq_fh_events *events, atomic_uint *unsettled, const char **why_out)
{
    static bool atfork_done;
    const int fd = aq_fh_events_request(why_out);

    if (fd < 0)
        return AQ_ERR_SYS;
    memset(events, 0, sizeof(*events));
    events->unsettled = unsettled;
    atomic_store_explicit(&events->fd, fd,
                          memory_order_relaxed); /* relaxed: there is no thread yet */
    events->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (events->wake < 0) {
        *why_out = "no file descriptor is left: see ulimit -n";
        close(fd);
        return AQ_ERR_SYS;
    }
    if (!atfork_done && pthread_atfork(NULL, NULL, aq_fh_events_in_child) == 0)
        atfork_done = true;
    if (!atfork_done || aq_fh_events_verify(events, why_out) != AQ_OK) {
        if (aq_fh_events_fd(events) >= 0)
            close(fd);
        close(events->wake);
        return AQ_ERR_SYS;
    }
    aq_fh_events_newest = events;
    return AQ_OK;
}

void aq_fh_events_close(struct aq_fh_events *events)
{
    if (aq_fh_events_newest == events)
        aq_fh_events_newest = NULL;
    if (aq_fh_events_fd(events) < 0) /* a forked child: no thread */
        return;
    aq_fh_events_join(events);
    close(events->wake);
}

/* --- the ring's other end --- */

unsigned aq_fh_events_take(struct aq_fh_events *events,
                           void (*each)(void *arg, const struct aq_fh_event *event), void *arg,
                           bool *all_out)
{
    /* acquire: pairs with the release in aq_fh_events_read(): what these reads brought is seen
     * below */
    const unsigned finished = atomic_load_explicit(&events->finished, memory_order_acquire);
    const unsigned reads = finished - events->settled;
    /* relaxed: written by this thread */
    unsigned tail = atomic_load_explicit(&events->tail, memory_order_relaxed);

    events->settled = finished;
    /* acquire: pairs with the release in aq_fh_events_put() */
    while (tail != atomic_load_explicit(&events->head, memory_order_acquire)) {
        const struct aq_fh_event event = events->ring[tail % AQ_FH_EVENTS_RING];

        /* release: pairs with the acquire in aq_fh_events_put(): we have read it */
        atomic_store_explicit(&events->tail, ++tail, memory_order_release);
        each(arg, &event);
    }
    /* acq_rel: a flood that is set again is one of later events */
    *all_out = atomic_exchange_explicit(&events->flood, false, memory_order_acq_rel);
    return reads;
}

void aq_fh_events_settled(struct aq_fh_events *events, unsigned reads)
{
    /* release: who sees the count fall sees what was made invalid */
    atomic_fetch_sub_explicit(events->unsettled, reads, memory_order_release);
}
