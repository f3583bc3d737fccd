/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_ammpi.c - libammpi.a: the helper library of the mpi conduit that build systems of clients name
 * after the conduit's own. The conduit is whole without it; it holds the strings by which `ident
 * libammpi.a` says what it is.
 */
extern const char gasneti_ammpi_ident[];
const char gasneti_ammpi_ident[] = "$AMMPILibraryVersion: 2.11 $";
