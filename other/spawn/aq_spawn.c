/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn.c - start-up of a job: choice of the provider, start-up exchange, shared memfds.
 * Owns      the process's one struct aq_spawn_state
 * Threads   see aq_spawn.h
 * Uses      aq_spawn_provider.h, aq_fdpass.h, base/aq_platform.h (cores)
 */
#include "other/spawn/aq_spawn.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "base/aq_platform.h"
#include "base/aq_rc.h"
#include "other/spawn/aq_fdpass.h"
#include "other/spawn/aq_spawn_console.h"
#include "other/spawn/aq_spawn_provider.h"
#include "other/spawn/aq_supervise.h"

#define AQ_SPAWN_PASS_MS  60000 /* far longer than any start takes */
#define AQ_SPAWN_FD_ADDRS 3     /* slot of aq_spawn_host_fd() */

static struct aq_spawn_state aq_spawn_me AQ_JOB_STATE;
static bool aq_spawn_has_buffer; /* stdout's buffer is allocated, and never freed */

/* in the order they are tried */
static const struct aq_spawn_provider *const aq_spawn_providers[] = {
    &aq_spawn_fork_provider,
    &aq_spawn_pmix_provider,
    &aq_spawn_pmi_provider,
};

const struct aq_spawn_info *aq_spawn_info(void)
{
    return aq_spawn_me.provider != NULL ? &aq_spawn_me.info : NULL;
}

struct aq_jobarea *aq_spawn_jobarea(void)
{
    return aq_spawn_me.jobarea;
}

bool aq_spawn_is_supervised(void)
{
    return aq_spawn_me.supervised;
}

int aq_spawn_claim(struct aq_spawn_state *st)
{
    struct aq_jobarea_rank *r = &st->jobarea->rank[st->info.host_rank];
    int32_t nobody = 0;

    /* relaxed: only uniqueness matters */
    if (!atomic_compare_exchange_strong_explicit(&r->pid, &nobody, (int32_t)getpid(),
                                                 memory_order_relaxed, memory_order_relaxed))
        return aq_fail(AQ_ERR_ARG,
                       "spawn: process %d is rank %u of this job already; a script may start the "
                       "program once a rank",
                       (int)nobody, st->info.rank);
    r->jobrank = st->info.rank;
    /* release: a reader of the state sees pid and rank */
    atomic_store_explicit(&r->state, AQ_RANK_JOINED, memory_order_release);
    return AQ_OK;
}

int aq_spawn_fill_one_host(struct aq_spawn_state *st, uint32_t rank, uint32_t size)
{
    st->host_ranks = malloc(size * sizeof(*st->host_ranks));
    st->host_of = calloc(size, sizeof(*st->host_of));
    if (st->host_ranks == NULL || st->host_of == NULL)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory for a list of %u ranks", size);
    for (uint32_t i = 0; i < size; i++)
        st->host_ranks[i] = i;
    st->info = (struct aq_spawn_info){
        .rank = rank,
        .size = size,
        .host_rank = rank,
        .host_size = size,
        .host_index = 0,
        .host_count = 1,
        .host_ranks = st->host_ranks,
        .host_of = st->host_of,
    };
    if (st->jobarea != NULL) /* otherwise the provider has a key of its own */
        memcpy(st->job_key, st->jobarea->job_key, sizeof(st->job_key));
    return AQ_OK;
}

static int aq_spawn_single_join(struct aq_spawn_state *st)
{
    int fd, rc;

    st->jobarea = aq_jobarea_create(1, 1, &fd);
    if (st->jobarea == NULL)
        return aq_fail(AQ_ERR_SYS, "spawn: no job area: %s%s", strerror(errno),
                       aq_jobarea_remedy(errno));
    close(fd);
    rc = aq_spawn_fill_one_host(st, 0, 1);
    return rc == AQ_OK ? aq_spawn_claim(st) : rc;
}

static void aq_spawn_single_notify(struct aq_spawn_state *st)
{
    (void)st;
}

static int aq_spawn_single_shutdown(struct aq_spawn_state *st, int code, enum aq_shutdown_mode how)
{
    (void)st;
    (void)how;
    return code;
}

const struct aq_spawn_provider aq_spawn_single_provider = {
    .name = "single",
    .join = aq_spawn_single_join,
    .notify = aq_spawn_single_notify,
    .finish = aq_spawn_single_shutdown,
};

/* GASNET_PSHM_NODES: 0 if unset or zero, else 1..AQ_SPAWN_MAX_RANKS; negative if it is invalid */
static int64_t aq_spawn_wanted(void)
{
    const char *text = getenv("GASNET_PSHM_NODES");
    int64_t n;

    if (text == NULL || *text == '\0')
        return 0;
    if (!aq_env_parse_int(text, &n))
        return aq_fail(AQ_ERR_ARG,
                       "GASNET_PSHM_NODES='%s' is not a number; set it to the number of ranks, "
                       "from 1 to %u, for instance GASNET_PSHM_NODES=4",
                       text, AQ_SPAWN_MAX_RANKS);
    if (n < 0 || n > AQ_SPAWN_MAX_RANKS)
        return aq_fail(AQ_ERR_ARG, "GASNET_PSHM_NODES=%s: a host can have 1 to %u ranks", text,
                       AQ_SPAWN_MAX_RANKS);
    return n;
}

/* The user's choice of what starts the ranks. */
struct aq_spawn_choice {
    char name[64];    /* the variable */
    const char *text; /* its value; NULL: the user does not say */
    bool pmi;         /* a launcher of the PMI family. mpirun offers PMIx or PMI, so mpi means it */
};

/* AQ_OK or negative, logged. */
static int aq_spawn_choose(const struct aq_conduit_info *conduit, struct aq_spawn_choice *out)
{
    static const char *const pmis[] = { "pmi", "pmix", "mpi" }; /* fork and ssh: gasnetrun's */
    size_t len;

    *out = (struct aq_spawn_choice){ .text = NULL };
    len = (size_t)snprintf(out->name, sizeof(out->name), "GASNET_%s_SPAWNER", conduit->name);
    for (size_t i = 0; i < len && i < sizeof(out->name); i++)
        out->name[i] = (char)toupper((unsigned char)out->name[i]);
    out->text = getenv(out->name);
    if (out->text == NULL) {
        strcpy(out->name, "GASNET_SPAWN_CONTROL");
        out->text = getenv(out->name);
    }
    if (out->text != NULL && *out->text == '\0')
        out->text = NULL;
    if (out->text == NULL || strcasecmp(out->text, "fork") == 0
        || strcasecmp(out->text, "ssh") == 0)
        return AQ_OK;
    for (size_t i = 0; i < sizeof(pmis) / sizeof(pmis[0]); i++)
        out->pmi = out->pmi || strcasecmp(out->text, pmis[i]) == 0;
    return out->pmi ? AQ_OK
                    : aq_fail(AQ_ERR_ARG, "%s=%s is none of fork, ssh, pmi, pmix and mpi",
                              out->name, out->text);
}

static bool aq_spawn_allows(const struct aq_spawn_choice *choice, const struct aq_spawn_provider *p)
{
    return choice->text == NULL || choice->pmi == (p != &aq_spawn_fork_provider);
}

/* Prints a hint: this is one process where the user may have meant several. */
static void aq_spawn_hint_single(void)
{
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS"), *task = getenv("SLURM_PROCID");

    if (tasks != NULL && atoi(tasks) > 1 && task != NULL) {
        if (strcmp(task, "0") == 0) /* the others would print the same */
            aq_warn(
                "srun has started %s tasks but offers no PMIx, so each is a job of its own; use "
                "srun --mpi=pmix, or gasnetrun within salloc or sbatch",
                tasks);
    } else if (isatty(STDERR_FILENO))
        aq_notice("one rank; for more, start it as: gasnetrun -n 4 PROGRAM, or set "
                  "GASNET_PSHM_NODES=4");
}

static int aq_spawn_start(struct aq_spawn_state *st, int *argc, char ***argv,
                          const struct aq_conduit_info *conduit)
{
    struct aq_spawn_choice choice;
    int64_t wanted;

    if (aq_spawn_choose(conduit, &choice) != AQ_OK)
        return AQ_ERR_ARG;
    for (size_t i = 0; i < sizeof(aq_spawn_providers) / sizeof(aq_spawn_providers[0]); i++) {
        st->provider = aq_spawn_providers[i];
        if (aq_spawn_allows(&choice, st->provider) && st->provider->offered())
            return st->provider->join(st);
    }
    if (choice.pmi)
        return aq_fail(AQ_ERR_ARG,
                       "%s=%s, but no launcher offers PMI or PMIx to this process; start it by "
                       "mpirun, srun --mpi=pmix or gasnetrun -spawner=pmi, or unset the variable",
                       choice.name, choice.text);
    /* GASNET_PSHM_NODES may be there for other programs */
    wanted = aq_spawn_console_is_asked(conduit, argc, argv) ? 0 : aq_spawn_wanted();
    if (wanted < 0)
        return (int)wanted;
    if (wanted >= 1) {
        st->provider = &aq_spawn_fork_provider;
        return aq_spawn_fork_self(st, (uint32_t)wanted);
    }
    if (conduit->starts_itself) {
        st->provider = &aq_spawn_fork_provider;
        return aq_spawn_console(st, conduit, argc, argv);
    }
    aq_spawn_hint_single();
    st->provider = &aq_spawn_single_provider;
    return st->provider->join(st);
}

/* Reading a dozen cgroup files in each of many ranks would prolong the start-up, so the ranks of a
 * host share the result. Two ranks that read at the same time get the same result. */
struct aq_host_facts aq_spawn_host_facts(void)
{
    static const char *const names[] = { "physical memory", "the cgroup's memory limit" };
    struct aq_jobarea *jobarea = aq_spawn_me.jobarea;
    struct aq_host_facts facts;

    /* acquire: pairs with the release below */
    facts.memory = atomic_load_explicit(&jobarea->memory, memory_order_acquire);
    if (facts.memory == 0) {
        facts.memory = aq_memory_available(&facts.memory_is);
        atomic_store_explicit(&jobarea->memory_is_limited, strcmp(facts.memory_is, names[0]) != 0,
                              memory_order_relaxed);
        atomic_store_explicit(&jobarea->cores_quota, aq_cores_quota(), memory_order_relaxed);
        atomic_store_explicit(&jobarea->memory, facts.memory, memory_order_release);
    }
    facts.memory_is =
        names[atomic_load_explicit(&jobarea->memory_is_limited, memory_order_relaxed)];
    facts.cores_quota = atomic_load_explicit(&jobarea->cores_quota, memory_order_relaxed);
    return facts;
}

int aq_spawn_init(int *argc, char ***argv, const struct aq_conduit_info *conduit,
                  const struct aq_spawn_provider *own)
{
    static char line[BUFSIZ];
    struct aq_spawn_state *st = &aq_spawn_me;
    unsigned cores;
    int rc;

    aq_supervise_standard_fds();
    for (int i = 0; i < AQ_JOBAREA_HOST_FDS; i++)
        st->host_fd[i] = -1;
    st->provider = own;
    rc = own != NULL ? own->join(st) : aq_spawn_start(st, argc, argv, conduit);
    if (rc != AQ_OK) {
        st->provider = NULL;
        return rc;
    }
    st->info.provider = st->provider->name;
    cores = aq_spawn_host_facts().cores_quota;
    if (cores > aq_cores_allowed())
        cores = aq_cores_allowed();
    st->spin = st->info.host_size <= cores;
    aq_log_set_rank(st->info.rank);
    /* libc's default would cut lines of several ranks at buffer boundaries. With line buffering
     * each line is one write, stays whole in pipes and files, costs nothing on a terminal, and
     * needs no process in between. The buffer is this library's, since under some MPIs stdout has
     * one of a single byte */
    if (st->info.size > 1 && !aq_spawn_has_buffer) {
        setvbuf(stdout, line, _IOLBF, sizeof(line));
        aq_spawn_has_buffer = true;
    }
    return AQ_OK;
}

/* A barrier fails only when the job shuts down. The process that shuts it down has reported why,
 * and will end this one too, so no second message is printed. */
static int aq_spawn_jobarea_barrier(struct aq_spawn_state *st)
{
    aq_jobarea_note_wait(st->jobarea, st->info.host_rank, AQ_WAIT_START, AQ_WAIT_ANYONE);
    if (aq_jobarea_barrier(st->jobarea, st->spin) != 0)
        for (;;)
            pause();
    aq_jobarea_note_done(st->jobarea, st->info.host_rank);
    return AQ_OK;
}

int aq_spawn_host_fence(void)
{
    return aq_spawn_jobarea_barrier(&aq_spawn_me);
}

/* One round: every rank has at most len bytes in its place. Two places alternate, so that one
 * barrier for each round is enough: no rank can be two rounds ahead of a reader. */
static char *aq_spawn_round(struct aq_spawn_state *st)
{
    char *base = aq_jobarea_local_exchange(st->jobarea);

    if ((st->parity++ & 1) != 0)
        base += (size_t)st->jobarea->size * AQ_JOBAREA_CHUNK;
    return base;
}

int aq_spawn_host_allgather(const void *own_data, size_t len, void *all)
{
    struct aq_spawn_state *st = &aq_spawn_me;
    uint32_t size = st->jobarea->size;

    for (size_t done = 0; done < len; done += AQ_JOBAREA_CHUNK) {
        size_t now = len - done < AQ_JOBAREA_CHUNK ? len - done : AQ_JOBAREA_CHUNK;
        char *base = aq_spawn_round(st);

        /* packed without gaps, so that short exchanges touch few pages */
        memcpy(base + st->info.host_rank * now, (const char *)own_data + done, now);
        if (aq_spawn_jobarea_barrier(st) != AQ_OK)
            return AQ_ERR_SYS;
        for (uint32_t i = 0; i < size; i++)
            memcpy((char *)all + i * len + done, base + i * now, now);
    }
    return AQ_OK;
}

int aq_spawn_allgather(const void *own_data, size_t len, void *all)
{
    struct aq_spawn_state *st = &aq_spawn_me;

    if (len == 0)
        return AQ_OK;
    if (st->info.host_count > 1)
        return st->provider->allgather(st, own_data, len, all);
    return aq_spawn_host_allgather(own_data, len, all);
}

int aq_spawn_host_bcast(void *buf, size_t len, uint32_t host_root)
{
    struct aq_spawn_state *st = &aq_spawn_me;
    size_t space = (size_t)st->jobarea->size * AQ_JOBAREA_CHUNK;

    for (size_t done = 0; done < len; done += space) {
        size_t now = len - done < space ? len - done : space;
        char *base = aq_spawn_round(st);

        if (st->info.host_rank == host_root)
            memcpy(base, (char *)buf + done, now);
        if (aq_spawn_jobarea_barrier(st) != AQ_OK)
            return AQ_ERR_SYS;
        memcpy((char *)buf + done, base, now);
    }
    return AQ_OK;
}

int aq_spawn_bcast(void *buf, size_t len, uint32_t root)
{
    struct aq_spawn_state *st = &aq_spawn_me;

    if (st->info.host_count > 1)
        return st->provider->bcast(st, buf, len, root);
    return aq_spawn_host_bcast(buf, len, root);
}

int aq_spawn_fence(void)
{
    struct aq_spawn_state *st = &aq_spawn_me;
    char byte = 0, *all;
    int rc;

    if (st->info.host_count == 1)
        return aq_spawn_jobarea_barrier(st);
    if (st->provider->fence != NULL)
        return st->provider->fence(st);
    all = malloc(st->info.size);
    if (all == NULL)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory for %u bytes", st->info.size);
    rc = st->provider->allgather(st, &byte, 1, all);
    free(all);
    return rc;
}

/* names cannot clash: the key is random, and each slot is used once */
static void aq_spawn_fd_name(const struct aq_spawn_state *st, int slot, char name[AQ_SOCKET_NAME])
{
    aq_socket_name(name, st->jobarea->key, "host descriptor", (uint32_t)slot);
}

/* the host's first rank makes the memfd and passes it to the others */
static int aq_spawn_give_fd(struct aq_spawn_state *st, int slot, unsigned flags)
{
    char name[AQ_SOCKET_NAME], title[32];
    uint32_t takers = st->info.host_size - 1;
    int fd, sock, error = 0, rc;

    snprintf(title, sizeof(title), "aq-host-%d", slot);
    fd = memfd_create(title, flags | MFD_CLOEXEC);
    if (fd < 0)
        error = errno;
    if (takers == 0)
        return fd >= 0 ? fd : -error;
    aq_spawn_fd_name(st, slot, name);
    sock = aq_fdpass_listen(name, takers);
    /* the others connect after this; without a socket they fail, and so does this rank */
    if (aq_spawn_jobarea_barrier(st) != AQ_OK || sock < 0) {
        rc = sock < 0 ? sock : -ESHUTDOWN;
    } else {
        rc = aq_fdpass_give(sock, takers, st->jobarea->key, &fd, fd >= 0 ? 1 : 0, error,
                            AQ_SPAWN_PASS_MS);
    }
    if (sock >= 0)
        close(sock);
    if (rc == 0 && fd >= 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return rc != 0 ? rc : -error;
}

int aq_spawn_host_fd(int slot, unsigned memfd_flags)
{
    struct aq_spawn_state *st = &aq_spawn_me;
    char name[AQ_SOCKET_NAME];
    int fd, rc;

    if (slot < 0 || slot >= AQ_JOBAREA_HOST_FDS)
        return -EINVAL;
    if (memfd_flags == 0 && st->host_fd[slot] >= 0) {
        fd = st->host_fd[slot];
        st->host_fd[slot] = -1; /* belongs to the caller now */
        return fd;
    }
    if (st->info.host_rank == 0)
        return aq_spawn_give_fd(st, slot, memfd_flags);
    if (aq_spawn_jobarea_barrier(st) != AQ_OK)
        return -ESHUTDOWN;
    aq_spawn_fd_name(st, slot, name);
    rc = aq_fdpass_take(name, st->jobarea->key, &fd, 1, AQ_SPAWN_PASS_MS);
    return rc == 0 ? fd : rc;
}

const uint8_t *aq_spawn_key(void)
{
    return aq_spawn_me.job_key;
}

/* Each host has one copy of all addresses; ranks have none of their own. */
static int aq_spawn_map_addrs(struct aq_spawn_state *st, size_t len)
{
    const size_t bytes = len * st->info.size;
    const int fd = aq_spawn_host_fd(AQ_SPAWN_FD_ADDRS, 0);
    int rc = AQ_OK;

    if (fd < 0)
        return aq_fail(AQ_ERR_SYS, "spawn: no shared file for the ranks' addresses: %s",
                       strerror(-fd));
    if (st->info.host_rank == 0 && ftruncate(fd, (off_t)bytes) != 0)
        rc = aq_fail(AQ_ERR_SYS, "spawn: no %zu bytes for the ranks' addresses: %s", bytes,
                     strerror(errno));
    if (aq_spawn_host_fence() != AQ_OK)
        rc = AQ_ERR_SYS;
    if (rc == AQ_OK) {
        st->addrs = mmap(NULL, bytes, st->info.host_rank == 0 ? PROT_READ | PROT_WRITE : PROT_READ,
                         MAP_SHARED, fd, 0);
        if (st->addrs == MAP_FAILED)
            rc = aq_fail(AQ_ERR_SYS, "spawn: cannot map the ranks' addresses: %s", strerror(errno));
    }
    close(fd);
    return rc;
}

int aq_spawn_publish(const void *address, size_t len)
{
    struct aq_spawn_state *st = &aq_spawn_me;
    const size_t bytes = len * st->info.size;
    void *all;
    int rc;

    if (len == 0 || len > AQ_SPAWN_ADDR_MAX)
        return aq_fail(AQ_ERR_ARG, "spawn: an address of %zu bytes; 1 to %u are possible", len,
                       AQ_SPAWN_ADDR_MAX);
    st->addr_len = len;
    if (st->provider->publish != NULL && st->info.host_count > 1)
        return st->provider->publish(st, address, len);
    rc = aq_spawn_map_addrs(st, len);
    if (rc != AQ_OK)
        return rc;
    /* for a moment each rank holds all addresses, in pages that go back to the kernel */
    all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return aq_fail(AQ_ERR_NOMEM, "spawn: no memory for %u addresses", st->info.size);
    rc = aq_spawn_allgather(address, len, all);
    if (rc == AQ_OK && st->info.host_rank == 0)
        memcpy(st->addrs, all, bytes);
    munmap(all, bytes);
    return rc == AQ_OK ? aq_spawn_host_fence() : rc;
}

int aq_spawn_lookup(uint32_t rank, void *addr_out, size_t len)
{
    struct aq_spawn_state *st = &aq_spawn_me;

    if (rank >= st->info.size || len != st->addr_len)
        return aq_fail(AQ_ERR_ARG, "spawn: no address of %zu bytes of rank %u; addresses have %zu",
                       len, rank, st->addr_len);
    if (st->provider->lookup != NULL && st->info.host_count > 1)
        return st->provider->lookup(st, rank, addr_out, len);
    memcpy(addr_out, st->addrs + rank * len, len);
    return AQ_OK;
}

void aq_spawn_notify(void)
{
    if (aq_spawn_me.provider != NULL)
        aq_spawn_me.provider->notify(&aq_spawn_me);
}

int aq_spawn_shutdown(int code, enum aq_shutdown_mode how)
{
    if (aq_spawn_me.provider == NULL)
        return code;
    return aq_spawn_me.provider->finish(&aq_spawn_me, code, how);
}

bool aq_spawn_can_end(void)
{
    return aq_spawn_me.provider != NULL && aq_spawn_me.provider->fini != NULL;
}

int aq_spawn_disconnect(void)
{
    struct aq_spawn_state *st = &aq_spawn_me;
    const int rc = st->provider->gather(st);

    if (rc == AQ_OK)
        st->provider->disconnect(st);
    return rc;
}

void aq_spawn_fini(void)
{
    struct aq_spawn_state *st = &aq_spawn_me;

    st->provider->fini(st);
    if (st->addrs != NULL)
        munmap(st->addrs, st->addr_len * st->info.size);
    for (int i = 0; i < AQ_JOBAREA_HOST_FDS; i++)
        if (st->host_fd[i] >= 0)
            close(st->host_fd[i]);
    free(st->host_ranks);
    free(st->host_of);
    aq_jobarea_set_meanwhile(NULL);
    aq_jobarea_unmap(st->jobarea);
    st->provider = NULL;
    st->jobarea = NULL;
}
