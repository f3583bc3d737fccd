/*
 * aq_mpi_buf.c - buffers of messages that are under way: packets and payloads.
 *
 * A freed buffer returns to the list of its size, up to a bound, so that a usual message needs no
 * malloc.
 *
 * Threads   any; each list has a lock, held for a few instructions
 * Uses      aq_mpi_buf.h, base/aq_lock.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "conduits/mpi/aq_mpi_buf.h"
#include "base/aq_lock.h"
#include "base/aq_log.h"
#include "base/aq_platform.h"
#include "base/aq_state.h"

#define AQ_BUF_KINDS 4
#define AQ_BUF_PLUS  512u /* space for a message beside its payload */

static struct {
    aq_lock lock;
    struct aq_mpi_buf *free;
    uint32_t count;
} aq_mpi_bufs[AQ_BUF_KINDS] AQ_JOB_STATE;
static const uint32_t aq_buf_size[AQ_BUF_KINDS] = { AQ_MPI_SMALL, AQ_MPI_PACKET,
                                                    AQ_MPI_MAX_MEDIUM + AQ_BUF_PLUS,
                                                    AQ_MPI_MAX_LONG + AQ_BUF_PLUS };
static const uint32_t aq_buf_keep[AQ_BUF_KINDS] = { 1024, 128, 32, 4 };

struct aq_mpi_buf *aq_mpi_buf_take(size_t size)
{
    struct aq_mpi_buf *buf;
    unsigned kind = 0;

    while (kind < AQ_BUF_KINDS - 1 && size > aq_buf_size[kind])
        kind++;
    aq_lock_acquire(&aq_mpi_bufs[kind].lock);
    buf = aq_mpi_bufs[kind].free;
    if (buf != NULL) {
        aq_mpi_bufs[kind].free = buf->next;
        aq_mpi_bufs[kind].count--;
    }
    aq_lock_release(&aq_mpi_bufs[kind].lock);
    if (buf == NULL) {
        buf = aligned_alloc(AQ_CACHE_LINE, (sizeof(*buf) + aq_buf_size[kind] + AQ_CACHE_LINE - 1)
                                               / AQ_CACHE_LINE * AQ_CACHE_LINE);
        if (buf == NULL)
            aq_fatal("mpi: no memory for a buffer of %u bytes", aq_buf_size[kind]);
        buf->kind = (uint8_t)kind;
        buf->size = aq_buf_size[kind];
    }
    buf->next = NULL;
    buf->coming = buf->zcopy = false;
    return buf;
}

void aq_mpi_buf_give(struct aq_mpi_buf *buf)
{
    const unsigned kind = buf->kind;
    bool keep;

    aq_lock_acquire(&aq_mpi_bufs[kind].lock);
    keep = aq_mpi_bufs[kind].count < aq_buf_keep[kind];
    if (keep) {
        buf->next = aq_mpi_bufs[kind].free;
        aq_mpi_bufs[kind].free = buf;
        aq_mpi_bufs[kind].count++;
    }
    aq_lock_release(&aq_mpi_bufs[kind].lock);
    if (!keep)
        free(buf);
}

void aq_mpi_buf_fini(void)
{
    for (unsigned kind = 0; kind < AQ_BUF_KINDS; kind++) {
        struct aq_mpi_buf *buf = aq_mpi_bufs[kind].free;

        while (buf != NULL) {
            struct aq_mpi_buf *next = buf->next;

            free(buf);
            buf = next;
        }
    }
}
