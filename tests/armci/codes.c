/*
 * codes.c - exit statuses of a failed job, and starts for threads: codes WAY. Run by run.sh, which
 * knows the expected statuses.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *   assertion    code 256, which a status of eight bits holds as 0
 *   printed      no code: 255
 *   value, die, die2  8, 5, 6
 *   before       before ARMCI_Init, code 0
 *   after        after MPI_Finalize, code 9
 *   threads      ARMCI_Init_thread starts MPI for threads: 0
 *   no-threads   MPI runs without threads, and ARMCI_Init_thread fails: 0
 */
#include "armci_test.h"

/* Returns the exit status. */
static int start_for_threads(void)
{
    int level = -1, failed;

    failed = ARMCI_Init_thread(MPI_THREAD_MULTIPLE) != 0 || !ARMCI_Initialized();
    MPI_Query_thread(&level);
    ARMCI_Finalize();
    MPI_Finalize();
    return failed || level != MPI_THREAD_MULTIPLE;
}

static int start_without_threads(void)
{
    const int rc = ARMCI_Init_thread_comm(MPI_THREAD_MULTIPLE, MPI_COMM_WORLD);
    const int failed = rc != FAIL || ARMCI_Initialized();
    const int again = ARMCI_Init_thread_comm(MPI_THREAD_SINGLE, MPI_COMM_WORLD);

    ARMCI_Finalize();
    MPI_Finalize();
    return failed || again != 0;
}

/* The assertions of the header: the code is the status. */
static void fail(const char *way, int zero)
{
    dassertc(strcmp(way, "assertion") == 0, zero == 1, ("code %d\n", 256), 256);
    dassertp(strcmp(way, "printed") == 0, zero == 1, ("of %d\n", zero));
    dassert1(strcmp(way, "value") == 0, zero == 1, 8);
    if (strcmp(way, "die") == 0)
        armci_die("enough", 5);
    if (strcmp(way, "die2") == 0)
        armci_die2("enough", 6, 7);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";

    if (strcmp(way, "threads") == 0)
        return start_for_threads();
    MPI_Init(&argc, &argv);
    if (strcmp(way, "no-threads") == 0)
        return start_without_threads();
    if (strcmp(way, "before") == 0)
        armci_msg_abort(0);
    ARMCI_Init();
    fail(way, 0);
    ARMCI_Finalize();
    MPI_Finalize();
    if (strcmp(way, "after") == 0)
        ARMCI_Error("after the end", 9);
    return 0;
}
