/*
 * lu_check.c - the matrix, and the check of its factors.
 *
 * The elements are random numbers from 0 to 1 that depend on their place alone, with n added on the
 * diagonal. The factors must solve the system whose solution is (1, ..., 1), give the published
 * determinant, and be bit for bit those of a serial factorisation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lu.h"

#define MAX_ERROR         1e-12
#define MAX_LOG_DET_ERROR 1e-12
#define MAX_RESIDUAL      16 /* in units of rounding; what Linpack's rules allow */

/* Natural logarithm of the determinant, by n. */
static const struct {
    int n;
    double value;
} log_dets[] = {
    { 256, 1419.95289124323 },
    { 512, 3194.41910014678 },
    { 1024, 7098.24537703374 },
    { 3072, 24668.8153248001 },
};

static double element(int n, int i, int j)
{
    uint64_t z = (uint64_t)i * (uint64_t)n + (uint64_t)j + 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53 + (i == j ? n : 0);
}

void lu_matrix_block(double *block, int n, int b, int row, int column)
{
    for (int i = 0; i < b; i++)
        for (int j = 0; j < b; j++)
            block[i * b + j] = element(n, row * b + i, column * b + j);
}

/* Finds row i of the factors up to block column: returns its address. */
static const double *row_of(const double *a, int nb, int b, int i, int column)
{
    const size_t block = (size_t)(i / b) * (size_t)nb + (size_t)column;

    return a + block * (size_t)b * (size_t)b + (size_t)(i % b) * (size_t)b;
}

/* Solves x = U^-1 L^-1 x. */
static void solve(const double *a, int n, int b, double *x)
{
    const int nb = n / b;

    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            x[i] -= row_of(a, nb, b, i, j / b)[j % b] * x[j];
    for (int i = n - 1; i >= 0; i--) {
        for (int j = n - 1; j > i; j--)
            x[i] -= row_of(a, nb, b, i, j / b)[j % b] * x[j];
        x[i] /= row_of(a, nb, b, i, i / b)[i % b];
    }
}

static void row_sums(int n, double *sums)
{
    for (int i = 0; i < n; i++) {
        sums[i] = 0;
        for (int j = 0; j < n; j++)
            sums[i] += element(n, i, j);
    }
}

static double relative_residual(int n, const double *x, const double *right_side)
{
    double max = 0, norm = 0, largest = 0;

    for (int i = 0; i < n; i++) {
        double rest = right_side[i];

        for (int j = 0; j < n; j++)
            rest -= element(n, i, j) * x[j];
        max = fmax(max, fabs(rest));
        norm = fmax(norm, right_side[i]); /* all elements are positive: the row's sum */
        largest = fmax(largest, fabs(x[i]));
    }
    return max / (norm * largest * n * DBL_EPSILON);
}

static double log_det_error(int n, double value)
{
    for (size_t i = 0; i < sizeof(log_dets) / sizeof(log_dets[0]); i++)
        if (log_dets[i].n == n)
            return fabs(value - log_dets[i].value) / log_dets[i].value;
    return 0;
}

/* Counts elements that differ from a factorisation by one rank; -1: no memory. */
static long compare_serial(const double *a, int n, int b)
{
    const int nb = n / b;
    const size_t size = (size_t)b * (size_t)b, blocks = (size_t)nb * (size_t)nb;
    double *serial = malloc(blocks * size * sizeof(double));
    long different = 0;

    if (serial == NULL)
        return -1;
    for (size_t at = 0; at < blocks; at++)
        lu_matrix_block(serial + at * size, n, b, (int)at / nb, (int)at % nb);
    lu_factor_serial(serial, nb, b);
    for (size_t at = 0; at < blocks * size; at++)
        different += memcmp(&serial[at], &a[at], sizeof(double)) != 0;
    free(serial);
    return different;
}

bool lu_check(const double *a, int n, int b, bool serial, struct lu_verdict *verdict_out)
{
    double *x = malloc((size_t)n * sizeof(double));
    double *right_side = malloc((size_t)n * sizeof(double));
    struct lu_verdict verdict = { .error = 0 };

    if (x != NULL && right_side != NULL) {
        row_sums(n, right_side);
        memcpy(x, right_side, (size_t)n * sizeof(double));
        solve(a, n, b, x);
        for (int i = 0; i < n; i++) {
            verdict.error = fmax(verdict.error, fabs(x[i] - 1));
            verdict.log_det += log(fabs(row_of(a, n / b, b, i, i / b)[i % b]));
        }
        verdict.residual = relative_residual(n, x, right_side);
        verdict.log_det_error = log_det_error(n, verdict.log_det);
        if (serial)
            verdict.different = compare_serial(a, n, b);
        /* written so that no comparison with a NaN passes */
        verdict.right = verdict.error <= MAX_ERROR && verdict.residual <= MAX_RESIDUAL
                        && verdict.log_det_error <= MAX_LOG_DET_ERROR && verdict.different == 0;
        *verdict_out = verdict;
    }
    const bool memory = x != NULL && right_side != NULL && verdict.different >= 0;

    free(x);
    free(right_side);
    return memory;
}
