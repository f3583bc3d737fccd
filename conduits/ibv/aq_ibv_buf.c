/*
 * aq_ibv_buf.c - send buffers: registered memory that messages leave from when they are not inline.
 *
 * Requests and replies have pools of their own, so that a reply finds a buffer however many
 * requests wait. A pool grows by chunks up to its quota of GASNET_BBUF_COUNT. A buffer comes back
 * when its request is complete. That may be noticed late, with the completion of a later request,
 * so a pool that runs out requests completions on every queue pair of messages. The memory is
 * registered, so it comes in chunks and has a limit, unlike that of core/aq_bufpool.h.
 *
 * Owns      the pools
 * Threads   any but the connector; a lock for each pool
 * Uses      aq_ibv_am.h, aq_ibv_slab.h, core/aq_freelist.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_am.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "conduits/ibv/aq_ibv_slab.h"

#define AQ_IBV_BUF_CHUNK 32u
/* of each channel: a message of the largest size takes 9, and some are under way */
#define AQ_IBV_BUF_MIN 32u

struct aq_ibv_am aq_ibv_am AQ_JOB_STATE;

static struct {
    struct aq_freelist free;
    uint32_t count, max, zcopy; /* under its lock */
} aq_ibv_bufs[AQ_IBV_CHANNELS] AQ_JOB_STATE;

static struct aq_ibv_slabs aq_ibv_buf_slabs AQ_JOB_STATE;

static void aq_ibv_buf_done(struct aq_ibv_done *done)
{
    struct aq_ibv_buf *buf = (struct aq_ibv_buf *)(void *)done; /* its first member */

    while (buf != NULL) {
        struct aq_ibv_buf *next = buf->chain;

        if (buf->rider != NULL)
            aq_ibv_bounce_give(buf->rider);
        buf->rider = NULL;
        aq_ibv_buf_give(buf);
        buf = next;
    }
}

/* Lock held: a chunk more. Ends the job if there is none for the first one. */
static void aq_ibv_buf_grow(unsigned channel)
{
    const bool first = aq_ibv_bufs[channel].count == 0;
    struct aq_ibv_slab *slab =
        aq_ibv_slab_make(&aq_ibv_buf_slabs, aq_ibv_am.net, (size_t)AQ_IBV_BUF_CHUNK * AQ_IBV_BUF,
                         AQ_IBV_BUF_CHUNK, sizeof(struct aq_ibv_buf), !first);
    struct aq_ibv_buf *bufs;

    if (slab == NULL) {
        if (first)
            aq_fatal("ibv: there are no send buffers; the message above says why");
        aq_ibv_bufs[channel].max = aq_ibv_bufs[channel].count; /* the pool stays as it is */
        return;
    }
    bufs = slab->descriptors;
    for (uint32_t i = 0; i < AQ_IBV_BUF_CHUNK; i++) {
        bufs[i].done.fn = aq_ibv_buf_done;
        bufs[i].bytes = slab->memory + (size_t)i * AQ_IBV_BUF;
        bufs[i].channel = (uint8_t)channel;
        for (uint32_t dev = 0; dev < aq_ibv_am.net->dev_count; dev++)
            bufs[i].lkey[dev] = slab->mrs[dev]->lkey;
        aq_freelist_push(&aq_ibv_bufs[channel].free, &bufs[i].item);
    }
    aq_ibv_bufs[channel].count += AQ_IBV_BUF_CHUNK;
}

void aq_ibv_buf_init(struct aq_ibv_net *net)
{
    const int64_t pref = aq_env_int(AQ_ENV_BBUF_COUNT);
    const uint32_t max = pref < 4 * AQ_IBV_BUF_MIN ? 4 * AQ_IBV_BUF_MIN
                         : pref > 1 << 20          ? 1u << 20
                                                   : (uint32_t)pref;

    aq_ibv_am.net = net;
    aq_ibv_bufs[AQ_IBV_REQUEST].max = max - max / 4;
    aq_ibv_bufs[AQ_IBV_REPLY].max = max / 4;
}

void aq_ibv_buf_fini(void)
{
    aq_ibv_slabs_free(&aq_ibv_buf_slabs, aq_ibv_am.net);
}

/* Request completions that were not requested so far, and reap. */
static void aq_ibv_buf_reclaim(void)
{
    for (struct aq_ibv_peer *peer = aq_ibv_peer_first(); peer != NULL; peer = peer->next_active)
        if (aq_ibv_peer_is_ready(peer))
            (void)aq_ibv_qp_drained(aq_ibv_peer_am_qp(peer));
    (void)aq_ibv_qp_reap_all(aq_ibv_am.net);
}

static struct aq_ibv_buf *aq_ibv_buf_pop(unsigned channel)
{
    struct aq_freelist_item *item;

    aq_lock_acquire(&aq_ibv_bufs[channel].free.lock);
    if (aq_ibv_bufs[channel].free.first == NULL
        && aq_ibv_bufs[channel].count < aq_ibv_bufs[channel].max)
        aq_ibv_buf_grow(channel);
    item = aq_freelist_pop(&aq_ibv_bufs[channel].free);
    aq_lock_release(&aq_ibv_bufs[channel].free.lock);
    return aq_freelist_thing(item, offsetof(struct aq_ibv_buf, item));
}

struct aq_ibv_buf *aq_ibv_buf_take(unsigned channel)
{
    struct aq_ibv_buf *buf = aq_ibv_buf_pop(channel);

    if (AQ_LIKELY(buf != NULL))
        return buf;
    aq_ibv_buf_reclaim();
    return aq_ibv_buf_pop(channel);
}

struct aq_ibv_buf *aq_ibv_buf_take_chain(unsigned channel, unsigned count)
{
    struct aq_ibv_buf *chain = NULL;

    while (count-- > 0) {
        struct aq_ibv_buf *buf = aq_ibv_buf_take(channel);

        if (buf == NULL) {
            if (chain != NULL)
                aq_ibv_buf_done(&chain->done);
            return NULL;
        }
        buf->chain = chain;
        chain = buf;
    }
    return chain;
}

struct aq_ibv_buf *aq_ibv_buf_take_zcopy(unsigned channel)
{
    struct aq_ibv_buf *buf;
    bool may;

    aq_lock_acquire(&aq_ibv_bufs[channel].free.lock);
    if (!aq_ibv_zcopy_allowed(aq_ibv_bufs[channel].zcopy, aq_ibv_bufs[channel].count)
        && aq_ibv_bufs[channel].count < aq_ibv_bufs[channel].max)
        aq_ibv_buf_grow(channel);
    may = aq_ibv_zcopy_allowed(aq_ibv_bufs[channel].zcopy, aq_ibv_bufs[channel].count);
    if (may)
        aq_ibv_bufs[channel].zcopy++;
    aq_lock_release(&aq_ibv_bufs[channel].free.lock);
    if (!may)
        return NULL;
    buf = aq_ibv_buf_take(channel);
    if (buf != NULL) {
        buf->zcopy = true;
        return buf;
    }
    aq_lock_acquire(&aq_ibv_bufs[channel].free.lock);
    aq_ibv_bufs[channel].zcopy--;
    aq_lock_release(&aq_ibv_bufs[channel].free.lock);
    return NULL;
}

void aq_ibv_buf_give(struct aq_ibv_buf *buf)
{
    const unsigned channel = buf->channel;

    aq_lock_acquire(&aq_ibv_bufs[channel].free.lock);
    if (AQ_UNLIKELY(buf->zcopy)) {
        aq_ibv_bufs[channel].zcopy--;
        buf->zcopy = false;
    }
    buf->chain = NULL;
    aq_freelist_push(&aq_ibv_bufs[channel].free, &buf->item);
    aq_lock_release(&aq_ibv_bufs[channel].free.lock);
}
