/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_against_out.c - aq-bench --against: the table, the cells above 1.0, the CSV file, and the
 * page with its plot.
 * Owns      nothing
 * Threads   one
 * Uses      bench_against.h, gnuplot for the plot
 *
 * The table is Markdown, so that the page and the terminal show the same.
 */
#include "bench_against.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>

static void aq_time(double ns, char *buf, size_t size)
{
    if (ns < 100)
        snprintf(buf, size, "%.2f ns", ns);
    else if (ns < 1e4)
        snprintf(buf, size, "%.0f ns", ns);
    else
        snprintf(buf, size, "%.1f us", ns / 1e3);
}

struct aq_verdict_cell aq_against_cell(const struct aq_against *against, size_t row, size_t conduit)
{
    const struct aq_cell *cell = &against->rows[row].cells[conduit];
    double ours[AQ_AGAINST_ROUNDS], peers[AQ_AGAINST_ROUNDS], ratio[AQ_AGAINST_ROUNDS];
    struct aq_verdict_cell v = { .rounds = 0 };

    for (unsigned i = 0; i < against->rounds; i++) {
        const double a = cell->ns[AQ_OURS][i], b = cell->ns[AQ_PEERS][i];

        if (a <= 0 || b <= 0)
            continue;
        ours[v.rounds] = a;
        peers[v.rounds] = b;
        ratio[v.rounds++] = a / b;
    }
    if (v.rounds == 0)
        return v;
    v.ours = aq_stat_quart(ours, v.rounds).median;
    v.peers = aq_stat_quart(peers, v.rounds).median;
    v.ratio = aq_stat_quart(ratio, v.rounds);
    return v;
}

/* Above 1.0 as printed: what rounds to 1.00 is not. */
static bool aq_above(const struct aq_verdict_cell *v)
{
    return v->rounds > 0 && v->ratio.median >= 1.005;
}

static void aq_print_cell(const struct aq_verdict_cell *v, FILE *f)
{
    char ours[24], peers[24], ratio[24];

    if (v->rounds == 0) {
        fprintf(f, " %10s | %10s | %8s |", "", "", "");
        return;
    }
    aq_time(v->ours, ours, sizeof(ours));
    aq_time(v->peers, peers, sizeof(peers));
    snprintf(ratio, sizeof(ratio), aq_above(v) ? "**%.2f**" : "%.2f", v->ratio.median);
    fprintf(f, " %10s | %10s | %8s |", ours, peers, ratio);
}

static void aq_print_table(const struct aq_against *against, FILE *f)
{
    fprintf(f, "| %-37s |", "row");
    for (size_t c = 0; c < against->conduit_count; c++)
        fprintf(f, " %4s: ours | %10s | %8s |", against->conduits[c],
                against->trees[AQ_PEERS].label, "ratio");
    fprintf(f, "\n|---|");
    for (size_t c = 0; c < against->conduit_count; c++)
        fprintf(f, "--:|--:|--:|");
    fprintf(f, "\n");
    for (size_t r = 0; r < against->row_count; r++) {
        fprintf(f, "| %-37s |", against->rows[r].text);
        for (size_t c = 0; c < against->conduit_count; c++) {
            const struct aq_verdict_cell v = aq_against_cell(against, r, c);

            aq_print_cell(&v, f);
        }
        fprintf(f, "\n");
    }
}

static size_t aq_print_above(const struct aq_against *against, FILE *f)
{
    size_t cells = 0, above = 0;

    for (size_t c = 0; c < against->conduit_count; c++) {
        for (size_t r = 0; r < against->row_count; r++) {
            const struct aq_verdict_cell v = aq_against_cell(against, r, c);

            cells += v.rounds > 0;
            above += aq_above(&v);
        }
    }
    fprintf(f, "\n%zu of %zu cells %s above 1.00%s\n", above, cells, above == 1 ? "is" : "are",
            above > 0 ? " (quartiles over the rounds):\n" : ".");
    for (size_t c = 0; c < against->conduit_count; c++) {
        for (size_t r = 0; r < against->row_count; r++) {
            const struct aq_verdict_cell v = aq_against_cell(against, r, c);

            if (aq_above(&v))
                fprintf(f, "- %s %s: %.2f (%.2f .. %.2f)\n", against->conduits[c],
                        against->rows[r].name, v.ratio.median, v.ratio.q1, v.ratio.q3);
        }
    }
    return above;
}

size_t aq_against_print(const struct aq_against *against, FILE *f)
{
    aq_print_table(against, f);
    return aq_print_above(against, f);
}

/* --- files --- */

static FILE *aq_open(const char *dir, const char *name)
{
    char path[4400];
    FILE *f;

    snprintf(path, sizeof(path), "%s%s%s", dir, *dir != '\0' ? "/" : "", name);
    f = fopen(path, "w");
    if (f == NULL)
        fprintf(stderr, "aq-bench: cannot write %s: %s\n", path, strerror(errno));
    return f;
}

/* Closes what has been written: 0, or -1 with a message. */
static int aq_close(FILE *f, const char *name)
{
    const bool failed = ferror(f) != 0;

    if (fclose(f) == 0 && !failed)
        return 0;
    fprintf(stderr, "aq-bench: cannot write %s: %s\n", name, strerror(errno));
    return -1;
}

static int aq_write_csv(const struct aq_against *against, const char *path)
{
    FILE *f = aq_open("", path);

    if (f == NULL)
        return -1;
    fprintf(f, "conduit,row,text,ours_ns,theirs_ns,ratio,ratio_q1,ratio_q3,rounds\n");
    for (size_t c = 0; c < against->conduit_count; c++) {
        for (size_t r = 0; r < against->row_count; r++) {
            const struct aq_verdict_cell v = aq_against_cell(against, r, c);

            if (v.rounds > 0)
                fprintf(f, "%s,%s,\"%s\",%.3f,%.3f,%.4f,%.4f,%.4f,%u\n", against->conduits[c],
                        against->rows[r].name, against->rows[r].text, v.ours, v.peers,
                        v.ratio.median, v.ratio.q1, v.ratio.q3, v.rounds);
        }
    }
    return aq_close(f, path);
}

static int aq_write_page(const struct aq_against *against, const char *dir)
{
    const struct aq_options *options = against->options;
    const time_t now = time(NULL);
    char machine[512], day[32];
    FILE *f = aq_open(dir, "against.md");

    if (f == NULL)
        return -1;
    aq_out_machine(machine, sizeof(machine));
    strftime(day, sizeof(day), "%Y-%m-%d, %H:%M", localtime(&now));
    fprintf(f,
            "# Against %s\n\n<!-- This page and against.svg are written by "
            "`aq-bench --against PREFIX --plot DIR`. -->\n\n",
            against->trees[AQ_PEERS].label);
    fprintf(f, "**Machine.** %s\n\n**When.** %s\n\n", machine, day);
    fprintf(f,
            "One program (`bench_portable.c`), %s mode, compiled against both trees by their "
            "pkg-config files and started by each\none's launcher in turn: %u rounds, %u ranks. "
            "Times are medians; a ratio is the median of the rounds' ratios, ours to\nthe other "
            "one's, below 1 where ours is faster. Ranks of a network's conduit share no "
            "memory.\n\n",
            options->mode, against->rounds, options->ranks);
    aq_against_print(against, f);
    fprintf(f, "\n![Ratios of the table](against.svg)\n");
    return aq_close(f, "against.md");
}

static void aq_plot_script(const struct aq_against *against, const char *dir, FILE *f)
{
    fprintf(f,
            "set terminal svg size 1100,620 dynamic background 'white'\n"
            "set output '%s/against.svg'\n"
            "set title 'Time of Aqueduct to time of %s (below 1: Aqueduct is faster)' noenhanced\n"
            "set style data histogram\nset style histogram clustered gap 1\n"
            "set style fill solid 0.85 border\nset logscale y 2\nset ylabel 'ratio'\n"
            "set grid ytics\nset xtics rotate by -40 left noenhanced\nset bmargin 12\n"
            "set rmargin 14\nset key top right\nset datafile separator '\\t'\n"
            "set datafile missing '?'\n$data << END\n",
            dir, against->trees[AQ_PEERS].label);
    for (size_t r = 0; r < against->row_count; r++) {
        fprintf(f, "%s", against->rows[r].text);
        for (size_t c = 0; c < against->conduit_count; c++) {
            const struct aq_verdict_cell v = aq_against_cell(against, r, c);

            if (v.rounds > 0)
                fprintf(f, "\t%.4f", v.ratio.median);
            else
                fprintf(f, "\t?");
        }
        fprintf(f, "\n");
    }
    fprintf(f, "END\nplot 1 title '' lc 'black'");
    for (size_t c = 0; c < against->conduit_count; c++)
        fprintf(f, ", $data using %zu%s title '%s'", c + 2, c == 0 ? ":xtic(1)" : "",
                against->conduits[c]);
    fprintf(f, "\nunset output\n");
}

static int aq_write_plot(const struct aq_against *against, const char *dir)
{
    FILE *f;

    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "aq-bench: cannot make the folder %s: %s\n", dir, strerror(errno));
        return -1;
    }
    f = popen("gnuplot", "w");
    if (f == NULL)
        return -1;
    aq_plot_script(against, dir, f);
    if (pclose(f) != 0) {
        fprintf(stderr, "aq-bench: gnuplot failed; is gnuplot-nox installed?\n");
        return -1;
    }
    return aq_write_page(against, dir);
}

int aq_against_files(const struct aq_against *against)
{
    const struct aq_options *options = against->options;

    if (options->csv != NULL && aq_write_csv(against, options->csv) != 0)
        return -1;
    if (options->plot != NULL && aq_write_plot(against, options->plot) != 0)
        return -1;
    return 0;
}
