/*
 * aq_mpi_am.h - what the files of the mpi conduit's messages share.
 *
 *   aq_mpi_am.c      out
 *   aq_mpi_am_in.c   in: what has come, and running it
 *   aq_mpi_ring.h    the slots that packets come in
 *   aq_mpi_buf.c     memory for what is on its way
 *   aq_mpi_credit.h  flow control, and why it does not stop
 *   aq_mpi_packet.h  what travels
 *
 * Threads   under the MPI lock (aq_mpi_lock()), where nothing else is said
 * Uses      aq_mpi.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_AM_H
#define AQ_MPI_AM_H

#include "conduits/mpi/aq_mpi.h"
#include "conduits/mpi/aq_mpi_credit.h"
#include "conduits/mpi/aq_mpi_packet.h"
#include "base/aq_platform.h"

#define AQ_MPI_SMALL      240u /* bytes: a packet of a short message, or of little payload */
#define AQ_MPI_MAX_MEDIUM 65536u
#define AQ_MPI_MAX_LONG   (1u << 20)
#define AQ_MPI_SLOTS      64u /* packets of a lane that MPI has room for before it queues them */
#define AQ_MPI_BATCH      4u  /* requests one after the other for one poll */
#define AQ_MPI_COMING     32u /* payloads of a lane that are received at a time */

/* Memory that MPI works on until aq_mpi_lib_am.completes() tells of it. */
struct aq_mpi_buf {
    struct aq_mpi_buf *next;
    uint32_t size; /* bytes that follow */
    uint8_t kind;  /* aq_mpi_buf.c's */
    uint8_t channel;
    bool coming; /* what follows is a struct aq_mpi_coming, and the payload is on its way in */
    bool zcopy;  /* what follows is the struct aq_op * of a client's memory that MPI sends from */
};
_Static_assert(sizeof(struct aq_mpi_buf) % AQ_MPI_ALIGN == 0, "what follows is aligned");

/* A message whose payload travels by itself. */
struct aq_mpi_coming {
    struct aq_mpi_head head;
    uint32_t source, nbytes;
    void *payload; /* behind this, or where a long one belongs */
    gex_AM_Arg_t args[AQ_MPI_ARGS];
};
_Static_assert(sizeof(struct aq_mpi_coming) <= AQ_MPI_SMALL, "a long one needs no more");

static inline void *aq_mpi_buf_bytes(struct aq_mpi_buf *buf)
{
    return buf + 1;
}

/* Any thread. take never fails: without memory the job ends. */
struct aq_mpi_buf *aq_mpi_buf_take(size_t size);
void aq_mpi_buf_give(struct aq_mpi_buf *buf);

struct aq_mpi_am {
    const struct aq_mpi_lib_am *lib;
    struct aq_mpi_peer *peers; /* [size], by jobrank */
    uint32_t window;
    uint64_t sending[AQ_MPI_CHANNELS]; /* bytes of buffers that MPI has not let go of */
    uint32_t coming[AQ_MPI_CHANNELS];  /* payloads on their way in */
    uint32_t zcopy;                    /* payloads on their way out of the client's memory */
    uint32_t polls;                    /* polls */
    struct {
        struct aq_mpi_buf *first, *last; /* messages whose payloads have come */
    } ready[AQ_MPI_CHANNELS];
    struct aq_mpi_buf *reserve; /* a small buffer at hand */
    uint32_t idle;              /* polls that found nothing */
    uint32_t hollow;            /* the same since the last packet */
    uint32_t quiet;             /* the same since the last message, out or in, up to a bound */
    uint32_t replies;           /* in a row, while requests may wait */
    bool behind;              /* messages may have come behind one that hangs: look at every slot */
    atomic_bool before_sleep; /* a thread is about to nap: the next look is at every slot */
    bool dropped;             /* a message was, by aq_mpi_am_drain() */
    atomic_bool due;          /* some peer waits for credit that it was not told of */
};
extern struct aq_mpi_am aq_mpi_am;

/* --- out (aq_mpi_am.c) --- */

int aq_mpi_am_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                    const gex_AM_Arg_t *args);
int aq_mpi_am_send(const struct aq_am_out *out);
/* A packet with nothing but credit. */
void aq_mpi_am_send_credit(gex_Rank_t jobrank);
/* What MPI has completed: frees buffers, finds messages that are whole now. True: there was
 * something. */
bool aq_mpi_am_reclaim(void);

/* --- in (aq_mpi_am_in.c) --- */

/* Requests that this thread has sent since it last looked at MPI. */
struct aq_mpi_am_batch {
    uint32_t sent;
    bool just_sent; /* since its last poll */
};
extern _Thread_local struct aq_mpi_am_batch aq_mpi_am_batch
    __attribute__((tls_model("initial-exec"))); /* no call for a few bytes */

/* May this poll leave MPI out? The one right after a request is there so that who only sends serves
 * others, too. In a burst of requests one for each AQ_MPI_BATCH of them is enough; who waits polls
 * again, with no request in between. */
static inline bool aq_mpi_am_is_skipped(bool replies_only)
{
    struct aq_mpi_am_batch *batch = &aq_mpi_am_batch;
    const bool just_sent = batch->just_sent;

    batch->just_sent = false;
    return AQ_UNLIKELY(just_sent) && !replies_only && batch->sent < AQ_MPI_BATCH;
}

/* Any thread, outside the lock. */
unsigned aq_mpi_am_poll(bool replies_only);
/* Is a send or a payload on its way, or a message whole that nobody has run yet? */
bool aq_mpi_am_is_moving(void);
/* As the process leaves: takes what comes without running it, and looks after what goes out. True:
 * nothing is on its way any more. */
bool aq_mpi_am_drain(void);

#endif
