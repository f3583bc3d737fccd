/*
 * test_am_long_sizes.c - AM Long payloads: all small sizes, large ones, any alignment at both ends;
 * bytes beside the destination stay as they were; the source may lie in or out of the segment.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, active messages.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_REQ = AQ_TEST_FREE, H_REP, SMALL = 300, BIG = 300 * 1024, CANARY = 16, PAINT = 0x77 };

/* Segment: [0, HALF) is written by requests to me, [HALF, 2 HALF) by replies to me, rest is source.
 * */
enum { HALF = BIG + 2 * CANARY + 64, SIZE = 3 * HALF };

static aq_test_count_t requests, replies;

static void check_long(const char *buf, size_t nbytes, gex_AM_Arg_t size)
{
    AQ_CHECK_EQ(nbytes, size);
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)size));
    AQ_CHECK(aq_test_all(buf - CANARY, PAINT, CANARY));
    AQ_CHECK(aq_test_all(buf + nbytes, PAINT, CANARY));
}

static void h_req(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t size, gex_AM_Arg_t hi,
                  gex_AM_Arg_t lo)
{
    size_t max = gex_Token_MaxReplyLong(token, GEX_EVENT_NOW, 0, 1);
    static char answer[BIG];

    check_long(buf, nbytes, size);
    AQ_CHECK(nbytes <= max);
    /* painted before the reply: it lets the requester write here again */
    memcpy(answer, buf, nbytes);
    memset(buf, PAINT, nbytes);
    gex_AM_ReplyLong1(token, H_REP, answer, nbytes, aq_test_pointer(hi, lo), GEX_EVENT_NOW, 0,
                      size);
    atomic_fetch_add(&requests, 1);
}

static void h_rep(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t size)
{
    (void)token;
    check_long(buf, nbytes, size);
    memset(buf, PAINT, nbytes);
    atomic_fetch_add(&replies, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_REQ, h_req, AQ_LQ, 3),
    AQ_ENTRY(H_REP, h_rep, AQ_LP, 1),
};

/* One at a time, since all use the same destination; both directions of a pair are disjoint. */
static void exchange(gex_Rank_t to, size_t size, size_t align, char *src)
{
    char *dest = (char *)aq_test_base(to) + CANARY + align;
    char *back = (char *)aq_test_base(aq_test_me) + HALF + CANARY + (align * 7 + size) % 32;
    const int done = atomic_load(&replies) + 1;

    aq_test_fill(src, size, size);
    gex_AM_RequestLong3(aq_test_tm, to, H_REQ, src, size, dest, GEX_EVENT_NOW, 0, size, AQ_HI(back),
                        AQ_LO(back));
    memset(src, 0x11, size);
    aq_test_wait(&replies, done);
}

int main(int argc, char **argv)
{
    static char outside[SMALL + 64];
    size_t size, top, max;
    char *source;
    gex_Rank_t k;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(SIZE);
    memset(aq_test_base(aq_test_me), PAINT, 2 * HALF);
    source = (char *)aq_test_base(aq_test_me) + 2 * HALF;
    aq_test_barrier();
    for (k = 0; k < 2; k++) {
        rule("core 20.4: Long payloads of 1..300 bytes from outside the segment, guards untouched");
        for (size = 1; size <= SMALL; size += aq_test_quick ? 7 : 1)
            exchange(aq_test_peer(k), size, size % 16, outside + size % 13);
        rule("core 20.4: Long payloads from inside the segment, any alignment at both ends");
        for (size = 1; size <= 70; size++)
            exchange(aq_test_peer(k), size, (size * 5) % 16, source + size % 7);
        rule("core 18: Long payloads up to the Max queries (or 300 KiB) are delivered");
        max = gex_AM_MaxRequestLong(aq_test_tm, aq_test_peer(k), GEX_EVENT_NOW, 0, 3);
        top = gex_AM_MaxReplyLong(aq_test_tm, aq_test_peer(k), GEX_EVENT_NOW, 0, 1);
        if (top > max)
            top = max;
        if (top > BIG)
            top = BIG;
        for (size = 512; size < top; size = size * 4 + 3)
            exchange(aq_test_peer(k), size, size % 8, source + 1);
        exchange(aq_test_peer(k), top, 5, source);
        aq_test_barrier(); /* the two rounds use the same destinations from different senders */
    }
    aq_test_wait(&requests, atomic_load(&replies));
    return aq_test_finish();
}
