/*
 * aq_segment.c - segments: limits, attaching, creating further ones, and querying a peer's.
 *
 * The limit is computed from what the machine and the container report. Nothing is allocated to
 * find it, and no page is touched before the client's attach hook has run.
 *
 * Threads   attach is collective and once; everything else from any thread
 * Uses      aq_job.h, the conduit table (which maps the memory), other/spawn
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "core/aq_segment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "core/aq_ep.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_lock.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "core/aq_thread.h"
#include "core/aq_trace.h"
#include "core/aq_tm.h"
#include "core/aq_callback.h"
#include "other/spawn/aq_spawn.h"

/* A client may define the first two itself. */
const char *gasnet_max_segsize_str AQ_WEAK = NULL;
uint64_t gasnet_max_segsize AQ_WEAK = 0;
void (*gasnet_client_attach_hook)(void *base, uintptr_t size) AQ_WEAK = NULL;

/* Address space left to the client when RLIMIT_AS applies: stacks, heap. */
#define AQ_SEGMENT_RESERVE ((uint64_t)64 << 20)

/* --- limits --- */

/* The user's request, else the client's, else the configured default. */
static struct aq_env_segsize aq_segment_request(void)
{
    struct aq_env_segsize request = aq_env_segsize(AQ_ENV_MAX_SEGSIZE);

    if (aq_env_is_set(AQ_ENV_MAX_SEGSIZE))
        return request;
    if (gasnet_max_segsize_str != NULL) {
        if (!aq_env_parse_segsize(gasnet_max_segsize_str, &request))
            aq_fatal("the client's gasnet_max_segsize_str is '%s', which is no segment size; write "
                     "for instance 0.85/H or 512MB/P",
                     gasnet_max_segsize_str);
    } else if (gasnet_max_segsize != 0) {
        request = (struct aq_env_segsize){ .bytes = gasnet_max_segsize };
    }
    return request;
}

/* Bytes that this process's limits on file size and address space leave for all segments of the
 * host, which every rank maps. how_out: the shell's name of the limit that applies. */
static uint64_t aq_segment_rlimit(const char **how_out)
{
    uint64_t left = aq_file_size_max();
    struct rlimit limit;

    *how_out = "ulimit -f";
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        unsigned long long pages = 0;
        FILE *file = fopen("/proc/self/statm", "re");

        if (file != NULL) {
            if (fscanf(file, "%llu", &pages) != 1)
                pages = 0;
            fclose(file);
        }
        const uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE) + AQ_SEGMENT_RESERVE;
        const uint64_t space = limit.rlim_cur > used ? limit.rlim_cur - used : 0;

        if (space < left) {
            left = space;
            *how_out = "ulimit -v";
        }
    }
    return left == UINT64_MAX ? left : left - left % AQ_HUGE_PAGE;
}

/* Bytes that settings and memory allow each rank, without the process's own limits. */
static uint64_t aq_segment_requested_bytes(unsigned host_size, uint64_t taken)
{
    const struct aq_env_segsize request = aq_segment_request();
    const uint64_t memory = aq_spawn_host_facts().memory;
    uint64_t bytes =
        request.is_fraction ? (uint64_t)((double)memory * request.fraction) : request.bytes;

    if (request.per_host) {
        bytes = bytes > taken ? bytes - taken : 0;
        bytes /= host_size;
    }
    return bytes;
}

uintptr_t aq_segment_limit(unsigned host_size, uint64_t taken)
{
    const char *how;
    uint64_t bytes =
        MIN(aq_segment_requested_bytes(host_size, taken), aq_segment_rlimit(&how) / host_size);

    if (aq_limits.segment_max != 0)
        bytes = MIN(bytes, aq_limits.segment_max);
    return (uintptr_t)bytes & ~(uintptr_t)(GASNET_PAGESIZE - 1);
}

/* Returns true, and a text, if one of the process's limits, or the conduit's, bounds the
 * segment. */
static bool aq_segment_explain_rlimit(char *text, size_t len)
{
    const uint64_t requested = aq_segment_requested_bytes(aq_job.host_size, aq_limits.host_bytes);
    const char *how;
    const uint64_t left = aq_segment_rlimit(&how);

    if (aq_limits.segment_max != 0
        && aq_limits.segment_max < MIN(requested, left / aq_job.host_size)) {
        snprintf(text, len, "%s", aq_limits.segment_why);
        return true;
    }
    if (left / aq_job.host_size >= requested)
        return false;
    snprintf(text, len,
             "%s leaves %.1f MB for the segments of the %u rank%s on this host; raise it, "
             "for instance with: %s unlimited",
             how, (double)left / 1048576, aq_job.host_size, aq_job.host_size == 1 ? "" : "s", how);
    return true;
}

void aq_segment_explain(char *text, size_t len)
{
    const struct aq_host_facts facts = aq_spawn_host_facts();
    const struct aq_env_segsize request = aq_segment_request();
    const char *setting = aq_env_is_set(AQ_ENV_MAX_SEGSIZE) ? aq_env_str(AQ_ENV_MAX_SEGSIZE)
                          : gasnet_max_segsize_str != NULL  ? gasnet_max_segsize_str
                          : gasnet_max_segsize != 0         ? "the client's gasnet_max_segsize"
                                                            : aq_env_str(AQ_ENV_MAX_SEGSIZE);

    if (aq_segment_explain_rlimit(text, len))
        return;
    snprintf(text, len, "GASNET_MAX_SEGSIZE is %s, %s %.1f MB, %u rank%s on this host%s", setting,
             facts.memory_is, (double)facts.memory / 1048576, aq_job.host_size,
             aq_job.host_size == 1 ? "" : "s",
             request.per_host && aq_job.host_size > 1 ? " share it" : "");
}

void aq_segment_init_limits(void)
{
#if GASNET_SEGMENT_EVERYTHING
    aq_job.max_local_segment = aq_job.max_global_segment = UINTPTR_MAX;
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++)
        aq_job.bound[rank] = (struct aq_bound){ NULL, UINTPTR_MAX };
    aq_job.map[aq_job.rank] = 0;
#else
    uintptr_t *all = malloc(aq_job.size * sizeof(*all));
    char why[400];

    aq_job.max_local_segment = aq_segment_limit(aq_job.host_size, aq_limits.host_bytes);
    if (aq_job.max_local_segment < GASNET_PAGESIZE) {
        if (aq_segment_explain_rlimit(why, sizeof(why)))
            aq_fatal("no space for segments: %s", why);
        aq_segment_explain(why, sizeof(why));
        aq_fatal("no space for segments: %s, of which %.1f MB are the library's queues; give at "
                 "least a page a rank, for instance GASNET_MAX_SEGSIZE=64MB/P",
                 why, (double)aq_limits.host_bytes / 1048576);
    }
    if (all == NULL || aq_job_allgather(&aq_job.max_local_segment, sizeof(*all), all) != AQ_OK)
        aq_fatal("the ranks could not exchange their segment limits at start");
    aq_job.max_global_segment = UINTPTR_MAX;
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++)
        aq_job.max_global_segment = MIN(aq_job.max_global_segment, all[rank]);
    free(all);
#endif
}

uintptr_t gasnet_getMaxLocalSegmentSize(void)
{
    AQ_CHECK_STARTED();
    return aq_job.max_local_segment;
}

uintptr_t gasnet_getMaxGlobalSegmentSize(void)
{
    AQ_CHECK_STARTED();
    return aq_job.max_global_segment;
}

/* --- attach --- */

#if !GASNET_SEGMENT_EVERYTHING
static int aq_segment_check_attach(gex_TM_t tm, uintptr_t size)
{
    char why[400];

    if (aq_job.attached)
        aq_fatal("gex_Segment_Attach called a second time; a process has one segment of this kind");
    /* relaxed: bound by this thread, or by one that has synchronized with it */
    if (atomic_load_explicit(&aq_job.ep.segment, memory_order_relaxed) != NULL)
        aq_fatal("gex_Segment_Attach: gex_EP_BindSegment has bound a segment to the primordial "
                 "endpoint, "
                 "which keeps it");
    if (tm != aq_tm_handle(aq_job.tm))
        return aq_fail(AQ_ERR_ARG, "gex_Segment_Attach: tm is not the primordial team");
    if (size == 0 || size % GASNET_PAGESIZE != 0)
        return aq_fail(AQ_ERR_ARG,
                       "gex_Segment_Attach: the size is %zu, not a non-zero multiple of "
                       "GASNET_PAGESIZE (%u)",
                       (size_t)size, (unsigned)GASNET_PAGESIZE);
    if (size > aq_job.max_local_segment) {
        const bool small = aq_job.max_local_segment < 1048576;
        const double unit = small ? 1024 : 1048576;

        aq_segment_explain(why, sizeof(why));
        return aq_fail(AQ_ERR_ARG,
                       "gex_Segment_Attach: %.1f %s asked for, the limit is %.1f %s: %s",
                       (double)size / unit, small ? "KB" : "MB",
                       (double)aq_job.max_local_segment / unit, small ? "KB" : "MB", why);
    }
    return AQ_OK;
}

/* The ranks attach together or not at all. The exchanges of an attach serve no messages, so all
 * ranks agree first. Over a network they agree by messages, since a message to a rank may not have
 * left completely before its sender polls the network again. Without a network the exchange saves
 * the memory of queues to further peers. */
static int aq_segment_agree(int own)
{
    int *all = malloc(aq_job.size * sizeof(*all));
    int rc = own;

    if (all == NULL)
        aq_fatal("gex_Segment_Attach: no memory for %u ranks",
                 aq_job.size); /* the other ranks wait for this one */
    if (aq_job.nbrhd_count > 1) {
        aq_callback_allgather(&own, sizeof(own), all);
    } else {
        aq_callback_barrier();
        if (aq_job_allgather(&own, sizeof(own), all) != AQ_OK)
            rc = AQ_ERR_SYS;
    }
    for (gex_Rank_t rank = 0; rc == AQ_OK && rank < aq_job.size; rank++)
        if (all[rank] != AQ_OK)
            rc = aq_fail(AQ_ERR_RESOURCE, "gex_Segment_Attach: refused at rank %u, which says why",
                         rank);
    free(all);
    return rc;
}

/* AQ_OK, or negative on every rank. */
static int aq_segment_take(uintptr_t size)
{
    int rc;

    aq_job.remote->quiesce();
    rc = aq_job.local->segment_attach(size, &aq_job.segment.base);
    if (rc == AQ_OK)
        rc = aq_job.remote->segment_attach(size, &aq_job.segment.base);
    if (rc != AQ_OK)
        return rc;
    aq_job.segment.mk = &aq_mk_host;
    aq_segment_set_size(&aq_job.segment, size);
    aq_job.attached = true;
    aq_tm_segments_came();
    /* release: pairs with the acquire in gex_EP_QuerySegment() */
    atomic_store_explicit(&aq_job.ep.segment, &aq_job.segment, memory_order_release);
    if (gasnet_client_attach_hook != NULL)
        gasnet_client_attach_hook(aq_job.segment.base, size);
    rc = aq_job.local->segment_ready();
    return rc == AQ_OK ? aq_job.remote->segment_ready() : rc;
}

/* Restores the state before the attach: the client may try again, with a smaller segment. */
static void aq_segment_give_back(void)
{
    /* relaxed: no other thread uses a segment that is not attached */
    atomic_store_explicit(&aq_job.ep.segment, NULL, memory_order_relaxed);
    aq_job.attached = false;
    aq_segment_set_size(&aq_job.segment, 0);
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++) {
        aq_job.bound[rank] = (struct aq_bound){ NULL, 0 };
        aq_job.map[rank] = AQ_NOT_MAPPED;
    }
    aq_tm_segments_came();
    aq_job.remote->segment_detach();
    aq_job.local->segment_detach();
}
#endif

int gex_Segment_Attach(gex_Segment_t *segment_p, gex_TM_t tm, uintptr_t size)
{
    aq_check_started(__func__); /* in every build: the rest of the call is expensive anyway */
    AQ_TRACE_SCOPE(AQ_TRACE_SEGMENT_ATTACH, GEX_RANK_INVALID, size);
#if GASNET_SEGMENT_EVERYTHING
    (void)tm, (void)size;
    *segment_p = GEX_SEGMENT_INVALID;
#else
    int rc;

#if GASNET_DEBUG
    aq_thread_check_main("gex_Segment_Attach");
#endif
    rc = aq_segment_agree(aq_segment_check_attach(tm, size));
    if (rc != AQ_OK)
        return aq_rc_to_gasnet(rc);
    rc = aq_segment_take(size);
    if (rc != AQ_OK) {
        aq_segment_give_back();
        return aq_rc_to_gasnet(rc);
    }
    *segment_p = (gex_Segment_t)(void *)&aq_job.segment;
#endif
    aq_callback_barrier();
    return GASNET_OK;
}

/* --- creating and destroying further segments --- */

/* Segments that a client has made, including destroyed ones that an endpoint refers to. */
static struct {
    aq_lock lock;
    struct aq_segment *first;
} aq_segments AQ_JOB_STATE;

static void aq_segment_enlist(struct aq_segment *segment)
{
    aq_lock_acquire(&aq_segments.lock);
    segment->next = aq_segments.first;
    segment->link = &aq_segments.first;
    if (segment->next != NULL)
        segment->next->link = &segment->next;
    aq_segments.first = segment;
    aq_lock_release(&aq_segments.lock);
}

static void aq_segment_free(struct aq_segment *segment)
{
    aq_lock_acquire(&aq_segments.lock);
    *segment->link = segment->next;
    if (segment->next != NULL)
        segment->next->link = segment->link;
    aq_lock_release(&aq_segments.lock);
    free(segment);
}

void aq_segment_fini(void)
{
    while (aq_segments.first != NULL) {
        struct aq_segment *segment = aq_segments.first;

        if (segment->is_ours && aq_segment_size(segment) != 0)
            segment->mk->free(segment->base, aq_segment_size(segment));
        aq_segment_free(segment);
    }
}

static struct aq_segment *aq_segment(gex_Segment_t segment)
{
    return (struct aq_segment *)(void *)segment;
}

/* Returns what is wrong with the arguments, or NULL. The client's memory may begin and end
 * anywhere. */
static const char *aq_segment_create_error(gex_Segment_t *segment_p, gex_Client_t client,
                                           const void *addr, uintptr_t length, gex_MK_t kind,
                                           gex_Flags_t flags)
{
    if (segment_p == NULL)
        return "the output is NULL";
    if (client != (gex_Client_t)(void *)&aq_job.client)
        return "this is not the job's client";
    if (aq_mk_find(kind) == NULL)
        return "the kind is not GEX_MK_HOST, and there is no other here";
    if (flags != 0)
        return "flags must be 0";
    if (length == 0)
        return "the length is 0";
    if (addr == NULL && length > aq_job.max_local_segment)
        return "the length exceeds gasnet_getMaxLocalSegmentSize()";
    if ((uintptr_t)addr + length < length)
        return "the memory goes beyond the end of the address space";
    return NULL;
}

int gex_Segment_Create(gex_Segment_t *segment_p, gex_Client_t client, gex_Addr_t addr,
                       uintptr_t length, gex_MK_t kind, gex_Flags_t flags)
{
    aq_check_started(__func__);
    AQ_TRACE_SCOPE(AQ_TRACE_SEGMENT_CREATE, GEX_RANK_INVALID, length);
    const char *error = aq_segment_create_error(segment_p, client, addr, length, kind, flags);
    struct aq_segment *segment;

#if GASNET_DEBUG
    aq_thread_check_main("gex_Segment_Create");
#endif
    if (error != NULL)
        return aq_fail(GASNET_ERR_BAD_ARG, "gex_Segment_Create of %zu bytes at %p: %s",
                       (size_t)length, addr, error);
    segment = calloc(1, sizeof(*segment));
    if (segment == NULL)
        return aq_fail(GASNET_ERR_RESOURCE, "gex_Segment_Create: no memory");
    segment->base = addr;
    segment->mk = aq_mk_find(kind);
    if (addr == NULL) {
        segment->is_ours = true;
        length = length > UINTPTR_MAX - AQ_PAGE_SIZE ? length : aq_round_up(length, AQ_PAGE_SIZE);
        if (segment->mk->alloc(length, &segment->base) != AQ_OK) {
            free(segment);
            return aq_fail(GASNET_ERR_RESOURCE,
                           "gex_Segment_Create: cannot map %.1f MB: %s; look at "
                           "ulimit -v",
                           (double)length / 1048576, strerror(errno));
        }
    }
    aq_segment_set_size(segment, length);
    aq_segment_enlist(segment);
    *segment_p = (gex_Segment_t)(void *)segment;
    return GASNET_OK;
}

void gex_Segment_Destroy(gex_Segment_t handle, gex_Flags_t flags)
{
    aq_check_started(__func__);
    AQ_TRACE_SCOPE(AQ_TRACE_SEGMENT_DESTROY, GEX_RANK_INVALID, 0);
    struct aq_segment *segment = aq_segment(handle);
    const struct aq_mk_ops *mk;
    void *base;
    uintptr_t size;
    bool is_ours;

#if GASNET_DEBUG
    aq_thread_check_main("gex_Segment_Destroy");
    if (segment == NULL)
        aq_fatal("gex_Segment_Destroy: the segment is GEX_SEGMENT_INVALID");
    if (flags != 0)
        aq_fatal("gex_Segment_Destroy: flags are 0x%x; they must be 0", (unsigned)flags);
    if (aq_segment_size(segment) == 0)
        aq_fatal("gex_Segment_Destroy: the segment %p has been destroyed already", (void *)segment);
#else
    (void)flags;
#endif
    if (segment == &aq_job.segment)
        aq_fatal("gex_Segment_Destroy of the segment that gex_Segment_Attach made; it stays for as "
                 "long as the job");
    mk = segment->mk;
    base = segment->base;
    size = aq_segment_size(segment);
    is_ours = segment->is_ours;
    /* ends the segment before its memory is freed */
    if (aq_ep_release_segment(segment))
        aq_segment_free(segment); /* otherwise endpoints still refer to it */
    if (is_ours)
        mk->free(base, size);
}

/* --- queries --- */

gex_Client_t gex_Segment_QueryClient(gex_Segment_t segment)
{
    AQ_CHECK_HANDLE("segment", segment);
    (void)segment;
    return (gex_Client_t)(void *)&aq_job.client;
}

/* The only flag: whether it is the segment of GASNet-1's calls. */
gex_Flags_t gex_Segment_QueryFlags(gex_Segment_t segment)
{
    AQ_CHECK_HANDLE("segment", segment);
    return aq_segment(segment) == &aq_job.segment ? aq_job.client.flags & GEX_FLAG_USES_GASNET1 : 0;
}

void *gex_Segment_QueryAddr(gex_Segment_t segment)
{
    AQ_CHECK_HANDLE("segment", segment);
    return aq_segment_size(aq_segment(segment)) == 0 ? NULL : aq_segment(segment)->base;
}

uintptr_t gex_Segment_QuerySize(gex_Segment_t segment)
{
    AQ_CHECK_HANDLE("segment", segment);
    return aq_segment_size(aq_segment(segment));
}

void gex_Segment_SetCData(gex_Segment_t segment, const void *val)
{
    AQ_CHECK_HANDLE("segment", segment);
    atomic_store_explicit(&aq_segment(segment)->cdata, (void *)(uintptr_t)val,
                          memory_order_release);
}

void *gex_Segment_QueryCData(gex_Segment_t segment)
{
    AQ_CHECK_HANDLE("segment", segment);
    return atomic_load_explicit(&aq_segment(segment)->cdata, memory_order_acquire);
}

/* Where this process reaches a segment with loads and stores, or NULL. */
static void *aq_segment_mapping(gex_Rank_t jobrank, gex_EP_Index_t index, struct aq_bound bound)
{
    void *owner = bound.addr;

    if (index != 0)
        return jobrank == aq_job.rank && aq_mk_at(owner, bound.size)->is_host ? owner : NULL;
    return aq_job.map[jobrank] == AQ_NOT_MAPPED ? NULL : aq_rma_ptr(aq_job.map[jobrank], owner);
}

/* The results are in this process's tables: no query communicates. */
static uintptr_t aq_segment_look_up(const char *call, gex_TM_t tm, gex_Rank_t rank,
                                    void **owner_out, void **local_out)
{
    const gex_EP_Index_t index = aq_tm(tm)->peer_index;
    gex_Rank_t jobrank;
    struct aq_bound bound;

#if GASNET_DEBUG
    if (rank >= aq_tm_head_of(tm)->size)
        aq_fatal("%s: rank %u is outside 0..%u", call, rank, aq_tm_head_of(tm)->size - 1);
#else
    (void)call;
#endif
    jobrank = aq_tm_jobrank(tm, rank);
    bound = aq_bound_find(jobrank, index);
    *owner_out = bound.addr;
    *local_out = aq_segment_mapping(jobrank, index, bound);
    return bound.size;
}

static void aq_segment_check_look_up(gex_Flags_t flags)
{
#if GASNET_DEBUG
    if ((flags & GEX_FLAG_IMMEDIATE) == 0)
        aq_thread_check_main("gex_EP_QueryBoundSegmentNB without GEX_FLAG_IMMEDIATE");
    if ((flags & ~GEX_FLAG_IMMEDIATE) != 0)
        aq_fatal("gex_EP_QueryBoundSegmentNB: flags are 0x%x; they must be 0 or GEX_FLAG_IMMEDIATE",
                 (unsigned)flags);
#else
    (void)flags;
#endif
}

gex_Event_t gex_EP_QueryBoundSegmentNB(gex_TM_t tm, gex_Rank_t rank, void **owneraddr_p,
                                       void **localaddr_p, uintptr_t *size_p, gex_Flags_t flags)
{
    AQ_CHECK_HANDLE("team", tm);
    void *owner, *local;
    const uintptr_t size =
        aq_segment_look_up("gex_EP_QueryBoundSegmentNB", tm, rank, &owner, &local);

    aq_segment_check_look_up(flags); /* with or without IMMEDIATE: it never communicates */
    if (owneraddr_p != NULL)
        *owneraddr_p = owner;
    if (localaddr_p != NULL)
        *localaddr_p = local;
    if (size_p != NULL)
        *size_p = size;
    return GEX_EVENT_INVALID;
}

int gex_Segment_QueryBound(gex_TM_t tm, gex_Rank_t rank, void **owneraddr_p, void **localaddr_p,
                           uintptr_t *size_p)
{
    AQ_CHECK_HANDLE("team", tm);
    void *owner, *local;
    const uintptr_t size = aq_segment_look_up("gex_Segment_QueryBound", tm, rank, &owner, &local);

#if GASNET_DEBUG
    aq_thread_check_main("gex_Segment_QueryBound");
#endif
    if (size == 0)
        return 1;
    if (owneraddr_p != NULL)
        *owneraddr_p = owner;
    if (localaddr_p != NULL)
        *localaddr_p = local;
    if (size_p != NULL)
        *size_p = size;
    return 0;
}

int gasnet_getSegmentInfo(gasnet_seginfo_t *table, int numentries)
{
    AQ_CHECK_STARTED();
    if (numentries < 0 || (numentries > 0 && table == NULL))
        return GASNET_ERR_BAD_ARG;
    for (gex_Rank_t rank = 0; rank < aq_job.size && rank < (gex_Rank_t)numentries; rank++) {
        table[rank].addr = aq_job.bound[rank].addr;
        table[rank].size = aq_job.bound[rank].size;
    }
    return GASNET_OK;
}
