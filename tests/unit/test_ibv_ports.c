/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ibv_ports.c - which ports and addresses the ibv conduit uses: the filter's syntax, the
 * choice among what a machine has, GIDs of InfiniBand and of both versions of RoCE, and numbers of
 * places.
 */
#include "tests/unit/aq_unit.h"

#include <stdio.h>
#include <string.h>

#include "conduits/ibv/aq_ibv_choose.h"
#include "core/aq_job.h"

/* --- the filter --- */

static struct aq_ibv_filter filter_of(const char *text)
{
    struct aq_ibv_filter filter;
    char why[256] = "";

    if (!aq_ibv_ports_parse(text, &filter, why, sizeof(why)))
        fail_msg("\"%s\": %s", text, why);
    return filter;
}

static void test_syntax(void **state)
{
    static const char *const wrong[] = { ":1", "a:",   "a:0",   "a:x",   "a:1,",  "a:,1", "a:1+",
                                         "+",  "a++b", "a:256", "a:1;2", "a:1:2", "+a",   "a:-1" };
    struct aq_ibv_filter filter = filter_of("mlx5_0+mlx5_1:2,3+mlx5_2:1");
    char why[256];

    (void)state;
    assert_int_equal(filter.count, 3);
    assert_int_equal(aq_ibv_ports_match(&filter, "mlx5_0", 1), AQ_IBV_MATCH_DEVICE);
    assert_int_equal(aq_ibv_ports_match(&filter, "mlx5_0", 9), AQ_IBV_MATCH_DEVICE);
    assert_int_equal(aq_ibv_ports_match(&filter, "mlx5_1", 1), AQ_IBV_NO_MATCH);
    assert_int_equal(aq_ibv_ports_match(&filter, "mlx5_1", 2), AQ_IBV_MATCH_PORT);
    assert_int_equal(aq_ibv_ports_match(&filter, "mlx5_1", 3), AQ_IBV_MATCH_PORT);
    assert_int_equal(aq_ibv_ports_match(&filter, "mlx5_10", 2), AQ_IBV_NO_MATCH);
    assert_int_equal(aq_ibv_ports_match(&filter, "mlx5", 1), AQ_IBV_NO_MATCH);
    filter = filter_of("  rxe0:255 ");
    assert_int_equal(aq_ibv_ports_match(&filter, "rxe0", 255), AQ_IBV_MATCH_PORT);
    assert_int_equal(aq_ibv_ports_match(&filter, "rxe0", 1), AQ_IBV_NO_MATCH);
    filter = filter_of("a:1+a:2+a:1"); /* twice does not matter */
    assert_int_equal(aq_ibv_ports_match(&filter, "a", 2), AQ_IBV_MATCH_PORT);
    filter = filter_of("");
    assert_int_equal(filter.count, 0);
    assert_int_equal(aq_ibv_ports_match(&filter, "anything", 1), AQ_IBV_MATCH_DEVICE);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        why[0] = '\0';
        if (aq_ibv_ports_parse(wrong[i], &filter, why, sizeof(why)))
            fail_msg("\"%s\" is taken", wrong[i]);
        assert_true(strlen(why) > 10);
    }
}

/* --- the choice --- */

static struct aq_ibv_found port_of(const char *device, uint8_t port, bool ethernet, bool software,
                                   uint32_t mbps, uint32_t distance)
{
    struct aq_ibv_found found = { .port = port,
                                  .active = true,
                                  .usable = true,
                                  .ethernet = ethernet,
                                  .software = software,
                                  .mbps = mbps,
                                  .distance = distance };

    snprintf(found.device, sizeof(found.device), "%s", device);
    return found;
}

static void expect(const struct aq_ibv_found *found, uint32_t count, const char *filter,
                   uint32_t max, const char *names)
{
    const struct aq_ibv_filter parsed = filter_of(filter);
    uint32_t chosen[AQ_IBV_FOUND];
    const uint32_t got = aq_ibv_choose(found, count, &parsed, max, chosen);
    char text[256] = "";

    for (uint32_t i = 0; i < got; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s:%u", i == 0 ? "" : " ",
                 found[chosen[i]].device, found[chosen[i]].port);
    assert_string_equal(text, names);
}

static void test_choice(void **state)
{
    struct aq_ibv_found found[] = {
        port_of("rxe0", 1, true, true, 10000, 1),
        port_of("mlx5_3", 1, false, false, 200000, 2),
        port_of("mlx5_1", 1, false, false, 200000, 0),
        port_of("mlx5_1", 2, false, false, 200000, 0),
        port_of("mlx5_0", 1, false, false, 200000, 0),
        port_of("mlx5_2", 1, true, false, 100000, 0),
    };
    const uint32_t count = sizeof(found) / sizeof(found[0]);
    char why[600];
    const struct aq_ibv_filter none = filter_of(""), absent = filter_of("mlx9");

    (void)state;
    expect(found, count, "", 4,
           "mlx5_0:1 mlx5_1:1"); /* hardware, InfiniBand, near; one port of each; by name */
    expect(found, count, "", 1, "mlx5_0:1");
    expect(found, count, "mlx5_3+mlx5_1:2,1+nothing", 4, "mlx5_1:1 mlx5_1:2 mlx5_3:1");
    expect(found, count, "mlx5_3+mlx5_1:2,1+nothing", 2, "mlx5_1:1 mlx5_1:2");
    expect(found, count, "rxe0", 4, "rxe0:1");
    found[4].active = false;
    expect(found, count, "", 4, "mlx5_1:1");
    found[2].active = false; /* then the next port of the device */
    expect(found, count, "", 4, "mlx5_1:2");
    found[3].mbps = 2500; /* still the near one: distance goes before the rate of farther ones */
    expect(found, count, "", 4, "mlx5_1:2");
    found[3].active = false;
    expect(found, count, "", 4, "mlx5_3:1");
    found[1].usable = false;
    expect(found, count, "", 4, "mlx5_2:1");
    found[5].active = false;
    expect(found, count, "", 4, "rxe0:1");
    expect(found, count, "mlx5_3", 4, ""); /* not usable */
    expect(found, 0, "", 4, "");
    aq_ibv_choose_why(found, count, &absent, why, sizeof(why));
    assert_non_null(strstr(why, "GASNET_IBV_PORTS"));
    assert_non_null(strstr(why, "mlx5_0:1 (not active"));
    aq_ibv_choose_why(found, 0, &none, why, sizeof(why));
    assert_non_null(strstr(why, "no InfiniBand or RoCE device"));
}

/* A much slower port beside fast ones would hold a striped transfer up. */
static void test_rates(void **state)
{
    const struct aq_ibv_found found[] = { port_of("a", 1, false, false, 10000, 1),
                                          port_of("b", 1, false, false, 40000, 1),
                                          port_of("c", 1, false, false, 20000, 1) };

    (void)state;
    expect(found, 3, "", 4, "b:1 c:1");
    expect(found, 3, "a+b", 4, "a:1 b:1");
}

/* --- GIDs --- */

static struct aq_ibv_gid_row gid_of(uint32_t index, uint32_t type, const char *what)
{
    struct aq_ibv_gid_row row = { .index = index, .type = type };
    unsigned a, b, c, d;

    memset(&row.gid, 0, sizeof(row.gid));
    if (sscanf(what, "%u.%u.%u.%u", &a, &b, &c, &d) == 4) {
        const uint8_t v4[6] = { 0xff, 0xff, (uint8_t)a, (uint8_t)b, (uint8_t)c, (uint8_t)d };

        memcpy(row.gid.raw + 10, v4, 6);
    } else if (strcmp(what, "local") == 0) {
        row.gid.raw[0] = 0xfe;
        row.gid.raw[1] = 0x80;
        row.gid.raw[15] = 7;
    } else {
        row.gid.raw[0] = 0x20;
        row.gid.raw[15] = 9;
    }
    return row;
}

static void test_gids(void **state)
{
    const struct aq_ibv_gid_row rows[] = {
        gid_of(0, AQ_IBV_GID_ROCE1, "local"),       gid_of(1, AQ_IBV_GID_ROCE2, "local"),
        gid_of(2, AQ_IBV_GID_ROCE1, "10.0.0.1"),    gid_of(4, AQ_IBV_GID_ROCE2, "10.0.0.1"),
        gid_of(5, AQ_IBV_GID_ROCE2, "global"),      gid_of(6, AQ_IBV_GID_ROCE2, "127.0.0.1"),
        gid_of(9, AQ_IBV_GID_ROCE2, "169.254.3.3"),
    };
    char text[64];

    (void)state;
    assert_int_equal(aq_ibv_gid_choose(rows, 7, true, -1), 3); /* version 2, IPv4 */
    assert_int_equal(aq_ibv_gid_choose(rows, 3, true, -1), 1); /* version 2 of the first three */
    assert_int_equal(aq_ibv_gid_choose(rows + 4, 3, true, -1),
                     0); /* rather a global IPv6 address */
    assert_int_equal(aq_ibv_gid_choose(rows + 5, 2, true, -1), 1);
    assert_int_equal(aq_ibv_gid_choose(rows, 1, true, -1), 0);
    assert_int_equal(aq_ibv_gid_choose(rows, 7, true, 5), 4);   /* by index, which is not the row */
    assert_int_equal(aq_ibv_gid_choose(rows, 7, true, 3), -1);  /* there is none */
    assert_int_equal(aq_ibv_gid_choose(rows, 7, false, -1), 0); /* InfiniBand: its own */
    assert_int_equal(aq_ibv_gid_choose(rows, 0, true, -1), -1);
    assert_true(aq_ibv_gid_alike(&rows[3], rows[6].gid.raw, rows[6].type));
    assert_false(
        aq_ibv_gid_alike(&rows[2], rows[3].gid.raw, rows[3].type)); /* version 1, version 2 */
    assert_true(aq_ibv_gid_alike(&rows[1], rows[4].gid.raw, rows[4].type));
    assert_false(aq_ibv_gid_alike(&rows[1], rows[3].gid.raw, rows[3].type));
    assert_string_equal(aq_ibv_gid_text(rows[3].gid.raw, text, sizeof(text)), "10.0.0.1");
    assert_string_equal(aq_ibv_gid_text(rows[1].gid.raw, text, sizeof(text)), "fe80::7");
}

/* --- places --- */

static void test_numbers(void **state)
{
    static const char *const wrong[] = { "",        "Rank",      "JRank/",   "JRank%0",
                                         "JRank*2", "JRank/2/2", "JRank/2x", "%2" };
    static const char *const right[][2] = { { "JRank", "13" },      { "jrank", "13" },
                                            { "HRank", "5" },       { "NRANK", "2" },
                                            { "JRank/4", "3" },     { "JRank%4", "1" },
                                            { "JRank % 0x8", "5" }, { "HRank/010", "0" },
                                            { "JRank /2 ", "6" },   { "Core/1000000", "0" } };
    char text[256];

    (void)state;
    aq_job.rank = 13;
    aq_job.host_index = 5;
    aq_job.nbrhd_index = 2;
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        if (!aq_ibv_numa_numbers(right[i][0], text, sizeof(text)))
            fail_msg("\"%s\" is refused", right[i][0]);
        assert_string_equal(text, right[i][1]);
    }
    assert_true(aq_ibv_numa_numbers("Socket", text, sizeof(text))); /* whatever they are here */
    assert_true(aq_ibv_numa_numbers("NUMANode", text, sizeof(text)));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (aq_ibv_numa_numbers(wrong[i], text, sizeof(text)))
            fail_msg("\"%s\" is taken", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syntax), cmocka_unit_test(test_choice),  cmocka_unit_test(test_rates),
        cmocka_unit_test(test_gids),   cmocka_unit_test(test_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
