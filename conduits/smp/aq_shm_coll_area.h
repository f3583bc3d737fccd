/*
 * aq_shm_coll_area.h - memory that the members of a team on one host share for their collectives.
 *
 * The arena holds a few equal areas. The first two belong to the job. A new team takes one, or two
 * if it has members in other neighborhoods. Steps of collectives are numbered through the life of
 * an area. For each step every member has a line, [number % AQ_AREA_LINES], in which it posts that
 * number once its operand is ready. A small operand is in the line, a larger one in one of the
 * member's blocks, or in cells of one. `done` counts the steps that a member has finished; a line
 * or cell is used again when every member has finished its last use.
 *
 * Owns      the areas
 * Threads   only its own process writes a member's lines, blocks and done, one thread at a time;
 *           all read
 * Uses      conduits/smp/aq_shm.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SHM_COLL_AREA_H
#define AQ_SHM_COLL_AREA_H

#include "conduits/smp/aq_shm.h"

#define AQ_AREA_LINES  64u /* steps that can be open at a time */
#define AQ_AREA_BLOCKS 4u  /* the same for steps with more than a line's data */
#define AQ_BLOCK_CELLS 8u  /* cells of a block; a step takes 1, 2, 4 or all of them */
#define AQ_AREA_CELLS  (AQ_AREA_BLOCKS * AQ_BLOCK_CELLS)
#if GASNET_DEBUG
#define AQ_AREA_INLINE_MAX 96u /* bytes of data in a line */
#else
#define AQ_AREA_INLINE_MAX 112u
#endif

struct aq_shm_area_line {
    _Alignas(
        AQ_SHM_PAIR) _Atomic uint64_t posted; /* number of the step + 1 once the operand is there */
    /* number of the step + 1 once this member's chunk of the result is there */
    _Atomic uint64_t shared;
#if GASNET_DEBUG
    /* of the whole call that the step belongs to, equal on all members: */
    uint64_t bytes;
    uint64_t in_place; /* 1: the result of a reduction to all replaces the operand */
#endif
    _Alignas(16) unsigned char data[AQ_AREA_INLINE_MAX];
};
_Static_assert(sizeof(struct aq_shm_area_line) == AQ_SHM_PAIR, "a line is a pair of cache lines");

struct aq_shm_area_head {
    _Alignas(AQ_SHM_PAIR) _Atomic uint32_t taken; /* 1: a team uses the area */
    _Atomic uint32_t left;                        /* members of the team that have left */
    uint64_t first;                               /* number of a new team's first step */
    _Alignas(AQ_SHM_PAIR) _Atomic uint32_t full;  /* members that wait for others to finish steps */
};

/* One for each member. */
struct aq_shm_area_done {
    _Alignas(AQ_SHM_PAIR) _Atomic uint64_t count; /* steps that the member has finished */
    _Atomic uint64_t waits; /* the member waits until all counts are at least this; 0: no wait */
};

/* One process's view of its team's area. */
struct aq_shm_area {
    uint32_t index, size, me;
    uint32_t *local; /* [size]: index among the ranks of the host */
    struct aq_shm_area_head *head;
    struct aq_shm_area_done *done;
    struct aq_shm_area_line *lines;
    char *blocks;
    size_t block_bytes;
    uint64_t all_done; /* steps that all had finished at the last test */
    uint64_t awaited;  /* the announced wait, counted in head->full; 0: none */
};

/* Plans the areas for a host's ranks, from an offset of the arena on. Returns their end. */
uint64_t aq_shm_area_plan(uint32_t ranks, uint64_t at, struct aq_shm_layout *layout);

/* Takes a free area for a new team, at one member. Returns its number, or AQ_COLL_NO_AREA. An area
 * that no member has opened can be returned. */
uint32_t aq_shm_area_take(void);
void aq_shm_area_give_back(uint32_t index);
/* Number of the first step of the area's team. */
uint64_t aq_shm_area_first(uint32_t index);
/* Makes this member's view of an area. It takes over `local`, which the close frees. */
void aq_shm_area_open(struct aq_shm_area *area, uint32_t index, uint32_t size, uint32_t me,
                      uint32_t *local);
/* This member leaves after so many steps. The last member to leave frees the area. */
void aq_shm_area_close(struct aq_shm_area *area, uint64_t steps);

/* Returns true if all members have finished the steps below number. If not, the last of them wakes
 * this member should it sleep. */
bool aq_shm_area_look_done(struct aq_shm_area *area, uint64_t number);

/* Returns the other member that has finished the fewest steps. */
uint32_t aq_shm_area_behind(const struct aq_shm_area *area);

static inline bool aq_shm_area_all_done(struct aq_shm_area *area, uint64_t number)
{
    return AQ_LIKELY(area->all_done >= number && area->awaited == 0)
           || aq_shm_area_look_done(area, number);
}

/* Wakes one sleeping member, or all others. */
void aq_shm_area_wake(const struct aq_shm_area *area, uint32_t member);
void aq_shm_area_wake_all(const struct aq_shm_area *area);
/* A member waits for others to finish: wakes those that have waited for this member. */
void aq_shm_area_wake_full(struct aq_shm_area *area);

static inline struct aq_shm_area_line *aq_shm_area_line(const struct aq_shm_area *area,
                                                        uint32_t member, uint64_t number)
{
    return &area->lines[(size_t)member * AQ_AREA_LINES + number % AQ_AREA_LINES];
}

static inline char *aq_shm_area_cell(const struct aq_shm_area *area, uint32_t member, uint64_t cell)
{
    return area->blocks + (size_t)member * AQ_AREA_BLOCKS * area->block_bytes
           + cell % AQ_AREA_CELLS * (area->block_bytes / AQ_BLOCK_CELLS);
}

static inline bool aq_shm_area_posted(const struct aq_shm_area *area, uint32_t member,
                                      uint64_t number)
{
    /* acquire: the operand is there */
    return atomic_load_explicit(&aq_shm_area_line(area, member, number)->posted,
                                memory_order_acquire)
           > number;
}

static inline bool aq_shm_area_shared(const struct aq_shm_area *area, uint32_t member,
                                      uint64_t number)
{
    /* acquire: the chunk is there */
    return atomic_load_explicit(&aq_shm_area_line(area, member, number)->shared,
                                memory_order_acquire)
           > number;
}

/* Called after something was published: returns true if a rank of this host may sleep. */
static inline bool aq_shm_area_sleepers(void)
{
    aq_shm_order_before_look();
    return AQ_UNLIKELY(atomic_load_explicit(&aq_shm_common()->sleepers, memory_order_relaxed) != 0);
}

/* This member has finished the steps below number. */
static inline void aq_shm_area_set_done(struct aq_shm_area *area, uint64_t number)
{
    /* release: this member's reads of those steps precede the next write to their lines */
    atomic_store_explicit(&area->done[area->me].count, number, memory_order_release);
    aq_shm_order_before_look();
    if (AQ_UNLIKELY(atomic_load_explicit(&area->head->full, memory_order_relaxed) != 0))
        aq_shm_area_wake_full(area);
}

#endif
