/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_kvs_data.c - data exchange between the ranks of several hosts, by the launcher's store.
 * Threads   aq_spawn_kvs_lookup(): any; the rest: one
 * How       a host's ranks write their contributions to the job area. Its first rank puts the whole
 *           into the store, in chunks, fetches those of the other hosts and writes them to the job
 *           area
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "other/spawn/aq_spawn_kvs.h"
#include "other/spawn/aq_spawn_monitor.h"

#define AQ_KVS_LOOKUP_S 30 /* as long as the conduit waits for a peer */

void aq_kvs_to_hex(char *text, const uint8_t *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * len] = '\0';
}

static int aq_kvs_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int aq_kvs_from_hex(uint8_t *bytes, size_t len, const char *text)
{
    if (strlen(text) != 2 * len)
        return AQ_ERR_ARG;
    for (size_t i = 0; i < len; i++) {
        int high = aq_kvs_digit(text[2 * i]), low = aq_kvs_digit(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return AQ_ERR_ARG;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return AQ_OK;
}

static void aq_kvs_name_chunk(char key[32], uint32_t exchange, size_t at)
{
    snprintf(key, 32, "x%u.%zu", exchange, at);
}

static int aq_kvs_put_bytes(uint32_t exchange, const uint8_t *bytes, size_t len)
{
    char text[AQ_KVS_VALUE], key[32];
    int rc = AQ_OK;

    for (size_t at = 0; at < len && rc == AQ_OK; at += AQ_KVS_CHUNK) {
        aq_kvs_name_chunk(key, exchange, at);
        aq_kvs_to_hex(text, bytes + at, len - at < AQ_KVS_CHUNK ? len - at : AQ_KVS_CHUNK);
        rc = aq_kvs_me.ops->put(key, text, AQ_KVS_JOB);
    }
    return rc;
}

static int aq_kvs_get_bytes(uint32_t rank, uint32_t exchange, uint8_t *bytes, size_t len)
{
    char text[AQ_KVS_VALUE], key[32];
    int rc = AQ_OK;

    for (size_t at = 0; at < len && rc == AQ_OK; at += AQ_KVS_CHUNK) {
        aq_kvs_name_chunk(key, exchange, at);
        rc = aq_kvs_me.ops->get(rank, key, text, AQ_KVS_GET_S);
        if (rc == AQ_OK
            && aq_kvs_from_hex(bytes + at, len - at < AQ_KVS_CHUNK ? len - at : AQ_KVS_CHUNK, text)
                   != AQ_OK)
            rc = aq_fail(AQ_ERR_SYS, "spawn: the launcher has damaged what rank %u put", rank);
    }
    return rc;
}

/* the first rank of each host, and the number of its ranks */
struct aq_kvs_host {
    uint32_t first, size;
};

static struct aq_kvs_host *aq_kvs_list_hosts(const struct aq_spawn_info *info)
{
    struct aq_kvs_host *hosts = calloc(info->host_count, sizeof(*hosts));

    for (uint32_t i = info->size; hosts != NULL && i-- > 0;) {
        hosts[info->host_of[i]].first = i;
        hosts[info->host_of[i]].size++;
    }
    return hosts;
}

/* copies what host h has put to the places of its ranks in all[] */
static int aq_kvs_fetch_host(const struct aq_spawn_info *info, uint32_t h,
                             const struct aq_kvs_host *host, uint32_t exchange, size_t len,
                             uint8_t *all)
{
    uint8_t *block = malloc(host->size * len);
    size_t at = 0;
    int rc;

    if (block == NULL)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory for %zu bytes", host->size * len);
    rc = aq_kvs_get_bytes(host->first, exchange, block, host->size * len);
    for (uint32_t i = host->first; i < info->size && rc == AQ_OK; i++)
        if (info->host_of[i] == h)
            memcpy(all + i * len, block + len * at++, len);
    free(block);
    return rc;
}

static int aq_kvs_fetch_all(const struct aq_spawn_info *info, uint32_t exchange, size_t len,
                            uint8_t *all)
{
    struct aq_kvs_host *hosts = aq_kvs_list_hosts(info);
    int rc = AQ_OK;

    if (hosts == NULL)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory for the list of %u hosts", info->host_count);
    for (uint32_t h = 0; h < info->host_count && rc == AQ_OK; h++)
        rc = aq_kvs_fetch_host(info, h, &hosts[h], exchange, len, all);
    free(hosts);
    return rc;
}

int aq_spawn_kvs_allgather(struct aq_spawn_state *st, const void *own_data, size_t len, void *all)
{
    struct aq_kvs *k = &aq_kvs_me;
    const struct aq_spawn_info *info = &st->info;
    uint32_t exchange = k->exchanges++;
    uint8_t *block = malloc(info->host_size * len);
    int rc;

    if (block == NULL)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory for %zu bytes", info->host_size * len);
    rc = aq_spawn_host_allgather(own_data, len, block);
    if (rc == AQ_OK && info->host_rank == 0)
        rc = aq_kvs_put_bytes(exchange, block, info->host_size * len);
    free(block);
    if (rc == AQ_OK)
        rc = k->ops->fence(true);
    if (rc == AQ_OK && info->host_rank == 0)
        rc = aq_kvs_fetch_all(info, exchange, len, all);
    return rc == AQ_OK ? aq_spawn_host_bcast(all, len * info->size, 0) : rc;
}

/* Only root has put something. Once the addresses are in the store too, this fence must not carry
 * them along. */
int aq_spawn_kvs_bcast(struct aq_spawn_state *st, void *buf, size_t len, uint32_t root)
{
    struct aq_kvs *k = &aq_kvs_me;
    const struct aq_spawn_info *info = &st->info;
    uint32_t exchange = k->exchanges++, giver = 0;
    bool local = info->host_of[root] == info->host_index;
    int rc = AQ_OK;

    while (local && info->host_ranks[giver] != root)
        giver++;
    if (info->rank == root)
        rc = aq_kvs_put_bytes(exchange, buf, len);
    if (rc == AQ_OK)
        rc = k->ops->fence(!k->published);
    if (rc == AQ_OK && !local && info->host_rank == 0)
        rc = aq_kvs_get_bytes(root, exchange, buf, len);
    return rc == AQ_OK ? aq_spawn_host_bcast(buf, len, giver) : rc;
}

int aq_spawn_kvs_fence(struct aq_spawn_state *st)
{
    (void)st;
    return aq_kvs_me.ops->fence(false);
}

int aq_spawn_kvs_publish(struct aq_spawn_state *st, const void *address, size_t len)
{
    struct aq_kvs *k = &aq_kvs_me;
    char text[AQ_KVS_VALUE];
    int rc;

    (void)st;
    aq_kvs_to_hex(text, address, len); /* at most AQ_SPAWN_ADDR_MAX bytes */
    rc = k->ops->put("address", text, AQ_KVS_JOB);
    k->published = true;
    return rc == AQ_OK ? k->ops->fence(false) : rc;
}

int aq_spawn_kvs_lookup(struct aq_spawn_state *st, uint32_t rank, void *addr_out, size_t len)
{
    char text[AQ_KVS_VALUE];

    (void)st;
    if (aq_kvs_me.ops->get(rank, "address", text, AQ_KVS_LOOKUP_S) != AQ_OK)
        return aq_fail(
            AQ_ERR_SYS,
            "spawn: the launcher does not give the address of rank %u (host %u of %u); its "
            "host or the launcher's daemon there may be down",
            rank, st->info.host_of[rank], st->info.host_count);
    if (aq_kvs_from_hex(addr_out, len, text) != AQ_OK)
        return aq_fail(AQ_ERR_SYS, "spawn: the address of rank %u has been damaged by the launcher",
                       rank);
    return AQ_OK;
}

void aq_spawn_kvs_notify(struct aq_spawn_state *st)
{
    (void)st;
    aq_monitor_notify();
}

int aq_spawn_kvs_shutdown(struct aq_spawn_state *st, int code, enum aq_shutdown_mode how)
{
    (void)st;
    return aq_monitor_shutdown(code, how);
}
