/*
 * aq_ibv_peer.c - the state of a remote rank; see aq_ibv_peer.h.
 *
 * Threads   under connect_lock
 * Uses      aq_ibv_qp.h, aq_ibv_rbuf.h, aq_ibv_reg.h, other/spawn.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "conduits/ibv/aq_ibv_peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "conduits/ibv/aq_ibv_rbuf.h"
#include "conduits/ibv/aq_ibv_reg.h"
#include "other/spawn/aq_siphash.h"
#include "other/spawn/aq_spawn.h"

struct aq_ibv_peers aq_ibv_peers AQ_JOB_STATE = { .connect_lock = PTHREAD_MUTEX_INITIALIZER };

#define AQ_IBV_CELLS 128u /* in a page */

struct aq_ibv_cells {
    struct aq_ibv_cells *next;
    struct aq_ibv_cell *cells; /* a page */
    struct ibv_mr *mr;
    uint32_t used;
};
static struct aq_ibv_cells *aq_ibv_cells AQ_JOB_STATE; /* the newest page first */
_Static_assert(AQ_IBV_CELLS * sizeof(struct aq_ibv_cell) == AQ_PAGE_SIZE, "cells fill pages");

int aq_ibv_peers_init(struct aq_ibv_net *net, const struct aq_ibv_qp_config *qp,
                      uint32_t qps_wanted, bool fence_puts)
{
    aq_ibv_peers.net = net;
    aq_ibv_peers.qp = *qp;
    aq_ibv_peers.qps_wanted = qps_wanted;
    aq_ibv_peers.fence_puts = fence_puts;
    aq_ibv_peers.table = calloc(aq_job.size, sizeof(*aq_ibv_peers.table));
    return aq_ibv_peers.table != NULL
               ? AQ_OK
               : aq_fail(AQ_ERR_NOMEM, "ibv: no memory for %u pointers to peers", aq_job.size);
}

/* A page of cells. Ends the job if there is none. */
static struct aq_ibv_cells *aq_ibv_cells_make(void)
{
    const struct aq_ibv_dev *dev = aq_ibv_peers.net->rails[0].dev;
    struct aq_ibv_cells *cells = calloc(1, sizeof(*cells));
    void *page =
        mmap(NULL, AQ_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char why[600];

    if (cells == NULL || page == MAP_FAILED)
        aq_fatal("ibv: no memory for a page: %s", strerror(errno));
    (void)madvise(page, AQ_PAGE_SIZE, MADV_DONTFORK);
    cells->cells = page;
    cells->mr = dev->lib->reg_mr(dev->pd, page, AQ_PAGE_SIZE,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (cells->mr == NULL) {
        aq_ibv_register_why(why, sizeof(why), dev, AQ_PAGE_SIZE, errno);
        aq_fatal("%s", why);
    }
    cells->next = aq_ibv_cells;
    return cells;
}

/* A cell, and the key by which the peer writes it. */
static struct aq_ibv_cell *aq_ibv_cell_new(uint32_t *rkey_out)
{
    if (aq_ibv_cells == NULL || aq_ibv_cells->used == AQ_IBV_CELLS)
        aq_ibv_cells = aq_ibv_cells_make();
    *rkey_out = aq_ibv_cells->mr->rkey;
    return &aq_ibv_cells->cells[aq_ibv_cells->used++];
}

struct aq_ibv_peer *aq_ibv_peer_make(gex_Rank_t rank)
{
    struct aq_ibv_peer *peer = aq_ibv_peer_look(rank);

    if (peer != NULL)
        return peer;
    peer = aligned_alloc(AQ_CACHE_LINE, aq_round_up(sizeof(*peer), AQ_CACHE_LINE));
    if (peer == NULL)
        aq_fatal("ibv: no memory for a peer: %zu bytes", sizeof(*peer));
    memset(peer, 0, sizeof(*peer));
    peer->remote.rank = rank;
    peer->hello.me = aq_job.rank;
    peer->hello.peer = rank;
    aq_ibv_hello_key(aq_spawn_key(), aq_job.rank, rank, peer->hello.key);
    aq_ibv_peers.count++;
    /* relaxed: under connect_lock; release: a thread that finds the peer sees it whole */
    peer->next_active = atomic_load_explicit(&aq_ibv_peers.active, memory_order_relaxed);
    atomic_store_explicit(&aq_ibv_peers.active, peer, memory_order_release);
    atomic_store_explicit(&aq_ibv_peers.table[rank], peer, memory_order_release);
    return peer;
}

/* A first packet number that cannot be guessed. */
static uint32_t aq_ibv_peer_psn(const struct aq_ibv_peer *peer, uint32_t number)
{
    const uint64_t what[2] = { aq_now_ns(), number };

    return (uint32_t)aq_siphash(peer->hello.key, what, sizeof(what)) & 0xffffff;
}

void aq_ibv_peer_open(struct aq_ibv_peer *peer)
{
    struct aq_ibv_net *net = aq_ibv_peers.net;
    struct aq_ibv_hello_info *local = &peer->hello.local;
    const uint32_t window = AQ_IBV_WINDOW_MIN;
    char why[600], who[AQ_IBV_WHO];

    if (!aq_ibv_rbuf_grow(&net->rails[0], AQ_IBV_CHANNELS * window, why, sizeof(why)))
        aq_fatal("%s; this is for %s, after %u others", why,
                 aq_ibv_remote_who(&peer->remote, who, sizeof(who)), aq_ibv_peers.count - 1);
    memset(local, 0, sizeof(*local));
    for (unsigned channel = 0; channel < AQ_IBV_CHANNELS; channel++)
        aq_ibv_credit_open(&peer->flow.in[channel], window);
    peer->flow.cell = aq_ibv_cell_new(&local->cell_rkey);
    peer->remote.disconnected = &peer->flow.cell->disconnected;
    local->cell = (uintptr_t)peer->flow.cell;
    local->window = window;
    local->rails =
        net->rail_count < aq_ibv_peers.qps_wanted ? net->rail_count : aq_ibv_peers.qps_wanted;
    local->count = aq_ibv_peers.qps_wanted;
    for (uint32_t i = 0; i < local->count; i++) {
        struct aq_ibv_rail *rail = &net->rails[i % local->rails];
        struct aq_ibv_hello_qp *qp = &local->qps[i];

        peer->qps[i] = aq_ibv_qp_create(&aq_ibv_peers.qp, rail, &peer->remote, aq_ibv_peers.count);
        memcpy(qp->gid, rail->gid.gid.raw, 16);
        qp->number = peer->qps[i]->qp->qp_num;
        qp->psn = aq_ibv_peer_psn(peer, qp->number);
        qp->lid = rail->ethernet ? 0 : rail->lid;
        qp->mtu = (uint8_t)rail->mtu;
        qp->gid_type = (uint8_t)rail->gid.type;
        qp->reads = aq_ibv_qp_reads(rail->dev->attr.max_qp_rd_atom, 255);
    }
}

void aq_ibv_peer_join(struct aq_ibv_peer *peer)
{
    const struct aq_ibv_hello_info *local = &peer->hello.local, *remote = &peer->hello.remote;

    peer->rails = local->rails < remote->rails ? local->rails : remote->rails;
    /* queue pair i is on rail i of both; more than one on a rail only if both have as many rails */
    peer->qp_count = local->rails != remote->rails  ? peer->rails
                     : local->count < remote->count ? local->count
                                                    : remote->count;
    for (uint32_t i = 0; i < peer->qp_count; i++)
        aq_ibv_qp_join(peer->qps[i], &remote->qps[i], local->qps[i].psn);
    for (uint32_t i = 0; i < peer->qp_count; i++)
        peer->qps[i]->fences = aq_ibv_peers.fence_puts && peer->qps[i]->rail != peer->qps[0]->rail;
    for (unsigned channel = 0; channel < AQ_IBV_CHANNELS; channel++)
        aq_credit_out_open(&peer->flow.out[channel].base, remote->window);
    peer->cell_addr = remote->cell;
    peer->cell_rkey = remote->cell_rkey;
    aq_counter_add(&aq_ibv_peers.connects, 1);
}

/* --- the job's end --- */

static void aq_ibv_cells_fini(const struct aq_ibv_lib *lib)
{
    struct aq_ibv_cells *cells;

    while ((cells = aq_ibv_cells) != NULL) {
        aq_ibv_cells = cells->next;
        (void)lib->dereg_mr(cells->mr);
        munmap(cells->cells, AQ_PAGE_SIZE);
        free(cells);
    }
}

static void aq_ibv_peer_destroy(struct aq_ibv_peer *peer)
{
    for (uint32_t i = 0; i < AQ_IBV_QPS; i++)
        if (peer->qps[i] != NULL)
            aq_ibv_qp_destroy(peer->qps[i]);
    for (unsigned channel = 0; channel < AQ_IBV_CHANNELS; channel++)
        if (peer->reasm[channel] != NULL)
            aq_ibv_reasm_release(peer->reasm[channel]);
    /* relaxed: the connector has ended */
    free((void *)(uintptr_t)atomic_load_explicit(&peer->remote.host, memory_order_relaxed));
    free(peer);
}

void aq_ibv_peers_fini(void)
{
    struct aq_ibv_peer *peer = aq_ibv_peer_first();

    while (peer != NULL) {
        struct aq_ibv_peer *next = peer->next_active;

        aq_ibv_peer_destroy(peer);
        peer = next;
    }
    aq_ibv_cells_fini(aq_ibv_peers.net->lib);
    free((void *)(uintptr_t)aq_ibv_peers.table);
}
