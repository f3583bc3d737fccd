/*
 * aq_mpi_start.c - MPI itself: is it the one that the module was compiled for, who starts it, with
 * what thread level?
 *
 * Owns      aq_mpi_job
 * Threads   one, at start
 * Uses      aq_mpi_lib.h, base/aq_env.h. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conduits/mpi/aq_mpi.h"
#include "conduits/mpi/aq_mpi_job.h"
#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "core/aq_service.h"

struct aq_mpi_job aq_mpi_job;

static const char *const aq_mpi_level_names[] = { "MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED",
                                                  "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE" };

/* What we ask for, and the least that will do. */
struct aq_mpi_levels {
    enum aq_mpi_level wanted, min;
};

static struct aq_mpi_levels aq_mpi_levels(bool by_client)
{
    const bool service = aq_service_is_on();
    struct aq_mpi_levels levels = { AQ_MPI_SINGLE, AQ_MPI_SINGLE };

    if (aq_env_is_set(AQ_ENV_MPI_THREAD))
        levels.wanted = levels.min = (enum aq_mpi_level)aq_env_choice(AQ_ENV_MPI_THREAD);
    else if (AQ_THREADED)
        levels.wanted = levels.min = AQ_MPI_SERIALIZED;
    /* the service thread's calls can be kept apart from ours, but not from those of the client's
     * threads */
    if (service && !aq_env_is_set(AQ_ENV_MPI_THREAD)) {
        levels.wanted = AQ_MPI_MULTIPLE;
        levels.min = by_client ? AQ_MPI_MULTIPLE : AQ_MPI_SERIALIZED;
    }
    return levels;
}

static int aq_mpi_too_low(enum aq_mpi_level min, bool by_client)
{
    const char *have = aq_mpi_level_names[aq_mpi_job.level], *need = aq_mpi_level_names[min];

    if (!by_client)
        return aq_fail(AQ_ERR_RESOURCE,
                       "mpi: this MPI gives no more than %s, and %s is needed; use the seq "
                       "library, or an MPI built "
                       "with threads",
                       have, need);
    return aq_fail(AQ_ERR_ARG,
                   "mpi: the program has started MPI with %s, but %s is needed%s; let it call "
                   "MPI_Init_thread(&argc, "
                   "&argv, %s, &provided), or start this library before MPI%s",
                   have, need,
                   aq_env_is_set(AQ_ENV_MPI_THREAD) ? " by GASNET_MPI_THREAD"
                   : min == AQ_MPI_MULTIPLE ? " with a service thread (GASNET_PROGRESS_THREAD)"
                                            : " in par",
                   need,
                   aq_env_is_set(AQ_ENV_MPI_THREAD)
                       ? ""
                       : "; or, if only the main thread calls this library, set "
                         "GASNET_MPI_THREAD=funneled");
}

static int aq_mpi_failed(const char *what, int error)
{
    char text[512];

    aq_mpi.lib->job.text(error, text, sizeof(text));
    return aq_fail(AQ_ERR_SYS, "mpi: %s: %s", what, text);
}

/* A rank that is alone although the launcher has started several has met the launcher of another
 * MPI. */
static int aq_mpi_check_launcher(const char *about)
{
    static const char *const sizes[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "AQ_SPAWN_FORK" };
    const char *text;

    if (aq_mpi.lib->job.size() > 1)
        return AQ_OK;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        text = getenv(sizes[i]);
        if (text == NULL || (i < 2 && atoi(text) <= 1))
            continue;
        return aq_fail(AQ_ERR_ARG,
                       "mpi: the launcher has started several processes, but in each of them MPI "
                       "(%s) sees only one; "
                       "start the program by `gasnetrun -c mpi -n N`, or by the mpirun of that MPI",
                       about);
    }
    return AQ_OK;
}

/* MPI libraries, and those beneath them, install handlers that print a crash's stack. This
 * library's handlers do so, too, and end the job besides, but they leave alone what they take for
 * the program's. */
static void aq_mpi_take_signals(void)
{
    static const int signals[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
    static const char *const libraries[] = { "libucs.", "libopen-pal.", "libmpi.", "libmpich." };

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        const struct sigaction standard = { .sa_handler = SIG_DFL };
        const char *name;
        struct sigaction act;
        Dl_info info;

        if (sigaction(signals[i], NULL, &act) != 0 || act.sa_handler == SIG_DFL
            || act.sa_handler == SIG_IGN
            || dladdr((const void *)(uintptr_t)act.sa_handler, &info) == 0
            || info.dli_fname == NULL)
            continue;
        name = strrchr(info.dli_fname, '/') != NULL ? strrchr(info.dli_fname, '/') + 1
                                                    : info.dli_fname;
        for (size_t k = 0; k < sizeof(libraries) / sizeof(libraries[0]); k++)
            if (strncmp(name, libraries[k], strlen(libraries[k])) == 0)
                sigaction(signals[i], &standard, NULL);
    }
}

int aq_mpi_start(void)
{
    const struct aq_mpi_lib_job *mpi;
    struct aq_mpi_levels levels;
    const char *about;
    char why[512];
    bool by_client;
    int error = 0;

    if (aq_mpi_load(why, sizeof(why)) != AQ_OK)
        return aq_fail(AQ_ERR_RESOURCE, "mpi: %s", why);
    mpi = &aq_mpi.lib->job;
    about = mpi->about(why, sizeof(why));
    if (about == NULL)
        return aq_fail(AQ_ERR_ARG, "mpi: %s", why);
    aq_mpi_job.known = true;
    if (mpi->is_finalized())
        return aq_fail(
            AQ_ERR_ARG,
            "mpi: the program has called MPI_Finalize already, and MPI cannot be started again; "
            "start this library before that");
    by_client = mpi->is_initialized();
    levels = aq_mpi_levels(by_client);
    if (!by_client)
        error = mpi->init(NULL, NULL, levels.wanted);
    if (error != 0)
        return aq_mpi_failed("MPI_Init_thread", error);
    aq_mpi_take_signals();
    aq_mpi_job.ours = !by_client;
    aq_mpi_job.level = mpi->level();
    if (aq_mpi_job.level < levels.min)
        return aq_mpi_too_low(levels.min, by_client);
    error = mpi->open();
    if (error != 0)
        return aq_mpi_failed("communicators of our own", error);
    AQ_LOG(INFO, SPAWN, "%s; %s, started by %s", about, aq_mpi_level_names[aq_mpi_job.level],
           by_client ? "the program" : "us");
    return aq_mpi_check_launcher(about);
}
