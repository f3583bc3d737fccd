/* hello.c - every rank greets rank 0 and writes into its neighbour's memory.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <gasnetex.h>
#include <stdio.h>

static unsigned greetings;

static void on_hello(gex_Token_t token, void *text, size_t length, gex_AM_Arg_t from)
{
    (void)token;
    printf("rank 0 hears rank %d: %.*s\n", (int)from, (int)length, (char *)text);
    greetings++;
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t hello = {
        200, (gex_AM_Fn_t)on_hello, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL, "hello"
    };
    gex_Client_t client;
    gex_EP_t endpoint;
    gex_TM_t team;
    gex_Segment_t segment;
    void *remote;

    gex_Client_Init(&client, &endpoint, &team, "HELLO", &argc, &argv, 0);
    gex_EP_RegisterHandlers(endpoint, &hello, 1);
    gex_Segment_Attach(&segment, team, GASNET_PAGESIZE);
    gex_Rank_t me = gex_TM_QueryRank(team), ranks = gex_TM_QuerySize(team);

    gex_AM_RequestMedium1(team, 0, 200, "good morning", 12, GEX_EVENT_NOW, 0, me);
    if (me == 0)
        GASNET_BLOCKUNTIL(greetings == ranks);

    gex_Rank_t right = (me + 1) % ranks;
    gex_Segment_QueryBound(team, right, &remote, NULL, NULL);
    gex_RMA_PutBlocking(team, right, remote, &me, sizeof(me), 0);
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0)); /* the puts of all ranks have arrived */
    printf("rank %u finds %u in its memory\n", me, *(gex_Rank_t *)gex_Segment_QueryAddr(segment));
    gasnet_exit(0);
}
