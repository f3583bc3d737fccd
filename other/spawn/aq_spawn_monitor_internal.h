/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_monitor_internal.h - shared by the monitor thread and by the threads that shut the rank
 * down (aq_spawn_shutdown.c).
 * Owns      struct aq_monitor, one in each process
 * Threads   its last part belongs to the monitor thread; requests to it are one atomic word
 */
#ifndef AQ_SPAWN_MONITOR_INTERNAL_H
#define AQ_SPAWN_MONITOR_INTERNAL_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#include "other/spawn/aq_spawn_monitor.h"

#define AQ_MONITOR_POLL_MS     500  /* without pidfd */
#define AQ_MONITOR_LAST_MS     500  /* beyond the exit timeout: for killed processes to end */
#define AQ_MONITOR_SHUTDOWN_MS 20   /* interval of tests once the job is shutting down */
#define AQ_MONITOR_DEFER_MS    2000 /* how long a sign of life counts */
#define AQ_MONITOR_CALL_MS     3000 /* limit for the launcher's library to disconnect */
#define AQ_MONITOR_FIXED_FDS   4    /* fds[] before the watched processes */

enum aq_monitor_request {
    AQ_MONITOR_NONE = 0,
    AQ_MONITOR_FENCE, /* waits for the ranks of other hosts, in the launcher's fence */
    AQ_MONITOR_FINI,
    AQ_MONITOR_ABORT,
    AQ_MONITOR_DONE
};

struct aq_monitor {
    struct aq_jobarea *jobarea;
    const struct aq_kvs_ops *ops;
    uint32_t slot;
    pid_t self;
    int event_fd;             /* the host's eventfd: written once the job shuts down, never read */
    int own_fd;               /* this rank's eventfd */
    _Atomic uint32_t request; /* a futex */
    atomic_int code;
    atomic_bool in_shutdown; /* this rank disconnects from the launcher's library */
    atomic_bool orphaned;    /* the launcher's daemon has ended */
    atomic_bool forgotten;   /* its connection is closed in order */
    _Atomic uint32_t fenced; /* the ranks of other hosts have entered the launcher's fence */
    bool running;
    pthread_t thread;
    atomic_bool stopping; /* aq_monitor_stop() waits for the thread */
    /* private to the monitor thread */
    pid_t *child; /* [size]: watched processes; 0: ended, or not watched by this rank */
    struct pollfd
        /* event_fd, own_fd, the link to other hosts, the launcher, then the watched processes */
        *fds;
    uint32_t *fd_slot;
    int fd_count;
    bool blind;         /* there is no pidfd */
    bool deaf, listens; /* SIGQUIT has no handler, has a handler: determined once */
    bool alarmed;       /* the host's other monitors know that the shutdown has begun */
    /* ends the process itself: the client's threads have not come to the exit */
    bool exiting;
    uint64_t latest; /* and at the latest at this time */
    bool serving;    /* the request is being served */
    /* time by which a client thread must have ended the process; then the monitor does */
    uint64_t limit_ns;
    _Atomic uint32_t disconnected; /* the library has disconnected; a futex */
};

extern struct aq_monitor aq_monitor;

static inline bool aq_monitor_dead(pid_t pid)
{
    return kill(pid, 0) != 0 && errno == ESRCH;
}

/* true if all ranks of the job are on this host */
static inline bool aq_monitor_alone(void)
{
    return aq_monitor.jobarea->job_size == aq_monitor.jobarea->size;
}

#endif
