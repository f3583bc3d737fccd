/*
 * aq_shm_pool.c - payload blocks, which hold the payloads of a rank's messages in flight.
 *
 * A rank has a pool for requests and one for replies. All its targets share them, so that memory
 * grows with the number of ranks and not with the number of pairs. Blocks are allocated last in,
 * first out: the next payload finds the block of the last one in the cache. Other processes read
 * a block, so it is named by its offset and has no link of core/aq_freelist.h in it.
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

struct aq_shm_pool_channel aq_shm_pools[AQ_CHANNELS] AQ_JOB_STATE;

_Static_assert(UINT32_MAX / AQ_SHM_MAX_MEDIUM > 2 * AQ_SHM_MAX_DEPTH,
               "offsets of blocks fit 32 bits");

void aq_shm_pool_plan(uint32_t ranks, uint32_t depth, struct aq_shm_pool_plan *plan)
{
    static const uint32_t sizes[AQ_POOL_CLASSES] = { AQ_SHM_SMALL_BLOCK, AQ_SHM_MIDDLE_BLOCK,
                                                     AQ_SHM_MAX_MEDIUM };
    const uint32_t counts[AQ_POOL_CLASSES] = { 128, 64, ranks <= 64 ? depth : depth / 4 + 4 };

    *plan = (struct aq_shm_pool_plan){ .channel_bytes = 0 };
    for (int class = 0; class < AQ_POOL_CLASSES; class ++) {
        plan->size[class] = sizes[class];
        plan->count[class] = counts[class];
        plan->offset[class] = plan->channel_bytes;
        plan->channel_bytes += sizes[class] * counts[class];
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
                list->blocks[list->count++] = plan->offset[class] + (i - 1) * plan->size[class];
        }
    return AQ_OK;
}

uint32_t aq_shm_block_take_larger(int channel, size_t nbytes)
{
    uint32_t block = AQ_BLOCK_NONE;

    for (int class = aq_shm_class_of(nbytes); class < AQ_POOL_CLASSES && block == AQ_BLOCK_NONE;
         class ++)
        block = aq_shm_block_pop(channel, class, 0);
    return block;
}

/* A block of max bytes, else the largest of at least min bytes. */
static uint32_t aq_shm_block_lend_now(int channel, size_t min, size_t max)
{
    const int fits = aq_shm_class_of(max);
    uint32_t block = AQ_BLOCK_NONE;

    aq_lock_acquire(&aq_shm_pools[channel].lock);
    for (int class = fits; class < AQ_POOL_CLASSES && block == AQ_BLOCK_NONE; class ++)
        block = aq_shm_block_pop(channel, class, 1);
    for (int class = fits - 1; class >= aq_shm_class_of(min) && block == AQ_BLOCK_NONE; class --)
        block = aq_shm_block_pop(channel, class, 1);
    aq_lock_release(&aq_shm_pools[channel].lock);
    return block;
}

uint32_t aq_shm_block_lend(int channel, size_t min, size_t max)
{
    uint32_t block = aq_shm_block_lend_now(channel, max, max);

    if (AQ_LIKELY(block != AQ_BLOCK_NONE))
        return block;
    aq_shm_ring_reclaim(channel);
    return aq_shm_block_lend_now(channel, min, max);
}

size_t aq_shm_block_size(uint32_t block)
{
    return aq_shm.layout.pool.size[aq_shm_class_of_block(block)];
}

void aq_shm_pool_fini(void)
{
    for (int channel = 0; channel < AQ_CHANNELS; channel++)
        for (int class = 0; class < AQ_POOL_CLASSES; class ++)
            free(aq_shm_pools[channel].free[class].blocks);
}
