/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_raw.c - limits by bare MPI: finds the module, and runs the side of a row that it holds.
 * Owns      the loaded module
 * Threads   one in every process
 * Uses      bench.h, bench_raw.h, dlopen
 *
 * The module lies where the conduit's own does: in AQ_MODULE_DIR, or in modules/ (a build folder) or lib/aqueduct/ (an
 * installed tree) in a folder above this program.
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

static bool aq_raw_file(char *path, size_t size, const char *dir, const char *below)
{
    return snprintf(path, size, "%s%s/%s", dir, below, AQ_RAW_FILE) < (int)size && access(path, R_OK) == 0;
}

static bool aq_raw_find(char *path, size_t size)
{
    const char *set = getenv("AQ_MODULE_DIR");
    char dir[4096];

    if (set != NULL && *set != '\0')
        return aq_raw_file(path, size, set, "");
    snprintf(dir, sizeof(dir), "%s", aq_front_self());
    for (int i = 0; i < AQ_RAW_ABOVE; i++) {
        char *slash = strrchr(dir, '/');

        if (slash == NULL)
            return false;
        *slash = '\0';
        if (aq_raw_file(path, size, dir, "/modules") || aq_raw_file(path, size, dir, "/lib/aqueduct"))
            return true;
    }
    return false;
}

static const struct aq_raw_lib *aq_raw_load(void)
{
    char path[4200];
    const void *table = NULL;
    void *handle;

    if (!aq_raw_find(path, sizeof(path))) {
        fprintf(stderr, "aq-bench: no limits: %s is not installed (AQ_MODULE_DIR=DIR says where it is)\n", AQ_RAW_FILE);
        return NULL;
    }
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle != NULL)
        table = dlsym(handle, AQ_RAW_SYMBOL);
    if (table == NULL)
        fprintf(stderr, "aq-bench: no limits: %s\n", dlerror());
    return table;
}

void aq_raw_start(struct aq_job *job, size_t largest)
{
    const struct aq_raw_lib *lib = aq_raw_load();
    const char *what;

    if (lib == NULL)
        return;
    what = lib->open(job->rank, largest);
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
