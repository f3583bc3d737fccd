/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_exit.h - how a process ends its job.
 * Owns      the process's exit state: the thread that ends it, the code; the exit() hook
 * Threads   any thread, any context (AM and signal handlers, HSLs held). The first caller in a
 *           process ends it; other threads wait for the end
 * States    running -> EXITING (code in the job area) -> FLUSHING -> ENDED -> process ended; see
 *           aq_jobarea.h
 * Promise   no function returns unless it says so, waits for a lock, or takes longer than
 *           GASNET_EXITTIMEOUT
 * Uses      other/spawn (job area, shutdown), core/aq_signal.h, base/aq_log.h
 */
#ifndef AQ_EXIT_H
#define AQ_EXIT_H

#include <stdbool.h>
#include <stdint.h>

/** aq_exit_init - after aq_spawn_init(): installs signal handlers and the exit() hook; honours
 * GASNET_FREEZE. */
void aq_exit_init(void);

/** aq_exit_fini - the job has ended, the process goes on: later exits do not concern the
 * library. */
void aq_exit_fini(void);

/** aq_exit_job - ends the whole job with code; what gasnet_exit() calls. */
_Noreturn void aq_exit_job(int code);

/** aq_exit_abort - ends the whole job after a fatal error whose message is already printed. */
_Noreturn void aq_exit_abort(int code);

/**
 * aq_exit_peer_lost - a system call or the network reports that a rank has ended. Ends the job.
 * rank  jobrank; what  the observation, for the message ("process_vm_readv: no such process")
 * Prints nothing if the job is shutting down: the peer has only been faster.
 */
_Noreturn void aq_exit_peer_lost(uint32_t rank, const char *what);

/** aq_exit_in_progress - returns true once this process or its job is shutting down. Any
 * context. */
bool aq_exit_in_progress(void);

/** aq_exit_is_explained - returns true once the job has a code other than 0, or its ranks were
 * asked to end: a signal changes nothing then, and needs no message. Any context. */
bool aq_exit_is_explained(void);

#endif
