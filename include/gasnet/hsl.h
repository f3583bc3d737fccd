/*
 * hsl.h - handler-safe locks: the only locks a handler may take.
 *
 * In par a lock is one 32-bit word: 0 free, 1 held, 2 held and a thread sleeps on it in the kernel.
 * In seq there is one thread and no library thread, so locking costs nothing; a debug build still
 * counts, to detect calls that are illegal while a lock is held.
 *
 * A debug build marks a lock as live, so that gex_HSL_Init recognises one. The mark of gex_HSL_Init
 * holds the lock's address: neither a copy nor memory that was never a lock passes for a live one.
 *
 * Source: GASNet-EX specification 0.19, Handler-safe locks. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_HSL_H
#define GASNET_HSL_H 1

AQ_BEGIN_DECLS

typedef struct gex_HSL_s {
    uint32_t word;
    uint32_t owner; /* debug: number of the owning thread; 0: free; UINT32_MAX: destroyed */
#if GASNET_DEBUG
    uint64_t mark; /* AQ_HSL_STATIC, or what aq_hsl_debug_init() stores; 0: destroyed */
#endif
} gex_HSL_t;

#if GASNET_DEBUG
#define AQ_HSL_STATIC 0x9d3ac1567be8240fu /* of no meaning */
#define GEX_HSL_INITIALIZER \
    {                       \
        0, 0, AQ_HSL_STATIC \
    }
#else
#define GEX_HSL_INITIALIZER \
    {                       \
        0, 0                \
    }
#endif

AQ_PUBLIC void aq_hsl_lock_slow(gex_HSL_t *hsl);
AQ_PUBLIC void aq_hsl_unlock_slow(gex_HSL_t *hsl);
AQ_PUBLIC void aq_hsl_debug_init(gex_HSL_t *hsl);                   /* before the rest is set */
AQ_PUBLIC void aq_hsl_debug_lock(const char *call, gex_HSL_t *hsl); /* before locking */
AQ_PUBLIC void aq_hsl_debug_owned(gex_HSL_t *hsl);                  /* after locking */
AQ_PUBLIC void aq_hsl_debug_unlock(gex_HSL_t *hsl);                 /* before unlocking */
AQ_PUBLIC void aq_hsl_debug_destroy(gex_HSL_t *hsl);

/** gex_HSL_Init - initialise a free lock where no static initialiser was used; once per lock, and
 * again only after gex_HSL_Destroy. */
static inline AQ_UNUSED void gex_HSL_Init(gex_HSL_t *hsl)
{
#if GASNET_DEBUG
    aq_hsl_debug_init(hsl);
#endif
    hsl->word = 0;
    hsl->owner = 0;
}

/** gex_HSL_Destroy - end the use of a lock, which must be free; before its memory is used for
 * another. */
static inline AQ_UNUSED void gex_HSL_Destroy(gex_HSL_t *hsl)
{
#if GASNET_DEBUG
    aq_hsl_debug_destroy(hsl);
#endif
    (void)hsl;
}

/** gex_HSL_Lock - wait for the lock and take it; runs no handler. Legal in every context. */
static inline AQ_UNUSED void gex_HSL_Lock(gex_HSL_t *hsl)
{
#if GASNET_DEBUG
    aq_hsl_debug_lock("gex_HSL_Lock", hsl);
#endif
#if !GASNET_SEQ
    uint32_t was_free = 0;

    /* acquire: pairs with the release in gex_HSL_Unlock() */
    if (AQ_UNLIKELY(!__atomic_compare_exchange_n(&hsl->word, &was_free, 1u, 0, __ATOMIC_ACQUIRE,
                                                 __ATOMIC_RELAXED)))
        aq_hsl_lock_slow(hsl);
#endif
#if GASNET_DEBUG
    aq_hsl_debug_owned(hsl);
#endif
    (void)hsl;
}

/** gex_HSL_Unlock - release a lock that this thread holds. */
static inline AQ_UNUSED void gex_HSL_Unlock(gex_HSL_t *hsl)
{
#if GASNET_DEBUG
    aq_hsl_debug_unlock(hsl);
#endif
#if !GASNET_SEQ
    /* release: the next owner sees what was written under the lock */
    if (AQ_UNLIKELY(__atomic_exchange_n(&hsl->word, 0u, __ATOMIC_RELEASE) == 2u))
        aq_hsl_unlock_slow(hsl);
#endif
    (void)hsl;
}

/** gex_HSL_Trylock - GASNET_OK if the lock was taken, else GASNET_ERR_NOT_READY. */
static inline AQ_UNUSED AQ_MUST_USE int gex_HSL_Trylock(gex_HSL_t *hsl)
{
#if GASNET_DEBUG
    aq_hsl_debug_lock("gex_HSL_Trylock", hsl);
#endif
#if !GASNET_SEQ
    uint32_t was_free = 0;

    if (!__atomic_compare_exchange_n(&hsl->word, &was_free, 1u, 0, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return GASNET_ERR_NOT_READY;
#endif
#if GASNET_DEBUG
    aq_hsl_debug_owned(hsl);
#endif
    (void)hsl;
    return GASNET_OK;
}

AQ_END_DECLS

#endif
