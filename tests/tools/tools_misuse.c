/*
 * tools_misuse.c - broken rules of locks, one a run: each has to end the program with a message
 * that names the call, in debug builds; tools.sh runs them. "tools_misuse list" lists them.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h"

#include <stdio.h>
#include <string.h>

static gasnett_mutex_t mutex = GASNETT_MUTEX_INITIALIZER;
static gasnett_rwlock_t rwlock = GASNETT_RWLOCK_INITIALIZER;
static gasnett_cond_t cond = GASNETT_COND_INITIALIZER;

/* what leads to the mistake, the mistake */
#define CASES(CASE)                                                                              \
    CASE(mutex_lock_twice, gasnett_mutex_lock(&mutex), gasnett_mutex_lock(&mutex))               \
    CASE(mutex_unlock_free, (void)0, gasnett_mutex_unlock(&mutex))                               \
    CASE(mutex_destroy_locked, gasnett_mutex_lock(&mutex), gasnett_mutex_destroy(&mutex))        \
    CASE(mutex_assertlocked, (void)0, gasnett_mutex_assertlocked(&mutex))                        \
    CASE(mutex_assertunlocked, gasnett_mutex_lock(&mutex), gasnett_mutex_assertunlocked(&mutex)) \
    CASE(cond_wait_unlocked, (void)0, gasnett_cond_wait(&cond, &mutex))                          \
    CASE(rwlock_rdlock_twice, gasnett_rwlock_rdlock(&rwlock), gasnett_rwlock_rdlock(&rwlock))    \
    CASE(rwlock_wrlock_after_rdlock, gasnett_rwlock_rdlock(&rwlock),                             \
         gasnett_rwlock_wrlock(&rwlock))                                                         \
    CASE(rwlock_unlock_free, (void)0, gasnett_rwlock_unlock(&rwlock))                            \
    CASE(rwlock_destroy_locked, gasnett_rwlock_rdlock(&rwlock), gasnett_rwlock_destroy(&rwlock)) \
    CASE(rwlock_assertrdlocked, gasnett_rwlock_wrlock(&rwlock),                                  \
         gasnett_rwlock_assertrdlocked(&rwlock))                                                 \
    CASE(rwlock_assertwrlocked, gasnett_rwlock_rdlock(&rwlock),                                  \
         gasnett_rwlock_assertwrlocked(&rwlock))                                                 \
    CASE(rwlock_assertlocked, (void)0, gasnett_rwlock_assertlocked(&rwlock))                     \
    CASE(rwlock_assertunlocked, gasnett_rwlock_rdlock(&rwlock),                                  \
         gasnett_rwlock_assertunlocked(&rwlock))

int main(int argc, char **argv)
{
#define LIST(name, before, mistake) puts(#name);
#define DO(name, before, mistake)      \
    if (strcmp(argv[1], #name) == 0) { \
        before;                        \
        mistake;                       \
    }
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "list") == 0) {
        CASES(LIST)
        return 0;
    }
    CASES(DO)
    return 0;
}
