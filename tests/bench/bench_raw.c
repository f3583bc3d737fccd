/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_raw.c - limits by bare MPI or bare verbs: finds the module.
 * Owns      the loaded module, what ranks 0 and 1 tell each other as it is opened
 * Threads   one in every process
 * Uses      bench.h, bench_raw.h, dlopen
 *
 * The module lies where the conduit's own does: in AQ_MODULE_DIR, or in modules/ (a build folder)
 * or lib/aqueduct/ (an installed tree) in a folder above this program.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AQ_RAW_ABOVE 3 /* folders above the program that are looked at */

static volatile unsigned aq_raw_seen;
static unsigned aq_raw_taken;
static unsigned char aq_raw_words[2][128]; /* the other may be a step ahead */

static bool aq_raw_file(char *path, size_t size, const char *name, const char *dir,
                        const char *below)
{
    return snprintf(path, size, "%s%s/%s", dir, below, name) < (int)size && access(path, R_OK) == 0;
}

static bool aq_raw_find(char *path, size_t size, const char *name)
{
    const char *set = getenv("AQ_MODULE_DIR");
    char dir[4096];

    if (set != NULL && *set != '\0')
        return aq_raw_file(path, size, name, set, "");
    snprintf(dir, sizeof(dir), "%s", aq_front_self());
    for (int i = 0; i < AQ_RAW_ABOVE; i++) {
        char *slash = strrchr(dir, '/');

        if (slash == NULL)
            return false;
        *slash = '\0';
        if (aq_raw_file(path, size, name, dir, "/modules")
            || aq_raw_file(path, size, name, dir, "/lib/aqueduct"))
            return true;
    }
    return false;
}

static const struct aq_raw_lib *aq_raw_load(const char *conduit)
{
    char path[4300], name[64];
    const void *table = NULL;
    void *handle;

    snprintf(name, sizeof(name), AQ_RAW_FILE, conduit);
    if (!aq_raw_find(path, sizeof(path), name)) {
        fprintf(stderr,
                "aq-bench: no limits: %s is not installed (AQ_MODULE_DIR=DIR says where it is)\n",
                name);
        return NULL;
    }
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle != NULL)
        table = dlsym(handle, AQ_RAW_SYMBOL);
    if (table == NULL)
        fprintf(stderr, "aq-bench: no limits: %s\n", dlerror());
    return table;
}

static void aq_h_raw(gex_Token_t token, void *bytes, size_t nbytes)
{
    (void)token;
    memcpy(aq_raw_words[aq_raw_seen % 2], bytes, nbytes < 128 ? nbytes : 128);
    aq_raw_seen++;
}

static void aq_raw_exchange(const void *ours, void *remote, size_t size)
{
    const struct aq_job *job = aq_job_get();

    gex_AM_RequestMedium0(job->tm, job->rank == 0 ? 1 : 0, AQ_H_RAW, (void *)(uintptr_t)ours, size,
                          GEX_EVENT_NOW, 0);
    GASNET_BLOCKUNTIL(aq_raw_seen > aq_raw_taken);
    memcpy(remote, aq_raw_words[aq_raw_taken++ % 2], size);
}

void aq_raw_start(struct aq_job *job, size_t largest)
{
    gex_AM_Entry_t entry = {
        AQ_H_RAW, (gex_AM_Fn_t)aq_h_raw, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "raw"
    };
    const struct aq_raw_lib *lib = aq_raw_load(job->options->conduit);
    const char *what;

    gex_EP_RegisterHandlers(job->ep, &entry, 1);
    gex_Event_Wait(gex_Coll_BarrierNB(job->tm, 0));
    if (lib == NULL)
        return;
    what = lib->open(job->rank, largest, aq_raw_exchange);
    if (what == NULL)
        job->raw = lib;
    else
        fprintf(stderr, "aq-bench: no limits: %s\n", what);
}

void aq_raw_stop(struct aq_job *job)
{
    if (job->raw != NULL)
        job->raw->close();
    job->raw = NULL;
}
