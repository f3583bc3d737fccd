/*
 * aq_shm_segment.c - the segments of a host: one memory file, mapped whole by every rank.
 *
 * One mapping for all segments costs one system call however many ranks there are, and the
 * distance between a neighbour's addresses and ours is one subtraction. Nothing is touched:
 * pages come into being where and when the client first writes to them.
 *
 * Uses      other/spawn (memory file, exchange). SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/aq_env.h"
#include "core/aq_job.h"
#include "core/aq_log.h"
#include "core/aq_rc.h"
#include "other/shm/aq_shm.h"
#include "other/spawn/aq_spawn.h"

#define AQ_SHM_FD_SEGMENTS 1 /* slots of aq_spawn_host_fd() */
#define AQ_SHM_FD_HUGE 2

/* What each rank tells the others about its segment. */
struct aq_shm_wish {
    uint64_t size;
    uint64_t huge_free; /* bytes in reserved huge pages that are free */
};

/* Reserved huge pages are rare; transparent ones are asked for below. */
static uint64_t aq_shm_huge_free(void)
{
    unsigned long long pages = 0, kilobytes = 0;
    char line[128];
    FILE *file;

    if (!aq_env_bool(AQ_ENV_USE_HUGEPAGES) || (file = fopen("/proc/meminfo", "re")) == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "HugePages_Free: %llu", &pages) != 1)
            sscanf(line, "Hugepagesize: %llu", &kilobytes);
    fclose(file);
    return kilobytes == AQ_HUGE_PAGE / 1024 ? pages * AQ_HUGE_PAGE : 0;
}

/* Where each local rank's segment begins in the file; returns the file's size. */
static uint64_t aq_shm_lay_out(const struct aq_shm_wish *all, uint64_t *offset)
{
    uint64_t at = 0;

    for (uint32_t local = 0; local < aq_shm.size; local++) {
        const uint64_t size = all[aq_shm.jobrank_of[local]].size;

        if (size >= AQ_HUGE_PAGE) /* huge pages need aligned beginnings */
            at = aq_round_up(at, AQ_HUGE_PAGE);
        offset[local] = at;
        at += size;
    }
    return aq_round_up(at, AQ_HUGE_PAGE);
}

/* The file, sized by the first rank of the host. Reserved huge pages if there are enough. */
static int aq_shm_segment_file(uint64_t bytes, uint64_t huge_free, int *fd_out)
{
    int fd = -1, sized = 0;

    if (huge_free >= bytes)
        fd = aq_spawn_host_fd(AQ_SHM_FD_HUGE, MFD_HUGETLB);
    if (fd < 0)
        fd = aq_spawn_host_fd(AQ_SHM_FD_SEGMENTS, 0);
    if (fd < 0)
        return aq_fail(AQ_ERR_SYS, "the ranks of this host could not share a memory file: %s",
                       strerror(-fd));
    if (aq_shm.me == 0)
        sized = ftruncate(fd, (off_t)bytes);
    if (sized != 0) {
        close(fd);
        return aq_fail(AQ_ERR_SYS, "cannot size the segments of this host to %.1f MB: %s",
                       (double)bytes / 1048576, strerror(errno));
    }
    *fd_out = fd;
    return AQ_OK;
}

static int aq_shm_map_segments(int fd, uint64_t bytes, void **base_out)
{
    char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

    if (base == MAP_FAILED)
        return aq_fail(AQ_ERR_SYS, "cannot map the %.1f MB of segments of this host: %s; look at "
                       "ulimit -v, or ask for less with GASNET_MAX_SEGSIZE",
                       (double)bytes / 1048576, strerror(errno));
    if (aq_env_bool(AQ_ENV_USE_HUGEPAGES))
        madvise(base, bytes, MADV_HUGEPAGE); /* where the kernel offers them for shared memory */
    /* a child of the client has no part in the job and must not write to it */
    madvise(base, bytes, MADV_DONTFORK);
    *base_out = base;
    return AQ_OK;
}

static int aq_shm_check_limits(uint64_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
        return aq_fail(AQ_ERR_RESOURCE, "segments of %.1f MB on this host exceed the file size limit "
                       "of %.1f MB; raise it with: ulimit -f unlimited", (double)bytes / 1048576,
                       (double)limit.rlim_cur / 1048576);
    return AQ_OK;
}

/* Everybody tells where its segment begins; the same file is mapped everywhere, at an address
 * of each rank's own. */
static int aq_shm_exchange_bases(char *base, const uint64_t *offset, const struct aq_shm_wish *all)
{
    void **bases = malloc(aq_job.size * sizeof(*bases));
    void *mine = base + offset[aq_shm.me];
    int rc = bases == NULL ? AQ_ERR_NOMEM : aq_spawn_allgather(&mine, sizeof(mine), bases);

    for (gex_Rank_t rank = 0; rc == AQ_OK && rank < aq_job.size; rank++)
        aq_job.bound[rank] = (struct aq_bound){ bases[rank], all[rank].size };
    for (uint32_t local = 0; rc == AQ_OK && local < aq_shm.size; local++) {
        const gex_Rank_t rank = aq_shm.jobrank_of[local];

        aq_job.map[rank] = (intptr_t)((uintptr_t)(base + offset[local])
                                      - (uintptr_t)bases[rank]);
    }
    free(bases);
    return rc;
}

int aq_shm_segment_attach(uintptr_t size, void **base_out)
{
    struct aq_shm_wish mine = { size, aq_shm_huge_free() };
    struct aq_shm_wish *all = malloc(aq_job.size * sizeof(*all));
    uint64_t *offset = malloc(aq_shm.size * sizeof(*offset));
    void *base = NULL;
    uint64_t bytes;
    int fd = -1, rc = AQ_ERR_NOMEM;

    if (all == NULL || offset == NULL)
        goto free_tables;
    rc = aq_spawn_allgather(&mine, sizeof(mine), all);
    if (rc != AQ_OK)
        goto free_tables;
    bytes = aq_shm_lay_out(all, offset);
    rc = aq_shm_check_limits(bytes);
    if (rc == AQ_OK)
        rc = aq_shm_segment_file(bytes, all[aq_shm.jobrank_of[0]].huge_free, &fd);
    if (rc != AQ_OK)
        goto free_tables;
    rc = aq_shm_map_segments(fd, bytes, &base);
    close(fd);
    if (rc == AQ_OK)
        rc = aq_shm_exchange_bases(base, offset, all);
    if (rc == AQ_OK)
        *base_out = (char *)base + offset[aq_shm.me];
free_tables:
    free(offset);
    free(all);
    return rc;
}
