/*
 * aq_shm_coll_team.c - collectives through shared memory: the state of a team.
 *
 * Threads   one thread makes and frees a team's state; its requests are complete by then
 * Uses      aq_shm_coll.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/smp/aq_shm_coll.h"

#include <stdlib.h>

static uint32_t *aq_shm_coll_table(uint32_t size)
{
    uint32_t *local = malloc(size * sizeof(*local));

    if (local == NULL)
        aq_fatal("no memory for a team of %u members (%zu bytes)", size, size * sizeof(*local));
    return local;
}

/* Index of each member among the ranks of this neighborhood, or NULL if one is elsewhere. */
static uint32_t *aq_shm_coll_locals(const struct aq_coll_team *team)
{
    uint32_t *local = aq_shm_coll_table(team->size);

    for (gex_Rank_t rank = 0; rank < team->size; rank++) {
        local[rank] = aq_job_find_local(aq_coll_jobrank(team, rank));
        if (local[rank] == UINT32_MAX) {
            free(local);
            return NULL;
        }
    }
    return local;
}

/* Rank 0 takes an area for the team and sends its number to the others. */
static uint32_t aq_shm_coll_area(struct aq_coll_team *team)
{
    uint32_t area = 0;

    if (team->id == 0)
        return 0; /* the area of the job's team */
    if (team->rank == 0)
        area = aq_shm_area_take();

    const struct aq_coll_call call = {
        .kind = AQ_COLL_BROADCAST, .dst = &area, .src = &area, .nbytes = sizeof(area)
    };

    gex_Event_Wait(aq_sched_start(aq_sched_of_call(team, &call), &aq_coll_op_kinds[call.kind]));
    return area;
}

/* This member's view of an area; local as in aq_shm_area_open(). */
static struct aq_coll_local *aq_shm_coll_open(uint32_t area, uint32_t size, uint32_t me,
                                              uint32_t *local)
{
    struct aq_coll_local *coll = calloc(1, sizeof(*coll));

    if (coll == NULL)
        aq_fatal("no memory for a team of %u members (%zu bytes)", size, sizeof(*coll));
    aq_shm_area_open(&coll->area, area, size, me, local);
    coll->next_step = aq_shm_area_first(area);
    return coll;
}

static struct aq_coll_local *aq_shm_coll_make(struct aq_coll_team *team)
{
    uint32_t *local, area;

    if (aq_shm.arena == NULL || team->size == 1 || (local = aq_shm_coll_locals(team)) == NULL)
        return NULL;
    area = aq_shm_coll_area(team);
    if (area == AQ_COLL_NO_AREA) {
        free(local);
        return NULL;
    }
    return aq_shm_coll_open(area, team->size, team->rank, local);
}

static struct aq_coll_local *aq_shm_coll_make_local(const struct aq_coll_team *team, uint32_t area)
{
    const struct aq_coll_ring *ring = &team->levels->local;
    uint32_t *local = aq_shm_coll_table(ring->size);

    for (gex_Rank_t i = 0; i < ring->size; i++)
        local[i] = aq_job_find_local(aq_coll_jobrank(team, aq_ring_rank(ring, i)));
    return aq_shm_coll_open(area, ring->size, ring->me, local);
}

static void aq_shm_coll_free(struct aq_coll_local *coll)
{
    aq_shm_coll_quiesce(coll);
    aq_shm_area_close(&coll->area, coll->next_step);
    while (coll->free != NULL) {
        struct aq_coll_req *next = coll->free->next;

        free(coll->free);
        coll->free = next;
    }
    free(coll->temp);
    free(coll);
}

const struct aq_coll_ops aq_shm_coll_ops = {
    .make = aq_shm_coll_make,
    .free = aq_shm_coll_free,
    .serves = aq_shm_coll_serves,
    .is_open = aq_shm_coll_is_open,
    .submit = aq_shm_coll_submit,
    .reserve = aq_shm_area_take,
    .give_back = aq_shm_area_give_back,
    .make_local = aq_shm_coll_make_local,
    .submit_part = aq_shm_coll_submit_part,
    .open_part = aq_shm_coll_open_part,
    .progress = aq_shm_coll_progress,
};
