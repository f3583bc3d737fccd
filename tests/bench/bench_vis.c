/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_vis.c - rows of strided transfers: a 2-D section of a matrix of doubles, put to or fetched from rank 1.
 * Owns      nothing
 * Threads   one in every process
 * Uses      bench.h, gasnet_vis.h
 *
 * The section has n rows of n doubles; the matrix it is cut out of has rows twice as long, on both sides. In the
 * rows named _gaps its doubles lie in every second column, so that nothing is contiguous. The limits: the
 * two loops that a programmer would write over mapped memory; one contiguous put for each run; memcpy of as many
 * bytes.
 */
#include "bench.h"

#include <gasnet_vis.h>

#include <math.h>
#include <string.h>

struct aq_section {
    double *mine, *owner, *here; /* first element: local; remote as its owner and as this process sees it */
    size_t n, ld, step;          /* rows and columns; doubles from row to row and from column to column */
};

static struct aq_section aq_section_of(const struct aq_job *job, const struct aq_row *row, size_t step)
{
    const size_t n = (size_t)sqrt((double)(row->size / sizeof(double)));

    return (struct aq_section){
        .mine = (double *)(void *)job->buffer,
        .owner = (double *)(void *)(job->peer_owner + AQ_POOL_OFFSET),
        .here = job->peer_local == NULL ? NULL : (double *)(void *)(job->peer_local + AQ_POOL_OFFSET),
        .n = n,
        .ld = 2 * n,
        .step = step,
    };
}

static void aq_section_put(struct aq_job *job, const struct aq_section *s, uint64_t iters)
{
    const ptrdiff_t stride[2] = {(ptrdiff_t)(s->step * sizeof(double)), (ptrdiff_t)(s->ld * sizeof(double))};
    const size_t count[2] = {s->n, s->n};

    for (uint64_t i = 0; i < iters; i++) {
        gex_VIS_StridedPutBlocking(job->tm, 1, s->owner, stride, s->mine, stride, sizeof(double), count, 2, 0);
        aq_limit_compiler_barrier();
    }
}

static void aq_section_get(struct aq_job *job, const struct aq_section *s, uint64_t iters)
{
    const ptrdiff_t stride[2] = {(ptrdiff_t)(s->step * sizeof(double)), (ptrdiff_t)(s->ld * sizeof(double))};
    const size_t count[2] = {s->n, s->n};

    for (uint64_t i = 0; i < iters; i++) {
        gex_VIS_StridedGetBlocking(job->tm, s->mine, stride, 1, s->owner, stride, sizeof(double), count, 2, 0);
        aq_limit_compiler_barrier();
    }
}

/* What a programmer writes. Not inlined, so that the compiler knows no more than the library does. */
static __attribute__((noinline)) void aq_section_loop(double *restrict dst, const double *restrict src, size_t n,
                                                      size_t ld, size_t step)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            dst[i * ld + j * step] = src[i * ld + j * step];
}

static __attribute__((noinline)) void aq_section_rows(double *restrict dst, const double *restrict src, size_t n,
                                                      size_t ld)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            dst[i * ld + j] = src[i * ld + j];
}

static void aq_put_rows(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row, 1);

    aq_section_put(job, &s, iters);
}

static void aq_put_gaps(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row, 2);

    aq_section_put(job, &s, iters);
}

static void aq_get_rows(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row, 1);

    aq_section_get(job, &s, iters);
}

static void aq_get_gaps(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row, 2);

    aq_section_get(job, &s, iters);
}

static void aq_loop_put_rows(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row, 1);

    for (uint64_t i = 0; i < iters; i++) {
        aq_section_rows(s.here, s.mine, s.n, s.ld);
        aq_limit_compiler_barrier();
    }
}

static void aq_loop_put_gaps(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row, 2);

    for (uint64_t i = 0; i < iters; i++) {
        aq_section_loop(s.here, s.mine, s.n, s.ld, s.step);
        aq_limit_compiler_barrier();
    }
}

static void aq_loop_get_rows(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row, 1);

    for (uint64_t i = 0; i < iters; i++) {
        aq_section_rows(s.mine, s.here, s.n, s.ld);
        aq_limit_compiler_barrier();
    }
}

static void aq_loop_get_gaps(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row, 2);

    for (uint64_t i = 0; i < iters; i++) {
        aq_section_loop(s.mine, s.here, s.n, s.ld, s.step);
        aq_limit_compiler_barrier();
    }
}

static void aq_one_by_one_rows(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row, 1);

    for (uint64_t i = 0; i < iters; i++)
        for (size_t r = 0; r < s.n; r++)
            gex_RMA_PutBlocking(job->tm, 1, s.owner + r * s.ld, s.mine + r * s.ld, s.n * sizeof(double), 0);
}

static void aq_one_by_one_gaps(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row, 2);

    for (uint64_t i = 0; i < iters; i++)
        for (size_t r = 0; r < s.n; r++)
            for (size_t c = 0; c < s.n; c++)
                gex_RMA_PutBlocking(job->tm, 1, s.owner + r * s.ld + 2 * c, s.mine + r * s.ld + 2 * c,
                                    sizeof(double), 0);
}

static void aq_same_bytes(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row, 1);

    for (uint64_t i = 0; i < iters; i++) {
        memcpy(s.here, s.mine, row->size);
        aq_limit_compiler_barrier();
    }
}

const struct aq_row_kind aq_kind_strided_put = {
    .name = "strided_put", .limit_name = "copy loop", .subject = aq_put_rows, .limit = aq_loop_put_rows};
const struct aq_row_kind aq_kind_strided_put_gaps = {
    .name = "strided_put_gaps", .limit_name = "copy loop", .subject = aq_put_gaps, .limit = aq_loop_put_gaps};
const struct aq_row_kind aq_kind_strided_get = {
    .name = "strided_get", .limit_name = "copy loop", .subject = aq_get_rows, .limit = aq_loop_get_rows};
const struct aq_row_kind aq_kind_strided_get_gaps = {
    .name = "strided_get_gaps", .limit_name = "copy loop", .subject = aq_get_gaps, .limit = aq_loop_get_gaps};
const struct aq_row_kind aq_kind_strided_runs = {
    .name = "strided_by_runs", .limit_name = "a put for each run", .subject = aq_put_rows, .limit = aq_one_by_one_rows};
const struct aq_row_kind aq_kind_strided_runs_gaps = {
    .name = "strided_gaps_by_runs", .limit_name = "a put for each run", .subject = aq_put_gaps,
    .limit = aq_one_by_one_gaps};
const struct aq_row_kind aq_kind_strided_bytes = {
    .name = "strided_by_bytes", .limit_name = "memcpy of the same bytes", .subject = aq_put_rows,
    .limit = aq_same_bytes};
