/*
 * aq_udp_buf.c - buffers of six sizes, from core/aq_bufpool.h.
 *
 * A buffer holds a datagram's head until the datagram is acknowledged.
 *
 * Threads   any
 * Uses      core/aq_bufpool.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/udp/aq_udp.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "core/aq_bufpool.h"

struct aq_udp_buf {
    struct aq_freelist_item item;
    uint32_t kind, size;
}; /* the bytes follow */
_Static_assert(sizeof(struct aq_udp_buf) % 16 == 0, "what follows is aligned");

#define AQ_BUF_KINDS 6
static const uint32_t aq_buf_size[AQ_BUF_KINDS] = {
    256, 1536, 4096, 8448, AQ_UDP_RX_BYTES, AQ_UDP_MAX_LONG + 16
};
static struct aq_bufpool aq_udp_bufs[AQ_BUF_KINDS] AQ_JOB_STATE = {
    { .keep = 4096 }, { .keep = 1024 }, { .keep = 512 },
    { .keep = 256 },  { .keep = 64 },   { .keep = 8 }
};

static __attribute__((noinline)) struct aq_udp_buf *aq_udp_buf_new(unsigned kind)
{
    struct aq_udp_buf *buf = aq_bufpool_new("udp", 16, sizeof(*buf) + aq_buf_size[kind]);

    buf->kind = kind;
    buf->size = aq_buf_size[kind];
    return buf;
}

uint8_t *aq_udp_buf_take(size_t size)
{
    const unsigned kind = aq_bufpool_fit(aq_buf_size, AQ_BUF_KINDS, size);
    struct aq_udp_buf *buf;

    if (AQ_UNLIKELY(kind == AQ_BUF_KINDS))
        aq_fatal("udp: a buffer of %zu bytes was asked for; the most is %u", size,
                 aq_buf_size[AQ_BUF_KINDS - 1]);
    buf = aq_freelist_thing(aq_bufpool_take(&aq_udp_bufs[kind]), offsetof(struct aq_udp_buf, item));
    if (AQ_UNLIKELY(buf == NULL))
        buf = aq_udp_buf_new(kind);
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

    aq_bufpool_give(&aq_udp_bufs[buf->kind], &buf->item);
}

void aq_udp_buf_fini(void)
{
    aq_bufpool_fini(aq_udp_bufs, AQ_BUF_KINDS);
}
