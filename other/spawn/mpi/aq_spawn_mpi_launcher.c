/*
 * aq_spawn_mpi_launcher.c - messages to the launcher that do not go through MPI.
 *
 * A rank cannot call MPI any more when a signal has interrupted it inside an MPI call, or when
 * another thread stays inside one. A launcher whose ranks end without MPI_Finalize reports an
 * error, kills the other ranks, and loses the job's exit code. So the launcher gets the message
 * that MPI itself would send: by the PMIx library that MPI has loaded (Open MPI), or as a line of
 * PMI-1 on MPI's connection to the launcher (MPICH with hydra).
 *
 * Threads   any, while other threads may be inside MPI. PMIx has a thread and locks of its own; MPI
 *           speaks PMI-1 only during MPI_Init and MPI_Finalize
 * Uses      aq_spawn_mpi_lib.h, dlopen. SPDX-License-Identifier: BSD-3-Clause
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "other/spawn/mpi/aq_spawn_mpi_internal.h"

#define AQ_PMIX_USERS_MAX 16   /* MPI, and libraries of the client's: far fewer */
#define AQ_PMI_ANSWER_MS  2000 /* timeout of the launcher's answer */

/* PMIx_Finalize and PMIx_Abort, without their header: infos and processes are never given */
typedef int aq_pmix_finalize_fn(const void *info, size_t count);
typedef int aq_pmix_abort_fn(int code, const char *text, void *procs, size_t count);

/* A function of the PMIx library in this process; false if it has none. */
static bool aq_pmix_function(const char *name, void *fn_out)
{
    void *lib, *fn;

    if (getenv("PMIX_NAMESPACE") == NULL)
        return false;
    lib = dlopen("libpmix.so.2", RTLD_NOW | RTLD_NOLOAD);
    fn = lib != NULL ? dlsym(lib, name) : NULL;
    memcpy(fn_out, &fn,
           sizeof(fn)); /* ISO C has no cast from an object's pointer to a function's */
    return fn != NULL;
}

int aq_spawn_mpi_launcher_fd(const struct aq_spawn_mpi_lib *lib)
{
    const char *text = getenv("PMI_FD");

    return lib->pmi && text != NULL ? atoi(text) : -1;
}

/* Sends a line to the launcher. Waits for the answer if there is one; what it says does not matter.
 */
static void aq_pmi_send_line(int fd, const char *line, bool answered)
{
    struct pollfd pfd = { fd, POLLIN, 0 };
    char c = '\0';

    if (write(fd, line, strlen(line)) < 0)
        return; /* the launcher has ended */
    while (answered && c != '\n' && poll(&pfd, 1, AQ_PMI_ANSWER_MS) > 0)
        if (read(fd, &c, 1) != 1)
            return;
}

void aq_spawn_mpi_launcher_finalize(const struct aq_spawn_mpi_lib *lib, bool broken)
{
    aq_pmix_finalize_fn *finalize;
    int fd;

    if (aq_pmix_function("PMIx_Finalize", &finalize))
        for (int i = 0; i < AQ_PMIX_USERS_MAX && finalize(NULL, 0) == 0; i++)
            continue; /* calls are counted: the last user's has the effect */
    /* hydra kills all ranks when one has ended without this line. A rank that it has killed cannot
     * take the answer; then hydra ends itself, and output that it has not passed on is lost */
    fd = broken ? -1 : aq_spawn_mpi_launcher_fd(lib);
    if (fd >= 0)
        aq_pmi_send_line(fd, "cmd=finalize\n", true);
}

void aq_spawn_mpi_launcher_abort(const struct aq_spawn_mpi_lib *lib, int code, const char *text)
{
    aq_pmix_abort_fn *abort_job;
    char line[64];
    int fd;

    if (aq_pmix_function("PMIx_Abort", &abort_job)) {
        abort_job(code, text, NULL, 0);
        return;
    }
    fd = aq_spawn_mpi_launcher_fd(lib);
    if (fd < 0) {
        lib->abort(code);
        return;
    }
    snprintf(line, sizeof(line), "cmd=abort exitcode=%d\n", code);
    aq_pmi_send_line(fd, line, false);
}
