/*
 * test_am_medium_sizes.c - AM Medium payloads of all small sizes and around the limit, any source
 * alignment; buffers aligned for any type; the handler may write into the payload.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, active messages.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_REQ = AQ_TEST_FREE, H_REP, H_SCRIBBLE, SMALL = 300 };

static aq_test_count_t requests, replies, scribbled;

static void check_payload(const void *buf, size_t nbytes, gex_AM_Arg_t size, gex_AM_Arg_t seed)
{
    AQ_CHECK_EQ(nbytes, size);
    if (nbytes > 0)
        AQ_CHECK_EQ((uintptr_t)buf % 16, 0);
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
}

static void h_req(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t size, gex_AM_Arg_t seed)
{
    size_t max = gex_Token_MaxReplyMedium(token, GEX_EVENT_NOW, 0, 2);
    size_t back = nbytes < max ? nbytes : max;

    check_payload(buf, nbytes, size, seed);
    /* Answer with the bytes just received, straight out of the library's buffer. */
    if (back == nbytes)
        gex_AM_ReplyMedium2(token, H_REP, buf, back, GEX_EVENT_NOW, 0, size, seed);
    else
        gex_AM_ReplyMedium2(token, H_REP, NULL, 0, GEX_EVENT_NOW, 0, 0, seed);
    atomic_fetch_add(&requests, 1);
}

static void h_rep(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t size, gex_AM_Arg_t seed)
{
    (void)token;
    check_payload(buf, nbytes, size, seed);
    atomic_fetch_add(&replies, 1);
}

static void h_scribble(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token;
    AQ_CHECK(aq_test_same(buf, nbytes, 99));
    memset(buf, 0x5a, nbytes);
    atomic_fetch_add(&scribbled, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_REQ, h_req, AQ_MQ, 2),
    AQ_ENTRY(H_REP, h_rep, AQ_MP, 2),
    AQ_ENTRY(H_SCRIBBLE, h_scribble, AQ_MQ, 0),
};

static int send_size(gex_Rank_t to, size_t size, size_t align, char *space)
{
    char *src = space + align;

    aq_test_fill(src, size, size + 1);
    gex_AM_RequestMedium2(aq_test_tm, to, H_REQ, src, size, GEX_EVENT_NOW, 0, size, size + 1);
    memset(src, 0xcc, size); /* NOW: the source is ours again */
    return 1;
}

int main(int argc, char **argv)
{
    size_t size, max, step;
    gex_Rank_t k, to;
    char *space;
    int sent = 0, i;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    max = gex_AM_MaxRequestMedium(aq_test_tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 2);
    space = malloc(max + 64);
    rule("core 20.4: Medium payloads of 0..300 bytes arrive intact from any alignment, and back");
    rule("core 20.4: Medium buffers are aligned for any type, Request and Reply");
    rule("core 20.4: Medium payloads of 0..300 bytes arrive intact from any alignment, and back");
    for (size = 0; size <= SMALL; size++)
        for (k = 0; k < 2; k++)
            sent += send_size(aq_test_peer(k), size, size % 16, space);
    aq_test_wait(&requests, sent);
    aq_test_wait(&replies, sent);

    rule("core 18: Medium payloads up to exactly gex_AM_MaxRequestMedium are delivered");
    step = aq_test_quick ? 16 : 4;
    for (k = 0; k < 2; k++) {
        to = aq_test_peer(k);
        for (size = 512; size < max; size = size * step + 7)
            sent += send_size(to, size, size % 8, space);
        sent += send_size(to, max - 1, 1, space);
        sent += send_size(to, max, 0, space);
    }
    aq_test_wait(&requests, sent);
    aq_test_wait(&replies, sent);

    rule("core 20.4: a handler may write to its Medium buffer; the sender's buffer is not touched");
    aq_test_fill(space, 400, 99);
    for (i = 0; i < 20; i++)
        gex_AM_RequestMedium0(aq_test_tm, aq_test_peer((gex_Rank_t)i % 2), H_SCRIBBLE, space, 400,
                              GEX_EVENT_NOW, 0);
    aq_test_wait(&scribbled, 20);
    AQ_CHECK(aq_test_same(space, 400, 99));
    free(space);
    return aq_test_finish();
}
