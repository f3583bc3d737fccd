/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_agent.c - ranks of a job on several hosts, started by gasnetrun's agents.
 * Owns      the connection of the host's first rank with its agent
 * Threads   one, at start; lookup from any
 * How       the ranks of a host write their data to the job area. The first rank asks the agent,
 *           which exchanges it with the other hosts through its tree and writes the data of all
 *           ranks to the job area
 * Uses      aq_spawn_agent.h; the rest is as for ranks on one host (aq_spawn_fork.c)
 */
#include "other/spawn/aq_spawn_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "other/spawn/aq_spawn_provider.h"

static uint32_t aq_agent_area; /* area of the next exchange */

/* The job is shutting down, or its agent has ended: another process will end this one. */
static _Noreturn void aq_agent_park(void)
{
    for (;;)
        pause();
}

/* the first rank asks the agent for the other hosts' data */
static void aq_agent_ask(struct aq_spawn_state *st, const struct aq_exchange_request *r)
{
    char done;
    ssize_t rc;

    if (st->info.host_rank != 0)
        return;
    do
        rc = send(st->jobarea->link_fd, r, sizeof(*r), MSG_NOSIGNAL);
    while (rc < 0 && errno == EINTR);
    if (rc != (ssize_t)sizeof(*r))
        aq_agent_park();
    aq_jobarea_note_wait(st->jobarea, 0, AQ_WAIT_START, AQ_WAIT_ANYONE);
    do
        rc = recv(st->jobarea->link_fd, &done, 1, 0);
    while (rc < 0 && errno == EINTR);
    if (rc != 1)
        aq_agent_park();
    aq_jobarea_note_done(st->jobarea, 0);
}

/* All ranks of the host have written; after this, the data of all ranks of the job can be read. */
static int aq_agent_round(struct aq_spawn_state *st, const struct aq_exchange_request *r)
{
    int rc = aq_spawn_host_fence();

    if (rc != AQ_OK)
        return rc;
    aq_agent_ask(st, r);
    return aq_spawn_host_fence();
}

/* Two areas alternate: a rank may write its next data while another still reads the last. */
static char *aq_agent_next_area(struct aq_spawn_state *st, uint32_t *area_out)
{
    *area_out = aq_agent_area;
    aq_agent_area ^= 1;
    return (char *)st->jobarea + st->jobarea->exchange_offset[*area_out];
}

static int aq_agent_allgather(struct aq_spawn_state *st, const void *own_data, size_t len,
                              void *all)
{
    size_t space = st->jobarea->exchange_bytes / st->info.size;
    int rc = AQ_OK;

    for (size_t done = 0; done < len && rc == AQ_OK; done += space) {
        size_t now = len - done < space ? len - done : space;
        struct aq_exchange_request r = { .op = AQ_EXCHANGE_GATHER, .chunk = (uint32_t)now };
        char *base = aq_agent_next_area(st, &r.area);

        memcpy(base + st->info.rank * now, (const char *)own_data + done, now);
        rc = aq_agent_round(st, &r);
        for (uint32_t i = 0; i < st->info.size && rc == AQ_OK; i++)
            memcpy((char *)all + i * len + done, base + i * now, now);
    }
    return rc;
}

static int aq_agent_bcast(struct aq_spawn_state *st, void *buf, size_t len, uint32_t root)
{
    size_t space = st->jobarea->exchange_bytes;
    int rc = AQ_OK;

    for (size_t done = 0; done < len && rc == AQ_OK; done += space) {
        size_t now = len - done < space ? len - done : space;
        struct aq_exchange_request r = { .op = AQ_EXCHANGE_BCAST,
                                         .chunk = (uint32_t)now,
                                         .root = root };
        char *base = aq_agent_next_area(st, &r.area);

        if (st->info.rank == root)
            memcpy(base, (char *)buf + done, now);
        rc = aq_agent_round(st, &r);
        if (rc == AQ_OK)
            memcpy((char *)buf + done, base, now);
    }
    return rc;
}

static char *aq_agent_addr(const struct aq_spawn_state *st, uint32_t rank)
{
    return (char *)st->jobarea + st->jobarea->addrs_offset + (size_t)rank * AQ_JOBAREA_ADDR_MAX;
}

static int aq_agent_publish(struct aq_spawn_state *st, const void *address, size_t len)
{
    /* a message has space for so much of each address */
    const size_t space = st->jobarea->exchange_bytes / st->info.size;
    int rc = AQ_OK;

    memcpy(aq_agent_addr(st, st->info.rank), address, len);
    for (size_t done = 0; done < len && rc == AQ_OK; done += space) {
        struct aq_exchange_request r = {
            .op = AQ_EXCHANGE_ADDRS,
            .offset = (uint32_t)done,
            .chunk = (uint32_t)(len - done < space ? len - done : space),
        };

        rc = aq_agent_round(st, &r);
    }
    return rc;
}

static int aq_agent_lookup(struct aq_spawn_state *st, uint32_t rank, void *addr_out, size_t len)
{
    memcpy(addr_out, aq_agent_addr(st, rank), len);
    return AQ_OK;
}

int aq_spawn_agent_fill(struct aq_spawn_state *st, uint32_t slot)
{
    struct aq_jobarea *jobarea = st->jobarea;

    st->host_ranks = malloc(jobarea->size * sizeof(*st->host_ranks));
    if (st->host_ranks == NULL)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory for a list of %u ranks", jobarea->size);
    for (uint32_t i = 0; i < jobarea->size; i++)
        st->host_ranks[i] = jobarea->rank_base + i;
    st->info = (struct aq_spawn_info){
        .rank = jobarea->rank_base + slot,
        .size = jobarea->job_size,
        .host_rank = slot,
        .host_size = jobarea->size,
        .host_index = jobarea->host_index,
        .host_count = jobarea->host_count,
        .host_ranks = st->host_ranks,
        .host_of =
            (const uint32_t *)(const void *)((const char *)jobarea + jobarea->host_of_offset),
    };
    memcpy(st->job_key, jobarea->job_key, sizeof(st->job_key));
    if (slot == 0 && fcntl(jobarea->link_fd, F_SETFD, FD_CLOEXEC) != 0)
        return aq_fail(AQ_ERR_RESOURCE,
                       "spawn: inherited descriptor %d was closed by a script between gasnetrun's "
                       "agent and the program",
                       jobarea->link_fd);
    st->provider = &aq_spawn_agent_provider;
    return AQ_OK;
}

const struct aq_spawn_provider aq_spawn_agent_provider = {
    .name = "agent",
    .offered = NULL, /* aq_spawn_fork.c decides */
    .join = NULL,
    .allgather = aq_agent_allgather,
    .bcast = aq_agent_bcast,
    .publish = aq_agent_publish,
    .lookup = aq_agent_lookup,
    .notify = aq_spawn_fork_notify,
    .finish = aq_spawn_fork_shutdown,
};
