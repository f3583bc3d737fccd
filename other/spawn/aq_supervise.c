/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_supervise.c - the supervisor; see aq_supervise.h.
 * Threads   one
 * Uses      signalfd, waitpid, prctl; aq_shutdown.h decides
 */
#include "other/spawn/aq_supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "other/spawn/aq_shutdown.h"

static void aq_supervise_signals(sigset_t *set, bool stop_too)
{
    /* INT and QUIT too, where a shell without job control ignored them for a background job */
    static const int always[] = { SIGCHLD, SIGURG, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT, SIGTERM };
    struct sigaction old;

    sigemptyset(set);
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
        sigaddset(set, always[i]);
    /* nohup ignores HUP: a blocked signal is queued even if it is ignored, and the signalfd would
     * return it */
    if (sigaction(SIGHUP, NULL, &old) != 0 || old.sa_handler != SIG_IGN)
        sigaddset(set, SIGHUP);
    if (stop_too)
        sigaddset(set, SIGTSTP);
}

/* Adds the children of pid's first thread to the processes that are spared. */
static bool aq_supervise_skip_children(struct aq_supervise *sv, pid_t pid)
{
    char path[64];
    int child;
    bool ok = true;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
    f = fopen(path, "re");
    if (f == NULL)
        return true; /* the process has just ended */
    while (ok && fscanf(f, "%d", &child) == 1) {
        pid_t *grown = realloc(sv->skipped, (sv->skipped_count + 1) * sizeof(*grown));

        ok = grown != NULL;
        if (ok) {
            sv->skipped = grown;
            sv->skipped[sv->skipped_count++] = child;
        }
    }
    fclose(f);
    return ok;
}

/* A shell may have started this program by exec while it had background jobs. They are children of
 * this process now, but not of the job. When one of them ends, its own children become children of
 * this process too. */
static void aq_supervise_skip_earlier(struct aq_supervise *sv)
{
    bool ok = aq_supervise_skip_children(sv, getpid());

    for (size_t i = 0; ok && i < sv->skipped_count; i++)
        ok = aq_supervise_skip_children(sv, sv->skipped[i]);
    if (!ok)
        sv->reap_others = false; /* rather leave a process running than end one of another job */
}

static bool aq_supervise_skips(const struct aq_supervise *sv, pid_t pid)
{
    for (size_t i = 0; i < sv->skipped_count; i++)
        if (sv->skipped[i] == pid)
            return true;
    return false;
}

/* the pid may be reused by a process of the job */
static void aq_supervise_skipped_exited(struct aq_supervise *sv, pid_t pid)
{
    for (size_t i = 0; i < sv->skipped_count; i++)
        if (sv->skipped[i] == pid)
            sv->skipped[i] = 0;
}

void aq_supervise_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) == 0);
    if (fd > STDERR_FILENO)
        close(fd);
}

int aq_supervise_open(struct aq_supervise *sv, uint32_t size, int *jobarea_fd_out)
{
    struct sigaction act = { .sa_handler = SIG_DFL };
    sigset_t set;
    int rc;

    aq_supervise_standard_fds();
    if (sv->reap_others)
        aq_supervise_skip_earlier(sv);
    if (sv->reap_others)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    sv->child = calloc((size_t)size + 1, sizeof(*sv->child));
    if (sv->child == NULL)
        return -ENOMEM;
    sv->jobarea = sv->topo != NULL ? aq_jobarea_create_multihost(size, sv->topo, jobarea_fd_out)
                                   : aq_jobarea_create(size, size, jobarea_fd_out);
    if (sv->jobarea == NULL)
        goto fail;
    sv->jobarea->supervisor = (int32_t)getpid();
    aq_supervise_signals(&set, sv->stop_too);
    sv->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (sv->signal_fd < 0)
        goto fail_jobarea;
    sigprocmask(SIG_BLOCK, &set, &sv->old_mask);
    /* where SIGCHLD is ignored, the kernel reaps children itself and does not report their end */
    sigaction(SIGCHLD, &act, &sv->old_child);
    return 0;
fail_jobarea:
    rc = errno;
    close(*jobarea_fd_out);
    free(sv->child);
    return -rc;
fail:
    rc = errno;
    free(sv->child);
    return -rc;
}

void aq_supervise_signals_back(const struct aq_supervise *sv)
{
    sigaction(SIGCHLD, &sv->old_child, NULL);
    sigprocmask(SIG_SETMASK, &sv->old_mask, NULL);
}

void aq_supervise_child(const struct aq_supervise *sv, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(255); /* the parent died before the line above */
    aq_supervise_signals_back(sv);
}

void aq_supervise_say_fork_failed(struct aq_supervise *sv, uint32_t slot, int error)
{
    struct rlimit lim = { 0, 0 };

    getrlimit(RLIMIT_NPROC, &lim);
    if (error == EAGAIN)
        aq_shutdown_say(
            "FATAL ERROR",
            "only %u of %u ranks could be started: no more processes allowed "
            "(ulimit -u says %jd, and the container's pids limit counts too); raise the limit or "
            "ask for fewer ranks",
            slot, sv->jobarea->size,
            lim.rlim_cur == RLIM_INFINITY ? (intmax_t)-1 : (intmax_t)lim.rlim_cur);
    else
        aq_shutdown_say("FATAL ERROR",
                        "only %u of %u ranks could be started: %s; ask for fewer ranks or %s", slot,
                        sv->jobarea->size, strerror(error),
                        error == EMFILE || error == ENFILE ? "raise ulimit -n" : "free memory");
}

int aq_supervise_fork_failed(struct aq_supervise *sv, uint32_t slot, int error)
{
    aq_supervise_say_fork_failed(sv, slot, error);
    for (uint32_t i = 0; i < slot; i++) {
        kill(sv->child[i], SIGKILL);
        waitpid(sv->child[i], NULL, 0);
    }
    return 1;
}

/* There are no children left, yet some ranks were not reported: another part of the process has
 * reaped them. */
static void aq_supervise_all_exited(struct aq_supervise *sv, struct aq_shutdown *shutdown)
{
    for (uint32_t i = 0; i < sv->jobarea->size && shutdown->alive > 0; i++)
        if (sv->child[i] > 0)
            aq_shutdown_exited(shutdown, i, -1);
}

static void aq_supervise_pass_on(const struct aq_supervise *sv, pid_t pid, int status)
{
    if (sv->io != NULL && sv->io->reaped != NULL)
        sv->io->reaped(sv->io->arg, pid, status);
}

static void aq_supervise_reap(struct aq_supervise *sv, struct aq_shutdown *shutdown)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        uint32_t i = 0;

        aq_supervise_skipped_exited(sv, pid);
        while (i < sv->jobarea->size && sv->child[i] != pid)
            i++;
        if (i == sv->jobarea->size) {
            aq_supervise_pass_on(sv, pid, status);
            continue;
        }
        if (sv->verbose)
            aq_shutdown_say("NOTICE", "rank %u (process %d) has ended, wait status 0x%x",
                            sv->jobarea->rank[i].jobrank, (int)pid, (unsigned)status);
        aq_shutdown_exited(shutdown, i, status);
    }
    if (pid < 0 && errno == ECHILD && shutdown->alive > 0)
        aq_supervise_all_exited(sv, shutdown);
}

/* Batch systems announce the end of the time by SIGUSR1 to the process they know: passes it to
 * ranks with a handler; others would die of it. */
void aq_supervise_forward(struct aq_supervise *sv, int sig)
{
    for (uint32_t i = 0; i < sv->jobarea->size; i++) {
        /* relaxed: written once */
        pid_t pid = atomic_load_explicit(&sv->jobarea->rank[i].pid, memory_order_relaxed);

        if (sv->child[i] > 0 && pid > 0 && aq_shutdown_catches(pid, sig))
            kill(pid, sig);
    }
}

static void aq_supervise_read_signals(struct aq_supervise *sv, struct aq_shutdown *shutdown)
{
    struct signalfd_siginfo si;

    while (read(sv->signal_fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
        const int sig = (int)si.ssi_signo;

        if (sv->signal == 0 && (sig == SIGHUP || sig == SIGINT || sig == SIGQUIT || sig == SIGTERM))
            sv->signal = sig;
        if (sv->io != NULL && sv->io->signalled != NULL
            && sv->io->signalled(sv->io->arg, shutdown, sig))
            continue;
        switch (sig) {
        case SIGCHLD:
        case SIGURG: /* a rank has changed the job area */
            break;
        case SIGUSR2:
            aq_jobarea_report(sv->jobarea, STDERR_FILENO, 0);
            aq_supervise_forward(sv, SIGUSR2);
            break;
        case SIGUSR1:
            aq_supervise_forward(sv, SIGUSR1);
            break;
        default:
            aq_shutdown_signalled(shutdown, sig);
        }
    }
}

/* sends SIGKILL to processes that ranks have left in this session; returns how many there were */
static int aq_supervise_kill_others(const struct aq_supervise *sv, pid_t session)
{
    char path[64];
    int pid, count = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    f = fopen(path, "re");
    if (f == NULL)
        return 0;
    while (fscanf(f, "%d", &pid) == 1)
        if (getsid(pid) == session && !aq_supervise_skips(sv, pid))
            count += kill(pid, SIGKILL) == 0;
    fclose(f);
    return count;
}

/* Ranks may have left processes of their own (a shell's background jobs). They became children of
 * this process when their parents died, and so do their children in turn. Those that moved to a
 * session of their own were meant to stay. */
void aq_supervise_end_others(struct aq_supervise *sv)
{
    pid_t session = getsid(0), pid;
    int status;

    for (int i = 0; i < 50; i++) {
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
            aq_supervise_skipped_exited(sv, pid);
            aq_supervise_pass_on(sv, pid, status);
        }
        if (aq_supervise_kill_others(sv, session) == 0)
            return;
        usleep(2000);
    }
}

int aq_supervise_run(struct aq_supervise *sv)
{
    int max = 1 + (sv->io != NULL ? sv->io->max : 0), code;
    struct pollfd *fds = calloc((size_t)max, sizeof(*fds));
    struct aq_shutdown shutdown;

    if (fds == NULL)
        return aq_supervise_fork_failed(sv, sv->jobarea->size, ENOMEM);
    aq_shutdown_init(&shutdown, sv->jobarea, sv->child);
    shutdown.verbose = sv->verbose;
    shutdown.follow = sv->follow;
    for (;;) {
        int count = 0, wait, wait_io;

        aq_supervise_reap(sv, &shutdown);
        if (shutdown.alive == 0
            && (sv->io == NULL || sv->io->busy == NULL || !sv->io->busy(sv->io->arg)))
            break;
        wait = aq_shutdown_step(&shutdown);
        wait_io =
            sv->io != NULL && sv->io->step != NULL ? sv->io->step(sv->io->arg, &shutdown) : -1;
        if (wait < 0 || (wait_io >= 0 && wait_io < wait))
            wait = wait_io;
        fds[0].fd = sv->signal_fd;
        fds[0].events = POLLIN;
        if (sv->io != NULL)
            count = sv->io->fill(sv->io->arg, fds + 1);
        if (poll(fds, (nfds_t)count + 1, wait) <= 0)
            continue;
        if (fds[0].revents != 0)
            aq_supervise_read_signals(sv, &shutdown);
        if (count > 0)
            sv->io->serve(sv->io->arg, fds + 1, count);
    }
    if (sv->io != NULL)
        sv->io->finish(sv->io->arg);
    if (sv->reap_others)
        aq_supervise_end_others(sv);
    free(fds);
    /* relaxed: all other processes have ended */
    code = atomic_load_explicit(&sv->jobarea->exit_code, memory_order_relaxed);
    if (sv->verbose && !sv->follow)
        aq_shutdown_say("NOTICE", "the job has ended with exit code %d", code);
    return code;
}

_Noreturn void aq_supervise_end_console(int code, int sig)
{
    if (sig != 0) {
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, sig);
        (void)sigaction(sig, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
        (void)raise(sig);
        (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    }
    /* 128 + n stands for a rank that died of signal n */
    _exit(code > 128 && code <= 128 + SIGRTMAX ? AQ_SUPERVISE_LOST : code);
}
