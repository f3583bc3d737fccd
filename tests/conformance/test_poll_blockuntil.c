/*
 * test_poll_blockuntil.c - polling, GASNET_BLOCKUNTIL in its odder uses, wait modes, thread-info macros.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, polling.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_PING = AQ_TEST_FREE, H_PONG, ROUNDS = 30 };

static aq_test_count_t pings, pongs;

static void h_ping(gex_Token_t token)
{
    gex_AM_ReplyShort0(token, H_PONG, 0);
    atomic_fetch_add(&pings, 1);
}

static void h_pong(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&pongs, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_PING, h_ping, AQ_SQ, 0),
    AQ_ENTRY(H_PONG, h_pong, AQ_SP, 0),
};

static int looked;

static int looks(int until)
{
    looked++;
    return atomic_load(&pongs) >= until;
}

static void round_trips(int mode)
{
    int i, want = atomic_load(&pongs);

    AQ_CHECK_EQ(gasnet_set_waitmode(mode), GASNET_OK);
    for (i = 0; i < ROUNDS; i++) {
        gex_AM_RequestShort0(aq_test_tm, aq_test_peer(1), H_PING, 0);
        want++;
        GASNET_BLOCKUNTIL(atomic_load(&pongs) >= want);
    }
    aq_test_barrier();
}

static int with_threadinfo(void)
{
    GASNET_BEGIN_FUNCTION();
    int sum = 0;

    {
        gasnet_threadinfo_t info = GASNET_GET_THREADINFO();
        {
            GASNET_POST_THREADINFO(info);
            int more = 1;

            sum += more + gasnet_AMPoll();
        }
    }
    return sum;
}

#if GASNET_PAR
/* All threads wait in the library; the condition of each is changed by whoever runs the handler. */
static void *waiter(void *arg)
{
    (void)arg;
    gex_AM_RequestShort0(aq_test_tm, aq_test_peer(1), H_PING, 0);
    GASNET_BLOCKUNTIL(atomic_load(&pongs) >= ROUNDS * 3 + 2 + 4);
    return NULL;
}
#endif

int main(int argc, char **argv)
{
    int want, i;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    rule("core 24: gasnet_AMPoll returns OK");
    for (i = 0; i < 10; i++)
        AQ_CHECK_EQ(gasnet_AMPoll(), GASNET_OK);
    rule("core 24: BLOCKUNTIL with a true condition looks once; side effects, comma expressions");
    looked = 0;
    GASNET_BLOCKUNTIL(looks(0));
    AQ_CHECK_EQ(looked, 1);
    gex_AM_RequestShort0(aq_test_tm, aq_test_peer(1), H_PING, 0);
    GASNET_BLOCKUNTIL(looks(1));
    gex_AM_RequestShort0(aq_test_tm, aq_test_peer(1), H_PING, 0);
    i = 0;
    GASNET_BLOCKUNTIL((i++, looks(2)));
    AQ_CHECK(i >= 1);
    if (looked < 0)
        GASNET_BLOCKUNTIL(0);
    else
        AQ_CHECK(looked >= 3);
    aq_test_barrier();
    rule("core 24: round trips in every wait mode");
    round_trips(GASNET_WAIT_BLOCK);
    round_trips(GASNET_WAIT_SPINBLOCK);
    round_trips(GASNET_WAIT_SPIN);
    rule("core 24: unknown wait modes are BAD_ARG");
    gex_System_SetVerboseErrors(0);
    AQ_CHECK_EQ(gasnet_set_waitmode(99), GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gasnet_set_waitmode(-1), GASNET_ERR_BAD_ARG);
    gex_System_SetVerboseErrors(1);
    rule("core 24: thread-info macros compile in nested blocks and do no harm");
    AQ_CHECK_EQ(with_threadinfo(), 1);
#if GASNET_PAR
    rule("core 24: several threads in BLOCKUNTIL are all released");
    aq_test_threads(4, waiter);
#endif
    want = atomic_load(&pongs);
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&pongs), want);
    return aq_test_finish();
}
