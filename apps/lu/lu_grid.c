/*
 * lu_grid.c - the owner of each block; number of blocks that each rank must fetch.
 *
 * Ranks form a grid of rows x columns, numbered row by row; rows is the largest divisor of their
 * number that is not above its square root. Hosts have consecutive ranks.
 *
 *   cyclic  block (I,J) belongs to (I mod rows, J mod columns)
 *   block   each rank has one rectangle
 *   hybrid  each host has one rectangle, distributed cyclically over its ranks. If a host's ranks
 *           are part of a row of the grid, or whole rows, its rectangle is what they would have as
 *           one rank; otherwise hosts form a grid, and the ranks of each host form another one
 *
 * Source    the counts: enumeration by an independent program, for nb = 96 and 16
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lu.h"

static const char *const layout_names[LU_LAYOUTS] = { "cyclic", "block", "hybrid" };
static const char *const fetch_names[LU_FETCHES] = { "get", "nbget", "anew", "load" };

const char *lu_layout_name(enum lu_layout layout)
{
    return layout_names[layout];
}

const char *lu_fetch_name(enum lu_fetch fetch)
{
    return fetch_names[fetch];
}

static int rows_of(int ranks)
{
    int rows = 1;

    for (int d = 2; d * d <= ranks; d++)
        if (ranks % d == 0)
            rows = d;
    return rows;
}

static int cyclic(int ranks, int row, int column)
{
    const int rows = rows_of(ranks), columns = ranks / rows;

    return (row % rows) * columns + column % columns;
}

static int rectangle(int nb, int ranks, int row, int column)
{
    const int rows = rows_of(ranks), columns = ranks / rows;

    return row / ((nb + rows - 1) / rows) * columns + column / ((nb + columns - 1) / columns);
}

/* The host's rectangle, then the rank within: a host has side_rows x side_columns of the grid. */
static int hybrid(int nb, int ranks, int side_rows, int side_columns, int row, int column)
{
    const int rows = rows_of(ranks), columns = ranks / rows;
    const int host_rows = rows / side_rows, host_columns = columns / side_columns;
    const int host_row = row / ((nb + host_rows - 1) / host_rows);
    const int host_column = column / ((nb + host_columns - 1) / host_columns);

    return (host_row * side_rows + row % side_rows) * columns + host_column * side_columns
           + column % side_columns;
}

static int find_owner(const struct lu_grid *grid, int row, int column)
{
    const int ranks = grid->ranks, per_host = ranks / grid->hosts;
    const int columns = ranks / rows_of(ranks);

    if (grid->layout == LU_CYCLIC)
        return cyclic(ranks, row, column);
    if (grid->layout == LU_BLOCK)
        return rectangle(grid->nb, ranks, row, column);
    if (columns % per_host == 0)
        return hybrid(grid->nb, ranks, 1, per_host, row, column);
    if (per_host % columns == 0)
        return hybrid(grid->nb, ranks, per_host / columns, columns, row, column);
    return rectangle(grid->nb, grid->hosts, row, column) * per_host + cyclic(per_host, row, column);
}

bool lu_grid_create(struct lu_grid *grid, int nb, int ranks, int hosts, enum lu_layout layout)
{
    const size_t blocks = (size_t)nb * (size_t)nb;

    *grid = (struct lu_grid){ .nb = nb, .ranks = ranks, .hosts = hosts, .layout = layout };
    if (hosts <= 0 || ranks % hosts != 0)
        return false;
    grid->owner = malloc(blocks * sizeof(int));
    grid->index = malloc(blocks * sizeof(int));
    grid->owned = calloc((size_t)ranks, sizeof(int));
    if (grid->owner == NULL || grid->index == NULL || grid->owned == NULL) {
        lu_grid_destroy(grid);
        return false;
    }
    for (size_t at = 0; at < blocks; at++) {
        const int owner = find_owner(grid, (int)at / nb, (int)at % nb);

        grid->owner[at] = owner;
        grid->index[at] = grid->owned[owner]++;
    }
    return true;
}

void lu_grid_destroy(struct lu_grid *grid)
{
    free(grid->owner);
    free(grid->index);
    free(grid->owned);
    grid->owner = grid->index = grid->owned = NULL;
}

/* --- counts by enumeration --- */

static bool same_host(const struct lu_grid *grid, int a, int b)
{
    const int per_host = grid->ranks / grid->hosts;

    return a / per_host == b / per_host;
}

/* Counts a block (row, column) that rank needs: once per step, or each time with LU_ANEW. */
static void need(const struct lu_grid *grid, long *fetched, int rank, int row, int column,
                 char *seen)
{
    const int owner = lu_owner(grid, row, column);

    if (owner == rank || (seen != NULL && *seen))
        return;
    if (seen != NULL)
        *seen = 1;
    fetched[same_host(grid, rank, owner) ? 0 : 1]++;
}

/* Counts the fetches of step k. seen has nb bytes per rank for the column and nb for the row. */
static void count_step(const struct lu_grid *grid, bool anew, int k, struct lu_counts *counts,
                       char *seen)
{
    const int nb = grid->nb;

    memset(seen, 0, 2 * (size_t)nb * (size_t)grid->ranks);
    for (int i = k + 1; i < nb; i++) {
        const int below = lu_owner(grid, i, k), beside = lu_owner(grid, k, i);

        /* the diagonal block's flags: those of row and column k, which no update uses */
        need(grid, counts[below].diagonal, below, k, k, &seen[2 * nb * below + k]);
        need(grid, counts[beside].diagonal, beside, k, k, &seen[2 * nb * beside + k]);
    }
    for (int i = k + 1; i < nb; i++)
        for (int j = k + 1; j < nb; j++) {
            const int rank = lu_owner(grid, i, j);
            char *flags = &seen[2 * nb * rank];

            counts[rank].updates++;
            need(grid, counts[rank].panel, rank, i, k, anew ? NULL : &flags[i]);
            need(grid, counts[rank].panel, rank, k, j, anew ? NULL : &flags[nb + j]);
        }
}

bool lu_grid_counts(const struct lu_grid *grid, enum lu_fetch fetch, struct lu_counts *counts)
{
    char *seen = malloc(2 * (size_t)grid->nb * (size_t)grid->ranks);

    if (seen == NULL)
        return false;
    memset(counts, 0, (size_t)grid->ranks * sizeof(*counts));
    for (int k = 0; k < grid->nb; k++)
        count_step(grid, fetch == LU_ANEW, k, counts, seen);
    free(seen);
    return true;
}

/* --- the published table --- */

/* Blocks fetched in all, from the same host and over the network, by layout. */
struct row {
    int nb, hosts, per_host;
    bool anew; /* fetched for every update, diagonal blocks not counted */
    long same_host[LU_LAYOUTS], network[LU_LAYOUTS];
    double load[LU_LAYOUTS]; /* most updates of a rank / mean; 0 if not given */
};

static const struct row table[] = {
    { 96, 1, 2, false, { 4655, 3480, 4655 }, { 0, 0, 0 }, { 1.01, 1.38, 1.01 } },
    { 96, 2, 1, false, { 0, 0, 0 }, { 4655, 3480, 3480 }, { 1.01, 1.38, 1.38 } },
    { 96, 2, 2, false, { 4655, 3480, 4655 }, { 4655, 3480, 3480 }, { 1.02, 2.02, 1.39 } },
    { 96, 4, 1, false, { 0, 0, 0 }, { 9310, 6960, 6960 }, { 1.02, 2.02, 2.02 } },
    { 16, 1, 2, false, { 135, 100, 135 }, { 0, 0, 0 }, { 0, 0, 0 } },
    { 16, 2, 1, false, { 0, 0, 0 }, { 135, 100, 100 }, { 0, 0, 0 } },
    { 16, 2, 2, false, { 135, 100, 135 }, { 135, 100, 100 }, { 0, 0, 0 } },
    { 16, 4, 1, false, { 0, 0, 0 }, { 270, 200, 200 }, { 0, 0, 0 } },
    { 96, 1, 2, true, { 146312, 164736, 146312 }, { 0, 0, 0 }, { 0, 0, 0 } },
    { 96, 2, 1, true, { 0, 0, 0 }, { 146312, 164736, 164736 }, { 0, 0, 0 } },
    { 96, 2, 2, true, { 146312, 164736, 146312 }, { 146312, 164736, 164736 }, { 0, 0, 0 } },
    { 96, 4, 1, true, { 0, 0, 0 }, { 292624, 329472, 329472 }, { 0, 0, 0 } },
};

bool lu_grid_published(const struct lu_grid *grid, enum lu_fetch fetch, long *same_host_out,
                       long *network_out)
{
    for (size_t r = 0; r < sizeof(table) / sizeof(table[0]); r++) {
        const struct row *row = &table[r];

        if (row->nb == grid->nb && row->hosts == grid->hosts
            && row->hosts * row->per_host == grid->ranks && row->anew == (fetch == LU_ANEW)) {
            *same_host_out = row->same_host[grid->layout];
            *network_out = row->network[grid->layout];
            return true;
        }
    }
    return false;
}

/* Compares one layout of a row of the table with the enumeration; returns true if they agree. */
static bool check_row(const struct row *row, enum lu_layout layout)
{
    struct lu_grid grid;
    struct lu_counts counts[4];
    long fetched[2] = { 0, 0 }, max = 0, updates = 0;

    if (!lu_grid_create(&grid, row->nb, row->hosts * row->per_host, row->hosts, layout))
        return false;
    if (!lu_grid_counts(&grid, row->anew ? LU_ANEW : LU_GET, counts)) {
        lu_grid_destroy(&grid);
        return false;
    }
    for (int rank = 0; rank < grid.ranks; rank++) {
        for (int way = 0; way < 2; way++)
            fetched[way] += counts[rank].panel[way] + (row->anew ? 0 : counts[rank].diagonal[way]);
        max = counts[rank].updates > max ? counts[rank].updates : max;
        updates += counts[rank].updates;
    }
    const double load = (double)max * grid.ranks / (double)updates;
    const double given = row->load[layout];
    const bool right = fetched[0] == row->same_host[layout] && fetched[1] == row->network[layout]
                       && (given == 0 || (load > given - 0.00501 && load < given + 0.00501));

    printf("%3d blocks a side, %d x %d ranks, %-6s%s: %6ld / %6ld fetched, load %.2f: %s\n",
           row->nb, row->hosts, row->per_host, layout_names[layout], row->anew ? ", anew" : "",
           fetched[0], fetched[1], load, right ? "as published" : "NOT AS PUBLISHED");
    lu_grid_destroy(&grid);
    return right;
}

bool lu_grid_check_tables(void)
{
    bool right = true;

    for (size_t r = 0; r < sizeof(table) / sizeof(table[0]); r++)
        for (int layout = 0; layout < LU_LAYOUTS; layout++)
            right = check_row(&table[r], (enum lu_layout)layout) && right;
    return right;
}
