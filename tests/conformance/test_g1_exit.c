/*
 * test_g1_exit.c - gasnet_exit between gasnet_init and gasnet_attach, by one node alone and from a
 * thread of its own in par, ends the job with its code and what was printed while the others wait
 * in gasnet_attach. Ranks 1+. Conduits all. Source GASNet specification 1.8, job control.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *leave(void *unused)
{
    (void)unused;
    printf("ok 1 - gasnet-1 7.3: gasnet_exit before attach, by one node alone\n1..1\n");
    gasnet_exit(0);
    return NULL;
}

int main(int argc, char **argv)
{
    if (gasnet_init(&argc, &argv) != GASNET_OK)
        return 1;
    if (gasnet_mynode() == gasnet_nodes() - 1) {
#if GASNET_PAR
        pthread_t thread;

        if (pthread_create(&thread, NULL, leave, NULL) == 0)
            pthread_join(thread, NULL);
#else
        leave(NULL);
#endif
        return 1;
    }
    gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0);
    return 1; /* the node that leaves never attaches */
}
