/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_am.c - rows of active messages: round trips and floods of Short, Medium and Long.
 * Owns      the handlers of these rows
 * Threads   one in every process
 * Uses      bench.h
 *
 * Round trips answer with the same kind and size. Their limit is the cache-line ping-pong, with
 * one memcpy of the payload into shared memory each way. Floods count until the receiver has
 * handled everything; their limit is a stream of cache lines through a ring, with a memcpy of the
 * payload each. Between ranks that share no memory the limits are a datagram there and back, and
 * one send() a message, or MPI_Send and MPI_Recv, and MPI_Isend.
 */
#include "bench.h"

/* --- handlers --- */

static void aq_h_ping_short(gex_Token_t token)
{
    aq_job_get()->handled++;
    gex_AM_ReplyShort0(token, AQ_H_PONG_SHORT, 0);
}

static void aq_h_pong_short(gex_Token_t token)
{
    (void)token;
    aq_job_get()->replies++;
}

static void aq_h_ping_medium(gex_Token_t token, void *buf, size_t nbytes)
{
    struct aq_job *job = aq_job_get();

    if (job->read_payload)
        aq_limit_sum(buf, nbytes);
    job->handled++;
    gex_AM_ReplyMedium0(token, AQ_H_PONG_MEDIUM, job->buffer, nbytes, GEX_EVENT_NOW, 0);
}

static void aq_h_pong_medium(gex_Token_t token, void *buf, size_t nbytes)
{
    struct aq_job *job = aq_job_get();

    (void)token;
    if (job->read_payload)
        aq_limit_sum(buf, nbytes);
    job->replies++;
}

static void aq_h_ping_long(gex_Token_t token, void *buf, size_t nbytes)
{
    struct aq_job *job = aq_job_get();

    (void)buf;
    job->handled++;
    gex_AM_ReplyLong0(token, AQ_H_PONG_LONG, job->buffer, nbytes, job->peer_owner + AQ_POOL_OFFSET,
                      GEX_EVENT_NOW, 0);
}

static void aq_h_pong_long(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token, (void)buf, (void)nbytes;
    aq_job_get()->replies++;
}

static void aq_h_sink_short(gex_Token_t token)
{
    (void)token;
    aq_job_get()->handled++;
}

static void aq_h_sink_payload(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token, (void)buf, (void)nbytes;
    aq_job_get()->handled++;
}

#define ENTRY(index, fn, flags, nargs)                    \
    {                                                     \
        index, (gex_AM_Fn_t)(fn), flags, nargs, NULL, #fn \
    }

void aq_am_register(struct aq_job *job)
{
    gex_AM_Entry_t table[] = {
        ENTRY(AQ_H_PING_SHORT, aq_h_ping_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
        ENTRY(AQ_H_PONG_SHORT, aq_h_pong_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0),
        ENTRY(AQ_H_PING_MEDIUM, aq_h_ping_medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0),
        ENTRY(AQ_H_PONG_MEDIUM, aq_h_pong_medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0),
        ENTRY(AQ_H_PING_LONG, aq_h_ping_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0),
        ENTRY(AQ_H_PONG_LONG, aq_h_pong_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 0),
        ENTRY(AQ_H_SINK_SHORT, aq_h_sink_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
        ENTRY(AQ_H_SINK_MEDIUM, aq_h_sink_payload, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0),
        ENTRY(AQ_H_SINK_LONG, aq_h_sink_payload, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0),
    };

    gex_EP_RegisterHandlers(job->ep, table, sizeof(table) / sizeof(table[0]));
}

/* --- what a row needs before it runs --- */

static void aq_am_prepare(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    struct aq_limit *l = &job->limit;

    (void)iters;
    job->medium = row->size;
    job->read_payload = row->kind == &aq_kind_am_medium_read;
    l->read_payload = job->read_payload;
    if (l->area == NULL)
        return;
    aq_limit_payload(l, job->buffer, row->size, aq_job_shared_pool(job));
    if (row->kind == &aq_kind_am_long_flood)
        l->ring_stride =
            0; /* the sender names the place: always the same one here, as in the subject */
}

static bool aq_am_fits_medium(const struct aq_job *job, const struct aq_row *row)
{
    return row->size <= job->max_medium;
}

static bool aq_am_fits_long(const struct aq_job *job, const struct aq_row *row)
{
    return row->size <= job->max_long && 4 * row->size <= job->pool_size;
}

/* --- limits --- */

static void aq_am_limit_ping(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    (void)row;
    aq_limit_ping(&job->limit, iters);
}

static void aq_am_limit_pong(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    (void)row;
    aq_limit_pong(&job->limit, iters);
}

static void aq_am_limit_send(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    (void)row;
    aq_limit_send(&job->limit, iters);
}

static void aq_am_limit_drain(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    (void)row;
    aq_limit_drain(&job->limit, iters);
}

static void aq_am_limit_shared(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    (void)row;
    aq_limit_shared(&job->limit, iters, job->rank == 0);
}

/* --- subjects --- */

/* The remote side of every row with messages: handle this many more. */
static void aq_am_handle(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    (void)row;
    job->handled_target += iters;
    GASNET_BLOCKUNTIL(job->handled >= job->handled_target);
}

static void aq_am_short(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    uint64_t until = job->replies;

    (void)row;
    for (uint64_t i = 0; i < iters; i++) {
        until++;
        gex_AM_RequestShort0(job->tm, 1, AQ_H_PING_SHORT, 0);
        GASNET_BLOCKUNTIL(job->replies == until);
    }
}

static void aq_am_medium(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    uint64_t until = job->replies;

    for (uint64_t i = 0; i < iters; i++) {
        until++;
        gex_AM_RequestMedium0(job->tm, 1, AQ_H_PING_MEDIUM, job->buffer, row->size, GEX_EVENT_NOW,
                              0);
        GASNET_BLOCKUNTIL(job->replies == until);
    }
}

static void aq_am_long(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    uint64_t until = job->replies;

    for (uint64_t i = 0; i < iters; i++) {
        until++;
        gex_AM_RequestLong0(job->tm, 1, AQ_H_PING_LONG, job->buffer, row->size,
                            job->peer_owner + AQ_POOL_OFFSET, GEX_EVENT_NOW, 0);
        GASNET_BLOCKUNTIL(job->replies == until);
    }
}

static void aq_am_short_flood(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    (void)row;
    for (uint64_t i = 0; i < iters; i++)
        gex_AM_RequestShort0(job->tm, 1, AQ_H_SINK_SHORT, 0);
    aq_job_wait_acks(job);
}

static void aq_am_medium_flood(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++)
        gex_AM_RequestMedium0(job->tm, 1, AQ_H_SINK_MEDIUM, job->buffer, row->size, GEX_EVENT_NOW,
                              0);
    aq_job_wait_acks(job);
}

static void aq_am_long_flood(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++)
        gex_AM_RequestLong0(job->tm, 1, AQ_H_SINK_LONG, job->buffer, row->size,
                            job->peer_owner + AQ_POOL_OFFSET, GEX_EVENT_NOW, 0);
    aq_job_wait_acks(job);
}

/* Everybody sends to everybody else in turn, iters rounds rounded up to whole circles. */
static void aq_am_rate_exchange(struct aq_job *job, uint64_t iters)
{
    uint64_t others = job->size - 1;
    uint64_t circles = (iters + others - 1) / others;

    job->handled_target += circles * others;
    for (uint64_t i = 0; i < circles; i++) {
        for (gex_Rank_t remote = 1; remote < job->size; remote++)
            gex_AM_RequestShort0(job->tm, (job->rank + remote) % job->size, AQ_H_SINK_SHORT, 0);
    }
    GASNET_BLOCKUNTIL(job->handled >= job->handled_target);
}

static void aq_am_rate(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    (void)row;
    aq_am_rate_exchange(job, iters);
    aq_job_wait_acks(job);
}

static void aq_am_rate_peer(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    (void)row;
    aq_am_rate_exchange(job, iters);
}

static bool aq_am_has_peers(const struct aq_job *job, const struct aq_row *row)
{
    (void)row;
    return job->size > 1;
}

#define ROUND_TRIP(variable, row_name, subject_fn, limit_text, fits)          \
    const struct aq_row_kind variable = {                                     \
        .name = row_name,                                                     \
        .limit_name = limit_text,                                             \
        .subject = subject_fn,                                                \
        .subject_peer = aq_am_handle,                                         \
        .limit = aq_am_limit_ping,                                            \
        .limit_peer = aq_am_limit_pong,                                       \
        .prepare = aq_am_prepare,                                             \
        .possible = fits,                                                     \
        .remote = { "UDP ping-pong", aq_remote_ping, aq_remote_pong, false }, \
        .raw = AQ_RAW_PING,                                                   \
    }
#define FLOOD(variable, row_name, subject_fn, limit_text, fits)                        \
    const struct aq_row_kind variable = {                                              \
        .name = row_name,                                                              \
        .limit_name = limit_text,                                                      \
        .subject = subject_fn,                                                         \
        .subject_peer = aq_am_handle,                                                  \
        .limit = aq_am_limit_send,                                                     \
        .limit_peer = aq_am_limit_drain,                                               \
        .prepare = aq_am_prepare,                                                      \
        .possible = fits,                                                              \
        .remote = { "stream", aq_remote_put_stream, aq_remote_put_stream_peer, true }, \
        .raw = AQ_RAW_FLOOD,                                                           \
    }

ROUND_TRIP(aq_kind_am_two_lines, "am_short_two_lines", aq_am_short, "ping-pong, a line each way",
           NULL);
ROUND_TRIP(aq_kind_am_medium, "am_medium", aq_am_medium, "ping-pong + 2 memcpy", aq_am_fits_medium);
ROUND_TRIP(aq_kind_am_medium_read, "am_medium_read", aq_am_medium, "ping-pong + 2 memcpy + read",
           aq_am_fits_medium);
ROUND_TRIP(aq_kind_am_long, "am_long", aq_am_long, "ping-pong + 2 memcpy", aq_am_fits_long);
FLOOD(aq_kind_am_short_flood, "am_short_flood", aq_am_short_flood, "line stream", NULL);
FLOOD(aq_kind_am_medium_flood, "am_medium_flood", aq_am_medium_flood, "line stream + memcpy",
      aq_am_fits_medium);
FLOOD(aq_kind_am_long_flood, "am_long_flood", aq_am_long_flood, "line stream + memcpy",
      aq_am_fits_long);

const struct aq_row_kind aq_kind_am_short = {
    .name = "am_short",
    .limit_name = "line ping-pong",
    .subject = aq_am_short,
    .subject_peer = aq_am_handle,
    .limit = aq_am_limit_shared,
    .limit_peer = aq_am_limit_shared,
    .prepare = aq_am_prepare,
    .remote = { "UDP ping-pong", aq_remote_ping, aq_remote_pong, false },
    .raw = AQ_RAW_PING,
};

const struct aq_row_kind aq_kind_am_rate = {
    .name = "am_rate",
    .subject = aq_am_rate,
    .subject_peer = aq_am_rate_peer,
    .prepare = aq_am_prepare,
    .possible = aq_am_has_peers,
    .everyone = true,
};
