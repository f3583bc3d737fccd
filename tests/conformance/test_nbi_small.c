/*
 * test_nbi_small.c - many small implicit puts and gets, which a conduit may coalesce: mixed sizes,
 * alignments and peers arrive whole and nothing around them changes; the source is free at once if
 * the call says so; after the wait every later get and handler sees them, whichever call or thread
 * started them; more puts than the network takes at a time, to a rank that does not poll; peers
 * that poll and compute by turns; puts that nobody waits for before the job ends. Ranks 1+.
 * Conduits all.
 * Source GASNet-EX specification 0.19, implicit operations.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum {
    SIZES = 130, /* 1 to so many bytes: on both sides of every limit of coalescing near 64 */
    STEP = 160,
    COLUMNS = 4,
    BLOCK = SIZES * STEP * COLUMNS, /* one initiator's part of a segment */
    WORDS = 64,
    MANY = 20000,
    THREADS = 4,
    H_LOOK = AQ_TEST_FREE,
    H_LOOKED
};

static aq_test_count_t looked;

/* --- mixed sizes to every peer --- */

/* The place of a put of size bytes by `from` in the segment of `to`; its alignment varies. */
static char *place(gex_Rank_t to, gex_Rank_t from, int size, int column)
{
    return (char *)aq_test_base(to) + (size_t)from * BLOCK
           + (size_t)((size - 1) * COLUMNS + column) * STEP + (size_t)((size * 7 + column) % 16);
}

static uint64_t seed_of(gex_Rank_t to, gex_Rank_t from, int size, int round)
{
    return (uint64_t)(((int)to * 64 + (int)from) * 256 + size) * 16 + (uint64_t)round;
}

/* All sizes to all ranks, interleaved. The source is overwritten after each put. */
static void puts_to_all(int column, int round)
{
    char src[SIZES];

    for (int size = 1; size <= SIZES; size++)
        for (gex_Rank_t k = 0; k < aq_test_n; k++) {
            const gex_Rank_t to = aq_test_peer(k);

            aq_test_fill(src, (size_t)size, seed_of(to, aq_test_me, size, round));
            AQ_CHECK_EQ(gex_RMA_PutNBI(aq_test_tm, to, place(to, aq_test_me, size, column), src,
                                       (size_t)size, GEX_EVENT_NOW, 0),
                        0);
            memset(src, 0x55, sizeof(src));
        }
}

/* What this rank has put is at its place, and the bytes around it are still 0. */
static void check_gets(int column, int round)
{
    char got[SIZES + 2];

    for (int size = 1; size <= SIZES; size++)
        for (gex_Rank_t k = 0; k < aq_test_n; k++) {
            const gex_Rank_t to = aq_test_peer(k);
            const char *at = place(to, aq_test_me, size, column);
            const size_t before = at == (char *)aq_test_base(to) ? 0 : 1;

            gex_RMA_GetBlocking(aq_test_tm, got, to, (void *)(uintptr_t)(at - before),
                                (size_t)size + before + 1, 0);
            AQ_CHECK(before == 0 || got[0] == 0);
            AQ_CHECK(
                aq_test_same(got + before, (size_t)size, seed_of(to, aq_test_me, size, round)));
            AQ_CHECK_EQ(got[before + (size_t)size], 0);
        }
}

static void mixed(void)
{
    rule("extended 6.4: small implicit puts of any size to any rank, then gets");
    puts_to_all(0, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    check_gets(0, 0);
    puts_to_all(0, 1); /* over the former ones, which are complete */
    gex_NBI_Wait(GEX_EC_ALL, 0);
    check_gets(0, 1);
    rule("extended 6.4: the same in an access region, beside puts outside of it");
    puts_to_all(1, 2);
    gex_NBI_BeginAccessRegion(0);
    puts_to_all(2, 3);
    aq_test_sync(gex_NBI_EndAccessRegion(0));
    check_gets(2, 3);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    check_gets(1, 2);
    aq_test_barrier();
}

/* --- gets --- */

/* All sizes from one rank, by implicit gets or with events, then what has come. */
static void gets_from(gex_Rank_t from, int column, int round, bool events)
{
    static char got[SIZES + 1][SIZES + 8];
    gex_Event_t event[SIZES];

    memset(got, 0x55, sizeof(got));
    for (int size = 1; size <= SIZES; size++) {
        char *at = place(from, aq_test_me, size, column);

        if (events)
            event[size - 1] = gex_RMA_GetNB(aq_test_tm, got[size], from, at, (size_t)size, 0);
        else
            gex_RMA_GetNBI(aq_test_tm, got[size], from, at, (size_t)size, 0);
    }
    if (events)
        gex_Event_WaitAll(event, SIZES, 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    for (int size = 1; size <= SIZES; size++) {
        AQ_CHECK(aq_test_same(got[size], (size_t)size, seed_of(from, aq_test_me, size, round)));
        AQ_CHECK_EQ(got[size][size], 0x55);
    }
}

/* Longer ones, beside short parts of the same bytes. */
static void long_gets_from(gex_Rank_t from)
{
    static const size_t sizes[] = { 255, 256, 257, 511, 512, 513, 1023, 1024, 1025 };
    enum { COUNT = sizeof(sizes) / sizeof(sizes[0]), PART = 5 };
    static char got[COUNT][1025], part[1025];
    char *base = (char *)aq_test_base(from) + (size_t)aq_test_me * BLOCK;

    for (size_t at = 0; at < sizeof(part); at += PART)
        gex_RMA_GetBlocking(aq_test_tm, part + at, from, base + at, PART, 0);
    for (int i = 0; i < COUNT; i++)
        gex_RMA_GetNBI(aq_test_tm, got[i], from, base, sizes[i], 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    for (int i = 0; i < COUNT; i++)
        AQ_CHECK(memcmp(got[i], part, sizes[i]) == 0);
}

/* After mixed(). */
static void gets(void)
{
    rule("extended 6.4: small implicit gets of any size from any rank, and gets with events");
    for (gex_Rank_t k = 0; k < aq_test_n; k++) {
        gets_from(aq_test_peer(k), 1, 2, false);
        gets_from(aq_test_peer(k), 2, 3, true);
        gets_from(aq_test_peer(k), 0, 1, false);
        long_gets_from(aq_test_peer(k));
    }
    aq_test_barrier();
}

/* --- ranks that poll and compute by turns --- */

static void turns(void)
{
    enum { ROUNDS = 6, OPS = 300 };
    const gex_Rank_t to = aq_test_peer(1);
    uint64_t *word = (uint64_t *)(void *)((char *)aq_test_base(to) + (size_t)aq_test_me * BLOCK);

    rule(
        "extended 6.2: small puts and gets of every kind while the peer stops polling and returns");
    for (int round = 0; round < ROUNDS; round++) {
        const double until = aq_test_clock() + 0.005 * (round % 3);

        aq_test_barrier();
        while (aq_test_me % 2 != 0 && aq_test_clock() < until)
            aq_test_yield();
        for (uint64_t i = 0; i < OPS; i++) {
            uint64_t now = (uint64_t)round * OPS + i, next = now + 1, got = 0;

            gex_RMA_PutBlocking(aq_test_tm, to, word, &now, sizeof(now), 0);
            AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, to, word, sizeof(now), 0), now);
            aq_test_sync(
                gex_RMA_PutNB(aq_test_tm, to, word, &next, sizeof(next), GEX_EVENT_NOW, 0));
            gex_RMA_GetNBI(aq_test_tm, &got, to, word, sizeof(got), 0);
            gex_NBI_Wait(GEX_EC_GET, 0);
            AQ_CHECK_EQ(got, next);
        }
    }
    aq_test_barrier();
}

/* --- what a handler sees --- */

/* The first of `count` words is at `from`'s part of this segment; each is seed + i. */
static void h_look(gex_Token_t token, gex_AM_Arg_t from, gex_AM_Arg_t count, gex_AM_Arg_t seed)
{
    const uint64_t *word =
        (uint64_t *)(void *)((char *)aq_test_base(aq_test_me) + (size_t)from * BLOCK);

    for (int i = 0; i < count; i++)
        AQ_CHECK_EQ(word[i], (uint64_t)(seed + i));
    gex_AM_ReplyShort0(token, H_LOOKED, 0);
}

static void h_looked(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&looked, 1);
}

static gex_AM_Entry_t table[] = { AQ_ENTRY(H_LOOK, h_look, AQ_SQ, 3),
                                  AQ_ENTRY(H_LOOKED, h_looked, AQ_SP, 0) };

static void words_to(gex_Rank_t to, int count, int seed)
{
    uint64_t *word = (uint64_t *)(void *)((char *)aq_test_base(to) + (size_t)aq_test_me * BLOCK);

    for (int i = 0; i < count; i++)
        gex_RMA_PutNBIVal(aq_test_tm, to, word + i, (gex_RMA_Value_t)(seed + i), 8, 0);
}

/* For each number of words: a handler that runs after the wait sees all of them. */
static void seen_by_handlers(void)
{
    int asked = 0;

    rule("extended 6.4: a completed implicit put is visible to a handler that runs later");
    for (int count = 1; count <= WORDS; count++)
        for (gex_Rank_t k = 0; k < aq_test_n; k++) {
            const gex_Rank_t to = aq_test_peer(k);

            words_to(to, count, count * 1000);
            gex_NBI_Wait(GEX_EC_PUT, 0);
            gex_AM_RequestShort3(aq_test_tm, to, H_LOOK, 0, (gex_AM_Arg_t)aq_test_me, count,
                                 count * 1000);
            aq_test_wait(&looked, ++asked);
        }
    aq_test_barrier();
}

/* --- more than the network takes at a time, to a rank that does not poll --- */

static void many(void)
{
    const gex_Rank_t to = aq_test_peer(1);
    const int count = aq_test_quick ? MANY / 4 : MANY;
    uint64_t *word = (uint64_t *)(void *)((char *)aq_test_base(to) + (size_t)aq_test_me * BLOCK);
    const double until = aq_test_clock() + 0.1;

    rule("extended 6.4: many small implicit puts to a rank that makes no calls for a while");
    aq_test_barrier();
    while (aq_test_me % 2 != 0 && aq_test_clock() < until)
        aq_test_yield();
    for (int i = 0; i < count; i++)
        gex_RMA_PutNBIVal(aq_test_tm, to, word + i % WORDS, (gex_RMA_Value_t)(i % WORDS), 8, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    for (int i = 0; i < WORDS; i++)
        AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, to, word + i, 8, 0), (uint64_t)i);
    aq_test_barrier();
}

/* --- several threads --- */

#if GASNET_PAR
/* Threads put words beside each other; each waits for its own and reads them back. */
static void *worker(void *arg)
{
    const int me = (int)(intptr_t)arg;
    const gex_Rank_t to = aq_test_peer(1);
    uint64_t *word = (uint64_t *)(void *)((char *)aq_test_base(to) + (size_t)aq_test_me * BLOCK);
    const int rounds = aq_test_quick ? 50 : 500;

    for (int round = 0; round < rounds; round++) {
        for (int i = me; i < WORDS; i += THREADS)
            gex_RMA_PutNBIVal(aq_test_tm, to, word + i, (gex_RMA_Value_t)(round * 100 + i), 8, 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
        for (int i = me; i < WORDS; i += THREADS)
            AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, to, word + i, 8, 0),
                        (uint64_t)(round * 100 + i));
    }
    return NULL;
}

static void threads(void)
{
    rule("extended 6.4: each of several threads waits for its own small implicit puts");
    aq_test_threads(THREADS, worker);
    aq_test_barrier();
}
#endif

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, sizeof(table) / sizeof(table[0]));
    aq_test_segment((size_t)aq_test_n * BLOCK);
    memset(aq_test_base(aq_test_me), 0, (size_t)aq_test_n * BLOCK);
    aq_test_barrier();
    mixed();
    gets();
    turns();
    seen_by_handlers();
    many();
#if GASNET_PAR
    threads();
#endif
    words_to(aq_test_peer(1), WORDS, 0); /* nobody waits for these: the job ends with them */
    return aq_test_finish();
}
