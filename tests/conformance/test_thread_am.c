/*
 * test_thread_am.c - several threads of each rank sending and polling at once: all messages arrive
 * once, replies find the right rank, handlers of one process may run side by side, and a payload
 * stays until its own handler returns.
 * Ranks 1+. Mode par. Conduits all. Source GASNet-EX specification 0.19, threads.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#if GASNET_PAR
enum { THREADS = 4, SENDS = 600, H_ASK = AQ_TEST_FREE, H_ASK_M, H_ANS, H_ANS_M, REGISTERED = 8 };

static aq_test_count_t asked, answered[THREADS];
static _Thread_local int depth;

static void h_ask(gex_Token_t token, gex_AM_Arg_t thread, gex_AM_Arg_t i)
{
    AQ_CHECK_EQ(depth++, 0);
    gex_AM_ReplyShort2(token, H_ANS, 0, thread, i);
    atomic_fetch_add(&asked, 1);
    depth--;
}

static void h_ask_m(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t thread,
                    gex_AM_Arg_t i)
{
    int reads;

    AQ_CHECK_EQ(depth++, 0);
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)(thread * 100000 + i)));
    gex_AM_ReplyMedium2(token, H_ANS_M, buf, nbytes, GEX_EVENT_NOW, 0, thread, i);
    for (reads = i % 7; reads > 0; reads--) /* while others take, finish and send */
        AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)(thread * 100000 + i)));
    atomic_fetch_add(&asked, 1);
    depth--;
}

static void h_ans(gex_Token_t token, gex_AM_Arg_t thread, gex_AM_Arg_t i)
{
    (void)token;
    (void)i;
    atomic_fetch_add(&answered[thread], 1);
}

static void h_ans_m(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t thread,
                    gex_AM_Arg_t i)
{
    (void)token;
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)(thread * 100000 + i)));
    atomic_fetch_add(&answered[thread], 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_ASK, h_ask, AQ_SQ, 2),
    AQ_ENTRY(H_ASK_M, h_ask_m, AQ_MQ, 2),
    AQ_ENTRY(H_ANS, h_ans, AQ_SP, 2),
    AQ_ENTRY(H_ANS_M, h_ans_m, AQ_MP, 2),
};

static int sends;

static void *sender(void *arg)
{
    const int me = (int)(intptr_t)arg;
    char buf[3000];
    int i;

    for (i = 0; i < sends; i++) {
        const gex_Rank_t to = aq_test_peer((gex_Rank_t)(i + me) % aq_test_n);
        const size_t len = (size_t)(i * 13 + me) % (i % 8 == 0 ? sizeof(buf) : 800);

        if (i % 2) {
            gex_AM_RequestShort2(aq_test_tm, to, H_ASK, 0, me, i);
        } else {
            aq_test_fill(buf, len, (uint64_t)(me * 100000 + i));
            gex_AM_RequestMedium2(aq_test_tm, to, H_ASK_M, buf, len, GEX_EVENT_NOW, 0, me, i);
        }
    }
    aq_test_wait(&answered[me], sends);
    return NULL;
}

static atomic_int index_taken[256];

static void h_none(gex_Token_t token)
{
    (void)token;
}

/* Registration from several threads at once: all indices different. */
static void *registrar(void *arg)
{
    gex_AM_Entry_t ours[REGISTERED];
    int i;

    (void)arg;
    for (i = 0; i < REGISTERED; i++)
        ours[i] = (gex_AM_Entry_t)AQ_ENTRY(0, h_none, AQ_SQ, 0);
    AQ_CHECK_EQ(gex_EP_RegisterHandlers(aq_test_ep, ours, REGISTERED), GASNET_OK);
    for (i = 0; i < REGISTERED; i++)
        AQ_CHECK_EQ(atomic_fetch_add(&index_taken[ours[i].gex_index], 1), 0);
    return NULL;
}

int main(int argc, char **argv)
{
    int i;

    aq_test_start(&argc, &argv, 1);
    sends = aq_test_n > 4 || aq_test_quick ? SENDS / 6 : SENDS;
    rule("core 17.3: registration by several threads at once");
    aq_test_threads(THREADS, registrar);
    aq_test_handlers(table, AQ_LENGTH(table));
    rule("core 7: several threads send, poll and reply at once: each message once, data intact");
    aq_test_threads(THREADS, sender);
    aq_test_wait(&asked, THREADS * sends);
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&asked), THREADS * sends);
    for (i = 0; i < THREADS; i++)
        AQ_CHECK_EQ(atomic_load(&answered[i]), sends);
    return aq_test_finish();
}
#else
int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_skip("one thread only in seq");
}
#endif
