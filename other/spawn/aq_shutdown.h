/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_shutdown.h - how a job ends: the state machine of whoever looks after a host's ranks.
 * Owns      when the stragglers are asked (SIGQUIT) and when they are killed (SIGKILL); the one
 *           message about a rank that was lost
 * Threads   one: the supervisor process, or the watching thread of the host's first rank
 * States    the job area's exit_state, NONE -> ENDING -> ASKED -> KILLING
 *           a rank exits, code 0      ask after timeout/2, kill after timeout
 *           a rank exits, code not 0  ask after min(timeout/4, 250 ms), kill after timeout
 *           a rank dies by a signal, is lost, or a signal comes from outside: ask at once
 *           with several hosts each agent runs this for its own, the launcher's root for the job:
 *           it alone decides on ASKED, so that the code that counts is the same everywhere
 * Promise   silent if every rank comes to the exit by itself
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
    pid_t *child;         /* [size] process that stands for the slot; 0 when gone */
    uint64_t start_ns;    /* when the end began; 0 before */
    uint64_t ask_ns;      /* when to ask */
    uint64_t kill_ns;     /* when to kill */
    uint32_t alive;       /* children not gone */
    uint32_t silent;      /* ranks that joined and ended without a word, with status 0 or _exit */
    uint32_t silent_slot; /* the first of them */
    int silent_status;    /* its wait status */
    pid_t silent_pid;
    bool gentle;  /* ranks see the state KILLING and end themselves: SIGKILL a moment later */
    bool stopped; /* a signal came from outside: ranks that write out get no longer than others */
    bool killed;  /* SIGKILL was sent to who was left */
    bool logged;  /* the message about a lost rank is out */
    bool verbose;
    /* one host of several: the launcher's root decides for all when to ask */
    bool follow;           /* never ask before aq_shutdown_agreed() */
    bool joined_elsewhere; /* a rank of another host has joined the job */
    bool frozen_elsewhere; /* one waits for a debugger */
};

/* what becomes of a line of aq_shutdown_say(): kind is its first word, the text ends in a newline
 * */
typedef void (*aq_shutdown_say_fn)(void *arg, const char *kind, const char *line, size_t len);

/** aq_shutdown_init - job area's ranks are looked after through child[], which the caller fills and
 * owns. */
void aq_shutdown_init(struct aq_shutdown *e, struct aq_jobarea *jobarea, pid_t *child);

/** aq_shutdown_exited - the process of slot has ended with this wait status (-1: not known). */
void aq_shutdown_exited(struct aq_shutdown *e, uint32_t slot, int status);

/** aq_shutdown_signalled - INT, TERM, ... came from outside; a second one kills at once. */
void aq_shutdown_signalled(struct aq_shutdown *e, int sig);

/** aq_shutdown_fail - end the job with at least code because of a failure already reported. */
void aq_shutdown_fail(struct aq_shutdown *e, int code);

/** aq_shutdown_begin - the job is ending, ask in ask_ms at the latest; the earliest date wins. */
void aq_shutdown_begin(struct aq_shutdown *e, uint64_t ask_ms);

/** aq_shutdown_agreed - with follow: the job's code is settled on all hosts; ask who is left here.
 * */
void aq_shutdown_agreed(struct aq_shutdown *e, int code);

/** aq_shutdown_now - kill who is left at the next step; who writes out its last words, only if
 * stopped. */
void aq_shutdown_now(struct aq_shutdown *e);

/** aq_shutdown_step - do what is due; returns milliseconds until the next step, -1 for none. */
int aq_shutdown_step(struct aq_shutdown *e);

/** aq_shutdown_defer_kill - for ms from now, who is done (AQ_RANK_ENDED) but still there is not
 * killed; any process. */
void aq_shutdown_defer_kill(struct aq_jobarea_rank *rank, uint64_t ms);

/** aq_shutdown_frozen - does a rank of this host wait for a debugger? Then no timeout applies. */
bool aq_shutdown_frozen(const struct aq_shutdown *e);

/** aq_shutdown_catches - does the process have a handler for sig? True if that cannot be found out.
 * */
bool aq_shutdown_catches(pid_t pid, int sig);

/** aq_shutdown_say - one line "*** KIND (host:pid): text" to stderr in one write. */
void aq_shutdown_say(const char *kind, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** aq_shutdown_say_to - hand those lines to fn instead of stderr; NULL: stderr again. */
void aq_shutdown_say_to(aq_shutdown_say_fn fn, void *arg);

#endif
