/*
 * test_coll_legacy.c - gasnet_coll_*: every call with every pair of synchronisation flags, in place
 * and not, several outstanding; barriers over teams; names and constants.
 * Ranks 1+. Conduits all. Source notes on GASNet-1's collectives (GASNet-1 20.1).
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"
#include "gasnet_coll.h"

enum { HIGHEST = 70000, OUTSTANDING = 40 };

_Static_assert(sizeof(gasnet_image_t) == 4, "an image is 32 bits");
static const gasnet_coll_handle_t no_handle = GASNET_COLL_INVALID_HANDLE;
static unsigned char *src, *dst;
static gasnet_team_handle_t team; /* the one being checked, our rank in it and its size */
static gex_Rank_t me, size;

static void use_team(gasnet_team_handle_t handle)
{
    team = handle;
    size = handle == GASNET_TEAM_ALL ? aq_test_n : gex_TM_QuerySize(handle);
    me = handle == GASNET_TEAM_ALL ? aq_test_me : gex_TM_QueryRank(handle);
}

/* Block `to` that rank `from` holds. */
static unsigned char byte_of(gex_Rank_t from, gex_Rank_t to, size_t i)
{
    return (unsigned char)(from * 17 + to * 101 + i * 3 + (i >> 8));
}

static void fill(unsigned char *block, size_t nbytes, gex_Rank_t from, gex_Rank_t to)
{
    for (size_t i = 0; i < nbytes; i++)
        block[i] = byte_of(from, to, i);
}

static void verify(const char *call, const unsigned char *block, size_t nbytes, gex_Rank_t from,
                   gex_Rank_t to)
{
    for (size_t i = 0; i < nbytes; i++)
        if (block[i] != byte_of(from, to, i)) {
            aq_test_fail(__FILE__, __LINE__,
                         "%s of %zu bytes: byte %zu of the block of %u for %u is wrong", call,
                         nbytes, i, from, to);
            return;
        }
}

static void check_broadcast(gex_Rank_t root, size_t nbytes, int flags, bool in_place)
{
    unsigned char *to = in_place && root == me ? src : dst;

    fill(src, nbytes, root, 0);
    memset(dst, 0, nbytes);
    gasnet_coll_broadcast(team, to, root, root == me ? src : NULL, nbytes, flags);
    verify("broadcast", to, nbytes, root, 0);
}

static void check_scatter(gex_Rank_t root, size_t nbytes, int flags, bool in_place)
{
    unsigned char *to = in_place && root == me ? src + nbytes * root : dst;

    for (gex_Rank_t rank = 0; rank < size; rank++)
        fill(src + nbytes * rank, nbytes, root, rank);
    memset(dst, 0, nbytes);
    gasnet_coll_wait_sync(
        gasnet_coll_scatter_nb(team, to, root, root == me ? src : NULL, nbytes, flags));
    verify("scatter", to, nbytes, root, me);
}

static void check_gather(gex_Rank_t root, size_t nbytes, int flags, bool in_place)
{
    unsigned char *from = in_place && root == me ? dst + nbytes * root : src;

    memset(dst, 0, nbytes * size);
    fill(from, nbytes, me, root);
    gasnet_coll_gather(team, root, root == me ? dst : NULL, from, nbytes, flags);
    for (gex_Rank_t rank = 0; rank < size && root == me; rank++)
        verify("gather", dst + nbytes * rank, nbytes, rank, root);
}

static void check_gather_all(size_t nbytes, int flags, bool in_place)
{
    unsigned char *from = in_place ? dst + nbytes * me : src;

    memset(dst, 0, nbytes * size);
    fill(from, nbytes, me, 5);
    gasnet_coll_gather_all(team, dst, from, nbytes, flags);
    for (gex_Rank_t rank = 0; rank < size; rank++)
        verify("gather_all", dst + nbytes * rank, nbytes, rank, 5);
}

static void check_exchange(size_t nbytes, int flags)
{
    gasnet_coll_handle_t handle;

    for (gex_Rank_t rank = 0; rank < size; rank++)
        fill(src + nbytes * rank, nbytes, me, rank);
    memset(dst, 0, nbytes * size);
    handle = gasnet_coll_exchange_nb(team, dst, src, nbytes, flags);
    while (gasnet_coll_try_sync(handle) != GASNET_OK)
        aq_test_yield();
    for (gex_Rank_t rank = 0; rank < size; rank++)
        verify("exchange", dst + nbytes * rank, nbytes, rank, me);
}

static void check_flags(size_t nbytes)
{
    for (int in = GASNET_COLL_IN_NOSYNC; in <= GASNET_COLL_IN_ALLSYNC; in *= 2)
        for (int out = GASNET_COLL_OUT_NOSYNC; out <= GASNET_COLL_OUT_ALLSYNC; out *= 2) {
            const int flags = in | out | GASNET_COLL_LOCAL;
            const gex_Rank_t root = (gex_Rank_t)(in + out) % size;

            check_broadcast(root, nbytes, flags, in == GASNET_COLL_IN_MYSYNC);
            check_scatter(root, nbytes, flags, out == GASNET_COLL_OUT_MYSYNC);
            check_gather(root, nbytes, flags, in == GASNET_COLL_IN_ALLSYNC);
            check_gather_all(nbytes, flags, out == GASNET_COLL_OUT_ALLSYNC);
            check_exchange(nbytes, flags);
        }
}

/* OUT_ALLSYNC: once it is done here, everybody's part is done: the root may change what others got.
 * */
static void check_outstanding(void)
{
    static uint32_t value[OUTSTANDING];
    gasnet_coll_handle_t handle[OUTSTANDING];
    const int flags = GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_LOCAL;

    for (unsigned i = 0; i < OUTSTANDING; i++) {
        const gex_Rank_t root = i % size;

        value[i] = root == me ? i * 31 : 0;
        handle[i] = gasnet_coll_broadcast_nb(team, &value[i], root, &value[i], 4, flags);
    }
    while (gasnet_coll_try_sync_all(handle, OUTSTANDING / 2) != GASNET_OK)
        aq_test_yield();
    gasnet_coll_wait_sync_all(handle + OUTSTANDING / 2, OUTSTANDING / 2);
    for (unsigned i = 0; i < OUTSTANDING; i++) {
        AQ_CHECK_EQ(value[i], i * 31);
        AQ_CHECK(handle[i] == no_handle);
    }
    gasnet_coll_wait_sync_some(handle, OUTSTANDING);
    AQ_CHECK_EQ(gasnet_coll_try_sync_some(handle, OUTSTANDING), GASNET_OK);
}

static void check_barriers(void)
{
    int id = 0, result;

    AQ_CHECK_EQ(gasnet_coll_barrier(team, 17, 0), GASNET_OK);
    AQ_CHECK_EQ(gasnet_coll_barrier_result(team, &id), 0);
    AQ_CHECK_EQ(id, 17);
    AQ_CHECK_EQ(gasnet_coll_barrier(team, (int)me, GASNET_BARRIERFLAG_ANONYMOUS), GASNET_OK);
    AQ_CHECK(gasnet_coll_barrier_result(team, &id) != 0);
    /* one named, the others not */
    gasnet_coll_barrier_notify(team, -5, me == size - 1 ? 0 : GASNET_BARRIERFLAG_ANONYMOUS);
    while ((result = gasnet_coll_barrier_try(team, -5, 0)) == GASNET_ERR_NOT_READY)
        aq_test_yield();
    AQ_CHECK_EQ(result, GASNET_OK);
    AQ_CHECK_EQ(gasnet_coll_barrier_result(team, &id), 0);
    AQ_CHECK_EQ(id, -5);
    gasnet_coll_barrier_notify(team, (int)me, 0);
    AQ_CHECK_EQ(gasnet_coll_barrier_wait(team, (int)me, 0),
                size > 1 ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK);
    gasnet_coll_barrier_notify(team, 1, me == 0 ? GASNET_BARRIERFLAG_MISMATCH : 0);
    AQ_CHECK_EQ(gasnet_coll_barrier_wait(team, 1, 0), GASNET_ERR_BARRIER_MISMATCH);
    gasnet_coll_barrier_notify(team, 3, 0);
    AQ_CHECK_EQ(gasnet_coll_barrier_wait(team, 4, 0), GASNET_ERR_BARRIER_MISMATCH);
    AQ_CHECK_EQ(gasnet_coll_barrier(team, 0, GASNET_BARRIERFLAG_UNNAMED), GASNET_OK);
}

static void check_names(void)
{
    gasnet_coll_tuning_param_type_t parameter = 0;
    const gasnet_coll_optype_t type = GASNET_COLL_BROADCAST_OP;

    AQ_CHECK((GASNET_COLL_SYNC_FLAG_MASK & GASNET_COLL_LOCAL) == 0);
    AQ_CHECK((GASNET_COLL_DST_IN_SEGMENT & GASNET_COLL_SRC_IN_SEGMENT) == 0);
    AQ_CHECK((GASNET_COLL_NO_IMAGES & GASNET_COLL_DISABLE_AUTOTUNE) == 0);
    gasnet_coll_set_tree_kind(GASNET_TEAM_ALL, 0, 2, type);
    gasnet_coll_set_dissem_limit(GASNET_TEAM_ALL, 1024, type);
    AQ_CHECK(gasnet_coll_get_num_tree_classes(GASNET_TEAM_ALL, type) >= 0);
    gasnet_coll_loadTuningState(NULL, GASNET_TEAM_ALL);
    gasnet_coll_dumpTuningState(NULL, GASNET_TEAM_ALL);
    gasnet_coll_dumpProfile(NULL, GASNET_TEAM_ALL);
    (void)parameter;
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = { 1, 8, 1001, 20000, HIGHEST };
    gex_TM_t half;

    aq_test_start(&argc, &argv, 1);
    aq_test_segment(GASNET_PAGESIZE);
    src = malloc((size_t)HIGHEST * aq_test_n);
    dst = malloc((size_t)HIGHEST * aq_test_n);
    use_team(GASNET_TEAM_ALL);
    rule("gasnet-1 20.1: every call with every pair of flags");
    for (size_t i = 0; i < AQ_LENGTH(sizes) && (!aq_test_quick || sizes[i] < 2000); i++)
        check_flags(sizes[i]);
    rule("gasnet-1 20.1: several outstanding; the redirected syncs");
    check_outstanding();
    rule("gasnet-1 20.1: barriers over the job");
    aq_test_barrier();
    check_barriers();
    /* ranks in reverse, so that no rank in the team equals its jobrank by chance */
    gex_TM_Split(&half, aq_test_tm, (int)(aq_test_me % 2), (int)(aq_test_n - aq_test_me), NULL, 0,
                 GEX_FLAG_TM_NO_SCRATCH);
    use_team(half);
    rule("gasnet-1 20.1: every call with every pair of flags, over a team; images are its ranks");
    for (size_t i = 0; i < AQ_LENGTH(sizes) && (!aq_test_quick || sizes[i] < 2000); i++)
        check_flags(sizes[i]);
    check_outstanding();
    rule("gasnet-1 20.1: barriers over a team");
    check_barriers();
    check_barriers();
    gex_TM_Destroy(half, NULL, 0);
    rule("gasnet-1 20.1: names and constants");
    check_names();
    return aq_test_finish();
}
