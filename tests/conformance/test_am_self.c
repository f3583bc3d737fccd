/*
 * test_am_self.c - messages to oneself: request and reply buffers are distinct from the sender's,
 * from a handler's own answer and from each other; no deadlock however many.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, self targets.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_REQ = AQ_TEST_FREE, H_REP, H_LREQ, H_LREP, LEN = 512 };

static aq_test_count_t requests, replies;
static char out[LEN];

static void h_req(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t i)
{
    char answer[LEN];

    AQ_CHECK(nbytes == LEN && aq_test_same(buf, LEN, (uint64_t)i));
    memset(buf, 0xaa, nbytes);
    aq_test_fill(answer, LEN, (uint64_t)i + 7);
    gex_AM_ReplyMedium1(token, H_REP, answer, LEN, GEX_EVENT_NOW, 0, i);
    memset(answer, 0xbb, LEN);
    memset(buf, 0xcc, nbytes);
    atomic_fetch_add(&requests, 1);
}

static void h_rep(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t i)
{
    (void)token;
    AQ_CHECK(nbytes == LEN && aq_test_same(buf, LEN, (uint64_t)i + 7));
    memset(buf, 0xdd, nbytes);
    atomic_fetch_add(&replies, 1);
}

static void h_lreq(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t i)
{
    AQ_CHECK_PTR(buf, (char *)aq_test_base(aq_test_me) + LEN);
    AQ_CHECK(nbytes == LEN && aq_test_same(buf, LEN, (uint64_t)i));
    gex_AM_ReplyLong1(token, H_LREP, buf, nbytes, (char *)aq_test_base(aq_test_me) + 2 * LEN,
                      GEX_EVENT_NOW, 0, i);
    atomic_fetch_add(&requests, 1);
}

static void h_lrep(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t i)
{
    (void)token;
    AQ_CHECK_PTR(buf, (char *)aq_test_base(aq_test_me) + 2 * LEN);
    AQ_CHECK(nbytes == LEN && aq_test_same(buf, LEN, (uint64_t)i));
    atomic_fetch_add(&replies, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_REQ, h_req, AQ_MQ, 1),
    AQ_ENTRY(H_REP, h_rep, AQ_MP, 1),
    AQ_ENTRY(H_LREQ, h_lreq, AQ_LQ, 1),
    AQ_ENTRY(H_LREP, h_lrep, AQ_LP, 1),
};

int main(int argc, char **argv)
{
    const int count = 3000;
    int i;
    char *base;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(3 * LEN);
    base = aq_test_base(aq_test_me);
    rule("core 20.6: Medium to oneself: buffers of sender, handler and reply are distinct");
    for (i = 0; i < count; i++) {
        aq_test_fill(out, LEN, (uint64_t)i);
        gex_AM_RequestMedium1(aq_test_tm, aq_test_me, H_REQ, out, LEN, GEX_EVENT_NOW, 0, i);
        AQ_CHECK(aq_test_same(out, LEN, (uint64_t)i)); /* whatever the handler did to its copy */
    }
    aq_test_wait(&requests, count);
    aq_test_wait(&replies, count);
    rule("core 20.6: Long to oneself, source inside and outside the segment");
    for (i = 0; i < 200; i++) {
        char *src = i % 2 ? base : out;

        aq_test_fill(src, LEN, (uint64_t)i);
        gex_AM_RequestLong1(aq_test_tm, aq_test_me, H_LREQ, src, LEN, base + LEN, GEX_EVENT_NOW, 0,
                            i);
        aq_test_wait(&replies, count + i + 1);
    }
    AQ_CHECK_EQ(atomic_load(&requests), count + 200);
    return aq_test_finish();
}
