/*
 * armci_stream.h - all accumulates to memory that is not mapped, and short puts that need a thread
 * of their target anyway: messages, which the target applies in the order of the calls.
 *
 * Promise   a call returns when its source may be reused. It waits for earlier puts that are no
 *           messages, not for messages. Fences, and all operations that are no messages, wait until
 *           the messages are applied
 * Threads   the program's; the handlers run on it or on the service thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_ARMCI_STREAM_H
#define AQ_ARMCI_STREAM_H 1

#include <stddef.h>

#include "armci.h"

struct aq_armci_peer;
struct aq_armci_section;

/* What a message does with its bytes: an accumulate type, or this: it stores them. */
#define AQ_ARMCI_STORE (-1)

/* Waits for those earlier operations on proc that messages do not follow by themselves. Call it
 * before each operation that sends messages. */
struct aq_armci_peer *aq_armci_stream_after(int proc);

/* Makes sure that an answer will say when all messages to proc so far are applied. */
void aq_armci_stream_ask(int proc);

/* Sends a section. scale: of an accumulate. */
void aq_armci_stream_section(int type, const void *scale, const struct aq_armci_section *section,
                             int proc);
/* Accumulates the segments of a descriptor that fit into one message, from number first on. Returns
 * their number; 0: a segment is too long for a message. */
int aq_armci_stream_list(int type, const void *scale, const armci_giov_t *giov, int first,
                         int proc);

#endif
