/*
 * aqueduct.h - a job over any group of processes, which can end while the processes go on.
 *
 * gex_Client_Init() starts a job over all processes that a launcher has started, and the job ends
 * with them. A library inside a larger program needs something else: a job over some of the
 * processes, which are connected by what the program already has, MPI for instance; the end of that
 * job while the processes go on; and later another job, over other processes.
 *
 *     struct aqueduct_group group = { rank, size, allgather, barrier, abort, ctx, NULL };
 *
 *     aqueduct_job_start(&group, NULL, &client, &ep, &tm, "example", 0);
 *     ...                                     the whole interface of gasnetex.h
 *     aqueduct_job_end();
 *
 * A process is in one job at a time. Processes of the same program may be in different jobs at the
 * same time. Groups over MPI: aqueduct_mpi.h.
 *
 * Source: Aqueduct's own; docs/aqueduct-h.md. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQUEDUCT_H
#define AQUEDUCT_H 1

#include "gasnetex.h"
#include "gasnet/group.h"

AQ_BEGIN_DECLS

/**
 * aqueduct_job_group - let the next gex_Client_Init() or gasnet_init() start a job over this group.
 * group    copied; the caller keeps group->ctx and what it refers to
 * conduit  "smp", "udp", ...; the same on every process. NULL: GASNET_CONDUIT, else the conduit
 *          that the program was compiled for, else smp if all processes are on one host, else the
 *          best network that all of them can use
 * Context  no job is running in this process
 * Returns  GASNET_OK, or GASNET_ERR_BAD_ARG: a rank outside the size, a function that is missing,
 *          a job that is running
 * Test: tests/restart.
 */
AQ_PUBLIC int aqueduct_job_group(const struct aqueduct_group *group, const char *conduit);

/**
 * aqueduct_job_start - start a job over the processes of a group.
 * group, conduit  as above
 * client_p, ep_p, tm_p, name, flags  as for gex_Client_Init()
 * Context  collective over the group, no job is running in this process; ends with a barrier.
 *          Settings are read from the present environment; if it differs between the processes, all
 *          use that of one of them
 * Returns  GASNET_OK or as gex_Client_Init(). A job that cannot start ends the process, with a
 *          message
 * Test: tests/restart.
 */
static inline AQ_UNUSED int aqueduct_job_start(const struct aqueduct_group *group,
                                               const char *conduit, gex_Client_t *client_p,
                                               gex_EP_t *ep_p, gex_TM_t *tm_p, const char *name,
                                               gex_Flags_t flags)
{
    const int rc = aqueduct_job_group(group, conduit);

    return rc != GASNET_OK ? rc : gex_Client_Init(client_p, ep_p, tm_p, name, NULL, NULL, flags);
}

/**
 * aqueduct_job_end - end the job, and let its processes go on.
 * Before the call every operation and collective of the client is complete on every process, and no
 * other thread is in the library; a thread that the client has started as
 * gex_System_QueryProgressThreads() says returns from it. On return all handles are dead: client,
 * endpoints, teams, segments, events, atomic domains, and texts of gasnet_getenv(). The memory of
 * segments that the library made is unmapped, and traces and statistics are written. Other calls of
 * the interface are errors until the next start.
 * Context  collective over the group; not in a handler, not holding an HSL
 * Returns  GASNET_OK; GASNET_ERR_NOT_INIT without a job; GASNET_ERR_RESOURCE for a job that a
 *          launcher has started, or over a conduit that cannot end a job; that job then goes on
 * Test: tests/restart.
 */
AQ_PUBLIC int aqueduct_job_end(void);

/**
 * aqueduct_job_can_end - ask whether aqueduct_job_end() can end the running job.
 * Context  any thread, any time outside of a start or end
 * Returns  1; 0 if aqueduct_job_end() would return an error: no job is running, a launcher has
 *          started it, or its conduit cannot be shut down
 * Test: tests/restart.
 */
AQ_PUBLIC int aqueduct_job_can_end(void);

/**
 * aqueduct_job_is_running - ask whether a job is running, whether a launcher or a group started it.
 * Context  as above
 * Returns  1 between the start and the end of a job, else 0
 * Test: tests/restart.
 */
AQ_PUBLIC int aqueduct_job_is_running(void);

AQ_PUBLIC const char *aq_job_conduit(const char *compiled_for);

/**
 * aqueduct_job_conduit - the conduit of the running job, or the one that a start would begin with.
 * For a client that prepares for a conduit's rules, those of threads over MPI for instance.
 * Context  as above
 * Returns  "smp", "udp", ..., constant. Without a job: by the rule of aqueduct_job_group() for
 *          ranks of one host, in the present environment; over several hosts the start takes a
 *          network instead of smp, never mpi. NULL if the library does not contain what is asked
 *          for
 * Test: tests/restart.
 */
static inline AQ_UNUSED const char *aqueduct_job_conduit(void)
{
    return aq_job_conduit(AQ_COMPILED_CONDUIT);
}

/**
 * aqueduct_is_one_sided - whether puts to a rank, and gets from it, complete without it.
 * For a client that chooses between a put and a message of its own.
 * jobrank  of the target
 * Context  any, once the segments are attached and until the job ends
 * Returns  1: gex_RMA_PutNB() and gex_RMA_GetNB() of the segments of gex_Segment_Attach(), and
 *          their blocking forms, go through mapped memory, by the network card, or by a window of
 *          MPI, while the target computes or sleeps. Over mpi very long ones may need the target,
 *          and over ibv with AQ_IBV_REGISTER=demand the first one to a page does; strided and
 *          indexed calls may pack, and implicit ones share, messages. 0: a thread of the target has
 *          to take part, be it the library's (GASNET_PROGRESS_THREAD); or there is no such rank
 * Test: tests/restart.
 */
AQ_PUBLIC int aqueduct_is_one_sided(gex_Rank_t jobrank);

/**
 * aqueduct_is_busy - whether transfers are known to be under way that only polls of this rank move.
 * A hint for a client that is about to compute without calls, where no thread of the library polls
 * (GASNET_PROGRESS_THREAD): the transfers may be of this rank, or of others that it serves.
 * Context  any, once the segments are attached and until the job ends
 * Returns  1: over mpi, transfers through a window or between two buffers (GASNET_MPI_DIRECT); over
 *          udp, messages that wait for others to be sent with. 0: none of these; other messages may
 *          be under way. Over smp and ibv always 0
 * Test: tests/restart.
 */
AQ_PUBLIC int aqueduct_is_busy(void);

/**
 * aqueduct_progress - let threads that wait in the library move what the program has outside of it.
 * Messages of another library, of MPI for instance, may move only while a thread of their process
 * calls that library. A rank that waits here for a peer, which waits for such a message, would wait
 * for ever.
 * fn   called by a thread that waits, about every 5 ms, and every 20 ms in a wait that has lasted
 *      for seconds; makes no call of this interface, and waits for nothing. NULL: none
 * arg  passed to fn
 * Context  between start and end of a job, while no other thread of the client is in the library;
 *          not in a handler. The job's end forgets fn. fn is called by client threads that wait in
 *          ordinary context, by several at the same time in par, not by the library's own threads
 * Test: tests/conformance/test_wait_progress.c.
 */
AQ_PUBLIC void aqueduct_progress(void (*fn)(void *arg), void *arg);

/**
 * aqueduct_segment_discard - give pages of this process's segment back to the system.
 * Data in [addr, addr+bytes) is lost; its whole pages are zero when they are touched next. For
 * memory that an allocator on top of the segment has free: without this call a page that was
 * touched once stays in memory until the job ends.
 * addr, bytes  inside the segment that gex_Segment_Attach() made
 * Context  no operation or message, of any process, reads or writes the range during the call; may
 *          poll and run handlers, and waits, over ibv, until processes that have transferred from
 *          or to the range have polled; not in a handler, not holding an HSL
 * Returns  GASNET_OK; GASNET_ERR_BAD_ARG outside the segment; GASNET_ERR_RESOURCE if the pages stay
 *          as they are: the network may have pinned them (ibv, unless AQ_IBV_REGISTER is demand;
 *          mpi between several hosts), the program has locked them, or they are reserved huge
 *          pages, which another program could take
 * Test: tests/restart.
 */
AQ_PUBLIC int aqueduct_segment_discard(void *addr, size_t bytes);

AQ_END_DECLS

#endif
