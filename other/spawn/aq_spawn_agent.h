/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_agent.h - the protocol between a host's first rank and its agent.
 * Wire      over a socketpair (SOCK_SEQPACKET): the rank sends struct aq_exchange_request, the
 *           agent answers with one byte when the host's job area holds the job's data
 * How       data are in the job area: in one of two exchange areas, which alternate, or among the
 *           addresses. Each rank of the host writes its contribution to its place, and the agent
 *           adds those of the other hosts
 */
#ifndef AQ_SPAWN_AGENT_H
#define AQ_SPAWN_AGENT_H

#include <stdint.h>

enum aq_exchange_op {
    AQ_EXCHANGE_GATHER =
        1,             /* `chunk` bytes of each rank, without gaps, into exchange area `area` */
    AQ_EXCHANGE_ADDRS, /* `chunk` bytes of each rank, at `offset` of its address */
    AQ_EXCHANGE_BCAST  /* `chunk` bytes of rank `root`, at the beginning of exchange area `area` */
};

struct aq_exchange_request {
    uint32_t op;
    uint32_t area;
    uint32_t offset;
    uint32_t chunk;
    uint32_t root;
};

#endif
