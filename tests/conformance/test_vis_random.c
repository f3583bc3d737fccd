/*
 * test_vis_random.c - random vector, indexed and strided puts and gets, in every style, against a
 * serial model: every byte that should change has changed, and no other byte of a buffer has.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, VIS.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_vis_model.h"

static size_t space;
static char *shadow, *ours, *before,
    *seen; /* remote buffer as it should be; local one; its copy; what is there */
static struct vis_case *c;
static struct vis_lists lists;

/* My part of another rank's segment. */
static char *slot_of(gex_Rank_t rank)
{
    return (char *)aq_test_base(rank) + (size_t)aq_test_me * space;
}

static void compare(const char *what, const char *is, const char *should, enum vis_style style)
{
    if (memcmp(is, should, space) == 0)
        return;
    for (size_t k = 0; k < space; k++)
        if (is[k] != should[k]) {
            aq_test_fail(__FILE__, __LINE__,
                         "%s, kind %d style %d, %zu bytes, levels %zu, elemsz %zu: byte %zu is "
                         "%02x, should be %02x",
                         what, c->kind, style, c->nbytes, c->levels, c->elemsz, k,
                         (unsigned char)is[k], (unsigned char)should[k]);
            return;
        }
}

static void one_put(gex_TM_t tm, gex_Rank_t rank, enum vis_style style)
{
    char *slot = slot_of(rank);

    gex_RMA_GetBlocking(aq_test_tm, shadow, rank, slot, space, 0);
    aq_test_fill(ours, space, aq_test_random(&vis_seed));
    vis_lists_fill(&lists, c, slot, ours);
    vis_model(c, shadow, ours);
    vis_run(c, &lists, tm, rank, slot, ours, space, true, style, vis_rand(2) == 0);
    gex_RMA_GetBlocking(aq_test_tm, seen, rank, slot, space, 0);
    compare("put", seen, shadow, style);
}

static void one_get(gex_TM_t tm, gex_Rank_t rank, enum vis_style style)
{
    char *slot = slot_of(rank);

    gex_RMA_GetBlocking(aq_test_tm, shadow, rank, slot, space, 0);
    aq_test_fill(ours, space, aq_test_random(&vis_seed));
    memcpy(before, ours, space);
    vis_lists_fill(&lists, c, ours, slot);
    vis_model(c, before, shadow);
    vis_run(c, &lists, tm, rank, ours, slot, space, false, style, false);
    compare("get", ours, before, style);
}

static void some(enum vis_kind kind, int times)
{
    const gex_TM_t pair = gex_TM_Pair(aq_test_ep, 0);
    const double until = aq_test_clock() + (aq_test_quick ? 1 : 2);

    for (int i = 0; i < times && (i < 20 || aq_test_clock() < until); i++) {
        const gex_Rank_t rank =
            i % 3 == 0 ? aq_test_me
                       : aq_test_peer(i % 3 == 1 ? 1 : (gex_Rank_t)vis_rand(aq_test_n));
        const enum vis_style style = (enum vis_style)vis_rand(VIS_STYLES);
        const gex_TM_t tm = vis_rand(4) == 0 ? pair : aq_test_tm;

        vis_make(c, kind, space);
        if (vis_rand(2) == 0)
            one_put(tm, rank, style);
        else
            one_get(tm, rank, style);
        if (i % 16 == 0)
            aq_test_relax();
    }
}

int main(int argc, char **argv)
{
    int times;

    aq_test_start(&argc, &argv, 1);
    space = aq_test_quick ? 32768 : 262144;
    times = aq_test_quick ? 60 : 400;
    aq_test_segment(space * aq_test_n);
    vis_seed = 1000 + aq_test_me * 77;
    if (getenv("AQ_TEST_SEED") != NULL)
        vis_seed += strtoull(getenv("AQ_TEST_SEED"), NULL, 0) << 20;
    shadow = malloc(space);
    ours = malloc(space);
    before = malloc(space);
    seen = malloc(space);
    c = vis_case_create(space);
    vis_lists_create(&lists);
    memset(aq_test_base(aq_test_me), 0x11, space * aq_test_n);
    aq_test_barrier();

    rule("extended 10.2: vector: the source stream fills the destination chunks, whatever their "
         "boundaries");
    some(VIS_VECTOR, times);
    rule("extended 10.2: indexed: chunk lengths and counts may differ between the sides");
    some(VIS_INDEXED, times);
    rule("extended 10.2: strided: any order, sign and number of dimensions");
    some(VIS_STRIDED, times);
    return aq_test_finish();
}
