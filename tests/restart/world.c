/*
 * world.c - see world.h. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "world.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

int world_rank, world_size;

#ifdef TEST_MPI

static MPI_Comm comm;

void world_start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
}

int world_end(int status)
{
    MPI_Finalize();
    return status;
}

void world_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

void world_split(int color, int reversed, struct aqueduct_group *group_out)
{
    MPI_Comm_split(MPI_COMM_WORLD, color < 0 ? MPI_UNDEFINED : color,
                   reversed ? -world_rank : world_rank, &comm);
    if (color >= 0)
        aqueduct_mpi_group(&comm, group_out);
}

void world_join(struct aqueduct_group *group)
{
    (void)group;
    if (comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm);
}

#else

#define GROUPS   16
#define HIGHEST  64
#define FRAGMENT 65536 /* bytes of a process in one round of an allgather */
#define WORLD    GROUPS
/* seconds between the first process that fails and the end of the others */
#define GRACE_S  10

/* Processes that wait for each other, and exchange bytes. */
struct meeting {
    atomic_uint arrived, round;
    char data[2][HIGHEST][FRAGMENT];
};

static struct area {
    int color[HIGHEST];
    struct meeting meeting[GROUPS + 1];
} * area;

struct member {
    struct meeting *meeting;
    int rank, size;
    unsigned rounds;
};

static struct member everybody, ours;
static pid_t child[HIGHEST];

static void handshake(struct member *m)
{
    const unsigned round = atomic_load(&m->meeting->round);

    if (atomic_fetch_add(&m->meeting->arrived, 1) + 1 == (unsigned)m->size) {
        atomic_store(&m->meeting->arrived, 0);
        atomic_store(&m->meeting->round, round + 1);
        return;
    }
    while (atomic_load(&m->meeting->round) == round)
        usleep(50);
}

static int group_barrier(void *ctx)
{
    handshake(ctx);
    return 0;
}

static int group_allgather(void *ctx, const void *own, size_t len, void *all)
{
    struct member *m = ctx;

    for (size_t at = 0; at < len; at += FRAGMENT) {
        const size_t now = len - at < FRAGMENT ? len - at : FRAGMENT;
        char(*data)[FRAGMENT] = m->meeting->data[m->rounds++ & 1];

        memcpy(data[m->rank], (const char *)own + at, now);
        handshake(m);
        for (int i = 0; i < m->size; i++)
            memcpy((char *)all + (size_t)i * len + at, data[i], now);
    }
    return 0;
}

static void group_abort(void *ctx, int code)
{
    (void)ctx;
    _exit(code);
}

/* TEST_HOSTS: a process on each of several hosts, which are network namespaces. */
static void move_to_host(void)
{
    char *hosts = getenv("TEST_HOSTS"), path[64], *rest;
    int count = 0, pids[HIGHEST], fd;

    if (hosts == NULL)
        return;
    for (char *pid = strtok_r(hosts, " ", &rest); pid != NULL && count < HIGHEST;
         pid = strtok_r(NULL, " ", &rest))
        pids[count++] = atoi(pid);
    snprintf(path, sizeof(path), "/proc/%d/ns/net", pids[world_rank % count]);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) {
        perror(path);
        _exit(2);
    }
    close(fd);
}

/* As a launcher does, but not before the others can have noticed, and said, what has happened. */
static void end_children(int signal_number)
{
    (void)signal_number;
    for (int k = 0; k < world_size; k++)
        if (child[k] > 0)
            kill(child[k], SIGTERM);
}

void world_start(int *argc, char ***argv)
{
    world_size = *argc > 1 ? atoi((*argv)[1]) : 2;
    if (world_size < 1 || world_size > HIGHEST)
        exit(2);
    area = mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED)
        exit(2);
    for (int i = 0; i < world_size; i++) {
        fflush(NULL);
        child[i] = fork();
        if (child[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            world_rank = i;
            move_to_host();
            everybody = (struct member){ &area->meeting[WORLD], i, world_size, 0 };
            for (int k = 1; k + 1 < *argc; k++)
                (*argv)[k] = (*argv)[k + 1];
            (*argv)[--*argc] = NULL;
            return;
        }
    }
    int worst = 0;

    signal(SIGALRM, end_children);
    for (int i = 0; i < world_size; i++) {
        int status;
        const pid_t pid = wait(&status);
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

        if (code != 0 && worst == 0)
            alarm(GRACE_S);
        worst = worst > code ? worst : code;
        for (int k = 0; k < world_size; k++)
            if (child[k] == pid)
                child[k] = 0;
    }
    exit(worst);
}

int world_end(int status)
{
    handshake(&everybody);
    return status;
}

void world_barrier(void)
{
    handshake(&everybody);
}

void world_split(int color, int reversed, struct aqueduct_group *group_out)
{
    area->color[world_rank] = color;
    handshake(&everybody);
    if (color >= 0) {
        ours = (struct member){ .meeting = &area->meeting[color] };
        for (int i = 0; i < world_size; i++) {
            ours.size += area->color[i] == color;
            ours.rank += area->color[i] == color && (reversed ? i > world_rank : i < world_rank);
        }
        *group_out = (struct aqueduct_group){ .rank = ours.rank,
                                              .size = ours.size,
                                              .ctx = &ours,
                                              .allgather = group_allgather,
                                              .barrier = group_barrier,
                                              .abort = group_abort };
    }
    handshake(&everybody);
}

void world_join(struct aqueduct_group *group)
{
    (void)group;
    handshake(&everybody);
}

#endif

/* --- the conduit by name --- */

/* Is this the name of the conduit that start and settings ask for, or any name if none does? */
static int is_asked_for(const char *conduit)
{
    const char *asked = getenv("TEST_CONDUIT");

    if (asked == NULL)
        asked = getenv("GASNET_CONDUIT");
    return conduit != NULL && (asked == NULL || strcasecmp(conduit, asked) == 0);
}

static int is_expected(const char *setting, const char *name)
{
    const char *expected;

    if (setting == NULL)
        unsetenv("GASNET_CONDUIT");
    else
        setenv("GASNET_CONDUIT", setting, 1);
    expected = aqueduct_job_conduit();
    return name == NULL ? expected == NULL : expected != NULL && strcmp(expected, name) == 0;
}

/* The environment is changed for the first job only: setenv() keeps memory. */
int world_conduit_is_right(void)
{
    static int changes;
    const char *before = getenv("GASNET_CONDUIT");
    char *saved;
    int right;

    if (aqueduct_job_is_running())
        return is_asked_for(aqueduct_job_conduit());
    if (changes++ > 0)
        return aqueduct_job_conduit() != NULL;
    saved = before != NULL ? strdup(before) : NULL;
    right = is_expected("SmP", "smp") && is_expected("none", NULL) && !is_expected(NULL, NULL);
    if (saved != NULL)
        setenv("GASNET_CONDUIT", saved, 1);
    free(saved);
    return right;
}
