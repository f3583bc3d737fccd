/*
 * firehose_forget.h - for programs that change mappings in ways the library cannot notice.
 *
 * Registrations of the program's memory with the network's device are kept between transfers
 * (firehose), and dropped when the kernel tells that the memory is unmapped, moved or emptied.
 * docs/design/memory-watch.md lists the few changes that it does not tell of; and where it tells of
 * none (AQ_FIREHOSE_WATCH=malloc or client), this call does.
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
 * to the system. addr      any alignment: every page that is touched is forgotten, and kept out for
 *           a second, in which the change has to be made
 * nbytes    bytes; 0: nothing happens
 * Context   any thread, any time: before gex_Client_Init and in other conduits it does nothing. No
 *           transfer to or from the memory is under way. Not in an AM handler, not in a signal
 *           handler
 * Errors: none. Source: this library. Test: test_fh_permanent.
 */
AQ_PUBLIC void firehose_forget(const void *addr, size_t nbytes);

AQ_END_DECLS

#endif
