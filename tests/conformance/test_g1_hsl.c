/*
 * test_g1_hsl.c - locks and no-interrupt sections of GASNet-1 as clients use them: static,
 * embedded, from malloc; counters shared with handlers; conditions with side effects in
 * GASNET_BLOCKUNTIL, with plain variables; many threads in par, one of which does nothing but poll.
 * Ranks 1+. Conduits all. Source GASNet specification 1.8, handler atomicity; its clients.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test_g1.h"

enum { H_ADD = AQ_TEST_FREE, H_QUEUE, H_FLAG, ADDS = 2000, QUEUE = 40, THREADS = 4 };

static gasnet_hsl_t plain = GASNET_HSL_INITIALIZER;
static struct {
    int before;
    gasnet_hsl_t lock;
    long sum;
} shared = { 1, GASNET_HSL_INITIALIZER, 0 };
static aq_test_count_t added;
static int queued, taken, looks_after; /* plain variables, which a handler changes */
static int flag;

static void h_add(gasnet_token_t token)
{
    (void)token;
    gasnet_hold_interrupts(); /* ignored: a handler is never interrupted */
    gasnet_hsl_lock(&shared.lock);
    shared.sum++;
    gasnet_hsl_unlock(&shared.lock);
    gasnet_resume_interrupts();
    atomic_fetch_add(&added, 1);
}

static void h_queue(gasnet_token_t token)
{
    (void)token;
    gasnet_hsl_lock(&plain);
    queued++;
    gasnet_hsl_unlock(&plain);
}

static void h_flag(gasnet_token_t token)
{
    (void)token;
    flag = 1;
}

static gasnet_handlerentry_t table[] = { { H_ADD, h_add },
                                         { H_QUEUE, h_queue },
                                         { H_FLAG, h_flag } };

/* Takes an entry out of the queue, so that it may be asked once for each that is there. */
static int take(void)
{
    int got;

    gasnet_hold_interrupts();
    gasnet_hsl_lock(&plain);
    got = queued > 0;
    queued -= got;
    taken += got;
    gasnet_hsl_unlock(&plain);
    gasnet_resume_interrupts();
    return got;
}

static void check_queue(void)
{
    const gasnet_node_t to = aq_test_peer(1);
    int i;

    rule("gasnet-1 10.4: BLOCKUNTIL with a condition that takes an entry: each is taken once");
    for (i = 0; i < QUEUE; i++)
        gasnet_AMRequestShort0(to, H_QUEUE);
    for (i = 0; i < QUEUE; i++)
        GASNET_BLOCKUNTIL(take());
    AQ_CHECK_EQ(taken, QUEUE);
    aq_test_barrier();
    AQ_CHECK(!take());
    rule("gasnet-1 10.4: a condition that is true already is looked at once, without a poll");
    GASNET_BLOCKUNTIL(++looks_after);
    AQ_CHECK_EQ(looks_after, 1);
    rule("gasnet-1 10.4: a plain variable that a handler sets is read anew");
    flag = 0;
    aq_test_barrier();
    gasnet_AMRequestShort0(to, H_FLAG);
    GASNET_BLOCKUNTIL(flag);
    aq_test_barrier();
}

static void check_locks(void)
{
    gasnet_hsl_t *dynamic = malloc(2 * sizeof(*dynamic));

    rule("gasnet-1 11.3: locks from malloc, several held, trylock");
    gasnet_hsl_init(&dynamic[0]);
    gasnet_hsl_init(&dynamic[1]);
    gasnet_hsl_lock(&dynamic[0]);
    AQ_CHECK_EQ(gasnet_hsl_trylock(&dynamic[1]), GASNET_OK);
    gasnet_hsl_lock(&plain);
    gasnet_hsl_unlock(&plain);
    gasnet_hsl_unlock(&dynamic[1]);
    gasnet_hsl_unlock(&dynamic[0]);
    gasnet_hsl_destroy(&dynamic[1]);
    gasnet_hsl_destroy(&dynamic[0]);
    free(dynamic);
}

#if GASNET_PAR
static atomic_int working;

/* One thread polls all the time; the others send, and wait for what comes to this rank. */
static void *thread(void *arg)
{
    const gasnet_node_t to = aq_test_peer(1);
    int i;

    if (arg == NULL) {
        while (atomic_load(&working) > 0) {
            gasnet_AMPoll();
            aq_test_yield();
        }
        return NULL;
    }
    for (i = 0; i < ADDS; i++) {
        gasnet_AMRequestShort0(to, H_ADD);
        gasnet_hsl_lock(&shared.lock);
        shared.sum++;
        gasnet_hsl_unlock(&shared.lock);
    }
    GASNET_BLOCKUNTIL(atomic_load(&added) == ADDS * (THREADS - 1));
    atomic_fetch_sub(&working, 1);
    return NULL;
}

static void check_threads(void)
{
    rule("gasnet-1 11.3: threads and handlers add under one lock, one thread polls");
    atomic_store(&added, 0);
    shared.sum = 0;
    atomic_store(&working, THREADS - 1);
    aq_test_barrier();
    aq_test_threads(THREADS, thread);
    AQ_CHECK_EQ(shared.sum, 2 * ADDS * (THREADS - 1));
}
#endif

int main(int argc, char **argv)
{
    int i;

    aq_test_start_gasnet1(&argc, &argv, 1, table, AQ_LENGTH(table), 4096);
    check_locks();
    check_queue();
    rule("gasnet-1 11.3: a counter that handlers and main code change under a lock");
    for (i = 0; i < ADDS; i++) {
        gasnet_AMRequestShort0(aq_test_peer(1), H_ADD);
        gasnet_hsl_lock(&shared.lock);
        shared.sum++;
        gasnet_hsl_unlock(&shared.lock);
    }
    GASNET_BLOCKUNTIL(atomic_load(&added) == ADDS);
    AQ_CHECK_EQ(shared.sum, 2 * ADDS);
#if GASNET_PAR
    check_threads();
#endif
    return aq_test_finish();
}
