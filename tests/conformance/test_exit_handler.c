/*
 * test_exit_handler.c - gasnet_exit from inside a handler, with a lock held, ends the job with its
 * code while the other ranks wait for something that never comes.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, exit.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_EXIT = AQ_TEST_FREE };

static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static atomic_int never;

static void h_exit(gex_Token_t token)
{
    (void)token;
    gex_HSL_Lock(&lock);
    printf("ok 1 - core 27.1: gasnet_exit in a handler with a lock held, peers waiting\n1..1\n");
    gasnet_exit(0); /* flushes stdio too */
}

static gex_AM_Entry_t table[] = { AQ_ENTRY(H_EXIT, h_exit, AQ_SQ, 0) };

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    if (aq_test_me == aq_test_n - 1)
        gex_AM_RequestShort0(aq_test_tm, 0, H_EXIT, 0);
    GASNET_BLOCKUNTIL(atomic_load(&never));
    return 1;
}
