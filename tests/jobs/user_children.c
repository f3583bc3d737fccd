/*
 * user_children.c - processes that a rank starts, with every string that names them inside its
 * segment, while peers write to it: the job goes on whatever the child does, the child has no part
 * in it and inherits none of its descriptors.
 * Ranks 1+. Source what users suffer from. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "aq_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { WORDS = 1024, HEAP = 8192, ROUNDS = 3 };

/* A rank's segment: words that the rank before it writes, and what a client with its heap in the
 * segment has. */
struct layout {
    uint64_t words[WORDS];
    char heap[HEAP];
    char *argv[8];
};

static struct layout *ours;
static size_t heap_used;

/* --- a heap inside the segment --- */

static char *keep(const char *text)
{
    char *self = ours->heap + heap_used;

    heap_used += strlen(text) + 1;
    if (heap_used > HEAP)
        aq_test_die(__FILE__, __LINE__, "the heap in the segment is too small");
    return strcpy(self, text);
}

static char **keep_argv(const char *a, const char *b, const char *c)
{
    ours->argv[0] = keep(a);
    ours->argv[1] = keep(b);
    ours->argv[2] = keep(c);
    ours->argv[3] = NULL;
    return ours->argv;
}

/* --- peers at work --- */

static uint64_t word_of(gex_Rank_t writer, uint64_t round, int i)
{
    return ((uint64_t)writer + 1) << 48 | round << 24 | (uint64_t)i;
}

static void write_peer(uint64_t round)
{
    struct layout *remote_addr = aq_test_base(aq_test_peer(1));

    for (int i = 0; i < WORDS; i++)
        gex_RMA_PutNBIVal(aq_test_tm, aq_test_peer(1), &remote_addr->words[i],
                          word_of(aq_test_me, round, i), 8, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
}

static void check_words(uint64_t round)
{
    int wrong = 0;

    aq_test_barrier();
    for (int i = 0; i < WORDS; i++)
        wrong += ours->words[i] != word_of(aq_test_peer(aq_test_n - 1), round, i);
    AQ_CHECK_EQ(wrong, 0);
    aq_test_barrier();
}

/* Serves the peers until the child has ended; its wait status. */
static int ended(pid_t pid)
{
    const double until = aq_test_clock() + aq_test_limit();
    int status = -1;

    if (pid <= 0)
        aq_test_die(__FILE__, __LINE__, "no child: %s", strerror(errno));
    while (waitpid(pid, &status, WNOHANG) == 0) {
        aq_test_relax();
        if (aq_test_clock() > until) {
            kill(pid, SIGKILL);
            aq_test_die(__FILE__, __LINE__, "a child does not end");
        }
    }
    return status;
}

/* --- what children do --- */

static void child_exits(void)
{
    exit(3); /* with the handlers that the parent has registered */
}

static void child_exits_at_once(void)
{
    _exit(3);
}

static void child_ends_the_job(void)
{
    gasnet_exit(3); /* there is no job that a child could end */
}

#if !GASNET_SEGMENT_EVERYTHING
static void child_touches_the_segment(void)
{
    ours->words[0] = 0; /* not mapped here */
    _exit(3);
}
#endif

static void child_crashes(void)
{
    abort();
}

static pid_t fork_to(void (*act)(void))
{
    const struct rlimit no_core = { 0, 0 };
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &no_core);
        close(STDERR_FILENO); /* a crash may be reported, but not into the middle of the results */
        act();
        _exit(99);
    }
    return pid;
}

static void check_fork(const char *name, void (*act)(void), int code, int signal)
{
    static uint64_t round = 100;
    int status;
    pid_t pid;

    rule(name);
    round++;
    aq_test_barrier();
    pid = fork_to(act);
    write_peer(round);
    status = ended(pid);
    if (signal != 0)
        AQ_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal);
    else
        AQ_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code);
    check_words(round);
}

/* --- programs started with strings of the segment --- */

/* Lists the descriptors from 3 on that belong to the library: memory files, sockets, event and
 * process handles. */
static const char list_script[] =
    "for f in /proc/self/fd/*; do t=$(readlink \"$f\"); case ${f##*/}:$t in [012]:*) ;; "
    "*memfd:*|*socket:*|*anon_inode:*|*aqueduct*) echo \"$t\"; exit 9;; esac; done; test \"$1\" = "
    "\"\"";

static void check_spawn(uint64_t round)
{
    pid_t pid = -1;
    char **argv;

    rule("posix_spawn with path and arguments in the segment: it runs, and inherits nothing of the "
         "job");
    heap_used = 0;
    argv = keep_argv("/bin/sh", "-c", list_script);
    AQ_CHECK_EQ(posix_spawn(&pid, argv[0], NULL, NULL, argv, environ), 0);
    write_peer(round);
    AQ_CHECK_EQ(ended(pid), 0);
    check_words(round);
}

static void check_system(uint64_t round)
{
    rule("system() with its command in the segment: it runs, and inherits nothing of the job");
    heap_used = 0;
    AQ_CHECK_EQ(system(keep(list_script)), 0);
    write_peer(round);
    check_words(round);
}

static void check_popen(uint64_t round)
{
    char line[64] = "";
    FILE *pipe;

    rule("popen() with its command in the segment: it runs and is read");
    heap_used = 0;
    pipe = popen(keep("echo $((6 * 7))"), "r");
    write_peer(round);
    AQ_CHECK(pipe != NULL && fgets(line, sizeof(line), pipe) != NULL);
    AQ_CHECK_EQ(atoi(line), 42);
    AQ_CHECK_EQ(pipe == NULL ? -1 : pclose(pipe), 0);
    check_words(round);
}

/* The words are copied before fork(), as a client must: a child has no segment. */
static void run_script(void)
{
    execl("/bin/sh", "sh", "-c", list_script, (char *)NULL);
}

static void check_descriptors(void)
{
    int flags, leaking = 0;

    rule("each descriptor of the library is closed when a program is started");
    for (int fd = 3; fd < 1024; fd++) {
        char path[64], target[256] = "";

        flags = fcntl(fd, F_GETFD);
        if (flags < 0 || (flags & FD_CLOEXEC) != 0)
            continue;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof(target) - 1) < 0)
            continue;
        if (strstr(target, "memfd:") != NULL || strstr(target, "anon_inode:") != NULL)
            leaking++;
    }
    AQ_CHECK_EQ(leaking, 0);
}

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_crowded = true; /* by the children */
    aq_test_segment(sizeof(struct layout));
    ours = aq_test_base(aq_test_me);
    aq_test_barrier();
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        check_spawn(3 * round);
        check_system(3 * round + 1);
        check_popen(3 * round + 2);
    }
    check_descriptors();
    check_fork("a forked child may run a program", run_script, 0, 0);
    check_fork("a forked child that calls exit() ends itself only", child_exits, 3, 0);
    check_fork("a forked child that calls _exit() ends itself only", child_exits_at_once, 3, 0);
    check_fork("a forked child that calls gasnet_exit() ends itself only", child_ends_the_job, 3,
               0);
    check_fork("a forked child that aborts ends itself only", child_crashes, 0, SIGABRT);
#if !GASNET_SEGMENT_EVERYTHING
    check_fork("a forked child has no segment to spoil", child_touches_the_segment, 0, SIGSEGV);
#endif
    return aq_test_finish();
}
