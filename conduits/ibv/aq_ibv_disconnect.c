/*
 * aq_ibv_disconnect.c - parting from peers, as a rank leaves the job.
 *
 * Why       A message lost on the wire is sent again by its sender's device, so nobody may go
 *           before his messages have arrived. But who is gone acknowledges nothing: whoever leaves
 *           later must not wait for him
 * How       A rank that leaves waits for what it has sent to each peer, then writes into that
 *           peer's cell that it has disconnected. A peer that says so is in its exit: no message
 *           matters to it any more, and all that it sent is here
 * Bounds    the exit's own; and a moment for the last word, since a peer that crashed never
 *           acknowledges it
 * Threads   the one that leaves
 * Uses      aq_ibv.h: peers, their cells and queue pairs. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stddef.h>
#include <time.h>

#include "conduits/ibv/aq_ibv.h"

#define AQ_IBV_LAST_WORD_NS UINT64_C(50000000)

enum aq_ibv_disconnect_state {
    AQ_IBV_BUSY,
    AQ_IBV_NOTIFIED,
    AQ_IBV_DISCONNECTED
}; /* told: but for the last word, nothing is under way */

static enum aq_ibv_disconnect_state aq_ibv_disconnect_peer(struct aq_ibv_peer *peer)
{
    const uint64_t yes = 1;
    bool idle = true;

    /* acquire: the queue pairs and the cell are there */
    if (atomic_load_explicit(&peer->ready, memory_order_acquire) == 0
        || aq_ibv_peer_disconnected(peer))
        return AQ_IBV_DISCONNECTED;
    for (uint32_t i = 0; i < peer->qp_count; i++)
        idle = aq_ibv_qp_drained(peer->qps[i]) && idle;
    if (peer->disconnect_sent)
        return idle ? AQ_IBV_DISCONNECTED : AQ_IBV_NOTIFIED;
    if (idle)
        peer->disconnect_sent = aq_ibv_cell_write(peer, offsetof(struct aq_ibv_cell, disconnected),
                                                  &yes, sizeof(yes), AQ_IBV_POST_SIGNAL);
    return AQ_IBV_BUSY;
}

static enum aq_ibv_disconnect_state aq_ibv_disconnect_all(void)
{
    enum aq_ibv_disconnect_state min = AQ_IBV_DISCONNECTED;

    (void)aq_ibv_qp_reap_all();
    /* acquire: pairs with the release in aq_ibv_peer_make() */
    for (struct aq_ibv_peer *peer = atomic_load_explicit(&aq_ibv.active, memory_order_acquire);
         peer != NULL; peer = peer->next_active) {
        const enum aq_ibv_disconnect_state state = aq_ibv_disconnect_peer(peer);

        if (state < min)
            min = state;
    }
    return min;
}

void aq_ibv_disconnect_peers(uint64_t max_ns)
{
    const struct timespec delay = { .tv_nsec = 50000 };
    const uint64_t end = aq_now_ns() + max_ns;
    uint64_t sent_end = end;
    enum aq_ibv_disconnect_state state;

    while ((state = aq_ibv_disconnect_all()) != AQ_IBV_DISCONNECTED) {
        const uint64_t now = aq_now_ns();

        if (state == AQ_IBV_NOTIFIED && sent_end == end)
            sent_end = now + AQ_IBV_LAST_WORD_NS;
        if (now >= end || (state == AQ_IBV_NOTIFIED && now >= sent_end))
            return;
        nanosleep(&delay, NULL);
    }
}
