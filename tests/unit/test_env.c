/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_env.c - the table of variables at work: snapshot, job environment, report, misspellings.
 * Each case runs in a child, since the environment is taken once in a process.
 */
#include "tests/unit/aq_unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "base/aq_log.h"

/* in a child process, where cmocka's longjmp has no effect: reports the failure and exits */
#define CHILD_CHECK(cond)                                              \
    do {                                                               \
        if (!(cond)) {                                                 \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #cond); \
            _exit(99);                                                 \
        }                                                              \
    } while (0)

static struct aq_unit_result run;

static void expect_clean(void (*body)(void *))
{
    aq_unit_run(body, NULL, &run);
    if (aq_unit_exit_code(&run) != 0 || run.err[0] != '\0')
        fail_msg("exit code %d: %s", aq_unit_exit_code(&run), run.err);
}

static void start_empty(void)
{
    clearenv();
}

static void body_defaults(void *arg)
{
    struct aq_env_segsize seg;

    (void)arg;
    start_empty();
    aq_env_init();
    CHILD_CHECK(!aq_env_bool(AQ_ENV_QUIET));
    CHILD_CHECK(aq_env_bool(AQ_ENV_CATCH_EXIT));
    CHILD_CHECK(!aq_env_bool(AQ_ENV_VERBOSEENV));
    CHILD_CHECK(aq_env_real(AQ_ENV_EXITTIMEOUT_MAX) == 5);
    CHILD_CHECK(!aq_env_is_set(AQ_ENV_EXITTIMEOUT));
    CHILD_CHECK(aq_env_str(AQ_ENV_EXITTIMEOUT) == NULL);
    CHILD_CHECK(aq_env_str(AQ_ENV_CONDUIT) == NULL);
    CHILD_CHECK(aq_env_rank_listed(AQ_ENV_BACKTRACE_NODES, 17));
    seg = aq_env_segsize(AQ_ENV_MAX_SEGSIZE);
    CHILD_CHECK(seg.bytes > 0 || (seg.fraction > 0 && seg.fraction < 1));
    aq_env_report(0);
}

static void test_defaults(void **state)
{
    (void)state;
    expect_clean(body_defaults);
}

static void body_live_until_init(void *arg)
{
    (void)arg;
    start_empty();
    setenv("GASNET_QUIET", "no", 1);
    CHILD_CHECK(strcmp(aq_env_get("GASNET_QUIET"), "no") == 0);
    setenv("GASNET_QUIET", "yes", 1); /* as a client may before init */
    setenv("SOMETHING", "else", 1);
    aq_env_init();
    setenv("GASNET_QUIET", "no", 1);
    setenv("SOMETHING", "new", 1);
    setenv("LATER", "1", 1);
    CHILD_CHECK(aq_env_bool(AQ_ENV_QUIET));
    CHILD_CHECK(strcmp(aq_env_get("GASNET_QUIET"), "yes") == 0);
    CHILD_CHECK(strcmp(aq_env_get("SOMETHING"), "else") == 0);
    CHILD_CHECK(aq_env_get("LATER") == NULL);
    CHILD_CHECK(aq_env_get("SOME") == NULL);
}

static void test_live_until_init(void **state)
{
    (void)state;
    expect_clean(body_live_until_init);
}

static void body_empty(void *arg)
{
    (void)arg;
    start_empty();
    setenv("GASNET_CATCH_EXIT", "", 1);
    setenv("GASNET_VERBOSEENV", "", 1);
    setenv("GASNET_NO_CATCH_SIGNAL", "", 1);
    aq_env_init();
    CHILD_CHECK(aq_env_bool(AQ_ENV_CATCH_EXIT) && !aq_env_is_set(AQ_ENV_CATCH_EXIT));
    CHILD_CHECK(aq_env_verbose() == 1);
    CHILD_CHECK(aq_env_is_set(AQ_ENV_NO_CATCH_SIGNAL));
    CHILD_CHECK(strcmp(aq_env_str(AQ_ENV_NO_CATCH_SIGNAL), "") == 0);
}

static void test_empty_values(void **state)
{
    (void)state;
    expect_clean(body_empty);
}

static void body_job(void *arg)
{
    static const char block[] = "GASNET_CATCH_EXIT=no\0OTHER=job\0BLANK=\0GASNET_EXITTIMEOUT=2m";
    size_t len;
    const char *own;

    (void)arg;
    start_empty();
    setenv("GASNET_CATCH_EXIT", "yes", 1);
    setenv("OTHER", "mine", 1);
    setenv("MINE", "kept", 1);
    aq_env_init();
    own = aq_env_snapshot(&len);
    CHILD_CHECK(
        len == strlen("GASNET_CATCH_EXIT=yes") + strlen("OTHER=mine") + strlen("MINE=kept") + 3);
    CHILD_CHECK(own[len - 1] == '\0');
    CHILD_CHECK(aq_env_bool(AQ_ENV_CATCH_EXIT));
    aq_env_set_job_environment(block, sizeof(block) - 1); /* the last string without its NUL */
    CHILD_CHECK(!aq_env_bool(AQ_ENV_CATCH_EXIT));
    CHILD_CHECK(aq_env_real(AQ_ENV_EXITTIMEOUT) == 120);
    CHILD_CHECK(strcmp(aq_env_get("OTHER"), "job") == 0);
    CHILD_CHECK(strcmp(aq_env_get("BLANK"), "") == 0);
    CHILD_CHECK(strcmp(aq_env_get("MINE"), "kept") == 0);
}

static void test_job_environment(void **state)
{
    (void)state;
    expect_clean(body_job);
}

static void body_decode(void *arg)
{
    (void)arg;
    start_empty();
    setenv("A", "a%020b%00cx%0zz%03", 1);
    aq_env_init();
    CHILD_CHECK(strcmp(aq_env_get("A"), "a b\x0c"
                                        "x%0zz%03")
                == 0);
}

static void body_decode_off(void *arg)
{
    (void)arg;
    start_empty();
    setenv("A", "a%020b", 1);
    setenv("GASNET_DISABLE_ENVDECODE", "1", 1);
    aq_env_init();
    CHILD_CHECK(strcmp(aq_env_get("A"), "a%020b") == 0);
}

static void test_decode(void **state)
{
    (void)state;
    expect_clean(body_decode);
    expect_clean(body_decode_off);
}

static void body_set_and_init(void *arg)
{
    start_empty();
    putenv(arg);
    aq_env_init();
    aq_env_refuse();
}

/* bad values end the job with a message that names variable, value and legal form */
static void test_bad_values(void **state)
{
    static const struct {
        const char *setting, *value, *form;
    } cases[] = {
        { "GASNET_CATCH_EXIT=perhaps", "\"perhaps\"", "yes" },
        { "GASNET_PSHM_NODES=four", "\"four\"", "whole number" },
        { "GASNET_EXITTIMEOUT=soon", "\"soon\"", "10ms" },
        { "GASNET_EXITTIMEOUT_FACTOR=x", "\"x\"", "10ms" },
        { "GASNET_MAX_SEGSIZE=lots", "\"lots\"", "128MB" },
        { "GASNET_BACKTRACE_NODES=1-", "\"1-\"", "0,2-4,6" },
        { "AQ_SHM_CMA=maybe", "\"maybe\"", "auto|off" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char name[64];

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(cases[i].setting, "="), cases[i].setting);
        aq_unit_run(body_set_and_init, (void *)(uintptr_t)cases[i].setting, &run);
        assert_int_not_equal(aq_unit_exit_code(&run), 0);
        assert_int_equal(strncmp(run.err, "*** FATAL ERROR (", 17), 0);
        aq_unit_contains(run.err, name);
        aq_unit_contains(run.err, cases[i].value);
        aq_unit_contains(run.err, cases[i].form);
    }
}

static bool is_number(const struct aq_env_row *row)
{
    return !row->compat
           && (row->type == AQ_ENV_TYPE_INT || row->type == AQ_ENV_TYPE_REAL
               || row->type == AQ_ENV_TYPE_SIZE || row->type == AQ_ENV_TYPE_TIME);
}

/* greater than any range, but still a value of its type */
static const char *too_much(enum aq_env_type type)
{
    switch (type) {
    case AQ_ENV_TYPE_INT:
        return "9223372036854775807";
    case AQ_ENV_TYPE_SIZE:
        return "16777215TB";
    case AQ_ENV_TYPE_TIME:
        return "99999999h";
    default:
        return "99999999";
    }
}

static void expect_refused(int id, const char *value)
{
    char setting[128], quoted[80], range[64];
    const char *newline;

    snprintf(setting, sizeof(setting), "%s=%s", aq_env_rows[id].name, value);
    snprintf(quoted, sizeof(quoted), "%s has the value \"%s\"", aq_env_rows[id].name, value);
    aq_unit_run(body_set_and_init, setting, &run);
    if (aq_unit_exit_code(&run) != 1)
        fail_msg("%s: exit code %d: %s", setting, aq_unit_exit_code(&run), run.err);
    newline = strchr(run.err, '\n');
    if (newline == NULL || newline[1] != '\0')
        fail_msg("%s: not one line: %s", setting, run.err);
    aq_unit_contains(run.err, quoted);
    aq_unit_contains(run.err, aq_env_range_text((enum aq_env_id)id, range, sizeof(range)));
}

static void expect_taken(int id, const char *value)
{
    char setting[128];

    snprintf(setting, sizeof(setting), "%s=%s", aq_env_rows[id].name, value);
    aq_unit_run(body_set_and_init, setting, &run);
    if (aq_unit_exit_code(&run) != 0 || run.err[0] != '\0')
        fail_msg("%s: exit code %d: %s", setting, aq_unit_exit_code(&run), run.err);
}

/* every number has a range: what lies outside, or is no number, is one message with variable, value
 * and range */
static void test_ranges(void **state)
{
    static const char *const wrong[] = {
        "-1",   "garbage", "nan", "inf", "-inf",
        "1e20", "0x",      "1 2", "5%",  "999999999999999999999999999999999999999999999999",
        "--3",  "1;"
    };

    (void)state;
    for (int id = 0; id < AQ_ENV_ID_COUNT; id++) {
        const struct aq_env_range *range = &aq_env_ranges[id];

        if (!is_number(&aq_env_rows[id])) {
            assert_null(range->min);
            continue;
        }
        if (range->min == NULL)
            fail_msg("%s has no AQ_ENV_RANGE in its env.def", aq_env_rows[id].name);
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
            expect_refused(id, wrong[i]);
        expect_refused(id, too_much(aq_env_rows[id].type));
        if (range->or_0)
            expect_refused(id, "1");
        else if (strcmp(range->min, "0") != 0)
            expect_refused(id, "0");
        expect_taken(id, range->min);
        expect_taken(id, range->max);
        expect_taken(id, "");
        if (range->or_0)
            expect_taken(id, "0");
    }
}

/* rows that are only accepted never fail */
static void test_compat(void **state)
{
    static const char *const settings[] = { "GASNET_USE_ODP=whatever",
                                            "GASNET_THREAD_STACK_PAD=?" };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        aq_unit_run(body_set_and_init, (void *)(uintptr_t)settings[i], &run);
        assert_int_equal(aq_unit_exit_code(&run), 0);
    }
}

static void body_report(void *arg)
{
    (void)arg;
    start_empty();
    setenv("GASNET_VERBOSEENV", "1", 1);
    setenv("GASNET_QUIET", "1", 1);
    setenv("GASNET_EXITTIMEOUT", "2m", 1);
    aq_env_init();
    (void)aq_env_bool(AQ_ENV_QUIET);
    (void)aq_env_real(AQ_ENV_EXITTIMEOUT);
    (void)aq_env_real(AQ_ENV_EXITTIMEOUT_MAX);
    (void)aq_env_is_set(AQ_ENV_MAX_THREADS);
    aq_env_set_computed(AQ_ENV_MAX_THREADS, "1234");
    aq_env_report(0);
    aq_log_print("--");
    (void)aq_env_bool(AQ_ENV_CATCH_EXIT);
    (void)aq_env_bool(AQ_ENV_CATCH_EXIT);
    aq_env_display("CLIENT_VAR", NULL, NULL, true);
    aq_env_display("CLIENT_EMPTY", "", NULL, false);
    aq_env_display("CLIENT_SIZE", "131072", "128 KB", false);
}

static void test_report(void **state)
{
    const char *late;

    (void)state;
    aq_unit_run(body_report, NULL, &run);
    assert_int_equal(aq_unit_exit_code(&run), 0);
    aq_unit_contains(run.err, "ENV parameter: GASNET_QUIET = YES\n");
    aq_unit_contains(run.err, "ENV parameter: GASNET_EXITTIMEOUT = 2m\n");
    aq_unit_contains(run.err, "ENV parameter: GASNET_EXITTIMEOUT_MAX = 5  ");
    aq_unit_contains(run.err, "ENV parameter: GASNET_MAX_THREADS = 1234  ");
    aq_unit_contains(run.err, " (default)\n");
    late = strstr(run.err, "--\n");
    assert_non_null(late);
    aq_unit_contains(late, "ENV parameter: GASNET_CATCH_EXIT = YES  ");
    assert_null(strstr(strstr(late, "CATCH_EXIT") + 1, "CATCH_EXIT")); /* once only */
    aq_unit_contains(late, "ENV parameter: CLIENT_VAR = *not set*  ");
    aq_unit_contains(late, "ENV parameter: CLIENT_EMPTY = *empty*\n");
    aq_unit_contains(late, "ENV parameter: CLIENT_SIZE = 131072 (128 KB)\n");
    aq_unit_lacks(run.err, "GASNET_FREEZE"); /* was not read */
    for (const char *line = run.err; *line != '\0'; line = strchr(line, '\n') + 1)
        if (strstr(line, "(default)\n") == strchr(line, '\n') - 9)
            assert_int_equal(strchr(line, '\n') - line, 80);
}

static void body_report_elsewhere(void *arg)
{
    (void)arg;
    start_empty();
    setenv("GASNET_VERBOSEENV", "1", 1);
    setenv("GASNET_QUITE", "1", 1);
    aq_env_init();
    aq_env_report(1);
    (void)aq_env_bool(AQ_ENV_CATCH_EXIT);
}

static void test_report_is_rank_0(void **state)
{
    (void)state;
    expect_clean(body_report_elsewhere);
}

static void body_misspelt(void *arg)
{
    (void)arg;
    start_empty();
    setenv("GASNET_VERBOSEENV", "1", 1);
    setenv("GASNET_QUITE", "1", 1);
    setenv("AQ_PSHM_NODES", "4", 1);
    setenv("GASNET_MAX_SEG_SIZE", "1GB", 1);
    setenv("GASNET_IBV_PORTS", "mlx5_0", 1);
    setenv("GASNET_USE_ODP", "0", 1);
    setenv("GASNET_SOMETHING_OF_A_CLIENT", "1", 1);
    setenv("QUITE", "1", 1);
    aq_env_init();
    aq_env_report(0);
}

static void test_misspellings(void **state)
{
    (void)state;
    aq_unit_run(body_misspelt, NULL, &run);
    assert_int_equal(aq_unit_exit_code(&run), 0);
    aq_unit_contains(run.err, "GASNET_QUITE is not known; GASNET_QUIET is meant");
    aq_unit_contains(run.err, "AQ_PSHM_NODES is not known; GASNET_PSHM_NODES is meant");
    aq_unit_contains(run.err, "GASNET_MAX_SEG_SIZE is not known; GASNET_MAX_SEGSIZE is meant");
    aq_unit_lacks(run.err, "IBV");
    aq_unit_lacks(run.err, "ODP");
    aq_unit_lacks(run.err, "CLIENT");
    assert_null(strstr(strstr(run.err, "GASNET_QUITE") + 1, "GASNET_QUITE")); /* once */
    assert_string_equal(aq_env_suggest("GASNET_EXITTIMEUOT"), "GASNET_EXITTIMEOUT");
    assert_null(aq_env_suggest("GASNET_EXITTIMEOUT"));
    assert_string_equal(aq_env_suggest("GASNET_MAX_SEGSIZE_1"), "GASNET_MAX_SEGSIZE");
    assert_null(aq_env_suggest("GASNET_IBV_PORTS_0_1")); /* for processes at that place */
    assert_null(aq_env_suggest("GASNET_"));
    assert_null(aq_env_suggest("GASNET_SPAWNFN")); /* other conduits' own */
    assert_null(aq_env_suggest("GASNET_MPI_SPAWNER"));
    assert_null(aq_env_suggest("PATH"));
}

static void body_misspelt_unasked(void *arg)
{
    (void)arg;
    start_empty();
    setenv("GASNET_ EXITTIMEOUT", "30", 1); /* a client does this */
    setenv("GASNET_BACKTRCE", "1", 1);
    aq_env_init();
    aq_env_report(0);
}

static void test_unasked(void **state)
{
    (void)state;
    expect_clean(body_misspelt_unasked);
}

static void body_misspelt_quiet(void *arg)
{
    (void)arg;
    start_empty();
    setenv("GASNET_BACKTRCE", "1", 1);
    setenv("GASNET_VERBOSEENV", "1", 1);
    setenv("GASNET_QUIET", "1", 1);
    aq_env_init();
    aq_env_report(0);
}

static void test_quiet(void **state)
{
    (void)state;
    aq_unit_run(body_misspelt_quiet, NULL, &run);
    assert_int_equal(aq_unit_exit_code(&run), 0);
    aq_unit_lacks(run.err, "BACKTRCE");
}

static void body_misspelt_elsewhere(void *arg)
{
    (void)arg;
    start_empty();
    setenv("GASNET_BACKTRCE", "1", 1);
    setenv("GASNET_VERBOSEENV", "1", 1);
    aq_env_init();
    aq_env_report(1);
}

static void test_misspellings_are_rank_0s(void **state)
{
    (void)state;
    expect_clean(body_misspelt_elsewhere);
}

/* the table itself: no name twice, every default legal, help that says something */
static void test_table(void **state)
{
    (void)state;
    for (int i = 0; i < AQ_ENV_ID_COUNT; i++) {
        const struct aq_env_row *row = &aq_env_rows[i];

        assert_true(strncmp(row->name, "GASNET_", 7) == 0 || strncmp(row->name, "AQ_", 3) == 0);
        assert_true(strlen(row->help) > 10);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(row->name, aq_env_rows[j].name);
        if (row->type == AQ_ENV_TYPE_CHOICE)
            assert_non_null(strchr(row->unit, '|'));
        if (row->type == AQ_ENV_TYPE_BOOL && !row->compat)
            assert_true(strcmp(row->dflt, "yes") == 0 || strcmp(row->dflt, "no") == 0
                        || row->dflt[0] == '(');
    }
}

static void body_defaults_as_values(void *arg)
{
    (void)arg;
    start_empty();
    for (int i = 0; i < AQ_ENV_ID_COUNT; i++)
        if (aq_env_rows[i].dflt[0] != '\0' && aq_env_rows[i].dflt[0] != '(')
            setenv(aq_env_rows[i].name, aq_env_rows[i].dflt, 1);
    aq_env_init();
    aq_env_refuse();
}

static void test_defaults_are_legal(void **state)
{
    (void)state;
    expect_clean(body_defaults_as_values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_live_until_init),
        cmocka_unit_test(test_empty_values),
        cmocka_unit_test(test_job_environment),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_compat),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_report_is_rank_0),
        cmocka_unit_test(test_misspellings),
        cmocka_unit_test(test_unasked),
        cmocka_unit_test(test_misspellings_are_rank_0s),
        cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_defaults_are_legal),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
