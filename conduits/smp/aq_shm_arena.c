/*
 * aq_shm_arena.c - the arena: memory that all ranks of a neighborhood map.
 *
 * One memfd holds the arenas of all neighborhoods of a host, each at its own offset. A page is
 * allocated when it is first touched, so a pair of ranks that never communicate costs one byte.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "conduits/smp/aq_shm.h"
#include "conduits/smp/aq_shm_coll_area.h"
#include "conduits/smp/aq_shm_ring.h"
#include "other/spawn/aq_spawn.h"

#define AQ_SHM_FD_ARENA 0 /* slot of aq_spawn_host_fd() */
#define AQ_SHM_FEW      8 /* ranks whose slots a poll looks at one after the other */

struct aq_shm aq_shm AQ_JOB_STATE;

/* Marks spare a poll the looks at most sources, and cost a message a store to a line that all
 * senders to its receiver share: for ranks that take turns on few cores. Equal on all ranks. */
static uint32_t aq_shm_mark_bytes(uint32_t ranks)
{
    return ranks > AQ_SHM_FEW && aq_job.oversubscribed ? (uint32_t)aq_round_up(ranks, AQ_SHM_PAIR)
                                                       : 0;
}

/* Fewer slots with many pairs: an all-to-all exchange touches every ring. */
static uint32_t aq_shm_slots(uint32_t ranks)
{
    return ranks <= 16 ? 64 : ranks <= 64 ? 32 : 16;
}

static void aq_shm_plan(uint32_t ranks, uint32_t depth, struct aq_shm_layout *layout)
{
    const size_t page = AQ_PAGE_SIZE;
    uint64_t at = aq_round_up(sizeof(struct aq_shm_common), page);

    layout->slots = aq_shm_slots(ranks);
    layout->ring_bytes = aq_round_up(
        sizeof(struct aq_shm_ring)
            + layout->slots
                  * (sizeof(struct aq_shm_slot) + AQ_CHANNELS * sizeof(struct aq_shm_more)),
        AQ_SHM_PAIR);
    aq_shm_pool_plan(ranks, depth, &layout->pool);

    layout->control = at;
    at += aq_round_up(ranks * sizeof(struct aq_shm_control), page);
    layout->hello = at;
    at += aq_round_up((size_t)ranks * ranks, page);
    layout->mark_bytes = aq_shm_mark_bytes(ranks);
    layout->marks = at;
    at += aq_round_up((size_t)ranks * AQ_CHANNELS * layout->mark_bytes, page);
    layout->arrived = at;
    at += aq_round_up(ranks * sizeof(uint64_t), page);
    layout->named = at;
    at += aq_round_up(2 * ranks * sizeof(uint64_t), page);
    at = aq_round_up(aq_shm_area_plan(ranks, at, layout), page);
    layout->rings = at;
    at += aq_round_up((uint64_t)ranks * ranks * layout->ring_bytes, page);
    layout->pools = at;
    at += (uint64_t)ranks * AQ_CHANNELS * layout->pool.channel_bytes;
    layout->bytes = aq_round_up(at, page);
}

/* Maximum bytes of an arena of this host, and the number of arenas. The last neighborhood may be
 * smaller than the others and its arena larger: fewer ranks have more slots. */
static uint64_t aq_shm_stride(uint32_t depth, uint32_t *count_out)
{
    const uint32_t rest = aq_job.host_size % aq_job.nbrhd_max;
    struct aq_shm_layout whole, last;

    aq_shm_plan(aq_job.nbrhd_max, depth, &whole);
    aq_shm_plan(rest != 0 ? rest : aq_job.nbrhd_max, depth, &last);
    *count_out = aq_job.host_size / aq_job.nbrhd_max + (rest != 0);
    return whole.bytes > last.bytes ? whole.bytes : last.bytes;
}

/* Reports a lack of memory at start-up. Otherwise the kernel would end a rank in the middle of a
 * run by SIGBUS or SIGXFSZ. */
static int aq_shm_check_memory(uint64_t bytes)
{
    const struct aq_host_facts facts = aq_spawn_host_facts();
    const uint64_t max = aq_file_size_max();

    if (bytes > facts.memory / 2)
        return aq_fail(AQ_ERR_RESOURCE,
                       "the message queues of %u ranks can take %.0f MB, more than "
                       "half of %s (%.0f MB); start fewer ranks on this host or lower "
                       "GASNET_PSHM_NETWORK_DEPTH",
                       aq_job.host_size, (double)bytes / 1048576, facts.memory_is,
                       (double)facts.memory / 1048576);
    if (max < bytes)
        return aq_fail(AQ_ERR_RESOURCE,
                       "shared memory of %.0f MB exceeds the file size limit of "
                       "%.0f MB; raise it with: ulimit -f unlimited",
                       (double)bytes / 1048576, (double)max / 1048576);
    return AQ_OK;
}

static int aq_shm_map_arena(int fd, uint64_t stride, uint32_t count)
{
    const uint64_t bytes = aq_shm.layout.bytes;
    void *arena;

    /* each rank sizes the file: none need wait for another before it writes there */
    if (ftruncate(fd, (off_t)(stride * count)) != 0)
        return aq_fail(AQ_ERR_SYS, "cannot size the shared memory of this host to %.0f MB: %s",
                       (double)(stride * count) / 1048576, strerror(errno));
    arena = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
                 (off_t)(stride * aq_job.nbrhd_on_host));
    if (arena == MAP_FAILED)
        return aq_fail(AQ_ERR_SYS,
                       "cannot map %.0f MB of shared memory: %s; see ulimit -v and "
                       "/proc/sys/vm/overcommit_memory",
                       (double)bytes / 1048576, strerror(errno));
    /* a child process of the client must not write to the job's queues */
    madvise(arena, bytes, MADV_DONTFORK);
    aq_shm.arena = arena;
    aq_shm.self = aq_shm_control(aq_shm.me);
    aq_job.sleeping = &aq_shm.self->sleeping;
    aq_job.waiting = &aq_shm.self->waiting;
    return AQ_OK;
}

int aq_shm_init(void)
{
    const int64_t wanted = aq_env_int(AQ_ENV_PSHM_NETWORK_DEPTH);
    const uint32_t depth = wanted < 4                  ? 4
                           : wanted > AQ_SHM_MAX_DEPTH ? AQ_SHM_MAX_DEPTH
                                                       : (uint32_t)wanted;
    uint32_t count;
    uint64_t stride;
    int fd, rc;

    aq_shm.size = aq_job.nbrhd_size;
    aq_shm.me = aq_job.nbrhd_index;
    /* struct of one rank, used as a plain array */
    aq_shm.jobrank_of = (const uint32_t *)aq_job.nbrhd;
    aq_shm_plan(aq_shm.size, depth, &aq_shm.layout);
    stride = aq_shm_stride(depth, &count);
    aq_limits.max_medium = AQ_SHM_MAX_MEDIUM;
    aq_limits.max_long = INT32_MAX;
    aq_limits.host_bytes = stride * count;

    rc = aq_shm_check_memory(aq_limits.host_bytes);
    if (rc != AQ_OK)
        return rc;
    fd = aq_spawn_host_fd(AQ_SHM_FD_ARENA, 0);
    if (fd < 0)
        return aq_fail(AQ_ERR_SYS, "the ranks of this host could not share a memory file: %s",
                       strerror(-fd));
    rc = aq_shm_map_arena(fd, stride, count);
    close(fd);
    if (rc != AQ_OK)
        return rc;
    aq_shm_cma_announce();
    if (aq_spawn_host_fence() != AQ_OK) /* the test needs every rank's word */
        return AQ_ERR_SYS;
    aq_shm_sleep_init();
    rc = aq_shm_pool_init();
    if (rc == AQ_OK)
        rc = aq_shm_ring_init();
    if (rc == AQ_OK)
        rc = aq_shm_cma_init();
#if GASNET_SEGMENT_EVERYTHING
    if (!aq_shm_cma_is_allowed())
        aq_limits.max_long = AQ_SHM_MAX_MEDIUM;
#endif
    return rc;
}

void aq_shm_fini(void)
{
    aq_shm_segment_detach();
    aq_shm_ring_fini();
    aq_shm_pool_fini();
    aq_shm_sleep_fini();
    aq_shm_cma_fini();
    munmap(aq_shm.arena, aq_shm.layout.bytes);
}
