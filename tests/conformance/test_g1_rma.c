/*
 * test_g1_rma.c - every form of put, get and memset of GASNet-1: 0 to 300 bytes at any alignment,
 * sources that are overwritten as soon as that is allowed, values of 1 to 8 bytes, long ones,
 * guards untouched. Ranks 1+. Conduits all. Source GASNet specification 1.8, Extended API.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test_g1.h"

enum { SMALL = 300, CANARY = 16, PAINT = 0x3c, HUGE_BYTES = 9 << 20, SEGMENT = HUGE_BYTES + 65536 };

static char src[SMALL + 64], got[SMALL + 64 + 2 * CANARY];

enum { PLAIN, BULK, NB, NB_BULK, NBI, NBI_BULK, STYLES };

static void put(int style, gasnet_node_t to, void *dest, char *from, size_t len)
{
    gasnet_handle_t h = GASNET_INVALID_HANDLE;

    switch (style) {
    case PLAIN:
        gasnet_put(to, dest, from, len);
        break;
    case BULK:
        gasnet_put_bulk(to, dest, from, len);
        break;
    case NB:
        h = gasnet_put_nb(to, dest, from, len);
        break;
    case NB_BULK:
        h = gasnet_put_nb_bulk(to, dest, from, len);
        break;
    case NBI:
        gasnet_put_nbi(to, dest, from, len);
        break;
    case NBI_BULK:
        gasnet_put_nbi_bulk(to, dest, from, len);
        break;
    }
    if (style != NB_BULK && style != NBI_BULK && len > 0)
        memset(from, PAINT, len); /* ours again at return */
    gasnet_wait_syncnb(h);
    gasnet_wait_syncnbi_puts();
    if (len > 0)
        memset(from, PAINT, len);
}

static void get(int style, void *dest, gasnet_node_t from, void *remote, size_t len)
{
    switch (style) {
    case PLAIN:
        gasnet_get(dest, from, remote, len);
        break;
    case BULK:
        gasnet_get_bulk(dest, from, remote, len);
        break;
    case NB:
        gasnet_wait_syncnb(gasnet_get_nb(dest, from, remote, len));
        break;
    case NB_BULK:
        gasnet_wait_syncnb(gasnet_get_nb_bulk(dest, from, remote, len));
        break;
    case NBI:
        gasnet_get_nbi(dest, from, remote, len);
        break;
    case NBI_BULK:
        gasnet_get_nbi_bulk(dest, from, remote, len);
        break;
    }
    gasnet_wait_syncnbi_gets();
}

static void fill(int style, gasnet_node_t to, void *dest, int val, size_t len)
{
    switch (style % 3) {
    case 0:
        gasnet_memset(to, dest, val, len);
        break;
    case 1:
        gasnet_wait_syncnb(gasnet_memset_nb(to, dest, val, len));
        break;
    case 2:
        gasnet_memset_nbi(to, dest, val, len);
        gasnet_wait_syncnbi_puts();
        break;
    }
}

static void check_one(gasnet_node_t to, size_t len, int style, uint64_t *random)
{
    const uint64_t r = aq_test_random(random);
    char *dest = (char *)aq_test_base(to) + CANARY + r % 32;
    char *from = src + (r >> 8) % 32, *into = got + CANARY + (r >> 16) % 16;
    const uint64_t seed = r >> 32;
    const int val = (int)(r >> 20 & 0xffff); /* only the low 8 bits count */

    aq_test_fill(from, len, seed);
    put(style, to, dest, from, len);
    memset(got, PAINT, sizeof(got));
    get(style, into, to, dest, len);
    AQ_CHECK(aq_test_same(into, len, seed));
    AQ_CHECK(aq_test_all(got, PAINT, (size_t)(into - got)));
    AQ_CHECK(aq_test_all(into + len, PAINT, (size_t)(got + sizeof(got) - into) - len));
    get((style + 1) % STYLES, got, to, dest - CANARY, len + 2 * CANARY);
    AQ_CHECK(aq_test_all(got, PAINT, CANARY));
    AQ_CHECK(aq_test_same(got + CANARY, len, seed));
    AQ_CHECK(aq_test_all(got + CANARY + len, PAINT, CANARY));
    fill(style, to, dest, val, len);
    get((style + 2) % STYLES, got, to, dest - CANARY, len + 2 * CANARY);
    AQ_CHECK(aq_test_all(got, PAINT, CANARY));
    AQ_CHECK(aq_test_all(got + CANARY, val, len));
    AQ_CHECK(aq_test_all(got + CANARY + len, PAINT, CANARY));
    fill(style + 1, to, dest, PAINT, len);
}

static void check_forms(gasnet_node_t to)
{
    static const char *const names[STYLES] = {
        "gasnet-1 13: put, get, memset of 0..300 bytes, any alignment",
        "gasnet-1 13: put_bulk, get_bulk, memset_nb of 0..300 bytes, any alignment",
        "gasnet-1 14: put_nb (source ours at return), get_nb, memset_nbi",
        "gasnet-1 14: put_nb_bulk, get_nb_bulk",
        "gasnet-1 15: put_nbi (source ours at return), get_nbi",
        "gasnet-1 15: put_nbi_bulk, get_nbi_bulk",
    };
    uint64_t random = 1;
    int style;
    size_t len;

    gasnet_memset(to, aq_test_base(to), PAINT, SMALL + 64 + 2 * CANARY);
    for (style = 0; style < STYLES; style++) {
        rule(names[style]);
        for (len = 0; len <= SMALL; len += aq_test_quick ? 7 : 1)
            check_one(to, len, style, &random);
    }
}

static void check_zero(gasnet_node_t to)
{
    int style;

    rule("gasnet-1 12: 0 bytes look at no address");
    for (style = 0; style < STYLES; style++) {
        put(style, to, NULL, NULL, 0);
        put(style, to, (void *)1, (void *)1, 0);
        get(style, NULL, to, (void *)1, 0);
        fill(style, to, NULL, 5, 0);
    }
    AQ_CHECK_EQ(gasnet_try_syncnb(gasnet_put_nb(to, NULL, NULL, 0)), GASNET_OK);
}

static gasnet_register_value_t low(gasnet_register_value_t value, size_t n)
{
    return n == 8 ? value : value & (((gasnet_register_value_t)1 << 8 * n) - 1);
}

static void check_values(gasnet_node_t to)
{
    const gasnet_register_value_t value = 0xf1e2d3c4b5a69788u;
    gasnet_valget_handle_t handles[8];
    char *base = (char *)aq_test_base(to);
    size_t n;
    int at;

    rule("gasnet-1 16: values of 1..8 bytes at any address: low bytes written, zero-extended when "
         "read");
    for (n = 1; n <= SIZEOF_GASNET_REGISTER_VALUE_T; n++)
        for (at = 0; at < 9; at++) {
            gasnet_memset(to, base, PAINT, 40);
            if (at % 3 == 0)
                gasnet_put_val(to, base + 8 + at, value, n);
            else if (at % 3 == 1)
                gasnet_wait_syncnb(gasnet_put_nb_val(to, base + 8 + at, value, n));
            else
                gasnet_put_nbi_val(to, base + 8 + at, value, n);
            gasnet_wait_syncnbi_puts();
            AQ_CHECK(gasnet_get_val(to, base + 8 + at, n) == low(value, n));
            AQ_CHECK(gasnet_wait_syncnb_valget(gasnet_get_nb_val(to, base + 8 + at, n))
                     == low(value, n));
            gasnet_get(got, to, base, 40);
            AQ_CHECK(aq_test_all(got, PAINT, 8 + (size_t)at));
            AQ_CHECK(aq_test_all(got + 8 + at + n, PAINT, 32 - (size_t)at - n));
        }
    gasnet_put_val(to, base, -1, 4); /* as clients do */
    AQ_CHECK_EQ((int)gasnet_get_val(to, base, 4), -1);
    AQ_CHECK_EQ(gasnet_get_val(to, base, 4), 0xffffffff);
    rule("gasnet-1 16: value gets of several widths outstanding, finished in another order");
    gasnet_put_val(to, base, value, 8);
    for (n = 1; n <= 8; n++)
        handles[n - 1] = gasnet_get_nb_val(to, base, n);
    for (n = 8; n >= 1; n--)
        AQ_CHECK(gasnet_wait_syncnb_valget(handles[n - 1]) == low(value, n));
}

static void check_many_values(gasnet_node_t to)
{
    enum { MANY = 5000 };
    static gasnet_valget_handle_t handles[MANY];
    char *base = (char *)aq_test_base(to);
    int i;

    rule("gasnet-1 16: thousands of value gets outstanding; regions and implicit syncs leave them "
         "alone");
    for (i = 0; i < 256; i++)
        gasnet_put_nbi_val(to, base + 2 * i, (gasnet_register_value_t)i * 3, 2);
    gasnet_wait_syncnbi_all();
    gasnet_begin_nbi_accessregion();
    for (i = 0; i < MANY; i++)
        handles[i] = gasnet_get_nb_val(to, base + 2 * (i % 256), 2);
    AQ_CHECK_EQ(gasnet_try_syncnb(gasnet_end_nbi_accessregion()), GASNET_OK);
    gasnet_wait_syncnbi_all();
    for (i = 0; i < MANY; i++)
        AQ_CHECK_EQ(gasnet_wait_syncnb_valget(handles[i]), 3 * (i % 256));
}

static void check_huge(gasnet_node_t to)
{
    char *base = (char *)aq_test_base(to) + 13, *back = malloc(HUGE_BYTES + 2);
    gasnet_handle_t h;

    rule("gasnet-1 13: a memset of many megabytes");
    if (back == NULL)
        aq_test_die(__FILE__, __LINE__, "no memory");
    gasnet_memset(to, base - 1, 1, HUGE_BYTES + 2);
    h = gasnet_memset_nb(to, base, 0x1a7, HUGE_BYTES);
    while (gasnet_try_syncnb(h) == GASNET_ERR_NOT_READY)
        aq_test_yield();
    gasnet_get_bulk(back, to, base - 1, HUGE_BYTES + 2);
    AQ_CHECK(back[0] == 1 && back[HUGE_BYTES + 1] == 1);
    AQ_CHECK(aq_test_all(back + 1, 0xa7, HUGE_BYTES));
    aq_test_fill(back, HUGE_BYTES, 5);
    gasnet_put_nbi_bulk(to, base, back, HUGE_BYTES);
    gasnet_wait_syncnbi_all();
    memset(back, 0, HUGE_BYTES);
    gasnet_get_nbi(back, to, base, HUGE_BYTES);
    while (gasnet_try_syncnbi_gets() == GASNET_ERR_NOT_READY)
        aq_test_yield();
    AQ_CHECK(aq_test_same(back, HUGE_BYTES, 5));
    free(back);
}

int main(int argc, char **argv)
{
    gex_Rank_t k;

    aq_test_start_gasnet1(&argc, &argv, 1, NULL, 17, SEGMENT);
    for (k = 0; k < 2; k++) {
        check_forms(aq_test_peer(k));
        check_zero(aq_test_peer(k));
        check_values(aq_test_peer(k));
        check_many_values(aq_test_peer(k));
        check_huge(aq_test_peer(k));
        aq_test_barrier();
    }
    return aq_test_finish();
}
