/*
 * tools_atomic.c - gasnett atomics: every operation of every family against a serial model, with
 * every fence; wrapping; initialisers; use on plain integers; contention between threads (par); a
 * signal handler (strong). Source: GASNet tools specification 1.20, atomics.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h"

#include <signal.h>
#include <stdint.h>
#include <sys/time.h>
#if GASNETT_THREAD_SAFE
#include <pthread.h>
#endif

#include "aq_tap.h"

static uint64_t state = 88172645463325252u;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* small values meet the interesting cases more often */
static uint64_t value(void)
{
    return next() % 3 == 0 ? next() : next() % 4 == 0 ? 0 - next() % 3 : next() % 3;
}

/* F: the family; T: its values; every operation once per fence set, at random */
#define MODEL(F, T)                                                                      \
    static gasnett_##F##_t F##_initialised = gasnett_##F##_init(17);                     \
    static void model_##F(void)                                                          \
    {                                                                                    \
        gasnett_##F##_t a = gasnett_##F##_init(0);                                       \
        T model = 0;                                                                     \
        int stored;                                                                      \
                                                                                         \
        CHECK_EQ(gasnett_##F##_read(&F##_initialised, 0), 17);                           \
        for (int i = 0; i < 30000; i++) {                                                \
            const int f = (int)(next() % 64);                                            \
            const T v = (T)value(), w = (T)value();                                      \
                                                                                         \
            switch (next() % 9) {                                                        \
            case 0:                                                                      \
                gasnett_##F##_set(&a, v, f);                                             \
                model = v;                                                               \
                break;                                                                   \
            case 1:                                                                      \
                gasnett_##F##_increment(&a, f);                                          \
                model++;                                                                 \
                break;                                                                   \
            case 2:                                                                      \
                gasnett_##F##_decrement(&a, f);                                          \
                model--;                                                                 \
                break;                                                                   \
            case 3:                                                                      \
                CHECK((gasnett_##F##_decrement_and_test(&a, f) != 0) == (--model == 0)); \
                break;                                                                   \
            case 4:                                                                      \
                stored = gasnett_##F##_compare_and_swap(&a, v, w, f);                    \
                CHECK((stored != 0) == (model == v));                                    \
                model = stored ? w : model;                                              \
                break;                                                                   \
            case 5:                                                                      \
                CHECK(gasnett_##F##_compare_and_swap(&a, model, w, f) != 0);             \
                model = w;                                                               \
                break;                                                                   \
            case 6:                                                                      \
                CHECK(gasnett_##F##_swap(&a, v, f) == model);                            \
                model = v;                                                               \
                break;                                                                   \
            case 7:                                                                      \
                CHECK(gasnett_##F##_add(&a, v, f) == (T)(model + v));                    \
                model += v;                                                              \
                break;                                                                   \
            default:                                                                     \
                CHECK(gasnett_##F##_subtract(&a, v, f) == (T)(model - v));               \
                model -= v;                                                              \
            }                                                                            \
            CHECK(gasnett_##F##_read(&a, f) == model);                                   \
            if (tap_bad)                                                                 \
                return;                                                                  \
        }                                                                                \
    }

MODEL(atomic, gasnett_atomic_val_t)
MODEL(atomic32, uint32_t)
MODEL(atomic64, uint64_t)
MODEL(strongatomic, gasnett_atomic_val_t)
MODEL(strongatomic32, uint32_t)
MODEL(strongatomic64, uint64_t)

static void check_types(void)
{
    uint32_t plain32 = 5;
    uint64_t plain64 = 5;

    rule("sizes and constants");
    CHECK(sizeof(gasnett_atomic32_t) == 4 && sizeof(gasnett_strongatomic32_t) == 4);
    CHECK(sizeof(gasnett_atomic64_t) == 8 && sizeof(gasnett_strongatomic64_t) == 8);
    CHECK(sizeof(gasnett_atomic_t) == 4 && sizeof(gasnett_strongatomic_t) == 4);
    CHECK(GASNETT_ATOMIC_MAX == 0xFFFFFFFFu);
    CHECK((gasnett_atomic_val_t)-1 > 0 && (gasnett_atomic_sval_t)-1 < 0);
    CHECK(GASNETT_ATOMIC_SIGNED_MAX == 2147483647 && GASNETT_ATOMIC_SIGNED_MIN == -2147483647 - 1);
    CHECK(gasnett_atomic_signed(GASNETT_ATOMIC_MAX) == -1);
    CHECK(GASNETT_HAVE_ATOMIC_CAS && GASNETT_HAVE_ATOMIC_ADD_SUB);
    CHECK(GASNETT_HAVE_STRONGATOMIC_CAS && GASNETT_HAVE_STRONGATOMIC_ADD_SUB);
#if defined(GASNETT_USING_GENERIC_ATOMICOPS) || defined(GASNETT_STRONGATOMIC_NOT_SIGNALSAFE) \
    || defined(GASNETT_STRONGATOMIC32_NOT_SIGNALSAFE)                                        \
    || defined(GASNETT_STRONGATOMIC64_NOT_SIGNALSAFE)
    CHECK(!"processor's atomics are signal-safe");
#endif

    rule("fence flags have the published bits");
    CHECK(GASNETT_ATOMIC_NONE == 0 && GASNETT_ATOMIC_RMB_PRE == 1 && GASNETT_ATOMIC_WMB_PRE == 2);
    CHECK(GASNETT_ATOMIC_RMB_POST == 4 && GASNETT_ATOMIC_WMB_POST == 8);
    CHECK(GASNETT_ATOMIC_RMB_POST_IF_TRUE == 16 && GASNETT_ATOMIC_RMB_POST_IF_FALSE == 32);
    CHECK(GASNETT_ATOMIC_MB_PRE == 3 && GASNETT_ATOMIC_MB_POST == 12);
    CHECK(GASNETT_ATOMIC_REL == 2 && GASNETT_ATOMIC_ACQ == 4);
    CHECK(GASNETT_ATOMIC_ACQ_IF_TRUE == 16 && GASNETT_ATOMIC_ACQ_IF_FALSE == 32);

    rule("plain integers through a cast");
    gasnett_atomic32_increment((gasnett_atomic32_t *)&plain32, 0);
    gasnett_strongatomic64_add((gasnett_strongatomic64_t *)&plain64, 7, 0);
    CHECK_EQ(plain32, 6);
    CHECK_EQ(plain64, 12);
}

/* --- threads --- */

#if GASNETT_THREAD_SAFE
enum { THREADS = 4, ROUNDS = 20000 };

#define SHARED(F)                                                               \
    static gasnett_##F##_t F##_shared = gasnett_##F##_init(0);                  \
    static gasnett_##F##_t F##_cas = gasnett_##F##_init(0);                     \
    static void hammer_##F(void)                                                \
    {                                                                           \
        for (int i = 0; i < ROUNDS; i++) {                                      \
            gasnett_##F##_increment(&F##_shared, 0);                            \
            gasnett_##F##_add(&F##_shared, 2, GASNETT_ATOMIC_MB_POST);          \
            gasnett_##F##_subtract(&F##_shared, 1, GASNETT_ATOMIC_REL);         \
            gasnett_##F##_decrement(&F##_shared, GASNETT_ATOMIC_ACQ);           \
            for (;;) {                                                          \
                const int f = GASNETT_ATOMIC_REL | GASNETT_ATOMIC_ACQ_IF_TRUE;  \
                const uint32_t now = (uint32_t)gasnett_##F##_read(&F##_cas, 0); \
                                                                                \
                if (gasnett_##F##_compare_and_swap(&F##_cas, now, now + 1, f))  \
                    break;                                                      \
            }                                                                   \
        }                                                                       \
    }

SHARED(atomic)
SHARED(atomic32)
SHARED(atomic64)
SHARED(strongatomic)
SHARED(strongatomic32)
SHARED(strongatomic64)

/* handing data over: what was written before the flag is there after it */
static uint64_t handed;
static gasnett_atomic_t flag = gasnett_atomic_init(0);

static void *hammer(void *arg)
{
    hammer_atomic();
    hammer_atomic32();
    hammer_atomic64();
    hammer_strongatomic();
    hammer_strongatomic32();
    hammer_strongatomic64();
    for (int i = 0; i < 2000; i++) {
        const uint32_t ours = 2u * (uint32_t)i + (arg != NULL);

        if (arg != NULL && arg != (void *)1)
            break; /* two threads play */
        while (gasnett_atomic_read(&flag, GASNETT_ATOMIC_ACQ) != ours)
            gasnett_spinloop_hint(), gasnett_sched_yield();
        CHECK(handed == ours);
        handed = ours + 1;
        gasnett_atomic_set(&flag, ours + 1, GASNETT_ATOMIC_REL);
    }
    return NULL;
}

static void check_threads(void)
{
    pthread_t thread[THREADS];

    rule("no operation of contending threads is lost");
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, hammer, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    CHECK_EQ(gasnett_atomic_read(&atomic_shared, 0), THREADS * ROUNDS);
    CHECK_EQ(gasnett_atomic_read(&atomic_cas, 0), THREADS * ROUNDS);
    CHECK_EQ(gasnett_atomic32_read(&atomic32_shared, 0), THREADS * ROUNDS);
    CHECK_EQ(gasnett_atomic32_read(&atomic32_cas, 0), THREADS * ROUNDS);
    CHECK_EQ(gasnett_atomic64_read(&atomic64_shared, 0), THREADS * ROUNDS);
    CHECK_EQ(gasnett_atomic64_read(&atomic64_cas, 0), THREADS * ROUNDS);
    CHECK_EQ(gasnett_strongatomic_read(&strongatomic_shared, 0), THREADS * ROUNDS);
    CHECK_EQ(gasnett_strongatomic_read(&strongatomic_cas, 0), THREADS * ROUNDS);
    CHECK_EQ(gasnett_strongatomic32_read(&strongatomic32_shared, 0), THREADS * ROUNDS);
    CHECK_EQ(gasnett_strongatomic32_read(&strongatomic32_cas, 0), THREADS * ROUNDS);
    CHECK_EQ(gasnett_strongatomic64_read(&strongatomic64_shared, 0), THREADS * ROUNDS);
    CHECK_EQ(gasnett_strongatomic64_read(&strongatomic64_cas, 0), THREADS * ROUNDS);
}
#endif

/* --- a signal handler --- */

static gasnett_strongatomic64_t ticks64 = gasnett_strongatomic64_init(0);
static gasnett_strongatomic32_t handled = gasnett_strongatomic32_init(0);

static void on_alarm(int sig)
{
    (void)sig;
    gasnett_strongatomic64_add(&ticks64, 1000000, 0);
    gasnett_strongatomic32_increment(&handled, 0);
}

static void check_signal(void)
{
    struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
    uint64_t ours = 0;

    rule("strong atomics are whole for a signal handler");
    gasnett_reghandler(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    while (gasnett_strongatomic32_read(&handled, 0) < 50) {
        gasnett_strongatomic64_increment(&ticks64, 0);
        ours++;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    CHECK(gasnett_strongatomic64_read(&ticks64, 0)
          == ours + UINT64_C(1000000) * gasnett_strongatomic32_read(&handled, 0));
}

int main(void)
{
    check_types();
    rule("atomic: operations are those of a serial model");
    model_atomic();
    rule("atomic32: operations are those of a serial model");
    model_atomic32();
    rule("atomic64: operations are those of a serial model");
    model_atomic64();
    rule("strongatomic: operations are those of a serial model");
    model_strongatomic();
    rule("strongatomic32: operations are those of a serial model");
    model_strongatomic32();
    rule("strongatomic64: operations are those of a serial model");
    model_strongatomic64();
#if GASNETT_THREAD_SAFE
    check_threads();
#endif
    check_signal();
    return tap_finish();
}
