/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_ranges.h - a set of addresses, kept as sorted ranges that neither touch nor overlap.
 *
 * Threads   the caller's lock
 * Promise   without memory an address is left out of the set, never put in by mistake: users are
 *           correct with a smaller set, if slower
 * Uses      libc
 */
#ifndef AQ_FH_RANGES_H
#define AQ_FH_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct aq_fh_range {
    uintptr_t start, end; /* [start, end) */
};

struct aq_fh_ranges {
    struct aq_fh_range *range;
    size_t count, capacity;
};

/** aq_fh_ranges_add - put [start, end) in. */
void aq_fh_ranges_add(struct aq_fh_ranges *set, uintptr_t start, uintptr_t end);

/** aq_fh_ranges_remove - take [start, end) out, and the whole range around it if there is no memory
 * to split that. */
void aq_fh_ranges_remove(struct aq_fh_ranges *set, uintptr_t start, uintptr_t end);

/** aq_fh_ranges_contains - is all of [start, end) in the set? */
bool aq_fh_ranges_contains(const struct aq_fh_ranges *set, uintptr_t start, uintptr_t end);

/** aq_fh_ranges_clear - empty it and free its memory. */
void aq_fh_ranges_clear(struct aq_fh_ranges *set);

#endif
