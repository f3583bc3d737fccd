/*
 * test_am_limits.c - the size limits keep all the promises made about them.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, AM limits.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_LIMITS = AQ_TEST_FREE, H_SAME, KINDS = 4 };

static aq_test_count_t asked, reported;
static gex_Event_t some_event;

/* The four Max queries by number: request medium, request long, reply medium, reply long. */
static size_t limit(int kind, gex_TM_t tm, gex_Rank_t other, const gex_Event_t *lc,
                    gex_Flags_t flags, unsigned nargs)
{
    switch (kind) {
    case 0:
        return gex_AM_MaxRequestMedium(tm, other, lc, flags, nargs);
    case 1:
        return gex_AM_MaxRequestLong(tm, other, lc, flags, nargs);
    case 2:
        return gex_AM_MaxReplyMedium(tm, other, lc, flags, nargs);
    default:
        return gex_AM_MaxReplyLong(tm, other, lc, flags, nargs);
    }
}

static size_t lub(int kind)
{
    switch (kind) {
    case 0:
        return gex_AM_LUBRequestMedium();
    case 1:
        return gex_AM_LUBRequestLong();
    case 2:
        return gex_AM_LUBReplyMedium();
    default:
        return gex_AM_LUBReplyLong();
    }
}

static void check_kind(int kind, gex_TM_t tm, gex_Rank_t other)
{
    const gex_Event_t *const lcs[] = { GEX_EVENT_NOW, GEX_EVENT_GROUP, &some_event, NULL,
                                       (const gex_Event_t *)(uintptr_t)4096 };
    const gex_Flags_t flags[] = { 0, GEX_FLAG_IMMEDIATE, GEX_FLAG_AM_PREPARE_LEAST_CLIENT,
                                  GEX_FLAG_AM_PREPARE_LEAST_ALLOC,
                                  GEX_FLAG_AM_PREPARE_LEAST_ALLOC | GEX_FLAG_IMMEDIATE };
    size_t l, f, size, last;
    unsigned nargs;

    for (l = 0; l < AQ_LENGTH(lcs); l++) {
        if (kind >= 2 && lcs[l] == GEX_EVENT_GROUP)
            continue; /* not for replies */
        for (f = 0; f < AQ_LENGTH(flags); f++) {
            last = SIZE_MAX;
            for (nargs = 0; nargs <= gex_AM_MaxArgs(); nargs++) {
                size = limit(kind, tm, other, lcs[l], flags[f], nargs);
                rule("core 18: limits are never below 512");
                AQ_CHECK(size >= 512);
                rule("core 18: limits never grow with the number of arguments");
                AQ_CHECK(size <= last);
                rule("core 18: limits are stable");
                AQ_CHECK_EQ(limit(kind, tm, other, lcs[l], flags[f], nargs), size);
                rule("core 18: LUB limits lie between 512 and every fixed-payload limit");
                if (f < 2)
                    AQ_CHECK(lub(kind) <= size);
                AQ_CHECK(lub(kind) >= 512);
                rule("core 18: the limit for GEX_RANK_INVALID is at most each peer's");
                AQ_CHECK(limit(kind, tm, GEX_RANK_INVALID, lcs[l], flags[f], nargs) <= size);
                last = size;
            }
        }
    }
}

/* A peer sends its own view; ours of the mirrored call has to be the same. */
static void h_limits(gex_Token_t token, gex_AM_Arg_t kind, gex_AM_Arg_t nargs, gex_AM_Arg_t hi,
                     gex_AM_Arg_t lo)
{
    const size_t remote = (size_t)((uint64_t)(uint32_t)hi << 32 | (uint32_t)lo);
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    AQ_CHECK_EQ(limit(kind, aq_test_tm, info.gex_srcrank, GEX_EVENT_NOW, 0, (unsigned)nargs),
                remote);
    if (kind == 2)
        AQ_CHECK_EQ(gex_Token_MaxReplyMedium(token, GEX_EVENT_NOW, 0, (unsigned)nargs), remote);
    if (kind == 3)
        AQ_CHECK_EQ(gex_Token_MaxReplyLong(token, GEX_EVENT_NOW, 0, (unsigned)nargs), remote);
    gex_AM_ReplyShort0(token, H_SAME, 0);
    atomic_fetch_add(&asked, 1);
}

static void h_same(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&reported, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_LIMITS, h_limits, AQ_SQ, 4),
    AQ_ENTRY(H_SAME, h_same, AQ_SP, 0),
};

int main(int argc, char **argv)
{
    const gex_Rank_t peers[] = { 0, 1, 2 };
    gex_TM_t pair;
    int kind, sent = 0;
    unsigned nargs;
    size_t i;
    uint64_t size;

    const size_t medium = gex_AM_LUBRequestMedium(), min_long = gex_AM_LUBReplyLong();

    aq_test_start(&argc, &argv, 1);
    rule("core 18: LUB limits are known before there is a client; those of the job are no smaller");
    AQ_CHECK(medium >= 512 && min_long >= 512);
    AQ_CHECK(medium <= gex_AM_LUBRequestMedium() && min_long <= gex_AM_LUBReplyLong());
    rule("core 18: the LUB limits of a job are those that hold for all of its peers");
    AQ_CHECK_EQ(gex_AM_LUBRequestLong(),
                gex_AM_MaxRequestLong(aq_test_tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 16));
    AQ_CHECK_EQ(gex_AM_LUBReplyMedium(),
                gex_AM_MaxReplyMedium(aq_test_tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 16));
    aq_test_handlers(table, AQ_LENGTH(table));
    pair = gex_TM_Pair(aq_test_ep, 0);
    for (kind = 0; kind < KINDS; kind++) {
        for (i = 0; i < AQ_LENGTH(peers); i++) {
            check_kind(kind, aq_test_tm, aq_test_peer(peers[i]));
            rule("core 18: a peer's limit does not depend on how it is named (team or TM-pair)");
            for (nargs = 0; nargs <= 16; nargs++)
                AQ_CHECK_EQ(
                    limit(kind, pair, aq_test_peer(peers[i]), GEX_EVENT_NOW, 0, nargs),
                    limit(kind, aq_test_tm, aq_test_peer(peers[i]), GEX_EVENT_NOW, 0, nargs));
        }
        check_kind(kind, pair, GEX_RANK_INVALID);
    }
    rule("core 18: limits are the same seen from either end, in handlers and from tokens too");
    for (kind = 0; kind < KINDS; kind++)
        for (i = 0; i < AQ_LENGTH(peers); i++)
            for (nargs = 0; nargs <= 16; nargs += 4, sent++) {
                size = limit(kind, aq_test_tm, aq_test_peer(peers[i]), GEX_EVENT_NOW, 0, nargs);
                gex_AM_RequestShort4(aq_test_tm, aq_test_peer(peers[i]), H_LIMITS, 0, kind, nargs,
                                     size >> 32, size);
            }
    aq_test_wait(&reported, sent);
    aq_test_wait(&asked, sent);
    return aq_test_finish();
}
