/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_kvs.c - joining a job through a launcher's key-value store; see aq_spawn_kvs.h.
 * Threads   one
 * How       1. who is on my host (the store knows, or every rank publishes its host's identity)
 *           2. the host's first rank makes the board and publishes a socket's name and a key
 *           3. the others fetch the board's descriptor there; user ids are checked on both sides
 *           After that the ranks of one host need the store no more.
 */
#include "other/spawn/aq_spawn_kvs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/aq_log.h"
#include "core/aq_rc.h"
#include "other/spawn/aq_fdpass.h"
#include "other/spawn/aq_spawn_minder.h"

#define AQ_KVS_PASS_MS 60000
#define AQ_KVS_PIECE   ((AQ_KVS_VALUE - 2) / 2) /* bytes in one value, as hex digits */

struct aq_kvs {
    const struct aq_kvs_ops *ops;
    uint32_t rank, size;
    uint32_t *leader;   /* [size] first rank of each rank's host; NULL: all on one host */
    uint32_t exchanges; /* allgathers so far: keys are used once */
};

static struct aq_kvs aq_kvs_me;

static void aq_kvs_to_hex(char *text, const uint8_t *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * len] = '\0';
}

static int aq_kvs_from_hex(uint8_t *bytes, size_t len, const char *text)
{
    if (strlen(text) != 2 * len)
        return AQ_ERR_ARG;
    for (size_t i = 0; i < len; i++) {
        unsigned byte;

        if (sscanf(text + 2 * i, "%2x", &byte) != 1)
            return AQ_ERR_ARG;
        bytes[i] = (uint8_t)byte;
    }
    return AQ_OK;
}

/* Ranks are on one host if they can reach each other's processes and sockets: same boot of the same
 * kernel, same network and process namespaces. */
static void aq_kvs_host_identity(char text[AQ_KVS_VALUE])
{
    char boot[64] = "?";
    struct stat net = {0}, pid = {0};
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (f != NULL) {
        if (fgets(boot, sizeof(boot), f) != NULL)
            boot[strcspn(boot, "\n")] = '\0';
        fclose(f);
    } else {
        gethostname(boot, sizeof(boot) - 1);
    }
    stat("/proc/self/ns/net", &net);
    stat("/proc/self/ns/pid", &pid);
    snprintf(text, AQ_KVS_VALUE, "%s.%jx.%jx", boot, (uintmax_t)net.st_ino, (uintmax_t)pid.st_ino);
}

/* Everybody publishes its host's identity and compares; fills leader[]. */
static int aq_kvs_find_hosts(struct aq_kvs *k)
{
    char mine[AQ_KVS_VALUE], (*all)[AQ_KVS_VALUE];
    int rc;

    k->leader = malloc(k->size * sizeof(*k->leader));
    all = malloc(k->size * sizeof(*all));
    if (k->leader == NULL || all == NULL) {
        free(all);
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory for the list of %u hosts", k->size);
    }
    aq_kvs_host_identity(mine);
    rc = k->ops->put("host", mine);
    if (rc == AQ_OK)
        rc = k->ops->fence();
    for (uint32_t i = 0; i < k->size && rc == AQ_OK; i++) {
        rc = k->ops->get(i, "host", all[i]);
        if (rc != AQ_OK)
            break;
        k->leader[i] = i;
        for (uint32_t j = 0; j < i; j++) {
            if (k->leader[j] == j && strcmp(all[i], all[j]) == 0) {
                k->leader[i] = j;
                break;
            }
        }
    }
    free(all);
    return rc;
}

/* "0-3,7": how many ranks? */
static uint32_t aq_kvs_count_list(const char *list)
{
    uint32_t count = 0;

    while (list != NULL && *list != '\0') {
        char *end;
        unsigned long from = strtoul(list, &end, 10), to = from;

        if (end == list)
            break;
        if (*end == '-')
            to = strtoul(end + 1, &end, 10);
        count += (uint32_t)(to - from + 1);
        list = *end == ',' ? end + 1 : end;
    }
    return count;
}

static int aq_kvs_fill_info(struct aq_spawn_state *st, struct aq_kvs *k)
{
    uint32_t host_size = 0, at = 0, hosts = 0, index = 0;

    if (k->leader == NULL)
        return aq_spawn_fill_one_host(st, k->rank, k->size);
    for (uint32_t i = 0; i < k->size; i++) {
        host_size += k->leader[i] == k->leader[k->rank];
        if (k->leader[i] == i) {
            if (i == k->leader[k->rank])
                index = hosts;
            hosts++;
        }
    }
    st->host_ranks = malloc(host_size * sizeof(*st->host_ranks));
    if (st->host_ranks == NULL)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory for a list of %u ranks", host_size);
    st->info = (struct aq_spawn_info){
        .rank = k->rank,
        .size = k->size,
        .host_size = host_size,
        .host_index = index,
        .host_count = hosts,
        .host_ranks = st->host_ranks,
    };
    for (uint32_t i = 0; i < k->size; i++) {
        if (k->leader[i] != k->leader[k->rank])
            continue;
        if (i == k->rank)
            st->info.host_rank = at;
        st->host_ranks[at++] = i;
    }
    return AQ_OK;
}

/* what the first rank of a host publishes: "name key" */
struct aq_kvs_door {
    char name[AQ_FDPASS_NAME];
    uint8_t key[32];
};

static int aq_kvs_open_door(struct aq_spawn_state *st, struct aq_kvs_door *door, int *board_fd_out,
                            int *sock_out)
{
    char text[AQ_KVS_VALUE];
    int at;

    st->board = aq_board_create(st->info.host_size, st->info.size, board_fd_out);
    if (st->board == NULL)
        return aq_fail(AQ_ERR_SYS, "spawn: no job board for %u ranks: %s", st->info.host_size,
                       strerror(errno));
    memcpy(door->key, st->board->key, sizeof(door->key));
    at = snprintf(door->name, sizeof(door->name), "aq-board-");
    aq_kvs_to_hex(door->name + at, door->key + 16, 16);
    *sock_out = aq_fdpass_listen(door->name, st->info.host_size);
    if (*sock_out < 0)
        return aq_fail(AQ_ERR_SYS, "spawn: no Unix socket for the other ranks: %s",
                       strerror(-*sock_out));
    at = snprintf(text, sizeof(text), "%s ", door->name);
    aq_kvs_to_hex(text + at, door->key, sizeof(door->key));
    return aq_kvs_me.ops->put("door", text);
}

static int aq_kvs_find_door(uint32_t leader, struct aq_kvs_door *door)
{
    char text[AQ_KVS_VALUE], *blank;
    int rc = aq_kvs_me.ops->get(leader, "door", text);

    if (rc != AQ_OK)
        return rc;
    blank = strchr(text, ' ');
    if (blank == NULL || blank - text >= AQ_FDPASS_NAME ||
        aq_kvs_from_hex(door->key, sizeof(door->key), blank + 1) != AQ_OK)
        return aq_fail(AQ_ERR_SYS, "spawn: rank %u published '%s' as its board", leader, text);
    *blank = '\0';
    memcpy(door->name, text, (size_t)(blank - text) + 1);
    return AQ_OK;
}

static int aq_kvs_share_board(struct aq_spawn_state *st, int *event_fd_out)
{
    struct aq_kvs_door door;
    int fds[2] = {-1, -1}, sock = -1, rc = AQ_OK;
    bool first = st->info.host_rank == 0;

    if (first) {
        rc = aq_kvs_open_door(st, &door, &fds[0], &sock);
        fds[1] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (rc == AQ_OK && fds[1] < 0)
            rc = aq_fail(AQ_ERR_SYS, "spawn: eventfd: %s", strerror(errno));
    }
    if (rc == AQ_OK)
        rc = aq_kvs_me.ops->fence();
    if (rc != AQ_OK)
        return rc;
    if (first) {
        rc = aq_fdpass_give(sock, st->info.host_size - 1, door.key, fds, 2, 0, AQ_KVS_PASS_MS);
        close(sock);
    } else {
        rc = aq_kvs_find_door(st->info.host_ranks[0], &door);
        if (rc != AQ_OK)
            return rc;
        rc = aq_fdpass_take(door.name, door.key, fds, 2, AQ_KVS_PASS_MS);
        if (rc == 0) {
            st->board = aq_board_map(fds[0]);
            rc = st->board == NULL ? -errno : 0;
        }
    }
    if (rc != 0)
        return aq_fail(AQ_ERR_SYS, "spawn: the ranks of this host cannot share descriptors: %s",
                       strerror(-rc));
    close(fds[0]);
    *event_fd_out = fds[1];
    return AQ_OK;
}

int aq_spawn_kvs_join(struct aq_spawn_state *st, const struct aq_kvs_ops *ops)
{
    struct aq_kvs *k = &aq_kvs_me;
    char *peers;
    int rc, event_fd = -1;

    k->ops = ops;
    rc = ops->init(&k->rank, &k->size);
    if (rc != AQ_OK)
        return rc;
    aq_log_set_rank(k->rank);
    peers = ops->local_peers != NULL ? ops->local_peers() : NULL;
    if (aq_kvs_count_list(peers) != k->size)
        rc = aq_kvs_find_hosts(k);
    free(peers);
    if (rc == AQ_OK)
        rc = aq_kvs_fill_info(st, k);
    if (rc == AQ_OK)
        rc = aq_kvs_share_board(st, &event_fd);
    if (rc == AQ_OK)
        rc = aq_spawn_claim(st);
    /* pids must be on the board before anybody watches them */
    if (rc == AQ_OK && aq_board_barrier(st->board, false) != 0)
        rc = AQ_ERR_SYS;
    if (rc == AQ_OK)
        rc = aq_minder_start(st->board, st->info.host_rank, event_fd, ops);
    return rc;
}

int aq_spawn_kvs_allgather(struct aq_spawn_state *st, const void *mine, size_t len, void *all)
{
    struct aq_kvs *k = &aq_kvs_me;
    char text[AQ_KVS_VALUE], key[32];
    uint32_t number = k->exchanges++;
    int rc = AQ_OK;

    for (size_t done = 0; done < len && rc == AQ_OK; done += AQ_KVS_PIECE) {
        size_t now = len - done < AQ_KVS_PIECE ? len - done : AQ_KVS_PIECE;

        snprintf(key, sizeof(key), "x%u.%zu", number, done);
        aq_kvs_to_hex(text, (const uint8_t *)mine + done, now);
        rc = k->ops->put(key, text);
    }
    if (rc == AQ_OK)
        rc = k->ops->fence();
    for (uint32_t i = 0; i < st->info.size; i++) {
        for (size_t done = 0; done < len && rc == AQ_OK; done += AQ_KVS_PIECE) {
            size_t now = len - done < AQ_KVS_PIECE ? len - done : AQ_KVS_PIECE;

            snprintf(key, sizeof(key), "x%u.%zu", number, done);
            rc = k->ops->get(i, key, text);
            if (rc == AQ_OK)
                rc = aq_kvs_from_hex((uint8_t *)all + i * len + done, now, text);
        }
    }
    return rc;
}

void aq_spawn_kvs_notify(struct aq_spawn_state *st)
{
    (void)st;
    aq_minder_notify();
}

int aq_spawn_kvs_leave(struct aq_spawn_state *st, int code, bool orderly)
{
    (void)st;
    return aq_minder_leave(code, orderly);
}
