/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_peers.c - the same figures by what a user would pick instead: Open MPI, MPICH, OpenSHMEM.
 * Owns      a private folder with the compiled programs, gone at the end
 * Threads   one
 * Uses      bench.h; the sources in peers/, and each library's own compiler wrapper and launcher
 *
 * The programs are compiled when they are measured, from installed sources: a build of Aqueduct
 * needs no MPI. A library whose compiler or launcher is not found is left out.
 *
 * Beside udp stand Open MPI over TCP and libfabric's tcp provider, the latter by its own
 * fi_pingpong; beside mpi each MPI and OpenSHMEM as they come, one-sided and by messages.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One program of a library: between two ranks, or over as many as the other rows have. */
struct aq_peer_library {
    const char *who, *compiler, *launcher, *arguments, *source;
    size_t rows;
    bool all_ranks;
    enum aq_beside beside;
};

#define AQ_OPENMPI "openmpi", "mpicc.openmpi", "mpirun.openmpi"
#define AQ_MPICH   "mpich", "mpicc.mpich", "mpiexec.mpich"
#define AQ_OSHMEM  "oshmem", "oshcc", "oshrun"
#define AQ_ROOT    "--allow-run-as-root --oversubscribe"

static const struct aq_peer_library aq_peer_libraries[] = {
    { AQ_OPENMPI, AQ_ROOT, "peers/peer_mpi.c", 14, false, AQ_BESIDE_SHM },
    { AQ_OPENMPI, AQ_ROOT, "peers/peer_mpi_coll.c", 17, true, AQ_BESIDE_SHM },
    { AQ_MPICH, "", "peers/peer_mpi.c", 14, false, AQ_BESIDE_SHM },
    { AQ_MPICH, "", "peers/peer_mpi_coll.c", 17, true, AQ_BESIDE_SHM },
    { AQ_OSHMEM, AQ_ROOT, "peers/peer_shmem.c", 9, false, AQ_BESIDE_SHM },
    { AQ_OSHMEM, AQ_ROOT, "peers/peer_shmem_coll.c", 11, true, AQ_BESIDE_SHM },
    { AQ_OPENMPI, AQ_ROOT " --mca btl tcp,self --mca pml ob1 --mca osc pt2pt",
      "peers/peer_mpi_net.c", 29, false, AQ_BESIDE_UDP },
    { AQ_OPENMPI, AQ_ROOT, "peers/peer_mpi_net.c", 29, false, AQ_BESIDE_MPI },
    { AQ_MPICH, "", "peers/peer_mpi_net.c", 29, false, AQ_BESIDE_MPI },
    { AQ_OSHMEM, AQ_ROOT, "peers/peer_shmem.c", 9, false, AQ_BESIDE_MPI },
    { AQ_OSHMEM, AQ_ROOT, "peers/peer_shmem_coll.c", 11, true, AQ_BESIDE_MPI },
};

/* fi_pingpong's sizes, and the rows of ours that they stand beside. */
static const struct {
    const char *name;
    unsigned size, rounds;
} aq_peer_pingpongs[] = {
    { "am_medium", 8, 4000 },
    { "am_medium", 4096, 4000 },
    { "am_long", 65536, 2000 },
    { "am_long", 1u << 20, 200 },
};
#define AQ_PINGPONG_PORT 47592 /* fi_pingpong's own default is the same */

static bool aq_peers_found(const char *program)
{
    char command[128];

    snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", program);
    return system(command) == 0;
}

static bool aq_peers_wanted(const struct aq_options *options)
{
    char dir[4300];

    return options->peers && options->only == NULL
           && aq_front_sources("peers/peer_mpi.c", dir, sizeof(dir));
}

size_t aq_peers_count(const struct aq_options *options)
{
    size_t count = 0;

    if (!aq_peers_wanted(options))
        return 0;
    for (size_t i = 0; i < sizeof(aq_peer_libraries) / sizeof(aq_peer_libraries[0]); i++) {
        const struct aq_peer_library *l = &aq_peer_libraries[i];

        if (l->beside == aq_beside(options) && aq_peers_found(l->compiler)
            && aq_peers_found(l->launcher))
            count += l->rows;
    }
    if (aq_beside(options) == AQ_BESIDE_UDP && aq_peers_found("fi_pingpong"))
        count += sizeof(aq_peer_pingpongs) / sizeof(aq_peer_pingpongs[0]);
    return count;
}

static void aq_peers_measure(const struct aq_options *options, struct aq_out *out,
                             const struct aq_peer_library *l, const char *program)
{
    char command[4800], line[1024];
    const unsigned ranks = l->all_ranks ? options->ranks : 2;
    const bool crowded = (long)ranks > sysconf(_SC_NPROCESSORS_ONLN);
    const char *bind = strcmp(l->who, "mpich") == 0 ? "-bind-to" : "--bind-to";
    size_t rows = 0;
    FILE *f;

    snprintf(command, sizeof(command),
             "timeout 180 %s %s %s %s -n %u '%s' %s %s </dev/null 2>/dev/null", l->launcher,
             l->arguments, bind, crowded ? "none" : "core", ranks, program, l->who,
             options->quick ? "quick" : "full");
    f = popen(command, "r");
    if (f == NULL)
        return;
    while (fgets(line, sizeof(line), f) != NULL) {
        struct aq_result r;

        if (aq_record_read(line, &r)) {
            aq_out_result(out, &r);
            rows++;
        }
        aq_out_running(out, l->who);
    }
    pclose(f); /* some libraries crash when they end; what counts is that all rows came */
    if (rows < l->rows && !aq_front_stop())
        fprintf(stderr, "aq-bench: %s gave %zu rows of %zu\n", l->who, rows, l->rows);
}

static void aq_peers_library(const struct aq_options *options, struct aq_out *out,
                             const struct aq_peer_library *l, const char *dir)
{
    char temp[4096], program[4200], command[10000];

    if (!aq_peers_found(l->compiler) || !aq_peers_found(l->launcher)
        || aq_front_temp(temp, sizeof(temp)) != 0)
        return;
    snprintf(program, sizeof(program), "%s/peer", temp);
    snprintf(command, sizeof(command),
             "cd '%s' && %s -std=gnu11 -O2 -I. -o '%s' %s bench_stat.c bench_limit.c -lm", dir,
             l->compiler, program, l->source);
    aq_out_running(out, l->who);
    if (system(command) == 0)
        aq_peers_measure(options, out, l, program);
    else
        fprintf(stderr, "aq-bench: %s could not be compiled with %s\n", l->source, l->compiler);
    unlink(program);
    rmdir(temp);
}

/* Microseconds of one way of n bytes by libfabric's ready program over its tcp provider; 0 if it
 * did not work. */
static double aq_peers_pingpong(unsigned size, unsigned rounds)
{
    char command[512], line[256];
    double us = 0;
    FILE *f;

    snprintf(command, sizeof(command),
             "{ taskset -c 1 timeout 20 fi_pingpong -p tcp -e msg -I %u -S %u -B %u >/dev/null "
             "2>&1 & } ; sleep 0.5; "
             "taskset -c 0 timeout 20 fi_pingpong -p tcp -e msg -I %u -S %u -P %u 127.0.0.1 "
             "2>/dev/null; wait",
             rounds, size, AQ_PINGPONG_PORT, rounds, size, AQ_PINGPONG_PORT);
    f = popen(command, "r");
    if (f == NULL)
        return 0;
    while (fgets(line, sizeof(line), f) != NULL)
        sscanf(line, "%*s %*s %*s %*s %*s %*s %lf", &us);
    pclose(f);
    return us;
}

/* Three runs of each size: its round trips have no slices of their own. */
static void aq_peers_libfabric(struct aq_out *out)
{
    if (!aq_peers_found("fi_pingpong") || !aq_peers_found("taskset"))
        return;
    for (size_t i = 0;
         i < sizeof(aq_peer_pingpongs) / sizeof(aq_peer_pingpongs[0]) && !aq_front_stop(); i++) {
        double ns[3];
        struct aq_result r;

        aq_out_running(out, "libfabric");
        for (size_t k = 0; k < 3; k++)
            ns[k] = 2e3 * aq_peers_pingpong(aq_peer_pingpongs[i].size, aq_peer_pingpongs[i].rounds);
        memset(&r, 0, sizeof(r));
        snprintf(r.who, sizeof(r.who), "libfabric");
        snprintf(r.name, sizeof(r.name), "%s", aq_peer_pingpongs[i].name);
        snprintf(r.unit, sizeof(r.unit), "ns");
        r.size = aq_peer_pingpongs[i].size;
        aq_stat_reduce(ns, NULL, NULL, 3, &r);
        if (r.subject.q1 > 0)
            aq_out_result(out, &r);
    }
}

void aq_peers_run(const struct aq_options *options, struct aq_out *out)
{
    char dir[4300];

    if (!aq_peers_wanted(options) || !aq_front_sources("peers/peer_mpi.c", dir, sizeof(dir)))
        return;
    for (size_t i = 0;
         i < sizeof(aq_peer_libraries) / sizeof(aq_peer_libraries[0]) && !aq_front_stop(); i++) {
        if (aq_peer_libraries[i].beside == aq_beside(options))
            aq_peers_library(options, out, &aq_peer_libraries[i], dir);
    }
    if (aq_beside(options) == AQ_BESIDE_UDP && !aq_front_stop())
        aq_peers_libfabric(out);
}
