/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_env_alias.c - see aq_env_alias.h.
 */
#include "base/aq_env_alias.h"

#include <stdio.h>
#include <string.h>

const char *const aq_env_alias_names[] = {
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

const char *aq_env_alias_find(const char *x, aq_env_getter_t get, struct aq_env_alias *out)
{
    static const char *const prefixes[] = { "GASNET_", "AMUDP_", "" };

    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        char name[AQ_ENV_ALIAS_NAME];
        const char *value;

        snprintf(name, sizeof(name), "%s%s", prefixes[i], x);
        value = get(name);
        if (value == NULL)
            continue;
        if (out->value == NULL) {
            out->value = value;
            strcpy(out->name, name);
        } else if (out->other[0] == '\0' && strcmp(value, out->value) != 0) {
            out->other_value = value;
            strcpy(out->other, name);
        }
    }
    return out->value;
}

bool aq_env_alias_adopt(aq_env_getter_t get, aq_env_setter_t set, aq_env_alias_warn_t warn)
{
    bool any = false;

    for (size_t i = 0; aq_env_alias_names[i] != NULL; i++) {
        char name[AQ_ENV_ALIAS_NAME];
        struct aq_env_alias alias;

        if (aq_env_alias_find(aq_env_alias_names[i], get, &alias) == NULL)
            continue;
        if (warn != NULL && alias.other[0] != '\0')
            warn(&alias);
        snprintf(name, sizeof(name), "GASNET_%s", aq_env_alias_names[i]);
        if (strcmp(name, alias.name) != 0)
            any = set(name, alias.value) || any;
    }
    return any;
}
