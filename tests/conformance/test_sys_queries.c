/*
 * test_sys_queries.c - job, neighborhood, host and position queries; NULL outputs; error names;
 * verbose errors; thread limits; environment.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, job queries.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_POS = AQ_TEST_FREE };

static aq_test_count_t reported;
static gex_Rank_t nbrhd_n, nbrhd_i, host_n, host_i;

typedef void group_query_t(gex_RankInfo_t **, gex_Rank_t *, gex_Rank_t *);

static void query_nbrhd(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *me)
{
    gex_System_QueryNbrhdInfo(info, count, me);
}

static void query_host(gex_RankInfo_t **info, gex_Rank_t *count, gex_Rank_t *me)
{
    gex_System_QueryHostInfo(info, count, me);
}

static bool contains(gex_RankInfo_t *info, gex_Rank_t count, gex_Rank_t rank)
{
    gex_Rank_t i;

    for (i = 0; i < count && info[i].gex_jobrank != rank; i++)
        ;
    return i < count;
}

static void check_group(group_query_t *query)
{
    gex_RankInfo_t *info = NULL, *again = NULL;
    gex_Rank_t count = 0, me = 99999, i;

    query(&info, &count, &me);
    AQ_CHECK(info != NULL && count >= 1 && count <= aq_test_n && me < count);
    AQ_CHECK_EQ(info[me].gex_jobrank, aq_test_me);
    for (i = 1; i < count; i++)
        AQ_CHECK(info[i - 1].gex_jobrank < info[i].gex_jobrank);
    AQ_CHECK(info[count - 1].gex_jobrank < aq_test_n);
    query(&again, NULL, NULL);
    AQ_CHECK(again == info);
    query(NULL, &i, NULL);
    AQ_CHECK_EQ(i, count);
    query(NULL, NULL, &i);
    AQ_CHECK_EQ(i, me);
    query(NULL, NULL, NULL);
}

/* A peer tells its position; same index must mean same group, both ways. */
static void h_pos(gex_Token_t token, gex_AM_Arg_t nn, gex_AM_Arg_t ni, gex_AM_Arg_t hn,
                  gex_AM_Arg_t hi)
{
    gex_Token_Info_t who;
    gex_RankInfo_t *info;
    gex_Rank_t count;

    gex_Token_Info(token, &who, GEX_TI_SRCRANK);
    AQ_CHECK_EQ((gex_Rank_t)nn, nbrhd_n);
    AQ_CHECK_EQ((gex_Rank_t)hn, host_n);
    gex_System_QueryNbrhdInfo(&info, &count, NULL);
    AQ_CHECK_EQ(contains(info, count, who.gex_srcrank), (gex_Rank_t)ni == nbrhd_i);
    gex_System_QueryHostInfo(&info, &count, NULL);
    AQ_CHECK_EQ(contains(info, count, who.gex_srcrank), (gex_Rank_t)hi == host_i);
    atomic_fetch_add(&reported, 1);
}

static void check_position(void)
{
    gex_RankInfo_t *nbrhd, *host;
    gex_Rank_t a = 9, b = 9, c = 9, d = 9, count, hosts, i;

    gex_System_QueryMyPosition(&a, &b, &c, &d);
    AQ_CHECK(a == nbrhd_n && b == nbrhd_i && c == host_n && d == host_i);
    gex_System_QueryMyPosition(NULL, NULL, NULL, NULL);
    gex_System_QueryMyPosition(&a, NULL, NULL, &d);
    AQ_CHECK(a == nbrhd_n && d == host_i);
    AQ_CHECK(nbrhd_i < nbrhd_n && host_i < host_n && host_n <= nbrhd_n && nbrhd_n <= aq_test_n);
    gex_System_QueryNbrhdInfo(&nbrhd, &count, NULL);
    gex_System_QueryHostInfo(&host, &hosts, NULL);
    AQ_CHECK(count <= hosts);
    for (i = 0; i < count; i++)
        AQ_CHECK(contains(host, hosts, nbrhd[i].gex_jobrank));
}

static void check_nodeinfo(void)
{
    gasnet_nodeinfo_t *table = calloc(aq_test_n + 1, sizeof(*table));
    gex_RankInfo_t *info;
    gex_Rank_t count, r;

    memset(table, 0x77, (aq_test_n + 1) * sizeof(*table));
    AQ_CHECK_EQ(gasnet_getNodeInfo(table, (int)aq_test_n + 1), GASNET_OK);
    AQ_CHECK_EQ(table[aq_test_n].host, 0x77777777);
    gex_System_QueryNbrhdInfo(&info, &count, NULL);
    for (r = 0; r < aq_test_n; r++) {
        AQ_CHECK(table[r].host < host_n && table[r].supernode < nbrhd_n);
        AQ_CHECK_EQ(table[r].supernode == table[aq_test_me].supernode, contains(info, count, r));
    }
    free(table);
}

static void check_errors(void)
{
    static const struct {
        int code;
        const char *name;
    } known[] = {
        { GASNET_OK, "GASNET_OK" },
        { GASNET_ERR_NOT_INIT, "GASNET_ERR_NOT_INIT" },
        { GASNET_ERR_RESOURCE, "GASNET_ERR_RESOURCE" },
        { GASNET_ERR_BAD_ARG, "GASNET_ERR_BAD_ARG" },
        { GASNET_ERR_NOT_READY, "GASNET_ERR_NOT_READY" },
        { GASNET_ERR_BARRIER_MISMATCH, "GASNET_ERR_BARRIER_MISMATCH" },
    };
    size_t i;

    for (i = 0; i < AQ_LENGTH(known); i++) {
        AQ_CHECK(strcmp(gasnet_ErrorName(known[i].code), known[i].name) == 0);
        AQ_CHECK(strlen(gasnet_ErrorDesc(known[i].code)) > 3);
    }
    AQ_CHECK(gasnet_ErrorName(-1) != NULL && gasnet_ErrorName(12345) != NULL);
    AQ_CHECK(gasnet_ErrorDesc(-1) != NULL && gasnet_ErrorDesc(12345) != NULL);
    AQ_CHECK(strcmp(gasnet_ErrorName(-1), gasnet_ErrorName(424242)) == 0);
}

static gex_AM_Entry_t table[] = { AQ_ENTRY(H_POS, h_pos, AQ_SQ, 4) };

int main(int argc, char **argv)
{
    gex_Rank_t r;

    aq_test_start(&argc, &argv, 1);
    gex_System_QueryMyPosition(&nbrhd_n, &nbrhd_i, &host_n, &host_i);
    aq_test_handlers(table, AQ_LENGTH(table));
    rule("core 9: job rank and size; equal to the primordial team's");
    AQ_CHECK(aq_test_me < aq_test_n);
    AQ_CHECK_EQ(gex_TM_QueryRank(aq_test_tm), aq_test_me);
    AQ_CHECK_EQ(gex_TM_QuerySize(aq_test_tm), aq_test_n);
    rule("core 9: neighborhood: sorted, includes me, each output may be NULL");
    check_group(query_nbrhd);
    rule("core 9: host: sorted, includes me, each output may be NULL");
    check_group(query_host);
    rule("core 9: position: same for all callers, host contains neighborhood, NULL outputs");
    check_position();
    for (r = 0; r < aq_test_n; r++)
        gex_AM_RequestShort4(aq_test_tm, r, H_POS, 0, nbrhd_n, nbrhd_i, host_n, host_i);
    aq_test_wait(&reported, (int)aq_test_n);
    rule("gasnet-1 9: gasnet_getNodeInfo agrees with the neighborhood query");
    check_nodeinfo();
    rule("core 8: error names and descriptions; any other number gives a fixed text");
    check_errors();
    rule("core 8: verbose errors are on at start and can be switched");
    AQ_CHECK_EQ(gex_System_GetVerboseErrors(), 1);
    gex_System_SetVerboseErrors(0);
    AQ_CHECK_EQ(gex_System_GetVerboseErrors(), 0);
    gex_System_SetVerboseErrors(1);
    AQ_CHECK_EQ(gex_System_GetVerboseErrors(), 1);
    rule("core 7, 25: MaxThreads and hidden concurrency");
#if GASNET_SEQ
    AQ_CHECK_EQ(gex_System_QueryMaxThreads(), 1);
#else
    AQ_CHECK(gex_System_QueryMaxThreads() >= 1);
#endif
    if (GASNET_HIDDEN_AM_CONCURRENCY_LEVEL == 0)
        AQ_CHECK_EQ(gex_System_QueryHiddenAMConcurrencyLevel(), 0);
    return aq_test_finish();
}
