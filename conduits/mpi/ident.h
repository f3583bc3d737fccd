/* ident.h - what programs of the mpi conduit carry in place of the names of spawners: MPI starts
 * them. For base/aq_ident.c. SPDX-License-Identifier: BSD-3-Clause */
#ifndef AQ_MPI_IDENT_H
#define AQ_MPI_IDENT_H

#define AQ_IDENT_CONDUIT AQ_IDENT("AMMPILibraryVersion", "2.11")

#endif
