/*
 * aq_mpi_spawn.c - ranks, hosts and the exchange at start from MPI.
 *
 * How       MPI stands in for a launcher's key-value store (other/spawn/aq_spawn_kvs.h), which does
 *           the rest: who shares memory with whom, the board of each host, the job's key. What a
 *           rank puts stays with it until the next fence, which gathers everything everywhere; that
 *           is little, and done two or three times
 * Owns      what was gathered
 * Threads   one, at start
 * Uses      aq_mpi_start.c, aq_mpi_end.c, other/spawn. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conduits/mpi/aq_mpi.h"
#include "conduits/mpi/aq_mpi_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"

#define AQ_MPI_PUTS 8  /* at most between two fences */
#define AQ_MPI_KEY  32 /* bytes of a key, NUL included */

/* One value on its way. Its length is that of the longest, so that all ranks' are alike. */
struct aq_mpi_value {
    char key[AQ_MPI_KEY];
    char text[AQ_KVS_VALUE];
};

static struct aq_mpi_store {
    struct aq_mpi_value own[AQ_MPI_PUTS];
    uint32_t count;
    bool joined; /* what is left to say goes other ways */
    /* gathered: round by round, the texts of all ranks, "KEY=VALUE" each ended by a NUL */
    struct aq_mpi_round {
        struct aq_mpi_round *older;
        size_t len;   /* bytes of one rank's */
        char texts[]; /* [size * len] */
    } * rounds;
} aq_mpi_store;

static int aq_mpi_failed(const char *what, int error)
{
    char text[512];

    aq_mpi.lib->job.text(error, text, sizeof(text));
    return aq_fail(AQ_ERR_SYS, "mpi: %s: %s", what, text);
}

/* The start has failed, and this process will end. Some launchers forget what they have not read of
 * a process's output when it ends with an error: give them time for the message that says why. */
static void aq_mpi_let_launcher_read(void)
{
    const struct timespec delay = { .tv_nsec = 300000000 };

    nanosleep(&delay, NULL);
}

static int aq_mpi_kvs_init(uint32_t *rank_out, uint32_t *size_out)
{
    int rc = aq_mpi_start();

    if (rc == AQ_OK)
        rc = aq_mpi_end_init();
    if (rc != AQ_OK) {
        aq_mpi_let_launcher_read();
        return rc;
    }
    *rank_out = aq_mpi.lib->job.rank();
    *size_out = aq_mpi.lib->job.size();
    return AQ_OK;
}

static int aq_mpi_kvs_put(const char *key, const char *value, enum aq_kvs_scope scope)
{
    struct aq_mpi_value *v = &aq_mpi_store.own[aq_mpi_store.count];

    (void)scope; /* everything goes everywhere */
    if (aq_mpi_store.count == AQ_MPI_PUTS || strlen(key) >= sizeof(v->key)
        || strlen(value) >= sizeof(v->text))
        return aq_fail(AQ_ERR_ARG, "mpi: no room for what ranks tell each other at start: %s", key);
    aq_mpi_store.count++;
    strcpy(v->key, key);
    strcpy(v->text, value);
    return AQ_OK;
}

/* the longest that any rank has put since the last fence */
static int aq_mpi_longest(size_t *len_inout)
{
    const uint32_t size = aq_mpi.lib->job.size(), own = (uint32_t)*len_inout;
    uint32_t *all = malloc(size * sizeof(*all));
    int error;

    if (all == NULL)
        return aq_fail(AQ_ERR_NOMEM, "mpi: no memory for %u lengths", size);
    error = aq_mpi.lib->job.allgather(&own, sizeof(own), all);
    for (uint32_t i = 0; i < size && error == 0; i++)
        if (all[i] > *len_inout)
            *len_inout = all[i];
    free(all);
    return error == 0 ? AQ_OK : aq_mpi_failed("exchange at start", error);
}

static int aq_mpi_kvs_fence(bool collect)
{
    char own[AQ_MPI_PUTS * sizeof(struct aq_mpi_value)] = "";
    struct aq_mpi_round *round;
    size_t len = 0;
    int rc, error;

    (void)collect;           /* always */
    if (aq_mpi_store.joined) /* at the end, on another thread */
        return aq_mpi_end_fence();
    for (uint32_t i = 0; i < aq_mpi_store.count; i++)
        len +=
            (size_t)sprintf(own + len, "%s=%s", aq_mpi_store.own[i].key, aq_mpi_store.own[i].text)
            + 1;
    aq_mpi_store.count = 0;
    len++; /* an empty one at the end */
    rc = aq_mpi_longest(&len);
    if (rc != AQ_OK)
        return rc;
    round = malloc(sizeof(*round) + aq_mpi.lib->job.size() * len);
    if (round == NULL)
        return aq_fail(AQ_ERR_NOMEM, "mpi: no memory for %zu bytes from each of %u ranks", len,
                       aq_mpi.lib->job.size());
    error = aq_mpi.lib->job.allgather(own, len, round->texts);
    round->len = len;
    round->older = aq_mpi_store.rounds;
    aq_mpi_store.rounds = round;
    return error == 0 ? AQ_OK : aq_mpi_failed("exchange at start", error);
}

static int aq_mpi_kvs_get(uint32_t rank, const char *key, char value_out[AQ_KVS_VALUE], int seconds)
{
    const size_t key_len = strlen(key);

    (void)seconds; /* it is here */
    for (const struct aq_mpi_round *round = aq_mpi_store.rounds; round != NULL;
         round = round->older)
        for (const char *at = round->texts + rank * round->len; *at != '\0'; at += strlen(at) + 1)
            if (strncmp(at, key, key_len) == 0 && at[key_len] == '=') {
                strcpy(value_out, at + key_len + 1);
                return AQ_OK;
            }
    return aq_fail(AQ_ERR_SYS, "mpi: rank %u has told nobody its %s", rank, key);
}

static const struct aq_kvs_ops aq_mpi_kvs_ops = {
    .init = aq_mpi_kvs_init,
    .put = aq_mpi_kvs_put,
    .fence = aq_mpi_kvs_fence,
    .get = aq_mpi_kvs_get,
    .life_fd = aq_mpi_end_life_fd,
    .abort = aq_mpi_end_abort,
    .disconnect = aq_mpi_end_disconnect,
    .fini = aq_mpi_end_fini,
};

static bool aq_mpi_spawn_offered(void)
{
    return true;
}

static int aq_mpi_spawn_join(struct aq_spawn_state *st)
{
    const int rc = aq_spawn_kvs_join(st, &aq_mpi_kvs_ops);

    aq_mpi_store.joined = rc == AQ_OK;
    while (aq_mpi_store.rounds != NULL) {
        struct aq_mpi_round *round = aq_mpi_store.rounds;

        aq_mpi_store.rounds = round->older;
        free(round);
    }
    if (rc == AQ_OK)
        aq_mpi_end_set_jobarea(st->jobarea, st->info.host_rank);
    else if (aq_mpi_job.known && aq_mpi.lib->job.size() != 1)
        aq_mpi_end_abort(1, "a rank could not join the job"); /* the others wait for us in MPI */
    return rc;
}

static int aq_mpi_spawn_shutdown(struct aq_spawn_state *st, int code, enum aq_shutdown_mode how)
{
    aq_mpi_end_decide(how);
    return aq_spawn_kvs_shutdown(st, code, how);
}

static int aq_mpi_spawn_allgather(struct aq_spawn_state *st, const void *own, size_t len, void *all)
{
    int error;

    (void)st;
    aq_mpi_barrier();
    aq_mpi_lock();
    error = aq_mpi.lib->job.allgather(own, len, all);
    aq_mpi_unlock();
    return error == 0 ? AQ_OK : aq_mpi_failed("MPI_Allgather", error);
}

static int aq_mpi_spawn_bcast(struct aq_spawn_state *st, void *buf, size_t len, uint32_t root)
{
    int error;

    (void)st;
    aq_mpi_barrier();
    aq_mpi_lock();
    error = aq_mpi.lib->job.bcast(buf, len, root);
    aq_mpi_unlock();
    return error == 0 ? AQ_OK : aq_mpi_failed("MPI_Bcast", error);
}

static int aq_mpi_spawn_fence(struct aq_spawn_state *st)
{
    int error;

    (void)st;
    aq_mpi_barrier();
    aq_mpi_lock();
    error = aq_mpi.lib->job.barrier();
    aq_mpi_unlock();
    return error == 0 ? AQ_OK : aq_mpi_failed("MPI_Barrier", error);
}

const struct aq_spawn_provider aq_mpi_spawn = {
    .name = "mpi",
    .offered = aq_mpi_spawn_offered,
    .join = aq_mpi_spawn_join,
    .allgather = aq_mpi_spawn_allgather,
    .bcast = aq_mpi_spawn_bcast,
    .fence = aq_mpi_spawn_fence,
    .notify = aq_spawn_kvs_notify,
    .finish = aq_mpi_spawn_shutdown,
};
