/*
 * armci_add.c - dst += scale * src for the six accumulate types. Loops that the compiler makes
 * vectors of.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

int aq_armci_acc_type(int op)
{
    /* of the original ARMCI, and of ARMCI-MPI in its order: int, long, float, double, complex,
     * double complex */
    static const int others[] = { ARMCI_ACC_INT, ARMCI_ACC_LNG, ARMCI_ACC_FLT,
                                  ARMCI_ACC_DBL, ARMCI_ACC_CPL, ARMCI_ACC_DCP };

    if (op >= ARMCI_ACC_INT && op <= ARMCI_ACC_LNG)
        return op;
    return op >= 0 && op < (int)(sizeof(others) / sizeof(others[0])) ? others[op] : -1;
}

size_t aq_armci_acc_size(int type)
{
    switch (type) {
    case ARMCI_ACC_INT:
        return sizeof(int);
    case ARMCI_ACC_LNG:
        return sizeof(long);
    case ARMCI_ACC_FLT:
        return sizeof(float);
    case ARMCI_ACC_DBL:
        return sizeof(double);
    case ARMCI_ACC_CPL:
        return 2 * sizeof(float);
    default:
        return 2 * sizeof(double);
    }
}

/* Elements lie where the program has them: at any address, in memory that may have another type.
 * Sums of integers wrap around. A scale of one is left out: that is the common case. */
#define ADD_REAL(name, type, arithmetic)                                                      \
    typedef type __attribute__((aligned(1), may_alias)) name##_at;                            \
                                                                                              \
    static void add_##name(name##_at *restrict dst, const name##_at *restrict src, size_t n,  \
                           type scale)                                                        \
    {                                                                                         \
        if (scale == (type)1) {                                                               \
            for (size_t i = 0; i < n; i++)                                                    \
                dst[i] = (type)((arithmetic)dst[i] + (arithmetic)src[i]);                     \
        } else {                                                                              \
            for (size_t i = 0; i < n; i++)                                                    \
                dst[i] = (type)((arithmetic)dst[i] + (arithmetic)scale * (arithmetic)src[i]); \
        }                                                                                     \
    }

#define ADD_COMPLEX(name, type)                                                              \
    static void add_##name##_complex(name##_at *restrict dst, const name##_at *restrict src, \
                                     size_t n, type re, type im)                             \
    {                                                                                        \
        if (im == (type)0) {                                                                 \
            add_##name(dst, src, 2 * n, re);                                                 \
            return;                                                                          \
        }                                                                                    \
        for (size_t i = 0; i < 2 * n; i += 2) {                                              \
            const type a = src[i], b = src[i + 1];                                           \
                                                                                             \
            dst[i] += re * a - im * b;                                                       \
            dst[i + 1] += re * b + im * a;                                                   \
        }                                                                                    \
    }

ADD_REAL(int, int, unsigned)
ADD_REAL(long, long, unsigned long)
ADD_REAL(float, float, float)
ADD_REAL(double, double, double)
ADD_COMPLEX(float, float)
ADD_COMPLEX(double, double)

void aq_armci_add(int type, void *dst, const void *src, size_t n, const void *scale)
{
    const float_at *floats = scale;
    const double_at *doubles = scale;

    switch (type) {
    case ARMCI_ACC_INT:
        add_int(dst, src, n, *(const int_at *)scale);
        break;
    case ARMCI_ACC_LNG:
        add_long(dst, src, n, *(const long_at *)scale);
        break;
    case ARMCI_ACC_FLT:
        add_float(dst, src, n, floats[0]);
        break;
    case ARMCI_ACC_DBL:
        add_double(dst, src, n, doubles[0]);
        break;
    case ARMCI_ACC_CPL:
        add_float_complex(dst, src, n, floats[0], floats[1]);
        break;
    default:
        add_double_complex(dst, src, n, doubles[0], doubles[1]);
        break;
    }
}
