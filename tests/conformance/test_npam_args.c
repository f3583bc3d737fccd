/*
 * test_npam_args.c - every form of Commit: Request and Reply, Medium and Long, 0..16 arguments,
 * numbered and counting, first and second generation, client's and library's buffer. Arguments are
 * cast at the call. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, negotiated
 * payload. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_args.h"
#include "aq_test.h"

enum {
    MREQ = AQ_TEST_FREE,
    MREP = MREQ + 17,
    LREQ = MREP + 17,
    LREP = LREQ + 17,
    FORMS = 4,
    ROUNDS = 2 * FORMS,
    HIGHEST = 640
};

static aq_test_count_t
    count_of[4][17]; /* medium requests, medium replies, long requests, long replies */
static aq_test_count_t arrived[4];

static gex_AM_Arg_t value(int n, int i, int what)
{
    return (gex_AM_Arg_t)((uint32_t)(n * 131 + i + 7 + 40 * what) * 2246822519u);
}

static size_t length(int n, int what)
{
    return (size_t)(n * 37 + what * 5) % HIGHEST;
}

/* 64 bits wide, with something above the 32 that are sent. */
static void make_args(int n, uint64_t *v, int what)
{
    int i;

    for (i = 0; i < n; i++)
        v[i] = (uint64_t)(uint32_t)value(n, i, what) | (uint64_t)0xdead0000 << 32;
}

static int check_message(int n, const gex_AM_Arg_t *got, int what, const void *buf, size_t nbytes)
{
    int i;

    for (i = 0; i < n; i++)
        AQ_CHECK_EQ(got[i], value(n, i, what));
    AQ_CHECK_EQ(nbytes, length(n, what));
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)(n + 20 * what)));
    atomic_fetch_add(&arrived[what], 1);
    return atomic_fetch_add(&count_of[what][n], 1);
}

/* Where the long message number i of round `round` goes, and the answer to it. */
static char *slot(gex_Rank_t rank, int round, int k, int n, int answer)
{
    return (char *)aq_test_base(rank) + (size_t)(((round * 2 + k) * 17 + n) * 2 + answer) * HIGHEST;
}

/* Makes the payload at its place, and checks what was negotiated. */
static void fill(gex_AM_SrcDesc_t sd, const void *client, int n, int what)
{
    const size_t len = length(n, what);

    AQ_CHECK(sd != GEX_AM_SRCDESC_NO_OP);
    AQ_CHECK_EQ(gex_AM_SrcDescSize(sd), len);
    if (client != NULL)
        AQ_CHECK_PTR(gex_AM_SrcDescAddr(sd), client);
    else
        AQ_CHECK((uintptr_t)gex_AM_SrcDescAddr(sd) % 16 == 0);
    aq_test_fill(gex_AM_SrcDescAddr(sd), len, (uint64_t)(n + 20 * what));
}

/* One message of each kind; form: numbered, counting, numbered _v2, counting _v2. */
#define COMMIT(N, KIND, FIXED)                                             \
    switch (form) {                                                        \
    case 0:                                                                \
        gex_AM_Commit##KIND##N(FIXED AQ_GIVEN(N));                         \
        break;                                                             \
    case 1:                                                                \
        gex_AM_Commit##KIND(FIXED AQ_GIVEN(N));                            \
        break;                                                             \
    case 2:                                                                \
        AQ_CHECK_EQ(gex_AM_Commit##KIND##N##_v2(FIXED, 0 AQ_GIVEN(N)), 0); \
        break;                                                             \
    default:                                                               \
        AQ_CHECK_EQ(gex_AM_Commit##KIND##_v2(FIXED, 0 AQ_GIVEN(N)), 0);    \
    }
#define MFIXED sd, h, len
#define LFIXED sd, h, len, dest

#define SENDERS(N)                                                                                 \
    static void request_m_##N(gex_Rank_t to, int form, int ours)                                   \
    {                                                                                              \
        char data[HIGHEST];                                                                        \
        uint64_t v[17];                                                                            \
        const size_t len = length(N, 0);                                                           \
        const gex_AM_Index_t h = MREQ + N;                                                         \
        gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(aq_test_tm, to, ours ? NULL : data, len, \
                                                          len, ours ? NULL : GEX_EVENT_NOW, 0, N); \
        make_args(N, v, 0);                                                                        \
        fill(sd, ours ? NULL : data, N, 0);                                                        \
        COMMIT(N, RequestMedium, MFIXED)                                                           \
        memset(data, 0xee, sizeof(data)); /* NOW: ours again at return */                          \
    }                                                                                              \
    static void request_l_##N(gex_Rank_t to, int form, int ours, char *dest)                       \
    {                                                                                              \
        char data[HIGHEST];                                                                        \
        uint64_t v[17];                                                                            \
        const size_t len = length(N, 2);                                                           \
        const gex_AM_Index_t h = LREQ + N;                                                         \
        gex_AM_SrcDesc_t sd =                                                                      \
            gex_AM_PrepareRequestLong(aq_test_tm, to, ours ? NULL : data, len, len,                \
                                      form % 2 ? dest : NULL, ours ? NULL : GEX_EVENT_NOW, 0, N);  \
        make_args(N, v, 2);                                                                        \
        fill(sd, ours ? NULL : data, N, 2);                                                        \
        COMMIT(N, RequestLong, LFIXED)                                                             \
        memset(data, 0xee, sizeof(data));                                                          \
    }
AQ_EACH(SENDERS)

#define HANDLERS(N)                                                                               \
    static void h_mreq_##N(gex_Token_t token, void *buf, size_t nbytes AQ_DECLS(N))               \
    {                                                                                             \
        const gex_AM_Arg_t got[17] = { 0 AQ_NAMES(N) };                                           \
        const int turn = check_message(N, got + 1, 0, buf, nbytes), form = turn % FORMS;          \
        const int ours = turn / FORMS % 2;                                                        \
        char data[HIGHEST];                                                                       \
        uint64_t v[17];                                                                           \
        const size_t len = length(N, 1);                                                          \
        const gex_AM_Index_t h = MREP + N;                                                        \
        gex_AM_SrcDesc_t sd = gex_AM_PrepareReplyMedium(token, ours ? NULL : data, len, len,      \
                                                        ours ? NULL : GEX_EVENT_NOW, 0, N);       \
        make_args(N, v, 1);                                                                       \
        fill(sd, ours ? NULL : data, N, 1);                                                       \
        COMMIT(N, ReplyMedium, MFIXED)                                                            \
        memset(data, 0xee, sizeof(data));                                                         \
    }                                                                                             \
    static void h_mrep_##N(gex_Token_t token, void *buf, size_t nbytes AQ_DECLS(N))               \
    {                                                                                             \
        const gex_AM_Arg_t got[17] = { 0 AQ_NAMES(N) };                                           \
        (void)token;                                                                              \
        check_message(N, got + 1, 1, buf, nbytes);                                                \
    }                                                                                             \
    static void h_lreq_##N(gex_Token_t token, void *buf, size_t nbytes AQ_DECLS(N))               \
    {                                                                                             \
        const gex_AM_Arg_t got[17] = { 0 AQ_NAMES(N) };                                           \
        const int turn = check_message(N, got + 1, 2, buf, nbytes), form = turn % FORMS;          \
        const int ours = turn / FORMS % 2;                                                        \
        char data[HIGHEST], *dest;                                                                \
        uint64_t v[17];                                                                           \
        const size_t len = length(N, 3);                                                          \
        const gex_AM_Index_t h = LREP + N;                                                        \
        gex_Token_Info_t info;                                                                    \
        gex_AM_SrcDesc_t sd;                                                                      \
        gex_Token_Info(token, &info, GEX_TI_SRCRANK);                                             \
        dest = (char *)aq_test_base(info.gex_srcrank)                                             \
               + ((char *)buf - (char *)aq_test_base(aq_test_me)) + HIGHEST;                      \
        sd = gex_AM_PrepareReplyLong(token, ours ? NULL : data, len, len, form % 2 ? dest : NULL, \
                                     ours ? NULL : GEX_EVENT_NOW, 0, N);                          \
        make_args(N, v, 3);                                                                       \
        fill(sd, ours ? NULL : data, N, 3);                                                       \
        COMMIT(N, ReplyLong, LFIXED)                                                              \
        memset(data, 0xee, sizeof(data));                                                         \
    }                                                                                             \
    static void h_lrep_##N(gex_Token_t token, void *buf, size_t nbytes AQ_DECLS(N))               \
    {                                                                                             \
        const gex_AM_Arg_t got[17] = { 0 AQ_NAMES(N) };                                           \
        (void)token;                                                                              \
        check_message(N, got + 1, 3, buf, nbytes);                                                \
    }
AQ_EACH(HANDLERS)

#define ENTRIES(N)                                                                      \
    AQ_ENTRY(MREQ + N, h_mreq_##N, AQ_MQ, N), AQ_ENTRY(MREP + N, h_mrep_##N, AQ_MP, N), \
        AQ_ENTRY(LREQ + N, h_lreq_##N, AQ_LQ, N), AQ_ENTRY(LREP + N, h_lrep_##N, AQ_LP, N),
static gex_AM_Entry_t table[] = { AQ_EACH(ENTRIES) };

#define SENDER_M(N) request_m_##N,
#define SENDER_L(N) request_l_##N,
static void (*const send_m[])(gex_Rank_t, int, int) = { AQ_EACH(SENDER_M) };
static void (*const send_l[])(gex_Rank_t, int, int, char *) = { AQ_EACH(SENDER_L) };

int main(int argc, char **argv)
{
    int n, round, what;
    gex_Rank_t k;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment((size_t)ROUNDS * 2 * 17 * 2 * HIGHEST);
    rule("core 21.2: CommitRequestMedium0..16, four forms, both buffers: arguments and payload "
         "intact");
    for (round = 0; round < ROUNDS; round++)
        for (n = 0; n <= 16; n++)
            for (k = 0; k < 2; k++)
                send_m[n](aq_test_peer(k), round % FORMS, round / FORMS);
    aq_test_wait(&arrived[0], 17 * ROUNDS * 2);
    rule("core 21.2: CommitReplyMedium0..16, four forms, both buffers: arguments and payload "
         "intact");
    aq_test_wait(&arrived[1], 17 * ROUNDS * 2);
    rule("core 21.2: CommitRequestLong0..16, four forms, both buffers: arguments and payload "
         "intact");
    for (round = 0; round < ROUNDS; round++)
        for (n = 0; n <= 16; n++)
            for (k = 0; k < 2; k++)
                send_l[n](aq_test_peer(k), round % FORMS, round / FORMS,
                          slot(aq_test_peer(k), round, (int)k, n, 0));
    aq_test_wait(&arrived[2], 17 * ROUNDS * 2);
    rule("core 21.2: CommitReplyLong0..16, four forms, both buffers: arguments and payload intact");
    aq_test_wait(&arrived[3], 17 * ROUNDS * 2);
    rule("core 22: each committed message is delivered exactly once");
    aq_test_barrier();
    for (what = 0; what < 4; what++)
        for (n = 0; n <= 16; n++)
            AQ_CHECK_EQ(atomic_load(&count_of[what][n]), ROUNDS * 2);
    return aq_test_finish();
}
