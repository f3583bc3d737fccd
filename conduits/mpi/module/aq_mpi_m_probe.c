/*
 * aq_mpi_m_probe.c - packets wait in MPI's own queue to be looked for.
 *
 * Both lanes share a communicator, the tag tells them apart: one probe looks for both. What was found is received
 * into a free slot; if MPI does not have all of it yet (rendezvous), that goes on beside the next looks.
 *
 * This serves an MPI that has one list of receives for all communicators, such as MPICH over UCX: there each receive
 * from any source that waits makes every message of the client's dearer. How much can be in MPI's queue is bounded by
 * the conduit's flow control.
 *
 * Owns      lists of free slots; receives that go on
 * Threads   one at a time
 * Uses      MPI. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "conduits/mpi/module/aq_mpi_m_am.h"

static struct {
    char *memory[AQ_MPI_LANES];
    size_t stride, nbytes;
    uint32_t slots;
    uint32_t *free[AQ_MPI_LANES]; /* [slots]: slots, the last one is taken next */
    uint32_t count[AQ_MPI_LANES];
    struct {
        MPI_Request *request; /* [slots] */
        uint32_t *slot;
        uint32_t count;
    } late[AQ_MPI_LANES];
} aq_m_probe;

int aq_m_probe_open(char *const memory[AQ_MPI_LANES], uint32_t slots, size_t stride, size_t nbytes)
{
    aq_m_probe.stride = stride;
    aq_m_probe.nbytes = nbytes;
    aq_m_probe.slots = slots;
    for (int lane = 0; lane < AQ_MPI_LANES; lane++) {
        aq_m_packets.comm[lane] = aq_mpi_m.request;
        aq_m_probe.memory[lane] = memory[lane];
        aq_m_probe.free[lane] = malloc(slots * sizeof(uint32_t));
        aq_m_probe.late[lane].slot = malloc(slots * sizeof(uint32_t));
        aq_m_probe.late[lane].request = malloc(slots * sizeof(MPI_Request));
        if (aq_m_probe.free[lane] == NULL || aq_m_probe.late[lane].slot == NULL
            || aq_m_probe.late[lane].request == NULL)
            return -MPI_ERR_NO_MEM;
        for (uint32_t i = 0; i < slots; i++)
            aq_m_probe.free[lane][i] = slots - 1 - i;
        aq_m_probe.count[lane] = slots;
    }
    return 0;
}

void aq_m_probe_close(void)
{
    for (int lane = 0; lane < AQ_MPI_LANES; lane++) {
        for (uint32_t i = 0; i < aq_m_probe.late[lane].count; i++) {
            MPI_Cancel(&aq_m_probe.late[lane].request[i]);
            MPI_Request_free(&aq_m_probe.late[lane].request[i]);
        }
        aq_m_probe.late[lane].count = aq_m_probe.count[lane] = 0;
        free(aq_m_probe.free[lane]);
        free(aq_m_probe.late[lane].slot);
        free(aq_m_probe.late[lane].request);
        aq_m_probe.free[lane] = aq_m_probe.late[lane].slot = NULL;
        aq_m_probe.late[lane].request = NULL;
    }
}

int aq_m_probe_restart(enum aq_mpi_lane lane, uint32_t slot)
{
    aq_m_probe.free[lane][aq_m_probe.count[lane]++] = slot;
    return 0;
}

/* Has one come that MPI had not received at once? */
static int aq_m_take_late(enum aq_mpi_lane lane, struct aq_mpi_arrival *out)
{
    MPI_Status status;
    int error, flag, at;
    uint32_t slot;

    error = MPI_Testany((int)aq_m_probe.late[lane].count, aq_m_probe.late[lane].request, &at, &flag, &status);
    if (error != MPI_SUCCESS || !flag || at == MPI_UNDEFINED)
        return -error;
    slot = aq_m_probe.late[lane].slot[at];
    aq_m_probe.late[lane].count--;
    for (uint32_t i = (uint32_t)at; i < aq_m_probe.late[lane].count; i++) { /* their order stays: that of the messages */
        aq_m_probe.late[lane].slot[i] = aq_m_probe.late[lane].slot[i + 1];
        aq_m_probe.late[lane].request[i] = aq_m_probe.late[lane].request[i + 1];
    }
    return aq_m_arrived(lane, slot, &status, out);
}

/* A packet of this lane has been found. */
static int aq_m_receive(enum aq_mpi_lane lane, MPI_Message *message, struct aq_mpi_arrival *out)
{
    const uint32_t slot = aq_m_probe.free[lane][--aq_m_probe.count[lane]];
    MPI_Request request;
    MPI_Status status;
    int flag, error;

    error = MPI_Imrecv(aq_m_probe.memory[lane] + slot * aq_m_probe.stride, (int)aq_m_probe.nbytes, MPI_BYTE, message,
                       &request);
    if (error == MPI_SUCCESS)
        error = MPI_Test(&request, &flag, &status);
    if (error != MPI_SUCCESS)
        return -error;
    if (flag)
        return aq_m_arrived(lane, slot, &status, out);
    aq_m_probe.late[lane].slot[aq_m_probe.late[lane].count] = slot;
    aq_m_probe.late[lane].request[aq_m_probe.late[lane].count++] = request;
    return 0;
}

int aq_m_probe_take(unsigned lanes, unsigned looks, struct aq_mpi_arrival *out)
{
    MPI_Message message;
    MPI_Status status;
    int found = 0, flag, error, tag;

    for (int lane = 0; lane < AQ_MPI_LANES; lane++) {
        if ((lanes & 1u << lane) != 0 && aq_m_probe.late[lane].count != 0 && found == 0)
            found = aq_m_take_late((enum aq_mpi_lane)lane, out);
        if (aq_m_probe.count[lane] == 0)
            lanes &= ~(1u << lane);
    }
    if (found != 0 || lanes == 0)
        return found;
    tag = lanes == (1u << AQ_MPI_LANES) - 1          ? MPI_ANY_TAG
          : (lanes & 1u << AQ_MPI_REPLY) != 0 ? AQ_MPI_REPLY
                                              : AQ_MPI_REQUEST;
    do {
        error = MPI_Improbe(MPI_ANY_SOURCE, tag, aq_mpi_m.request, &flag, &message, &status);
        if (error != MPI_SUCCESS)
            return -error;
        if (flag)
            return aq_m_receive(status.MPI_TAG == AQ_MPI_REPLY ? AQ_MPI_REPLY : AQ_MPI_REQUEST, &message, out);
    } while (looks-- > 1);
    return 0;
}
