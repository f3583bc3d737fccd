/*
 * armci_ga.c - Global Arrays through its C interface, for aq-bench armci --ga: the same program is
 * linked with each ARMCI, and the runs take turns. A row is
 *     name|size|ns
 * where ns is the median time of an operation in rounds of some milliseconds. Rows of one rank are
 * rank 0's operations on memory of the last rank, while the others wait in GA_Sync.
 * Every result is verified: a wrong one ends the program with status 1.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_armci.h"
#include "ga.h"
#include "macdecls.h"

#define WIDTH    1024 /* columns of the array whose patches are strided */
#define EDGE     256  /* of the largest patch */
#define ROWS     (2 * EDGE)
#define ELEMENTS 1000
#define ROUNDS   15
#define ROUND_NS 3e6

typedef void (*op_fn)(void *state, long iters);

static int me, nproc;
static int failures;

static void expect(int is, const char *what)
{
    if (!is && failures++ < 5)
        fprintf(stderr, "armci_ga: rank %d: wrong: %s\n", me, what);
}

/* --- rows --- */

static void write_row(const char *name, long size, double ns)
{
    if (me == 0)
        printf("%s|%ld|%.1f\n", name, size, ns);
    fflush(stdout);
}

/* Of rank 0 alone. */
static void row_alone(const char *name, long size, op_fn op, void *state)
{
    const double ns = me == 0 ? bench_time((struct bench_side){ "", op, state }) : 0;

    GA_Sync();
    write_row(name, size, ns);
}

/* Rank 0's time of so many iterations of all ranks, ns. */
static double time_round(op_fn op, void *state, long iters)
{
    double ns;

    GA_Sync();
    ns = bench_now();
    op(state, iters);
    ns = bench_now() - ns;
    GA_Brdcst(&ns, sizeof(ns), 0);
    return ns;
}

static void row_together(const char *name, long size, op_fn op, void *state)
{
    const double goal = bench_quick ? ROUND_NS / 10 : ROUND_NS;
    const int rounds = bench_quick ? 3 : ROUNDS;
    double times[ROUNDS];
    long iters = 1;

    time_round(op, state, 1);
    while (iters < 1L << 20 && time_round(op, state, iters) < goal)
        iters *= 2;
    for (int i = 0; i < rounds; i++)
        times[i] = time_round(op, state, iters) / (double)iters;
    write_row(name, size, bench_middle(times, rounds));
}

/* --- patches --- */

struct patch {
    int array, lo[2], hi[2], ld[1];
    double *values, *back; /* rows * columns of them */
    long count, added;     /* elements; accumulates so far */
};

/* Rows by rows over the ranks, so that the last one has the last ROWS of them. */
static int create_rows(const char *name, int columns)
{
    int dims[2] = { nproc * ROWS, columns }, chunk[2] = { ROWS, columns };
    const int array = NGA_Create(C_DBL, 2, dims, (char *)name, chunk);
    int lo[2], hi[2];

    NGA_Distribution(array, nproc - 1, lo, hi);
    expect(lo[0] == (nproc - 1) * ROWS && hi[0] == nproc * ROWS - 1 && hi[1] == columns - 1,
           "the last rank has the last rows");
    GA_Zero(array);
    return array;
}

static struct patch create_patch(int array, int rows, int columns)
{
    const int first = (nproc - 1) * ROWS + 1;
    struct patch p = { .array = array,
                       .lo = { first, 0 },
                       .hi = { first + rows - 1, columns - 1 },
                       .ld = { columns },
                       .count = (long)rows * columns };

    p.values = malloc((size_t)p.count * sizeof(double));
    p.back = malloc((size_t)p.count * sizeof(double));
    for (long i = 0; i < p.count; i++)
        p.values[i] = (double)(i % 1021 + 1);
    return p;
}

static void destroy_patch(struct patch *p)
{
    free(p->values);
    free(p->back);
}

/* All have arrived when the time is taken. */
static void put_patch(void *state, long iters)
{
    struct patch *p = state;

    GA_Init_fence();
    for (long i = 0; i < iters; i++)
        NGA_Put(p->array, p->lo, p->hi, p->values, p->ld);
    GA_Fence();
    p->added = 0;
}

static void get_patch(void *state, long iters)
{
    struct patch *p = state;

    for (long i = 0; i < iters; i++)
        NGA_Get(p->array, p->lo, p->hi, p->back, p->ld);
}

static void acc_patch(void *state, long iters)
{
    struct patch *p = state;
    double two = 2;

    GA_Init_fence();
    for (long i = 0; i < iters; i++)
        NGA_Acc(p->array, p->lo, p->hi, p->values, p->ld, &two);
    GA_Fence();
    p->added += iters;
}

static void expect_patch(struct patch *p, const char *what)
{
    if (me != 0)
        return;
    for (long i = 0; i < p->count; i++)
        if (p->back[i] != p->values[i] * (double)(1 + 2 * p->added)) {
            expect(0, what);
            break;
        }
}

/* The last rank's memory has the patch, and zeros around it. */
static void expect_around(struct patch *p, int width)
{
    const double times = me == nproc - 1 ? 1 : 0;
    double *at, sum = 0;
    int ld[1], lo[2], hi[2];

    GA_Sync();
    NGA_Distribution(p->array, me, lo, hi);
    NGA_Access(p->array, lo, hi, &at, ld);
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < width; column++)
            sum += at[row * ld[0] + column];
    NGA_Release(p->array, lo, hi);
    for (long i = 0; i < p->count; i++)
        sum -= times * p->values[i];
    expect(sum == 0, "a put writes its patch and nothing else");
}

static void patch_rows(const char *of, int rows, int columns, int width)
{
    const int array = create_rows("patches", width);
    struct patch p = create_patch(array, rows, columns);
    char name[64];

    snprintf(name, sizeof(name), "put %s", of);
    row_alone(name, p.count * 8, put_patch, &p);
    expect_around(&p, width);
    snprintf(name, sizeof(name), "get %s", of);
    row_alone(name, p.count * 8, get_patch, &p);
    expect_patch(&p, "a get after a put");
    snprintf(name, sizeof(name), "acc %s", of);
    row_alone(name, p.count * 8, acc_patch, &p);
    if (me == 0)
        get_patch(&p, 1);
    expect_patch(&p, "a get after accumulates");
    GA_Sync();
    destroy_patch(&p);
    GA_Destroy(array);
}

static void patches(void)
{
    patch_rows("element", 1, 1, WIDTH);
    patch_rows("row of 128", 1, 128, WIDTH);
    patch_rows("64x64, contiguous", 64, 64, 64);
    patch_rows("64x64, strided", 64, 64, WIDTH);
    patch_rows("256x256, contiguous", EDGE, EDGE, EDGE);
    patch_rows("256x256, strided", EDGE, EDGE, WIDTH);
}

/* --- a counter --- */

static long draws;

static void draw(void *state, long iters)
{
    int at[1] = { nproc - 1 };

    for (long i = 0; i < iters; i++)
        NGA_Read_inc(*(int *)state, at, 1);
    draws += iters;
}

static void counter_rows(void)
{
    int dims[1] = { nproc }, chunk[1] = { 1 }, at[1] = { nproc - 1 }, ld[1] = { 1 };
    int array = NGA_Create(C_LONG, 1, dims, (char *)"counter", chunk);
    long drawn = 0, all;

    GA_Zero(array);
    row_alone("read_inc", 8, draw, &array);
    row_together("read_inc, all ranks", 8, draw, &array);
    GA_Sync();
    all = draws;
    GA_Lgop(&all, 1, (char *)"+");
    NGA_Get(array, at, at, &drawn, ld);
    expect(drawn == all, "the counter after all draws");
    GA_Sync();
    GA_Destroy(array);
}

/* --- elements --- */

struct elements {
    int array, subscripts[2 * ELEMENTS], *rows[ELEMENTS];
    double values[ELEMENTS], back[ELEMENTS];
};

static void scatter(void *state, long iters)
{
    struct elements *e = state;

    GA_Init_fence();
    for (long i = 0; i < iters; i++)
        NGA_Scatter(e->array, e->values, e->rows, ELEMENTS);
    GA_Fence();
}

static void gather(void *state, long iters)
{
    struct elements *e = state;

    for (long i = 0; i < iters; i++)
        NGA_Gather(e->array, e->back, e->rows, ELEMENTS);
}

/* Elements of all ranks. */
static void element_rows(void)
{
    struct elements *e = calloc(1, sizeof(*e));

    e->array = create_rows("elements", EDGE);
    for (int i = 0; i < ELEMENTS; i++) {
        e->rows[i] = &e->subscripts[2 * i];
        e->rows[i][0] = i * 389 % (nproc * ROWS);
        e->rows[i][1] = i % EDGE;
        e->values[i] = i + 1;
    }
    row_alone("scatter of 1000", ELEMENTS * 8, scatter, e);
    row_alone("gather of 1000", ELEMENTS * 8, gather, e);
    if (me == 0)
        expect(memcmp(e->values, e->back, sizeof(e->values)) == 0, "a gather after a scatter");
    GA_Destroy(e->array);
    free(e);
}

/* --- all ranks --- */

static void synchronise(void *state, long iters)
{
    (void)state;
    for (long i = 0; i < iters; i++)
        GA_Sync();
}

static void create_and_destroy(void *state, long iters)
{
    int dims[2] = { EDGE, EDGE };

    (void)state;
    for (long i = 0; i < iters; i++) {
        const int array = NGA_Create(C_DBL, 2, dims, (char *)"short-lived", NULL);

        expect(array != 0, "an array is created");
        GA_Destroy(array);
    }
}

static void update_ghosts(void *state, long iters)
{
    for (long i = 0; i < iters; i++)
        GA_Update_ghosts(*(int *)state);
}

/* Element (i, j) is 1000 i + j, ghosts too. */
static void expect_ghosts(int array, int n)
{
    int lo[2], hi[2], ld[1], whole[2], wrong = 0;
    double *at;

    NGA_Distribution(array, me, lo, hi);
    NGA_Access_ghosts(array, whole, &at, ld);
    for (int i = 0; i < whole[0]; i++)
        for (int j = 0; j < whole[1]; j++) {
            const int row = (lo[0] - 1 + i + n) % n, column = (lo[1] - 1 + j + n) % n;

            wrong += at[i * ld[0] + j] != 1000 * row + column;
        }
    NGA_Release(array, lo, hi);
    expect(wrong == 0, "ghosts");
}

static void ghost_rows(void)
{
    int dims[2] = { ROWS, ROWS }, width[2] = { 1, 1 }, ld[1] = { ROWS };
    int array = NGA_Create_ghosts(C_DBL, 2, dims, width, (char *)"ghosts", NULL);
    double *row = malloc(ROWS * sizeof(*row));

    for (int i = me; i < ROWS; i += nproc) {
        int lo[2] = { i, 0 }, hi[2] = { i, ROWS - 1 };

        for (int j = 0; j < ROWS; j++)
            row[j] = 1000 * i + j;
        NGA_Put(array, lo, hi, row, ld);
    }
    row_together("update of ghosts, 512x512", ROWS * 8, update_ghosts, &array);
    expect_ghosts(array, ROWS);
    GA_Sync();
    GA_Destroy(array);
    free(row);
}

/* --- dgemm --- */

struct product {
    int n, a, b, c;
};

static double left(int i, int k)
{
    return (i + k) % 7;
}

static double right(int k, int j)
{
    return (3 * k + j) % 5;
}

static void fill(int array, int n, double (*value)(int, int))
{
    int ld[1] = { n };
    double *row = malloc((size_t)n * sizeof(*row));

    for (int i = me; i < n; i += nproc) {
        int lo[2] = { i, 0 }, hi[2] = { i, n - 1 };

        for (int j = 0; j < n; j++)
            row[j] = value(i, j);
        NGA_Put(array, lo, hi, row, ld);
    }
    free(row);
}

static void multiply(void *state, long iters)
{
    const struct product *p = state;

    for (long i = 0; i < iters; i++)
        GA_Dgemm('n', 'n', p->n, p->n, p->n, 1.0, p->a, p->b, 0.0, p->c);
}

/* A sample of the elements, the exact ones. */
static void expect_product(const struct product *p)
{
    int ld[1] = { 1 };

    for (int s = me; s < 256; s += nproc) {
        int at[2] = { s * 37 % p->n, s * 101 % p->n };
        double found, sum = 0;

        for (int k = 0; k < p->n; k++)
            sum += left(at[0], k) * right(k, at[1]);
        NGA_Get(p->c, at, at, &found, ld);
        expect(found == sum, "a product");
    }
}

static void product_row(const char *name, int n)
{
    int dims[2] = { n, n };
    struct product p = { .n = n };

    p.a = NGA_Create(C_DBL, 2, dims, (char *)"a", NULL);
    p.b = GA_Duplicate(p.a, (char *)"b");
    p.c = GA_Duplicate(p.a, (char *)"c");
    fill(p.a, n, left);
    fill(p.b, n, right);
    GA_Zero(p.c);
    row_together(name, 8L * n * n, multiply, &p);
    expect_product(&p);
    GA_Sync();
    GA_Destroy(p.a);
    GA_Destroy(p.b);
    GA_Destroy(p.c);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    GA_Initialize();
    MA_init(C_DBL, 4000000, 4000000);
    me = GA_Nodeid();
    nproc = GA_Nnodes();
    bench_quick = argc > 1 && strcmp(argv[argc - 1], "quick") == 0;
    patches();
    counter_rows();
    element_rows();
    row_together("sync", 0, synchronise, NULL);
    row_together("create and destroy, 256x256", 8L * EDGE * EDGE, create_and_destroy, NULL);
    ghost_rows();
    product_row("dgemm 256", 256);
    if (!bench_quick)
        product_row("dgemm 512", 512);
    GA_Igop(&failures, 1, (char *)"+");
    GA_Terminate();
    MPI_Finalize();
    return failures != 0;
}
