/*
 * aq_ibv_rbuf.c - receive buffers; see aq_ibv_rbuf.h.
 *
 * Owns      the chunks
 * Threads   growing and shrinking: a mutex. Posting again takes no lock of this file: the verbs
 *           library has a lock in each queue
 * Uses      aq_ibv_reg.h, mmap. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "conduits/ibv/aq_ibv_rbuf.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "conduits/ibv/aq_ibv_reg.h"
#include "core/aq_exit.h"

#define AQ_IBV_CHUNK       32u /* buffers */
#define AQ_IBV_CHUNK_BYTES ((size_t)AQ_IBV_CHUNK * AQ_IBV_BUF)

struct aq_ibv_chunk {
    struct aq_ibv_chunk *next, *prev;
    struct aq_ibv_rail *rail;
    struct ibv_mr *mr;
    uint8_t *memory;
    struct aq_ibv_rbuf *reserve; /* list */
    uint32_t reserve_count;
    struct aq_ibv_rbuf bufs[AQ_IBV_CHUNK];
};

static struct {
    pthread_mutex_t mutex;
    struct aq_ibv_chunk
        *chunks[AQ_IBV_RAILS];     /* oldest first: growing fills those, the last become empty */
    uint32_t posted[AQ_IBV_RAILS]; /* or in the hands of handlers: not in reserve */
    uint32_t max;                  /* of all rails: the budget of windows */
    aq_counter count, chunk_count;
} aq_ibv_rbufs AQ_JOB_STATE = { .mutex = PTHREAD_MUTEX_INITIALIZER };

void aq_ibv_rbuf_init(int64_t max)
{
    aq_ibv_rbufs.max = max < 0 ? 0 : max > UINT32_MAX ? UINT32_MAX : (uint32_t)max;
}

uint32_t aq_ibv_rbuf_budget(void)
{
    const uint64_t count = aq_counter_get(&aq_ibv_rbufs.count);

    return count < aq_ibv_rbufs.max ? aq_ibv_rbufs.max - (uint32_t)count : 0;
}

uint64_t aq_ibv_rbuf_bytes(void)
{
    return aq_counter_get(&aq_ibv_rbufs.chunk_count) * AQ_IBV_CHUNK_BYTES;
}

/* --- chunks, under the mutex --- */

static void aq_ibv_chunk_fill(struct aq_ibv_chunk *chunk)
{
    for (uint32_t i = AQ_IBV_CHUNK; i-- > 0;) {
        struct aq_ibv_rbuf *buf = &chunk->bufs[i];

        buf->chunk = chunk;
        buf->bytes = chunk->memory + (size_t)i * AQ_IBV_BUF;
        buf->sge = (struct ibv_sge){ .addr = (uintptr_t)buf->bytes,
                                     .length = AQ_IBV_BUF,
                                     .lkey = chunk->mr->lkey };
        buf->wr =
            (struct ibv_recv_wr){ .wr_id = (uintptr_t)buf, .sg_list = &buf->sge, .num_sge = 1 };
        buf->next = chunk->reserve;
        chunk->reserve = buf;
    }
    chunk->reserve_count = AQ_IBV_CHUNK;
}

static struct aq_ibv_chunk *aq_ibv_chunk_make(struct aq_ibv_rail *rail, char *why, size_t len)
{
    struct aq_ibv_chunk *chunk = calloc(1, sizeof(*chunk)),
                        **at = &aq_ibv_rbufs.chunks[rail->index];

    if (chunk == NULL) {
        snprintf(why, len, "ibv: no memory for receive buffers");
        return NULL;
    }
    chunk->memory =
        mmap(NULL, AQ_IBV_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk->memory == MAP_FAILED) {
        snprintf(why, len, "ibv: no memory for receive buffers: %s", strerror(errno));
        goto free_chunk;
    }
    /* a child must not get the page that the device writes to */
    (void)madvise(chunk->memory, AQ_IBV_CHUNK_BYTES, MADV_DONTFORK);
    chunk->mr = rail->dev->lib->reg_mr(rail->dev->pd, chunk->memory, AQ_IBV_CHUNK_BYTES,
                                       IBV_ACCESS_LOCAL_WRITE);
    if (chunk->mr == NULL) {
        aq_ibv_register_why(why, len, rail->dev, AQ_IBV_CHUNK_BYTES, errno);
        goto unmap;
    }
    chunk->rail = rail;
    aq_ibv_chunk_fill(chunk);
    while (*at != NULL) {
        chunk->prev = *at;
        at = &(*at)->next;
    }
    *at = chunk;
    aq_counter_add(&aq_ibv_rbufs.chunk_count, 1);
    return chunk;
unmap:
    munmap(chunk->memory, AQ_IBV_CHUNK_BYTES);
free_chunk:
    free(chunk);
    return NULL;
}

static void aq_ibv_chunk_free(struct aq_ibv_chunk *chunk)
{
    if (chunk->prev != NULL)
        chunk->prev->next = chunk->next;
    else
        aq_ibv_rbufs.chunks[chunk->rail->index] = chunk->next;
    if (chunk->next != NULL)
        chunk->next->prev = chunk->prev;
    (void)chunk->rail->dev->lib->dereg_mr(chunk->mr);
    munmap(chunk->memory, AQ_IBV_CHUNK_BYTES);
    free(chunk);
    aq_counter_add(&aq_ibv_rbufs.chunk_count, (uint64_t)-1);
}

void aq_ibv_rbuf_fini(void)
{
    for (unsigned rail = 0; rail < AQ_IBV_RAILS; rail++)
        while (aq_ibv_rbufs.chunks[rail] != NULL)
            aq_ibv_chunk_free(aq_ibv_rbufs.chunks[rail]);
}

/* --- posting --- */

static void aq_ibv_rbuf_post(struct aq_ibv_rail *rail, struct ibv_recv_wr *first)
{
    struct ibv_recv_wr *bad;
    const int error = ibv_post_srq_recv(rail->srq, first, &bad);

    if (error != 0 && !aq_exit_in_progress())
        aq_fatal("ibv: port %s:%u takes no receive buffer: %s", rail->dev->name, rail->port,
                 strerror(error));
}

void aq_ibv_rbuf_repost(struct aq_ibv_rail *rail, struct aq_ibv_rbuf *const *bufs, unsigned count)
{
    for (unsigned i = 0; i + 1 < count; i++)
        bufs[i]->wr.next = &bufs[i + 1]->wr;
    bufs[count - 1]->wr.next = NULL;
    aq_ibv_rbuf_post(rail, &bufs[0]->wr);
}

static struct aq_ibv_rbuf *aq_ibv_rbuf_from_reserve(struct aq_ibv_rail *rail)
{
    for (struct aq_ibv_chunk *chunk = aq_ibv_rbufs.chunks[rail->index]; chunk != NULL;
         chunk = chunk->next) {
        struct aq_ibv_rbuf *buf = chunk->reserve;

        if (buf == NULL)
            continue;
        chunk->reserve = buf->next;
        chunk->reserve_count--;
        return buf;
    }
    return NULL;
}

bool aq_ibv_rbuf_grow(struct aq_ibv_rail *rail, uint32_t count, char *why, size_t len)
{
    bool done = true;

    pthread_mutex_lock(&aq_ibv_rbufs.mutex);
    if (aq_ibv_rbufs.posted[rail->index] + count > rail->srq_space) {
        snprintf(
            why, len,
            "ibv: the shared receive queue of port %s:%u, of %u buffers, is too small for so many "
            "peers: run fewer ranks",
            rail->dev->name, rail->port, rail->srq_space);
        done = false;
    }
    for (uint32_t i = 0; done && i < count; i++) {
        struct aq_ibv_rbuf *buf = aq_ibv_rbuf_from_reserve(rail);

        if (buf == NULL && aq_ibv_chunk_make(rail, why, len) != NULL)
            buf = aq_ibv_rbuf_from_reserve(rail);
        if (buf == NULL) {
            done = false; /* what is posted stays posted */
            break;
        }
        buf->wr.next = NULL;
        aq_ibv_rbuf_post(rail, &buf->wr);
        aq_ibv_rbufs.posted[rail->index]++;
        aq_counter_add(&aq_ibv_rbufs.count, 1);
    }
    pthread_mutex_unlock(&aq_ibv_rbufs.mutex);
    return done;
}

void aq_ibv_rbuf_reserve(struct aq_ibv_rail *rail, struct aq_ibv_rbuf *buf)
{
    struct aq_ibv_chunk *chunk = buf->chunk;

    pthread_mutex_lock(&aq_ibv_rbufs.mutex);
    buf->next = chunk->reserve;
    chunk->reserve = buf;
    chunk->reserve_count++;
    aq_ibv_rbufs.posted[rail->index]--;
    aq_counter_add(&aq_ibv_rbufs.count, (uint64_t)-1);
    if (chunk->reserve_count == AQ_IBV_CHUNK && chunk != aq_ibv_rbufs.chunks[rail->index])
        aq_ibv_chunk_free(chunk);
    pthread_mutex_unlock(&aq_ibv_rbufs.mutex);
}

/* --- excess --- */

void aq_ibv_rbuf_excess_add(struct aq_ibv_rail *rail, uint32_t count)
{
    aq_lock_acquire(&rail->excess_lock);
    /* relaxed: written under the lock */
    atomic_store_explicit(&rail->excess,
                          atomic_load_explicit(&rail->excess, memory_order_relaxed) + count,
                          memory_order_relaxed);
    aq_lock_release(&rail->excess_lock);
}

bool aq_ibv_rbuf_excess_take(struct aq_ibv_rail *rail)
{
    uint32_t excess;

    /* relaxed: a hint; what counts is read under the lock */
    if (AQ_LIKELY(atomic_load_explicit(&rail->excess, memory_order_relaxed) == 0))
        return false;
    aq_lock_acquire(&rail->excess_lock);
    excess = atomic_load_explicit(&rail->excess, memory_order_relaxed);
    if (excess != 0)
        atomic_store_explicit(&rail->excess, excess - 1, memory_order_relaxed);
    aq_lock_release(&rail->excess_lock);
    return excess != 0;
}
