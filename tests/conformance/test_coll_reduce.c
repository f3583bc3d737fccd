/*
 * test_coll_reduce.c - every type with every operation against a serial model, at one and at all.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Collectives, Data types.
 * Integers take any value and wrap; floating-point inputs are small integers, so that every
 * result is exact.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"
#include "gasnet_coll.h"

enum { CANARY = 32 };

static const size_t max = (size_t)1 << 20; /* elements of 4 bytes */
static unsigned char *src, *dst, *model, *other;

/* The input of a rank. */
#define DEFINE_INPUT(T, IS_FP)                                                   \
    static void input_##T(void *buf, size_t count, gex_Rank_t rank, gex_OP_t op) \
    {                                                                            \
        T *x = buf;                                                              \
        uint64_t state = UINT64_C(0x9e3779b97f4a7c15) * (rank + 1) + op;         \
                                                                                 \
        for (size_t i = 0; i < count; i++) {                                     \
            uint64_t r = state += UINT64_C(0xda942042e4dd58b5);                  \
            r ^= r >> 29;                                                        \
            x[i] = !(IS_FP)            ? (T)r                                    \
                   : op == GEX_OP_MULT ? (T)(1 + (r & 1) * (rank < 10))          \
                                       : (T)((int)(r % 2001) - 1000);            \
        }                                                                        \
    }
DEFINE_INPUT(int32_t, 0)
DEFINE_INPUT(uint32_t, 0)
DEFINE_INPUT(int64_t, 0)
DEFINE_INPUT(uint64_t, 0)
DEFINE_INPUT(float, 1)
DEFINE_INPUT(double, 1)

#define CASE_ARITHMETIC(T, U, OP)            \
    (OP) == GEX_OP_ADD    ? (T)((U)l + (U)r) \
    : (OP) == GEX_OP_MULT ? (T)((U)l * (U)r) \
    : (OP) == GEX_OP_MIN  ? (l < r ? l : r)  \
                          : (l > r ? l : r)
#define CASE_BITS(OP) \
    (OP) == GEX_OP_AND ? (l & r) : (OP) == GEX_OP_OR ? (l | r) : (OP) == GEX_OP_XOR ? (l ^ r):
#define NO_BITS(OP)

/* acc = acc (+) x, one rank after the other. */
#define DEFINE_FOLD(T, U, BITS)                                               \
    static void fold_##T(void *acc, const void *x, size_t count, gex_OP_t op) \
    {                                                                         \
        T *a = acc;                                                           \
        const T *b = x;                                                       \
                                                                              \
        for (size_t i = 0; i < count; i++) {                                  \
            const T l = a[i], r = b[i];                                       \
            a[i] = BITS(op) CASE_ARITHMETIC(T, U, op);                        \
        }                                                                     \
    }
DEFINE_FOLD(int32_t, uint32_t, CASE_BITS)
DEFINE_FOLD(uint32_t, uint32_t, CASE_BITS)
DEFINE_FOLD(int64_t, uint64_t, CASE_BITS)
DEFINE_FOLD(uint64_t, uint64_t, CASE_BITS)
DEFINE_FOLD(float, float, NO_BITS)
DEFINE_FOLD(double, double, NO_BITS)

static const struct type {
    gex_DT_t dt;
    size_t size;
    bool is_fp;
    void (*input)(void *buf, size_t count, gex_Rank_t rank, gex_OP_t op);
    void (*fold)(void *acc, const void *x, size_t count, gex_OP_t op);
} types[] = {
    { GEX_DT_I32, 4, false, input_int32_t, fold_int32_t },
    { GEX_DT_U32, 4, false, input_uint32_t, fold_uint32_t },
    { GEX_DT_I64, 8, false, input_int64_t, fold_int64_t },
    { GEX_DT_U64, 8, false, input_uint64_t, fold_uint64_t },
    { GEX_DT_FLT, 4, true, input_float, fold_float },
    { GEX_DT_DBL, 8, true, input_double, fold_double },
};

static const gex_OP_t ops[] = { GEX_OP_ADD, GEX_OP_MULT, GEX_OP_MIN, GEX_OP_MAX,
                                GEX_OP_AND, GEX_OP_OR,   GEX_OP_XOR };

static void make_model(const struct type *t, gex_OP_t op, size_t count)
{
    t->input(model, count, 0, op);
    for (gex_Rank_t rank = 1; rank < aq_test_n; rank++) {
        t->input(other, count, rank, op);
        t->fold(model, other, count, op);
    }
}

static void check_result(const unsigned char *result, size_t nbytes, const struct type *t,
                         gex_OP_t op)
{
    if (memcmp(result, model, nbytes) != 0)
        aq_test_fail(__FILE__, __LINE__, "type 0x%x op 0x%x, %zu bytes: wrong result",
                     (unsigned)t->dt, (unsigned)op, nbytes);
    AQ_CHECK(aq_test_all(result + nbytes, 0xcc, CANARY));
}

static void check_all(const struct type *t, gex_OP_t op, size_t count, bool in_place)
{
    const size_t nbytes = count * t->size;
    unsigned char *from = in_place ? dst : src;

    memset(dst, 0xcc, nbytes + CANARY);
    t->input(from, count, aq_test_me, op);
    aq_test_sync(
        gex_Coll_ReduceToAllNB(aq_test_tm, dst, from, t->dt, t->size, count, op, NULL, NULL, 0));
    check_result(dst, nbytes, t, op);
    if (!in_place) {
        t->input(other, count, aq_test_me, op);
        AQ_CHECK(memcmp(src, other, nbytes) == 0);
    }
}

static void check_one(const struct type *t, gex_OP_t op, size_t count, gex_Rank_t root,
                      bool in_place)
{
    const size_t nbytes = count * t->size;
    const bool ours = root == aq_test_me;
    unsigned char *from = ours && in_place ? dst : src;

    memset(dst, 0xcc, nbytes + CANARY);
    t->input(from, count, aq_test_me, op);
    gex_Event_Wait(gex_Coll_ReduceToOneNB(aq_test_tm, root,
                                          ours       ? dst
                                          : in_place ? from
                                                     : NULL,
                                          from, t->dt, t->size, count, op, NULL, NULL, 0));
    if (ours)
        check_result(dst, nbytes, t, op);
    if (!ours || !in_place) {
        t->input(other, count, aq_test_me, op);
        AQ_CHECK(memcmp(src, other, nbytes) == 0); /* dst of the others is ignored */
    }
}

static void check_count(size_t count, size_t every)
{
    size_t turn = 0;

    for (size_t i = 0; i < AQ_LENGTH(types); i++)
        for (size_t j = 0; j < AQ_LENGTH(ops); j++) {
            if (turn++ % every != 0 || (types[i].is_fp && j >= 4))
                continue;
            make_model(&types[i], ops[j], count);
            check_all(&types[i], ops[j], count, false);
            check_all(&types[i], ops[j], count, true);
            check_one(&types[i], ops[j], count, (gex_Rank_t)(turn % aq_test_n), false);
            check_one(&types[i], ops[j], count, (gex_Rank_t)(turn * 5 % aq_test_n), true);
        }
}

static void check_roots(void)
{
    for (gex_Rank_t root = 0; root < aq_test_n; root++) {
        const size_t count = 1 + root * 37 % 1000;

        make_model(&types[3], GEX_OP_ADD, count);
        check_one(&types[3], GEX_OP_ADD, count, root, root % 2 != 0);
    }
}

/* Every member gets the same bits, also where the order of operations would show. */
static void check_same_bits(void)
{
    static double ours[5000], all[5000], others[5000];

    for (size_t count = 1; count <= 5000; count = count * 9 + 1) {
        for (size_t i = 0; i < count; i++)
            ours[i] = 1.0 / (double)(3 + i + 7 * aq_test_me);
        gex_Event_Wait(gex_Coll_ReduceToAllNB(aq_test_tm, all, ours, GEX_DT_DBL, 8, count,
                                              GEX_OP_ADD, NULL, NULL, 0));
        memcpy(others, all, sizeof(others));
        gex_Event_Wait(gex_Coll_BroadcastNB(aq_test_tm, 0, others, others, count * 8, 0));
        AQ_CHECK(memcmp(others, all, count * 8) == 0);
    }
}

int main(int argc, char **argv)
{
    static const size_t counts[] = {
        1, 2, 3, 6, 13, 28, 29, 255, 511, 513, 1000, 4096, 4097, 9001
    };

    aq_test_start(&argc, &argv, 1);
    src = malloc(max * 8 + CANARY);
    dst = malloc(max * 8 + CANARY);
    model = malloc(max * 8 + CANARY);
    other = malloc(max * 8 + CANARY);
    rule("extended 12.4, 20: before a segment is attached");
    check_count(2, 1);
    aq_test_segment(GASNET_PAGESIZE);
    rule("extended 8, 12.4: every type and operation, src untouched, dst == src, unused dst "
         "ignored");
    for (size_t i = 0; i < AQ_LENGTH(counts); i++)
        check_count(counts[i], aq_test_quick ? 5 : aq_test_n > 8 ? 3 : 1);
    rule("extended 12.4: every root");
    check_roots();
    rule("extended 12.4: large and odd lengths");
    check_count(100003, 11);
    if (!aq_test_quick) {
        check_count(max / 2 - 1, 17);
        check_count(max, 37);
    }
    rule("extended 12.4: the same bits at every member");
    check_same_bits();
    return aq_test_finish();
}
