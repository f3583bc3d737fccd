/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * where.c - prints facts about a job on several hosts; hosts.pl runs it, and knows the right ones.
 * Usage     where place         "place RANK SIZE HOSTNAME NBRHDS NBRHD HOSTS HOST HOST_SIZE HOST_ME
 *                               LOCAL,..."
 *           where lines K       K numbered lines on stdout and K on stderr, of different lengths
 *           where cat           rank 0 copies its stdin to stdout; others print how many bytes they
 *                               read
 *           where env NAME...   "env RANK NAME libc-value gasnet-value", "-" where it is not set
 *           where args WORD...  "arg RANK NUMBER <WORD>"
 *           where traffic       for ever: puts to every rank, checked by its owner
 *           where secret        the same; rank 0 also prints "secret KEY"
 * Uses      the public interface; for secret the job's key from other/spawn/aq_spawn.h
 * Prints    "ready RANK PID HOSTNAME" in traffic, once all ranks are there
 * Promise   exit status 0 if all went well; traffic ends from outside
 */
#include <gasnetex.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const uint8_t *aq_spawn_key(void); /* not for clients: their headers do not have it */

#define SEGMENT (1 << 20)
#define WORDS   4096 /* 32 KB a put: several packets */

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static gex_Rank_t me, ranks;
static char hostname[256];

static void barrier(void)
{
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
}

static int place(void)
{
    gex_RankInfo_t *local_side, *host;
    gex_Rank_t local_n, host_n, host_me, nbrhds, nbrhd, hosts, index;
    char line[4096];
    int at;

    gex_System_QueryNbrhdInfo(&local_side, &local_n, NULL);
    gex_System_QueryHostInfo(&host, &host_n, &host_me);
    gex_System_QueryMyPosition(&nbrhds, &nbrhd, &hosts, &index);
    at = snprintf(line, sizeof(line), "place %u %u %s %u %u %u %u %u %u ", (unsigned)me,
                  (unsigned)ranks, hostname, (unsigned)nbrhds, (unsigned)nbrhd, (unsigned)hosts,
                  (unsigned)index, (unsigned)host_n, (unsigned)host_me);
    for (gex_Rank_t i = 0; i < local_n && at < (int)sizeof(line); i++)
        at += snprintf(line + at, sizeof(line) - (size_t)at, "%s%u", i > 0 ? "," : "",
                       (unsigned)local_side[i].gex_jobrank);
    puts(line);
    return 0;
}

static int lines(int count)
{
    static const char filler[] = "abcdefghijklmnopqrstuvwxyz"
                                 "abcdefghijklmnopqrstuvwxyz"
                                 "abcdefghijklmnopqrstuvwxyz";

    for (int i = 0; i < count; i++) {
        printf("out %u %d %.*s.\n", (unsigned)me, i, (i * 7 + (int)me) % 70, filler);
        fprintf(stderr, "err %u %d %.*s.\n", (unsigned)me, i, (i * 5 + (int)me) % 70, filler);
    }
    return 0;
}

static int cat(void)
{
    char buf[8192];
    size_t got, total = 0;

    while ((got = fread(buf, 1, sizeof(buf), stdin)) > 0) {
        total += got;
        if (me == 0)
            fwrite(buf, 1, got, stdout);
    }
    if (me != 0)
        printf("rank %u read %zu bytes\n", (unsigned)me, total);
    return 0;
}

static int env(char **names)
{
    for (; *names != NULL; names++) {
        const char *libc = getenv(*names), *gasnet = gasnet_getenv(*names);

        printf("env %u %s %s %s\n", (unsigned)me, *names, libc != NULL ? libc : "-",
               gasnet != NULL ? gasnet : "-");
    }
    return 0;
}

static int args(char **words)
{
    for (int i = 0; words[i] != NULL; i++)
        printf("arg %u %d <%s>\n", (unsigned)me, i, words[i]);
    return 0;
}

/* Every rank fills its page in every rank's segment, round after round; the barrier completes the
 * puts. */
static int traffic(void)
{
    static uint64_t page[WORDS];
    uint64_t *ours = gex_Segment_QueryAddr(segment);
    void *remote;

    if ((size_t)ranks * sizeof(page) > SEGMENT)
        return 3;
    barrier();
    printf("ready %u %ld %s\n", (unsigned)me, (long)getpid(), hostname);
    fflush(stdout);
    for (uint64_t round = 1;; round++) {
        for (int i = 0; i < WORDS; i++)
            page[i] = round * 1000003 + me;
        for (gex_Rank_t to = 0; to < ranks; to++) {
            gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, to, &remote, NULL, NULL, 0));
            gex_RMA_PutNBI(tm, to, (uint64_t *)remote + (size_t)me * WORDS, page, sizeof(page),
                           GEX_EVENT_DEFER, 0);
        }
        gex_NBI_Wait(GEX_EC_ALL, 0);
        barrier();
        for (gex_Rank_t from = 0; from < ranks; from++) {
            for (int i = 0; i < WORDS; i++) {
                if (ours[(size_t)from * WORDS + (size_t)i] != round * 1000003 + from) {
                    printf("DAMAGED rank %u round %llu from %u word %d\n", (unsigned)me,
                           (unsigned long long)round, (unsigned)from, i);
                    gasnet_exit(9);
                }
            }
        }
        barrier();
    }
}

static int secret(void)
{
    const uint8_t *key = aq_spawn_key();

    if (me == 0) {
        printf("secret ");
        for (int i = 0; i < 32; i++)
            printf("%02x", key[i]);
        putchar('\n');
    }
    return traffic();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "place";
    int rc = 2;

    if (gex_Client_Init(&client, &ep, &tm, "where", &argc, &argv, 0) != GASNET_OK)
        return 1;
    if (gex_Segment_Attach(&segment, tm, SEGMENT) != GASNET_OK)
        return 1;
    me = gex_TM_QueryRank(tm);
    ranks = gex_TM_QuerySize(tm);
    gethostname(hostname, sizeof(hostname) - 1);

    if (strcmp(what, "place") == 0)
        rc = place();
    else if (strcmp(what, "lines") == 0)
        rc = lines(argc > 2 ? atoi(argv[2]) : 100);
    else if (strcmp(what, "cat") == 0)
        rc = cat();
    else if (strcmp(what, "env") == 0)
        rc = env(argv + 2);
    else if (strcmp(what, "args") == 0)
        rc = args(argv + 2);
    else if (strcmp(what, "traffic") == 0)
        rc = traffic();
    else if (strcmp(what, "secret") == 0)
        rc = secret();
    fflush(stdout);
    barrier();
    gasnet_exit(rc);
    return rc;
}
