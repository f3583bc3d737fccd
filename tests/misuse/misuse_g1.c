/*
 * misuse_g1.c - breaks one rule of the GASNet-1 interface, named on the command line; see misuse.c.
 *
 * usage: misuse-g1 CASE [TAG]     cases that start with ex_ initialise through gex_Client_Init,
 *                                 without GEX_FLAG_USES_GASNET1; those that start with early_ do
 *                                 not attach
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { H_PLAIN = 200, H_PUTS, H_NOBODY = 250, SEGMENT = 65536 };

static char buffer[1 << 20];
static char *base; /* of the peer's segment */
static volatile size_t nine = 9;
static volatile int three = 3;

static void h_plain(gasnet_token_t token)
{
    (void)token;
}

static void h_puts(gasnet_token_t token)
{
    (void)token;
    gasnet_put(0, base, buffer, 8);
}

static gasnet_handlerentry_t table[] = { { H_PLAIN, h_plain }, { H_PUTS, h_puts } };

static gasnet_node_t peer(void)
{
    return (gasnet_mynode() + 1) % gasnet_nodes();
}

static void c_early_put(void)
{
    gasnet_put(peer(), base, buffer, 8);
}
static void c_early_am(void)
{
    gasnet_AMRequestShort0(peer(), H_PLAIN);
}
static void c_early_query(void)
{
    gasnet_QueryGexObjects(NULL, NULL, NULL, NULL);
}
static void c_ex_put(void)
{
    gasnet_put(peer(), base, buffer, 8);
}
static void c_ex_am(void)
{
    gasnet_AMRequestMedium0(peer(), H_PLAIN, buffer, 8);
}
static void c_ex_vis(void)
{
    const size_t count[1] = { 8 };

    gasnet_puts_bulk(peer(), base, NULL, buffer, NULL, count, 0);
}
static void c_put_node(void)
{
    gasnet_put_nb_bulk(gasnet_nodes() + 6, base, buffer, 8);
}
static void c_put_outside(void)
{
    gasnet_put_bulk(peer(), base + SEGMENT, buffer, 8);
}
static void c_get_outside(void)
{
    gasnet_get_nbi(buffer, peer(), base + SEGMENT - 4, 8);
}
static void c_memset_outside(void)
{
    gasnet_memset_nbi(peer(), base - 1, 0, 8);
}
static void c_val_nine(void)
{
    gasnet_wait_syncnb_valget(gasnet_get_nb_val(peer(), base, nine));
}
static void c_val_outside(void)
{
    gasnet_put_val(peer(), base + SEGMENT, 1, 1);
}
static void c_valget_twice(void)
{
    gasnet_valget_handle_t handle = gasnet_get_nb_val(peer(), base, 8);

    gasnet_wait_syncnb_valget(handle);
    gasnet_wait_syncnb_valget(handle);
}
static void c_am_node(void)
{
    gasnet_AMRequestShort0(gasnet_nodes() + 6, H_PLAIN);
}
static void c_medium_oversize(void)
{
    gasnet_AMRequestMedium0(peer(), H_PLAIN, buffer, gasnet_AMMaxMedium() + 1);
}
static void c_long_outside(void)
{
    gasnet_AMRequestLongAsync0(peer(), H_PLAIN, buffer, 8, base + SEGMENT);
}
static void c_reply_outside(void)
{
    gasnet_AMReplyShort0(NULL, H_PLAIN);
}
static void c_put_in_handler(void)
{
    gasnet_AMRequestShort0(peer(), H_PUTS);
}
static void c_am_in_lock(void)
{
    static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;

    gasnet_hsl_lock(&lock);
    gasnet_AMRequestShort0(peer(), H_PLAIN);
}
static void c_region_wait(void)
{
    gasnet_begin_nbi_accessregion();
    gasnet_wait_syncnbi_all();
}
/* noticed in every build */
static void c_any_count(void)
{
    gasnet_AMRequestShort(peer(), H_PLAIN, three, 1, 2);
}
static void c_any_nobody(void)
{
    gasnet_AMRequestShort0(peer(), H_NOBODY);
}

static const struct {
    const char *name;
    void (*fn)(void);
} cases[] = {
    { "early_put", c_early_put },
    { "early_am", c_early_am },
    { "early_query", c_early_query },
    { "ex_put", c_ex_put },
    { "ex_am", c_ex_am },
    { "ex_vis", c_ex_vis },
    { "put_node", c_put_node },
    { "put_outside", c_put_outside },
    { "get_outside", c_get_outside },
    { "memset_outside", c_memset_outside },
    { "val_nine", c_val_nine },
    { "val_outside", c_val_outside },
    { "valget_twice", c_valget_twice },
    { "am_node", c_am_node },
    { "medium_oversize", c_medium_oversize },
    { "long_outside", c_long_outside },
    { "reply_outside", c_reply_outside },
    { "put_in_handler", c_put_in_handler },
    { "am_in_lock", c_am_in_lock },
    { "region_wait", c_region_wait },
    { "any_count", c_any_count },
    { "any_nobody", c_any_nobody },
};

static int start(const char *name)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gasnet_seginfo_t *info;

    if (strncmp(name, "ex_", 3) == 0)
        return gex_Client_Init(&client, &ep, &tm, "MISUSE", NULL, NULL, 0);
    if (gasnet_init(NULL, NULL) != GASNET_OK)
        return GASNET_ERR_RESOURCE;
    if (strncmp(name, "early_", 6) == 0)
        return GASNET_OK;
    if (gasnet_attach(table, 2, SEGMENT, 0) != GASNET_OK)
        return GASNET_ERR_RESOURCE;
    info = malloc(gasnet_nodes() * sizeof(*info));
    gasnet_getSegmentInfo(info, (int)gasnet_nodes());
    base = info[peer()].addr;
    free(info);
    return GASNET_OK;
}

int main(int argc, char **argv)
{
    static volatile int never;
    time_t until;
    size_t i;

    if (argc < 2) {
        fprintf(stderr, "usage: misuse-g1 CASE [TAG]\n");
        return 2;
    }
    if (start(argv[1]) != GASNET_OK)
        return 2;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]) && strcmp(cases[i].name, argv[1]) != 0; i++)
        ;
    if (i == sizeof(cases) / sizeof(cases[0])) {
        fprintf(stderr, "misuse-g1: no case %s\n", argv[1]);
        return 2;
    }
    if (gasnet_mynode() != 0)
        GASNET_BLOCKUNTIL(never);
    cases[i].fn();
    for (until = time(NULL) + 5; time(NULL) < until;) /* the other end may be who notices */
        gasnet_AMPoll();
    printf("SURVIVED\n");
    return 0;
}
