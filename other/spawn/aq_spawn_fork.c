/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_fork.c - ranks started on this host by a supervisor: gasnetrun, or the program itself.
 * Owns      the meaning of AQ_SPAWN_FORK, and the descriptors that it names
 * Threads   one, at start
 * Promise   the variable is unset and the descriptors are close-on-exec when the client goes on, so
 *           that programs that the client starts do not join the job
 * Uses      aq_supervise.h, aq_shutdown.h
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "other/spawn/aq_shutdown.h"
#include "other/spawn/aq_spawn_provider.h"
#include "other/spawn/aq_supervise.h"

static bool aq_spawn_fork_offered(void)
{
    return getenv(AQ_SPAWN_FORK_ENV) != NULL;
}

/* A wrapper may be between the supervisor and this process: it dies with the supervisor, and this
 * process dies with it. */
static int aq_spawn_fork_tie(struct aq_spawn_state *st)
{
    pid_t parent = getppid();

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || (kill(st->jobarea->supervisor, 0) != 0 && errno == ESRCH))
        _exit(255); /* the job is over already, which has been reported */
    return AQ_OK;
}

static int aq_spawn_fork_join(struct aq_spawn_state *st)
{
    const char *text = getenv(AQ_SPAWN_FORK_ENV);
    int jobarea_fd, fd0, fd1, rc;
    uint64_t key, have;
    uint32_t rank;

    if (sscanf(text, "%" SCNu32 " %d %d %d %" SCNx64, &rank, &jobarea_fd, &fd0, &fd1, &key) != 5)
        return aq_fail(AQ_ERR_ARG,
                       "spawn: %s='%s' is not what gasnetrun writes; do not set it by hand",
                       AQ_SPAWN_FORK_ENV, text);
    st->jobarea = aq_jobarea_map(jobarea_fd);
    if (st->jobarea != NULL)
        memcpy(&have, st->jobarea->key, sizeof(have));
    if (st->jobarea == NULL || have != key || rank >= st->jobarea->size)
        return aq_fail(AQ_ERR_RESOURCE,
                       "spawn: descriptor %d does not hold this job's job area; gasnetrun must be "
                       "of the program's version of the library, and a script between them must "
                       "leave inherited descriptors open",
                       jobarea_fd);
    close(jobarea_fd);
    unsetenv(AQ_SPAWN_FORK_ENV);
    st->host_fd[0] = fd0;
    st->host_fd[1] = fd1;
    for (int i = 0; i < 2; i++)
        if (fcntl(st->host_fd[i], F_SETFD, FD_CLOEXEC) != 0)
            return aq_fail(AQ_ERR_RESOURCE,
                           "spawn: inherited descriptor %d was closed by a script between "
                           "gasnetrun and the program",
                           st->host_fd[i]);
    st->supervised = true;
    rc = st->jobarea->exchange_bytes > 0 ? aq_spawn_agent_fill(st, rank)
                                         : aq_spawn_fill_one_host(st, rank, st->jobarea->size);
    if (rc == AQ_OK)
        rc = aq_spawn_claim(st);
    return rc == AQ_OK ? aq_spawn_fork_tie(st) : rc;
}

void aq_spawn_fork_notify(struct aq_spawn_state *st)
{
    /* SIGURG is ignored by default, so it is harmless if the pid has come to name another
     * process */
    kill(st->jobarea->supervisor, SIGURG);
}

int aq_spawn_fork_shutdown(struct aq_spawn_state *st, int code, enum aq_shutdown_mode how)
{
    (void)st;
    (void)how;
    return code; /* the supervisor reads the job area */
}

const struct aq_spawn_provider aq_spawn_fork_provider = {
    .name = "fork",
    .offered = aq_spawn_fork_offered,
    .join = aq_spawn_fork_join,
    .notify = aq_spawn_fork_notify,
    .finish = aq_spawn_fork_shutdown,
};

/* rank 0 has the user's standard input; the others read nothing */
static void aq_spawn_null_stdin(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    dup2(fd, STDIN_FILENO);
    if (fd != STDIN_FILENO)
        close(fd);
}

/* Copies of the client's descriptors would keep its pipes open: closes them. */
static void aq_spawn_drop_fds(int keep)
{
    struct dirent *entry;
    DIR *dir;

    if (syscall(SYS_close_range, (unsigned)keep + 1, ~0u, 0u) == 0) {
        if (keep > 3)
            syscall(SYS_close_range, 3u, (unsigned)keep - 1, 0u);
        return;
    }
    /* Linux before 5.9, or a container's filter: close them one by one */
    dir = opendir("/proc/self/fd");
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        int fd = atoi(entry->d_name); /* "." and ".." give 0 */

        if (fd > STDERR_FILENO && fd != keep && fd != dirfd(dir))
            close(fd);
    }
    if (dir != NULL)
        closedir(dir);
}

static int aq_spawn_fork_child(struct aq_spawn_state *st, struct aq_supervise *sv, uint32_t rank,
                               pid_t parent)
{
    int rc;

    aq_supervise_child(sv, parent);
    close(sv->signal_fd);
    free(sv->child);
    if (rank > 0)
        aq_spawn_null_stdin();
    st->supervised = true;
    rc = aq_spawn_fill_one_host(st, rank, st->jobarea->size);
    return rc == AQ_OK ? aq_spawn_claim(st) : rc;
}

/* fork() copies the calling thread only: other threads would go on in the supervisor and be missing
 * in the ranks */
static void aq_spawn_warn_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    int count = 0;

    while (dir != NULL && readdir(dir) != NULL)
        count++;
    if (dir != NULL)
        closedir(dir);
    if (count > 3) /* ".", ".." and this thread */
        aq_warn("the process has %d threads already, and the ranks will not have them; start it by "
                "gasnetrun -n instead",
                count - 2);
}

int aq_spawn_fork_self(struct aq_spawn_state *st, uint32_t size)
{
    struct aq_supervise sv = { .verbose = false };
    pid_t parent = getpid();
    int jobarea_fd, rc, code;

    aq_spawn_warn_threads();
    rc = aq_supervise_open(&sv, size, &jobarea_fd);
    if (rc != 0)
        return aq_fail(AQ_ERR_SYS, "spawn: no job area for %u ranks: %s%s", size, strerror(-rc),
                       aq_jobarea_remedy(-rc));
    close(jobarea_fd); /* the mapping is inherited */
    st->jobarea = sv.jobarea;
    for (int i = 0; i < 2; i++) {
        st->host_fd[i] = memfd_create("aq-host", MFD_CLOEXEC);
        if (st->host_fd[i] < 0) {
            rc = errno;
            aq_supervise_signals_back(&sv);
            return aq_fail(AQ_ERR_SYS, "spawn: memfd_create: %s%s", strerror(rc),
                           aq_jobarea_remedy(rc));
        }
    }
    fflush(NULL); /* otherwise every rank would print it again */
    for (uint32_t i = 0; i < size; i++) {
        pid_t pid = fork();

        if (pid == 0)
            return aq_spawn_fork_child(st, &sv, i, parent);
        if (pid < 0)
            _exit(aq_supervise_fork_failed(&sv, i, errno));
        sv.child[i] = pid;
    }
    aq_spawn_drop_fds(sv.signal_fd);
    if (getenv("GASNET_SPAWN_VERBOSE") != NULL)
        sv.verbose = strchr("1yY", getenv("GASNET_SPAWN_VERBOSE")[0]) != NULL;
    code = aq_supervise_run(&sv);
    if (st->console)
        aq_supervise_end_console(code, sv.signal);
    _exit(code); /* exit() would run the client's handlers */
}
