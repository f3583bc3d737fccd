/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ibv_error.c - what the job says when work requests fail: the cause, in whatever order the
 * completions are seen.
 */
#include "tests/unit/aq_unit.h"

#include <string.h>
#include <sys/eventfd.h>

#include "conduits/ibv/aq_ibv_error.h"

#define LATER_NS UINT64_C(60000000000) /* longer than the news of the job's end is waited for */

static const char *status_text(enum ibv_wc_status status)
{
    return status == IBV_WC_RETRY_EXC_ERR ? "retries exceeded" : "flushed";
}

static const struct aq_ibv_lib lib = { .wc_status_str = status_text };
static struct aq_ibv_dev dev = { .lib = &lib, .name = "dev0" };
static struct aq_ibv_net net = { .lib = &lib, .dev_count = 1, .rail_count = 1 };
static struct aq_ibv_remote remote = { .rank = 7 };

/* Notes failures, one for each letter: r retries were exceeded, f a receive was flushed. */
static void note(void *arg)
{
    const struct ibv_wc retry = { .status = IBV_WC_RETRY_EXC_ERR },
                        flush = { .status = IBV_WC_WR_FLUSH_ERR };

    net.rails[0].dev = &dev;
    net.rails[0].port = 1;
    aq_ibv_error_set_wakeup(eventfd(0, EFD_NONBLOCK));
    for (const char *kind = arg; *kind != '\0'; kind++) {
        if (*kind == 'r')
            aq_ibv_error_note(&net.rails[0], "sending a message", &remote, &retry);
        else
            aq_ibv_error_note(&net.rails[0], "receiving a message", &remote, &flush);
        if (!aq_ibv_error_is_known())
            return;
    }
    if (aq_ibv_error_check(&net, aq_now_ns()) <= aq_now_ns())
        return; /* the news of the job's end would not be waited for */
    (void)aq_ibv_error_check(&net, aq_now_ns() + LATER_NS);
}

static void check_cause(const char *order)
{
    struct aq_unit_result result;

    aq_unit_run(note, (void *)(uintptr_t)order, &result);
    assert_int_not_equal(aq_unit_exit_code(&result), 0);
    aq_unit_contains(result.err, "rank 7 was lost");
    aq_unit_contains(result.err, "port dev0:1");
    aq_unit_contains(result.err, "sending a message failed: retries exceeded");
    aq_unit_contains(result.err, "does not acknowledge");
    aq_unit_contains(result.err, "GASNET_IBV_PORTS");
}

static void test_cause_first(void **state)
{
    (void)state;
    check_cause("r");
    check_cause("rff");
}

static void test_flush_first(void **state)
{
    (void)state;
    check_cause("fr");
    check_cause("ffrf");
}

static void test_flush_alone(void **state)
{
    struct aq_unit_result result;
    static char order[] = "ff";

    (void)state;
    aq_unit_run(note, order, &result);
    assert_int_not_equal(aq_unit_exit_code(&result), 0);
    aq_unit_contains(result.err, "receiving a message failed: flushed");
    aq_unit_contains(result.err, "the peer is rank 7");
}

static void test_nothing(void **state)
{
    struct aq_unit_result result;
    static char order[] = "";

    (void)state;
    aq_unit_run(note, order, &result);
    assert_int_equal(aq_unit_exit_code(&result), 0);
    assert_string_equal(result.err, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cause_first),
        cmocka_unit_test(test_flush_first),
        cmocka_unit_test(test_flush_alone),
        cmocka_unit_test(test_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
