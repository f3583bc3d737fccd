/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch_client.c - a udp program that prints its arguments and ends in a given way; for launch.sh.
 *
 *   launch_client [DO NUMBER] [words]
 *   exit N    rank 1 (0 if alone) calls gasnet_exit(N), the others poll
 *   libc N    the same with exit(N);   return N: from main
 *   all N     all ranks call gasnet_exit(N);   allreturn N: return N
 *   kill N    rank 1 gets signal N, the others poll
 *   late N    rank 1 gets signal N 0.1 s after rank 0 has called gasnet_exit(0)
 *   stay N    all ranks wait N seconds
 *   env NAME  prints the value of gasnet_getenv(NAME)
 */
#include <gasnetex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;

static void barrier(void)
{
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
}

static void poll_for_ever(void)
{
    for (;;)
        gasnet_AMPoll();
}

static void say(int argc, char **argv)
{
    char line[1024];
    int at = snprintf(line, sizeof(line), "rank %u of %u:", (unsigned)gex_TM_QueryRank(tm),
                      (unsigned)gex_TM_QuerySize(tm));

    for (int i = 1; i < argc; i++)
        at += snprintf(line + at, sizeof(line) - (size_t)at, " [%s]", argv[i]);
    if (argc > 2 && strcmp(argv[1], "env") == 0) {
        const char *value = gasnet_getenv(argv[2]);

        at += snprintf(line + at, sizeof(line) - (size_t)at, " is %s",
                       value != NULL ? value : "unset");
    }
    snprintf(line + at, sizeof(line) - (size_t)at, argv[argc] == NULL ? "\n" : " and no end\n");
    fputs(line, stdout);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *what;
    int number, one;

    if (gex_Client_Init(&client, &ep, &tm, "launch", &argc, &argv, 0) != GASNET_OK)
        return 99;
    say(argc, argv);
    what = argc > 2 ? argv[1] : "";
    number = argc > 2 ? atoi(argv[2]) : 0;
    one = gex_TM_QueryRank(tm) == (gex_TM_QuerySize(tm) > 1 ? 1 : 0);
    barrier();
    if (strcmp(what, "all") == 0)
        gasnet_exit(number);
    if (strcmp(what, "allreturn") == 0)
        return number;
    if (strcmp(what, "stay") == 0)
        sleep((unsigned)number);
    if (strcmp(what, "late") == 0) {
        if (!one)
            gasnet_exit(0);
        usleep(100000);
        kill(getpid(), number);
        sleep(5);
    }
    if (strcmp(what, "exit") == 0 && one)
        gasnet_exit(number);
    if (strcmp(what, "libc") == 0 && one)
        exit(number);
    if (strcmp(what, "return") == 0 && one)
        return number;
    if (strcmp(what, "kill") == 0 && one)
        kill(getpid(), number);
    if (strcmp(what, "exit") == 0 || strcmp(what, "libc") == 0 || strcmp(what, "return") == 0
        || strcmp(what, "kill") == 0)
        poll_for_ever();
    barrier();
    gasnet_exit(0);
    return 98;
}
