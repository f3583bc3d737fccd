/*
 * aq_mpi_m_am.c - the module's message functions: sends, and receives of payloads.
 *
 * MPI has usually finished with a buffer when MPI_Isend returns. A test at once then costs less
 * than keeping the request. Open MPI and MPICH return one and the same request for all such sends,
 * which makes even the test unnecessary.
 *
 * Owns      the requests of operations that have begun and not completed
 * Threads   one at a time
 * Uses      MPI. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/module/aq_mpi_m_am.h"

#include <stdlib.h>

#include "base/aq_platform.h"

#define AQ_M_BATCH 64 /* operations that one call returns */

struct aq_m_packets aq_m_packets = { .comm = { MPI_COMM_NULL, MPI_COMM_NULL } };

static struct {
    MPI_Request *request; /* operations that have begun: [count] of the allocated ones */
    void **owner;
    uint32_t count, capacity, rotation;
    MPI_Request complete; /* see aq_m_learn_complete() */
} aq_m_am;

/* --- operations that have begun --- */

static bool aq_m_grow(void)
{
    const uint32_t capacity = aq_m_am.capacity == 0 ? 64 : 2 * aq_m_am.capacity;
    MPI_Request *request = realloc(aq_m_am.request, capacity * sizeof(*request));
    void **owner;

    if (request == NULL)
        return false;
    aq_m_am.request = request;
    owner = realloc(aq_m_am.owner, capacity * sizeof(*owner));
    if (owner == NULL)
        return false;
    aq_m_am.owner = owner;
    aq_m_am.capacity = capacity;
    return true;
}

/* The next operation uses the place behind the last one of the array. */
static inline bool aq_m_has_space(void)
{
    return aq_m_am.count < aq_m_am.capacity || aq_m_grow();
}

/* An operation has begun in that place: tests whether it is complete already. */
static inline int aq_m_begun(int error, void *owner)
{
    int flag;

    if (error == MPI_SUCCESS && aq_m_am.request[aq_m_am.count] == aq_m_am.complete)
        return AQ_MPI_DONE;
    if (error == MPI_SUCCESS)
        error = MPI_Test(&aq_m_am.request[aq_m_am.count], &flag, MPI_STATUS_IGNORE);
    if (error != MPI_SUCCESS)
        return -error;
    if (flag)
        return AQ_MPI_DONE;
    aq_m_am.owner[aq_m_am.count++] = owner;
    return AQ_MPI_BEGUN;
}

/* Finds the request that stands for every operation that was complete when it began: a static one,
 * which is never freed. A send to MPI_PROC_NULL returns it. */
static int aq_m_learn_complete(void)
{
    aq_m_am.complete = MPI_REQUEST_NULL; /* matches no operation that has begun */
#if defined(OPEN_MPI) || (defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40000000)
    MPI_Request one, again, first;
    int error = MPI_Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, aq_spawn_mpi_m.comm, &one);

    if (error != MPI_SUCCESS)
        return -error;
    first = one;
    error = MPI_Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, aq_spawn_mpi_m.comm, &again);
    if (error == MPI_SUCCESS && first == again)
        aq_m_am.complete = first;
    if (error == MPI_SUCCESS)
        /* if the two differ, they are requests like any other */
        error = MPI_Wait(&again, MPI_STATUS_IGNORE);
    if (error == MPI_SUCCESS && aq_m_am.complete == MPI_REQUEST_NULL)
        error = MPI_Wait(&one, MPI_STATUS_IGNORE);
    return -error;
#else
    return 0; /* no such request: completion is known only after a test */
#endif
}

int aq_m_packets_open(bool apart)
{
    MPI_Comm *comm = aq_m_packets.comm;
    int error = aq_spawn_mpi_m_dup(&comm[AQ_MPI_REQUEST]);

    if (error == MPI_SUCCESS && apart)
        error = aq_spawn_mpi_m_dup(&comm[AQ_MPI_REPLY]);
    else
        comm[AQ_MPI_REPLY] = comm[AQ_MPI_REQUEST];
    return error != MPI_SUCCESS ? -error : aq_m_learn_complete();
}

void aq_m_packets_close(void)
{
    MPI_Comm *comm = aq_m_packets.comm;

    if (comm[AQ_MPI_REPLY] != comm[AQ_MPI_REQUEST] && comm[AQ_MPI_REPLY] != MPI_COMM_NULL)
        MPI_Comm_free(&comm[AQ_MPI_REPLY]);
    if (comm[AQ_MPI_REQUEST] != MPI_COMM_NULL)
        MPI_Comm_free(&comm[AQ_MPI_REQUEST]);
    comm[AQ_MPI_REPLY] = MPI_COMM_NULL;
    if (aq_m_am.count != 0) /* what has begun and never completed */
        return;
    free(aq_m_am.request);
    free(aq_m_am.owner);
    aq_m_am.request = NULL;
    aq_m_am.owner = NULL;
    aq_m_am.capacity = 0;
}

static __attribute__((noinline)) int aq_m_sent(int error, MPI_Request request, void *owner)
{
    if (error == MPI_SUCCESS && !aq_m_has_space())
        error = MPI_ERR_NO_MEM; /* the caller ends the job */
    if (error == MPI_SUCCESS)
        aq_m_am.request[aq_m_am.count] = request;
    return aq_m_begun(error, owner);
}

static int aq_m_send(enum aq_mpi_channel channel, uint32_t dest, const void *packet, size_t nbytes,
                     void *owner)
{
    MPI_Request request;
    const int error = MPI_Isend(packet, (int)nbytes, MPI_BYTE, (int)dest, (int)channel,
                                aq_m_packets.comm[channel], &request);

    if (AQ_LIKELY(error == MPI_SUCCESS && request == aq_m_am.complete))
        return AQ_MPI_DONE;
    return aq_m_sent(error, request, owner);
}

/* Payloads use the third communicator; their tags distinguish the channels. */
static int aq_m_send_payload(enum aq_mpi_channel channel, uint32_t dest, uint32_t tag,
                             const void *src, size_t nbytes, void *owner)
{
    if (!aq_m_has_space())
        return -MPI_ERR_NO_MEM;
    return aq_m_begun(MPI_Isend(src, (int)nbytes, MPI_BYTE, (int)dest,
                                (int)(AQ_MPI_CHANNELS * tag + (unsigned)channel),
                                aq_spawn_mpi_m.comm, &aq_m_am.request[aq_m_am.count]),
                      owner);
}

static int aq_m_receive_payload(enum aq_mpi_channel channel, uint32_t source, uint32_t tag,
                                void *dest, size_t nbytes, void *owner)
{
    int error;

    if (!aq_m_has_space())
        return -MPI_ERR_NO_MEM;
    error = MPI_Irecv(dest, (int)nbytes, MPI_BYTE, (int)source,
                      (int)(AQ_MPI_CHANNELS * tag + (unsigned)channel), aq_spawn_mpi_m.comm,
                      &aq_m_am.request[aq_m_am.count]);
    if (error != MPI_SUCCESS)
        return -error;
    aq_m_am.owner[aq_m_am.count++] = owner; /* completes() returns its length */
    return AQ_MPI_BEGUN;
}

static uint32_t aq_m_pending(void)
{
    return aq_m_am.count;
}

static int aq_m_completes(struct aq_mpi_completion *out, uint32_t max)
{
    MPI_Status statuses[AQ_M_BATCH];
    int indices[AQ_M_BATCH], done, error, count;
    /* tests a different part of the array each time, if it is long */
    const uint32_t batch = aq_m_am.count < max ? aq_m_am.count
                           : max < AQ_M_BATCH  ? max
                                               : AQ_M_BATCH;
    uint32_t first = aq_m_am.count == batch
                         ? 0
                         : aq_m_am.rotation++ % ((aq_m_am.count + batch - 1) / batch) * batch;

    if (first + batch > aq_m_am.count)
        first = aq_m_am.count - batch;
    if (batch == 0)
        return 0;
    error = MPI_Testsome((int)batch, aq_m_am.request + first, &done, indices, statuses);
    if (error != MPI_SUCCESS)
        return -aq_mpi_m_error_of(error, statuses, done);
    if (done == MPI_UNDEFINED)
        return 0;
    for (int i = 0; i < done; i++) {
        MPI_Get_count(&statuses[i], MPI_BYTE, &count);
        out[i] = (struct aq_mpi_completion){ .owner = aq_m_am.owner[first + (uint32_t)indices[i]],
                                             .nbytes = (size_t)count };
        aq_m_am.owner[first + (uint32_t)indices[i]] = NULL;
    }
    if (done != 0) { /* closes the gaps */
        uint32_t left = first;

        for (uint32_t i = first; i < aq_m_am.count; i++)
            if (aq_m_am.owner[i] != NULL) {
                aq_m_am.owner[left] = aq_m_am.owner[i];
                aq_m_am.request[left++] = aq_m_am.request[i];
            }
        aq_m_am.count = left;
    }
    return done;
}

#ifdef MPICH
#define AQ_M_PREFERRED AQ_MPI_PROBE
#else
#define AQ_M_PREFERRED AQ_MPI_RING
#endif

#define AQ_M_TABLE(name)                                                                        \
    {                                                                                           \
        .slots = 64, .preferred = AQ_M_PREFERRED, .open = aq_m_##name##_open,                   \
        .close = aq_m_##name##_close, .take = aq_m_##name##_take,                               \
        .restart = aq_m_##name##_restart, .send = aq_m_send, .send_payload = aq_m_send_payload, \
        .receive_payload = aq_m_receive_payload, .pending = aq_m_pending,                       \
        .completes = aq_m_completes                                                             \
    }

const struct aq_mpi_lib_am aq_mpi_m_am[AQ_MPI_RECEIVERS] = {
    [AQ_MPI_RING] = AQ_M_TABLE(ring), [AQ_MPI_PROBE] = AQ_M_TABLE(probe)
};
