/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_env_job.c - ranks that were started with different environments see one: run alone it
 * checks gasnet_getenv() in a job of one rank; with the word "print" each rank prints what it
 * sees, which test_env_job.sh compares under launchers. TAP.
 * Source: GASNet-EX specification 0.19, gasnet_getenv; the largest environment wins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gasnetex.h"

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    const char *seen;

    setenv("AQ_TEST_BEFORE", "set before init", 1);
    if (gex_Client_Init(&client, &ep, &tm, "test_env_job", &argc, &argv, 0) != GASNET_OK)
        return 1;
    seen = gasnet_getenv("AQ_TEST_SHARED");
    if (argc > 1 && strcmp(argv[1], "print") == 0) {
        printf("rank %u sees %s\n", gex_System_QueryJobRank(), seen != NULL ? seen : "nothing");
        gasnet_exit(0);
    }
    printf("%s 1 - a variable that is not set is NULL\n",
           gasnet_getenv("AQ_TEST_NEVER_SET") == NULL ? "ok" : "not ok");
    setenv("AQ_TEST_BEFORE", "changed later", 1);
    seen = gasnet_getenv("AQ_TEST_BEFORE");
    printf("%s 2 - setenv before init is seen, later changes are not\n",
           seen != NULL && strcmp(seen, "set before init") == 0 ? "ok" : "not ok");
    printf("1..2\n");
    gasnet_exit(0);
}
