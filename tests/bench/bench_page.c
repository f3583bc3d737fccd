/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_page.c - a run of aq-bench as a page in Markdown: what is over its budget, the plots, a
 * table for each group of rows, and the other libraries beside them.
 * Owns      the groups and their texts
 * Threads   one
 * Uses      bench.h
 */
#include "bench.h"

#include <stdlib.h>
#include <time.h>

static const char aq_ours[] = "aqueduct";

struct aq_group {
    const char *title;
    const char *names; /* how its rows begin; the first group that fits has the row */
    const char *text;  /* "": none */
};

static const struct aq_group aq_groups[] = {
    { "Messages to oneself", "self_",
      "A request to the rank itself. The limit is a call through a pointer with the same argument, "
      "after a copy of 64 bytes if there is a payload. The budget is 15 ns more (Short) and 20 ns "
      "more (with a payload), here as a ratio." },
    { "Active messages", "am_",
      "Round trips answer with the same kind and size. Floods are per message, until the last one "
      "has been handled. On one host `am_medium_read` also reads each byte of the payload on both "
      "sides. `am_rate`: everybody sends to everybody; with more ranks than cores the ranks take "
      "turns." },
    { "Chains of 8 bytes", "put8_latency,get8_latency,getval8_latency",
      "What one operation moved says where the next one goes." },
    { "Put and get of 8 bytes, as clients write them", "put8,get8,putval8,getval8",
      "Team, rank and address come from globals that are loaded anew for each operation, and the "
      "peers change at random. The limit loads as much: the base from a table of pointers, the "
      "offset from an array, then a plain store or load. `put8_store_rate` stands beside a store "
      "whose address alone is loaded." },
    { "Put and get", "put,get",
      "The size is passed at run time to both sides. NB and NBI rows wait after every 16 "
      "operations. On one host rows with `cold` walk through much memory at both ends, all others "
      "use the same memory again. Over a network those with `stream` keep 4 MiB under way, but at "
      "least 2 operations and at most 64. Over udp `put_loss_1pct` is such a stream while 1 % of "
      "all datagrams are lost, beside one without loss." },
    { "Strided transfers", "strided",
      "`strided_put` and `strided_get`: a section of n by n doubles of a matrix with rows twice as "
      "long. On one host: in `gaps` its doubles lie in every second column; `by_runs`: a put for "
      "each run instead; `by_bytes`: as many bytes in one run; `strided_1d` to `strided_4d`: "
      "sections of one to four dimensions in runs of one size, a run's length apart; `packed`: the "
      "destination has no gaps. Over a network these rows have no limit." },
    { "Atomics", "fadd,fcas,add_", "On 64-bit words." },
    { "Barriers and collectives", "barrier,broadcast,reduce,allreduce", "Among all ranks." },
    { "Progress and overlap", "progress,overlap",
      "On one host `progress` compares a transfer from or to a rank that computes without ever "
      "entering the library with the same when that rank waits in the library. `overlap` puts as "
      "much computation between start and end of a transfer as the transfer takes. On one host it "
      "stands beside that computation alone: 1 is entirely hidden, 2 not at all." },
    { "Waiting on a loaded machine", "load",
      "Ranks that are bound to no core, and for each core the number of processes that the row's "
      "name tells, which do nothing but count. `short` waits in GASNET_BLOCKUNTIL, `polled` in a "
      "loop over gasnet_AMPoll. Each operation stands beside the same by two programs of a few "
      "lines, by shared memory on one host, else by a UDP socket each: one spins, the other calls "
      "sched_yield() whenever it has found nothing. `p99`: the time that 99 of 100 operations do "
      "not exceed. The ratio is that of the two figures, which are over all slices; the quartiles "
      "are those of the slices' ratios, so that the ratio may lie outside them. On one host also: "
      "barriers of many ranks beside an all-reduce of 8 bytes; `runs`: of 50 short runs the "
      "slowest one's median beside the median run's; `rate`: the time of a message, everybody to "
      "everybody, of 64 ranks beside 2." },
    { "Start-up and memory", "startup,memory",
      "`startup_init`: from the first rank that enters gex_Client_Init to the last one that leaves "
      "the first barrier; `startup_launch`: from the start of gasnetrun, which over mpi starts "
      "MPI's launcher. The limit forks and executes as many processes of the same program and "
      "waits for them. Not over mpi: `memory_per_peer` is what one rank has more for each peer "
      "that it never speaks to, `memory_active_peer` for each that it exchanges messages with." },
    { "Others", "", "" },
};
enum { AQ_GROUPS = sizeof(aq_groups) / sizeof(aq_groups[0]) };

static const struct aq_group *aq_group_of(const struct aq_result *r)
{
    for (const struct aq_group *g = aq_groups;; g++) {
        for (const char *at = g->names;; at++) {
            const size_t length = strcspn(at, ",");

            if (strncmp(r->name, at, length) == 0)
                return g;
            at += length;
            if (*at == '\0')
                break;
        }
    }
}

static bool aq_is_ours(const struct aq_result *r)
{
    return strcmp(r->who, aq_ours) == 0;
}

static bool aq_only_load(const struct aq_out *out)
{
    for (size_t i = 0; i < out->count; i++)
        if (aq_is_ours(&out->results[i]) && strncmp(out->results[i].name, "load", 4) != 0)
            return false;
    return out->count > 0;
}

/* --- the head of the page --- */

static void aq_page_command(const struct aq_out *out, FILE *f)
{
    const struct aq_options *o = out->options;
    const char *modules = getenv("AQ_MODULE_DIR");

    if (o->raw && modules != NULL && *modules != '\0')
        fprintf(f, "AQ_MODULE_DIR=%s ", modules);
    fprintf(f, "aq-bench");
    if (o->ranks != 2)
        fprintf(f, " -n %u", o->ranks);
    if (strcmp(aq_out_conduit(out), "smp") != 0)
        fprintf(f, " -c %s", o->conduit);
    if (o->quick)
        fprintf(f, " --quick");
    if (o->table != NULL)
        fprintf(f, " --table %s", o->table);
    if (o->only != NULL)
        fprintf(f, " --only %s", o->only);
    if (o->peers != (!o->quick && o->table == NULL)) /* what no option means */
        fprintf(f, o->peers ? " --peers" : " --no-peers");
}

static void aq_page_head(const struct aq_out *out, FILE *f)
{
    const char *conduit = aq_out_conduit(out);
    const time_t now = time(NULL);
    char machine[320], build[512], day[32];
    struct tm utc;

    gmtime_r(&now, &utc);
    strftime(day, sizeof(day), "%Y-%m-%d, %H:%M", &utc);
    aq_out_machine(machine, sizeof(machine));
    fprintf(f, "<!-- SPDX-License-Identifier: BSD-3-Clause -->\n# ");
    if (aq_only_load(out))
        fprintf(f, "What waiting costs on a shared machine, over %s", conduit);
    else if (strcmp(conduit, "smp") == 0)
        fprintf(f, "What communication costs on one host");
    else
        fprintf(f, "What communication costs over %s", conduit);
    if (out->limits_by[0] != '\0')
        fprintf(f, ", by %s", out->limits_by);
    fprintf(f, "\n\n<!-- Written by `");
    aq_page_command(out, f);
    fprintf(f, " --markdown FILE%s`. -->\n\n", out->options->plot != NULL ? " --plot DIR" : "");
    fprintf(f, "%s UTC. %s; compiler %s; load average at the start %.2f. ", day, machine,
            __VERSION__, out->load);
    if (!aq_only_load(out))
        fprintf(f, "%u ranks%s, each bound to a core if there are enough. ", out->options->ranks,
                out->options->remote ? " that share no memory" : "");
    aq_out_build(build, sizeof(build));
    fprintf(f, "Library: `%s`.\n", build);
}

/* --- tables --- */

static void aq_page_row(const struct aq_result *r, FILE *f)
{
    struct aq_cells c;

    aq_out_cells(r, &c);
    if (r->limit.median <= 0)
        c.limit[0] = '\0';
    fprintf(f, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", r->name, c.size, c.time, c.rate,
            r->limit_name, c.limit, c.ratio, c.quartiles, c.budget);
}

/* The rows of ours that want() has chosen, under a title; nothing if there are none. */
static void aq_page_table(const struct aq_out *out, const char *title, const char *text,
                          bool (*want)(const struct aq_result *r, const void *arg), const void *arg,
                          FILE *f)
{
    bool first = true;

    for (size_t i = 0; i < out->count; i++) {
        const struct aq_result *r = &out->results[i];

        if (!aq_is_ours(r) || !want(r, arg))
            continue;
        if (first) {
            fprintf(f, "\n## %s\n\n", title);
            if (*text != '\0')
                fprintf(f, "%s\n\n", text);
            fprintf(f, "| row | size | time | GB/s | limit | its time | ratio | quartiles | budget "
                       "|\n|---|--:|--:|--:|---|--:|--:|--:|--:|\n");
        }
        first = false;
        aq_page_row(r, f);
    }
}

static bool aq_is_over(const struct aq_result *r, const void *unused)
{
    (void)unused;
    return aq_stat_verdict(r) == AQ_VERDICT_OVER;
}

static bool aq_is_in_group(const struct aq_result *r, const void *group)
{
    return aq_group_of(r) == group;
}

static void aq_page_budgets(const struct aq_out *out, FILE *f)
{
    unsigned count[4] = { 0, 0, 0, 0 };

    for (size_t i = 0; i < out->count; i++)
        if (aq_is_ours(&out->results[i]))
            count[aq_stat_verdict(&out->results[i])]++;
    fprintf(f,
            "\nRows within their budgets: %u; over: %u; the machine was too unquiet to say: %u.\n",
            count[AQ_VERDICT_OK], count[AQ_VERDICT_OVER], count[AQ_VERDICT_NOISE]);
    aq_page_table(out, "Over budget", "", aq_is_over, NULL, f);
}

static void aq_page_plots(const struct aq_out *out, FILE *f)
{
    const char *file, *title;
    bool first = true;

    for (int i = 0; (i = aq_plot_find(out, i, &file, &title)) >= 0; i++) {
        if (first)
            fprintf(f, "\n## Plots\n");
        first = false;
        fprintf(f, "\n![%s](%s)\n", title, file);
    }
}

/* --- other libraries --- */

static const struct {
    const char *who, *title;
} aq_others[] = { { "openmpi", "Open MPI" },
                  { "mpich", "MPICH" },
                  { "oshmem", "OpenSHMEM" },
                  { "libfabric", "libfabric, tcp" } };
enum { AQ_OTHERS = sizeof(aq_others) / sizeof(aq_others[0]) };

/* Is it the same operation? A ping-pong of messages is what a round trip is elsewhere: of Medium
 * up to 32 KiB, of Long above. */
static bool aq_is_same(const struct aq_result *ours, const struct aq_result *other)
{
    const char *round_trip = other->size == 0          ? "am_short"
                             : other->size <= 32 << 10 ? "am_medium"
                                                       : "am_long";

    if (ours->size != other->size)
        return false;
    return strcmp(ours->name, other->name) == 0
           || (strcmp(other->name, "pingpong") == 0 && strcmp(ours->name, round_trip) == 0);
}

static const struct aq_result *aq_row_by(const struct aq_out *out, const char *who,
                                         const struct aq_result *ours)
{
    for (size_t i = 0; i < out->count; i++)
        if (strcmp(out->results[i].who, who) == 0 && aq_is_same(ours, &out->results[i]))
            return &out->results[i];
    return NULL;
}

static bool aq_has_row_by_others(const struct aq_out *out, const struct aq_result *ours)
{
    for (size_t k = 0; k < AQ_OTHERS; k++)
        if (aq_row_by(out, aq_others[k].who, ours) != NULL)
            return true;
    return false;
}

static bool aq_has_rows_by(const struct aq_out *out, const char *who)
{
    for (size_t i = 0; i < out->count; i++)
        if (aq_is_ours(&out->results[i]) && aq_row_by(out, who, &out->results[i]) != NULL)
            return true;
    return false;
}

static const char *aq_others_text(enum aq_beside beside)
{
    switch (beside) {
    case AQ_BESIDE_SHM:
        return "In brackets: the ratio to the same limit, measured in that library's own "
               "processes.";
    case AQ_BESIDE_UDP:
        return "Open MPI is over TCP. In brackets: our ratio to the limit above.";
    default:
        return "In brackets: our ratio to the limit above. Puts, gets and atomics of the others "
               "use memory that the library has allocated, which ranks of one host map: no network "
               "is involved.";
    }
}

static void aq_page_others_head(const struct aq_out *out, FILE *f)
{
    fprintf(f,
            "\n## Beside other libraries\n\nTheir programs run one after the other on the same "
            "cores. Round trips are a message there and one back, puts and gets end with a flush, "
            "floods and streams are sends to posted receives. %s\n\n| row | size | Aqueduct |",
            aq_others_text(aq_beside(out->options)));
    for (size_t k = 0; k < AQ_OTHERS; k++)
        if (aq_has_rows_by(out, aq_others[k].who))
            fprintf(f, " %s |", aq_others[k].title);
    fprintf(f, "\n|---|--:|--:|");
    for (size_t k = 0; k < AQ_OTHERS; k++)
        if (aq_has_rows_by(out, aq_others[k].who))
            fprintf(f, "--:|");
    fprintf(f, "\n");
}

/* Time, and the ratio to its limit if that is the same limit as ours. */
static void aq_page_other(const struct aq_result *r, bool same_limit, FILE *f)
{
    struct aq_cells c;

    if (r == NULL) {
        fprintf(f, " |");
        return;
    }
    aq_out_cells(r, &c);
    if (same_limit && c.ratio[0] != '\0')
        fprintf(f, " %s (%s) |", c.time, c.ratio);
    else
        fprintf(f, " %s |", c.time);
}

static void aq_page_others(const struct aq_out *out, FILE *f)
{
    bool first = true;

    for (size_t i = 0; i < out->count; i++) {
        const struct aq_result *ours = &out->results[i];
        struct aq_cells c;

        if (!aq_is_ours(ours) || !aq_has_row_by_others(out, ours))
            continue;
        if (first)
            aq_page_others_head(out, f);
        first = false;
        aq_out_cells(ours, &c);
        fprintf(f, "| %s | %s |", ours->name, c.size);
        aq_page_other(ours, true, f);
        for (size_t k = 0; k < AQ_OTHERS; k++)
            if (aq_has_rows_by(out, aq_others[k].who))
                aq_page_other(aq_row_by(out, aq_others[k].who, ours), !out->options->remote, f);
        fprintf(f, "\n");
    }
}

int aq_page_write(const struct aq_out *out, bool drawn, const char *path)
{
    FILE *f = fopen(path, "w");
    bool failed;

    if (f != NULL) {
        aq_page_head(out, f);
        aq_page_budgets(out, f);
        if (drawn)
            aq_page_plots(out, f);
        for (size_t g = 0; g < AQ_GROUPS; g++)
            aq_page_table(out, aq_groups[g].title, aq_groups[g].text, aq_is_in_group, &aq_groups[g],
                          f);
        aq_page_others(out, f);
    }
    failed = f == NULL || ferror(f);
    if (f != NULL && fclose(f) != 0)
        failed = true;
    if (failed)
        fprintf(stderr, "aq-bench: cannot write %s\n", path);
    return failed ? -1 : 0;
}
