/*
 * aq_vis_model.h - random vector, indexed and strided transfers, and a serial model of what they
 * do.
 *
 * A transfer is two lists of byte offsets, one byte after the other as the specification's text has
 * it: byte k of the source list goes to byte k of the destination list. The lists are made here in
 * the plainest way, from the same numbers that the library is given.
 *
 * Uses      aq_test.h, gasnet_vis.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_VIS_MODEL_H
#define AQ_VIS_MODEL_H

#include "aq_test.h"
#include "gasnet_vis.h"

enum { VIS_LEVELS = 24, VIS_CHUNKS = 6000 };
enum vis_kind { VIS_VECTOR, VIS_INDEXED, VIS_STRIDED, VIS_KINDS };
enum vis_style { VIS_BLOCKING, VIS_NB, VIS_NB_LEAF, VIS_NBI, VIS_NBI_LEAF, VIS_REGION, VIS_STYLES };

/* One side of a transfer: offsets from the beginning of its buffer. */
struct vis_side {
    /* vector and indexed */
    size_t count, len;
    size_t at[VIS_CHUNKS], lens[VIS_CHUNKS];
    /* strided */
    ptrdiff_t base, stride[VIS_LEVELS];
};

struct vis_case {
    enum vis_kind kind;
    struct vis_side dst, src;
    size_t elemsz, levels, counts[VIS_LEVELS];
    size_t nbytes;
    uint32_t *dst_at, *src_at; /* [nbytes]: where each byte is */
};

static uint64_t vis_seed = 1;

static inline size_t vis_rand(size_t below)
{
    return below == 0 ? 0 : (size_t)(aq_test_random(&vis_seed) % below);
}

static inline void vis_shuffle(size_t *list, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        const size_t j = vis_rand(i), t = list[i - 1];

        list[i - 1] = list[j];
        list[j] = t;
    }
}

/* --- lists --- */

/* Cut nbytes into chunks, some of them empty. */
static inline void vis_cut(struct vis_side *side, size_t nbytes, size_t chunks)
{
    side->count = 0;
    while (nbytes > 0) {
        size_t len =
            chunks <= side->count + 1 ? nbytes : 1 + vis_rand(2 * nbytes / (chunks - side->count));

        if (vis_rand(8) == 0 && side->count + 2 < VIS_CHUNKS)
            side->lens[side->count++] = 0;
        if (len > nbytes || side->count + 2 >= VIS_CHUNKS)
            len = nbytes;
        side->lens[side->count++] = len;
        nbytes -= len;
    }
    if (vis_rand(3) == 0)
        side->lens[side->count++] = 0;
}

/* Give the chunks places that do not overlap, in shuffled order. */
static inline void vis_place(struct vis_side *side, size_t nbytes, size_t space)
{
    static size_t order[VIS_CHUNKS];
    size_t gap = (space - nbytes) / (side->count + 1), at = 0;

    for (size_t i = 0; i < side->count; i++)
        order[i] = i;
    if (vis_rand(4) != 0)
        vis_shuffle(order, side->count);
    if (vis_rand(4) == 0)
        gap = 0;
    for (size_t i = 0; i < side->count; i++) {
        at += vis_rand(gap + 1);
        side->at[order[i]] = at;
        at += side->lens[order[i]];
    }
}

/* Sources may overlap. */
static inline void vis_strew(struct vis_side *side, size_t space)
{
    for (size_t i = 0; i < side->count; i++)
        side->at[i] = vis_rand(space - side->lens[i] + 1);
}

static inline void vis_list_bytes(const struct vis_side *side, uint32_t *at)
{
    for (size_t i = 0; i < side->count; i++)
        for (size_t k = 0; k < side->lens[i]; k++)
            *at++ = (uint32_t)(side->at[i] + k);
}

static inline void vis_make_vector(struct vis_case *c, size_t space)
{
    const size_t chunks = 1 + vis_rand(vis_rand(4) == 0 ? VIS_CHUNKS / 2 : 40);

    c->nbytes = 1 + vis_rand(space * 2 / 3);
    vis_cut(&c->dst, c->nbytes, chunks);
    if (vis_rand(3) == 0)
        c->src = c->dst; /* matching chunks */
    else
        vis_cut(&c->src, c->nbytes, 1 + vis_rand(2 * chunks));
    vis_place(&c->dst, c->nbytes, space);
    vis_strew(&c->src, space);
}

static inline void vis_make_indexed(struct vis_case *c, size_t space)
{
    static const size_t units[] = { 1, 2, 4, 8, 16, 3, 5, 24, 40, 64, 100, 1000 };
    size_t unit, a, b, m;

    do {
        unit = units[vis_rand(AQ_LENGTH(units))];
        a = 1 + vis_rand(5);
        b = vis_rand(2) == 0 ? a : 1 + vis_rand(5);
        if (a == b)
            a = b = 1;
        m = 1 + vis_rand(vis_rand(3) == 0 ? 1000 : 30);
    } while (a * b * m * unit > space * 2 / 3);
    c->nbytes = a * b * m * unit;
    c->dst.len = a * unit;
    c->dst.count = b * m;
    c->src.len = b * unit;
    c->src.count = a * m;
    for (size_t i = 0; i < c->dst.count; i++)
        c->dst.lens[i] = c->dst.len;
    for (size_t i = 0; i < c->src.count; i++)
        c->src.lens[i] = c->src.len;
    vis_place(&c->dst, c->nbytes, space);
    vis_strew(&c->src, space);
}

/* --- strided --- */

/* Strides for one side, dimensions nested in random order. Returns the extent, or 0 if it is too
 * large. */
static inline size_t vis_nest(struct vis_side *side, const struct vis_case *c, size_t space)
{
    size_t order[VIS_LEVELS], extent = c->elemsz, step = c->elemsz;
    ptrdiff_t low = 0;

    for (size_t d = 0; d < c->levels; d++)
        order[d] = d;
    if (vis_rand(2) == 0)
        vis_shuffle(order, c->levels);
    for (size_t k = 0; k < c->levels; k++) {
        const size_t d = order[k], how = vis_rand(8);
        size_t stride = step >= extent ? step : extent;

        if (how == 0)
            stride += vis_rand(20);
        else if (how == 1)
            stride += c->elemsz * (1 + vis_rand(3));
        side->stride[d] = (ptrdiff_t)stride;
        if (vis_rand(4) == 0) {
            side->stride[d] = -side->stride[d];
            low += side->stride[d] * (ptrdiff_t)(c->counts[d] - 1);
        }
        extent += stride * (c->counts[d] - 1);
        step = stride * c->counts[d];
        if (extent > space)
            return 0;
        if (c->counts[d] == 1 && vis_rand(2) == 0)
            side->stride[d] = (ptrdiff_t)(vis_rand(1u << 30)) - (1 << 29); /* ignored */
    }
    side->base = (ptrdiff_t)vis_rand(space - extent + 1) - low;
    return extent;
}

/* A source may also repeat itself. */
static inline size_t vis_nest_source(struct vis_side *side, const struct vis_case *c, size_t space)
{
    ptrdiff_t low = 0, high = (ptrdiff_t)c->elemsz;

    if (c->levels == 0 || vis_rand(4) != 0)
        return vis_nest(side, c, space);
    for (size_t d = 0; d < c->levels; d++) {
        const ptrdiff_t reach = (ptrdiff_t)(space / (2 * c->levels * c->counts[d]));
        const ptrdiff_t stride =
            vis_rand(2) == 0 ? 0 : (ptrdiff_t)vis_rand((size_t)(2 * reach + 1)) - reach;

        side->stride[d] = stride;
        if (stride < 0)
            low += stride * (ptrdiff_t)(c->counts[d] - 1);
        else
            high += stride * (ptrdiff_t)(c->counts[d] - 1);
    }
    if (high - low > (ptrdiff_t)space)
        return 0;
    side->base = (ptrdiff_t)vis_rand(space - (size_t)(high - low) + 1) - low;
    return (size_t)(high - low);
}

static inline void vis_strided_bytes(const struct vis_case *c, const struct vis_side *side,
                                     uint32_t *at)
{
    size_t index[VIS_LEVELS] = { 0 };
    size_t elements = 1;

    for (size_t d = 0; d < c->levels; d++)
        elements *= c->counts[d];
    for (size_t e = 0; e < elements; e++) {
        ptrdiff_t where = side->base;
        size_t d;

        for (d = 0; d < c->levels; d++)
            where += side->stride[d] * (ptrdiff_t)index[d];
        for (size_t k = 0; k < c->elemsz; k++)
            *at++ = (uint32_t)(where + (ptrdiff_t)k);
        for (d = 0; d < c->levels && ++index[d] == c->counts[d]; d++)
            index[d] = 0;
    }
}

static inline void vis_make_strided(struct vis_case *c, size_t space)
{
    static const size_t sizes[] = { 1, 2, 4, 8, 8, 8, 16, 3, 12, 24, 33, 64, 65, 200, 3000, 20000 };

    do {
        const size_t max = vis_rand(4) == 0 ? 20 : 5;

        c->elemsz = sizes[vis_rand(AQ_LENGTH(sizes))];
        c->levels = vis_rand(max);
        c->nbytes = c->elemsz;
        for (size_t d = 0; d < c->levels; d++) {
            const size_t left = space / c->nbytes;

            c->counts[d] = vis_rand(3) == 0 || left < 2
                               ? 1
                               : 1 + vis_rand(left > 60 && vis_rand(2) == 0 ? 60 : 4);
            c->nbytes *= c->counts[d];
        }
    } while (c->nbytes > space * 2 / 3 || vis_nest(&c->dst, c, space) == 0
             || vis_nest_source(&c->src, c, space) == 0);
}

/* --- all --- */

static inline struct vis_case *vis_case_create(size_t space)
{
    struct vis_case *c = malloc(sizeof(*c));

    c->dst_at = malloc(space * sizeof(*c->dst_at));
    c->src_at = malloc(space * sizeof(*c->src_at));
    return c;
}

static inline void vis_make(struct vis_case *c, enum vis_kind kind, size_t space)
{
    c->kind = kind;
    if (kind == VIS_VECTOR)
        vis_make_vector(c, space);
    else if (kind == VIS_INDEXED)
        vis_make_indexed(c, space);
    else
        vis_make_strided(c, space);
    if (kind == VIS_STRIDED) {
        vis_strided_bytes(c, &c->dst, c->dst_at);
        vis_strided_bytes(c, &c->src, c->src_at);
    } else {
        vis_list_bytes(&c->dst, c->dst_at);
        vis_list_bytes(&c->src, c->src_at);
    }
}

/* What the transfer does, serially. */
static inline void vis_model(const struct vis_case *c, char *dst, const char *src)
{
    for (size_t k = 0; k < c->nbytes; k++)
        dst[c->dst_at[k]] = src[c->src_at[k]];
}

/* The lists that the library gets. */
struct vis_lists {
    gex_Memvec_t *dst_vec, *src_vec;
    void **dst_list, **src_list;
};

static inline void vis_lists_create(struct vis_lists *l)
{
    l->dst_vec = malloc(VIS_CHUNKS * sizeof(*l->dst_vec));
    l->src_vec = malloc(VIS_CHUNKS * sizeof(*l->src_vec));
    l->dst_list = malloc(VIS_CHUNKS * sizeof(*l->dst_list));
    l->src_list = malloc(VIS_CHUNKS * sizeof(*l->src_list));
}

static inline void vis_lists_fill(const struct vis_lists *l, const struct vis_case *c, char *dst,
                                  char *src)
{
    if (c->kind == VIS_STRIDED)
        return;
    for (size_t i = 0; i < c->dst.count; i++) {
        l->dst_list[i] = dst + c->dst.at[i];
        l->dst_vec[i].gex_addr =
            c->dst.lens[i] == 0 && i % 2 ? (void *)(uintptr_t)(i * 4096 + 1) : dst + c->dst.at[i];
        l->dst_vec[i].gex_len = c->dst.lens[i];
    }
    for (size_t i = 0; i < c->src.count; i++) {
        l->src_list[i] = src + c->src.at[i];
        l->src_vec[i].gex_addr = c->src.lens[i] == 0 && i % 2 ? NULL : src + c->src.at[i];
        l->src_vec[i].gex_len = c->src.lens[i];
    }
}

/* One call. Returns its event (INVALID for the others); *declined is set if it said so. */
static inline gex_Event_t vis_call(const struct vis_case *c, const struct vis_lists *l, gex_TM_t tm,
                                   gex_Rank_t rank, char *dst, char *src, bool is_put,
                                   enum vis_style style, gex_Flags_t flags, int *declined)
{
    ptrdiff_t ds[VIS_LEVELS], ss[VIS_LEVELS];
    size_t n[VIS_LEVELS];
    gex_Event_t ev = GEX_EVENT_INVALID;
    int rc = 0;

    memcpy(ds, c->dst.stride, sizeof(ds));
    memcpy(ss, c->src.stride, sizeof(ss));
    memcpy(n, c->counts, sizeof(n));
#define VIS_PUT_ARGS_VECTOR tm, rank, c->dst.count, l->dst_vec, c->src.count, l->src_vec, flags
#define VIS_GET_ARGS_VECTOR tm, c->dst.count, l->dst_vec, rank, c->src.count, l->src_vec, flags
#define VIS_PUT_ARGS_INDEXED \
    tm, rank, c->dst.count, l->dst_list, c->dst.len, c->src.count, l->src_list, c->src.len, flags
#define VIS_GET_ARGS_INDEXED \
    tm, c->dst.count, l->dst_list, c->dst.len, rank, c->src.count, l->src_list, c->src.len, flags
#define VIS_PUT_ARGS_STRIDED \
    tm, rank, dst + c->dst.base, ds, src + c->src.base, ss, c->elemsz, n, c->levels, flags
#define VIS_GET_ARGS_STRIDED \
    tm, dst + c->dst.base, ds, rank, src + c->src.base, ss, c->elemsz, n, c->levels, flags
#define VIS_STYLES_OF(Name, ARGS)                         \
    do {                                                  \
        if (style == VIS_BLOCKING)                        \
            rc = gex_VIS_##Name##Blocking(ARGS);          \
        else if (style == VIS_NB || style == VIS_NB_LEAF) \
            ev = gex_VIS_##Name##NB(ARGS);                \
        else                                              \
            rc = gex_VIS_##Name##NBI(ARGS);               \
    } while (0)
    if (c->kind == VIS_VECTOR && is_put)
        VIS_STYLES_OF(VectorPut, VIS_PUT_ARGS_VECTOR);
    else if (c->kind == VIS_VECTOR)
        VIS_STYLES_OF(VectorGet, VIS_GET_ARGS_VECTOR);
    else if (c->kind == VIS_INDEXED && is_put)
        VIS_STYLES_OF(IndexedPut, VIS_PUT_ARGS_INDEXED);
    else if (c->kind == VIS_INDEXED)
        VIS_STYLES_OF(IndexedGet, VIS_GET_ARGS_INDEXED);
    else if (is_put)
        VIS_STYLES_OF(StridedPut, VIS_PUT_ARGS_STRIDED);
    else
        VIS_STYLES_OF(StridedGet, VIS_GET_ARGS_STRIDED);
    /* the three strided arrays are the client's again */
    memset(ds, 0x5a, sizeof(ds));
    memset(ss, 0x5a, sizeof(ss));
    memset(n, 0x5a, sizeof(n));
    *declined = rc != 0 || ev == GEX_EVENT_NO_OP;
    return ev;
}

/* A call of one style, until complete. The source may be scribbled over once it is ours again if
 * scribble is set. */
static inline void vis_run(const struct vis_case *c, const struct vis_lists *l, gex_TM_t tm,
                           gex_Rank_t rank, char *dst, char *src, size_t src_size, bool is_put,
                           enum vis_style style, bool scribble)
{
    const bool leaf =
        is_put && (style == VIS_NB_LEAF || style == VIS_NBI_LEAF || style == VIS_REGION);
    const gex_Flags_t flags = leaf ? GEX_FLAG_ENABLE_LEAF_LC : 0;
    gex_Event_t ev, region = GEX_EVENT_INVALID;
    int declined;

    if (style == VIS_REGION)
        gex_NBI_BeginAccessRegion(0);
    ev = vis_call(c, l, tm, rank, dst, src, is_put, style, flags, &declined);
    AQ_CHECK(!declined);
    if (style == VIS_REGION)
        region = gex_NBI_EndAccessRegion(0);
    if (leaf && scribble) {
        if (style == VIS_NBI_LEAF)
            gex_NBI_Wait(GEX_EC_LC, 0);
        else
            gex_Event_Wait(gex_Event_QueryLeaf(style == VIS_REGION ? region : ev, GEX_EC_LC));
        memset(src, 0x77, src_size);
    }
    if (style == VIS_NB || style == VIS_NB_LEAF)
        aq_test_sync(ev);
    else if (style == VIS_NBI || style == VIS_NBI_LEAF)
        gex_NBI_Wait(is_put ? GEX_EC_PUT : GEX_EC_GET, 0);
    else if (style == VIS_REGION)
        aq_test_sync(region);
}

#endif
