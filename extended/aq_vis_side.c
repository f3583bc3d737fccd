/*
 * aq_vis_side.c - one end of a transfer as a stream of bytes.
 *
 * A position in a stream is a chunk and a byte of it. Two numbers are therefore enough for a
 * message to say where its bytes belong, and for a transfer to continue where it stopped. Strided
 * streams count their elements in the order of the dimensions; a position is converted to indices
 * by division, once for each call, not for each element.
 *
 * Threads   any; no state but the caller's
 * Uses      aq_vis.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_vis.h"

void aq_vis_side_of_shape(struct aq_vis_side *side, const struct aq_vis_shape *shape, bool is_dst,
                          size_t *count, ptrdiff_t *stride)
{
    unsigned levels = 0;

    *side = (struct aq_vis_side){ .form = AQ_VIS_STRIDED,
                                  .chunk = shape->elemsz,
                                  .base = is_dst ? shape->dst : shape->src,
                                  .count = count,
                                  .stride = stride };
    for (unsigned d = 0; d < shape->levels; d++) {
        const struct aq_vis_dim *dim = &shape->dim[d];
        const ptrdiff_t step = is_dst ? dim->dst : dim->src;

        if (levels == 0 && step == (ptrdiff_t)side->chunk) {
            side->chunk *= dim->count;
        } else if (levels > 0 && step == stride[levels - 1] * (ptrdiff_t)count[levels - 1]) {
            count[levels - 1] *= dim->count;
        } else {
            count[levels] = dim->count;
            stride[levels++] = step;
        }
    }
    side->levels = levels;
}

/* --- strided --- */

/* Returns the address of an element, and its indices. */
static uintptr_t aq_vis_element(const struct aq_vis_side *side, size_t number, size_t *index)
{
    uintptr_t at = side->base;

    for (unsigned d = 0; d < side->levels; d++) {
        index[d] = number % side->count[d];
        number /= side->count[d];
        at = aq_vis_move(at, side->stride[d], index[d]);
    }
    return at;
}

/* Returns the address of the element n further on in a row, and carries into the next
 * dimensions. */
static uintptr_t aq_vis_advance(const struct aq_vis_side *side, uintptr_t at, size_t *index,
                                size_t n)
{
    if (side->levels == 0)
        return at;
    at = aq_vis_move(at, side->stride[0], n);
    index[0] += n;
    for (unsigned d = 0; index[d] == side->count[d]; d++) {
        at = aq_vis_move(at, -side->stride[d], side->count[d]);
        index[d] = 0;
        if (d + 1 == side->levels)
            break; /* end of the stream */
        at += (uintptr_t)side->stride[d + 1];
        index[d + 1]++;
    }
    return at;
}

/* A fragment may have ended at the end of an element. */
static inline void aq_vis_settle_element(const struct aq_vis_side *side, struct aq_vis_pos *pos)
{
    if (pos->offset == side->chunk) {
        pos->offset = 0;
        pos->chunk++;
    }
}

/* Copies between a stream and a buffer. Inlined into both directions. */
static inline __attribute__((always_inline)) void aq_vis_run(uintptr_t at, char *buffer, size_t n,
                                                             bool gather)
{
    if (gather)
        aq_vis_copy_run(buffer, aq_vis_at(at), n);
    else
        aq_vis_copy_run(aq_vis_at(at), buffer, n);
}

static inline __attribute__((always_inline)) void aq_vis_strided(const struct aq_vis_side *side,
                                                                 struct aq_vis_pos *pos,
                                                                 char *buffer, size_t n,
                                                                 bool gather)
{
    const size_t size = side->chunk;
    const ptrdiff_t stride = side->levels != 0 ? side->stride[0] : 0;
    size_t index[AQ_VIS_LEVELS];
    uintptr_t at;

    aq_vis_settle_element(side, pos);
    at = aq_vis_element(side, pos->chunk, index);
    while (n > 0) {
        if (pos->offset != 0 || n < size) { /* part of an element */
            const size_t left = size - pos->offset, frag = n < left ? n : left;

            aq_vis_run(at + pos->offset, buffer, frag, gather);
            buffer += frag;
            n -= frag;
            pos->offset += frag;
            if (pos->offset < size)
                return;
            pos->offset = 0;
            pos->chunk++;
            at = aq_vis_advance(side, at, index, 1);
        } else { /* as much as the row has */
            const size_t row = side->levels != 0 ? side->count[0] - index[0] : 1;
            const size_t elems = n / size < row ? n / size : row;

            if (gather)
                aq_vis_copy_row(buffer, (ptrdiff_t)size, aq_vis_at(at), stride, elems, size);
            else
                aq_vis_copy_row(aq_vis_at(at), stride, buffer, (ptrdiff_t)size, elems, size);
            buffer += elems * size;
            n -= elems * size;
            pos->chunk += elems;
            at = aq_vis_advance(side, at, index, elems);
        }
    }
}

/* --- lists --- */

static inline size_t aq_vis_chunk_len(const struct aq_vis_side *side, size_t chunk)
{
    return side->form == AQ_VIS_VECTOR ? side->vector[chunk].gex_len : side->chunk;
}

static inline uintptr_t aq_vis_chunk_at(const struct aq_vis_side *side, size_t chunk)
{
    return side->form == AQ_VIS_VECTOR ? (uintptr_t)side->vector[chunk].gex_addr
                                       : (uintptr_t)side->addresses[chunk];
}

/* Chunks without bytes are skipped before a fragment, never after it: there may be no next
 * chunk. */
static inline void aq_vis_settle(const struct aq_vis_side *side, struct aq_vis_pos *pos)
{
    while (pos->offset == aq_vis_chunk_len(side, pos->chunk)) {
        pos->offset = 0;
        pos->chunk++;
    }
}

static inline __attribute__((always_inline)) void aq_vis_listed(const struct aq_vis_side *side,
                                                                struct aq_vis_pos *pos,
                                                                char *buffer, size_t n, bool gather)
{
    while (n > 0) {
        size_t left, frag;

        aq_vis_settle(side, pos);
        left = aq_vis_chunk_len(side, pos->chunk) - pos->offset;
        frag = n < left ? n : left;
        aq_vis_run(aq_vis_chunk_at(side, pos->chunk) + pos->offset, buffer, frag, gather);
        buffer += frag;
        n -= frag;
        pos->offset += frag;
    }
}

/* --- both --- */

void aq_vis_gather(const struct aq_vis_side *side, struct aq_vis_pos *pos, char *to, size_t n)
{
    if (side->form == AQ_VIS_STRIDED)
        aq_vis_strided(side, pos, to, n, true);
    else
        aq_vis_listed(side, pos, to, n, true);
}

void aq_vis_scatter(const struct aq_vis_side *side, struct aq_vis_pos *pos, const char *from,
                    size_t n)
{
    char *buffer = (char *)(uintptr_t)from; /* is only read */

    if (side->form == AQ_VIS_STRIDED)
        aq_vis_strided(side, pos, buffer, n, false);
    else
        aq_vis_listed(side, pos, buffer, n, false);
}

void aq_vis_skip(const struct aq_vis_side *side, struct aq_vis_pos *pos, size_t n)
{
    if (side->form != AQ_VIS_VECTOR) {
        const size_t from_chunk = pos->offset + n;

        pos->chunk += from_chunk / side->chunk;
        pos->offset = from_chunk % side->chunk;
        return;
    }
    while (n > 0) {
        size_t left, frag;

        aq_vis_settle(side, pos);
        left = aq_vis_chunk_len(side, pos->chunk) - pos->offset;
        frag = n < left ? n : left;
        pos->offset += frag;
        n -= frag;
    }
}

size_t aq_vis_next_run(const struct aq_vis_side *side, struct aq_vis_pos *pos, size_t max,
                       uintptr_t *address_out)
{
    size_t index[AQ_VIS_LEVELS], left, n;

    if (side->form == AQ_VIS_STRIDED) {
        aq_vis_settle_element(side, pos);
        *address_out = aq_vis_element(side, pos->chunk, index) + pos->offset;
    } else {
        aq_vis_settle(side, pos);
        *address_out = aq_vis_chunk_at(side, pos->chunk) + pos->offset;
    }
    left = aq_vis_chunk_len(side, pos->chunk) - pos->offset;
    n = left < max ? left : max;
    pos->offset += n;
    return n;
}
