/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_shutdown.h - the shutdown of a job: the state machine of the process that watches a host's
 * ranks.
 * Owns      the times at which remaining ranks are asked to end (SIGQUIT) and killed (SIGKILL); the
 *           one message about a lost rank
 * Threads   one: the supervisor process, or the monitor thread of the host's first rank
 * States    the job area's exit_state, NONE -> SHUTDOWN -> ASKED -> KILLING
 *           a rank exits, code 0      ask after timeout/2, kill after timeout
 *           a rank exits, code not 0  ask after min(timeout/4, 250 ms), kill after timeout
 *           a rank dies by a signal, is lost, or a signal comes from outside: ask at once
 *           The timeout is that of an orderly end as long as the job's code is 0, and counts anew,
 *           with the exit timeout, from a failure during that (aq_jobarea_exit_ms())
 *           With several hosts each agent runs this for its own ranks, and the launcher's root for
 *           the job. Only the root decides on ASKED, so that the same code counts everywhere.
 *           Under other launchers the monitors agree (aq_spawn_link.h); a host whose parent
 *           does not answer decides for itself
 * Promise   no output if every rank comes to the exit by itself
 * Uses      aq_jobarea.h
 */
#ifndef AQ_SHUTDOWN_H
#define AQ_SHUTDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "other/spawn/aq_jobarea.h"

struct aq_shutdown {
    struct aq_jobarea *jobarea;
    pid_t *child;      /* [size]: process that stands for the slot; 0: it has ended */
    uint64_t start_ns; /* when the shutdown began; 0: it has not */
    uint64_t ask_ns;   /* when to ask */
    uint64_t kill_ns;  /* when to kill */
    uint32_t alive;    /* children that have not ended */
    /* ranks that joined and ended without a word, with status 0 or by _exit */
    uint32_t silent;
    uint32_t silent_slot; /* the first of them */
    int silent_status;    /* its wait status */
    pid_t silent_pid;
    /* ranks see the state KILLING and end themselves: SIGKILL follows a moment later */
    bool gentle;
    /* a signal came from outside: ranks that flush output get no more time than others */
    bool stopped;
    bool killed; /* SIGKILL was sent to the remaining ranks */
    bool logged; /* the message about a lost rank is printed */
    bool verbose;
    /* one host of several: the launcher's root decides for all when to ask */
    bool follow;           /* never ask before aq_shutdown_agreed() */
    bool joined_elsewhere; /* a rank of another host has joined the job */
    bool frozen_elsewhere; /* a rank of another host waits for a debugger */
};

/* receives the lines of aq_shutdown_say(): kind is the first word, the text ends in a newline */
typedef void (*aq_shutdown_say_fn)(void *arg, const char *kind, const char *line, size_t len);

/** aq_shutdown_init - watches the job area's ranks through child[], which the caller fills and
 * owns. */
void aq_shutdown_init(struct aq_shutdown *shutdown, struct aq_jobarea *jobarea, pid_t *child);

/** aq_shutdown_exited - the process of slot has ended with this wait status (-1: unknown). */
void aq_shutdown_exited(struct aq_shutdown *shutdown, uint32_t slot, int status);

/** aq_shutdown_signalled - INT, TERM, ... came from outside; a second one kills at once. */
void aq_shutdown_signalled(struct aq_shutdown *shutdown, int sig);

/** aq_shutdown_fail - ends the job with at least this code, because of a failure already
 * reported. */
void aq_shutdown_fail(struct aq_shutdown *shutdown, int code);

/** aq_shutdown_begin - the job shuts down; ask in at most ask_ms. The earliest time wins. */
void aq_shutdown_begin(struct aq_shutdown *shutdown, uint64_t ask_ms);

/** aq_shutdown_agreed - with follow: the job's code is settled on all hosts; asks the remaining
 * ranks. */
void aq_shutdown_agreed(struct aq_shutdown *shutdown, int code);

/** aq_shutdown_now - kills the remaining ranks at the next step; those that flush output only if
 * stopped. */
void aq_shutdown_now(struct aq_shutdown *shutdown);

/** aq_shutdown_step - does what is due. Returns milliseconds until the next step, -1 for none. */
int aq_shutdown_step(struct aq_shutdown *shutdown);

/** aq_shutdown_defer_kill - for ms from now, a rank in state AQ_RANK_ENDED whose process still
 * exists is not killed. Any process. */
void aq_shutdown_defer_kill(struct aq_jobarea_rank *rank, uint64_t ms);

/** aq_shutdown_frozen - returns true if a rank of this host waits for a debugger: no timeout
 * applies then. */
bool aq_shutdown_frozen(const struct aq_shutdown *shutdown);

/** aq_shutdown_catches - returns true if the process has a handler for sig, or if that is
 * unknown. */
bool aq_shutdown_catches(pid_t pid, int sig);

/** aq_shutdown_say - writes one line "*** KIND (host:pid): text" to stderr in one write. */
void aq_shutdown_say(const char *kind, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** aq_shutdown_say_to - passes those lines to fn instead of stderr; NULL: stderr again. */
void aq_shutdown_say_to(aq_shutdown_say_fn fn, void *arg);

#endif
