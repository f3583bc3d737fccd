/*
 * aq_ibv_slab.h - slabs: memory that buffers are cut from, mapped and registered as a whole.
 *
 * A slab is made when a pool of buffers grows, and stays as long as the job.
 *
 * Owns      the memory, its registration, and the descriptors of the buffers
 * Threads   any; freeing: one, after the last use
 * Uses      aq_ibv_reg.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_SLAB_H
#define AQ_IBV_SLAB_H

#include "conduits/ibv/aq_ibv_reg.h"

struct aq_ibv_slab {
    struct aq_ibv_slab *next;
    uint8_t *memory;
    size_t bytes;
    void *descriptors; /* of the buffers; zero at first */
    struct ibv_mr *mrs[AQ_IBV_RAILS];
};

/* The slabs of a pool; zero: none. */
struct aq_ibv_slabs {
    aq_lock lock;
    struct aq_ibv_slab *first;
};

/* A further slab of so many bytes, registered with each device, and memory for count descriptors of
 * each bytes. NULL: there is none; logged unless quiet. A child of this process gets no copy of the
 * memory. */
struct aq_ibv_slab *aq_ibv_slab_make(struct aq_ibv_slabs *slabs, const struct aq_ibv_net *net,
                                     size_t bytes, size_t count, size_t each, bool quiet);
/* Free all slabs of a pool; none of its buffers is in use. */
void aq_ibv_slabs_free(struct aq_ibv_slabs *slabs, const struct aq_ibv_net *net);

#endif
