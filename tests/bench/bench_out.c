/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_out.c - what aq-bench says: the table, the progress line, the JSON file.
 * Owns      the results of a run
 * Threads   one
 * Uses      bench.h
 *
 * One line a row; a row with a budget ends with "ratio budget ok" (or over, or noise), one
 * without ends with its ratio or its time. On a terminal a line on standard error says what is
 * running and for how long still.
 */
#include "bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

static bool aq_out_counts_ranks(const char *name)
{
    return strncmp(name, "startup", 7) == 0 || strncmp(name, "memory", 6) == 0
           || strncmp(name, "load", 4) == 0 || strcmp(name, "am_rate") == 0;
}

/* Is the size that of a run, of which an operation has many: strided_1d? */
static bool aq_out_counts_runs(const char *name)
{
    return strncmp(name, "strided_", 8) == 0 && name[8] >= '1' && name[8] <= '9';
}

const char *aq_out_size(uint64_t size, char *buf)
{
    if (size >= 1u << 20 && size % (1u << 20) == 0)
        snprintf(buf, 16, "%u MiB", (unsigned)(size >> 20));
    else if (size >= 1024 && size % 1024 == 0)
        snprintf(buf, 16, "%u KiB", (unsigned)(size >> 10));
    else if (size > 0)
        snprintf(buf, 16, "%u B", (unsigned)size);
    else
        snprintf(buf, 16, "-");
    return buf;
}

static const char *aq_out_time(double ns, char *buf)
{
    if (ns <= 0)
        snprintf(buf, 16, "-");
    else if (ns < 100)
        snprintf(buf, 16, "%.2f ns", ns);
    else if (ns < 1e4)
        snprintf(buf, 16, "%.0f ns", ns);
    else if (ns < 1e7)
        snprintf(buf, 16, "%.1f us", ns / 1e3);
    else
        snprintf(buf, 16, "%.1f ms", ns / 1e6);
    return buf;
}

static const char *aq_out_value(const struct aq_result *r, double value, char *buf)
{
    if (strcmp(r->unit, "B") != 0)
        return aq_out_time(value, buf);
    if (value <= 0 && r->limit.median <= 0)
        snprintf(buf, 16, "-");
    else if (value < 65536)
        snprintf(buf, 16, "%.0f B", value);
    else
        snprintf(buf, 16, "%.0f KiB", value / 1024);
    return buf;
}

const char *aq_out_conduit(const struct aq_out *out)
{
    return out->options->conduit != NULL && *out->options->conduit != '\0' ? out->options->conduit
                                                                           : "smp";
}

/* Without the conduit: that of the string is the one this program was compiled for. */
void aq_out_build(char *buf, size_t size)
{
    static const char text[] = GASNET_CONFIG_STRING;
    const char *conduit = strstr(text, ",CONDUIT=");
    const char *rest = conduit != NULL ? strchr(conduit + 1, ',') : NULL;

    snprintf(buf, size, "%.*s%s", (int)(rest != NULL ? conduit - text : (ptrdiff_t)strlen(text)),
             text, rest != NULL ? rest : "");
}

void aq_out_machine(char *buf, size_t size)
{
    char model[128] = "unknown processor", line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    struct utsname u;

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        char *colon = strchr(line, ':');

        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            snprintf(model, sizeof(model), "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (f != NULL)
        fclose(f);
    uname(&u);
    snprintf(buf, size, "%s, %ld cores, %s %s", model, sysconf(_SC_NPROCESSORS_ONLN), u.sysname,
             u.release);
}

void aq_out_init(struct aq_out *out, const struct aq_options *options)
{
    memset(out, 0, sizeof(*out));
    out->options = options;
    out->terminal = isatty(STDERR_FILENO) && options->report == NULL;
    out->started = aq_bench_now();
    if (getloadavg(&out->load, 1) != 1)
        out->load = 0;
}

void aq_out_expect(struct aq_out *out, size_t rows)
{
    out->expected += rows;
}

static void aq_out_clear(const struct aq_out *out)
{
    if (out->terminal)
        fprintf(stderr, "\r\033[K");
}

void aq_out_running(struct aq_out *out, const char *name)
{
    double spent = (aq_bench_now() - out->started) / 1e9;
    double each = out->done > 0 ? spent / (double)out->done : 0.5;
    size_t left = out->expected > out->done ? out->expected - out->done : 0;

    if (!out->terminal)
        return;
    fprintf(stderr, "\r\033[K[%zu/%zu] %s, about %.0f s left", out->done + 1,
            MAX(out->expected, out->done + 1), name, each * (double)left);
    fflush(stderr);
}

static void aq_out_heading(struct aq_out *out, const struct aq_result *r)
{
    char machine[320];

    if (strcmp(out->heading, r->who) == 0)
        return;
    if (out->heading[0] == '\0') {
        aq_out_machine(machine, sizeof(machine));
        printf("# %s\n# time of one operation; ratio: median over slices of subject / limit in the "
               "same processes,\n"
               "# with its quartiles; A/A: the limit against itself\n",
               machine);
    }
    snprintf(out->heading, sizeof(out->heading), "%s", r->who);
    printf("\n%-18s %8s %10s %10s  %-34s %10s %13s %5s %6s %6s\n", r->who, "size", "time", "GB/s",
           "limit", "time", "quartiles", "A/A", "ratio", "budget");
}

void aq_out_cells(const struct aq_result *r, struct aq_cells *cells)
{
    const bool ranks = aq_out_counts_ranks(r->name);

    memset(cells, 0, sizeof(*cells));
    if (ranks)
        snprintf(cells->size, sizeof(cells->size), "%" PRIu64 " ranks", r->size);
    else
        aq_out_size(r->size, cells->size);
    aq_out_value(r, r->subject.median, cells->time);
    aq_out_value(r, r->limit.median, cells->limit);
    if (r->size >= 64 && strcmp(r->unit, "ns") == 0 && !ranks && !aq_out_counts_runs(r->name)
        && r->subject.median > 0)
        snprintf(cells->rate, sizeof(cells->rate), "%.2f", (double)r->size / r->subject.median);
    if (r->limit.median > 0) {
        snprintf(cells->quartiles, sizeof(cells->quartiles), "%.2f .. %.2f", r->ratio.q1,
                 r->ratio.q3);
        aq_stat_ratio(r->ratio.median, r->budget, cells->ratio);
    }
    if (r->aa > 0)
        snprintf(cells->aa, sizeof(cells->aa), "%.2f", r->aa);
    if (r->budget > 0)
        snprintf(cells->budget, sizeof(cells->budget), "%.2f %s", r->budget,
                 aq_stat_word(aq_stat_verdict(r)));
}

static void aq_out_row(const struct aq_result *r)
{
    struct aq_cells c;

    aq_out_cells(r, &c);
    printf("%-18s %8s %10s %10s  %-34s %10s %13s %5s %6s", r->name, c.size, c.time, c.rate,
           r->limit_name, c.limit, c.quartiles, c.aa, c.ratio);
    if (c.budget[0] != '\0')
        printf(" %*s%s", (int)(6 - strcspn(c.budget, " ")), "", c.budget);
    printf("\n");
}

void aq_out_result(struct aq_out *out, const struct aq_result *r)
{
    aq_out_clear(out);
    aq_out_heading(out, r);
    aq_out_row(r);
    fflush(stdout);
    out->done++;
    if (out->count == out->capacity) {
        size_t capacity = out->capacity > 0 ? 2 * out->capacity : 128;
        struct aq_result *more = realloc(out->results, capacity * sizeof(*more));

        if (more == NULL)
            return;
        out->results = more;
        out->capacity = capacity;
    }
    out->results[out->count++] = *r;
}

/* --- JSON --- */

static void aq_json_quart(FILE *f, const char *name, const struct aq_quart *q)
{
    fprintf(f, ", \"%s\": {\"q1\": %.6g, \"median\": %.6g, \"q3\": %.6g}", name, q->q1, q->median,
            q->q3);
}

static void aq_json_string(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s != '\0'; s++) {
        if (*s == '"' || *s == '\\')
            fputc('\\', f);
        if ((unsigned char)*s >= ' ')
            fputc(*s, f);
    }
    fputc('"', f);
}

static void aq_json_row(FILE *f, const struct aq_result *r)
{
    enum aq_verdict verdict = aq_stat_verdict(r);

    fprintf(f, "    {\"who\": \"%s\", \"name\": \"%s\", \"%s\": %" PRIu64 ", \"unit\": \"%s\"",
            r->who, r->name, aq_out_counts_ranks(r->name) ? "ranks" : "size", r->size, r->unit);
    aq_json_quart(f, "subject", &r->subject);
    if (r->limit.median > 0) {
        fprintf(f, ", \"limit_name\": ");
        aq_json_string(f, r->limit_name);
        aq_json_quart(f, "limit", &r->limit);
        aq_json_quart(f, "ratio", &r->ratio);
    }
    if (r->aa > 0)
        fprintf(f, ", \"aa\": %.4g", r->aa);
    if (verdict != AQ_VERDICT_NONE)
        fprintf(f, ", \"budget\": %.4g, \"verdict\": \"%s\"", r->budget, aq_stat_word(verdict));
    fprintf(f, ", \"slices\": %u, \"steady\": %s}", r->slices, r->unsteady ? "false" : "true");
}

static int aq_json_write(const struct aq_out *out, const char *path)
{
    FILE *f = fopen(path, "w");
    char machine[320], build[512];

    if (f == NULL) {
        fprintf(stderr, "aq-bench: cannot write %s\n", path);
        return -1;
    }
    aq_out_machine(machine, sizeof(machine));
    fprintf(f, "{\n  \"machine\": ");
    aq_json_string(f, machine);
    fprintf(f, ",\n  \"conduit\": ");
    aq_json_string(f, aq_out_conduit(out));
    fprintf(f, ",\n  \"config\": ");
    aq_out_build(build, sizeof(build));
    aq_json_string(f, build);
    fprintf(f, ",\n  \"ranks\": %u,\n  \"rows\": [\n", out->options->ranks);
    for (size_t i = 0; i < out->count; i++) {
        aq_json_row(f, &out->results[i]);
        fprintf(f, i + 1 < out->count ? ",\n" : "\n");
    }
    fprintf(f, "  ]\n}\n");
    return fclose(f) == 0 ? 0 : -1;
}

/* --- beside the other libraries --- */

/* What a row of ours may take at most, as a multiple of the best of the others; 0: no bar. */
static double aq_out_bar(const struct aq_out *out, const struct aq_result *r)
{
    if (out->options->remote)
        return 0;
    if (strcmp(r->name, "barrier") == 0 || (strcmp(r->name, "allreduce") == 0 && r->size <= 8))
        return 0.8;
    return 0;
}

static const struct aq_result *aq_out_best_peer(const struct aq_out *out,
                                                const struct aq_result *ours)
{
    const struct aq_result *best = NULL;

    for (size_t i = 0; i < out->count; i++) {
        const struct aq_result *r = &out->results[i];

        if (strcmp(r->who, "aqueduct") != 0 && strcmp(r->name, ours->name) == 0
            && r->size == ours->size && (best == NULL || r->subject.median < best->subject.median))
            best = r;
    }
    return best;
}

/* One line for each row that another library has too; returns how many are over their bar. */
static unsigned aq_out_beside(const struct aq_out *out)
{
    unsigned over = 0, lines = 0;

    for (size_t i = 0; i < out->count; i++) {
        const struct aq_result *ours = &out->results[i], *best;
        char size[16], time[16], remote[16], text[AQ_STAT_RATIO], end[32] = "";
        double bar, ratio;

        if (strcmp(ours->who, "aqueduct") != 0 || (best = aq_out_best_peer(out, ours)) == NULL)
            continue;
        ratio = ours->subject.median / best->subject.median;
        bar = aq_out_bar(out, ours);
        over += bar > 0 && ratio > bar;
        if (bar > 0)
            snprintf(end, sizeof(end), " %6.2f %s", bar, ratio > bar ? "OVER" : "ok");
        if (lines++ == 0)
            printf("\n%-18s %8s %10s  %10s %-10s %6s %6s\n", "beside the others", "size", "ours",
                   "best", "whose", "ratio", "bar");
        printf("%-18s %8s %10s  %10s %-10s %6s%s\n", ours->name, aq_out_size(ours->size, size),
               aq_out_value(ours, ours->subject.median, time),
               aq_out_value(best, best->subject.median, remote), best->who,
               aq_stat_ratio(ratio, bar, text), end);
    }
    return over;
}

static void aq_out_files(struct aq_out *out)
{
    const struct aq_options *o = out->options;
    const bool drawn = o->plot != NULL && aq_plot_write(out, o->plot) == 0;

    if (o->json != NULL && aq_json_write(out, o->json) != 0)
        out->unwritten = true;
    if (o->plot != NULL && !drawn)
        out->unwritten = true;
    if (o->markdown != NULL && out->whole && aq_page_write(out, drawn, o->markdown) != 0)
        out->unwritten = true;
}

int aq_out_finish(struct aq_out *out)
{
    unsigned count[4] = { 0, 0, 0, 0 };

    aq_out_clear(out);
    for (size_t i = 0; i < out->count; i++)
        count[aq_stat_verdict(&out->results[i])]++;
    count[AQ_VERDICT_OVER] += aq_out_beside(out);
    printf("\n%zu rows in %.0f s; budgets: %u ok, %u over, %u noise\n", out->count,
           (aq_bench_now() - out->started) / 1e9, count[AQ_VERDICT_OK], count[AQ_VERDICT_OVER],
           count[AQ_VERDICT_NOISE]);
    fflush(stdout);
    aq_out_files(out);
    free(out->results);
    out->results = NULL;
    return (int)count[AQ_VERDICT_OVER];
}
