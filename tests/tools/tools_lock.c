/*
 * tools_lock.c - mutexes, conditions, read-write locks and thread keys; with several threads in
 * par, and that they cost and block nothing with one. Misuse is in tools_misuse.c.
 * Source: GASNet tools specification 1.20, mutexes, thread-specific data.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h"

#include <errno.h>
#if GASNETT_THREAD_SAFE
#include <pthread.h>
#endif

#include "aq_tap.h"

static gasnett_mutex_t mutex = GASNETT_MUTEX_INITIALIZER;
static gasnett_cond_t cond = GASNETT_COND_INITIALIZER;
static gasnett_rwlock_t rwlock = GASNETT_RWLOCK_INITIALIZER;

/* other files see it through the declaration, before or after the definition */
GASNETT_THREADKEY_DECLARE(tools_key);
GASNETT_THREADKEY_DEFINE(tools_key);
GASNETT_THREADKEY_DECLARE(tools_key);

static void check_alone(void)
{
    gasnett_mutex_t made;
    gasnett_cond_t made_cond;
    gasnett_rwlock_t made_rwlock;

    rule("a mutex: initialiser, init, lock, trylock, unlock, destroy");
    gasnett_mutex_assertunlocked(&mutex);
    gasnett_mutex_lock(&mutex);
    gasnett_mutex_assertlocked(&mutex);
    gasnett_mutex_unlock(&mutex);
    gasnett_mutex_assertunlocked(&mutex);
    CHECK_EQ(gasnett_mutex_trylock(&mutex), 0);
    gasnett_mutex_unlock(&mutex);
    gasnett_mutex_init(&made);
    gasnett_mutex_lock(&made);
    gasnett_mutex_unlock(&made);
    gasnett_mutex_destroy(&made);
    gasnett_mutex_init(&made);
    CHECK_EQ(gasnett_mutex_destroy_ignoreerr(&made), 0);

    rule("a condition: nobody waits, waking is nothing");
    gasnett_cond_init(&made_cond);
    gasnett_cond_signal(&made_cond);
    gasnett_cond_broadcast(&made_cond);
    gasnett_cond_destroy(&made_cond);
    gasnett_cond_signal(&cond);

    rule("a read-write lock: initialiser, init, both kinds, try forms");
    gasnett_rwlock_assertunlocked(&rwlock);
    gasnett_rwlock_rdlock(&rwlock);
    gasnett_rwlock_assertrdlocked(&rwlock);
    gasnett_rwlock_assertlocked(&rwlock);
    gasnett_rwlock_unlock(&rwlock);
    gasnett_rwlock_wrlock(&rwlock);
    gasnett_rwlock_assertwrlocked(&rwlock);
    gasnett_rwlock_assertlocked(&rwlock);
    gasnett_rwlock_unlock(&rwlock);
    gasnett_rwlock_assertunlocked(&rwlock);
    CHECK_EQ(gasnett_rwlock_tryrdlock(&rwlock), 0);
    gasnett_rwlock_unlock(&rwlock);
    CHECK_EQ(gasnett_rwlock_trywrlock(&rwlock), 0);
    gasnett_rwlock_unlock(&rwlock);
    gasnett_rwlock_init(&made_rwlock);
    gasnett_rwlock_wrlock(&made_rwlock);
    gasnett_rwlock_unlock(&made_rwlock);
    gasnett_rwlock_destroy(&made_rwlock);
}

static void check_key(void)
{
    int self;

    rule("a thread key begins as NULL and keeps what it is given");
    CHECK(gasnett_threadkey_get(tools_key) == NULL);
    gasnett_threadkey_init(tools_key);
    gasnett_threadkey_init(tools_key);
    gasnett_threadkey_set(tools_key, &self);
    CHECK(gasnett_threadkey_get(tools_key) == &self);
    gasnett_threadkey_set_noinit(tools_key, NULL);
    CHECK(gasnett_threadkey_get_noinit(tools_key) == NULL);
    gasnett_threadkey_set(tools_key, &self);
}

#if GASNETT_THREAD_SAFE

enum { THREADS = 4, ROUNDS = 5000 };
static int counter, readers, max_readers, turns, wrong_key, busy;
static gasnett_atomic_t inside = gasnett_atomic_init(0);

static void *exclude(void *arg)
{
    int ours;

    (void)arg;
    if (gasnett_threadkey_get(tools_key) != NULL)
        wrong_key = 1;
    gasnett_threadkey_set(tools_key, &ours);
    for (int i = 0; i < ROUNDS; i++) {
        gasnett_mutex_lock(&mutex);
        counter++;
        gasnett_mutex_unlock(&mutex);
        gasnett_rwlock_wrlock(&rwlock);
        if (gasnett_atomic_add(&inside, 1, 0) != 1)
            readers = -1;
        gasnett_atomic_subtract(&inside, 1, 0);
        gasnett_rwlock_unlock(&rwlock);
    }
    if (gasnett_threadkey_get(tools_key) != &ours)
        wrong_key = 1;
    return NULL;
}

/* all threads are readers at once, or the barrier between them never opens */
static void *read_together(void *arg)
{
    (void)arg;
    gasnett_rwlock_rdlock(&rwlock);
    gasnett_mutex_lock(&mutex);
    if (++max_readers == THREADS)
        gasnett_cond_broadcast(&cond);
    while (max_readers < THREADS)
        gasnett_cond_wait(&cond, &mutex);
    gasnett_mutex_unlock(&mutex);
    gasnett_rwlock_unlock(&rwlock);
    return NULL;
}

static void *try_all(void *arg)
{
    (void)arg;
    busy += gasnett_mutex_trylock(&mutex) == EBUSY;
    busy += gasnett_rwlock_tryrdlock(&rwlock) == EBUSY;
    busy += gasnett_rwlock_trywrlock(&rwlock) == EBUSY;
    return NULL;
}

/* threads take turns, woken by signal */
static void *take_turns(void *arg)
{
    for (int i = 0; i < 200; i++) {
        gasnett_mutex_lock(&mutex);
        while (turns % 2 != (arg != NULL))
            gasnett_cond_wait(&cond, &mutex);
        turns++;
        gasnett_cond_signal(&cond);
        gasnett_mutex_unlock(&mutex);
    }
    return NULL;
}

static void run(int n, void *(*fn)(void *))
{
    pthread_t thread[THREADS];

    for (int i = 0; i < n; i++)
        CHECK(pthread_create(&thread[i], NULL, fn, i == 1 ? &turns : NULL) == 0);
    for (int i = 0; i < n; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
}

static void check_threads(void)
{
    rule("mutexes and write locks keep others out; keys are each thread's own");
    run(THREADS, exclude);
    CHECK_EQ(counter, THREADS * ROUNDS);
    CHECK(readers == 0);
    CHECK(!wrong_key);
    CHECK(gasnett_threadkey_get(tools_key) != NULL);

    rule("readers are let in together; a broadcast wakes all that wait");
    run(THREADS, read_together);
    CHECK_EQ(max_readers, THREADS);

    rule("a signal wakes one; the mutex is ours again after waiting");
    run(2, take_turns);
    CHECK_EQ(turns, 400);

    rule("try forms say EBUSY while another thread holds the lock");
    gasnett_mutex_lock(&mutex);
    gasnett_rwlock_wrlock(&rwlock);
    run(1, try_all);
    gasnett_rwlock_unlock(&rwlock);
    gasnett_mutex_unlock(&mutex);
    CHECK_EQ(busy, 3);
    gasnett_mutex_destroy(&mutex);
    gasnett_rwlock_destroy(&rwlock);
    gasnett_cond_destroy(&cond);
}

#endif

int main(void)
{
    check_alone();
    check_key();
#if GASNETT_THREAD_SAFE
    check_threads();
#endif
    return tap_finish();
}
