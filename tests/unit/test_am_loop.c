/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_am_loop.c - messages of a process to itself are calls: over a conduit that can send nothing,
 * handlers run inside the call, read what they should where they should, and nest no deeper than a
 * reply; now and then a request polls; sleeping threads are woken.
 * Source: GASNet-EX specification 0.19, Active messages.
 */
#include "tests/unit/aq_unit.h"

#include <string.h>

#include "core/aq_am.h"
#include "core/aq_job.h"
#include "core/aq_thread.h"
#include "core/aq_tm.h"

enum { H_SHORT = 128, H_ANSWERED, H_ANSWER, H_MEDIUM, H_PONG, H_LONG, LEN = 64 };

/* --- a conduit that only polls and rings --- */

static unsigned polls, rings;

static unsigned fake_poll(enum aq_poll_kind kind)
{
    (void)kind;
    polls++;
    return 0;
}

static void fake_ring(void)
{
    rings++;
}

static const struct aq_conduit_info fake_info = { .name = "fake" };
static const struct aq_conduit_ops fake_conduit = { .info = &fake_info,
                                                    .poll = fake_poll,
                                                    .sleep_wake = fake_ring };

/* --- handlers --- */

static unsigned calls, answers;
static void *seen; /* the payload that the last handler had */
static char source[LEN], place[LEN];

static void h_short(gex_Token_t token, gex_AM_Arg_t arg)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_ALL);
    assert_int_equal(info.gex_srcrank, aq_job.rank);
    assert_int_equal(arg, -7);
    calls++;
}

static void h_answered(gex_Token_t token)
{
    const unsigned before = answers;

    calls++;
    assert_int_equal(gex_AM_ReplyShort1(token, H_ANSWER, 0, 5), 0);
    assert_int_equal(answers, before + 1);
    assert_int_equal(aq_thread_self()->context, AQ_CTX_REQUEST);
}

static void h_answer(gex_Token_t token, gex_AM_Arg_t arg)
{
    (void)token;
    assert_int_equal(arg, 5);
    assert_int_equal(aq_thread_self()->context, AQ_CTX_REPLY);
    answers++;
}

static void h_medium(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token;
    assert_memory_equal(buf, source, nbytes);
    memset(buf, 0xee, nbytes); /* the handler may write there */
    seen = buf;
    calls++;
}

/* Answers from its own payload, which the answer's handler may not share. */
static void h_pong(gex_Token_t token, void *buf, size_t nbytes)
{
    calls++;
    gex_AM_ReplyMedium0(token, H_MEDIUM, buf, nbytes, GEX_EVENT_NOW, 0);
    assert_memory_equal(buf, source, nbytes);
    assert_ptr_not_equal(seen, buf);
}

static void h_long(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token;
    assert_ptr_equal(buf, place);
    assert_memory_equal(buf, source, nbytes);
    calls++;
}

#define ROW(index, fn, kind, nargs)                                         \
    {                                                                       \
        index, (gex_AM_Fn_t)fn, kind | GEX_FLAG_AM_REQREP, nargs, NULL, #fn \
    }

/* --- tests --- */

static gex_TM_t tm;

static int fill_source(void **state)
{
    (void)state;
    for (size_t i = 0; i < LEN; i++)
        source[i] = (char)(3 * i + 1);
    memset(place, 0, sizeof(place));
    return 0;
}

static void test_handlers_run_in_the_call(void **state)
{
    const unsigned before = calls;

    (void)state;
    assert_int_equal(gex_AM_RequestShort1(tm, 0, H_SHORT, 0, -7), 0);
    assert_int_equal(calls, before + 1);
    assert_int_equal(gex_AM_RequestShort0(tm, 0, H_ANSWERED, GEX_FLAG_IMMEDIATE), 0);
    assert_int_equal(calls, before + 2);
    assert_int_equal(aq_thread_self()->context, AQ_CTX_MAIN);
}

static void test_medium_is_copied_once(void **state)
{
    gex_Event_t leaf = GEX_EVENT_NO_OP;
    const char deferred = source[0];

    (void)state;
    gex_AM_RequestMedium0(tm, 0, H_MEDIUM, source, LEN, &leaf, 0);
    assert_ptr_equal(leaf, GEX_EVENT_INVALID);
    assert_int_equal(source[0], deferred);
    gex_AM_RequestMedium0(tm, 0, H_PONG, source, LEN, GEX_EVENT_NOW, 0);
    gex_AM_RequestMedium0(tm, 0, H_MEDIUM, NULL, 0, GEX_EVENT_NOW, 0);
}

static void test_long_goes_to_its_place(void **state)
{
    const unsigned before = calls;

    (void)state;
    gex_AM_RequestLong0(tm, 0, H_LONG, source, LEN, place, GEX_EVENT_NOW, 0);
    gex_AM_RequestLong0(tm, 0, H_LONG, NULL, 0, place, GEX_EVENT_NOW, 0);
    assert_int_equal(calls, before + 2);
}

static void test_negotiated_is_not_copied(void **state)
{
    gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(tm, 0, NULL, LEN, LEN, NULL, 0, 0);
    void *made = gex_AM_SrcDescAddr(sd);

    (void)state;
    memcpy(made, source, LEN);
    gex_AM_CommitRequestMedium0(sd, H_MEDIUM, LEN);
    assert_ptr_equal(seen, made);
    /* a client's buffer is: the handler writes to what it gets */
    sd = gex_AM_PrepareRequestMedium(tm, 0, source, LEN, LEN, GEX_EVENT_NOW, 0, 0);
    gex_AM_CommitRequestMedium0(sd, H_MEDIUM, LEN);
    assert_ptr_not_equal(seen, source);
    sd = gex_AM_PrepareRequestLong(tm, 0, NULL, LEN, LEN, place, NULL, 0, 0);
    memcpy(gex_AM_SrcDescAddr(sd), source, LEN);
    gex_AM_CommitRequestLong0(sd, H_LONG, LEN, place);
    assert_int_equal(aq_thread_self()->context, AQ_CTX_MAIN);
}

static void test_requests_poll_now_and_then(void **state)
{
    const unsigned before = polls;

    (void)state;
    for (int i = 0; i < 320; i++)
        gex_AM_RequestShort1(tm, 0, H_SHORT, 0, -7);
    assert_in_range(polls - before, 5, 20);
}

static void test_sleepers_are_woken(void **state)
{
    static _Atomic uint32_t sleeping;
    const unsigned before = rings;

    (void)state;
    aq_job.sleeping = &sleeping;
    gex_AM_RequestShort1(tm, 0, H_SHORT, 0, -7);
    assert_int_equal(rings, before);
    atomic_store(&sleeping, 1);
    gex_AM_RequestShort1(tm, 0, H_SHORT, 0, -7);
    assert_int_equal(rings, before + 1);
    atomic_store(&sleeping, 0);
}

int main(void)
{
    static _Atomic uint32_t nobody;
    gex_AM_Entry_t table[] = {
        ROW(H_SHORT, h_short, GEX_FLAG_AM_SHORT, 1),
        ROW(H_ANSWERED, h_answered, GEX_FLAG_AM_SHORT, 0),
        ROW(H_ANSWER, h_answer, GEX_FLAG_AM_SHORT, 1),
        ROW(H_MEDIUM, h_medium, GEX_FLAG_AM_MEDIUM, 0),
        ROW(H_PONG, h_pong, GEX_FLAG_AM_MEDIUM, 0),
        ROW(H_LONG, h_long, GEX_FLAG_AM_LONG, 0),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_handlers_run_in_the_call, fill_source),
        cmocka_unit_test_setup(test_medium_is_copied_once, fill_source),
        cmocka_unit_test_setup(test_long_goes_to_its_place, fill_source),
        cmocka_unit_test_setup(test_negotiated_is_not_copied, fill_source),
        cmocka_unit_test_setup(test_requests_poll_now_and_then, fill_source),
        cmocka_unit_test_setup(test_sleepers_are_woken, fill_source),
    };

    aq_job.local = &fake_conduit;
    aq_job.remote = &aq_conduit_none;
    aq_job.nbrhd_in_a_row = true;
    aq_job.size = aq_job.nbrhd_size = 1;
    aq_job.loop_rank = 0;
    aq_job.sleeping = &nobody;
    aq_job.bound = &(struct aq_bound){ place, sizeof(place) };
    aq_limits.max_medium = aq_limits.max_long = 4096;
    aq_tm_create_primordial();
    tm = aq_tm_handle(aq_job.tm);
    gex_EP_RegisterHandlers((gex_EP_t)(void *)&aq_job.ep, table, sizeof(table) / sizeof(table[0]));
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
