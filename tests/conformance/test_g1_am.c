/*
 * test_g1_am.c - every argument count of the seven kinds of GASNet-1 messages, in the numbered
 * forms and in those that are given the count, to oneself and to a peer; each handler serves as
 * request and as reply. Ranks 1+. Conduits all. Source GASNet specification 1.8, active messages.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_args.h"
#include "aq_test_g1.h"

enum {
    SHORT = AQ_TEST_FREE,
    MEDIUM = SHORT + 17,
    LONG = MEDIUM + 17,
    ROWS = 3 * 17,
    HIGHEST = 700,
    SLOTS = 64,
    SEGMENT = 2 * SLOTS * 1024
};

static aq_test_count_t requests, replies;
static char data[HIGHEST];

static gasnet_handlerarg_t value(int n, int i, int reply)
{
    return (gasnet_handlerarg_t)((uint32_t)(n * 131 + i + 7 + reply * 3331) * 2246822519u);
}

static size_t length(int n, int kind)
{
    return kind == 0 ? 0 : (size_t)(n * 41 + kind * 7) % HIGHEST;
}

/* Where a long message of n arguments lands: one place for requests and one for replies. */
static char *place(gasnet_node_t node, gasnet_node_t from, int n, int reply)
{
    const size_t slot = (from == gasnet_mynode() && node == from ? 0 : 17) + (size_t)n;

    return (char *)aq_test_base(node) + ((size_t)reply * SLOTS + slot) * 1024 + 1;
}

/* Returns true for a request that wants a reply: its first argument says so, or it has none. */
static void check(int n, const gasnet_handlerarg_t *got, int kind, int reply, const void *buf,
                  size_t nbytes)
{
    int i;

    for (i = 0; i < n; i++)
        AQ_CHECK_EQ(got[i], value(n, i, reply));
    AQ_CHECK_EQ(nbytes, length(n, kind));
    AQ_CHECK(nbytes == 0 || aq_test_same(buf, nbytes, (uint64_t)(n + kind)));
    atomic_fetch_add(reply ? &replies : &requests, 1);
}

static bool is_reply(gasnet_token_t token)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_IS_REQ | GEX_TI_ENTRY);
    AQ_CHECK(info.gex_entry != NULL);
    return !info.gex_is_req;
}

#define SETUP(N)                                           \
    const gasnet_handlerarg_t got[17] = { 0 AQ_NAMES(N) }; \
    const int reply = is_reply(token);                     \
    gasnet_handlerarg_t v[17];                             \
    gasnet_node_t source = gasnet_nodes();                 \
    char bytes[HIGHEST];                                   \
    int i, rc;                                             \
    gasnet_AMGetMsgSource(token, &source);                 \
    (void)v;                                               \
    for (i = 0; i < N; i++)                                \
        v[i] = value(N, i, 1);

/* Odd counts answer with the form that is given the count. */
#define HANDLERS(N)                                                                             \
    static void short_##N(gasnet_token_t token AQ_DECLS(N))                                     \
    {                                                                                           \
        SETUP(N)                                                                                \
        (void)bytes;                                                                            \
        check(N, got + 1, 0, reply, NULL, 0);                                                   \
        if (reply)                                                                              \
            return;                                                                             \
        if (N % 2)                                                                              \
            rc = gasnet_AMReplyShort(token, SHORT + N, N AQ_GIVEN(N));                          \
        else                                                                                    \
            rc = gasnet_AMReplyShort##N(token, SHORT + N AQ_GIVEN(N));                          \
        AQ_CHECK_EQ(rc, GASNET_OK);                                                             \
    }                                                                                           \
    static void medium_##N(gasnet_token_t token, void *buf, size_t nbytes AQ_DECLS(N))          \
    {                                                                                           \
        SETUP(N)                                                                                \
        AQ_CHECK((uintptr_t)buf % 8 == 0);                                                      \
        check(N, got + 1, 1, reply, buf, nbytes);                                               \
        memset(buf, 0, nbytes); /* it is ours to write to */                                    \
        if (reply)                                                                              \
            return;                                                                             \
        aq_test_fill(bytes, length(N, 1), N + 1);                                               \
        if (N % 2)                                                                              \
            rc = gasnet_AMReplyMedium(token, MEDIUM + N, bytes, length(N, 1), N AQ_GIVEN(N));   \
        else                                                                                    \
            rc = gasnet_AMReplyMedium##N(token, MEDIUM + N, bytes, length(N, 1) AQ_GIVEN(N));   \
        AQ_CHECK_EQ(rc, GASNET_OK);                                                             \
    }                                                                                           \
    static void long_##N(gasnet_token_t token, void *buf, size_t nbytes AQ_DECLS(N))            \
    {                                                                                           \
        SETUP(N)                                                                                \
        char *dest = place(source, gasnet_mynode(), N, 1);                                      \
        AQ_CHECK_PTR(buf, place(gasnet_mynode(), source, N, reply));                            \
        check(N, got + 1, 2, reply, buf, nbytes);                                               \
        if (reply)                                                                              \
            return;                                                                             \
        aq_test_fill(bytes, length(N, 2), N + 2);                                               \
        if (N % 2)                                                                              \
            rc = gasnet_AMReplyLong(token, LONG + N, bytes, length(N, 2), dest, N AQ_GIVEN(N)); \
        else                                                                                    \
            rc = gasnet_AMReplyLong##N(token, LONG + N, bytes, length(N, 2), dest AQ_GIVEN(N)); \
        AQ_CHECK_EQ(rc, GASNET_OK);                                                             \
        memset(bytes, 0, sizeof(bytes));                                                        \
    }
AQ_EACH(HANDLERS)

#define ROW_SHORT(N)  AQ_G1_ENTRY(SHORT + N, short_##N),
#define ROW_MEDIUM(N) AQ_G1_ENTRY(MEDIUM + N, medium_##N),
#define ROW_LONG(N)   AQ_G1_ENTRY(LONG + N, long_##N),
static gasnet_handlerentry_t table[] = { AQ_EACH(ROW_SHORT) AQ_EACH(ROW_MEDIUM) AQ_EACH(ROW_LONG) };

static void wait_for_answers(int n)
{
    aq_test_wait(&replies, n);
    aq_test_wait(&requests, n);
    aq_test_barrier();
    atomic_store(&replies, 0);
    atomic_store(&requests, 0);
    aq_test_barrier();
}

/* kind 0 Short, 1 Medium, 2 Long, 3 LongAsync; the source is overwritten at once. */
#define SEND(N)                                                                                    \
    for (i = 0; i < N; i++)                                                                        \
        v[i] = value(N, i, 0);                                                                     \
    aq_test_fill(data, length(N, kind == 3 ? 2 : kind), N + (kind == 3 ? 2 : kind));               \
    dest = place(to, gasnet_mynode(), N, 0);                                                       \
    rc = kind == 0 ? counted ? gasnet_AMRequestShort(to, SHORT + N, N AQ_GIVEN(N))                 \
                             : gasnet_AMRequestShort##N(to, SHORT + N AQ_GIVEN(N))                 \
         : kind == 1                                                                               \
             ? counted ? gasnet_AMRequestMedium(to, MEDIUM + N, data, length(N, 1), N AQ_GIVEN(N)) \
                       : gasnet_AMRequestMedium##N(to, MEDIUM + N, data, length(N, 1) AQ_GIVEN(N)) \
         : kind == 2                                                                               \
             ? counted                                                                             \
                   ? gasnet_AMRequestLong(to, LONG + N, data, length(N, 2), dest, N AQ_GIVEN(N))   \
                   : gasnet_AMRequestLong##N(to, LONG + N, data, length(N, 2), dest AQ_GIVEN(N))   \
         : counted                                                                                 \
             ? gasnet_AMRequestLongAsync(to, LONG + N, data, length(N, 2), dest, N AQ_GIVEN(N))    \
             : gasnet_AMRequestLongAsync##N(to, LONG + N, data, length(N, 2), dest AQ_GIVEN(N));   \
    AQ_CHECK_EQ(rc, GASNET_OK);                                                                    \
    memset(data, 0, sizeof(data));

static void send(gasnet_node_t to, int kind, bool counted)
{
    gasnet_handlerarg_t v[17];
    char *dest;
    int i, rc;

    AQ_EACH(SEND)
}

int main(int argc, char **argv)
{
    static const char *const names[] = {
        "gasnet-1 10.3: Short of 0..16 arguments, request and reply",
        "gasnet-1 10.3: Medium of 0..16 arguments, request and reply",
        "gasnet-1 10.3: Long of 0..16 arguments, request and reply",
        "gasnet-1 10.3: LongAsync of 0..16 arguments; source reusable at return",
    };
    gex_Rank_t k;
    int kind, counted;

    aq_test_start_gasnet1(&argc, &argv, 1, table, ROWS, SEGMENT);
    for (kind = 0; kind < 4; kind++) {
        rule(names[kind]);
        for (counted = 0; counted < 2; counted++)
            for (k = 0; k < 2; k++) {
                send(aq_test_peer(k), kind, counted);
                wait_for_answers(17);
            }
    }
    return aq_test_finish();
}
