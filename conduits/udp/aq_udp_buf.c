/*
 * aq_udp_buf.c - buffers of six sizes.
 *
 * A buffer holds a datagram's head until the datagram is acknowledged. A freed buffer returns to
 * the list of its size, up to a bound, so that a usual message needs no malloc.
 *
 * Threads   any; each list has a lock, held for a few instructions
 * Uses      base/aq_lock.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "conduits/udp/aq_udp.h"
#include "base/aq_log.h"
#include "base/aq_state.h"

struct aq_udp_buf {
    struct aq_udp_buf *next; /* while free */
    uint32_t kind, size;
}; /* the bytes follow */
_Static_assert(sizeof(struct aq_udp_buf) % 16 == 0, "what follows is aligned");

#define AQ_BUF_KINDS 6
static struct {
    aq_lock lock;
    struct aq_udp_buf *free;
    uint32_t count;
} aq_udp_bufs[AQ_BUF_KINDS] AQ_JOB_STATE;
static const uint32_t aq_buf_size[AQ_BUF_KINDS] = {
    256, 1536, 4096, 8448, AQ_UDP_RX_BYTES, AQ_UDP_MAX_LONG + 16
};
static const uint32_t aq_buf_keep[AQ_BUF_KINDS] = { 4096, 1024, 512, 256, 64, 8 };

static unsigned aq_udp_buf_kind(size_t size)
{
    for (unsigned kind = 0; kind < AQ_BUF_KINDS; kind++)
        if (size <= aq_buf_size[kind])
            return kind;
    aq_fatal("udp: a buffer of %zu bytes was asked for; the most is %u", size,
             aq_buf_size[AQ_BUF_KINDS - 1]);
}

uint8_t *aq_udp_buf_take(size_t size)
{
    const unsigned kind = aq_udp_buf_kind(size);
    struct aq_udp_buf *buf;

    aq_lock_acquire(&aq_udp_bufs[kind].lock);
    buf = aq_udp_bufs[kind].free;
    if (buf != NULL) {
        aq_udp_bufs[kind].free = buf->next;
        aq_udp_bufs[kind].count--;
    }
    aq_lock_release(&aq_udp_bufs[kind].lock);
    if (buf == NULL) {
        buf = aligned_alloc(16, sizeof(*buf) + aq_buf_size[kind]);
        if (buf == NULL)
            aq_fatal("udp: no memory for a buffer of %u bytes", aq_buf_size[kind]);
        buf->kind = kind;
        buf->size = aq_buf_size[kind];
    }
    return (uint8_t *)(buf + 1);
}

static inline struct aq_udp_buf *aq_udp_buf_of(const uint8_t *bytes)
{
    return (struct aq_udp_buf *)(void *)(uintptr_t)bytes - 1;
}

size_t aq_udp_buf_size(const uint8_t *bytes)
{
    return aq_udp_buf_of(bytes)->size;
}

void aq_udp_buf_give(uint8_t *bytes)
{
    struct aq_udp_buf *buf = aq_udp_buf_of(bytes);
    const unsigned kind = buf->kind;
    bool keep;

    aq_lock_acquire(&aq_udp_bufs[kind].lock);
    keep = aq_udp_bufs[kind].count < aq_buf_keep[kind];
    if (keep) {
        buf->next = aq_udp_bufs[kind].free;
        aq_udp_bufs[kind].free = buf;
        aq_udp_bufs[kind].count++;
    }
    aq_lock_release(&aq_udp_bufs[kind].lock);
    if (!keep)
        free(buf);
}

void aq_udp_buf_fini(void)
{
    for (unsigned kind = 0; kind < AQ_BUF_KINDS; kind++) {
        struct aq_udp_buf *buf = aq_udp_bufs[kind].free;

        while (buf != NULL) {
            struct aq_udp_buf *next = buf->next;

            free(buf);
            buf = next;
        }
    }
}
