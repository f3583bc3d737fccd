/*
 * aq_vis_plane.c - strided copies within this process: rows, planes and stacks of planes.
 *
 * Elements of a common size have loops in which that size is a constant; the list at the end
 * generates all of them. The loops exist three times: for every processor, and for processors with
 * vectors of 32 and of 64 bytes, which make copies of elements of that size and more faster.
 *
 * Threads   any; no state
 * Uses      aq_vis.h, base/aq_platform.h
 * See       GASNet-EX specification 0.19, VIS
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_vis.h"

#include "base/aq_platform.h"

/* Always inlined, so that the caller's constant size specialises the loop. */
#define AQ_VIS_LOOP static inline __attribute__((always_inline))

/* With strides that are multiples of this, all elements of a row share a few sets of the cache. */
#define AQ_VIS_CROWDED 4096

/* Thirty-two bytes at any address: one register with wide vectors, two without. */
typedef int64_t aq_vis_wide_t __attribute__((vector_size(32), aligned(1), may_alias));

/* A line at any address: one register of processors with vectors of 64 bytes, and of no other. */
typedef int64_t aq_vis_line_t __attribute__((vector_size(64), aligned(1), may_alias));

/* Copies an element of constant size. vector: bytes of a register that the processor has. With
 * vectors shorter than a line, loads come before stores, since both may share a set of the cache.
 */
AQ_VIS_LOOP void aq_vis_copy_of(char *dst, const char *src, const size_t size, const size_t vector)
{
    aq_vis_wide_t part[4];
    const size_t wide = size / sizeof(part[0]), rest = size % sizeof(part[0]);

    if (vector == sizeof(aq_vis_line_t) && size % vector == 0) {
        for (size_t at = 0; at < size; at += vector)
            *(aq_vis_line_t *)(void *)(dst + at) = *(const aq_vis_line_t *)(const void *)(src + at);
        return;
    }
    for (size_t i = 0; i < wide; i++)
        part[i] = *(const aq_vis_wide_t *)(const void *)(src + i * sizeof(part[0]));
    if (rest > 0)
        memcpy(dst + size - rest, src + size - rest, rest);
    for (size_t i = 0; i < wide; i++)
        *(aq_vis_wide_t *)(void *)(dst + i * sizeof(part[0])) = part[i];
}

/* The lines that a later element of a long row will write, asked for in time: what Intel's
 * processors prefetch by themselves does not keep up; Zen 5 does, and loses up to 40 percent by it.
 * Never beyond the row: another core may be writing there. */
#define AQ_VIS_AHEAD 16

/* Are elements of this size so many that lines are asked for? */
AQ_VIS_LOOP bool aq_vis_is_long_row(size_t n, const size_t size)
{
    return n >= (size < 64 ? 64 : 128) && !aq_cpu_is_zen4();
}

AQ_VIS_LOOP void aq_vis_prefetch(const char *dst, ptrdiff_t ds, const size_t size)
{
    for (size_t at = 0; at < size; at += 64)
        __builtin_prefetch(dst + AQ_VIS_AHEAD * ds + at, 1);
}

/* Four words, loads before stores. */
AQ_VIS_LOOP void aq_vis_four_of(char *dst, ptrdiff_t ds, const char *src, ptrdiff_t ss,
                                const size_t element)
{
    struct {
        char bytes[16];
    } a, b, c, d;
    /* the same; compilers that do not remove the calls with larger elements see that these fit */
    const size_t size = MIN(element, sizeof(a));

    memcpy(&a, src, size);
    memcpy(&b, src + ss, size);
    memcpy(&c, src + 2 * ss, size);
    memcpy(&d, src + 3 * ss, size);
    memcpy(dst, &a, size);
    memcpy(dst + ds, &b, size);
    memcpy(dst + 2 * ds, &c, size);
    memcpy(dst + 3 * ds, &d, size);
}

/* A row of words, four at a time, unless their lines would push each other out of the cache, or the
 * processor is as quick with one after the other. */
AQ_VIS_LOOP void aq_vis_row_of_words(char *dst, ptrdiff_t ds, const char *src, ptrdiff_t ss,
                                     size_t n, const size_t size)
{
    if (AQ_LIKELY(((ds | ss) & (AQ_VIS_CROWDED - 1)) != 0) && !(size == 16 && aq_cpu_is_zen4())) {
        if (size == 16 && aq_vis_is_long_row(n, size)) { /* shorter ones are many to a line */
            for (; n >= AQ_VIS_AHEAD + 4; n -= 4) {
                aq_vis_prefetch(dst, ds, size);
                aq_vis_prefetch(dst + 2 * ds, ds, size);
                aq_vis_four_of(dst, ds, src, ss, size);
                src += 4 * ss;
                dst += 4 * ds;
            }
        }
        for (; n >= 4; n -= 4) {
            aq_vis_four_of(dst, ds, src, ss, size);
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

/* Copies a row of elements of constant size. */
AQ_VIS_LOOP void aq_vis_row_of(char *dst, ptrdiff_t ds, const char *src, ptrdiff_t ss, size_t n,
                               const size_t size, const size_t vector)
{
    if (size <= 16) {
        aq_vis_row_of_words(dst, ds, src, ss, n, size);
        return;
    }
    if (aq_vis_is_long_row(n, size)) {
        for (; n >= AQ_VIS_AHEAD + 2; n -= 2) {
            aq_vis_prefetch(dst, ds, size);
            aq_vis_prefetch(dst + ds, ds, size);
            aq_vis_copy_of(dst, src, size, vector);
            aq_vis_copy_of(dst + ds, src + ss, size, vector);
            src += 2 * ss;
            dst += 2 * ds;
        }
    }
    for (; vector < sizeof(aq_vis_line_t) && n >= 2; n -= 2) {
        aq_vis_copy_of(dst, src, size, vector);
        aq_vis_copy_of(dst + ds, src + ss, size, vector);
        src += 2 * ss;
        dst += 2 * ds;
    }
    for (; n > 0; n--) {
        aq_vis_copy_of(dst, src, size, vector);
        src += ss;
        dst += ds;
    }
}

/* Copies runs of any size up to a line, and large ones, treated specially by aq_vis_copy_run(). */
AQ_VIS_LOOP void aq_vis_row_runs(char *dst, ptrdiff_t ds, const char *src, ptrdiff_t ss, size_t n,
                                 size_t size)
{
    for (; n > 0; n--) {
        aq_vis_copy_run(dst, src, size);
        src += ss;
        dst += ds;
    }
}

/* Runs of more than a line that are too short for a call each: copied by pairs of lines, and the
 * last line once more from the end. From Zen 4 on the C library copies by vectors of 64 bytes. */
#define AQ_VIS_CALL      1024
#define AQ_VIS_CALL_WIDE 8192
#define AQ_VIS_CALL_LINE 2048

AQ_VIS_LOOP void aq_vis_row_lines(char *dst, ptrdiff_t ds, const char *src, ptrdiff_t ss, size_t n,
                                  size_t size, const size_t vector)
{
    for (; n > 0; n--) {
        size_t at = 0;

        for (; at + 128 <= size; at += 128)
            aq_vis_copy_of(dst + at, src + at, 128, vector);
        if (size - at > 64)
            aq_vis_copy_of(dst + at, src + at, 64, vector);
        if (at < size)
            aq_vis_copy_of(dst + size - 64, src + size - 64, 64, vector);
        src += ss;
        dst += ds;
    }
}

/* Copies runs that are long enough for a call each: no test of the size in the loop. */
AQ_VIS_LOOP void aq_vis_row_long(char *dst, ptrdiff_t ds, const char *src, ptrdiff_t ss, size_t n,
                                 size_t size)
{
    for (; n > 0; n--) {
        memcpy(dst, src, size);
        src += ss;
        dst += ds;
    }
}

/* Copies a row of elements of any size; from size `call` on by the C library's memcpy(). */
AQ_VIS_LOOP void aq_vis_row_any(char *dst, ptrdiff_t ds, const char *src, ptrdiff_t ss, size_t n,
                                size_t size, size_t call, const size_t vector)
{
    if (size <= 64 || size >= AQ_COPY_LARGE)
        aq_vis_row_runs(dst, ds, src, ss, n, size);
    else if (size < call)
        aq_vis_row_lines(dst, ds, src, ss, n, size, vector);
    else
        aq_vis_row_long(dst, ds, src, ss, n, size);
}

/* A plane whose rows are read across: every line of the source holds elements of neighbouring rows,
 * so that a tile of it is read while its lines stay in the first cache. */
#define AQ_VIS_TILE 16

AQ_VIS_LOOP void aq_vis_tiles_of(char *dst, const char *src, const struct aq_vis_dim *inner,
                                 const struct aq_vis_dim *outer, const size_t size,
                                 const size_t vector)
{
    for (size_t i = 0; i < inner->count; i += AQ_VIS_TILE) {
        const size_t n = inner->count - i < AQ_VIS_TILE ? inner->count - i : AQ_VIS_TILE;
        char *to = aq_vis_at(aq_vis_move((uintptr_t)dst, inner->dst, i));
        const char *from = aq_vis_at(aq_vis_move((uintptr_t)src, inner->src, i));

        for (size_t k = outer->count; k > 0; k--) {
            aq_vis_row_of(to, inner->dst, from, inner->src, n, size, vector);
            to += outer->dst;
            from += outer->src;
        }
    }
}

AQ_VIS_LOOP void aq_vis_plane_of(char *dst, const char *src, const struct aq_vis_dim *inner,
                                 const struct aq_vis_dim *outer, const size_t size,
                                 const size_t vector)
{
    if (size <= 16 && outer->src < 64 && outer->src > -64 && outer->count > 1
        && inner->count > AQ_VIS_TILE && (inner->src >= 256 || inner->src <= -256)) {
        aq_vis_tiles_of(dst, src, inner, outer, size, vector);
        return;
    }
    for (size_t k = outer->count; k > 0; k--) {
        aq_vis_row_of(dst, inner->dst, src, inner->src, inner->count, size, vector);
        dst += outer->dst;
        src += outer->src;
    }
}

AQ_VIS_LOOP void aq_vis_plane_any(char *dst, const char *src, const struct aq_vis_dim *inner,
                                  const struct aq_vis_dim *outer, size_t size, size_t call,
                                  const size_t vector)
{
    for (size_t k = outer->count; k > 0; k--) {
        aq_vis_row_any(dst, inner->dst, src, inner->src, inner->count, size, call, vector);
        dst += outer->dst;
        src += outer->src;
    }
}

/* --- stacks of planes, counted up by the dimensions outside them --- */

/* Step to the next plane; false after the last one. */
AQ_VIS_LOOP bool aq_vis_next_plane(const struct aq_vis_shape *shape, size_t *index, uintptr_t *dst,
                                   uintptr_t *src)
{
    const struct aq_vis_dim *dim = shape->dim;

    for (unsigned d = 2; d < shape->levels; d++) {
        *dst += (uintptr_t)dim[d].dst;
        *src += (uintptr_t)dim[d].src;
        if (++index[d] < dim[d].count)
            return true;
        index[d] = 0;
        *dst = aq_vis_move(*dst, -dim[d].dst, dim[d].count);
        *src = aq_vis_move(*src, -dim[d].src, dim[d].count);
    }
    return false;
}

/* The outer dimension of a plane of one row. */
static const struct aq_vis_dim aq_vis_once = { 1, 0, 0 };

/* Elements of a size that the compiler knows. Or, with size 0, of shape->elemsz bytes, and from
 * `call` bytes on, copying is the C library's. */
AQ_VIS_LOOP void aq_vis_stack(const struct aq_vis_shape *shape, const size_t size, size_t call,
                              const size_t vector)
{
    const struct aq_vis_dim *inner = &shape->dim[0];
    const struct aq_vis_dim *outer = shape->levels > 1 ? &shape->dim[1] : &aq_vis_once;
    uintptr_t dst = shape->dst, src = shape->src;
    size_t index[AQ_VIS_LEVELS];

    for (unsigned d = 2; d < shape->levels; d++)
        index[d] = 0;
    do {
        if (size != 0)
            aq_vis_plane_of(aq_vis_at(dst), aq_vis_at(src), inner, outer, size, vector);
        else
            aq_vis_plane_any(aq_vis_at(dst), aq_vis_at(src), inner, outer, shape->elemsz, call,
                             vector);
    } while (aq_vis_next_plane(shape, index, &dst, &src));
}

/* The sizes that have loops of their own: words, and the short vectors and records that programs
 * have arrays of. */
#define AQ_VIS_WORDS(CASE)   CASE(1) CASE(2) CASE(4) CASE(8) CASE(12) CASE(16) CASE(24)
#define AQ_VIS_RECORDS(CASE) CASE(32) CASE(48) CASE(64) CASE(128)
#define AQ_VIS_CASE(size)                       \
    case size:                                  \
        aq_vis_stack(shape, (size), 0, vector); \
        break;

AQ_VIS_LOOP void aq_vis_copy_records(const struct aq_vis_shape *shape, size_t call,
                                     const size_t vector)
{
    switch (shape->elemsz) {
        AQ_VIS_RECORDS(AQ_VIS_CASE)
    default:
        aq_vis_stack(shape, 0, call, vector);
    }
}

static AQ_TARGET_LINE void aq_vis_copy_line(const struct aq_vis_shape *shape)
{
    aq_vis_copy_records(shape, AQ_VIS_CALL_LINE, 64);
}

static AQ_TARGET_WIDE void aq_vis_copy_wide(const struct aq_vis_shape *shape)
{
    aq_vis_copy_records(shape, AQ_VIS_CALL_WIDE, 32);
}

static void aq_vis_copy_narrow(const struct aq_vis_shape *shape)
{
    aq_vis_copy_records(shape, AQ_VIS_CALL, 16);
}

static void aq_vis_copy_planes(const struct aq_vis_shape *shape)
{
    const size_t vector = 16;

    switch (shape->elemsz) {
        AQ_VIS_WORDS(AQ_VIS_CASE)
    default:
        if (shape->elemsz < 32 || !aq_cpu_has_wide())
            aq_vis_copy_narrow(shape);
        else if (aq_cpu_is_zen4())
            aq_vis_copy_line(shape);
        else
            aq_vis_copy_wide(shape);
    }
}

void aq_vis_copy_row(char *dst, ptrdiff_t ds, const char *src, ptrdiff_t ss, size_t n, size_t size)
{
    struct aq_vis_shape shape;

    shape.dst = (uintptr_t)dst;
    shape.src = (uintptr_t)src;
    shape.elemsz = size;
    shape.levels = 1;
    shape.dim[0] = (struct aq_vis_dim){ n, ds, ss };
    aq_vis_copy_planes(&shape);
}

void aq_vis_copy_shape(const struct aq_vis_shape *shape)
{
    if (shape->levels == 0)
        aq_copy(aq_vis_at(shape->dst), aq_vis_at(shape->src), shape->elemsz);
    else
        aq_vis_copy_planes(shape);
}
