/*
 * amudp_const.h - limits of the udp conduit, under the name by which clients include them.
 *
 * Nothing here depends on a configuration: what a message can carry is answered by
 * gex_AM_MaxRequestMedium() and its sisters. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AMUDP_CONST_H
#define AMUDP_CONST_H 1

/* What `ident a.out` shows as AMUDPLibraryVersion. */
#define AMUDP_LIBRARY_VERSION_MAJOR 3
#define AMUDP_LIBRARY_VERSION_MINOR 21
#define AMUDP_LIBRARY_VERSION_STR   "3.21"

/* Arguments of an active message. */
#define AMUDP_MAX_SHORT 16

/* Requests that may be on their way to one peer (GASNET_NETWORKDEPTH). */
#define AMUDP_DEFAULT_NETWORKDEPTH 128
#define AMUDP_MAX_NETWORKDEPTH     1024

/* Start of the ranks when GASNET_SPAWNFN does not say: ssh. */
#define AMUDP_DEFAULT_SPAWNFN 'S'

#endif
