/*
 * test_nbi_region.c - access regions: members of every kind, separation from the implicit set on
 * both sides, empty and huge regions, leaf of a region, NB operations unaffected, members that are
 * declined. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, access regions.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_ratomic.h"
#include "gasnet_vis.h"

#include "aq_test.h"

enum {
    LEN = 2000,
    SLOTS = 12,
    HUGE_COUNT = 20000,
    TRIES = 3000,
    H_M = AQ_TEST_FREE,
    H_COUNT,
    H_COUNTED
};

static char out[SLOTS][LEN], in[SLOTS][LEN];
static aq_test_count_t arrived;

static void h_m(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token;
    AQ_CHECK(nbytes == 300 && aq_test_same(buf, nbytes, 4));
    atomic_fetch_add(&arrived, 1);
}

static aq_test_count_t counted; /* answers to messages that were accepted */

static void h_count(gex_Token_t token, void *buf, size_t nbytes)
{
    AQ_CHECK(nbytes == 300 && aq_test_same(buf, nbytes, 4));
    gex_AM_ReplyShort0(token, H_COUNTED, 0);
}

static void h_counted(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&counted, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_M, h_m, AQ_MQ, 0),
    AQ_ENTRY(H_COUNT, h_count, AQ_MQ, 0),
    AQ_ENTRY(H_COUNTED, h_counted, AQ_SP, 0),
};

static char *place(gex_Rank_t to, int i)
{
    return (char *)aq_test_base(to) + (size_t)i * LEN;
}

static void put(gex_Rank_t to, int slot, gex_Event_t *lc)
{
    aq_test_fill(out[slot], LEN, (uint64_t)slot);
    gex_RMA_PutNBI(aq_test_tm, to, place(to, slot), out[slot], LEN, lc, 0);
}

static void check_slots(gex_Rank_t to, int from, int end)
{
    int i;

    for (i = from; i < end; i++) {
        gex_RMA_GetBlocking(aq_test_tm, in[i], to, place(to, i), LEN, 0);
        AQ_CHECK(aq_test_same(in[i], LEN, (uint64_t)i));
    }
}

static void clear(gex_Rank_t to)
{
    memset(out, 0, sizeof(out));
    gex_RMA_PutBlocking(aq_test_tm, to, place(to, 0), out, sizeof(out), 0);
}

static void mixed(gex_Rank_t to, int round)
{
    gex_Event_t nb, region;
    char am[300];

    rule("extended 5: a region collects puts, gets, value puts and AM GROUP requests");
    clear(to);
    aq_test_fill(am, sizeof(am), 4);
    put(to, 0, GEX_EVENT_DEFER); /* before: belongs to the implicit set */
    gex_NBI_BeginAccessRegion(0);
    put(to, 1, GEX_EVENT_NOW);
    put(to, 2, GEX_EVENT_DEFER);
    put(to, 3, GEX_EVENT_GROUP);
    gex_RMA_PutNBIVal(aq_test_tm, to, place(to, SLOTS), 0x1122334455667788u, 8, 0);
    gex_AM_RequestMedium0(aq_test_tm, to, H_M, am, sizeof(am), GEX_EVENT_GROUP, 0);
    aq_test_fill(out[4], LEN, 4);
    nb = gex_RMA_PutNB(aq_test_tm, to, place(to, 4), out[4], LEN, GEX_EVENT_DEFER, 0);
    region = gex_NBI_EndAccessRegion(0);
    AQ_CHECK(region != GEX_EVENT_NO_OP);
    put(to, 5, GEX_EVENT_DEFER); /* after: implicit set again */
    rule("extended 5: syncing the implicit set needs nothing of a region");
    gex_NBI_Wait(GEX_EC_ALL, 0);
    AQ_CHECK_EQ(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK);
    check_slots(to, 0, 1);
    check_slots(to, 5, 6);
    rule("extended 5: the region's event means that every member is complete");
    gex_Event_Wait(region);
    memset(am, 0, sizeof(am));
    memset(out[3], 0, LEN);
    check_slots(to, 1, 4);
    AQ_CHECK(gex_RMA_GetBlockingVal(aq_test_tm, to, place(to, SLOTS), 8, 0) == 0x1122334455667788u);
    gex_Event_Wait(nb);
    check_slots(to, 4, 5);
    aq_test_wait(&arrived, round + 1);
}

static void gets(gex_Rank_t to)
{
    gex_Event_t evs[3];
    int i;

    rule("extended 5: regions of gets; several region events outstanding, synced in one array");
    memset(in, 0, sizeof(in));
    for (i = 0; i < 3; i++) {
        int k;

        gex_NBI_BeginAccessRegion(0);
        for (k = 2 * i; k < 2 * i + 2; k++)
            gex_RMA_GetNBI(aq_test_tm, in[k], to, place(to, k), LEN, 0);
        evs[i] = gex_NBI_EndAccessRegion(0);
    }
    AQ_CHECK_EQ(gex_NBI_Test(GEX_EC_GET, 0), GASNET_OK);
    gex_Event_WaitAll(evs, 3, 0);
    for (i = 0; i < 6; i++)
        AQ_CHECK(aq_test_same(in[i], LEN, (uint64_t)i));
}

static void leaf(gex_Rank_t to)
{
    gex_Event_t region, lc;
    int i;

    rule("extended 4.3: the LC leaf of a region: every GROUP source is ours");
    clear(to);
    gex_NBI_BeginAccessRegion(0);
    for (i = 0; i < SLOTS; i++)
        put(to, i, GEX_EVENT_GROUP);
    region = gex_NBI_EndAccessRegion(0);
    lc = gex_Event_QueryLeaf(region, GEX_EC_LC);
    gex_Event_Wait(lc);
    memset(out, 0, sizeof(out));
    aq_test_sync(region);
    check_slots(to, 0, SLOTS);
}

static void empty_and_huge(gex_Rank_t to)
{
    gex_Event_t region;
    int i, n = aq_test_quick ? 500 : aq_test_n > 3 ? 3000 : HUGE_COUNT;

    rule("extended 5: an empty region gives an event that is done");
    gex_NBI_BeginAccessRegion(0);
    region = gex_NBI_EndAccessRegion(0);
    AQ_CHECK_EQ(gex_Event_Test(region), GASNET_OK);
    rule("extended 5: the number of members is not limited");
    gex_NBI_BeginAccessRegion(0);
    for (i = 0; i < n; i++)
        gex_RMA_PutNBIVal(aq_test_tm, to, place(to, 0) + (i % 2000) * 8,
                          (gex_RMA_Value_t)(i % 2000), 8, 0);
    region = gex_NBI_EndAccessRegion(0);
    while (gex_Event_Test(region) != GASNET_OK)
        aq_test_relax();
    for (i = 0; i < 2000 && i < n; i += 101)
        AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, to, place(to, 0) + i * 8, 8, 0), i);
}

/* --- declined members --- */

enum { BY_PUT, BY_PUT_VAL, BY_GET, BY_VIS_PUT, BY_VIS_GET, BY_ATOMIC, BY_FETCHING, BY_AM, MEMBERS };

static gex_AD_t ad;
static uint64_t words[TRIES], found[TRIES]; /* sent values, received values */
static char message[300];

static uint64_t *word(gex_Rank_t to, int i)
{
    return (uint64_t *)aq_test_base(to) + i;
}

/* Starts member number i, if there is space for it. Without polls space runs out where transfers
 * use messages. */
static int try_member(gex_Rank_t to, int member, int i)
{
    void *remote_addr = word(to, i), *out_word = &words[i], *in_word = &found[i];

    switch (member) {
    case BY_PUT:
        return gex_RMA_PutNBI(aq_test_tm, to, remote_addr, out_word, 8, GEX_EVENT_DEFER,
                              GEX_FLAG_IMMEDIATE);
    case BY_PUT_VAL:
        return gex_RMA_PutNBIVal(aq_test_tm, to, remote_addr, words[i], 8, GEX_FLAG_IMMEDIATE);
    case BY_GET:
        return gex_RMA_GetNBI(aq_test_tm, in_word, to, remote_addr, 8, GEX_FLAG_IMMEDIATE);
    case BY_VIS_PUT:
        return gex_VIS_IndexedPutNBI(aq_test_tm, to, 1, &remote_addr, 8, 1, &out_word, 8,
                                     GEX_FLAG_IMMEDIATE);
    case BY_VIS_GET:
        return gex_VIS_IndexedGetNBI(aq_test_tm, 1, &in_word, 8, to, 1, &remote_addr, 8,
                                     GEX_FLAG_IMMEDIATE);
    case BY_ATOMIC:
        return gex_AD_OpNBI_U64(ad, NULL, to, remote_addr, GEX_OP_ADD, words[i], 0,
                                GEX_FLAG_IMMEDIATE);
    case BY_FETCHING:
        return gex_AD_OpNBI_U64(ad, in_word, to, remote_addr, GEX_OP_FADD, 0, 0,
                                GEX_FLAG_IMMEDIATE);
    default:
        return gex_AM_RequestMedium0(aq_test_tm, to, H_COUNT, message, sizeof(message),
                                     GEX_EVENT_GROUP, GEX_FLAG_IMMEDIATE);
    }
}

/* What there is, at the target or here, after every accepted member: theirs, and nothing of the
 * others. */
static void check_effects(gex_Rank_t to, int member, const bool *accepted, int tries, int accepts)
{
    const bool gets = member == BY_GET || member == BY_VIS_GET || member == BY_FETCHING;
    int i;

    if (member == BY_AM) {
        aq_test_wait(&counted, accepts);
        AQ_CHECK_EQ(atomic_load(&counted), accepts);
        return;
    }
    if (!gets)
        gex_RMA_GetBlocking(aq_test_tm, found, to, word(to, 0), sizeof(found), 0);
    for (i = 0; i < tries; i++)
        AQ_CHECK_EQ(found[i], accepted[i] ? i + 1 : 0);
}

static void declined(gex_Rank_t to, int member)
{
    static const gex_EC_t category[MEMBERS] = { GEX_EC_PUT, GEX_EC_PUT, GEX_EC_GET, GEX_EC_PUT,
                                                GEX_EC_GET, GEX_EC_RMW, GEX_EC_RMW, GEX_EC_AM };
    const bool gets = member == BY_GET || member == BY_VIS_GET || member == BY_FETCHING;
    static bool accepted[TRIES];
    int i, accepts = 0, declines = 0;
    gex_Event_t region;

    for (i = 0; i < TRIES; i++)
        words[i] = (uint64_t)i + 1;
    memset(found, 0, sizeof(found));
    gex_RMA_PutBlocking(aq_test_tm, to, word(to, 0), gets ? words : found, sizeof(words), 0);
    atomic_store(&counted, 0);
    gex_NBI_BeginAccessRegion(0);
    for (i = 0; i < TRIES && declines < 50; i++) {
        accepted[i] = try_member(to, member, i) == 0;
        accepts += accepted[i];
        declines += !accepted[i];
    }
    region = gex_NBI_EndAccessRegion(0);
    AQ_CHECK(region != GEX_EVENT_NO_OP);
    AQ_CHECK_EQ(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK); /* not counted outside the region either */
    if (region != GEX_EVENT_INVALID)
        aq_test_sync(gex_Event_QueryLeaf(region, category[member]));
    aq_test_sync(region);
    check_effects(to, member, accepted, i, accepts);
    aq_test_barrier();
}

static void all_declined(gex_Rank_t to)
{
    int member;

    rule("extended 5: a member that is declined is no member: puts, gets, VIS, atomics, AM GROUP "
         "requests");
    aq_test_barrier();
    aq_test_fill(message, sizeof(message), 4);
    for (member = 0; member < MEMBERS; member++)
        declined(to, member);
}

int main(int argc, char **argv)
{
    gex_Rank_t k;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment((SLOTS + 1) * LEN);
    gex_AD_Create(&ad, aq_test_tm, GEX_DT_U64, GEX_OP_ADD | GEX_OP_FADD, 0);
    for (k = 0; k < 2; k++) {
        mixed(aq_test_peer(k), (int)k);
        gets(aq_test_peer(k));
        leaf(aq_test_peer(k));
        empty_and_huge(aq_test_peer(k));
        all_declined(aq_test_peer(k));
        aq_test_barrier();
    }
    gex_AD_Destroy(ad);
    return aq_test_finish();
}
