/*
 * aq_mpi_packet.h - what travels in a packet: one active message or its head, and credit.
 *
 *   8 bytes   kind, handler, arguments, payload's place; credit given back
 *   4 each    arguments
 *   8         medium, long: length of the payload, its tag if it travels by itself
 *   8         long: where it goes
 *   padding   to a multiple of 16, and the payload, if it is in the packet
 *
 * All ranks have one build and one byte order, as MPI's own users assume. A length, a count or an address that does
 * not fit is found here or where it is used, and never followed.
 *
 * Threads   any: nothing here keeps state
 * Uses      aq_mpi_lib_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_PACKET_H
#define AQ_MPI_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "conduits/conduit.h"
#include "conduits/mpi/aq_mpi_lib_am.h"

#define AQ_MPI_INLINE 8192u /* bytes of a payload that travel in the packet */
#define AQ_MPI_ARGS 16u
#define AQ_MPI_ALIGN 16u
#define AQ_MPI_HEAD_MOST (8u + 4u * AQ_MPI_ARGS + 16u)
#define AQ_MPI_PACKET ((AQ_MPI_HEAD_MOST + AQ_MPI_ALIGN - 1) / AQ_MPI_ALIGN * AQ_MPI_ALIGN + AQ_MPI_INLINE)

#define AQ_MPI_CREDIT 3u /* a kind beside those of enum aq_am_kind: nothing but credit */

struct aq_mpi_head {
    uint8_t kind : 2, nargs : 5;
    uint8_t apart : 1; /* the payload travels by itself */
    uint8_t handler;
    uint16_t messages; /* of the receiver's requests, which the sender is done with since the start of the job, */
    uint32_t units;    /* and what they cost */
};
_Static_assert(sizeof(struct aq_mpi_head) == 8, "a short message without arguments fits a granule of most networks");

/* Behind the arguments, which may leave them unaligned to 8. */
struct aq_mpi_place {
    uint32_t nbytes, tag;
    uint32_t dest[2]; /* long only: low, high */
};
#define AQ_MPI_PLACE_MEDIUM 8u
#define AQ_MPI_PLACE_LONG 16u

/* A packet as it was understood. */
struct aq_mpi_message {
    struct aq_mpi_head head;
    uint32_t nbytes, tag;
    void *dest;
    const gex_AM_Arg_t *args;
    void *payload; /* in the packet; NULL if it travels by itself, or there is none */
};

static inline size_t aq_mpi_packet_padded(size_t nbytes)
{
    return (nbytes + AQ_MPI_ALIGN - 1) & ~(size_t)(AQ_MPI_ALIGN - 1);
}

/* Bytes before the padding. */
static inline size_t aq_mpi_packet_head(unsigned kind, unsigned nargs)
{
    return sizeof(struct aq_mpi_head) + 4 * nargs
           + (kind == AQ_AM_LONG ? AQ_MPI_PLACE_LONG : kind == AQ_AM_MEDIUM ? AQ_MPI_PLACE_MEDIUM : 0);
}

/* Is the payload of this length in the packet? */
static inline bool aq_mpi_packet_holds(size_t nbytes)
{
    return nbytes <= AQ_MPI_INLINE;
}

static inline size_t aq_mpi_packet_bytes(unsigned kind, unsigned nargs, size_t nbytes)
{
    const size_t head = aq_mpi_packet_head(kind, nargs);

    return kind == AQ_AM_SHORT || kind == AQ_MPI_CREDIT || nbytes == 0 || !aq_mpi_packet_holds(nbytes)
               ? head
               : aq_mpi_packet_padded(head) + nbytes;
}

static inline void aq_mpi_packet_put_args(char *packet, unsigned nargs, const gex_AM_Arg_t *args)
{
    gex_AM_Arg_t *to = (gex_AM_Arg_t *)(void *)(packet + sizeof(struct aq_mpi_head));

    for (unsigned i = 0; i < nargs; i++)
        to[i] = args[i];
}

/* Writes the packet of a medium or long message, payload included if it is in the packet. Returns its length. */
static inline size_t aq_mpi_packet_encode(char *packet, const struct aq_am_out *out, uint32_t units,
                                          uint16_t messages, uint32_t tag)
{
    const bool apart = !aq_mpi_packet_holds(out->nbytes);
    const struct aq_mpi_head head = { .kind = out->kind & 3u, .handler = out->handler, .nargs = out->nargs & 31u,
                                      .apart = apart, .units = units, .messages = messages };
    const struct aq_mpi_place place = { .nbytes = (uint32_t)out->nbytes, .tag = tag,
                                        .dest = { (uint32_t)(uintptr_t)out->dest,
                                                  (uint32_t)((uint64_t)(uintptr_t)out->dest >> 32) } };
    const size_t end = aq_mpi_packet_head(out->kind, out->nargs);

    memcpy(packet, &head, sizeof(head));
    aq_mpi_packet_put_args(packet, out->nargs, out->args);
    memcpy(packet + sizeof(head) + 4 * (size_t)out->nargs, &place,
           out->kind == AQ_AM_LONG ? AQ_MPI_PLACE_LONG : AQ_MPI_PLACE_MEDIUM);
    if (apart || out->nbytes == 0)
        return end;
    memcpy(packet + aq_mpi_packet_padded(end), out->src, out->nbytes);
    return aq_mpi_packet_padded(end) + out->nbytes;
}

/* The packet of len bytes, aligned, at packet. False: it is not one. */
static inline bool aq_mpi_packet_decode(char *packet, size_t len, size_t max_medium, size_t max_long,
                                        struct aq_mpi_message *out)
{
    const size_t whole = sizeof(struct aq_mpi_head);
    struct aq_mpi_place place = { 0 };
    size_t head, limit;

    if (len < whole)
        return false;
    memcpy(&out->head, packet, whole);
    if (out->head.nargs > AQ_MPI_ARGS)
        return false;
    head = aq_mpi_packet_head(out->head.kind, out->head.nargs);
    out->args = (const gex_AM_Arg_t *)(const void *)(packet + whole);
    out->payload = NULL;
    out->nbytes = out->tag = 0;
    out->dest = NULL;
    if (out->head.kind == AQ_AM_SHORT || out->head.kind == AQ_MPI_CREDIT)
        return len == head && out->head.apart == 0;
    if (len < head)
        return false;
    memcpy(&place, packet + whole + 4 * (size_t)out->head.nargs, head - whole - 4 * (size_t)out->head.nargs);
    limit = out->head.kind == AQ_AM_LONG ? max_long : max_medium;
    if (place.nbytes > limit || out->head.apart != !aq_mpi_packet_holds(place.nbytes))
        return false;
    if (out->head.apart && (place.tag == 0 || place.tag > AQ_MPI_TAGS))
        return false;
    if (len != aq_mpi_packet_bytes(out->head.kind, out->head.nargs, place.nbytes))
        return false;
    out->nbytes = place.nbytes;
    out->tag = place.tag;
    if (out->head.kind == AQ_AM_LONG)
        out->dest = (void *)(uintptr_t)((uint64_t)place.dest[1] << 32 | place.dest[0]);
    if (!out->head.apart && place.nbytes != 0)
        out->payload = packet + aq_mpi_packet_padded(head);
    return true;
}

#endif
