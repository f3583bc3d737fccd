/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_tools_lock.c - mutexes, conditions and read-write locks; see include/gasnet/tools_lock.h.
 *
 * The client's object has space for a lock of libc, which zeroes initialise. Debug builds also note
 * the owner of a mutex in the object. A read-write lock can have many owners, so each thread lists
 * the ones that it holds.
 * Uses      pthreads
 */
#include "other/tools/aq_tools.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(((gasnett_mutex_t *)0)->aq_storage),
               "a mutex fits");
_Static_assert(sizeof(pthread_cond_t) <= sizeof(((gasnett_cond_t *)0)->aq_storage),
               "a condition fits");
_Static_assert(sizeof(pthread_rwlock_t) <= sizeof(((gasnett_rwlock_t *)0)->aq_storage),
               "a lock fits");

static pthread_mutex_t *aq_lock_mutex(gasnett_mutex_t *m)
{
    return (pthread_mutex_t *)(void *)m->aq_storage;
}

static pthread_cond_t *aq_lock_cond(gasnett_cond_t *c)
{
    return (pthread_cond_t *)(void *)c->aq_storage;
}

static pthread_rwlock_t *aq_lock_rw(gasnett_rwlock_t *l)
{
    return (pthread_rwlock_t *)(void *)l->aq_storage;
}

uint64_t aq_tools_thread(void)
{
    static _Thread_local char own;

    return (uint64_t)(uintptr_t)&own;
}

static _Noreturn void aq_lock_wrong(const char *call, const char *what, const char *at)
{
    gasnett_fatalerror_nopos("%s at %s: %s", call, at, what);
}

static void aq_lock_must(int rc, const char *call, const char *at)
{
    if (AQ_UNLIKELY(rc != 0))
        aq_lock_wrong(call, strerror(rc), at);
}

/* --- mutexes --- */

/* relaxed: a thread compares the owner with itself only, and sees its own writes */
static bool aq_mutex_is_owned(const gasnett_mutex_t *m)
{
#if GASNET_DEBUG
    return __atomic_load_n(&m->aq_owner, __ATOMIC_RELAXED) == aq_tools_thread();
#else
    (void)m;
    return false;
#endif
}

static void aq_mutex_own(gasnett_mutex_t *m, bool own)
{
#if GASNET_DEBUG
    __atomic_store_n(&m->aq_owner, own ? aq_tools_thread() : 0, __ATOMIC_RELAXED);
#endif
    (void)m, (void)own;
}

void aq_tools_mutex_init(gasnett_mutex_t *m)
{
    memset(m, 0, sizeof(*m));
    aq_lock_must(pthread_mutex_init(aq_lock_mutex(m), NULL), "gasnett_mutex_init", "?");
}

int aq_tools_mutex_destroy(gasnett_mutex_t *m, int fatal, const char *at)
{
    int rc = 0;

#if GASNET_DEBUG
    if (__atomic_load_n(&m->aq_owner, __ATOMIC_RELAXED) != 0)
        rc = EBUSY;
#endif
    if (rc == 0)
        rc = pthread_mutex_destroy(aq_lock_mutex(m));
    if (fatal && rc != 0)
        aq_lock_wrong("gasnett_mutex_destroy", rc == EBUSY ? "the mutex is held" : strerror(rc),
                      at);
    return rc;
}

void aq_tools_mutex_lock(gasnett_mutex_t *m, const char *at)
{
    if (aq_mutex_is_owned(m))
        aq_lock_wrong("gasnett_mutex_lock", "this thread holds the mutex already", at);
    aq_lock_must(pthread_mutex_lock(aq_lock_mutex(m)), "gasnett_mutex_lock", at);
    aq_mutex_own(m, true);
}

int aq_tools_mutex_trylock(gasnett_mutex_t *m, const char *at)
{
    int rc;

    if (aq_mutex_is_owned(m))
        aq_lock_wrong("gasnett_mutex_trylock", "this thread holds the mutex already", at);
    rc = pthread_mutex_trylock(aq_lock_mutex(m));
    if (rc == 0)
        aq_mutex_own(m, true);
    else if (rc != EBUSY)
        aq_lock_must(rc, "gasnett_mutex_trylock", at);
    return rc;
}

void aq_tools_mutex_unlock(gasnett_mutex_t *m, const char *at)
{
#if GASNET_DEBUG
    if (!aq_mutex_is_owned(m))
        aq_lock_wrong("gasnett_mutex_unlock", "this thread does not hold the mutex", at);
#endif
    aq_mutex_own(m, false);
    aq_lock_must(pthread_mutex_unlock(aq_lock_mutex(m)), "gasnett_mutex_unlock", at);
}

void aq_tools_mutex_assert(gasnett_mutex_t *m, int locked, const char *at)
{
    if (locked && !aq_mutex_is_owned(m))
        aq_lock_wrong("gasnett_mutex_assertlocked", "this thread does not hold the mutex", at);
    if (!locked && aq_mutex_is_owned(m))
        aq_lock_wrong("gasnett_mutex_assertunlocked", "this thread holds the mutex", at);
}

/* --- conditions --- */

void aq_tools_cond_init(gasnett_cond_t *c)
{
    memset(c, 0, sizeof(*c));
    aq_lock_must(pthread_cond_init(aq_lock_cond(c), NULL), "gasnett_cond_init", "?");
}

void aq_tools_cond_destroy(gasnett_cond_t *c, const char *at)
{
    aq_lock_must(pthread_cond_destroy(aq_lock_cond(c)), "gasnett_cond_destroy", at);
}

void aq_tools_cond_wait(gasnett_cond_t *c, gasnett_mutex_t *m, const char *at)
{
#if GASNET_DEBUG
    if (!aq_mutex_is_owned(m))
        aq_lock_wrong("gasnett_cond_wait", "this thread does not hold the mutex", at);
#endif
    aq_mutex_own(m, false);
    aq_lock_must(pthread_cond_wait(aq_lock_cond(c), aq_lock_mutex(m)), "gasnett_cond_wait", at);
    aq_mutex_own(m, true);
}

void aq_tools_cond_wake(gasnett_cond_t *c, int all)
{
    aq_lock_must(all ? pthread_cond_broadcast(aq_lock_cond(c))
                     : pthread_cond_signal(aq_lock_cond(c)),
                 "gasnett_cond_signal", "?");
}

void aq_tools_cond_alone(const char *at)
{
    aq_lock_wrong("gasnett_cond_wait", "in a program of one thread nobody can end the wait", at);
}

/* --- read-write locks --- */

/* The read-write locks that the calling thread holds, and how. A thread that holds more than fit is
 * not checked. */
#define AQ_LOCK_LIST 64
static _Thread_local struct {
    unsigned count;
    struct {
        const gasnett_rwlock_t *lock;
        char how; /* 'r' or 'w' */
    } owned[AQ_LOCK_LIST];
} aq_lock_list;

/* how the calling thread holds the lock, 0 if not at all */
static char aq_rw_how(const gasnett_rwlock_t *l)
{
    for (unsigned i = 0; i < aq_lock_list.count && i < AQ_LOCK_LIST; i++)
        if (aq_lock_list.owned[i].lock == l)
            return aq_lock_list.owned[i].how;
    return 0;
}

static void aq_rw_note(gasnett_rwlock_t *l, bool write)
{
#if GASNET_DEBUG
    /* relaxed: only compared with 0, when no thread should use the lock any more */
    __atomic_fetch_add(&l->aq_holders, 1, __ATOMIC_RELAXED);
    if (aq_lock_list.count < AQ_LOCK_LIST) {
        aq_lock_list.owned[aq_lock_list.count].lock = l;
        aq_lock_list.owned[aq_lock_list.count].how = write ? 'w' : 'r';
    }
    aq_lock_list.count++;
#endif
    (void)l, (void)write;
}

static void aq_rw_forget(gasnett_rwlock_t *l, const char *at)
{
#if GASNET_DEBUG
    unsigned listed = aq_lock_list.count < AQ_LOCK_LIST ? aq_lock_list.count : AQ_LOCK_LIST, i;

    for (i = 0; i < listed && aq_lock_list.owned[i].lock != l;)
        i++;
    if (i == listed && aq_lock_list.count <= AQ_LOCK_LIST)
        aq_lock_wrong("gasnett_rwlock_unlock", "this thread does not hold the lock", at);
    if (i < listed)
        aq_lock_list.owned[i] = aq_lock_list.owned[listed - 1];
    aq_lock_list.count--;
    __atomic_fetch_sub(&l->aq_holders, 1, __ATOMIC_RELAXED);
#endif
    (void)l, (void)at;
}

void aq_tools_rwlock_init(gasnett_rwlock_t *l)
{
    memset(l, 0, sizeof(*l));
    aq_lock_must(pthread_rwlock_init(aq_lock_rw(l), NULL), "gasnett_rwlock_init", "?");
}

void aq_tools_rwlock_destroy(gasnett_rwlock_t *l, const char *at)
{
#if GASNET_DEBUG
    if (__atomic_load_n(&l->aq_holders, __ATOMIC_RELAXED) != 0)
        aq_lock_wrong("gasnett_rwlock_destroy", "the lock is held", at);
#endif
    aq_lock_must(pthread_rwlock_destroy(aq_lock_rw(l)), "gasnett_rwlock_destroy", at);
}

static const char *aq_rw_call(int write, int try_only)
{
    static const char *const calls[2][2] = {
        { "gasnett_rwlock_rdlock", "gasnett_rwlock_tryrdlock" },
        { "gasnett_rwlock_wrlock", "gasnett_rwlock_trywrlock" }
    };

    return calls[write != 0][try_only != 0];
}

int aq_tools_rwlock_lock(gasnett_rwlock_t *l, int write, int try_only, const char *at)
{
    pthread_rwlock_t *rw = aq_lock_rw(l);
    int rc;

#if GASNET_DEBUG
    if (aq_rw_how(l) != 0)
        aq_lock_wrong(aq_rw_call(write, try_only), "this thread holds the lock already", at);
#endif
    if (try_only) {
        rc = write ? pthread_rwlock_trywrlock(rw) : pthread_rwlock_tryrdlock(rw);
    } else if (write) {
        rc = pthread_rwlock_wrlock(rw);
    } else {
        while ((rc = pthread_rwlock_rdlock(rw))
               == EAGAIN) /* the maximum number of readers is reached */
            sched_yield();
    }
    if (rc == 0)
        aq_rw_note(l, write);
    else if (!try_only || (rc != EBUSY && rc != EAGAIN))
        aq_lock_must(rc, aq_rw_call(write, try_only), at);
    return rc;
}

void aq_tools_rwlock_unlock(gasnett_rwlock_t *l, const char *at)
{
    aq_rw_forget(l, at);
    aq_lock_must(pthread_rwlock_unlock(aq_lock_rw(l)), "gasnett_rwlock_unlock", at);
}

static void aq_rw_judge(char how, char want, const char *at)
{
    if (want == 'r' && how != 'r')
        aq_lock_wrong("gasnett_rwlock_assertrdlocked", "this thread does not hold it for reading",
                      at);
    if (want == 'w' && how != 'w')
        aq_lock_wrong("gasnett_rwlock_assertwrlocked", "this thread does not hold it for writing",
                      at);
    if (want == 'l' && how == 0)
        aq_lock_wrong("gasnett_rwlock_assertlocked", "this thread does not hold it", at);
    if (want == 'u' && how != 0)
        aq_lock_wrong("gasnett_rwlock_assertunlocked", "this thread holds it", at);
}

void aq_tools_rwlock_assert(gasnett_rwlock_t *l, char want, const char *at)
{
    if (aq_lock_list.count <= AQ_LOCK_LIST)
        aq_rw_judge(aq_rw_how(l), want, at);
}

/* --- one thread: only the rules are checked --- */

void aq_tools_alone_lock(uint64_t *owned, int kind, const char *call, const char *at)
{
    if (kind == 'u' && *owned == 0)
        aq_lock_wrong(call, "it is not held", at);
    if (kind != 'u' && *owned != 0)
        aq_lock_wrong(call, "it is held already", at);
    *owned = kind == 'u' ? 0 : (uint64_t)kind;
}

int aq_tools_alone_try(uint64_t *owned, int kind)
{
    if (*owned != 0)
        return EBUSY;
    *owned = (uint64_t)kind;
    return 0;
}

void aq_tools_alone_check(const uint64_t *owned, char want, const char *call, const char *at)
{
    if (want == 'u' && *owned != 0)
        aq_lock_wrong(call, "it is held", at);
    if ((want == 'l' && *owned == 0) || ((want == 'r' || want == 'w') && *owned != (uint64_t)want))
        aq_lock_wrong(call, "it is not held so", at);
}
