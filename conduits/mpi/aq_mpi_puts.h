/*
 * aq_mpi_puts.h - the payload of a message that carries several small puts.
 *
 *   8 bytes   destination in the lower 56 bits, length in the upper 8
 *   data      padded to a multiple of 8
 *
 * and so on to the end of the payload. The receiver checks lengths here and destinations where they
 * are used.
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
#define AQ_MPI_PUTS_MAX  248u /* bytes of one put: a whole number of words, in 8 bits */
#define AQ_MPI_PUTS_BITS 56u  /* of an address; user space has 47 to 56 */

/* Bytes of puts in a message. Its packet stays below 4 KiB, which MPIs send eagerly on one host: a
 * longer one may be a rendezvous, which takes many polls of both sides. */
#define AQ_MPI_PUTS_BATCH 3840u

/* One put of a payload. */
struct aq_mpi_puts_one {
    void *dest;
    const char *data;
    size_t nbytes;
};

/* Returns true if a put has the form of the payload. nbytes is not 0. */
static inline bool aq_mpi_puts_can(const void *dest, size_t nbytes)
{
    return nbytes <= AQ_MPI_PUTS_MAX && (uint64_t)(uintptr_t)dest >> AQ_MPI_PUTS_BITS == 0;
}

/* Bytes that a put takes in a payload. */
static inline size_t aq_mpi_puts_bytes(size_t nbytes)
{
    return AQ_MPI_PUTS_WORD + ((nbytes + AQ_MPI_PUTS_WORD - 1) & ~(size_t)(AQ_MPI_PUTS_WORD - 1));
}

/* Writes a put at `at`, which has space for aq_mpi_puts_bytes(nbytes). */
static inline void aq_mpi_puts_write(char *at, const void *dest, const void *src, size_t nbytes)
{
    const uint64_t word = (uint64_t)(uintptr_t)dest | (uint64_t)nbytes << AQ_MPI_PUTS_BITS;

    memcpy(at, &word, sizeof(word));
    if (nbytes == AQ_MPI_PUTS_WORD)
        memcpy(at + AQ_MPI_PUTS_WORD, src, AQ_MPI_PUTS_WORD);
    else
        memcpy(at + AQ_MPI_PUTS_WORD, src, nbytes);
}

/* Reads the put at offset *at_io of a payload of `end` bytes, and advances the offset. Returns
 * false if no put is there: the payload is malformed. */
static inline bool aq_mpi_puts_read(const char *payload, size_t end, size_t *at_io,
                                    struct aq_mpi_puts_one *out)
{
    const size_t left = end - *at_io;
    uint64_t word;

    if (left < AQ_MPI_PUTS_WORD)
        return false;
    memcpy(&word, payload + *at_io, sizeof(word));
    out->nbytes = (size_t)(word >> AQ_MPI_PUTS_BITS);
    out->dest = (void *)(uintptr_t)(word & ((UINT64_C(1) << AQ_MPI_PUTS_BITS) - 1));
    out->data = payload + *at_io + AQ_MPI_PUTS_WORD;
    if (out->nbytes == 0 || aq_mpi_puts_bytes(out->nbytes) > left)
        return false;
    *at_io += aq_mpi_puts_bytes(out->nbytes);
    return true;
}

#endif
