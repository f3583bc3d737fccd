/*
 * aq_vis_frag.c - the fragments of a non-contiguous transfer.
 *
 * A strided peer end is described by its whole shape and a position, if that is short. Otherwise,
 * and for lists, it is described by the addresses that the fragment covers. Elements are not
 * divided if the caller gives their size (`grain`) and one fits a message.
 *
 * Threads   the thread that has the transfer
 * Uses      aq_vis_ref.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_vis_ref.h"

static size_t aq_vis_strided_desc(unsigned levels)
{
    return (4 + 2 * (size_t)levels) * AQ_WORD;
}

/* Returns how many of `left` bytes go into `space`: whole elements, or at least whole words. */
static size_t aq_vis_cut(size_t left, size_t space, size_t grain)
{
    if (left <= space)
        return left;
    if (grain != 0 && grain <= space)
        return space - space % grain;
    return space > AQ_WORD ? space - space % AQ_WORD : space;
}

static void aq_vis_compose_strided(const struct aq_vis_transfer *transfer, char *to,
                                   struct aq_vis_frag *frag)
{
    const struct aq_vis_side *side = &transfer->remote;
    const size_t desc = aq_vis_strided_desc(side->levels);
    const size_t space = transfer->is_put ? aq_vis_stage_size() - desc : aq_vis_stage_size();

    frag->form = AQ_VIS_DESC_STRIDED;
    frag->n = side->levels;
    frag->desc = desc;
    frag->data = aq_vis_cut(transfer->nbytes - transfer->sent, space, transfer->grain);
    aq_vis_put_word(to, 0, side->base);
    aq_vis_put_word(to, 1, side->chunk);
    aq_vis_put_word(to, 2, frag->next.chunk);
    aq_vis_put_word(to, 3, frag->next.offset);
    for (unsigned d = 0; d < side->levels; d++) {
        aq_vis_put_word(to, 4 + d, side->count[d]);
        aq_vis_put_word(to, 4 + side->levels + d, (uint64_t)side->stride[d]);
    }
    aq_vis_skip(side, &frag->next, frag->data);
}

/* Describes whole chunks of one length. Returns false if none would fit. */
static bool aq_vis_compose_addresses(const struct aq_vis_transfer *transfer, char *to,
                                     struct aq_vis_frag *frag)
{
    const struct aq_vis_side *side = &transfer->remote;
    const size_t len = side->chunk, space = aq_vis_stage_size() - AQ_WORD;
    const size_t left = (transfer->nbytes - transfer->sent) / len;
    size_t n = transfer->is_put ? space / (AQ_WORD + len)
                                : MIN(space / AQ_WORD, aq_vis_stage_size() / len);

    if (n > left)
        n = left;
    if (n == 0 || frag->next.offset % len != 0)
        return false;
    frag->form = AQ_VIS_DESC_ADDRESSES;
    frag->n = (unsigned)n;
    frag->desc = (1 + n) * AQ_WORD;
    frag->data = n * len;
    aq_vis_put_word(to, 0, len);
    for (size_t i = 0; i < n; i++) {
        uintptr_t address;

        aq_vis_next_run(side, &frag->next, len, &address);
        aq_vis_put_word(to, 1 + i, address);
    }
    return true;
}

/* Describes chunks, or parts of them, of any length. */
static void aq_vis_compose_runs(const struct aq_vis_transfer *transfer, char *to,
                                struct aq_vis_frag *frag)
{
    const size_t left = transfer->nbytes - transfer->sent;

    frag->form = AQ_VIS_DESC_RUNS;
    frag->n = 0;
    frag->desc = frag->data = 0;
    while (frag->data < left) {
        const size_t desc = frag->desc + 2 * AQ_WORD;
        const size_t used = transfer->is_put ? desc + frag->data : MAX(desc, frag->data);
        uintptr_t address;
        size_t n;

        if (used + (frag->n != 0 ? AQ_WORD : 1) > aq_vis_stage_size())
            break;
        n = aq_vis_next_run(&transfer->remote, &frag->next,
                            aq_vis_cut(left - frag->data,
                                       aq_vis_stage_size() - (transfer->is_put ? used : frag->data),
                                       0),
                            &address);
        aq_vis_put_word(to, 2 * (size_t)frag->n, address);
        aq_vis_put_word(to, 2 * (size_t)frag->n + 1, n);
        frag->n++;
        frag->desc = desc;
        frag->data += n;
    }
}

void aq_vis_frag_compose(struct aq_vis_transfer *transfer)
{
    const struct aq_vis_side *side = &transfer->remote;
    struct aq_vis_frag *frag = &transfer->frag;
    char *to;

    transfer->stage = aq_vis_stage_take();
    to = transfer->stage->bytes;
    frag->next = transfer->remote_at;
    if (side->form == AQ_VIS_STRIDED
        && aq_vis_strided_desc(side->levels) <= aq_vis_stage_size() / 2)
        aq_vis_compose_strided(transfer, to, frag);
    else if (side->form == AQ_VIS_VECTOR || !aq_vis_compose_addresses(transfer, to, frag))
        aq_vis_compose_runs(transfer, to, frag);
    if (transfer->is_put)
        aq_vis_gather(&transfer->local, &transfer->local_at, to + frag->desc, frag->data);
}
