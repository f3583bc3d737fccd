/*
 * test_ad_ops.c - every operation on every type against a serial model: boundary values, wrapping,
 * signed zeros, infinities; explicit and implicit; opcode known at compile time and at run time;
 * targets the rank itself and its neighbours.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Remote atomics; data types and
 * operation codes.
 *
 * A rank owns a row of words at each target. A batch sets all words, performs one operation on each
 * with operands of its own, and reads them back, many at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_ad_ops.h"
#include "aq_test.h"

#include <float.h>
#include <math.h>

enum { WORDS = 192, WIDEST = 8 };

/* How an operation is started: the two calls, with the opcode as a constant or as a variable. */
enum style { NB_CONSTANT, NBI_CONSTANT, NB_VARIABLE, NBI_VARIABLE, STYLES };

static gex_Event_t events[WORDS];

static void *word(gex_Rank_t to, int i, size_t size)
{
    return (char *)aq_test_base(to) + (size_t)aq_test_me * WORDS * WIDEST + (size_t)i * size;
}

/* ---- values ---- */

static const int32_t values_I32[] = { 0,          1,     -1, INT32_MAX, INT32_MIN, INT32_MIN + 1,
                                      0x55555555, 46341, -3 };
static const uint32_t values_U32[] = { 0,           1,           UINT32_MAX,  UINT32_MAX - 1,
                                       0x80000000u, 0x7fffffffu, 0xaaaaaaaau, 65536,
                                       10 };
static const int64_t values_I64[] = {
    0, 1, -1, INT64_MAX, INT64_MIN, INT64_MIN + 1, 0x5555555555555555, 0x100000000, -3037000500
};
static const uint64_t values_U64[] = { 0,
                                       1,
                                       UINT64_MAX,
                                       UINT64_MAX - 1,
                                       (uint64_t)1 << 63,
                                       ((uint64_t)1 << 63) - 1,
                                       0xaaaaaaaaaaaaaaaau,
                                       0xffffffffu,
                                       10 };
static const float values_FLT[] = { 0.0f,     -0.0f,       1.0f,     -1.0f,     0.1f,       FLT_MAX,
                                    -FLT_MAX, FLT_MIN / 4, INFINITY, -INFINITY, 16777216.0f };
static const double values_DBL[] = { 0.0,
                                     -0.0,
                                     1.0,
                                     -1.0,
                                     0.1,
                                     DBL_MAX,
                                     -DBL_MAX,
                                     DBL_MIN / 4,
                                     INFINITY,
                                     -INFINITY,
                                     9007199254740992.0 };

/* ---- the serial model ---- */

static gex_OP_t plain(gex_OP_t op)
{
    if (op == GEX_OP_GET || !aq_ad_is_fetching(op))
        return op;
    return GEX_OP_TO_NONFETCHING(op);
}

/* Sums, differences and products as if in unlimited precision, cut to the type. */
#define MODEL_INTEGER(T, C)                            \
    static C model_##T(gex_OP_t op, C t, C a, C b)     \
    {                                                  \
        C r = t;                                       \
                                                       \
        switch (plain(op)) {                           \
        case GEX_OP_ADD:                               \
            (void)__builtin_add_overflow(t, a, &r);    \
            break;                                     \
        case GEX_OP_SUB:                               \
            (void)__builtin_sub_overflow(t, a, &r);    \
            break;                                     \
        case GEX_OP_MULT:                              \
            (void)__builtin_mul_overflow(t, a, &r);    \
            break;                                     \
        case GEX_OP_INC:                               \
            (void)__builtin_add_overflow(t, (C)1, &r); \
            break;                                     \
        case GEX_OP_DEC:                               \
            (void)__builtin_sub_overflow(t, (C)1, &r); \
            break;                                     \
        case GEX_OP_MIN:                               \
            r = t < a ? t : a;                         \
            break;                                     \
        case GEX_OP_MAX:                               \
            r = t > a ? t : a;                         \
            break;                                     \
        case GEX_OP_AND:                               \
            r = t & a;                                 \
            break;                                     \
        case GEX_OP_OR:                                \
            r = t | a;                                 \
            break;                                     \
        case GEX_OP_XOR:                               \
            r = t ^ a;                                 \
            break;                                     \
        case GEX_OP_SET:                               \
            r = a;                                     \
            break;                                     \
        case GEX_OP_CAS:                               \
            r = t == a ? b : t;                        \
            break;                                     \
        default:                                       \
            break;                                     \
        }                                              \
        return r;                                      \
    }
#define MODEL_FLOATING(T, C)                       \
    static C model_##T(gex_OP_t op, C t, C a, C b) \
    {                                              \
        switch (plain(op)) {                       \
        case GEX_OP_ADD:                           \
            return t + a;                          \
        case GEX_OP_SUB:                           \
            return t - a;                          \
        case GEX_OP_MULT:                          \
            return t * a;                          \
        case GEX_OP_INC:                           \
            return t + 1;                          \
        case GEX_OP_DEC:                           \
            return t - 1;                          \
        case GEX_OP_MIN:                           \
            return t < a ? t : a;                  \
        case GEX_OP_MAX:                           \
            return t > a ? t : a;                  \
        case GEX_OP_SET:                           \
            return a;                              \
        case GEX_OP_CAS:                           \
            return t == a ? b : t;                 \
        default:                                   \
            return t;                              \
        }                                          \
    }
AQ_AD_EACH_INTEGER(MODEL_INTEGER)
AQ_AD_EACH_FLOATING(MODEL_FLOATING)

/* Equal, or both not a number; the sign of zero counts. */
#define SAME_INTEGER(T, C)         \
    static bool same_##T(C x, C y) \
    {                              \
        return x == y;             \
    }
#define SAME_FLOATING(T, C)                                                      \
    static bool same_##T(C x, C y)                                               \
    {                                                                            \
        return (isnan(x) && isnan(y)) || (x == y && !signbit(x) == !signbit(y)); \
    }
AQ_AD_EACH_INTEGER(SAME_INTEGER)
AQ_AD_EACH_FLOATING(SAME_FLOATING)

/* Where representations differ and values do not, compare-and-swap may do either, and so may the
 * smaller and the larger of two zeros. */
#define FREE_INTEGER(T, C)                         \
    static bool is_free_##T(gex_OP_t op, C t, C a) \
    {                                              \
        (void)op, (void)t, (void)a;                \
        return false;                              \
    }
#define FREE_FLOATING(T, C)                                                   \
    static bool is_free_##T(gex_OP_t op, C t, C a)                            \
    {                                                                         \
        op = plain(op);                                                       \
        return t == 0 && a == 0 && !signbit(t) != !signbit(a)                 \
               && (op == GEX_OP_CAS || op == GEX_OP_MIN || op == GEX_OP_MAX); \
    }
AQ_AD_EACH_INTEGER(FREE_INTEGER)
AQ_AD_EACH_FLOATING(FREE_FLOATING)

/* ---- starting operations ---- */

#define CASE_NB(T, OP) \
    case GEX_OP_##OP:  \
        return gex_AD_OpNB_##T(ad, result, to, at, GEX_OP_##OP, a, b, 0);
#define CASE_NBI(T, OP)                                                             \
    case GEX_OP_##OP:                                                               \
        AQ_CHECK_EQ(gex_AD_OpNBI_##T(ad, result, to, at, GEX_OP_##OP, a, b, 0), 0); \
        break;
/* clang-format off */
#define CASES_FLOATING(CASE, T)                                                                    \
    CASE(T, ADD) CASE(T, SUB) CASE(T, MULT) CASE(T, MIN) CASE(T, MAX) CASE(T, INC) CASE(T, DEC)    \
    CASE(T, SET) CASE(T, CAS) CASE(T, FADD) CASE(T, FSUB) CASE(T, FMULT) CASE(T, FMIN)             \
    CASE(T, FMAX) CASE(T, FINC) CASE(T, FDEC) CASE(T, SWAP) CASE(T, FCAS) CASE(T, GET)
#define CASES_INTEGER(CASE, T)                                                                     \
    CASES_FLOATING(CASE, T)                                                                        \
    CASE(T, AND) CASE(T, OR) CASE(T, XOR) CASE(T, FAND) CASE(T, FOR) CASE(T, FXOR)
/* clang-format on */

#define START(T, C, CASES)                                                                \
    static gex_Event_t start_##T(enum style style, gex_AD_t ad, C *result, gex_Rank_t to, \
                                 void *at, gex_OP_t op, C a, C b)                         \
    {                                                                                     \
        switch (style) {                                                                  \
        case NB_CONSTANT:                                                                 \
            switch (op) {                                                                 \
                CASES(CASE_NB, T)                                                         \
            }                                                                             \
            break;                                                                        \
        case NBI_CONSTANT:                                                                \
            switch (op) {                                                                 \
                CASES(CASE_NBI, T)                                                        \
            }                                                                             \
            break;                                                                        \
        case NB_VARIABLE:                                                                 \
            return gex_AD_OpNB_##T(ad, result, to, at, op, a, b, 0);                      \
        default:                                                                          \
            AQ_CHECK_EQ(gex_AD_OpNBI_##T(ad, result, to, at, op, a, b, 0), 0);            \
        }                                                                                 \
        return GEX_EVENT_INVALID;                                                         \
    }
#define START_INTEGER(T, C)  START(T, C, CASES_INTEGER)
#define START_FLOATING(T, C) START(T, C, CASES_FLOATING)
AQ_AD_EACH_INTEGER(START_INTEGER)
AQ_AD_EACH_FLOATING(START_FLOATING)

/* ---- a batch ---- */

/* Every pair of values, one word each; the second operand of a compare-and-swap is a third value.
 * */
#define BATCH(T, C)                                                                                \
    static void batch_##T(gex_AD_t ad, gex_Rank_t to, gex_OP_t op, int turn)                       \
    {                                                                                              \
        const int n = (int)AQ_LENGTH(values_##T), words = n * n;                                   \
        const C untouched = values_##T[n - 1];                                                     \
        C old[WORDS], now[WORDS];                                                                  \
        int i;                                                                                     \
                                                                                                   \
        for (i = 0; i < words; i++)                                                                \
            gex_AD_OpNBI_##T(ad, NULL, to, word(to, i, sizeof(C)), GEX_OP_SET, values_##T[i % n],  \
                             0, 0);                                                                \
        gex_NBI_Wait(GEX_EC_PUT, 0);                                                               \
        for (i = 0; i < words; i++) {                                                              \
            old[i] = untouched;                                                                    \
            events[i] =                                                                            \
                start_##T((enum style)((i + turn) % STYLES), ad,                                   \
                          aq_ad_is_fetching(op) || i % 3 ? &old[i] : NULL, to,                     \
                          word(to, i, sizeof(C)), op, values_##T[i / n], values_##T[(i + 2) % n]); \
        }                                                                                          \
        gex_Event_WaitAll(events, (size_t)words, 0);                                               \
        gex_NBI_Wait(aq_ad_ec(op), 0);                                                             \
        for (i = 0; i < words; i++)                                                                \
            gex_AD_OpNBI_##T(ad, &now[i], to, word(to, i, sizeof(C)), GEX_OP_GET, 0, 0, 0);        \
        gex_NBI_Wait(GEX_EC_GET, 0);                                                               \
        for (i = 0; i < words; i++) {                                                              \
            const C t = values_##T[i % n], a = values_##T[i / n], b = values_##T[(i + 2) % n];     \
            const C expected = model_##T(op, t, a, b);                                             \
                                                                                                   \
            if (!same_##T(now[i], expected) && !is_free_##T(op, t, a))                             \
                aq_test_fail(__FILE__, __LINE__,                                                   \
                             #T " op 0x%x on %.17g with %.17g, %.17g: "                            \
                                "%.17g instead of %.17g",                                          \
                             (unsigned)op, (double)t, (double)a, (double)b, (double)now[i],        \
                             (double)expected);                                                    \
            AQ_CHECK(same_##T(old[i], aq_ad_is_fetching(op) ? t : untouched));                     \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void each_op_##T(gex_Rank_t to, gex_OP_t ops)                                           \
    {                                                                                              \
        gex_AD_t ad;                                                                               \
        gex_OP_t op;                                                                               \
        int turn, turns = aq_test_quick ? 1 : (int)STYLES;                                         \
                                                                                                   \
        gex_AD_Create(&ad, aq_test_tm, GEX_DT_##T, ops, 0);                                        \
        for (op = 1; op != 0 && op <= GEX_OP_GET; op <<= 1)                                        \
            if ((ops & op) != 0)                                                                   \
                for (turn = 0; turn < turns; turn++)                                               \
                    batch_##T(ad, to, op, turn + (int)to);                                         \
        aq_test_barrier();                                                                         \
        gex_AD_Destroy(ad);                                                                        \
    }
AQ_AD_EACH_TYPE(BATCH)

/* Not a number is moved about like any other value. */
#define NAN_MOVES(T, C)                                                                          \
    static void nan_moves_##T(gex_Rank_t to)                                                     \
    {                                                                                            \
        C seen = 1;                                                                              \
        gex_AD_t ad;                                                                             \
                                                                                                 \
        gex_AD_Create(&ad, aq_test_tm, GEX_DT_##T, GEX_OP_SET | GEX_OP_SWAP | GEX_OP_GET, 0);    \
        gex_Event_Wait(gex_AD_OpNB_##T(ad, NULL, to, word(to, 0, 8), GEX_OP_SET, (C)NAN, 0, 0)); \
        gex_Event_Wait(gex_AD_OpNB_##T(ad, &seen, to, word(to, 0, 8), GEX_OP_GET, 0, 0, 0));     \
        AQ_CHECK(isnan(seen));                                                                   \
        seen = 1;                                                                                \
        gex_Event_Wait(gex_AD_OpNB_##T(ad, &seen, to, word(to, 0, 8), GEX_OP_SWAP, 3, 0, 0));    \
        AQ_CHECK(isnan(seen));                                                                   \
        aq_test_barrier();                                                                       \
        gex_AD_Destroy(ad);                                                                      \
    }
AQ_AD_EACH_FLOATING(NAN_MOVES)

/* Operations of 4 bytes leave the other half of an aligned 8-byte word alone. */
static void check_halves(gex_Rank_t to)
{
    uint64_t seen = 0;
    gex_AD_t wide, narrow;
    uint32_t *half = (uint32_t *)word(to, 0, 8) + 1;

    gex_AD_Create(&wide, aq_test_tm, GEX_DT_U64, GEX_OP_SET | GEX_OP_GET, 0);
    gex_AD_Create(&narrow, aq_test_tm, GEX_DT_U32, AQ_AD_OPS_INTEGER, 0);
    gex_Event_Wait(gex_AD_OpNB_U64(wide, NULL, to, word(to, 0, 8), GEX_OP_SET, UINT64_MAX, 0, 0));
    aq_test_barrier();
    gex_Event_Wait(gex_AD_OpNB_U32(narrow, NULL, to, half, GEX_OP_INC, 0, 0, 0));
    gex_Event_Wait(gex_AD_OpNB_U32(narrow, NULL, to, half, GEX_OP_MULT, 7, 0, 0));
    gex_Event_Wait(gex_AD_OpNB_U32(narrow, NULL, to, half, GEX_OP_DEC, 0, 0, 0));
    gex_Event_Wait(gex_AD_OpNB_U32(narrow, NULL, to, half, GEX_OP_SUB, 3, 0, 0));
    aq_test_barrier();
    gex_Event_Wait(gex_AD_OpNB_U64(wide, &seen, to, word(to, 0, 8), GEX_OP_GET, 0, 0, 0));
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    AQ_CHECK(seen == 0xfffffffffffffffcu);
#else
    AQ_CHECK(seen == 0xfffffffcffffffffu);
#endif
    aq_test_barrier();
    gex_AD_Destroy(narrow);
    gex_AD_Destroy(wide);
}

int main(int argc, char **argv)
{
    const gex_Rank_t distances[] = { 0, 1, 2 };
    size_t k, max;

    aq_test_start(&argc, &argv, 1);
    aq_test_segment((size_t)aq_test_n * WORDS * WIDEST);
    max = aq_test_n < 3 ? aq_test_n : aq_test_quick ? 2 : 3;
    for (k = 0; k < max; k++) {
        const gex_Rank_t to = aq_test_peer(distances[k]);

        rule("extended 8: integer operations, all opcodes: values as in C, signed ones wrap");
        each_op_I32(to, AQ_AD_OPS_INTEGER);
        each_op_U32(to, AQ_AD_OPS_INTEGER);
        each_op_I64(to, AQ_AD_OPS_INTEGER);
        each_op_U64(to, AQ_AD_OPS_INTEGER);
        rule("extended 8: floating operations: INC and DEC add 1.0, MIN and MAX compare values");
        each_op_FLT(to, AQ_AD_OPS_FLOATING);
        each_op_DBL(to, AQ_AD_OPS_FLOATING);
        rule("extended 8: SET, SWAP and GET move NaN too");
        nan_moves_FLT(to);
        nan_moves_DBL(to);
        rule("extended 9.3: a target is 4 or 8 bytes, nothing beside it changes");
        check_halves(to);
    }
    return aq_test_finish();
}
