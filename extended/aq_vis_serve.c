/*
 * aq_vis_serve.c - the peer of a non-contiguous transfer: checks, scatters and gathers.
 *
 * A request describes the places of its bytes in this process's segment. The description is checked
 * before a byte is moved: an impossible one ends the job with the requester's rank.
 *
 * Threads   handlers, on any thread
 * Uses      aq_vis_ref.h, extended/aq_ref.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_vis_ref.h"

#include "base/aq_log.h"
#include "extended/aq_ref.h"

/* The contents of a message, checked. */
struct aq_vis_view {
    gex_Token_t token;
    const char *call; /* for diagnostics */
    enum aq_vis_desc form;
    size_t n;
    const char *desc;
    size_t data; /* bytes */
};

static __attribute__((cold, noreturn)) void aq_vis_refuse(const struct aq_vis_view *view,
                                                          const char *why)
{
    gex_Token_Info_t info;

    gex_Token_Info(view->token, &info, GEX_TI_SRCRANK);
    aq_fatal("rank %u asked for a %s that %s", info.gex_srcrank, view->call, why);
}

/* Returns the bytes of the description; ends the job if it is malformed. */
static size_t aq_vis_desc_size(const struct aq_vis_view *view, size_t nbytes)
{
    const size_t max = nbytes / AQ_WORD;
    size_t words = 0;

    switch (view->form) {
    case AQ_VIS_DESC_STRIDED:
        words = view->n <= AQ_VIS_LEVELS ? 4 + 2 * view->n : SIZE_MAX;
        break;
    case AQ_VIS_DESC_ADDRESSES:
        words = view->n < max ? 1 + view->n : SIZE_MAX;
        break;
    case AQ_VIS_DESC_RUNS:
        words = view->n <= max / 2 ? 2 * view->n : SIZE_MAX;
        break;
    default:
        words = SIZE_MAX;
    }
    if (words > max)
        aq_vis_refuse(view, "is longer than its message");
    return words * AQ_WORD;
}

/* Finds the lowest and the highest byte of a strided side, and its number of bytes. */
static void aq_vis_check_strided(const struct aq_vis_view *view, const struct aq_vis_side *side,
                                 const struct aq_vis_pos *pos)
{
    uintptr_t low = side->base, high = side->base;
    size_t elements = 1, bytes;
    bool over = side->chunk == 0 || pos->offset >= side->chunk;

    for (unsigned d = 0; d < side->levels; d++) {
        const ptrdiff_t stride = side->stride[d];
        const size_t step = stride < 0 ? -(size_t)stride : (size_t)stride;
        size_t extent;

        over |= side->count[d] == 0 || __builtin_mul_overflow(elements, side->count[d], &elements);
        over |= __builtin_mul_overflow(step, side->count[d] - 1, &extent);
        if (stride < 0)
            over |= __builtin_sub_overflow(low, extent, &low);
        else
            over |= __builtin_add_overflow(high, extent, &high);
    }
    over |= __builtin_add_overflow(high, side->chunk, &high);
    over |= __builtin_mul_overflow(elements, side->chunk, &bytes);
    if (over || pos->chunk >= elements
        || view->data > bytes - (pos->chunk * side->chunk + pos->offset))
        aq_vis_refuse(view, "has no such place");
    aq_ref_check_range(view->token, view->call, aq_vis_at(low), high - low);
}

static void aq_vis_serve_strided(const struct aq_vis_view *view, char *data, bool is_put)
{
    const size_t n = view->n;
    size_t count[AQ_VIS_LEVELS];
    ptrdiff_t stride[AQ_VIS_LEVELS];
    struct aq_vis_side side = { .form = AQ_VIS_STRIDED,
                                .levels = (unsigned)n,
                                .base = (uintptr_t)aq_vis_word(view->desc, 0),
                                .chunk = aq_vis_word(view->desc, 1),
                                .count = count,
                                .stride = stride };
    struct aq_vis_pos pos = { aq_vis_word(view->desc, 2), aq_vis_word(view->desc, 3) };

    memcpy(count, view->desc + 4 * AQ_WORD, n * AQ_WORD);
    memcpy(stride, view->desc + (4 + n) * AQ_WORD, n * AQ_WORD);
    aq_vis_check_strided(view, &side, &pos);
    if (is_put)
        aq_vis_scatter(&side, &pos, data, view->data);
    else
        aq_vis_gather(&side, &pos, data, view->data);
}

static void aq_vis_serve_list(const struct aq_vis_view *view, char *data, bool is_put)
{
    const bool alike = view->form == AQ_VIS_DESC_ADDRESSES;
    size_t left = view->data, len = alike ? aq_vis_word(view->desc, 0) : 0;

    for (size_t i = 0; i < view->n; i++) {
        const uintptr_t at = aq_vis_word(view->desc, alike ? 1 + i : 2 * i);

        if (!alike)
            len = aq_vis_word(view->desc, 2 * i + 1);
        if (len > left)
            aq_vis_refuse(view, "is longer than its message");
        aq_ref_check_range(view->token, view->call, aq_vis_at(at), len);
        if (is_put)
            aq_vis_copy_run(aq_vis_at(at), data, len);
        else
            aq_vis_copy_run(data, aq_vis_at(at), len);
        data += len;
        left -= len;
    }
    if (left != 0)
        aq_vis_refuse(view, "is shorter than its message");
}

static void aq_vis_serve(const struct aq_vis_view *view, char *data, bool is_put)
{
    if (view->form == AQ_VIS_DESC_STRIDED)
        aq_vis_serve_strided(view, data, is_put);
    else
        aq_vis_serve_list(view, data, is_put);
}

static void aq_vis_on_put(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t high,
                          gex_AM_Arg_t low, gex_AM_Arg_t form, gex_AM_Arg_t n)
{
    const gex_AM_Arg_t args[] = { high, low };
    struct aq_vis_view view = { .token = token,
                                .call = "VIS put",
                                .form = (enum aq_vis_desc)form,
                                .n = (uint32_t)n,
                                .desc = buf };
    const size_t desc = aq_vis_desc_size(&view, nbytes);

    view.data = nbytes - desc;
    aq_vis_serve(&view, (char *)buf + desc, true);
    aq_am_reply_short(token, AQ_HIDX_VIS_ACK, 0, 2, args);
}

static void aq_vis_on_get(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t high,
                          gex_AM_Arg_t low, gex_AM_Arg_t form, gex_AM_Arg_t n, gex_AM_Arg_t slot,
                          gex_AM_Arg_t size)
{
    const gex_AM_Arg_t args[] = { high, low, slot };
    struct aq_vis_view view = { .token = token,
                                .call = "VIS get",
                                .form = (enum aq_vis_desc)form,
                                .n = (uint32_t)n,
                                .desc = buf,
                                .data = (uint32_t)size };
    struct aq_vis_stage *stage;

    if (aq_vis_desc_size(&view, nbytes) != nbytes || view.data > aq_vis_stage_size())
        aq_vis_refuse(&view, "is longer than its message");
    stage = aq_vis_stage_take();
    aq_vis_serve(&view, stage->bytes, false);
    aq_am_reply_medium(token, AQ_HIDX_VIS_DATA, stage->bytes, view.data, GEX_EVENT_NOW, 0, 3, args);
    aq_vis_stage_give(stage);
}

void aq_vis_serve_init(void)
{
    const gex_Flags_t request = GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST;

    aq_am_register_internal(AQ_HIDX_VIS_PUT, (gex_AM_Fn_t)aq_vis_on_put, request, 4, "VIS put");
    aq_am_register_internal(AQ_HIDX_VIS_GET, (gex_AM_Fn_t)aq_vis_on_get, request, 6, "VIS get");
}
