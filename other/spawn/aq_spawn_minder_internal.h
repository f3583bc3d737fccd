/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_minder_internal.h - shared by the watching thread and by who leaves (aq_spawn_leave.c).
 * Owns      struct aq_minder, this process's one
 * Threads   its last part is the thread's own; requests to the thread are one atomic word
 */
#ifndef AQ_SPAWN_MINDER_INTERNAL_H
#define AQ_SPAWN_MINDER_INTERNAL_H

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/types.h>

#include "other/spawn/aq_spawn_minder.h"

#define AQ_MINDER_LOOK_MS   500  /* without pidfd */
#define AQ_MINDER_LAST_MS   500  /* beyond the exit timeout: for the killed to go */
#define AQ_MINDER_ENDING_MS 20   /* how often minders look once the job is ending */
#define AQ_MINDER_SPARE_MS  2000 /* a sign of life of who says goodbye is good for this long */
#define AQ_MINDER_CALL_MS   3000 /* how long the launcher's library may take to say goodbye */
#define AQ_MINDER_FIXED_FDS 4    /* fds[] before the watched processes */

enum aq_minder_request {
    AQ_MINDER_NOTHING = 0,
    AQ_MINDER_MEET, /* the ranks of other hosts, in the launcher's fence */
    AQ_MINDER_FINI,
    AQ_MINDER_ABORT,
    AQ_MINDER_DONE
};

struct aq_minder {
    struct aq_board *board;
    const struct aq_kvs_ops *ops;
    uint32_t slot;
    pid_t self;
    int event_fd;             /* the host's: written once the job ends, never read */
    int own_fd;               /* this rank's */
    _Atomic uint32_t request; /* a futex */
    atomic_int code;
    atomic_bool leaving;  /* this rank says goodbye */
    atomic_bool orphaned; /* the launcher's daemon is gone */
    atomic_bool forgotten; /* its connection is closed in order */
    _Atomic uint32_t met; /* the ranks of other hosts have come to the launcher's fence */
    bool running;
    /* the thread's own */
    pid_t *child;       /* [size] watched processes, 0 = gone or not mine to watch */
    struct pollfd *fds; /* event_fd, own_fd, the link to other hosts, the launcher, then the watched */
    uint32_t *fd_slot;
    int fd_count;
    bool blind;         /* no pidfd */
    bool deaf, listens; /* SIGQUIT is for nobody, is for somebody: looked up once */
    bool alarmed;       /* the host's other minders were told that the end has begun */
    bool ending;        /* ends the process itself: the client's threads have not come */
    uint64_t latest;    /* and then is gone by this time */
    bool parting;       /* the request is being served */
    uint64_t limit_ns;  /* by then a thread of the client has ended the process, or we do */
    _Atomic uint32_t gone; /* the library has said goodbye; a futex */
};

extern struct aq_minder aq_minder;

static inline bool aq_minder_dead(pid_t pid)
{
    return kill(pid, 0) != 0 && errno == ESRCH;
}

/* all ranks of the job are on this host */
static inline bool aq_minder_alone(void)
{
    return aq_minder.board->job_size == aq_minder.board->size;
}

#endif
