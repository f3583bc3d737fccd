/*
 * ammpi.h - limits of the mpi conduit, under the name by which clients include them.
 *
 * Nothing here depends on a configuration, nor on MPI: what a message can carry is answered by
 * gex_AM_MaxRequestMedium() and its sisters. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AMMPI_H
#define AMMPI_H 1

/* What `ident a.out` shows as AMMPILibraryVersion. */
#define AMMPI_LIBRARY_VERSION_MAJOR 2
#define AMMPI_LIBRARY_VERSION_MINOR 11
#define AMMPI_LIBRARY_VERSION_STR   "2.11"

/* Arguments of an active message. */
#define AMMPI_MAX_SHORT 16

#endif
