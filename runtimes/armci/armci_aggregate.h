/*
 * armci_aggregate.h - the segments that an aggregate handle has collected, and the fast path that
 * adds one.
 *
 * Owns      aq_armci_collecting: the batch that took the last segment
 * Threads   the program's
 * Promise   a segment that is like the one before costs a comparison and two stores
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_ARMCI_AGGREGATE_H
#define AQ_ARMCI_AGGREGATE_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gasnetex.h"

#include "armci.h"

enum aq_armci_way { AQ_ARMCI_PUT, AQ_ARMCI_GET };

/* The columns of a list, in one allocation. */
struct aq_armci_columns {
    void **local; /* NULL: the segment is value */
    void **remote;
    size_t *bytes; /* only if the lengths differ */
    uint64_t *value;
};

struct aq_armci_batch {
    armci_hdl_t handle; /* that has collected the segments */
    enum aq_armci_way way;
    int proc;
    int bytes; /* of each segment; 0: the lengths differ */
    size_t nsegments;
    size_t capacity;      /* 0: the batch is empty */
    size_t repeat_end;    /* the capacity if all segments have one length, else 0 */
    size_t last_capacity; /* of the last batch: the next one is likely to be as long */
    bool has_values;
    void *block; /* the columns */
    struct aq_armci_columns list;
};
extern struct aq_armci_batch *aq_armci_collecting;

/* Adds a segment of the same handle, direction, target and length as the segment before. Returns
 * false if one of them differs, or the columns are full: the general path is taken. */
static inline bool aq_armci_batch_repeat(const armci_hdl_t *handle, enum aq_armci_way way, int proc,
                                         void *local, void *remote, int bytes)
{
    struct aq_armci_batch *batch = aq_armci_collecting;
    const size_t i = batch->nsegments;
    int other = (int)way ^ (int)batch->way;

    other |= handle->request ^ batch->handle.request;
    other |= handle->serial ^ batch->handle.serial;
    other |= proc ^ batch->proc;
    other |= bytes ^ batch->bytes;
    if (AQ_UNLIKELY(other != 0 || i >= batch->repeat_end || local == NULL || remote == NULL))
        return false;
    batch->list.local[i] = local;
    batch->list.remote[i] = remote;
    batch->nsegments = i + 1;
    return true;
}

#endif
