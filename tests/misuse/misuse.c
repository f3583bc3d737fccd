/*
 * misuse.c - breaks one rule of the interface, named on the command line. A debug build must end
 * the job with one message that names the call, the rule and the value; misuse.sh checks that.
 *
 * usage: misuse CASE [TAG]     TAG is ignored: it lets misuse.sh find processes that were left
 * behind
 *
 * Rank 0 breaks the rule; the others wait in the library. A case that survives prints SURVIVED and
 * ends with 0. Cases with the prefix ok_ break no rule: they print what their call returned.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "misuse_main.h"

#include <stdlib.h>
#include <unistd.h>

gex_Client_t client;
gex_EP_t ep;
gex_TM_t tm;
gex_Segment_t segment;
gex_Rank_t me, n_ranks;
gex_HSL_t lock = GEX_HSL_INITIALIZER;
char buffer[1 << 20];
static gex_Event_t event;
static volatile size_t nine = 9, none; /* kept from the compiler, which would warn */
static void *volatile nothing;

/* ---- helpers ---- */

gex_Rank_t peer(void)
{
    return (me + 1) % n_ranks;
}

char *peer_base(void)
{
    void *base = NULL;

    gex_Segment_QueryBound(tm, peer(), &base, NULL, NULL);
    return base;
}

void ask(gex_AM_Index_t handler)
{
    gex_AM_RequestShort0(tm, peer(), handler, 0);
}

/* ---- the cases; those of active messages are in misuse_am.c ---- */

static void c_am_in_hsl(void)
{
    gex_HSL_Lock(&lock);
    ask(H_PLAIN);
}

static void c_poll_in_hsl(void)
{
    gex_HSL_Lock(&lock);
    gasnet_AMPoll();
}

static void c_hsl_twice(void)
{
    gex_HSL_Lock(&lock);
    gex_HSL_Lock(&lock);
}

static void c_hsl_not_own(void)
{
    gex_HSL_Unlock(&lock);
}

static void c_hsl_destroy_locked(void)
{
    gex_HSL_Lock(&lock);
    gex_HSL_Destroy(&lock);
}

static void c_hsl_destroy_twice(void)
{
    gex_HSL_Destroy(&lock);
    gex_HSL_Destroy(&lock);
}

static void c_hsl_lock_destroyed(void)
{
    gex_HSL_Destroy(&lock);
    gex_HSL_Lock(&lock);
}

static void c_hsl_try_twice(void)
{
    (void)!gex_HSL_Trylock(&lock);
    (void)!gex_HSL_Trylock(&lock);
}

static void c_hsl_order(void)
{
    static gex_HSL_t second = GEX_HSL_INITIALIZER;

    gex_HSL_Lock(&lock);
    gex_HSL_Lock(&second);
    gex_HSL_Unlock(&lock);
}

static void c_hsl_init_twice(void)
{
    gex_HSL_t *made = malloc(sizeof(*made));

    gex_HSL_Init(made);
    gex_HSL_Lock(made);
    gex_HSL_Unlock(made);
    gex_HSL_Init(made);
}

/* Memory that was never a lock, a copy of one, and what is left of a destroyed or automatic one are
 * no live locks. */
static void c_ok_hsl_init(void)
{
    gex_HSL_t *made = malloc(3 * sizeof(*made));
    gex_HSL_t automatic = GEX_HSL_INITIALIZER;

    memset(made, 0xa5, 3 * sizeof(*made));
    gex_HSL_Init(&made[0]);
    made[1] = made[0];
    gex_HSL_Init(&made[1]);
    made[2] = lock;
    gex_HSL_Init(&made[2]);
    gex_HSL_Init(&automatic);
    gex_HSL_Destroy(&made[0]);
    gex_HSL_Init(&made[0]);
    gex_HSL_Destroy(&lock);
    gex_HSL_Init(&lock);
    printf("returned %s\n", gasnet_ErrorName(gex_HSL_Trylock(&lock)));
    gex_HSL_Unlock(&lock);
}

static void c_hsl_init_static(void)
{
    gex_HSL_Lock(&lock);
    gex_HSL_Unlock(&lock);
    gex_HSL_Init(&lock);
}

static void c_hsl_init_locked(void)
{
    static gex_HSL_t made;

    gex_HSL_Init(&made);
    gex_HSL_Lock(&made);
    gex_HSL_Init(&made);
}

static void c_hsl_init_static_locked(void)
{
    gex_HSL_Lock(&lock);
    gex_HSL_Init(&lock);
}

static void c_event_stale(void)
{
    event = gex_Coll_BarrierNB(tm, 0);
    gex_Event_Wait(event);
    gex_Event_Wait(event);
}

static void c_event_no_op(void)
{
    gex_Event_Wait(GEX_EVENT_NO_OP);
}
static void c_event_garbage(void)
{
    gex_Event_Wait((gex_Event_t)(void *)(buffer + 8));
}
static void c_leaf_category(void)
{
    event = gex_Coll_BarrierNB(tm, 0);
    (void)!gex_Event_QueryLeaf(event, GEX_EC_ALL);
    gex_Event_Wait(event);
}

static void c_region_nested(void)
{
    gex_NBI_BeginAccessRegion(0);
    gex_NBI_BeginAccessRegion(0);
}

static void c_region_end(void)
{
    (void)!gex_NBI_EndAccessRegion(0);
}

static void c_region_wait(void)
{
    gex_NBI_BeginAccessRegion(0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

static void c_put_outside(void)
{
    gex_RMA_PutBlocking(tm, peer(), peer_base() + SEGMENT, buffer, 8, 0);
}
static void c_put_below(void)
{
    gex_RMA_PutBlocking(tm, peer(), peer_base() - 1, buffer, 8, 0);
}
static void c_put_own_address(void)
{
    gex_RMA_PutBlocking(tm, peer(), buffer, buffer + 64, 8, 0);
}
static void c_get_across(void)
{
    gex_RMA_GetBlocking(tm, buffer, peer(), peer_base() + SEGMENT - 4, 8, 0);
}
static void c_put_nbi_outside(void)
{
    gex_RMA_PutNBI(tm, peer(), peer_base() + SEGMENT, buffer, 8, GEX_EVENT_NOW, 0);
}
static void c_get_nb_outside(void)
{
    gex_Event_Wait(gex_RMA_GetNB(tm, buffer, peer(), peer_base() + SEGMENT, 8, 0));
}
static void c_val_outside(void)
{
    (void)!gex_RMA_GetBlockingVal(tm, peer(), peer_base() + SEGMENT, 8, 0);
}
static void c_val_nine(void)
{
    gex_RMA_PutBlockingVal(tm, peer(), peer_base(), 1, nine, 0);
}
static void c_val_zero(void)
{
    gex_RMA_PutBlockingVal(tm, peer(), peer_base(), 1, none, 0);
}
static void c_put_null(void)
{
    gex_RMA_PutBlocking(tm, peer(), peer_base(), nothing, 8, 0);
}
static void c_put_nbi_null(void)
{
    gex_RMA_PutNBI(tm, peer(), peer_base(), nothing, 8, GEX_EVENT_NOW, 0);
}
static void c_get_null(void)
{
    gex_Event_Wait(gex_RMA_GetNB(tm, nothing, peer(), peer_base(), 8, 0));
}
static void c_medium_null(void)
{
    gex_AM_RequestMedium0(tm, peer(), H_MEDIUM, nothing, 8, GEX_EVENT_NOW, 0);
}
static void c_long_null_source(void)
{
    gex_AM_RequestLong0(tm, peer(), H_LONG, nothing, 8, peer_base(), GEX_EVENT_NOW, 0);
}
static void c_team_null(void)
{
    (void)gex_TM_QuerySize(GEX_TM_INVALID);
}
static void c_client_null(void)
{
    (void)gex_Client_QueryName(GEX_CLIENT_INVALID);
}
static void c_ep_null(void)
{
    (void)gex_EP_QueryIndex(GEX_EP_INVALID);
}
static void c_segment_null(void)
{
    (void)gex_Segment_QueryAddr(GEX_SEGMENT_INVALID);
}
static void c_put_rank(void)
{
    gex_RMA_PutBlocking(tm, n_ranks + 6, peer_base(), buffer, 8, 0);
}
static void c_put_lc_null(void)
{
    gex_Event_Wait(gex_RMA_PutNB(tm, peer(), peer_base(), buffer, 8, NULL, 0));
}
static void c_put_lc_group(void)
{
    gex_Event_Wait(gex_RMA_PutNB(tm, peer(), peer_base(), buffer, 8, GEX_EVENT_GROUP, 0));
}
static void c_put_in_hsl(void)
{
    char *remote_addr = peer_base();

    gex_HSL_Lock(&lock);
    gex_RMA_PutBlocking(tm, peer(), remote_addr, buffer, 8, 0);
}
static void c_never_self(void)
{
    void *base = NULL;

    gex_Segment_QueryBound(tm, me, &base, NULL, NULL);
    gex_RMA_PutBlocking(tm, me, base, buffer, 8, GEX_FLAG_PEER_NEVER_SELF);
}
static void c_attach_twice(void)
{
    gex_Segment_Attach(&segment, tm, SEGMENT);
}
static void c_translate_rank(void)
{
    (void)gex_TM_TranslateRankToJobrank(tm, n_ranks + 6);
}
static void c_pair_query(void)
{
    (void)gex_TM_TranslateRankToJobrank(gex_TM_Pair(ep, 0), 0);
}
static void c_pair_index(void)
{
    (void)gex_TM_Pair(ep, 4000);
}

/* ---- teams ---- */

static gex_TM_t whole(void)
{
    gex_TM_t made;

    gex_TM_Split(&made, tm, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    return made;
}

static void create(gex_Rank_t rank, gex_EP_Index_t index, size_t count, size_t made,
                   gex_Flags_t flags)
{
    gex_EP_Location_t args[2];
    gex_TM_t out[2];

    args[0].gex_rank = args[1].gex_rank = rank;
    args[0].gex_ep_index = args[1].gex_ep_index = index;
    gex_TM_Create(out, made, tm, args, count, NULL, 0, flags);
}

static void c_tm_destroyed(void)
{
    gex_TM_t made = whole();

    gex_TM_Destroy(made, NULL, 0);
    (void)gex_TM_TranslateRankToJobrank(made, 0);
}

static void c_tm_destroy_twice(void)
{
    gex_TM_t made = whole();

    gex_TM_Destroy(made, NULL, 0);
    gex_TM_Destroy(made, NULL, 0);
}

static void c_tm_destroy_first(void)
{
    gex_TM_Destroy(tm, NULL, 0);
}
static void c_tm_destroy_flags(void)
{
    gex_TM_Destroy(whole(), NULL, 1u << 30);
}
static void c_split_pair(void)
{
    gex_TM_t made;

    gex_TM_Split(&made, gex_TM_Pair(ep, 0), 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
}
static void c_split_no_size(void)
{
    gex_TM_t made;

    gex_TM_Split(&made, tm, 0, 0, gex_Segment_QueryAddr(segment), none, 0);
}
static void c_split_outside(void)
{
    gex_TM_t made;

    gex_TM_Split(&made, tm, 0, 0, buffer, 4096, 0);
}
static void c_split_flags(void)
{
    gex_TM_Split(NULL, tm, 0, 0, NULL, 0, GEX_FLAG_TM_LOCAL_SCRATCH);
}
static void c_split_in_hsl(void)
{
    gex_HSL_Lock(&lock);
    whole();
}
static void c_create_rank(void)
{
    create(n_ranks + 6, 0, 1, 1, GEX_FLAG_TM_NO_SCRATCH);
}
static void c_create_index(void)
{
    create(0, 3, 1, 1, GEX_FLAG_TM_NO_SCRATCH);
}
static void c_create_twice(void)
{
    create(0, 0, 2, 1, GEX_FLAG_TM_NO_SCRATCH);
}
static void c_create_layout(void)
{
    create(0, 0, 1, 1, GEX_FLAG_RANK_IS_JOBRANK);
}
static void c_create_layouts(void)
{
    create(0, 0, 1, 1, GEX_FLAG_TM_NO_SCRATCH | GEX_FLAG_TM_LOCAL_SCRATCH);
}
static void c_create_number(void)
{
    create(0, 0, 1, 2, GEX_FLAG_TM_NO_SCRATCH);
}
static void c_create_addrs(void)
{
    create(0, 0, 1, 1, GEX_FLAG_TM_LOCAL_SCRATCH);
}

/* ---- further endpoints ---- */

static gex_EP_t further(void *addr, size_t size)
{
    gex_EP_t made = GEX_EP_INVALID;
    gex_Segment_t seg = GEX_SEGMENT_INVALID;

    gex_EP_Create(&made, client, GEX_EP_CAPABILITY_RMA, 0);
    gex_Segment_Create(&seg, client, addr, size, GEX_MK_HOST, 0);
    gex_EP_BindSegment(made, seg, 0);
    return made;
}

static void c_pair_am(void)
{
    gex_AM_RequestShort0(gex_TM_Pair(ep, 1), me, H_PLAIN, 0);
}
static void c_pair_am_from(void)
{
    gex_AM_RequestShort0(gex_TM_Pair(further(buffer, 64), 0), me, H_PLAIN, 0);
}
static void c_ep_unpublished(void)
{
    gex_RMA_PutBlocking(gex_TM_Pair(ep, 1), peer(), buffer, buffer + 64, 8, 0);
}
static void c_ep_outside(void)
{
    gex_RMA_PutBlocking(gex_TM_Pair(further(buffer + 8, 64), 1), me, buffer + 70, buffer + 128, 3,
                        0);
}
static void c_publish_twice(void)
{
    gex_EP_t eps[2];

    eps[0] = eps[1] = further(buffer, 64);
    gex_EP_PublishBoundSegment(tm, eps, 2, 0);
}
static void c_publish_pair(void)
{
    gex_EP_PublishBoundSegment(gex_TM_Pair(ep, 0), NULL, 0, 0);
}
static void c_seg_destroy_attached(void)
{
    gex_Segment_Destroy(segment, 0);
}
static void c_seg_destroy_twice(void)
{
    gex_Segment_t seg = gex_EP_QuerySegment(further(NULL, 64));

    gex_Segment_Destroy(seg, 0);
    gex_Segment_Destroy(seg, 0);
}
static void c_mk_host(void)
{
    gex_MK_Destroy(GEX_MK_HOST, 0);
}

static void c_notify_twice(void)
{
    gasnet_barrier_notify(1, 0);
    gasnet_barrier_notify(1, 0);
}

static void c_wait_without_notify(void)
{
    gasnet_barrier_wait(1, 0);
}
static void c_try_without_notify(void)
{
    gasnet_barrier_try(1, 0);
}

static void c_second_client(void)
{
    gex_Client_t c2;
    gex_EP_t e2;
    gex_TM_t t2;

    gex_Client_Init(&c2, &e2, &t2, "SECOND", NULL, NULL, 0);
}

static void c_ok_waitmode(void)
{
    printf("returned %s\n", gasnet_ErrorName(gasnet_set_waitmode(77)));
}

/* clang-format off */
#define CASES(X) \
    X(am_in_hsl) X(poll_in_hsl) X(hsl_twice) X(hsl_not_own) X(hsl_destroy_locked) \
    X(event_stale) X(hsl_destroy_twice) X(hsl_lock_destroyed) X(hsl_try_twice) \
    X(hsl_init_twice) X(hsl_init_static) X(hsl_init_locked) X(hsl_init_static_locked) \
    X(ok_hsl_init) X(hsl_order) X(put_null) X(put_nbi_null) X(get_null) X(medium_null) \
    X(long_null_source) X(team_null) X(client_null) X(ep_null) X(segment_null) \
    X(event_no_op) X(event_garbage) X(leaf_category) X(region_nested) X(region_end) \
    X(region_wait) X(put_outside) X(put_below) X(put_own_address) X(get_across) \
    X(put_nbi_outside) X(get_nb_outside) X(val_outside) X(val_nine) X(val_zero) \
    X(put_rank) X(put_lc_null) X(put_lc_group) X(put_in_hsl) X(never_self) X(attach_twice) \
    X(translate_rank) X(pair_query) X(pair_index) X(notify_twice) X(wait_without_notify) \
    X(try_without_notify) X(second_client) X(ok_waitmode) X(tm_destroyed) X(tm_destroy_twice) \
    X(tm_destroy_first) X(tm_destroy_flags) X(split_pair) X(split_no_size) \
    X(split_outside) X(split_flags) X(split_in_hsl) X(create_rank) X(create_index) \
    X(create_twice) X(create_layout) X(create_layouts) X(create_number) X(create_addrs) \
    X(pair_am) X(pair_am_from) X(ep_unpublished) X(ep_outside) X(publish_twice) \
    X(publish_pair) X(seg_destroy_attached) X(seg_destroy_twice) X(mk_host)
/* clang-format on */

static const struct misuse_case cases[] = { CASES(MISUSE_CASE) };

/* Attaches what the case needs; "attach_large" asks for more than there is. */
static int attach(const char *name)
{
    uintptr_t size = SEGMENT;
    int rc;

    if (strcmp(name, "attach_large") == 0)
        size = (gasnet_getMaxLocalSegmentSize() + SEGMENT) * 2;
    if (strcmp(name, "attach_odd") == 0)
        size = SEGMENT + 100;
    if (strcmp(name, "attach_zero") == 0)
        size = 0;
    if (strcmp(name, "attach_bound") == 0
        && gex_Segment_Create(&segment, client, NULL, SEGMENT, GEX_MK_HOST, 0) == GASNET_OK)
        (void)gex_EP_BindSegment(ep, segment, 0);
    rc = gex_Segment_Attach(&segment, tm, size);
    if (strncmp(name, "attach_", 7) == 0 && strcmp(name, "attach_twice") != 0) {
        printf("returned %s\n", gasnet_ErrorName(rc));
        fflush(stdout);
        gasnet_exit(rc == GASNET_OK ? 0 : 3);
    }
    return rc;
}

/* The other ranks answer until the job ends; after a while they enter one barrier, whose event is a
 * live one at rank 0 because it entered first. */
static void stand_by(void)
{
    int turns;

    for (turns = 0;; turns++) {
        if (turns == 500)
            event = gex_Coll_BarrierNB(tm, 0);
        gasnet_AMPoll();
        usleep(100);
    }
}

static void run(const struct misuse_case *some, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(some[i].name, name) == 0)
            some[i].run();
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "none";
    size_t i;
    int rc;

    alarm(30);
    rc = gex_Client_Init(&client, &ep, &tm, "MISUSE", &argc, &argv, 0);
    if (rc != GASNET_OK) {
        fprintf(stderr, "gex_Client_Init returned %s\n", gasnet_ErrorName(rc));
        return 3;
    }
    me = gex_System_QueryJobRank();
    n_ranks = gex_System_QueryJobSize();
    if (gex_EP_RegisterHandlers(ep, misuse_table, misuse_table_len) != GASNET_OK || attach(name))
        gasnet_exit(4);
    gex_Coll_BarrierBlocking(tm, 0);
    if (me != 0)
        stand_by();
    run(cases, sizeof(cases) / sizeof(cases[0]), name);
    run(misuse_am_cases, misuse_am_count, name);
    wait_for_peer(5);
    for (i = 0; i < 20; i++) { /* what a handler has sent is handled too */
        usleep(1000);
        gasnet_AMPoll();
    }
    printf("SURVIVED %s on %u ranks\n", name, (unsigned)n_ranks);
    fflush(stdout);
    gasnet_exit(0);
}
