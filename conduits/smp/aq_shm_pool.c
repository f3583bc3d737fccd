/*
 * aq_shm_pool.c - payload blocks, which hold the payloads of a rank's messages in flight.
 *
 * A rank has a pool for requests and one for replies. All its targets share them, so that memory
 * grows with the number of ranks and not with the number of pairs. Blocks are allocated last in,
 * first out: the next payload finds the block of the last one in the cache. Other processes read
 * a block, so it is named by a number and has no link of core/aq_freelist.h in it.
 *
 * Owns      the free lists (private memory); the blocks are in the arena
 * Threads   any; one lock for each channel, held for a few instructions
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "base/aq_log.h"
#include "base/aq_state.h"
#include "base/aq_lock.h"
#include "base/aq_rc.h"
#include "conduits/smp/aq_shm.h"
#include "conduits/smp/aq_shm_ring.h"

struct aq_shm_free {
    uint32_t count;
    uint16_t *blocks;
};

static struct {
    aq_lock lock;
    struct aq_shm_free free[AQ_POOL_CLASSES];
} aq_shm_pools[AQ_CHANNELS] AQ_JOB_STATE;

void aq_shm_pool_plan(uint32_t ranks, uint32_t depth, struct aq_shm_pool_plan *plan)
{
    static const uint32_t sizes[AQ_POOL_CLASSES] = { 512, 4096, AQ_SHM_MAX_MEDIUM };
    const uint32_t counts[AQ_POOL_CLASSES] = { 128, 64, ranks <= 64 ? depth : depth / 4 + 4 };

    *plan = (struct aq_shm_pool_plan){ .channel_bytes = 0 };
    for (int class = 0; class < AQ_POOL_CLASSES; class ++) {
        plan->size[class] = sizes[class];
        plan->count[class] = counts[class];
        plan->first[class] = plan->blocks;
        plan->offset[class] = plan->channel_bytes;
        plan->blocks += counts[class];
        plan->channel_bytes += (uint64_t)sizes[class] * counts[class];
    }
}

int aq_shm_pool_init(void)
{
    const struct aq_shm_pool_plan *plan = &aq_shm.layout.pool;

    for (int channel = 0; channel < AQ_CHANNELS; channel++)
        for (int class = 0; class < AQ_POOL_CLASSES; class ++) {
            struct aq_shm_free *list = &aq_shm_pools[channel].free[class];

            list->blocks = malloc(plan->count[class] * sizeof(*list->blocks));
            if (list->blocks == NULL)
                return aq_fail(AQ_ERR_NOMEM, "no memory for the list of payload blocks");
            for (uint32_t i = plan->count[class]; i > 0; i--)
                list->blocks[list->count++] = (uint16_t)(plan->first[class] + i - 1);
        }
    return AQ_OK;
}

/* Every caller leaves `keep` blocks of each size free. */
static inline uint16_t aq_shm_block_pop(int channel, int class, uint32_t keep)
{
    struct aq_shm_free *list = &aq_shm_pools[channel].free[class];

    return list->count > keep ? list->blocks[--list->count] : AQ_BLOCK_NONE;
}

static uint16_t aq_shm_block_try(int channel, size_t min, size_t max, uint32_t keep)
{
    const struct aq_shm_pool_plan *plan = &aq_shm.layout.pool;
    uint16_t block = AQ_BLOCK_NONE;
    int fits = 0;

    while (fits < AQ_POOL_CLASSES && plan->size[fits] < max)
        fits++;
    aq_lock_acquire(&aq_shm_pools[channel].lock);
    for (int class = fits; class < AQ_POOL_CLASSES && block == AQ_BLOCK_NONE; class ++)
        block = aq_shm_block_pop(channel, class, keep);
    for (int class = fits - 1; class >= 0 && plan->size[class] >= min && block == AQ_BLOCK_NONE;
         class --)
        block = aq_shm_block_pop(channel, class, keep);
    aq_lock_release(&aq_shm_pools[channel].lock);
    return block;
}

static inline uint16_t aq_shm_block_find(int channel, size_t min, size_t max, uint32_t keep)
{
    uint16_t block = aq_shm_block_try(channel, max, max, keep);

    if (AQ_LIKELY(block != AQ_BLOCK_NONE))
        return block;
    aq_shm_ring_reclaim(channel);
    return aq_shm_block_try(channel, min, max, keep);
}

uint16_t aq_shm_block_take(int channel, size_t min, size_t max)
{
    return aq_shm_block_find(channel, min, max, 0);
}

uint16_t aq_shm_block_lend(int channel, size_t min, size_t max)
{
    return aq_shm_block_find(channel, min, max, 1);
}

static int aq_shm_block_class(uint16_t block)
{
    const struct aq_shm_pool_plan *plan = &aq_shm.layout.pool;

    return block >= plan->first[2] ? 2 : block >= plan->first[1] ? 1 : 0;
}

void aq_shm_block_release(int channel, uint16_t block)
{
    struct aq_shm_free *list = &aq_shm_pools[channel].free[aq_shm_block_class(block)];

    aq_lock_acquire(&aq_shm_pools[channel].lock);
    list->blocks[list->count++] = block;
    aq_lock_release(&aq_shm_pools[channel].lock);
}

uint64_t aq_shm_block_offset(uint16_t block)
{
    const struct aq_shm_pool_plan *plan = &aq_shm.layout.pool;
    const int class = aq_shm_block_class(block);

    return plan->offset[class] + (uint64_t)(block - plan->first[class]) * plan->size[class];
}

size_t aq_shm_block_size(uint16_t block)
{
    return aq_shm.layout.pool.size[aq_shm_block_class(block)];
}

void aq_shm_pool_fini(void)
{
    for (int channel = 0; channel < AQ_CHANNELS; channel++)
        for (int class = 0; class < AQ_POOL_CLASSES; class ++)
            free(aq_shm_pools[channel].free[class].blocks);
}
