/*
 * md_force.c - forces between atoms of neighbouring cells.
 *
 * Every pair of neighbouring cells belongs to one base cell: both cells are in the cube of 2 x 2 x
 * 2 cells that starts at the base, and in no dimension do both differ from it. There are 14 such
 * pairs, including the base with itself. A rank therefore needs copies only of cells beyond the
 * upper faces of its box; the forces that it computes for them are sent back to their owners.
 *
 * Source    the eighth-shell method (Liem, Brown, Clarke 1991; Bowers, Dror, Shaw 2007)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "md.h"

/* Offsets in the cube, a bit for each dimension. */
static const struct {
    int a, b;
} pairs[] = { { 0, 0 }, { 0, 1 }, { 0, 2 }, { 0, 3 }, { 0, 4 }, { 0, 5 }, { 0, 6 },
              { 0, 7 }, { 1, 2 }, { 1, 4 }, { 2, 4 }, { 1, 6 }, { 2, 5 }, { 4, 3 } };

/* The cell at an offset from the base; in a dimension with one box, the first follows the last. */
static int cell_at(const struct md *md, const int base[3], int offset, bool *copy_out)
{
    int at[3];

    for (int i = 0; i < 3; i++) {
        at[i] = base[i] + (offset >> i & 1);
        if (at[i] == md->own[i] && md->map.grid[i] == 1)
            at[i] = 0;
        *copy_out = *copy_out || at[i] == md->own[i];
    }
    return md_cell(md, at[0], at[1], at[2]);
}

static void cell_pair(struct md *md, int a, int b)
{
    const size_t first_a = 3 * (size_t)a * (size_t)md->capacity;
    const size_t first_b = 3 * (size_t)b * (size_t)md->capacity;
    long potential = 0;

    for (int i = 0; i < md->count[a]; i++) {
        const size_t at = first_a + 3 * (size_t)i;

        for (int j = a == b ? i + 1 : 0; j < md->count[b]; j++) {
            const size_t other = first_b + 3 * (size_t)j;

            md_pair(&md->position[at], &md->position[other], md->side, &md->force[at],
                    &md->force[other], &potential);
        }
    }
    md->potential += potential;
}

static void all_pairs(struct md *md, bool with_copies)
{
    int base[3];

    for (base[2] = 0; base[2] < md->own[2]; base[2]++)
        for (base[1] = 0; base[1] < md->own[1]; base[1]++)
            for (base[0] = 0; base[0] < md->own[0]; base[0]++)
                for (size_t p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++) {
                    bool copy = false;
                    const int a = cell_at(md, base, pairs[p].a, &copy);
                    const int b = cell_at(md, base, pairs[p].b, &copy);

                    if (copy == with_copies)
                        cell_pair(md, a, b);
                }
}

void md_force_inner(struct md *md)
{
    all_pairs(md, false);
}

void md_force_outer(struct md *md)
{
    all_pairs(md, true);
}
