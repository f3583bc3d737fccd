/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_udp_info.c - what the udp conduit says about itself.
 */
#include "base/aq_conduit_info.h"
#include "base/aq_env_alias.h"

#include <stddef.h>

/* X of the variables that go by GASNET_X, AMUDP_X and X. */
static const char *const aq_udp_env_names[] = {
    "SPAWNFN",
    "SSH_SERVERS",
    "SSH_CMD",
    "SSH_OPTIONS",
    "SSH_REMOTE_PATH",
    "CSPAWN_CMD",
    "CSPAWN_SERVERS",
    "CSPAWN_ROUTE_OUTPUT",
    "ROUTE_OUTPUT",
    "LINEBUFFERSZ",
    "NETWORKDEPTH",
    "RECVDEPTH",
    "SENDDEPTH",
    "SOCKETBUFFER_INITIAL",
    "SOCKETBUFFER_MAX",
    "REQUESTTIMEOUT_MAX",
    "REQUESTTIMEOUT_INITIAL",
    "REQUESTTIMEOUT_BACKOFF",
    "MASTERIP",
    "WORKERIP",
    "WORKER_RANK",
    "ENV_CMD",
    "SPAWN_VERBOSE",
    "VERBOSEENV",
    "FS_SYNC",
    "FAULT_RATE",
    "FREEZE",
    NULL,
};

static const struct aq_env_aliases aq_udp_env_aliases = { "AMUDP_", aq_udp_env_names };

extern const struct aq_conduit_info aq_udp_info;
const struct aq_conduit_info aq_udp_info = {
    .name = "udp",
    .about = "any Ethernet: reliable messages over UDP",
    .starts_itself = true,
    .command = "amudprun",
    .aliases = &aq_udp_env_aliases,
};
