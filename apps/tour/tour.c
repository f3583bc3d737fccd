/*
 * tour.c - a walk through active messages, puts and gets; every answer is checked.
 *
 * Each step prints one line on rank 0: what it does and whether all ranks got the right answers. It
 * runs on any number of ranks; four are best. Exit code 0, or 1 if any answer was wrong.
 *
 * Owns      a segment with one slot for each rank: only rank s writes slot s of this rank's
 *           segment, so that steps need no locks; behind the slots, one counter for each rank
 * Threads   one; handlers run inside library calls of that thread
 * Uses      gasnetex.h only
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnetex.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_BYTES  ((size_t)64 * 1024)
#define BLOCK_WORDS ((size_t)2048)
#define MEDIUM_MAX  ((size_t)4096) /* the longest payload the medium step sends */
#define REPLY_MAX   ((size_t)256)  /* and the longest answer to it */

enum {
    H_RING = GEX_AM_INDEX_BASE,
    H_RING_ACK,
    H_MEDIUM,
    H_MEDIUM_REPLY,
    H_DELIVERY,
    H_DELIVERY_BACK,
    H_ADDRESS
};

static gex_TM_t team;
static gex_Rank_t me, ranks, left, right;
static char *base;       /* of this rank's segment */
static char **peer_base; /* [ranks]: of every rank's segment, in its owner's address space */
static uint32_t buffer[BLOCK_WORDS], copy[BLOCK_WORDS];
static int wrong; /* wrong answers of this step on this rank */

/* ---- tools -------------------------------------------------------------------------- */

/* Counts a wrong answer, and prints which one. */
static void expect(bool right_answer, const char *what)
{
    if (right_answer)
        return;
    wrong++;
    if (wrong <= 5)
        fprintf(stderr, "tour: rank %" PRIu32 ": WRONG: %s\n", me, what);
}

/* A pattern that differs from rank to rank and from step to step. */
static uint32_t pattern(uint32_t seed, size_t i)
{
    uint32_t x = (seed + 1) * UINT32_C(2654435761) + (uint32_t)i * UINT32_C(40503);

    return x ^ x >> 15;
}

static void fill(uint32_t *words, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++)
        words[i] = pattern(seed, i);
}

static bool is_filled(const uint32_t *words, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++)
        if (words[i] != pattern(seed, i))
            return false;
    return true;
}

/* Returns an FNV-1a checksum, which detects a lost, changed or swapped byte. */
static uint32_t checksum(const void *data, size_t n)
{
    const unsigned char *bytes = data;
    uint32_t sum = UINT32_C(2166136261);

    for (size_t i = 0; i < n; i++)
        sum = (sum ^ bytes[i]) * UINT32_C(16777619);
    return sum;
}

/* Returns this rank's slot in the segment of a rank, as an address at that rank. */
static uint32_t *my_slot_at(gex_Rank_t rank)
{
    return (uint32_t *)(peer_base[rank] + me * SLOT_BYTES);
}

/* Returns the slot that a rank writes in this rank's segment. */
static uint32_t *slot_of(gex_Rank_t rank)
{
    return (uint32_t *)(base + rank * SLOT_BYTES);
}

static void barrier(void)
{
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
}

/* Ends a step. Each rank puts its number of wrong answers to rank 0, and reads those of all ranks.
 * Rank 0 prints the text. Returns true on all ranks if no answer was wrong. */
static bool finish_step(const char *name, const char *format, ...)
{
    uint32_t *counters = (uint32_t *)(peer_base[0] + ranks * SLOT_BYTES);
    uint32_t sum = 0;
    va_list args;

    gex_RMA_PutBlockingVal(team, 0, counters + me, (gex_RMA_Value_t)wrong, sizeof(*counters), 0);
    barrier();
    for (gex_Rank_t r = 0; r < ranks; r++)
        sum += (uint32_t)gex_RMA_GetBlockingVal(team, 0, counters + r, sizeof(*counters), 0);
    barrier();
    if (me == 0) {
        char text[120];

        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        printf("  %-14s %-72s %s\n", name, text, sum == 0 ? "ok" : "WRONG");
        fflush(stdout);
    }
    wrong = 0;
    return sum == 0;
}

/* ---- step 1: a ring of short messages ----------------------------------------------- */

static bool ring_arrived, ring_acked;
static uint32_t ring_hops, ring_sum;

static void on_ring(gex_Token_t token, gex_AM_Arg_t hops, gex_AM_Arg_t sum)
{
    ring_hops = (uint32_t)hops;
    ring_sum = (uint32_t)sum;
    ring_arrived = true;
    gex_AM_ReplyShort1(token, H_RING_ACK, 0, hops); /* to the sender of the request */
}

static void on_ring_ack(gex_Token_t token, gex_AM_Arg_t hops)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    expect(info.gex_srcrank == right, "the acknowledgement is from my right neighbour");
    expect(hops >= 1 && (uint32_t)hops <= ranks, "the acknowledgement names a hop of the ring");
    ring_acked = true;
}

/* Handlers may only reply, so the rank's ordinary code sends the next hop. */
static bool step_ring(void)
{
    if (me == 0)
        gex_AM_RequestShort2(team, right, H_RING, 0, 1, 0);
    GASNET_BLOCKUNTIL(ring_arrived);
    if (me != 0)
        gex_AM_RequestShort2(team, right, H_RING, 0, ring_hops + 1, ring_sum + me);
    GASNET_BLOCKUNTIL(ring_acked);

    if (me == 0) {
        expect(ring_hops == ranks, "the ring has as many hops as ranks");
        expect(ring_sum == ranks * (ranks - 1) / 2, "every rank has added its number");
    } else
        expect(ring_hops == me, "the message reaches rank r in hop r");
    return finish_step("ring",
                       "short message round the ranks, each adds its number: %" PRIu32
                       " hops, sum %" PRIu32,
                       ring_hops, ring_sum);
}

/* ---- step 2: medium messages, payload and answer ------------------------------------- */

static uint32_t messages, message_bytes, replies;

static void on_medium(gex_Token_t token, void *payload, size_t n, gex_AM_Arg_t sum)
{
    unsigned char *bytes = payload; /* the library's buffer, valid while the handler runs */
    size_t reply = n < REPLY_MAX ? n : REPLY_MAX;

    expect(checksum(payload, n) == (uint32_t)sum, "the payload has its sender's checksum");
    messages++;
    message_bytes += (uint32_t)n;
    for (size_t i = 0; i < reply; i++)
        bytes[i] ^= 0xFF;
    gex_AM_ReplyMedium1(token, H_MEDIUM_REPLY, bytes, reply, GEX_EVENT_NOW, 0, n);
}

static void on_medium_reply(gex_Token_t token, void *payload, size_t n, gex_AM_Arg_t asked)
{
    const unsigned char *bytes = payload, *sent = (const unsigned char *)buffer;
    bool inverted = true;

    (void)token;
    expect(n == ((size_t)asked < REPLY_MAX ? (size_t)asked : REPLY_MAX),
           "the answer is as long as it should be");
    for (size_t i = 0; i < n; i++)
        inverted = inverted && (bytes[i] ^ sent[i]) == 0xFF;
    expect(inverted, "the answer is the payload with every bit inverted");
    replies++;
}

static bool step_medium(void)
{
    const size_t sizes[] = { 0, 1, 13, 512, MEDIUM_MAX };
    const uint32_t count = sizeof(sizes) / sizeof(sizes[0]);
    size_t max = gex_AM_LUBRequestMedium();
    gex_Event_t source_free;

    fill(buffer, BLOCK_WORDS, me);
    for (gex_Rank_t r = 0; r < ranks; r++)
        for (uint32_t i = 0; i < count; i++) {
            size_t n = sizes[i] < max ? sizes[i] : max;

            gex_AM_RequestMedium1(team, r, H_MEDIUM, buffer, n, &source_free, 0,
                                  checksum(buffer, n));
            gex_Event_Wait(source_free); /* the buffer may be used again */
        }
    GASNET_BLOCKUNTIL(replies == count * ranks);
    GASNET_BLOCKUNTIL(messages == count * ranks);
    return finish_step("medium",
                       "medium messages, 0 to %zu bytes, to all ranks and back: %" PRIu32 " bytes",
                       MEDIUM_MAX < max ? MEDIUM_MAX : max, message_bytes);
}

/* ---- step 3: long messages, straight into the segment -------------------------------- */

static uint32_t deliveries, deliveries_back;

static void on_delivery(gex_Token_t token, void *payload, size_t n, gex_AM_Arg_t words)
{
    uint32_t *data = payload;
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    gex_Rank_t from = info.gex_srcrank;

    expect(data == slot_of(from), "the payload lies where its sender put it");
    expect(n == (size_t)words * sizeof(*data), "the payload has the right length");
    expect(is_filled(data, (size_t)words, 100 + from), "the payload is in place already");
    for (size_t i = 0; i < (size_t)words; i++)
        data[i]++;
    deliveries++;
    /* The answer goes to the second half of this rank's slot in the sender's segment. */
    gex_AM_ReplyLong1(token, H_DELIVERY_BACK, data, n, my_slot_at(from) + BLOCK_WORDS,
                      GEX_EVENT_NOW, 0, words);
}

static void on_delivery_back(gex_Token_t token, void *payload, size_t n, gex_AM_Arg_t words)
{
    const uint32_t *data = payload;
    gex_Token_Info_t info;
    bool added = n == (size_t)words * sizeof(*data);

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    expect(data == slot_of(info.gex_srcrank) + BLOCK_WORDS, "the answer is in its place");
    for (size_t i = 0; added && i < (size_t)words; i++)
        added = data[i] == pattern(100 + me, i) + 1;
    expect(added, "every word has been counted up");
    deliveries_back++;
}

static bool step_deliveries(void)
{
    const size_t max = gex_AM_LUBRequestLong(), reply_max = gex_AM_LUBReplyLong();
    size_t words = BLOCK_WORDS;

    if (words * sizeof(*buffer) > max)
        words = max / sizeof(*buffer);
    if (words * sizeof(*buffer) > reply_max)
        words = reply_max / sizeof(*buffer);
    fill(buffer, words, 100 + me);
    for (gex_Rank_t r = 0; r < ranks; r++)
        gex_AM_RequestLong1(team, r, H_DELIVERY, buffer, words * sizeof(*buffer), my_slot_at(r),
                            GEX_EVENT_GROUP, 0, words);
    gex_NBI_Wait(GEX_EC_AM, 0); /* all messages have left the buffer */
    GASNET_BLOCKUNTIL(deliveries == ranks);
    GASNET_BLOCKUNTIL(deliveries_back == ranks);
    return finish_step("deliveries",
                       "long messages of %zu words into every segment, counted up "
                       "and sent back",
                       words);
}

/* ---- step 4: blocking put and get ----------------------------------------------------- */

static bool step_blocking(void)
{
    fill(buffer, BLOCK_WORDS, 200 + me);
    gex_RMA_PutBlocking(team, right, my_slot_at(right), buffer, sizeof(buffer), 0);
    barrier();
    expect(is_filled(slot_of(left), BLOCK_WORDS, 200 + left), "my left neighbour's put is here");

    memset(copy, 0, sizeof(copy));
    gex_RMA_GetBlocking(team, copy, right, my_slot_at(right), sizeof(copy), 0);
    expect(is_filled(copy, BLOCK_WORDS, 200 + me), "the get brings back what I put");

    /* An odd length from an odd address. */
    memset(copy, 0, sizeof(copy));
    gex_RMA_GetBlocking(team, (char *)copy + 1, right, (char *)my_slot_at(right) + 3, 1001, 0);
    expect(memcmp((char *)copy + 1, (char *)buffer + 3, 1001) == 0, "unaligned bytes arrive");
    expect(((char *)copy)[0] == 0 && ((char *)copy)[1002] == 0, "and nothing beside them");
    return finish_step("put and get", "blocking: %zu bytes to the right neighbour and back",
                       sizeof(buffer));
}

/* ---- step 5: explicit events and leaves ----------------------------------------------- */

static bool step_events(void)
{
    gex_Event_t done[2], source_free;

    fill(buffer, BLOCK_WORDS, 300 + me);
    done[0] =
        gex_RMA_PutNB(team, right, my_slot_at(right), buffer, sizeof(buffer), &source_free, 0);
    gex_Event_Wait(source_free); /* the leaf: the buffer may be reused, the put may be in flight */
    fill(buffer, BLOCK_WORDS, 301 + me);
    done[1] = gex_RMA_PutNB(team, right, my_slot_at(right) + BLOCK_WORDS, buffer, sizeof(buffer),
                            GEX_EVENT_DEFER, 0);
    gex_Event_WaitAll(done, 2, 0); /* the roots: both transfers are complete */
    expect(done[0] == GEX_EVENT_INVALID && done[1] == GEX_EVENT_INVALID, "WaitAll retires all");

    gex_Event_t get = gex_RMA_GetNB(team, copy, right, my_slot_at(right), sizeof(copy), 0);

    while (gex_Event_Test(get) != GASNET_OK) /* a test makes no progress; polling does */
        gasnet_AMPoll();
    expect(is_filled(copy, BLOCK_WORDS, 300 + me), "the first put holds the old values");
    gex_RMA_GetBlocking(team, copy, right, my_slot_at(right) + BLOCK_WORDS, sizeof(copy), 0);
    expect(is_filled(copy, BLOCK_WORDS, 301 + me), "the second put holds the new ones");
    barrier();
    expect(is_filled(slot_of(left), BLOCK_WORDS, 300 + left), "both are in my segment: first");
    expect(is_filled(slot_of(left) + BLOCK_WORDS, BLOCK_WORDS, 301 + left), "second");
    return finish_step("events", "non-blocking puts; the buffer reused after the leaf event");
}

/* ---- step 6: implicit operations ------------------------------------------------------ */

static bool step_implicit(void)
{
    const size_t frag = 16;
    bool right_words = true;

    fill(buffer, BLOCK_WORDS, 400 + me);
    for (gex_Rank_t r = 0; r < ranks; r++)
        for (size_t at = 0; at < BLOCK_WORDS; at += frag)
            gex_RMA_PutNBI(team, r, my_slot_at(r) + at, buffer + at, frag * sizeof(*buffer),
                           GEX_EVENT_DEFER, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0); /* all puts at once */
    barrier();
    for (gex_Rank_t r = 0; r < ranks; r++)
        expect(is_filled(slot_of(r), BLOCK_WORDS, 400 + r), "every rank's puts are here");

    /* Word r of the copy from the slot of rank r in the segment of rank r. */
    for (gex_Rank_t r = 0; r < ranks && r < BLOCK_WORDS; r++)
        gex_RMA_GetNBI(team, copy + r, r, peer_base[r] + r * SLOT_BYTES, sizeof(*copy), 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    for (gex_Rank_t r = 0; r < ranks && r < BLOCK_WORDS; r++)
        right_words = right_words && copy[r] == pattern(400 + r, 0);
    expect(right_words, "a word from each rank");
    return finish_step("implicit", "%zu puts to every rank, one wait; a get from every rank",
                       BLOCK_WORDS / frag);
}

/* ---- step 7: values --------------------------------------------------------------------- */

static bool step_values(void)
{
    const gex_RMA_Value_t value = UINT64_C(0xF1E2D3C4B5A69788) ^ me;
    char *slot = (char *)my_slot_at(right);

    for (size_t n = 1; n <= SIZEOF_GEX_RMA_VALUE_T; n++) {
        gex_RMA_Value_t low = n == 8 ? value : value & ((UINT64_C(1) << 8 * n) - 1);
        char *blocking = slot + 64 * n, *nb = blocking + 16, *nbi = blocking + 32;

        gex_RMA_PutBlockingVal(team, right, blocking, value, n, 0);
        gex_Event_Wait(gex_RMA_PutNBVal(team, right, nb, value, n, 0));
        gex_RMA_PutNBIVal(team, right, nbi, value, n, 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
        expect(gex_RMA_GetBlockingVal(team, right, blocking, n, 0) == low, "a blocking value");
        expect(gex_RMA_GetBlockingVal(team, right, nb, n, 0) == low, "a value with an event");
        expect(gex_RMA_GetBlockingVal(team, right, nbi, n, 0) == low, "an implicit value");
    }
    barrier();

    uint64_t found;

    memcpy(&found, (char *)slot_of(left) + 64 * 8, sizeof(found));
    expect(found == (UINT64_C(0xF1E2D3C4B5A69788) ^ left), "the value as an integer in memory");
    return finish_step("values", "numbers of 1 to %d bytes put and got without a buffer",
                       SIZEOF_GEX_RMA_VALUE_T);
}

/* ---- step 8: an access region ------------------------------------------------------------ */

static bool step_region(void)
{
    gex_Event_t all;

    fill(buffer, BLOCK_WORDS, 500 + me);
    gex_NBI_BeginAccessRegion(0);
    for (gex_Rank_t r = 0; r < ranks; r++)
        gex_RMA_PutNBI(team, r, my_slot_at(r), buffer, sizeof(buffer), GEX_EVENT_DEFER, 0);
    gex_RMA_PutNBIVal(team, right, my_slot_at(right) + BLOCK_WORDS, 4711, sizeof(*buffer), 0);
    all = gex_NBI_EndAccessRegion(0);
    expect(gex_NBI_Test(GEX_EC_ALL, 0) == GASNET_OK, "nothing is left outside the region");
    gex_Event_Wait(all); /* one event stands for all operations */
    barrier();
    for (gex_Rank_t r = 0; r < ranks; r++)
        expect(is_filled(slot_of(r), BLOCK_WORDS, 500 + r), "every rank's region is here");
    expect(slot_of(left)[BLOCK_WORDS] == 4711, "and the value that came with it");
    return finish_step("region", "puts to all ranks gathered into one event");
}

/* ---- step 9: barriers ---------------------------------------------------------------------- */

/* Before each barrier every rank puts the round to every other rank; after it, all puts must have
 * arrived. */
static bool step_barriers(void)
{
    enum { ROUNDS = 20 };

    for (uint32_t round = 1; round <= ROUNDS; round++) {
        for (gex_Rank_t r = 0; r < ranks; r++)
            gex_RMA_PutNBIVal(team, r, my_slot_at(r), round, sizeof(round), 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);

        gex_Event_t everybody = gex_Coll_BarrierNB(team, 0);

        while (gex_Event_Test(everybody) != GASNET_OK) /* other work is possible here */
            gasnet_AMPoll();
        for (gex_Rank_t r = 0; r < ranks; r++)
            expect(slot_of(r)[0] == round, "nobody leaves a barrier before all have come");
        barrier(); /* all ranks have read before any rank writes the next round */
    }
    return finish_step("barriers", "%d times: nobody passes before everybody has come", ROUNDS);
}

/* ---- start and end -------------------------------------------------------------------------- */

static gex_Rank_t addresses;

static void on_address(gex_Token_t token, void *payload, size_t n, gex_AM_Arg_t from)
{
    (void)token;
    memcpy(&peer_base[from], payload, n);
    addresses++;
}

static _Noreturn void stop(const char *why)
{
    fprintf(stderr, "tour: %s\n", why);
    gasnet_exit(1);
}

/* Makes this rank's segment; gets the base addresses of all ranks' segments. */
static void make_segment(void)
{
    size_t bytes = ranks * (SLOT_BYTES + sizeof(uint32_t)), page = GASNET_PAGESIZE;
    gex_Segment_t segment;

    bytes = (bytes + page - 1) / page * page;
    peer_base = calloc(ranks, sizeof(*peer_base));
    if (peer_base == NULL)
        stop("no memory");
    if (gex_Segment_Attach(&segment, team, bytes) != GASNET_OK)
        stop("no segment");
#if GASNET_SEGMENT_EVERYTHING
    base = aligned_alloc(page, bytes); /* any memory is legal */
#else
    base = gex_Segment_QueryAddr(segment);
#endif
    if (base == NULL)
        stop("no segment");
    memset(base, 0, bytes);
    for (gex_Rank_t r = 0; r < ranks; r++)
        gex_AM_RequestMedium1(team, r, H_ADDRESS, &base, sizeof(base), GEX_EVENT_NOW, 0, me);
    GASNET_BLOCKUNTIL(addresses == ranks);
}

/* In a build where segments have bounds, the library reports the same bounds. */
static bool step_segments(void)
{
#if !GASNET_SEGMENT_EVERYTHING
    for (gex_Rank_t r = 0; r < ranks; r++) {
        void *owner = NULL;
        uintptr_t size = 0;

        expect(gex_Segment_QueryBound(team, r, &owner, NULL, &size) == 0 && owner == peer_base[r]
                   && size >= ranks * SLOT_BYTES,
               "the library and the owner agree where a segment is");
    }
#endif
    return finish_step("segments", "%" PRIu32 " of %zu KiB, each writable by all ranks", ranks,
                       (ranks * SLOT_BYTES) >> 10);
}

static void start(int *argc, char ***argv)
{
#define ENTRY(index, fn, nargs, flags) { index, (gex_AM_Fn_t)fn, flags, nargs, NULL, #fn }
    gex_AM_Entry_t handlers[] = {
        ENTRY(H_RING, on_ring, 2, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST),
        ENTRY(H_RING_ACK, on_ring_ack, 1, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY),
        ENTRY(H_MEDIUM, on_medium, 1, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST),
        ENTRY(H_MEDIUM_REPLY, on_medium_reply, 1, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY),
        ENTRY(H_DELIVERY, on_delivery, 1, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST),
        ENTRY(H_DELIVERY_BACK, on_delivery_back, 1, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY),
        ENTRY(H_ADDRESS, on_address, 1, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST),
    };
#undef ENTRY
    gex_Client_t client;
    gex_EP_t endpoint;

    if (gex_Client_Init(&client, &endpoint, &team, "TOUR", argc, argv, 0) != GASNET_OK
        || gex_EP_RegisterHandlers(endpoint, handlers, sizeof(handlers) / sizeof(handlers[0]))
               != GASNET_OK)
        stop("cannot start");
    me = gex_TM_QueryRank(team);
    ranks = gex_TM_QuerySize(team);
    right = (me + 1) % ranks;
    left = (me + ranks - 1) % ranks;
    make_segment();
}

int main(int argc, char **argv)
{
    static bool (*const steps[])(void) = {
        step_segments, step_ring,     step_medium, step_deliveries, step_blocking,
        step_events,   step_implicit, step_values, step_region,     step_barriers,
    };
    const int count = sizeof(steps) / sizeof(steps[0]);
    int failed = 0;

    start(&argc, &argv);
    if (me == 0)
        printf("A tour of active messages, puts and gets on %" PRIu32 " rank%s\n", ranks,
               ranks == 1 ? "" : "s");
    for (int i = 0; i < count; i++)
        failed += steps[i]() ? 0 : 1;
    if (me == 0 && failed == 0)
        printf("tour: all %d steps gave the right answers\n", count);
    else if (me == 0)
        printf("tour: %d of %d steps gave WRONG answers\n", failed, count);
    fflush(stdout);
    barrier();
    gasnet_exit(failed == 0 ? 0 : 1);
}
