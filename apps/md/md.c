/*
 * md.c - short-range molecular dynamics over ARMCI: options, the run, the report.
 *
 * A Lennard-Jones liquid in a periodic cube, with one box per rank. A step, by velocity Verlet,
 * moves the atoms, gets the positions beyond the box's upper faces from their owners, computes, and
 * accumulates the forces on those atoms at their owners. Two barriers per step: positions do not
 * change while other ranks read them, and forces are used only when all have been accumulated.
 *
 * Threads   one
 * Uses      everything in md.h
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "md.h"

#define MAX_LATTICE  64
#define MAX_STEPS    1000000
#define MAX_DRIFT    5e-4  /* of the energy, relative to the kinetic energy at the start */
#define MAX_MOMENTUM 1e-10 /* of all atoms together */

static void usage(FILE *out)
{
    fprintf(out,
            "usage: md [N [STEPS]] [natural|plain|permuted] [strided|vector] [options]\n"
            "A liquid of 4 N^3 atoms (N 10), STEPS steps (100); the answer is checked.\n"
            "\n"
            "  natural     box b is rank b's (default)\n"
            "  plain       boxes go to the hosts in turn\n"
            "  permuted    each host has a brick of boxes\n"
            "\n"
            "  strided     halos are strided sections (default)\n"
            "  vector      halos are lists of the atoms that are there\n"
            "\n"
            "  --grid XxYxZ  boxes in each dimension\n"
            "  --serial    compare every bit with a simulation by one rank, all pairs of atoms\n"
            "  --pattern   the communication alone, 1000 atoms a box, all neighbours\n"
            "  --help      this text\n"
            "\n"
            "  mpirun -n 4 md 10 100 permuted --serial\n"
            "The last line says 'verified' or 'NOT VERIFIED'; the exit code is 0 or 1.\n");
}

_Noreturn void md_abort(const char *why)
{
    ARMCI_Error(why, 1);
    abort();
}

/* --- options --- */

static bool parse_number(const char *text, int min, int max, int *number_out)
{
    char *end;
    const long value = strtol(text, &end, 10);

    if (end == text || *end != '\0' || value < min || value > max)
        return false;
    *number_out = (int)value;
    return true;
}

static bool parse_word(const char *text, struct md_options *opt)
{
    for (int order = 0; order < MD_ORDERS; order++)
        if (strcmp(text, md_order_name((enum md_order)order)) == 0) {
            opt->order = (enum md_order)order;
            return true;
        }
    if (strcmp(text, "strided") == 0)
        opt->halo = MD_STRIDED;
    else if (strcmp(text, "vector") == 0)
        opt->halo = MD_VECTOR;
    else if (strcmp(text, "--serial") == 0)
        opt->serial = true;
    else if (strcmp(text, "--pattern") == 0)
        opt->pattern = true;
    else if (strcmp(text, "--help") == 0)
        opt->help = true;
    else
        return false;
    return true;
}

static bool parse_grid(const char *text, int grid[3])
{
    char rest;

    return sscanf(text, "%dx%dx%d%c", &grid[0], &grid[1], &grid[2], &rest) == 3 && grid[0] > 0
           && grid[1] > 0 && grid[2] > 0;
}

static struct md_options parse(int argc, char **argv)
{
    struct md_options opt = { .lattice = 10, .steps = 100 };
    int numbers = 0;

    for (int i = 1; i < argc && opt.wrong == NULL; i++) {
        if (strcmp(argv[i], "--grid") == 0 && i + 1 < argc) {
            if (!parse_grid(argv[++i], opt.grid))
                opt.wrong = argv[i];
        } else if (numbers == 0 && parse_number(argv[i], 1, MAX_LATTICE, &opt.lattice))
            numbers++;
        else if (numbers == 1 && parse_number(argv[i], 0, MAX_STEPS, &opt.steps))
            numbers++;
        else if (!parse_word(argv[i], &opt))
            opt.wrong = argv[i];
    }
    return opt;
}

/* --- the simulation --- */

static void barrier(struct md *md)
{
    const double start = MPI_Wtime();

    ARMCI_Barrier();
    md->seconds_barrier += MPI_Wtime() - start;
}

static void forces(struct md *md, bool counts_changed)
{
    const size_t numbers = 3 * (size_t)md->cells * (size_t)md->capacity;

    memset(md->force, 0, numbers * sizeof(long));
    md->potential = 0;
    barrier(md); /* all positions are ready, and all from_others are empty */
    if (counts_changed)
        md_halo_get_counts(md);
    md_halo_get_start(md);
    md_force_inner(md);
    md_halo_get_wait(md);
    md_force_outer(md);
    md_halo_accumulate(md);
    barrier(md); /* all forces are accumulated; no rank reads positions any more */
    for (size_t i = 0; i < numbers; i++)
        md->force[i] += md->from_others[i];
    memset(md->from_others, 0, numbers * sizeof(long));
}

/* Applies half a step of force to the velocities of own atoms; with drift also moves the atoms. */
static void push(struct md *md, bool drift)
{
    double fastest = 0;

    for (int z = 0; z < md->own[2]; z++)
        for (int y = 0; y < md->own[1]; y++)
            for (int x = 0; x < md->own[0]; x++) {
                const int cell = md_cell(md, x, y, z);

                for (int i = 0; i < md->count[cell]; i++) {
                    const size_t at = 3 * ((size_t)cell * (size_t)md->capacity + (size_t)i);
                    double *v = &md->velocity[at];

                    md_kick(v, &md->force[at]);
                    if (!drift)
                        continue;
                    md_drift(&md->position[at], v);
                    fastest = fmax(fastest, v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
                }
            }
    md->drifted += sqrt(fastest) * MD_TIME_STEP;
    md->farthest = fmax(md->farthest, md->drifted);
}

/* Runs all steps. Returns the greatest change of energy, sampled at migrations; sets the first and
 * last sums. */
static double simulate(struct md *md, struct md_sums *first_out, struct md_sums *last_out)
{
    double max = 0;

    forces(md, true);
    *first_out = *last_out = md_sum_up(md);
    for (int step = 1; step <= md->opt->steps; step++) {
        const bool migrate = step % MD_MIGRATE == 0;

        push(md, true);
        if (migrate)
            md_migrate(md);
        forces(md, migrate);
        push(md, false);
        if (migrate || step == md->opt->steps) {
            *last_out = md_sum_up(md);
            max = fmax(max, fabs(last_out->potential + last_out->kinetic - first_out->potential
                                 - first_out->kinetic));
        }
    }
    return max;
}

/* --- the report --- */

static void sum_traffic(struct md_traffic *traffic)
{
    long sums[] = { traffic->calls[0], traffic->calls[1], traffic->bytes[0], traffic->bytes[1] };

    armci_msg_lgop(sums, 4, "+");
    *traffic = (struct md_traffic){ { sums[0], sums[1] }, { sums[2], sums[3] } };
}

static void print_traffic(const struct md *md, const char *what, const struct md_traffic *traffic,
                          const char *verdict)
{
    if (md->rank == 0)
        printf("%-16s%ld calls, %ld bytes within hosts; %ld calls, %ld bytes between: %s\n", what,
               traffic->calls[0], traffic->bytes[0], traffic->calls[1], traffic->bytes[1], verdict);
}

/* Compares the sums over all ranks with the map's figures for that many exchanges. missing: bytes
 * of a section that a vector omits. */
static bool check_traffic(const struct md *md, const char *what, struct md_traffic traffic,
                          long cell_bytes, long exchanges, long missing)
{
    const struct md_traffic must = md_map_halo(&md->map, md->own, cell_bytes);
    bool right = true;

    sum_traffic(&traffic);
    for (int way = 0; way < 2; way++)
        right = right && traffic.calls[way] == must.calls[way] * exchanges
                && (missing > 0 || traffic.bytes[way] == must.bytes[way] * exchanges)
                && traffic.bytes[way] <= must.bytes[way] * exchanges;
    right = right
            && traffic.bytes[0] + traffic.bytes[1] + missing
                   == (must.bytes[0] + must.bytes[1]) * exchanges;
    print_traffic(md, what, &traffic, right ? "as the map says" : "WRONG");
    return right;
}

/* Checks every call and byte. Collective; all ranks get the same result. */
static bool check_counts(const struct md *md)
{
    const long cell_bytes = (long)md->capacity * 3 * (long)sizeof(double);
    struct md_traffic migrated = md->atoms_sent;
    long sums[] = { md->atoms_got, md->opt->halo == MD_VECTOR ? md->empty_bytes : 0 };
    bool right;

    armci_msg_lgop(sums, 2, "+");
    right = check_traffic(md, "counts got", md->counts_got, sizeof(int), md->migrations + 1, 0);
    right = check_traffic(md, "positions got", md->positions_got, cell_bytes, md->halos, sums[1])
            && right;
    right =
        check_traffic(md, "forces sent", md->forces_sent, cell_bytes, md->halos, sums[1]) && right;
    sum_traffic(&migrated);

    const bool arrived =
        migrated.bytes[0] + migrated.bytes[1] == sums[0] * (long)sizeof(struct md_atom);

    print_traffic(md, "atoms moved", &migrated, arrived ? "all have arrived" : "WRONG");
    return right && arrived;
}

static void report_times(const struct md *md, double total)
{
    double times[] = { total, md->seconds_get, md->seconds_acc, md->seconds_barrier,
                       md->seconds_migrate };

    armci_msg_dgop(times, 5, "max");
    if (md->rank == 0)
        printf("time            %.4f s; in gets %.4f s, in accumulates %.4f s, in barriers %.4f s, "
               "in migrations %.4f s (most of a rank)\n",
               times[0], times[1], times[2], times[3], times[4]);
}

/* Checks conservation laws, which hold for any number of ranks. */
static bool check_physics(const struct md *md, double energy_change, const struct md_sums *first,
                          const struct md_sums *last)
{
    const double drift = energy_change / first->kinetic;
    double farthest = md->farthest;
    bool right;

    armci_msg_dgop(&farthest, 1, "max");
    /* written so that no comparison with a NaN passes */
    right = drift <= MAX_DRIFT && last->momentum <= MAX_MOMENTUM && last->atoms == md->atoms
            && farthest <= MD_SKIN / 2;
    if (md->rank == 0)
        printf("energy          %.9f an atom, change at most %.1e of the kinetic energy\n"
               "momentum        %.1e; %ld atoms; moved at most %.3f between migrations\n"
               "checksum        %016" PRIx64 ", potential %.12f, kinetic %.12f\n",
               (last->potential + last->kinetic) / md->atoms, drift, last->momentum, last->atoms,
               farthest, last->checksum, last->potential, last->kinetic);
    return right;
}

/* Compares with the serial run, on the first rank only. atoms_moved is the sum over all ranks. */
static bool check_serial(const struct md *md, const struct md_sums *last, long atoms_moved)
{
    struct md_sums serial;
    long crossed;

    if (!md_serial(md, &serial, &crossed))
        md_abort("no memory for the serial run");

    const bool same = serial.checksum == last->checksum && serial.potential == last->potential
                      && serial.kinetic == last->kinetic;

    printf("serial          checksum %016" PRIx64
           ", potential %.12f, %ld atoms changed boxes: %s\n",
           serial.checksum, serial.potential, crossed,
           same && crossed == atoms_moved ? "the same" : "DIFFERENT");
    return same && crossed == atoms_moved;
}

static bool run(const struct md_options *opt, const struct md_map *map)
{
    struct md md = { .opt = opt, .map = *map };
    struct md_sums first, last;
    const char *wrong = md_create(&md);

    if (wrong != NULL) {
        if (md.rank == 0)
            fprintf(stderr, "md: %s\n", wrong);
        return false;
    }
    if (md.rank == 0)
        printf("md: %d atoms, side %.4f, %d steps, %d rank%s on %d host%s, %s, %s; a box has %d x "
               "%d x %d cells of %d atoms at most\n",
               md.atoms, md.side, opt->steps, map->ranks, map->ranks == 1 ? "" : "s", map->hosts,
               map->hosts == 1 ? "" : "s", md_order_name(opt->order),
               opt->halo == MD_STRIDED ? "strided" : "vector", md.own[0], md.own[1], md.own[2],
               md.capacity);

    const double start = MPI_Wtime();
    const double energy_change = simulate(&md, &first, &last);

    report_times(&md, MPI_Wtime() - start);

    const bool counts = check_counts(&md);
    bool right = check_physics(&md, energy_change, &first, &last) && counts;
    long moved = md.atoms_got;

    armci_msg_lgop(&moved, 1, "+");
    if (opt->serial && md.rank == 0)
        right = check_serial(&md, &last, moved) && right;
    ARMCI_Barrier();
    md_destroy(&md);
    return right;
}

/* Performs all runs. Returns true on the first rank if all results were right. */
static bool run_all(const struct md_options *opt)
{
    struct md_map map;
    const char *wrong = md_map_create(&map, opt->grid, opt->order);
    bool right = false;

    if (wrong != NULL) {
        if (armci_msg_me() == 0)
            fprintf(stderr, "md: %s\n", wrong);
    } else {
        if (armci_msg_me() == 0)
            printf("md: a grid of %d x %d x %d boxes, %s\n", map.grid[0], map.grid[1], map.grid[2],
                   md_order_name(opt->order));
        right = opt->pattern ? md_pattern(opt, &map) : run(opt, &map);
    }
    md_map_destroy(&map);
    return right;
}

static int run_or_help(const struct md_options *opt)
{
    const bool first = armci_msg_me() == 0;

    if (opt->wrong != NULL || opt->help) {
        if (first && opt->wrong != NULL)
            fprintf(stderr, "md: cannot make sense of %s\n", opt->wrong);
        if (first)
            usage(opt->help ? stdout : stderr);
        return opt->help ? 0 : 1;
    }

    int wrong = !run_all(opt);

    armci_msg_igop(&wrong, 1, "max");
    if (first)
        printf("md: %s, %d rank%s: %s\n", opt->pattern ? "pattern" : md_order_name(opt->order),
               armci_msg_nproc(), armci_msg_nproc() == 1 ? "" : "s",
               wrong ? "NOT VERIFIED" : "verified");
    return wrong;
}

int main(int argc, char **argv)
{
    const struct md_options opt = parse(argc, argv);
    int code;

    MPI_Init(&argc, &argv);
    ARMCI_Init_args(&argc, &argv);
    code = run_or_help(&opt);
    ARMCI_Finalize();
    MPI_Finalize();
    return code;
}
