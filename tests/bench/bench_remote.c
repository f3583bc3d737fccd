/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_remote.c - rows between ranks that share no memory: their limits over sockets, streams of
 * puts and gets, and the stream that is measured while datagrams are lost.
 * Owns      nothing
 * Threads   one in every process
 * Uses      bench.h, bench_wire.h, bench_raw.h
 *
 * Over udp the limits are sockets, over mpi MPI, over ibv verbs. Before a limit the other rank says
 * over these that it listens; until then rank 0 stays in the library, so that the command that asks
 * for it is certain to arrive. While a limit runs, neither side is in the library.
 *
 * A stream keeps AQ_STREAM_BYTES under way, or AQ_STREAM_MAX operations if they are small.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define AQ_STREAM_BYTES ((uint64_t)4 << 20)
#define AQ_STREAM_MIN   2
#define AQ_STREAM_MAX   64

#define AQ_LOSS_SIZE ((size_t)1 << 20)
#define AQ_LOSS_NS \
    4e8 /* one measurement of the stream under loss: long enough for some hundred losses */

/* --- sockets --- */

static struct aq_wire_address aq_remote_address;
static volatile unsigned aq_remote_addresses;

static void aq_h_wire(gex_Token_t token, gex_AM_Arg_t host, gex_AM_Arg_t message,
                      gex_AM_Arg_t stream, gex_AM_Arg_t space)
{
    (void)token;
    aq_remote_address = (struct aq_wire_address){ (uint32_t)host, (uint16_t)message,
                                                  (uint16_t)stream, (uint32_t)space };
    aq_remote_addresses++;
}

static bool aq_remote_same_host(gex_Rank_t peer)
{
    gex_RankInfo_t *info;
    gex_Rank_t count;

    gex_System_QueryHostInfo(&info, &count, NULL);
    for (gex_Rank_t i = 0; i < count; i++) {
        if (info[i].gex_jobrank == peer)
            return true;
    }
    return false;
}

/* The address that this host is reached at: the first interface that is up and no loopback. */
static uint32_t aq_remote_host(void)
{
    uint32_t host = htonl(INADDR_LOOPBACK);
    struct ifaddrs *all;

    if (getifaddrs(&all) != 0)
        return host;
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        struct sockaddr_in address;

        if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_INET
            || (i->ifa_flags & IFF_LOOPBACK) != 0 || (i->ifa_flags & IFF_UP) == 0)
            continue;
        memcpy(&address, i->ifa_addr, sizeof(address));
        host = address.sin_addr.s_addr;
        break;
    }
    freeifaddrs(all);
    return host;
}

void aq_remote_start(struct aq_job *job)
{
    gex_AM_Entry_t entry = {
        AQ_H_WIRE, (gex_AM_Fn_t)aq_h_wire, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 4, NULL, "wire"
    };
    gex_Rank_t peer = job->rank == 0 ? 1 : 0;
    struct aq_wire_address self = { 0, 0, 0, 0 };
    size_t largest = MIN(job->pool_size, (size_t)16 << 20);
    uint32_t host;

    job->remote = job->peer_local == NULL;
    if (job->options->raw) {
        aq_raw_start(job, largest);
        return;
    }
    gex_EP_RegisterHandlers(job->ep, &entry, 1);
    gex_Event_Wait(gex_Coll_BarrierNB(job->tm, 0));
    if (!job->remote || job->rank > 1)
        return;
    host = aq_remote_same_host(peer) ? htonl(INADDR_LOOPBACK) : aq_remote_host();
    if (aq_wire_open(&job->wire, host, largest, &self) != 0)
        perror("aq-bench: sockets for the limits");
    gex_AM_RequestShort4(job->tm, peer, AQ_H_WIRE, 0, self.host, self.message_port,
                         self.stream_port, self.space);
    GASNET_BLOCKUNTIL(aq_remote_addresses > 0);
    if (self.message_port != 0 && aq_remote_address.message_port != 0)
        job->wired = aq_wire_connect(&job->wire, &aq_remote_address) == 0;
}

/* --- what sockets, MPI and verbs have in common --- */

bool aq_remote_possible(const struct aq_job *job, const struct aq_row *row)
{
    if (job->options->raw)
        return job->raw != NULL && row->kind->raw != AQ_RAW_NONE
               && job->raw->ways(row->kind->raw, row->size) != 0;
    return job->wired && row->kind->remote.run != NULL;
}

unsigned aq_remote_ways(const struct aq_job *job, const struct aq_row *row)
{
    if (job->raw != NULL)
        return job->raw->ways(row->kind->raw, row->size);
    return row->kind->remote.stream && row->size > AQ_WIRE_SMALL ? job->wire.count : 1;
}

void aq_remote_take_way(struct aq_job *job, unsigned way)
{
    if (job->raw != NULL)
        job->raw_way = way;
    else
        job->wire.way = way;
}

void aq_remote_name(const struct aq_job *job, const struct aq_row *row, char *buf, size_t size)
{
    const char *name = row->kind->remote.name;

    if (job->raw != NULL)
        snprintf(buf, size, "%s",
                 job->raw->name(row->kind->raw, aq_remote_ways(job, row) > 1 ? job->raw_way : 0));
    else if (aq_remote_ways(job, row) > 1)
        aq_wire_way_name(&job->wire, buf, size);
    else
        snprintf(buf, size, "%s", strcmp(name, "stream") == 0 ? "one send() each" : name);
}

void aq_remote_run(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    if (job->raw != NULL)
        job->raw->run(row->kind->raw, aq_remote_ways(job, row) > 1 ? job->raw_way : 0, row->size,
                      iters);
    else if (job->rank == 0)
        row->kind->remote.run(job, row, iters);
    else
        row->kind->remote.peer(job, row, iters);
}

void aq_remote_ready(struct aq_job *job)
{
    if (job->raw != NULL)
        job->raw->ready();
    else
        aq_wire_ready(&job->wire);
}

bool aq_remote_is_ready(struct aq_job *job)
{
    return job->raw != NULL ? job->raw->is_ready() : aq_wire_is_ready(&job->wire);
}

void aq_remote_forget(struct aq_job *job)
{
    if (job->raw == NULL)
        aq_wire_forget(&job->wire);
}

/* --- limits over sockets --- */

void aq_remote_ping(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    aq_wire_ping(&job->wire, row->size, iters);
}

void aq_remote_pong(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    aq_wire_pong(&job->wire, row->size, iters);
}

void aq_remote_exchange(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    aq_wire_exchange(&job->wire, row->size, iters);
}

void aq_remote_flood(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    aq_wire_flood(&job->wire, row->size, iters);
}

void aq_remote_drain(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    aq_wire_drain(&job->wire, row->size, iters);
}

/* Up to here an operation is one message, above it is a stream. */
static bool aq_remote_small(const struct aq_row *row)
{
    return row->size <= AQ_WIRE_SMALL;
}

/* Blocking: the next begins when the last has arrived. */
void aq_remote_put(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    if (aq_remote_small(row))
        aq_wire_put(&job->wire, row->size, iters);
    else
        aq_wire_send(&job->wire, row->size, iters, true, false);
}

void aq_remote_put_peer(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    if (aq_remote_small(row))
        aq_wire_put_peer(&job->wire, row->size, iters);
    else
        aq_wire_receive(&job->wire, row->size, iters, true, false);
}

void aq_remote_get(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    if (aq_remote_small(row))
        aq_wire_get(&job->wire, row->size, iters);
    else
        aq_wire_receive(&job->wire, row->size, iters, true, true);
}

void aq_remote_get_peer(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    if (aq_remote_small(row))
        aq_wire_get_peer(&job->wire, row->size, iters);
    else
        aq_wire_send(&job->wire, row->size, iters, true, true);
}

void aq_remote_put_stream(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    if (aq_remote_small(row))
        aq_wire_flood(&job->wire, row->size, iters);
    else
        aq_wire_send(&job->wire, row->size, iters, false, false);
}

void aq_remote_put_stream_peer(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    if (aq_remote_small(row))
        aq_wire_drain(&job->wire, row->size, iters);
    else
        aq_wire_receive(&job->wire, row->size, iters, false, false);
}

void aq_remote_get_stream(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    aq_remote_put_stream_peer(job, row, iters);
}

void aq_remote_get_stream_peer(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    aq_remote_put_stream(job, row, iters);
}

/* --- streams --- */

static uint64_t aq_stream_window(uint64_t size)
{
    uint64_t window = AQ_STREAM_BYTES / size;

    return window < AQ_STREAM_MIN ? AQ_STREAM_MIN : MIN(window, AQ_STREAM_MAX);
}

/* What is measured is what goes on while as much is under way as may be. */
static uint64_t aq_stream_min(uint64_t size)
{
    return 2 * aq_stream_window(size);
}

static gex_Event_t aq_stream_one(struct aq_job *job, size_t size, bool put)
{
    unsigned char *remote_addr = job->peer_owner + AQ_POOL_OFFSET;

    return put ? gex_RMA_PutNB(job->tm, 1, remote_addr, job->buffer, size, GEX_EVENT_DEFER, 0)
               : gex_RMA_GetNB(job->tm, job->buffer, 1, remote_addr, size, 0);
}

static void aq_stream(struct aq_job *job, size_t size, uint64_t iters, bool put)
{
    gex_Event_t events[AQ_STREAM_MAX];
    uint64_t window = aq_stream_window(size);

    for (uint64_t i = 0; i < iters; i++) {
        if (i >= window)
            gex_Event_Wait(events[i % window]);
        events[i % window] = aq_stream_one(job, size, put);
    }
    gex_Event_WaitAll(events, (size_t)MIN(iters, window), 0);
}

static void aq_put_stream(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    aq_stream(job, row->size, iters, true);
}

static void aq_get_stream(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    aq_stream(job, row->size, iters, false);
}

static bool aq_stream_fits(const struct aq_job *job, const struct aq_row *row)
{
    return row->size <= job->pool_size;
}

const struct aq_row_kind aq_kind_put_stream = {
    .name = "put_stream",
    .subject = aq_put_stream,
    .possible = aq_stream_fits,
    .remote = { "stream", aq_remote_put_stream, aq_remote_put_stream_peer, true },
    .raw = AQ_RAW_PUT_STREAM,
    .min = aq_stream_min,
};

const struct aq_row_kind aq_kind_get_stream = {
    .name = "get_stream",
    .subject = aq_get_stream,
    .possible = aq_stream_fits,
    .remote = { "stream", aq_remote_get_stream, aq_remote_get_stream_peer, true },
    .raw = AQ_RAW_GET_STREAM,
    .min = aq_stream_min,
};

void aq_remote_stream(struct aq_job *job)
{
    double start, ns = 0;
    uint64_t puts = 0;
    FILE *report;

    if (job->rank != 0)
        return;
    aq_stream(job, AQ_LOSS_SIZE, 16, true);
    start = aq_bench_now();
    while (ns < AQ_LOSS_NS) {
        aq_stream(job, AQ_LOSS_SIZE, 32, true);
        puts += 32;
        ns = aq_bench_now() - start;
    }
    report = job->options->report != NULL ? fopen(job->options->report, "w") : stdout;
    if (report == NULL)
        return;
    fprintf(report, "STREAM\t%.6g\n", ns / (double)puts);
    if (report != stdout)
        fclose(report);
}
