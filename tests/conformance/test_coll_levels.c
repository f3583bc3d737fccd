/*
 * test_coll_levels.c - every collective on teams whose members lie on several hosts in every order:
 * around all sizes at which the way of the data changes, from every root, on more teams than there
 * is shared memory for, and many at once.
 * Ranks 2+. Conduits all; it asks most where some ranks share memory and others do not, as with
 * GASNET_SUPERNODE_MAXSIZE. Source GASNet-EX specification 0.19, Collectives, Teams.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"
#include "gasnet_coll.h"

#include <string.h>

enum { TEAMS = 20, HIGHEST = (3 * 131072 + 4096) / 16 };

/* The map v -> a * v + b, modulo 2^64. That maps follow each other does not commute. */
struct map {
    uint64_t a, b;
};

static struct map src[HIGHEST], dst[HIGHEST], model[HIGHEST];

static struct map map_of(gex_Rank_t rank, size_t k, unsigned salt)
{
    return (struct map){ 2 * (rank * 31u + k * 7u + salt) + 1, rank * 1009u + k + salt };
}

static struct map after(struct map x, struct map y)
{
    return (struct map){ x.a * y.a, x.a * y.b + x.b };
}

static void op_after(const void *arg1, void *arg2, size_t count, const void *cdata)
{
    const struct map *x = arg1;
    struct map *y = arg2;

    (void)cdata;
    for (size_t k = 0; k < count; k++)
        y[k] = after(x[k], y[k]);
}

static void op_add(const void *arg1, void *arg2, size_t count, const void *cdata)
{
    const struct map *x = arg1;
    struct map *y = arg2;

    (void)cdata;
    for (size_t k = 0; k < count; k++)
        y[k] = (struct map){ x[k].a + y[k].a, x[k].b ^ y[k].b };
}

static void make_model(gex_Rank_t size, size_t count, bool ordered, unsigned salt)
{
    for (size_t k = 0; k < count; k++) {
        model[k] = map_of(0, k, salt);
        for (gex_Rank_t rank = 1; rank < size; rank++) {
            const struct map next = map_of(rank, k, salt);

            model[k] = ordered ? after(model[k], next)
                               : (struct map){ model[k].a + next.a, model[k].b ^ next.b };
        }
    }
}

static void fill(struct map *maps, gex_Rank_t rank, size_t count, unsigned salt)
{
    for (size_t k = 0; k < count; k++)
        maps[k] = map_of(rank, k, salt);
}

/* root: GEX_RANK_INVALID for a reduction to all. */
static void check_reduction(gex_TM_t tm, size_t count, gex_Rank_t root, bool ordered, bool in_place)
{
    const gex_Rank_t size = gex_TM_QuerySize(tm), me = gex_TM_QueryRank(tm);
    const unsigned salt = (unsigned)count + root;
    const gex_OP_t op = ordered ? GEX_OP_USER_NC : GEX_OP_USER;
    gex_Coll_ReduceFn_t fn = ordered ? op_after : op_add;
    struct map *from = in_place ? dst : src;
    gex_Event_t event;

    make_model(size, count, ordered, salt);
    fill(dst, 999, count, salt);
    fill(from, me, count, salt);
    event = root == GEX_RANK_INVALID ? gex_Coll_ReduceToAllNB(tm, dst, from, GEX_DT_USER,
                                                              sizeof(*src), count, op, fn, NULL, 0)
                                     : gex_Coll_ReduceToOneNB(tm, root, dst, from, GEX_DT_USER,
                                                              sizeof(*src), count, op, fn, NULL, 0);
    gex_Event_Wait(event);
    if ((root == GEX_RANK_INVALID || root == me) && memcmp(dst, model, count * sizeof(*dst)) != 0)
        aq_test_fail(__FILE__, __LINE__, "team of %u, %zu elements to %d: wrong%s%s", size, count,
                     (int)root, ordered ? ", ordered" : "", in_place ? ", in place" : "");
    if (!in_place) {
        fill(model, me, count, salt);
        AQ_CHECK(memcmp(src, model, count * sizeof(*src)) == 0); /* untouched */
    }
}

static void check_broadcast(gex_TM_t tm, size_t count, gex_Rank_t root, bool in_place)
{
    const unsigned salt = (unsigned)count + root;
    const bool is_root = gex_TM_QueryRank(tm) == root;

    fill(dst, 999, count, salt);
    fill(src, is_root ? root : 998, count, salt);
    if (in_place && is_root)
        fill(dst, root, count, salt);
    gex_Event_Wait(
        gex_Coll_BroadcastNB(tm, root, dst, in_place ? dst : src, count * sizeof(*src), 0));
    fill(model, root, count, salt);
    AQ_CHECK(memcmp(dst, model, count * sizeof(*dst)) == 0);
}

static void check_size(gex_TM_t tm, size_t count)
{
    const gex_Rank_t size = gex_TM_QuerySize(tm);

    for (gex_Rank_t root = 0; root<size; root += count> 2048 && size > 2 ? size / 2 : 1) {
        check_broadcast(tm, count, root, root % 2 != 0);
        check_reduction(tm, count, root, root % 2 != 0, false);
        check_reduction(tm, count, root, root % 2 == 0, true);
    }
    for (unsigned way = 0; way < 4; way++)
        check_reduction(tm, count, GEX_RANK_INVALID, way % 2 != 0, way / 2 != 0);
    gex_Coll_BarrierBlocking(tm, 0);
}

/* Around every number of bytes from which something goes another way, for few hosts. */
static void check_sizes(gex_TM_t tm)
{
    static const size_t edges[] = { 16,    112,   2048,  4096,   8192,   12288,
                                    16384, 32768, 49152, 131072, 262144, 3 * 131072 };

    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        const size_t count = edges[i] / sizeof(*src);

        if (aq_test_quick && edges[i] > 8192 && i % 2 != 0)
            continue;
        for (size_t k = count > 1 ? count - 1 : 1; k <= count + 1; k++)
            check_size(tm, k);
    }
}

static gex_TM_t split(int color, int key)
{
    gex_TM_t team = GEX_TM_INVALID;

    gex_TM_Split(&team, aq_test_tm, color, key, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    return team;
}

/* Ranks of one host next to each other, in turn, the other way round; all but one. */
static void check_orders(void)
{
    const int me = (int)aq_test_me, n = (int)aq_test_n;
    const int keys[] = { me % 2 * n + me, -me, me * 7 % n * n + me };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        gex_TM_t tm = split(0, keys[i]);

        check_sizes(tm);
        gex_TM_Destroy(tm, NULL, 0);
    }
    for (int out = 0; out<n; out += n> 2 ? n - 2 : 1) {
        gex_TM_t tm = split(me == out, me);

        check_size(tm, 3);
        check_size(tm, 3000);
        gex_TM_Destroy(tm, NULL, 0);
    }
}

/* More teams than there is memory for, each with a large and a small call open at once. */
static void check_many(void)
{
    enum { COUNT = 1500 };
    static uint64_t large[TEAMS][COUNT], small[TEAMS];
    gex_TM_t tm[TEAMS];
    gex_Event_t events[3 * TEAMS];

    for (int i = 0; i < TEAMS; i++)
        tm[i] = split(0, i % 2 == 0 ? (int)aq_test_me : -(int)aq_test_me);
    for (int i = 0; i < TEAMS; i++) {
        small[i] = 1;
        for (size_t k = 0; k < COUNT; k++)
            large[i][k] = k + aq_test_me;
        events[3 * i] = gex_Coll_ReduceToAllNB(tm[i], large[i], large[i], GEX_DT_U64, 8, COUNT,
                                               GEX_OP_MAX, NULL, NULL, 0);
        events[3 * i + 1] = gex_Coll_ReduceToAllNB(tm[i], &small[i], &small[i], GEX_DT_U64, 8, 1,
                                                   GEX_OP_ADD, NULL, NULL, 0);
        events[3 * i + 2] = gex_Coll_BarrierNB(tm[i], 0);
    }
    for (int i = 3 * TEAMS - 1; i >= 0; i--)
        gex_Event_Wait(events[i]);
    for (int i = 0; i < TEAMS; i++) {
        uint64_t wrong = small[i] != aq_test_n;

        for (size_t k = 0; k < COUNT; k++)
            wrong += large[i][k] != k + aq_test_n - 1;
        AQ_CHECK_EQ(wrong, 0);
    }
    for (int i = 0; i < TEAMS; i++) {
        check_size(tm[i], 5);
        check_size(tm[i], 1025);
    }
    for (int i = 0; i < TEAMS; i++)
        gex_TM_Destroy(tm[i * 3 % TEAMS], NULL, 0);
}

/* Names that one member of each host, or of one only, has another idea of. */
static void check_names(void)
{
    for (gex_Rank_t odd = 0; odd < aq_test_n; odd++) {
        const int id = aq_test_me == odd ? 7 : 5;
        int result = 0;

        gasnet_barrier_notify(id, 0);
        AQ_CHECK_EQ(gasnet_barrier_wait(id, 0), GASNET_ERR_BARRIER_MISMATCH);
        AQ_CHECK(gasnet_barrier_result(&result) != 0);
        gasnet_barrier_notify((int)odd, aq_test_me == odd ? 0 : GASNET_BARRIERFLAG_ANONYMOUS);
        AQ_CHECK_EQ(gasnet_barrier_wait((int)odd, 0), GASNET_OK);
        AQ_CHECK_EQ(gasnet_barrier_result(&result), 0);
        AQ_CHECK_EQ(result, odd);
    }
}

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 2);
    rule("extended 12.3, 12.4, 20: all sizes on the job's team, before attach");
    check_sizes(aq_test_tm);
    aq_test_segment(GASNET_PAGESIZE);
    rule("extended 12.6: teams whose members lie on their hosts in every order");
    check_orders();
    rule("extended 12.1: more teams than there is memory to share for");
    check_many();
    rule("extended 14.2: every rank's name counts, on whichever host");
    check_names();
    return aq_test_finish();
}
