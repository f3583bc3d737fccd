/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_kvs.c - joins a job through a launcher's key-value store; see aq_spawn_kvs.h.
 * Threads   one
 * How       1. which ranks share this host: the launcher says so, and the ranks of each host check
 *              it among themselves. Without that, or if it is wrong on any host, every rank
 *              publishes its host's identity
 *           2. the host's first rank makes the job area and publishes a socket's name and a key
 *           3. the others fetch the job area's descriptor there; both sides check user ids
 *           4. several hosts: rank 0 makes the job's key; the first ranks of hosts fetch it and
 *              connect the hosts. After that the ranks of one host do not need the store
 * Secrets   the job's key and the keys of job areas go through the store, over the launcher's
 *           connections (PMIx: its server on each host, which checks user ids, and its daemons;
 *           PMI: the sockets of hydra), and are as safe as those. They are never in the
 *           environment, in arguments or in files
 */
#include "other/spawn/aq_spawn_kvs.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "other/spawn/aq_fdpass.h"
#include "other/spawn/aq_spawn_link.h"
#include "other/spawn/aq_spawn_monitor.h"

#define AQ_KVS_PASS_MS 60000
/* interval at which a waiting rank checks whether the others still run */
#define AQ_KVS_LOOK_MS 500

/* descriptors that a host's first rank passes to the others */
enum { AQ_KVS_FD_JOBAREA, AQ_KVS_FD_EVENT, AQ_KVS_FD_LINK, AQ_KVS_FD_LINK_PAGE, AQ_KVS_FDS };

struct aq_kvs aq_kvs_me AQ_JOB_STATE;

/* state while joining */
struct aq_kvs_join {
    uint32_t attempt; /* part of the keys: each key is used once */
    bool check;       /* the launcher's statement is being checked */
    bool fits;        /* no contradiction so far */
    int fds[AQ_KVS_FDS];
};

/* Ranks are on one host if they can reach each other's processes and sockets: same boot of the same
 * kernel, same network and process namespaces. */
static void aq_kvs_host_identity(char text[AQ_KVS_VALUE])
{
    char boot[64] = "?";
    struct stat net = { 0 }, pid = { 0 };
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

/* numbers hosts by first appearance */
static int aq_kvs_number_hosts(uint32_t *host_of, uint32_t size, uint32_t *count_out)
{
    uint32_t *number = malloc(size * sizeof(*number)), count = 0;

    if (number == NULL)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory for the list of %u hosts", size);
    for (uint32_t i = 0; i < size; i++)
        number[i] = UINT32_MAX;
    for (uint32_t i = 0; i < size; i++) {
        if (number[host_of[i]] == UINT32_MAX)
            number[host_of[i]] = count++;
        host_of[i] = number[host_of[i]];
    }
    free(number);
    *count_out = count;
    return AQ_OK;
}

/* sets host_of[i] to the index of known[] that equals rank i's identity; a new one if none does */
static int aq_kvs_compare(uint32_t *host_of, uint32_t i, char **known, uint32_t *count)
{
    char text[AQ_KVS_VALUE];
    int rc = aq_kvs_me.ops->get(i, "identity", text, AQ_KVS_GET_S);
    uint32_t h = 0;

    if (rc != AQ_OK)
        return rc;
    while (h < *count && strcmp(known[h], text) != 0)
        h++;
    host_of[i] = h;
    if (h < *count)
        return AQ_OK;
    known[h] = strdup(text);
    *count += known[h] != NULL;
    return known[h] != NULL ? AQ_OK
                            : aq_fail(AQ_ERR_NOMEM, "spawn: no memory for the names of hosts");
}

static const char *aq_kvs_key(char key[32], const char *word, const struct aq_kvs_join *j)
{
    snprintf(key, 32, "%s%u", word, j->attempt);
    return key;
}

static int aq_kvs_put_key(const struct aq_kvs_join *j)
{
    char text[AQ_KVS_VALUE], name[32];
    uint8_t key[32];

    if (aq_kvs_me.rank != 0)
        return AQ_OK;
    if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key))
        return aq_fail(AQ_ERR_SYS, "spawn: getrandom: %s", strerror(errno));
    aq_kvs_to_hex(text, key, sizeof(key));
    return aq_kvs_me.ops->put(aq_kvs_key(name, "job", j), text, AQ_KVS_JOB);
}

/* Every rank publishes its host's identity and compares those of all. */
static int aq_kvs_find_hosts(struct aq_spawn_state *st, const struct aq_kvs_join *j)
{
    const struct aq_kvs *k = &aq_kvs_me;
    char own_id[AQ_KVS_VALUE], **known = malloc(k->size * sizeof(*known));
    uint32_t count = 0;
    int rc;

    if (known == NULL)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory for the list of %u hosts", k->size);
    aq_kvs_host_identity(own_id);
    rc = k->ops->put("identity", own_id, AQ_KVS_JOB);
    if (rc == AQ_OK)
        rc = aq_kvs_put_key(j);
    if (rc == AQ_OK)
        rc = k->ops->fence(true);
    for (uint32_t i = 0; i < k->size && rc == AQ_OK; i++)
        rc = aq_kvs_compare(st->host_of, i, known, &count);
    while (count > 0)
        free(known[--count]);
    free(known);
    return rc;
}

static int aq_kvs_fill_info(struct aq_spawn_state *st)
{
    const struct aq_kvs *k = &aq_kvs_me;
    uint32_t host_size = 0, at = 0, hosts = 0, own_id;
    int rc = aq_kvs_number_hosts(st->host_of, k->size, &hosts);

    if (rc != AQ_OK)
        return rc;
    own_id = st->host_of[k->rank];
    for (uint32_t i = 0; i < k->size; i++)
        host_size += st->host_of[i] == own_id;
    free(st->host_ranks);
    st->host_ranks = malloc(host_size * sizeof(*st->host_ranks));
    if (st->host_ranks == NULL)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory for a list of %u ranks", host_size);
    st->info = (struct aq_spawn_info){
        .rank = k->rank,
        .size = k->size,
        .host_size = host_size,
        .host_index = own_id,
        .host_count = hosts,
        .host_ranks = st->host_ranks,
        .host_of = st->host_of,
    };
    for (uint32_t i = 0; i < k->size; i++) {
        if (st->host_of[i] != own_id)
            continue;
        if (i == k->rank)
            st->info.host_rank = at;
        st->host_ranks[at++] = i;
    }
    return AQ_OK;
}

/* what the first rank of a host publishes: "name key" */
struct aq_kvs_listener {
    char name[AQ_SOCKET_NAME];
    uint8_t key[32];
};

/* opens the socket to which the host's other ranks connect */
static int aq_kvs_open_listener(struct aq_spawn_state *st, const struct aq_kvs_join *j,
                                struct aq_kvs_listener *listener, int *sock_out)
{
    char text[AQ_KVS_VALUE], key[32];
    int at;

    memcpy(listener->key, st->jobarea->key, sizeof(listener->key));
    aq_socket_name(listener->name, listener->key, "jobarea", 0);
    *sock_out = aq_fdpass_listen(listener->name, st->info.host_size);
    if (*sock_out < 0)
        return aq_fail(AQ_ERR_SYS, "spawn: no Unix socket for the other ranks: %s",
                       strerror(-*sock_out));
    at = snprintf(text, sizeof(text), "%s ", listener->name);
    aq_kvs_to_hex(text + at, listener->key, sizeof(listener->key));
    return aq_kvs_me.ops->put(aq_kvs_key(key, "listener", j), text, AQ_KVS_HOST);
}

static int aq_kvs_find_listener(uint32_t leader, const struct aq_kvs_join *j,
                                struct aq_kvs_listener *listener)
{
    char text[AQ_KVS_VALUE], key[32], *blank;
    int rc = aq_kvs_me.ops->get(leader, aq_kvs_key(key, "listener", j), text, AQ_KVS_GET_S);

    if (rc != AQ_OK)
        return rc;
    blank = strchr(text, ' ');
    if (blank == NULL || blank - text >= AQ_SOCKET_NAME
        || aq_kvs_from_hex(listener->key, sizeof(listener->key), blank + 1) != AQ_OK)
        return aq_fail(AQ_ERR_SYS, "spawn: rank %u published '%s' as its listener", leader, text);
    *blank = '\0';
    memcpy(listener->name, text, (size_t)(blank - text) + 1);
    return AQ_OK;
}

/* the first rank makes the job area and descriptors, and an address for the first ranks of other
 * hosts */
static int aq_kvs_make(struct aq_spawn_state *st, struct aq_kvs_join *j)
{
    char address[AQ_LINK_ADDR_MAX], key[32];

    st->jobarea = aq_jobarea_create(st->info.host_size, st->info.size, &j->fds[AQ_KVS_FD_JOBAREA]);
    if (st->jobarea == NULL)
        return aq_fail(AQ_ERR_SYS, "spawn: no job area for %u ranks: %s%s", st->info.host_size,
                       strerror(errno), aq_jobarea_remedy(errno));
    j->fds[AQ_KVS_FD_EVENT] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (j->fds[AQ_KVS_FD_EVENT] < 0)
        return aq_fail(AQ_ERR_SYS, "spawn: eventfd: %s", strerror(errno));
    if (st->info.host_count == 1)
        return AQ_OK;
    if (aq_link_create(address, &j->fds[AQ_KVS_FD_LINK]) != AQ_OK)
        return AQ_ERR_SYS;
    return aq_kvs_me.ops->put(aq_kvs_key(key, "link", j), address, AQ_KVS_JOB);
}

/* Returns true if the rank's host identity is this one's. */
static bool aq_kvs_is_local(uint32_t rank, const char *own_id)
{
    char text[AQ_KVS_VALUE];

    return aq_kvs_me.ops->get(rank, "here", text, AQ_KVS_GET_S) == AQ_OK
           && strcmp(text, own_id) == 0;
}

static int aq_kvs_give(struct aq_spawn_state *st, struct aq_kvs_join *j,
                       const struct aq_kvs_listener *listener, int sock, const char *own_id)
{
    uint32_t takers = st->info.host_size - 1;
    int count = st->info.host_count == 1 ? AQ_KVS_FD_LINK : AQ_KVS_FDS, rc;

    for (uint32_t i = 1; i < st->info.host_size && j->check; i++)
        takers -= !aq_kvs_is_local(st->host_ranks[i], own_id);
    j->fits = takers == st->info.host_size - 1;
    rc = aq_fdpass_give(sock, takers, listener->key, j->fds, j->fits ? count : 0,
                        j->fits ? 0 : EXDEV, AQ_KVS_PASS_MS);
    close(sock);
    return rc;
}

static int aq_kvs_take(struct aq_spawn_state *st, struct aq_kvs_join *j, const char *own_id)
{
    struct aq_kvs_listener listener;
    int count = st->info.host_count == 1 ? AQ_KVS_FD_LINK : AQ_KVS_FDS, rc;

    j->fits = !j->check || aq_kvs_is_local(st->host_ranks[0], own_id);
    if (!j->fits)
        return 0;
    if (aq_kvs_find_listener(st->host_ranks[0], j, &listener) != AQ_OK)
        return -EPROTO;
    rc = aq_fdpass_take(listener.name, listener.key, j->fds, count, AQ_KVS_PASS_MS);
    j->fits = rc != -EXDEV; /* -EXDEV: the first rank has found a rank that is on another host */
    if (!j->fits || rc != 0)
        return j->fits ? rc : 0;
    st->jobarea = aq_jobarea_map(j->fds[AQ_KVS_FD_JOBAREA]);
    return st->jobarea == NULL ? -errno : 0;
}

/* The ranks of this host get the job area, or find out that the launcher's statement is wrong:
 * j->fits. */
static int aq_kvs_share_jobarea(struct aq_spawn_state *st, struct aq_kvs_join *j)
{
    struct aq_kvs_listener listener;
    char own_id[AQ_KVS_VALUE];
    int sock = -1, rc = AQ_OK;

    aq_kvs_host_identity(own_id);
    if (j->check)
        rc = aq_kvs_me.ops->put("here", own_id, AQ_KVS_HOST);
    if (rc == AQ_OK && st->info.host_rank == 0) {
        rc = aq_kvs_make(st, j);
        if (rc == AQ_OK)
            rc = aq_kvs_open_listener(st, j, &listener, &sock);
    }
    if (rc == AQ_OK && j->check && st->info.host_count > 1)
        rc = aq_kvs_put_key(j);
    if (rc == AQ_OK)
        rc = aq_kvs_me.ops->fence(false);
    if (rc != AQ_OK)
        return rc;
    if (st->info.host_rank == 0)
        rc = aq_kvs_give(st, j, &listener, sock, own_id);
    else
        rc = aq_kvs_take(st, j, own_id);
    return rc == 0
               ? AQ_OK
               : aq_fail(AQ_ERR_SYS, "spawn: the ranks of this host cannot share descriptors: %s",
                         strerror(-rc));
}

static void aq_kvs_drop_jobarea(struct aq_spawn_state *st, struct aq_kvs_join *j)
{
    if (st->jobarea != NULL)
        munmap(st->jobarea, st->jobarea->bytes);
    st->jobarea = NULL;
    for (int i = 0; i < AQ_KVS_FDS; i++) {
        if (j->fds[i] >= 0)
            close(j->fds[i]);
        j->fds[i] = -1;
    }
}

/* No monitor watches this host's ranks yet. A waiting rank checks itself whether another rank, or
 * the launcher's process on this host, has ended; twice, since the last rank to arrive may end soon
 * after. */
static void aq_kvs_look(void)
{
    static uint64_t due_ns AQ_JOB_STATE;
    static uint32_t missed AQ_JOB_STATE;
    struct aq_jobarea *b = aq_kvs_me.jobarea;
    uint32_t nobody = 0;
    struct pollfd life = { aq_kvs_me.ops->life_fd != NULL ? aq_kvs_me.ops->life_fd() : -1,
                           POLLRDHUP, 0 };
    uint64_t now = aq_jobarea_now_ns();
    bool alone;

    if (now < due_ns)
        return;
    due_ns = now + AQ_KVS_LOOK_MS * 1000000ull;
    alone = aq_monitor_is_orphan() || (life.fd >= 0 && poll(&life, 1, 0) == 1);
    for (uint32_t i = 0; i < b->size && !alone; i++) {
        /* relaxed: read again soon */
        pid_t pid = atomic_load_explicit(&b->rank[i].pid, memory_order_relaxed);

        alone = pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
    }
    missed = alone ? missed + 1 : 0;
    if (missed < 2)
        return;
    /* relaxed: only one rank prints the message */
    if (atomic_compare_exchange_strong_explicit(&b->lost, &nobody, aq_kvs_me.rank + 1,
                                                memory_order_relaxed, memory_order_relaxed))
        aq_fail(AQ_ERR_SYS,
                "spawn: while the ranks of this host were joining the job, one of them or the "
                "launcher's process here was lost; ending the job");
    _exit(1);
}

static int aq_kvs_jobarea_barrier(struct aq_spawn_state *st)
{
    int rc;

    aq_kvs_me.jobarea = st->jobarea;
    aq_jobarea_set_meanwhile(aq_kvs_look);
    rc = aq_jobarea_barrier(st->jobarea, false);
    aq_jobarea_set_meanwhile(NULL);
    return rc;
}

/* Agrees whether the launcher's statement is right on all hosts: first ranks exchange results, then
 * tell the others. */
static int aq_kvs_agree(struct aq_spawn_state *st, struct aq_kvs_join *j)
{
    const struct aq_kvs *k = &aq_kvs_me;
    char *jobarea = NULL, text[AQ_KVS_VALUE];
    uint32_t next = 0;
    int rc = AQ_OK;

    if (st->info.host_rank == 0)
        rc = k->ops->put("fits", j->fits ? "1" : "0", AQ_KVS_JOB);
    if (rc == AQ_OK)
        rc = k->ops->fence(true);
    /* the place of the second round, which no rank reaches before all have read this */
    if (j->fits)
        jobarea =
            aq_jobarea_local_exchange(st->jobarea) + (size_t)st->jobarea->size * AQ_JOBAREA_CHUNK;
    for (uint32_t i = 0; i < k->size && rc == AQ_OK && st->info.host_rank == 0 && j->fits; i++) {
        if (st->host_of[i] != next) /* hosts are numbered by first appearance */
            continue;
        next++;
        rc = k->ops->get(i, "fits", text, AQ_KVS_GET_S);
        jobarea[0] = strcmp(text, "1") == 0;
        j->fits = jobarea[0] != 0;
    }
    if (rc != AQ_OK || jobarea == NULL)
        return rc;
    if (aq_kvs_jobarea_barrier(st) != 0)
        return AQ_ERR_SYS;
    j->fits = jobarea[0] != 0;
    return AQ_OK;
}

/* Determines hosts and the job area; first by the launcher's statement. */
static int aq_kvs_settle(struct aq_spawn_state *st, struct aq_kvs_join *j)
{
    const struct aq_kvs *k = &aq_kvs_me;
    int rc;

    if (k->ops->place != NULL && k->ops->place(st->host_of, k->size)) {
        j->check = true;
        rc = aq_kvs_fill_info(st);
        if (rc == AQ_OK)
            rc = aq_kvs_share_jobarea(st, j);
        if (rc == AQ_OK && st->info.host_count > 1)
            rc = aq_kvs_agree(st, j);
        if (rc != AQ_OK || j->fits)
            return rc;
        AQ_LOG(INFO, SPAWN, "the launcher's hosts are not what ranks can share: namespaces differ");
        aq_kvs_drop_jobarea(st, j);
    }
    j->check = false;
    j->attempt++;
    rc = aq_kvs_find_hosts(st, j);
    if (rc == AQ_OK)
        rc = aq_kvs_fill_info(st);
    return rc == AQ_OK ? aq_kvs_share_jobarea(st, j) : rc;
}

/* the job's key: the first rank writes it to the job area, and all read it there */
static int aq_kvs_fetch_key(struct aq_spawn_state *st, const struct aq_kvs_join *j)
{
    char text[AQ_KVS_VALUE], name[32];

    if (st->info.host_rank != 0
        || st->info.host_count == 1) /* the job area of one host has a key already */
        return AQ_OK;
    if (aq_kvs_me.ops->get(0, aq_kvs_key(name, "job", j), text, AQ_KVS_GET_S) != AQ_OK
        || aq_kvs_from_hex(st->jobarea->job_key, sizeof(st->job_key), text) != AQ_OK)
        return aq_fail(AQ_ERR_SYS,
                       "spawn: the launcher does not give what rank 0 has put for all ranks");
    return AQ_OK;
}

static int aq_kvs_link(struct aq_spawn_state *st, struct aq_kvs_join *j)
{
    char address[AQ_KVS_VALUE], key[32];
    uint32_t parent = aq_link_parent(&st->info), rank = 0;
    int rc = aq_link_attach(&j->fds[AQ_KVS_FD_LINK], &st->info, st->job_key);

    if (rc != AQ_OK || st->info.host_rank != 0 || parent == UINT32_MAX)
        return rc;
    while (st->host_of[rank] != parent)
        rank++;
    rc = aq_kvs_me.ops->get(rank, aq_kvs_key(key, "link", j), address, AQ_KVS_GET_S);
    if (rc == AQ_OK && !aq_link_set_parent(address))
        rc = aq_fail(AQ_ERR_SYS, "spawn: the address of rank %u's host, '%s', cannot be read", rank,
                     address);
    return rc;
}

int aq_spawn_kvs_join(struct aq_spawn_state *st, const struct aq_kvs_ops *ops)
{
    struct aq_kvs *k = &aq_kvs_me;
    struct aq_kvs_join j = { .fds = { -1, -1, -1, -1 } };
    int rc;

    k->ops = ops;
    rc = ops->init(&k->rank, &k->size);
    if (rc != AQ_OK)
        return rc;
    aq_log_set_rank(k->rank);
    st->host_of = calloc(k->size, sizeof(*st->host_of));
    if (st->host_of == NULL)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory for the hosts of %u ranks", k->size);
    rc = aq_kvs_settle(st, &j);
    if (rc == AQ_OK)
        rc = aq_spawn_claim(st);
    if (rc == AQ_OK)
        rc = aq_kvs_fetch_key(st, &j);
    /* pids must be in the job area before monitors watch them */
    if (rc == AQ_OK && aq_kvs_jobarea_barrier(st) != 0)
        rc = AQ_ERR_SYS;
    if (rc != AQ_OK)
        return rc;
    close(j.fds[AQ_KVS_FD_JOBAREA]);
    memcpy(st->job_key, st->jobarea->job_key, sizeof(st->job_key));
    if (st->info.host_count > 1)
        rc = aq_kvs_link(st, &j);
    return rc == AQ_OK
               ? aq_monitor_start(st->jobarea, st->info.host_rank, j.fds[AQ_KVS_FD_EVENT], ops)
               : rc;
}
