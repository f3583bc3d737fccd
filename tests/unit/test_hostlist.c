/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlist.c - lists of hosts from options, variables and files; blocks of ranks.
 */
#include "tests/unit/aq_unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* the launcher is a program, not a library: its source files are included */
#include "other/launcher/aq_hostlist.c"
#include "other/launcher/aq_hostlist_parse.c"

static struct aq_hosts hosts;
static char path[64];

/* the names joined by blanks, with :slots and =ranks where there are any */
static const char *shown(void)
{
    static char text[4096];
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < hosts.count; i++) {
        at +=
            (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i > 0 ? " " : "", hosts.name[i]);
        if (hosts.slots[i] != 0)
            at += (size_t)snprintf(text + at, sizeof(text) - at, ":%u", hosts.slots[i]);
        if (hosts.ranks != NULL)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "=%u", hosts.ranks[i]);
    }
    return text;
}

static void forget(void)
{
    aq_hosts_free(&hosts);
    memset(&hosts, 0, sizeof(hosts));
}

static void find(const char *list)
{
    forget();
    clearenv();
    if (aq_hosts_find(&hosts, list, NULL, NULL, 0) != 0)
        fail_msg("%s: %s", list, hosts.why);
}

static void expect_option(const char *list, const char *names)
{
    find(list);
    assert_string_equal(shown(), names);
}

static void expect_wrong(const char *list, const char *why)
{
    forget();
    clearenv();
    assert_true(aq_hosts_find(&hosts, list, NULL, NULL, 0) < 0);
    aq_unit_contains(hosts.why, why);
}

static void test_option(void **state)
{
    (void)state;
    expect_option("a", "a");
    expect_option("a,b,c", "a b c");
    expect_option(" a, b ,,c,", "a b c");
    expect_option("a,b,a", "a b");
    expect_option("a:4,b:2,c", "a:4 b:2 c");
    expect_option("a:2,b:1,a:2", "a:4 b:1");
    expect_option("user@a.example.org:3", "user@a.example.org:3");
    expect_option("[fe80::1],[::1]:2,2001:db8::7", "fe80::1 ::1:2 2001:db8::7");
    expect_option("me@[fe80::1%eth0]:4", "me@fe80::1%eth0:4");
    expect_option("10.0.0.1,10.0.0.2:8", "10.0.0.1 10.0.0.2:8");
}

static void test_ranges(void **state)
{
    (void)state;
    expect_option("node[1-3]", "node1 node2 node3");
    expect_option("node[08-11,20],x", "node08 node09 node10 node11 node20 x");
    expect_option("r[1-2]n[0-1]-ib:2", "r1n0-ib:2 r1n1-ib:2 r2n0-ib:2 r2n1-ib:2");
    expect_wrong("node[1-3", "missing");
    expect_wrong("node[]", "range is written");
    expect_wrong("node[3-1]", "no range");
    expect_wrong("node[a-c]", "range is written");
    expect_wrong("node[1-2-3]", "no range");
    expect_wrong("node[1-99999999]", "no range");
    expect_wrong("n[0-9999]x[0-9999]", "more than");
}

static void test_refused(void **state)
{
    (void)state;
    expect_wrong("", "-H names no host");
    expect_wrong(",,", "-H names no host");
    expect_wrong("a:x", "how many ranks, as in a:4");
    expect_wrong("a:0", "how many ranks");
    expect_wrong("a:99999999999999999999", "how many ranks");
    expect_wrong("-oProxyCommand=x", "not the name of a host");
    expect_wrong("a$(id)", "not the name of a host");
    expect_wrong("a/b", "not the name of a host");
}

static void expect_variable(const char *name, const char *value, const char *names)
{
    forget();
    clearenv();
    setenv(name, value, 1);
    if (aq_hosts_find(&hosts, NULL, NULL, NULL, 0) != 0)
        fail_msg("%s=%s: %s", name, value, hosts.why);
    assert_string_equal(shown(), names);
    assert_string_equal(hosts.from, name);
}

static void test_variables(void **state)
{
    (void)state;
    expect_variable("GASNET_SSH_SERVERS", "a b,c/d;e:f", "a b c d e f");
    expect_variable("GASNET_SSH_SERVERS", "[fe80::1]:[fe80::2],b", "fe80::1 fe80::2 b");
    expect_variable("SSS_HOSTLIST", "a b a", "a b");
    expect_variable("LSB_HOSTS", "a a a b b", "a b");
    expect_variable("LSB_MCPU_HOSTS", "a 16 b 16 ", "a b");
    expect_variable("SLURM_JOB_NODELIST", "n[1-2,5],login", "n1 n2 n5 login");
    expect_variable("SLURM_NODELIST", "n7", "n7");
}

static void write_file(const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void test_files(void **state)
{
    static const char *const names[] = { "GASNET_SSH_NODEFILE", "GASNET_NODEFILE", "PBS_NODEFILE",
                                         "OAR_NODEFILE", "PE_HOSTFILE" };

    (void)state;
    write_file("# ours\n\na\n  b slots=4 max_slots=8 # fast\nc:2\n[fe80::1]\na\n");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        expect_variable(names[i], path, "a b:4 c:2 fe80::1");
    write_file("a 16 all.q@a UNDEFINED\nb 8 all.q@b UNDEFINED\r\n");
    expect_variable("PE_HOSTFILE", path, "a b");
    forget();
    assert_int_equal(aq_hosts_find(&hosts, NULL, path, NULL, 0), 0);
    assert_string_equal(shown(), "a b");
    forget();
    write_file("# nothing\n");
    assert_true(aq_hosts_find(&hosts, NULL, path, NULL, 0) < 0);
    aq_unit_contains(hosts.why, "names no host");
    write_file("a slots=many\n");
    forget();
    assert_true(aq_hosts_find(&hosts, NULL, path, NULL, 0) < 0);
    aq_unit_contains(hosts.why, "slots=4");
    forget();
    assert_true(aq_hosts_find(&hosts, NULL, "/no/such/file", NULL, 0) < 0);
    aq_unit_contains(hosts.why, "--hostfile: cannot read /no/such/file");
}

static void test_order(void **state)
{
    char from[128];

    (void)state;
    forget();
    clearenv();
    assert_int_equal(aq_hosts_find(&hosts, NULL, NULL, NULL, 0), 1);
    assert_false(aq_hosts_explicit(false, NULL, NULL));
    setenv("SLURM_JOB_NODELIST", "s", 1);
    assert_false(aq_hosts_explicit(false, NULL, NULL));
    setenv("LSB_HOSTS", "l", 1);
    setenv("GASNET_SSH_SERVERS", "v", 1);
    setenv("GASNET_SSH_NODEFILE", "  ", 1); /* as good as unset */
    assert_true(aq_hosts_explicit(false, NULL, NULL));
    forget();
    assert_int_equal(aq_hosts_find(&hosts, NULL, NULL, from, sizeof(from)), 0);
    assert_string_equal(from, "GASNET_SSH_SERVERS");
    forget();
    assert_int_equal(aq_hosts_find(&hosts, "o", NULL, from, sizeof(from)), 0);
    assert_string_equal(from, "-H");
    unsetenv("GASNET_SSH_SERVERS");
    forget();
    assert_int_equal(aq_hosts_find(&hosts, NULL, NULL, from, sizeof(from)), 0);
    assert_string_equal(from, "LSB_HOSTS");
}

static const char *const alias_names[] = { "SSH_SERVERS", NULL };
static const struct aq_env_aliases aliases = { "AMUDP_", alias_names };

static void body_contradiction(void *arg)
{
    (void)arg;
    clearenv();
    setenv("SSH_SERVERS", "x", 1);
    setenv("AMUDP_SSH_SERVERS", "y", 1);
    hosts.aliases = &aliases;
    if (aq_hosts_find(&hosts, NULL, NULL, NULL, 0) != 0 || strcmp(shown(), "y") != 0)
        _exit(1);
}

static void test_udp_names(void **state)
{
    struct aq_unit_result run;

    (void)state;
    forget();
    clearenv();
    setenv("SSH_SERVERS", "x y", 1);
    assert_int_equal(aq_hosts_find(&hosts, NULL, NULL, NULL, 0), 1);
    hosts.aliases = &aliases;
    assert_int_equal(aq_hosts_find(&hosts, NULL, NULL, NULL, 0), 0);
    assert_string_equal(hosts.from, "SSH_SERVERS");
    assert_string_equal(shown(), "x y");
    forget();
    aq_unit_run(body_contradiction, NULL, &run);
    assert_int_equal(aq_unit_exit_code(&run), 0);
    aq_unit_contains(run.err, "AMUDP_SSH_SERVERS='y' is used; SSH_SERVERS='x' contradicts it");
}

static void expect_place(const char *list, uint32_t ranks, uint32_t n, const char *names)
{
    find(list);
    if (aq_hosts_place(&hosts, ranks, n) != 0)
        fail_msg("%s -n %u -N %u: %s", list, ranks, n, hosts.why);
    assert_string_equal(shown(), names);
    for (size_t i = 0; i < hosts.count; i++)
        assert_int_equal(hosts.first[i], i == 0 ? 0 : hosts.first[i - 1] + hosts.ranks[i - 1]);
}

static void expect_no_place(const char *list, uint32_t ranks, uint32_t n, const char *why)
{
    find(list);
    assert_true(aq_hosts_place(&hosts, ranks, n) < 0);
    assert_string_equal(hosts.why, why);
}

static void test_place(void **state)
{
    (void)state;
    expect_place("a,b", 4, 0, "a=2 b=2");
    expect_place("a,b,c", 8, 0, "a=3 b=3 c=2");
    expect_place("a,b,c", 2, 0, "a=1 b=1");
    expect_place("a,b,c", 4, 2, "a=2 b=2");
    expect_place("a:4,b:4", 5, 0, "a:4=4 b:4=1");
    expect_place("a:4,b:4", 4, 0, "a:4=4");
    expect_place("a:4,b:4", 4, 2, "a:4=2 b:4=2");
    expect_place("a:1,b:4", 5, 2, "a:1=1 b:4=4");
    expect_place("a:4,b,c", 9, 0, "a:4=4 b=3 c=2");
    expect_no_place("a,b", 8, 4, "-H names 2 hosts, -N asks for 4");
    expect_no_place("a:2,b:2", 5, 0, "-H has slots for 4 ranks on 2 hosts, -n asks for 5");
}

/* a name for each worker, as the udp conduit's SSH_SERVERS has them */
static void test_place_each(void **state)
{
    static const struct {
        const char *list, *placed;
        uint32_t ranks;
    } cases[] = {
        { "a a b b", "a=2 b=2", 4 }, { "a b a b", "a=2 b=1", 3 },   { "a a b", "a=2", 2 },
        { "a b", "a=2 b=2", 4 },     { "a a a b b", "a=3 b=2", 5 }, { "a b c", "a=1", 1 }
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        forget();
        clearenv();
        hosts.aliases = &aliases;
        setenv("GASNET_SSH_SERVERS", cases[i].list, 1);
        assert_int_equal(aq_hosts_find(&hosts, NULL, NULL, NULL, 0), 0);
        assert_int_equal(aq_hosts_place(&hosts, cases[i].ranks, 0), 0);
        assert_string_equal(shown(), cases[i].placed);
    }
}

static void test_duplicates(void **state)
{
    (void)state;
    forget();
    clearenv();
    setenv("GASNET_SSH_KEEPDUP", "1", 1);
    setenv("GASNET_SSH_SERVERS", "a a b", 1);
    assert_int_equal(aq_hosts_find(&hosts, NULL, NULL, NULL, 0), 0);
    assert_string_equal(shown(), "a a b");
    assert_int_equal(aq_hosts_place(&hosts, 4, 0), 0);
    assert_string_equal(shown(), "a=2 a=1 b=1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_option),     cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_variables),
        cmocka_unit_test(test_files),      cmocka_unit_test(test_order),
        cmocka_unit_test(test_udp_names),  cmocka_unit_test(test_place),
        cmocka_unit_test(test_place_each), cmocka_unit_test(test_duplicates),
    };
    int fd, rc;

    /* the tests clear the environment, where cmocka finds its own setting */
    if (getenv("CMOCKA_MESSAGE_OUTPUT") != NULL)
        cmocka_set_message_output(CM_OUTPUT_TAP);
    strcpy(path, "/tmp/aq-hosts-XXXXXX");
    fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    forget();
    unlink(path);
    return rc;
}
