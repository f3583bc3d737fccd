/*
 * tools_lock.h - mutexes, conditions, read-write locks; thread-specific values.
 *
 * With one caller (GASNET_SEQ, GASNETT_THREAD_SINGLE) locks cost nothing, unless
 * GASNETT_USE_TRUE_MUTEXES is defined to 1. In GASNET_PARSYNC a thread of the library may run
 * handlers, so they are real. A debug build checks every call in either mode: taking
 * a lock twice, releasing it by another than its owner, or destroying it while held ends the
 * program with a message. No lock is recursive. For the threads of one process.
 * Source: GASNet tools specification 1.20, mutexes. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_TOOLS_LOCK_H
#define GASNET_TOOLS_LOCK_H 1

#if AQ_TOOLS_THREADS || GASNETT_USE_TRUE_MUTEXES
#define AQ_TOOLS_LOCKS 1
#else
#define AQ_TOOLS_LOCKS 0
#endif

AQ_BEGIN_DECLS

/* Space for the system's lock, which zeroes initialise; clients read none of it. */
typedef struct gasnett_mutex_s {
    uint64_t aq_owner; /* debug: number of the thread that holds it; 0: none */
    uint64_t aq_storage[7];
} gasnett_mutex_t;
typedef struct gasnett_cond_s {
    uint64_t aq_storage[8];
} gasnett_cond_t;
typedef struct gasnett_rwlock_s {
    uint64_t aq_holders; /* debug: number of threads that hold it */
    uint64_t aq_storage[9];
} gasnett_rwlock_t;

#define GASNETT_MUTEX_INITIALIZER \
    {                             \
        0,                        \
        {                         \
            0                     \
        }                         \
    }
#define GASNETT_COND_INITIALIZER \
    {                            \
        {                        \
            0                    \
        }                        \
    }
#define GASNETT_RWLOCK_INITIALIZER \
    {                              \
        0,                         \
        {                          \
            0                      \
        }                          \
    }

/* at: "file:line" of the call, for messages */
#define AQ_TOOLS_AT __FILE__ ":" _STRINGIFY(__LINE__)
AQ_PUBLIC void aq_tools_mutex_init(gasnett_mutex_t *m);
AQ_PUBLIC int aq_tools_mutex_destroy(gasnett_mutex_t *m, int fatal, const char *at);
AQ_PUBLIC void aq_tools_mutex_lock(gasnett_mutex_t *m, const char *at);
AQ_PUBLIC int aq_tools_mutex_trylock(gasnett_mutex_t *m, const char *at);
AQ_PUBLIC void aq_tools_mutex_unlock(gasnett_mutex_t *m, const char *at);
AQ_PUBLIC void aq_tools_mutex_assert(gasnett_mutex_t *m, int locked, const char *at);
AQ_PUBLIC void aq_tools_cond_init(gasnett_cond_t *c);
AQ_PUBLIC void aq_tools_cond_destroy(gasnett_cond_t *c, const char *at);
AQ_PUBLIC void aq_tools_cond_wait(gasnett_cond_t *c, gasnett_mutex_t *m, const char *at);
AQ_PUBLIC void aq_tools_cond_wake(gasnett_cond_t *c, int all);
/* no other thread could wake the waiter */
AQ_PUBLIC void aq_tools_cond_alone(const char *at) AQ_NORETURN;
AQ_PUBLIC void aq_tools_rwlock_init(gasnett_rwlock_t *l);
AQ_PUBLIC void aq_tools_rwlock_destroy(gasnett_rwlock_t *l, const char *at);
AQ_PUBLIC int aq_tools_rwlock_lock(gasnett_rwlock_t *l, int write, int try_only, const char *at);
AQ_PUBLIC void aq_tools_rwlock_unlock(gasnett_rwlock_t *l, const char *at);
/* want: 'r' read, 'w' write, 'l' either, 'u' none */
AQ_PUBLIC void aq_tools_rwlock_assert(gasnett_rwlock_t *l, char want, const char *at);
/* the same checks for a single caller, without a lock */
AQ_PUBLIC void aq_tools_alone_lock(uint64_t *held, int kind, const char *call, const char *at);
AQ_PUBLIC int aq_tools_alone_try(uint64_t *held, int kind);
AQ_PUBLIC void aq_tools_alone_check(const uint64_t *held, char want, const char *call,
                                    const char *at);

#if AQ_TOOLS_LOCKS

/** gasnett_mutex_init - initialise a free mutex where no initialiser was used; _destroy ends its
 * use (it must be free). */
#define gasnett_mutex_init(m)    aq_tools_mutex_init(m)
#define gasnett_mutex_destroy(m) ((void)aq_tools_mutex_destroy((m), 1, AQ_TOOLS_AT))
/** gasnett_mutex_destroy_ignoreerr - the same; returns non-zero on an error instead of ending the
 * program. */
#define gasnett_mutex_destroy_ignoreerr(m) aq_tools_mutex_destroy((m), 0, AQ_TOOLS_AT)
/** gasnett_mutex_lock - wait for the mutex and take it; gasnett_mutex_unlock releases it. */
#define gasnett_mutex_lock(m)   aq_tools_mutex_lock((m), AQ_TOOLS_AT)
#define gasnett_mutex_unlock(m) aq_tools_mutex_unlock((m), AQ_TOOLS_AT)
/** gasnett_mutex_trylock - 0 if it was taken, else EBUSY. */
#define gasnett_mutex_trylock(m) aq_tools_mutex_trylock((m), AQ_TOOLS_AT)

#define gasnett_cond_init(c)    aq_tools_cond_init(c)
#define gasnett_cond_destroy(c) aq_tools_cond_destroy((c), AQ_TOOLS_AT)
/** gasnett_cond_wait - release m, sleep until woken, take m again. May return spuriously. */
#define gasnett_cond_wait(c, m)   aq_tools_cond_wait((c), (m), AQ_TOOLS_AT)
#define gasnett_cond_signal(c)    aq_tools_cond_wake((c), 0)
#define gasnett_cond_broadcast(c) aq_tools_cond_wake((c), 1)

#define gasnett_rwlock_init(l)    aq_tools_rwlock_init(l)
#define gasnett_rwlock_destroy(l) aq_tools_rwlock_destroy((l), AQ_TOOLS_AT)
/** gasnett_rwlock_rdlock - take it for reading, shared; _wrlock for writing, exclusively. */
#define gasnett_rwlock_rdlock(l) ((void)aq_tools_rwlock_lock((l), 0, 0, AQ_TOOLS_AT))
#define gasnett_rwlock_wrlock(l) ((void)aq_tools_rwlock_lock((l), 1, 0, AQ_TOOLS_AT))
/** gasnett_rwlock_tryrdlock - 0 if it was taken, else EBUSY, or EAGAIN for too many readers. */
#define gasnett_rwlock_tryrdlock(l) aq_tools_rwlock_lock((l), 0, 1, AQ_TOOLS_AT)
#define gasnett_rwlock_trywrlock(l) aq_tools_rwlock_lock((l), 1, 1, AQ_TOOLS_AT)
#define gasnett_rwlock_unlock(l)    aq_tools_rwlock_unlock((l), AQ_TOOLS_AT)

#if GASNET_DEBUG
#define AQ_TOOLS_MUTEX_ASSERT(m, locked) aq_tools_mutex_assert((m), (locked), AQ_TOOLS_AT)
#define AQ_TOOLS_RWLOCK_ASSERT(l, want)  aq_tools_rwlock_assert((l), (want), AQ_TOOLS_AT)
#else
#define AQ_TOOLS_MUTEX_ASSERT(m, locked) ((void)(m))
#define AQ_TOOLS_RWLOCK_ASSERT(l, want)  ((void)(l))
#endif

#else /* one caller: never a wait */

#if GASNET_DEBUG
#define AQ_SOLE_LOCK(held, kind, call)  aq_tools_alone_lock((held), (kind), call, AQ_TOOLS_AT)
#define AQ_TOOLS_ALONE_TRY(held, kind)  aq_tools_alone_try((held), (kind))
#define AQ_SOLE_CHECK(held, want, call) aq_tools_alone_check((held), (want), call, AQ_TOOLS_AT)
#else
#define AQ_SOLE_LOCK(held, kind, call)  ((void)(held))
#define AQ_TOOLS_ALONE_TRY(held, kind)  ((void)(held), 0)
#define AQ_SOLE_CHECK(held, want, call) ((void)(held))
#endif

#define gasnett_mutex_init(m)              ((void)((m)->aq_owner = 0))
/* clang-format off */
#define gasnett_mutex_destroy(m) \
    AQ_SOLE_CHECK(&(m)->aq_owner, 'u', "gasnett_mutex_destroy")
/* clang-format on */
#define gasnett_mutex_destroy_ignoreerr(m) ((m)->aq_owner != 0 ? EBUSY : 0)
#define gasnett_mutex_lock(m)              AQ_SOLE_LOCK(&(m)->aq_owner, 'w', "gasnett_mutex_lock")
#define gasnett_mutex_unlock(m)            AQ_SOLE_LOCK(&(m)->aq_owner, 'u', "gasnett_mutex_unlock")
#define gasnett_mutex_trylock(m)           AQ_TOOLS_ALONE_TRY(&(m)->aq_owner, 'w')
#define AQ_TOOLS_MUTEX_ASSERT(m, locked) \
    AQ_SOLE_CHECK(&(m)->aq_owner, (locked) ? 'l' : 'u', "gasnett_mutex_assert")

#define gasnett_cond_init(c)      ((void)(c))
#define gasnett_cond_destroy(c)   ((void)(c))
#define gasnett_cond_wait(c, m)   ((void)(c), (void)(m), aq_tools_cond_alone(AQ_TOOLS_AT))
#define gasnett_cond_signal(c)    ((void)(c))
#define gasnett_cond_broadcast(c) ((void)(c))

#define gasnett_rwlock_init(l)      ((void)((l)->aq_holders = 0))
#define gasnett_rwlock_destroy(l)   AQ_SOLE_CHECK(&(l)->aq_holders, 'u', "gasnett_rwlock_destroy")
#define gasnett_rwlock_rdlock(l)    AQ_SOLE_LOCK(&(l)->aq_holders, 'r', "gasnett_rwlock_rdlock")
#define gasnett_rwlock_wrlock(l)    AQ_SOLE_LOCK(&(l)->aq_holders, 'w', "gasnett_rwlock_wrlock")
#define gasnett_rwlock_unlock(l)    AQ_SOLE_LOCK(&(l)->aq_holders, 'u', "gasnett_rwlock_unlock")
#define gasnett_rwlock_tryrdlock(l) AQ_TOOLS_ALONE_TRY(&(l)->aq_holders, 'r')
#define gasnett_rwlock_trywrlock(l) AQ_TOOLS_ALONE_TRY(&(l)->aq_holders, 'w')
#define AQ_TOOLS_RWLOCK_ASSERT(l, want) \
    AQ_SOLE_CHECK(&(l)->aq_holders, (want), "gasnett_rwlock_assert")

#endif

/* Checked in debug builds only. */
#define gasnett_mutex_assertlocked(m)    AQ_TOOLS_MUTEX_ASSERT(m, 1)
#define gasnett_mutex_assertunlocked(m)  AQ_TOOLS_MUTEX_ASSERT(m, 0)
#define gasnett_rwlock_assertrdlocked(l) AQ_TOOLS_RWLOCK_ASSERT(l, 'r')
#define gasnett_rwlock_assertwrlocked(l) AQ_TOOLS_RWLOCK_ASSERT(l, 'w')
#define gasnett_rwlock_assertlocked(l)   AQ_TOOLS_RWLOCK_ASSERT(l, 'l')
#define gasnett_rwlock_assertunlocked(l) AQ_TOOLS_RWLOCK_ASSERT(l, 'u')

/* --- thread-specific values --- */

/* Where threads share nothing but a name: at file scope, followed by a semicolon. */
#if AQ_TOOLS_THREADS
#define AQ_TOOLS_OF_THREAD __thread
#else
#define AQ_TOOLS_OF_THREAD
#endif
#define GASNETT_THREADKEY_DEFINE(key)  AQ_TOOLS_OF_THREAD void *key = 0
#define GASNETT_THREADKEY_DECLARE(key) extern AQ_TOOLS_OF_THREAD void *key

#define gasnett_threadkey_get(key)        (key)
#define gasnett_threadkey_set(key, value) aq_tools_set_key(&(key), (uintptr_t)(const void *)(value))
#define gasnett_threadkey_init(key)       _gasneti_threadkey_init(&(key))
#define gasnett_threadkey_get_noinit(key) (key)
#define gasnett_threadkey_set_noinit(key, value) \
    aq_tools_set_key(&(key), (uintptr_t)(const void *)(value))

static inline AQ_UNUSED void aq_tools_set_key(void **key, uintptr_t value)
{
    *key = (void *)value; /* by way of an integer: a key may hold what only its thread reads */
}

AQ_END_DECLS

#endif
