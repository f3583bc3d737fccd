/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_supervise.h - the supervisor: a process that starts a host's ranks and stays until they end.
 * Owns      the ranks' processes and the job area's life; used by gasnetrun and by a program that
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

/* descriptors of another part of the process that are served in the same loop */
struct aq_supervise_io {
    int (*fill)(void *arg, struct pollfd *fds); /* returns how many it has filled in */
    void (*serve)(void *arg, const struct pollfd *fds, int count);
    void (*finish)(void *arg); /* the ranks have ended: read what is left */
    /* the following may be NULL */
    /* each turn of the loop; returns ms to the next, -1 for none */
    int (*step)(void *arg, struct aq_shutdown *shutdown);
    /* true: the loop continues although no rank is left */
    bool (*busy)(void *arg);
    void (*reaped)(void *arg, pid_t pid, int status); /* a child that is no rank has ended */
    bool (*signalled)(void *arg, struct aq_shutdown *shutdown,
                      int sig); /* true: the signal has been handled */
    void *arg;
    int max; /* maximum that fill() uses */
};

struct aq_supervise {
    struct aq_jobarea *jobarea;
    pid_t *child; /* [jobarea->size], 0: not started */
    int signal_fd;
    sigset_t old_mask;          /* restored in the ranks */
    struct sigaction old_child; /* the earlier action of SIGCHLD, restored in the ranks */
    /* children that this process had before, by an exec, and their children */
    pid_t *skipped;
    size_t skipped_count;
    const struct aq_supervise_io *io; /* may be NULL */
    /* on one host of several; NULL: all ranks are on this host */
    const struct aq_jobarea_topo *topo;
    bool verbose; /* GASNET_SPAWN_VERBOSE */
    /* end processes that ranks have left running in this session */
    bool reap_others;
    bool follow;   /* see struct aq_shutdown */
    int signal;    /* the first signal from outside that ended the job; 0: none */
    bool stop_too; /* SIGTSTP is passed to io->signalled() as well */
};

/** aq_supervise_standard_fds - opens descriptors 0, 1 and 2 if the program was started with them
 * closed, so that no file of this library takes their numbers. */
void aq_supervise_standard_fds(void);

/**
 * aq_supervise_open - make the job area for size ranks, and block the signals that signal_fd reads.
 * Of the signals that end a job (HUP, INT, QUIT, TERM) only HUP stays ignored where it is ignored,
 * as nohup wants it. SIGCHLD gets its default action, otherwise ranks could not be waited for.
 * jobarea_fd_out  the job area's memfd, close-on-exec
 * Returns 0 or -errno; on failure nothing has changed.
 */
int aq_supervise_open(struct aq_supervise *sv, uint32_t size, int *jobarea_fd_out);

/** aq_supervise_signals_back - restores signal mask and SIGCHLD as before aq_supervise_open().
 * Async-signal-safe. */
void aq_supervise_signals_back(const struct aq_supervise *sv);

/**
 * aq_supervise_child - called first in the new process: makes it die with the parent and restores
 * the parent's old signal handling. Async-signal-safe; fit for vfork. Ends the process if the
 * parent has ended already.
 */
void aq_supervise_child(const struct aq_supervise *sv, pid_t parent);

/** aq_supervise_fork_failed - reports why the rank of slot could not be started and what to do;
 * ends the ranks that were started. */
int aq_supervise_fork_failed(struct aq_supervise *sv, uint32_t slot, int error);

/** aq_supervise_say_fork_failed - prints that message only. */
void aq_supervise_say_fork_failed(struct aq_supervise *sv, uint32_t slot, int error);

/** aq_supervise_forward - sends sig to the ranks that have a handler for it. */
void aq_supervise_forward(struct aq_supervise *sv, int sig);

/** aq_supervise_end_others - ends processes that ranks have left running in this session. */
void aq_supervise_end_others(struct aq_supervise *sv);

/** aq_supervise_run - supervises the ranks until the last has ended. Returns the job's exit
 * code. */
int aq_supervise_run(struct aq_supervise *sv);

/**
 * aq_supervise_end_console - ends a process that users start as ./prog N or as amudprun.
 * code    exit code of the job
 * sig     the signal that this process got from outside, 0 if none: it dies of that signal
 * A job that lost a rank ends with AQ_SUPERVISE_LOST, as scripts expect of the udp conduit.
 */
_Noreturn void aq_supervise_end_console(int code, int sig);

#define AQ_SUPERVISE_LOST 255

#endif
