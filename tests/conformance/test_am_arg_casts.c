/*
 * test_am_arg_casts.c - handler arguments of other types are converted by a cast at the call.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, active messages.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_SIX = AQ_TEST_FREE, H_SIX_M, H_COUNTED };
enum colour { RED = 7, BLUE = -3 };

static aq_test_count_t got;
static aq_test_count_t evaluations;

static void check_six(gex_AM_Arg_t a, gex_AM_Arg_t b, gex_AM_Arg_t c, gex_AM_Arg_t d,
                      gex_AM_Arg_t e, gex_AM_Arg_t f)
{
    AQ_CHECK_EQ(a, (int32_t)0x9abcdef0);
    AQ_CHECK_EQ(b, -1);
    AQ_CHECK_EQ(c, BLUE);
    AQ_CHECK_EQ(d, -5);
    AQ_CHECK_EQ(e, (int32_t)0x80000000u);
    AQ_CHECK_EQ(f, 'x');
    atomic_fetch_add(&got, 1);
}

static void h_six(gex_Token_t token, gex_AM_Arg_t a, gex_AM_Arg_t b, gex_AM_Arg_t c, gex_AM_Arg_t d,
                  gex_AM_Arg_t e, gex_AM_Arg_t f)
{
    (void)token;
    check_six(a, b, c, d, e, f);
}

static void h_six_medium(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t a,
                         gex_AM_Arg_t b, gex_AM_Arg_t c, gex_AM_Arg_t d, gex_AM_Arg_t e,
                         gex_AM_Arg_t f)
{
    (void)token;
    (void)buf;
    AQ_CHECK_EQ(nbytes, 3);
    check_six(a, b, c, d, e, f);
}

static void h_counted(gex_Token_t token, gex_AM_Arg_t a, gex_AM_Arg_t b)
{
    (void)token;
    AQ_CHECK_EQ(b, a + 1);
    atomic_fetch_add(&got, 1);
}

static int once(int v)
{
    atomic_fetch_add(&evaluations, 1);
    return v;
}

static gex_TM_t tm_once(void)
{
    atomic_fetch_add(&evaluations, 1);
    return aq_test_tm;
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_SIX, h_six, AQ_SQ, 6),
    AQ_ENTRY(H_SIX_M, h_six_medium, AQ_MQ, 6),
    AQ_ENTRY(H_COUNTED, h_counted, AQ_SQ, 2),
};

int main(int argc, char **argv)
{
    const gex_Rank_t to = (aq_test_start(&argc, &argv, 1), aq_test_peer(1));
    const size_t wide = (size_t)0x123456789abcdef0u;
    const unsigned long ones = ~0ul;
    const enum colour colour = BLUE;
    const short small = -5;
    const uintptr_t pointer = (uintptr_t)0x7fff80000000u;
    const char message = 'x';

    aq_test_handlers(table, AQ_LENGTH(table));
    rule("core 20.1: size_t, unsigned long, enum, short, uintptr_t, char arguments are cast to 32 "
         "bits");
    gex_AM_RequestShort6(aq_test_tm, to, H_SIX, 0, wide, ones, colour, small, pointer, message);
    gex_AM_RequestShort(aq_test_tm, to, H_SIX, 0, wide, ones, colour, small, pointer, message);
    gex_AM_RequestMedium6(aq_test_tm, to, H_SIX_M, "abc", 3, GEX_EVENT_NOW, 0, wide, ones, colour,
                          small, pointer, message);
    gex_AM_RequestMedium(aq_test_tm, to, H_SIX_M, "abc", 3, GEX_EVENT_NOW, 0, wide, ones, colour,
                         small, pointer, message);
    aq_test_wait(&got, 4);

    rule("core 3.8: each argument of a call is evaluated exactly once");
    gex_AM_RequestShort2(tm_once(), (gex_Rank_t)once((int)to), (gex_AM_Index_t)once(H_COUNTED),
                         (gex_Flags_t)once(0), once(4), once(5));
    AQ_CHECK_EQ(atomic_load(&evaluations), 6);
    gex_AM_RequestShort(tm_once(), (gex_Rank_t)once((int)to), (gex_AM_Index_t)once(H_COUNTED),
                        (gex_Flags_t)once(0), once(-1), once(0));
    AQ_CHECK_EQ(atomic_load(&evaluations), 12);
    aq_test_wait(&got, 6);
    return aq_test_finish();
}
