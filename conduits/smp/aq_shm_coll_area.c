/*
 * aq_shm_coll_area.c - areas of the arena for the collectives of teams on one host: layout,
 * allocation, wakeups.
 *
 * The layout depends on the number of ranks of the host, never on a team's size. The words that
 * hold step numbers therefore hold nothing else, whichever team had the area before. Numbers
 * continue where the last team stopped, and nothing need be cleared.
 *
 * Threads   one thread of a process at a time takes an area; the rest as aq_shm_coll_area.h says
 * Uses      conduits/smp/aq_shm.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/smp/aq_shm_coll_area.h"

#include <stdlib.h>

#include "extended/aq_coll.h"

/* --- layout: areas one after the other; in each head, done, lines, blocks --- */

static uint64_t aq_shm_area_done_at(void)
{
    return sizeof(struct aq_shm_area_head);
}

static uint64_t aq_shm_area_lines_at(uint32_t ranks)
{
    return aq_shm_area_done_at() + (uint64_t)ranks * sizeof(struct aq_shm_area_done);
}

static uint64_t aq_shm_area_blocks_at(uint32_t ranks)
{
    return aq_round_up(aq_shm_area_lines_at(ranks)
                           + (uint64_t)ranks * AQ_AREA_LINES * sizeof(struct aq_shm_area_line),
                       AQ_PAGE_SIZE);
}

/* Plans smaller areas for more ranks: untouched memory costs nothing, but all of it might be
 * touched. */
uint64_t aq_shm_area_plan(uint32_t ranks, uint64_t at, struct aq_shm_layout *layout)
{
    layout->coll_areas = AQ_COLL_JOB_AREAS + (ranks <= 16 ? 16 : ranks <= 64 ? 8 : 4);
    layout->coll_block = ranks <= 16 ? 32768 : ranks <= 64 ? 16384 : 4096;
    layout->coll_bytes =
        aq_shm_area_blocks_at(ranks) + (uint64_t)ranks * AQ_AREA_BLOCKS * layout->coll_block;
    layout->coll = at;
    return at + layout->coll_areas * layout->coll_bytes;
}

static char *aq_shm_area_at(uint32_t index)
{
    return aq_shm.arena + aq_shm.layout.coll + index * aq_shm.layout.coll_bytes;
}

static struct aq_shm_area_head *aq_shm_area_head(uint32_t index)
{
    return (struct aq_shm_area_head *)(void *)aq_shm_area_at(index);
}

/* --- finished steps --- */

/* Returns the number of steps that all members have finished. A word of an earlier team may remain;
 * it is too small, which is safe. */
static uint64_t aq_shm_area_min_done(const struct aq_shm_area *area)
{
    uint64_t min = UINT64_MAX;

    for (uint32_t member = 0; member < area->size; member++) {
        /* acquire: pairs with the release in aq_shm_area_set_done() */
        const uint64_t done = atomic_load_explicit(&area->done[member].count, memory_order_acquire);

        if (done < min)
            min = done;
    }
    return min;
}

uint32_t aq_shm_area_behind(const struct aq_shm_area *area)
{
    uint32_t behind = area->me;
    uint64_t min = UINT64_MAX;

    for (uint32_t i = 1; i < area->size; i++) {
        const uint32_t member = (area->me + i) % area->size;
        /* relaxed: only the member's index matters, no data of a step is read */
        const uint64_t done = atomic_load_explicit(&area->done[member].count, memory_order_relaxed);

        if (done < min) {
            min = done;
            behind = member;
        }
    }
    return behind;
}

/* Announces that this member waits until all have finished the steps below number; 0 ends the wait.
 * It is announced at the first idle test, long before this member sleeps: going to sleep includes a
 * barrier on all processors. */
static void aq_shm_area_await(struct aq_shm_area *area, uint64_t number)
{
    atomic_store_explicit(&area->done[area->me].waits, number, memory_order_relaxed);
    if ((number != 0) != (area->awaited != 0))
        atomic_fetch_add_explicit(&area->head->full, number != 0 ? 1 : UINT32_MAX,
                                  memory_order_relaxed);
    area->awaited = number;
}

/* A request may wait to post while an earlier one waits to finish. The smaller number is announced:
 * a member that looked for the larger one in that moment would not wake this one. */
__attribute__((noinline)) bool aq_shm_area_look_done(struct aq_shm_area *area, uint64_t number)
{
    const uint64_t min = aq_shm_area_min_done(area);

    if (min > area->all_done)
        area->all_done = min;
    if (area->all_done >= number) {
        if (area->awaited != 0 && area->awaited <= number)
            aq_shm_area_await(area, 0);
        return true;
    }
    if (area->awaited == 0 || number < area->awaited)
        aq_shm_area_await(area, number);
    return false;
}

/* --- taking and closing an area --- */

uint32_t aq_shm_area_take(void)
{
    for (uint32_t index = AQ_COLL_JOB_AREAS; index < aq_shm.layout.coll_areas; index++) {
        _Atomic uint32_t *taken = &aq_shm_area_head(index)->taken;

        /* acquire: pairs with the release in aq_shm_area_close() */
        if (atomic_load_explicit(taken, memory_order_relaxed) == 0
            && atomic_exchange_explicit(taken, 1, memory_order_acquire) == 0)
            return index;
    }
    return AQ_COLL_NO_AREA;
}

void aq_shm_area_give_back(uint32_t index)
{
    /* release: pairs with the acquire in aq_shm_area_take() */
    atomic_store_explicit(&aq_shm_area_head(index)->taken, 0, memory_order_release);
}

uint64_t aq_shm_area_first(uint32_t index)
{
    return aq_shm_area_head(index)->first;
}

void aq_shm_area_open(struct aq_shm_area *area, uint32_t index, uint32_t size, uint32_t me,
                      uint32_t *local)
{
    char *base = aq_shm_area_at(index);

    *area = (struct aq_shm_area){
        .index = index,
        .size = size,
        .me = me,
        .local = local,
        .head = aq_shm_area_head(index),
        .done = (struct aq_shm_area_done *)(void *)(base + aq_shm_area_done_at()),
        .lines = (struct aq_shm_area_line *)(void *)(base + aq_shm_area_lines_at(aq_shm.size)),
        .blocks = base + aq_shm_area_blocks_at(aq_shm.size),
        .block_bytes = aq_shm.layout.coll_block,
        .all_done = aq_shm_area_head(index)->first,
    };
}

void aq_shm_area_close(struct aq_shm_area *area, uint64_t steps)
{
    struct aq_shm_area_head *head = area->head;

    if (area->awaited != 0)
        aq_shm_area_await(area, 0);
    /* acq_rel: the last member to leave sees that the others have read what they needed */
    if (atomic_fetch_add_explicit(&head->left, 1, memory_order_acq_rel) + 1 == area->size) {
        /* relaxed: no other member reads it */
        atomic_store_explicit(&head->left, 0, memory_order_relaxed);
        head->first = steps;
        /* release: pairs with the acquire in aq_shm_area_take() */
        atomic_store_explicit(&head->taken, 0, memory_order_release);
    }
    free(area->local);
}

/* --- wakeups --- */

void aq_shm_area_wake(const struct aq_shm_area *area, uint32_t member)
{
    struct aq_shm_control *control = aq_shm_control(area->local[member]);

    if (atomic_load_explicit(&control->sleeping, memory_order_relaxed) != 0)
        aq_shm_wake(control);
}

void aq_shm_area_wake_all(const struct aq_shm_area *area)
{
    for (uint32_t member = 0; member < area->size; member++)
        if (member != area->me)
            aq_shm_area_wake(area, member);
    aq_shm_sleep_wake();
}

/* The last member to finish wakes the waiting ones. If two finish last at the same time, each
 * fences before it scans, so at least one of them sees both. */
__attribute__((noinline, cold)) void aq_shm_area_wake_full(struct aq_shm_area *area)
{
    uint64_t min;

    atomic_thread_fence(memory_order_seq_cst);
    min = aq_shm_area_min_done(area);
    for (uint32_t member = 0; member < area->size; member++) {
        const uint64_t waits =
            atomic_load_explicit(&area->done[member].waits, memory_order_relaxed);

        if (waits != 0 && waits <= min && member != area->me)
            aq_shm_area_wake(area, member);
    }
}
