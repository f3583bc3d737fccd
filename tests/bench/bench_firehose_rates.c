/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_firehose_rates.c - hits and messages of streams of accesses, against our share of the
 * peer's memory.
 *
 * Each stream touches 256 MiB of the peer. It runs once to fill the tables, and is counted
 * afterwards.
 * Threads   one. Uses bench_firehose.h
 */
#include "bench_firehose.h"

#define SET      ((uint64_t)256 << 20)
#define ACCESSES 400000u
#define BASE     ((uintptr_t)1 << 32)

struct stream {
    const char *name;
    uint64_t (*next)(uint64_t i); /* offset of access i */
    size_t nbytes;
};

static uint64_t sequential(uint64_t i)
{
    return i * 1024 % SET;
}

/* down a column of 4096 rows of 64 KiB, then the next column */
static uint64_t strided(uint64_t i)
{
    return i % 4096 * 65536 + i / 4096 * 8 % 65536;
}

/* rows of 64 KiB in blocks of 32 rows by 2 KiB, a block after the other */
static uint64_t blocked(uint64_t i)
{
    const uint64_t block = i / 64, in = i % 64;

    return (block / 32 % 128 * 32 + in % 32) * 65536 + block % 32 * 2048 + in / 32 * 1024;
}

static uint64_t random_words(uint64_t i)
{
    (void)i;
    return bench_fh_random() % (SET / 8) * 8;
}

/* nine of ten accesses go to a tenth of the pages, which are anywhere */
static uint64_t skewed(uint64_t i)
{
    uint64_t page = bench_fh_random() % (SET / AQ_FH_PAGE);

    (void)i;
    if (bench_fh_random() % 10 != 0)
        page = page / 10 * 10;
    return page * AQ_FH_PAGE + bench_fh_random() % (AQ_FH_PAGE / 8) * 8;
}

static const struct stream streams[] = {
    { "sequential", sequential, 1024 }, { "strided", strided, 8 }, { "blocked", blocked, 1024 },
    { "random", random_words, 8 },      { "skewed", skewed, 8 },
};
#define STREAMS (sizeof(streams) / sizeof(streams[0]))

struct rates {
    double hit;          /* of 100 accesses */
    double per_miss;     /* messages, without answers */
    double pages;        /* pinned a miss */
    double per_thousand; /* messages of 1000 accesses */
};

static struct rates run(const struct stream *stream, uint64_t quota)
{
    struct bench_fh_pair pair;
    struct aq_fh_counts before, after, pins_before, pins_after;
    uint64_t hits = 0, misses, messages;

    bench_fh_open(&pair, quota, quota / 3);
    for (uint64_t i = 0; i < ACCESSES; i++)
        bench_fh_touch(&pair, BASE + stream->next(i), stream->nbytes);
    aq_fh_counts(pair.fh[0], &before);
    aq_fh_counts(pair.fh[1], &pins_before);
    for (uint64_t i = ACCESSES; i < 2 * ACCESSES; i++)
        hits += bench_fh_touch(&pair, BASE + stream->next(i), stream->nbytes);
    aq_fh_counts(pair.fh[0], &after);
    aq_fh_counts(pair.fh[1], &pins_after);
    misses = ACCESSES - hits;
    messages = after.moves + after.releases - before.moves - before.releases;
    bench_fh_close(&pair);
    return (struct rates){
        .hit = 100.0 * (double)hits / ACCESSES,
        .per_miss = misses != 0 ? (double)messages / (double)misses : 0,
        .pages = misses != 0 ? (double)(pins_after.regs - pins_before.regs) / (double)misses : 0,
        .per_thousand = 1000.0 * (double)messages / ACCESSES,
    };
}

void bench_fh_rates(const char *dir)
{
    struct bench_fh_plot hit = {
        .title = "Firehose: hits, by the share of a peer''s memory that may be pinned",
        .x = "share in MiB (the streams touch 256 MiB)",
        .y = "hits of 100 accesses",
        .set = "set yrange [0:102]",
        .curves = STREAMS
    };
    struct bench_fh_plot sent = {
        .title = "Firehose: messages, by the share of a peer''s memory that may be pinned",
        .x = "share in MiB (the streams touch 256 MiB)",
        .y = "messages of 1000 accesses",
        .set = "set logscale y; set format y '%g'; set yrange [0.05:1500]",
        .curves = STREAMS
    };

    printf("# accesses to 256 MiB of a peer: hits, messages (each is one round trip), pinning\n"
           "# %-10s %9s %10s %18s %14s %14s\n",
           "stream", "share MiB", "hits %", "messages per miss", "per 1000 acc", "pins per miss");
    for (unsigned s = 0; s < STREAMS; s++) {
        hit.points = sent.points = 0;
        hit.name[s] = sent.name[s] = streams[s].name;
        for (uint64_t quota = 2 << 20; quota <= SET * 2; quota *= 2) {
            const struct rates rates = run(&streams[s], quota);

            printf("%-12s %9u %10.3f %18.3f %14.3f %14.3f\n", streams[s].name,
                   (unsigned)(quota >> 20), rates.hit, rates.per_miss, rates.per_thousand,
                   rates.pages);
            hit.at[hit.points] = sent.at[sent.points] = (double)(quota >> 20);
            hit.value[s][hit.points++] = rates.hit;
            sent.value[s][sent.points++] = rates.per_thousand < 0.05 ? 0.05 : rates.per_thousand;
        }
    }
    bench_fh_plot(dir, "firehose-hits.svg", &hit);
    bench_fh_plot(dir, "firehose-messages.svg", &sent);
}
