/*
 * test_g1_vis.c - the eighteen vector, indexed and strided calls of GASNet-1: random shapes
 * compared with a serial model, lists cut differently on both sides, pieces and counts of 0, no
 * levels and twenty. Ranks 1+. Conduits all. Source GASNet specification 1.8 with its extension for
 * vectors. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test_g1.h"

enum { SIZE = 20000, FRAGMENTS = 24, LEVELS = 20, PAINT = 0x5a };

static unsigned char ours[SIZE], model[SIZE], remote_addr[SIZE];
static uint64_t random_state = 4711;

static size_t below(size_t n)
{
    return n == 0 ? 0 : (size_t)(aq_test_random(&random_state) % n);
}

enum { BLOCKING, NB, NBI, REGION, STYLES };

static void finish(int style, gasnet_handle_t h)
{
    if (style == REGION) {
        gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
    } else if (style == NB) {
        while (gasnet_try_syncnb(h) == GASNET_ERR_NOT_READY)
            aq_test_yield();
    } else {
        gasnet_wait_syncnbi_all();
    }
}

/* --- vector and indexed --- */

/* Cuts [at, at + total) with holes into pieces; returns their number. One length for all if even !=
 * 0. */
static size_t cut(gasnet_memvec_t *list, unsigned char *base, size_t total, size_t even)
{
    size_t n = 0, at = below(50);

    while (total > 0) {
        size_t len = even != 0 ? even : n == FRAGMENTS - 1 ? total : below(total + 1);

        list[n].addr =
            len > 0 ? base + at : NULL; /* the address of an empty piece is not looked at */
        list[n].len = len;
        at += len + below(40);
        total -= len;
        n++;
    }
    return n;
}

/* The stream of bytes of `from` laid over `to`, as the model has it. */
static void lay(const gasnet_memvec_t *to, const gasnet_memvec_t *from, size_t nfrom)
{
    size_t used = 0;

    for (size_t i = 0; i < nfrom; i++)
        for (size_t k = 0; k < from[i].len; k++) {
            while (used == to->len) {
                to++;
                used = 0;
            }
            ((unsigned char *)to->addr)[used++] = ((unsigned char *)from[i].addr)[k];
        }
}

static void moved(gasnet_memvec_t *list, size_t n, unsigned char *from, unsigned char *to)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].addr != NULL)
            list[i].addr = to + ((unsigned char *)list[i].addr - from);
}

/* Fresh contents on both sides; what a put leaves there or a get here is known to the model. */
static void prepare(gasnet_node_t node, bool is_put)
{
    memset(remote_addr, PAINT, SIZE);
    aq_test_fill(ours, SIZE, 1);
    if (!is_put) {
        aq_test_fill(remote_addr, SIZE, 2);
        memset(ours, PAINT, SIZE);
    }
    gasnet_put_bulk(node, aq_test_base(node), remote_addr, SIZE);
    memcpy(model, is_put ? remote_addr : ours, SIZE);
}

static void compare(gasnet_node_t node, bool is_put, const char *what)
{
    gasnet_get_bulk(remote_addr, node, aq_test_base(node), SIZE);
    if (memcmp(is_put ? remote_addr : ours, model, SIZE) != 0)
        aq_test_fail(__FILE__, __LINE__, "%s differs from the model", what);
}

static gasnet_handle_t vector(int style, bool is_put, gasnet_node_t node, size_t nd,
                              gasnet_memvec_t *d, size_t ns, gasnet_memvec_t *s)
{
    gasnet_handle_t h = GASNET_INVALID_HANDLE;

    if (style == BLOCKING && is_put)
        gasnet_putv_bulk(node, nd, d, ns, s);
    else if (style == BLOCKING)
        gasnet_getv_bulk(nd, d, node, ns, s);
    else if (style == NB)
        h = is_put ? gasnet_putv_nb_bulk(node, nd, d, ns, s)
                   : gasnet_getv_nb_bulk(nd, d, node, ns, s);
    else if (is_put)
        gasnet_putv_nbi_bulk(node, nd, d, ns, s);
    else
        gasnet_getv_nbi_bulk(nd, d, node, ns, s);
    return h;
}

static gasnet_handle_t indexed(int style, bool is_put, gasnet_node_t node, size_t nd, void **d,
                               size_t dlen, size_t ns, void **s, size_t slen)
{
    gasnet_handle_t h = GASNET_INVALID_HANDLE;

    if (style == BLOCKING && is_put)
        gasnet_puti_bulk(node, nd, d, dlen, ns, s, slen);
    else if (style == BLOCKING)
        gasnet_geti_bulk(nd, d, dlen, node, ns, s, slen);
    else if (style == NB)
        h = is_put ? gasnet_puti_nb_bulk(node, nd, d, dlen, ns, s, slen)
                   : gasnet_geti_nb_bulk(nd, d, dlen, node, ns, s, slen);
    else if (is_put)
        gasnet_puti_nbi_bulk(node, nd, d, dlen, ns, s, slen);
    else
        gasnet_geti_nbi_bulk(nd, d, dlen, node, ns, s, slen);
    return h;
}

/* even: 0 for vector, else indexed with pieces of even and 2 * even bytes. */
static void check_lists(gasnet_node_t node, int style, bool is_put, size_t even)
{
    gasnet_memvec_t d[FRAGMENTS], s[FRAGMENTS];
    void *dl[FRAGMENTS], *sl[FRAGMENTS];
    const size_t total = even != 0 ? 2 * even * below(FRAGMENTS / 2) : below(6000);
    unsigned char *remote = aq_test_base(node);
    gasnet_handle_t h;
    size_t nd, ns, i;

    prepare(node, is_put);
    nd = cut(d, model, total, even);
    ns = cut(s, is_put ? ours : remote_addr, total, 2 * even);
    lay(d, s, ns);
    moved(d, nd, model, is_put ? remote : ours);
    if (!is_put)
        moved(s, ns, remote_addr, remote);
    for (i = 0; i < nd; i++)
        dl[i] = d[i].addr;
    for (i = 0; i < ns; i++)
        sl[i] = s[i].addr;
    if (style == REGION)
        gasnet_begin_nbi_accessregion();
    h = even == 0 ? vector(style, is_put, node, nd, d, ns, s)
                  : indexed(style, is_put, node, nd, dl, even, ns, sl, 2 * even);
    finish(style, h);
    compare(node, is_put, even == 0 ? "vector" : "indexed");
}

/* --- strided --- */

static gasnet_handle_t strided(int style, bool is_put, gasnet_node_t node, void *d,
                               const size_t *ds, void *s, const size_t *ss, const size_t *count,
                               size_t levels)
{
    gasnet_handle_t h = GASNET_INVALID_HANDLE;

    if (style == BLOCKING && is_put)
        gasnet_puts_bulk(node, d, ds, s, ss, count, levels);
    else if (style == BLOCKING)
        gasnet_gets_bulk(d, ds, node, s, ss, count, levels);
    else if (style == NB)
        h = is_put ? gasnet_puts_nb_bulk(node, d, ds, s, ss, count, levels)
                   : gasnet_gets_nb_bulk(d, ds, node, s, ss, count, levels);
    else if (is_put)
        gasnet_puts_nbi_bulk(node, d, ds, s, ss, count, levels);
    else
        gasnet_gets_nbi_bulk(d, ds, node, s, ss, count, levels);
    return h;
}

static void copy_section(unsigned char *d, const size_t *ds, const unsigned char *s,
                         const size_t *ss, const size_t *count, size_t levels)
{
    if (levels == 0) {
        memcpy(d, s, count[0]);
        return;
    }
    for (size_t i = 0; i < count[levels]; i++)
        copy_section(d + i * ds[levels - 1], ds, s + i * ss[levels - 1], ss, count, levels - 1);
}

static void make_strides(size_t *strides, const size_t *count, size_t levels)
{
    size_t span = count[0];

    for (size_t i = 0; i < levels; i++) {
        strides[i] = span + below(5);
        span = strides[i] * count[i + 1];
    }
}

static void check_section(gasnet_node_t node, int style, bool is_put, const size_t *count,
                          size_t levels)
{
    size_t ds[LEVELS], ss[LEVELS];
    unsigned char *remote = aq_test_base(node);
    gasnet_handle_t h;

    prepare(node, is_put);
    make_strides(ds, count, levels);
    make_strides(ss, count, levels);
    copy_section(model + 3, ds, (is_put ? ours : remote_addr) + 5, ss, count, levels);
    if (style == REGION)
        gasnet_begin_nbi_accessregion();
    h = strided(style, is_put, node, (is_put ? remote : ours) + 3, levels > 0 ? ds : NULL,
                (is_put ? ours : remote) + 5, levels > 0 ? ss : NULL, count, levels);
    memset(ds, 0, sizeof(ds)); /* ours again at once */
    memset(ss, 0, sizeof(ss));
    finish(style, h);
    compare(node, is_put, "strided");
}

static void check_sections(gasnet_node_t node, int style, bool is_put)
{
    size_t count[LEVELS + 1];

    for (size_t levels = 0; levels <= 4; levels++) {
        count[0] = 1 + below(levels < 3 ? 60 : 9);
        for (size_t i = 1; i <= levels; i++)
            count[i] = 1 + below(levels < 3 ? 10 : 4);
        check_section(node, style, is_put, count, levels);
    }
    for (size_t i = 0; i <= LEVELS; i++) /* two in four of the twenty dimensions */
        count[i] = i == 0 ? 3 : i % 5 == 0 ? 2 : 1;
    check_section(node, style, is_put, count, LEVELS);
}

/* Nothing to copy: lists and addresses are not looked at. */
static void check_nothing(gasnet_node_t node, int style, bool is_put)
{
    gasnet_memvec_t empty[2] = { { (void *)1, 0 }, { NULL, 0 } };
    void *wild[2] = { (void *)1, (void *)2 };
    const size_t zeros[3] = { 4, 0, 7 }, strides[2] = { 4, 40 };
    const size_t no_bytes[3] = { 0, 3, 7 };

    finish(style, vector(style, is_put, node, 0, NULL, 0, NULL));
    finish(style, vector(style, is_put, node, 2, empty, 1, empty));
    finish(style, indexed(style, is_put, node, 2, wild, 0, 0, NULL, 5));
    finish(style, strided(style, is_put, node, (void *)1, strides, (void *)3, strides, zeros, 2));
    finish(style,
           strided(style, is_put, node, (void *)1, strides, (void *)3, strides, no_bytes, 2));
}

int main(int argc, char **argv)
{
    static const char *const names[STYLES] = {
        "gasnet-1 19: blocking vector, indexed, strided transfers",
        "gasnet-1 19: the same with handles",
        "gasnet-1 19: the same, implicit",
        "gasnet-1 19: the same in an access region",
    };
    const int rounds = aq_test_quick ? 3 : 12;
    gex_Rank_t k;
    int style, way, i;

    aq_test_start_gasnet1(&argc, &argv, 1, NULL, 0, SIZE);
    for (k = 0; k < 2; k++) {
        for (style = 0; style < STYLES; style++) {
            rule(names[style]);
            for (way = 0; way < 2; way++)
                for (i = 0; i < rounds; i++) {
                    check_lists(aq_test_peer(k), style, way, 0);
                    check_lists(aq_test_peer(k), style, way, 1 + below(120));
                    check_sections(aq_test_peer(k), style, way);
                }
        }
        rule("gasnet-1 19: nothing to copy");
        for (style = 0; style < REGION; style++)
            for (way = 0; way < 2; way++)
                check_nothing(aq_test_peer(k), style, way);
        aq_test_barrier();
    }
    return aq_test_finish();
}
