/*
 * aq_mpi_pairs.h - classes of pairs of ranks that share no memory, and a pair to measure each.
 *
 * An MPI uses other means between processes of one host than between hosts.
 *
 * Threads   any: nothing here keeps state
 * Uses      gasnetex.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_PAIRS_H
#define AQ_MPI_PAIRS_H

#include <stdbool.h>

#include "gasnetex.h"

enum aq_mpi_class { AQ_MPI_SAME_HOST, AQ_MPI_OTHER_HOST, AQ_MPI_CLASSES };

struct aq_mpi_remote_pair {
    gex_Rank_t lead, other;
    bool exists;
};

static inline enum aq_mpi_class aq_mpi_class_of(const gex_Rank_t *host_of, gex_Rank_t a,
                                                gex_Rank_t b)
{
    return host_of[a] == host_of[b] ? AQ_MPI_SAME_HOST : AQ_MPI_OTHER_HOST;
}

/* Finds the first pair of each class, the same on all ranks. Hosts are numbered from 0;
 * first[hosts] is scratch space. */
static inline void aq_mpi_pairs_find(const gex_Rank_t *host_of, const gex_Rank_t *nbrhd_of,
                                     gex_Rank_t size, gex_Rank_t hosts, gex_Rank_t *first,
                                     struct aq_mpi_remote_pair pairs_out[AQ_MPI_CLASSES])
{
    struct aq_mpi_remote_pair *same = &pairs_out[AQ_MPI_SAME_HOST],
                              *apart = &pairs_out[AQ_MPI_OTHER_HOST];

    *same = *apart = (struct aq_mpi_remote_pair){ .exists = false };
    for (gex_Rank_t host = 0; host < hosts; host++)
        first[host] = GEX_RANK_INVALID;
    for (gex_Rank_t rank = 0; rank < size; rank++) {
        gex_Rank_t *leader = &first[host_of[rank]];

        if (*leader == GEX_RANK_INVALID)
            *leader = rank;
        if (!same->exists && nbrhd_of[rank] != nbrhd_of[*leader])
            *same = (struct aq_mpi_remote_pair){ .lead = *leader, .other = rank, .exists = true };
        if (!apart->exists && host_of[rank] != host_of[0])
            *apart = (struct aq_mpi_remote_pair){ .lead = 0, .other = rank, .exists = true };
    }
}

#endif
