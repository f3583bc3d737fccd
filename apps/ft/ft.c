/*
 * ft.c - NAS FT on put, get and active messages: options, the run, the report.
 *
 * The program solves a 3-D heat equation spectrally. The initial field is transformed once. Each
 * step damps the spectrum, transforms it back and adds up 1024 values as a checksum. The field is
 * initially distributed by y; the forward transform leaves the spectrum distributed by z, and each
 * inverse transform goes from z back to y. So every transpose but the first sends z planes.
 *
 * Owns      the arrays, all in the segment:
 *             spectrum  result of the forward transform, kept
 *             field     result of the inverse transform, checksummed
 *             work      where either transform starts
 *             pack      messages of the exchange; absent otherwise
 * Threads   one
 * Uses      ft_comm.c, ft_transpose.c, ft_problem.c
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ft.h"

#define TOLERANCE       1e-12
#define CHECKSUM_POINTS 1024
#define ALONE_SAMPLES   5
#define MAX_RUNS        100
#define MAX_PAD         1024

struct options {
    const struct ft_class *cls;
    enum ft_method method;
    int runs;
    int pad;
    bool counts;
};

struct ft {
    struct options opt;
    const struct ft_class *cls;
    int rank, ranks;
    struct ft_split y, z;
    struct ft_transform forward, inverse;
    /* This step's damping, a factor for each dimension. */
    double *factor_x, *factor_y, *factor_z;
    size_t segment; /* bytes used of each rank's segment */

    /* Rank 0 only: */
    double worst; /* the largest relative error of all steps */
    int failures; /* steps whose checksum was wrong */
};

/* One rank's account of one run; gathered on rank 0. */
struct account {
    double total, start, completion, barrier;
    double last;  /* in the transforms of the last dimension */
    double alone; /* the transfer of one transpose with nothing to hide it */
    struct ft_counts first, step;
    int32_t counts_right;
};

_Static_assert(sizeof(struct account) <= FT_GATHER_MAX, "an account must fit one gather");

static void usage(FILE *out)
{
    fprintf(out,
            "usage: ft CLASS [exchange|slabs|pencils] [options]\n"
            "NAS FT: a 3-D FFT over all ranks; the answers are checked.\n"
            "\n"
            "  CLASS       S (64 x 64 x 64, 6 steps), W (128 x 128 x 32, 6),\n"
            "              A (256 x 256 x 128, 6), B (512 x 256 x 256, 20),\n"
            "              C (512 x 512 x 512, 20)\n"
            "  exchange    compute everything, then send one message to each rank\n"
            "  slabs       send a plane's part for a rank as soon as it is computed\n"
            "  pencils     send each row as soon as it is computed (default)\n"
            "\n"
            "  --counts    fail unless the messages are those the method must send\n"
            "  --runs N    repeat N times (1 to %d); times are the best run's\n"
            "  --pad N     lengthen the last transform's stride by N elements (0 to %d)\n"
            "  --help      this text\n"
            "\n"
            "Any number of ranks up to the number of planes, for example:\n"
            "  gasnetrun -n 4 ft A pencils\n"
            "The last line says 'verified' or 'NOT VERIFIED'; the exit code is 0 or 1.\n",
            MAX_RUNS, MAX_PAD);
}

static bool parse_number(const char *text, int lower, int upper, int *number_out)
{
    char *end;
    long value = text == NULL ? -1 : strtol(text, &end, 10);

    if (text == NULL || end == text || *end != '\0' || value < lower || value > upper)
        return false;
    *number_out = (int)value;
    return true;
}

static bool parse_method(const char *text, enum ft_method *method_out)
{
    for (int m = 0; m < FT_METHODS; m++)
        if (strcmp(text, ft_method_name((enum ft_method)m)) == 0) {
            *method_out = (enum ft_method)m;
            return true;
        }
    return false;
}

/* Returns NULL on success, otherwise a text about the wrong option. */
static const char *parse_options(int argc, char **argv, struct options *opt)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];

        if (strcmp(arg, "--counts") == 0)
            opt->counts = true;
        else if (strcmp(arg, "--runs") == 0) {
            if (!parse_number(argv[++i], 1, MAX_RUNS, &opt->runs))
                return arg;
        } else if (strcmp(arg, "--pad") == 0) {
            if (!parse_number(argv[++i], 0, MAX_PAD, &opt->pad))
                return arg;
        } else if (opt->cls == NULL && ft_class_find(arg) != NULL)
            opt->cls = ft_class_find(arg);
        else if (!parse_method(arg, &opt->method))
            return arg;
    }
    return opt->cls == NULL ? "a command without CLASS" : NULL;
}

static bool asks_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

/* Ends the job after an error that all ranks have found: rank 0 prints it, all ranks exit. */
static _Noreturn void refuse(const struct ft *ft, const char *why)
{
    if (ft->rank == 0)
        fprintf(stderr, "ft: %s\n", why);
    ft_comm_exit(1);
}

/* Ends the job after an error that possibly only this rank has found. */
static _Noreturn void give_up(const struct ft *ft, const char *why)
{
    fprintf(stderr, "ft: rank %d: %s\n", ft->rank, why);
    ft_comm_abort();
}

/* ---- set-up ------------------------------------------------------------------------- */

static struct ft_transform make_transform(const struct ft *ft, struct ft_split planes,
                                          struct ft_split rows)
{
    return (struct ft_transform){
        .method = ft->opt.method,
        .nx = ft->cls->nx,
        .pad = ft->opt.pad,
        .rank = ft->rank,
        .ranks = ft->ranks,
        .planes = planes,
        .rows = rows,
    };
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Reserves space for elements at the end of the used part of the segment; returns its byte
 * offset. */
static size_t reserve(struct ft *ft, size_t elements)
{
    const size_t align = 4096;
    size_t at = ft->segment;

    ft->segment += (elements * sizeof(ft_value) + align - 1) / align * align;
    return at;
}

/* Offsets are the same on every rank, so that a remote address is the peer's base plus the local
 * offset. */
static void make_arrays(struct ft *ft)
{
    struct ft_transform *fwd = &ft->forward, *inv = &ft->inverse;
    size_t spectrum = reserve(ft, ft_transform_result_size(fwd));
    size_t field = reserve(ft, ft_transform_result_size(inv));
    size_t work = reserve(ft, larger(ft_transform_work_size(fwd), ft_transform_work_size(inv)));
    size_t pack = reserve(ft, larger(ft_transform_pack_size(fwd), ft_transform_pack_size(inv)));
    size_t limit = ft_comm_memory_limit();
    char why[200];

    if (ft->segment > limit) {
        snprintf(why, sizeof(why),
                 "class %c with %d ranks needs a segment of %zu MiB a rank; %zu MiB can be had: "
                 "use more ranks, a smaller class, or a larger GASNET_MAX_SEGSIZE",
                 ft->cls->name, ft->ranks, (ft->segment + (1 << 20) - 1) >> 20, limit >> 20);
        refuse(ft, why);
    }
    char *base = ft_comm_memory(ft->segment);

    if (base == NULL)
        give_up(ft, "no segment");
    memset(base, 0, ft->segment); /* so that no page is touched first inside the timed part */
    fwd->result_offset = spectrum;
    inv->result_offset = field;
    fwd->result = (ft_value *)(base + spectrum);
    inv->result = (ft_value *)(base + field);
    fwd->work = inv->work = (ft_value *)(base + work);
    fwd->pack = inv->pack = ft->opt.method == FT_EXCHANGE ? (ft_value *)(base + pack) : NULL;
}

static void set_up(struct ft *ft)
{
    const struct ft_class *cls = ft->cls;
    int planes = cls->ny < cls->nz ? cls->ny : cls->nz;
    char why[120];

    if (ft->ranks > planes) {
        snprintf(why, sizeof(why), "class %c has %d planes: run it on at most %d ranks, not %d",
                 cls->name, planes, planes, ft->ranks);
        refuse(ft, why);
    }
    ft->y = (struct ft_split){ cls->ny, ft->ranks };
    ft->z = (struct ft_split){ cls->nz, ft->ranks };
    ft->forward = make_transform(ft, ft->y, ft->z);
    ft->inverse = make_transform(ft, ft->z, ft->y);
    make_arrays(ft);

    ft->factor_x = calloc((size_t)cls->nx, sizeof(double));
    ft->factor_y = calloc((size_t)cls->ny, sizeof(double));
    ft->factor_z = calloc((size_t)cls->nz, sizeof(double));
    if (ft->factor_x == NULL || ft->factor_y == NULL || ft->factor_z == NULL)
        give_up(ft, "no memory for three tables of factors");
    if (!ft_transform_plan(&ft->forward, FFTW_FORWARD)
        || !ft_transform_plan(&ft->inverse, FFTW_BACKWARD))
        give_up(ft, "FFTW could not plan a transform");
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare_doubles);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Measures the transfer of one transpose's volume without computation at the same time. */
static double measure_alone(struct ft *ft)
{
    double seconds[ALONE_SAMPLES];

    for (int i = 0; i < ALONE_SAMPLES; i++)
        seconds[i] = ft_transform_alone(&ft->inverse);
    return median(seconds, ALONE_SAMPLES);
}

/* ---- the run ------------------------------------------------------------------------ */

/* Sets work to the spectrum, damped for that step. */
static void evolve(struct ft *ft, int step)
{
    const struct ft_transform *from = &ft->forward;
    const struct ft_class *cls = ft->cls;
    int first = ft_split_first(ft->z, ft->rank);
    ft_value *to = ft->inverse.work;

    ft_problem_factors(cls->nx, step, ft->factor_x);
    ft_problem_factors(cls->ny, step, ft->factor_y);
    ft_problem_factors(cls->nz, step, ft->factor_z);
    for (int k = 0; k < ft_split_count(ft->z, ft->rank); k++)
        for (int j = 0; j < cls->ny; j++) {
            double factor = ft->factor_y[j] * ft->factor_z[first + k];
            const ft_value *mode =
                from->result + (size_t)k * from->row_stride + (size_t)j * from->plane_stride;

            for (int i = 0; i < cls->nx; i++)
                *to++ = mode[i] * (factor * ft->factor_x[i]);
        }
}

/* Returns this rank's part of the checksum of the field. */
static ft_value checksum(const struct ft *ft)
{
    const struct ft_transform *at = &ft->inverse;
    const struct ft_class *cls = ft->cls;
    ft_value sum = 0;

    for (int j = 1; j <= CHECKSUM_POINTS; j++) {
        int x = j % cls->nx, y = 3 * j % cls->ny, z = 5 * j % cls->nz;

        if (!ft_split_owns(ft->y, ft->rank, y))
            continue;
        y -= ft_split_first(ft->y, ft->rank);
        sum += at->result[(size_t)y * at->row_stride + (size_t)z * at->plane_stride + (size_t)x];
    }
    return sum / (double)ft_class_points(cls);
}

/* Gathers the parts of the checksum on rank 0, which compares the sum with the reference. */
static void check_step(struct ft *ft, int step, bool print, ft_value *parts)
{
    ft_value own = checksum(ft), sum = 0;

    ft_comm_gather(&own, sizeof(own), parts);
    if (ft->rank != 0)
        return;
    for (int r = 0; r < ft->ranks; r++)
        sum += parts[r];

    double error = ft_problem_error(ft->cls, step, sum);
    bool right = error <= TOLERANCE;

    if (!right)
        ft->failures++;
    if (!(error <= ft->worst))
        ft->worst = error;
    if (print || !right)
        printf("step %2d  checksum %16.10f %16.10f  relative error %.1e%s\n", step, creal(sum),
               cimag(sum), error, right ? "" : "  WRONG");
    fflush(stdout);
}

/* Returns the counts since the last call; clears *right if they differ from what the transform must
 * send. */
static struct ft_counts take_counts(const struct ft_transform *tf, int32_t *right)
{
    struct ft_counts sent = ft_comm_stats()->sent;
    struct ft_counts must = ft_transform_counts(tf);

    if (sent.messages != must.messages || sent.bytes != must.bytes || sent.smallest != must.smallest
        || sent.largest != must.largest)
        *right = 0;
    ft_comm_stats()->sent = (struct ft_counts){ .smallest = UINT64_MAX };
    return sent;
}

static struct account run_once(struct ft *ft, bool print, ft_value *parts)
{
    struct account acc = { .counts_right = 1 };
    size_t nx = (size_t)ft->cls->nx;

    ft_problem_start(ft->cls, ft->y, ft->rank, ft->forward.work, (size_t)ft->cls->nz * nx, nx);
    ft->forward.last_seconds = ft->inverse.last_seconds = 0;
    ft_comm_barrier();
    ft_comm_stats_reset();
    double begin = ft_comm_now();

    ft_transform_run(&ft->forward);
    acc.first = take_counts(&ft->forward, &acc.counts_right);
    for (int step = 1; step <= ft->cls->steps; step++) {
        evolve(ft, step);
        ft_transform_run(&ft->inverse);
        acc.step = take_counts(&ft->inverse, &acc.counts_right);
        check_step(ft, step, print, parts);
        /* Other ranks may overwrite this rank's field from here on; they wait for the barrier
         * before their next put. */
        ft_comm_barrier_start();
    }
    acc.total = ft_comm_now() - begin;
    ft_comm_barrier_end();
    acc.start = ft_comm_stats()->start;
    acc.completion = ft_comm_stats()->completion;
    acc.barrier = ft_comm_stats()->barrier;
    acc.last = ft->forward.last_seconds + ft->inverse.last_seconds;
    return acc;
}

/* ---- the report, on rank 0 ---------------------------------------------------------- */

struct summary {
    double total; /* the slowest rank's */
    double mean_start, mean_completion, mean_barrier, mean_last, mean_alone;
    double max_start, max_completion, max_barrier, max_last;
    struct account low, high; /* counts only */
    bool counts_right;
};

static void merge_counts(struct ft_counts *low, struct ft_counts *high,
                         const struct ft_counts *counts)
{
    if (counts->messages < low->messages)
        low->messages = counts->messages;
    if (counts->messages > high->messages)
        high->messages = counts->messages;
    if (counts->smallest < low->smallest)
        low->smallest = counts->smallest;
    if (counts->largest > high->largest)
        high->largest = counts->largest;
}

static struct summary summarise(const struct account *accounts, int ranks)
{
    struct summary sum = { .low = accounts[0], .high = accounts[0], .counts_right = true };

    for (int r = 0; r < ranks; r++) {
        const struct account *acc = &accounts[r];

        sum.total = fmax(sum.total, acc->total);
        sum.mean_start += acc->start / ranks;
        sum.mean_completion += acc->completion / ranks;
        sum.mean_barrier += acc->barrier / ranks;
        sum.mean_last += acc->last / ranks;
        sum.mean_alone += acc->alone / ranks;
        sum.max_start = fmax(sum.max_start, acc->start);
        sum.max_completion = fmax(sum.max_completion, acc->completion);
        sum.max_barrier = fmax(sum.max_barrier, acc->barrier);
        sum.max_last = fmax(sum.max_last, acc->last);
        merge_counts(&sum.low.first, &sum.high.first, &acc->first);
        merge_counts(&sum.low.step, &sum.high.step, &acc->step);
        sum.counts_right = sum.counts_right && acc->counts_right != 0;
    }
    return sum;
}

static void print_counts(const char *what, const struct ft_counts *low,
                         const struct ft_counts *high)
{
    printf("%s %" PRIu64, what, low->messages);
    if (high->messages != low->messages)
        printf("..%" PRIu64, high->messages);
    printf(" message%s of %" PRIu64, high->messages == 1 ? "" : "s", low->smallest);
    if (high->largest != low->smallest)
        printf("..%" PRIu64, high->largest);
    printf(" bytes a rank\n");
}

/* Compares the messages of one inverse transpose with the published table. */
static bool published_counts_right(const struct ft *ft, const struct summary *sum)
{
    struct ft_counts must;

    if (!ft_problem_counts(ft->cls, ft->opt.method, ft->ranks, &must))
        return true;
    return sum->low.step.messages == must.messages && sum->high.step.messages == must.messages
           && (ft->opt.pad != 0
               || (sum->low.step.smallest == must.smallest
                   && sum->high.step.largest == must.largest));
}

/* Returns the seconds in start and completion calls per transpose. */
static double seconds_in_calls(const struct ft *ft, const struct summary *sum)
{
    return (sum->mean_start + sum->mean_completion) / (ft->cls->steps + 1);
}

/* Returns the part of a transfer that computation has hidden, from 0 to 1. */
static double hidden_part(const struct ft *ft, const struct summary *sum)
{
    double hidden = 1 - seconds_in_calls(ft, sum) / sum->mean_alone;

    return fmin(1, fmax(0, hidden));
}

static void print_overlap(const struct ft *ft, const struct summary *sum, double *hidden)
{
    double model = ft->opt.method == FT_EXCHANGE
                       ? 0
                       : 1 - 2 / (double)ft_transform_counts(&ft->inverse).messages;

    printf("overlap  %.2f of the transfer hidden", hidden_part(ft, sum));
    if (ft->opt.runs > 1)
        printf(", %.2f median", median(hidden, ft->opt.runs));
    printf(": %.3f ms of a transpose in calls, %.3f ms alone; at best %.4f\n",
           1e3 * seconds_in_calls(ft, sum), 1e3 * sum->mean_alone, fmax(0, model));
}

static void print_share(const char *what, double mean, double max, double total)
{
    printf("  %-26s %10.4f s mean %10.4f s max %6.1f %%\n", what, mean, max, 100 * mean / total);
}

static void print_report(const struct ft *ft, const struct summary *sum, double *totals,
                         double *hidden)
{
    double points = (double)ft_class_points(ft->cls);
    double flops = (ft->cls->steps + 1) * 5 * points * log2(points);
    double best = sum->total;
    double other =
        best - sum->mean_start - sum->mean_completion - sum->mean_barrier - sum->mean_last;

    print_counts("first transpose  ", &sum->low.first, &sum->high.first);
    print_counts("other transposes ", &sum->low.step, &sum->high.step);
    printf("time     %.4f s", best);
    if (ft->opt.runs > 1)
        printf(" best, %.4f s median of %d runs", median(totals, ft->opt.runs), ft->opt.runs);
    printf(", %.2f GFlop/s\n", 1e-9 * flops / best);
    print_share("communication: start", sum->mean_start, sum->max_start, best);
    print_share("communication: completion", sum->mean_completion, sum->max_completion, best);
    print_share("waiting in barriers", sum->mean_barrier, sum->max_barrier, best);
    print_share("last transforms", sum->mean_last, sum->max_last, best);
    printf("  %-26s %10.4f s mean %25.1f %%\n", "other computing", other, 100 * other / best);
    print_overlap(ft, sum, hidden);
}

static bool judge_counts(const struct ft *ft, const struct summary *sum)
{
    bool right = sum->counts_right && published_counts_right(ft, sum);

    if (ft->opt.counts || !right)
        printf("counts   %s\n", right ? "as the method must send" : "WRONG");
    return right || !ft->opt.counts;
}

/* Performs all runs. Returns true on rank 0 if all results were right. */
static bool run_all(struct ft *ft)
{
    struct account *accounts = calloc((size_t)ft->ranks, sizeof(*accounts));
    ft_value *parts = calloc((size_t)ft->ranks, sizeof(*parts));
    double totals[MAX_RUNS], hidden[MAX_RUNS];
    struct summary best = { .total = INFINITY };
    bool counts_right = true;

    if (accounts == NULL || parts == NULL)
        give_up(ft, "no memory for a table of ranks");
    for (int run = 0; run < ft->opt.runs; run++) {
        /* Measured next to each run, because the speed of a shared machine changes within
         * minutes. */
        double alone = measure_alone(ft);
        struct account own = run_once(ft, run == 0, parts);

        own.alone = alone;
        ft_comm_gather(&own, sizeof(own), accounts);
        ft_comm_barrier();
        if (ft->rank != 0)
            continue;

        struct summary sum = summarise(accounts, ft->ranks);

        totals[run] = sum.total;
        hidden[run] = hidden_part(ft, &sum);
        counts_right = counts_right && sum.counts_right;
        if (sum.total < best.total)
            best = sum;
    }
    if (ft->rank == 0) {
        best.counts_right = counts_right;
        print_report(ft, &best, totals, hidden);
        counts_right = judge_counts(ft, &best);
    }
    free(accounts);
    free(parts);
    return counts_right && ft->failures == 0;
}

int main(int argc, char **argv)
{
    struct ft ft = { .opt = { .method = FT_PENCILS, .runs = 1 } };

    ft_comm_init(&argc, &argv);
    ft.rank = ft_comm_rank();
    ft.ranks = ft_comm_ranks();

    const char *wrong = parse_options(argc, argv, &ft.opt);

    if (asks_help(argc, argv) || wrong != NULL) {
        bool help = asks_help(argc, argv);

        if (ft.rank == 0) {
            if (!help)
                fprintf(stderr, "ft: cannot make sense of %s\n", wrong);
            usage(help ? stdout : stderr);
        }
        ft_comm_exit(help ? 0 : 1);
    }
    ft.cls = ft.opt.cls;
    set_up(&ft);
    if (ft.rank == 0)
        printf("ft class %c: %d x %d x %d, %d steps, %s, %d rank%s, %.1f MiB of segment a rank\n",
               ft.cls->name, ft.cls->nx, ft.cls->ny, ft.cls->nz, ft.cls->steps,
               ft_method_name(ft.opt.method), ft.ranks, ft.ranks == 1 ? "" : "s",
               (double)ft.segment / (1 << 20));

    bool right = run_all(&ft);
    int code = ft_comm_agree(right ? 0 : 1);

    if (ft.rank == 0)
        printf("class %c, %s, %d rank%s: %s, largest relative error %.1e\n", ft.cls->name,
               ft_method_name(ft.opt.method), ft.ranks, ft.ranks == 1 ? "" : "s",
               code == 0 ? "verified" : "NOT VERIFIED", ft.worst);
    ft_transform_destroy(&ft.forward);
    ft_transform_destroy(&ft.inverse);
    free(ft.factor_x);
    free(ft.factor_y);
    free(ft.factor_z);
    ft_comm_exit(code);
}
