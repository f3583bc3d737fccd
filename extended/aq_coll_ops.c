/*
 * aq_coll_ops.c - the built-in reductions: one plain loop for each type and operation.
 *
 * All have the type of a client's operator, y[i] = x[i] (+) y[i]; x and y never overlap, so that
 * the compiler may use vector instructions. Signed sums and products wrap: they are computed
 * unsigned.
 *
 * Threads   pure functions. Uses gasnet_coll.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_coll.h"

#define AQ_LOOP(name, type, expression)                                             \
    static void name(const void *arg1, void *arg2, size_t count, const void *cdata) \
    {                                                                               \
        const type *restrict x = arg1;                                              \
        type *restrict y = arg2;                                                    \
                                                                                    \
        (void)cdata;                                                                \
        for (size_t i = 0; i < count; i++) {                                        \
            const type l = x[i], r = y[i];                                          \
                                                                                    \
            y[i] = (expression);                                                    \
        }                                                                           \
    }

/* wide: the type in which sums and products cannot overflow */
#define AQ_LOOPS_ARITHMETIC(suffix, type, wide)                \
    AQ_LOOP(aq_add_##suffix, type, (type)((wide)l + (wide)r))  \
    AQ_LOOP(aq_mult_##suffix, type, (type)((wide)l * (wide)r)) \
    AQ_LOOP(aq_min_##suffix, type, l < r ? l : r)              \
    AQ_LOOP(aq_max_##suffix, type, l > r ? l : r)

#define AQ_LOOPS_INTEGER(suffix, type, wide) \
    AQ_LOOPS_ARITHMETIC(suffix, type, wide)  \
    AQ_LOOP(aq_and_##suffix, type, l &r)     \
    AQ_LOOP(aq_or_##suffix, type, l | r)     \
    AQ_LOOP(aq_xor_##suffix, type, l ^ r)

AQ_LOOPS_INTEGER(i32, int32_t, uint32_t)
AQ_LOOPS_INTEGER(u32, uint32_t, uint32_t)
AQ_LOOPS_INTEGER(i64, int64_t, uint64_t)
AQ_LOOPS_INTEGER(u64, uint64_t, uint64_t)
AQ_LOOPS_ARITHMETIC(flt, float, float)
AQ_LOOPS_ARITHMETIC(dbl, double, double)

enum { AQ_TYPES = 6, AQ_OPS = 8 };

#define AQ_ROW_ARITHMETIC(suffix) \
    [3] = aq_add_##suffix, [5] = aq_mult_##suffix, [6] = aq_min_##suffix, [7] = aq_max_##suffix
#define AQ_ROW_INTEGER(suffix) \
    [0] = aq_and_##suffix, [1] = aq_or_##suffix, [2] = aq_xor_##suffix, AQ_ROW_ARITHMETIC(suffix)

_Static_assert(GEX_OP_AND == 1 << 0 && GEX_OP_OR == 1 << 1 && GEX_OP_XOR == 1 << 2
                   && GEX_OP_ADD == 1 << 3 && GEX_OP_MULT == 1 << 5 && GEX_OP_MIN == 1 << 6
                   && GEX_OP_MAX == 1 << 7,
               "columns are the bit numbers of the operations");
_Static_assert(GEX_DT_I32 == 1 << 0 && GEX_DT_U32 == 1 << 1 && GEX_DT_I64 == 1 << 2
                   && GEX_DT_U64 == 1 << 3 && GEX_DT_FLT == 1 << 4 && GEX_DT_DBL == 1 << 5,
               "rows are the bit numbers of the types");

static const gex_Coll_ReduceFn_t aq_loops[AQ_TYPES][AQ_OPS] = {
    { AQ_ROW_INTEGER(i32) }, { AQ_ROW_INTEGER(u32) },    { AQ_ROW_INTEGER(i64) },
    { AQ_ROW_INTEGER(u64) }, { AQ_ROW_ARITHMETIC(flt) }, { AQ_ROW_ARITHMETIC(dbl) },
};

/* The number of the only bit that is set, or a number too large for any table. */
static unsigned aq_bit_number(uint32_t bits)
{
    return bits != 0 && (bits & (bits - 1)) == 0 ? (unsigned)__builtin_ctz(bits) : UINT32_MAX;
}

gex_Coll_ReduceFn_t aq_coll_builtin(gex_DT_t dt, gex_OP_t op)
{
    const unsigned row = aq_bit_number(dt), column = aq_bit_number(op);

    return row < AQ_TYPES && column < AQ_OPS ? aq_loops[row][column] : NULL;
}

size_t aq_coll_dt_size(gex_DT_t dt)
{
    static const uint8_t size[AQ_TYPES] = { 4, 4, 8, 8, 4, 8 };
    const unsigned row = aq_bit_number(dt);

    return row < AQ_TYPES ? size[row] : 0;
}
