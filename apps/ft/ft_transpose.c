/*
 * ft_transpose.c - a 3-D FFT over all ranks, with three ways to do its transpose.
 *
 * Each rank has whole planes, so two of the three dimensions can be transformed locally. Then
 * the field is redistributed, so that each rank has some rows of every plane, and the third
 * dimension is transformed. The methods differ in how much is sent at a time:
 *
 *   exchange  computes everything, then sends one message to each rank
 *   slabs     sends a plane's rows for one rank as soon as these are computed
 *   pencils   sends each row as soon as it is computed, and places it so that neighbours along
 *             the last dimension are one row apart instead of one slab
 *
 * Owns      the FFTW plans in struct ft_transform; the arrays belong to the caller
 * Threads   one
 * Uses      ft_comm.c, FFTW
 * See       C. Bell, D. Bonachea, R. Nishtala, K. Yelick: Optimizing Bandwidth Limited Problems
 *           Using One-Sided Communication and Overlap, 2005
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "ft.h"

/* ---- where things are --------------------------------------------------------------- */

static int my_planes(const struct ft_transform *tf)
{
    return ft_split_count(tf->planes, tf->rank);
}

/* Elements between neighbouring planes in the result of a rank. */
static size_t plane_stride(const struct ft_transform *tf, int rank)
{
    int rows = tf->method == FT_PENCILS ? 1 : ft_split_count(tf->rows, rank);

    return (size_t)rows * (size_t)tf->nx + (size_t)tf->pad;
}

/* Elements between neighbouring rows in the result. */
static size_t row_stride(const struct ft_transform *tf, int rank)
{
    if (tf->method == FT_PENCILS)
        return (size_t)tf->planes.total * plane_stride(tf, rank);
    return (size_t)tf->nx;
}

static ft_value *work_row(const struct ft_transform *tf, int plane, int row)
{
    return tf->work + ((size_t)plane * (size_t)tf->rows.total + (size_t)row) * (size_t)tf->nx;
}

/* Returns the buffer of the exchange's message for a rank. The message has the shape of the rank's
 * result. */
static ft_value *pack_of(const struct ft_transform *tf, int dest)
{
    size_t before =
        (size_t)ft_split_first(tf->rows, dest) * (size_t)tf->nx + (size_t)dest * (size_t)tf->pad;

    return tf->pack + (size_t)my_planes(tf) * before;
}

/* Returns the byte offset, in the memory of rank dest, of a row of this rank's plane; row counts
 * from dest's first row. */
static size_t place_of(const struct ft_transform *tf, int dest, int plane, int row)
{
    size_t global_plane = (size_t)(ft_split_first(tf->planes, tf->rank) + plane);
    size_t element = global_plane * plane_stride(tf, dest) + (size_t)row * row_stride(tf, dest);

    return tf->result_offset + element * sizeof(ft_value);
}

/* Returns the size of rank 0's share, which is the largest. */
size_t ft_transform_work_size(const struct ft_transform *tf)
{
    return (size_t)ft_split_count(tf->planes, 0) * (size_t)tf->rows.total * (size_t)tf->nx;
}

size_t ft_transform_pack_size(const struct ft_transform *tf)
{
    if (tf->method != FT_EXCHANGE)
        return 0;
    return ft_transform_work_size(tf)
           + (size_t)ft_split_count(tf->planes, 0) * (size_t)tf->ranks * (size_t)tf->pad;
}

size_t ft_transform_result_size(const struct ft_transform *tf)
{
    size_t planes = (size_t)tf->planes.total * plane_stride(tf, 0);

    return tf->method == FT_PENCILS ? (size_t)ft_split_count(tf->rows, 0) * planes : planes;
}

/* ---- plans -------------------------------------------------------------------------- */

/* Plans nx transforms of length n side by side; elements of one transform are stride apart. */
static fftw_plan plan_across(const struct ft_transform *tf, int n, size_t stride, ft_value *at,
                             int sign)
{
    return fftw_plan_many_dft(1, &n, tf->nx, at, NULL, (int)stride, 1, at, NULL, (int)stride, 1,
                              sign, FFTW_MEASURE);
}

bool ft_transform_plan(struct ft_transform *tf, int sign)
{
    ft_value *row_out = tf->method == FT_EXCHANGE ? tf->pack : tf->work;

    tf->plane_stride = plane_stride(tf, tf->rank);
    tf->row_stride = row_stride(tf, tf->rank);
    tf->along_rows = plan_across(tf, tf->rows.total, (size_t)tf->nx, tf->work, sign);
    tf->along_x = fftw_plan_dft_1d(tf->nx, tf->work, row_out, sign, FFTW_MEASURE);
    tf->along_planes = plan_across(tf, tf->planes.total, tf->plane_stride, tf->result, sign);
    return tf->along_rows != NULL && tf->along_x != NULL && tf->along_planes != NULL;
}

void ft_transform_destroy(struct ft_transform *tf)
{
    fftw_destroy_plan(tf->along_rows);
    fftw_destroy_plan(tf->along_x);
    fftw_destroy_plan(tf->along_planes);
}

/* ---- the two local dimensions and the transpose ------------------------------------- */

/* Returns the k-th destination. Each rank starts with itself, so at any k all destinations
 * differ. */
static int kth_dest(const struct ft_transform *tf, int k)
{
    return (tf->rank + k) % tf->ranks;
}

static void fft_along_rows(const struct ft_transform *tf, int plane)
{
    ft_value *at = work_row(tf, plane, 0);

    fftw_execute_dft(tf->along_rows, at, at);
}

static void fft_along_x(const struct ft_transform *tf, ft_value *in, ft_value *out)
{
    fftw_execute_dft(tf->along_x, in, out);
}

static void transpose_exchange(const struct ft_transform *tf)
{
    for (int plane = 0; plane < my_planes(tf); plane++) {
        fft_along_rows(tf, plane);
        for (int dest = 0; dest < tf->ranks; dest++) {
            int first = ft_split_first(tf->rows, dest);
            ft_value *out = pack_of(tf, dest) + (size_t)plane * plane_stride(tf, dest);

            for (int row = 0; row < ft_split_count(tf->rows, dest); row++)
                fft_along_x(tf, work_row(tf, plane, first + row), out + row * tf->nx);
        }
    }
    ft_comm_barrier_end();
    for (int k = 0; k < tf->ranks; k++) {
        int dest = kth_dest(tf, k);
        size_t elements = (size_t)my_planes(tf) * plane_stride(tf, dest);

        ft_comm_put(dest, place_of(tf, dest, 0, 0), pack_of(tf, dest), elements * sizeof(ft_value));
    }
}

static void transpose_slabs(const struct ft_transform *tf)
{
    for (int plane = 0; plane < my_planes(tf); plane++) {
        fft_along_rows(tf, plane);
        ft_comm_barrier_end();
        for (int k = 0; k < tf->ranks; k++) {
            int dest = kth_dest(tf, k);
            int rows = ft_split_count(tf->rows, dest);
            ft_value *slab = work_row(tf, plane, ft_split_first(tf->rows, dest));

            for (int row = 0; row < rows; row++)
                fft_along_x(tf, slab + row * tf->nx, slab + row * tf->nx);
            ft_comm_put(dest, place_of(tf, dest, plane, 0), slab,
                        (size_t)rows * (size_t)tf->nx * sizeof(ft_value));
        }
    }
}

static void transpose_pencils(const struct ft_transform *tf)
{
    for (int plane = 0; plane < my_planes(tf); plane++) {
        fft_along_rows(tf, plane);
        ft_comm_barrier_end();
        for (int k = 0; k < tf->ranks; k++) {
            int dest = kth_dest(tf, k);
            int first = ft_split_first(tf->rows, dest);

            for (int row = 0; row < ft_split_count(tf->rows, dest); row++) {
                ft_value *pencil = work_row(tf, plane, first + row);

                fft_along_x(tf, pencil, pencil);
                ft_comm_put(dest, place_of(tf, dest, plane, row), pencil,
                            (size_t)tf->nx * sizeof(ft_value));
            }
        }
    }
}

void ft_transform_run(struct ft_transform *tf)
{
    static void (*const transpose[FT_METHODS])(const struct ft_transform *) = {
        [FT_EXCHANGE] = transpose_exchange,
        [FT_SLABS] = transpose_slabs,
        [FT_PENCILS] = transpose_pencils,
    };

    transpose[tf->method](tf);
    ft_comm_put_wait(); /* puts of this rank are complete */
    ft_comm_barrier();  /* puts of all ranks are complete */
    double before = ft_comm_now();

    for (int row = 0; row < ft_split_count(tf->rows, tf->rank); row++) {
        ft_value *at = tf->result + (size_t)row * tf->row_stride;

        fftw_execute_dft(tf->along_planes, at, at);
    }
    tf->last_seconds += ft_comm_now() - before;
}

/* ---- counting and measuring --------------------------------------------------------- */

struct ft_counts ft_transform_counts(const struct ft_transform *tf)
{
    struct ft_counts counts = { .smallest = UINT64_MAX };
    uint64_t planes = (uint64_t)my_planes(tf);

    for (int dest = 0; dest < tf->ranks; dest++) {
        uint64_t rows = (uint64_t)ft_split_count(tf->rows, dest);
        uint64_t messages, elements; /* number of messages to dest, and elements of one message */

        switch (tf->method) {
        case FT_EXCHANGE:
            messages = 1;
            elements = planes * plane_stride(tf, dest);
            break;
        case FT_SLABS:
            messages = planes;
            elements = rows * (uint64_t)tf->nx;
            break;
        default:
            messages = planes * rows;
            elements = (uint64_t)tf->nx;
            break;
        }
        uint64_t bytes = elements * sizeof(ft_value);

        counts.messages += messages;
        counts.bytes += messages * bytes;
        counts.smallest = bytes < counts.smallest ? bytes : counts.smallest;
        counts.largest = bytes > counts.largest ? bytes : counts.largest;
    }
    return counts;
}

double ft_transform_alone(struct ft_transform *tf)
{
    struct ft_comm_stats *stats = ft_comm_stats();
    size_t planes = (size_t)my_planes(tf), nx = (size_t)tf->nx;
    size_t first = (size_t)ft_split_first(tf->planes, tf->rank);

    ft_comm_barrier();
    double before = stats->start + stats->completion;

    for (int k = 0; k < tf->ranks; k++) {
        int dest = kth_dest(tf, k);
        size_t rows = (size_t)ft_split_count(tf->rows, dest);
        size_t block = rows * nx * sizeof(ft_value);

        ft_comm_put(dest, tf->result_offset + first * block,
                    tf->work + planes * (size_t)ft_split_first(tf->rows, dest) * nx,
                    planes * block);
    }
    ft_comm_put_wait();
    double seconds = stats->start + stats->completion - before;

    ft_comm_barrier();
    return seconds;
}
