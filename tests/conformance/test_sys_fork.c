/*
 * test_sys_fork.c - a client that forks, calls system() and posix_spawn() with arguments that lie
 * in the segment, while peers keep writing to it: nothing is corrupted, and the library's
 * descriptors and the segment do not reach the children.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, RMA; what users suffer from.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 512, ROUNDS = 6, TEXT = 256 };

/* A rank's segment: words written by the rank before it, text of its own. */
struct layout {
    uint64_t words[WORDS];
    char text[TEXT];
};

static bool ended_well(pid_t pid)
{
    int status = -1;

    while (waitpid(pid, &status, WNOHANG) == 0)
        aq_test_relax();
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static pid_t spawn_with_segment_args(char *text)
{
    /* Program, option and script all lie in the segment, as a client's heap may. */
    static const char script[] = "for f in /proc/self/fd/*; do case $(readlink $f) in "
                                 "*memfd*|*aqueduct*|socket:*) exit 1;; esac; done";
    /* an MPI's sockets are its own, and not all of them close themselves */
    static const char script_mpi[] = "for f in /proc/self/fd/*; do case $(readlink $f) in "
                                     "*memfd:aq*|*aqueduct*) exit 1;; esac; done";
    const char *conduit = getenv("GASNET_CONDUIT");
    const bool mpi = conduit != NULL && strcmp(conduit, "mpi") == 0;
    char *argv[4] = { text, text + 16, text + 24, NULL };
    char *none[] = { NULL };
    pid_t pid;

    strcpy(text, "/bin/sh");
    strcpy(text + 16, "-c");
    strcpy(text + 24, mpi ? script_mpi : script);
    return posix_spawn(&pid, text, NULL, NULL, argv, none) == 0 ? pid : -1;
}

static pid_t fork_quietly(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    return pid;
}

static void write_round(gex_Rank_t to, uint64_t round)
{
    struct layout *remote_addr = aq_test_base(to);
    int i;

    for (i = 0; i < WORDS; i++)
        gex_RMA_PutNBIVal(aq_test_tm, to, &remote_addr->words[i], round * 10000 + (uint64_t)i, 8,
                          0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
}

int main(int argc, char **argv)
{
    struct layout *ours;
    uint64_t round;
    int i, wrong;
    pid_t pid;

    aq_test_start(&argc, &argv, 1);
    aq_test_segment(sizeof(struct layout));
    ours = aq_test_base(aq_test_me);
    for (round = 1; round <= (aq_test_quick ? 2 : ROUNDS); round++) {
        aq_test_barrier();
        rule("fork and posix_spawn: children start while peers write to the segment");
        pid = round % 2 ? fork_quietly() : spawn_with_segment_args(ours->text);
        AQ_CHECK(pid > 0);
        write_round(aq_test_peer(1), round);
        if (pid > 0)
            AQ_CHECK(ended_well(pid)); /* also: no descriptor of the library was inherited */
        aq_test_barrier();
        rule("fork and posix_spawn: what peers wrote is there");
        for (i = wrong = 0; i < WORDS; i++)
            wrong += ours->words[i] != round * 10000 + (uint64_t)i;
        AQ_CHECK_EQ(wrong, 0);
    }
    rule("system() works in a job");
    AQ_CHECK_EQ(system("true"), 0);
    return aq_test_finish();
}
