/*
 * arrays-c.c - Global Arrays through its C interface. Rank 0 prints results, in lines that are the
 * same for every ARMCI. Numbers are small and whole, so that the order of additions does not
 * matter, except for the solvers.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ga.h"
#include "macdecls.h"

#define N 60

static int me, nproc;
static double one = 1, zero = 0;

static void say(const char *what, double value)
{
    if (me == 0)
        printf("%s %.10g\n", what, value);
}

static int square(const char *name)
{
    int dims[2] = { N, N };

    return NGA_Create(C_DBL, 2, dims, (char *)name, NULL);
}

/* Element (i, j) is 100 i + j, each rank its rows in turn. */
static void fill(int a)
{
    double row[N];
    int ld[1] = { N };

    for (int i = me; i < N; i += nproc) {
        int lo[2] = { i, 0 }, hi[2] = { i, N - 1 };

        for (int j = 0; j < N; j++)
            row[j] = 100 * i + j;
        NGA_Put(a, lo, hi, row, ld);
    }
    GA_Sync();
}

static double sum_of(int a)
{
    int ones = GA_Duplicate(a, (char *)"ones");
    double sum;

    GA_Fill(ones, &one);
    sum = GA_Ddot(a, ones);
    GA_Destroy(ones);
    return sum;
}

static void patches(void)
{
    int a = square("a"), b = GA_Duplicate(a, "b");
    int lo[2] = { 3, 5 }, hi[2] = { 40, 44 }, ld[1] = { 40 };
    double *buffer = calloc(N * N, sizeof(double)), two = 2, three = 3;
    int skip[2] = { 3, 2 }, slo[2] = { 0, 0 }, shi[2] = { N - 1, N - 1 }, sld[1] = { N / 2 };
    int plo[2] = { -4, 50 }, phi[2] = { 5, 65 }, pld[1] = { 16 };
    ga_nbhdl_t handle;

    fill(a);
    say("sum", sum_of(a));
    NGA_Get(a, lo, hi, buffer, ld);
    say("got", buffer[40 * 37 + 39]);
    GA_Sync();
    NGA_Acc(a, lo, hi, buffer, ld, &two);
    GA_Sync();
    say("accumulated by all", sum_of(a) / nproc);
    GA_Add(&two, a, &three, a, b);
    say("added", sum_of(b) / nproc);
    GA_Sync();
    NGA_Strided_get(a, slo, shi, skip, buffer, sld);
    say("strided", buffer[15 * 30 + 7]);
    NGA_Periodic_get(a, plo, phi, buffer, pld);
    say("periodic", buffer[3] + buffer[159]);
    GA_Sync();
    GA_Zero(b);
    for (int i = 0; i < N * N; i++)
        buffer[i] = i;
    if (me == 0) {
        NGA_NbPut(b, lo, hi, buffer, ld, &handle);
        NGA_NbWait(&handle);
    }
    GA_Sync();
    say("not blocking", sum_of(b));
    GA_Copy(a, b);
    GA_Transpose(a, b);
    NGA_Get(b, lo, hi, buffer, ld);
    say("transposed", buffer[41]);
    GA_Symmetrize(a);
    say("symmetric", sum_of(a) / nproc);
    GA_Destroy(a);
    GA_Destroy(b);
    free(buffer);
}

static void scattered(void)
{
    int a = square("s"), subscripts[200], *rows[100], index[2];
    double values[100], found;

    GA_Zero(a);
    for (int i = 0; i < 100; i++) {
        subscripts[2 * i] = i * 7 % N;
        subscripts[2 * i + 1] = i * 11 % N;
        rows[i] = &subscripts[2 * i];
        values[i] = i;
    }
    if (me == nproc - 1)
        NGA_Scatter(a, values, rows, 100);
    GA_Sync();
    say("scattered", sum_of(a));
    NGA_Scatter_acc(a, values, rows, 100, &one);
    GA_Sync();
    memset(values, 0, sizeof(values));
    NGA_Gather(a, values, rows, 100);
    say("gathered", (values[59] - 59) / nproc);
    NGA_Select_elem(a, (char *)"max", &found, index);
    say("largest", (found - 99) / nproc);
    say("its row", index[0]);
    GA_Destroy(a);
}

/* A counter for the turns, a mutex for a sum that is read and written. */
static void counters(void)
{
    int dims[1] = { 3 }, at[1] = { 0 }, second[1] = { 1 }, ld[1] = { 1 };
    int a = NGA_Create(C_LONG, 1, dims, (char *)"counter", NULL);
    long drawn = 0, value, all;

    GA_Zero(a);
    GA_Create_mutexes(2);
    while (NGA_Read_inc(a, at, 1) < 300) {
        drawn++;
        GA_Lock(1);
        NGA_Get(a, second, second, &value, ld);
        value++;
        GA_Init_fence();
        NGA_Put(a, second, second, &value, ld);
        GA_Fence();
        GA_Unlock(1);
    }
    GA_Sync();
    all = drawn;
    GA_Lgop(&all, 1, (char *)"+");
    say("turns", (double)all);
    NGA_Get(a, second, second, &value, ld);
    say("under the mutex", (double)value);
    GA_Sync();
    GA_Destroy_mutexes();
    GA_Destroy(a);
}

static void ghosts(void)
{
    int dims[2] = { N, N }, width[2] = { 1, 2 }, lo[2], hi[2], ld[1], whole[2];
    int a = NGA_Create_ghosts(C_DBL, 2, dims, width, (char *)"ghosts", NULL);
    double *at, wrong = 0;

    fill(a);
    GA_Update_ghosts(a);
    NGA_Distribution(a, me, lo, hi);
    if (hi[0] >= lo[0]) {
        NGA_Access_ghosts(a, whole, &at, ld);
        for (int i = 0; i < whole[0]; i++)
            for (int j = 0; j < whole[1]; j++)
                wrong +=
                    at[i * ld[0] + j] != 100 * ((lo[0] - 1 + i + N) % N) + (lo[1] - 2 + j + N) % N;
        NGA_Release(a, lo, hi);
    }
    GA_Dgop(&wrong, 1, (char *)"+");
    say("wrong ghosts", wrong);
    GA_Destroy(a);
}

/* A number that changes when two elements change places. */
static double order_of(int a)
{
    int lo[2] = { 0, 0 }, hi[2] = { N - 1, N - 1 }, ld[1] = { N };
    double *whole = malloc(N * N * sizeof(double)), sum = 0;

    NGA_Get(a, lo, hi, whole, ld);
    for (int i = 0; i < N * N; i++)
        sum += whole[i] * (i % N % 7 + i / N % 11);
    GA_Sync();
    free(whole);
    return sum;
}

/* Every rank takes its patch of b from one row and two columns further in a, around the edges, and
 * adds it there twice; then it is put, and each rank has added to one diagonal. */
static void shifts(void)
{
    int a = square("from"), b = GA_Duplicate(a, (char *)"to"), lo[2], hi[2], first[2], last[2];
    int ld[1] = { N };
    double *patch = calloc(N * N, sizeof(double)), two = 2, half = 0.5;

    fill(a);
    NGA_Distribution(b, me, lo, hi);
    for (int k = 0; k < 2; k++) {
        first[k] = lo[k] + k + 1;
        last[k] = hi[k] + k + 1;
    }
    if (hi[0] >= lo[0]) {
        NGA_Periodic_get(a, first, last, patch, ld);
        NGA_Put(b, lo, hi, patch, ld);
    }
    GA_Sync();
    say("shifted", order_of(b));
    if (hi[0] >= lo[0])
        NGA_Periodic_acc(a, first, last, patch, ld, &two);
    GA_Sync();
    say("added where it was", order_of(a));
    for (int i = 0; i < N * N; i++)
        patch[i] = -patch[i];
    if (hi[0] >= lo[0])
        NGA_Periodic_put(a, first, last, patch, ld);
    GA_Sync();
    GA_Shift_diagonal(a, &half);
    say("put, and its diagonal shifted", order_of(a));
    GA_Destroy(a);
    GA_Destroy(b);
    free(patch);
}

/* The ghosts of one side after the other, and all of them while something else is done. */
static void ghosts_by_side(void)
{
    int dims[2] = { N, N }, width[2] = { 2, 1 }, lo[2], hi[2], ld[1], whole[2];
    int a = NGA_Create_ghosts(C_DBL, 2, dims, width, (char *)"sides", NULL);
    double *at, sum = 0;

    fill(a);
    for (int side = -1; side <= 1; side += 2)
        for (int k = 0; k < 2; k++)
            NGA_Update_ghost_dir(a, k, side, 0);
    GA_Sync();
    NGA_Distribution(a, me, lo, hi);
    if (hi[0] >= lo[0]) {
        NGA_Access_ghosts(a, whole, &at, ld);
        for (int j = 1; j < whole[1] - 1; j++) /* two rows above, one column to the right */
            sum += fabs(at[j] - (100 * ((lo[0] - 2 + N) % N) + (lo[1] - 1 + j)));
        for (int i = 2; i < whole[0] - 2; i++)
            sum += fabs(at[i * ld[0] + whole[1] - 1] - (100 * (lo[0] - 2 + i) + (hi[1] + 1) % N));
        NGA_Release(a, lo, hi);
    }
    GA_Dgop(&sum, 1, (char *)"+");
    say("wrong ghosts of a side", sum);
    GA_Destroy(a);
}

static void block_cyclic(void)
{
    int dims[2] = { N, N }, block[2] = { 7, 9 }, a = GA_Create_handle();

    GA_Set_data(a, 2, dims, C_DBL);
    GA_Set_block_cyclic(a, block);
    GA_Allocate(a);
    fill(a);
    say("block-cyclic", sum_of(a));
    GA_Destroy(a);
}

static void mirrored(void)
{
    int dims[2] = { N, N }, a = GA_Create_handle(), b = square("m");

    GA_Set_data(a, 2, dims, C_DBL);
    GA_Set_pgroup(a, GA_Pgroup_get_mirror());
    GA_Allocate(a);
    fill(b);
    GA_Copy(b, a);
    say("mirrored", GA_Ddot(a, a));
    GA_Destroy(a);
    GA_Destroy(b);
}

static void groups(void)
{
    int list[1024], n = 0, first = me < nproc / 2 ? 0 : nproc / 2, group, a, dims[1] = { 100 };
    const int end = me < nproc / 2 ? nproc / 2 : nproc;
    double sum;

    for (int p = first; p < end; p++)
        list[n++] = p;
    group = GA_Pgroup_create(list, n);
    a = NGA_Create_config(C_DBL, 1, dims, (char *)"group", NULL, group);
    GA_Fill(a, &one);
    sum = GA_Ddot(a, a);
    GA_Destroy(a);
    GA_Pgroup_destroy(group);
    GA_Dgop(&sum, 1, (char *)"+");
    say("groups", sum / nproc);
}

static void lists(void)
{
    int dims[1] = { N }, a = NGA_Create(C_INT, 1, dims, (char *)"l", NULL),
        mask = GA_Duplicate(a, "mask");
    int b = GA_Duplicate(a, "b"), start = 5, inc = 3, count = 0, zero_int = 0, one_int = 1,
        values[N];
    int lo[1] = { 0 }, hi[1] = { N - 1 }, ld[1] = { 1 };

    GA_Patch_enum(a, 0, N - 1, &start, &inc);
    GA_Fill(mask, &zero_int);
    for (int i = 0; me == 0 && i < N; i += 4) {
        lo[0] = hi[0] = i;
        NGA_Put(mask, lo, hi, &one_int, ld);
    }
    GA_Sync();
    GA_Scan_add(a, b, mask, 0, N - 1, 0);
    lo[0] = 0;
    hi[0] = N - 1;
    NGA_Get(b, lo, hi, values, ld);
    say("scanned", values[3] + values[N - 1]);
    GA_Sync();
    GA_Zero(b);
    GA_Pack(a, b, mask, 0, N - 1, &count);
    NGA_Get(b, lo, hi, values, ld);
    say("packed", values[14] + count);
    for (int i = 0; i < N; i++)
        values[i] = -1;
    lo[0] = 0;
    if (me == nproc - 1)
        NGA_Put(a, lo, hi, values, ld);
    GA_Sync();
    GA_Unpack(b, a, mask, 0, N - 1, &count);
    NGA_Get(a, lo, hi, values, ld);
    say("unpacked", values[0] + 100 * values[N - 4] + 10000 * values[1] + count);
    GA_Sync();
    GA_Scan_copy(a, b, mask, 0, N - 1);
    NGA_Get(b, lo, hi, values, ld);
    say("copied along", values[7] + 100 * values[N - 1]);
    GA_Sync();
    GA_Scan_add(a, b, mask, 0, N - 1, 1);
    NGA_Get(b, lo, hi, values, ld);
    say("scanned without its own", values[7] + 100 * values[N - 1]);
    GA_Sync();
    GA_Destroy(a);
    GA_Destroy(b);
    GA_Destroy(mask);
}

static void algebra(void)
{
    int a = square("x"), b = square("y"), c = square("z"), dims[2] = { 1, N };
    int v = NGA_Create(C_DBL, 2, dims, (char *)"v", NULL);
    double row[N], values[N];
    int ld[1] = { N };

    GA_Sync();
    for (int i = me; i < N; i += nproc) {
        int lo[2] = { i, 0 }, hi[2] = { i, N - 1 };

        for (int j = 0; j < N; j++)
            row[j] = i == j ? N : (i + j) % 3;
        NGA_Put(a, lo, hi, row, ld);
    }
    GA_Sync();
    GA_Dgemm('N', 'T', N, N, N, 1.0, a, a, 0.0, c);
    say("product", sum_of(c));
    GA_Fill(v, &one);
    say("solved", GA_Solve(a, v));
    say("solution", floor(sum_of(v) * 1e6 + 0.5));
    GA_Copy(a, b);
    say("inverted", GA_Spd_invert(b));
    GA_Dgemm('N', 'N', N, N, N, 1.0, a, b, 0.0, c);
    say("unit", floor(sum_of(c) * 1e6 + 0.5));
    GA_Diag_std_seq(a, b, values);
    say("least eigenvalue", floor(values[0] * 1e6 + 0.5));
    say("greatest eigenvalue", floor(values[N - 1] * 1e6 + 0.5));
    GA_Destroy(a);
    GA_Destroy(b);
    GA_Destroy(c);
    GA_Destroy(v);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    GA_Initialize();
    MA_init(C_DBL, 2000000, 2000000);
    me = GA_Nodeid();
    nproc = GA_Nnodes();
    patches();
    scattered();
    counters();
    ghosts();
    shifts();
    ghosts_by_side();
    block_cyclic();
    mirrored();
    groups();
    lists();
    algebra();
    say("end", zero);
    GA_Terminate();
    MPI_Finalize();
    return 0;
}
