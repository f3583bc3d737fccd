/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_pmix.c - jobs started by a launcher that speaks PMIx: mpirun, prterun, srun --mpi=pmix.
 * Owns      the connection to the launcher's PMIx server
 * Threads   one at start; fini and abort from the minder thread
 * Uses      libpmix.so.2, loaded at run time so that programs need not be linked with it; its header
 *           at build time
 */
#include "aq_config.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/aq_log.h"
#include "core/aq_rc.h"
#include "other/spawn/aq_spawn_kvs.h"

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
    const char *(*error)(pmix_status_t);
} aq_pmix;

/* dlsym() gives a data pointer; ISO C wants the detour to make a function of it */
static bool aq_pmix_symbol(void *lib, const char *name, void *fn_out)
{
    void *sym = dlsym(lib, name);

    memcpy(fn_out, &sym, sizeof(sym));
    return sym != NULL;
}

static int aq_pmix_load(void)
{
    void *lib = dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);

    if (lib == NULL)
        return aq_fail(AQ_ERR_RESOURCE,
                       "spawn: the launcher offers PMIx, but libpmix.so.2 cannot be loaded (%s); "
                       "install it (Debian: libpmix2) or start by gasnetrun",
                       dlerror());
    if (aq_pmix_symbol(lib, "PMIx_Init", &aq_pmix.init) &&
        aq_pmix_symbol(lib, "PMIx_Finalize", &aq_pmix.finalize) &&
        aq_pmix_symbol(lib, "PMIx_Abort", &aq_pmix.abort) &&
        aq_pmix_symbol(lib, "PMIx_Put", &aq_pmix.put) &&
        aq_pmix_symbol(lib, "PMIx_Commit", &aq_pmix.commit) &&
        aq_pmix_symbol(lib, "PMIx_Fence", &aq_pmix.fence) &&
        aq_pmix_symbol(lib, "PMIx_Get", &aq_pmix.get) &&
        aq_pmix_symbol(lib, "PMIx_Error_string", &aq_pmix.error))
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

#define AQ_PMIX_FDS 1024             /* descriptors that are looked at */

/* The library's socket to its server is not close-on-exec: programs that the client starts would
 * inherit it. The descriptors that were not open before are ours to mark. */
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
    pmix_value_t *value = NULL;
    pmix_proc_t all;
    pmix_status_t rc;

    if (aq_pmix_load() != AQ_OK)
        return AQ_ERR_RESOURCE;
    rc = aq_pmix_init_quietly();
    if (rc != PMIX_SUCCESS)
        return aq_pmix_failed("PMIx_Init", rc);
    all = aq_pmix_proc(PMIX_RANK_WILDCARD);
    rc = aq_pmix.get(&all, PMIX_JOB_SIZE, NULL, 0, &value);
    if (rc != PMIX_SUCCESS)
        return aq_pmix_failed("PMIx_Get of the job's size", rc);
    *rank_out = aq_pmix.me.rank;
    *size_out = value->data.uint32;
    free(value);
    return AQ_OK;
}

static int aq_pmix_put(const char *key, const char *text)
{
    char name[64];
    pmix_value_t value;
    pmix_status_t rc;

    memset(&value, 0, sizeof(value));
    snprintf(name, sizeof(name), "aq.%s", key);
    value.type = PMIX_STRING;
    value.data.string = (char *)text; /* copied by the callee, which just lacks the const */
    rc = aq_pmix.put(PMIX_GLOBAL, name, &value);
    return rc == PMIX_SUCCESS ? AQ_OK : aq_pmix_failed("PMIx_Put", rc);
}

static int aq_pmix_fence(void)
{
    pmix_proc_t all = aq_pmix_proc(PMIX_RANK_WILDCARD);
    pmix_info_t collect;
    pmix_status_t rc = aq_pmix.commit();

    if (rc != PMIX_SUCCESS)
        return aq_pmix_failed("PMIx_Commit", rc);
    memset(&collect, 0, sizeof(collect));
    strncpy(collect.key, PMIX_COLLECT_DATA, PMIX_MAX_KEYLEN);
    collect.value.type = PMIX_BOOL;
    collect.value.data.flag = true;
    rc = aq_pmix.fence(&all, 1, &collect, 1);
    return rc == PMIX_SUCCESS ? AQ_OK : aq_pmix_failed("PMIx_Fence", rc);
}

static int aq_pmix_get(uint32_t rank, const char *key, char value_out[AQ_KVS_VALUE])
{
    pmix_proc_t proc = aq_pmix_proc(rank);
    pmix_value_t *value = NULL;
    char name[64];
    pmix_status_t rc;

    snprintf(name, sizeof(name), "aq.%s", key);
    rc = aq_pmix.get(&proc, name, NULL, 0, &value);
    if (rc != PMIX_SUCCESS)
        return aq_pmix_failed("PMIx_Get", rc);
    if (value->type != PMIX_STRING || strlen(value->data.string) >= AQ_KVS_VALUE)
        return aq_fail(AQ_ERR_SYS, "spawn: PMIx_Get of %s from rank %u gave no short text", name,
                       rank);
    strcpy(value_out, value->data.string);
    free(value->data.string);
    free(value);
    return AQ_OK;
}

static char *aq_pmix_local_peers(void)
{
    pmix_proc_t all = aq_pmix_proc(PMIX_RANK_WILDCARD);
    pmix_value_t *value = NULL;
    char *text;

    if (aq_pmix.get(&all, PMIX_LOCAL_PEERS, NULL, 0, &value) != PMIX_SUCCESS)
        return NULL;
    text = value->type == PMIX_STRING ? value->data.string : NULL;
    free(value);
    return text;
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
    .local_peers = aq_pmix_local_peers,
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
    .notify = aq_spawn_kvs_notify,
    .leave = aq_spawn_kvs_leave,
};
