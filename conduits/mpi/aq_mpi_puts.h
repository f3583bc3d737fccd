/*
 * aq_mpi_puts.h - the payloads of messages that carry several small puts, or ask for several small
 * gets.
 *
 *   8 bytes   address at the receiver in the lower 56 bits; in the upper 8 the length, or 0
 *   8 bytes   only if these are 0: the length
 *   data      of a put: padded to a multiple of 8
 *
 * and so on to the end of the payload. The answer to gets has their data, each padded likewise. The
 * receiver checks lengths here and addresses where they are used.
 *
 * Threads   any: no state
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_PUTS_H
#define AQ_MPI_PUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define AQ_MPI_PUTS_WORD 8u
#define AQ_MPI_PUTS_MAX  1024u /* bytes of one put or get */
#define AQ_MPI_PUTS_BITS 56u   /* of an address; user space has 47 to 56 */
#define AQ_MPI_PUTS_BYTE 255u  /* the longest length that stands beside an address */

/* Bytes of puts in a message, or of what gets bring. Its packet stays below 4 KiB, which MPIs send
 * eagerly on one host: a longer one may be a rendezvous, which takes many polls of both sides. */
#define AQ_MPI_PUTS_BATCH 3840u

/* One put or get of a payload. */
struct aq_mpi_puts_one {
    void *addr;
    const char *data; /* of a put */
    size_t nbytes;
};

/* Returns true if a put or get has the form of the payload. nbytes is not 0. */
static inline bool aq_mpi_puts_can(const void *addr, size_t nbytes)
{
    return nbytes <= AQ_MPI_PUTS_MAX && (uint64_t)(uintptr_t)addr >> AQ_MPI_PUTS_BITS == 0;
}

/* Bytes of padded data. */
static inline size_t aq_mpi_puts_padded(size_t nbytes)
{
    return (nbytes + AQ_MPI_PUTS_WORD - 1) & ~(size_t)(AQ_MPI_PUTS_WORD - 1);
}

/* Bytes of address and length. */
static inline size_t aq_mpi_puts_head(size_t nbytes)
{
    return nbytes <= AQ_MPI_PUTS_BYTE ? AQ_MPI_PUTS_WORD : 2 * AQ_MPI_PUTS_WORD;
}

/* Bytes that a put takes in a payload. */
static inline size_t aq_mpi_puts_bytes(size_t nbytes)
{
    return aq_mpi_puts_head(nbytes) + aq_mpi_puts_padded(nbytes);
}

/* Writes address and length at `at`. Returns what follows them. */
static inline char *aq_mpi_puts_write_head(char *at, const void *addr, size_t nbytes)
{
    const uint64_t length = nbytes <= AQ_MPI_PUTS_BYTE ? nbytes : 0, all = nbytes;
    const uint64_t word = (uint64_t)(uintptr_t)addr | length << AQ_MPI_PUTS_BITS;

    memcpy(at, &word, sizeof(word));
    if (length == 0)
        memcpy(at + AQ_MPI_PUTS_WORD, &all, sizeof(all));
    return at + aq_mpi_puts_head(nbytes);
}

/* Writes a put at `at`, which has space for aq_mpi_puts_bytes(nbytes). */
static inline void aq_mpi_puts_write(char *at, const void *addr, const void *src, size_t nbytes)
{
    char *data = aq_mpi_puts_write_head(at, addr, nbytes);

    if (nbytes == AQ_MPI_PUTS_WORD)
        memcpy(data, src, AQ_MPI_PUTS_WORD);
    else
        memcpy(data, src, nbytes);
}

/* Reads address and length at offset *at_io of a payload of `end` bytes, and advances the offset.
 * Returns false if none are there: the payload is malformed. */
static inline bool aq_mpi_puts_read_head(const char *payload, size_t end, size_t *at_io,
                                         struct aq_mpi_puts_one *out)
{
    uint64_t word, all;

    if (end - *at_io < AQ_MPI_PUTS_WORD)
        return false;
    memcpy(&word, payload + *at_io, sizeof(word));
    out->nbytes = (size_t)(word >> AQ_MPI_PUTS_BITS);
    out->addr = (void *)(uintptr_t)(word & ((UINT64_C(1) << AQ_MPI_PUTS_BITS) - 1));
    if (out->nbytes == 0) {
        if (end - *at_io < 2 * AQ_MPI_PUTS_WORD)
            return false;
        memcpy(&all, payload + *at_io + AQ_MPI_PUTS_WORD, sizeof(all));
        out->nbytes = (size_t)all;
        if (out->nbytes <= AQ_MPI_PUTS_BYTE || out->nbytes > AQ_MPI_PUTS_MAX)
            return false;
    }
    *at_io += aq_mpi_puts_head(out->nbytes);
    return true;
}

/* Reads the put at offset *at_io, as above. */
static inline bool aq_mpi_puts_read(const char *payload, size_t end, size_t *at_io,
                                    struct aq_mpi_puts_one *out)
{
    if (!aq_mpi_puts_read_head(payload, end, at_io, out)
        || aq_mpi_puts_padded(out->nbytes) > end - *at_io)
        return false;
    out->data = payload + *at_io;
    *at_io += aq_mpi_puts_padded(out->nbytes);
    return true;
}

#endif
