/*
 * test_thread_immediate.c - several threads fill a peer's queue with IMMEDIATE Longs, until each of
 * them is declined: a declined Long leaves its destination as it was, an accepted one arrives.
 * Ranks 1+. Mode par. Conduits all. Source GASNet-EX specification 0.19, immediate mode.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#if GASNET_PAR
#include <pthread.h>

/* A thread has so many places at its peer, one for each message of a round. */
enum { THREADS = 4, PLACES = 48, LEN = 1 << 16, ROUNDS = 12, H_LONG = AQ_TEST_FREE, H_ANS };

static aq_test_count_t answered, accepted;
static unsigned char holds[THREADS][PLACES]; /* the value that all bytes of a place have */
static pthread_barrier_t start;
static size_t len;
static int value; /* of this round's messages */

static void h_long(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t sent)
{
    AQ_CHECK_EQ(nbytes, len);
    AQ_CHECK(aq_test_all(buf, sent, nbytes));
    gex_AM_ReplyShort0(token, H_ANS, 0);
}

static void h_ans(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&answered, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_LONG, h_long, AQ_LQ, 1),
    AQ_ENTRY(H_ANS, h_ans, AQ_SP, 0),
};

static char *place(int thread, int i)
{
    return (char *)aq_test_base(aq_test_peer(1)) + (size_t)(thread * PLACES + i) * len;
}

/* No thread polls in the meantime, so that it ends soon, and the last space is taken while the
 * others copy. */
static void *sender(void *arg)
{
    const int me = (int)(intptr_t)arg;
    char *buf = malloc(len);
    int i;

    memset(buf, value, len);
    pthread_barrier_wait(&start);
    for (i = 0; i < PLACES; i++) {
        if (gex_AM_RequestLong1(aq_test_tm, aq_test_peer(1), H_LONG, buf, len, place(me, i),
                                GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE, value)
            != 0)
            break;
        holds[me][i] = (unsigned char)value;
        atomic_fetch_add(&accepted, 1);
    }
    free(buf);
    return NULL;
}

static void check_places(char *buf)
{
    int t, i;

    for (t = 0; t < THREADS; t++)
        for (i = 0; i < PLACES; i++) {
            AQ_CHECK_EQ(gex_RMA_GetBlocking(aq_test_tm, buf, aq_test_peer(1), place(t, i), len, 0),
                        0);
            AQ_CHECK(aq_test_all(buf, holds[t][i], len));
        }
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    char *buf;
    int round, i;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    len = gex_AM_LUBRequestLong() < LEN ? gex_AM_LUBRequestLong() : LEN;
    aq_test_segment(THREADS * PLACES * len);
    memset(aq_test_base(aq_test_me), 0, THREADS * PLACES * len);
    buf = malloc(len);
    pthread_barrier_init(&start, NULL, THREADS);
    rule("core 26: a declined Long leaves its destination alone, also when several threads send at "
         "once");
    for (round = 0; round < (aq_test_quick ? 3 : ROUNDS); round++) {
        aq_test_barrier(); /* everybody's places were checked */
        value = round + 1;
        for (i = 0; i < THREADS; i++)
            AQ_CHECK_EQ(pthread_create(&threads[i], NULL, sender, (void *)(intptr_t)i), 0);
        for (i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        aq_test_wait(&answered, atomic_load(&accepted));
        check_places(buf);
    }
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&answered), atomic_load(&accepted));
    free(buf);
    return aq_test_finish();
}
#else
int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_skip("one thread only in seq");
}
#endif
