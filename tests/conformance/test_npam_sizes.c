/*
 * test_npam_sizes.c - negotiated payloads of all small sizes and around the limits, to peers and to
 * oneself, from both kinds of buffer, and answered in the same way.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, negotiated payload.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_MED = AQ_TEST_FREE, H_MED_REP, H_LONG, H_LONG_REP, SMALL = 200 };

static aq_test_count_t requests, replies;
static char *space; /* a client's buffer, at any alignment */
static size_t part; /* of the segment, for one sender */

/* Where the sender at distance k writes here; replies go to the second half. */
static char *place(gex_Rank_t rank, gex_Rank_t k, int answer)
{
    return (char *)aq_test_base(rank) + ((size_t)k * 2 + (size_t)answer) * part;
}

static void check(const void *buf, size_t nbytes, gex_AM_Arg_t size, int is_long)
{
    AQ_CHECK_EQ(nbytes, size);
    if (nbytes > 0 && !is_long)
        AQ_CHECK_EQ((uintptr_t)buf % 16, 0);
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)size + 1));
}

static void h_med(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t size)
{
    const size_t max =
        gex_Token_MaxReplyMedium(token, GEX_EVENT_NOW, GEX_FLAG_AM_PREPARE_LEAST_ALLOC, 1);
    gex_AM_SrcDesc_t sd;

    check(buf, nbytes, size, 0);
    AQ_CHECK(nbytes <= max);
    if (size % 2) {
        sd = gex_AM_PrepareReplyMedium(token, NULL, nbytes, nbytes, NULL, 0, 1);
        memcpy(gex_AM_SrcDescAddr(sd), buf, nbytes);
        AQ_CHECK(nbytes == 0 || gex_AM_SrcDescAddr(sd) != buf);
    } else { /* straight out of the request's buffer */
        sd = gex_AM_PrepareReplyMedium(token, buf, nbytes, nbytes, GEX_EVENT_NOW, 0, 1);
    }
    gex_AM_CommitReplyMedium1(sd, H_MED_REP, nbytes, size);
    atomic_fetch_add(&requests, 1);
}

static void h_rep(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t size)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_IS_LONG);
    check(buf, nbytes, size, info.gex_is_long);
    atomic_fetch_add(&replies, 1);
}

static void h_long(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t size, gex_AM_Arg_t k)
{
    gex_AM_SrcDesc_t sd;
    gex_Token_Info_t info;
    char *dest;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    AQ_CHECK_PTR(buf, place(aq_test_me, (gex_Rank_t)k, 0));
    check(buf, nbytes, size, 1);
    dest = place(info.gex_srcrank, (gex_Rank_t)k, 1);
    if (size % 2) {
        sd = gex_AM_PrepareReplyLong(token, NULL, nbytes, nbytes, dest, NULL, 0, 1);
        memcpy(gex_AM_SrcDescAddr(sd), buf, nbytes);
    } else {
        sd = gex_AM_PrepareReplyLong(token, buf, nbytes, nbytes, NULL, GEX_EVENT_NOW, 0, 1);
    }
    gex_AM_CommitReplyLong1(sd, H_LONG_REP, nbytes, dest, size);
    atomic_fetch_add(&requests, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_MED, h_med, AQ_MQ, 1),
    AQ_ENTRY(H_MED_REP, h_rep, AQ_MP, 1),
    AQ_ENTRY(H_LONG, h_long, AQ_LQ, 2),
    AQ_ENTRY(H_LONG_REP, h_rep, AQ_LP, 1),
};

/* more: bytes prepared beyond those committed */
static int send_medium(gex_Rank_t k, size_t size, int ours, size_t more)
{
    char *client = ours ? NULL : space + size % 16;
    gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(
        aq_test_tm, aq_test_peer(k), client, size, size + more, ours ? NULL : GEX_EVENT_NOW, 0, 1);

    AQ_CHECK(gex_AM_SrcDescSize(sd) >= size && gex_AM_SrcDescSize(sd) <= size + more);
    aq_test_fill(gex_AM_SrcDescAddr(sd), size, size + 1);
    gex_AM_CommitRequestMedium1(sd, H_MED, size, size);
    if (!ours)
        memset(client, 0xcc, size);
    return 1;
}

/* Long messages take turns: the place at the target is one. */
static int send_long(gex_Rank_t k, size_t size, int ours, size_t more, int sent)
{
    char *client = ours ? NULL : space + size % 16, *dest = place(aq_test_peer(k), k, 0);
    gex_AM_SrcDesc_t sd =
        gex_AM_PrepareRequestLong(aq_test_tm, aq_test_peer(k), client, size, size + more,
                                  size % 3 ? dest : NULL, ours ? NULL : GEX_EVENT_NOW, 0, 2);

    AQ_CHECK(gex_AM_SrcDescSize(sd) >= size && gex_AM_SrcDescSize(sd) <= size + more);
    aq_test_fill(gex_AM_SrcDescAddr(sd), size, size + 1);
    gex_AM_CommitRequestLong2(sd, H_LONG, size, dest, size, k);
    if (!ours)
        memset(client, 0xcc, size);
    aq_test_wait(&replies, sent + 1);
    return 1;
}

static size_t limit(int is_long, int ours, gex_Rank_t to)
{
    const gex_Flags_t flag =
        ours ? GEX_FLAG_AM_PREPARE_LEAST_ALLOC : GEX_FLAG_AM_PREPARE_LEAST_CLIENT;

    return is_long ? gex_AM_MaxRequestLong(aq_test_tm, to, GEX_EVENT_NOW, flag, 2)
                   : gex_AM_MaxRequestMedium(aq_test_tm, to, GEX_EVENT_NOW, flag, 1);
}

static int around_limits(gex_Rank_t k, int sent)
{
    const size_t max = limit(0, 1, aq_test_peer(k)), step = aq_test_quick ? 16 : 4;
    size_t size;
    int ours;

    for (ours = 0; ours < 2; ours++) {
        for (size = 512; size < max; size = size * step + 7)
            sent += send_medium(k, size, ours, 1000);
        sent += send_medium(k, max - 1, ours, 1);
        sent += send_medium(k, limit(0, ours, aq_test_peer(k)), ours, 0);
    }
    aq_test_wait(&requests, sent);
    aq_test_wait(&replies, sent);
    return sent;
}

int main(int argc, char **argv)
{
    size_t size, max;
    gex_Rank_t k;
    int sent = 0, ours;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    max = gex_AM_LUBRequestMedium();
    AQ_CHECK(max >= 512);
    part = max;
    aq_test_segment(4 * part);
    space = malloc(gex_AM_MaxRequestMedium(aq_test_tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 1) + 64);
    rule("core 21: Medium payloads of 0..200 bytes from both kinds of buffer, and back");
    for (size = 0; size <= SMALL; size++)
        for (k = 0; k < 2; k++)
            for (ours = 0; ours < 2; ours++)
                sent += send_medium(k, size, ours, size % 5);
    aq_test_wait(&requests, sent);
    aq_test_wait(&replies, sent);
    rule("core 18: Medium payloads up to exactly gex_AM_Max with LEAST_CLIENT and LEAST_ALLOC");
    for (k = 0; k < 2; k++)
        sent = around_limits(k, sent);
    rule("core 21: Long payloads of 0..200 bytes from both kinds of buffer, and back");
    for (size = 0; size <= SMALL; size += aq_test_quick ? 5 : 1)
        for (k = 0; k < 2; k++)
            for (ours = 0; ours < 2; ours++)
                sent += send_long(k, size, ours, size % 5, sent);
    rule("core 18: Long payloads up to the limit of library buffers");
    for (k = 0; k < 2; k++)
        for (ours = 0; ours < 2; ours++) {
            for (size = 512; size < max; size = size * 5 + 3)
                sent += send_long(k, size, ours, 100000, sent);
            sent += send_long(
                k, limit(1, 1, aq_test_peer(k)) < part ? limit(1, 1, aq_test_peer(k)) : part, ours,
                0, sent);
        }
    free(space);
    return aq_test_finish();
}
