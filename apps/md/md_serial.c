/*
 * md_serial.c - the same simulation by one rank, for comparison: no cells, no boxes, all pairs of
 * atoms.
 *
 * Forces are sums of integers, which do not depend on the order of the pairs, so every bit must
 * agree.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "md.h"

struct state {
    long atoms;
    double side;
    double *position, *velocity; /* [atom][3] */
    long *force;
    long potential;
    int *rank; /* [atom]: owner of its box */
};

static void forces(struct state *s)
{
    memset(s->force, 0, 3 * (size_t)s->atoms * sizeof(long));
    s->potential = 0;
    for (long a = 0; a < s->atoms; a++)
        for (long b = a + 1; b < s->atoms; b++)
            md_pair(&s->position[3 * a], &s->position[3 * b], s->side, &s->force[3 * a],
                    &s->force[3 * b], &s->potential);
}

static void start(const struct md *md, struct state *s)
{
    double mean[3];
    int cell[3];

    md_start_mean(s->atoms, mean);
    for (long a = 0; a < s->atoms; a++) {
        md_start_atom(md->opt->lattice, s->side, a, &s->position[3 * a], &s->velocity[3 * a]);
        for (int i = 0; i < 3; i++)
            s->velocity[3 * a + i] -= mean[i];
        s->rank[a] = md_find(md, &s->position[3 * a], cell);
    }
    forces(s);
}

/* Wraps all atoms; returns the number that have changed boxes. */
static long migrate(const struct md *md, struct state *s)
{
    long crossed = 0;
    int cell[3];

    for (long a = 0; a < s->atoms; a++) {
        md_wrap(&s->position[3 * a], s->side);

        const int rank = md_find(md, &s->position[3 * a], cell);

        crossed += rank != s->rank[a];
        s->rank[a] = rank;
    }
    return crossed;
}

static void run(const struct md *md, struct state *s, long *crossed_out)
{
    *crossed_out = 0;
    start(md, s);
    for (int step = 1; step <= md->opt->steps; step++) {
        for (long a = 0; a < s->atoms; a++) {
            md_kick(&s->velocity[3 * a], &s->force[3 * a]);
            md_drift(&s->position[3 * a], &s->velocity[3 * a]);
        }
        if (step % MD_MIGRATE == 0)
            *crossed_out += migrate(md, s);
        forces(s);
        for (long a = 0; a < s->atoms; a++)
            md_kick(&s->velocity[3 * a], &s->force[3 * a]);
    }
}

bool md_serial(const struct md *md, struct md_sums *sums_out, long *crossed_out)
{
    const size_t atoms = (size_t)md->atoms;
    struct state s = { .atoms = md->atoms, .side = md->side };

    s.position = malloc(3 * atoms * sizeof(double));
    s.velocity = malloc(3 * atoms * sizeof(double));
    s.force = malloc(3 * atoms * sizeof(long));
    s.rank = malloc(atoms * sizeof(int));

    const bool memory =
        s.position != NULL && s.velocity != NULL && s.force != NULL && s.rank != NULL;

    if (memory) {
        struct md_part_sums parts;

        run(md, &s, crossed_out);
        parts = (struct md_part_sums){ .potential = s.potential };
        for (long a = 0; a < s.atoms; a++)
            md_add_atom(&parts, a, &s.position[3 * a], &s.velocity[3 * a]);
        *sums_out = md_sums_of(&parts);
    }
    free(s.position);
    free(s.velocity);
    free(s.force);
    free(s.rank);
    return memory;
}
