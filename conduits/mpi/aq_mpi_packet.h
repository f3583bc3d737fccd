/*
 * aq_mpi_packet.h - the wire format of a packet: one active message, or its head, and credit.
 *
 *   8 bytes   head: kind, handler, number of arguments, whether the payload is separate; credit
 *   4 each    arguments
 *   8         medium, long: length of the payload; the tag of a rendezvous payload, or that the
 *             payload of a long is at its destination
 *   8         long: destination
 *   padding   to a multiple of 16, then the payload if it is eager, or as much of it as fits
 *
 * All ranks have one build and one byte order. Lengths, counts and addresses are checked here or
 * where they are used, before their use.
 *
 * Threads   any: no state
 * Uses      aq_mpi_lib_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_PACKET_H
#define AQ_MPI_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/aq_conduit.h"
#include "conduits/mpi/aq_mpi_lib_am.h"

#define AQ_MPI_INLINE 8192u /* bytes of a payload that a packet may have */
#define AQ_MPI_EAGER \
    4032u /* bytes: a packet, or a fragment of a split payload, that every MPI sends eagerly */
#define AQ_MPI_SPLIT_MAX 32768u /* bytes of a payload that is split */
#define AQ_MPI_FRAGS     8u     /* of a split payload, behind its packet, at most */
#define AQ_MPI_ARGS      16u
#define AQ_MPI_ALIGN     16u
#define AQ_MPI_HEAD_MAX  (8u + 4u * AQ_MPI_ARGS + 16u)
#define AQ_MPI_PACKET \
    ((AQ_MPI_HEAD_MAX + AQ_MPI_ALIGN - 1) / AQ_MPI_ALIGN * AQ_MPI_ALIGN + AQ_MPI_INLINE)

#define AQ_MPI_PLACED UINT32_MAX /* instead of a tag: the payload is at its destination */

_Static_assert(AQ_MPI_SPLIT_MAX - (AQ_MPI_EAGER - (AQ_MPI_PACKET - AQ_MPI_INLINE))
                   <= AQ_MPI_FRAGS * AQ_MPI_EAGER,
               "the longest payload that is split, behind the longest head");

#define AQ_MPI_CREDIT 3u /* a kind besides those of enum aq_am_kind: a credit message */

/* The head, from its lowest bit on. */
struct aq_mpi_head {
    uint8_t kind;  /* 2 bits */
    uint8_t nargs; /* 5 bits */
    bool apart;    /* 1 bit: the payload is not, or not whole, in the packet */
    uint8_t handler;
    uint16_t
        /* of the receiver's requests: how many the sender has run since the start of the job */
        messages;
    uint32_t done; /* the same, in credit units (aq_mpi_credit.h) */
};
#define AQ_MPI_HEAD \
    8u /* bytes: a short message without arguments fits the minimum of most networks */

/* Follows the arguments, so it may be aligned to 4 bytes only. */
struct aq_mpi_desc {
    uint32_t nbytes, tag;
    uint32_t dest[2]; /* long only: low, high */
};
#define AQ_MPI_DESC_MEDIUM 8u
#define AQ_MPI_DESC_LONG   16u

/* A decoded packet. */
struct aq_mpi_message {
    struct aq_mpi_head head;
    uint32_t nbytes, tag;
    void *dest;
    const gex_AM_Arg_t *args;
    uint32_t eager; /* bytes of the payload that are in the packet, */
    void *payload;  /* there; NULL: none */
};

/* Writes the head by one store. MPI copies these bytes by one load; after several stores that load
 * would have to wait until they have left the store buffer, behind the stores of the previous
 * message to cache lines that its receiver polls. */
static inline void aq_mpi_head_put(char *packet, struct aq_mpi_head head)
{
    const uint64_t word = (head.kind & 3u) | (head.nargs & 31u) << 2 | (uint32_t)head.apart << 7
                          | (uint32_t)head.handler << 8 | (uint32_t)head.messages << 16
                          | (uint64_t)head.done << 32;

    memcpy(packet, &word, sizeof(word));
}

static inline struct aq_mpi_head aq_mpi_head_get(const char *packet)
{
    uint64_t word;

    memcpy(&word, packet, sizeof(word));
    return (struct aq_mpi_head){ .kind = word & 3,
                                 .nargs = word >> 2 & 31,
                                 .apart = (word >> 7 & 1) != 0,
                                 .handler = (uint8_t)(word >> 8),
                                 .messages = (uint16_t)(word >> 16),
                                 .done = (uint32_t)(word >> 32) };
}

static inline size_t aq_mpi_packet_padded(size_t nbytes)
{
    return (nbytes + AQ_MPI_ALIGN - 1) & ~(size_t)(AQ_MPI_ALIGN - 1);
}

/* Bytes before the padding. */
static inline size_t aq_mpi_packet_head(unsigned kind, unsigned nargs)
{
    return AQ_MPI_HEAD + 4 * (size_t)nargs
           + (kind == AQ_AM_LONG     ? AQ_MPI_DESC_LONG
              : kind == AQ_AM_MEDIUM ? AQ_MPI_DESC_MEDIUM
                                     : 0);
}

/* Returns true if a payload of this length is eager. */
static inline bool aq_mpi_packet_fits(size_t nbytes)
{
    return nbytes <= AQ_MPI_INLINE;
}

static inline size_t aq_mpi_packet_bytes(unsigned kind, unsigned nargs, size_t nbytes)
{
    const size_t head = aq_mpi_packet_head(kind, nargs);

    return kind == AQ_AM_SHORT || kind == AQ_MPI_CREDIT || nbytes == 0
                   || !aq_mpi_packet_fits(nbytes)
               ? head
               : aq_mpi_packet_padded(head) + nbytes;
}

static inline void aq_mpi_packet_put_args(char *packet, unsigned nargs, const gex_AM_Arg_t *args)
{
    gex_AM_Arg_t *to = (gex_AM_Arg_t *)(void *)(packet + AQ_MPI_HEAD);

    for (unsigned i = 0; i < nargs; i++)
        to[i] = args[i];
}

/* Offset of an eager payload in its packet. */
static inline size_t aq_mpi_packet_payload(unsigned kind, unsigned nargs)
{
    return aq_mpi_packet_padded(aq_mpi_packet_head(kind, nargs));
}

/* Writes what comes before the payload of a medium or long message. tag: 0 if the whole payload is
 * in the packet. Returns its length, without the padding. */
static inline size_t aq_mpi_packet_encode_head(char *packet, const struct aq_am_out *out,
                                               uint32_t done, uint16_t messages, uint32_t tag)
{
    const struct aq_mpi_head head = { .kind = out->kind,
                                      .handler = out->handler,
                                      .nargs = out->nargs,
                                      .apart = tag != 0,
                                      .done = done,
                                      .messages = messages };
    const struct aq_mpi_desc desc = {
        .nbytes = (uint32_t)out->nbytes,
        .tag = tag,
        .dest = { (uint32_t)(uintptr_t)out->dest, (uint32_t)((uint64_t)(uintptr_t)out->dest >> 32) }
    };

    aq_mpi_head_put(packet, head);
    aq_mpi_packet_put_args(packet, out->nargs, out->args);
    memcpy(packet + AQ_MPI_HEAD + 4 * (size_t)out->nargs, &desc,
           out->kind == AQ_AM_LONG ? AQ_MPI_DESC_LONG : AQ_MPI_DESC_MEDIUM);
    return aq_mpi_packet_head(out->kind, out->nargs);
}

/* Writes the packet of a medium or long message, including the first `eager` bytes of its payload.
 * Returns its length. */
static inline size_t aq_mpi_packet_encode(char *packet, const struct aq_am_out *out, uint32_t done,
                                          uint16_t messages, uint32_t tag, size_t eager)
{
    const size_t end = aq_mpi_packet_encode_head(packet, out, done, messages, tag);

    if (eager == 0)
        return end;
    memcpy(packet + aq_mpi_packet_padded(end), out->src, eager);
    return aq_mpi_packet_padded(end) + eager;
}

/* How many bytes of the payload are in a packet of len bytes, whose payload begins at `at`? Returns
 * false if the packet and what follows cannot be the payload that it announces. */
static inline bool aq_mpi_packet_split(const struct aq_mpi_head *head,
                                       const struct aq_mpi_desc *desc, size_t len, size_t at,
                                       uint32_t *eager_out)
{
    const size_t rest = len > at ? len - at : 0;

    *eager_out = head->apart ? (uint32_t)rest : desc->nbytes;
    if (!head->apart)
        return aq_mpi_packet_fits(desc->nbytes);
    if (desc->tag == AQ_MPI_PLACED)
        return head->kind == AQ_AM_LONG && rest == 0;
    if (desc->tag == 0 || desc->tag > AQ_MPI_TAGS)
        return false;
    return rest == 0 ? !aq_mpi_packet_fits(desc->nbytes)
                     : rest < desc->nbytes && desc->nbytes <= AQ_MPI_SPLIT_MAX
                           && desc->nbytes - rest <= AQ_MPI_FRAGS * len;
}

/* Decodes the packet of len bytes at packet, which is aligned. Returns false if it is malformed. */
static inline bool aq_mpi_packet_decode(char *packet, size_t len, size_t max_medium,
                                        size_t max_long, struct aq_mpi_message *out)
{
    struct aq_mpi_desc desc = { 0 };
    size_t head, limit;

    if (len < AQ_MPI_HEAD)
        return false;
    out->head = aq_mpi_head_get(packet);
    if (out->head.nargs > AQ_MPI_ARGS)
        return false;
    head = aq_mpi_packet_head(out->head.kind, out->head.nargs);
    out->args = (const gex_AM_Arg_t *)(const void *)(packet + AQ_MPI_HEAD);
    out->payload = NULL;
    out->nbytes = out->tag = out->eager = 0;
    out->dest = NULL;
    if (out->head.kind == AQ_AM_SHORT || out->head.kind == AQ_MPI_CREDIT)
        return len == head && !out->head.apart;
    if (len < head)
        return false;
    memcpy(&desc, (const char *)out->args + 4 * (size_t)out->head.nargs,
           head - AQ_MPI_HEAD - 4 * (size_t)out->head.nargs);
    limit = out->head.kind == AQ_AM_LONG ? max_long : max_medium;
    if (desc.nbytes > limit
        || !aq_mpi_packet_split(&out->head, &desc, len, aq_mpi_packet_padded(head), &out->eager)
        || len != aq_mpi_packet_bytes(out->head.kind, out->head.nargs, out->eager))
        return false;
    out->nbytes = desc.nbytes;
    out->tag = desc.tag;
    if (out->head.kind == AQ_AM_LONG)
        out->dest = (void *)(uintptr_t)((uint64_t)desc.dest[1] << 32 | desc.dest[0]);
    if (out->eager != 0)
        out->payload = packet + aq_mpi_packet_padded(head);
    return true;
}

#endif
