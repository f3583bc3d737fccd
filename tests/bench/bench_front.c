/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_front.c - started plainly: launches jobs of this program under gasnetrun and collects
 * what they report.
 * Owns      a pipe through which rank 0 of a job reports
 * Threads   one
 * Uses      bench.h, gasnetrun from beside this program or from PATH
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define AQ_ROWS_LIMIT_S 600.0

#ifndef AQ_BENCH_DATADIR
#define AQ_BENCH_DATADIR "/usr/local/share/aqueduct/bench"
#endif

static char aq_self_path[4096];
static volatile sig_atomic_t aq_interrupted;

const char *aq_front_self(void)
{
    ssize_t n;

    if (aq_self_path[0] != '\0')
        return aq_self_path;
    n = readlink("/proc/self/exe", aq_self_path, sizeof(aq_self_path) - 1);
    if (n > 0)
        aq_self_path[n] = '\0';
    else
        snprintf(aq_self_path, sizeof(aq_self_path), "aq-bench");
    return aq_self_path;
}

static bool aq_front_readable(const char *dir, const char *file)
{
    char path[4400];

    snprintf(path, sizeof(path), "%s/%s", dir, file);
    return access(path, R_OK) == 0;
}

bool aq_front_sources(const char *file, char *dir, size_t size)
{
    const char *set = getenv("AQ_BENCH_DATADIR");
    const char *self = aq_front_self();
    const char *slash = strrchr(self, '/');

    snprintf(dir, size, "%s", set != NULL ? set : AQ_BENCH_DATADIR);
    if (aq_front_readable(dir, file))
        return true;
    if (slash == NULL || set != NULL)
        return false;
    snprintf(dir, size, "%.*s/../share/aqueduct/bench", (int)(slash - self), self);
    return aq_front_readable(dir, file);
}

bool aq_front_stop(void)
{
    return aq_interrupted != 0;
}

int aq_front_stop_code(void)
{
    return 128 + (int)aq_interrupted;
}

static void aq_front_interrupt(int sig)
{
    aq_interrupted = sig;
}

void aq_front_catch(void)
{
    struct sigaction action = { .sa_handler = aq_front_interrupt };

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

int aq_front_temp(char *dir, size_t size)
{
    const char *base = getenv("TMPDIR");

    if (base == NULL || *base == '\0')
        base = "/tmp";
    if (snprintf(dir, size, "%s/aq-bench-XXXXXX", base) < (int)size && mkdtemp(dir) != NULL)
        return 0;
    fprintf(stderr, "aq-bench: no folder can be made in %s: %s\n", base, strerror(errno));
    return -1;
}

/* gasnetrun: the setting, else the one beside this program, else whatever PATH has. */
static const char *aq_front_launcher(char *buf, size_t size)
{
    const char *set = getenv("AQ_BENCH_GASNETRUN");
    const char *self = aq_front_self();
    const char *slash = strrchr(self, '/');

    if (set != NULL)
        return set;
    if (slash != NULL) {
        snprintf(buf, size, "%.*s/gasnetrun", (int)(slash - self), self);
        if (access(buf, X_OK) == 0)
            return buf;
    }
    return "gasnetrun";
}

static _Noreturn void aq_front_exec(const struct aq_options *options, const char *task,
                                    unsigned ranks, const char *report)
{
    char launcher[4200], count[16];
    const char *argv[32];
    int n = 0;

    snprintf(count, sizeof(count), "%u", ranks);
    argv[n++] = aq_front_launcher(launcher, sizeof(launcher));
    argv[n++] = "-n";
    argv[n++] = count;
    argv[n++] = "-c";
    argv[n++] = options->conduit != NULL ? options->conduit : "smp";
    if (strcmp(task, "rows") == 0 || strcmp(task, "stream") == 0)
        argv[n++] = "--bind";
    argv[n++] = aq_front_self();
    argv[n++] = "--task";
    argv[n++] = task;
    argv[n++] = "--report";
    argv[n++] = report;
    if (options->quick)
        argv[n++] = "--quick";
    if (options->only != NULL) {
        argv[n++] = "--only";
        argv[n++] = options->only;
    }
    if (options->table != NULL) {
        argv[n++] = "--table";
        argv[n++] = options->table;
    }
    argv[n] = NULL;
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    fprintf(stderr,
            "aq-bench: cannot start %s: %s; set AQ_BENCH_GASNETRUN to the launcher's path\n",
            argv[0], strerror(errno));
    _exit(127);
}

/* Splits what has arrived into lines. */
struct aq_lines {
    char text[4096];
    size_t used;
};

static void aq_front_read(int fd, struct aq_lines *lines, aq_line_fn line, void *arg)
{
    ssize_t got;

    while ((got = read(fd, lines->text + lines->used, sizeof(lines->text) - 1 - lines->used)) > 0) {
        char *start = lines->text, *end;

        lines->used += (size_t)got;
        lines->text[lines->used] = '\0';
        while ((end = strchr(start, '\n')) != NULL) {
            *end = '\0';
            line(arg, start);
            start = end + 1;
        }
        lines->used = strlen(start);
        memmove(lines->text, start, lines->used + 1);
        if (lines->used == sizeof(lines->text) - 1)
            lines->used = 0; /* no line of ours is that long */
    }
}

/* Asks the launcher to end its job, and insists after five seconds. */
static int aq_front_kill(pid_t pid)
{
    int status = 0;

    kill(pid, SIGTERM);
    for (int i = 0; i < 50; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return status;
        usleep(100000);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return status;
}

/* A pipe for reports, and the path under which rank 0 opens its end: a pipe has no name that could
 * be left behind. The read end never waits. */
static int aq_front_pipe(int pipes[2], char *path, size_t size)
{
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return -1;
    snprintf(path, size, "/proc/%d/fd/%d", (int)getpid(), pipes[1]);
    return fcntl(pipes[0], F_SETFL, O_NONBLOCK);
}

static unsigned aq_front_failures; /* failed jobs, and rows without a result */

void aq_front_missing(const char *name)
{
    if (aq_interrupted)
        return;
    fprintf(stderr, "aq-bench: no result: %s\n", name);
    aq_front_failures++;
}

int aq_front_job(const struct aq_options *options, const char *task, unsigned ranks, double limit_s,
                 aq_line_fn line, void *arg)
{
    struct aq_lines lines = { .used = 0 };
    double until = aq_bench_now() + limit_s * 1e9;
    int pipes[2] = { -1, -1 }; /* the write end stays open: a job's end is no end of file */
    char report[64];
    pid_t pid = aq_front_pipe(pipes, report, sizeof(report)) == 0 ? fork() : -1;
    int status = -1;

    if (pid < 0) {
        fprintf(stderr, "aq-bench: cannot start a job: %s\n", strerror(errno));
        aq_front_failures++;
        if (pipes[0] >= 0) {
            close(pipes[0]);
            close(pipes[1]);
        }
        return -1;
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* the job ends with aq-bench, however that ends */
        aq_front_exec(options, task, ranks, report);
    }
    for (;;) {
        struct pollfd p = { .fd = pipes[0], .events = POLLIN };
        bool ended = waitpid(pid, &status, WNOHANG) == pid;

        aq_front_read(pipes[0], &lines, line, arg);
        if (ended)
            break;
        if (aq_interrupted || aq_bench_now() > until) {
            fprintf(stderr, "\naq-bench: %s\n",
                    aq_interrupted ? "interrupted" : "the job took too long and was ended");
            aq_front_kill(pid);
            status = -1;
            break;
        }
        poll(&p, 1, 20);
    }
    close(pipes[0]);
    close(pipes[1]);
    if (status != 0 && !aq_interrupted) {
        fprintf(stderr, "aq-bench: the job '%s' with %u ranks failed (status %d)\n", task, ranks,
                status);
        aq_front_failures++;
    }
    return status == 0 ? 0 : -1;
}

static void aq_front_line(void *arg, const char *line)
{
    struct aq_out *out = arg;
    struct aq_result r;

    if (strncmp(line, "RUNNING\t", 8) == 0)
        aq_out_running(out, line + 8);
    else if (strncmp(line, "BESIDE\t", 7) == 0)
        snprintf(out->limits_by, sizeof(out->limits_by), "%s", line + 7);
    else if (aq_record_read(line, &r))
        aq_out_result(out, &r);
}

static size_t aq_front_count_rows(const struct aq_options *options)
{
    size_t count, wanted = 0;
    const struct aq_row *rows = aq_rows(&count);

    for (size_t i = 0; i < count; i++)
        wanted += aq_row_wanted(options, &rows[i], options->remote);
    return wanted;
}

int aq_front_run(const struct aq_options *options)
{
    size_t rows = aq_front_count_rows(options);
    const size_t all = rows + aq_loss_count(options) + aq_many_count(options)
                       + aq_load_count(options) + aq_peers_count(options);
    struct aq_out out;
    int rc = 0, over;

    if (all == 0) {
        fprintf(stderr, "aq-bench: no row is what the options ask for%s%s; --list shows the rows\n",
                options->only != NULL ? ": --only " : "",
                options->only != NULL ? options->only : "");
        return 2;
    }
    aq_front_catch();
    aq_out_init(&out, options);
    aq_out_expect(&out, all);
    if (rows > 0)
        rc = aq_front_job(options, "rows", options->ranks, AQ_ROWS_LIMIT_S, aq_front_line, &out);
    if (rc == 0 && !aq_interrupted)
        aq_loss_run(options, &out);
    if (rc == 0 && !aq_interrupted)
        aq_many_run(options, &out);
    if (rc == 0 && !aq_interrupted)
        aq_load_run(options, &out);
    if (rc == 0 && !aq_interrupted)
        aq_peers_run(options, &out);
    out.whole = !aq_interrupted && aq_front_failures == 0;
    over = aq_out_finish(&out);
    if (aq_interrupted)
        return aq_front_stop_code();
    if (aq_front_failures > 0) {
        fprintf(stderr, "aq-bench: rows are missing: the messages above say why\n");
        return 2;
    }
    if (out.unwritten)
        return 2;
    return options->strict && over > 0 ? 1 : 0;
}
