/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_group.c - a job over a group of processes; see aq_spawn_group.h.
 * Threads   the group's functions: one; reading the store: any, it changes only during the start
 * How       a put is deferred until the next fence, in which the processes exchange what all of
 *           them have put. A get is then a search in memory
 * Scale     a process holds what all have put until the job has ended: about 200 bytes for each
 *           rank, and 100 more over several hosts
 * Secrets   the job's keys go through the group's allgather, and are as safe as that
 */
#include "other/spawn/aq_spawn_group.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "other/spawn/aq_spawn_kvs.h"
#include "other/spawn/aq_spawn_link.h"
#include "other/spawn/aq_spawn_monitor.h"

#define AQ_GROUP_WORD_MS 1000 /* for the monitor to report a lost rank before the barrier does */

/* What all ranks put before one fence: for each rank, keys and values in turn, each with its NUL;
 * an empty key ends them. */
struct aq_group_block {
    struct aq_group_block *next; /* of an earlier fence */
    size_t each;                 /* bytes of each rank */
    char data[];
};

static struct {
    struct aqueduct_group group;
    bool is_set;
    pthread_t starter; /* the thread that may call the group's functions */
    char *pending;     /* puts since the last fence */
    size_t pending_len;
    struct aq_group_block *blocks; /* the latest first */
} aq_group AQ_JOB_STATE;

void aq_spawn_group_set(const struct aqueduct_group *group)
{
    aq_group.group = *group;
    aq_group.is_set = true;
}

const struct aqueduct_group *aq_spawn_group(void)
{
    return aq_group.is_set ? &aq_group.group : NULL;
}

static int aq_group_gather(const void *own, size_t len, void *all)
{
    if (aq_group.group.allgather(aq_group.group.ctx, own, len, all) != 0)
        return aq_fail(AQ_ERR_SYS, "spawn: the allgather of the job's group has failed");
    return AQ_OK;
}

static int aq_group_init(uint32_t *rank_out, uint32_t *size_out)
{
    aq_group.starter = pthread_self();
    *rank_out = (uint32_t)aq_group.group.rank;
    *size_out = (uint32_t)aq_group.group.size;
    return AQ_OK;
}

static int aq_group_put(const char *key, const char *value, enum aq_kvs_scope scope)
{
    const size_t key_len = strlen(key) + 1, value_len = strlen(value) + 1;
    char *pending = realloc(aq_group.pending, aq_group.pending_len + key_len + value_len);

    (void)scope; /* every value goes to every process */
    if (pending == NULL)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory for what the ranks exchange");
    memcpy(pending + aq_group.pending_len, key, key_len);
    memcpy(pending + aq_group.pending_len + key_len, value, value_len);
    aq_group.pending = pending;
    aq_group.pending_len += key_len + value_len;
    return AQ_OK;
}

/* The maximum length of the ranks' pending puts. */
static int aq_group_longest(uint64_t *longest_out)
{
    const uint64_t own = aq_group.pending_len;
    uint64_t longest = 0, *all = malloc((size_t)aq_group.group.size * sizeof(*all));
    int rc;

    if (all == NULL)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory for %d numbers", aq_group.group.size);
    rc = aq_group_gather(&own, sizeof(own), all);
    for (int i = 0; i < aq_group.group.size && rc == AQ_OK; i++)
        longest = all[i] > longest ? all[i] : longest;
    free(all);
    *longest_out = longest;
    return rc;
}

static int aq_group_exchange(size_t each)
{
    struct aq_group_block *block = malloc(sizeof(*block) + each * (size_t)aq_group.group.size);
    char *own = calloc(1, each);
    int rc = AQ_ERR_NOMEM;

    if (block == NULL || own == NULL) {
        aq_fail(rc, "spawn: no memory for what the ranks exchange (%zu bytes each)", each);
    } else {
        if (aq_group.pending_len > 0)
            memcpy(own, aq_group.pending, aq_group.pending_len);
        rc = aq_group_gather(own, each, block->data);
    }
    free(own);
    if (rc != AQ_OK) {
        free(block);
        return rc;
    }
    block->each = each;
    block->next = aq_group.blocks;
    aq_group.blocks = block;
    return AQ_OK;
}

/* An abort asks for a fence on another thread; the group serves one thread only. */
static int aq_group_fence(bool collect)
{
    uint64_t longest = 0;
    int rc;

    (void)collect;
    if (!pthread_equal(aq_group.starter, pthread_self()))
        return AQ_ERR_SYS;
    rc = aq_group_longest(&longest);
    if (rc == AQ_OK && longest > 0)
        rc = aq_group_exchange((size_t)longest + 1); /* one more: the empty key */
    free(aq_group.pending);
    aq_group.pending = NULL;
    aq_group.pending_len = 0;
    return rc;
}

static const char *aq_group_find(const char *at, const char *key)
{
    while (*at != '\0') {
        const char *value = at + strlen(at) + 1;

        if (strcmp(at, key) == 0)
            return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}

static int aq_group_get(uint32_t rank, const char *key, char value_out[AQ_KVS_VALUE], int seconds)
{
    (void)seconds; /* the value is in memory, or does not exist */
    for (const struct aq_group_block *block = aq_group.blocks; block != NULL; block = block->next) {
        const char *value = aq_group_find(block->data + rank * block->each, key);

        if (value != NULL && strlen(value) < AQ_KVS_VALUE) {
            memcpy(value_out, value, strlen(value) + 1);
            return AQ_OK;
        }
    }
    return aq_fail(AQ_ERR_SYS, "spawn: rank %u of the group has not published its %s", rank, key);
}

static void aq_group_abort(int code, const char *text)
{
    (void)text; /* the text is on the console already */
    if (aq_group.group.abort != NULL)
        aq_group.group.abort(aq_group.group.ctx, code);
}

static void aq_group_disconnect_launcher(void)
{
    /* the processes are their launcher's, which knows nothing of the job */
}

static const struct aq_kvs_ops aq_group_ops = {
    .init = aq_group_init,
    .put = aq_group_put,
    .fence = aq_group_fence,
    .get = aq_group_get,
    .abort = aq_group_abort,
    .fini = aq_group_disconnect_launcher,
};

/* --- the provider --- */

static int aq_group_join(struct aq_spawn_state *st)
{
    return aq_spawn_kvs_join(st, &aq_group_ops);
}

static void aq_group_disconnect(struct aq_spawn_state *st)
{
    (void)st;
    aq_monitor_stop();
}

/* The barrier may have failed because a rank was lost. The monitor then says which, and ends this
 * process. */
static void aq_group_await_monitor(const struct aq_jobarea *jobarea)
{
    const struct timespec delay = { .tv_nsec = 10000000 };

    for (int i = 0; i < AQ_GROUP_WORD_MS / 10; i++) {
        /* relaxed: the code is raised before the state */
        while (aq_jobarea_in_shutdown(jobarea)
               && atomic_load_explicit(&jobarea->exit_code, memory_order_relaxed) != 0)
            pause();
        nanosleep(&delay, NULL);
    }
}

static int aq_group_barrier(const struct aq_spawn_state *st)
{
    if (aq_group.group.barrier(aq_group.group.ctx) == 0)
        return AQ_OK;
    aq_group_await_monitor(st->jobarea);
    return aq_fail(AQ_ERR_SYS, "spawn: the barrier of the job's group has failed");
}

static int aq_group_gather_all(struct aq_spawn_state *st)
{
    const int rc = aq_group_barrier(st);

    if (rc != AQ_OK)
        return rc;
    aq_link_disconnect();
    return aq_group_barrier(st);
}

static void aq_group_fini(struct aq_spawn_state *st)
{
    (void)st;
    while (aq_group.blocks != NULL) {
        struct aq_group_block *block = aq_group.blocks;

        aq_group.blocks = block->next;
        free(block);
    }
    free(aq_group.pending);
    aq_link_fini();
}

const struct aq_spawn_provider aq_spawn_group_provider = {
    .name = "group",
    .join = aq_group_join,
    .allgather = aq_spawn_kvs_allgather,
    .bcast = aq_spawn_kvs_bcast,
    .fence = aq_spawn_kvs_fence,
    .publish = aq_spawn_kvs_publish,
    .lookup = aq_spawn_kvs_lookup,
    .notify = aq_spawn_kvs_notify,
    .finish = aq_spawn_kvs_shutdown,
    .disconnect = aq_group_disconnect,
    .gather = aq_group_gather_all,
    .fini = aq_group_fini,
};
