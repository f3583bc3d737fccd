/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_monitor_internal.h - shared by the watching thread and by who leaves
 * (aq_spawn_shutdown.c).
 * Owns      struct aq_monitor, this process's one
 * Threads   its last part is the thread's own; requests to the thread are one atomic word
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
#define AQ_MONITOR_LAST_MS     500  /* beyond the exit timeout: for the killed to go */
#define AQ_MONITOR_SHUTDOWN_MS 20   /* how often monitors look once the job is ending */
#define AQ_MONITOR_DEFER_MS    2000 /* how long a sign of life is good for */
#define AQ_MONITOR_CALL_MS     3000 /* how long the launcher's library may take to say disconnect */
#define AQ_MONITOR_FIXED_FDS   4    /* fds[] before the watched processes */

enum aq_monitor_request {
    AQ_MONITOR_NONE = 0,
    AQ_MONITOR_FENCE, /* the ranks of other hosts, in the launcher's fence */
    AQ_MONITOR_FINI,
    AQ_MONITOR_ABORT,
    AQ_MONITOR_DONE
};

struct aq_monitor {
    struct aq_jobarea *jobarea;
    const struct aq_kvs_ops *ops;
    uint32_t slot;
    pid_t self;
    int event_fd;             /* the host's: written once the job ends, never read */
    int own_fd;               /* this rank's */
    _Atomic uint32_t request; /* a futex */
    atomic_int code;
    atomic_bool in_shutdown; /* this rank says disconnect */
    atomic_bool orphaned;    /* the launcher's daemon is gone */
    atomic_bool forgotten;   /* its connection is closed in order */
    _Atomic uint32_t fenced; /* the ranks of other hosts have come to the launcher's fence */
    bool running;
    pthread_t thread;
    atomic_bool stopping; /* aq_monitor_stop() waits for the thread */
    /* the thread's own */
    pid_t *child; /* [size] watched processes, 0 = gone or not mine to watch */
    struct pollfd
        *fds; /* event_fd, own_fd, the link to other hosts, the launcher, then the watched */
    uint32_t *fd_slot;
    int fd_count;
    bool blind;         /* no pidfd */
    bool deaf, listens; /* SIGQUIT is for nobody, is for somebody: looked up once */
    bool alarmed;       /* the host's other monitors were told that the end has begun */
    bool exiting;       /* ends the process itself: the client's threads have not come */
    uint64_t latest;    /* and then is gone by this time */
    bool serving;       /* the request is being served */
    uint64_t limit_ns;  /* by then a thread of the client has ended the process, or we do */
    _Atomic uint32_t disconnected; /* the library has said disconnect; a futex */
};

extern struct aq_monitor aq_monitor;

static inline bool aq_monitor_dead(pid_t pid)
{
    return kill(pid, 0) != 0 && errno == ESRCH;
}

/* all ranks of the job are on this host */
static inline bool aq_monitor_alone(void)
{
    return aq_monitor.jobarea->job_size == aq_monitor.jobarea->size;
}

#endif
