/*
 * aq_shm_cma.c - single copies between the private memories of two processes.
 *
 * process_vm_readv and process_vm_writev need a permission that containers often refuse, so it
 * is tried once at start on real data, by every rank on its neighbour; if one rank is refused,
 * none uses it. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/aq_env.h"
#include "core/aq_log.h"
#include "core/aq_rc.h"
#include "other/shm/aq_shm.h"
#include "other/spawn/aq_spawn.h"

#define AQ_CMA_OFF 1 /* index of "off" in the words of AQ_SHM_CMA */

static bool aq_shm_cma_works(void)
{
    const struct aq_shm_control *next = aq_shm_control((aq_shm.me + 1) % aq_shm.size);
    uint64_t word = 0;
    struct iovec here = { &word, sizeof(word) };
    struct iovec there = { (void *)(uintptr_t)next->probe_addr, sizeof(word) };

    return process_vm_readv(next->pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof(word)
           && word == next->probe_word
           && process_vm_writev(next->pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof(word);
}

int aq_shm_cma_init(void)
{
    static uint64_t probe;
    struct aq_shm_control *mine = aq_shm.mine;

    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* where only that allows it */
    probe = UINT64_C(0x9E3779B97F4A7C15) * (aq_shm.me + 1);
    mine->pid = (int32_t)getpid();
    mine->probe_addr = (uint64_t)(uintptr_t)&probe;
    mine->probe_word = probe;
    if (aq_spawn_host_fence() != AQ_OK)
        return AQ_ERR_SYS;
    if (aq_env_choice(AQ_ENV_AQ_SHM_CMA) == AQ_CMA_OFF || !aq_shm_cma_works())
        atomic_store_explicit(&aq_shm_common()->cma_refused, 1, memory_order_relaxed);
    if (aq_spawn_host_fence() != AQ_OK) /* orders the store above before the look below */
        return AQ_ERR_SYS;
    aq_shm.cma = atomic_load_explicit(&aq_shm_common()->cma_refused, memory_order_relaxed) == 0;
    return AQ_OK;
}

/* Both directions: the kernel may stop early, and then goes on where it stopped. */
static void aq_shm_cma_copy(uint32_t local, char *here, char *there, size_t nbytes, bool writing)
{
    const int pid = aq_shm_control(local)->pid;

    while (nbytes > 0) {
        struct iovec local_part = { here, nbytes }, remote_part = { there, nbytes };
        ssize_t moved = writing ? process_vm_writev(pid, &local_part, 1, &remote_part, 1, 0)
                                : process_vm_readv(pid, &local_part, 1, &remote_part, 1, 0);

        if (moved <= 0)
            aq_fatal("cannot %s %zu bytes at %p of rank %u: %s; the range must be mapped there for "
                     "as long as the transfer lasts", writing ? "write" : "read", nbytes,
                     (void *)there, aq_shm.jobrank_of[local], strerror(errno));
        here += moved;
        there += moved;
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
