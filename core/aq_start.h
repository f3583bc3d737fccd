/*
 * aq_start.h - starts the job of the client; see gex_Client_Init.
 *
 * Threads   the client's first call
 * Uses      the public headers. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_START_H
#define AQ_START_H

#include "gasnetex.h"

/* aq_client_start - starts the job; arguments as of gex_Client_Init, and
 * conduit  "$GASNetConduitName: NAME $", the conduit that the client was compiled for, or "" */
int aq_client_start(gex_Client_t *client_out, gex_EP_t *ep_out, gex_TM_t *tm_out, const char *name,
                    int *argc, char ***argv, gex_Flags_t flags, const char *conduit);

#endif
