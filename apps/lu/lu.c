/*
 * lu.c - blocked dense LU factorisation, in the manner of SPLASH-2: options, the run, the report.
 *
 * The matrix consists of contiguous blocks, distributed over the ranks. In each step a rank
 * fetches, one-sided, the remote blocks that its updates need. The same source builds lu, whose
 * ranks are processes over ARMCI, and lu-pthread, whose ranks are threads.
 *
 * Uses      lu_comm_*(), lu_factor(), lu_grid_*(), lu_check()
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lu.h"

#define MAX_N     16384
#define MAX_BLOCK 256

static void usage(FILE *out)
{
    fprintf(out,
            "usage: lu [N [B]] [cyclic|block|hybrid] [get|nbget|anew|load] [options]\n"
            "Factors an N x N matrix in blocks of B x B (1024 and 16); the answer is checked.\n"
            "\n"
            "  cyclic      blocks are dealt out to the ranks in turn (default)\n"
            "  block       each rank has one rectangle of the matrix\n"
            "  hybrid      each host has one rectangle, dealt out to its ranks in turn\n"
            "\n"
            "  get         fetch a block when it is first needed, keep it for the step (default)\n"
            "  nbget       start to fetch all blocks of a step, wait for each when it is needed\n"
            "  anew        fetch a block each time it is needed\n"
            "  load        use blocks of the same host where they are, others as nbget;\n"
            "              lu-pthread has no other way\n"
            "\n"
            "  --serial    compare every bit with a factorisation by one rank\n"
            "  --tables    check the table of published counts, and no more\n"
            "  --threads T lu-pthread: so many threads (2)\n"
            "  --help      this text\n"
            "\n"
            "  mpirun -n 4 lu 2048 16 hybrid nbget\n"
            "  lu-pthread 2048 16 --threads 2\n"
            "The last line says 'verified' or 'NOT VERIFIED'; the exit code is 0 or 1.\n");
}

/* --- options --- */

static bool parse_number(const char *text, int max, int *number_out)
{
    char *end;
    const long value = text == NULL ? 0 : strtol(text, &end, 10);

    if (text == NULL || end == text || *end != '\0' || value < 1 || value > max)
        return false;
    *number_out = (int)value;
    return true;
}

static bool parse_word(const char *text, struct lu_options *opt)
{
    for (int layout = 0; layout < LU_LAYOUTS; layout++)
        if (strcmp(text, lu_layout_name((enum lu_layout)layout)) == 0) {
            opt->layout = (enum lu_layout)layout;
            return true;
        }
    for (int fetch = 0; fetch < LU_FETCHES; fetch++)
        if (strcmp(text, lu_fetch_name((enum lu_fetch)fetch)) == 0) {
            opt->fetch = (enum lu_fetch)fetch;
            return true;
        }
    return false;
}

static struct lu_options parse(int argc, char **argv)
{
    struct lu_options opt = { .n = 1024, .block = 16, .threads = 2, .fetch = LU_GET };
    int numbers = 0;

    for (int i = 1; i < argc && opt.wrong == NULL; i++) {
        if (strcmp(argv[i], "--serial") == 0)
            opt.serial = true;
        else if (strcmp(argv[i], "--tables") == 0)
            opt.tables = true;
        else if (strcmp(argv[i], "--help") == 0)
            opt.help = true;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
            if (!parse_number(argv[++i], 256, &opt.threads))
                opt.wrong = argv[i];
        } else if (numbers == 0 && parse_number(argv[i], MAX_N, &opt.n))
            numbers++;
        else if (numbers == 1 && parse_number(argv[i], MAX_BLOCK, &opt.block))
            numbers++;
        else if (!parse_word(argv[i], &opt))
            opt.wrong = argv[i];
    }
    if (opt.wrong == NULL && opt.n % opt.block != 0)
        opt.wrong = "an N that is no multiple of B";
    return opt;
}

/* --- the run --- */

/* Gathers the factors on rank 0: returns every block in row-major order there, NULL on other
 * ranks. */
static double *gather(const struct lu *lu)
{
    const int nb = lu->grid->nb;
    const size_t bytes = (size_t)lu->opt->block * (size_t)lu->opt->block * sizeof(double);
    const size_t blocks = (size_t)nb * (size_t)nb;

    if (lu->rank != 0)
        return NULL;

    char *all = malloc(blocks * bytes);

    if (all == NULL)
        lu_comm_abort("no memory for the whole matrix on rank 0");
    for (size_t at = 0; at < blocks; at++)
        lu_comm_get(all + at * bytes, lu->grid->owner[at], (size_t)lu->grid->index[at] * bytes,
                    bytes);
    return (double *)(void *)all;
}

static bool same_counts(const struct lu_counts *a, const struct lu_counts *b)
{
    return a->diagonal[0] == b->diagonal[0] && a->diagonal[1] == b->diagonal[1]
           && a->panel[0] == b->panel[0] && a->panel[1] == b->panel[1] && a->updates == b->updates;
}

/* Compares each rank's counts with the enumeration's, and their sums with the table. Collective. */
static bool check_counts(const struct lu *lu)
{
    struct lu_counts *must = calloc((size_t)lu->grid->ranks, sizeof(*must));

    if (must == NULL || !lu_grid_counts(lu->grid, lu->opt->fetch, must))
        lu_comm_abort("no memory for counts");

    const struct lu_counts *own = &lu->counts;
    long wrong = !same_counts(own, &must[lu->rank]);
    long sums[] = { own->diagonal[0], own->diagonal[1], own->panel[0], own->panel[1], wrong };
    const long block = (long)lu->opt->block * lu->opt->block * (long)sizeof(double);
    const bool anew = lu->opt->fetch == LU_ANEW;
    long published[2];

    free(must);
    lu_comm_sum(sums, 5);

    const bool table = lu_grid_published(lu->grid, lu->opt->fetch, &published[0], &published[1]);
    const long local = sums[2] + (anew ? 0 : sums[0]), network = sums[3] + (anew ? 0 : sums[1]);
    const bool right =
        sums[4] == 0 && (!table || (local == published[0] && network == published[1]));

    if (lu->rank == 0) {
        printf("blocks fetched  %ld from the same host, %ld over the network (diagonal ones: %ld, "
               "%ld)\n",
               sums[0] + sums[2], sums[1] + sums[3], sums[0], sums[1]);
        printf("bytes fetched   %ld from the same host, %ld over the network\n",
               (sums[0] + sums[2]) * block, (sums[1] + sums[3]) * block);
        printf("counts          %s%s\n", right ? "as enumerated" : "WRONG",
               !table  ? ""
               : right ? " and as published"
                       : ", or not as published");
    }
    return right;
}

/* Returns the largest number of updates of a rank divided by the mean, which depends on the
 * distribution. */
static double load_ratio(const struct lu *lu)
{
    long sum = lu->counts.updates;
    double max = (double)lu->counts.updates;

    lu_comm_sum(&sum, 1);
    lu_comm_max(&max, 1);
    return sum == 0 ? 1 : max * lu->grid->ranks / (double)sum;
}

static void report_times(const struct lu *lu)
{
    const double n = lu->opt->n, load = load_ratio(lu);
    double times[] = { lu->times.total, lu->times.get, lu->times.barrier, lu->times.cpu };

    lu_comm_max(times, 4);
    if (lu->rank == 0)
        printf("time            %.4f s, %.2f GFlop/s; in gets %.4f s, in barriers %.4f s (most of "
               "a rank); cpu %.4f s; load %.2f\n",
               times[0], 2e-9 / 3 * n * n * n / times[0], times[1], times[2], times[3], load);
}

static bool check_answer(const struct lu *lu)
{
    double *all = gather(lu);
    struct lu_verdict verdict = { .right = true };

    if (lu->rank == 0) {
        if (!lu_check(all, lu->opt->n, lu->opt->block, lu->opt->serial, &verdict))
            lu_comm_abort("no memory to check the answer");
        printf("answer          error %.1e, residual %.3f, log det %.12g (relative error %.1e)\n",
               verdict.error, verdict.residual, verdict.log_det, verdict.log_det_error);
        if (lu->opt->serial)
            printf("serial          %ld elements differ\n", verdict.different);
    }
    free(all);
    return verdict.right;
}

static void fill(struct lu *lu)
{
    const int nb = lu->grid->nb, b = lu->opt->block;
    double *next = lu->blocks;

    for (int at = 0; at < nb * nb; at++)
        if (lu->grid->owner[at] == lu->rank) {
            lu_matrix_block(next, lu->opt->n, b, at / nb, at % nb);
            next += (size_t)b * (size_t)b;
        }
}

static bool run(const struct lu_options *opt, const struct lu_grid *grid)
{
    struct lu lu = { .opt = opt, .grid = grid, .rank = lu_comm_rank() };
    const size_t size = (size_t)opt->block * (size_t)opt->block * sizeof(double);

    lu.blocks = lu_comm_memory((size_t)grid->owned[lu.rank] * size, 2 * grid->nb);
    if (lu.blocks == NULL)
        lu_comm_abort("no memory for the matrix");
    fill(&lu);
    if (!lu_factor(&lu))
        lu_comm_abort("no memory for the blocks of a step");

    const bool counts = check_counts(&lu);

    report_times(&lu);

    const bool answer = check_answer(&lu);

    lu_comm_barrier();
    lu_comm_memory_free();
    return counts && answer;
}

/* Performs options that replace the run. Returns the exit code, or -1 if there was none. */
static int instead(const struct lu_options *opt)
{
    const bool first = lu_comm_rank() == 0;

    if (opt->wrong != NULL || opt->help) {
        if (first && opt->wrong != NULL)
            fprintf(stderr, "lu: cannot make sense of %s\n", opt->wrong);
        if (first)
            usage(opt->help ? stdout : stderr);
        return opt->help ? 0 : 1;
    }
    if (opt->tables)
        return !first || lu_grid_check_tables() ? 0 : 1;
    return -1;
}

static int body(void *arg)
{
    struct lu_options opt = *(struct lu_options *)arg;
    const int ranks = lu_comm_ranks(), nb = opt.n / opt.block, said = instead(&opt);
    const bool first = lu_comm_rank() == 0;
    struct lu_grid grid;
    bool right;

    if (said >= 0)
        return said;
    if (lu_comm_loads_only())
        opt.fetch = LU_LOAD;
    if (lu_comm_hosts() == 0)
        lu_comm_abort("hosts have different numbers of ranks");
    if (!lu_grid_create(&grid, nb, ranks, lu_comm_hosts(), opt.layout))
        lu_comm_abort("no memory for the table of blocks");
    if (first)
        printf("lu: n %d, blocks of %d (%d a side), %s, %s, %d %s%s on %d host%s\n", opt.n,
               opt.block, nb, lu_layout_name(opt.layout), lu_fetch_name(opt.fetch), ranks,
               lu_comm_kind(), ranks == 1 ? "" : "s", grid.hosts, grid.hosts == 1 ? "" : "s");
    right = run(&opt, &grid);

    long wrong = !right;

    lu_comm_sum(&wrong, 1);
    if (first)
        printf("lu: n %d, %s, %s, %d %s%s: %s\n", opt.n, lu_layout_name(opt.layout),
               lu_fetch_name(opt.fetch), ranks, lu_comm_kind(), ranks == 1 ? "" : "s",
               wrong == 0 ? "verified" : "NOT VERIFIED");
    lu_grid_destroy(&grid);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    struct lu_options opt = parse(argc, argv);

    return lu_comm_run(&argc, &argv, opt.threads, body, &opt);
}
