/*
 * md_atoms.c - the atoms of a box, in cells: start, insertion, sums.
 *
 * A box has own[0] x own[1] x own[2] cells, each at least as wide as the cut-off and the skin. In a
 * dimension with more than one box there is one more layer of cells at the end: copies of the next
 * box's first layer. Every cell has space for the same number of atoms, so that a face is a strided
 * section of the array.
 *
 * Owns      all arrays of struct md; other ranks access position, from_others, count and inbox
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "md.h"

#define TEMPERATURE 1.44 /* at the start; about half of it after the lattice has melted */

static uint64_t hash(uint64_t z)
{
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* --- the start --- */

double md_side(int lattice)
{
    return lattice * cbrt(4 / MD_DENSITY);
}

/* A face-centred lattice, with planes close to the faces of boxes, so that atoms cross them soon.
 * Speeds are distributed evenly about zero in each dimension. */
void md_start_atom(int lattice, double side, long id, double position[3], double velocity[3])
{
    static const double basis[4][3] = {
        { 0, 0, 0 }, { 0.5, 0.5, 0 }, { 0.5, 0, 0.5 }, { 0, 0.5, 0.5 }
    };
    const long unit = id / 4;
    const long at[3] = { unit % lattice, unit / lattice % lattice, unit / lattice / lattice };

    for (int i = 0; i < 3; i++) {
        const double random = (double)(hash((uint64_t)(3 * id + i)) >> 11) * 0x1p-53;

        position[i] = ((double)at[i] + 0.02 + basis[id % 4][i]) * (side / lattice);
        velocity[i] = (random - 0.5) * sqrt(12 * TEMPERATURE);
    }
    md_wrap(position, side);
}

void md_start_mean(long atoms, double mean[3])
{
    double position[3], velocity[3];

    mean[0] = mean[1] = mean[2] = 0;
    for (long id = 0; id < atoms; id++) {
        md_start_atom(1, 1, id, position, velocity);
        for (int i = 0; i < 3; i++)
            mean[i] += velocity[i] / (double)atoms;
    }
}

static void start(struct md *md)
{
    double mean[3];

    md_start_mean(md->atoms, mean);
    for (long id = 0; id < md->atoms; id++) {
        struct md_atom atom = { .id = id };

        md_start_atom(md->opt->lattice, md->side, id, atom.position, atom.velocity);
        for (int i = 0; i < 3; i++)
            atom.velocity[i] -= mean[i];
        if (md_is_own(md, atom.position))
            md_insert(md, &atom);
    }
}

/* --- cells --- */

int md_find(const struct md *md, const double position[3], int cell[3])
{
    int box[3];

    for (int i = 0; i < 3; i++) {
        const int part = md_part(position[i], md->side, md->map.grid[i] * md->own[i]);

        box[i] = part / md->own[i];
        cell[i] = part % md->own[i];
    }
    return md->map.rank_of[md_map_box(&md->map, box)];
}

bool md_is_own(const struct md *md, const double position[3])
{
    int cell[3];

    return md_find(md, position, cell) == md->rank;
}

void md_insert(struct md *md, const struct md_atom *atom)
{
    int at[3];

    if (md_find(md, atom->position, at) != md->rank)
        md_abort("an atom has come to a box that it is not in");

    const int cell = md_cell(md, at[0], at[1], at[2]);

    if (md->count[cell] == md->capacity)
        md_abort("a cell has no room for another atom");

    const size_t slot = (size_t)cell * (size_t)md->capacity + (size_t)md->count[cell]++;

    memcpy(&md->position[3 * slot], atom->position, sizeof(atom->position));
    memcpy(&md->velocity[3 * slot], atom->velocity, sizeof(atom->velocity));
    md->id[slot] = atom->id;
}

/* Divides a box into cells. Returns NULL if cells are wide enough and numerous enough. */
static const char *cut(struct md *md)
{
    double volume = 1;

    for (int i = 0; i < 3; i++) {
        const int boxes = md->map.grid[i];
        const double width = md->side / boxes;

        md->own[i] = (int)(width / (MD_CUTOFF + MD_SKIN));
        if (md->own[i] < 1 || md->own[i] * boxes < 3)
            return "the space is too small for so many boxes: take a larger lattice";
        md->all[i] = md->own[i] + (boxes > 1);
        volume *= width / md->own[i];
    }
    md->cells = md->all[0] * md->all[1] * md->all[2];
    md->capacity = 2 * (int)(volume * MD_DENSITY) + 8;
    md->inbox_capacity = md->atoms / md->map.ranks + 64;
    return NULL;
}

/* --- memory --- */

/* Allocates bytes on every rank, which all ranks may access. *own_out is this rank's memory. */
static bool make_shared(void ***of_out, void *own_out, size_t bytes, int rank)
{
    *of_out = calloc((size_t)armci_msg_nproc(), sizeof(void *));
    if (*of_out == NULL || ARMCI_Malloc(*of_out, (armci_size_t)bytes) != 0)
        return false;
    memset((*of_out)[rank], 0, bytes);
    *(void **)own_out = (*of_out)[rank];
    return true;
}

static bool make_arrays(struct md *md)
{
    const size_t slots = (size_t)md->cells * (size_t)md->capacity;
    const size_t inbox =
        sizeof(struct md_inbox) + (size_t)md->inbox_capacity * sizeof(struct md_atom);

    md->velocity = calloc(3 * slots, sizeof(double));
    md->force = calloc(3 * slots, sizeof(long));
    md->id = calloc(slots, sizeof(long));
    return md->velocity != NULL && md->force != NULL && md->id != NULL
           && make_shared(&md->positions_of, &md->position, 3 * slots * sizeof(double), md->rank)
           && make_shared(&md->forces_of, &md->from_others, 3 * slots * sizeof(long), md->rank)
           && make_shared(&md->counts_of, &md->count, (size_t)md->cells * sizeof(int), md->rank)
           && make_shared(&md->inbox_of, &md->inbox, inbox, md->rank);
}

const char *md_create(struct md *md)
{
    const int lattice = md->opt->lattice;

    md->rank = armci_msg_me();
    md->atoms = 4 * lattice * lattice * lattice;
    md->side = md_side(lattice);
    md_map_coordinates(&md->map, md->map.box_of[md->rank], md->box);

    const char *wrong = cut(md);

    if (wrong != NULL)
        return wrong;
    if (!make_arrays(md))
        md_abort("no memory for the atoms");
    md_halo_regions(md);
    start(md);
    ARMCI_Barrier();
    return NULL;
}

void md_destroy(struct md *md)
{
    void **shared[] = { md->positions_of, md->forces_of, md->counts_of, md->inbox_of };

    for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
        if (shared[i] != NULL)
            ARMCI_Free(shared[i][md->rank]);
        free(shared[i]);
    }
    free(md->velocity);
    free(md->force);
    free(md->id);
}

/* --- sums --- */

static uint64_t bits(double value)
{
    uint64_t as_integer;

    memcpy(&as_integer, &value, sizeof(as_integer));
    return as_integer;
}

void md_add_atom(struct md_part_sums *sums, long id, const double *position, const double *velocity)
{
    uint64_t mixed = hash((uint64_t)id);
    double square = 0;

    for (int i = 0; i < 3; i++) {
        square += velocity[i] * velocity[i];
        sums->momentum[i] += md_integer(MD_SPEED_UNIT * velocity[i]);
        mixed = hash(mixed ^ bits(position[i]));
        mixed = hash(mixed ^ bits(velocity[i]));
    }
    sums->kinetic += md_integer(MD_UNIT * (square / 2));
    sums->checksum = (long)((uint64_t)sums->checksum + mixed);
    sums->atoms++;
}

struct md_sums md_sums_of(const struct md_part_sums *parts)
{
    struct md_sums sums = {
        .potential = (double)parts->potential / MD_UNIT,
        .kinetic = (double)parts->kinetic / MD_UNIT,
        .checksum = (uint64_t)parts->checksum,
        .atoms = parts->atoms,
    };

    for (int i = 0; i < 3; i++)
        sums.momentum = fmax(sums.momentum, fabs((double)parts->momentum[i] / MD_SPEED_UNIT));
    return sums;
}

struct md_sums md_sum_up(const struct md *md)
{
    struct md_part_sums parts = { .potential = md->potential };

    for (int z = 0; z < md->own[2]; z++)
        for (int y = 0; y < md->own[1]; y++)
            for (int x = 0; x < md->own[0]; x++) {
                const int cell = md_cell(md, x, y, z);

                for (int i = 0; i < md->count[cell]; i++) {
                    const size_t slot = (size_t)cell * (size_t)md->capacity + (size_t)i;

                    md_add_atom(&parts, md->id[slot], &md->position[3 * slot],
                                &md->velocity[3 * slot]);
                }
            }
    /* a checksum may wrap around, as MPI's sums of integers do */
    long all[] = { parts.potential,   parts.kinetic,  parts.momentum[0], parts.momentum[1],
                   parts.momentum[2], parts.checksum, parts.atoms };

    armci_msg_lgop(all, 7, "+");
    parts = (struct md_part_sums){
        .potential = all[0],
        .kinetic = all[1],
        .momentum = { all[2], all[3], all[4] },
        .checksum = all[5],
        .atoms = all[6],
    };
    return md_sums_of(&parts);
}
