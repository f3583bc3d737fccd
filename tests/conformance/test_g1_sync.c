/*
 * test_g1_sync.c - synchronisation of GASNet-1: handles one by one and in arrays with invalid
 * entries, all twelve forms; implicit sets; access regions with members of every kind; many
 * operations outstanding. Ranks 1+. Conduits all. Source GASNet specification 1.8, Extended API.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test_g1.h"

enum { COUNT = 12, LEN = 1500, MANY = 66000, SEGMENT = 4 * COUNT * LEN };

static char out[COUNT][LEN], in[COUNT][LEN];

static char *place(gasnet_node_t to, int i)
{
    return (char *)aq_test_base(to) + (size_t)i * LEN;
}

/* Handles of puts at the odd places, nothing at the even ones. */
static void start(gasnet_node_t to, gasnet_handle_t *h, uint64_t seed)
{
    int i;

    memset(h, 0, COUNT * sizeof(*h)); /* all-zero bytes are the invalid handle */
    for (i = 1; i < COUNT; i += 2) {
        aq_test_fill(out[i], LEN, seed + (uint64_t)i);
        h[i] = i % 4 == 1 ? gasnet_put_nb_bulk(to, place(to, i), out[i], LEN)
                          : gasnet_put_nb(to, place(to, i), out[i], LEN);
    }
}

static bool none_left(const gasnet_handle_t *h)
{
    int i;

    for (i = 0; i < COUNT; i++)
        if (h[i] != GASNET_INVALID_HANDLE)
            return false;
    return true;
}

static void check_data(gasnet_node_t to, uint64_t seed)
{
    int i;

    for (i = 1; i < COUNT; i += 2) {
        gasnet_get(in[i], to, place(to, i), LEN);
        AQ_CHECK(aq_test_same(in[i], LEN, seed + (uint64_t)i));
    }
}

/* 0..2 all: wait, try, try without poll; 3..5 some: the same. */
static void finish(int way, gasnet_handle_t *h)
{
    int rc, rounds = 0;

    while (!none_left(h)) {
        void *before[COUNT];
        int i, unmapped = 0;

        memcpy(before, h, sizeof(before));
        switch (way) {
        case 0:
            gasnet_wait_syncnb_all(h, COUNT);
            AQ_CHECK(none_left(h));
            return;
        case 1:
            rc = gasnet_try_syncnb_all(h, COUNT);
            break;
        case 2:
            gasnet_AMPoll();
            rc = gasnet_try_syncnb_all_nopoll(h, COUNT);
            break;
        case 3:
            gasnet_wait_syncnb_some(h, COUNT);
            rc = GASNET_OK;
            break;
        case 4:
            rc = gasnet_try_syncnb_some(h, COUNT);
            break;
        default:
            gasnet_AMPoll();
            rc = gasnet_try_syncnb_some_nopoll(h, COUNT);
            break;
        }
        for (i = 0; i < COUNT; i++)
            unmapped += before[i] != NULL && h[i] == GASNET_INVALID_HANDLE;
        if (way < 3)
            AQ_CHECK_EQ(rc, none_left(h) ? GASNET_OK : GASNET_ERR_NOT_READY);
        else
            AQ_CHECK_EQ(rc, unmapped > 0 ? GASNET_OK : GASNET_ERR_NOT_READY);
        aq_test_yield();
        if (++rounds > 100000000)
            aq_test_die(__FILE__, __LINE__, "handles never finished, way %d", way);
    }
}

static void check_arrays(gasnet_node_t to)
{
    static const char *const names[] = {
        "gasnet-1 14: wait_syncnb_all",       "gasnet-1 14: try_syncnb_all marks finished entries",
        "gasnet-1 14: try_syncnb_all_nopoll", "gasnet-1 14: wait_syncnb_some",
        "gasnet-1 14: try_syncnb_some",       "gasnet-1 14: try_syncnb_some_nopoll",
    };
    gasnet_handle_t h[COUNT];
    int way;

    for (way = 0; way < 6; way++) {
        rule(names[way]);
        start(to, h, (uint64_t)way * 100);
        finish(way, h);
        check_data(to, (uint64_t)way * 100);
    }
    rule("gasnet-1 14: arrays of length 0, and with invalid entries only");
    memset(h, 0, sizeof(h));
    for (way = 0; way < 2; way++) {
        const size_t n = way * COUNT;

        gasnet_wait_syncnb_all(h, n);
        gasnet_wait_syncnb_some(h, n);
        AQ_CHECK_EQ(gasnet_try_syncnb_all(h, n), GASNET_OK);
        AQ_CHECK_EQ(gasnet_try_syncnb_some(h, n), GASNET_OK);
        AQ_CHECK_EQ(gasnet_try_syncnb_all_nopoll(h, n), GASNET_OK);
        AQ_CHECK_EQ(gasnet_try_syncnb_some_nopoll(h, n), GASNET_OK);
    }
    AQ_CHECK_EQ(gasnet_try_syncnb_all(NULL, 0), GASNET_OK);
}

static void check_single(gasnet_node_t to)
{
    gasnet_handle_t h;

    rule("gasnet-1 14: try_syncnb polls by itself; the invalid handle is complete");
    gasnet_wait_syncnb(GASNET_INVALID_HANDLE);
    AQ_CHECK_EQ(gasnet_try_syncnb(GASNET_INVALID_HANDLE), GASNET_OK);
    AQ_CHECK_EQ(gasnet_try_syncnb_nopoll(GASNET_INVALID_HANDLE), GASNET_OK);
    aq_test_fill(out[0], LEN, 9);
    h = gasnet_put_nb_bulk(to, place(to, 0), out[0], LEN);
    while (gasnet_try_syncnb(h) == GASNET_ERR_NOT_READY)
        aq_test_yield();
    h = gasnet_get_nb_bulk(in[0], to, place(to, 0), LEN);
    for (;;) {
        int rc = gasnet_try_syncnb_nopoll(h);

        if (rc == GASNET_OK)
            break;
        AQ_CHECK_EQ(rc, GASNET_ERR_NOT_READY);
        aq_test_relax();
    }
    AQ_CHECK(aq_test_same(in[0], LEN, 9));
}

static void check_implicit(gasnet_node_t to)
{
    int i;

    rule("gasnet-1 15: implicit puts, gets and memsets, by wait and by try");
    AQ_CHECK_EQ(gasnet_try_syncnbi_all(), GASNET_OK);
    AQ_CHECK_EQ(gasnet_try_syncnbi_puts(), GASNET_OK);
    AQ_CHECK_EQ(gasnet_try_syncnbi_gets(), GASNET_OK);
    for (i = 0; i < COUNT; i++) {
        aq_test_fill(out[i], LEN, 40u + (uint64_t)i);
        gasnet_put_nbi_bulk(to, place(to, i), out[i], LEN);
        gasnet_memset_nbi(to, place(to, COUNT + i), i, LEN);
    }
    while (gasnet_try_syncnbi_puts() == GASNET_ERR_NOT_READY)
        aq_test_yield();
    memset(out, 0, sizeof(out));
    for (i = 0; i < COUNT; i++) {
        gasnet_get_nbi(in[i], to, place(to, i), LEN);
        gasnet_get_nbi_bulk(out[i], to, place(to, COUNT + i), LEN);
    }
    while (gasnet_try_syncnbi_all() == GASNET_ERR_NOT_READY)
        aq_test_yield();
    for (i = 0; i < COUNT; i++)
        AQ_CHECK(aq_test_same(in[i], LEN, 40u + (uint64_t)i) && aq_test_all(out[i], i, LEN));
}

static void check_region(gasnet_node_t to)
{
    gasnet_handle_t h, nb;

    rule("gasnet-1 15: a region of puts, gets, value puts and memsets, another operation outside");
    aq_test_fill(out[0], LEN, 60);
    aq_test_fill(out[1], LEN, 61);
    gasnet_put(to, place(to, 5), out[1], LEN);
    memset(in, 0, sizeof(in));
    gasnet_put_nbi_bulk(to, place(to, 0), out[0], LEN);
    gasnet_begin_nbi_accessregion();
    gasnet_put_nbi(to, place(to, 1), out[1], LEN);
    gasnet_put_nbi_val(to, place(to, 2), 0x1234, 2);
    gasnet_memset_nbi(to, place(to, 3), 7, LEN);
    gasnet_get_nbi_bulk(in[5], to, place(to, 5), LEN);
    nb = gasnet_put_nb(to, place(to, 4), out[1], LEN);
    gasnet_wait_syncnb(nb); /* explicit ones may be finished inside */
    h = gasnet_end_nbi_accessregion();
    gasnet_wait_syncnbi_all(); /* the one before the region */
    gasnet_get(in[0], to, place(to, 0), LEN);
    AQ_CHECK(aq_test_same(in[0], LEN, 60));
    gasnet_wait_syncnb(h);
    AQ_CHECK(aq_test_same(in[5], LEN, 61));
    gasnet_get(in[1], to, place(to, 1), LEN);
    gasnet_get(in[3], to, place(to, 3), LEN);
    AQ_CHECK(aq_test_same(in[1], LEN, 61));
    AQ_CHECK_EQ(gasnet_get_val(to, place(to, 2), 2), 0x1234);
    AQ_CHECK(aq_test_all(in[3], 7, LEN));
    rule("gasnet-1 15: an empty region gives a handle that is done");
    gasnet_begin_nbi_accessregion();
    AQ_CHECK_EQ(gasnet_try_syncnb(gasnet_end_nbi_accessregion()), GASNET_OK);
}

static void check_many(gasnet_node_t to)
{
    const int n = aq_test_quick || aq_test_n > 3 ? 4000 : MANY;
    gasnet_handle_t *h = calloc(MANY, sizeof(*h));
    int i;

    rule("gasnet-1 12: 65535 and more operations outstanding before the first sync");
    if (h == NULL)
        aq_test_die(__FILE__, __LINE__, "no memory");
    for (i = 0; i < n; i++) {
        const int word = i % (SEGMENT / 4);

        h[i] = gasnet_put_nb_val(to, place(to, 0) + 4 * word, (gasnet_register_value_t)word, 4);
        gasnet_put_nbi_val(to, place(to, 0) + 4 * word, (gasnet_register_value_t)word, 4);
    }
    gasnet_wait_syncnb_all(h, (size_t)n);
    gasnet_wait_syncnbi_puts();
    for (i = 0; i < n && i < SEGMENT / 4; i += 97)
        AQ_CHECK_EQ(gasnet_get_val(to, place(to, 0) + 4 * i, 4), i);
    free(h);
}

int main(int argc, char **argv)
{
    gex_Rank_t k;

    aq_test_start_gasnet1(&argc, &argv, 1, NULL, 0, SEGMENT);
    for (k = 0; k < 2; k++) {
        check_arrays(aq_test_peer(k));
        check_single(aq_test_peer(k));
        check_implicit(aq_test_peer(k));
        check_region(aq_test_peer(k));
        check_many(aq_test_peer(k));
        aq_test_barrier();
    }
    return aq_test_finish();
}
