/*
 * aq_poll.h - progress for the layers above: one poll, and waiting with the interface's manners.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_POLL_H
#define AQ_POLL_H

#include <stdbool.h>

#include "gasnetex.h"

/* Deliver what has arrived and let the layer above move on; wakes other threads of this process
 * that sleep on what a handler may have changed. Ordinary context only.
 * Returns how many messages or operations were served. */
unsigned aq_poll(void);

/* As aq_poll(), for the service thread, whose polls are nobody's note to stand back. */
unsigned aq_poll_service(void);

/* As aq_wait_step(), for a reply that waits for room: serves replies only. */
void aq_wait_step_replies(struct aq_waiter *waiter);

/* Read the settings of waiting; once, when the ranks of this host are known. */
void aq_wait_init(void);

#endif
