/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_plot.c - SVG plots of a run through gnuplot: latency, bandwidth, ratio to the limit,
 * start-up.
 * Owns      nothing; the data travel inside the gnuplot script
 * Threads   one
 * Uses      bench.h, gnuplot
 */
#include "bench.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#define AQ_CURVES 10

/* One curve: the rows of one name by one library, or the limit beside them. */
struct aq_curve {
    const char *who, *name, *title;
    bool limit;
    const char *color;
};

enum aq_plot_y { AQ_PLOT_NS, AQ_PLOT_GBS, AQ_PLOT_MS, AQ_PLOT_MOPS };

struct aq_plot {
    const char *file, *title, *x, *y;
    enum aq_plot_y unit;
    uint64_t min; /* leave out rows smaller than this */
    enum aq_beside beside;
    struct aq_curve curves[AQ_CURVES];
};

/* clang-format off */
static const struct aq_plot aq_plots[] = {
    { "latency.svg", "Round trips and blocking transfers on one host", 
      "bytes", "nanoseconds", AQ_PLOT_NS, 1,
      AQ_BESIDE_SHM, {
        { "aqueduct", "am_medium", "AM Medium round trip", false, "#1f4fb4" },
        { "aqueduct", "am_medium", "limit: line ping-pong + 2 memcpy", true, "black" },
        { "aqueduct", "am_long", "AM Long round trip", false, "#2a9fd6" },
        { "aqueduct", "put", "blocking put", false, "#d95f02" },
        { "aqueduct", "get", "blocking get", false, "#1b9e3e" },
        { "openmpi", "pingpong", "Open MPI send/receive round trip", false, "#8c4fc4" },
        { "mpich", "pingpong", "MPICH send/receive round trip", false, "#c0392b" },
        { "openmpi", "put", "Open MPI put + flush", false, "#b48cdc" },
        { "mpich", "put", "MPICH put + flush", false, "#e8998d" },
        { "oshmem", "put", "OpenSHMEM put + quiet", false, "#8a8a2a" } } },
    { "bandwidth.svg", "Put and get on one host", 
      "bytes", "GB/s", AQ_PLOT_GBS, 64, AQ_BESIDE_SHM, {
        { "aqueduct", "put", "put", false, "#d95f02" },
        { "aqueduct", "get", "get", false, "#1b9e3e" },
        { "aqueduct", "put", "limit: memcpy", true, "black" },
        { "aqueduct", "am_medium_flood", "AM Medium flood", false, "#1f4fb4" },
        { "aqueduct", "am_long_flood", "AM Long flood", false, "#2a9fd6" },
        { "openmpi", "put", "Open MPI put + flush", false, "#b48cdc" },
        { "mpich", "put", "MPICH put + flush", false, "#e8998d" },
        { "oshmem", "put", "OpenSHMEM put + quiet", false, "#8a8a2a" } } },
    { "startup.svg", "Start-up on one host", 
      "ranks", "milliseconds", AQ_PLOT_MS, 1, AQ_BESIDE_SHM, {
        { "aqueduct", "startup_launch", "launch to first barrier", false, "#1f4fb4" },
        { "aqueduct", "startup_init", "init to first barrier", false, "#d95f02" },
        { "aqueduct", "startup_init", "limit: fork + exec", true, "black" } } },
    { "network-bandwidth.svg", "Streams of puts and gets over the udp conduit", 
      "bytes", "GB/s", AQ_PLOT_GBS, 64,
      AQ_BESIDE_UDP, {
        { "aqueduct", "put_stream", "stream of puts", false, "#d95f02" },
        { "aqueduct", "get_stream", "stream of gets", false, "#1b9e3e" },
        { "aqueduct", "put", "blocking puts", false, "#e6ab02" },
        { "aqueduct", "put_stream", "limit: one send each, from 64 KiB the fastest stream", 
          true, "black" },
        { "aqueduct", "am_medium_flood", "AM Medium flood", false, "#1f4fb4" },
        { "openmpi", "put_stream", "Open MPI over TCP, stream of sends", false, "#8c4fc4" },
        { "openmpi", "put", "Open MPI over TCP, put + flush", false, "#b48cdc" } } },
    { "network-rate.svg", "Messages over the udp conduit", 
      "bytes", "million a second", AQ_PLOT_MOPS, 64, AQ_BESIDE_UDP, {
        { "aqueduct", "am_medium_flood", "AM Medium flood", false, "#1f4fb4" },
        { "aqueduct", "put_stream", "stream of puts", false, "#d95f02" },
        { "aqueduct", "put_stream", "limit: one send each", true, "black" },
        { "openmpi", "put_stream", "Open MPI over TCP, stream of sends", false, "#8c4fc4" } } },
    { "network-latency.svg", "Round trips over the udp conduit", 
      "bytes", "nanoseconds", AQ_PLOT_NS, 1, AQ_BESIDE_UDP, {
        { "aqueduct", "am_medium", "AM Medium round trip", false, "#1f4fb4" },
        { "aqueduct", "am_medium", "limit: UDP ping-pong", true, "black" },
        { "aqueduct", "am_long", "AM Long round trip", false, "#2a9fd6" },
        { "aqueduct", "put", "blocking put", false, "#d95f02" },
        { "aqueduct", "get", "blocking get", false, "#1b9e3e" },
        { "openmpi", "am_medium", "Open MPI over TCP, send/receive round trip", false, "#8c4fc4" },
        { "openmpi", "am_long", "the same, longer", false, "#8c4fc4" },
        { "libfabric", "am_medium", "libfabric tcp round trip", false, "#c0392b" },
        { "libfabric", "am_long", "the same, longer", false, "#c0392b" } } },
    { "mpi-bandwidth.svg", "Streams of puts and gets over the mpi conduit", 
      "bytes", "GB/s", AQ_PLOT_GBS, 64,
      AQ_BESIDE_MPI, {
        { "aqueduct", "put_stream", "stream of puts", false, "#d95f02" },
        { "aqueduct", "get_stream", "stream of gets", false, "#1b9e3e" },
        { "aqueduct", "put", "blocking puts", false, "#e6ab02" },
        { "aqueduct", "put_stream", "limit: the better of MPI_Put and MPI_Isend", true, "black" },
        { "aqueduct", "am_medium_flood", "AM Medium flood", false, "#1f4fb4" },
        { "openmpi", "put_stream", "Open MPI, stream of sends", false, "#8c4fc4" },
        { "mpich", "put_stream", "MPICH, stream of sends", false, "#c0392b" },
        { "oshmem", "put", "OpenSHMEM put + quiet", false, "#8a8a2a" } } },
    { "mpi-rate.svg", "Messages over the mpi conduit", 
      "bytes", "million a second", AQ_PLOT_MOPS, 64, AQ_BESIDE_MPI, {
        { "aqueduct", "am_medium_flood", "AM Medium flood", false, "#1f4fb4" },
        { "aqueduct", "am_medium_flood", "limit: MPI_Isend flood", true, "black" },
        { "aqueduct", "put_stream", "stream of puts", false, "#d95f02" },
        { "aqueduct", "put_stream", "limit: the better of MPI_Put and MPI_Isend", 
          true, "#7f7f7f" } } },
    { "mpi-latency.svg", "Round trips over the mpi conduit", 
      "bytes", "nanoseconds", AQ_PLOT_NS, 1, AQ_BESIDE_MPI, {
        { "aqueduct", "am_medium", "AM Medium round trip", false, "#1f4fb4" },
        { "aqueduct", "am_medium", "limit: MPI_Send, MPI_Recv", true, "black" },
        { "aqueduct", "am_long", "AM Long round trip", false, "#2a9fd6" },
        { "aqueduct", "put", "blocking put", false, "#d95f02" },
        { "aqueduct", "put", "limit: MPI_Put and flush", true, "#7f7f7f" },
        { "aqueduct", "get", "blocking get", false, "#1b9e3e" },
        { "openmpi", "put", "Open MPI put + flush", false, "#b48cdc" },
        { "mpich", "put", "MPICH put + flush", false, "#e8998d" },
        { "oshmem", "put", "OpenSHMEM put + quiet", false, "#8a8a2a" } } },
    { "ibv-bandwidth.svg", "Streams of puts and gets over the ibv conduit", 
      "bytes", "GB/s", AQ_PLOT_GBS, 64,
      AQ_BESIDE_VERBS, {
        { "aqueduct", "put_stream", "stream of puts", false, "#d95f02" },
        { "aqueduct", "put_stream", "limit: RDMA writes by verbs", true, "black" },
        { "aqueduct", "get_stream", "stream of gets", false, "#1b9e3e" },
        { "aqueduct", "get_stream", "limit: RDMA reads by verbs", true, "#7f7f7f" },
        { "aqueduct", "put", "blocking puts", false, "#e6ab02" },
        { "aqueduct", "am_medium_flood", "AM Medium flood", false, "#1f4fb4" } } },
    { "ibv-latency.svg", "Round trips over the ibv conduit", 
      "bytes", "nanoseconds", AQ_PLOT_NS, 1, AQ_BESIDE_VERBS, {
        { "aqueduct", "am_medium", "AM Medium round trip", false, "#1f4fb4" },
        { "aqueduct", "am_medium", "limit: send and receive by verbs, there and back", 
          true, "black" },
        { "aqueduct", "am_long", "AM Long round trip", false, "#2a9fd6" },
        { "aqueduct", "put", "blocking put", false, "#d95f02" },
        { "aqueduct", "put", "limit: RDMA write and its completion", true, "#7f7f7f" },
        { "aqueduct", "get", "blocking get", false, "#1b9e3e" },
        { "aqueduct", "get", "limit: RDMA read and its completion", true, "#b0b0b0" } } },
};
/* clang-format on */

static double aq_plot_value(const struct aq_result *r, bool limit, enum aq_plot_y unit)
{
    double ns = limit ? r->limit.median : r->subject.median;

    switch (unit) {
    case AQ_PLOT_NS:
        return ns;
    case AQ_PLOT_MS:
        return ns / 1e6;
    case AQ_PLOT_MOPS:
        return ns > 0 ? 1e3 / ns : 0;
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

        if (strcmp(r->who, c->who) == 0 && strcmp(r->name, c->name) == 0 && r->size >= p->min
            && y > 0) {
            fprintf(f, "%llu %.6g\n", (unsigned long long)r->size, y);
            points++;
        }
    }
    fprintf(f, "EOD\n");
    return points;
}

/* Ours are thick and solid, other libraries' thin and dotted, limits black and dashed. */
static const char *aq_plot_style(const struct aq_curve *c)
{
    if (c->limit)
        return "lw 2 dt 2 pt 7 ps 0.4";
    return strcmp(c->who, "aqueduct") == 0 ? "lw 2.5 pt 7 ps 0.5" : "lw 1.3 dt 3 pt 6 ps 0.5";
}

static void aq_plot_frame(FILE *f, const struct aq_plot *p, const char *dir)
{
    char machine[320];

    aq_out_machine(machine, sizeof(machine));
    fprintf(f,
            "reset\nset terminal svg size 820,600 dynamic background rgb 'white' font 'sans,13'\n"
            "set output '%s/%s'\nset title \"%s\\n%s\" noenhanced\n",
            dir, p->file, p->title, machine);
    fprintf(
        f,
        "set logscale x 2\nset logscale y\nset format y '%%g'\nset xlabel '%s'\nset ylabel '%s'\n",
        p->x, p->y);
    fprintf(f, "set key below maxcols 2 samplen 3\nset grid lc rgb '#cccccc'\n");
    if (p->unit != AQ_PLOT_MS)
        fprintf(f,
                "set xrange [%u:33554432]\nset xtics ('8' 8, '64' 64, '512' 512, '4 Ki' 4096, '64 "
                "Ki' 65536, "
                "'1 Mi' 1048576, '16 Mi' 16777216)\n",
                (unsigned)(p->min > 8 ? p->min / 2 : 4));
}

static void aq_plot_script(FILE *f, const struct aq_out *out, const struct aq_plot *p,
                           const char *dir)
{
    bool drawn[AQ_CURVES] = { false };
    const char *comma = "plot ";

    for (size_t i = 0; i < AQ_CURVES && p->curves[i].who != NULL; i++)
        drawn[i] = aq_plot_data(f, out, p, i) > 0;
    aq_plot_frame(f, p, dir);
    for (size_t i = 0; i < AQ_CURVES; i++) {
        if (!drawn[i])
            continue;
        fprintf(f, "%s$d%zu using 1:2 with linespoints %s lc rgb '%s' title '%s'", comma, i,
                aq_plot_style(&p->curves[i]), p->curves[i].color, p->curves[i].title);
        comma = ", ";
    }
    fprintf(f, "\nunset output\n");
}

static bool aq_plot_has_rows(const struct aq_out *out, const struct aq_plot *p)
{
    for (size_t i = 0; i < out->count; i++) {
        for (size_t c = 0; c < AQ_CURVES && p->curves[c].who != NULL; c++) {
            const struct aq_result *r = &out->results[i];

            if (strcmp(r->who, p->curves[c].who) == 0 && strcmp(r->name, p->curves[c].name) == 0
                && r->size >= p->min)
                return true;
        }
    }
    return false;
}

int aq_plot_find(const struct aq_out *out, int index, const char **file_out, const char **title_out)
{
    const int count = (int)(sizeof(aq_plots) / sizeof(aq_plots[0]));

    for (; index < count; index++) {
        const struct aq_plot *p = &aq_plots[index];

        if (p->beside != aq_beside(out->options) || !aq_plot_has_rows(out, p))
            continue;
        *file_out = p->file;
        *title_out = p->title;
        return index;
    }
    return -1;
}

int aq_plot_write(const struct aq_out *out, const char *dir)
{
    const char *file, *title;
    FILE *f;

    if (mkdir(dir, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "aq-bench: cannot make the folder %s: %s\n", dir, strerror(errno));
        return -1;
    }
    signal(SIGPIPE, SIG_IGN); /* pclose() tells whether gnuplot has read it all */
    f = popen("gnuplot", "w");
    if (f == NULL) {
        fprintf(stderr, "aq-bench: gnuplot cannot be started; install gnuplot-nox for --plot\n");
        return -1;
    }
    for (int i = 0; (i = aq_plot_find(out, i, &file, &title)) >= 0; i++)
        aq_plot_script(f, out, &aq_plots[i], dir);
    if (pclose(f) != 0) {
        fprintf(stderr, "aq-bench: gnuplot failed; is gnuplot-nox installed?\n");
        return -1;
    }
    return 0;
}
