/*
 * test_coll_user.c - reductions with operators of the client's: structs, matrices in rank order,
 * elements of any size, each process's own function data.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Collectives, user operators.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"
#include "gasnet_coll.h"

#include <stdalign.h>

static int token; /* its address is this process's function data */
static aq_test_count_t bad_calls;
static const void *untouched_from, *untouched_to; /* src of a call with dst != src */

/* What holds for every call of an operator. */
static void check_call(const void *x, const void *y, size_t count, size_t unit, const void *cdata,
                       size_t alignment)
{
    const char *left = x, *right = y;

    if (cdata != &token || count == 0 || (uintptr_t)x % alignment != 0
        || (uintptr_t)y % alignment != 0
        || (left < right + count * unit && right < left + count * unit)
        || (y >= untouched_from && y < untouched_to))
        atomic_fetch_add(&bad_calls, 1);
}

static void protect(const void *src, size_t nbytes)
{
    untouched_from = src;
    untouched_to = (const char *)src + nbytes;
}

/* --- a struct: largest value and where it is --- */

struct peak {
    double value;
    int32_t rank;
    uint8_t pad[20]; /* 32 bytes */
};

static void op_peak(const void *arg1, void *arg2, size_t count, const void *cdata)
{
    const struct peak *x = arg1;
    struct peak *y = arg2;

    check_call(x, y, count, sizeof(*x), cdata, alignof(struct peak));
    for (size_t i = 0; i < count; i++)
        if (x[i].value > y[i].value || (x[i].value == y[i].value && x[i].rank < y[i].rank))
            y[i] = x[i];
}

static double peak_value(gex_Rank_t rank, size_t i)
{
    return (double)((rank * 7919u + i * 104729u) % 1009u);
}

static void check_struct(size_t count, bool to_all, bool in_place)
{
    struct peak *src = calloc(count, sizeof(*src)), *dst = calloc(count, sizeof(*dst));
    struct peak *from = in_place ? dst : src;
    const gex_Rank_t root = (gex_Rank_t)(count % aq_test_n);

    for (size_t i = 0; i < count; i++)
        from[i] = (struct peak){ peak_value(aq_test_me, i), (int32_t)aq_test_me, { 0 } };
    if (!in_place)
        protect(src, count * sizeof(*src));
    if (to_all)
        aq_test_sync(gex_Coll_ReduceToAllNB(aq_test_tm, dst, from, GEX_DT_USER, sizeof(*src), count,
                                            GEX_OP_USER, op_peak, &token, 0));
    else
        aq_test_sync(gex_Coll_ReduceToOneNB(aq_test_tm, root, dst, from, GEX_DT_USER, sizeof(*src),
                                            count, GEX_OP_USER, op_peak, &token, 0));
    protect(NULL, 0);
    for (size_t i = 0; i < count && (to_all || aq_test_me == root); i++) {
        gex_Rank_t best = 0;

        for (gex_Rank_t rank = 1; rank < aq_test_n; rank++)
            if (peak_value(rank, i) > peak_value(best, i))
                best = rank;
        AQ_CHECK_EQ(dst[i].rank, best);
        AQ_CHECK(dst[i].value == peak_value(best, i));
    }
    free(src);
    free(dst);
}

/* --- matrices modulo 2^32: associative, not commutative --- */

struct matrix {
    uint32_t m[2][2];
};

static struct matrix product(struct matrix a, struct matrix b)
{
    struct matrix c;

    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            c.m[i][j] = a.m[i][0] * b.m[0][j] + a.m[i][1] * b.m[1][j];
    return c;
}

static void op_product(const void *arg1, void *arg2, size_t count, const void *cdata)
{
    const struct matrix *x = arg1;
    struct matrix *y = arg2;

    check_call(x, y, count, sizeof(*x), cdata, alignof(struct matrix));
    for (size_t i = 0; i < count; i++)
        y[i] = product(x[i], y[i]);
}

static struct matrix matrix_of(gex_Rank_t rank, size_t i)
{
    return (
        struct matrix){ { { rank + 2, (uint32_t)i * 3 + 1 }, { rank * 5 + 1, (uint32_t)i + 7 } } };
}

static void check_order(size_t count, bool to_all, bool in_place)
{
    struct matrix *src = calloc(count, sizeof(*src)), *dst = calloc(count, sizeof(*dst));
    struct matrix *from = in_place ? dst : src;
    const gex_Rank_t root = (gex_Rank_t)((count + 1) % aq_test_n);

    for (size_t i = 0; i < count; i++)
        from[i] = matrix_of(aq_test_me, i);
    if (!in_place)
        protect(src, count * sizeof(*src));
    if (to_all)
        gex_Event_Wait(gex_Coll_ReduceToAllNB(aq_test_tm, dst, from, GEX_DT_USER, sizeof(*src),
                                              count, GEX_OP_USER_NC, op_product, &token, 0));
    else
        gex_Event_Wait(gex_Coll_ReduceToOneNB(aq_test_tm, root, dst, from, GEX_DT_USER,
                                              sizeof(*src), count, GEX_OP_USER_NC, op_product,
                                              &token, 0));
    protect(NULL, 0);
    for (size_t i = 0; i < count && (to_all || aq_test_me == root); i++) {
        struct matrix expected = matrix_of(0, i);

        for (gex_Rank_t rank = 1; rank < aq_test_n; rank++)
            expected = product(expected, matrix_of(rank, i));
        AQ_CHECK(memcmp(&expected, &dst[i], sizeof(expected)) == 0);
    }
    free(src);
    free(dst);
}

/* --- elements of any size: sums of their 32-bit words --- */

static size_t unit;

static void op_words(const void *arg1, void *arg2, size_t count, const void *cdata)
{
    const unsigned char *x = arg1;
    unsigned char *y = arg2;

    check_call(x, y, count, unit, cdata, 1);
    for (size_t i = 0; i < count * unit; i++)
        y[i] = (unsigned char)(x[i] + y[i]);
}

static unsigned char byte_of(gex_Rank_t rank, size_t i)
{
    return (unsigned char)(rank * 31 + i * 7 + (i >> 8));
}

static void check_unit(size_t bytes, size_t count, gex_OP_t op, bool in_place)
{
    unsigned char *src = malloc(bytes * count), *dst = malloc(bytes * count);
    unsigned char *from = in_place ? dst : src;
    size_t wrong = 0;

    unit = bytes;
    for (int to_all = 0; to_all < 2; to_all++) {
        const gex_Rank_t root = aq_test_n - 1;

        for (size_t i = 0; i < bytes * count; i++)
            from[i] = byte_of(aq_test_me, i);
        if (to_all)
            gex_Event_Wait(gex_Coll_ReduceToAllNB(aq_test_tm, dst, from, GEX_DT_USER, bytes, count,
                                                  op, op_words, &token, 0));
        else
            gex_Event_Wait(gex_Coll_ReduceToOneNB(aq_test_tm, root, dst, from, GEX_DT_USER, bytes,
                                                  count, op, op_words, &token, 0));
        for (size_t i = 0; i < bytes * count && (to_all || aq_test_me == root); i++) {
            unsigned char sum = 0;

            for (gex_Rank_t rank = 0; rank < aq_test_n; rank++)
                sum = (unsigned char)(sum + byte_of(rank, i));
            wrong += sum != dst[i];
        }
        aq_test_barrier(); /* the next round needs unit unchanged until everybody is through */
    }
    AQ_CHECK_EQ(wrong, 0);
    free(src);
    free(dst);
}

/* --- elements that need the most alignment any type has --- */

struct strict {
    alignas(max_align_t) uint8_t id; /* and padding */
    long double value;
};

static void op_strict(const void *arg1, void *arg2, size_t count, const void *cdata)
{
    const struct strict *x = arg1;
    struct strict *y = arg2;

    check_call(x, y, count, sizeof(*x), cdata, alignof(struct strict));
    for (size_t i = 0; i < count; i++) {
        y[i].id ^= x[i].id;
        y[i].value += x[i].value;
    }
}

static void op_long_double(const void *arg1, void *arg2, size_t count, const void *cdata)
{
    const long double *x = arg1;
    long double *y = arg2;

    check_call(x, y, count, sizeof(*x), cdata, alignof(long double));
    for (size_t i = 0; i < count; i++)
        y[i] += x[i];
}

static void reduce_user(bool to_all, void *dst, const void *src, size_t bytes, size_t count,
                        gex_OP_t op, gex_Coll_ReduceFn_t fn)
{
    if (to_all)
        gex_Event_Wait(gex_Coll_ReduceToAllNB(aq_test_tm, dst, src, GEX_DT_USER, bytes, count, op,
                                              fn, &token, 0));
    else
        gex_Event_Wait(gex_Coll_ReduceToOneNB(aq_test_tm, 0, dst, src, GEX_DT_USER, bytes, count,
                                              op, fn, &token, 0));
}

static void check_strict(size_t count, bool to_all, gex_OP_t op)
{
    struct strict *src = calloc(count, sizeof(*src)), *dst = calloc(count, sizeof(*dst));
    long double *numbers = calloc(count, sizeof(*numbers)), sum = 0;
    uint8_t ids = 0;

    for (size_t i = 0; i < count; i++) {
        src[i].id = (uint8_t)(1u << aq_test_me % 8);
        src[i].value = numbers[i] = (long double)(aq_test_me + i + 1);
    }
    reduce_user(to_all, dst, src, sizeof(*src), count, op, op_strict);
    reduce_user(to_all, numbers, numbers, sizeof(*numbers), count, op, op_long_double);
    for (gex_Rank_t rank = 0; rank < aq_test_n; rank++) {
        ids ^= (uint8_t)(1u << rank % 8);
        sum += (long double)rank + 1;
    }
    for (size_t i = 0; i < count && (to_all || aq_test_me == 0); i++) {
        AQ_CHECK(dst[i].id == ids && dst[i].value == sum + (long double)(i * aq_test_n));
        AQ_CHECK(numbers[i] == dst[i].value);
    }
    free(src);
    free(dst);
    free(numbers);
}

/* --- a built-in type with a client's operator, and function data that is no pointer --- */

static void op_gcd(const void *arg1, void *arg2, size_t count, const void *cdata)
{
    const uint64_t *x = arg1;
    uint64_t *y = arg2;

    if ((uintptr_t)cdata != 1000 + aq_test_me)
        atomic_fetch_add(&bad_calls, 1);
    for (size_t i = 0; i < count; i++) {
        uint64_t a = x[i], b = y[i];

        while (b != 0) {
            const uint64_t rest = a % b;

            a = b;
            b = rest;
        }
        y[i] = a;
    }
}

static void check_builtin_type(void)
{
    uint64_t ours[300], all[300];

    for (size_t i = 0; i < AQ_LENGTH(ours); i++)
        ours[i] = (i + 1) * 6 * (aq_test_me + 1);
    gex_Event_Wait(gex_Coll_ReduceToAllNB(aq_test_tm, all, ours, GEX_DT_U64, 8, AQ_LENGTH(ours),
                                          GEX_OP_USER, op_gcd,
                                          (void *)(uintptr_t)(1000 + aq_test_me), 0));
    for (size_t i = 0; i < AQ_LENGTH(ours); i++)
        AQ_CHECK_EQ(all[i], (i + 1) * 6);
}

/* --- operators do what is legal under a handler-safe lock --- */

static gex_HSL_t hsl = GEX_HSL_INITIALIZER;
static int under_lock;

static void op_locks(const void *arg1, void *arg2, size_t count, const void *cdata)
{
    const int32_t *x = arg1;
    int32_t *y = arg2;

    (void)cdata;
    gex_HSL_Lock(&hsl);
    under_lock++;
    gex_HSL_Unlock(&hsl);
    if (gex_TM_QuerySize(aq_test_tm) != aq_test_n || gex_System_QueryJobRank() != aq_test_me)
        atomic_fetch_add(&bad_calls, 1);
    for (size_t i = 0; i < count; i++)
        y[i] += x[i];
}

static void check_locks(void)
{
    int32_t ours = 1, all = 0;

    gex_Event_Wait(gex_Coll_ReduceToAllNB(aq_test_tm, &all, &ours, GEX_DT_I32, 4, 1, GEX_OP_USER,
                                          op_locks, NULL, 0));
    AQ_CHECK_EQ(all, aq_test_n);
}

int main(int argc, char **argv)
{
    static const size_t counts[] = { 1, 3, 4, 100, 1023, 1025, 5000, 40001 };
    static const size_t units[] = { 1, 3, 113, 4095, 32767, 32768, 32769, 40000, 100001 };

    aq_test_start(&argc, &argv, 1);
    aq_test_segment(GASNET_PAGESIZE);
    for (size_t i = 0; i < AQ_LENGTH(counts) && counts[i] <= (aq_test_quick ? 5000u : 40001u); i++)
        for (int how = 0; how < 4; how++) {
            rule("extended 12.4, 12.5: structs; result in the second argument; src never written");
            check_struct(counts[i], how & 1, (how & 2) != 0);
            rule("extended 8, 12.4: USER_NC combines in rank order");
            check_order(counts[i], how & 1, (how & 2) != 0);
        }
    rule("extended 12.4: elements of any size");
    for (size_t i = 0; i < AQ_LENGTH(units); i++)
        for (size_t count = 1; count < (units[i] < 5000 ? 100 : 9); count = count * 7 + 1) {
            check_unit(units[i], count, GEX_OP_USER, false);
            check_unit(units[i], count, GEX_OP_USER_NC, true);
        }
    if (!aq_test_quick)
        check_unit(1000003, 2, GEX_OP_USER, true);
    rule("extended 12.5: elements with the strictest alignment");
    for (size_t i = 0; i < AQ_LENGTH(counts) && counts[i] <= (aq_test_quick ? 5000u : 40001u); i++)
        for (int to_all = 0; to_all < 2; to_all++) {
            check_strict(counts[i], to_all, GEX_OP_USER);
            check_strict(counts[i], to_all, GEX_OP_USER_NC);
        }
    rule("extended 12.4, 12.5: built-in type, own operator; each process's own cdata");
    check_builtin_type();
    rule("extended 12.5: an operator may take a lock and ask queries");
    check_locks();
    rule("extended 12.5: operands aligned, disjoint, never src; cdata as passed here");
    AQ_CHECK_EQ(atomic_load(&bad_calls), 0);
    return aq_test_finish();
}
