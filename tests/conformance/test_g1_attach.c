/*
 * test_g1_attach.c - gasnet_init and gasnet_attach: an argument vector as clients make them by
 * hand, what may be called in between, every refused table and size, indices of a mixed table,
 * messages right after attach, second calls, segment queries, first touch by a peer.
 * Ranks 1+. Conduits all. Source GASNet specification 1.8, job control, segment queries.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test_g1.h"

enum { FIXED = AQ_TEST_FREE + 2, ROWS = 7, PAGES = 40 };

static aq_test_count_t early, hooked;
static void *hook_base;
static uintptr_t hook_size;

static void h_early(gasnet_token_t token, gasnet_handlerarg_t from)
{
    gasnet_node_t source = 12345;

    AQ_CHECK_EQ(gasnet_AMGetMsgSource(token, &source), GASNET_OK);
    AQ_CHECK_EQ(source, from);
    atomic_fetch_add(&early, 1);
}

static void h_other(gasnet_token_t token)
{
    (void)token;
}

static void h_payload(gasnet_token_t token, void *buf, size_t nbytes, int a, int b)
{
    (void)token, (void)buf, (void)nbytes, (void)a, (void)b;
}

/* Handlers of any prototype without a cast, automatic rows among fixed ones. */
static gasnet_handlerentry_t table[ROWS] = {
    { 0, h_early }, { FIXED, h_other }, { 0, h_payload }, { 255, h_early },
    { 0, h_other }, { 253, h_other },   { 0, h_early },
};
static const int expected[ROWS] = { 254, FIXED, 252, 255, 251, 253, 250 };

static void hook(void *base, uintptr_t size)
{
    hook_base = base;
    hook_size = size;
    atomic_fetch_add(&hooked, 1);
}

static uintptr_t size_of(gasnet_node_t node)
{
    return (uintptr_t)GASNET_PAGESIZE * (PAGES + node % 5);
}

/* An argument vector of one byte without an end, and with nothing behind it. */
static int init_like_a_runtime(void)
{
    char *argument = malloc(1), **vector = malloc(sizeof(*vector));
    int argc = 1, rc;

    if (argument == NULL || vector == NULL)
        exit(1);
    vector[0] = argument;
    rc = gasnet_init(&argc, &vector);
    free(argument);
    return rc;
}

static void check_between(void)
{
    gasnet_nodeinfo_t info[1];
    gasnet_hsl_t hsl;

    rule("gasnet-1 7.1: what may be called between init and attach");
    AQ_CHECK(gasnet_mynode() < gasnet_nodes());
    AQ_CHECK(gasnet_getMaxLocalSegmentSize() >= gasnet_getMaxGlobalSegmentSize());
    AQ_CHECK(gasnet_getMaxGlobalSegmentSize() > 0);
    AQ_CHECK(gasnet_getenv("AQ_NO_SUCH_NAME") == NULL);
    AQ_CHECK(gasnet_getenv("PATH") != NULL);
    AQ_CHECK_EQ(gasnet_getNodeInfo(info, 1), GASNET_OK);
    AQ_CHECK_EQ(gasnet_set_waitmode(GASNET_WAIT_BLOCK), GASNET_OK);
    AQ_CHECK_EQ(gasnet_set_waitmode(77), GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gasnet_set_waitmode(GASNET_WAIT_SPIN), GASNET_OK);
    AQ_CHECK(strcmp(gasnet_ErrorName(GASNET_ERR_NOT_READY), "GASNET_ERR_NOT_READY") == 0);
    AQ_CHECK(gasnet_ErrorDesc(4711) != NULL && gasnet_ErrorName(4711) != NULL);
    AQ_CHECK(gasnet_AMMaxArgs() >= 16 && gasnet_AMMaxMedium() >= 512);
    AQ_CHECK(gasnet_AMMaxLongRequest() >= 512 && gasnet_AMMaxLongReply() >= 512);
    gasnet_hsl_init(&hsl);
    gasnet_hsl_lock(&hsl);
    gasnet_hsl_unlock(&hsl);
    gasnet_hsl_destroy(&hsl);
    rule("gasnet-1 7.1: a second gasnet_init returns an error");
    AQ_CHECK_EQ(gasnet_init(NULL, NULL), GASNET_ERR_NOT_INIT);
}

static void refuse(const char *what, gasnet_handlerentry_t *rows, int n, uintptr_t size)
{
    const int rc = gasnet_attach(rows, n, size, 0);

    if (rc == GASNET_OK)
        aq_test_die(__FILE__, __LINE__, "%s: attach returned GASNET_OK", what);
}

static void check_refusals(void)
{
    static gasnet_handlerentry_t many[129];
    gasnet_handlerentry_t twice[2] = { { 200, h_other }, { 200, h_other } };
    gasnet_handlerentry_t mixed[2] = { { 0, h_other }, { 17, h_other } };
    gasnet_handlerentry_t nobody[1] = { { 200, NULL } };
    int i;

    rule("gasnet-1 7.2: tables that are refused, and stay as they were");
    for (i = 0; i < 129; i++)
        many[i].fnptr = h_other;
    refuse("129 rows", many, 129, GASNET_PAGESIZE);
    refuse("-1 rows", many, -1, GASNET_PAGESIZE);
    refuse("an index twice", twice, 2, GASNET_PAGESIZE);
    refuse("a reserved index", mixed, 2, GASNET_PAGESIZE);
    AQ_CHECK_EQ(mixed[0].index, 0);
    refuse("no function", nobody, 1, GASNET_PAGESIZE);
#if !GASNET_SEGMENT_EVERYTHING
    rule("gasnet-1 7.2: segment sizes that are refused with BAD_ARG");
    AQ_CHECK_EQ(gasnet_attach(NULL, 0, GASNET_PAGESIZE + 1, 0), GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gasnet_attach(NULL, 0, gasnet_getMaxLocalSegmentSize() + GASNET_PAGESIZE, 0),
                GASNET_ERR_BAD_ARG);
#endif
}

/* No barrier of ours between attach and the first message: attach is one. */
static void check_early(void)
{
    gasnet_node_t node;

    rule("gasnet-1 7.2: messages right after attach find every node's handlers");
    for (node = 0; node < gasnet_nodes(); node++)
        AQ_CHECK_EQ(gasnet_AMRequestShort1(node, table[node % 2 ? 0 : 3].index, gasnet_mynode()),
                    GASNET_OK);
    GASNET_BLOCKUNTIL(atomic_load(&early) == (int)gasnet_nodes());
}

static void check_segments(void)
{
    const gasnet_node_t n = gasnet_nodes();
    gasnet_seginfo_t *info = calloc(n + 1, sizeof(*info));
    gasnet_node_t node;

    rule("gasnet-1 8: gasnet_getSegmentInfo with fewer, as many and more entries than nodes");
    AQ_CHECK_EQ(gasnet_getSegmentInfo(NULL, 0), GASNET_OK);
    AQ_CHECK_EQ(gasnet_getSegmentInfo(info, -1), GASNET_ERR_BAD_ARG);
    AQ_CHECK(info[0].addr == NULL && info[0].size == 0);
    info[n].size = 4711;
    AQ_CHECK_EQ(gasnet_getSegmentInfo(info, (int)n + 1), GASNET_OK);
    AQ_CHECK_EQ(info[n].size, 4711);
    for (node = 0; node < n; node++) {
#if GASNET_SEGMENT_EVERYTHING
        AQ_CHECK(info[node].addr == NULL && info[node].size == (uintptr_t)-1);
#else
        AQ_CHECK(info[node].addr != NULL && (uintptr_t)info[node].addr % GASNET_PAGESIZE == 0);
        AQ_CHECK_EQ(info[node].size, size_of(node));
#endif
    }
#if !GASNET_SEGMENT_EVERYTHING
    rule("gasnet-1 7.2: the attach hook saw the segment");
    AQ_CHECK_EQ(atomic_load(&hooked), 1);
    AQ_CHECK(hook_base == info[gasnet_mynode()].addr && hook_size == size_of(gasnet_mynode()));
    rule("gasnet-1 7.2: the first touch of segment pages may be a peer's");
    for (node = 0; node < n; node++) {
        char *place = (char *)info[node].addr + GASNET_PAGESIZE * (gasnet_mynode() % PAGES);

        gasnet_put_val(node, place + 9, gasnet_mynode(), 4);
        AQ_CHECK_EQ(gasnet_get_val(node, place + 9, 4), gasnet_mynode());
    }
#endif
    free(info);
}

static void check_nodes(void)
{
    const gasnet_node_t n = gasnet_nodes();
    gasnet_nodeinfo_t *info = calloc(n, sizeof(*info));
    gex_Rank_t nbrhds, nbrhd, hosts, host;

    rule("gasnet-1 9: gasnet_getNodeInfo agrees with the EX queries");
    AQ_CHECK_EQ(gasnet_getNodeInfo(info, -1), GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gasnet_getNodeInfo(info, (int)n), GASNET_OK);
    gex_System_QueryMyPosition(&nbrhds, &nbrhd, &hosts, &host);
    AQ_CHECK_EQ(info[gasnet_mynode()].host, host);
    AQ_CHECK_EQ(info[gasnet_mynode()].supernode, nbrhd);
#if GASNET_PSHM && !GASNET_SEGMENT_EVERYTHING
    rule("gasnet-1 9: with the offset a neighbour's segment can be loaded from");
    AQ_CHECK_EQ(info[gasnet_mynode()].offset, 0);
    for (gasnet_node_t node = 0; node < n; node++)
        if (info[node].supernode == nbrhd) {
            char *place = aq_test_base(node);

            gasnet_put_val(node, place + 8 * gasnet_mynode(), 100u + gasnet_mynode(), 8);
            AQ_CHECK_EQ(*(volatile uint64_t *)(place + info[node].offset + 8 * gasnet_mynode()),
                        100 + gasnet_mynode());
        }
#endif
    free(info);
}

int main(int argc, char **argv)
{
    int i, rc;

    (void)argc;
    (void)argv;
    rule("gasnet-1 7.2: attach before init returns an error");
    AQ_CHECK_EQ(gasnet_attach(NULL, 0, 0, 0), GASNET_ERR_NOT_INIT);
    gasnet_client_attach_hook = hook;
    rc = init_like_a_runtime();
    if (rc != GASNET_OK)
        return 1;
    gex_System_SetVerboseErrors(0);
    check_between();
    check_refusals();
    rule("gasnet-1 7.2: fixed indices, then automatic ones from 255 down in table order");
    rc = gasnet_attach(table, ROWS, size_of(gasnet_mynode()), (uintptr_t)-1);
    if (rc != GASNET_OK)
        aq_test_die(__FILE__, __LINE__, "gasnet_attach returned %s", gasnet_ErrorName(rc));
    for (i = 0; i < ROWS; i++)
        AQ_CHECK_EQ(table[i].index, expected[i]);
    check_early();
    rule("gasnet-1 7.2: a second attach returns an error and disturbs nothing");
    AQ_CHECK_EQ(gasnet_attach(table, ROWS, GASNET_PAGESIZE, 0), GASNET_ERR_NOT_INIT);
    AQ_CHECK_EQ(gasnet_init(NULL, NULL), GASNET_ERR_NOT_INIT);
    check_segments();
    aq_test_join_gasnet1(1, (size_t)GASNET_PAGESIZE * PAGES);
    check_nodes();
    return aq_test_finish();
}
