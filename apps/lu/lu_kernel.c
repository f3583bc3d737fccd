/*
 * lu_kernel.c - operations of a factorisation on one block.
 *
 * Every rank, and the serial factorisation, uses these functions, so that the same operations in
 * the same order give the same bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "lu.h"

/* Without pivoting: the matrix is diagonally dominant. L has a unit diagonal, which is not
 * stored. */
void lu_kernel_factor(double *a, int b)
{
    for (int k = 0; k < b; k++)
        for (int i = k + 1; i < b; i++) {
            const double factor = a[i * b + k] / a[k * b + k];

            a[i * b + k] = factor;
            for (int j = k + 1; j < b; j++)
                a[i * b + j] -= factor * a[k * b + j];
        }
}

void lu_kernel_right(double *a, const double *diagonal, int b)
{
    for (int i = 0; i < b; i++)
        for (int k = 0; k < b; k++) {
            const double factor = a[i * b + k] / diagonal[k * b + k];

            a[i * b + k] = factor;
            for (int j = k + 1; j < b; j++)
                a[i * b + j] -= factor * diagonal[k * b + j];
        }
}

void lu_kernel_left(double *a, const double *diagonal, int b)
{
    for (int k = 0; k < b; k++)
        for (int i = k + 1; i < b; i++)
            for (int j = 0; j < b; j++)
                a[i * b + j] -= diagonal[i * b + k] * a[k * b + j];
}

/* Inlined with a constant side, so that a row of c stays in registers. */
static inline __attribute__((always_inline)) void update(double *restrict c,
                                                         const double *restrict left,
                                                         const double *restrict right, int b)
{
    for (int i = 0; i < b; i++)
        for (int k = 0; k < b; k++)
            for (int j = 0; j < b; j++)
                c[i * b + j] -= left[i * b + k] * right[k * b + j];
}

void lu_kernel_update(double *c, const double *left, const double *right, int b)
{
    if (b == 16)
        update(c, left, right, 16);
    else if (b == 32)
        update(c, left, right, 32);
    else
        update(c, left, right, b);
}
