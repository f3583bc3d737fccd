/*
 * firehose_forget.h - for programs that change mappings in ways the library cannot notice.
 *
 * Registrations of the program's memory with the network's device are kept between transfers
 * (firehose), and dropped when the kernel reports that the memory is unmapped, moved or emptied.
 * docs/design/memory-monitor.md lists the few changes that the kernel does not report. With
 * AQ_FIREHOSE_MONITOR=malloc or client the kernel reports none. The program reports such changes
 * by this call.
 *
 * This part is ibv's own. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef FIREHOSE_FORGET_H
#define FIREHOSE_FORGET_H 1

#include <stddef.h>

#include "gasnetex.h"

AQ_BEGIN_DECLS

/**
 * firehose_forget - the memory of [addr, addr+nbytes) is about to be unmapped, moved, or given back
 * to the system.
 * addr      any alignment. Registrations of every page that the range touches are dropped; the
 *           pages are not registered again for a second, in which the change has to be made
 * nbytes    bytes; 0: nothing happens
 * Context   any thread, any time: before gex_Client_Init and in other conduits it does nothing. No
 *           transfer to or from the memory is under way. Not in an AM handler, not in a signal
 *           handler
 * Errors: none. Source: this library. Test: test_fh_permanent.
 */
AQ_PUBLIC void firehose_forget(const void *addr, size_t nbytes);

AQ_END_DECLS

#endif
