/*
 * aq_team.c - the collective calls that make and destroy teams.
 *
 * One exchange over the parent team gives every caller the arguments of all callers. Each caller
 * then computes its own new team, and all members of a team get the same result. A new team's name
 * is its first member's jobrank and a number that this process has not used before, which the
 * exchange carries. Making a team is therefore a barrier over the parent. Destroying it is a
 * barrier over the team, unless the client promises that no rank uses it any more.
 *
 * Members are primordial endpoints: a process is at most one member of a team.
 *
 * Owns      the numbers of new teams
 * Threads   any; collective calls over one team in the client's order
 * Promise   destroying a team does not wait for puts, gets or messages that were started through
 *           it: those refer to jobranks, not teams. Its memory is reused by later teams
 * Uses      core/aq_tm.h, extended/aq_exchange.h
 * See       GASNet-EX specification 0.19, Teams. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "base/aq_env.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "core/aq_thread.h"
#include "core/aq_trace.h"
#include "core/aq_tm.h"
#include "core/aq_callback.h"
#include "extended/aq_ad.h"
#include "extended/aq_exchange.h"

#define AQ_SCRATCH_QUERIES (GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED | GEX_FLAG_TM_SCRATCH_SIZE_MIN)
#define AQ_SCRATCH_LAYOUTS                                                                  \
    (GEX_FLAG_TM_GLOBAL_SCRATCH | GEX_FLAG_TM_LOCAL_SCRATCH | GEX_FLAG_TM_SYMMETRIC_SCRATCH \
     | GEX_FLAG_TM_NO_SCRATCH)
#define AQ_SCRATCH_MIN 4096 /* bytes; a smaller setting is raised to this */

static aq_counter aq_team_numbers AQ_JOB_STATE;

/* --- scratch --- */

/* The scratch size that a member of a team is advised to provide: the same on all ranks, and never
 * 0. */
static size_t aq_team_scratch_size(gex_Flags_t flags)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    const uint64_t bytes = aq_env_size(AQ_ENV_COLL_SCRATCH_SIZE);

    if ((flags & GEX_FLAG_TM_SCRATCH_SIZE_MIN) != 0 && aq_job.rank == 0
        && !atomic_flag_test_and_set_explicit(&warned, memory_order_relaxed))
        aq_notice("GEX_FLAG_TM_SCRATCH_SIZE_MIN is deprecated; ask with "
                  "GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED");
    return bytes < AQ_SCRATCH_MIN ? AQ_SCRATCH_MIN : (size_t)bytes;
}

#if GASNET_DEBUG
static void aq_team_check_scratch(const char *call, const void *addr, size_t size)
{
    if (size == 0)
        aq_fatal("%s: the scratch size is 0; pass a size, or GEX_FLAG_TM_NO_SCRATCH", call);
    if (!aq_bound_contains(aq_job.rank, addr, size))
        aq_fatal("%s: the scratch space [%p, +%zu) is not inside this process's segment, which is "
                 "[%p, +%zu)",
                 call, addr, size, aq_job.bound[aq_job.rank].addr,
                 (size_t)aq_job.bound[aq_job.rank].size);
}

static void aq_team_check(const char *call, gex_TM_t tm, gex_Flags_t flags, gex_Flags_t legal)
{
    aq_check_team(call, tm);
    aq_thread_check_main(call);
    if ((flags & ~legal) != 0)
        aq_fatal("%s: unknown flags 0x%x", call, (unsigned)(flags & ~legal));
}
#else
#define aq_team_check_scratch(call, addr, size) ((void)0)
#define aq_team_check(call, tm, flags, legal)   ((void)0)
#endif

/* --- shared by split and create --- */

/* Returns a number that this process has not used before; not 0. */
static uint32_t aq_team_number(void)
{
    return (uint32_t)aq_counter_add(&aq_team_numbers, 1);
}

/* Returns the name of the team whose first member is a process that proposed this number. */
static uint64_t aq_team_id(gex_Rank_t jobrank, uint32_t number)
{
    return (uint64_t)jobrank << 32 | number;
}

static void *aq_team_table(const char *call, size_t count, size_t size)
{
    void *table = malloc(count * size);

    if (table == NULL)
        aq_fatal("%s: no memory for %zu entries of %zu bytes", call, count, size);
    return table;
}

/* The caller frees plan->jobranks. */
static gex_TM_t aq_team_make(const struct aq_tm_plan *plan)
{
    struct aq_tm *tm = aq_tm_create(plan);

    aq_callback_team_created(tm);
    return aq_tm_handle(tm);
}

/* --- split --- */

/* What a caller sends to the others. */
struct aq_split_request {
    int32_t color, key;
    uint32_t joins; /* 0: only takes part in the call */
    uint32_t number;
};

/* A caller of the same color. */
struct aq_split_member {
    int32_t key;
    gex_Rank_t rank; /* in the parent team */
};

static int aq_split_compare(const void *left, const void *right)
{
    const struct aq_split_member *a = left, *b = right;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->rank < b->rank ? -1 : 1; /* equal keys: the parent's order */
}

/* Selects the callers of this caller's color, in the new team's order. Returns how many. */
static gex_Rank_t aq_split_choose(const struct aq_split_request *all, gex_Rank_t parent_size,
                                  int32_t color, struct aq_split_member *members)
{
    gex_Rank_t count = 0;
    bool sorted = true;

    for (gex_Rank_t rank = 0; rank < parent_size; rank++) {
        if (!all[rank].joins || all[rank].color != color)
            continue;
        sorted = sorted && (count == 0 || members[count - 1].key <= all[rank].key);
        members[count++] = (struct aq_split_member){ all[rank].key, rank };
    }
    if (!sorted)
        qsort(members, count, sizeof(*members), aq_split_compare);
    return count;
}

static gex_TM_t aq_split_make(gex_TM_t parent, const struct aq_split_request *all,
                              gex_Flags_t flags, gex_Memvec_t scratch)
{
    const gex_Rank_t parent_size = aq_tm_head_of(parent)->size;
    const gex_Rank_t me = aq_tm_head_of(parent)->rank;
    struct aq_split_member *members = aq_team_table("gex_TM_Split", parent_size, sizeof(*members));
    gex_Rank_t *jobranks = aq_team_table("gex_TM_Split", parent_size, sizeof(*jobranks));
    struct aq_tm_plan plan = { .jobranks = jobranks, .flags = flags, .scratch = scratch };
    gex_TM_t tm;

    plan.size = aq_split_choose(all, parent_size, all[me].color, members);
    for (gex_Rank_t rank = 0; rank < plan.size; rank++) {
        jobranks[rank] = aq_tm_jobrank(parent, members[rank].rank);
        if (members[rank].rank == me)
            plan.rank = rank;
    }
    plan.id = aq_team_id(jobranks[0], all[members[0].rank].number);
    tm = aq_team_make(&plan);
    free(jobranks);
    free(members);
    return tm;
}

size_t gex_TM_Split(gex_TM_t *new_tm_p, gex_TM_t parent, int color, int key, void *scratch_addr,
                    size_t scratch_size, gex_Flags_t flags)
{
    aq_check_started(__func__);
    AQ_TRACE_SCOPE(AQ_TRACE_TM_SPLIT, GEX_RANK_INVALID, 0);
    const char *call = "gex_TM_Split";
    const bool has_scratch = new_tm_p != NULL && (flags & GEX_FLAG_TM_NO_SCRATCH) == 0;
    struct aq_split_request own = { color, key, new_tm_p != NULL, 0 }, *all;

    aq_team_check(call, parent, flags, AQ_SCRATCH_QUERIES | GEX_FLAG_TM_NO_SCRATCH);
    if ((flags & AQ_SCRATCH_QUERIES) != 0)
        return new_tm_p != NULL ? aq_team_scratch_size(flags) : 0;
    if (has_scratch)
        aq_team_check_scratch(call, scratch_addr, scratch_size);
    own.number = aq_team_number();
    all = aq_team_table(call, aq_tm_head_of(parent)->size, sizeof(*all));
    aq_exchange_as(call, parent, &own, sizeof(own), all);
    if (new_tm_p != NULL)
        *new_tm_p = aq_split_make(parent, all, flags,
                                  has_scratch ? (gex_Memvec_t){ scratch_addr, scratch_size }
                                              : (gex_Memvec_t){ NULL, 0 });
    free(all);
    return 0;
}

/* --- create --- */

/* What a caller sends to the others. */
struct aq_create_request {
    uint32_t number;
    uint32_t members; /* members of the team that it makes; 0: none */
    uint64_t digest;  /* hash of everything that must be equal on all members */
};

static uint64_t aq_create_mix(uint64_t digest, uint64_t value)
{
    digest = (digest ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return digest ^ digest >> 29;
}

static uint64_t aq_create_digest(const gex_Rank_t *jobranks, size_t count, gex_Flags_t layout,
                                 size_t scratch_size)
{
    uint64_t digest = aq_create_mix(count, layout);

    if (layout != GEX_FLAG_TM_NO_SCRATCH)
        digest = aq_create_mix(digest, scratch_size);
    for (size_t i = 0; i < count; i++)
        digest = aq_create_mix(digest, jobranks[i]);
    return digest;
}

/* Fills in the members' jobranks. Only primordial endpoints can be members. */
static void aq_create_list(gex_TM_t parent, const gex_EP_Location_t *args, size_t count,
                           gex_Flags_t flags, gex_Rank_t *jobranks)
{
    const bool by_jobrank = (flags & GEX_FLAG_RANK_IS_JOBRANK) != 0;
    const gex_Rank_t bound = by_jobrank ? aq_job.size : aq_tm_head_of(parent)->size;

    for (size_t i = 0; i < count; i++) {
        if (args[i].gex_rank >= bound)
            aq_fatal("gex_TM_Create: args[%zu] names %s %u, which is outside 0..%u", i,
                     by_jobrank ? "jobrank" : "rank", args[i].gex_rank, bound - 1);
        if (args[i].gex_ep_index != 0)
            aq_fatal(
                "gex_TM_Create: args[%zu] names endpoint %u of %s %u; only primordial endpoints "
                "(index 0) can be members of a team",
                i, args[i].gex_ep_index, by_jobrank ? "jobrank" : "rank", args[i].gex_rank);
        jobranks[i] = by_jobrank ? args[i].gex_rank : aq_tm_jobrank(parent, args[i].gex_rank);
    }
}

/* Returns this rank's index in the list, or GEX_RANK_INVALID. */
static gex_Rank_t aq_create_find_me(const gex_Rank_t *jobranks, gex_Rank_t count)
{
    for (gex_Rank_t rank = 0; rank < count; rank++)
        if (jobranks[rank] == aq_job.rank)
            return rank;
    return GEX_RANK_INVALID;
}

/* Returns this member's scratch space, from whichever list the client has passed. */
static gex_Memvec_t aq_create_scratch(gex_Addr_t *addrs, size_t size, gex_Flags_t layout,
                                      gex_Rank_t rank)
{
    if (layout == GEX_FLAG_TM_NO_SCRATCH)
        return (gex_Memvec_t){ NULL, 0 };
    if (addrs == NULL)
        aq_fatal("gex_TM_Create: scratch_addrs is NULL; pass addresses, or GEX_FLAG_TM_NO_SCRATCH");
    return (gex_Memvec_t){ addrs[layout == GEX_FLAG_TM_GLOBAL_SCRATCH ? rank : 0], size };
}

/* Ends the job unless every member has made the same call. */
static void aq_create_compare(gex_TM_t parent, const struct aq_create_request *all,
                              const struct aq_create_request *own, const gex_Rank_t *jobranks,
                              gex_Rank_t count)
{
    for (gex_Rank_t i = 0; i < count; i++) {
        const gex_Rank_t rank = aq_tm_rank(aq_tm(parent), jobranks[i]);

        if (rank == GEX_RANK_INVALID)
            aq_fatal(
                "gex_TM_Create: args[%u] names jobrank %u, which is not a member of the parent "
                "team",
                i, jobranks[i]);
        if (all[rank].members != own->members || all[rank].digest != own->digest)
            aq_fatal(
                "gex_TM_Create: jobrank %u, member %u of the new team, was called with other "
                "arguments (%u members there, %u here); args, scratch_size and the layout flag "
                "must be equal on all members",
                jobranks[i], i, all[rank].members, count);
    }
}

#if GASNET_DEBUG
static int aq_create_order(const void *left, const void *right)
{
    const gex_Rank_t a = *(const gex_Rank_t *)left, b = *(const gex_Rank_t *)right;

    return a < b ? -1 : a > b;
}

static void aq_create_check(size_t num_new, const gex_Rank_t *jobranks, size_t count,
                            gex_Flags_t layout)
{
    gex_Rank_t *sorted = aq_team_table("gex_TM_Create", count, sizeof(*sorted));
    const size_t local = aq_create_find_me(jobranks, (gex_Rank_t)count) != GEX_RANK_INVALID;

    if (layout == 0 || (layout & (layout - 1)) != 0)
        aq_fatal(
            "gex_TM_Create: the flags hold %s of GEX_FLAG_TM_{GLOBAL,LOCAL,SYMMETRIC,NO}_SCRATCH; "
            "pass one",
            layout == 0 ? "none" : "several");
    if (num_new != local)
        aq_fatal("gex_TM_Create: num_new is %zu, but args names %zu endpoint%s of this process",
                 num_new, local, local == 1 ? "" : "s");
    memcpy(sorted, jobranks, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), aq_create_order);
    for (size_t i = 1; i < count; i++)
        if (sorted[i] == sorted[i - 1])
            aq_fatal("gex_TM_Create: args names jobrank %u twice", sorted[i]);
    free(sorted);
}
#else
#define aq_create_check(num_new, jobranks, count, layout) ((void)(num_new))
#endif

/* Exchanges the arguments, and makes this caller's team if it is to be in one. */
static void aq_create_agree(gex_TM_t *new_tms, gex_TM_t parent, const struct aq_create_request *own,
                            struct aq_tm_plan *plan)
{
    struct aq_create_request *all =
        aq_team_table("gex_TM_Create", aq_tm_head_of(parent)->size, sizeof(*all));

    aq_exchange_as("gex_TM_Create", parent, own, sizeof(*own), all);
    if (plan->size != 0) {
        aq_create_compare(parent, all, own, plan->jobranks, plan->size);
        plan->id =
            aq_team_id(plan->jobranks[0], all[aq_tm_rank(aq_tm(parent), plan->jobranks[0])].number);
        if (plan->rank != GEX_RANK_INVALID)
            new_tms[0] = aq_team_make(plan);
    }
    free(all);
}

size_t gex_TM_Create(gex_TM_t *new_tms, size_t num_new, gex_TM_t parent, gex_EP_Location_t *args,
                     size_t numargs, gex_Addr_t *scratch_addrs, size_t scratch_size,
                     gex_Flags_t flags)
{
    aq_check_started(__func__);
    AQ_TRACE_SCOPE(AQ_TRACE_TM_CREATE, GEX_RANK_INVALID, 0);
    const gex_Flags_t layout = flags & AQ_SCRATCH_LAYOUTS;
    struct aq_create_request own = { .members = (uint32_t)numargs };
    struct aq_tm_plan plan = { .size = (gex_Rank_t)numargs, .flags = flags };
    gex_Rank_t *jobranks;

    aq_team_check("gex_TM_Create", parent, flags,
                  AQ_SCRATCH_QUERIES | AQ_SCRATCH_LAYOUTS | GEX_FLAG_RANK_IS_JOBRANK);
    if ((flags & AQ_SCRATCH_QUERIES) != 0)
        return numargs != 0 ? aq_team_scratch_size(flags) : 0;
    own.number = aq_team_number();
    if (numargs == 0) {
        aq_create_agree(new_tms, parent, &own, &plan);
        return 0;
    }
    if (numargs > aq_tm_head_of(parent)->size)
        aq_fatal("gex_TM_Create: numargs is %zu; the parent team has %u members", numargs,
                 aq_tm_head_of(parent)->size);
    jobranks = aq_team_table("gex_TM_Create", numargs, sizeof(*jobranks));
    aq_create_list(parent, args, numargs, flags, jobranks);
    aq_create_check(num_new, jobranks, numargs, layout);
    own.digest = aq_create_digest(jobranks, numargs, layout, scratch_size);
    plan.jobranks = jobranks;
    plan.rank = aq_create_find_me(jobranks, plan.size);
    if (plan.rank != GEX_RANK_INVALID) {
        plan.scratch = aq_create_scratch(scratch_addrs, scratch_size, layout, plan.rank);
        if (layout != GEX_FLAG_TM_NO_SCRATCH)
            aq_team_check_scratch("gex_TM_Create", plan.scratch.gex_addr, plan.scratch.gex_len);
    }
    aq_create_agree(new_tms, parent, &own, &plan);
    free(jobranks);
    return 0;
}

/* --- destroy --- */

int gex_TM_Destroy(gex_TM_t handle, gex_Memvec_t *scratch_p, gex_Flags_t flags)
{
    aq_check_started(__func__);
    AQ_TRACE_SCOPE(AQ_TRACE_TM_DESTROY, GEX_RANK_INVALID, 0);
    struct aq_tm *tm = aq_tm(handle);
    gex_Memvec_t scratch;

    aq_team_check("gex_TM_Destroy", handle, flags, GEX_FLAG_GLOBALLY_QUIESCED);
    if (tm == aq_job.tm)
        aq_fatal("gex_TM_Destroy of the primordial team, which stays for as long as the job");
    aq_ad_check_team(handle);
    if ((flags & GEX_FLAG_GLOBALLY_QUIESCED) == 0)
        aq_exchange_barrier("gex_TM_Destroy", handle);
    scratch = tm->scratch;
    aq_callback_team_destroyed(tm);
    aq_tm_destroy(tm);
    if (scratch_p == NULL || scratch.gex_len == 0)
        return 0;
    *scratch_p = scratch;
    return 1;
}
