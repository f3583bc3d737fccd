/*
 * aq_job.h - this process's part of the job: ranks, client, endpoint, team, segment.
 *
 * Start-up and attach write it, before a second thread can call the library. Afterwards it is
 * constant, except the clients' own pointers. Depends on the public headers and the conduit table.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_JOB_H
#define AQ_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "gasnetex.h"

#include "core/aq_conduit.h"
#include "core/aq_mk.h"
#include "base/aq_lock.h"

struct aq_client {
    const char *name;
    gex_Flags_t flags;
    void *_Atomic cdata;
};

/* A destroyed segment has size 0. The object lives as long as an endpoint refers to it, which is
 * for the rest of the job. */
struct aq_segment {
    const struct aq_mk_ops *mk; /* the kind of its memory */
    void *base;                 /* stays when the segment is destroyed */
    uintptr_t _Atomic size;     /* becomes 0 then, while handlers on other threads may look at it */
    void *_Atomic cdata;
    bool is_ours; /* the library allocated the memory */
    /* in core/aq_segment.c's list of segments that a client has made */
    struct aq_segment *next, **link;
    /* number of endpoints it is bound to; under the endpoints' lock, see core/aq_ep.c */
    unsigned bound;
};

/* relaxed: base and the first size are published with the endpoint's pointer to the segment, whose
 * load acquires. The later value 0 needs no other data. */
static inline uintptr_t aq_segment_size(const struct aq_segment *segment)
{
    return atomic_load_explicit(&segment->size, memory_order_relaxed);
}

/* Called before others can find the segment, or to end it. */
static inline void aq_segment_set_size(struct aq_segment *segment, uintptr_t size)
{
    atomic_store_explicit(&segment->size, size, memory_order_relaxed);
}

/* A team, or a TM-pair. Its handle points to `head`: inline code sees only what follows. */
struct aq_tm {
    bool is_pair;
    gex_EP_Index_t peer_index; /* index of the peers' endpoints: not 0 only in pairs */
    gex_Flags_t flags;
    const gex_Rank_t *jobranks; /* [head.size]; NULL: rank is jobrank */
    void *_Atomic cdata;
    /* Teams only. */
    uint64_t id; /* names the team in messages, the same on every member; never used again. The
                  * primordial team's is 0 */
    /* the client's memory, in use until the team is destroyed; length 0: none */
    gex_Memvec_t scratch;
    struct aq_coll_team *coll; /* the collectives' state, see core/aq_callback.h */
    uint32_t exchanges;        /* this member's calls of aq_exchange_allgather() so far */
    gex_Rank_t *rank_of;       /* [rank_mask + 1]: ranks, hashed by jobrank; see core/aq_tm.c */
    gex_Rank_t rank_mask;
    struct aq_tm *next, *prev; /* in the list of teams that core/aq_tm.c keeps */
    gex_Rank_t capacity;       /* entries of the table of displacements; at least head.size */
    struct aq_tm_public head;  /* last: the table follows it, see aq_tm_deltas() */
};
_Static_assert(offsetof(struct aq_tm, head) + sizeof(struct aq_tm_public) == sizeof(struct aq_tm),
               "nothing may lie between a team's head and its table");

struct aq_ep {
    gex_EP_Index_t index;
    gex_Flags_t flags;
    gex_EP_Capabilities_t caps;
    struct aq_segment *_Atomic segment;
    void *_Atomic cdata;
    struct aq_tm *_Atomic pair[GASNET_MAXEPS]; /* results of gex_TM_Pair(); NULL: not made yet */
    aq_lock table_lock;
    gex_AM_Fn_t _Atomic handler[256]; /* NULL where nothing is registered */
    gex_AM_Entry_t entry[256];
};

/* A process's segment as its owner sees it; size 0: none, or bound and not published. */
struct aq_bound {
    void *addr;
    uintptr_t size;
};

struct aq_job {
    gex_Rank_t rank, size;
    const struct aq_conduit_ops *conduit; /* the conduit that the job was started for */
    const struct aq_conduit_ops *local;   /* to the ranks of this neighborhood */
    const struct aq_conduit_ops *remote;  /* to all others */
    bool has_remote;                      /* some rank shares no memory with this one */
    /* number of this process's threads that have announced sleep; those of them that wait
     * themselves, and do not serve others */
    const _Atomic uint32_t *sleeping, *waiting;
    gex_Rank_t
        /* this rank, if messages to it are calls, see aq_am_loop.h; else GEX_RANK_INVALID */
        loop_rank;
    atomic_bool initialised; /* gex_Client_Init has returned; see aq_job_has_started() */
    bool attached;
    bool no_overrides;   /* AQ_NO_OVERRIDES: use reference paths where the conduit has its own */
    bool oversubscribed; /* more ranks on this host than cores; equal on all of them */

    /* Placement of all ranks; indexed by jobrank. */
    const gex_Rank_t *host_of, *nbrhd_of;
    gex_Rank_t host_count, nbrhd_count;
    /* The processes of this host and of this neighborhood, by increasing jobrank. */
    gex_RankInfo_t *host, *nbrhd;
    gex_Rank_t host_size, host_index, nbrhd_size, nbrhd_index;
    gex_Rank_t nbrhd_first; /* lowest jobrank of the neighborhood */
    bool nbrhd_in_a_row;    /* its jobranks are consecutive */
    /* of this host: ranks of the largest neighborhood, number of neighborhoods */
    gex_Rank_t nbrhd_max, nbrhd_on_host;

    /* [size], by jobrank. map: what to add to an owner's address to reach it in this process, or
     * AQ_NOT_MAPPED. delta: the table of inline transfers, which belongs to the primordial team:
     * the same table, or one where nothing is mapped if transfers must not be inline. */
    intptr_t *map, *delta;
    struct aq_bound *bound;

    uintptr_t max_local_segment, max_global_segment;

    struct aq_client client;
    struct aq_ep ep;                              /* the primordial one, index 0 */
    struct aq_ep *_Atomic further[GASNET_MAXEPS]; /* by index, from 1 on; NULL: not made yet */
    struct aq_tm *tm;                             /* the primordial team */
    struct aq_segment segment;
};

extern struct aq_job aq_job __attribute__((visibility("hidden")));

/* Collective over the job, once messages work: all[i * len ..] receives rank i's own[0 .. len). */
int aq_job_allgather(const void *own, size_t len, void *all);

/* Chooses the tables of the conduit that the job was started for. */
void aq_job_choose_transports(void);

/** aq_job_free_transports - frees the copies of tables that AQ_NO_OVERRIDES makes. */
void aq_job_free_transports(void);

/* Returns the index of a jobrank in the neighborhood, by search; UINT32_MAX if the rank is
 * remote. */
uint32_t aq_job_find_local(gex_Rank_t jobrank);

/* The same for a rank that is known to be local. */
static inline uint32_t aq_job_local_index(gex_Rank_t jobrank)
{
    return AQ_LIKELY(aq_job.nbrhd_in_a_row) ? jobrank - aq_job.nbrhd_first
                                            : aq_job_find_local(jobrank);
}

/* Returns true if the rank shares memory with this one. This rank itself always does. */
static inline bool aq_job_is_local(gex_Rank_t jobrank)
{
    return AQ_LIKELY(aq_job.nbrhd_in_a_row) ? jobrank - aq_job.nbrhd_first < aq_job.nbrhd_size
                                            : aq_job_find_local(jobrank) != UINT32_MAX;
}

/* Returns the table that reaches a rank. */
static inline const struct aq_conduit_ops *aq_job_ops(gex_Rank_t jobrank)
{
    return AQ_LIKELY(aq_job_is_local(jobrank)) ? aq_job.local : aq_job.remote;
}

/* Returns the table for what all ranks do together: its barriers. */
static inline const struct aq_conduit_ops *aq_job_ops_all(void)
{
    return aq_job.has_remote ? aq_job.remote : aq_job.local;
}

/* Returns true if gex_Client_Init has returned. Internal threads call it too: relaxed, since only
 * messages about failures depend on it. */
static inline bool aq_job_has_started(void)
{
    return atomic_load_explicit(&aq_job.initialised, memory_order_relaxed);
}

static inline struct aq_tm *aq_tm(gex_TM_t tm)
{
    return (struct aq_tm *)(void *)((char *)(void *)tm - offsetof(struct aq_tm, head));
}

static inline gex_TM_t aq_tm_handle(struct aq_tm *tm)
{
    return (gex_TM_t)(void *)&tm->head;
}

/* Does the network have work in progress that needs polls? */
static inline bool aq_job_is_busy(void)
{
    /* relaxed: a hint; what another thread starts at this moment is for that thread's polls */
    return atomic_load_explicit((atomic_uint_fast64_t *)(uintptr_t)aq_job.remote->busy,
                                memory_order_relaxed)
           != 0;
}

static inline struct aq_ep *aq_ep(gex_EP_t ep)
{
    return (struct aq_ep *)(void *)ep;
}

static inline gex_Rank_t aq_tm_jobrank(gex_TM_t tm, gex_Rank_t rank)
{
    const gex_Rank_t *jobranks = aq_tm(tm)->jobranks;

    return AQ_LIKELY(jobranks == NULL) ? rank : jobranks[rank];
}

/* Returns true if [addr, addr+nbytes) is inside these bounds. */
static inline bool aq_bounds_contain(const struct aq_bound *bound, const void *addr, size_t nbytes)
{
    uintptr_t offset = (uintptr_t)addr - (uintptr_t)bound->addr;

    return offset <= bound->size && nbytes <= bound->size - offset;
}

/* Returns true if it is inside the segment of a process's primordial endpoint, which may be
 * mapped. */
static inline bool aq_bound_contains(gex_Rank_t jobrank, const void *addr, size_t nbytes)
{
    return aq_bounds_contain(&aq_job.bound[jobrank], addr, nbytes);
}

#endif
