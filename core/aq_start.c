/*
 * aq_start.c - the function that a client starts its job with. Its name says what the client was
 * compiled for, so a client and a library of different thread modes do not link.
 *
 * Compiled once for each library: an archive has the function of its mode; the shared library for
 * threads, which serves clients of par and parsync, has both (AQ_START_BOTH).
 *
 * Threads   the client's first call
 * Uses      core/aq_client.c. SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_start.h"

int AQ_START(gex_Client_t *client_out, gex_EP_t *ep_out, gex_TM_t *tm_out, const char *name,
             int *argc, char ***argv, gex_Flags_t flags, const char *conduit)
{
    return aq_client_start(client_out, ep_out, tm_out, name, argc, argv, flags, conduit);
}

#ifdef AQ_START_BOTH
#define AQ_START_PARSYNC                                                                  \
    AQ_START_NAME(_PARSYNC, AQ_SEGMENT_NAME, AQ_DEBUG_NAME, GASNET_RELEASE_VERSION_MAJOR, \
                  GASNET_RELEASE_VERSION_MINOR, GASNET_RELEASE_VERSION_PATCH)
AQ_PUBLIC int AQ_START_PARSYNC(gex_Client_t *client_out, gex_EP_t *ep_out, gex_TM_t *tm_out,
                               const char *name, int *argc, char ***argv, gex_Flags_t flags,
                               const char *conduit);

int AQ_START_PARSYNC(gex_Client_t *client_out, gex_EP_t *ep_out, gex_TM_t *tm_out, const char *name,
                     int *argc, char ***argv, gex_Flags_t flags, const char *conduit)
{
    return aq_client_start(client_out, ep_out, tm_out, name, argc, argv, flags, conduit);
}
#endif
