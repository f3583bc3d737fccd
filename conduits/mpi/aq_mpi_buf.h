/*
 * aq_mpi_buf.h - buffers of messages that are under way: packets and payloads.
 *
 * Threads   any
 * Uses      aq_mpi_packet.h, core/aq_bufpool.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_BUF_H
#define AQ_MPI_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conduits/mpi/aq_mpi_packet.h"
#include "core/aq_bufpool.h"

/* bytes: the packet of a short message, or one with a small payload */
#define AQ_MPI_SMALL      240u
#define AQ_MPI_MAX_MEDIUM 65536u
#define AQ_MPI_MAX_LONG   (1u << 20)

/* A buffer's header; `size` bytes follow it. MPI reads or writes them until
 * aq_mpi_lib_am.completes() returns the buffer as an owner. */
struct aq_mpi_buf {
    union {
        struct aq_freelist_item item; /* while it is free */
        struct aq_mpi_buf *next;      /* while its payload has arrived and waits for its handler */
        gex_Rank_t dest;              /* while MPI sends it */
    };
    uint32_t size; /* bytes that follow */
    uint8_t kind;  /* private to aq_mpi_buf.c */
    uint8_t channel;
    bool coming; /* the bytes are a struct aq_mpi_coming, whose payload is being received */
    bool zcopy;  /* the bytes are the struct aq_op * of client memory that MPI sends from */
};
_Static_assert(sizeof(struct aq_mpi_buf) % AQ_MPI_ALIGN == 0, "what follows is aligned");

/* A message whose packet has arrived and whose rendezvous payload, or the rest of whose split
 * payload, is being received. */
struct aq_mpi_coming {
    struct aq_mpi_head head;
    uint32_t source, nbytes;
    uint32_t missing; /* bytes that MPI has not received yet */
    uint32_t frags;   /* receives that are outstanding */
    void *payload;    /* behind this struct, or the destination of a long message */
    gex_AM_Arg_t args[AQ_MPI_ARGS];
};
_Static_assert(sizeof(struct aq_mpi_coming) <= AQ_MPI_SMALL, "a small buffer holds a long one's");

static inline void *aq_mpi_buf_bytes(struct aq_mpi_buf *buf)
{
    return buf + 1;
}

/* Never fails: without memory the job ends. */
struct aq_mpi_buf *aq_mpi_buf_take(size_t size);
void aq_mpi_buf_give(struct aq_mpi_buf *buf);
/* The job has ended: gives the memory of unused buffers back. */
void aq_mpi_buf_fini(void);

#endif
