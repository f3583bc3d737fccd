/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_supervise.h - the process that starts a host's ranks and stays until they are gone.
 * Owns      the ranks' processes and the job area's fate; used by gasnetrun and by a program that
 *           starts itself under GASNET_PSHM_NODES
 * Threads   one; never runs client code, never returns to it
 * Promise   returns only when no rank is left; ranks die with it (PR_SET_PDEATHSIG)
 * Uses      aq_shutdown.h
 */
#ifndef AQ_SUPERVISE_H
#define AQ_SUPERVISE_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "other/spawn/aq_jobarea.h"
#include "other/spawn/aq_shutdown.h"

/* descriptors that somebody else in the process wants served in the same loop */
struct aq_supervise_io {
    int (*fill)(void *arg, struct pollfd *fds); /* how many it has filled in */
    void (*serve)(void *arg, const struct pollfd *fds, int count);
    void (*finish)(void *arg); /* ranks are gone: drain */
    /* the rest may be NULL */
    int (*step)(void *arg, struct aq_shutdown *e);    /* each turn; ms to the next, -1 none */
    bool (*busy)(void *arg);                          /* go on though no rank is left */
    void (*reaped)(void *arg, pid_t pid, int status); /* a child that is no rank has ended */
    bool (*signalled)(void *arg, struct aq_shutdown *e,
                      int sig); /* true: nothing more to do about it */
    void *arg;
    int max; /* most that fill() will use */
};

struct aq_supervise {
    struct aq_jobarea *jobarea;
    pid_t *child; /* [board->size], 0 = not started */
    int signal_fd;
    sigset_t old_mask;          /* for the ranks */
    struct sigaction old_child; /* what SIGCHLD did before: for the ranks */
    pid_t *skipped;             /* running before us: children that an exec left us, and theirs */
    size_t skipped_count;
    const struct aq_supervise_io *io;   /* may be NULL */
    const struct aq_jobarea_topo *topo; /* of a host of several; NULL: all ranks are here */
    bool verbose;                       /* GASNET_SPAWN_VERBOSE */
    bool reap_others;                   /* end what ranks have left running in our session */
    bool follow;                        /* see struct aq_shutdown */
    int signal;    /* the first that came from outside to end the job; 0: none */
    bool stop_too; /* SIGTSTP comes to io->signalled() as well */
};

/** aq_supervise_standard_fds - started with descriptor 0, 1 or 2 closed? Then no file of ours takes
 * its number. */
void aq_supervise_standard_fds(void);

/**
 * aq_supervise_open - make the job area for size ranks, block the signals to be read from
 * signal_fd. Those that end a job (HUP, INT, QUIT, TERM) are left alone where they are ignored:
 * nohup and background jobs mean it. SIGCHLD gets its default action, else ranks could not be
 * waited for. jobarea_fd_out  the job area's memfd, close-on-exec
 * Returns 0 or -errno; on failure nothing has changed.
 */
int aq_supervise_open(struct aq_supervise *sv, uint32_t size, int *jobarea_fd_out);

/** aq_supervise_signals_back - signal mask and SIGCHLD as before aq_supervise_open().
 * Async-signal-safe. */
void aq_supervise_signals_back(const struct aq_supervise *sv);

/**
 * aq_supervise_child - in the new process, before anything else: die with the parent, get the
 * parent's old signal handling back. Async-signal-safe; fit for vfork. Ends the process if the
 * parent is gone already.
 */
void aq_supervise_child(const struct aq_supervise *sv, pid_t parent);

/** aq_supervise_fork_failed - say why rank slot could not be started and what to do; ends those
 * started. */
int aq_supervise_fork_failed(struct aq_supervise *sv, uint32_t slot, int error);

/** aq_supervise_say_fork_failed - the message of the above, nothing else. */
void aq_supervise_say_fork_failed(struct aq_supervise *sv, uint32_t slot, int error);

/** aq_supervise_forward - sig to the ranks that have a handler for it. */
void aq_supervise_forward(struct aq_supervise *sv, int sig);

/** aq_supervise_end_others - end what ranks have left running in our session. */
void aq_supervise_end_others(struct aq_supervise *sv);

/** aq_supervise_run - look after the ranks until the last has gone. Returns the job's exit code. */
int aq_supervise_run(struct aq_supervise *sv);

/**
 * aq_supervise_end_console - what a process that users start as ./prog N or as amudprun ends with.
 * code    of the job
 * sig     that this process got from outside, 0 if none: it dies of that
 * A job that lost a rank ends with AQ_SUPERVISE_LOST, as scripts expect of the udp conduit.
 */
_Noreturn void aq_supervise_end_console(int code, int sig);

#define AQ_SUPERVISE_LOST 255

#endif
