/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_pmix.c - jobs started by a launcher that speaks PMIx: mpirun, prterun, srun --mpi=pmix.
 * Owns      the connection to the launcher's PMIx server
 * Threads   one at start; get from any, fini and abort from the monitor thread
 * How       a value stays with the server of its host until a get fetches it (direct modex), or a
 *           fence that collects carries it to all hosts. A fence that does not collect promises
 *           less than it should: for a moment after it servers may answer that a value does not
 *           exist (seen with Slurm 22.05), and may have kept an older answer about that rank, so
 *           get repeats its request for a while
 * Uses      libpmix.so.2, loaded at run time so that programs need not be linked with it; its
 *           header at build time
 */
#include "aq_config.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "other/spawn/aq_spawn_kvs.h"
#include "other/spawn/aq_spawn_monitor.h"

static bool aq_pmix_offered(void)
{
    return getenv("PMIX_NAMESPACE") != NULL && getenv("PMIX_RANK") != NULL;
}

#ifdef HAVE_PMIX
#include <pmix.h>

static struct {
    pmix_proc_t me;
    pmix_status_t (*init)(pmix_proc_t *, pmix_info_t *, size_t);
    pmix_status_t (*finalize)(const pmix_info_t *, size_t);
    pmix_status_t (*abort)(int, const char *, pmix_proc_t *, size_t);
    pmix_status_t (*put)(pmix_scope_t, const char *, pmix_value_t *);
    pmix_status_t (*commit)(void);
    pmix_status_t (*fence)(const pmix_proc_t *, size_t, const pmix_info_t *, size_t);
    pmix_status_t (*get)(const pmix_proc_t *, const char *, const pmix_info_t *, size_t,
                         pmix_value_t **);
    pmix_status_t (*get_nb)(const pmix_proc_t *, const char *, const pmix_info_t *, size_t,
                            pmix_value_cbfunc_t, void *);
    void (*on_event)(pmix_status_t[], size_t, pmix_info_t[], size_t, pmix_notification_fn_t,
                     pmix_hdlr_reg_cbfunc_t, void *); /* NULL if the library has none */
    const char *(*error)(pmix_status_t);
} aq_pmix;

/* dlsym() returns a data pointer; ISO C needs the detour to convert it to a function pointer */
static bool aq_pmix_symbol(void *lib, const char *name, void *fn_out)
{
    void *sym = dlsym(lib, name);

    memcpy(fn_out, &sym, sizeof(sym));
    return sym != NULL;
}

#ifdef PMIX_ERR_LOST_CONNECTION /* since version 4 */
#define AQ_PMIX_LOST PMIX_ERR_LOST_CONNECTION
#else
#define AQ_PMIX_LOST PMIX_ERR_LOST_CONNECTION_TO_SERVER
#endif

/* runs in a thread of the library */
static void aq_pmix_on_lost_server(size_t id, pmix_status_t status, const pmix_proc_t *source,
                                   pmix_info_t info[], size_t infos, pmix_info_t *results,
                                   size_t result_count, pmix_event_notification_cbfunc_fn_t done,
                                   void *arg)
{
    (void)id, (void)status, (void)info, (void)infos, (void)results, (void)result_count;
    /* the library reports the end of other ranks in the same way; the monitor notices those
     * itself */
    if (source == NULL || strcmp(source->nspace, aq_pmix.me.nspace) != 0)
        aq_monitor_launcher_lost();
    if (done != NULL)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

static int aq_pmix_load(void)
{
    void *lib = dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);

    if (lib == NULL)
        return aq_fail(AQ_ERR_RESOURCE,
                       "spawn: the launcher offers PMIx, but libpmix.so.2 cannot be loaded (%s); "
                       "install it (Debian: libpmix2) or start by gasnetrun",
                       dlerror());
    aq_pmix_symbol(lib, "PMIx_Register_event_handler", &aq_pmix.on_event);
    if (aq_pmix_symbol(lib, "PMIx_Init", &aq_pmix.init)
        && aq_pmix_symbol(lib, "PMIx_Finalize", &aq_pmix.finalize)
        && aq_pmix_symbol(lib, "PMIx_Abort", &aq_pmix.abort)
        && aq_pmix_symbol(lib, "PMIx_Put", &aq_pmix.put)
        && aq_pmix_symbol(lib, "PMIx_Commit", &aq_pmix.commit)
        && aq_pmix_symbol(lib, "PMIx_Fence", &aq_pmix.fence)
        && aq_pmix_symbol(lib, "PMIx_Get", &aq_pmix.get)
        && aq_pmix_symbol(lib, "PMIx_Get_nb", &aq_pmix.get_nb)
        && aq_pmix_symbol(lib, "PMIx_Error_string", &aq_pmix.error))
        return AQ_OK;
    return aq_fail(AQ_ERR_RESOURCE, "spawn: libpmix.so.2 lacks a function (%s)", dlerror());
}

static int aq_pmix_failed(const char *what, pmix_status_t rc)
{
    return aq_fail(AQ_ERR_SYS, "spawn: %s: %s", what, aq_pmix.error(rc));
}

static pmix_proc_t aq_pmix_proc(uint32_t rank)
{
    pmix_proc_t proc = aq_pmix.me;

    proc.rank = rank;
    return proc;
}

#define AQ_PMIX_FDS 1024 /* descriptors that are tested */

/* The library's socket to its server is not close-on-exec: programs that the client starts would
 * inherit it. Marks the descriptors that were not open before. */
static pmix_status_t aq_pmix_init_quietly(void)
{
    bool open_before[AQ_PMIX_FDS];
    pmix_status_t rc;

    for (int fd = 0; fd < AQ_PMIX_FDS; fd++)
        open_before[fd] = fcntl(fd, F_GETFD) >= 0;
    rc = aq_pmix.init(&aq_pmix.me, NULL, 0);
    for (int fd = 0; fd < AQ_PMIX_FDS; fd++)
        if (!open_before[fd] && fcntl(fd, F_GETFD) == 0)
            fcntl(fd, F_SETFD, FD_CLOEXEC);
    return rc;
}

static int aq_pmix_init(uint32_t *rank_out, uint32_t *size_out)
{
    pmix_status_t lost[2] = { PMIX_ERR_LOST_CONNECTION_TO_SERVER, AQ_PMIX_LOST }, rc;
    pmix_value_t *value = NULL;
    pmix_proc_t all;

    if (aq_pmix_load() != AQ_OK)
        return AQ_ERR_RESOURCE;
    rc = aq_pmix_init_quietly();
    if (rc != PMIX_SUCCESS)
        return aq_pmix_failed("PMIx_Init", rc);
    if (aq_pmix.on_event != NULL)
        aq_pmix.on_event(lost, 2, NULL, 0, aq_pmix_on_lost_server, NULL, NULL);
    all = aq_pmix_proc(PMIX_RANK_WILDCARD);
    rc = aq_pmix.get(&all, PMIX_JOB_SIZE, NULL, 0, &value);
    if (rc != PMIX_SUCCESS)
        return aq_pmix_failed("PMIx_Get of the job's size", rc);
    *rank_out = aq_pmix.me.rank;
    *size_out = value->data.uint32;
    free(value);
    return AQ_OK;
}

static pmix_info_t aq_pmix_flag(const char *key)
{
    pmix_info_t info;

    memset(&info, 0, sizeof(info));
    strncpy(info.key, key, PMIX_MAX_KEYLEN);
    info.value.type = PMIX_BOOL;
    info.value.data.flag = true;
    return info;
}

static int aq_pmix_put(const char *key, const char *text, enum aq_kvs_scope scope)
{
    char name[64];
    pmix_value_t value;
    pmix_status_t rc;

    memset(&value, 0, sizeof(value));
    snprintf(name, sizeof(name), "aq.%s", key);
    value.type = PMIX_STRING;
    value.data.string = (char *)text; /* the callee copies it; its declaration lacks the const */
    rc = aq_pmix.put(scope == AQ_KVS_HOST ? PMIX_LOCAL : PMIX_GLOBAL, name, &value);
    return rc == PMIX_SUCCESS ? AQ_OK : aq_pmix_failed("PMIx_Put", rc);
}

static int aq_pmix_fence(bool collect)
{
    pmix_proc_t all = aq_pmix_proc(PMIX_RANK_WILDCARD);
    pmix_info_t info = aq_pmix_flag(PMIX_COLLECT_DATA);
    pmix_status_t rc = aq_pmix.commit();

    if (rc != PMIX_SUCCESS)
        return aq_pmix_failed("PMIx_Commit", rc);
    rc = aq_pmix.fence(&all, 1, collect ? &info : NULL, collect ? 1 : 0);
    return rc == PMIX_SUCCESS ? AQ_OK : aq_pmix_failed("PMIx_Fence", rc);
}

/* One request to the server. The requester may have given up when the answer comes, so the last
 * user frees it. */
struct aq_pmix_question {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    int users;
    bool done;
    pmix_status_t status;
    char value[AQ_KVS_VALUE];
};

static void aq_pmix_release(struct aq_pmix_question *q)
{
    bool last = --q->users == 0;

    pthread_mutex_unlock(&q->lock);
    if (!last)
        return;
    pthread_cond_destroy(&q->answered);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

/* runs in a thread of the library */
static void aq_pmix_on_answer(pmix_status_t status, pmix_value_t *value, void *arg)
{
    struct aq_pmix_question *q = arg;

    pthread_mutex_lock(&q->lock);
    q->status = status;
    if (status == PMIX_SUCCESS) {
        if (value != NULL && value->type == PMIX_STRING
            && strlen(value->data.string) < AQ_KVS_VALUE)
            strcpy(q->value, value->data.string);
        else
            q->status = PMIX_ERR_BAD_PARAM;
    }
    q->done = true;
    pthread_cond_signal(&q->answered);
    aq_pmix_release(q);
}

static pmix_status_t aq_pmix_ask(uint32_t rank, const char *name, bool again,
                                 char value_out[AQ_KVS_VALUE], const struct timespec *end)
{
    struct aq_pmix_question *q = calloc(1, sizeof(*q));
    pmix_proc_t proc = aq_pmix_proc(rank);
    size_t infos = 0;
    pmix_info_t info;
    pmix_status_t rc;

    if (q == NULL)
        return PMIX_ERR_NOMEM;
    memset(&info, 0, sizeof(info));
#ifdef PMIX_GET_REFRESH_CACHE
    info = aq_pmix_flag(PMIX_GET_REFRESH_CACHE);
    infos = again;
#endif
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->answered, NULL);
    q->users = 2;
    rc = aq_pmix.get_nb(&proc, name, infos != 0 ? &info : NULL, infos, aq_pmix_on_answer, q);
    pthread_mutex_lock(&q->lock);
    if (rc != PMIX_SUCCESS)
        q->users--; /* no answer will come */
    while (rc == PMIX_SUCCESS && !q->done)
        if (pthread_cond_timedwait(&q->answered, &q->lock, end) != 0 && !q->done)
            rc = PMIX_ERR_TIMEOUT;
    if (rc == PMIX_SUCCESS)
        rc = q->status;
    if (rc == PMIX_SUCCESS)
        memcpy(value_out, q->value, sizeof(q->value));
    aq_pmix_release(q);
    return rc;
}

/* Returns true if the same request may have another answer a moment later: Slurm's daemons answer
 * "error" when both of two nodes send each other their first request. */
static bool aq_pmix_transient(pmix_status_t rc)
{
    return rc != PMIX_SUCCESS && rc != PMIX_ERR_TIMEOUT && rc != PMIX_ERR_INIT
           && rc != PMIX_ERR_NOMEM && rc != PMIX_ERR_BAD_PARAM;
}

static int aq_pmix_get(uint32_t rank, const char *key, char value_out[AQ_KVS_VALUE], int seconds)
{
    struct timespec end, now, pause = { 0, 500000 };
    char name[64];
    pmix_status_t rc;

    snprintf(name, sizeof(name), "aq.%s", key);
    clock_gettime(CLOCK_REALTIME, &end); /* the clock of pthread_cond_timedwait() */
    end.tv_sec += seconds;
    rc = aq_pmix_ask(rank, name, false, value_out, &end);
    while (aq_pmix_transient(rc)) {
        clock_gettime(CLOCK_REALTIME, &now);
        if (now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec))
            break;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 50000000)
            pause.tv_nsec *= 2;
        rc = aq_pmix_ask(rank, name, true, value_out, &end);
    }
    return rc == PMIX_SUCCESS ? AQ_OK
                              : aq_fail(AQ_ERR_SYS, "spawn: PMIx_Get of %s of rank %u: %s", name,
                                        rank, aq_pmix.error(rc));
}

/* the library's value of a key of proc, or of a node, as text; NULL if it has none on this host */
static char *aq_pmix_know(const pmix_proc_t *proc, const char *key, const char *node)
{
    pmix_info_t info[3] = { aq_pmix_flag(PMIX_OPTIONAL), aq_pmix_flag(PMIX_NODE_INFO) };
    pmix_value_t *value = NULL;
    char *text;

    memset(&info[2], 0, sizeof(info[2]));
    strncpy(info[2].key, PMIX_HOSTNAME, PMIX_MAX_KEYLEN);
    info[2].value.type = PMIX_STRING;
    info[2].value.data.string = (char *)node; /* read only */
    if (aq_pmix.get(proc, key, info, node != NULL ? 3 : 1, &value) != PMIX_SUCCESS)
        return NULL;
    text = value->type == PMIX_STRING ? value->data.string : NULL;
    free(value);
    return text;
}

/* records that the ranks in "0-3,7" are on this host; returns how many they are */
static uint32_t aq_pmix_mark(const char *list, uint32_t host, uint32_t *host_of, uint32_t size)
{
    uint32_t count = 0;

    while (list != NULL && *list != '\0') {
        char *end;
        unsigned long from = strtoul(list, &end, 10), to = from;

        if (end == list)
            return 0;
        if (*end == '-')
            to = strtoul(end + 1, &end, 10);
        for (; from <= to && from < size; from++, count++)
            host_of[from] = host;
        list = *end == ',' ? end + 1 : end;
    }
    return count;
}

/* Uses the list of nodes, and the ranks of each node. Open MPI's servers do not know the latter for
 * all nodes. */
static bool aq_pmix_place_by_node(uint32_t *host_of, uint32_t size)
{
    pmix_proc_t all = aq_pmix_proc(PMIX_RANK_WILDCARD);
    char *nodes = aq_pmix_know(&all, PMIX_NODE_LIST, NULL), *rest = NULL, *list;
    uint32_t host = 0, count = 0, had = 1;

    for (char *node = nodes != NULL ? strtok_r(nodes, ",", &rest) : NULL; node != NULL && had > 0;
         node = strtok_r(NULL, ",", &rest)) {
        list = aq_pmix_know(&all, PMIX_LOCAL_PEERS, node);
        had = host < size ? aq_pmix_mark(list, host++, host_of, size) : 0;
        count += had;
        free(list);
    }
    free(nodes);
    return count == size;
}

/* Asks for the node of each rank, and compares it with the last few nodes first. */
static bool aq_pmix_place_by_rank(uint32_t *host_of, uint32_t size)
{
    char **known = calloc(size, sizeof(*known)), *name;
    uint32_t count = 0, h = 0, i;

    for (i = 0; known != NULL && i < size; i++) {
        pmix_proc_t proc = aq_pmix_proc(i);

        name = aq_pmix_know(&proc, PMIX_HOSTNAME, NULL);
        if (name == NULL)
            break;
        /* ranks are placed in blocks or round robin: the same node as before, or the next */
        for (uint32_t tried = 0; tried < count && strcmp(known[h], name) != 0; tried++)
            h = (h + 1) % count;
        if (count == 0 || strcmp(known[h], name) != 0) {
            h = count++;
            known[h] = name;
            name = NULL;
        }
        free(name);
        host_of[i] = h;
    }
    while (count > 0)
        free(known[--count]);
    free(known);
    return i == size;
}

static bool aq_pmix_place(uint32_t *host_of, uint32_t size)
{
    pmix_proc_t all = aq_pmix_proc(PMIX_RANK_WILDCARD);
    char *peers = aq_pmix_know(&all, PMIX_LOCAL_PEERS, NULL);
    uint32_t local = aq_pmix_mark(peers, 0, host_of, size);

    free(peers);
    if (local == size)
        return true;
    return local > 0
           && (aq_pmix_place_by_node(host_of, size) || aq_pmix_place_by_rank(host_of, size));
}

static void aq_pmix_abort(int code, const char *text)
{
    aq_pmix.abort(code, text, NULL, 0);
}

static void aq_pmix_fini(void)
{
    aq_pmix.finalize(NULL, 0);
}

static const struct aq_kvs_ops aq_pmix_ops = {
    .init = aq_pmix_init,
    .put = aq_pmix_put,
    .fence = aq_pmix_fence,
    .get = aq_pmix_get,
    .place = aq_pmix_place,
    .abort = aq_pmix_abort,
    .fini = aq_pmix_fini,
};

static int aq_pmix_join(struct aq_spawn_state *st)
{
    return aq_spawn_kvs_join(st, &aq_pmix_ops);
}
#else
static int aq_pmix_join(struct aq_spawn_state *st)
{
    (void)st;
    return aq_fail(
        AQ_ERR_RESOURCE,
        "spawn: the launcher offers PMIx, which this build cannot use; start the program "
        "by gasnetrun, or rebuild with PMIx's headers installed (Debian: libpmix-dev)");
}
#endif

const struct aq_spawn_provider aq_spawn_pmix_provider = {
    .name = "pmix",
    .offered = aq_pmix_offered,
    .join = aq_pmix_join,
    .allgather = aq_spawn_kvs_allgather,
    .bcast = aq_spawn_kvs_bcast,
    .fence = aq_spawn_kvs_fence,
    .publish = aq_spawn_kvs_publish,
    .lookup = aq_spawn_kvs_lookup,
    .notify = aq_spawn_kvs_notify,
    .finish = aq_spawn_kvs_shutdown,
};
