/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_script.c - parts of aq-bench that are scripts: aq-bench armci.
 * Owns      nothing
 * Threads   one
 * Uses      bench.h; the script and the programs that it compiles, in the folder armci/
 *
 * Such a part measures a library on top of Aqueduct beside others of its kind. Each is compiled by
 * the wrapper of its MPI when it is measured, so that aq-bench itself needs none of them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef AQ_BENCH_PREFIX
#define AQ_BENCH_PREFIX "/usr/local"
#endif
#ifndef AQ_BENCH_MPICC
#define AQ_BENCH_MPICC ""
#endif

/* The tree that this program is in, if it has ARMCI's headers; else where it was installed. */
static void aq_script_prefix(char *prefix, size_t size)
{
    const char *self = aq_front_self();
    const char *slash = strrchr(self, '/');
    char header[4400];

    if (slash != NULL) {
        snprintf(prefix, size, "%.*s/..", (int)(slash - self), self);
        snprintf(header, sizeof(header), "%s/include/armci.h", prefix);
        if (access(header, R_OK) == 0)
            return;
    }
    snprintf(prefix, size, "%s", AQ_BENCH_PREFIX);
}

bool aq_script_wanted(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "armci") == 0;
}

int aq_script_run(char **argv)
{
    char dir[4300], script[4400], prefix[4300];

    if (!aq_front_sources("armci/run.sh", dir, sizeof(dir))) {
        fprintf(stderr, "aq-bench: armci/run.sh is neither in %s nor in AQ_BENCH_DATADIR\n", dir);
        return 2;
    }
    snprintf(script, sizeof(script), "%s/armci/run.sh", dir);
    aq_script_prefix(prefix, sizeof(prefix));
    setenv("AQ_INSTALL", prefix, 0);
    setenv("MPICC", AQ_BENCH_MPICC, 0);
    argv[0] = (char *)(uintptr_t) "sh";
    argv[1] = script;
    execvp("sh", argv);
    fprintf(stderr, "aq-bench: sh cannot be started: %s\n", strerror(errno));
    return 2;
}
