/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_against_job.c - aq-bench --against: one job of the portable program, started by the
 * launcher of the tree that it was compiled against.
 * Owns      the job's process group
 * Threads   one
 * Uses      bench_against.h
 *
 * The launcher is gasnetrun_CONDUIT of the tree's bin folder; where it has none, amudprun for udp,
 * mpirun for mpi, GASNET_PSHM_NODES for smp. Ranks of a network's conduit share no memory. A job
 * that takes longer than --limit is ended, launcher and all.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench_against.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* What has been read of a job. */
struct aq_job_output {
    struct aq_against *against;
    size_t conduit;
    unsigned tree, round;
    char line[1024];
    size_t used;
    char row[64]; /* begun last */
    bool ended;   /* all rows have come */
};

/* --- in the child --- */

/* The processors that this process may use, as the program's argument; "-" if there are fewer than
 * ranks. */
static void aq_cpu_list(unsigned ranks, char *list, size_t size)
{
    cpu_set_t set;
    size_t used = 0;
    unsigned found = 0;

    snprintf(list, size, "-");
    if (sched_getaffinity(0, sizeof(set), &set) != 0 || (unsigned)CPU_COUNT(&set) < ranks)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < ranks && used + 16 < size; cpu++) {
        if (CPU_ISSET(cpu, &set))
            used += (size_t)snprintf(list + used, size - used, "%s%d", found++ > 0 ? "," : "", cpu);
    }
}

/* The words of the launcher; their number. */
static int aq_launcher_words(const char *prefix, const char *conduit, char *path, size_t size,
                             char *count, const char **argv)
{
    int n = 0;

    snprintf(path, size, "%s/bin/gasnetrun_%s", prefix, conduit);
    if (access(path, X_OK) == 0) {
        argv[n++] = path;
        argv[n++] = "-n";
    } else if (strcmp(conduit, "udp") == 0) {
        snprintf(path, size, "%s/bin/amudprun", prefix);
        argv[n++] = path;
        argv[n++] = "-np";
    } else if (strcmp(conduit, "mpi") == 0) {
        argv[n++] = "mpirun";
        argv[n++] = "-np";
    } else {
        setenv("GASNET_PSHM_NODES", count, 1);
        return 0;
    }
    argv[n++] = count;
    return n;
}

static void aq_job_environment(const char *conduit)
{
    unsetenv("GASNET_CONDUIT");
    setenv("GASNET_QUIET", "1", 0);
    if (strcmp(conduit, "smp") == 0)
        return;
    setenv("GASNET_SUPERNODE_MAXSIZE", "1", 0);
    if (strcmp(conduit, "udp") == 0)
        setenv("GASNET_SPAWNFN", "L", 0);
}

static _Noreturn void aq_job_exec(const struct aq_job_output *job, int out)
{
    const struct aq_against *against = job->against;
    const struct aq_options *options = against->options;
    const char *conduit = against->conduits[job->conduit];
    char program[4200], launcher[4300], log[4200], cpus[1024], count[16];
    const char *argv[16];
    int n, err;

    setpgid(0, 0);
    snprintf(count, sizeof(count), "%u", options->ranks);
    aq_against_log(against, log, sizeof(log));
    err = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    aq_cpu_list(options->ranks, cpus, sizeof(cpus));
    aq_against_program(against, job->tree, job->conduit, program, sizeof(program));
    aq_job_environment(conduit);
    n = aq_launcher_words(against->trees[job->tree].prefix, conduit, launcher, sizeof(launcher),
                          count, argv);
    argv[n++] = program;
    argv[n++] = cpus;
    argv[n++] = options->only != NULL ? options->only : "-";
    argv[n++] = options->quick ? "5" : "15";
    argv[n++] = options->quick ? "300" : "1000";
    argv[n] = NULL;
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    fprintf(stderr, "cannot start %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* --- what it prints --- */

static struct aq_against_row *aq_job_row(struct aq_against *against, const char *name,
                                         const char *text)
{
    struct aq_against_row *row = against->rows;

    for (; row < against->rows + against->row_count; row++) {
        if (strcmp(row->name, name) == 0)
            return row;
    }
    if (against->row_count == AQ_AGAINST_ROWS)
        return NULL;
    against->row_count++;
    snprintf(row->name, sizeof(row->name), "%s", name);
    snprintf(row->text, sizeof(row->text), "%s", text);
    return row;
}

/* "AQ_PORTABLE\tKIND\tNAME\tTEXT\tNS"; what else a launcher prints is passed over. */
static void aq_job_line(struct aq_job_output *job, char *line)
{
    char *fields[5] = { NULL }, *rest = line;
    struct aq_against_row *row;

    for (int i = 0; i < 5; i++)
        fields[i] = strsep(&rest, "\t");
    if (strcmp(fields[0], "AQ_PORTABLE") != 0 || fields[1] == NULL)
        return;
    job->ended |= strcmp(fields[1], "end") == 0;
    if (fields[2] == NULL)
        return;
    snprintf(job->row, sizeof(job->row), "%s", fields[2]);
    if (fields[3] == NULL)
        return;
    row = aq_job_row(job->against, fields[2], fields[3]);
    if (row != NULL && fields[4] != NULL)
        row->cells[job->conduit].ns[job->tree][job->round] = strtod(fields[4], NULL);
}

/* Reads what has come; false at the end of the file. */
static bool aq_job_read(struct aq_job_output *job, int fd)
{
    char text[4096];
    const ssize_t got = read(fd, text, sizeof(text));

    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    for (ssize_t i = 0; i < got; i++) {
        if (text[i] != '\n') {
            if (job->used + 1 < sizeof(job->line))
                job->line[job->used++] = text[i];
            continue;
        }
        job->line[job->used] = '\0';
        job->used = 0;
        aq_job_line(job, job->line);
    }
    return true;
}

/* --- its end --- */

/* Asks the whole group to end, and insists after three seconds. */
static void aq_job_kill(pid_t pid)
{
    bool ended = false;
    int status;

    kill(-pid, SIGTERM);
    for (int i = 0; i < 30 && !ended; i++) {
        ended = waitpid(pid, &status, WNOHANG) == pid;
        if (!ended)
            usleep(100000);
    }
    kill(-pid, SIGKILL);
    if (!ended)
        waitpid(pid, &status, 0);
}

/* Until the launcher has ended or the time is over: its status, or -1. */
static int aq_job_wait(struct aq_job_output *job, pid_t pid, int fd)
{
    const double until = aq_bench_now() + job->against->options->limit_s * 1e9;
    bool open = true;
    int status;

    for (;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        const bool ended = waitpid(pid, &status, WNOHANG) == pid;

        if (ended) {
            while (aq_job_read(job, fd) && poll(&p, 1, 0) > 0)
                ;
            return status;
        }
        if (aq_front_stop() || aq_bench_now() > until) {
            aq_job_kill(pid);
            return -1;
        }
        if (open && poll(&p, 1, 20) > 0)
            open = aq_job_read(job, fd);
        else if (!open)
            usleep(20000);
    }
}

static void aq_job_complain(const struct aq_job_output *job, int status)
{
    const struct aq_against *against = job->against;

    fprintf(stderr, "aq-bench: the job over %s of %s ", against->conduits[job->conduit],
            against->trees[job->tree].prefix);
    if (status == -1)
        fprintf(stderr, "did not end within %.0f s", against->options->limit_s);
    else if (WIFSIGNALED(status))
        fprintf(stderr, "was ended by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        fprintf(stderr, "ended with code %d", WEXITSTATUS(status));
    else
        fprintf(stderr, "ended before all rows were measured");
    fprintf(stderr, "; last row: %s\n", job->row[0] != '\0' ? job->row : "none");
    aq_against_show(against);
}

int aq_against_job(struct aq_against *against, unsigned tree, size_t conduit, unsigned round)
{
    struct aq_job_output job = {
        .against = against, .conduit = conduit, .tree = tree, .round = round
    };
    int ends[2], status;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0 || (pid = fork()) < 0) {
        fprintf(stderr, "aq-bench: cannot start a job: %s\n", strerror(errno));
        return -1;
    }
    if (pid == 0)
        aq_job_exec(&job, ends[1]);
    setpgid(pid, pid);
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    status = aq_job_wait(&job, pid, ends[0]);
    close(ends[0]);
    if (status == 0 && job.ended)
        return 0;
    if (!aq_front_stop())
        aq_job_complain(&job, status);
    return -1;
}
