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
    unsigned long long pages = 0, reserved = 0, kilobytes = 0;
    char line[128];
    FILE *file;

    if (!aq_env_bool(AQ_ENV_USE_HUGEPAGES) || (file = fopen("/proc/meminfo", "re")) == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "HugePages_Free: %llu", &pages) != 1
            && sscanf(line, "HugePages_Rsvd: %llu", &reserved) != 1)
            sscanf(line, "Hugepagesize: %llu", &kilobytes);
    fclose(file);
    return kilobytes == AQ_HUGE_PAGE / 1024 && pages > reserved ? (pages - reserved) * AQ_HUGE_PAGE
                                                                 : 0;
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

/* The file, sized by the first rank of the host. */
static int aq_shm_segment_file(uint64_t bytes, bool huge, int *fd_out)
{
    const int fd = huge ? aq_spawn_host_fd(AQ_SHM_FD_HUGE, MFD_HUGETLB)
                        : aq_spawn_host_fd(AQ_SHM_FD_SEGMENTS, 0);

    if (fd < 0)
        return huge ? AQ_ERR_SYS
                    : aq_fail(AQ_ERR_SYS, "the ranks of this host could not share a memory file: %s",
                              strerror(-fd));
    if (aq_shm.me == 0 && ftruncate(fd, (off_t)bytes) != 0) {
        const int error = errno;

        close(fd);
        return huge ? AQ_ERR_SYS
                    : aq_fail(AQ_ERR_SYS, "cannot size the segments of this host to %.1f MB: %s",
                              (double)bytes / 1048576, strerror(error));
    }
    *fd_out = fd;
    return AQ_OK;
}

/* Ordinary pages come when touched. Huge ones are reserved for the file now, by its first mapping:
 * touching one that is not there would be SIGBUS. */
static int aq_shm_map_segments(int fd, uint64_t bytes, bool huge, void **base_out)
{
    char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      huge ? MAP_SHARED : MAP_SHARED | MAP_NORESERVE, fd, 0);

    if (base == MAP_FAILED)
        return huge ? AQ_ERR_SYS
                    : aq_fail(AQ_ERR_SYS, "cannot map the %.1f MB of segments of this host: %s; look at "
                              "ulimit -v, or ask for less with GASNET_MAX_SEGSIZE",
                              (double)bytes / 1048576, strerror(errno));
    if (aq_env_bool(AQ_ENV_USE_HUGEPAGES) && !huge)
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

/* Everybody tells where its segment begins, or NULL; the same file is mapped everywhere, at an
 * address of each rank's own. AQ_RETRY if a rank of this host has none. */
static int aq_shm_exchange_bases(char *base, const uint64_t *offset, const struct aq_shm_wish *all)
{
    void **bases = malloc(aq_job.size * sizeof(*bases));
    void *mine = base == NULL ? NULL : base + offset[aq_shm.me];
    int rc = bases == NULL ? AQ_ERR_NOMEM : aq_spawn_allgather(&mine, sizeof(mine), bases);

    for (uint32_t local = 0; rc == AQ_OK && local < aq_shm.size; local++)
        if (bases[aq_shm.jobrank_of[local]] == NULL)
            rc = AQ_RETRY;
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

/* Make the file, map it, tell the others; with reserved huge pages or without. */
static int aq_shm_segment_try(uint64_t bytes, bool huge, const uint64_t *offset,
                              const struct aq_shm_wish *all, void **base_out)
{
    void *base = NULL;
    int fd = -1, failed, rc;

    failed = aq_shm_segment_file(bytes, huge, &fd);
    if (failed == AQ_OK) {
        failed = aq_shm_map_segments(fd, bytes, huge, &base);
        close(fd);
    }
    rc = aq_shm_exchange_bases(base, offset, all);
    if (rc == AQ_OK)
        *base_out = (char *)base + offset[aq_shm.me];
    else if (base != NULL)
        munmap(base, bytes);
    return rc == AQ_RETRY && failed != AQ_OK ? failed : rc;
}

int aq_shm_segment_attach(uintptr_t size, void **base_out)
{
    struct aq_shm_wish mine = { size, aq_shm_huge_free() };
    struct aq_shm_wish *all = malloc(aq_job.size * sizeof(*all));
    uint64_t *offset = malloc(aq_shm.size * sizeof(*offset));
    uint64_t bytes;
    int rc = AQ_ERR_NOMEM;

    if (all == NULL || offset == NULL)
        goto free_tables;
    rc = aq_spawn_allgather(&mine, sizeof(mine), all);
    if (rc != AQ_OK)
        goto free_tables;
    bytes = aq_shm_lay_out(all, offset);
    rc = aq_shm_check_limits(bytes);
    if (rc != AQ_OK)
        goto free_tables;
    rc = AQ_RETRY;
    if (all[aq_shm.jobrank_of[0]].huge_free >= bytes) /* the same answer on every rank */
        rc = aq_shm_segment_try(bytes, true, offset, all, base_out);
    if (rc != AQ_OK)
        rc = aq_shm_segment_try(bytes, false, offset, all, base_out);
    if (rc == AQ_RETRY)
        rc = AQ_ERR_RESOURCE; /* another rank has failed, and said why */
free_tables:
    free(offset);
    free(all);
    return rc;
}
