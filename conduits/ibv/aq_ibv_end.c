/*
 * aq_ibv_end.c - parting from peers, as a rank leaves the job.
 *
 * Why       A message lost on the wire is sent again by its sender's device, so nobody may go before his messages have
 *           arrived. But who is gone acknowledges nothing: whoever leaves later must not wait for him
 * How       A rank that leaves waits for what it has sent to each peer, then writes into that peer's cell that it has
 *           parted. A peer that says so is in its exit: no message matters to it any more, and all that it sent is here
 * Bounds    the exit's own; and a moment for the last word, since a peer that crashed never acknowledges it
 * Threads   the one that leaves
 * Uses      aq_ibv.h: peers, their cells and queue pairs. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stddef.h>
#include <time.h>

#include "conduits/ibv/aq_ibv.h"

#define AQ_IBV_LAST_WORD_NS UINT64_C(50000000)

enum aq_ibv_parting { AQ_IBV_BUSY, AQ_IBV_TOLD, AQ_IBV_PARTED }; /* told: but for the last word, nothing is under way */

static enum aq_ibv_parting aq_ibv_part_from(struct aq_ibv_peer *peer)
{
    const uint64_t yes = 1;
    bool idle = true;

    /* acquire: the queue pairs and the cell are there */
    if (atomic_load_explicit(&peer->ready, memory_order_acquire) == 0 ||
        aq_ibv_peer_parted(peer))
        return AQ_IBV_PARTED;
    for (uint32_t i = 0; i < peer->qp_count; i++)
        idle = aq_ibv_qp_drained(peer->qps[i]) && idle;
    if (peer->told_parted)
        return idle ? AQ_IBV_PARTED : AQ_IBV_TOLD;
    if (idle)
        peer->told_parted = aq_ibv_cell_write(peer, offsetof(struct aq_ibv_cell, parted), &yes, sizeof(yes),
                                              AQ_IBV_POST_SIGNAL);
    return AQ_IBV_BUSY;
}

static enum aq_ibv_parting aq_ibv_part_from_all(void)
{
    enum aq_ibv_parting least = AQ_IBV_PARTED;

    (void)aq_ibv_qp_reap_all();
    /* acquire: pairs with the release in aq_ibv_peer_make() */
    for (struct aq_ibv_peer *peer = atomic_load_explicit(&aq_ibv.active, memory_order_acquire); peer != NULL;
         peer = peer->next_active) {
        const enum aq_ibv_parting parting = aq_ibv_part_from(peer);

        if (parting < least)
            least = parting;
    }
    return least;
}

void aq_ibv_part_from_peers(uint64_t max_ns)
{
    const struct timespec nap = { .tv_nsec = 50000 };
    const uint64_t end = aq_now_ns() + max_ns;
    uint64_t told_end = end;
    enum aq_ibv_parting parting;

    while ((parting = aq_ibv_part_from_all()) != AQ_IBV_PARTED) {
        const uint64_t now = aq_now_ns();

        if (parting == AQ_IBV_TOLD && told_end == end)
            told_end = now + AQ_IBV_LAST_WORD_NS;
        if (now >= end || (parting == AQ_IBV_TOLD && now >= told_end))
            return;
        nanosleep(&nap, NULL);
    }
}
