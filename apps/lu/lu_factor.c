/*
 * lu_factor.c - the factorisation, step by step.
 *
 * Step k: the owner factors block (k,k); barrier; owners of blocks below and beside it apply its
 * factors; barrier; owners of all blocks (i,j) to the right and below subtract (i,k) (k,j). No rank
 * writes a block that another rank may fetch in the same part of a step: (i,k) and (k,j) are final
 * then, and of the updated blocks only (k+1,k+1) is written next, by its owner, which has updated
 * it. Two barriers per step are therefore enough.
 *
 * Owns      buffers for the blocks of other ranks that a step needs: a column's and a row's
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <time.h>

#include "lu.h"

enum state { ABSENT, UNDER_WAY, PRESENT };

/* Where the operands of a step are: its column (i,k) or its row (k,j), by the varying index. */
struct panel {
    bool row;
    int first_slot;
    double *buffers; /* nb blocks */
    const double **at;
    enum state *state;
};

struct step {
    struct lu *lu;
    int k;
    int *list, listed; /* this rank's blocks, as i * nb + j, in row-major order */
    struct panel column, row;
};

static size_t block_bytes(const struct lu *lu)
{
    return (size_t)lu->opt->block * (size_t)lu->opt->block * sizeof(double);
}

static double *own_block(const struct lu *lu, int i, int j)
{
    return lu->blocks + (size_t)lu_index(lu->grid, i, j) * block_bytes(lu) / sizeof(double);
}

static void barrier(struct lu *lu)
{
    const double start = lu_comm_now();

    lu_comm_barrier();
    lu->times.barrier += lu_comm_now() - start;
}

/* --- fetching --- */

/* Counts a block fetched from another rank. */
static void count(struct lu *lu, long *counts, int owner)
{
    if (owner != lu->rank)
        counts[lu_comm_same_host(owner) ? 0 : 1]++;
}

/* Returns the address of a block that needs no copy, or NULL. */
static const double *in_place(const struct lu *lu, int i, int j)
{
    const int owner = lu_owner(lu->grid, i, j);
    const size_t offset = (size_t)lu_index(lu->grid, i, j) * block_bytes(lu);

    if (owner == lu->rank)
        return own_block(lu, i, j);
    if (lu->opt->fetch == LU_LOAD && lu_comm_same_host(owner))
        return (const double *)(lu_comm_address(owner) + offset);
    return NULL;
}

static void get(struct lu *lu, double *to, int i, int j, int slot)
{
    const double start = lu_comm_now();
    const int owner = lu_owner(lu->grid, i, j);
    const size_t bytes = block_bytes(lu), offset = (size_t)lu_index(lu->grid, i, j) * bytes;

    if (slot < 0)
        lu_comm_get(to, owner, offset, bytes);
    else
        lu_comm_get_start(to, owner, offset, bytes, slot);
    lu->times.get += lu_comm_now() - start;
}

/* Starts to fetch block number at of the panel, unless it is present or in flight. */
static void start(struct step *step, struct panel *panel, int at, bool blocking)
{
    struct lu *lu = step->lu;
    const int i = panel->row ? step->k : at, j = panel->row ? at : step->k;
    double *buffer = panel->buffers + (size_t)at * block_bytes(lu) / sizeof(double);

    if (panel->state[at] != ABSENT)
        return;
    count(lu, lu->counts.panel, lu_owner(lu->grid, i, j));
    panel->at[at] = in_place(lu, i, j);
    panel->state[at] = PRESENT;
    if (panel->at[at] != NULL)
        return;
    panel->at[at] = buffer;
    get(lu, buffer, i, j, blocking ? -1 : panel->first_slot + at);
    if (!blocking)
        panel->state[at] = UNDER_WAY;
}

static const double *operand(struct step *step, struct panel *panel, int at)
{
    struct lu *lu = step->lu;

    if (lu->opt->fetch == LU_ANEW)
        panel->state[at] = ABSENT;
    start(step, panel, at, true);
    if (panel->state[at] == UNDER_WAY) {
        const double begin = lu_comm_now();

        lu_comm_get_wait(panel->first_slot + at);
        lu->times.get += lu_comm_now() - begin;
        panel->state[at] = PRESENT;
    }
    return panel->at[at];
}

/* --- the parts of a step --- */

static void apply_diagonal(struct step *step)
{
    struct lu *lu = step->lu;
    const int k = step->k, nb = lu->grid->nb, b = lu->opt->block;
    const double *diagonal = NULL;

    for (int at = 0; at < step->listed; at++) {
        const int i = step->list[at] / nb, j = step->list[at] % nb;

        if ((i != k || j <= k) && (j != k || i <= k))
            continue;
        if (diagonal == NULL) {
            count(lu, lu->counts.diagonal, lu_owner(lu->grid, k, k));
            diagonal = in_place(lu, k, k);
        }
        if (diagonal == NULL) {
            /* no update uses the buffer of the diagonal block */
            double *buffer = step->row.buffers + (size_t)k * (size_t)b * (size_t)b;

            get(lu, buffer, k, k, -1);
            diagonal = buffer;
        }
        if (j == k)
            lu_kernel_right(own_block(lu, i, j), diagonal, b);
        else
            lu_kernel_left(own_block(lu, i, j), diagonal, b);
    }
}

/* Starts the gets of all blocks that the updates of this step need. */
static void start_all(struct step *step)
{
    const int k = step->k, nb = step->lu->grid->nb;

    for (int at = 0; at < step->listed; at++) {
        const int i = step->list[at] / nb, j = step->list[at] % nb;

        if (i > k && j > k) {
            start(step, &step->column, i, false);
            start(step, &step->row, j, false);
        }
    }
}

static void update_all(struct step *step)
{
    struct lu *lu = step->lu;
    const int k = step->k, nb = lu->grid->nb;

    for (int at = 0; at < step->listed; at++) {
        const int i = step->list[at] / nb, j = step->list[at] % nb;

        if (i <= k || j <= k)
            continue;
        const double *left = operand(step, &step->column, i);
        const double *right = operand(step, &step->row, j);

        lu_kernel_update(own_block(lu, i, j), left, right, lu->opt->block);
        lu->counts.updates++;
    }
}

static void do_step(struct step *step)
{
    struct lu *lu = step->lu;
    const int k = step->k, nb = lu->grid->nb;

    if (lu_owner(lu->grid, k, k) == lu->rank)
        lu_kernel_factor(own_block(lu, k, k), lu->opt->block);
    barrier(lu);
    apply_diagonal(step);
    barrier(lu);
    for (int at = 0; at < nb; at++)
        step->column.state[at] = step->row.state[at] = ABSENT;
    if (lu->opt->fetch == LU_NBGET || lu->opt->fetch == LU_LOAD)
        start_all(step);
    update_all(step);
}

/* --- the whole --- */

static bool panel_create(struct panel *panel, const struct lu *lu, bool row)
{
    const size_t nb = (size_t)lu->grid->nb;

    panel->row = row;
    panel->first_slot = row ? lu->grid->nb : 0;
    panel->buffers = malloc(nb * block_bytes(lu));
    panel->at = malloc(nb * sizeof(*panel->at));
    panel->state = calloc(nb, sizeof(*panel->state));
    return panel->buffers != NULL && panel->at != NULL && panel->state != NULL;
}

static void panel_destroy(struct panel *panel)
{
    free(panel->buffers);
    free(panel->at);
    free(panel->state);
}

static double thread_seconds(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

bool lu_factor(struct lu *lu)
{
    const int nb = lu->grid->nb;
    struct step step = { .lu = lu };
    /* both, so that both can be destroyed */
    const bool column = panel_create(&step.column, lu, false);
    const bool row = panel_create(&step.row, lu, true);
    bool memory;

    step.list = malloc((size_t)(lu->grid->owned[lu->rank] + 1) * sizeof(int));
    memory = column && row && step.list != NULL;
    if (memory) {
        for (int at = 0; at < nb * nb; at++)
            if (lu->grid->owner[at] == lu->rank)
                step.list[step.listed++] = at;
        lu_comm_barrier();

        const double begin = lu_comm_now(), cpu = thread_seconds();

        for (step.k = 0; step.k < nb; step.k++)
            do_step(&step);
        barrier(lu);
        lu->times.total = lu_comm_now() - begin;
        lu->times.cpu = thread_seconds() - cpu;
    }
    panel_destroy(&step.column);
    panel_destroy(&step.row);
    free(step.list);
    return memory;
}

void lu_factor_serial(double *a, int nb, int b)
{
    const size_t size = (size_t)b * (size_t)b;

    for (int k = 0; k < nb; k++) {
        double *row = a + (size_t)k * (size_t)nb * size, *diagonal = row + (size_t)k * size;

        lu_kernel_factor(diagonal, b);
        for (int i = k + 1; i < nb; i++) {
            lu_kernel_left(row + (size_t)i * size, diagonal, b);
            lu_kernel_right(a + ((size_t)i * (size_t)nb + (size_t)k) * size, diagonal, b);
        }
        for (int i = k + 1; i < nb; i++) {
            double *blocks = a + (size_t)i * (size_t)nb * size;

            for (int j = k + 1; j < nb; j++)
                lu_kernel_update(blocks + (size_t)j * size, blocks + (size_t)k * size,
                                 row + (size_t)j * size, b);
        }
    }
}
