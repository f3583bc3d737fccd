/*
 * aq_shm_cma.c - single copies between the private memories of two processes.
 *
 * process_vm_readv and process_vm_writev need a permission that containers often refuse, so it is
 * tested on real data: every rank keeps a word in its private memory and publishes its address in
 * the arena. Every rank tests its neighbour at start. If one is refused, no rank uses the calls for
 * large collectives, nor, in segment everything, for anything else. In the other configurations
 * transfers need the calls only for segments that were bound to an endpoint, not attached: a rank
 * tests a peer at its first transfer to one of those, or when the segment is published, and
 * remembers the result.
 *
 * Owns      the result for each peer, a byte, allocated at the first such transfer
 * Threads   any; two that test a peer at once get the same result
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "conduits/smp/aq_shm.h"
#include "other/spawn/aq_spawn.h"

#define AQ_CMA_OFF        1  /* index of "off" among the choices of AQ_SHM_CMA */
#define AQ_CMA_SHUTDOWN_S 10 /* for the job to end after a rank's process has */

enum aq_cma_reach { AQ_CMA_UNTRIED, AQ_CMA_REACHED, AQ_CMA_REFUSED };

static struct {
    bool settled;                     /* the result is the same for every peer */
    _Atomic(_Atomic uint8_t *) reach; /* [size] enum aq_cma_reach */
} aq_cma AQ_JOB_STATE;

static bool aq_shm_cma_works_by(const struct aq_shm_control *peer, int task)
{
    uint64_t word = 0;
    struct iovec local_mem = { &word, sizeof(word) };
    struct iovec remote_mem = { (void *)(uintptr_t)peer->probe_addr, sizeof(word) };

    return process_vm_readv(task, &local_mem, 1, &remote_mem, 1, 0) == (ssize_t)sizeof(word)
           && word == peer->probe_word
           && process_vm_writev(task, &local_mem, 1, &remote_mem, 1, 0) == (ssize_t)sizeof(word);
}

/* The thread by which the kernel found the memory of the process has ended, as the first one does
 * by pthread_exit. Looks for another. Returns false if the process has none: it has ended. */
static bool aq_shm_cma_find_task(struct aq_shm_control *peer)
{
    const struct dirent *entry;
    char path[32];
    DIR *tasks;
    bool found = false;

    snprintf(path, sizeof(path), "/proc/%d/task", peer->pid);
    tasks = opendir(path);
    while (tasks != NULL && !found && (entry = readdir(tasks)) != NULL) {
        const int task = atoi(entry->d_name); /* 0: no thread */

        found = task != 0 && aq_shm_cma_works_by(peer, task);
        if (found) /* relaxed, here and below: any thread will do */
            atomic_store_explicit(&peer->task, task, memory_order_relaxed);
    }
    if (tasks != NULL)
        closedir(tasks);
    return found;
}

static bool aq_shm_cma_works(uint32_t local)
{
    struct aq_shm_control *peer = aq_shm_control(local);

    return aq_shm_cma_works_by(peer, atomic_load_explicit(&peer->task, memory_order_relaxed))
           || (errno == ESRCH && aq_shm_cma_find_task(peer));
}

void aq_shm_cma_announce(void)
{
    static uint64_t probe;
    struct aq_shm_control *self = aq_shm.self;

    probe = UINT64_C(0x9E3779B97F4A7C15) * (aq_shm.me + 1);
    self->pid = (int32_t)getpid();
    atomic_store_explicit(&self->task, self->pid, memory_order_relaxed); /* a barrier follows */
    self->probe_addr = (uint64_t)(uintptr_t)&probe;
    self->probe_word = probe;
    if (aq_env_choice(AQ_ENV_AQ_SHM_CMA) != AQ_CMA_OFF)
        aq_shm_cma_allow(NULL, 0);
}

int aq_shm_cma_allow(void *addr, uintptr_t size)
{
    /* the permission covers the whole process */
    (void)addr, (void)size;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* needed where Yama restricts ptrace */
    return AQ_OK;
}

/* Returns the table of results, or NULL without memory. */
static _Atomic uint8_t *aq_shm_cma_table(void)
{
    /* acquire: pairs with the release below; the table is all zeros */
    _Atomic uint8_t *table = atomic_load_explicit(&aq_cma.reach, memory_order_acquire),
                    *other = NULL;

    if (table != NULL)
        return table;
    table = calloc(aq_shm.size, sizeof(*table));
    if (table == NULL)
        return NULL;
    if (!atomic_compare_exchange_strong_explicit(&aq_cma.reach, &other, table, memory_order_acq_rel,
                                                 memory_order_acquire)) {
        free(table); /* another thread has stored its table first */
        table = other;
    }
    return table;
}

bool aq_shm_cma_reaches(uint32_t local)
{
    _Atomic uint8_t *table;
    uint8_t reach;

    if (aq_cma.settled)
        return aq_shm_cma_is_allowed();
    table = aq_shm_cma_table();
    if (table == NULL)
        return false;
    /* relaxed: the result needs no other data */
    reach = atomic_load_explicit(&table[local], memory_order_relaxed);
    if (reach == AQ_CMA_UNTRIED) {
        reach = aq_env_choice(AQ_ENV_AQ_SHM_CMA) != AQ_CMA_OFF && aq_shm_cma_works(local)
                    ? AQ_CMA_REACHED
                    : AQ_CMA_REFUSED;
        atomic_store_explicit(&table[local], reach, memory_order_relaxed);
    }
    return reach == AQ_CMA_REACHED;
}

bool aq_shm_cma_has_reached(uint32_t local)
{
    _Atomic uint8_t *table;

    if (aq_cma.settled)
        return aq_shm_cma_is_allowed();
    /* acquire: pairs with the release in aq_shm_cma_table() */
    table = atomic_load_explicit(&aq_cma.reach, memory_order_acquire);
    /* relaxed: the result needs no other data */
    return table != NULL
           && atomic_load_explicit(&table[local], memory_order_relaxed) == AQ_CMA_REACHED;
}

int aq_shm_cma_init(void)
{
    /* relaxed: a fence, or the start-up barrier, orders the store before any test of it */
    if (aq_env_choice(AQ_ENV_AQ_SHM_CMA) == AQ_CMA_OFF
        || !aq_shm_cma_works((aq_shm.me + 1) % aq_shm.size))
        atomic_store_explicit(&aq_shm_common()->cma_refused, 1, memory_order_relaxed);
#if GASNET_SEGMENT_EVERYTHING
    if (aq_spawn_host_fence() != AQ_OK)
        return AQ_ERR_SYS;
    aq_cma.settled = true;
#endif
    return AQ_OK;
}

/* The process of the other rank has ended. What watches it ends the job within this time, and says
 * why. */
static _Noreturn void aq_shm_cma_shutdown(uint32_t local, const char *access, size_t nbytes)
{
    for (unsigned left = AQ_CMA_SHUTDOWN_S; left > 0;)
        left = sleep(left); /* a signal ends it early */
    aq_fatal("cannot %s %zu bytes of rank %u: its process has ended", access, nbytes,
             aq_shm.jobrank_of[local]);
}

/* Copies in either direction. The kernel may stop early; the copy then continues at that point. */
static void aq_shm_cma_copy(uint32_t local, char *local_mem, char *remote_mem, size_t nbytes,
                            bool writing)
{
    struct aq_shm_control *peer = aq_shm_control(local);
    const char *access = writing ? "write" : "read";

    while (nbytes > 0) {
        struct iovec local_iov = { local_mem, nbytes }, remote_iov = { remote_mem, nbytes };
        const int task = atomic_load_explicit(&peer->task, memory_order_relaxed); /* as above */
        ssize_t moved = writing ? process_vm_writev(task, &local_iov, 1, &remote_iov, 1, 0)
                                : process_vm_readv(task, &local_iov, 1, &remote_iov, 1, 0);

        if (moved < 0 && errno == ESRCH) {
            if (aq_shm_cma_find_task(peer))
                continue;
            aq_shm_cma_shutdown(local, access, nbytes);
        }
        if (moved <= 0)
            aq_fatal("cannot %s %zu bytes at %p of rank %u: %s; the range must be ordinary memory, "
                     "mapped there for as long as the transfer lasts, and the processes must not "
                     "give up the right to read each other's memory (AQ_SHM_CMA=off does without)",
                     access, nbytes, (void *)remote_mem, aq_shm.jobrank_of[local], strerror(errno));
        local_mem += moved;
        remote_mem += moved;
        nbytes -= (size_t)moved;
    }
}

void aq_shm_cma_write(uint32_t local, void *dest, const void *src, size_t nbytes)
{
    aq_shm_cma_copy(local, (char *)(uintptr_t)src, dest, nbytes, true);
}

void aq_shm_cma_read(uint32_t local, void *dest, const void *src, size_t nbytes)
{
    aq_shm_cma_copy(local, dest, (char *)(uintptr_t)src, nbytes, false);
}

void aq_shm_cma_fini(void)
{
    /* relaxed: no other thread is in the library */
    free((void *)atomic_load_explicit(&aq_cma.reach, memory_order_relaxed));
}
