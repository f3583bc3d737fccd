/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_exit_internal.h - internal header of aq_exit.c and aq_signal.c.
 * Threads   any, signal handlers included
 */
#ifndef AQ_EXIT_INTERNAL_H
#define AQ_EXIT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

/** aq_exit_is_own_process - returns false in a child process that the rank has forked, which is
 * not part of the job. */
bool aq_exit_is_own_process(void);

/** aq_exit_asked - returns true if this process was asked by SIGQUIT to end, for another rank's
 * reason. */
bool aq_exit_asked(void);

/**
 * aq_exit_claim - become the thread that ends this process.
 * Returns true for the first caller, and for the same thread again (*again_out is then true);
 * false for all other threads, which should park.
 */
bool aq_exit_claim(bool *again_out);

/** aq_exit_is_claimed - returns true if a thread of this process is ending it. */
bool aq_exit_is_claimed(void);

/** aq_exit_park - blocks until the process ends. */
_Noreturn void aq_exit_park(void);

/** aq_exit_from_signal - as aq_exit_job(), but the thread may have been interrupted anywhere, in
 * stdio for instance. */
_Noreturn void aq_exit_from_signal(int code);

/** aq_exit_publish_crash - code is 128 + signal. The supervisor then prints no message of its
 * own. */
void aq_exit_publish_crash(int code);

/** aq_exit_set_frozen - while set, no timeout applies to the job. */
void aq_exit_set_frozen(bool frozen);

#endif
