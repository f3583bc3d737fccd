/*
 * armci_add.c - dst += scale * src for the six accumulate types.
 *
 * The compiler vectorises the loops: once for the processor that the library is compiled for, once
 * for AVX2. Both versions round alike, since neither fuses a product and a sum.
 *
 * Threads   any; no state
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

/* Elements have any alignment, and their memory may have another declared type. */
typedef int __attribute__((aligned(1), may_alias)) int_at;
typedef long __attribute__((aligned(1), may_alias)) long_at;
typedef float __attribute__((aligned(1), may_alias)) float_at;
typedef double __attribute__((aligned(1), may_alias)) double_at;

/* Sums of integers wrap around. A scale of 1, the common case, has a loop without a product. */
#define ADD_REAL(name, kind, attribute, type, arithmetic)                                     \
    attribute static void add_##name##_##kind(void *to, const void *from, size_t n,           \
                                              const void *scale_at)                           \
    {                                                                                         \
        name##_at *restrict dst = to;                                                         \
        const name##_at *restrict src = from;                                                 \
        const type scale = *(const name##_at *)scale_at;                                      \
                                                                                              \
        if (scale == (type)1) {                                                               \
            for (size_t i = 0; i < n; i++)                                                    \
                dst[i] = (type)((arithmetic)dst[i] + (arithmetic)src[i]);                     \
        } else {                                                                              \
            for (size_t i = 0; i < n; i++)                                                    \
                dst[i] = (type)((arithmetic)dst[i] + (arithmetic)scale * (arithmetic)src[i]); \
        }                                                                                     \
    }

#define ADD_COMPLEX(name, kind, attribute)                                                  \
    attribute static void add_##name##_complex_##kind(void *to, const void *from, size_t n, \
                                                      const void *scale_at)                 \
    {                                                                                       \
        name##_at *restrict dst = to;                                                       \
        const name##_at *restrict src = from;                                               \
        const name##_at *scale = scale_at;                                                  \
        const name re = scale[0], im = scale[1];                                            \
                                                                                            \
        if (im == (name)0) {                                                                \
            add_##name##_##kind(to, from, 2 * n, scale_at);                                 \
            return;                                                                         \
        }                                                                                   \
        for (size_t i = 0; i < 2 * n; i += 2) {                                             \
            const name a = src[i], b = src[i + 1];                                          \
                                                                                            \
            dst[i] += re * a - im * b;                                                      \
            dst[i + 1] += re * b + im * a;                                                  \
        }                                                                                   \
    }

#define ADD_ALL(kind, attribute)                                                       \
    ADD_REAL(int, kind, attribute, int, unsigned)                                      \
    ADD_REAL(long, kind, attribute, long, unsigned long)                               \
    ADD_REAL(float, kind, attribute, float, float)                                     \
    ADD_REAL(double, kind, attribute, double, double)                                  \
    ADD_COMPLEX(float, kind, attribute)                                                \
    ADD_COMPLEX(double, kind, attribute)                                               \
    /* in the order of the types' numbers */                                           \
    static void (*const adds_##kind[])(void *, const void *, size_t, const void *) = { \
        add_int_##kind,           add_double_##kind,         add_float_##kind,         \
        add_float_complex_##kind, add_double_complex_##kind, add_long_##kind           \
    };

ADD_ALL(plain, )
#if defined(__x86_64__)
ADD_ALL(avx2, __attribute__((target("avx2"))))
#endif

void aq_armci_add(int type, void *dst, const void *src, size_t n, const void *scale)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        adds_avx2[type - ARMCI_ACC_INT](dst, src, n, scale);
        return;
    }
#endif
    adds_plain[type - ARMCI_ACC_INT](dst, src, n, scale);
}
