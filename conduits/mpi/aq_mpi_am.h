/*
 * aq_mpi_am.h - the state of active messages over MPI.
 *
 * The parts, lowest first: aq_mpi_packet.h (wire format), aq_mpi_credit.h (flow control),
 * aq_mpi_wakeup.h (who is awake), aq_mpi_buf.h (memory), aq_mpi_ring.h (receive slots),
 * aq_mpi_am_out.h, aq_mpi_am_in.h. The last two take this state as an argument; each of the others
 * can be used and tested by itself.
 *
 * Threads   with the lock, except as stated
 * Uses      the headers above. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_AM_H
#define AQ_MPI_AM_H

#include "conduits/mpi/aq_mpi_buf.h"
#include "conduits/mpi/aq_mpi_credit.h"
#include "conduits/mpi/aq_mpi_pairs.h"
#include "conduits/mpi/aq_mpi_ring.h"
#include "conduits/mpi/aq_mpi_wakeup.h"

struct aq_mpi_am {
    const struct aq_mpi_lib_am *lib;
    /* With the lock: puts a long payload to its destination without help of the target. Returns
     * false if it cannot. NULL: never. */
    bool (*place)(gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes);
    struct aq_mpi_peer *peers; /* [size], by jobrank */
    uint32_t window;           /* credit units for each peer */
    /* Packets of more bytes, with payloads up to AQ_MPI_SPLIT_MAX, go in eager messages; 0: none
     * do. Set at attach, read by any thread. */
    atomic_size_t split_above[AQ_MPI_CLASSES];
    uint64_t sending[AQ_MPI_CHANNELS]; /* bytes of buffers that MPI sends from */
    uint32_t coming[AQ_MPI_CHANNELS];  /* payloads that are being received */
    uint32_t zcopy;                    /* payloads that are being sent from client memory */
    uint32_t polls;
    struct {
        struct aq_mpi_buf *first, *last; /* messages whose payloads have arrived */
    } ready[AQ_MPI_CHANNELS];
    struct aq_mpi_buf *reserve; /* a small buffer, allocated in advance */
    uint32_t idle;              /* polls in a row that found nothing */
    uint32_t hollow;            /* polls that found nothing since the last packet */
    uint32_t quiet;   /* 0 after a message, in or out; 1 after a poll that found nothing */
    uint32_t replies; /* packets of replies in a row, while requests may wait */
    bool behind;      /* complete packets may lie behind an incomplete one: test every slot */
    atomic_bool before_sleep; /* set by a thread that is about to sleep: test every slot */
    bool dropped;             /* aq_mpi_am_drain() has dropped a message */
    atomic_bool due;          /* set by any thread: some peer is due a credit message */
    struct aq_mpi_wakeup wakeup;
    struct aq_mpi_rings rings;
};

extern struct aq_mpi_am aq_mpi_am; /* the conduit's */

/* Requests that this thread has sent since it last polled MPI. */
struct aq_mpi_am_batch {
    uint32_t sent;
    bool just_sent; /* no poll since the last request */
};
extern _Thread_local struct aq_mpi_am_batch aq_mpi_am_batch
    __attribute__((tls_model("initial-exec"))); /* avoids a call for each access */

#endif
