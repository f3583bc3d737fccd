/*
 * md.h - what the files of md share.
 *
 *   md.c          options, the run, the report
 *   md_map.c      boxes of space, their ranks, and the traffic that results
 *   md_atoms.c    the atoms of a box, in cells: start, insertion, sums
 *   md_force.c    forces between atoms of neighbouring cells
 *   md_halo.c     positions from neighbours, forces to them
 *   md_migrate.c  atoms that leave a box for another
 *   md_serial.c   the same simulation by one rank, all pairs of atoms, for comparison
 *   md_pattern.c  the communication alone, with every neighbour, in fixed amounts
 *
 * Units     Lennard-Jones: distance sigma, energy epsilon, mass of an atom 1
 * Threads   one
 * Uses      armci.h, mpi.h
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MD_H
#define MD_H 1

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <armci.h>
#include <mpi.h>

#define MD_CUTOFF     2.5
#define MD_SKIN       0.5 /* extra width of cells, since atoms change cells only at migrations */
#define MD_DENSITY    0.8442
#define MD_TIME_STEP  0.004
#define MD_MIGRATE    10     /* steps between two migrations */
#define MD_UNIT       0x1p40 /* of forces and energies, which are sums of integers */
#define MD_SPEED_UNIT 0x1p48 /* of momenta, likewise */

enum md_order { MD_NATURAL, MD_PLAIN, MD_PERMUTED, MD_ORDERS };
enum md_halo { MD_STRIDED, MD_VECTOR, MD_HALOS };

struct md_options {
    int lattice; /* unit cells a side, of 4 atoms each */
    int steps;
    int grid[3]; /* boxes in each dimension; 0: as the number of ranks suggests */
    enum md_order order;
    enum md_halo halo;
    bool serial;
    bool pattern;
    bool help;
    const char *wrong;
};

/* Calls and bytes, [0] between ranks of one host, [1] over the network. */
struct md_traffic {
    long calls[2], bytes[2];
};

/* --- md_map.c --- */

struct md_map {
    int ranks, hosts;
    int grid[3];
    enum md_order order;
    int *rank_of; /* [box] */
    int *box_of;  /* [rank] */
};

/* Returns NULL on success, otherwise a text about the error. md_map_destroy() frees the map. */
const char *md_map_create(struct md_map *map, const int grid[3], enum md_order order);
void md_map_destroy(struct md_map *map);
const char *md_order_name(enum md_order order);

/* Returns the box at these coordinates, which may be outside the grid, since space is periodic. */
int md_map_box(const struct md_map *map, const int at[3]);
void md_map_coordinates(const struct md_map *map, int box, int at[3]);

static inline void md_count(struct md_traffic *traffic, int rank, long bytes)
{
    const int way = ARMCI_Same_node(rank) ? 0 : 1;

    traffic->calls[way]++;
    traffic->bytes[way] += bytes;
}

/* Returns the traffic of all ranks together in one halo exchange, for boxes of own[0] x own[1] x
 * own[2] cells of cell_bytes. It depends on the ranks' hosts only. */
struct md_traffic md_map_halo(const struct md_map *map, const int own[3], long cell_bytes);

/* Returns the traffic of all ranks together, for a message of that many bytes to every distinct
 * neighbour of every box. */
struct md_traffic md_map_neighbours(const struct md_map *map, long bytes);
/* Finds a box's distinct neighbours, those that share a corner included. Returns their number, at
 * most 26. */
int md_map_neighbours_of(const struct md_map *map, int box, int boxes[26]);

/* --- the state of one rank --- */

/* An atom in flight to another rank. */
struct md_atom {
    double position[3], velocity[3];
    long id;
};

struct md_inbox {
    long atoms;
    struct md_atom atom[];
};

/* Cells beyond a face, an edge or a corner of the box. All ranks number their cells in the same
 * way. */
struct md_region {
    int rank;
    int from;      /* the first cell, in the owner's numbering */
    int to;        /* the first cell of its copy */
    int extent[3]; /* cells in each dimension */
    int cells;
};

struct md {
    const struct md_options *opt;
    struct md_map map;
    int rank;
    int box[3];
    int atoms; /* of all ranks */
    double side;

    int own[3], all[3]; /* cells in each dimension: of the box; with copies of others' cells */
    int cells;          /* in all */
    int capacity;       /* atoms a cell */
    int inbox_capacity;
    struct md_region regions[7];
    int nregions;

    /* Memory that other ranks access, by rank, and this rank's part of it. */
    void **positions_of, **forces_of, **counts_of, **inbox_of;
    double *position;  /* [cell][capacity][3] */
    long *from_others; /* [cell][capacity][3]: forces that others have accumulated */
    int *count;        /* [cell] */
    struct md_inbox *inbox;

    /* Private memory. */
    double *velocity; /* [cell][capacity][3], own cells only */
    long *id;         /* [cell][capacity], own cells only */
    long *force;      /* [cell][capacity][3] */
    long potential;   /* energy of the pairs that this rank has computed */
    double drifted;   /* the farthest that an atom can have moved since the last migration */
    double farthest;  /* the largest value of drifted so far */

    struct md_traffic counts_got, positions_got, forces_sent, atoms_sent;
    long empty_bytes; /* bytes of empty places in the sections, which vectors omit */
    long atoms_got, migrations, halos;
    double seconds_get, seconds_acc, seconds_barrier, seconds_migrate;
};

static inline int md_cell(const struct md *md, int x, int y, int z)
{
    return x + md->all[0] * (y + md->all[1] * z);
}

/* Sums over all ranks. Integers, so that they do not depend on the number of ranks. */
struct md_sums {
    double potential, kinetic, momentum; /* the largest component */
    uint64_t checksum;                   /* of all bits of positions and velocities */
    long atoms;
};

/* --- operations on an atom or a pair; inline, and compiled without fused operations, so that every
 * rank and the serial run get the same bits --- */

static inline long md_integer(double value)
{
    return (long)(value < 0 ? value - 0.5 : value + 0.5);
}

/* Adds the force of the pair, or nothing beyond the cut-off. The force goes to zero at the cut-off,
 * so that energy is conserved as well as the time step allows. */
static inline void md_pair(const double *a, const double *b, double side, long *force_a,
                           long *force_b, long *potential)
{
    const double at_cutoff =
        1 / (MD_CUTOFF * MD_CUTOFF * MD_CUTOFF * MD_CUTOFF * MD_CUTOFF * MD_CUTOFF);
    const double force_cut = 24 * at_cutoff * (2 * at_cutoff - 1) / MD_CUTOFF;
    const double energy_cut = 4 * at_cutoff * (at_cutoff - 1);
    double d[3], square = 0;

    for (int i = 0; i < 3; i++) {
        d[i] = a[i] - b[i];
        d[i] -= d[i] > side / 2 ? side : 0;
        d[i] += d[i] < -side / 2 ? side : 0;
        square += d[i] * d[i];
    }
    if (square >= MD_CUTOFF * MD_CUTOFF)
        return;

    const double inverse = 1 / square, sixth = inverse * inverse * inverse, r = sqrt(square);
    const double strength = 24 * inverse * sixth * (2 * sixth - 1) - force_cut / r;

    for (int i = 0; i < 3; i++) {
        const long force = md_integer(MD_UNIT * (strength * d[i]));

        force_a[i] += force;
        force_b[i] -= force;
    }
    *potential +=
        md_integer(MD_UNIT * (4 * sixth * (sixth - 1) - energy_cut + (r - MD_CUTOFF) * force_cut));
}

static inline void md_kick(double *velocity, const long *force)
{
    for (int i = 0; i < 3; i++)
        velocity[i] += (double)force[i] * (MD_TIME_STEP / 2 / MD_UNIT);
}

static inline void md_drift(double *position, const double *velocity)
{
    for (int i = 0; i < 3; i++)
        position[i] += velocity[i] * MD_TIME_STEP;
}

/* Maps a position into the periodic cube. */
static inline void md_wrap(double *position, double side)
{
    for (int i = 0; i < 3; i++) {
        position[i] += position[i] < 0 ? side : 0;
        position[i] -= position[i] >= side ? side : 0;
    }
}

/* Returns the index of the part that contains the coordinate, if a side has that many equal
 * parts. */
static inline int md_part(double coordinate, double side, int parts)
{
    const int part = (int)(coordinate / side * parts);

    return part < 0 ? 0 : part >= parts ? parts - 1 : part;
}

/* --- md_atoms.c --- */

/* Sets an atom's initial position and velocity. */
void md_start_atom(int lattice, double side, long id, double position[3], double velocity[3]);
double md_side(int lattice);
/* Sets mean to the velocity that, subtracted from each atom, makes the total momentum zero. */
void md_start_mean(long atoms, double mean[3]);

/* Collective. Returns NULL on success, otherwise a text about the error. */
const char *md_create(struct md *md);
void md_destroy(struct md *md);
void md_insert(struct md *md, const struct md_atom *atom);
bool md_is_own(const struct md *md, const double position[3]);
/* Returns the rank that owns the box at position; sets the cell in that box. */
int md_find(const struct md *md, const double position[3], int cell[3]);

/* One atom's part of the sums, as integers. */
struct md_part_sums {
    long potential, kinetic, momentum[3], checksum, atoms;
};
void md_add_atom(struct md_part_sums *sums, long id, const double *position,
                 const double *velocity);
struct md_sums md_sums_of(const struct md_part_sums *parts);
/* Sums over all ranks. Collective. */
struct md_sums md_sum_up(const struct md *md);

/* --- md_force.c --- */

/* Computes pairs of two atoms of this rank, and pairs with copies from the halo exchange. */
void md_force_inner(struct md *md);
void md_force_outer(struct md *md);

/* --- md_halo.c --- */

void md_halo_regions(struct md *md);
void md_halo_get_counts(struct md *md);
void md_halo_get_start(struct md *md);
void md_halo_get_wait(struct md *md);
void md_halo_accumulate(struct md *md);

/* --- md_migrate.c: collective --- */

void md_migrate(struct md *md);

/* --- md_serial.c: for one rank. Returns false without memory. crossed: atoms with a new box --- */

bool md_serial(const struct md *md, struct md_sums *sums_out, long *crossed_out);

/* --- md_pattern.c: collective; returns true on every rank if all results were right --- */

bool md_pattern(const struct md_options *opt, const struct md_map *map);

/* --- md.c --- */

_Noreturn void md_abort(const char *why);

#endif
