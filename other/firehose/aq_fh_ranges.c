/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_ranges.c - a set of addresses: a sorted array and binary search.
 */
#include "other/firehose/aq_fh_ranges.h"

#include <stdlib.h>
#include <string.h>

/* Index of the first range that ends after addr. */
static size_t aq_fh_ranges_after(const struct aq_fh_ranges *set, uintptr_t addr)
{
    size_t low = 0, high = set->count;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;

        if (set->range[mid].end > addr)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* Make the ranges [at, at+old) into fresh ranges at the same place, unset; false if there is no
 * memory. */
static bool aq_fh_ranges_resize(struct aq_fh_ranges *set, size_t at, size_t old, size_t fresh)
{
    const size_t count = set->count - old + fresh;

    if (count > set->capacity) {
        const size_t capacity = count + 16 + count / 2;
        struct aq_fh_range *more = realloc(set->range, capacity * sizeof(*more));

        if (more == NULL)
            return false;
        set->range = more;
        set->capacity = capacity;
    }
    if (set->count > at + old)
        memmove(&set->range[at + fresh], &set->range[at + old],
                (set->count - at - old) * sizeof(*set->range));
    set->count = count;
    return true;
}

void aq_fh_ranges_add(struct aq_fh_ranges *set, uintptr_t start, uintptr_t end)
{
    /* a range that ends at start is joined too */
    const size_t at = aq_fh_ranges_after(set, start != 0 ? start - 1 : 0);
    size_t past = at;

    for (; past < set->count && set->range[past].start <= end; past++) {
        if (set->range[past].start < start)
            start = set->range[past].start;
        if (set->range[past].end > end)
            end = set->range[past].end;
    }
    if (aq_fh_ranges_resize(set, at, past - at, 1))
        set->range[at] = (struct aq_fh_range){ start, end };
}

void aq_fh_ranges_remove(struct aq_fh_ranges *set, uintptr_t start, uintptr_t end)
{
    const size_t at = aq_fh_ranges_after(set, start);
    struct aq_fh_range left[2];
    size_t past = at, n = 0;

    while (past < set->count && set->range[past].start < end)
        past++;
    if (past == at)
        return;
    if (set->range[at].start < start)
        left[n++] = (struct aq_fh_range){ set->range[at].start, start };
    if (set->range[past - 1].end > end)
        left[n++] = (struct aq_fh_range){ end, set->range[past - 1].end };
    if (!aq_fh_ranges_resize(set, at, past - at, n)) {
        aq_fh_ranges_resize(set, at, past - at, 0); /* needs no memory */
        return;
    }
    memcpy(&set->range[at], left, n * sizeof(*left));
}

bool aq_fh_ranges_contains(const struct aq_fh_ranges *set, uintptr_t start, uintptr_t end)
{
    const size_t at = aq_fh_ranges_after(set, start);

    return at < set->count && set->range[at].start <= start && set->range[at].end >= end;
}

void aq_fh_ranges_clear(struct aq_fh_ranges *set)
{
    free(set->range);
    *set = (struct aq_fh_ranges){ 0 };
}
