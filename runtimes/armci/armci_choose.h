/*
 * armci_choose.h - the choice of a protocol: short puts as messages; a section packed, or its runs
 * one by one.
 *
 * Threads   the program's
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_ARMCI_CHOOSE_H
#define AQ_ARMCI_CHOOSE_H 1

#include <stdbool.h>

struct aq_armci_section;

/* Measures what the choice depends on. All ranks of the job are in this call, or go on to one that
 * serves others. */
void aq_armci_choose_start(void);

/* Returns true if a blocking put of the section goes in messages (armci_stream.h). */
bool aq_armci_by_messages(const struct aq_armci_section *section, int proc);

/* Returns true if the section, between ranks that share no memory, goes run by run. */
bool aq_armci_by_segments(const struct aq_armci_section *section, bool is_put);

#endif
