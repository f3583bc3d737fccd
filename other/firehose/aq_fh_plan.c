/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_plan.c - which pages a miss asks for, so that few misses follow.
 *
 * Minimum       the pages of the access that no region covers yet
 * Coalescing    a neighbouring region without holds is joined, if the gap is no larger than the two
 *               together, and the result no larger than max_region: regions become fewer and larger
 *               where accesses are dense
 * Streams       next to a neighbour that is at least as large, as many pages again are asked for in
 *               the same direction: a sequential stream misses at 1, 2, 4, ... pages and then once
 *               each max_region. Chunks of overlapped registration, which double, get what was
 *               asked for and no more
 *
 * Threads   under the lock of the table. Uses aq_fh_internal.h
 */
#include "other/firehose/aq_fh_internal.h"

static bool aq_fh_plan_fits(const struct aq_fh_region *region, bool write)
{
    return region->state == AQ_FH_READY && region->holds == 0 && region->peer_refs == NULL
           && write <= region->write;
}

/* The regions of one granule that are nearest to the plan's pages, on both sides. */
static void aq_fh_plan_look(const struct aq_fh_index *index, struct aq_fh_plan *plan,
                            uintptr_t addr, bool write)
{
    const uintptr_t granule = addr >> AQ_FH_GRANULE_SHIFT;

    for (struct aq_fh_node *node = aq_fh_index_chain(index, granule); node != NULL;
         node = node->next) {
        struct aq_fh_region *region = node->region;

        if (node->granule != granule || region->state != AQ_FH_READY || write > region->write)
            continue;
        if (region->end <= plan->start && (plan->below == NULL || region->end > plan->below->end))
            plan->below = region;
        if (region->start >= plan->end
            && (plan->above == NULL || region->start < plan->above->start))
            plan->above = region;
    }
}

/* Take a neighbour in, or forget it. gap: bytes between it and the plan's pages. */
static void aq_fh_plan_take(struct aq_fh_plan *plan, struct aq_fh_region **neighbour, uint64_t gap,
                            bool write, size_t max_region)
{
    const struct aq_fh_region *region = *neighbour;
    const uint64_t size = plan->want_end - plan->want_start;
    const uint64_t whole = size + gap + aq_fh_size(region);

    if (plan->end - plan->start > aq_fh_size(region) || gap > size + aq_fh_size(region)
        || whole > max_region || !aq_fh_plan_fits(region, write)) {
        *neighbour = NULL;
        return;
    }
    if (region->start < plan->want_start)
        plan->want_start = region->start;
    if (region->end > plan->want_end)
        plan->want_end = region->end;
}

/* As many pages again, away from the neighbour, as far as max_region and another region allow. */
static void aq_fh_plan_stream(struct aq_fh_plan *plan, const struct aq_fh_index *index,
                              uint64_t ahead, bool up, size_t max_region)
{
    const uint64_t size = plan->want_end - plan->want_start;

    if (size >= max_region)
        return;
    if (ahead > max_region - size)
        ahead = max_region - size;
    for (; ahead != 0; ahead -= AQ_FH_PAGE) {
        const uintptr_t page = up ? plan->want_end : plan->want_start - AQ_FH_PAGE;

        if ((up ? page > UINTPTR_MAX - 2 * AQ_FH_PAGE
                : page < AQ_FH_PAGE || page > plan->want_start)
            || aq_fh_index_find(index, page, false, AQ_FH_READY) != NULL)
            return;
        if (up)
            plan->want_end += AQ_FH_PAGE;
        else
            plan->want_start -= AQ_FH_PAGE;
    }
}

struct aq_fh_plan aq_fh_plan_make(const struct aq_fh_index *index, uintptr_t addr, size_t nbytes,
                                  bool write, size_t max_region, size_t max_chunk)
{
    struct aq_fh_plan plan = { .start = aq_fh_down(addr) };
    uint64_t below = 0, above = 0, below_gap = 0, above_gap = 0;

    plan.end = nbytes > max_chunk ? plan.start + max_chunk : aq_fh_up(addr + nbytes);
    if (plan.end - plan.start > max_chunk)
        plan.end = plan.start + max_chunk;
    /* up to what is covered already: the caller comes for the rest */
    for (uintptr_t page = plan.start + AQ_FH_PAGE; page < plan.end; page += AQ_FH_PAGE)
        if (aq_fh_index_find(index, page, write, AQ_FH_READY) != NULL)
            plan.end = page;
    plan.want_start = plan.start;
    plan.want_end = plan.end;
    if (plan.end - plan.start >= max_region)
        return plan;
    aq_fh_plan_look(index, &plan, plan.start, write);
    if (plan.start % AQ_FH_GRANULE == 0 && plan.start != 0)
        aq_fh_plan_look(index, &plan, plan.start - 1, write);
    if ((plan.end - 1) >> AQ_FH_GRANULE_SHIFT != plan.start >> AQ_FH_GRANULE_SHIFT)
        aq_fh_plan_look(index, &plan, plan.end - 1, write);
    if (plan.end % AQ_FH_GRANULE == 0)
        aq_fh_plan_look(index, &plan, plan.end, write);
    if (plan.below != NULL) {
        below = aq_fh_size(plan.below);
        below_gap = plan.start - plan.below->end;
        aq_fh_plan_take(&plan, &plan.below, below_gap, write, max_region);
    }
    if (plan.above != NULL) {
        above = aq_fh_size(plan.above);
        above_gap = plan.above->start - plan.end;
        aq_fh_plan_take(&plan, &plan.above, above_gap, write, max_region);
    }
    if (below_gap != 0)
        below = 0;
    if (above_gap != 0)
        above = 0;
    if (below >= plan.end - plan.start && above == 0)
        aq_fh_plan_stream(&plan, index, below, true, max_region);
    else if (above >= plan.end - plan.start && below == 0)
        aq_fh_plan_stream(&plan, index, above, false, max_region);
    return plan;
}

void aq_fh_plan_cut(struct aq_fh_plan *plan, uint64_t space)
{
    plan->below = plan->above = NULL;
    if (plan->end - plan->start > space)
        plan->end = plan->start + aq_fh_down(space);
    plan->want_start = plan->start;
    plan->want_end = plan->end;
}
