/*
 * test_npam_rules.c - what Prepare promises, what Commit and Cancel leave behind: sizes, addresses,
 * local completion, destinations that are written by Commit only, and no loss of buffers however
 * often. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, negotiated payload.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum {
    H_MED = AQ_TEST_FREE,
    H_LONG,
    H_ASK,
    H_MED_REP,
    H_LONG_REP,
    LEN = 3000,
    SLOT = 1 << 16,
    ANSWERS = 300
};

static aq_test_count_t arrived, answered, asked;

/* Replies with an event: handed to ordinary code, with the buffer. */
static struct {
    gex_Event_t event;
    char data[LEN];
} handed[ANSWERS];
static aq_test_count_t n_handed;

static void h_payload(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t seed)
{
    (void)token;
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    atomic_fetch_add(&arrived, 1);
}

static void h_answer(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t seed)
{
    (void)token;
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    atomic_fetch_add(&answered, 1);
}

/* Replies that are cancelled do not count; the one that is committed does. */
static void h_ask(gex_Token_t token, gex_AM_Arg_t how, gex_AM_Arg_t hi, gex_AM_Arg_t lo)
{
    static char data[LEN];
    void *dest = aq_test_pointer(hi, lo);
    gex_AM_SrcDesc_t sd;
    int i;

    sd = gex_AM_PrepareReplyMedium(token, NULL, 100, LEN, NULL, 0, 1);
    memset(gex_AM_SrcDescAddr(sd), 0xab, gex_AM_SrcDescSize(sd));
    AQ_CHECK_EQ(gex_AM_CancelReplyMedium(sd, 0), 0);
    sd = gex_AM_PrepareReplyLong(token, data, 1, LEN, dest, GEX_EVENT_NOW, 0, 1);
    AQ_CHECK_EQ(gex_AM_CancelReplyLong(sd, 0), 0);
    sd = gex_AM_PrepareReplyLong(token, NULL, LEN, LEN, NULL, NULL, 0, 1);
    AQ_CHECK_EQ(gex_AM_CancelReplyLong(sd, 0), 0);
    if (how == 0) {
        gex_AM_ReplyMedium1(token, H_MED_REP, data, 0, GEX_EVENT_NOW, 0, 5);
    } else if (how == 1) {
        i = atomic_fetch_add(&n_handed, 1);
        handed[i].event = GEX_EVENT_NO_OP;
        aq_test_fill(handed[i].data, LEN, 6);
        sd = gex_AM_PrepareReplyMedium(token, handed[i].data, LEN, LEN, &handed[i].event, 0, 1);
        AQ_CHECK(handed[i].event == GEX_EVENT_NO_OP);
        gex_AM_CommitReplyMedium1(sd, H_MED_REP, LEN, 6);
        AQ_CHECK(handed[i].event != GEX_EVENT_NO_OP);
    } else {
        sd = gex_AM_PrepareReplyLong(token, NULL, LEN, 2 * LEN, dest, NULL, 0, 1);
        aq_test_fill(gex_AM_SrcDescAddr(sd), gex_AM_SrcDescSize(sd), 7);
        gex_AM_CommitReplyLong1(sd, H_LONG_REP, LEN, dest, 7);
    }
    atomic_fetch_add(&asked, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_MED, h_payload, AQ_MQ, 1),     AQ_ENTRY(H_LONG, h_payload, AQ_LQ, 1),
    AQ_ENTRY(H_ASK, h_ask, AQ_SQ, 3),         AQ_ENTRY(H_MED_REP, h_answer, AQ_MP, 1),
    AQ_ENTRY(H_LONG_REP, h_answer, AQ_LP, 1),
};

static gex_AM_SrcDesc_t prepare(int is_long, gex_Rank_t to, const void *client, size_t min,
                                size_t max, gex_Event_t *lc)
{
    return is_long ? gex_AM_PrepareRequestLong(aq_test_tm, to, client, min, max, NULL, lc, 0, 1)
                   : gex_AM_PrepareRequestMedium(aq_test_tm, to, client, min, max, lc, 0, 1);
}

static void cancel(int is_long, gex_AM_SrcDesc_t sd)
{
    AQ_CHECK_EQ(is_long ? gex_AM_CancelRequestLong(sd, 0) : gex_AM_CancelRequestMedium(sd, 0), 0);
}

/* least, most and what comes of them; the buffer is written from end to end. */
static void check_bounds(int is_long, gex_Rank_t to, size_t min, size_t max)
{
    gex_AM_SrcDesc_t sd = prepare(is_long, to, NULL, min, max, NULL);
    const size_t size = gex_AM_SrcDescSize(sd);

    AQ_CHECK(sd != GEX_AM_SRCDESC_NO_OP);
    AQ_CHECK(min <= size && size <= max);
    AQ_CHECK_EQ((uintptr_t)gex_AM_SrcDescAddr(sd) % 16, 0);
    if (size > 0)
        memset(gex_AM_SrcDescAddr(sd), 0x3c, size);
    cancel(is_long, sd);
    sd = prepare(is_long, to, table, min, max, GEX_EVENT_NOW); /* not read before Commit */
    AQ_CHECK(min <= gex_AM_SrcDescSize(sd) && gex_AM_SrcDescSize(sd) <= max);
    AQ_CHECK_PTR(gex_AM_SrcDescAddr(sd), table);
    cancel(is_long, sd);
}

static void check_sizes(int is_long, gex_Rank_t to)
{
    const size_t max =
        is_long ? gex_AM_MaxRequestLong(aq_test_tm, to, NULL, GEX_FLAG_AM_PREPARE_LEAST_ALLOC, 1)
                : gex_AM_MaxRequestMedium(aq_test_tm, to, NULL, GEX_FLAG_AM_PREPARE_LEAST_ALLOC, 1);
    const size_t sizes[] = { 0, 1, 12, 13, 511, 512, 513, 4096, 4097, max / 2, max - 1, max };
    size_t i, j;

    rule("core 21.1: least <= size <= most, whatever most is, and the buffer is that long");
    for (i = 0; i < AQ_LENGTH(sizes); i++) {
        for (j = i; j < AQ_LENGTH(sizes); j++)
            check_bounds(is_long, to, sizes[i], sizes[j]);
        check_bounds(is_long, to, sizes[i], max + 1);
        check_bounds(is_long, to, sizes[i], SIZE_MAX);
    }
}

static void check_lc(gex_Rank_t to)
{
    static char data[LEN];
    gex_Event_t event = GEX_EVENT_NO_OP;
    gex_AM_SrcDesc_t sd;
    int i;

    rule("core 21.1: the event is written by a successful Commit, not before and not by Cancel");
    for (i = 0; i < 2; i++) {
        sd = prepare(i, to, data, LEN, LEN, &event);
        AQ_CHECK(event == GEX_EVENT_NO_OP);
        cancel(i, sd);
        AQ_CHECK(event == GEX_EVENT_NO_OP);
    }
    rule("core 21.2: local completion of a client's buffer: event, GEX_EVENT_GROUP, GEX_EVENT_NOW");
    aq_test_fill(data, LEN, 8);
    sd = prepare(0, to, data, LEN, LEN, &event);
    gex_AM_CommitRequestMedium1(sd, H_MED, LEN, 8);
    AQ_CHECK(event != GEX_EVENT_NO_OP);
    gex_Event_Wait(event);
    event = GEX_EVENT_NO_OP;
    aq_test_fill(data, LEN, 9);
    sd = prepare(1, to, data, LEN, LEN, &event);
    gex_AM_CommitRequestLong1(sd, H_LONG, LEN, (char *)aq_test_base(to) + SLOT, 9);
    AQ_CHECK(event != GEX_EVENT_NO_OP);
    gex_Event_Wait(event);
    aq_test_wait(&arrived, 2);
    aq_test_fill(data, LEN, 10);
    sd = prepare(0, to, data, LEN, LEN, GEX_EVENT_GROUP);
    gex_AM_CommitRequestMedium1(sd, H_MED, LEN, 10);
    sd = prepare(1, to, data, LEN, LEN, GEX_EVENT_GROUP);
    gex_AM_CommitRequestLong1(sd, H_LONG, LEN, (char *)aq_test_base(to) + SLOT + LEN, 10);
    gex_NBI_Wait(GEX_EC_AM, 0);
    memset(data, 0, LEN);
    aq_test_wait(&arrived, 4);
}

/* A Long with a destination hint: its memory is the owner's until Commit, and beyond nbytes after
 * it. */
static void check_dest(gex_Rank_t to)
{
    char *dest = (char *)aq_test_base(to) + 2 * SLOT,
         *ours = (char *)aq_test_base(aq_test_me) + 2 * SLOT;
    gex_AM_SrcDesc_t sd;

    memset(ours, 0x11, SLOT);
    aq_test_barrier();
    rule("core 21: a cancelled Long with a library buffer and a known destination leaves it alone");
    sd = gex_AM_PrepareRequestLong(aq_test_tm, to, NULL, LEN, LEN, dest, NULL, 0, 1);
    memset(gex_AM_SrcDescAddr(sd), 0x22, LEN);
    AQ_CHECK_EQ(gex_AM_CancelRequestLong(sd, 0), 0);
    aq_test_barrier();
    AQ_CHECK(aq_test_all(ours, 0x11, SLOT));
    aq_test_barrier();
    rule("core 20.4: a Long writes nbytes at its destination, not what the buffer held beyond");
    sd = gex_AM_PrepareRequestLong(aq_test_tm, to, NULL, 1, 2 * LEN, dest, NULL, 0, 1);
    aq_test_fill(gex_AM_SrcDescAddr(sd), gex_AM_SrcDescSize(sd), 11);
    gex_AM_CommitRequestLong1(sd, H_LONG, 100, dest, 11);
    aq_test_wait(&arrived, 5);
    AQ_CHECK(aq_test_all(ours + 100, 0x11, SLOT - 100));
    rule("core 21.2: a Commit of nothing may name no destination in spite of a hint");
    sd = gex_AM_PrepareRequestLong(aq_test_tm, to, NULL, LEN, LEN, dest, NULL, 0, 1);
    gex_AM_CommitRequestLong1(sd, H_LONG, 0, NULL, 12);
    sd = gex_AM_PrepareRequestLong(aq_test_tm, to, ours, LEN, LEN, dest, GEX_EVENT_NOW, 0, 1);
    gex_AM_CommitRequestLong1(sd, H_LONG, 0, NULL, 12);
    aq_test_wait(&arrived, 7);
}

static void check_reuse(gex_Rank_t to)
{
    const int turns = aq_test_quick ? 1000 : 20000;
    static char data[LEN];
    gex_AM_SrcDesc_t sd;
    int i;

    rule("core 21.3: cancelling over and over, all kinds and sizes, loses no buffer");
    for (i = 0; i < turns; i++) {
        const size_t len = (size_t)i * 7 % 70000;
        const size_t min = len < gex_AM_LUBRequestMedium() ? len : 0;

        sd = prepare(i % 2, to, i % 3 ? NULL : data, i % 3 ? min : 0, len,
                     i % 3 ? NULL : GEX_EVENT_NOW);
        cancel(i % 2, sd);
    }
    rule("core 21.2: committing less than was prepared, over and over, loses no buffer");
    for (i = 0; i < turns / 10; i++) {
        const int is_long = i % 4 == 3;

        sd = prepare(is_long, to, i % 3 ? NULL : data, 1000, 20000, i % 3 ? NULL : GEX_EVENT_NOW);
        if (is_long)
            gex_AM_CommitRequestLong1(sd, H_LONG, 0, NULL, 13);
        else
            gex_AM_CommitRequestMedium1(sd, H_MED, 0, 13);
    }
    aq_test_wait(&arrived, 7 + turns / 10);
}

int main(int argc, char **argv)
{
    gex_Rank_t to;
    char *answers;
    int i, turns;

    aq_test_start(&argc, &argv, 1);
    turns = aq_test_quick ? ANSWERS / 10 : ANSWERS;
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(4 * SLOT);
    to = aq_test_peer(1);
    answers = (char *)aq_test_base(aq_test_me) + 3 * SLOT;
    for (i = 0; i < 2; i++) {
        check_sizes(i, to);
        check_sizes(i, aq_test_me);
    }
    check_lc(to);
    check_dest(to);
    check_reuse(to);
    rule("core 20.5: a cancelled reply is none; the handler may prepare and send another one");
    for (i = 0; i < turns; i++)
        gex_AM_RequestShort3(aq_test_tm, to, H_ASK, 0, i % 3, AQ_HI(answers), AQ_LO(answers));
    aq_test_wait(&answered, turns);
    aq_test_wait(&asked, turns);
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&answered), turns);
    for (i = 0; i < atomic_load(&n_handed); i++)
        gex_Event_Wait(handed[i].event);
    return aq_test_finish();
}
