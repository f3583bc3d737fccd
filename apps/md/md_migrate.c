/*
 * md_migrate.c - atoms that leave a box for another.
 *
 * A sender reserves places in the receiver's inbox by fetch-and-add and puts its atoms there; the
 * receiver does not take part. After the barrier each rank empties its own inbox. The next
 * reservation follows after one more barrier, that of the next forces.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "md.h"

struct departure {
    int rank;
    struct md_atom atom;
};

struct departures {
    struct departure *list;
    size_t used, capacity;
};

static struct md_atom atom_at(const struct md *md, size_t slot)
{
    struct md_atom atom = { .id = md->id[slot] };

    memcpy(atom.position, &md->position[3 * slot], sizeof(atom.position));
    memcpy(atom.velocity, &md->velocity[3 * slot], sizeof(atom.velocity));
    return atom;
}

/* Removes an atom; the last atom of the cell takes its place. */
static void remove_atom(struct md *md, int cell, size_t slot)
{
    const size_t last = (size_t)cell * (size_t)md->capacity + (size_t)--md->count[cell];

    memcpy(&md->position[3 * slot], &md->position[3 * last], 3 * sizeof(double));
    memcpy(&md->velocity[3 * slot], &md->velocity[3 * last], 3 * sizeof(double));
    md->id[slot] = md->id[last];
}

static void depart(struct departures *all, int rank, const struct md_atom *atom)
{
    if (all->used == all->capacity) {
        all->capacity = 2 * all->capacity + 64;
        all->list = realloc(all->list, all->capacity * sizeof(*all->list));
        if (all->list == NULL)
            md_abort("no memory for atoms that leave");
    }
    all->list[all->used++] = (struct departure){ .rank = rank, .atom = *atom };
}

/* Wraps the cell's atoms; moves those that belong to another cell out of it. */
static void sort_cell(struct md *md, const int at[3], struct departures *all)
{
    const int cell = md_cell(md, at[0], at[1], at[2]);

    for (int i = 0; i < md->count[cell];) {
        const size_t slot = (size_t)cell * (size_t)md->capacity + (size_t)i;
        int to[3], rank;

        md_wrap(&md->position[3 * slot], md->side);
        rank = md_find(md, &md->position[3 * slot], to);
        if (rank == md->rank && to[0] == at[0] && to[1] == at[1] && to[2] == at[2]) {
            i++;
            continue;
        }
        const struct md_atom atom = atom_at(md, slot);

        remove_atom(md, cell, slot);
        depart(all, rank, &atom);
    }
}

static int by_rank(const void *a, const void *b)
{
    return ((const struct departure *)a)->rank - ((const struct departure *)b)->rank;
}

/* Puts the atoms for one rank, which are consecutive in the list. */
static void send_atoms(struct md *md, const struct departure *list, size_t atoms)
{
    const int rank = list->rank;
    struct md_inbox *inbox = md->inbox_of[rank];
    struct md_atom *packed = malloc(atoms * sizeof(*packed));
    long place;

    if (packed == NULL)
        md_abort("no memory for atoms that leave");
    for (size_t i = 0; i < atoms; i++)
        packed[i] = list[i].atom;
    ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &place, &inbox->atoms, (int)atoms, rank);
    if (place + (long)atoms > md->inbox_capacity)
        md_abort("an inbox is full");
    ARMCI_Put(packed, &inbox->atom[place], (int)(atoms * sizeof(*packed)), rank);
    md_count(&md->atoms_sent, rank, (long)(atoms * sizeof(*packed)));
    free(packed);
}

static void send_all(struct md *md, struct departures *all)
{
    if (all->used > 0)
        qsort(all->list, all->used, sizeof(*all->list), by_rank);
    for (size_t first = 0, end; first < all->used; first = end) {
        for (end = first; end < all->used && all->list[end].rank == all->list[first].rank;)
            end++;
        if (all->list[first].rank != md->rank)
            send_atoms(md, &all->list[first], end - first);
        else
            for (size_t i = first; i < end; i++)
                md_insert(md, &all->list[i].atom);
    }
}

void md_migrate(struct md *md)
{
    const double start = MPI_Wtime();
    struct departures all = { .list = NULL };
    int at[3];

    for (at[2] = 0; at[2] < md->own[2]; at[2]++)
        for (at[1] = 0; at[1] < md->own[1]; at[1]++)
            for (at[0] = 0; at[0] < md->own[0]; at[0]++)
                sort_cell(md, at, &all);
    send_all(md, &all);
    ARMCI_Barrier();
    for (long i = 0; i < md->inbox->atoms; i++)
        md_insert(md, &md->inbox->atom[i]);
    md->atoms_got += md->inbox->atoms;
    md->inbox->atoms = 0;
    md->migrations++;
    md->drifted = 0;
    free(all.list);
    md->seconds_migrate += MPI_Wtime() - start;
}
