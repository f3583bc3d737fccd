/*
 * test_npam_threads.c - each thread has a descriptor of its own, all of them open at a time,
 * however many threads there are; threads that end with an open one take no buffer with them.
 * Ranks 1+. Mode par. Conduits all. Source GASNet-EX specification 0.19, negotiated payload,
 * threads. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#if GASNET_PAR
#include <pthread.h>

enum {
    THREADS = 6,
    SENDS = 400,
    DYING = 8,
    CROWD = 48,
    H_ASK = AQ_TEST_FREE,
    H_ANS,
    H_CROWD_M,
    H_CROWD_L,
    H_SEEN
};

static aq_test_count_t asked, answered[THREADS];
static aq_test_count_t seen;
static pthread_barrier_t meeting, assembly;
static int sends;

static void h_ask(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t thread, gex_AM_Arg_t i)
{
    gex_AM_SrcDesc_t sd = gex_AM_PrepareReplyMedium(token, i % 2 ? buf : NULL, 0, nbytes,
                                                    i % 2 ? GEX_EVENT_NOW : NULL, 0, 2);
    size_t size = gex_AM_SrcDescSize(sd);

    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)(thread * 100000 + i)));
    if (i % 2 == 0)
        memcpy(gex_AM_SrcDescAddr(sd), buf, size);
    gex_AM_CommitReplyMedium2(sd, H_ANS, size, thread, i);
    atomic_fetch_add(&asked, 1);
}

static void h_ans(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t thread, gex_AM_Arg_t i)
{
    (void)token;
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)(thread * 100000 + i)));
    atomic_fetch_add(&answered[thread], 1);
}

static void h_crowd(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t seed)
{
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    gex_AM_ReplyShort0(token, H_SEEN, 0);
}

static void h_seen(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&seen, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_ASK, h_ask, AQ_MQ, 2),       AQ_ENTRY(H_ANS, h_ans, AQ_MP, 2),
    AQ_ENTRY(H_CROWD_M, h_crowd, AQ_MQ, 1), AQ_ENTRY(H_CROWD_L, h_crowd, AQ_LQ, 1),
    AQ_ENTRY(H_SEEN, h_seen, AQ_SP, 0),
};

static void *sender(void *arg)
{
    const int me = (int)(intptr_t)arg;
    gex_AM_SrcDesc_t sd;
    int i;

    for (i = 0; i < sends; i++) {
        const size_t len = (size_t)(i * 131 + me * 17) % 9000;

        sd = gex_AM_PrepareRequestMedium(aq_test_tm, aq_test_peer((gex_Rank_t)(i + me) % aq_test_n),
                                         NULL, len, len, NULL, 0, 2);
        aq_test_fill(gex_AM_SrcDescAddr(sd), len, (uint64_t)(me * 100000 + i));
        gex_AM_CommitRequestMedium2(sd, H_ASK, len, me, i);
    }
    aq_test_wait(&answered[me], sends);
    return NULL;
}

/* All threads are between Prepare and Commit at the same time, with different buffers. */
static void *holder(void *arg)
{
    const int me = (int)(intptr_t)arg;
    static void *_Atomic addr[THREADS];
    gex_AM_SrcDesc_t sd;
    int i, j;

    for (i = 0; i < 20; i++) {
        sd = gex_AM_PrepareRequestMedium(aq_test_tm, aq_test_peer(1), NULL, 5000, 5000, NULL, 0, 2);
        memset(gex_AM_SrcDescAddr(sd), me, 5000);
        atomic_store(&addr[me], gex_AM_SrcDescAddr(sd));
        pthread_barrier_wait(&meeting);
        for (j = 0; j < THREADS; j++)
            AQ_CHECK(j == me || atomic_load(&addr[j]) != gex_AM_SrcDescAddr(sd));
        AQ_CHECK(aq_test_all(gex_AM_SrcDescAddr(sd), me, 5000));
        pthread_barrier_wait(&meeting);
        gex_AM_CancelRequestMedium(sd, 0);
    }
    return NULL;
}

static gex_AM_SrcDesc_t crowd_prepare(int kind, gex_Rank_t to, const void *buf, size_t len,
                                      void *dest)
{
    switch (kind) {
    case 0:
        return gex_AM_PrepareRequestMedium(aq_test_tm, to, buf, len, len, GEX_EVENT_NOW, 0, 1);
    case 1:
        return gex_AM_PrepareRequestLong(aq_test_tm, to, NULL, len, len, dest, NULL, 0, 1);
    default:
        return gex_AM_PrepareRequestMedium(aq_test_tm, to, NULL, len, len, NULL, 0, 1);
    }
}

/* More descriptors than the library has buffers: all threads wait for each other before they
 * commit, while one thread sends messages with fixed payloads. */
static void *crowd(void *arg)
{
    const int me = (int)(intptr_t)arg, kind = me % 4;
    const size_t len = gex_AM_LUBRequestMedium();
    const gex_Rank_t to = aq_test_peer(1);
    char *dest = (char *)aq_test_base(to) + (size_t)me * len, *buf = malloc(len);
    gex_AM_SrcDesc_t sd = GEX_AM_SRCDESC_NO_OP;
    void *payload = buf;
    int i;

    aq_test_fill(buf, len, (uint64_t)me);
    if (me != 0) {
        sd = crowd_prepare(kind, to, buf, len, dest);
        AQ_CHECK(sd != GEX_AM_SRCDESC_NO_OP && gex_AM_SrcDescSize(sd) == len);
        if (kind != 0)
            payload = gex_AM_SrcDescAddr(sd);
        aq_test_fill(payload, len, (uint64_t)me);
    }
    pthread_barrier_wait(&assembly);
    for (i = 0; me == 0 && i < CROWD; i++)
        gex_AM_RequestMedium1(aq_test_tm, to, H_CROWD_M, buf, len, GEX_EVENT_NOW, 0, me);
    pthread_barrier_wait(&assembly);
    AQ_CHECK(aq_test_same(payload, len, (uint64_t)me));
    if (me != 0 && kind == 1)
        gex_AM_CommitRequestLong1(sd, H_CROWD_L, len, dest, me);
    else if (me != 0)
        gex_AM_CommitRequestMedium1(sd, H_CROWD_M, len, me);
    free(buf);
    return NULL;
}

/* Ends with an open descriptor. IMMEDIATE: it is a buffer of those that are few. */
static void *dying(void *arg)
{
    gex_AM_SrcDesc_t sd;

    if ((intptr_t)arg % 2)
        AQ_UNTIL((sd = gex_AM_PrepareRequestMedium(aq_test_tm, aq_test_peer(1), NULL, 60000, 60000,
                                                   NULL, GEX_FLAG_IMMEDIATE, 2))
                 != GEX_AM_SRCDESC_NO_OP);
    else
        AQ_UNTIL((sd = gex_AM_PrepareRequestLong(aq_test_tm, aq_test_me, NULL, 60000, 60000, NULL,
                                                 NULL, GEX_FLAG_IMMEDIATE, 2))
                 != GEX_AM_SRCDESC_NO_OP);
    memset(gex_AM_SrcDescAddr(sd), 1, 60000);
    return NULL;
}

int main(int argc, char **argv)
{
    int i;

    aq_test_start(&argc, &argv, 1);
    sends = aq_test_quick ? SENDS / 10 : SENDS;
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(CROWD * gex_AM_LUBRequestMedium());
    pthread_barrier_init(&meeting, NULL, THREADS);
    pthread_barrier_init(&assembly, NULL, CROWD);
    rule("core 21: threads prepare and commit side by side; requests and replies arrive intact");
    aq_test_threads(THREADS, sender);
    aq_test_wait(&asked, THREADS * sends);
    rule("core 21.1: each thread has its own descriptor and buffer");
    aq_test_threads(THREADS, holder);
    rule("core 21: Prepare without IMMEDIATE gives every thread a descriptor, however many others "
         "have one");
    for (i = 1; i <= (aq_test_quick ? 1 : 3); i++) {
        aq_test_threads(CROWD, crowd);
        aq_test_wait(&seen, i * (2 * CROWD - 1));
    }
    rule("core 7: a thread that ends between Prepare and Commit takes no buffer with it");
    if (gex_AM_MaxRequestMedium(aq_test_tm, GEX_RANK_INVALID, NULL, GEX_FLAG_AM_PREPARE_LEAST_ALLOC,
                                2)
        >= 60000) /* rare enough to run out of */
        for (i = 0; i < 20; i++)
            aq_test_threads(DYING, dying);
    rule("core 21: threads prepare and commit side by side; requests and replies arrive intact");
    aq_test_barrier();
    for (i = 0; i < THREADS; i++)
        atomic_store(&answered[i], 0);
    aq_test_threads(THREADS, sender);
    aq_test_wait(&asked, 2 * THREADS * sends);
    return aq_test_finish();
}
#else
int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_skip("threads need par");
}
#endif
