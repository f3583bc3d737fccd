/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_launch_start.c - starts the ranks of a job on this host and supervises them.
 * Threads   one; ranks are started by vfork, since copying the launcher's page tables for each of
 *           many ranks takes a considerable part of the start-up time
 * Uses      other/spawn/aq_supervise.h
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "other/launcher/aq_launch.h"
#include "other/spawn/aq_shutdown.h"
#include "other/spawn/aq_spawn_provider.h"

#define AQ_LAUNCH_FD 100 /* first inherited descriptor, clear of shell scripts */

static bool aq_launch_has(const char *image, size_t size, const char *key, const char *value)
{
    char text[96];

    snprintf(text, sizeof(text), "$%s: %s $", key, value);
    return memmem(image, size, text, strlen(text)) != NULL;
}

/* Maps an executable file or library; NULL if it is neither. */
char *aq_launch_map(const char *path, size_t *size_out)
{
    struct stat st;
    char *image = MAP_FAILED;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= 64)
        image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (image == MAP_FAILED)
        return NULL;
    *size_out = (size_t)st.st_size;
    return image;
}

void aq_launch_conduit_in(const char *word, char conduit_out[16])
{
    static const char key[] = "$GASNetConduitName: ";
    const char *why, *at;
    char *path = aq_launch_look_up(word, &why), *image;
    size_t size, len = 0;

    image = path != NULL ? aq_launch_map(path, &size) : NULL;
    free(path);
    if (image == NULL)
        return;
    at = memmem(image, size, key, sizeof(key) - 1);
    /* another program may contain the key without a value, as this one does: the value is capitals
     * and a blank */
    for (at = at != NULL ? at + sizeof(key) - 1 : NULL; at != NULL && at + len < image + size;
         len++)
        if (len == 15 || at[len] < 'A' || at[len] > 'Z')
            break;
    if (at != NULL && len > 0 && len < 15 && at + len + 1 < image + size && at[len] == ' '
        && at[len + 1] == '$') {
        for (size_t i = 0; i < len; i++)
            conduit_out[i] = (char)(at[i] - 'A' + 'a');
        conduit_out[len] = '\0';
    }
    munmap(image, size);
}

/* returns 1 if the word is a program of this conduit that can be started by this spawner; 0 if of
 * this conduit but by other spawners; -1 for other programs */
static int aq_launch_look_into(const struct aq_launch *lo, const char *path)
{
    char conduit[16], spawner[32];
    size_t i, size;
    char *image = access(path, X_OK) == 0 ? aq_launch_map(path, &size)
                                          : NULL; /* neither data, however large, nor archives */
    int found = -1;

    if (image == NULL)
        return -1;
    for (i = 0; lo->conduit[i] != '\0'; i++)
        conduit[i] = (char)(lo->conduit[i] >= 'a' && lo->conduit[i] <= 'z' ? lo->conduit[i] - 32
                                                                           : lo->conduit[i]);
    conduit[i] = '\0';
    snprintf(spawner, sizeof(spawner), "GASNet%sSpawner",
             lo->spawner == AQ_SPAWNER_MPI ? "MPI"
             : lo->spawner == AQ_SPAWNER_PMI
                 ? "PMI"
                 : "FORK"); /* the same string serves ssh: agents start ranks in the same way */
    if (aq_launch_has(image, size, "GASNetConduitName", conduit))
        found = !lo->info->names_spawners || aq_launch_has(image, size, spawner, "1");
    munmap(image, size);
    return found;
}

void aq_launch_check(const struct aq_launch *lo)
{
    int found = aq_launch_look_into(lo, lo->program);

    for (int i = 1; found < 0 && lo->argv[i] != NULL; i++)
        found = aq_launch_look_into(lo, lo->argv[i]);
    if (found == 0)
        aq_launch_error(lo, "%s was built without spawner %s; choose another one by -spawner=",
                        lo->program, aq_launch_spawner_name(lo->spawner));
    if (found < 0)
        aq_launch_tell(
            lo,
            "no word of the command is a program linked with the %s conduit's archive "
            "(a script, or one linked with the shared library?); running it all the same",
            lo->conduit);
}

int aq_launch_high_fd(const struct aq_launch *lo, int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, AQ_LAUNCH_FD);

    if (high < 0)
        high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (high < 0)
        aq_launch_error(lo, "out of file descriptors (%s); raise ulimit -n", strerror(errno));
    close(fd);
    return high;
}

static char **aq_launch_environment(struct aq_start *s)
{
    extern char **environ;
    size_t count = 0, len = strlen(AQ_SPAWN_FORK_ENV), to = 0;
    char **envp;

    while (environ[count] != NULL)
        count++;
    envp = calloc(count + 2, sizeof(*envp));
    if (envp == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], AQ_SPAWN_FORK_ENV, len) != 0 || environ[i][len] != '=')
            envp[to++] = environ[i];
    envp[to] = s->note;
    return envp;
}

static bool aq_start_verbose(const struct aq_launch *lo)
{
    const char *text = getenv("GASNET_SPAWN_VERBOSE");
    bool on = false;

    if (text != NULL)
        aq_env_parse_bool(text, &on);
    return on || lo->verbose >= 2;
}

void aq_start_open(struct aq_start *s, const struct aq_launch *lo)
{
    int jobarea_fd, rc;

    s->lo = lo;
    s->self = getpid();
    s->link_fd = -1;
    for (int i = 0; i < 3; i++)
        s->stdio[i] = -1;
    s->sv.reap_others = true;
    rc = aq_supervise_open(&s->sv, lo->ranks, &jobarea_fd);
    if (rc != 0)
        aq_launch_error(lo, "cannot make shared memory for %u ranks: %s%s", lo->ranks,
                        strerror(-rc), aq_jobarea_remedy(-rc));
    s->fds[0] = aq_launch_high_fd(lo, jobarea_fd);
    for (int i = 1; i < AQ_START_FDS; i++) {
        int fd = memfd_create("aq-host", MFD_CLOEXEC);

        if (fd < 0)
            aq_launch_error(lo, "memfd_create: %s", strerror(errno));
        s->fds[i] = aq_launch_high_fd(lo, fd);
    }
    s->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    s->envp = aq_launch_environment(s);
    s->cpus = aq_launch_bindings(lo, &s->cpus_size);
    s->sv.verbose = aq_start_verbose(lo);
    if (s->envp == NULL)
        aq_launch_error(lo, "out of memory");
}

/* Runs in the child of vfork, on the parent's stack and memory: system calls only. */
static _Noreturn void aq_start_become(struct aq_start *s, uint32_t slot)
{
    aq_supervise_child(&s->sv, s->self);
    if (s->sv.jobarea->rank_base + slot > 0 && s->null_fd >= 0)
        dup2(s->null_fd, STDIN_FILENO);
    for (int i = 0; i < AQ_START_FDS; i++)
        fcntl(s->fds[i], F_SETFD, 0);
    if (slot == 0 && s->link_fd >= 0)
        fcntl(s->link_fd, F_SETFD, 0);
    for (int i = 0; i < 3; i++)
        if (s->stdio[i] >= 0)
            dup2(s->stdio[i], i);
    if (s->limit_back)
        setrlimit(RLIMIT_NOFILE, &s->limit);
    if (s->prefix != NULL)
        aq_prefix_child(s->prefix, slot);
    if (s->cpus != NULL && s->cpus[slot] != NULL)
        sched_setaffinity(0, s->cpus_size, s->cpus[slot]);
    execve(s->lo->program, s->lo->argv, s->envp);
    s->exec_error = errno;
    _exit(127);
}

int aq_start_slot(struct aq_start *s, uint32_t slot)
{
    uint64_t key;
    pid_t pid;

    memcpy(&key, s->sv.jobarea->key, sizeof(key));
    snprintf(s->note, sizeof(s->note), "%s=%u %d %d %d %016" PRIx64, AQ_SPAWN_FORK_ENV, slot,
             s->fds[0], s->fds[1], s->fds[2], key);
    s->exec_error = 0;
    pid = vfork();
    if (pid == 0)
        aq_start_become(s, slot);
    if (pid < 0)
        return errno;
    s->sv.child[slot] = pid;
    return s->exec_error;
}

const char *aq_start_exec_text(int error)
{
    return error == ENOEXEC
               ? "not a program for this machine; a script needs a first line like #!/bin/sh"
               : strerror(error);
}

void aq_start_close(struct aq_start *s)
{
    for (int i = 0; i < AQ_START_FDS; i++)
        close(s->fds[i]);
}

static int aq_start_rank(struct aq_start *s, uint32_t rank)
{
    int error = aq_start_slot(s, rank);

    if (error == 0)
        return 0;
    if (s->exec_error == 0)
        return aq_supervise_fork_failed(&s->sv, rank, error);
    for (uint32_t i = 0; i <= rank; i++)
        kill(s->sv.child[i], SIGKILL);
    fprintf(stderr, "%s: cannot run %s: %s\n", s->lo->self, s->lo->program,
            aq_start_exec_text(error));
    return 1;
}

static void aq_launch_describe(const struct aq_launch *lo)
{
    char host[256] = "?";

    gethostname(host, sizeof(host) - 1);
    fprintf(stderr, "gasnetrun: %s %u rank%s on host %s (conduit %s, spawner fork):",
            lo->dry ? "would start" : "starting", lo->ranks, lo->ranks == 1 ? "" : "s", host,
            lo->conduit);
    fprintf(stderr, " %s", lo->program);
    for (int i = 1; lo->argv[i] != NULL; i++)
        fprintf(stderr, " %s", lo->argv[i]);
    fputc('\n', stderr);
}

int aq_launch_fork(struct aq_launch *lo)
{
    static struct aq_start s;
    int rc = 0;

    if (lo->tell)
        aq_launch_describe(lo);
    if (lo->dry)
        return 0;
    aq_start_open(&s, lo);
    s.prefix = lo->prefix ? aq_prefix_open(lo) : NULL;
    for (uint32_t rank = 0; rank < lo->ranks && rc == 0; rank++)
        rc = aq_start_rank(&s, rank);
    if (rc != 0)
        return rc;
    if (s.prefix != NULL)
        s.sv.io = aq_prefix_started(s.prefix);
    aq_start_close(&s);
    rc = aq_supervise_run(&s.sv);
    lo->signal = s.sv.signal;
    return rc;
}
