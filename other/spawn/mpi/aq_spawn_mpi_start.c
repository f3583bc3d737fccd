/*
 * aq_spawn_mpi_start.c - starts MPI, or takes over the MPI that the client has started.
 *
 * The MPI in the process must be the one that the module was compiled for, its thread level must
 * suffice, and its launcher must be the one that has started the ranks.
 *
 * Owns      aq_spawn_mpi; MPI's handlers of crashes while the job lasts
 * Threads   one, at start
 * Uses      aq_spawn_mpi_lib.h, base/aq_env.h. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/aq_env.h"
#include "base/aq_lock.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "base/aq_symbol.h"
#include "other/spawn/aq_spawn_group.h"
#include "other/spawn/mpi/aq_spawn_mpi_internal.h"

struct aq_spawn_mpi aq_spawn_mpi AQ_JOB_STATE;

static const char *const aq_spawn_mpi_level_names[] = { "MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED",
                                                        "MPI_THREAD_SERIALIZED",
                                                        "MPI_THREAD_MULTIPLE" };

/* The level to ask for, and the lowest that suffices. */
struct aq_spawn_mpi_levels {
    enum aq_mpi_level wanted, min;
};

static struct aq_spawn_mpi_levels aq_spawn_mpi_levels(bool by_client)
{
    const bool service = aq_spawn_mpi.conduit->has_progress_thread();
    struct aq_spawn_mpi_levels levels = { AQ_MPI_SINGLE, AQ_MPI_SINGLE };

    if (aq_env_is_set(AQ_ENV_MPI_THREAD))
        levels.wanted = levels.min = (enum aq_mpi_level)aq_env_choice(AQ_ENV_MPI_THREAD);
    else if (AQ_THREADED)
        levels.wanted = levels.min = AQ_MPI_SERIALIZED;
    /* the conduit's lock serialises the progress thread's calls with its own, but not with the
     * calls of the client's threads */
    if (service && !aq_env_is_set(AQ_ENV_MPI_THREAD)) {
        levels.wanted = AQ_MPI_MULTIPLE;
        levels.min = by_client ? AQ_MPI_MULTIPLE : AQ_MPI_SERIALIZED;
    }
    return levels;
}

static int aq_spawn_mpi_too_low(enum aq_mpi_level min, bool by_client)
{
    const char *have = aq_spawn_mpi_level_names[aq_spawn_mpi.level],
               *need = aq_spawn_mpi_level_names[min];

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

int aq_spawn_mpi_failed(const char *what, int error)
{
    char text[512];

    aq_spawn_mpi.lib->text(error, text, sizeof(text));
    return aq_fail(AQ_ERR_SYS, "mpi: %s: %s", what, text);
}

/* A launcher of another MPI has started several processes, and each of them is a job of its own. */
static int aq_spawn_mpi_check_launcher(const char *about)
{
    static const char *const sizes[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "AQ_SPAWN_FORK" };
    const char *text;

    if (aq_spawn_mpi.lib->size() > 1 || aq_spawn_mpi.group)
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

/* --- signals --- */

static const int aq_spawn_mpi_crashes[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
#define AQ_SPAWN_MPI_CRASHES (sizeof(aq_spawn_mpi_crashes) / sizeof(aq_spawn_mpi_crashes[0]))

/* What MPI's libraries had installed for them; SIG_DFL: nothing, or it was left alone. */
static struct sigaction aq_spawn_mpi_taken[AQ_SPAWN_MPI_CRASHES] AQ_JOB_STATE;

static bool aq_spawn_mpi_is_handler_of_mpi(const struct sigaction *act)
{
    static const char *const libraries[] = { "libucs.", "libopen-pal.", "libmpi.", "libmpich." };
    const char *name;

    if (act->sa_handler == SIG_DFL || act->sa_handler == SIG_IGN)
        return false;
    name = aq_symbol_file((const void *)(uintptr_t)act->sa_handler);
    for (size_t k = 0; k < sizeof(libraries) / sizeof(libraries[0]); k++)
        if (strncmp(name, libraries[k], strlen(libraries[k])) == 0)
            return true;
    return false;
}

/* MPI libraries, and the libraries below them, install handlers that print the stack of a crash.
 * This library's handlers also end the job, but they are not installed where the client has a
 * handler. So the handlers of MPI libraries are removed, for as long as the job lasts. */
static void aq_spawn_mpi_take_signals(void)
{
    const struct sigaction standard = { .sa_handler = SIG_DFL };

    for (size_t i = 0; i < AQ_SPAWN_MPI_CRASHES; i++) {
        struct sigaction act;

        if (sigaction(aq_spawn_mpi_crashes[i], NULL, &act) != 0
            || !aq_spawn_mpi_is_handler_of_mpi(&act))
            continue;
        aq_spawn_mpi_taken[i] = act;
        sigaction(aq_spawn_mpi_crashes[i], &standard, NULL);
    }
}

/* A handler that the client has set since then is not replaced. */
void aq_spawn_mpi_give_signals(void)
{
    for (size_t i = 0; i < AQ_SPAWN_MPI_CRASHES; i++) {
        struct sigaction now;

        if (aq_spawn_mpi_taken[i].sa_handler != SIG_DFL
            && sigaction(aq_spawn_mpi_crashes[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaction(aq_spawn_mpi_crashes[i], &aq_spawn_mpi_taken[i], NULL);
    }
}

/* Loads the module, and makes sure that MPI can be started or used. AQ_OK or negative, logged. */
static int aq_spawn_mpi_load(const char **about_out)
{
    char why[512];

    aq_spawn_mpi.lib = aq_spawn_mpi.conduit->load(why, sizeof(why));
    if (aq_spawn_mpi.lib == NULL)
        return aq_fail(AQ_ERR_RESOURCE, "mpi: %s", why);
    *about_out = aq_spawn_mpi.lib->about(why, sizeof(why));
    if (*about_out == NULL)
        return aq_fail(AQ_ERR_ARG, "mpi: %s", why);
    aq_spawn_mpi.known = true;
    if (aq_spawn_mpi.lib->is_finalized())
        return aq_fail(
            AQ_ERR_ARG,
            "mpi: the program has called MPI_Finalize already, and MPI cannot be started again; "
            "start this library before that");
    return AQ_OK;
}

bool aq_spawn_mpi_is_ours(void)
{
    return aq_spawn_mpi.ours;
}

int aq_spawn_mpi_start(const struct aq_spawn_mpi_conduit *conduit)
{
    const struct aqueduct_group *group = aq_spawn_group();
    const struct aq_spawn_mpi_lib *lib;
    struct aq_spawn_mpi_levels levels;
    const char *about;
    bool by_client;
    int error = 0, rc;

    aq_spawn_mpi.conduit = conduit;
    aq_spawn_mpi.group = group != NULL;
    rc = aq_spawn_mpi_load(&about);
    if (rc != AQ_OK)
        return rc;
    lib = aq_spawn_mpi.lib;
    by_client = lib->is_initialized();
    levels = aq_spawn_mpi_levels(by_client);
    if (!by_client)
        error = lib->init(NULL, NULL, levels.wanted);
    if (error != 0)
        return aq_spawn_mpi_failed("MPI_Init_thread", error);
    aq_spawn_mpi.ours = !by_client;
    aq_spawn_mpi.level = lib->level();
    if (aq_spawn_mpi.level < levels.min)
        return aq_spawn_mpi_too_low(levels.min, by_client);
    error = lib->open(group != NULL ? group->mpi_comm : NULL);
    if (error != 0)
        return aq_spawn_mpi_failed("communicators of our own", error);
    AQ_LOG(INFO, SPAWN, "%s; %s, started by %s", about,
           aq_spawn_mpi_level_names[aq_spawn_mpi.level], by_client ? "the program" : "us");
    rc = aq_spawn_mpi_check_launcher(about);
    if (rc == AQ_OK)
        aq_spawn_mpi_take_signals();
    return rc;
}
