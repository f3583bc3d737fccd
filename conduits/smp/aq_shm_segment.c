/*
 * aq_shm_segment.c - the segments of a host: one memory file, of which every rank maps the part of
 * its neighborhood.
 *
 * One mapping for all segments costs one system call, however many ranks there are, and translates
 * a local rank's address by one addition. Nothing is touched here: a page is allocated where and
 * when the client first writes to it. A rank that is alone in its neighborhood has anonymous memory
 * instead, which can use transparent huge pages.
 *
 * Owns      the mapping. Uses other/spawn (memory file, exchange).
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdio.h>
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
#include "other/spawn/aq_spawn.h"

#define AQ_SHM_FD_SEGMENTS 1 /* slots of aq_spawn_host_fd() */
#define AQ_SHM_FD_HUGE     2

/* The segments of this neighborhood; NULL: none. */
static struct {
    char *base;
    uint64_t bytes;
    int discard; /* what madvise() gives pages back by; 0: they stay */
} aq_shm_mapped AQ_JOB_STATE;

/* What each rank publishes about its segment. */
struct aq_shm_segment_info {
    uint64_t size;
    uint64_t huge_free; /* free bytes in reserved huge pages */
};

/* Reserved huge pages are rare; transparent ones are requested below. */
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

/* Layout of the memory file. */
struct aq_shm_plan {
    /* [aq_shm.size]: offsets of the neighborhood's segments from its beginning */
    uint64_t *offset;
    uint64_t begin, bytes; /* this neighborhood's part of the file */
    uint64_t file_bytes;
};

/* Each neighborhood has a part of the file, and each of its ranks a part of that. */
static void aq_shm_lay_out(const struct aq_shm_segment_info *all, struct aq_shm_plan *plan)
{
    uint64_t at = 0;
    uint32_t local = 0;

    for (gex_Rank_t i = 0; i < aq_job.host_size; i++) {
        const uint64_t size = all[aq_job.host[i].gex_jobrank].size;
        const bool ours = i / aq_job.nbrhd_max == aq_job.nbrhd_on_host;

        if (size >= AQ_HUGE_PAGE || i % aq_job.nbrhd_max == 0) /* huge pages need aligned offsets */
            at = aq_round_up(at, AQ_HUGE_PAGE);
        if (ours && local == 0)
            plan->begin = at;
        if (ours)
            plan->offset[local++] = at - plan->begin;
        at += size;
        if (ours)
            plan->bytes = aq_round_up(at, AQ_HUGE_PAGE) - plan->begin;
    }
    plan->file_bytes = aq_round_up(at, AQ_HUGE_PAGE);
}

static int aq_shm_check_limits(uint64_t bytes)
{
    const uint64_t max = aq_file_size_max();

    if (max < bytes)
        return aq_fail(AQ_ERR_RESOURCE,
                       "segments of %.1f MB on this host exceed the file size limit "
                       "of %.1f MB; raise it with: ulimit -f unlimited",
                       (double)bytes / 1048576, (double)max / 1048576);
    return AQ_OK;
}

/* Makes the file, which the first rank of the host sizes. All ranks take part, whatever their
 * limits are. */
static int aq_shm_segment_file(uint64_t bytes, bool huge, int *fd_out)
{
    const int fd = huge ? aq_spawn_host_fd(AQ_SHM_FD_HUGE, MFD_HUGETLB)
                        : aq_spawn_host_fd(AQ_SHM_FD_SEGMENTS, 0);

    if (fd < 0)
        return huge
                   ? AQ_ERR_SYS
                   : aq_fail(AQ_ERR_SYS, "the ranks of this host could not share a memory file: %s",
                             strerror(-fd));
    if (aq_shm_check_limits(bytes) != AQ_OK) {
        close(fd);
        return AQ_ERR_RESOURCE;
    }
    if (aq_job.host_index == 0 && ftruncate(fd, (off_t)bytes) != 0) {
        const int error = errno;

        close(fd);
        return huge ? AQ_ERR_SYS
                    : aq_fail(AQ_ERR_SYS, "cannot size the segments of this host to %.1f MB: %s",
                              (double)bytes / 1048576, strerror(error));
    }
    *fd_out = fd;
    return AQ_OK;
}

/* Ordinary pages are allocated when touched. Huge pages are reserved for the file by its first
 * mapping: touching one that is not available would raise SIGBUS. */
static int aq_shm_map_segments(int fd, const struct aq_shm_plan *plan, bool huge, char **base_out)
{
    const uint64_t bytes = plan->bytes;
    /* the kernel seldom offers transparent huge pages for files; a rank that shares with no other
     * needs no file */
    const bool alone = aq_shm.size == 1 && !huge;
    char *base = MAP_FAILED;

    aq_shm_mapped.discard = alone ? MADV_DONTNEED : huge ? 0 : MADV_REMOVE;
    if (alone)
        base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (alone && base == MAP_FAILED)
        aq_shm_mapped.discard = MADV_REMOVE;
    /* vm.overcommit_memory=2 and ulimit -d count anonymous memory when it is mapped, but the pages
     * of a file only when they are touched */
    if (base == MAP_FAILED)
        base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    huge ? MAP_SHARED : MAP_SHARED | MAP_NORESERVE, fd, (off_t)plan->begin);
    if (base == MAP_FAILED)
        return huge ? AQ_ERR_SYS
                    : aq_fail(AQ_ERR_SYS,
                              "cannot map the %.1f MB of segments of this host: %s; look at "
                              "ulimit -v, or ask for less with GASNET_MAX_SEGSIZE",
                              (double)bytes / 1048576, strerror(errno));
    if (aq_env_bool(AQ_ENV_USE_HUGEPAGES) && !huge)
        /* effective where the kernel offers them for shared memory */
        madvise(base, bytes, MADV_HUGEPAGE);
    /* a child process of the client has no part in the job and must not write to it */
    madvise(base, bytes, MADV_DONTFORK);
    *base_out = base;
    return AQ_OK;
}

/* Makes the file and maps this rank's part of it, with reserved huge pages or without. AQ_OK only
 * if all ranks of the host have succeeded. */
static int aq_shm_segment_try(const struct aq_shm_plan *plan, bool huge, char **base_out)
{
    int *failed = malloc(aq_job.host_size * sizeof(*failed));
    int fd = -1, self, rc;
    char *base = NULL;

    if (failed == NULL)
        /* the other ranks wait */
        aq_fatal("no memory for the %u ranks of this host", aq_job.host_size);
    self = aq_shm_segment_file(plan->file_bytes, huge, &fd);
    if (self == AQ_OK) {
        self = aq_shm_map_segments(fd, plan, huge, &base);
        close(fd);
    }
    rc = aq_spawn_host_allgather(&self, sizeof(self), failed);
    for (gex_Rank_t i = 0; rc == AQ_OK && i < aq_job.host_size; i++)
        if (failed[i] != AQ_OK)
            rc = AQ_ERR_RESOURCE; /* the rank that failed has logged the reason */
    free(failed);
    if (rc == AQ_OK)
        *base_out = base;
    else if (base != NULL)
        munmap(base, plan->bytes);
    return rc;
}

/* Every rank publishes the address of its segment, or NULL. The segments of a neighborhood are one
 * mapping, whose address differs between ranks. */
static int aq_shm_exchange_bases(char *base, const struct aq_shm_plan *plan,
                                 const struct aq_shm_segment_info *all)
{
    void **bases = malloc(aq_job.size * sizeof(*bases));
    void *self = base == NULL ? NULL : base + plan->offset[aq_shm.me];
    int rc = bases == NULL ? AQ_ERR_NOMEM : aq_job_allgather(&self, sizeof(self), bases);

    for (gex_Rank_t rank = 0; rc == AQ_OK && rank < aq_job.size; rank++) {
        if (bases[rank] == NULL)
            rc = AQ_ERR_RESOURCE; /* a rank of its host has logged the reason */
        aq_job.bound[rank] = (struct aq_bound){ bases[rank], all[rank].size };
    }
    for (uint32_t local = 0; rc == AQ_OK && local < aq_shm.size; local++) {
        const gex_Rank_t rank = aq_shm.jobrank_of[local];

        aq_job.map[rank] =
            (intptr_t)((uintptr_t)(base + plan->offset[local]) - (uintptr_t)bases[rank]);
    }
    free(bases);
    return rc;
}

int aq_shm_segment_discard(void *addr, size_t nbytes)
{
    if (aq_shm_mapped.discard == 0 || madvise(addr, nbytes, aq_shm_mapped.discard) != 0)
        return AQ_ERR_RESOURCE;
    return AQ_OK;
}

void aq_shm_segment_detach(void)
{
    if (aq_shm_mapped.base != NULL)
        munmap(aq_shm_mapped.base, aq_shm_mapped.bytes);
    aq_shm_mapped.base = NULL;
}

int aq_shm_segment_attach(uintptr_t size, void **base_out)
{
    struct aq_shm_segment_info self = { size, aq_shm_huge_free() };
    struct aq_shm_segment_info *all = malloc(aq_job.size * sizeof(*all));
    struct aq_shm_plan plan = { .offset = malloc(aq_shm.size * sizeof(*plan.offset)) };
    char *base = NULL;
    int rc = AQ_ERR_NOMEM, mapped;

    if (all == NULL || plan.offset == NULL)
        goto free_tables;
    rc = aq_job_allgather(&self, sizeof(self), all);
    if (rc != AQ_OK)
        goto free_tables;
    aq_shm_lay_out(all, &plan);
    mapped = AQ_RETRY;
    if (all[aq_job.host[0].gex_jobrank].huge_free
        >= plan.file_bytes) /* the result is the same on every rank */
        mapped = aq_shm_segment_try(&plan, true, &base);
    if (mapped != AQ_OK)
        mapped = aq_shm_segment_try(&plan, false, &base);
    rc = aq_shm_exchange_bases(base, &plan, all);
    if (mapped != AQ_OK)
        rc = mapped;
    aq_shm_mapped.base = base;
    aq_shm_mapped.bytes = plan.bytes;
    if (rc == AQ_OK)
        *base_out = base + plan.offset[aq_shm.me];
    else
        aq_shm_segment_detach();
free_tables:
    free(plan.offset);
    free(all);
    return rc;
}
