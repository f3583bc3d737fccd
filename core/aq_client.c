/*
 * aq_client.c - start-up, and the queries of a client about the job.
 *
 * Start-up order: environment, conduit, spawn (which may fork), exit and signals, the placement of
 * all ranks, limits, the conduit's own start, the layer above, a barrier.
 *
 * Owns      aq_job
 * Threads   gex_Client_Init() runs once, before other threads call; the queries from any
 * Uses      all of core, other/spawn, the conduit table; aq_callback.h for the layer above
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/aq_am.h"
#include "core/aq_conduit_choice.h"
#include "base/aq_env.h"
#include "core/aq_env_job.h"
#include "core/aq_exit.h"
#include "base/aq_ident.h"
#include "core/aq_contention.h"
#include "core/aq_job.h"
#include "core/aq_job_end.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "core/aq_poll.h"
#include "base/aq_rc.h"
#include "core/aq_segment.h"
#include "core/aq_service.h"
#include "core/aq_start.h"
#include "core/aq_thread.h"
#include "core/aq_tm.h"
#include "core/aq_trace.h"
#include "core/aq_callback.h"
#include "other/spawn/aq_spawn.h"
#include "other/spawn/aq_spawn_group.h"
#include "other/spawn/aq_spawn_provider.h"

struct aq_job aq_job AQ_JOB_STATE = { .loop_rank = GEX_RANK_INVALID };

int aq_rc_to_gasnet(int rc)
{
    switch (rc) {
    case AQ_OK:
        return GASNET_OK;
    case AQ_PENDING:
        return GASNET_ERR_NOT_READY;
    case AQ_RETRY:
        return GASNET_ERR_NOT_READY;
    case AQ_ERR_ARG:
        return GASNET_ERR_BAD_ARG;
    default:
        return GASNET_ERR_RESOURCE;
    }
}

/* --- placement of the ranks --- */

/* What each process publishes on its host at start. */
struct aq_place {
    cpu_set_t cores;
    unsigned quota; /* of cores */
};

#define AQ_CLIENT_BUILD                                          \
    _STRINGIFY(GASNET_RELEASE_VERSION_MAJOR)                     \
    "." _STRINGIFY(GASNET_RELEASE_VERSION_MINOR) "." _STRINGIFY( \
        GASNET_RELEASE_VERSION_PATCH) " " AQ_MODE_STR " " AQ_SEGMENT_STR " " AQ_DEBUG_STR

/* All ranks must share one layout of memory and of messages: that of rank 0's library. */
static void aq_client_compare_builds(void)
{
    char first[64] = AQ_CLIENT_BUILD;

    if (aq_spawn_bcast(first, sizeof(first), 0) != AQ_OK)
        aq_fatal("rank 0 could not tell the other ranks at start how its library was built");
    if (strcmp(first, AQ_CLIENT_BUILD) != 0)
        aq_fatal("rank %u runs a library built as '%s', rank 0 one built as '%s'; all ranks of "
                 "a job need the same build",
                 aq_job.rank, AQ_CLIENT_BUILD, first);
}

static void *aq_client_table(size_t count, size_t size, const char *what)
{
    void *table = calloc(count, size);

    if (table == NULL)
        aq_fatal("no memory for %s: %zu entries of %zu bytes", what, count, size);
    return table;
}

/* Returns the processes whose entry in table equals this one's, by increasing rank. */
static gex_RankInfo_t *aq_client_members(const gex_Rank_t *table, gex_Rank_t *count_out,
                                         gex_Rank_t *index_out)
{
    gex_Rank_t *ranks, count = 0;

    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++)
        count += table[rank] == table[aq_job.rank];
    ranks = aq_client_table(count, sizeof(*ranks), "the ranks of this host");
    count = 0;
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++)
        if (table[rank] == table[aq_job.rank]) {
            if (rank == aq_job.rank)
                *index_out = count;
            ranks[count++] = rank;
        }
    *count_out = count;
    return (gex_RankInfo_t *)ranks; /* the struct is one rank */
}

/* Divides the ranks of a host into neighborhoods of at most GASNET_SUPERNODE_MAXSIZE each, numbered
 * by first appearance. Without a limit, or if there is only shared memory, each host is one
 * neighborhood. */
static void aq_client_make_neighborhoods(void)
{
    const int64_t wanted = aq_env_int(AQ_ENV_SUPERNODE_MAXSIZE);
    const gex_Rank_t limit = wanted < (int64_t)aq_job.size ? (gex_Rank_t)wanted : aq_job.size;
    gex_Rank_t *numbers;
    struct aq_client_host {
        gex_Rank_t seen, number;
    } * hosts;

    aq_job.nbrhd_of = aq_job.host_of;
    aq_job.nbrhd_count = aq_job.host_count;
    aq_job.nbrhd_max = aq_job.host_size;
    if ((aq_job.conduit->caps & AQ_CAP_NETWORK) == 0 || wanted <= 0)
        return;
    aq_job.nbrhd_max = MIN(limit, aq_job.host_size);
    numbers = aq_client_table(aq_job.size, sizeof(*numbers), "neighborhood numbers");
    hosts = aq_client_table(aq_job.host_count, sizeof(*hosts), "hosts");
    aq_job.nbrhd_count = 0;
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++) {
        struct aq_client_host *host = &hosts[aq_job.host_of[rank]];

        if (host->seen++ % limit == 0)
            host->number = aq_job.nbrhd_count++;
        numbers[rank] = host->number;
    }
    free(hosts);
    aq_job.nbrhd_of = numbers;
    aq_job.nbrhd_on_host = aq_job.host_index / aq_job.nbrhd_max;
}

/* Finds the ranks of each host, and how many cores this host's ranks may use. */
static void aq_client_place(const struct aq_spawn_info *spawn)
{
    struct aq_place own = { .quota = aq_spawn_host_facts().cores_quota };
    struct aq_place *all =
        aq_client_table(spawn->host_size, sizeof(*all), "the ranks of this host");
    unsigned quota = 0, cores;
    cpu_set_t together;

    aq_client_compare_builds();
    CPU_ZERO(&together);
    /* the mask has more than 1024 cores */
    if (sched_getaffinity(0, sizeof(own.cores), &own.cores) != 0)
        memset(&own.cores, 0xff, sizeof(own.cores));
    if (aq_spawn_host_allgather(&own, sizeof(own), all) != AQ_OK)
        aq_fatal("the ranks of this host could not compare their places at start");
    for (uint32_t local = 0; local < spawn->host_size; local++) {
        CPU_OR(&together, &together, &all[local].cores);
        quota = MAX(quota, all[local].quota);
    }
    free(all);

    aq_job.host_of = spawn->host_of;
    aq_job.host_count = spawn->host_count;
    aq_job.host = aq_client_members(aq_job.host_of, &aq_job.host_size, &aq_job.host_index);
    aq_client_make_neighborhoods();
    aq_job.nbrhd = aq_job.host;
    aq_job.nbrhd_size = aq_job.host_size;
    aq_job.nbrhd_index = aq_job.host_index;
    if (aq_job.nbrhd_of != aq_job.host_of)
        aq_job.nbrhd = aq_client_members(aq_job.nbrhd_of, &aq_job.nbrhd_size, &aq_job.nbrhd_index);

    /* ranks that are bound to one core each have as many cores as ranks */
    cores = MAX(1u, MIN((unsigned)CPU_COUNT(&together), quota));
    aq_job.oversubscribed = aq_job.host_size > cores;
    aq_contention_ranks_per_core = (unsigned)aq_job.host_size / cores;
}

static void aq_client_make_tables(void)
{
    aq_job.bound = aq_client_table(aq_job.size, sizeof(*aq_job.bound), "the segments' addresses");
    aq_tm_create_primordial();
    /* inline transfers read delta; the two tables differ only if transfers must not be inline */
    aq_job.map = aq_job.delta;
    if (aq_job.no_overrides || aq_trace_is_wanted()) {
        aq_job.map = aq_client_table(aq_job.size, sizeof(*aq_job.map), "the segments' mappings");
        memcpy(aq_job.map, aq_job.delta,
               aq_job.size * sizeof(*aq_job.map)); /* nothing is mapped yet */
    }
}

static void aq_client_make_objects(const char *name, gex_Flags_t flags)
{
    struct aq_ep *ep = &aq_job.ep;

    aq_job.client.flags = flags;
    aq_job.client.name = strdup(name);
    if (aq_job.client.name == NULL)
        aq_fatal("no memory for the client's name");
    ep->caps = GEX_EP_CAPABILITY_ALL;
}

/* On one host the job area serves; over several, messages are faster than any launcher. */
int aq_job_allgather(const void *own, size_t len, void *all)
{
    if (aq_job.host_count == 1)
        return aq_spawn_allgather(own, len, all);
    aq_callback_allgather(own, len, all);
    return AQ_OK;
}

/* --- start-up --- */

/* Returns the spawn provider if it is settled; else NULL. */
static const struct aq_spawn_provider *aq_client_provider(const struct aq_conduit_ops *conduit)
{
    if (aq_spawn_group() == NULL)
        return conduit != NULL ? conduit->spawn : NULL;
    if (conduit == NULL || conduit->spawn == NULL)
        return &aq_spawn_group_provider;
    if (conduit->spawn_group == NULL || aq_spawn_group()->mpi_comm == NULL)
        aq_fatal("the %s conduit needs a group that is made of an MPI communicator "
                 "(aqueduct_mpi.h), and this job's is not; name another (GASNET_CONDUIT)",
                 conduit->info->name);
    return conduit->spawn_group;
}

int aq_client_start(gex_Client_t *client_out, gex_EP_t *ep_out, gex_TM_t *tm_out, const char *name,
                    int *argc, char ***argv, gex_Flags_t flags, const char *conduit_ident)
{
    const struct aq_spawn_info *spawn;
    struct aq_conduit_choice choice;
    struct aq_conduit_info unheld = { .name =
                                          "" }; /* a conduit that the library does not contain */
    uint64_t began;

    if (aq_job.conduit != NULL)
        aq_fatal("gex_Client_Init: the library is already started; a job has one client and one "
                 "start, and only one that was started by aqueduct_job_start can end before its "
                 "process");
    if (client_out == NULL || ep_out == NULL || tm_out == NULL || name == NULL)
        return aq_fail(GASNET_ERR_BAD_ARG, "gex_Client_Init: an output or the name is NULL");
    if ((flags & ~(GEX_FLAG_USES_GASNET1 | GEX_FLAG_DEFER_THREADS)) != 0)
        return aq_fail(GASNET_ERR_BAD_ARG, "gex_Client_Init: unknown flags 0x%x", (unsigned)flags);

    aq_job_save_state();
    /* a reference that links the strings in */
    (void)aq_ident_value("GASNetConfig", &(unsigned){ 0 });
    aq_env_init();
    choice = aq_conduit_choose(aq_job_asked_conduit(), conduit_ident);
    aq_job.conduit = choice.conduit;
    unheld.name = choice.name;
    if (aq_spawn_init(argc, argv, choice.conduit != NULL ? choice.conduit->info : &unheld,
                      aq_client_provider(choice.conduit))
        != AQ_OK)
        /* aq_spawn_init() has logged the reason; a process without a job cannot go on */
        aq_exit_abort(1);
    spawn = aq_spawn_info();
    aq_job.rank = spawn->rank;
    aq_job.size = spawn->size;
    aq_log_set_rank(aq_job.rank);
    aq_log_set_dedup(&aq_spawn_jobarea()->logged);
    aq_env_exchange(); /* a wrapper may have given each rank a different environment */
    aq_exit_init();
    aq_env_refuse();
    aq_job.conduit = aq_conduit_settle(choice, spawn);
    aq_job.no_overrides = aq_env_bool(AQ_ENV_AQ_NO_OVERRIDES);
    began = aq_trace_init();
    if (!aq_job.no_overrides && !aq_trace_is_wanted())
        aq_job.loop_rank = aq_job.rank;

    aq_client_place(spawn);
    aq_job_choose_transports();
    aq_client_make_tables();
    aq_client_make_objects(name, flags);
    /* as above: a client that ignores the result would crash later */
    if (aq_job.local->init() != AQ_OK || aq_job.remote->init() != AQ_OK)
        aq_exit_abort(1);
    aq_wait_init();
    aq_callback_init();
    aq_callback_team_created(aq_job.tm);
    aq_segment_init_limits();
    aq_service_init(flags);
    aq_env_report(aq_job.rank);
    aq_callback_barrier();
    aq_log_set_dedup(NULL);
    atomic_store_explicit(&aq_job.initialised, true,
                          memory_order_relaxed); /* see aq_job_has_started() */
    aq_trace_end(AQ_TRACE_CLIENT_INIT, began, GEX_RANK_INVALID, 0);

    *client_out = (gex_Client_t)(void *)&aq_job.client;
    *ep_out = (gex_EP_t)(void *)&aq_job.ep;
    *tm_out = aq_tm_handle(aq_job.tm);
    return GASNET_OK;
}

/* --- checks that every call begins with --- */

void aq_check_started(const char *call)
{
    if (AQ_UNLIKELY(aq_job.size == 0))
        aq_fatal("%s called %s", call, aq_job_absent());
}

void aq_check_handle(const char *call, const char *what, const void *handle)
{
    aq_check_started(call);
    if (handle == NULL)
        aq_fatal("%s: the %s is NULL, which is no valid handle", call, what);
}

/* --- client queries --- */

static struct aq_client *aq_client(gex_Client_t client)
{
    return (struct aq_client *)(void *)client;
}

gex_Flags_t gex_Client_QueryFlags(gex_Client_t client)
{
    AQ_CHECK_HANDLE("client", client);
    return aq_client(client)->flags;
}

const char *gex_Client_QueryName(gex_Client_t client)
{
    AQ_CHECK_HANDLE("client", client);
    return aq_client(client)->name;
}

/* The client passes its own pointers from thread to thread: release here, acquire in the query. */
void gex_Client_SetCData(gex_Client_t client, const void *val)
{
    AQ_CHECK_HANDLE("client", client);
    atomic_store_explicit(&aq_client(client)->cdata, (void *)(uintptr_t)val, memory_order_release);
}

void *gex_Client_QueryCData(gex_Client_t client)
{
    AQ_CHECK_HANDLE("client", client);
    return atomic_load_explicit(&aq_client(client)->cdata, memory_order_acquire);
}

/* --- system queries --- */

gex_Rank_t gex_System_QueryJobRank(void)
{
    AQ_CHECK_STARTED();
    return aq_job.rank;
}

gex_Rank_t gex_System_QueryJobSize(void)
{
    AQ_CHECK_STARTED();
    return aq_job.size;
}

static void aq_client_put_group(gex_RankInfo_t *ranks, gex_Rank_t count, gex_Rank_t index,
                                gex_RankInfo_t **info_p, gex_Rank_t *count_p, gex_Rank_t *me_p)
{
    if (info_p != NULL)
        *info_p = ranks;
    if (count_p != NULL)
        *count_p = count;
    if (me_p != NULL)
        *me_p = index;
}

void gex_System_QueryNbrhdInfo(gex_RankInfo_t **info_p, gex_Rank_t *count_p, gex_Rank_t *me_p)
{
    AQ_CHECK_STARTED();
    aq_client_put_group(aq_job.nbrhd, aq_job.nbrhd_size, aq_job.nbrhd_index, info_p, count_p, me_p);
}

void gex_System_QueryHostInfo(gex_RankInfo_t **info_p, gex_Rank_t *count_p, gex_Rank_t *me_p)
{
    AQ_CHECK_STARTED();
    aq_client_put_group(aq_job.host, aq_job.host_size, aq_job.host_index, info_p, count_p, me_p);
}

void gex_System_QueryMyPosition(gex_Rank_t *nbrhd_count_p, gex_Rank_t *nbrhd_index_p,
                                gex_Rank_t *host_count_p, gex_Rank_t *host_index_p)
{
    AQ_CHECK_STARTED();
    if (nbrhd_count_p != NULL)
        *nbrhd_count_p = aq_job.nbrhd_count;
    if (nbrhd_index_p != NULL)
        *nbrhd_index_p = aq_job.nbrhd_of[aq_job.rank];
    if (host_count_p != NULL)
        *host_count_p = aq_job.host_count;
    if (host_index_p != NULL)
        *host_index_p = aq_job.host_of[aq_job.rank];
}

uint64_t gex_System_QueryMaxThreads(void)
{
    AQ_CHECK_STARTED();
    return aq_thread_max();
}

int gex_System_QueryHiddenAMConcurrencyLevel(void)
{
    AQ_CHECK_STARTED();
    return aq_service_is_on(); /* without it handlers run on the client's threads only */
}

int gex_System_QueryProgressThreads(gex_Client_t client, unsigned int *count_p,
                                    const gex_ProgressThreadInfo_t **info_p, gex_Flags_t flags)
{
    AQ_CHECK_STARTED();
    if (client == GEX_CLIENT_INVALID || count_p == NULL || info_p == NULL || flags != 0)
        return GASNET_ERR_BAD_ARG;
    if ((aq_client(client)->flags & GEX_FLAG_DEFER_THREADS) == 0)
        return GASNET_ERR_RESOURCE;
    *info_p = aq_service_info();
    *count_p = *info_p != NULL;
    return GASNET_OK;
}

char *gasnet_getenv(const char *name)
{
    AQ_CHECK_STARTED();
    return (char *)(uintptr_t)aq_env_get(name);
}

void gasnet_exit(int exitcode)
{
    aq_exit_job(exitcode);
}

int gasnet_getNodeInfo(gasnet_nodeinfo_t *table, int numentries)
{
    AQ_CHECK_STARTED();
    if (numentries < 0 || (numentries > 0 && table == NULL))
        return GASNET_ERR_BAD_ARG;
    for (gex_Rank_t rank = 0; rank < aq_job.size && rank < (gex_Rank_t)numentries; rank++) {
        const intptr_t map = aq_job.map[rank];

        table[rank].host = aq_job.host_of[rank];
        table[rank].supernode = aq_job.nbrhd_of[rank];
        table[rank].offset = map == AQ_NOT_MAPPED ? 0 : (uintptr_t)map;
    }
    return GASNET_OK;
}
