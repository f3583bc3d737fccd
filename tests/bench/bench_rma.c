/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_rma.c - rows of put and get: blocking, NB, NBI, values; 8-byte latency and rate; warm and
 * cold.
 * Owns      nothing
 * Threads   one in every process; rank 0 works, rank 1 waits in the library
 * Uses      bench.h
 *
 * The 8-byte rows here measure the latency of the inlined call itself: a chain, where the place of
 * the next operation is read from what this one moved, so that every cycle the library adds between
 * the address and the data counts in full. Both sides are written alike: the same loop over the
 * same 64 addresses, each loaded at run time, with a compiler barrier after every operation, so
 * that nothing read from memory is kept across and nothing is merged or vectorised. The peer's rank
 * is a variable that does not change within the loop; bench_client.c has the rows in which it does,
 * and the rates. Rows with a size pass it at run time to both the library and memcpy.
 *
 * Between ranks that share no memory a blocking operation is compared with a datagram there and one
 * back, above 32 KiB with a stream there and the word that it has arrived; operations that wait
 * every 16 with streams. Over MPI the limits are MPI_Put and MPI_Get with a flush each, or after
 * many.
 */
#include "bench.h"

#include <string.h>

#define AQ_WINDOW 16 /* operations between two waits in the NB and NBI rows */

static bool aq_rma_fits(const struct aq_job *job, const struct aq_row *row)
{
    bool cold = row->kind == &aq_kind_put_cold || row->kind == &aq_kind_get_cold;

    /* a quick run has a pool that caches hold */
    return row->size <= job->pool_size && !(cold && job->options->quick);
}

/* --- 8 bytes --- */

/*
 * What lies in the slots: put and pair chains read the number of the next slot; the chain of gets
 * reads the next address itself, as its owner names it for the library and as mapped here for the
 * limit.
 */
static void aq_rma_chain_prepare(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    bool chase = row->kind == &aq_kind_get8_latency || row->kind == &aq_kind_getval8;

    (void)iters;
    if (job->rank != 0)
        return;
    for (uint64_t i = 0; i < AQ_SLOTS; i++) {
        const struct aq_slot *next = &job->slots[job->slots[i].next];
        uint64_t value = chase ? (uint64_t)(uintptr_t)next->owner : (uint64_t)(next - job->slots);

        gex_RMA_PutBlockingVal(job->tm, job->slots[i].rank, job->slots[i].owner, value, 8, 0);
        if (job->slots[i].twin != NULL)
            *(uint64_t *)job->slots[i].twin = (uint64_t)(uintptr_t)next->twin;
    }
}

/* The word just put is read back through a pointer of its own, so that the processor cannot
 * tell from the registers alone that it is the same word, and says which slot comes next. */
static void aq_put8_latency(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_slot *slots = job->slots;
    gex_TM_t tm = job->tm;
    gex_Rank_t rank = slots[0].rank;
    uint64_t at = 0;

    (void)row;
    for (uint64_t i = 0; i < iters; i++) {
        const struct aq_slot *slot = &slots[at];

        gex_RMA_PutBlocking(tm, rank, slot->owner, &slot->next, 8, 0);
        aq_limit_compiler_barrier();
        at = *(const uint64_t *)slot->again;
    }
    job->word = at;
}

/* The store finds its place as the library does, by a base and an offset: processors forward a
 * store faster to a load if the same register holds the address of both, which is not the question.
 * */
static void aq_put8_latency_limit(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_slot *slots = job->slots;
    uint64_t at = 0;

    (void)row;
    for (uint64_t i = 0; i < iters; i++) {
        const struct aq_slot *slot = &slots[at];

        memcpy(job->peer_local + slot->offset, &slot->next, 8);
        aq_limit_compiler_barrier();
        at = *(const uint64_t *)slot->again;
    }
    job->word = at;
}

/* A list in the peer's memory: what one get brings is the address of the next. */
static void aq_get8_latency(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_slot *slots = job->slots;
    gex_TM_t tm = job->tm;
    gex_Rank_t rank = slots[0].rank;

    (void)row;
    job->word = (uint64_t)(uintptr_t)slots[0].owner;
    for (uint64_t i = 0; i < iters; i++) {
        gex_RMA_GetBlocking(tm, &job->word, rank, (void *)(uintptr_t)job->word, 8, 0);
        aq_limit_compiler_barrier();
    }
}

static void aq_get8_latency_limit(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_slot *slots = job->slots;

    (void)row;
    job->word = (uint64_t)(uintptr_t)slots[0].twin;
    for (uint64_t i = 0; i < iters; i++) {
        memcpy(&job->word, (void *)(uintptr_t)job->word, 8);
        aq_limit_compiler_barrier();
    }
}

static void aq_getval8(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_slot *slots = job->slots;
    uint64_t at = (uint64_t)(uintptr_t)slots[0].owner;
    gex_TM_t tm = job->tm;
    gex_Rank_t rank = slots[0].rank;

    (void)row;
    for (uint64_t i = 0; i < iters; i++) {
        at = gex_RMA_GetBlockingVal(tm, rank, (void *)(uintptr_t)at, 8, 0);
        aq_limit_compiler_barrier();
    }
    job->word = at;
}

static void aq_getval8_limit(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    uint64_t at = (uint64_t)(uintptr_t)job->slots[0].twin;

    (void)row;
    for (uint64_t i = 0; i < iters; i++) {
        at = *(const uint64_t *)(uintptr_t)at;
        aq_limit_compiler_barrier();
    }
    job->word = at;
}

/* --- any size, warm or walking through the pool --- */

static void aq_rma_prepare(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    bool cold = row->kind == &aq_kind_put_cold || row->kind == &aq_kind_get_cold;

    (void)iters;
    job->pool_at = 0;
    job->pool_step = !cold ? 0 : row->size > 4096 ? row->size : 4096;
}

/* Where in the pool, and in the private buffer, the next operation works. */
static inline size_t aq_rma_next(struct aq_job *job, uint64_t size)
{
    size_t at = job->pool_at;

    job->pool_at += job->pool_step;
    if (job->pool_at + size > job->pool_size)
        job->pool_at = 0;
    return at;
}

static void aq_put(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    unsigned char *remote_addr = job->peer_owner + AQ_POOL_OFFSET;

    for (uint64_t i = 0; i < iters; i++) {
        size_t at = aq_rma_next(job, row->size);

        gex_RMA_PutBlocking(job->tm, 1, remote_addr + at, job->buffer + at, row->size, 0);
        aq_limit_compiler_barrier();
    }
}

static void aq_put_limit(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    unsigned char *remote_addr = job->peer_local + AQ_POOL_OFFSET;

    for (uint64_t i = 0; i < iters; i++) {
        size_t at = aq_rma_next(job, row->size);

        memcpy(remote_addr + at, job->buffer + at, row->size);
        aq_limit_compiler_barrier();
    }
}

static void aq_get(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    unsigned char *remote_addr = job->peer_owner + AQ_POOL_OFFSET;

    for (uint64_t i = 0; i < iters; i++) {
        size_t at = aq_rma_next(job, row->size);

        gex_RMA_GetBlocking(job->tm, job->buffer + at, 1, remote_addr + at, row->size, 0);
        aq_limit_compiler_barrier();
    }
}

static void aq_get_limit(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    unsigned char *remote_addr = job->peer_local + AQ_POOL_OFFSET;

    for (uint64_t i = 0; i < iters; i++) {
        size_t at = aq_rma_next(job, row->size);

        memcpy(job->buffer + at, remote_addr + at, row->size);
        aq_limit_compiler_barrier();
    }
}

static void aq_put_nb(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    unsigned char *remote_addr = job->peer_owner + AQ_POOL_OFFSET;
    gex_Event_t events[AQ_WINDOW];

    for (uint64_t i = 0; i < iters; i += AQ_WINDOW) {
        size_t n = iters - i < AQ_WINDOW ? (size_t)(iters - i) : AQ_WINDOW;

        for (size_t k = 0; k < n; k++) {
            events[k] =
                gex_RMA_PutNB(job->tm, 1, remote_addr, job->buffer, row->size, GEX_EVENT_DEFER, 0);
            aq_limit_compiler_barrier();
        }
        gex_Event_WaitAll(events, n, 0);
    }
}

static void aq_get_nb(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    unsigned char *remote_addr = job->peer_owner + AQ_POOL_OFFSET;
    gex_Event_t events[AQ_WINDOW];

    for (uint64_t i = 0; i < iters; i += AQ_WINDOW) {
        size_t n = iters - i < AQ_WINDOW ? (size_t)(iters - i) : AQ_WINDOW;

        for (size_t k = 0; k < n; k++) {
            events[k] = gex_RMA_GetNB(job->tm, job->buffer, 1, remote_addr, row->size, 0);
            aq_limit_compiler_barrier();
        }
        gex_Event_WaitAll(events, n, 0);
    }
}

static void aq_put_nbi(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    unsigned char *remote_addr = job->peer_owner + AQ_POOL_OFFSET;

    for (uint64_t i = 0; i < iters; i++) {
        gex_RMA_PutNBI(job->tm, 1, remote_addr, job->buffer, row->size, GEX_EVENT_DEFER, 0);
        aq_limit_compiler_barrier();
        if (i % AQ_WINDOW == AQ_WINDOW - 1)
            gex_NBI_Wait(GEX_EC_PUT, 0);
    }
    gex_NBI_Wait(GEX_EC_PUT, 0);
}

static void aq_get_nbi(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    unsigned char *remote_addr = job->peer_owner + AQ_POOL_OFFSET;

    for (uint64_t i = 0; i < iters; i++) {
        gex_RMA_GetNBI(job->tm, job->buffer, 1, remote_addr, row->size, 0);
        aq_limit_compiler_barrier();
        if (i % AQ_WINDOW == AQ_WINDOW - 1)
            gex_NBI_Wait(GEX_EC_GET, 0);
    }
    gex_NBI_Wait(GEX_EC_GET, 0);
}

#define EIGHT(variable, row_name, subject_fn, limit_text) \
    const struct aq_row_kind variable = {                 \
        .name = row_name,                                 \
        .limit_name = limit_text,                         \
        .subject = subject_fn,                            \
        .limit = subject_fn##_limit,                      \
        .prepare = aq_rma_chain_prepare,                  \
    }
#define SIZED(variable, row_name, subject_fn, limit_fn, ...) \
    const struct aq_row_kind variable = {                    \
        .name = row_name,                                    \
        .limit_name = "memcpy",                              \
        .subject = subject_fn,                               \
        .limit = limit_fn,                                   \
        .prepare = aq_rma_prepare,                           \
        .possible = aq_rma_fits,                             \
        __VA_ARGS__,                                         \
    }
#define BLOCKING_PUT \
    .raw = AQ_RAW_PUT, .remote = { "UDP there and back", aq_remote_put, aq_remote_put_peer, true }
#define BLOCKING_GET \
    .raw = AQ_RAW_GET, .remote = { "UDP there and back", aq_remote_get, aq_remote_get_peer, true }
#define MANY_PUTS             \
    .raw = AQ_RAW_PUT_STREAM, \
    .remote = { "stream", aq_remote_put_stream, aq_remote_put_stream_peer, true }
#define MANY_GETS             \
    .raw = AQ_RAW_GET_STREAM, \
    .remote = { "stream", aq_remote_get_stream, aq_remote_get_stream_peer, true }

EIGHT(aq_kind_put8_latency, "put8_latency", aq_put8_latency, "inlined 8 B memcpy");
EIGHT(aq_kind_get8_latency, "get8_latency", aq_get8_latency, "inlined 8 B memcpy");
EIGHT(aq_kind_getval8, "getval8_latency", aq_getval8, "load through a pointer");

SIZED(aq_kind_put, "put", aq_put, aq_put_limit, BLOCKING_PUT);
SIZED(aq_kind_put_cold, "put_cold", aq_put, aq_put_limit, BLOCKING_PUT);
SIZED(aq_kind_put_nb, "put_nb", aq_put_nb, aq_put_limit, MANY_PUTS);
SIZED(aq_kind_put_nbi, "put_nbi", aq_put_nbi, aq_put_limit, MANY_PUTS);
SIZED(aq_kind_get, "get", aq_get, aq_get_limit, BLOCKING_GET);
SIZED(aq_kind_get_cold, "get_cold", aq_get, aq_get_limit, BLOCKING_GET);
SIZED(aq_kind_get_nb, "get_nb", aq_get_nb, aq_get_limit, MANY_GETS);
SIZED(aq_kind_get_nbi, "get_nbi", aq_get_nbi, aq_get_limit, MANY_GETS);
