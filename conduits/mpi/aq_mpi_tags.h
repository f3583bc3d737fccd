/*
 * aq_mpi_tags.h - a set of tags, one for each outstanding transfer.
 *
 * Threads   with the lock around MPI
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_TAGS_H
#define AQ_MPI_TAGS_H

#include <stdint.h>

#define AQ_MPI_NO_TAG UINT16_MAX

/* Takes the lowest tag whose bit in used is clear, and sets the bit. Returns AQ_MPI_NO_TAG if all
 * are set. tags is a multiple of 64. */
static inline uint16_t aq_mpi_tag_take(uint64_t used[], unsigned tags)
{
    for (unsigned i = 0; i < tags / 64; i++)
        if (used[i] != UINT64_MAX) {
            const unsigned bit = (unsigned)__builtin_ctzll(~used[i]);

            used[i] |= UINT64_C(1) << bit;
            return (uint16_t)(64 * i + bit);
        }
    return AQ_MPI_NO_TAG;
}

static inline void aq_mpi_tag_give(uint64_t used[], uint16_t tag)
{
    used[tag / 64] &= ~(UINT64_C(1) << tag % 64);
}

#endif
