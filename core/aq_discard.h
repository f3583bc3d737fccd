/*
 * aq_discard.h - gives pages of the own segment back to the system, for conduits.
 *
 * Threads   any
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_DISCARD_H
#define AQ_DISCARD_H

#include <stddef.h>

/** aq_discard_pages - [addr, addr+nbytes), whole pages of the own segment, get fresh pages when
 * they are touched next, here and at local ranks. No device may have them pinned. */
void aq_discard_pages(void *addr, size_t nbytes);

#endif
