/*
 * armci_adder.h - an addition to mapped memory, under the owner's locks.
 *
 * Locks     each block of 16 KiB of a segment (a stretch) has one of its owner's 64 locks. Ranks
 *           that map the segment, and the owner's handler, hold it while they add there. An element
 *           belongs to the stretch of its first byte
 * Threads   any; an adder belongs to one
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_ARMCI_ADDER_H
#define AQ_ARMCI_ADDER_H 1

#include <stddef.h>

struct aq_armci_control;
struct aq_armci_lock;
struct aq_armci_peer;

/* The state of an addition. It holds at most one lock, that of the current stretch. */
struct aq_armci_adder {
    struct aq_armci_control *control;
    const char *base;
    int type;
    size_t size; /* of an element */
    const void *scale;
    struct aq_armci_lock *lock;
};

/* peer: whose memory it is. type: see aq_armci_acc_type(). end: gives the lock back. */
void aq_armci_adder_begin(struct aq_armci_adder *adder, const struct aq_armci_peer *peer, int type,
                          const void *scale);
void aq_armci_adder_add(struct aq_armci_adder *adder, char *dst, const char *src, size_t bytes);
void aq_armci_adder_end(struct aq_armci_adder *adder);

#endif
