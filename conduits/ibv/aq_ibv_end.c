/*
 * aq_ibv_end.c - the end of a rank: disconnecting from the peers; freeing, where the process goes
 * on.
 *
 * Why       the sender's device repeats a message that was lost on the wire, so a rank must stay
 *           until its messages have arrived. But a peer that has ended acknowledges nothing: a rank
 *           that leaves later must not wait for it
 * How       a rank that leaves waits for what it has sent to each peer, then writes into that
 *           peer's cell that it is disconnected. A peer that says so is in its exit: no message
 *           matters to it any more, and everything that it sent is here
 * Bounds    the limit of the exit; for the last write a moment, since a peer that crashed never
 *           acknowledges it
 * Job's end after disconnecting, the ranks wait for each other outside active messages before
 *           anything is freed: so no peer's device writes to unmapped memory. The connector
 *           ends first, which may use everything else; then the queue pairs, after which no device
 *           reads or writes memory; then, in the reverse order of the start, the parts with their
 *           registrations, and the devices
 * Threads   aq_ibv_disconnect_peers(): the thread that exits; aq_ibv_free(): alone
 * Uses      aq_ibv_am.h: peers, their cells and queue pairs; aq_ibv_firehose.h.
 *           SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_end.h"

#include <stddef.h>
#include <time.h>

#include "conduits/ibv/aq_ibv_am.h"
#include "conduits/ibv/aq_ibv_firehose.h"
#include "conduits/ibv/aq_ibv_rbuf.h"

#define AQ_IBV_LAST_WRITE_NS UINT64_C(50000000)

/* NOTIFIED: nothing is under way except the last write */
enum aq_ibv_disconnect_state { AQ_IBV_BUSY, AQ_IBV_NOTIFIED, AQ_IBV_DISCONNECTED };

static enum aq_ibv_disconnect_state aq_ibv_disconnect_peer(struct aq_ibv_peer *peer)
{
    const uint64_t yes = 1;
    bool idle = true;

    if (!aq_ibv_peer_is_ready(peer) || aq_ibv_peer_disconnected(peer))
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

static enum aq_ibv_disconnect_state aq_ibv_disconnect_all(struct aq_ibv_net *net)
{
    enum aq_ibv_disconnect_state min = AQ_IBV_DISCONNECTED;

    (void)aq_ibv_qp_reap_all(net);
    for (struct aq_ibv_peer *peer = aq_ibv_peer_first(); peer != NULL; peer = peer->next_active) {
        const enum aq_ibv_disconnect_state state = aq_ibv_disconnect_peer(peer);

        if (state < min)
            min = state;
    }
    return min;
}

void aq_ibv_disconnect_peers(struct aq_ibv_net *net, uint64_t max_ns)
{
    const struct timespec delay = { .tv_nsec = 50000 };
    const uint64_t end = aq_now_ns() + max_ns;
    uint64_t sent_end = end;
    enum aq_ibv_disconnect_state state;

    while ((state = aq_ibv_disconnect_all(net)) != AQ_IBV_DISCONNECTED) {
        const uint64_t now = aq_now_ns();

        if (state == AQ_IBV_NOTIFIED && sent_end == end)
            sent_end = now + AQ_IBV_LAST_WRITE_NS;
        if (now >= end || (state == AQ_IBV_NOTIFIED && now >= sent_end))
            return;
        nanosleep(&delay, NULL);
    }
}

void aq_ibv_free(struct aq_ibv_net *net)
{
    aq_ibv_connect_fini();
    aq_ibv_recv_fini();
    aq_ibv_peers_fini();
    aq_ibv_reasm_fini();
    aq_ibv_firehose_fini();
    aq_ibv_rma_fini();
    aq_ibv_buf_fini();
    aq_ibv_rbuf_fini();
    aq_ibv_segments_drop();
    aq_ibv_net_close(net);
}
