/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_plot.c - SVG plots of a run through gnuplot: latency, bandwidth, ratio to the limit, start-up.
 * Owns      nothing; the data travel inside the gnuplot script
 * Threads   one
 * Uses      bench.h, gnuplot
 */
#include "bench.h"

#include <errno.h>
#include <sys/stat.h>

/* One curve: the rows of one name by one library, or the limit beside them. */
struct aq_curve {
    const char *who, *name, *title;
    bool limit;
};

enum aq_plot_y { AQ_PLOT_US, AQ_PLOT_GBS, AQ_PLOT_MS };

struct aq_plot {
    const char *file, *title, *x, *y;
    enum aq_plot_y unit;
    uint64_t least;                     /* leave out rows smaller than this */
    struct aq_curve curves[10];
};

static const struct aq_plot aq_plots[] = {
    { "latency.svg", "Round trips and blocking transfers on one host", "bytes", "microseconds", AQ_PLOT_US, 1, {
        { "aqueduct", "am_medium", "AM Medium round trip", false },
        { "aqueduct", "am_medium", "limit: line ping-pong + 2 memcpy", true },
        { "aqueduct", "am_long", "AM Long round trip", false },
        { "aqueduct", "put", "blocking put", false },
        { "aqueduct", "get", "blocking get", false },
        { "openmpi", "pingpong", "Open MPI send/receive round trip", false },
        { "mpich", "pingpong", "MPICH send/receive round trip", false },
        { "openmpi", "put", "Open MPI put + flush", false },
        { "mpich", "put", "MPICH put + flush", false },
        { "oshmem", "put", "OpenSHMEM put + quiet", false } } },
    { "bandwidth.svg", "Put and get on one host", "bytes", "GB/s", AQ_PLOT_GBS, 64, {
        { "aqueduct", "put", "put", false },
        { "aqueduct", "get", "get", false },
        { "aqueduct", "put", "limit: memcpy", true },
        { "aqueduct", "am_medium_flood", "AM Medium flood", false },
        { "aqueduct", "am_long_flood", "AM Long flood", false },
        { "openmpi", "put", "Open MPI put + flush", false },
        { "mpich", "put", "MPICH put + flush", false },
        { "oshmem", "put", "OpenSHMEM put + quiet", false } } },
    { "startup.svg", "Start-up on one host", "ranks", "milliseconds", AQ_PLOT_MS, 1, {
        { "aqueduct", "startup_launch", "launch to first barrier", false },
        { "aqueduct", "startup_init", "init to first barrier", false },
        { "aqueduct", "startup_init", "limit: fork + exec", true } } },
};

static double aq_plot_value(const struct aq_result *r, bool limit, enum aq_plot_y unit)
{
    double ns = limit ? r->limit.median : r->subject.median;

    switch (unit) {
    case AQ_PLOT_US:
        return ns / 1e3;
    case AQ_PLOT_MS:
        return ns / 1e6;
    default:
        return ns > 0 ? (double)r->size / ns : 0;
    }
}

/* Writes one data block; returns the number of points. */
static int aq_plot_data(FILE *f, const struct aq_out *out, const struct aq_plot *p, size_t index)
{
    const struct aq_curve *c = &p->curves[index];
    int points = 0;

    fprintf(f, "$d%zu << EOD\n", index);
    for (size_t i = 0; i < out->count; i++) {
        const struct aq_result *r = &out->results[i];
        double y = aq_plot_value(r, c->limit, p->unit);

        if (strcmp(r->who, c->who) == 0 && strcmp(r->name, c->name) == 0 && r->size >= p->least && y > 0) {
            fprintf(f, "%llu %.6g\n", (unsigned long long)r->size, y);
            points++;
        }
    }
    fprintf(f, "EOD\n");
    return points;
}

static void aq_plot_script(FILE *f, const struct aq_out *out, const struct aq_plot *p, const char *dir)
{
    bool drawn[10] = { false };
    const char *comma = "plot ";
    char machine[320];

    aq_out_machine(machine, sizeof(machine));
    for (size_t i = 0; i < 10 && p->curves[i].who != NULL; i++)
        drawn[i] = aq_plot_data(f, out, p, i) > 0;
    fprintf(f, "set terminal svg size 860,520 dynamic background rgb 'white' font 'sans,13'\n"
               "set output '%s/%s'\n", dir, p->file);
    fprintf(f, "set title \"%s\"\nset label \"%s\" at screen 0.99,0.02 right font ',10' noenhanced\n", p->title, machine);
    fprintf(f, "set logscale x 2\nset logscale y\nset format y '%%g'\nset xlabel '%s' offset 0,-0.3\nset ylabel '%s'\n"
               "set key outside right top\nset grid\n"
               "set bmargin 5\n", p->x, p->y);
    if (p->unit != AQ_PLOT_MS)
        fprintf(f, "set xtics ('8' 8, '64' 64, '512' 512, '4 Ki' 4096, '64 Ki' 65536, '1 Mi' 1048576, '16 Mi' 16777216)\n");
    for (size_t i = 0; i < 10; i++) {
        if (!drawn[i])
            continue;
        fprintf(f, "%s$d%zu using 1:2 with linespoints lw 2 pt 7 ps 0.5 %s title '%s'", comma, i,
                p->curves[i].limit ? "dt 2 lc rgb 'black'" : "", p->curves[i].title);
        comma = ", ";
    }
    fprintf(f, "\nunset output\nreset\nunset label\n");
}

static bool aq_plot_has_rows(const struct aq_out *out, const struct aq_plot *p)
{
    for (size_t i = 0; i < out->count; i++) {
        for (size_t c = 0; c < 10 && p->curves[c].who != NULL; c++) {
            const struct aq_result *r = &out->results[i];

            if (strcmp(r->who, p->curves[c].who) == 0 && strcmp(r->name, p->curves[c].name) == 0
                && r->size >= p->least)
                return true;
        }
    }
    return false;
}

int aq_plot_write(const struct aq_out *out, const char *dir)
{
    FILE *f;

    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "aq-bench: cannot make the folder %s: %s\n", dir, strerror(errno));
        return -1;
    }
    f = popen("gnuplot", "w");
    if (f == NULL) {
        fprintf(stderr, "aq-bench: gnuplot cannot be started; install gnuplot-nox for --plot\n");
        return -1;
    }
    for (size_t i = 0; i < sizeof(aq_plots) / sizeof(aq_plots[0]); i++) {
        if (aq_plot_has_rows(out, &aq_plots[i]))
            aq_plot_script(f, out, &aq_plots[i], dir);
    }
    if (pclose(f) != 0) {
        fprintf(stderr, "aq-bench: gnuplot failed; is gnuplot-nox installed?\n");
        return -1;
    }
    return 0;
}
