/*
 * armci_aggregate.c - aggregate handles: small operations on one process, collected and sent as one
 * vector transfer.
 *
 * Pieces of mapped memory are copied at once. Another target, or the other direction, starts what
 * was collected, and so does a full batch; the wait on the handle completes all of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PIECES 4096

struct piece {
    void *local; /* NULL: the value itself */
    void *remote;
    size_t bytes;
    uint64_t value;
};

struct aq_armci_batch {
    enum aq_armci_way way;
    int proc;
    size_t npieces, room;
    struct piece *pieces;
};

struct aq_armci_batch *aq_armci_batch_create(void)
{
    struct aq_armci_batch *batch = calloc(1, sizeof(*batch));

    if (batch == NULL)
        aq_armci_fatal("no memory for an aggregate handle");
    return batch;
}

static void make_room(struct aq_armci_batch *batch)
{
    const size_t room = batch->room == 0 ? 64 : 2 * batch->room;
    struct piece *longer;

    if (batch->npieces < batch->room)
        return;
    longer = realloc(batch->pieces, room * sizeof(*longer));
    if (longer == NULL)
        aq_armci_fatal("no memory for %zu pieces of an aggregate handle", room);
    batch->pieces = longer;
    batch->room = room;
}

static void copy_now(enum aq_armci_way way, void *local, void *remote, size_t bytes)
{
    if (way == AQ_ARMCI_PUT)
        memmove(remote, local, bytes);
    else
        memmove(local, remote, bytes);
}

void aq_armci_batch_add(armci_hdl_t *handle, enum aq_armci_way way, int proc, void *local,
                        void *remote, size_t bytes, bool is_value)
{
    struct aq_armci_batch *batch = aq_armci_batch_of(handle);
    struct piece piece = { is_value ? NULL : local, remote, bytes, 0 };

    aq_armci_check_range("an aggregate handle", remote, bytes, proc);
    if (aq_armci_is_local(&aq_armci.peers[proc])) {
        copy_now(way, local, remote, bytes);
        return;
    }
    if (batch->npieces > 0
        && (batch->way != way || batch->proc != proc || batch->npieces == MAX_PIECES))
        aq_armci_batch_start(handle, batch);
    if (is_value)
        memcpy(&piece.value, local, bytes);
    batch->way = way;
    batch->proc = proc;
    make_room(batch);
    batch->pieces[batch->npieces++] = piece;
    AQ_ARMCI_COUNT(aggregated, 1);
    if (!aq_armci_protocol.aggregate)
        aq_armci_batch_start(handle, batch);
}

void aq_armci_batch_section(armci_hdl_t *handle, enum aq_armci_way way, int proc,
                            const struct aq_armci_section *section)
{
    struct aq_armci_cursor at;

    aq_armci_cursor_begin(&at, section);
    for (size_t run = 0; run < section->runs; run++) {
        if (way == AQ_ARMCI_PUT)
            aq_armci_batch_add(handle, way, proc, at.src, at.dst, section->bytes, false);
        else
            aq_armci_batch_add(handle, way, proc, at.dst, at.src, section->bytes, false);
        aq_armci_cursor_next(&at);
    }
}

/* The two lists of a batch, with the values behind them: all that the transfer reads until it is
 * complete. */
static gex_Memvec_t *make_lists(const struct aq_armci_batch *batch)
{
    const size_t n = batch->npieces;
    gex_Memvec_t *lists = malloc(n * (2 * sizeof(gex_Memvec_t) + sizeof(uint64_t)));
    uint64_t *values = (uint64_t *)(void *)(lists + 2 * n);

    if (lists == NULL)
        aq_armci_fatal("no memory for the addresses of %zu pieces", n);
    for (size_t i = 0; i < n; i++) {
        const struct piece *piece = &batch->pieces[i];

        values[i] = piece->value;
        lists[i] = (gex_Memvec_t){ piece->local != NULL ? piece->local : &values[i], piece->bytes };
        lists[n + i] = (gex_Memvec_t){ piece->remote, piece->bytes };
    }
    return lists;
}

void aq_armci_batch_start(armci_hdl_t *handle, struct aq_armci_batch *batch)
{
    const size_t n = batch->npieces;
    gex_Memvec_t *lists;
    gex_Event_t event;

    if (n == 0)
        return;
    aq_armci_order_after(batch->proc);
    lists = make_lists(batch);
    if (batch->way == AQ_ARMCI_PUT)
        event =
            gex_VIS_VectorPutNB(aq_armci.tm, (gex_Rank_t)batch->proc, n, lists + n, n, lists, 0);
    else
        event =
            gex_VIS_VectorGetNB(aq_armci.tm, n, lists, (gex_Rank_t)batch->proc, n, lists + n, 0);
    batch->npieces = 0;
    AQ_ARMCI_COUNT(aggregate_calls, 1);
    aq_armci_attach(handle, batch->proc, event, lists);
}
