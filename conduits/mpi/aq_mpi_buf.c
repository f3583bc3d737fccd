/*
 * aq_mpi_buf.c - buffers of messages that are under way: packets and payloads, from
 * core/aq_bufpool.h.
 *
 * Threads   any
 * Uses      aq_mpi_buf.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_buf.h"
#include "base/aq_log.h"
#include "base/aq_state.h"

#define AQ_BUF_KINDS 5
#define AQ_BUF_PLUS  512u /* space for a message beside its payload */

static const uint32_t aq_buf_size[AQ_BUF_KINDS] = { AQ_MPI_SMALL, AQ_MPI_EAGER, AQ_MPI_PACKET,
                                                    AQ_MPI_MAX_MEDIUM + AQ_BUF_PLUS,
                                                    AQ_MPI_MAX_LONG + AQ_BUF_PLUS };
static struct aq_bufpool aq_mpi_bufs[AQ_BUF_KINDS] AQ_JOB_STATE = {
    { .keep = 1024 }, { .keep = 256 }, { .keep = 128 }, { .keep = 32 }, { .keep = 4 }
};

static __attribute__((noinline)) struct aq_mpi_buf *aq_mpi_buf_new(unsigned kind)
{
    struct aq_mpi_buf *buf = aq_bufpool_new("mpi", AQ_CACHE_LINE, sizeof(*buf) + aq_buf_size[kind]);

    buf->kind = (uint8_t)kind;
    buf->size = aq_buf_size[kind];
    return buf;
}

struct aq_mpi_buf *aq_mpi_buf_take(size_t size)
{
    const unsigned kind = aq_bufpool_fit(aq_buf_size, AQ_BUF_KINDS, size);
    struct aq_mpi_buf *buf;

    if (AQ_UNLIKELY(kind == AQ_BUF_KINDS))
        aq_fatal("mpi: a buffer of %zu bytes was asked for; the most is %u", size,
                 aq_buf_size[AQ_BUF_KINDS - 1]);
    buf = aq_freelist_thing(aq_bufpool_take(&aq_mpi_bufs[kind]), offsetof(struct aq_mpi_buf, item));
    if (AQ_UNLIKELY(buf == NULL))
        buf = aq_mpi_buf_new(kind);
    buf->next = NULL;
    buf->coming = buf->zcopy = false;
    return buf;
}

void aq_mpi_buf_give(struct aq_mpi_buf *buf)
{
    aq_bufpool_give(&aq_mpi_bufs[buf->kind], &buf->item);
}

void aq_mpi_buf_fini(void)
{
    aq_bufpool_fini(aq_mpi_bufs, AQ_BUF_KINDS);
}
