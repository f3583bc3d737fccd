/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_log.c - heads of console messages, levels, one write for a line, errno kept.
 * Source: message heads that users' scripts match ("*** FATAL ERROR (proc R): ").
 */
#include "tests/unit/aq_unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/aq_log.h"

static struct aq_unit_result run;

static void body_no_rank(void *arg)
{
    (void)arg;
    aq_warn("w %d", 1);
}

static void test_no_rank(void **state)
{
    char host[256], text[400];
    char *colon;

    (void)state;
    aq_unit_run(body_no_rank, NULL, &run);
    assert_int_equal(gethostname(host, sizeof(host)), 0);
    snprintf(text, sizeof(text), "*** WARNING (%s:", host);
    assert_int_equal(strncmp(run.err, text, strlen(text)), 0);
    colon = run.err + strlen(text);
    assert_true(strtol(colon, &colon, 10) > 1);
    assert_string_equal(colon, "): w 1\n");
}

static void body_heads(void *arg)
{
    (void)arg;
    aq_log_set_rank(3);
    errno = ENOENT;
    aq_warn("one: %m");
    if (errno != ENOENT)
        _exit(98);
    aq_notice("two");
    if (aq_fail(-5, "three %s", "x") != -5)
        _exit(97);
    aq_log_set_verbose_errors(false);
    (void)aq_fail(-5, "hidden");
    aq_log_set_quiet(true);
    aq_notice("hidden");
    aq_log_print("plain\n");
    aq_fatal("four");
}

static void test_heads(void **state)
{
    (void)state;
    aq_unit_run(body_heads, NULL, &run);
    assert_int_equal(aq_unit_exit_code(&run), 1);
    assert_string_equal(run.err, "*** WARNING (proc 3): one: No such file or directory\n"
                                 "*** NOTICE (proc 3): two\n"
                                 "*** ERROR (proc 3): three x\n"
                                 "plain\n"
                                 "*** FATAL ERROR (proc 3): four\n");
}

static int evaluated;

static int count(void)
{
    return ++evaluated;
}

static void body_levels(void *arg)
{
    (void)arg;
    aq_log_set_rank(3);
    AQ_LOG(INFO, UDP, "not shown %d", count());
    AQ_LOG(WARN, UDP, "peer %u: rtt %u us", 7u, 840u);
    if (evaluated != 0 || !aq_log_set_level("Debug") || aq_log_set_level("loud"))
        _exit(96);
    errno = EAGAIN;
    AQ_LOG(DEBUG, SHM, "shown %d", count());
    if (errno != EAGAIN || evaluated != 1 || !aq_log_set_level("0"))
        _exit(95);
    AQ_LOG(ERROR, SHM, "not shown");
}

static void test_levels(void **state)
{
    (void)state;
    aq_unit_run(body_levels, NULL, &run);
    assert_int_equal(aq_unit_exit_code(&run), 0);
    assert_string_equal(run.err, "[3] warn udp body_levels: peer 7: rtt 840 us\n"
                                 "[3] debug shm body_levels: shown 1\n");
}

static void body_long_line(void *arg)
{
    char text[AQ_LOG_LINE_MAX * 2];

    (void)arg;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    aq_log_set_rank(3);
    aq_warn("%s", text);
    aq_log_print("%s", text);
}

static void test_long_line(void **state)
{
    (void)state;
    aq_unit_run(body_long_line, NULL, &run);
    assert_int_equal(aq_unit_exit_code(&run), 0);
    assert_true(strlen(run.err) > AQ_LOG_LINE_MAX);
    assert_true(strcspn(run.err, "\n") <= AQ_LOG_LINE_MAX);
    aq_unit_contains(run.err, "xxx [...]\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_rank),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_long_line),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
