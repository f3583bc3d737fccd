/*
 * aq_spawn_mpi.c - ranks, hosts and the exchange at start from MPI.
 *
 * MPI takes the place of a launcher's key-value store (other/spawn/aq_spawn_kvs.h), whose users
 * find out which ranks share a host, make the job area of each host, and agree on the job's key. A
 * value that a rank puts stays with the rank until the next fence, which gathers the values of all
 * ranks on every rank. These are few bytes, and two or three fences.
 *
 * Owns      the gathered values
 * Threads   one, at start
 * Uses      aq_spawn_mpi_internal.h, other/spawn. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "other/spawn/aq_spawn_kvs.h"
#include "other/spawn/aq_spawn_link.h"
#include "other/spawn/aq_spawn_monitor.h"
#include "other/spawn/mpi/aq_spawn_mpi_internal.h"

#define AQ_SPAWN_MPI_PUTS 8  /* at most between two fences */
#define AQ_SPAWN_MPI_KEY  32 /* bytes of a key, NUL included */

/* A value that this rank has put. */
struct aq_spawn_mpi_value {
    char key[AQ_SPAWN_MPI_KEY];
    char text[AQ_KVS_VALUE];
};

static struct aq_spawn_mpi_store {
    struct aq_spawn_mpi_value own[AQ_SPAWN_MPI_PUTS];
    uint32_t count;
    bool joined; /* from here on fences are for the end of the job */
    /* one for each fence: the texts of all ranks, "KEY=VALUE", each ended by a NUL */
    struct aq_spawn_mpi_round {
        struct aq_spawn_mpi_round *older;
        size_t len;   /* bytes of one rank's */
        char texts[]; /* [size * len] */
    } * rounds;
} aq_spawn_mpi_store AQ_JOB_STATE;

/* The start has failed, and this process ends with an error. Some launchers then drop the output
 * that they have not read yet: give them time to read the message with the cause. */
static void aq_spawn_mpi_let_launcher_read(void)
{
    const struct timespec delay = { .tv_nsec = 300000000 };

    nanosleep(&delay, NULL);
}

static int aq_spawn_mpi_kvs_init(uint32_t *rank_out, uint32_t *size_out)
{
    int rc = aq_spawn_mpi_start(aq_spawn_mpi.conduit);

    if (rc == AQ_OK)
        rc = aq_spawn_mpi_shutdown_init();
    if (rc != AQ_OK) {
        aq_spawn_mpi_let_launcher_read();
        return rc;
    }
    *rank_out = aq_spawn_mpi.lib->rank();
    *size_out = aq_spawn_mpi.lib->size();
    return AQ_OK;
}

static int aq_spawn_mpi_kvs_put(const char *key, const char *value, enum aq_kvs_scope scope)
{
    struct aq_spawn_mpi_value *v = &aq_spawn_mpi_store.own[aq_spawn_mpi_store.count];

    (void)scope; /* every value goes to every rank */
    if (aq_spawn_mpi_store.count == AQ_SPAWN_MPI_PUTS || strlen(key) >= sizeof(v->key)
        || strlen(value) >= sizeof(v->text))
        return aq_fail(AQ_ERR_ARG, "mpi: no space for what ranks exchange at start: %s", key);
    aq_spawn_mpi_store.count++;
    strcpy(v->key, key);
    strcpy(v->text, value);
    return AQ_OK;
}

/* MPI_Allgather wants one length: the largest of all ranks'. */
static int aq_spawn_mpi_longest(size_t *len_inout)
{
    const uint32_t size = aq_spawn_mpi.lib->size(), own = (uint32_t)*len_inout;
    uint32_t *all = malloc(size * sizeof(*all));
    int error;

    if (all == NULL)
        return aq_fail(AQ_ERR_NOMEM, "mpi: no memory for %u lengths", size);
    error = aq_spawn_mpi.lib->allgather(&own, sizeof(own), all);
    for (uint32_t i = 0; i < size && error == 0; i++)
        if (all[i] > *len_inout)
            *len_inout = all[i];
    free(all);
    return error == 0 ? AQ_OK : aq_spawn_mpi_failed("exchange at start", error);
}

static int aq_spawn_mpi_kvs_fence(bool collect)
{
    char own[AQ_SPAWN_MPI_PUTS * sizeof(struct aq_spawn_mpi_value)] = "";
    struct aq_spawn_mpi_round *round;
    size_t len = 0;
    int rc, error;

    (void)collect;                 /* always */
    if (aq_spawn_mpi_store.joined) /* at the end, on another thread */
        return aq_spawn_mpi_shutdown_fence();
    for (uint32_t i = 0; i < aq_spawn_mpi_store.count; i++)
        len += (size_t)sprintf(own + len, "%s=%s", aq_spawn_mpi_store.own[i].key,
                               aq_spawn_mpi_store.own[i].text)
               + 1;
    aq_spawn_mpi_store.count = 0;
    len++; /* an empty one at the end */
    rc = aq_spawn_mpi_longest(&len);
    if (rc != AQ_OK)
        return rc;
    round = malloc(sizeof(*round) + aq_spawn_mpi.lib->size() * len);
    if (round == NULL)
        return aq_fail(AQ_ERR_NOMEM, "mpi: no memory for %zu bytes from each of %u ranks", len,
                       aq_spawn_mpi.lib->size());
    error = aq_spawn_mpi.lib->allgather(own, len, round->texts);
    round->len = len;
    round->older = aq_spawn_mpi_store.rounds;
    aq_spawn_mpi_store.rounds = round;
    return error == 0 ? AQ_OK : aq_spawn_mpi_failed("exchange at start", error);
}

static int aq_spawn_mpi_kvs_get(uint32_t rank, const char *key, char value_out[AQ_KVS_VALUE],
                                int seconds)
{
    const size_t key_len = strlen(key);

    (void)seconds; /* fences have brought all values */
    for (const struct aq_spawn_mpi_round *round = aq_spawn_mpi_store.rounds; round != NULL;
         round = round->older)
        for (const char *at = round->texts + rank * round->len; *at != '\0'; at += strlen(at) + 1)
            if (strncmp(at, key, key_len) == 0 && at[key_len] == '=') {
                strcpy(value_out, at + key_len + 1);
                return AQ_OK;
            }
    return aq_fail(AQ_ERR_SYS, "mpi: rank %u has not published its %s", rank, key);
}

static int aq_spawn_mpi_kvs_life_fd(void)
{
    return aq_spawn_mpi_launcher_fd(aq_spawn_mpi.lib);
}

static void aq_spawn_mpi_kvs_abort(int code, const char *text)
{
    const struct aq_spawn_mpi_lib *lib = aq_spawn_mpi.lib;

    if (lib == NULL || !lib->is_initialized())
        return;
    aq_spawn_mpi_shutdown_await_client();
    if (!lib->is_finalized())
        aq_spawn_mpi_launcher_abort(lib, code, text); /* else the launcher sees this process end */
}

static const struct aq_kvs_ops aq_spawn_mpi_kvs_ops = {
    .init = aq_spawn_mpi_kvs_init,
    .put = aq_spawn_mpi_kvs_put,
    .fence = aq_spawn_mpi_kvs_fence,
    .get = aq_spawn_mpi_kvs_get,
    .life_fd = aq_spawn_mpi_kvs_life_fd,
    .abort = aq_spawn_mpi_kvs_abort,
    .disconnect = aq_spawn_mpi_shutdown_disconnect,
    .fini = aq_spawn_mpi_shutdown_fini,
};

bool aq_spawn_mpi_offered(void)
{
    return true;
}

int aq_spawn_mpi_join(struct aq_spawn_state *st, const struct aq_spawn_mpi_conduit *conduit)
{
    int rc;

    aq_spawn_mpi.conduit = conduit;
    rc = aq_spawn_kvs_join(st, &aq_spawn_mpi_kvs_ops);
    aq_spawn_mpi_store.joined = rc == AQ_OK;
    while (aq_spawn_mpi_store.rounds != NULL) {
        struct aq_spawn_mpi_round *round = aq_spawn_mpi_store.rounds;

        aq_spawn_mpi_store.rounds = round->older;
        free(round);
    }
    if (rc == AQ_OK)
        aq_spawn_mpi_shutdown_set_jobarea(st->jobarea, st->info.host_rank);
    else if (aq_spawn_mpi.known && aq_spawn_mpi.lib->size() != 1)
        aq_spawn_mpi_kvs_abort(1, "a rank could not join the job"); /* the others wait inside MPI */
    return rc;
}

int aq_spawn_mpi_finish(struct aq_spawn_state *st, int code, enum aq_shutdown_mode how)
{
    aq_spawn_mpi_shutdown_vote(how);
    return aq_spawn_kvs_shutdown(st, code, how);
}

void aq_spawn_mpi_notify(struct aq_spawn_state *st)
{
    aq_spawn_kvs_notify(st);
}

/* --- the end of a job over a group --- */

void aq_spawn_mpi_disconnect(struct aq_spawn_state *st)
{
    (void)st;
    aq_monitor_stop();
}

int aq_spawn_mpi_gather(struct aq_spawn_state *st)
{
    (void)st;
    return aq_spawn_mpi_shutdown_job();
}

void aq_spawn_mpi_fini(struct aq_spawn_state *st)
{
    (void)st;
    aq_link_fini();
    aq_spawn_mpi_give_signals();
}

/* --- exchanges after the start, when messages may be under way --- */

static void aq_spawn_mpi_exchange_begin(void)
{
    aq_spawn_mpi.conduit->barrier();
    aq_spawn_mpi.conduit->lock();
}

static int aq_spawn_mpi_exchange_end(const char *what, int error)
{
    aq_spawn_mpi.conduit->unlock();
    return error == 0 ? AQ_OK : aq_spawn_mpi_failed(what, error);
}

int aq_spawn_mpi_allgather(struct aq_spawn_state *st, const void *own, size_t len, void *all)
{
    (void)st;
    aq_spawn_mpi_exchange_begin();
    return aq_spawn_mpi_exchange_end("MPI_Allgather", aq_spawn_mpi.lib->allgather(own, len, all));
}

int aq_spawn_mpi_bcast(struct aq_spawn_state *st, void *buf, size_t len, uint32_t root)
{
    (void)st;
    aq_spawn_mpi_exchange_begin();
    return aq_spawn_mpi_exchange_end("MPI_Bcast", aq_spawn_mpi.lib->bcast(buf, len, root));
}

int aq_spawn_mpi_fence(struct aq_spawn_state *st)
{
    (void)st;
    aq_spawn_mpi_exchange_begin();
    return aq_spawn_mpi_exchange_end("MPI_Barrier", aq_spawn_mpi.lib->barrier());
}
