/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_exit.h - the one way out of a job.
 * Owns      the process's exit state: who ends it, with which code; the exit() hook
 * Threads   any thread, any context (AM and signal handlers, HSLs held); the first caller in a
 *           process ends it, the others park
 * States    running -> EXITING (code on the job area) -> FLUSHING -> ENDED -> gone; see
 *           aq_jobarea.h
 * Promise   no call here returns unless it says so, waits for a lock, or outlives
 *           GASNET_EXITTIMEOUT
 * Uses      other/spawn (board, leaving the launcher), core/aq_signal.h, base/aq_log.h
 */
#ifndef AQ_EXIT_H
#define AQ_EXIT_H

#include <stdbool.h>
#include <stdint.h>

/** aq_exit_init - after aq_spawn_init(): signal handlers, exit() hook; honours GASNET_FREEZE. */
void aq_exit_init(void);

/** aq_exit_fini - the job has ended, the process goes on: exits are its own matter again. */
void aq_exit_fini(void);

/** aq_exit_job - end the whole job with code; what gasnet_exit() calls. */
_Noreturn void aq_exit_job(int code);

/** aq_exit_abort - end the whole job after a fatal error whose message is already printed. */
_Noreturn void aq_exit_abort(int code);

/**
 * aq_exit_peer_lost - a system call or the network says that a rank is gone.
 * rank  jobrank; what  the observation, for the message ("process_vm_readv: no such process")
 * Silent if the job is ending anyway: then the peer has only been faster.
 */
_Noreturn void aq_exit_peer_lost(uint32_t rank, const char *what);

/** aq_exit_in_progress - true once this process or its job is ending. Any context. */
bool aq_exit_in_progress(void);

#endif
