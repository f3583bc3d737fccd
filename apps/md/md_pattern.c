/*
 * md_pattern.c - the communication alone, with every neighbour, in fixed amounts.
 *
 * Every box has 1000 atoms. In a step each rank gets the positions of all distinct neighbour boxes,
 * 24,000 contiguous bytes each, and accumulates a force on every third of their atoms, a strided
 * section. All numbers are integers, so that sums are exact: atom a of box b is at (b + step, a,
 * step), and box c contributes the force c + 1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "md.h"

#define ATOMS      1000
#define THIRD      ((ATOMS + 2) / 3)
#define ATOM_BYTES (3 * (int)sizeof(double))

struct pattern {
    const struct md_map *map;
    int rank, box;
    int neighbours[26], count;
    void **positions_of, **forces_of;
    double *position, *force; /* this rank's */
    double *copies;           /* [neighbour][ATOMS][3] */
    double pull[3 * THIRD];
    struct md_traffic got, sent;
    long wrong;
    double seconds;
};

static bool create(struct pattern *p, const struct md_map *map)
{
    const size_t ranks = (size_t)map->ranks;

    *p = (struct pattern){ .map = map, .rank = armci_msg_me() };
    p->box = map->box_of[p->rank];
    p->count = md_map_neighbours_of(map, p->box, p->neighbours);
    p->positions_of = calloc(ranks, sizeof(void *));
    p->forces_of = calloc(ranks, sizeof(void *));
    p->copies = malloc(((size_t)p->count * ATOMS + 1) * ATOM_BYTES);
    if (p->positions_of == NULL || p->forces_of == NULL || p->copies == NULL
        || ARMCI_Malloc(p->positions_of, ATOMS * ATOM_BYTES) != 0
        || ARMCI_Malloc(p->forces_of, ATOMS * ATOM_BYTES) != 0)
        return false;
    p->position = p->positions_of[p->rank];
    p->force = p->forces_of[p->rank];
    memset(p->force, 0, ATOMS * ATOM_BYTES);
    for (int i = 0; i < 3 * THIRD; i++)
        p->pull[i] = p->box + 1;
    return true;
}

static void destroy(struct pattern *p)
{
    ARMCI_Free(p->position);
    ARMCI_Free(p->force);
    free(p->positions_of);
    free(p->forces_of);
    free(p->copies);
}

static void move(struct pattern *p, int step)
{
    for (int a = 0; a < ATOMS; a++) {
        p->position[3 * a] = p->box + step;
        p->position[3 * a + 1] = a;
        p->position[3 * a + 2] = step;
    }
}

static void get_all(struct pattern *p)
{
    armci_hdl_t handles[26];

    for (int n = 0; n < p->count; n++) {
        const int rank = p->map->rank_of[p->neighbours[n]];

        ARMCI_INIT_HANDLE(&handles[n]);
        ARMCI_NbGet(p->positions_of[rank], p->copies + (size_t)n * 3 * ATOMS, ATOMS * ATOM_BYTES,
                    rank, &handles[n]);
        md_count(&p->got, rank, (long)ATOMS * ATOM_BYTES);
    }
    for (int n = 0; n < p->count; n++)
        ARMCI_Wait(&handles[n]);
}

static void check_positions(struct pattern *p, int step)
{
    for (int n = 0; n < p->count; n++)
        for (int a = 0; a < ATOMS; a++) {
            const double *at = p->copies + 3 * ((size_t)n * ATOMS + (size_t)a);

            p->wrong += at[0] != p->neighbours[n] + step || at[1] != a || at[2] != step;
        }
}

static void accumulate_all(struct pattern *p)
{
    int from[] = { ATOM_BYTES }, to[] = { 3 * ATOM_BYTES }, counts[] = { ATOM_BYTES, THIRD };
    double one = 1;

    for (int n = 0; n < p->count; n++) {
        const int rank = p->map->rank_of[p->neighbours[n]];

        ARMCI_AccS(ARMCI_ACC_DBL, &one, p->pull, from, p->forces_of[rank], to, counts, 1, rank);
        md_count(&p->sent, rank, (long)THIRD * ATOM_BYTES);
    }
}

static void check_forces(struct pattern *p, int steps)
{
    double pull = 0;

    for (int n = 0; n < p->count; n++)
        pull += p->neighbours[n] + 1;
    for (int a = 0; a < ATOMS; a++)
        for (int i = 0; i < 3; i++)
            p->wrong += p->force[3 * a + i] != (a % 3 == 0 ? pull * steps : 0);
}

static void run(struct pattern *p, int steps)
{
    const double start = MPI_Wtime();

    for (int step = 1; step <= steps; step++) {
        move(p, step);
        ARMCI_Barrier();
        get_all(p);
        check_positions(p, step);
        accumulate_all(p);
        ARMCI_AllFence();
        armci_msg_barrier();
    }
    check_forces(p, steps);
    p->seconds = MPI_Wtime() - start;
}

/* Compares the sums over all ranks with the map's figures; prints a line. */
static bool compare(const char *what, struct md_traffic own, struct md_traffic must, int steps)
{
    long sums[] = { own.calls[0], own.calls[1], own.bytes[0], own.bytes[1] };
    bool right;

    armci_msg_lgop(sums, 4, "+");
    right = sums[0] == must.calls[0] * steps && sums[1] == must.calls[1] * steps
            && sums[2] == must.bytes[0] * steps && sums[3] == must.bytes[1] * steps;
    if (armci_msg_me() == 0)
        printf("%-16s%ld calls, %ld bytes within hosts; %ld calls, %ld bytes between: %s\n", what,
               sums[0], sums[2], sums[1], sums[3], right ? "as the map says" : "WRONG");
    return right;
}

bool md_pattern(const struct md_options *opt, const struct md_map *map)
{
    struct pattern p;
    bool right;

    if (!create(&p, map))
        md_abort("no memory for the pattern");
    run(&p, opt->steps);
    right =
        compare("positions", p.got, md_map_neighbours(map, (long)ATOMS * ATOM_BYTES), opt->steps);
    right = compare("forces", p.sent, md_map_neighbours(map, (long)THIRD * ATOM_BYTES), opt->steps)
            && right;
    armci_msg_lgop(&p.wrong, 1, "+");
    armci_msg_dgop(&p.seconds, 1, "max");
    if (p.rank == 0)
        printf("time            %.4f s, %.1f us a step\nanswer          %ld numbers wrong\n",
               p.seconds, 1e6 * p.seconds / opt->steps, p.wrong);
    ARMCI_Barrier();
    destroy(&p);
    return right && p.wrong == 0;
}
