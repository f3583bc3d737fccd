/*
 * aq_ibv_bounce.c - requests under way, and registered buffers of three sizes through which small
 * transfers go.
 *
 * A source or destination that is not registered is cheaper copied than registered, up to some
 * pages. Bounce buffers come in slabs, each registered as a whole. A slab is made when no buffer of
 * its size is free, up to GASNET_BBUF_COUNT pages in all, and stays: locked memory is not given
 * back in the middle of a job.
 *
 * Owns      slabs and requests, until aq_ibv_bounce_fini()
 * Threads   any; lists under their locks, for a few instructions; slabs are made without a lock
 * Uses      aq_ibv_slab.h, core/aq_freelist.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "conduits/ibv/aq_ibv_rma.h"
#include "conduits/ibv/aq_ibv_slab.h"

#define AQ_IBV_FRAGS_AT_ONCE 64u
#define AQ_IBV_BOUNCE_SIZES  3

/* bytes of a buffer, and of a slab */
static const uint32_t aq_ibv_bounce_size[AQ_IBV_BOUNCE_SIZES] = { 64, 4096, AQ_IBV_BOUNCE_MAX };
static const uint32_t aq_ibv_bounce_slab[AQ_IBV_BOUNCE_SIZES] = { 16384, 262144,
                                                                  4 * AQ_IBV_BOUNCE_MAX };

static struct {
    _Alignas(AQ_CACHE_LINE) struct aq_freelist free;
    uint32_t count, zcopy; /* under its lock */
    bool tried;            /* a first slab was, or is being, made; under its lock */
} aq_ibv_bounces[AQ_IBV_BOUNCE_SIZES] AQ_JOB_STATE;

static struct {
    _Alignas(AQ_CACHE_LINE) struct aq_freelist free;
    struct aq_freelist blocks; /* the first of each AQ_IBV_FRAGS_AT_ONCE; not in use */
} aq_ibv_rma_frags AQ_JOB_STATE;

static struct aq_ibv_slabs aq_ibv_bounce_slabs AQ_JOB_STATE;
static aq_counter aq_ibv_bounce_bytes AQ_JOB_STATE; /* of all slabs */
static const struct aq_ibv_net *aq_ibv_bounce_net AQ_JOB_STATE;

void aq_ibv_bounce_init(const struct aq_ibv_net *net)
{
    aq_ibv_bounce_net = net;
}

void aq_ibv_bounce_fini(void)
{
    struct aq_freelist_item *item;

    while ((item = aq_freelist_pop(&aq_ibv_rma_frags.blocks)) != NULL)
        free(aq_freelist_thing(item, offsetof(struct aq_ibv_rma_frag, item)));
    aq_ibv_slabs_free(&aq_ibv_bounce_slabs, aq_ibv_bounce_net);
}

/* --- requests under way --- */

static struct aq_ibv_rma_frag *aq_ibv_rma_frags_make(void)
{
    struct aq_ibv_rma_frag *frags =
        aligned_alloc(AQ_CACHE_LINE, AQ_IBV_FRAGS_AT_ONCE * sizeof(*frags));

    if (frags == NULL)
        aq_fatal("ibv: no memory for %u transfers", AQ_IBV_FRAGS_AT_ONCE);
    memset(frags, 0, AQ_IBV_FRAGS_AT_ONCE * sizeof(*frags));
    for (unsigned i = 2; i < AQ_IBV_FRAGS_AT_ONCE; i++)
        aq_ibv_rma_frag_give(&frags[i]);
    aq_freelist_give(&aq_ibv_rma_frags.blocks, &frags->item);
    return &frags[1];
}

struct aq_ibv_rma_frag *aq_ibv_rma_frag_take(void)
{
    struct aq_ibv_rma_frag *frag = aq_freelist_thing(aq_freelist_take(&aq_ibv_rma_frags.free),
                                                     offsetof(struct aq_ibv_rma_frag, item));

    return AQ_LIKELY(frag != NULL) ? frag : aq_ibv_rma_frags_make();
}

void aq_ibv_rma_frag_give(struct aq_ibv_rma_frag *frag)
{
    aq_freelist_give(&aq_ibv_rma_frags.free, &frag->item);
}

/* --- buffers --- */

static uint64_t aq_ibv_bounce_limit(void)
{
    const int64_t pages = aq_env_int(AQ_ENV_BBUF_COUNT);

    return (pages < 1 ? 1 : (uint64_t)pages) * AQ_IBV_BOUNCE_PAGE;
}

/* One more slab within the limit; the first of a size there must be. Returns a buffer, or NULL. */
static __attribute__((noinline, cold)) struct aq_ibv_bounce *aq_ibv_bounce_grow(unsigned size_class)
{
    const uint32_t bytes = aq_ibv_bounce_slab[size_class], size = aq_ibv_bounce_size[size_class];
    struct aq_ibv_bounce *all;
    struct aq_ibv_slab *slab;
    bool must;

    aq_lock_acquire(&aq_ibv_bounces[size_class].free.lock);
    must = !aq_ibv_bounces[size_class].tried;
    aq_ibv_bounces[size_class].tried = true;
    aq_lock_release(&aq_ibv_bounces[size_class].free.lock);
    if (aq_counter_add(&aq_ibv_bounce_bytes, bytes) > aq_ibv_bounce_limit() && !must) {
        aq_counter_add(&aq_ibv_bounce_bytes, -(uint64_t)bytes);
        return NULL;
    }
    slab = aq_ibv_slab_make(&aq_ibv_bounce_slabs, aq_ibv_bounce_net, bytes, bytes / size,
                            sizeof(*all), !must);
    if (slab == NULL && must)
        aq_fatal("ibv: there are no bounce buffers; the message above says why");
    if (slab == NULL)
        return NULL; /* the bytes stay counted, so that it is not tried often */
    all = slab->descriptors;
    aq_lock_acquire(&aq_ibv_bounces[size_class].free.lock);
    aq_ibv_bounces[size_class].count += bytes / size;
    aq_lock_release(&aq_ibv_bounces[size_class].free.lock);
    for (uint32_t i = 0; i < bytes / size; i++) {
        all[i].bytes = (char *)slab->memory + (size_t)i * size;
        all[i].size_class = size_class;
        for (unsigned dev = 0; dev < aq_ibv_bounce_net->dev_count; dev++)
            all[i].lkey[dev] = slab->mrs[dev]->lkey;
        if (i != 0)
            aq_ibv_bounce_give(&all[i]);
    }
    return &all[0];
}

static struct aq_ibv_bounce *aq_ibv_bounce_free_one(unsigned size_class)
{
    return aq_freelist_thing(aq_freelist_take(&aq_ibv_bounces[size_class].free),
                             offsetof(struct aq_ibv_bounce, item));
}

struct aq_ibv_bounce *aq_ibv_bounce_take(size_t nbytes)
{
    const unsigned size_class = nbytes <= aq_ibv_bounce_size[0]   ? 0
                                : nbytes <= aq_ibv_bounce_size[1] ? 1
                                                                  : 2;
    struct aq_ibv_bounce *bounce = aq_ibv_bounce_free_one(size_class);

    return AQ_LIKELY(bounce != NULL) ? bounce : aq_ibv_bounce_grow(size_class);
}

/* Gives it to a client, if the pool allows. */
static bool aq_ibv_bounce_mark(struct aq_ibv_bounce *bounce)
{
    const unsigned size_class = bounce->size_class;

    aq_lock_acquire(&aq_ibv_bounces[size_class].free.lock);
    bounce->zcopy =
        aq_ibv_zcopy_allowed(aq_ibv_bounces[size_class].zcopy, aq_ibv_bounces[size_class].count);
    aq_ibv_bounces[size_class].zcopy += bounce->zcopy;
    aq_lock_release(&aq_ibv_bounces[size_class].free.lock);
    return bounce->zcopy;
}

struct aq_ibv_bounce *aq_ibv_bounce_take_zcopy(void)
{
    /* slabs stay: half of the limit is left to transfers */
    const bool may_grow = 2 * aq_counter_get(&aq_ibv_bounce_bytes) < aq_ibv_bounce_limit();
    struct aq_ibv_bounce *bounce = may_grow ? aq_ibv_bounce_take(AQ_IBV_BOUNCE_MAX)
                                            : aq_ibv_bounce_free_one(AQ_IBV_BOUNCE_SIZES - 1);

    if (bounce == NULL || aq_ibv_bounce_mark(bounce))
        return bounce;
    aq_ibv_bounce_give(bounce);
    if (!may_grow)
        return NULL;
    bounce = aq_ibv_bounce_grow(AQ_IBV_BOUNCE_SIZES - 1);
    if (bounce == NULL || aq_ibv_bounce_mark(bounce))
        return bounce;
    aq_ibv_bounce_give(bounce);
    return NULL;
}

void aq_ibv_bounce_give(struct aq_ibv_bounce *bounce)
{
    const unsigned size_class = bounce->size_class;

    aq_lock_acquire(&aq_ibv_bounces[size_class].free.lock);
    aq_ibv_bounces[size_class].zcopy -= bounce->zcopy;
    bounce->zcopy = false;
    aq_freelist_push(&aq_ibv_bounces[size_class].free, &bounce->item);
    aq_lock_release(&aq_ibv_bounces[size_class].free.lock);
}
