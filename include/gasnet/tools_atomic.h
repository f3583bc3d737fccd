/*
 * tools_atomic.h - atomic integers in memory that this process can reach.
 *
 * Six families with the same operations: of the fastest width, of 32 and of 64 bits; each in two
 * strengths. "Regular" is atomic between the threads that the thread mode allows, so a program of
 * one thread pays for plain accesses only. "Strong" is always atomic: between processes, against
 * signal handlers, with threads that the library does not know.
 *
 *   gasnett_F_init(v)                            initialiser of a declaration
 *   gasnett_F_set(p, v, f), gasnett_F_read(p, f)
 *   gasnett_F_increment(p, f), _decrement(p, f)
 *   gasnett_F_decrement_and_test(p, f)           non-zero if the new value is 0
 *   gasnett_F_compare_and_swap(p, old, new, f)   non-zero if new was stored
 *   gasnett_F_swap(p, v, f)                      the old value
 *   gasnett_F_add(p, d, f), _subtract(p, d, f)   the new value
 *
 * with F one of atomic, atomic32, atomic64, strongatomic, strongatomic32, strongatomic64. f is a
 * constant that selects fences; without any there is no ordering at all. Any context.
 * Source: GASNet tools specification 1.20, atomics. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_TOOLS_ATOMIC_H
#define GASNET_TOOLS_ATOMIC_H 1

/* --- fences --- */

#define GASNETT_ATOMIC_NONE              0x00
#define GASNETT_ATOMIC_RMB_PRE           0x01
#define GASNETT_ATOMIC_WMB_PRE           0x02 /* the bit of GEX_FLAG_AD_REL */
#define GASNETT_ATOMIC_RMB_POST          0x04 /* the bit of GEX_FLAG_AD_ACQ */
#define GASNETT_ATOMIC_WMB_POST          0x08
#define GASNETT_ATOMIC_RMB_POST_IF_TRUE  0x10
#define GASNETT_ATOMIC_RMB_POST_IF_FALSE 0x20
#define GASNETT_ATOMIC_MB_PRE            (GASNETT_ATOMIC_RMB_PRE | GASNETT_ATOMIC_WMB_PRE)
#define GASNETT_ATOMIC_MB_POST           (GASNETT_ATOMIC_RMB_POST | GASNETT_ATOMIC_WMB_POST)
#define GASNETT_ATOMIC_REL               GASNETT_ATOMIC_WMB_PRE
#define GASNETT_ATOMIC_ACQ               GASNETT_ATOMIC_RMB_POST
#define GASNETT_ATOMIC_ACQ_IF_TRUE       GASNETT_ATOMIC_RMB_POST_IF_TRUE
#define GASNETT_ATOMIC_ACQ_IF_FALSE      GASNETT_ATOMIC_RMB_POST_IF_FALSE

/* --- ranges and widths --- */

#define GASNETT_HAVE_ATOMIC_CAS           1
#define GASNETT_HAVE_ATOMIC_ADD_SUB       1
#define GASNETT_HAVE_STRONGATOMIC_CAS     1
#define GASNETT_HAVE_STRONGATOMIC_ADD_SUB 1

/* --- types: may alias, so that a plain aligned integer can be used through a cast --- */

#if GASNETT_USE_GCC_ATTRIBUTE_MAYALIAS
#define AQ_TOOLS_ALIAS AQ_ATTR((__may_alias__))
#else
#define AQ_TOOLS_ALIAS
#endif

typedef struct gasnett_atomic32_s {
    uint32_t aq_value;
} AQ_TOOLS_ALIAS gasnett_atomic32_t;
typedef struct gasnett_atomic64_s {
    uint64_t aq_value;
} AQ_TOOLS_ALIAS gasnett_atomic64_t;
typedef gasnett_atomic32_t gasnett_strongatomic32_t;
typedef gasnett_atomic64_t gasnett_strongatomic64_t;

typedef gasnett_atomic32_t gasnett_atomic_t;
typedef gasnett_atomic32_t gasnett_strongatomic_t;
typedef uint32_t gasnett_atomic_val_t;
typedef int32_t gasnett_atomic_sval_t;

#define GASNETT_ATOMIC_MAX        ((gasnett_atomic_val_t)0xFFFFFFFFu)
#define GASNETT_ATOMIC_SIGNED_MIN ((gasnett_atomic_sval_t)(-2147483647 - 1))
#define GASNETT_ATOMIC_SIGNED_MAX ((gasnett_atomic_sval_t)2147483647)

/** gasnett_atomic_signed - what the value is as a signed number, two's complement. */
#define gasnett_atomic_signed(v) ((gasnett_atomic_sval_t)(gasnett_atomic_val_t)(v))

#define gasnett_atomic_init(v)    \
    {                             \
        (gasnett_atomic_val_t)(v) \
    }
#define gasnett_atomic32_init(v) \
    {                            \
        (uint32_t)(v)            \
    }
#define gasnett_atomic64_init(v) \
    {                            \
        (uint64_t)(v)            \
    }
#define gasnett_strongatomic_init(v) \
    {                                \
        (gasnett_atomic_val_t)(v)    \
    }
#define gasnett_strongatomic32_init(v) \
    {                                  \
        (uint32_t)(v)                  \
    }
#define gasnett_strongatomic64_init(v) \
    {                                  \
        (uint64_t)(v)                  \
    }

/* --- fences around an operation --- */

/* bits: 1 loads, 2 stores, on one side of f; real: 0 if no other thread can access the memory */
static inline AQ_UNUSED void aq_tools_fence(int bits, int real)
{
    if (bits == 0)
        return;
    if (!real)
        gasnett_compiler_fence();
    else if (bits == 3)
        gasnett_local_mb();
    else if (bits == 2)
        gasnett_local_wmb();
    else
        gasnett_local_rmb();
}

static inline AQ_UNUSED void aq_tools_pre(int f, int real)
{
    aq_tools_fence(f & 3, real);
}

static inline AQ_UNUSED void aq_tools_post(int f, int real)
{
    aq_tools_fence(f >> 2 & 3, real);
}

static inline AQ_UNUSED int aq_tools_post_bool(int f, int real, int result)
{
    aq_tools_post(f, real);
    if ((f & GASNETT_ATOMIC_RMB_POST_IF_TRUE) != 0 && result)
        aq_tools_fence(1, real);
    if ((f & GASNETT_ATOMIC_RMB_POST_IF_FALSE) != 0 && !result)
        aq_tools_fence(1, real);
    return result;
}

/* On x86-64 a locked instruction is a full fence for the processor. The order of the built-in only
 * keeps the compiler from moving accesses. */
#if PLATFORM_ARCH_X86_64
#define AQ_TOOLS_RMW_PRE(f)          gasnett_compiler_fence()
#define AQ_TOOLS_RMW_POST(f)         gasnett_compiler_fence()
#define AQ_TOOLS_RMW_BOOL(f, result) (gasnett_compiler_fence(), (result))
#define AQ_TOOLS_RMW_ORDER           __ATOMIC_SEQ_CST
#else
#define AQ_TOOLS_RMW_PRE(f)          aq_tools_pre((f), 1)
#define AQ_TOOLS_RMW_POST(f)         aq_tools_post((f), 1)
#define AQ_TOOLS_RMW_BOOL(f, result) aq_tools_post_bool((f), 1, (result))
#define AQ_TOOLS_RMW_ORDER           __ATOMIC_RELAXED
#endif

/* --- operations --- */

/* relaxed accesses, here and below: the fences that f selects are beside them */
#define AQ_TOOLS_ATOMIC_ACCESS(F, type, real)                                                  \
    static inline AQ_UNUSED void gasnett_##F##_set(volatile gasnett_##F##_t *p, type v, int f) \
    {                                                                                          \
        aq_tools_pre(f, real);                                                                 \
        __atomic_store_n(&p->aq_value, v, __ATOMIC_RELAXED);                                   \
        aq_tools_post(f, real);                                                                \
    }                                                                                          \
    static inline AQ_UNUSED type gasnett_##F##_read(const volatile gasnett_##F##_t *p, int f)  \
    {                                                                                          \
        type v;                                                                                \
                                                                                               \
        aq_tools_pre(f, real);                                                                 \
        v = __atomic_load_n(&p->aq_value, __ATOMIC_RELAXED);                                   \
        aq_tools_post(f, real);                                                                \
        return v;                                                                              \
    }                                                                                          \
    static inline AQ_UNUSED void gasnett_##F##_increment(volatile gasnett_##F##_t *p, int f)   \
    {                                                                                          \
        (void)gasnett_##F##_add(p, 1, f);                                                      \
    }                                                                                          \
    static inline AQ_UNUSED void gasnett_##F##_decrement(volatile gasnett_##F##_t *p, int f)   \
    {                                                                                          \
        (void)gasnett_##F##_subtract(p, 1, f);                                                 \
    }

#define AQ_TOOLS_ATOMIC_REAL(F, type)                                                             \
    static inline AQ_UNUSED type gasnett_##F##_add(volatile gasnett_##F##_t *p, type d, int f)    \
    {                                                                                             \
        type v;                                                                                   \
                                                                                                  \
        AQ_TOOLS_RMW_PRE(f);                                                                      \
        v = __atomic_add_fetch(&p->aq_value, d, AQ_TOOLS_RMW_ORDER);                              \
        AQ_TOOLS_RMW_POST(f);                                                                     \
        (void)f;                                                                                  \
        return v;                                                                                 \
    }                                                                                             \
    static inline AQ_UNUSED type gasnett_##F##_subtract(volatile gasnett_##F##_t *p, type d,      \
                                                        int f)                                    \
    {                                                                                             \
        return gasnett_##F##_add(p, (type)(0 - d), f);                                            \
    }                                                                                             \
    static inline AQ_UNUSED int gasnett_##F##_decrement_and_test(volatile gasnett_##F##_t *p,     \
                                                                 int f)                           \
    {                                                                                             \
        int zero;                                                                                 \
                                                                                                  \
        AQ_TOOLS_RMW_PRE(f);                                                                      \
        zero = __atomic_sub_fetch(&p->aq_value, 1, AQ_TOOLS_RMW_ORDER) == 0;                      \
        (void)f;                                                                                  \
        return AQ_TOOLS_RMW_BOOL(f, zero);                                                        \
    }                                                                                             \
    static inline AQ_UNUSED int gasnett_##F##_compare_and_swap(volatile gasnett_##F##_t *p,       \
                                                               type before, type after, int f)    \
    {                                                                                             \
        int stored;                                                                               \
                                                                                                  \
        AQ_TOOLS_RMW_PRE(f);                                                                      \
        stored = __atomic_compare_exchange_n(&p->aq_value, &before, after, 0, AQ_TOOLS_RMW_ORDER, \
                                             AQ_TOOLS_RMW_ORDER);                                 \
        (void)f;                                                                                  \
        return AQ_TOOLS_RMW_BOOL(f, stored);                                                      \
    }                                                                                             \
    static inline AQ_UNUSED type gasnett_##F##_swap(volatile gasnett_##F##_t *p, type v, int f)   \
    {                                                                                             \
        AQ_TOOLS_RMW_PRE(f);                                                                      \
        v = __atomic_exchange_n(&p->aq_value, v, AQ_TOOLS_RMW_ORDER);                             \
        AQ_TOOLS_RMW_POST(f);                                                                     \
        (void)f;                                                                                  \
        return v;                                                                                 \
    }                                                                                             \
    AQ_TOOLS_ATOMIC_ACCESS(F, type, 1)

#define AQ_TOOLS_ATOMIC_PLAIN(F, type)                                                          \
    static inline AQ_UNUSED type gasnett_##F##_add(volatile gasnett_##F##_t *p, type d, int f)  \
    {                                                                                           \
        type v;                                                                                 \
                                                                                                \
        aq_tools_pre(f, 0);                                                                     \
        v = (type)(p->aq_value + d);                                                            \
        p->aq_value = v;                                                                        \
        aq_tools_post(f, 0);                                                                    \
        return v;                                                                               \
    }                                                                                           \
    static inline AQ_UNUSED type gasnett_##F##_subtract(volatile gasnett_##F##_t *p, type d,    \
                                                        int f)                                  \
    {                                                                                           \
        return gasnett_##F##_add(p, (type)(0 - d), f);                                          \
    }                                                                                           \
    static inline AQ_UNUSED int gasnett_##F##_decrement_and_test(volatile gasnett_##F##_t *p,   \
                                                                 int f)                         \
    {                                                                                           \
        return aq_tools_post_bool(f, 0, gasnett_##F##_subtract(p, 1, f) == 0);                  \
    }                                                                                           \
    static inline AQ_UNUSED int gasnett_##F##_compare_and_swap(volatile gasnett_##F##_t *p,     \
                                                               type before, type after, int f)  \
    {                                                                                           \
        int same;                                                                               \
                                                                                                \
        aq_tools_pre(f, 0);                                                                     \
        same = p->aq_value == before;                                                           \
        if (same)                                                                               \
            p->aq_value = after;                                                                \
        return aq_tools_post_bool(f, 0, same);                                                  \
    }                                                                                           \
    static inline AQ_UNUSED type gasnett_##F##_swap(volatile gasnett_##F##_t *p, type v, int f) \
    {                                                                                           \
        type old;                                                                               \
                                                                                                \
        aq_tools_pre(f, 0);                                                                     \
        old = p->aq_value;                                                                      \
        p->aq_value = v;                                                                        \
        aq_tools_post(f, 0);                                                                    \
        return old;                                                                             \
    }                                                                                           \
    AQ_TOOLS_ATOMIC_ACCESS(F, type, 0)

AQ_TOOLS_ATOMIC_REAL(strongatomic, gasnett_atomic_val_t)
AQ_TOOLS_ATOMIC_REAL(strongatomic32, uint32_t)
AQ_TOOLS_ATOMIC_REAL(strongatomic64, uint64_t)
#if AQ_TOOLS_THREADS
AQ_TOOLS_ATOMIC_REAL(atomic, gasnett_atomic_val_t)
AQ_TOOLS_ATOMIC_REAL(atomic32, uint32_t)
AQ_TOOLS_ATOMIC_REAL(atomic64, uint64_t)
#else
AQ_TOOLS_ATOMIC_PLAIN(atomic, gasnett_atomic_val_t)
AQ_TOOLS_ATOMIC_PLAIN(atomic32, uint32_t)
AQ_TOOLS_ATOMIC_PLAIN(atomic64, uint64_t)
#endif

#endif
