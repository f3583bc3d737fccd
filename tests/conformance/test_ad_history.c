/*
 * test_ad_history.c - atomics under contention: all ranks, in par with several threads each, work
 * on the same words; what they fetched has to be one history. Tickets are given out once and in
 * order, swaps form one chain, bits belong to who set them, sums come out, a lock excludes.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Remote atomics: atomicity.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_ad_ops.h"
#include "aq_test.h"

#if GASNET_SEQ
enum { THREADS = 1 };
#else
enum { THREADS = 3 };
#endif

/* At the home of a phase: words with a line each, then one mark for each operation there is. */
enum { HOT, TOTAL, LOCK, GUARDED, BITS, BIT_WORDS = 8, HEAD_LINES = BITS + BIT_WORDS };

static gex_AD_t ads[6], marks;
static gex_Rank_t home;
static int ops; /* of each worker in each phase */
static void (*phase)(int worker);

#define ad_I32 ads[0]
#define ad_U32 ads[1]
#define ad_I64 ads[2]
#define ad_U64 ads[3]
#define ad_FLT ads[4]
#define ad_DBL ads[5]

static void *hot(int line)
{
    return (char *)aq_test_base(home) + 64 * (size_t)line;
}

static uint64_t *mark(uint64_t i)
{
    return (uint64_t *)aq_test_base(home) + 8 * (uint64_t)HEAD_LINES + i;
}

static uint64_t workers(void)
{
    return (uint64_t)aq_test_n * THREADS;
}

static uint64_t all_ops(void)
{
    return workers() * (uint64_t)ops;
}

/* A rank has received match id i: no rank may have received it before. */
static void claim(uint64_t i)
{
    uint64_t old = 1;

    if (i >= all_ops()) {
        AQ_CHECK(i < all_ops());
        return;
    }
    gex_Event_Wait(gex_AD_OpNB_U64(marks, &old, home, mark(i), GEX_OP_FADD, 1, 0, 0));
    AQ_CHECK_EQ(old, 0);
}

/* ---- running a phase ---- */

static void *run_worker(void *arg)
{
    phase((int)aq_test_me * THREADS + (int)(intptr_t)arg);
    return NULL;
}

/* Afterwards all ranks have finished, and the home may read its memory. */
static void run(void (*fn)(int), int count)
{
    phase = fn;
    ops = count;
    if (aq_test_me == home)
        memset(aq_test_base(home), 0, 64 * HEAD_LINES + (all_ops() + 1) * sizeof(uint64_t));
    aq_test_barrier();
#if GASNET_SEQ
    run_worker((void *)0);
#else
    aq_test_threads(THREADS, run_worker);
#endif
    aq_test_barrier();
}

/* ---- match ids: one type after the other ---- */

#define NUMBERS(T, C)                                                                        \
    static void numbers_##T(int worker)                                                      \
    {                                                                                        \
        C before = -1, got;                                                                  \
        int i;                                                                               \
                                                                                             \
        for (i = 0; i < ops; i++) {                                                          \
            if ((i + worker) % 2)                                                            \
                gex_Event_Wait(                                                              \
                    gex_AD_OpNB_##T(ad_##T, &got, home, hot(HOT), GEX_OP_FADD, 1, 0, 0));    \
            else                                                                             \
                gex_Event_Wait(                                                              \
                    gex_AD_OpNB_##T(ad_##T, &got, home, hot(HOT), GEX_OP_FINC, 0, 0, 0));    \
            AQ_CHECK(i == 0 || got > before);                                                \
            before = got;                                                                    \
            claim((uint64_t)got);                                                            \
        }                                                                                    \
    }                                                                                        \
                                                                                             \
    static void check_numbers_##T(void)                                                      \
    {                                                                                        \
        C last;                                                                              \
                                                                                             \
        run(numbers_##T, aq_test_quick ? 8 : 60);                                            \
        gex_Event_Wait(gex_AD_OpNB_##T(ad_##T, &last, home, hot(HOT), GEX_OP_GET, 0, 0, 0)); \
        AQ_CHECK(last == (C)all_ops());                                                      \
        aq_test_barrier();                                                                   \
    }
AQ_AD_EACH_TYPE(NUMBERS)

/* The same by GET and compare-and-swap; what it returns is the next guess. */
static void guesses(int worker)
{
    uint32_t guess = 0, old;
    int i;

    (void)worker;
    gex_Event_Wait(gex_AD_OpNB_U32(ad_U32, &guess, home, hot(HOT), GEX_OP_GET, 0, 0, 0));
    for (i = 0; i < ops;) {
        gex_Event_Wait(
            gex_AD_OpNB_U32(ad_U32, &old, home, hot(HOT), GEX_OP_FCAS, guess, guess + 1, 0));
        AQ_CHECK(old >= guess);
        if (old != guess) {
            guess = old;
            continue;
        }
        claim(old);
        guess++;
        i++;
    }
}

static void check_guesses(void)
{
    uint32_t last;

    run(guesses, aq_test_quick ? 5 : 40);
    gex_Event_Wait(gex_AD_OpNB_U32(ad_U32, &last, home, hot(HOT), GEX_OP_GET, 0, 0, 0));
    AQ_CHECK_EQ(last, all_ops());
    aq_test_barrier();
}

/* ---- a chain of swaps ---- */

/* Everyone leaves its number and finds its predecessor's. Each number is found once, but the last.
 * */
static void swaps(int worker)
{
    int i;

    for (i = 0; i < ops; i++) {
        const uint64_t number = (uint64_t)worker * (uint64_t)ops + (uint64_t)i + 1;
        uint64_t before = 0, old = 1;

        gex_Event_Wait(gex_AD_OpNB_U64(ad_U64, &before, home, hot(HOT), GEX_OP_SWAP, number, 0, 0));
        AQ_CHECK(before <= all_ops() && before != number);
        gex_Event_Wait(gex_AD_OpNB_U64(marks, &old, home, mark(before), GEX_OP_SWAP, number, 0, 0));
        AQ_CHECK_EQ(old, 0);
    }
}

static void check_swaps(void)
{
    run(swaps, aq_test_quick ? 8 : 60);
    if (aq_test_me == home) {
        uint64_t *last_of = calloc(workers(), sizeof(*last_of)), at = 0, length = 0;

        while (*mark(at) != 0 && length <= all_ops()) {
            const uint64_t next = *mark(at), worker = (next - 1) / (uint64_t)ops;

            AQ_CHECK(next > last_of[worker]); /* each worker's own in its own order */
            last_of[worker] = next;
            at = next;
            length++;
        }
        AQ_CHECK_EQ(length, all_ops());
        AQ_CHECK_EQ(*(uint64_t *)hot(HOT), at);
        free(last_of);
    }
    aq_test_barrier();
}

/* ---- sums, products, extremes ---- */

/* Many non-fetching operations of several kinds in flight at once; each worker sums what it did. */
static void sums(int worker)
{
    uint64_t random = (uint64_t)worker + 1;
    int64_t net = 0;
    int i;

    for (i = 0; i < ops; i++) {
        const int64_t a = (int64_t)(aq_test_random(&random) % 1000);

        switch (a % 4) {
        case 0:
            gex_AD_OpNBI_I64(ad_I64, NULL, home, hot(HOT), GEX_OP_ADD, a, 0, 0);
            net += a;
            break;
        case 1:
            gex_AD_OpNBI_I64(ad_I64, NULL, home, hot(HOT), GEX_OP_SUB, a, 0, 0);
            net -= a;
            break;
        case 2:
            gex_AD_OpNBI_I64(ad_I64, NULL, home, hot(HOT), GEX_OP_INC, 0, 0, 0);
            net++;
            break;
        default:
            gex_AD_OpNBI_I64(ad_I64, NULL, home, hot(HOT), GEX_OP_DEC, 0, 0, 0);
            net--;
        }
    }
    gex_NBI_Wait(GEX_EC_RMW, 0);
    gex_Event_Wait(gex_AD_OpNB_I64(ad_I64, NULL, home, hot(TOTAL), GEX_OP_ADD, net, 0, 0));
}

static void check_sums(void)
{
    run(sums, aq_test_quick ? 40 : 500);
    if (aq_test_me == home)
        AQ_CHECK_EQ(*(int64_t *)hot(HOT), *(int64_t *)hot(TOTAL));
    aq_test_barrier();
}

/* Real sums: the same number of quarters in, whatever the order; products of an odd number. */
static void reals(int worker)
{
    double *const sum = hot(HOT);
    float *const other = hot(TOTAL);
    int i;

    (void)worker;
    for (i = 0; i < ops; i++) {
        gex_AD_OpNBI_DBL(ad_DBL, NULL, home, sum, GEX_OP_ADD, 0.75, 0, 0);
        gex_AD_OpNBI_DBL(ad_DBL, NULL, home, sum, GEX_OP_SUB, 0.5, 0, 0);
        gex_AD_OpNBI_FLT(ad_FLT, NULL, home, other, GEX_OP_INC, 0, 0, 0);
        gex_AD_OpNBI_FLT(ad_FLT, NULL, home, other, GEX_OP_SUB, 0.5f, 0, 0);
    }
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

static bool is_begun(void)
{
    uint64_t seen;

    gex_Event_Wait(gex_AD_OpNB_U64(ad_U64, &seen, home, hot(HOT), GEX_OP_GET, 0, 0, 0));
    return seen != 0;
}

static void products(int worker)
{
    int i;

    if (worker == 0)
        gex_Event_Wait(gex_AD_OpNB_U64(ad_U64, NULL, home, hot(HOT), GEX_OP_CAS, 0, 1, 0));
    else
        AQ_UNTIL(is_begun());
    for (i = 0; i < ops; i++)
        gex_AD_OpNBI_U64(ad_U64, NULL, home, hot(HOT), GEX_OP_MULT, 3, 0, 0);
    gex_NBI_Wait(GEX_EC_RMW, 0);
}

static void check_reals_and_products(void)
{
    uint64_t power = 1, i;

    run(reals, aq_test_quick ? 20 : 200);
    if (aq_test_me == home) {
        AQ_CHECK(*(double *)hot(HOT) == 0.25 * (double)all_ops());
        AQ_CHECK(*(float *)hot(TOTAL) == 0.5f * (float)all_ops());
    }
    aq_test_barrier();
    run(products, aq_test_quick ? 20 : 200);
    for (i = 0; i < all_ops(); i++)
        power *= 3;
    if (aq_test_me == home)
        AQ_CHECK(*(uint64_t *)hot(HOT) == power);
    aq_test_barrier();
}

/* A maximum never falls, a minimum never rises, and both remember what this worker gave them. */
static void extremes(int worker)
{
    uint64_t random = (uint64_t)worker + 1;
    int32_t highest = INT32_MIN, lowest = INT32_MAX, seen;
    int i;

    for (i = 0; i < ops; i++) {
        const int32_t a = (int32_t)aq_test_random(&random);

        gex_Event_Wait(gex_AD_OpNB_I32(ad_I32, &seen, home, hot(HOT), GEX_OP_FMAX, a, 0, 0));
        AQ_CHECK(seen >= highest);
        highest = seen > a ? seen : a;
        gex_Event_Wait(gex_AD_OpNB_I32(ad_I32, &seen, home, hot(TOTAL), GEX_OP_FMIN, a, 0, 0));
        AQ_CHECK(seen <= lowest);
        lowest = seen < a ? seen : a;
    }
}

static void check_extremes(void)
{
    int32_t highest = 0, lowest = 0;
    uint64_t w;
    int i;

    run(extremes, aq_test_quick ? 10 : 100);
    for (w = 0; w < workers(); w++) {
        uint64_t random = w + 1;

        for (i = 0; i < ops; i++) {
            const int32_t a = (int32_t)aq_test_random(&random);

            highest = a > highest ? a : highest;
            lowest = a < lowest ? a : lowest;
        }
    }
    if (aq_test_me == home) {
        AQ_CHECK_EQ(*(int32_t *)hot(HOT), highest);
        AQ_CHECK_EQ(*(int32_t *)hot(TOTAL), lowest);
    }
    aq_test_barrier();
}

/* ---- bits ---- */

/* One bit for each worker, up to as many as there are. Nobody else changes it. */
static void bits(int worker)
{
    const uint64_t bit = (uint64_t)1 << worker % 64;
    void *at = hot(BITS + worker / 64);
    uint64_t seen;
    int i;

    if (worker / 64 >= BIT_WORDS)
        return;
    for (i = 0; i < ops; i++) {
        gex_Event_Wait(gex_AD_OpNB_U64(ad_U64, &seen, home, at, GEX_OP_FOR, bit, 0, 0));
        AQ_CHECK((seen & bit) == 0);
        gex_Event_Wait(gex_AD_OpNB_U64(ad_U64, &seen, home, at, GEX_OP_FAND, ~bit, 0, 0));
        AQ_CHECK((seen & bit) != 0);
        gex_Event_Wait(gex_AD_OpNB_U64(ad_U64, &seen, home, at, GEX_OP_FXOR, bit, 0, 0));
        AQ_CHECK((seen & bit) == 0);
        gex_AD_OpNBI_U64(ad_U64, NULL, home, at, GEX_OP_XOR, bit, 0, 0);
        gex_NBI_Wait(GEX_EC_RMW, 0);
    }
    gex_Event_Wait(gex_AD_OpNB_U64(ad_U64, NULL, home, at, GEX_OP_OR, bit, 0, 0));
}

static void check_bits(void)
{
    uint64_t w;

    run(bits, aq_test_quick ? 5 : 60);
    if (aq_test_me == home)
        for (w = 0; w < workers() && w / 64 < BIT_WORDS; w++)
            AQ_CHECK((*(uint64_t *)hot(BITS + (int)(w / 64)) >> w % 64 & 1) != 0);
    aq_test_barrier();
}

/* ---- a lock ---- */

/* What the lock guards is read and written by transfers. */
static void locked(int worker)
{
    const uint32_t me = (uint32_t)worker + 1;
    uint32_t holder;
    int i;

    for (i = 0; i < ops; i++) {
        uint64_t value;

        for (;;) {
            gex_Event_Wait(gex_AD_OpNB_U32(ad_U32, &holder, home, hot(LOCK), GEX_OP_FCAS, 0, me,
                                           GEX_FLAG_AD_ACQ));
            if (holder == 0)
                break;
            AQ_CHECK(holder != me);
            aq_test_relax();
        }
        value = gex_RMA_GetBlockingVal(aq_test_tm, home, hot(GUARDED), 8, 0);
        gex_RMA_PutBlockingVal(aq_test_tm, home, hot(GUARDED), value + 1, 8, 0);
        gex_Event_Wait(
            gex_AD_OpNB_U32(ad_U32, NULL, home, hot(LOCK), GEX_OP_SET, 0, 0, GEX_FLAG_AD_REL));
    }
}

static void check_locked(void)
{
    run(locked, aq_test_quick ? 2 : 20);
    if (aq_test_me == home)
        AQ_CHECK_EQ(*(uint64_t *)hot(GUARDED), all_ops());
    aq_test_barrier();
}

static void check_at(gex_Rank_t where)
{
    home = where;
    rule(
        "extended 9.3: fetched tickets are each number once, in order for each thread (all types)");
    check_numbers_I32();
    check_numbers_U32();
    check_numbers_I64();
    check_numbers_U64();
    check_numbers_FLT();
    check_numbers_DBL();
    rule("extended 9.3: compare-and-swap succeeds once for each value");
    check_guesses();
    rule("extended 9.3: swaps form one chain, each thread's in its order");
    check_swaps();
    rule("extended 9.3: nothing is lost of mixed ADD, SUB, INC, DEC, MULT, whatever the type");
    check_sums();
    check_reals_and_products();
    rule("extended 9.3: MIN and MAX only go one way and keep the extreme");
    check_extremes();
    rule("extended 9.3: AND, OR, XOR change their own bits only");
    check_bits();
    rule("extended 9.4: a lock by compare-and-swap with ACQ and SET with REL excludes");
    check_locked();
}

int main(int argc, char **argv)
{
    const gex_OP_t integer = AQ_AD_OPS_INTEGER, floating = AQ_AD_OPS_FLOATING;
    size_t i;

    aq_test_start(&argc, &argv, 1);
    aq_test_segment(64 * HEAD_LINES + ((size_t)aq_test_n * THREADS * 500 + 1) * sizeof(uint64_t));
    for (i = 0; i < 6; i++)
        gex_AD_Create(&ads[i], aq_test_tm, (gex_DT_t)1 << i, i < 4 ? integer : floating, 0);
    gex_AD_Create(&marks, aq_test_tm, GEX_DT_U64, GEX_OP_FADD | GEX_OP_SWAP,
                  GEX_FLAG_AD_FAVOR_MY_NBRHD);
    check_at(0);
    if (aq_test_n > 1 && !aq_test_quick)
        check_at(aq_test_n - 1);
    gex_AD_Destroy(marks);
    for (i = 0; i < 6; i++)
        gex_AD_Destroy(ads[i]);
    return aq_test_finish();
}
