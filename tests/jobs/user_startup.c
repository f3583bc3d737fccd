/*
 * user_startup.c - how long many ranks take from the launcher's start to their first barrier, and
 * what a peer that is never spoken to costs in memory.
 * Usage:  user_startup                  the program of the job: rank 0 prints "first barrier" and
 *         "memory" lines user_startup --limit N        starts N processes that do nothing and waits
 *         for them: prints "limit SECONDS" user_startup --run COMMAND... runs it with the present
 *         time in USER_STARTUP_BEGAN
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { H_MEMORY = GEX_AM_INDEX_BASE };

static volatile unsigned reports;
static volatile double bytes_in_all;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int limit(int n, char *self)
{
    const double began = now();
    int status = 0, failed = 0;

    for (int i = 0; i < n; i++) {
        const pid_t pid = fork();

        if (pid == 0) {
            execl(self, self, "--nothing", (char *)NULL);
            _exit(127);
        }
        failed += pid < 0;
    }
    while (wait(&status) > 0)
        failed += status != 0;
    printf("limit %.6f\n", now() - began);
    return failed != 0;
}

/* What this process's memory costs: its own pages, and its share of those that it shares with the
 * job. Pages of program and library files are left out; they cost the same however many use them.
 * */
static double memory_bytes(void)
{
    char line[256];
    double kb = 0, part;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "Pss_Anon: %lf", &part) == 1 || sscanf(line, "Pss_Shmem: %lf", &part) == 1)
            kb += part;
    fclose(file);
    return kb * 1024;
}

static void h_memory(gex_Token_t token, gex_AM_Arg_t bytes)
{
    (void)token;
    reports = reports + 1;
    bytes_in_all = bytes_in_all + bytes;
}

static gex_AM_Entry_t table[] = {
    { H_MEMORY, (gex_AM_Fn_t)h_memory, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "memory" },
};

static int job(int argc, char **argv)
{
    const char *began = getenv("USER_STARTUP_BEGAN");
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Segment_t segment;
    double first, bytes;

    if (gex_Client_Init(&client, &ep, &tm, "STARTUP", &argc, &argv, 0) != GASNET_OK
        || gex_EP_RegisterHandlers(ep, table, 1) != GASNET_OK
        || gex_Segment_Attach(&segment, tm, 16 * GASNET_PAGESIZE) != GASNET_OK)
        return 3;
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    first = now();
    bytes = memory_bytes(); /* before any communication */
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    gex_AM_RequestShort1(tm, 0, H_MEMORY, 0, (gex_AM_Arg_t)bytes);
    if (gex_TM_QueryRank(tm) == 0) {
        GASNET_BLOCKUNTIL(reports == gex_TM_QuerySize(tm));
        printf("first %.6f\n", first - (began != NULL ? atof(began) : first));
        printf("memory %.0f\n", bytes_in_all / gex_TM_QuerySize(tm));
        fflush(stdout);
    }
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    gasnet_exit(0);
}

int main(int argc, char **argv)
{
    char text[32];

    if (argc > 1 && strcmp(argv[1], "--nothing") == 0)
        return 0;
    if (argc > 2 && strcmp(argv[1], "--limit") == 0)
        return limit(atoi(argv[2]), argv[0]);
    if (argc > 2 && strcmp(argv[1], "--run") == 0) {
        snprintf(text, sizeof(text), "%.6f", now());
        setenv("USER_STARTUP_BEGAN", text, 1);
        execv(argv[2], argv + 2);
        return 127;
    }
    return job(argc, argv);
}
