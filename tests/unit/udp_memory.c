/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * udp_memory.c - how much memory a rank of a udp job has taken: after the start, and after it has
 * spoken to some more ranks.
 *
 * Run by test_udp_memory.sh in jobs of several sizes. Prints "bytes B peers P" twice, on rank 0:
 * what malloc has given out (heap and mappings), and to how many ranks there is a peer.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "conduits/udp/aq_udp.h"
#include "gasnetex.h"

#define HIDX_ASK  (GEX_AM_INDEX_BASE + 0)
#define HIDX_TELL (GEX_AM_INDEX_BASE + 1)

static volatile unsigned answers;

static void ask(gex_Token_t token)
{
    gex_AM_ReplyShort0(token, HIDX_TELL, 0);
}

static void tell(gex_Token_t token)
{
    (void)token;
    answers++;
}

static void report(void)
{
    const struct mallinfo2 heap = mallinfo2();

    printf("bytes %zu peers %u\n", heap.uordblks + heap.hblkhd, aq_udp.peer_count);
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t handlers[] = {
        { HIDX_ASK, (gex_AM_Fn_t)ask, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 0, NULL, "ask" },
        { HIDX_TELL, (gex_AM_Fn_t)tell, GEX_FLAG_AM_REPLY | GEX_FLAG_AM_SHORT, 0, NULL, "tell" },
    };
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Segment_t segment;
    unsigned asked = 0;

    if (gex_Client_Init(&client, &ep, &tm, "memory", &argc, &argv, 0) != GASNET_OK
        || gex_EP_RegisterHandlers(ep, handlers, 2) != GASNET_OK
        || gex_Segment_Attach(&segment, tm, 1 << 20) != GASNET_OK)
        return 1;
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    if (gex_TM_QueryRank(tm) == 0) {
        report();
        for (gex_Rank_t rank = 1; rank < gex_TM_QuerySize(tm) && asked < 6; rank++)
            if (aq_udp_peer_look(rank) == NULL) {
                gex_AM_RequestShort0(tm, rank, HIDX_ASK, 0);
                asked++;
            }
        GASNET_BLOCKUNTIL(answers == asked);
        report();
    }
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    gasnet_exit(0);
    return 0;
}
