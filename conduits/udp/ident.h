/* ident.h - what programs of the udp conduit carry in place of the names of spawners: they start
 * themselves. For base/aq_ident.c. SPDX-License-Identifier: BSD-3-Clause */
#ifndef AQ_UDP_IDENT_H
#define AQ_UDP_IDENT_H

#define AQ_IDENT_CONDUIT \
    AQ_IDENT("GASNetDefaultSpawnFunction", "S") AQ_IDENT("AMUDPLibraryVersion", "3.21")

#endif
