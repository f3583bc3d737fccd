/*
 * md_map.c - boxes of space, their ranks, and the traffic that results.
 *
 * Space is a grid of boxes, one per rank, numbered x fastest. Hosts have consecutive ranks.
 *
 *   natural   rank b has box b
 *   plain     boxes are assigned to hosts in turn, so that neighbours in x are on different hosts
 *   permuted  each host has a brick of boxes, of the shape with the least surface
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "md.h"

static const char *const order_names[MD_ORDERS] = { "natural", "plain", "permuted" };

const char *md_order_name(enum md_order order)
{
    return order_names[order];
}

/* Chooses the number of boxes in each dimension: as equal as possible, the fewest in x. */
static void choose_grid(int ranks, int grid[3])
{
    int best = -1;

    for (int x = 1; x <= ranks; x++)
        for (int y = x; x * y <= ranks; y++) {
            const int z = ranks / (x * y);

            if (x * y * z != ranks || z < y || (best >= 0 && x + y + z >= best))
                continue;
            best = x + y + z;
            grid[0] = x;
            grid[1] = y;
            grid[2] = z;
        }
}

/* Chooses the number of hosts in each dimension: each host has a brick of boxes; the surface
 * between bricks is minimal. */
static bool choose_bricks(const struct md_map *map, int bricks[3])
{
    const int *grid = map->grid;
    long best = -1;

    for (int x = 1; x <= map->hosts; x++)
        for (int y = 1; x * y <= map->hosts; y++) {
            const int z = map->hosts / (x * y);
            const long surface = (long)(x > 1) * x * grid[1] * grid[2]
                                 + (long)(y > 1) * y * grid[0] * grid[2]
                                 + (long)(z > 1) * z * grid[0] * grid[1];

            if (x * y * z != map->hosts || grid[0] % x != 0 || grid[1] % y != 0 || grid[2] % z != 0
                || (best >= 0 && surface >= best))
                continue;
            best = surface;
            bricks[0] = x;
            bricks[1] = y;
            bricks[2] = z;
        }
    return best >= 0;
}

int md_map_box(const struct md_map *map, const int at[3])
{
    const int *grid = map->grid;
    int wrapped[3];

    for (int i = 0; i < 3; i++)
        wrapped[i] = (at[i] + grid[i]) % grid[i];
    return wrapped[0] + grid[0] * (wrapped[1] + grid[1] * wrapped[2]);
}

void md_map_coordinates(const struct md_map *map, int box, int at[3])
{
    at[0] = box % map->grid[0];
    at[1] = box / map->grid[0] % map->grid[1];
    at[2] = box / map->grid[0] / map->grid[1];
}

static int brick_rank(const struct md_map *map, const int bricks[3], int box)
{
    int at[3], size[3], brick[3], inside[3];

    md_map_coordinates(map, box, at);
    for (int i = 0; i < 3; i++) {
        size[i] = map->grid[i] / bricks[i];
        brick[i] = at[i] / size[i];
        inside[i] = at[i] % size[i];
    }
    return (brick[0] + bricks[0] * (brick[1] + bricks[1] * brick[2])) * (map->ranks / map->hosts)
           + inside[0] + size[0] * (inside[1] + size[1] * inside[2]);
}

static bool place(struct md_map *map)
{
    const int hosts = map->hosts, per_host = map->ranks / hosts;
    int bricks[3];

    if (map->order == MD_PERMUTED && !choose_bricks(map, bricks))
        return false;
    for (int box = 0; box < map->ranks; box++) {
        int rank = box;

        if (map->order == MD_PLAIN)
            rank = box % hosts * per_host + box / hosts;
        else if (map->order == MD_PERMUTED)
            rank = brick_rank(map, bricks, box);
        map->rank_of[box] = rank;
        map->box_of[rank] = box;
    }
    return true;
}

const char *md_map_create(struct md_map *map, const int grid[3], enum md_order order)
{
    const int ranks = armci_msg_nproc(), hosts = armci_domain_count(ARMCI_DOMAIN_SMP);

    *map = (struct md_map){ .ranks = ranks, .hosts = hosts, .order = order };
    for (int i = 0; i < 3; i++)
        map->grid[i] = grid[i];
    if (grid[0] == 0)
        choose_grid(ranks, map->grid);
    else if ((long)grid[0] * grid[1] * grid[2] != ranks)
        return "the grid has not as many boxes as there are ranks";
    for (int host = 0; host < hosts && order != MD_NATURAL; host++)
        if (armci_domain_nprocs(ARMCI_DOMAIN_SMP, host) * hosts != ranks)
            return "hosts have different numbers of ranks";
    map->rank_of = malloc((size_t)ranks * sizeof(int));
    map->box_of = malloc((size_t)ranks * sizeof(int));
    if (map->rank_of == NULL || map->box_of == NULL)
        return "no memory";
    return place(map) ? NULL : "the hosts cannot have bricks of this grid";
}

void md_map_destroy(struct md_map *map)
{
    free(map->rank_of);
    free(map->box_of);
    map->rank_of = map->box_of = NULL;
}

/* --- traffic --- */

static void count_between(struct md_traffic *traffic, int a, int b, long bytes)
{
    const bool same = armci_domain_id(ARMCI_DOMAIN_SMP, a) == armci_domain_id(ARMCI_DOMAIN_SMP, b);

    traffic->calls[same ? 0 : 1]++;
    traffic->bytes[same ? 0 : 1] += bytes;
}

struct md_traffic md_map_halo(const struct md_map *map, const int own[3], long cell_bytes)
{
    struct md_traffic traffic = { { 0, 0 }, { 0, 0 } };

    for (int box = 0; box < map->ranks; box++)
        for (int direction = 1; direction < 8; direction++) {
            long bytes = cell_bytes;
            bool exists = true;
            int at[3];

            md_map_coordinates(map, box, at);
            for (int i = 0; i < 3; i++) {
                const bool beyond = direction >> i & 1;

                exists = exists && !(beyond && map->grid[i] == 1);
                at[i] += beyond;
                bytes *= beyond ? 1 : own[i];
            }
            if (exists)
                count_between(&traffic, map->rank_of[box], map->rank_of[md_map_box(map, at)],
                              bytes);
        }
    return traffic;
}

int md_map_neighbours_of(const struct md_map *map, int box, int boxes[26])
{
    int found = 0;

    for (int offset = 0; offset < 27; offset++) {
        int at[3], neighbour;
        bool known;

        md_map_coordinates(map, box, at);
        at[0] += offset % 3 - 1;
        at[1] += offset / 3 % 3 - 1;
        at[2] += offset / 9 - 1;
        neighbour = md_map_box(map, at);
        known = neighbour == box;
        for (int i = 0; i < found; i++)
            known = known || boxes[i] == neighbour;
        if (!known)
            boxes[found++] = neighbour;
    }
    return found;
}

/* Returns true if two coordinates of a dimension are equal or adjacent on the ring. */
static bool touches(int a, int b, int size)
{
    const int distance = abs(a - b);

    return distance <= 1 || distance == size - 1;
}

struct md_traffic md_map_neighbours(const struct md_map *map, long bytes)
{
    struct md_traffic traffic = { { 0, 0 }, { 0, 0 } };

    for (int a = 0; a < map->ranks; a++)
        for (int b = 0; b < map->ranks; b++) {
            int at[3], other[3];
            bool adjacent = a != b;

            md_map_coordinates(map, a, at);
            md_map_coordinates(map, b, other);
            for (int i = 0; i < 3; i++)
                adjacent = adjacent && touches(at[i], other[i], map->grid[i]);
            if (adjacent)
                count_between(&traffic, map->rank_of[a], map->rank_of[b], bytes);
        }
    return traffic;
}
