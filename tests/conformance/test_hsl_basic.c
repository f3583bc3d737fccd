/*
 * test_hsl_basic.c - handler-safe locks: static, dynamic and embedded, Trylock, several at once,
 * use in handlers, mutual exclusion between threads (par), handlers do not run while a lock is
 * held. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, handler-safe locks.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_ADD = AQ_TEST_FREE, ADDS = 2000, THREADS = 4 };

static gex_HSL_t plain = GEX_HSL_INITIALIZER;
static struct {
    int before;
    gex_HSL_t lock;
    long sum;
} shared = { 1, GEX_HSL_INITIALIZER, 0 };
static aq_test_count_t added;

/* Deliberately not atomic: only the lock protects it. */
static void add_one(void)
{
    long v;

    gex_HSL_Lock(&shared.lock);
    v = shared.sum;
    atomic_signal_fence(memory_order_seq_cst);
    shared.sum = v + 1;
    gex_HSL_Unlock(&shared.lock);
    atomic_fetch_add(&added, 1);
}

static void h_add(gex_Token_t token)
{
    (void)token;
    add_one();
}

static gex_AM_Entry_t table[] = { AQ_ENTRY(H_ADD, h_add, AQ_SQ, 0) };

#if GASNET_PAR
static atomic_int thread_adds;

static void *adder(void *arg)
{
    int i, got;

    (void)arg;
    for (i = 0; i < ADDS; i++) {
        if (i % 3 == 0) {
            while ((got = gex_HSL_Trylock(&shared.lock)) != GASNET_OK)
                AQ_CHECK_EQ(got, GASNET_ERR_NOT_READY);
            shared.sum++;
            gex_HSL_Unlock(&shared.lock);
            atomic_fetch_add(&thread_adds, 1);
        } else {
            add_one();
        }
        if (i % 100 == 0)
            gasnet_AMPoll();
    }
    return NULL;
}

static atomic_int holding;

static void *holder(void *arg)
{
    (void)arg;
    gex_HSL_Lock(&plain);
    atomic_store(&holding, 1);
    while (atomic_load(&holding) == 1)
        aq_test_yield();
    gex_HSL_Unlock(&plain);
    atomic_store(&holding, 3);
    return NULL;
}

static void *trier(void *arg)
{
    (void)arg;
    while (atomic_load(&holding) != 1)
        aq_test_yield();
    AQ_CHECK_EQ(gex_HSL_Trylock(&plain), GASNET_ERR_NOT_READY);
    AQ_CHECK_EQ(gex_HSL_Trylock(&plain), GASNET_ERR_NOT_READY);
    atomic_store(&holding, 2);
    gex_HSL_Lock(&plain);
    gex_HSL_Unlock(&plain);
    return NULL;
}

static void *one_of_two(void *arg)
{
    return (intptr_t)arg == 0 ? holder(arg) : trier(arg);
}
#endif

int main(int argc, char **argv)
{
    gex_HSL_t *dynamic;
    int i, expect;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    rule("core 23: static and dynamic locks; Trylock of a free lock succeeds; several at once");
    dynamic = malloc(10 * sizeof(*dynamic));
    for (i = 0; i < 10; i++) {
        gex_HSL_Init(&dynamic[i]);
        gex_HSL_Lock(&dynamic[i]);
    }
    for (i = 9; i >= 0; i--)
        gex_HSL_Unlock(&dynamic[i]);
    for (i = 0; i < 10; i++) {
        AQ_CHECK_EQ(gex_HSL_Trylock(&dynamic[i]), GASNET_OK);
        gex_HSL_Unlock(&dynamic[i]);
        gex_HSL_Destroy(&dynamic[i]);
    }
    free(dynamic);
    rule("core 23: mutual exclusion between handlers and ordinary code");
    for (i = 0; i < ADDS; i++) {
        gex_AM_RequestShort0(aq_test_tm, aq_test_peer(1), H_ADD, 0);
        add_one();
    }
    expect = 2 * ADDS;
    aq_test_wait(&added, expect);
    AQ_CHECK_EQ(shared.sum, expect);
    aq_test_barrier();
#if GASNET_PAR
    rule("core 23: mutual exclusion between threads, with Lock and Trylock, handlers running");
    for (i = 0; i < 500; i++)
        gex_AM_RequestShort0(aq_test_tm, aq_test_peer(1), H_ADD, 0);
    aq_test_threads(THREADS, adder);
    expect += 500 + THREADS * ADDS;
    aq_test_wait(&added, expect - atomic_load(&thread_adds));
    gex_HSL_Lock(&shared.lock);
    AQ_CHECK_EQ(shared.sum, expect);
    gex_HSL_Unlock(&shared.lock);
    rule("core 23: Trylock of a lock that another thread holds says NOT_READY");
    aq_test_threads(2, one_of_two);
#endif
    gex_HSL_Destroy(&shared.lock);
    gex_HSL_Destroy(&plain);
    return aq_test_finish();
}
