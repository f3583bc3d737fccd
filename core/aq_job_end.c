/*
 * aq_job_end.c - a job over a group, and its end while the process goes on; see aqueduct.h.
 *
 * Order     a barrier by messages -> everything sent is acknowledged -> the service thread ends ->
 *           the group's barrier, twice -> the monitor ends -> every module frees what it has -> the
 *           variables of the job are as before the first job
 * Losses    a rank's monitor watches until that rank has left the second barrier. Between the
 *           barriers the hosts disconnect: each has come to the end, so that one that is silent
 *           afterwards has only been faster
 * Kept      What stays in a process between jobs; the next job uses all of it again:
 *             - the state of threads that have called the library, and their pools of operations;
 *               the one thread-specific key that reclaims them
 *             - the copy of the variables marked AQ_JOB_STATE, from before the first job
 *             - texts that the client has set by gasnett_setenv(), and decoded ones it has read
 *             - the exit() hook, which does nothing between jobs; the line buffer of stdout
 *             - the alternate signal stack, if another thread ends the job than has started it
 *             - the permission of process_vm_readv() and the registration for membarrier()
 *             - the modules of conduits, and the libraries that they load
 *             - what the tools measure once: the clock's speed, the host's name
 * Threads   one, and no other is in the library
 * Uses      every module's fini. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "aqueduct.h"

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "core/aq_callback.h"
#include "core/aq_conduit_choice.h"
#include "core/aq_ep.h"
#include "core/aq_exit.h"
#include "core/aq_job.h"
#include "core/aq_job_end.h"
#include "core/aq_segment.h"
#include "core/aq_service.h"
#include "core/aq_thread.h"
#include "core/aq_tm.h"
#include "core/aq_trace.h"
#include "other/spawn/aq_spawn.h"
#include "other/spawn/aq_spawn_group.h"

#define AQ_JOB_DRAIN_NS UINT64_C(5000000000) /* for peers to acknowledge; a lost peer is noticed */

static char *aq_job_image;     /* the variables from before the first job */
static unsigned aq_jobs_ended; /* by this process */
static const char *aq_job_group_conduit AQ_JOB_STATE;

void aq_job_save_state(void)
{
    if (!aq_state_save(&aq_job_image))
        aq_fatal("no memory for a copy of the library's variables (%zu bytes)",
                 (size_t)(aq_state_end - aq_state_begin));
}

const char *aq_job_asked_conduit(void)
{
    return aq_job_group_conduit;
}

const char *aq_job_absent(void)
{
    return aq_jobs_ended == 0 ? "before gex_Client_Init or gasnet_init: the library is not started"
                              : "after aqueduct_job_end: no job is running in this process";
}

/* Returns what is wrong with the group, or NULL. */
static const char *aq_job_group_error(const struct aqueduct_group *group)
{
    if (aq_job.conduit != NULL)
        return "a job is running in this process; aqueduct_job_end comes first";
    if (group == NULL || group->allgather == NULL || group->barrier == NULL)
        return "the group, its allgather or its barrier is NULL";
    if (group->size < 1 || group->rank < 0 || group->rank >= group->size)
        return "the rank is not one of 0 to size - 1";
    return NULL;
}

int aqueduct_job_group(const struct aqueduct_group *group, const char *conduit)
{
    const char *error = aq_job_group_error(group);

    if (error != NULL)
        return aq_fail(GASNET_ERR_BAD_ARG, "aqueduct_job_start: %s", error);
    aq_job_save_state();
    aq_spawn_group_set(group);
    aq_job_group_conduit = conduit;
    return GASNET_OK;
}

int aqueduct_job_is_running(void)
{
    return aq_job_has_started();
}

const char *aq_job_conduit(const char *ident)
{
    return aq_job_has_started() ? aq_job.conduit->info->name
                                : aq_conduit_expect(aq_job_group_conduit, ident);
}

int aqueduct_job_can_end(void)
{
    return aq_job_has_started() && aq_spawn_can_end();
}

/* Checks whether the job can end; logs what prevents it. */
static int aq_job_check_end(void)
{
    if (!aq_job_has_started())
        return aq_fail(GASNET_ERR_NOT_INIT, "aqueduct_job_end called %s", aq_job_absent());
    aq_thread_check_main("aqueduct_job_end");
    if (!aq_spawn_can_end())
        return aq_fail(GASNET_ERR_RESOURCE,
                       "aqueduct_job_end: a launcher has started this job, which ends with its "
                       "processes; one that was started by aqueduct_job_start can be ended");
    return GASNET_OK;
}

/* Afterwards no rank sends anything, or waits for anything. */
static void aq_job_quiesce(void)
{
    const char *open;

    aq_callback_barrier();
    open = aq_callback_open();
    if (open != NULL)
        aq_fatal("aqueduct_job_end: %s of the client is still under way at rank %u; all are "
                 "synchronised before the job ends",
                 open, aq_job.rank);
    aq_job.remote->exit(AQ_JOB_DRAIN_NS);
    aq_job.local->exit(AQ_JOB_DRAIN_NS);
    aq_service_fini();
    if (aq_spawn_disconnect() != AQ_OK)
        aq_exit_abort(1); /* the reason is already logged */
}

static void aq_job_free_tables(void)
{
    if (aq_job.nbrhd_of != aq_job.host_of) {
        free((void *)(uintptr_t)aq_job.nbrhd_of);
        free((void *)(uintptr_t)aq_job.nbrhd);
    }
    free((void *)(uintptr_t)aq_job.host);
    if (aq_job.map != aq_job.delta)
        free(aq_job.map);
    free(aq_job.bound);
    free((void *)(uintptr_t)aq_job.client.name);
}

int aqueduct_job_end(void)
{
    const int rc = aq_job_check_end();

    if (rc != GASNET_OK)
        return rc;
    aq_job_quiesce();
    aq_trace_fini();
    aq_callback_fini();
    if (aq_job.has_remote)
        aq_job.conduit->fini();
    aq_job.local->fini();
    if (aq_job.no_overrides)
        aq_job_free_transports();
    aq_segment_fini();
    aq_bound_fini();
    aq_ep_fini();
    aq_job_free_tables();
    aq_tm_fini();
    aq_thread_fini();
    aq_exit_fini();
    aq_spawn_fini();
    aq_env_fini();
    aq_log_forget_rank();
    aq_jobs_ended++;
    aq_state_restore(aq_job_image);
    return GASNET_OK;
}
