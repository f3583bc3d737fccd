/*
 * aq_vis_strided.c - strided transfers: the client's dimensions made into a shape.
 *
 * The client's dimensions have any order, number and sign of strides. Normalising drops dimensions
 * of one item, reverses those with a negative stride at the destination, sorts them by that stride
 * so that the innermost loop writes consecutive addresses, and merges dimensions that are
 * contiguous, or equally spaced, on both sides. Most shapes are then a row or a plane of elements
 * of a common size.
 *
 * Threads   any; no state
 * Uses      aq_vis.h
 * See       GASNet-EX specification 0.19, VIS
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_vis.h"

#include "base/aq_log.h"

/* Inserts a dimension behind those whose destination stride is not larger. */
static void aq_vis_insert(struct aq_vis_shape *shape, const struct aq_vis_dim *dim)
{
    unsigned at = shape->levels++;

    for (; at > 0 && shape->dim[at - 1].dst > dim->dst; at--)
        shape->dim[at] = shape->dim[at - 1];
    shape->dim[at] = *dim;
}

/* Merges dimensions that are equally spaced on both sides. Requires that all are sorted. */
static void aq_vis_merge(struct aq_vis_shape *shape)
{
    const unsigned levels = shape->levels;
    struct aq_vis_dim *dim = shape->dim;
    unsigned last = 0, i = 0;

    for (; i < levels; i++) { /* into the element */
        if (dim[i].dst != (ptrdiff_t)shape->elemsz || dim[i].src != (ptrdiff_t)shape->elemsz)
            break;
        shape->elemsz *= dim[i].count;
    }
    if (i == levels) {
        shape->levels = 0;
        return;
    }
    dim[0] = dim[i];
    for (i++; i < levels; i++) { /* into the dimension inside it */
        const ptrdiff_t inner = (ptrdiff_t)dim[last].count;

        if (dim[i].dst == dim[last].dst * inner && dim[i].src == dim[last].src * inner)
            dim[last].count *= dim[i].count;
        else
            dim[++last] = dim[i];
    }
    shape->levels = last + 1;
}

/* Adds a dimension of two or more items. Most dimensions are sorted already: these are appended to,
 * or merged with, the last one. Returns false if this one was not, so that aq_vis_merge() is needed
 * later. */
static inline bool aq_vis_add(struct aq_vis_shape *shape, const struct aq_vis_dim *dim)
{
    struct aq_vis_dim *last = &shape->dim[shape->levels - 1];

    if (shape->levels == 0) {
        if (dim->dst == (ptrdiff_t)shape->elemsz && dim->src == (ptrdiff_t)shape->elemsz) {
            shape->elemsz *= dim->count;
            return true;
        }
    } else if (AQ_UNLIKELY(dim->dst < last->dst)) {
        aq_vis_insert(shape, dim);
        return false;
    } else if (dim->dst == last->dst * (ptrdiff_t)last->count
               && dim->src == last->src * (ptrdiff_t)last->count) {
        last->count *= dim->count;
        return true;
    }
    shape->dim[shape->levels++] = *dim;
    return true;
}

bool aq_vis_normalise(struct aq_vis_shape *shape, uintptr_t dst, const ptrdiff_t *dststrides,
                      uintptr_t src, const ptrdiff_t *srcstrides, size_t elemsz,
                      const size_t *count, size_t levels)
{
    bool ordered = true;

    shape->elemsz = elemsz;
    shape->levels = 0;
    for (size_t d = 0; d < levels; d++) {
        struct aq_vis_dim dim = { count[d], 0, 0 };

        if (dim.count == 0)
            return false;
        if (dim.count == 1)
            continue; /* its strides have no meaning */
        dim.dst = dststrides[d];
        dim.src = srcstrides[d];
        if (dim.dst < 0) { /* begin at the other end */
            dst = aq_vis_move(dst, dim.dst, dim.count - 1);
            src = aq_vis_move(src, dim.src, dim.count - 1);
            dim.dst = -dim.dst;
            dim.src = -dim.src;
        }
        if (AQ_UNLIKELY(shape->levels == AQ_VIS_LEVELS)) {
            for (; d < levels; d++)
                if (count[d] == 0)
                    return false;
            aq_fatal("a strided transfer has more than %d dimensions of two or more elements: more "
                     "bytes than there are addresses",
                     AQ_VIS_LEVELS);
        }
        ordered &= aq_vis_add(shape, &dim);
    }
    shape->dst = dst;
    shape->src = src;
    if (AQ_UNLIKELY(!ordered))
        aq_vis_merge(shape);
    return true;
}
