/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_agent_plan.c - a job's plan, which gasnetrun sends to its agents, arrives unchanged. A plan
 * that was cut or changed is refused, or is at least consistent: it has no count or index that an
 * agent could not use.
 */
#include "tests/unit/aq_unit.h"

#include <stdlib.h>
#include <string.h>

#include "other/launcher/aq_agent_frame.c" /* gasnetrun's, in no library */
#include "other/launcher/aq_agent_plan.c"

/* refused plans are not taken apart again: an agent ends */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

void aq_launch_error(const struct aq_launch *lo, const char *fmt, ...)
{
    (void)lo;
    fail_msg("%s", fmt);
    abort();
}

void aq_ssh_command(struct aq_plan *plan, const struct aq_launch *lo)
{
    static char *words[] = { (char *)"ssh", (char *)"-p", (char *)"22", NULL };

    (void)lo;
    plan->ssh = words;
}

static void make(struct aq_plan *plan)
{
    static char *argv[] = { (char *)"prog", (char *)"an argument", (char *)"", NULL };
    static char *names[] = { (char *)"a", (char *)"b", (char *)"fe80::1" };
    static uint32_t ranks[] = { 3, 2, 2 };
    static const char *const no_names[] = { NULL };
    static const struct aq_env_aliases aliases = { "ALIAS_", no_names };
    static const struct aq_conduit_info info = { .name = "one", .aliases = &aliases };
    static struct aq_launch lo = {
        .ranks = 7, .cpus = -1, .verbose = 1, .prefix = true, .argv = argv, .info = &info
    };
    static struct aq_hosts hosts = { .name = names, .ranks = ranks, .count = 3 };

    clearenv();
    setenv("GASNET_X", "two\nlines", 1);
    setenv("ALIAS_X", "1", 1);
    setenv("PATH", "/bin", 1);
    setenv("HOME", "/root", 1);
    setenv("WANTED", "w", 1);
    setenv("GASNET_HOST_TIMEOUT", "2.5", 1);
    lo.env_names = (char *)"OTHER,WANTED";
    memset(plan, 0, sizeof(*plan));
    aq_plan_make(plan, &lo, &hosts);
}

static bool has(char *const *texts, const char *text)
{
    for (; *texts != NULL; texts++)
        if (strcmp(*texts, text) == 0)
            return true;
    return false;
}

static void arrives(void **state)
{
    struct aq_plan made, read = { .ranks = 0 };
    char text[64];

    (void)state;
    make(&made);
    assert_true(aq_plan_read(&read, made.blob, made.blob_len));
    assert_memory_equal(read.key, made.key, sizeof(read.key));
    assert_int_equal(read.ranks, 7);
    assert_int_equal(read.hosts, 3);
    assert_int_equal(read.host_first[1], 3);
    assert_int_equal(read.host_first[3], 7);
    assert_string_equal(read.host_name[2], "fe80::1");
    assert_string_equal(read.argv[1], "an argument");
    assert_string_equal(read.argv[2], "");
    assert_true(has(read.set, "GASNET_X=two\nlines"));
    assert_true(has(read.set, "ALIAS_X=1"));
    assert_true(has(read.set, "PATH=/bin") && has(read.set, "WANTED=w"));
    assert_false(has(read.set, "HOME=/root"));
    assert_int_equal(read.environment_bytes, strlen("HOME=/root") + 1);
    assert_string_equal((const char *)read.environment, "HOME=/root");
    assert_int_equal(read.timeout_ms, 2500);
    assert_int_equal(read.cpus, 0);
    assert_true(read.prefix);
    assert_string_equal(aq_plan_ranks(&read, 0, 1, text), "ranks 0-2");
    assert_string_equal(aq_plan_ranks(&read, 1, 3, text), "ranks 3-6");
}

static bool consistent(const struct aq_plan *plan)
{
    uint32_t total = 0;

    for (uint32_t h = 0; h < plan->hosts; h++) {
        if (plan->host_first[h] != total || plan->host_name[h] == NULL)
            return false;
        total += plan->host_ranks[h];
    }
    return total == plan->ranks && plan->host_name[plan->hosts] == NULL && plan->argv[0] != NULL
           && plan->ssh[0] != NULL && plan->remote != NULL && plan->directory != NULL;
}

static void cut(void **state)
{
    struct aq_plan made;

    (void)state;
    make(&made);
    for (size_t len = 0; len < made.blob_len; len++) {
        struct aq_plan read = { .ranks = 0 };
        uint8_t *copy = malloc(len + 1); /* of just that size, for the address sanitizer */

        memcpy(copy, made.blob, len);
        copy = realloc(copy, len > 0 ? len : 1);
        assert_false(aq_plan_read(&read, copy, len));
        free(copy);
    }
}

static void changed(void **state)
{
    static const uint8_t masks[] = { 0xff, 0x80, 0x01 };
    struct aq_plan made;
    uint8_t *copy;

    (void)state;
    make(&made);
    copy = malloc(made.blob_len);
    for (size_t at = 0; at < made.blob_len; at++) {
        for (size_t m = 0; m < sizeof(masks); m++) {
            struct aq_plan read = { .ranks = 0 };

            memcpy(copy, made.blob, made.blob_len);
            copy[at] ^= masks[m];
            if (aq_plan_read(&read, copy, made.blob_len))
                assert_true(consistent(&read));
        }
    }
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrives),
        cmocka_unit_test(cut),
        cmocka_unit_test(changed),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
