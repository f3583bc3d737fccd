/*
 * aq_signal_name.h - names of signals, and back.
 * Threads   no state; async-signal-safe. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SIGNAL_NAME_H
#define AQ_SIGNAL_NAME_H

#include <stddef.h>

/** aq_signal_name - "SIGSEGV" for 11; "signal" for a signal without a name. */
const char *aq_signal_name(int sig);

/** aq_signal_parse - the number of "SIGSEGV", "segv" or "11", len bytes; 0 if the text is none of
 * these. */
int aq_signal_parse(const char *text, size_t len);

#endif
