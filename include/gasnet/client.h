/*
 * client.h - start-up, clients, job and host queries, environment, errors, exit.
 *
 * Source: GASNet-EX specification 0.19, job, client, exit. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_CLIENT_H
#define GASNET_CLIENT_H 1

AQ_BEGIN_DECLS

/*
 * The name of the library's start function says what the client was compiled for. A client and a
 * library of different thread mode, segment mode, debug mode or release therefore do not link: the
 * name of the missing symbol says which of them is wanted.
 */
#define AQ_START_NAME_(mode, segment, debug, major, minor, patch) \
    aq_start_client_compiled_for##mode##segment##debug##_##major##_##minor##_##patch
#define AQ_START_NAME(mode, segment, debug, major, minor, patch) \
    AQ_START_NAME_(mode, segment, debug, major, minor, patch)
#define AQ_START                                                                              \
    AQ_START_NAME(AQ_MODE_NAME, AQ_SEGMENT_NAME, AQ_DEBUG_NAME, GASNET_RELEASE_VERSION_MAJOR, \
                  GASNET_RELEASE_VERSION_MINOR, GASNET_RELEASE_VERSION_PATCH)

#if defined(AQ_CONDUIT_ANY)
#define AQ_COMPILED_CONDUIT "" /* built against the shared library without naming a conduit */
#else
/* launchers look for this string in executables */
#define AQ_COMPILED_CONDUIT "$GASNetConduitName: " GASNET_CONDUIT_NAME_STR " $"
#endif

AQ_PUBLIC int AQ_START(gex_Client_t *client_out, gex_EP_t *ep_out, gex_TM_t *tm_out,
                       const char *name, int *argc, char ***argv, gex_Flags_t flags,
                       const char *conduit);

/**
 * gex_Client_Init - start the library in this process and create its client.
 * client_p, ep_p, tm_p  outputs: client, primordial endpoint (index 0), primordial team
 * name    any non-NULL string, equal on all processes
 * argc, argv  both NULL on all processes, or main's
 * flags   0, GEX_FLAG_USES_GASNET1, GEX_FLAG_DEFER_THREADS; equal on all processes
 * Context collective over all processes, once per job, first call of all; ends with a barrier
 * Returns GASNET_OK, GASNET_ERR_BAD_ARG or GASNET_ERR_RESOURCE (a message says what to do).
 * Source: GASNet-EX specification 0.19, Client. Test: test_client_init.
 */
static inline AQ_UNUSED int gex_Client_Init(gex_Client_t *client_p, gex_EP_t *ep_p, gex_TM_t *tm_p,
                                            const char *name, int *argc, char ***argv,
                                            gex_Flags_t flags)
{
    return AQ_START(client_p, ep_p, tm_p, name, argc, argv, flags, AQ_COMPILED_CONDUIT);
}

/** gex_Client_QueryFlags - the flags given to gex_Client_Init. Legal in every context. */
AQ_PUBLIC gex_Flags_t gex_Client_QueryFlags(gex_Client_t client);
/** gex_Client_QueryName - the name given to gex_Client_Init. Legal in every context. */
AQ_PUBLIC const char *gex_Client_QueryName(gex_Client_t client);
/** gex_Client_SetCData - store one pointer of the client's. Legal in every context. */
AQ_PUBLIC void gex_Client_SetCData(gex_Client_t client, const void *val);
/** gex_Client_QueryCData - the pointer last stored, NULL at first. Legal in every context. */
AQ_PUBLIC void *gex_Client_QueryCData(gex_Client_t client);

/* --- job, neighborhood, host: legal in every context after gex_Client_Init --- */

/** gex_System_QueryJobRank - this process's number in the job, equal to its primordial rank. */
AQ_PUBLIC gex_Rank_t gex_System_QueryJobRank(void);
/** gex_System_QueryJobSize - processes in the job. */
AQ_PUBLIC gex_Rank_t gex_System_QueryJobSize(void);
/**
 * gex_System_QueryNbrhdInfo - the processes this one shares memory with, itself included.
 * info_p   sorted by jobrank, library-owned, read-only
 * count_p  entries; me_p  index of this process. Each output may be NULL.
 */
AQ_PUBLIC void gex_System_QueryNbrhdInfo(gex_RankInfo_t **info_p, gex_Rank_t *count_p,
                                         gex_Rank_t *me_p);
/** gex_System_QueryHostInfo - the processes on this process's host; outputs as above. */
AQ_PUBLIC void gex_System_QueryHostInfo(gex_RankInfo_t **info_p, gex_Rank_t *count_p,
                                        gex_Rank_t *me_p);
/** gex_System_QueryMyPosition - numbers of neighborhoods and hosts, and this process's index in
 * each. */
AQ_PUBLIC void gex_System_QueryMyPosition(gex_Rank_t *nbrhd_count_p, gex_Rank_t *nbrhd_index_p,
                                          gex_Rank_t *host_count_p, gex_Rank_t *host_index_p);
/** gex_System_QueryMaxThreads - maximum number of client threads in the library at a time. */
AQ_PUBLIC uint64_t gex_System_QueryMaxThreads(void);
/** gex_System_QueryHiddenAMConcurrencyLevel - non-zero if handlers may run on a library thread. */
AQ_PUBLIC int gex_System_QueryHiddenAMConcurrencyLevel(void);
/**
 * gex_System_QueryProgressThreads - the threads that the client must start.
 * count_p, info_p  outputs; count 0 means none
 * flags   0
 * Context once, after gex_Client_Init with GEX_FLAG_DEFER_THREADS
 * Returns GASNET_OK; GASNET_ERR_BAD_ARG for NULL outputs or flags; GASNET_ERR_RESOURCE
 * if init was not given GEX_FLAG_DEFER_THREADS.
 */
AQ_PUBLIC int gex_System_QueryProgressThreads(gex_Client_t client, unsigned int *count_p,
                                              const gex_ProgressThreadInfo_t **info_p,
                                              gex_Flags_t flags);
/** gex_System_GetVerboseErrors - 1 if certain non-fatal errors are printed (the default). */
AQ_PUBLIC int gex_System_GetVerboseErrors(void);
/** gex_System_SetVerboseErrors - 0 or 1. */
AQ_PUBLIC void gex_System_SetVerboseErrors(int enable);

/* --- errors, environment, exit --- */

/** gasnet_ErrorName - the identifier of an error code as text; never NULL. */
AQ_PUBLIC const char *gasnet_ErrorName(int errval);
/** gasnet_ErrorDesc - a short English description of an error code; never NULL. */
AQ_PUBLIC const char *gasnet_ErrorDesc(int errval);
/** gasnet_getenv - getenv() on the environment of the job's launcher, equal on all processes. */
AQ_PUBLIC char *gasnet_getenv(const char *name);
/**
 * gasnet_exit - end the whole job with an exit code.
 * Context any thread, any context, any time; not collective; does not return.
 */
AQ_PUBLIC void gasnet_exit(int exitcode) AQ_NORETURN;

/**
 * gasnet_getNodeInfo - host and neighborhood numbers of every process.
 * table, numentries  filled for process i < min(numentries, job size)
 * Returns GASNET_OK, or GASNET_ERR_BAD_ARG for a negative count.
 */
AQ_PUBLIC int gasnet_getNodeInfo(gasnet_nodeinfo_t *table, int numentries);

AQ_END_DECLS

#endif
