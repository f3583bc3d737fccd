/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_main.c - aq-bench: options, and which role this process plays.
 * Owns      the options
 * Threads   one
 * Uses      bench.h, bench_against.h
 *
 * Started plainly, it launches itself under gasnetrun and prints what comes back. Started by
 * gasnetrun, mpirun or srun, every process is a rank: rank 0 measures and prints, or reports to
 * the process that launched the job.
 */
#include "bench_against.h"

#include <getopt.h>
#include <stdlib.h>

enum {
    AQ_OPT_QUICK = 256,
    AQ_OPT_JSON,
    AQ_OPT_PLOT,
    AQ_OPT_ONLY,
    AQ_OPT_LIST,
    AQ_OPT_TABLE,
    AQ_OPT_PEERS,
    AQ_OPT_NO_PEERS,
    AQ_OPT_TASK,
    AQ_OPT_REPORT,
    AQ_OPT_STRICT,
    AQ_OPT_AGAINST,
    AQ_OPT_CONDUITS,
    AQ_OPT_ROUNDS,
    AQ_OPT_CSV,
    AQ_OPT_LABEL,
    AQ_OPT_MODE,
    AQ_OPT_LIMIT,
    AQ_OPT_MARKDOWN
};

static const char aq_usage_text[] =
    "usage: aq-bench [options]\n"
    "       aq-bench armci [options]: libarmci beside ARMCI-MPI and MPI; aq-bench armci --help\n"
    "  -n N              ranks of the main job (default 2, at least 2)\n"
    "  -c, --conduit C   conduit to measure (default smp); with a network's, ranks of one host "
    "share no\n"
    "                    memory unless GASNET_SUPERNODE_MAXSIZE is set\n"
    "  --quick           few rows, short slices: some seconds\n"
    "  --strict          exit with 1 if a row is over its budget\n"
    "  --table T         latency, bandwidth, budget or all (default)\n"
    "  --only A,B        rows whose name/size contains A or B, for example am_medium/4096,put8\n"
    "  --list            print the rows and stop\n"
    "  --json FILE       also write all figures as JSON\n"
    "  --markdown FILE   also write all figures as a page of tables, with the plots of --plot\n"
    "  --plot DIR        also draw SVG plots there, with gnuplot\n"
    "  --peers           also measure Open MPI, MPICH and OpenSHMEM where installed (default "
    "unless --quick\n"
    "  --no-peers        or --table)\n"
    "  --against PREFIX  compare with another implementation of the interface, installed there; "
    "then\n"
    "                    --only, --quick, --strict, --plot, -n and these:\n"
    "    --conduits A,B  conduits to compare (default smp,udp,mpi, those that both have)\n"
    "    --mode M        seq (default), par or parsync\n"
    "    --rounds N      jobs of each, in turn (default 5)\n"
    "    --limit S       end a job after S seconds (default 120)\n"
    "    --label TEXT    how the output calls the other one\n"
    "    --csv FILE      also write all figures there\n"
    "A row with a budget ends with ratio, budget and ok, over, or noise (the machine was too "
    "unquiet to say).\n";

static const struct option aq_long_options[] = {
    { "conduit", required_argument, NULL, 'c' },
    { "quick", no_argument, NULL, AQ_OPT_QUICK },
    { "strict", no_argument, NULL, AQ_OPT_STRICT },
    { "json", required_argument, NULL, AQ_OPT_JSON },
    { "markdown", required_argument, NULL, AQ_OPT_MARKDOWN },
    { "plot", required_argument, NULL, AQ_OPT_PLOT },
    { "only", required_argument, NULL, AQ_OPT_ONLY },
    { "list", no_argument, NULL, AQ_OPT_LIST },
    { "table", required_argument, NULL, AQ_OPT_TABLE },
    { "peers", no_argument, NULL, AQ_OPT_PEERS },
    { "no-peers", no_argument, NULL, AQ_OPT_NO_PEERS },
    { "task", required_argument, NULL, AQ_OPT_TASK },
    { "report", required_argument, NULL, AQ_OPT_REPORT },
    { "against", required_argument, NULL, AQ_OPT_AGAINST },
    { "conduits", required_argument, NULL, AQ_OPT_CONDUITS },
    { "rounds", required_argument, NULL, AQ_OPT_ROUNDS },
    { "csv", required_argument, NULL, AQ_OPT_CSV },
    { "label", required_argument, NULL, AQ_OPT_LABEL },
    { "mode", required_argument, NULL, AQ_OPT_MODE },
    { "limit", required_argument, NULL, AQ_OPT_LIMIT },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static _Noreturn void aq_usage(int code)
{
    fputs(aq_usage_text, code == 0 ? stdout : stderr);
    exit(code);
}

static unsigned aq_parse_ranks(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*text == '\0' || *end != '\0' || n < 2 || n > 100000) {
        fprintf(stderr, "aq-bench: -n %s: a number of ranks, at least 2, for example -n 2\n", text);
        exit(2);
    }
    return (unsigned)n;
}

/* A number from 1 to most. */
static unsigned aq_parse_number(const char *option, const char *text, unsigned long upper)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*text == '\0' || *end != '\0' || n < 1 || n > upper) {
        fprintf(stderr, "aq-bench: --%s %s: a number from 1 to %lu\n", option, text, upper);
        exit(2);
    }
    return (unsigned)n;
}

static void aq_check_mode(const char *mode)
{
    if (strcmp(mode, "seq") == 0 || strcmp(mode, "par") == 0 || strcmp(mode, "parsync") == 0)
        return;
    fprintf(stderr, "aq-bench: --mode %s: one of seq, par, parsync\n", mode);
    exit(2);
}

static void aq_check_table(const char *table)
{
    if (strcmp(table, "latency") == 0 || strcmp(table, "bandwidth") == 0
        || strcmp(table, "budget") == 0 || strcmp(table, "all") == 0)
        return;
    fprintf(stderr, "aq-bench: --table %s: one of latency, bandwidth, budget, all\n", table);
    exit(2);
}

/* A network is measured between ranks that share no memory, wherever they are. */
static void aq_choose_conduit(struct aq_options *o)
{
    const char *max;

    if (o->conduit == NULL)
        o->conduit = getenv("GASNET_CONDUIT");
    if (o->conduit == NULL || *o->conduit == '\0' || strcmp(o->conduit, "smp") == 0)
        return;
    if (o->task == NULL)
        setenv("GASNET_SUPERNODE_MAXSIZE", "1", 0);
    max = getenv("GASNET_SUPERNODE_MAXSIZE");
    o->remote = max != NULL && strcmp(max, "1") == 0;
    o->verbs = strcmp(o->conduit, "ibv") == 0;
    o->raw = o->verbs || strcmp(o->conduit, "mpi") == 0;
}

/* The options of --against; false if c is none of them. */
static bool aq_parse_against(struct aq_options *o, int c)
{
    switch (c) {
    case AQ_OPT_AGAINST:
        o->against = optarg;
        return true;
    case AQ_OPT_CONDUITS:
        o->conduits = optarg;
        return true;
    case AQ_OPT_ROUNDS:
        o->rounds = aq_parse_number("rounds", optarg, AQ_AGAINST_ROUNDS);
        return true;
    case AQ_OPT_LIMIT:
        o->limit_s = aq_parse_number("limit", optarg, 100000);
        return true;
    case AQ_OPT_CSV:
        o->csv = optarg;
        return true;
    case AQ_OPT_LABEL:
        o->label = optarg;
        return true;
    case AQ_OPT_MODE:
        aq_check_mode(optarg);
        o->mode = optarg;
        return true;
    default:
        return false;
    }
}

static void aq_parse(struct aq_options *o, int argc, char **argv)
{
    int peers = -1, c;

    *o = (struct aq_options){ .ranks = 2, .rounds = 5, .limit_s = 120, .mode = "seq" };
    while ((c = getopt_long(argc, argv, "n:c:h", aq_long_options, NULL)) != -1) {
        switch (c) {
        case 'n':
            o->ranks = aq_parse_ranks(optarg);
            break;
        case 'c':
            o->conduit = optarg;
            break;
        case AQ_OPT_QUICK:
            o->quick = true;
            break;
        case AQ_OPT_JSON:
            o->json = optarg;
            break;
        case AQ_OPT_MARKDOWN:
            o->markdown = optarg;
            break;
        case AQ_OPT_PLOT:
            o->plot = optarg;
            break;
        case AQ_OPT_ONLY:
            o->only = optarg;
            break;
        case AQ_OPT_STRICT:
            o->strict = true;
            break;
        case AQ_OPT_LIST:
            o->list = true;
            break;
        case AQ_OPT_TABLE:
            aq_check_table(optarg);
            o->table = optarg;
            break;
        case AQ_OPT_PEERS:
            peers = 1;
            break;
        case AQ_OPT_NO_PEERS:
            peers = 0;
            break;
        case AQ_OPT_TASK:
            o->task = optarg;
            break;
        case AQ_OPT_REPORT:
            o->report = optarg;
            break;
        case 'h':
            aq_usage(0);
        default:
            if (!aq_parse_against(o, c))
                aq_usage(2);
        }
    }
    if (optind < argc)
        aq_usage(2);
    o->peers = peers >= 0 ? peers : !o->quick && o->table == NULL;
    aq_choose_conduit(o);
}

static void aq_list(const struct aq_options *options)
{
    size_t count;
    const struct aq_row *rows = aq_rows(&count);
    char size[16];

    for (size_t i = 0; i < count; i++) {
        const struct aq_row_kind *kind = rows[i].kind;
        const char *limit = aq_row_limit_name(options, &rows[i]);
        double budget = aq_row_budget(options, &rows[i], options->remote);

        if (!aq_row_wanted(options, &rows[i], options->remote))
            continue;
        printf("%-18s %8s  %s", kind->name, aq_out_size(rows[i].size, size),
               limit != NULL ? limit : "-");
        if (budget > 0)
            printf("  %.2f", budget);
        else if (budget < 0)
            printf("  +%.0f ns", -budget);
        printf("\n");
    }
    if (options->only == NULL)
        printf("and, in jobs of their own: startup_init startup_launch am_rate%s%s\n",
               options->raw ? "" : " memory_per_peer memory_active_peer memory_per_rank",
               options->remote && !options->raw ? " put_loss_1pct" : "");
    if (options->only == NULL)
        aq_load_list(options);
}

/* Has some launcher made this process one of several? */
static bool aq_launched(void)
{
    static const char *const names[] = { "GASNET_PSHM_NODES", "AQ_SPAWN_FORK", "PMIX_RANK",
                                         "PMI_RANK", "SLURM_PROCID" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (getenv(names[i]) != NULL)
            return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    struct aq_options options;
    struct aq_job *job = aq_job_get();
    double main_ns = aq_bench_now(), init_ns;

    if (argc == 3 && strcmp(argv[1], "--task") == 0 && strcmp(argv[2], "exit") == 0)
        return 0; /* the limit of the start-up rows */
    if (aq_script_wanted(argc, argv))
        return aq_script_run(argv);
    aq_parse(&options, argc, argv);
    if (options.list) {
        aq_list(&options);
        return 0;
    }
    if (options.against != NULL)
        return aq_against_run(&options);
    if (options.task == NULL) {
        if (!aq_launched())
            return aq_front_run(&options);
        options.task = "rows";
    }
    aq_job_start(job, &options, &argc, &argv);
    init_ns = aq_bench_now();
    options.ranks = job->size;
    if (strcmp(options.task, "rows") == 0 || strcmp(options.task, "stream") == 0)
        aq_job_rows(job);
    else if (strncmp(options.task, "load", 4) == 0)
        aq_job_load(job);
    else
        aq_job_probe(job, main_ns, init_ns);
    gex_Event_Wait(gex_Coll_BarrierNB(job->tm, 0));
    aq_raw_stop(job);
    gasnet_exit(0);
    return 0;
}
