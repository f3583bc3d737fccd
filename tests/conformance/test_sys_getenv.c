/*
 * test_sys_getenv.c - gasnet_getenv sees the launcher's environment, the same on every rank;
 * settings made by the program before init are read.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, environment.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_VALUE = AQ_TEST_FREE };

static aq_test_count_t reported;

static void h_value(gex_Token_t token, void *buf, size_t nbytes)
{
    const char *path = getenv("PATH");

    (void)token;
    AQ_CHECK(path != NULL && nbytes == strlen(path) + 1 && memcmp(buf, path, nbytes) == 0);
    atomic_fetch_add(&reported, 1);
}

static gex_AM_Entry_t table[] = { AQ_ENTRY(H_VALUE, h_value, AQ_MQ, 0) };

int main(int argc, char **argv)
{
    const char *path;
    gex_Rank_t r;

    setenv("AQ_TEST_BEFORE_INIT", "seen", 1);
    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    rule("core 27.3: gasnet_getenv: unset names give NULL");
    AQ_CHECK(gasnet_getenv("AQ_TEST_SURELY_NOT_SET") == NULL);
    rule("core 27.3: gasnet_getenv: the launcher's value, equal on all ranks");
    path = gasnet_getenv("PATH");
    AQ_CHECK(path != NULL);
    for (r = 0; path != NULL && r < aq_test_n; r++)
        gex_AM_RequestMedium0(aq_test_tm, r, H_VALUE, path, strlen(path) + 1, GEX_EVENT_NOW, 0);
    if (path != NULL)
        aq_test_wait(&reported, (int)aq_test_n);
    AQ_CHECK(gasnet_getenv("PAT") == NULL && gasnet_getenv("PATH=") == NULL);
    return aq_test_finish();
}
