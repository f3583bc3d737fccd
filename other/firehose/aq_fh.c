/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh.c - a rank's firehose: opening, closing, figures.
 *
 * Threads   open and close: one
 * Uses      aq_fh_internal.h
 */
#include "other/firehose/aq_fh_internal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/aq_log.h"
#include "other/firehose/aq_fh_wire.h"

#define AQ_FH_MIN_MESSAGE 256u

static size_t aq_fh_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Whole pages of a part of a budget, at least one. */
static size_t aq_fh_fraction(uint64_t bytes, unsigned divisor)
{
    const uint64_t portion = aq_fh_down(bytes / divisor);

    return portion != 0 ? portion : AQ_FH_PAGE;
}

static int aq_fh_check(const struct aq_fh_config *config)
{
    const uint32_t peers = config->peers != 0 ? config->peers : 1;

    if (config->peers != 0
        && (config->remote_bytes / peers < AQ_FH_PAGE || config->remote_regions / peers == 0))
        return aq_fail(AQ_ERR_ARG,
                       "firehose: %" PRIu64
                       " bytes in %u regions are too little for %u peers: each needs "
                       "a page and a region; raise GASNET_FIREHOSE_M (at least %" PRIu64
                       " KB) or GASNET_FIREHOSE_R "
                       "(at least %u)",
                       config->remote_bytes, config->remote_regions, peers,
                       (uint64_t)peers * AQ_FH_PAGE / 1024, peers);
    if (config->local_bytes < 4 * AQ_FH_PAGE || config->local_regions < 4)
        return aq_fail(AQ_ERR_ARG,
                       "firehose: %" PRIu64
                       " bytes in %u regions are too little for own transfers; raise "
                       "GASNET_FIREHOSE_MAXVICTIM_M (at least 16 KB) or "
                       "GASNET_FIREHOSE_MAXVICTIM_R (at least 4)",
                       config->local_bytes, config->local_regions);
    if (config->message < AQ_FH_MIN_MESSAGE)
        return aq_fail(AQ_ERR_ARG, "firehose: messages of %zu bytes; needs %u", config->message,
                       AQ_FH_MIN_MESSAGE);
    return AQ_OK;
}

static void aq_fh_plan_quotas(struct aq_fh *fh)
{
    const struct aq_fh_config *config = &fh->config;
    const uint32_t peers = config->peers != 0 ? config->peers : 1;
    const uint32_t regions = config->remote_regions / peers;
    const size_t region_max =
        config->max_region < AQ_FH_PAGE ? AQ_FH_PAGE : aq_fh_down(config->max_region);
    const size_t chunk_max =
        config->max_chunk < region_max ? region_max : aq_fh_down(config->max_chunk);

    fh->quota = aq_fh_down(config->remote_bytes / peers);
    fh->quota_regions = regions < AQ_FH_SLOTS_MAX / 2 ? regions : AQ_FH_SLOTS_MAX / 2;
    fh->quota_slots = fh->quota_regions * 2;
    /* so that several transfers find space side by side */
    fh->remote_chunk = aq_fh_min(chunk_max, aq_fh_fraction(fh->quota, 4));
    fh->local_chunk = aq_fh_min(chunk_max, aq_fh_fraction(config->local_bytes, 4));
    fh->remote_region = aq_fh_min(region_max, aq_fh_fraction(fh->quota, 8));
    fh->local_region = aq_fh_min(region_max, aq_fh_fraction(config->local_bytes, 8));
}

void aq_fh_limit_local(struct aq_fh *fh, uint64_t local_bytes)
{
    if (local_bytes >= fh->config.local_bytes)
        return;
    fh->config.local_bytes = local_bytes < 4 * AQ_FH_PAGE ? 4 * AQ_FH_PAGE : local_bytes;
    aq_fh_plan_quotas(fh);
}

void aq_fh_limit_remote(struct aq_fh *fh, uintptr_t start, uintptr_t end)
{
    fh->reach_start = start;
    fh->reach_end = end;
}

int aq_fh_open(const struct aq_fh_config *config, const struct aq_fh_ops *ops, void *arg,
               struct aq_fh **fh_out)
{
    struct aq_fh *fh;
    int rc = aq_fh_check(config);

    if (rc != AQ_OK)
        return rc;
    fh = calloc(1, sizeof(*fh));
    if (fh == NULL)
        return aq_fail(AQ_ERR_NOMEM, "firehose: no memory for %zu bytes", sizeof(*fh));
    fh->config = *config;
    fh->config.message = aq_fh_min(config->message, AQ_FH_MESSAGE);
    fh->ops = *ops;
    fh->arg = arg;
    fh->head.memmon = config->memmon;
    aq_fh_limit_remote(fh, 0, UINTPTR_MAX);
    aq_fh_plan_quotas(fh);
    fh->peer = calloc(config->size, sizeof(*fh->peer));
    if (fh->peer == NULL || !aq_fh_index_open(&fh->index)) {
        free(fh->peer);
        free(fh);
        return aq_fail(AQ_ERR_NOMEM, "firehose: no memory for %u peers", config->size);
    }
    *fh_out = fh;
    return AQ_OK;
}

size_t aq_fh_max_chunk(const struct aq_fh *fh)
{
    return fh->local_chunk > fh->remote_chunk ? fh->local_chunk : fh->remote_chunk;
}

static void aq_fh_close_list(struct aq_fh *fh, struct aq_fh_list *list)
{
    struct aq_fh_region *region;

    while ((region = aq_fh_list_pop(list)) != NULL) {
        fh->ops.dereg(fh->arg, &region->reg);
        aq_fh_region_destroy(region);
    }
}

void aq_fh_close(struct aq_fh *fh)
{
    aq_fh_close_list(fh, &fh->order);
    aq_fh_close_list(fh, &fh->referenced);
    aq_fh_close_list(fh, &fh->stale);
    for (uint32_t rank = 0; rank < fh->config.size; rank++) {
        struct aq_fh_peer *peer = aq_fh_peer_look(fh, rank);

        if (peer != NULL)
            aq_fh_peer_close(peer);
    }
    aq_fh_index_close(&fh->index);
    free(fh->peer);
    free(fh);
}

void aq_fh_counts(struct aq_fh *fh, struct aq_fh_counts *counts_out)
{
    struct aq_fh_peer *peer;

    aq_lock_acquire(&fh->lock);
    *counts_out = fh->counts;
    counts_out->local_charged = fh->charged;
    aq_lock_release(&fh->lock);
    /* acquire: pairs with aq_fh_peer_get() */
    for (peer = atomic_load_explicit(&fh->peers, memory_order_acquire); peer != NULL;
         peer = peer->next) {
        aq_lock_acquire(&peer->lock);
        counts_out->remote_hits += peer->hits;
        counts_out->remote_misses += peer->misses;
        counts_out->remote_waits += peer->waits;
        counts_out->moves += peer->moves;
        counts_out->releases += peer->releases;
        counts_out->carried += peer->carried;
        aq_lock_release(&peer->lock);
    }
}
