/*
 * test_client_plain.c - a client that names itself "realm-gex" (lower case and a dash), passes NULL
 * for argc and argv, and never attaches a segment or registers a handler.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, client.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    gex_Client_t client = GEX_CLIENT_INVALID;
    gex_EP_t ep = GEX_EP_INVALID;
    gex_TM_t tm = GEX_TM_INVALID;
    char name[] = "realm-gex";
    bool ok;

    (void)argc;
    (void)argv;
    alarm(50);
    ok = gex_Client_Init(&client, &ep, &tm, name, NULL, NULL, GEX_FLAG_USES_GASNET1) == GASNET_OK;
    ok = ok && strcmp(gex_Client_QueryName(client), "realm-gex") == 0;
    ok = ok && gex_Client_QueryFlags(client) == GEX_FLAG_USES_GASNET1;
    ok = ok && gex_TM_QuerySize(tm) == gex_System_QueryJobSize();
    gex_Coll_BarrierBlocking(tm, 0);
    ok = ok && gasnet_barrier(5, 0) == GASNET_OK;
    if (gex_System_QueryJobRank() == 0) {
        printf("%s 1 - core 10: any non-NULL name, NULL argc and argv, no segment\n1..1\n",
               ok ? "ok" : "not ok");
        fflush(stdout);
    }
    gex_Coll_BarrierBlocking(tm, 0);
    gasnet_exit(ok ? 0 : 1);
}
