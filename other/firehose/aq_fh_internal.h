/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_internal.h - what the parts of firehose share.
 *
 * Two kinds of tables hold regions, each under its lock: the local table, of this rank's memory
 * (own transfers, and references of peers), and one table for each peer, of that peer's memory that
 * this rank has references to.
 *
 * A region       FREE -> MAKING (being registered, or asked for) -> READY -> STALE (in no table any
 *                more; freed when its last use ends). MAKING and READY regions are in the index. A
 *                region whose memory cannot be monitored is STALE as soon as it is made, so that
 *                only the transfer that asked for it uses it
 * Local charge   a local region counts against local_bytes while own transfers use it or while it
 *                has no references, and against the quota of each peer with a reference to it: so
 *                the two budgets bound what is registered
 * Locks          one at a time; reg, dereg, request, the memory monitor and done() are called with
 *                none
 */
#ifndef AQ_FH_INTERNAL_H
#define AQ_FH_INTERNAL_H

#include "base/aq_lock.h"
#include "other/firehose/aq_fh.h"

#define AQ_FH_GRANULE_SHIFT \
    16 /* regions are found by 64 KiB granules: a chain has 16 of one page at most */
#define AQ_FH_GRANULE   ((uintptr_t)1 << AQ_FH_GRANULE_SHIFT)
#define AQ_FH_SLOT_BITS 20 /* of an id; the rest tells one use of the slot from the next */
#define AQ_FH_SLOTS_MAX (1u << AQ_FH_SLOT_BITS)

enum aq_fh_state { AQ_FH_FREE, AQ_FH_MAKING, AQ_FH_READY, AQ_FH_STALE };

/* A region in the chain of one granule that it covers. */
struct aq_fh_node {
    struct aq_fh_node *next;
    struct aq_fh_region *region;
    uintptr_t granule;
};

struct aq_fh_list {
    struct aq_fh_region *first, *last;
};

struct aq_fh_region {
    /* All that a hit touches: one cache line. */
    uintptr_t start, end;    /* whole pages */
    struct aq_fh_node first; /* see second and more */
    uint32_t holds;          /* of transfers: aq_fh_hold */
    uint8_t state;           /* enum aq_fh_state */
    bool write;              /* for transfers that write to it as well */
    bool used;               /* since it was last at the head of the order */
    bool recalled;           /* a peer's, while MAKING: stale as soon as it is there */
    struct aq_fh_peer *peer; /* whose memory; NULL: local */
    uint64_t charge;         /* local: bytes against the local budget */
    /* The rest. */
    bool leaving; /* a peer's: a message that gives it up is under way */
    struct aq_fh_reg reg;
    struct aq_fh_node second, *more;  /* the further nodes */
    struct aq_fh_region *prev, *next; /* in one list: see the tables; or what a message gives up */
    struct aq_fh_list *list;
    /* Ours. */
    struct aq_fh_ref *peer_refs; /* of peers */
    /* A peer's. */
    uint32_t id;
    uint32_t region_discount; /* as discount, for the number of regions */
    uint64_t asked;           /* bytes of the quota that the move under way has reserved for it */
    uint64_t discount;        /* of these: bytes of the regions that the same message gives up */
    struct aq_fh_list
        cargo; /* what the message under way gives up, besides a released region itself */
    struct aq_fh_request *requests; /* that wait for it, the one that travels first */
    struct aq_fh_request **requests_end;
};

_Static_assert(offsetof(struct aq_fh_region, leaving) == AQ_CACHE_LINE,
               "a hit touches one line of a region");

/* Regions by granule. */
struct aq_fh_index {
    struct aq_fh_node **bucket;
    unsigned shift; /* 64 - log2(buckets) */
    uint32_t nodes;
};

/* A reference of a peer to a local region. */
struct aq_fh_ref {
    struct aq_fh_region *region;
    struct aq_fh_ref *next, *prev; /* of the region's list */
    bool linked;                   /* granted */
    struct aq_fh_peer *peer;
    uint32_t id;
    uint8_t recall; /* enum aq_fh_recall */
};

enum aq_fh_recall { AQ_FH_RECALL_NONE, AQ_FH_RECALL_WANTED, AQ_FH_RECALL_SENT };

struct aq_fh_peer {
    struct aq_fh *fh;
    uint32_t rank;
    struct aq_fh_peer *next;  /* of fh->peers */
    atomic_bool send_pending; /* to send something */
    /* the peer sends and answers nothing any more; set under the local lock */
    atomic_bool disconnected;
    /* This rank's references to its memory; under the lock. */
    aq_lock lock;
    struct aq_fh_index index;
    struct aq_fh_list order;   /* READY, oldest first */
    struct aq_fh_list stale;   /* STALE and in use */
    struct aq_fh_list leaving; /* STALE, to be given up with the next message */
    uint64_t used;             /* bytes of the quota at the peer */
    uint32_t used_regions;
    struct aq_fh_region **slot;     /* by slot of their ids */
    uint32_t slots, next_slot, use; /* use: the next id's upper part */
    uint64_t hits, misses, waits, moves, releases, carried;
    /* Its references to local memory; under the local lock. */
    struct aq_fh_ref **ref; /* by slot */
    uint32_t ref_slots;
    uint64_t referenced; /* bytes of its quota */
    uint32_t referenced_regions;
    uint32_t recalls_wanted; /* to be sent */
    uint32_t recalls_sent;   /* to be confirmed */
};

struct aq_fh {
    struct aq_fh_head head;
    struct aq_fh_config config;
    struct aq_fh_ops ops;
    void *arg;
    uint64_t quota; /* bytes of each peer */
    uint32_t quota_regions, quota_slots;
    size_t remote_region, local_region; /* what small misses grow to */
    size_t remote_chunk, local_chunk;   /* the largest regions */
    uintptr_t reach_start, reach_end;   /* what peers may get references to */
    aq_lock lock;                       /* the local one, for all below */
    struct aq_fh_index index;
    struct aq_fh_list order;      /* READY and MAKING, without references, oldest first */
    struct aq_fh_list referenced; /* READY and MAKING, with references */
    struct aq_fh_list stale;      /* STALE and in use */
    uint64_t charged;             /* bytes against local_bytes */
    uint32_t charged_regions;
    struct aq_fh_counts counts; /* of local memory; those of the peers are in struct aq_fh_peer */
    struct aq_fh_peer *_Atomic *peer; /* [size] */
    struct aq_fh_peer *_Atomic peers; /* all there are */
};

static inline uint64_t aq_fh_size(const struct aq_fh_region *region)
{
    return region->end - region->start;
}

static inline uintptr_t aq_fh_down(uintptr_t addr)
{
    return addr & ~(uintptr_t)(AQ_FH_PAGE - 1);
}

static inline uintptr_t aq_fh_up(uintptr_t addr)
{
    return aq_fh_down(addr + AQ_FH_PAGE - 1);
}

/* --- aq_fh_table.c: under the table's lock --- */

bool aq_fh_index_open(struct aq_fh_index *index);
void aq_fh_index_close(struct aq_fh_index *index);
/* A region without a table; NULL: no memory. */
struct aq_fh_region *aq_fh_region_create(struct aq_fh_peer *peer, uintptr_t start, uintptr_t end);
void aq_fh_region_destroy(struct aq_fh_region *region);
/* Lookups find the region from now on; false: no memory. */
bool aq_fh_index_insert(struct aq_fh_index *index, struct aq_fh_region *region);
void aq_fh_index_remove(struct aq_fh_index *index, struct aq_fh_region *region);
/* Shrink a region that is in the index, or grow it. */
bool aq_fh_index_resize(struct aq_fh_index *index, struct aq_fh_region *region, uintptr_t start,
                        uintptr_t end);
void aq_fh_list_append(struct aq_fh_list *list, struct aq_fh_region *region);
void aq_fh_list_remove(struct aq_fh_region *region);
struct aq_fh_region *aq_fh_list_pop(struct aq_fh_list *list);

static inline struct aq_fh_node *aq_fh_index_chain(const struct aq_fh_index *index,
                                                   uintptr_t granule)
{
    return index->bucket[granule * UINT64_C(0x9e3779b97f4a7c15) >> index->shift];
}

/* A region in a state that covers addr and allows write. */
static inline struct aq_fh_region *aq_fh_index_find(const struct aq_fh_index *index, uintptr_t addr,
                                                    bool write, enum aq_fh_state state)
{
    const uintptr_t granule = addr >> AQ_FH_GRANULE_SHIFT;

    for (struct aq_fh_node *node = aq_fh_index_chain(index, granule); node != NULL;
         node = node->next) {
        struct aq_fh_region *region = node->region;

        if (addr - region->start < region->end - region->start && region->state == state
            && write <= region->write)
            return region;
    }
    return NULL;
}

/* --- aq_fh_plan.c --- */

/* What a miss asks for. */
struct aq_fh_plan {
    uintptr_t start, end;               /* at least */
    uintptr_t want_start, want_end;     /* at best */
    struct aq_fh_region *below, *above; /* neighbours that the new region is to take in, or NULL */
};

struct aq_fh_plan aq_fh_plan_make(const struct aq_fh_index *index, uintptr_t addr, size_t nbytes,
                                  bool write, size_t max_region, size_t max_chunk);
/* Reduce the plan to what is asked for, and of that to space bytes. */
void aq_fh_plan_cut(struct aq_fh_plan *plan, uint64_t space);

/* --- aq_fh_reg.c: registration, eviction; local lock, unless said otherwise --- */

/* Regions to be deregistered once the lock is released; until then they count. */
struct aq_fh_pending {
    struct aq_fh_list list;
    uint64_t charge; /* to be taken off the local charge when that is done */
    uint32_t regions;
};

/* Evict victims until the local budget has space for size; they count until they are deregistered.
 * False: transfers use it all. */
bool aq_fh_make_space(struct aq_fh *fh, uint64_t size, struct aq_fh_pending *pending);
/* Charge a local region against the local budget. If victims have to go it takes over their charge
 * while they are still registered, so it must not be registered, or count elsewhere too, until they
 * are deregistered. False: transfers use it all. */
bool aq_fh_charge(struct aq_fh *fh, struct aq_fh_region *region, struct aq_fh_pending *pending);
/* A region was charged and will not be registered after all: what it took over from victims counts
 * until they are deregistered, with the rest. */
void aq_fh_charge_back(struct aq_fh_region *region, struct aq_fh_pending *pending);
void aq_fh_uncharge(struct aq_fh *fh, struct aq_fh_region *region);
/* A region without holds is to be deregistered. */
void aq_fh_pending_add(struct aq_fh *fh, struct aq_fh_region *region,
                       struct aq_fh_pending *pending);
/* Without the lock: deregister them. */
void aq_fh_dereg_pending(struct aq_fh *fh, struct aq_fh_pending *pending);
/* Without the lock: register as planned a region that is in the index as MAKING. On AQ_OK it is
 * READY, or STALE to be used once, and the lock is held; on AQ_RETRY (its memory was unmapped
 * meanwhile) and negative it is freed, and the lock is not held. */
int aq_fh_reg_region(struct aq_fh *fh, struct aq_fh_region *region, const struct aq_fh_plan *plan,
                     bool write);

/* --- aq_fh_ref.c: references of peers; local lock --- */

struct aq_fh_ref *aq_fh_ref_look(const struct aq_fh_peer *peer, uint32_t id);

/* --- aq_fh_remote.c and aq_fh_move.c: references to memory of peers --- */

/* The peer's state, made at the first contact; NULL: no memory (logged). */
struct aq_fh_peer *aq_fh_peer_get(struct aq_fh *fh, uint32_t rank);
void aq_fh_peer_close(struct aq_fh_peer *peer);
static inline struct aq_fh_peer *aq_fh_peer_look(struct aq_fh *fh, uint32_t rank)
{
    /* acquire: pairs with the compare-and-swap that published it */
    return atomic_load_explicit(&fh->peer[rank], memory_order_acquire);
}
/* Under the peer's lock: the region that an id names, or NULL. */
struct aq_fh_region *aq_fh_slot_region(const struct aq_fh_peer *peer, uint32_t id);
/* Under the peer's lock: a READY region becomes STALE, and is given up when its last hold ends. */
void aq_fh_remote_stale(struct aq_fh_peer *peer, struct aq_fh_region *region);
/* Under the peer's lock, which it releases: get the memory of a request. AQ_PENDING, AQ_RETRY. */
int aq_fh_miss(struct aq_fh_peer *peer, struct aq_fh_request *request);
/* Under the peer's lock: hold the memory of a request, after what was carried; false: not in the
 * region. */
bool aq_fh_request_hold(struct aq_fh_request *request, struct aq_fh_region *region);
/* Send one message that gives up what waits in peer->leaving: AQ_OK, AQ_RETRY. */
int aq_fh_release_send(struct aq_fh_peer *peer);
/* The answer to a move or a release. */
void aq_fh_reply_take(struct aq_fh_peer *peer, const void *msg, size_t nbytes);

/* --- aq_fh_recall.c --- */

/* Local lock: the reference is dropped. */
void aq_fh_recall_forget(struct aq_fh *fh, struct aq_fh_ref *ref);
/* Local lock: the peer will not confirm what it was sent. */
void aq_fh_recall_give_up(struct aq_fh_peer *peer);
size_t aq_fh_recall_serve(struct aq_fh_peer *peer, const void *msg, size_t nbytes, void *answer);
void aq_fh_recall_noted(struct aq_fh_peer *peer, const void *msg, size_t nbytes);

/* relaxed: a thread that must not miss it takes the local lock before or after */
static inline bool aq_fh_is_disconnected(const struct aq_fh_peer *peer)
{
    return atomic_load_explicit(&((struct aq_fh_peer *)(uintptr_t)peer)->disconnected,
                                memory_order_relaxed);
}

/* A peer sent a malformed message: log that once. Returns 0. */
size_t aq_fh_bad(const struct aq_fh_peer *peer, const char *what);

/* Something of the peer's waits to be sent. The lock under which it was queued is held. */
static inline void aq_fh_set_pending(struct aq_fh_peer *peer)
{
    /* relaxed: goes with the next store; aq_fh_progress() clears it before it takes the lock that
     * is held here */
    atomic_store_explicit(&peer->send_pending, true, memory_order_relaxed);
    /* release: pairs with the exchange in aq_fh_progress() */
    atomic_store_explicit(&peer->fh->head.work, 1, memory_order_release);
}

#endif
