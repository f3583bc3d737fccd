/*
 * aq_mpi_part.c - large parts of collectives: one send of MPI's, into a receive that waits for it.
 *
 * Who is to get a part posts the receive first and tells the sender, in a message of the collective's own, by what tag:
 * its ticket. So the data goes from memory to memory by the means that the MPI has for much of it, in the order in
 * which the members come to it, whatever the team.
 *
 * Deadlock  a send is started when its receive is posted, and both are tested by polls: nothing waits for room. A
 *           receive whose sender comes late keeps its tag, so tags are not those of transfers, and who finds none gets
 *           the data in messages
 * Owns      the tags
 * Threads   any; tags inside aq_mpi_enter()
 * Uses      aq_mpi_rma.h, conduits/smp. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_rma.h"
#include "base/aq_log.h"
#include "conduits/smp/aq_shm.h"

static uint64_t aq_mpi_part_tags[AQ_MPI_PARTS / 64];

/* A ticket is the tag's number and one, so that none is 0; 0 if all are used. */
static uint32_t aq_mpi_part_ticket(void)
{
    const uint16_t tag = aq_mpi_tag_take(aq_mpi_part_tags, AQ_MPI_PARTS);

    return tag == AQ_MPI_NO_TAG ? 0 : tag + 1u;
}

/* Inside aq_mpi_enter(). */
static void aq_mpi_part_start(enum aq_mpi_xfer_type type, gex_Rank_t rank, uint32_t ticket, void *here, size_t nbytes,
                              struct aq_part *part)
{
    struct aq_mpi_xfer *xfer = aq_mpi_xfer_new();

    xfer->type = (uint8_t)type;
    xfer->part = part;
    xfer->rank = rank;
    xfer->tag = (uint16_t)(ticket - 1);
    xfer->here = here;
    xfer->nbytes = nbytes;
    aq_mpi_xfer_start(xfer);
}

uint32_t aq_mpi_part_take(gex_Rank_t jobrank, void *dest, size_t nbytes, struct aq_part *part)
{
    uint32_t ticket;

    /* until its segment is attached a rank has no receives here that only a later call of another's ends: attaching
     * waits for all transfers */
    if (aq_shm_is_near(jobrank) || nbytes > AQ_MPI_PIECE || !aq_job.attached)
        return 0;
    aq_mpi_enter();
    ticket = aq_mpi_part_ticket();
    if (ticket != 0)
        aq_mpi_part_start(AQ_MPI_X_PART_IN, jobrank, ticket, dest, nbytes, part);
    aq_mpi_leave();
    return ticket;
}

void aq_mpi_part_give(gex_Rank_t jobrank, uint32_t ticket, const void *src, size_t nbytes, struct aq_part *part)
{
    if (aq_shm_is_near(jobrank) || ticket > AQ_MPI_PARTS || nbytes > AQ_MPI_PIECE)
        aq_fatal("mpi: rank %u waits for %zu bytes of a collective with ticket %u, as no rank of ours does", jobrank,
                 nbytes, (unsigned)ticket);
    aq_mpi_enter();
    aq_mpi_part_start(AQ_MPI_X_PART_OUT, jobrank, ticket, (void *)(uintptr_t)src, nbytes, part);
    aq_mpi_leave();
}

void aq_mpi_part_end(const struct aq_mpi_xfer *xfer)
{
    if (xfer->type == AQ_MPI_X_PART_IN)
        aq_mpi_tag_give(aq_mpi_part_tags, xfer->tag);
    xfer->part->done(xfer->part);
}
