/*
 * aq_mpi_disconnect.c - a word to the launcher that does not go through MPI.
 *
 * Why       A rank that a signal has taken out of the middle of an MPI call, or whose other threads
 *           are in one, cannot call MPI any more. A launcher whose ranks end without MPI_Finalize
 *           complains, kills the others, and loses the job's exit code. So what MPI would tell it
 *           is told directly: by the PMIx library that MPI has loaded (Open MPI), or as a line of
 *           PMI-1 on MPI's connection to the launcher (MPICH, hydra)
 * Threads   any, while MPI may be in use by others. PMIx has a thread and locks of its own; PMI-1
 *           is spoken by MPI during MPI_Init and MPI_Finalize only
 * Uses      aq_mpi_lib.h, dlopen. SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conduits/mpi/aq_mpi.h"
#include "conduits/mpi/aq_mpi_job.h"

#define AQ_MPI_PMIX_USERS 16   /* MPI, and libraries of the program's: far fewer */
#define AQ_MPI_ANSWER_MS  2000 /* of the launcher */

/* PMIx_Finalize and PMIx_Abort, without their header: infos and processes are never given */
typedef int aq_pmix_finalize_fn(const void *info, size_t count);
typedef int aq_pmix_abort_fn(int code, const char *text, void *procs, size_t count);

/* A function of the PMIx library in this process; false if it has none. */
static bool aq_mpi_pmix(const char *name, void *fn_out)
{
    void *lib, *fn;

    if (getenv("PMIX_NAMESPACE") == NULL)
        return false;
    lib = dlopen("libpmix.so.2", RTLD_NOW | RTLD_NOLOAD);
    fn = lib != NULL ? dlsym(lib, name) : NULL;
    memcpy(fn_out, &fn, sizeof(fn)); /* ISO C wants the detour to make a function of it */
    return fn != NULL;
}

int aq_mpi_end_life_fd(void)
{
    const char *text = getenv("PMI_FD");

    return aq_mpi.lib->job.pmi && text != NULL ? atoi(text) : -1;
}

/* A line to the launcher, and its answer, which is only waited for. */
static void aq_mpi_pmi_say(int fd, const char *line, bool answered)
{
    struct pollfd pfd = { fd, POLLIN, 0 };
    char c = '\0';

    if (write(fd, line, strlen(line)) < 0)
        return; /* it is gone */
    while (answered && c != '\n' && poll(&pfd, 1, AQ_MPI_ANSWER_MS) > 0)
        if (read(fd, &c, 1) != 1)
            return;
}

void aq_mpi_disconnect(void)
{
    aq_pmix_finalize_fn *finalize;
    int fd;

    if (aq_mpi.lib->job.is_finalized() && !aq_mpi_end_is_cut_short()) /* MPI has said it */
        return;
    if (aq_mpi_pmix("PMIx_Finalize", &finalize))
        for (int i = 0; i < AQ_MPI_PMIX_USERS && finalize(NULL, 0) == 0; i++)
            continue; /* the last user's counts */
    fd = aq_mpi_end_life_fd();
    if (fd >= 0)
        aq_mpi_pmi_say(fd, "cmd=finalize\n", true);
}

void aq_mpi_end_abort(int code, const char *text)
{
    aq_pmix_abort_fn *abort_job;
    char line[64];
    int fd;

    if (aq_mpi.lib == NULL || !aq_mpi.lib->job.is_initialized() || aq_mpi.lib->job.is_finalized())
        return; /* the launcher sees us end */
    if (aq_mpi_pmix("PMIx_Abort", &abort_job)) {
        abort_job(code, text, NULL, 0);
        return;
    }
    fd = aq_mpi_end_life_fd();
    if (fd < 0) {
        aq_mpi.lib->job.abort(code);
        return;
    }
    snprintf(line, sizeof(line), "cmd=abort exitcode=%d\n", code);
    aq_mpi_pmi_say(fd, line, false);
}
