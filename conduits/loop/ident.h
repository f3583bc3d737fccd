/* ident.h - the spawners that programs of the loop conduit name: those of one host. For
 * base/aq_ident.c. SPDX-License-Identifier: BSD-3-Clause */
#ifndef AQ_LOOP_IDENT_H
#define AQ_LOOP_IDENT_H

#define AQ_IDENT_CONDUIT               \
    AQ_IDENT("GASNetFORKSpawner", "1") \
    AQ_IDENT("GASNetMPISpawner", "1")  \
    AQ_IDENT("GASNetPMISpawner", "1")

#endif
