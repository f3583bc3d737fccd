/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_vis.c - rows of strided transfers: a 2-D section of a matrix of doubles, put to or fetched
 * from rank 1.
 * Owns      nothing
 * Threads   one in every process
 * Uses      bench.h, gasnet_vis.h
 *
 * The section has n rows of n doubles; the matrix it is cut out of has rows twice as long, on both
 * sides. In the rows named _gaps its doubles lie in every second column, so that nothing is
 * contiguous. The limits: the two loops that a programmer would write over mapped memory; one
 * contiguous put for each run; memcpy of as many bytes.
 *
 * The rows strided_1d to strided_4d put sections of one to four dimensions whose runs are as long
 * as the row's size, 16 KiB in all or 16 runs, with gaps in every dimension; _packed leaves none at
 * the destination. Their limit is the nest of loops, compiled for a run of that size where it is
 * short.
 */
#include "bench.h"

#include <gasnet_vis.h>

#include <math.h>
#include <string.h>

struct aq_section {
    double *ours, *owner,
        *self;          /* first element: local; remote as its owner and as this process sees it */
    size_t n, ld, step; /* rows and columns; doubles from row to row and from column to column */
};

static struct aq_section aq_section_of(const struct aq_job *job, const struct aq_row *row)
{
    const size_t n = (size_t)sqrt((double)(row->size / sizeof(double)));

    return (struct aq_section){
        .ours = (double *)(void *)job->buffer,
        .owner = (double *)(void *)(job->peer_owner + AQ_POOL_OFFSET),
        .self =
            job->peer_local == NULL ? NULL : (double *)(void *)(job->peer_local + AQ_POOL_OFFSET),
        .n = n,
        .ld = 2 * n,
        .step = strstr(row->kind->name, "_gaps") != NULL ? 2 : 1,
    };
}

static void aq_strided_put(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row);
    const ptrdiff_t stride[2] = { (ptrdiff_t)(s.step * sizeof(double)),
                                  (ptrdiff_t)(s.ld * sizeof(double)) };
    const size_t count[2] = { s.n, s.n };

    for (uint64_t i = 0; i < iters; i++) {
        gex_VIS_StridedPutBlocking(job->tm, 1, s.owner, stride, s.ours, stride, sizeof(double),
                                   count, 2, 0);
        aq_limit_compiler_barrier();
    }
}

static void aq_strided_get(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row);
    const ptrdiff_t stride[2] = { (ptrdiff_t)(s.step * sizeof(double)),
                                  (ptrdiff_t)(s.ld * sizeof(double)) };
    const size_t count[2] = { s.n, s.n };

    for (uint64_t i = 0; i < iters; i++) {
        gex_VIS_StridedGetBlocking(job->tm, s.ours, stride, 1, s.owner, stride, sizeof(double),
                                   count, 2, 0);
        aq_limit_compiler_barrier();
    }
}

/* What a programmer writes for each of the two shapes. Not inlined, so that the compiler knows no
 * more than the library does. */
static __attribute__((noinline)) void aq_loop_rows(double *restrict dst, const double *restrict src,
                                                   size_t n, size_t ld)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            dst[i * ld + j] = src[i * ld + j];
}

static __attribute__((noinline)) void aq_loop_gaps(double *restrict dst, const double *restrict src,
                                                   size_t n, size_t ld)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            dst[i * ld + 2 * j] = src[i * ld + 2 * j];
}

static void aq_loop(double *dst, const double *src, const struct aq_section *s, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++) {
        if (s->step == 1)
            aq_loop_rows(dst, src, s->n, s->ld);
        else
            aq_loop_gaps(dst, src, s->n, s->ld);
        aq_limit_compiler_barrier();
    }
}

static void aq_loop_put(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row);

    aq_loop(s.self, s.ours, &s, iters);
}

static void aq_loop_get(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row);

    aq_loop(s.ours, s.self, &s, iters);
}

/* A put for each contiguous run: a row, or a single double. */
static void aq_run_by_run(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row);
    const size_t run = s.step == 1 ? s.n : 1;

    for (uint64_t i = 0; i < iters; i++)
        for (size_t r = 0; r < s.n; r++)
            for (size_t c = 0; c < s.n; c += run)
                gex_RMA_PutBlocking(job->tm, 1, s.owner + r * s.ld + c * s.step,
                                    s.ours + r * s.ld + c * s.step, run * sizeof(double), 0);
}

static void aq_same_bytes(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row);

    for (uint64_t i = 0; i < iters; i++) {
        memcpy(s.self, s.ours, row->size);
        aq_limit_compiler_barrier();
    }
}

/* --- sections of one to four dimensions --- */

#define AQ_NEST_BYTES ((size_t)16 << 10)
#define AQ_NEST_MIN   16 /* runs */

struct aq_nest {
    size_t run, levels, count[4];
    ptrdiff_t dst[4],
        src[4]; /* strides, bytes; those beyond the levels are of loops that run once */
};

/* The dimensions are in the name: strided_Nd. */
static struct aq_nest aq_nest_of(const struct aq_row *row)
{
    static const size_t outer[5][4] = {
        { 1, 1, 1, 1 }, { 1, 1, 1, 1 }, { 1, 4, 1, 1 }, { 1, 4, 2, 1 }, { 1, 2, 2, 2 }
    };
    const bool packed = strstr(row->kind->name, "_packed") != NULL;
    struct aq_nest nest = { .run = row->size, .levels = (size_t)(row->kind->name[8] - '0') };
    size_t runs = MAX(AQ_NEST_BYTES / row->size, AQ_NEST_MIN);
    ptrdiff_t dst = (ptrdiff_t)(packed ? row->size : 2 * row->size);
    ptrdiff_t src = (ptrdiff_t)(2 * row->size);

    for (int d = 3; d > 0; d--) {
        nest.count[d] = outer[nest.levels][d];
        runs /= nest.count[d];
    }
    nest.count[0] = runs;
    for (int d = 0; d < 4; d++) {
        nest.dst[d] = dst;
        nest.src[d] = src;
        dst = dst * (ptrdiff_t)nest.count[d] + (packed ? 0 : 64);
        src = src * (ptrdiff_t)nest.count[d] + 64;
    }
    return nest;
}

static void aq_nest_put(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_nest nest = aq_nest_of(row);

    for (uint64_t i = 0; i < iters; i++) {
        gex_VIS_StridedPutBlocking(job->tm, 1, job->peer_owner + AQ_POOL_OFFSET, nest.dst,
                                   job->buffer, nest.src, nest.run, nest.count, nest.levels, 0);
        aq_limit_compiler_barrier();
    }
}

static inline __attribute__((always_inline)) void aq_nest_row(unsigned char *restrict dst,
                                                              ptrdiff_t dst_step,
                                                              const unsigned char *restrict src,
                                                              ptrdiff_t src_step, size_t count,
                                                              const size_t run)
{
    for (; count > 0; count--) {
        memcpy(dst, src, run);
        dst += dst_step;
        src += src_step;
    }
}

static inline __attribute__((always_inline)) void aq_nest_copy(unsigned char *restrict dst,
                                                               const unsigned char *restrict src,
                                                               const struct aq_nest *nest,
                                                               const size_t run)
{
    const struct aq_nest n = *nest; /* so that no store makes the compiler load it anew */

    for (size_t l = 0; l < n.count[3]; l++)
        for (size_t k = 0; k < n.count[2]; k++)
            for (size_t j = 0; j < n.count[1]; j++)
                aq_nest_row(dst + (ptrdiff_t)l * n.dst[3] + (ptrdiff_t)k * n.dst[2]
                                + (ptrdiff_t)j * n.dst[1],
                            n.dst[0],
                            src + (ptrdiff_t)l * n.src[3] + (ptrdiff_t)k * n.src[2]
                                + (ptrdiff_t)j * n.src[1],
                            n.src[0], n.count[0], run);
}

static __attribute__((noinline)) void aq_nest_loop(unsigned char *dst, const unsigned char *src,
                                                   const struct aq_nest *nest)
{
    switch (nest->run) {
    case 8:
        aq_nest_copy(dst, src, nest, 8);
        break;
    case 16:
        aq_nest_copy(dst, src, nest, 16);
        break;
    case 32:
        aq_nest_copy(dst, src, nest, 32);
        break;
    case 64:
        aq_nest_copy(dst, src, nest, 64);
        break;
    default:
        aq_nest_copy(dst, src, nest, nest->run);
    }
}

static void aq_nest_limit(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_nest nest = aq_nest_of(row);

    for (uint64_t i = 0; i < iters; i++) {
        aq_nest_loop(job->peer_local + AQ_POOL_OFFSET, job->buffer, &nest);
        aq_limit_compiler_barrier();
    }
}

#define NEST(variable, row_name)          \
    const struct aq_row_kind variable = { \
        .name = row_name,                 \
        .limit_name = "copy loop",        \
        .subject = aq_nest_put,           \
        .limit = aq_nest_limit,           \
    }

NEST(aq_kind_strided_1d, "strided_1d");
NEST(aq_kind_strided_2d, "strided_2d");
NEST(aq_kind_strided_3d, "strided_3d");
NEST(aq_kind_strided_4d, "strided_4d");
NEST(aq_kind_strided_1d_packed, "strided_1d_packed");
NEST(aq_kind_strided_2d_packed, "strided_2d_packed");
NEST(aq_kind_strided_3d_packed, "strided_3d_packed");
NEST(aq_kind_strided_4d_packed, "strided_4d_packed");

const struct aq_row_kind aq_kind_strided_put = { .name = "strided_put",
                                                 .limit_name = "copy loop",
                                                 .subject = aq_strided_put,
                                                 .limit = aq_loop_put };
const struct aq_row_kind aq_kind_strided_put_gaps = { .name = "strided_put_gaps",
                                                      .limit_name = "copy loop",
                                                      .subject = aq_strided_put,
                                                      .limit = aq_loop_put };
const struct aq_row_kind aq_kind_strided_get = { .name = "strided_get",
                                                 .limit_name = "copy loop",
                                                 .subject = aq_strided_get,
                                                 .limit = aq_loop_get };
const struct aq_row_kind aq_kind_strided_get_gaps = { .name = "strided_get_gaps",
                                                      .limit_name = "copy loop",
                                                      .subject = aq_strided_get,
                                                      .limit = aq_loop_get };
const struct aq_row_kind aq_kind_strided_runs = { .name = "strided_by_runs",
                                                  .limit_name = "a put for each run",
                                                  .subject = aq_strided_put,
                                                  .limit = aq_run_by_run };
const struct aq_row_kind aq_kind_strided_runs_gaps = { .name = "strided_gaps_by_runs",
                                                       .limit_name = "a put for each run",
                                                       .subject = aq_strided_put,
                                                       .limit = aq_run_by_run };
const struct aq_row_kind aq_kind_strided_bytes = { .name = "strided_by_bytes",
                                                   .limit_name = "memcpy of the same bytes",
                                                   .subject = aq_strided_put,
                                                   .limit = aq_same_bytes };
