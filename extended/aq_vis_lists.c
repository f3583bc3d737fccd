/*
 * aq_vis_lists.c - vector and indexed copies within this process.
 *
 * Two cursors walk the two lists; the shorter of the two remaining chunks is copied. Lists whose
 * chunks match, the usual case, are copied chunk by chunk.
 *
 * Threads   any; no state
 * Uses      aq_vis.h
 * See       GASNet-EX specification 0.19, VIS
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_vis.h"

size_t aq_vis_vector_size(size_t count, const gex_Memvec_t *list)
{
    size_t nbytes = 0;

    for (size_t i = 0; i < count; i++)
        nbytes += list[i].gex_len;
    return nbytes;
}

void aq_vis_copy_vector(const struct aq_vis_vector *dst, const struct aq_vis_vector *src)
{
    const gex_Memvec_t *to = dst->list, *to_end = to + dst->count;
    const gex_Memvec_t *from = src->list, *from_end = from + src->count;
    size_t to_left = 0, from_left = 0;
    uintptr_t to_at = 0, from_at = 0;

    for (;;) {
        size_t n;

        for (; to_left == 0; to++) {
            if (to == to_end)
                return;
            to_left = to->gex_len;
            to_at = (uintptr_t)to->gex_addr + (uintptr_t)dst->delta;
        }
        for (; from_left == 0; from++) {
            if (from == from_end)
                return;
            from_left = from->gex_len;
            from_at = (uintptr_t)from->gex_addr + (uintptr_t)src->delta;
        }
        n = to_left < from_left ? to_left : from_left;
        aq_vis_copy_run(aq_vis_at(to_at), aq_vis_at(from_at), n);
        to_at += n;
        from_at += n;
        to_left -= n;
        from_left -= n;
    }
}

/* --- indexed --- */

static inline char *aq_vis_entry(const struct aq_vis_indexed *side, size_t i)
{
    return aq_vis_at((uintptr_t)side->list[i] + (uintptr_t)side->delta);
}

/* Chunks match; a length that is a compile-time constant needs no test in the loop. */
static inline __attribute__((always_inline)) void aq_vis_entries_of(
    const struct aq_vis_indexed *dst, const struct aq_vis_indexed *src, const size_t size)
{
    /* local copies, which no store can change */
    const struct aq_vis_indexed to = *dst, from = *src;

    for (size_t i = 0; i < to.count; i++)
        memcpy(aq_vis_entry(&to, i), aq_vis_entry(&from, i), size);
}

static void aq_vis_copy_entries(const struct aq_vis_indexed *dst, const struct aq_vis_indexed *src)
{
    const size_t len = dst->len;

    switch (len) {
    case 1:
        aq_vis_entries_of(dst, src, 1);
        return;
    case 2:
        aq_vis_entries_of(dst, src, 2);
        return;
    case 4:
        aq_vis_entries_of(dst, src, 4);
        return;
    case 8:
        aq_vis_entries_of(dst, src, 8);
        return;
    case 16:
        aq_vis_entries_of(dst, src, 16);
        return;
    }
    for (size_t i = 0; i < dst->count; i++)
        aq_vis_copy_run(aq_vis_entry(dst, i), aq_vis_entry(src, i), len);
}

void aq_vis_copy_indexed(const struct aq_vis_indexed *dst, const struct aq_vis_indexed *src)
{
    size_t to = 0, from = 0, to_done = 0, from_done = 0;

    if (dst->len == src->len) {
        aq_vis_copy_entries(dst, src);
        return;
    }
    while (to < dst->count && from < src->count) {
        const size_t to_left = dst->len - to_done, from_left = src->len - from_done;
        const size_t n = to_left < from_left ? to_left : from_left;

        aq_vis_copy_run(aq_vis_entry(dst, to) + to_done, aq_vis_entry(src, from) + from_done, n);
        to_done += n;
        from_done += n;
        if (to_done == dst->len) {
            to_done = 0;
            to++;
        }
        if (from_done == src->len) {
            from_done = 0;
            from++;
        }
    }
}
