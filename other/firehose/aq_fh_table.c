/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_table.c - regions, found by address in constant time, and in lists.
 *
 * Index     a hash table with a node for each 64 KiB granule that a region overlaps. It doubles at
 *           two nodes a bucket. Regions may overlap, since different peers may have asked for
 *           different pages
 * Owns      buckets and nodes; a region's nodes are in the region, or in one block beside it
 * Threads   under the lock of the table
 * Uses      libc
 */
#include "other/firehose/aq_fh_internal.h"

#include <stdlib.h>

#define AQ_FH_FIRST_SHIFT 58 /* 64 buckets */
#define AQ_FH_OWN_NODES   2  /* in the region itself: enough up to 64 KiB and a page */

bool aq_fh_index_open(struct aq_fh_index *index)
{
    index->shift = AQ_FH_FIRST_SHIFT;
    index->nodes = 0;
    index->bucket = calloc((size_t)1 << (64 - index->shift), sizeof(struct aq_fh_node *));
    return index->bucket != NULL;
}

void aq_fh_index_close(struct aq_fh_index *index)
{
    free(index->bucket);
}

struct aq_fh_region *aq_fh_region_create(struct aq_fh_peer *peer, uintptr_t start, uintptr_t end)
{
    struct aq_fh_region *region =
        aligned_alloc(AQ_CACHE_LINE, aq_round_up(sizeof(struct aq_fh_region), AQ_CACHE_LINE));

    if (region != NULL)
        *region = (struct aq_fh_region){
            .start = start, .end = end, .peer = peer, .state = AQ_FH_MAKING
        };
    return region;
}

void aq_fh_region_destroy(struct aq_fh_region *region)
{
    free(region->more);
    free(region);
}

static struct aq_fh_node **aq_fh_index_link(const struct aq_fh_index *index, uintptr_t granule)
{
    return &index->bucket[granule * UINT64_C(0x9e3779b97f4a7c15) >> index->shift];
}

/* Twice as many buckets; without memory the chains get longer. */
static void aq_fh_index_grow(struct aq_fh_index *index)
{
    const size_t old_count = (size_t)1 << (64 - index->shift);
    struct aq_fh_index larger = { .shift = index->shift - 1, .nodes = index->nodes };

    larger.bucket = calloc(old_count * 2, sizeof(struct aq_fh_node *));
    if (larger.bucket == NULL)
        return;
    for (size_t i = 0; i < old_count; i++)
        for (struct aq_fh_node *node = index->bucket[i], *next; node != NULL; node = next) {
            struct aq_fh_node **place = aq_fh_index_link(&larger, node->granule);

            next = node->next;
            node->next = *place;
            *place = node;
        }
    free(index->bucket);
    *index = larger;
}

static size_t aq_fh_granules(const struct aq_fh_region *region)
{
    return ((region->end - 1) >> AQ_FH_GRANULE_SHIFT) - (region->start >> AQ_FH_GRANULE_SHIFT) + 1;
}

static struct aq_fh_node *aq_fh_region_node(struct aq_fh_region *region, size_t i)
{
    return i == 0 ? &region->first : i == 1 ? &region->second : &region->more[i - AQ_FH_OWN_NODES];
}

bool aq_fh_index_insert(struct aq_fh_index *index, struct aq_fh_region *region)
{
    const size_t count = aq_fh_granules(region);
    const uintptr_t first = region->start >> AQ_FH_GRANULE_SHIFT;

    if (count > AQ_FH_OWN_NODES) {
        region->more = malloc((count - AQ_FH_OWN_NODES) * sizeof(struct aq_fh_node));
        if (region->more == NULL)
            return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct aq_fh_node **place = aq_fh_index_link(index, first + i),
                          *node = aq_fh_region_node(region, i);

        *node = (struct aq_fh_node){ .next = *place, .region = region, .granule = first + i };
        *place = node;
    }
    index->nodes += (uint32_t)count;
    if (index->nodes >> (64 - index->shift) >= 2)
        aq_fh_index_grow(index);
    return true;
}

void aq_fh_index_remove(struct aq_fh_index *index, struct aq_fh_region *region)
{
    const size_t count = aq_fh_granules(region);

    for (size_t i = 0; i < count; i++) {
        struct aq_fh_node *node = aq_fh_region_node(region, i);
        struct aq_fh_node **link = aq_fh_index_link(index, node->granule);

        while (*link != node)
            link = &(*link)->next;
        *link = node->next;
    }
    index->nodes -= (uint32_t)count;
    free(region->more);
    region->more = NULL;
}

bool aq_fh_index_resize(struct aq_fh_index *index, struct aq_fh_region *region, uintptr_t start,
                        uintptr_t end)
{
    if (region->start == start && region->end == end)
        return true;
    aq_fh_index_remove(index, region);
    region->start = start;
    region->end = end;
    return aq_fh_index_insert(index, region);
}

void aq_fh_list_append(struct aq_fh_list *list, struct aq_fh_region *region)
{
    region->list = list;
    region->next = NULL;
    region->prev = list->last;
    if (list->last != NULL)
        list->last->next = region;
    else
        list->first = region;
    list->last = region;
}

void aq_fh_list_remove(struct aq_fh_region *region)
{
    struct aq_fh_list *list = region->list;

    if (region->prev != NULL)
        region->prev->next = region->next;
    else
        list->first = region->next;
    if (region->next != NULL)
        region->next->prev = region->prev;
    else
        list->last = region->prev;
    region->list = NULL;
    region->prev = region->next = NULL;
}

struct aq_fh_region *aq_fh_list_pop(struct aq_fh_list *list)
{
    struct aq_fh_region *region = list->first;

    if (region != NULL)
        aq_fh_list_remove(region);
    return region;
}
