/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_probe.c - inside a job: when its ranks started and met, and how much memory they hold.
 * Owns      nothing
 * Threads   one in every process
 * Uses      bench.h, /proc/self/smaps, /proc/self/status
 *
 * Every rank sends a few numbers to rank 0, which reports one line:
 *   STARTUP  init_ns    longest gex_Client_Init of a rank
 *            job_ns     first entry into gex_Client_Init to the last rank leaving the first barrier
 *            barrier    moment of the latter on CLOCK_MONOTONIC, for who launched the job
 *   MEMORY   bytes      private and shared anonymous memory of all ranks, each shared page once; of
 *                       the heap what is allocated, to the byte
 *            tables     page tables of all ranks, bytes
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"

#include <malloc.h>

struct aq_gather {
    uint64_t first, last, longest, sum, tables;
    unsigned count;
};

static struct aq_gather aq_gathered = { UINT64_MAX, 0, 0, 0, 0, 0 };

static void aq_h_gather(gex_Token_t token, gex_AM_Arg_t h0, gex_AM_Arg_t l0, gex_AM_Arg_t h1,
                        gex_AM_Arg_t l1, gex_AM_Arg_t h2, gex_AM_Arg_t l2)
{
    struct aq_gather *g = &aq_gathered;
    uint64_t a = (uint64_t)(uint32_t)h0 << 32 | (uint32_t)l0;
    uint64_t b = (uint64_t)(uint32_t)h1 << 32 | (uint32_t)l1;
    uint64_t c = (uint64_t)(uint32_t)h2 << 32 | (uint32_t)l2;

    (void)token;
    g->first = MIN(g->first, a);
    g->last = MAX(g->last, b);
    g->longest = MAX(g->longest, c);
    g->sum += a;
    g->tables += b;
    g->count++;
}

static void aq_probe_send(struct aq_job *job, uint64_t a, uint64_t b, uint64_t c)
{
    gex_AM_RequestShort6(job->tm, 0, AQ_H_GATHER, 0, a >> 32, a, b >> 32, b, c >> 32, c);
}

/* Bytes of the heap in use: pages would hide how it grows with the job. */
static uint64_t aq_probe_heap(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks;
}

/* Memory that is this job's alone: anonymous, heap, stack and memory files; each rank its
 * share of shared pages. */
static uint64_t aq_probe_memory(void)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    unsigned long long inode = 0, pss = 0, from, to, offset;
    bool ours = false;
    uint64_t sum = 0;
    char line[4400], perms[8], dev[16];

    if (f == NULL)
        return 0;
    while (fgets(line, sizeof(line), f) != NULL) {
        if (sscanf(line, "%llx-%llx %7s %llx %15s %llu", &from, &to, perms, &offset, dev, &inode)
            == 6)
            ours = (inode == 0 && strstr(line, "[heap]") == NULL) || strstr(line, "memfd:") != NULL
                   || strstr(line, "/dev/shm/") != NULL || strstr(line, "/dev/zero") != NULL;
        else if (ours && sscanf(line, "Pss: %llu kB", &pss) == 1)
            sum += pss * 1024;
    }
    fclose(f);
    return sum + aq_probe_heap();
}

static uint64_t aq_probe_tables(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    unsigned long long kib = 0;
    char line[256];

    if (f == NULL)
        return 0;
    while (fgets(line, sizeof(line), f) != NULL && sscanf(line, "VmPTE: %llu kB", &kib) != 1)
        continue;
    fclose(f);
    return kib * 1024;
}

static void aq_probe_startup(struct aq_job *job, double main_ns, double init_ns)
{
    double met;

    gex_Event_Wait(gex_Coll_BarrierNB(job->tm, 0));
    met = aq_bench_now();
    aq_probe_send(job, (uint64_t)main_ns, (uint64_t)met, (uint64_t)(init_ns - main_ns));
}

static void aq_probe_footprint(struct aq_job *job)
{
    gex_Segment_t segment;
    uint64_t bytes, tables;

    gex_Segment_Attach(&segment, job->tm, 1u << 20);
    if (strcmp(job->options->task, "talk") == 0) {
        for (gex_Rank_t remote = 1; remote < job->size; remote++)
            gex_AM_RequestShort0(job->tm, (job->rank + remote) % job->size, AQ_H_SINK_SHORT, 0);
        GASNET_BLOCKUNTIL(job->handled == job->size - 1);
    }
    gex_Event_Wait(gex_Coll_BarrierNB(job->tm, 0));
    bytes = aq_probe_memory();
    tables = aq_probe_tables();
    gex_Event_Wait(gex_Coll_BarrierNB(job->tm, 0));
    aq_probe_send(job, bytes, tables, 0);
}

void aq_job_probe(struct aq_job *job, double main_ns, double init_ns)
{
    gex_AM_Entry_t entry = {
        AQ_H_GATHER, (gex_AM_Fn_t)aq_h_gather, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 6, NULL,
        "gather"
    };
    bool startup = strcmp(job->options->task, "startup") == 0;
    FILE *report;

    gex_EP_RegisterHandlers(job->ep, &entry, 1);
    if (startup)
        aq_probe_startup(job, main_ns, init_ns);
    else
        aq_probe_footprint(job);
    if (job->rank != 0)
        return;
    GASNET_BLOCKUNTIL(aq_gathered.count == job->size);
    report = job->options->report != NULL ? fopen(job->options->report, "w") : stdout;
    if (report == NULL)
        return;
    if (startup)
        fprintf(report, "STARTUP\t%llu\t%llu\t%llu\n", (unsigned long long)aq_gathered.longest,
                (unsigned long long)(aq_gathered.last - aq_gathered.first),
                (unsigned long long)aq_gathered.last);
    else
        fprintf(report, "MEMORY\t%llu\t%llu\n", (unsigned long long)aq_gathered.sum,
                (unsigned long long)aq_gathered.tables);
    if (report != stdout)
        fclose(report);
    else
        fflush(stdout);
}
