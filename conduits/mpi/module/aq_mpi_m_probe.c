/*
 * aq_mpi_m_probe.c - receives packets by few posted receives; the others stay in MPI's own queue
 * and are probed for.
 *
 * Both channels share a communicator; the tag distinguishes them. AQ_M_FEW receives from any source
 * are posted for either channel, and a usual test is one of the oldest. While packets follow each
 * other more are posted, up to AQ_M_POSTED_MAX, and one call returns all that have arrived. A
 * packet that is not taken at once, or whose channel is not asked for, is deferred. Packets are
 * probed for when no receive is posted, or when the posted ones may be in a rendezvous with ranks
 * that make no MPI calls. A packet that has been probed and is incomplete is received in the
 * background of later tests. Packets of one channel are therefore found whatever happens to the
 * other's.
 *
 * This serves an MPI that has one list of receives for all communicators, such as MPICH over UCX:
 * each posted receive from any source makes every message of the client more expensive there. The
 * conduit's flow control bounds what can be in MPI's queue.
 *
 * Owns      lists of free slots; receives under way
 * Threads   one at a time
 * Uses      MPI. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "conduits/mpi/module/aq_mpi_m_am.h"

/* with one, a packet right behind another would find no posted receive */
#define AQ_M_FEW        2u
#define AQ_M_POSTED_MAX 16u
#define AQ_M_ROW        3u /* packets in a row from which on more receives are posted */
#define AQ_M_BOTH       ((1u << AQ_MPI_CHANNELS) - 1)

static struct {
    char *memory[AQ_MPI_CHANNELS];
    size_t stride, nbytes;
    uint32_t slots;
    uint32_t *free[AQ_MPI_CHANNELS]; /* [slots]: free slots; the last one is taken next */
    uint32_t count[AQ_MPI_CHANNELS];
    struct { /* the oldest first; slots of the requests' ring */
        MPI_Request request[AQ_M_POSTED_MAX];
        uint32_t slot[AQ_M_POSTED_MAX];
        uint32_t count;
        uint32_t row; /* packets since a test found none */
    } posted;
    /* Deferred packets of each channel; the first is at first % AQ_M_POSTED_MAX. */
    struct {
        struct aq_mpi_arrival
            arrival[AQ_M_POSTED_MAX]; /* at most AQ_M_POSTED_MAX receives are posted */
        uint32_t first, last;         /* running numbers */
    } deferred[AQ_MPI_CHANNELS];
    struct {
        MPI_Request *request; /* [slots] */
        uint32_t *slot;
        uint32_t count;
    } late[AQ_MPI_CHANNELS];
} aq_m_probe;

int aq_m_probe_open(char *const memory[AQ_MPI_CHANNELS], uint32_t slots, size_t stride,
                    size_t nbytes)
{
    aq_m_probe.stride = stride;
    aq_m_probe.nbytes = nbytes;
    aq_m_probe.slots = slots;
    for (int channel = 0; channel < AQ_MPI_CHANNELS; channel++) {
        aq_m_probe.memory[channel] = memory[channel];
        aq_m_probe.free[channel] = malloc(slots * sizeof(uint32_t));
        aq_m_probe.late[channel].slot = malloc(slots * sizeof(uint32_t));
        aq_m_probe.late[channel].request = malloc(slots * sizeof(MPI_Request));
        if (aq_m_probe.free[channel] == NULL || aq_m_probe.late[channel].slot == NULL
            || aq_m_probe.late[channel].request == NULL)
            return -MPI_ERR_NO_MEM;
        for (uint32_t i = 0; i < slots; i++)
            aq_m_probe.free[channel][i] = slots - 1 - i;
        aq_m_probe.count[channel] = slots;
    }
    return aq_m_packets_open(false);
}

void aq_m_probe_close(void)
{
    for (uint32_t i = 0; i < aq_m_probe.posted.count; i++) {
        MPI_Cancel(&aq_m_probe.posted.request[i]);
        MPI_Wait(&aq_m_probe.posted.request[i],
                 MPI_STATUS_IGNORE); /* returns: the receive is cancelled, or complete */
    }
    aq_m_probe.posted.count = 0;
    for (int channel = 0; channel < AQ_MPI_CHANNELS; channel++) {
        for (uint32_t i = 0; i < aq_m_probe.late[channel].count; i++) {
            MPI_Cancel(&aq_m_probe.late[channel].request[i]);
            MPI_Request_free(&aq_m_probe.late[channel].request[i]);
        }
        aq_m_probe.late[channel].count = aq_m_probe.count[channel] = 0;
        free(aq_m_probe.free[channel]);
        free(aq_m_probe.late[channel].slot);
        free(aq_m_probe.late[channel].request);
        aq_m_probe.free[channel] = aq_m_probe.late[channel].slot = NULL;
        aq_m_probe.late[channel].request = NULL;
    }
    for (int channel = 0; channel < AQ_MPI_CHANNELS; channel++)
        aq_m_probe.deferred[channel].first = aq_m_probe.deferred[channel].last = 0;
    aq_m_probe.posted.row = 0;
    aq_m_packets_close();
}

int aq_m_probe_restart(enum aq_mpi_channel ring, uint32_t slot)
{
    aq_m_probe.free[ring][aq_m_probe.count[ring]++] = slot;
    return 0;
}

static inline char *aq_m_slot(enum aq_mpi_channel ring, uint32_t slot)
{
    return aq_m_probe.memory[ring] + slot * aq_m_probe.stride;
}

/* --- posted receives --- */

static inline uint32_t aq_m_deferred(void)
{
    uint32_t count = 0;

    for (int channel = 0; channel < AQ_MPI_CHANNELS; channel++)
        count += aq_m_probe.deferred[channel].last - aq_m_probe.deferred[channel].first;
    return count;
}

static inline int aq_m_post(void)
{
    int error = MPI_SUCCESS;

    const uint32_t row = aq_m_probe.posted.row;
    const uint32_t wanted = row <= AQ_M_ROW         ? AQ_M_FEW
                            : row < AQ_M_POSTED_MAX ? row
                                                    : AQ_M_POSTED_MAX;

    for (const uint32_t deferred = aq_m_deferred();
         aq_m_probe.posted.count + deferred < wanted && aq_m_probe.count[AQ_MPI_REQUEST] != 0
         && error == MPI_SUCCESS;
         aq_m_probe.posted.count++) {
        const uint32_t slot = aq_m_probe.free[AQ_MPI_REQUEST][--aq_m_probe.count[AQ_MPI_REQUEST]];

        aq_m_probe.posted.slot[aq_m_probe.posted.count] = slot;
        error = MPI_Irecv(aq_m_slot(AQ_MPI_REQUEST, slot), (int)aq_m_probe.nbytes, MPI_BYTE,
                          MPI_ANY_SOURCE, MPI_ANY_TAG, aq_m_packets.comm[AQ_MPI_REQUEST],
                          &aq_m_probe.posted.request[aq_m_probe.posted.count]);
    }
    return -error;
}

static inline enum aq_mpi_channel aq_m_channel_of(const MPI_Status *status)
{
    return status->MPI_TAG == AQ_MPI_REPLY ? AQ_MPI_REPLY : AQ_MPI_REQUEST;
}

static inline int aq_m_defer(uint32_t slot, const MPI_Status *status)
{
    const enum aq_mpi_channel channel = aq_m_channel_of(status);

    return aq_m_arrived(channel, AQ_MPI_REQUEST, slot, status,
                        &aq_m_probe.deferred[channel]
                             .arrival[aq_m_probe.deferred[channel].last++ % AQ_M_POSTED_MAX]);
}

/* Removes the receives at places marked by -1. The order of the others does not change. */
static void aq_m_close_up(void)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < aq_m_probe.posted.count; i++)
        if (aq_m_probe.posted.slot[i] != UINT32_MAX) {
            aq_m_probe.posted.slot[left] = aq_m_probe.posted.slot[i];
            aq_m_probe.posted.request[left++] = aq_m_probe.posted.request[i];
        }
    aq_m_probe.posted.count = left;
}

/* Tests the oldest receive, up to `looks` times. Returns 1 if *out has arrived. A packet of another
 * channel is deferred. */
static inline int aq_m_take_oldest(unsigned channels, unsigned looks, struct aq_mpi_arrival *out)
{
    MPI_Status status;
    int error, flag = 0;
    uint32_t slot;

    for (; looks != 0 && !flag; looks--) {
        error = MPI_Test(&aq_m_probe.posted.request[0], &flag, &status);
        if (error != MPI_SUCCESS)
            return -error;
    }
    if (!flag)
        return 0;
    slot = aq_m_probe.posted.slot[0];
    aq_m_probe.posted.slot[0] = UINT32_MAX;
    aq_m_close_up();
    if ((channels & 1u << aq_m_channel_of(&status)) == 0) {
        aq_m_defer(slot, &status);
        return 0;
    }
    return aq_m_arrived(aq_m_channel_of(&status), AQ_MPI_REQUEST, slot, &status, out);
}

/* Tests all of them with one call and defers what has arrived. 0 or negative. */
static int aq_m_keep_all(void)
{
    MPI_Status statuses[AQ_M_POSTED_MAX];
    int indices[AQ_M_POSTED_MAX], done;
    const int error = MPI_Testsome((int)aq_m_probe.posted.count, aq_m_probe.posted.request, &done,
                                   indices, statuses);

    if (error != MPI_SUCCESS || done == MPI_UNDEFINED || done == 0)
        return -error;
    for (int i = 0; i < done; i++) {
        aq_m_defer(aq_m_probe.posted.slot[indices[i]], &statuses[i]);
        aq_m_probe.posted.slot[indices[i]] = UINT32_MAX;
    }
    aq_m_close_up();
    return 0;
}

static inline int aq_m_take_deferred(unsigned channels, struct aq_mpi_arrival *out)
{
    for (int channel = 0; channel < AQ_MPI_CHANNELS; channel++)
        if (aq_m_probe.deferred[channel].first != aq_m_probe.deferred[channel].last
            && (channels & 1u << channel) != 0) {
            *out = aq_m_probe.deferred[channel]
                       .arrival[aq_m_probe.deferred[channel].first++ % AQ_M_POSTED_MAX];
            return 1;
        }
    return 0;
}

static inline int aq_m_take_posted(unsigned channels, unsigned looks, struct aq_mpi_arrival *out)
{
    int found;

    if (aq_m_probe.posted.count == 0)
        return 0;
    if (looks != 0 && aq_m_probe.posted.count <= AQ_M_FEW)
        return aq_m_take_oldest(channels, looks, out);
    found = aq_m_keep_all();
    return found != 0 ? found : aq_m_take_deferred(channels, out);
}

/* --- packets in MPI's queue --- */

/* Tests the packets that were incomplete when they were probed. */
static int aq_m_take_late(enum aq_mpi_channel channel, struct aq_mpi_arrival *out)
{
    MPI_Status status;
    int error, flag, at;
    uint32_t slot;

    error = MPI_Testany((int)aq_m_probe.late[channel].count, aq_m_probe.late[channel].request, &at,
                        &flag, &status);
    if (error != MPI_SUCCESS || !flag || at == MPI_UNDEFINED)
        return -error;
    slot = aq_m_probe.late[channel].slot[at];
    aq_m_probe.late[channel].count--;
    /* keeps their order, which is that of the messages */
    for (uint32_t i = (uint32_t)at; i < aq_m_probe.late[channel].count; i++) {
        aq_m_probe.late[channel].slot[i] = aq_m_probe.late[channel].slot[i + 1];
        aq_m_probe.late[channel].request[i] = aq_m_probe.late[channel].request[i + 1];
    }
    return aq_m_arrived(channel, channel, slot, &status, out);
}

/* Receives a packet of this channel that a probe has found. */
static int aq_m_receive(enum aq_mpi_channel channel, MPI_Message *message,
                        struct aq_mpi_arrival *out)
{
    const uint32_t slot = aq_m_probe.free[channel][--aq_m_probe.count[channel]];
    MPI_Request request;
    MPI_Status status;
    int flag, error;

    error =
        MPI_Imrecv(aq_m_slot(channel, slot), (int)aq_m_probe.nbytes, MPI_BYTE, message, &request);
    if (error == MPI_SUCCESS)
        error = MPI_Test(&request, &flag, &status);
    if (error != MPI_SUCCESS)
        return -error;
    if (flag)
        return aq_m_arrived(channel, channel, slot, &status, out);
    aq_m_probe.late[channel].slot[aq_m_probe.late[channel].count] = slot;
    aq_m_probe.late[channel].request[aq_m_probe.late[channel].count++] = request;
    return 0;
}

static int aq_m_take_probed(unsigned channels, struct aq_mpi_arrival *out)
{
    MPI_Message message;
    MPI_Status status;
    int flag, error, tag;

    for (int channel = 0; channel < AQ_MPI_CHANNELS; channel++)
        if (aq_m_probe.count[channel] == 0)
            channels &= ~(1u << channel);
    if (channels == 0)
        return 0;
    tag = channels == AQ_M_BOTH                  ? MPI_ANY_TAG
          : (channels & 1u << AQ_MPI_REPLY) != 0 ? AQ_MPI_REPLY
                                                 : AQ_MPI_REQUEST;
    error = MPI_Improbe(MPI_ANY_SOURCE, tag, aq_m_packets.comm[AQ_MPI_REQUEST], &flag, &message,
                        &status);
    if (error != MPI_SUCCESS || !flag)
        return -error;
    return aq_m_receive(status.MPI_TAG == AQ_MPI_REPLY ? AQ_MPI_REPLY : AQ_MPI_REQUEST, &message,
                        out);
}

int aq_m_probe_take(unsigned channels, unsigned looks, struct aq_mpi_arrival *out)
{
    int found = aq_m_take_deferred(channels, out);

    if (found != 0) {
        aq_m_probe.posted.row++;
        return found;
    }
    for (int channel = 0; channel < AQ_MPI_CHANNELS; channel++)
        if (aq_m_probe.late[channel].count != 0 && (channels & 1u << channel) != 0 && found == 0)
            found = aq_m_take_late((enum aq_mpi_channel)channel, out);
    if (found == 0
        && channels == AQ_M_BOTH) /* otherwise the next packet may be of a channel that is not
                                   * asked for */
        found = aq_m_post();
    if (found == 0)
        found = aq_m_take_posted(channels, looks, out);
    if (found == 0 && (looks == 0 || channels != AQ_M_BOTH || aq_m_probe.posted.count == 0))
        found = aq_m_take_probed(channels, out);
    aq_m_probe.posted.row = found > 0 ? aq_m_probe.posted.row + 1 : 0;
    return found;
}
