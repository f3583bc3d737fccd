/*
 * aq_mpi_rndv.c - large chunks of collectives, each by one MPI message into a posted receive.
 *
 * Rendezvous: the receiver posts the receive first, then sends its tag, the match id, to the sender
 * in a message of the collective's own. The MPI then uses its fastest means for large messages,
 * from memory to memory, in the order in which members arrive, in any team.
 *
 * Deadlock  cannot happen: a send starts after its receive is posted, polls test both, and neither
 *           waits for space. A receive whose sender is late keeps its tag, so these tags are
 *           separate from those of direct transfers. Without a free tag the data uses active
 *           messages
 * Owns      the tags
 * Threads   any; tags with the lock
 * Uses      aq_mpi_path.h, aq_mpi_tags.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_rndv.h"

#include "base/aq_log.h"
#include "base/aq_state.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "conduits/mpi/aq_mpi_path.h"
#include "conduits/mpi/aq_mpi_tags.h"

#define AQ_MPI_RNDV_TAGS     256u /* posted receives of a rank at a time */
#define AQ_MPI_RNDV_TAG_BASE 512u /* above the tags of direct transfers */

static uint64_t aq_mpi_rndv_tags[AQ_MPI_RNDV_TAGS / 64] AQ_JOB_STATE;

/* Returns a match id, which is a tag's index plus 1; 0 if no tag is free. */
static uint32_t aq_mpi_rndv_match_id(void)
{
    const uint16_t tag = aq_mpi_tag_take(aq_mpi_rndv_tags, AQ_MPI_RNDV_TAGS);

    return tag == AQ_MPI_NO_TAG ? 0 : tag + 1u;
}

static bool aq_mpi_rndv_ended(struct aq_mpi_xfer *xfer)
{
    if (xfer->type == AQ_MPI_X_RECV)
        aq_mpi_tag_give(aq_mpi_rndv_tags, (uint16_t)(xfer->tag - AQ_MPI_RNDV_TAG_BASE));
    xfer->rndv->done(xfer->rndv);
    return false;
}

/* With the lock. */
static void aq_mpi_rndv_start(enum aq_mpi_xfer_type type, gex_Rank_t rank, uint32_t match_id,
                              void *local, size_t nbytes, struct aq_rndv *rndv)
{
    struct aq_mpi_xfer *xfer = aq_mpi_xfer_new(&aq_mpi_rma.xfers);

    xfer->type = (uint8_t)type;
    xfer->rndv = rndv;
    xfer->ended = aq_mpi_rndv_ended;
    xfer->rank = rank;
    xfer->tag = (uint16_t)(AQ_MPI_RNDV_TAG_BASE + match_id - 1);
    xfer->local = local;
    xfer->nbytes = nbytes;
    aq_mpi_xfer_start(&aq_mpi_rma.xfers, xfer);
}

uint32_t aq_mpi_rndv_recv(gex_Rank_t jobrank, void *dest, size_t nbytes, struct aq_rndv *rndv)
{
    uint32_t match_id;

    /* no receive is posted before the segment is attached: attaching waits for all transfers, and
     * the sender of this one may be late */
    if (nbytes > AQ_MPI_FRAG_MAX || !aq_job.attached)
        return 0;
    aq_mpi_lock();
    match_id = aq_mpi_rndv_match_id();
    if (match_id != 0)
        aq_mpi_rndv_start(AQ_MPI_X_RECV, jobrank, match_id, dest, nbytes, rndv);
    aq_mpi_unlock();
    return match_id;
}

void aq_mpi_rndv_send(gex_Rank_t jobrank, uint32_t match_id, const void *src, size_t nbytes,
                      struct aq_rndv *rndv)
{
    if (match_id > AQ_MPI_RNDV_TAGS || nbytes > AQ_MPI_FRAG_MAX)
        aq_fatal("mpi: rank %u waits for %zu bytes of a collective with match id %u, as no rank of "
                 "ours does",
                 jobrank, nbytes, (unsigned)match_id);
    aq_mpi_lock();
    aq_mpi_rndv_start(AQ_MPI_X_SEND, jobrank, match_id, (void *)(uintptr_t)src, nbytes, rndv);
    aq_mpi_unlock();
}
