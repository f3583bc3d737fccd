/*
 * aq_shm_link.c - the ends of the message channels to a peer, made at first contact.
 *
 * Owns      aq_rings: the links, and the peers that have sent something
 * Threads   any; a link is made under a lock, and found without
 * Uses      other/spawn/aq_jobarea.h for the number of ranks
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "conduits/smp/aq_shm_ring.h"
#include "core/aq_job.h"
#include "other/spawn/aq_jobarea.h"

struct aq_shm_rings aq_rings AQ_JOB_STATE;

/* Where ranks share cores a poll that looks at every source takes time from them all. */
static int aq_shm_marks_init(void)
{
    if (aq_shm.layout.mark_bytes == 0)
        return AQ_OK;
    aq_rings.seen = aligned_alloc(AQ_SHM_PAIR, AQ_CHANNELS * aq_shm.layout.mark_bytes);
    if (aq_rings.seen == NULL)
        return aq_fail(AQ_ERR_NOMEM, "no memory for the marks of %u peers", aq_shm.size);
    memset(aq_rings.seen, aq_shm_mark(AQ_SHM_FIRST), AQ_CHANNELS * aq_shm.layout.mark_bytes);
    /* relaxed: no other thread is in the library */
    atomic_store_explicit(&aq_rings.greetings_seen, AQ_SHM_MARKED, memory_order_relaxed);
    return AQ_OK;
}

int aq_shm_ring_init(void)
{
    aq_rings.links = calloc(aq_shm.size, sizeof(*aq_rings.links));
    aq_rings.sources = calloc(aq_shm.size, sizeof(*aq_rings.sources));
    if (aq_rings.links == NULL || aq_rings.sources == NULL)
        return aq_fail(AQ_ERR_NOMEM, "no memory for the table of %u peers", aq_shm.size);
    return aq_shm_marks_init();
}

void aq_shm_ring_fini(void)
{
    for (uint32_t local = 0; local < aq_shm.size && aq_rings.links != NULL; local++)
        /* relaxed: no other thread is in the library */
        free(atomic_load_explicit(&aq_rings.links[local], memory_order_relaxed));
    free(aq_rings.links);
    free(aq_rings.sources);
    free(aq_rings.seen);
}

/* The arena comes zeroed: marks that nobody has stored say that nothing was sent. */
_Static_assert((AQ_SHM_FIRST & UINT8_MAX) == 0, "the first mark is not 0");
_Static_assert(AQ_SHM_MAX_SLOTS < UINT8_MAX, "a full ring's mark is that of an empty one");

/* Where there are marks, every message needs attention. */
static const _Atomic uint32_t aq_shm_always = 1;

static void aq_shm_tx_connect(struct aq_shm_tx *tx, uint32_t local)
{
    tx->control = aq_shm_control(local);
    tx->attention = &tx->control->sleeping;
    if (aq_shm.layout.mark_bytes == 0)
        return;
    tx->mark = aq_shm_marks(local, tx->channel) + aq_shm.me;
    tx->attention = &aq_shm_always;
    tx->greeted = true; /* the mark tells */
}

/* Both ends of a channel begin at the last slot: the first message is in the one after it. */
static void aq_shm_tx_create(struct aq_shm_link *link, int channel, struct aq_shm_ring *ring)
{
    struct aq_shm_tx *tx = &link->tx[channel];

    tx->ring = ring;
    tx->channel = channel;
    tx->pool = aq_shm_pool(aq_shm.me, channel);
    tx->slot = ring->slots + aq_shm.layout.slots - 1;
    tx->next = ring->slots;
    tx->back = &link->rx[!channel];
    aq_shm_tx_connect(tx, link->local);
    tx->sent = tx->freed = AQ_SHM_FIRST;
    atomic_init(&tx->taken, AQ_SHM_FIRST);
    atomic_init(&tx->answered, AQ_SHM_FIRST);
    for (size_t i = 0; i < AQ_SHM_MAX_SLOTS; i++)
        tx->block[i] = AQ_BLOCK_NONE;
}

static void aq_shm_rx_create(struct aq_shm_link *link, int channel, struct aq_shm_ring *ring)
{
    struct aq_shm_rx *rx = &link->rx[channel];

    rx->ring = ring;
    rx->slot = ring->slots + aq_shm.layout.slots - 1;
    rx->next = ring->slots;
    rx->back = &link->tx[!channel];
    atomic_init(&rx->taken, AQ_SHM_FIRST);
    rx->done = &ring->done[channel].count;
    rx->pool = aq_shm_pool(link->local, channel);
    rx->jobrank = aq_shm.jobrank_of[link->local];
    if (aq_rings.seen != NULL)
        rx->seen = aq_rings.seen + (size_t)channel * aq_shm.layout.mark_bytes + link->local;
}

static struct aq_shm_link *aq_shm_link_create(uint32_t local)
{
    struct aq_shm_ring *ours = aq_shm_ring(aq_shm.me, local);
    struct aq_shm_ring *peer_ring = aq_shm_ring(local, aq_shm.me);
    struct aq_shm_link *link = aligned_alloc(_Alignof(struct aq_shm_link), sizeof(*link));

    if (link == NULL)
        aq_fatal("no memory for the link to rank %u (%zu bytes)", aq_shm.jobrank_of[local],
                 sizeof(*link));
    memset(link, 0, sizeof(*link));
    link->local = local;
    aq_shm_tx_create(link, AQ_CHANNEL_REQUEST, ours);
    aq_shm_rx_create(link, AQ_CHANNEL_REPLY, ours);
    aq_shm_rx_create(link, AQ_CHANNEL_REQUEST, peer_ring);
    aq_shm_tx_create(link, AQ_CHANNEL_REPLY, peer_ring);
    return link;
}

struct aq_shm_link *aq_shm_link(uint32_t local)
{
    struct aq_shm_link *link;

    aq_lock_acquire(&aq_rings.link_lock);
    link = aq_shm_link_find(local);
    if (link == NULL) {
        link = aq_shm_link_create(local);
        atomic_store_explicit(&aq_rings.links[local], link, memory_order_release);
    }
    aq_lock_release(&aq_rings.link_lock);
    return link;
}

void aq_shm_tx_greet(struct aq_shm_tx *tx)
{
    const uint32_t local = (uint32_t)(tx->control - aq_shm_control(0));

    tx->greeted = true;
    /* release: whoever sees the count sees the flag */
    atomic_store_explicit(aq_shm_hello(local, aq_shm.me), 1, memory_order_release);
    atomic_fetch_add_explicit(&tx->control->greetings, 1, memory_order_release);
}

void aq_shm_welcome(uint32_t greetings)
{
    static bool known[AQ_SPAWN_MAX_RANKS] AQ_JOB_STATE; /* by local index; under greet_lock */

    if (!aq_lock_try(&aq_rings.greet_lock))
        return;
    for (uint32_t local = 0; local < aq_shm.size; local++) {
        uint32_t count = atomic_load_explicit(&aq_rings.source_count, memory_order_relaxed);

        if (known[local]
            || atomic_load_explicit(aq_shm_hello(aq_shm.me, local), memory_order_acquire) == 0)
            continue;
        known[local] = true;
        aq_rings.sources[count] = aq_shm_link(local);
        /* release: a poller that sees the count sees the entry */
        atomic_store_explicit(&aq_rings.source_count, count + 1, memory_order_release);
    }
    atomic_store_explicit(&aq_rings.greetings_seen, greetings, memory_order_relaxed);
    aq_lock_release(&aq_rings.greet_lock);
}

void aq_shm_peer_counts(gex_Rank_t jobrank, uint64_t *sent_out, uint64_t *handled_out)
{
    const uint32_t local = aq_job_local_index(jobrank);

    struct aq_shm_link *link = local == UINT32_MAX ? NULL : aq_shm_link_find(local);

    *sent_out = *handled_out = 0;
    for (int channel = 0; link != NULL && channel < AQ_CHANNELS; channel++) {
        *sent_out += __atomic_load_n(&link->tx[channel].sent, __ATOMIC_RELAXED) - AQ_SHM_FIRST;
        *handled_out += atomic_load_explicit(&link->tx[channel].ring->done[channel].count,
                                             memory_order_relaxed);
    }
}
