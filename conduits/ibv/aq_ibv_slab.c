/*
 * aq_ibv_slab.c - slabs of registered memory; see aq_ibv_slab.h.
 *
 * Threads   making: any; the list has a lock
 * Uses      aq_ibv_register(), mmap. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "conduits/ibv/aq_ibv_slab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"

static int aq_ibv_slab_map(struct aq_ibv_slab *slab, size_t bytes, bool quiet)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return quiet ? AQ_ERR_NOMEM
                     : aq_fail(AQ_ERR_NOMEM, "ibv: no memory for buffers: %zu bytes: %s", bytes,
                               strerror(errno));
    /* a child must not get the pages that the device uses */
    (void)madvise(memory, bytes, MADV_DONTFORK);
    slab->memory = memory;
    slab->bytes = bytes;
    return AQ_OK;
}

struct aq_ibv_slab *aq_ibv_slab_make(struct aq_ibv_slabs *slabs, const struct aq_ibv_net *net,
                                     size_t bytes, size_t count, size_t each, bool quiet)
{
    struct aq_ibv_slab *slab = calloc(1, sizeof(*slab));

    if (slab == NULL || (slab->descriptors = calloc(count, each)) == NULL) {
        if (!quiet)
            aq_fail(AQ_ERR_NOMEM, "ibv: no memory for %zu buffers", count);
        goto free_slab;
    }
    if (aq_ibv_slab_map(slab, bytes, quiet) != AQ_OK)
        goto free_slab;
    if (aq_ibv_register(net, slab->memory, bytes, IBV_ACCESS_LOCAL_WRITE, quiet, slab->mrs)
        != AQ_OK)
        goto unmap;
    aq_lock_acquire(&slabs->lock);
    slab->next = slabs->first;
    slabs->first = slab;
    aq_lock_release(&slabs->lock);
    return slab;
unmap:
    munmap(slab->memory, bytes);
free_slab:
    if (slab != NULL)
        free(slab->descriptors);
    free(slab);
    return NULL;
}

void aq_ibv_slabs_free(struct aq_ibv_slabs *slabs, const struct aq_ibv_net *net)
{
    struct aq_ibv_slab *slab;

    while ((slab = slabs->first) != NULL) {
        slabs->first = slab->next;
        aq_ibv_unregister(net, slab->mrs);
        munmap(slab->memory, slab->bytes);
        free(slab->descriptors);
        free(slab);
    }
}
