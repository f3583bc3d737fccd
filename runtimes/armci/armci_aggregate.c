/*
 * armci_aggregate.c - aggregate handles: small operations on one rank are collected in a batch and
 * sent as one vector transfer.
 *
 * Segments of mapped memory are copied at once. The batch is sent when an operation has another
 * target or another direction, when the batch is full, and at the wait on the handle, which
 * completes all its transfers. If all segments have one length, the common case, no lengths are
 * stored or sent.
 *
 * Owns      a block of columns for each batch that collects; the completed transfer frees the block
 * Threads   the program's
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <stdlib.h>
#include <string.h>

#define MIN_SEGMENTS 64
#define MAX_SEGMENTS 4096

static struct aq_armci_batch nothing; /* in which no segment fits */
struct aq_armci_batch *aq_armci_collecting = &nothing;

struct aq_armci_batch *aq_armci_batch_create(void)
{
    struct aq_armci_batch *batch = calloc(1, sizeof(*batch));

    if (batch == NULL)
        aq_armci_fatal("no memory for an aggregate handle");
    batch->last_capacity = MIN_SEGMENTS;
    return batch;
}

static struct aq_armci_columns columns_of(void *block, size_t capacity)
{
    struct aq_armci_columns list;

    list.local = block;
    list.remote = list.local + capacity;
    list.bytes = (size_t *)(void *)(list.remote + capacity);
    list.value = (uint64_t *)(void *)(list.bytes + capacity);
    return list;
}

static void grow(struct aq_armci_batch *batch)
{
    const size_t n = batch->nsegments,
                 capacity = batch->capacity == 0 ? batch->last_capacity : 2 * batch->capacity;
    void *block = malloc(capacity * (2 * sizeof(void *) + sizeof(size_t) + sizeof(uint64_t)));
    const struct aq_armci_columns old = batch->list;

    if (block == NULL)
        aq_armci_fatal("no memory for %zu segments of an aggregate handle", capacity);
    batch->list = columns_of(block, capacity);
    if (n > 0) {
        memcpy(batch->list.local, old.local, n * sizeof(void *));
        memcpy(batch->list.remote, old.remote, n * sizeof(void *));
        memcpy(batch->list.bytes, old.bytes, n * sizeof(size_t));
        memcpy(batch->list.value, old.value, n * sizeof(uint64_t));
    }
    free(batch->block);
    batch->block = block;
    batch->capacity = capacity;
}

/* Segments have had one length until now: it is written down for each. */
static void begin_lengths(struct aq_armci_batch *batch)
{
    for (size_t i = 0; i < batch->nsegments; i++)
        batch->list.bytes[i] = (size_t)batch->bytes;
    batch->bytes = 0;
}

static void append(struct aq_armci_batch *batch, void *local, void *remote, int bytes,
                   bool is_value)
{
    const size_t i = batch->nsegments;

    if (i == batch->capacity)
        grow(batch);
    if (i == 0)
        batch->bytes = bytes;
    else if (batch->bytes != 0 && batch->bytes != bytes)
        begin_lengths(batch);
    batch->list.local[i] = is_value ? NULL : local;
    batch->list.remote[i] = remote;
    if (batch->bytes == 0)
        batch->list.bytes[i] = (size_t)bytes;
    if (is_value) {
        memcpy(&batch->list.value[i], local, (size_t)bytes);
        batch->has_values = true;
    }
    batch->nsegments++;
    batch->repeat_end = batch->bytes == 0 ? 0 : batch->capacity;
}

void aq_armci_batch_add(armci_hdl_t *handle, struct aq_armci_batch *batch, enum aq_armci_way way,
                        int proc, void *local, void *remote, size_t bytes, bool is_value)
{
    if (aq_armci_is_local(&aq_armci.peers[proc])) {
        if (way == AQ_ARMCI_PUT)
            memmove(remote, local, bytes);
        else
            memmove(local, remote, bytes);
        return;
    }
    if (batch->nsegments > 0
        && (batch->way != way || batch->proc != proc || batch->nsegments == MAX_SEGMENTS))
        aq_armci_batch_start(handle, batch);
    batch->handle = *handle;
    batch->way = way;
    batch->proc = proc;
    append(batch, local, remote, (int)bytes, is_value);
    aq_armci_collecting = batch;
    if (!aq_armci_protocol.aggregate)
        aq_armci_batch_start(handle, batch);
}

bool aq_armci_batch_run(const char *call, armci_hdl_t *handle, enum aq_armci_way way, int proc,
                        void *local, void *remote, int bytes)
{
    struct aq_armci_batch *batch = aq_armci_batch_of(handle);

    if (batch == NULL || bytes <= 0 || !aq_armci_is_proc(proc) || local == NULL || remote == NULL)
        return false;
    aq_armci_check_range(call, remote, (size_t)bytes, proc);
    aq_armci_batch_add(handle, batch, way, proc, local, remote, (size_t)bytes, false);
    return true;
}

void aq_armci_batch_section(armci_hdl_t *handle, struct aq_armci_batch *batch,
                            enum aq_armci_way way, int proc, const struct aq_armci_section *section)
{
    struct aq_armci_cursor at;

    if (way == AQ_ARMCI_PUT)
        aq_armci_check_section(section, section->dst, section->dst_stride, proc);
    else
        aq_armci_check_section(section, section->src, section->src_stride, proc);
    aq_armci_cursor_begin(&at, section);
    for (size_t run = 0; run < section->runs; run++) {
        if (way == AQ_ARMCI_PUT)
            aq_armci_batch_add(handle, batch, way, proc, at.src, at.dst, section->bytes, false);
        else
            aq_armci_batch_add(handle, batch, way, proc, at.dst, at.src, section->bytes, false);
        aq_armci_cursor_next(&at);
    }
}

static gex_Event_t start_uniform(const struct aq_armci_batch *batch)
{
    const size_t n = batch->nsegments, bytes = (size_t)batch->bytes;
    void **local = batch->list.local, **remote = batch->list.remote;

    if (batch->way == AQ_ARMCI_PUT)
        return gex_VIS_IndexedPutNB(aq_armci.tm, (gex_Rank_t)batch->proc, n, remote, bytes, n,
                                    local, bytes, 0);
    return gex_VIS_IndexedGetNB(aq_armci.tm, n, local, bytes, (gex_Rank_t)batch->proc, n, remote,
                                bytes, 0);
}

/* Makes the two lists of a transfer whose segments have different lengths. */
static gex_Memvec_t *make_lists(const struct aq_armci_batch *batch)
{
    const size_t n = batch->nsegments;
    gex_Memvec_t *lists = malloc(2 * n * sizeof(*lists));

    if (lists == NULL)
        aq_armci_fatal("no memory for the addresses of %zu segments", n);
    for (size_t i = 0; i < n; i++) {
        lists[i] = (gex_Memvec_t){ batch->list.local[i], batch->list.bytes[i] };
        lists[n + i] = (gex_Memvec_t){ batch->list.remote[i], batch->list.bytes[i] };
    }
    return lists;
}

static gex_Event_t start_lists(const struct aq_armci_batch *batch, const gex_Memvec_t *lists)
{
    const size_t n = batch->nsegments;

    if (batch->way == AQ_ARMCI_PUT)
        return gex_VIS_VectorPutNB(aq_armci.tm, (gex_Rank_t)batch->proc, n, lists + n, n, lists, 0);
    return gex_VIS_VectorGetNB(aq_armci.tm, n, lists, (gex_Rank_t)batch->proc, n, lists + n, 0);
}

/* The block stays until the transfer is complete: it contains the values, and the addresses of a
 * uniform transfer. */
void aq_armci_batch_start(armci_hdl_t *handle, struct aq_armci_batch *batch)
{
    const size_t n = batch->nsegments;
    gex_Memvec_t *lists;

    if (n == 0)
        return;
    aq_armci_order_after(batch->proc);
    for (size_t i = 0; batch->has_values && i < n; i++)
        if (batch->list.local[i] == NULL)
            batch->list.local[i] = &batch->list.value[i];
    AQ_ARMCI_COUNT(aggregated, n);
    AQ_ARMCI_COUNT(aggregate_calls, 1);
    if (batch->bytes != 0) {
        aq_armci_attach(handle, batch->proc, start_uniform(batch), batch->block);
    } else {
        lists = make_lists(batch);
        aq_armci_attach(handle, batch->proc, start_lists(batch, lists), lists);
        aq_armci_attach_owned(handle, batch->proc, batch->block);
    }
    batch->last_capacity = batch->capacity;
    batch->nsegments = batch->capacity = batch->repeat_end = 0;
    batch->has_values = false;
    batch->block = NULL;
}
