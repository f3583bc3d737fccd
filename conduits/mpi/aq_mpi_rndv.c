/*
 * aq_mpi_rndv.c - large parts of collectives: one send of MPI's, into a receive that waits for it.
 *
 * Who is to get a part posts the receive first and tells the sender, in a message of the
 * collective's own, by what tag: its ticket. So the data goes from memory to memory by the means
 * that the MPI has for much of it, in the order in which the members come to it, whatever the team.
 *
 * Deadlock  a send is started when its receive is posted, and both are tested by polls: nothing
 *           waits for room. A receive whose sender comes late keeps its tag, so tags are not those
 *           of transfers, and who finds none gets the data in messages
 * Owns      the tags
 * Threads   any; tags inside aq_mpi_lock()
 * Uses      aq_mpi_rma.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_rma.h"
#include "base/aq_log.h"

static uint64_t aq_mpi_rndv_tags[AQ_MPI_RNDV_TAGS / 64];

/* A ticket is the tag's number and one, so that none is 0; 0 if all are used. */
static uint32_t aq_mpi_rndv_match_id(void)
{
    const uint16_t tag = aq_mpi_tag_take(aq_mpi_rndv_tags, AQ_MPI_RNDV_TAGS);

    return tag == AQ_MPI_NO_TAG ? 0 : tag + 1u;
}

/* Inside aq_mpi_lock(). */
static void aq_mpi_rndv_start(enum aq_mpi_xfer_type type, gex_Rank_t rank, uint32_t match_id,
                              void *local, size_t nbytes, struct aq_rndv *rndv)
{
    struct aq_mpi_xfer *xfer = aq_mpi_xfer_new();

    xfer->type = (uint8_t)type;
    xfer->rndv = rndv;
    xfer->rank = rank;
    xfer->tag = (uint16_t)(match_id - 1);
    xfer->local = local;
    xfer->nbytes = nbytes;
    aq_mpi_xfer_start(xfer);
}

uint32_t aq_mpi_rndv_recv(gex_Rank_t jobrank, void *dest, size_t nbytes, struct aq_rndv *rndv)
{
    uint32_t match_id;

    /* until its segment is attached a rank has no receives here that only a later call of another's
     * ends: attaching waits for all transfers */
    if (nbytes > AQ_MPI_FRAG_MAX || !aq_job.attached)
        return 0;
    aq_mpi_lock();
    match_id = aq_mpi_rndv_match_id();
    if (match_id != 0)
        aq_mpi_rndv_start(AQ_MPI_X_RNDV_RECV, jobrank, match_id, dest, nbytes, rndv);
    aq_mpi_unlock();
    return match_id;
}

void aq_mpi_rndv_send(gex_Rank_t jobrank, uint32_t match_id, const void *src, size_t nbytes,
                      struct aq_rndv *rndv)
{
    if (match_id > AQ_MPI_RNDV_TAGS || nbytes > AQ_MPI_FRAG_MAX)
        aq_fatal("mpi: rank %u waits for %zu bytes of a collective with ticket %u, as no rank of "
                 "ours does",
                 jobrank, nbytes, (unsigned)match_id);
    aq_mpi_lock();
    aq_mpi_rndv_start(AQ_MPI_X_RNDV_SEND, jobrank, match_id, (void *)(uintptr_t)src, nbytes, rndv);
    aq_mpi_unlock();
}

void aq_mpi_rndv_end(const struct aq_mpi_xfer *xfer)
{
    if (xfer->type == AQ_MPI_X_RNDV_RECV)
        aq_mpi_tag_give(aq_mpi_rndv_tags, xfer->tag);
    xfer->rndv->done(xfer->rndv);
}
