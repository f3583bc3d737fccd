/*
 * client.c - the smallest useful client: each rank asks its neighbour a question and gets the
 * answer.
 *
 * Valid as C and as C++; built by run.sh outside the source tree, against an installed library, the
 * way build systems of clients do it. Prints "client: rank R of N right" and ends the job with 0,
 * or 1. SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnetex.h>

#include <stdio.h>

#define HIDX_ASK    (GEX_AM_INDEX_BASE)
#define HIDX_ANSWER (GEX_AM_INDEX_BASE + 1)

static volatile int answer;

static void on_ask(gex_Token_t token, gex_AM_Arg_t value)
{
    gex_AM_ReplyShort1(token, HIDX_ANSWER, 0, value + 1);
}

static void on_answer(gex_Token_t token, gex_AM_Arg_t value)
{
    (void)token;
    answer = (int)value;
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_AM_Entry_t table[] = {
        { HIDX_ASK, (gex_AM_Fn_t)on_ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "ask" },
        { HIDX_ANSWER, (gex_AM_Fn_t)on_answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL,
          "answer" },
    };

    if (gex_Client_Init(&client, &ep, &tm, "packaging", &argc, &argv, 0) != GASNET_OK)
        return 1;
    if (gex_EP_RegisterHandlers(ep, table, sizeof(table) / sizeof(table[0])) != GASNET_OK)
        return 1;
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));

    gex_Rank_t me = gex_TM_QueryRank(tm);
    gex_Rank_t size = gex_TM_QuerySize(tm);
    gex_AM_RequestShort1(tm, (me + 1) % size, HIDX_ASK, 0, (gex_AM_Arg_t)(100 + me));
    GASNET_BLOCKUNTIL(answer != 0);

    int right = answer == (int)(101 + me);
    printf("client: rank %u of %u %s\n", (unsigned)me, (unsigned)size, right ? "right" : "WRONG");
    fflush(stdout);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    gasnet_exit(right ? 0 : 1);
    return 0;
}
