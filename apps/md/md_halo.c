/*
 * md_halo.c - positions from neighbours, forces to them.
 *
 * A region is a box of cells beyond a face, an edge or a corner of this rank's box. All ranks have
 * the same layout of cells, so a region is the same strided section, at another offset, in its
 * owner's array and in this rank's. There are two ways to transfer it:
 *
 *   strided  one call for the section, empty places included
 *   vector   one call with a piece for each cell, which contains its atoms only
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "md.h"

enum { ATOM = 3 * sizeof(double) }; /* bytes of a position, and of a force */

_Static_assert(sizeof(double) == sizeof(long), "positions and forces have one layout");

static armci_hdl_t handles[7];

void md_halo_regions(struct md *md)
{
    for (int direction = 1; direction < 8; direction++) {
        struct md_region region = { .cells = 1 };
        int at[3], to[3];
        bool exists = true;

        for (int i = 0; i < 3; i++) {
            const bool beyond = direction >> i & 1;

            exists = exists && !(beyond && md->map.grid[i] == 1);
            at[i] = md->box[i] + beyond;
            to[i] = beyond ? md->own[i] : 0;
            region.extent[i] = beyond ? 1 : md->own[i];
            region.cells *= region.extent[i];
        }
        if (!exists)
            continue;
        region.rank = md->map.rank_of[md_map_box(&md->map, at)];
        region.from = 0;
        region.to = md_cell(md, to[0], to[1], to[2]);
        md->regions[md->nregions++] = region;
    }
}

/* Returns the offset of a region's cell number at from its first cell; x is counted fastest. */
static int region_cell(const struct md *md, const struct md_region *region, int at)
{
    const int x = at % region->extent[0], y = at / region->extent[0] % region->extent[1];

    return md_cell(md, x, y, at / region->extent[0] / region->extent[1]);
}

/* A region's section of an array with that many bytes per cell. */
struct section {
    int strides[2], counts[3];
};

static struct section section_of(const struct md *md, const struct md_region *region, int bytes)
{
    return (struct section){
        .strides = { md->all[0] * bytes, md->all[0] * md->all[1] * bytes },
        .counts = { region->extent[0] * bytes, region->extent[1], region->extent[2] },
    };
}

void md_halo_get_counts(struct md *md)
{
    for (int r = 0; r < md->nregions; r++) {
        const struct md_region *region = &md->regions[r];
        struct section s = section_of(md, region, sizeof(int));

        ARMCI_GetS((int *)md->counts_of[region->rank] + region->from, s.strides,
                   &md->count[region->to], s.strides, s.counts, 2, region->rank);
        md_count(&md->counts_got, region->rank, region->cells * (long)sizeof(int));
    }
}

/* --- vectors --- */

/* A segment for each cell with atoms. The lists follow the descriptors in one allocation. */
struct vector {
    armci_giov_t *segments;
    int length;
    long bytes;
};

static struct vector vector_of(const struct md *md, const struct md_region *region, char *from,
                               char *to)
{
    const size_t cells = (size_t)region->cells, cell_bytes = (size_t)md->capacity * ATOM;
    armci_giov_t *segments = malloc(cells * (sizeof(armci_giov_t) + 2 * sizeof(void *)));
    struct vector vector = { .segments = segments };

    if (segments == NULL)
        md_abort("no memory for a vector");

    void **addresses = (void **)(segments + cells);

    for (int at = 0; at < region->cells; at++) {
        const int offset = region_cell(md, region, at);
        const int atoms = md->count[region->to + offset];

        if (atoms == 0)
            continue;
        addresses[0] = from + (size_t)offset * cell_bytes;
        addresses[1] = to + (size_t)offset * cell_bytes;
        segments[vector.length++] = (armci_giov_t){
            .src_ptr_array = &addresses[0],
            .dst_ptr_array = &addresses[1],
            .bytes = atoms * ATOM,
            .ptr_array_len = 1,
        };
        vector.bytes += atoms * ATOM;
        addresses += 2;
    }
    return vector;
}

/* --- positions and forces --- */

static char *cell_address(void *array, const struct md *md, int cell)
{
    return (char *)array + (size_t)cell * (size_t)md->capacity * ATOM;
}

static long atoms_in(const struct md *md, const struct md_region *region)
{
    long atoms = 0;

    for (int at = 0; at < region->cells; at++)
        atoms += md->count[region->to + region_cell(md, region, at)];
    return atoms;
}

static long get_region(struct md *md, const struct md_region *region, armci_hdl_t *handle)
{
    char *from = cell_address(md->positions_of[region->rank], md, region->from);
    char *to = cell_address(md->position, md, region->to);

    if (md->opt->halo == MD_STRIDED) {
        struct section s = section_of(md, region, md->capacity * ATOM);

        ARMCI_NbGetS(from, s.strides, to, s.strides, s.counts, 2, region->rank, handle);
        return (long)region->cells * md->capacity * ATOM;
    }
    struct vector v = vector_of(md, region, from, to);

    if (v.length > 0)
        ARMCI_NbGetV(v.segments, v.length, region->rank, handle);
    free(v.segments);
    return v.bytes;
}

static long accumulate_region(struct md *md, const struct md_region *region, armci_hdl_t *handle)
{
    char *from = cell_address(md->force, md, region->to);
    char *to = cell_address(md->forces_of[region->rank], md, region->from);
    long one = 1;

    if (md->opt->halo == MD_STRIDED) {
        struct section s = section_of(md, region, md->capacity * ATOM);

        ARMCI_NbAccS(ARMCI_ACC_LNG, &one, from, s.strides, to, s.strides, s.counts, 2, region->rank,
                     handle);
        return (long)region->cells * md->capacity * ATOM;
    }
    struct vector v = vector_of(md, region, from, to);

    if (v.length > 0)
        ARMCI_NbAccV(ARMCI_ACC_LNG, &one, v.segments, v.length, region->rank, handle);
    free(v.segments);
    return v.bytes;
}

void md_halo_get_start(struct md *md)
{
    const double start = MPI_Wtime();

    for (int r = 0; r < md->nregions; r++) {
        const struct md_region *region = &md->regions[r];

        ARMCI_INIT_HANDLE(&handles[r]);

        const long bytes = get_region(md, region, &handles[r]);

        md_count(&md->positions_got, region->rank, bytes);
        md->empty_bytes += ((long)region->cells * md->capacity - atoms_in(md, region)) * ATOM;
    }
    md->halos++;
    md->seconds_get += MPI_Wtime() - start;
}

static void wait_all(const struct md *md)
{
    for (int r = 0; r < md->nregions; r++)
        ARMCI_Wait(&handles[r]);
}

void md_halo_get_wait(struct md *md)
{
    const double start = MPI_Wtime();

    wait_all(md);
    md->seconds_get += MPI_Wtime() - start;
}

void md_halo_accumulate(struct md *md)
{
    const double start = MPI_Wtime();

    for (int r = 0; r < md->nregions; r++) {
        const struct md_region *region = &md->regions[r];

        ARMCI_INIT_HANDLE(&handles[r]);
        md_count(&md->forces_sent, region->rank, accumulate_region(md, region, &handles[r]));
    }
    wait_all(md);
    md->seconds_acc += MPI_Wtime() - start;
}
