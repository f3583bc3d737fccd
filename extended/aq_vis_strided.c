/*
 * aq_vis_strided.c - strided copies within this process: shapes and the loops that copy them.
 *
 * The client's dimensions come in any order and number, with strides of any sign. Normalising drops
 * those of one item, turns negative strides of the destination round, sorts by them so that the
 * innermost loop writes where it has just written, and merges dimensions that are contiguous, or
 * equally spaced, on both sides. Then most shapes are a row or a plane of elements of a common
 * size.
 *
 * Threads   any; no state
 * Uses      aq_vis.h
 * See       GASNet-EX specification 0.19, VIS
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_vis.h"

#include "base/aq_log.h"

/* --- normalising --- */

/* Insert a dimension behind those whose destination stride is not larger. */
static void aq_vis_insert(struct aq_vis_shape *shape, const struct aq_vis_dim *dim)
{
    unsigned at = shape->levels++;

    for (; at > 0 && shape->dim[at - 1].dst > dim->dst; at--)
        shape->dim[at] = shape->dim[at - 1];
    shape->dim[at] = *dim;
}

/* Join what is evenly spaced on both sides. */
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

bool aq_vis_normalise(struct aq_vis_shape *shape, uintptr_t dst, const ptrdiff_t *dststrides,
                      uintptr_t src, const ptrdiff_t *srcstrides, size_t elemsz,
                      const size_t *count, size_t levels)
{
    shape->elemsz = elemsz;
    shape->levels = 0;
    for (size_t d = 0; d < levels; d++) {
        struct aq_vis_dim dim = { count[d], 0, 0 };

        if (dim.count == 0)
            return false;
        if (dim.count == 1)
            continue; /* its strides may be anything */
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
        aq_vis_insert(shape, &dim);
    }
    shape->dst = dst;
    shape->src = src;
    aq_vis_merge(shape);
    return true;
}

/* --- copying --- */

/* Strides that are multiples of this put every element of a row into the same few places of a
 * cache. */
#define AQ_VIS_CROWDED 4096

/* A row of elements of a size that the compiler knows: four at a time, loads before stores, unless
 * their lines would push each other out of the cache. */
static inline __attribute__((always_inline)) void aq_vis_row_of(char *dst, ptrdiff_t ds,
                                                                const char *src, ptrdiff_t ss,
                                                                size_t n, const size_t size)
{
    struct {
        char bytes[16];
    } a, b, c, d;

    if (AQ_LIKELY(((ds | ss) & (AQ_VIS_CROWDED - 1)) != 0)) {
        for (; n >= 4; n -= 4) {
            memcpy(&a, src, size);
            memcpy(&b, src + ss, size);
            memcpy(&c, src + 2 * ss, size);
            memcpy(&d, src + 3 * ss, size);
            memcpy(dst, &a, size);
            memcpy(dst + ds, &b, size);
            memcpy(dst + 2 * ds, &c, size);
            memcpy(dst + 3 * ds, &d, size);
            src += 4 * ss;
            dst += 4 * ds;
        }
    }
    for (; n > 0; n--) {
        memcpy(dst, src, size);
        src += ss;
        dst += ds;
    }
}

static inline __attribute__((always_inline)) void aq_vis_row_runs(char *dst, ptrdiff_t ds,
                                                                  const char *src, ptrdiff_t ss,
                                                                  size_t n, size_t size)
{
    for (; n > 0; n--) {
        aq_vis_copy_run(dst, src, size);
        src += ss;
        dst += ds;
    }
}

/* Runs of more than a line and less than what is worth a call each: whole lines, and the last line
 * once more from the end. */
#define AQ_VIS_CALL 1024

static inline __attribute__((always_inline)) void aq_vis_row_lines(char *dst, ptrdiff_t ds,
                                                                   const char *src, ptrdiff_t ss,
                                                                   size_t n, size_t size)
{
    for (; n > 0; n--) {
        for (size_t at = 0; at < size - 64; at += 64)
            memcpy(dst + at, src + at, 64);
        memcpy(dst + size - 64, src + size - 64, 64);
        src += ss;
        dst += ds;
    }
}

/* Runs that are: no test of the size in the loop. */
static inline __attribute__((always_inline)) void aq_vis_row_long(char *dst, ptrdiff_t ds,
                                                                  const char *src, ptrdiff_t ss,
                                                                  size_t n, size_t size)
{
    for (; n > 0; n--) {
        memcpy(dst, src, size);
        src += ss;
        dst += ds;
    }
}

void aq_vis_copy_row(char *dst, ptrdiff_t ds, const char *src, ptrdiff_t ss, size_t n, size_t size)
{
    switch (size) {
    case 1:
        aq_vis_row_of(dst, ds, src, ss, n, 1);
        break;
    case 2:
        aq_vis_row_of(dst, ds, src, ss, n, 2);
        break;
    case 4:
        aq_vis_row_of(dst, ds, src, ss, n, 4);
        break;
    case 8:
        aq_vis_row_of(dst, ds, src, ss, n, 8);
        break;
    case 16:
        aq_vis_row_of(dst, ds, src, ss, n, 16);
        break;
    default:
        if (size > 64 && size < AQ_VIS_CALL)
            aq_vis_row_lines(dst, ds, src, ss, n, size);
        else if (size > 64 && size < AQ_COPY_LARGE)
            aq_vis_row_long(dst, ds, src, ss, n, size);
        else
            aq_vis_row_runs(dst, ds, src, ss, n, size);
    }
}

/* A plane whose rows are read across: every line of the source holds elements of neighbouring rows,
 * so that a tile of it is read while its lines stay in the first cache. */
#define AQ_VIS_TILE 16

static inline __attribute__((always_inline)) void aq_vis_tiles_of(char *dst, const char *src,
                                                                  const struct aq_vis_dim *inner,
                                                                  const struct aq_vis_dim *outer,
                                                                  const size_t size)
{
    for (size_t i = 0; i < inner->count; i += AQ_VIS_TILE) {
        const size_t n = inner->count - i < AQ_VIS_TILE ? inner->count - i : AQ_VIS_TILE;
        char *to = aq_vis_at(aq_vis_move((uintptr_t)dst, inner->dst, i));
        const char *from = aq_vis_at(aq_vis_move((uintptr_t)src, inner->src, i));

        for (size_t k = outer->count; k > 0; k--) {
            aq_vis_row_of(to, inner->dst, from, inner->src, n, size);
            to += outer->dst;
            from += outer->src;
        }
    }
}

static inline __attribute__((always_inline)) void aq_vis_plane_of(char *dst, const char *src,
                                                                  const struct aq_vis_dim *inner,
                                                                  const struct aq_vis_dim *outer,
                                                                  const size_t size)
{
    if (outer->src < 64 && outer->src > -64 && inner->count > AQ_VIS_TILE
        && (inner->src >= 256 || inner->src <= -256)) {
        aq_vis_tiles_of(dst, src, inner, outer, size);
        return;
    }
    for (size_t k = outer->count; k > 0; k--) {
        aq_vis_row_of(dst, inner->dst, src, inner->src, inner->count, size);
        dst += outer->dst;
        src += outer->src;
    }
}

static void aq_vis_copy_plane(char *dst, const char *src, const struct aq_vis_dim *inner,
                              const struct aq_vis_dim *outer, size_t size)
{
    switch (size) {
    case 1:
        aq_vis_plane_of(dst, src, inner, outer, 1);
        return;
    case 2:
        aq_vis_plane_of(dst, src, inner, outer, 2);
        return;
    case 4:
        aq_vis_plane_of(dst, src, inner, outer, 4);
        return;
    case 8:
        aq_vis_plane_of(dst, src, inner, outer, 8);
        return;
    case 16:
        aq_vis_plane_of(dst, src, inner, outer, 16);
        return;
    }
    for (size_t k = outer->count; k > 0; k--) {
        aq_vis_copy_row(dst, inner->dst, src, inner->src, inner->count, size);
        dst += outer->dst;
        src += outer->src;
    }
}

/* Planes, counted up by the dimensions outside them. */
static void aq_vis_copy_planes(const struct aq_vis_shape *shape)
{
    const struct aq_vis_dim *dim = shape->dim;
    uintptr_t dst = shape->dst, src = shape->src;
    size_t index[AQ_VIS_LEVELS];
    unsigned d;

    for (d = 2; d < shape->levels; d++)
        index[d] = 0;
    do {
        aq_vis_copy_plane(aq_vis_at(dst), aq_vis_at(src), &dim[0], &dim[1], shape->elemsz);
        for (d = 2; d < shape->levels; d++) {
            dst += (uintptr_t)dim[d].dst;
            src += (uintptr_t)dim[d].src;
            if (++index[d] < dim[d].count)
                break;
            index[d] = 0;
            dst = aq_vis_move(dst, -dim[d].dst, dim[d].count);
            src = aq_vis_move(src, -dim[d].src, dim[d].count);
        }
    } while (d < shape->levels);
}

void aq_vis_copy_shape(const struct aq_vis_shape *shape)
{
    char *dst = aq_vis_at(shape->dst);
    const char *src = aq_vis_at(shape->src);

    switch (shape->levels) {
    case 0:
        aq_copy(dst, src, shape->elemsz);
        break;
    case 1:
        aq_vis_copy_row(dst, shape->dim[0].dst, src, shape->dim[0].src, shape->dim[0].count,
                        shape->elemsz);
        break;
    default:
        aq_vis_copy_planes(shape);
    }
}
