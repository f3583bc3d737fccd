/*
 * test_vis_peer.c - peer completion of VIS puts: exactly one reply-class message for each arming,
 * after the data, for every style and shape, empty puts and self included; replaced and cancelled
 * armings.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, VIS put peer completion.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_vis_model.h"

enum { H_DONE = AQ_TEST_FREE, H_OTHER, SPACE = 300000, ITEM = 8 };

/* What the payload says about the put that it follows. */
struct notice {
    uint32_t from, number, count, stride;
    uint8_t pad[GEX_VIS_MAX_PEERCOMPLETION - 16];
};

static aq_test_count_t done, other, wrong;
static atomic_int last_size;
static char *local;

static char *slot_of(gex_Rank_t owner, gex_Rank_t writer)
{
    return (char *)aq_test_base(owner) + (size_t)writer * SPACE;
}

/* Bytes of the element k of put `number`. */
static uint64_t item(uint32_t number, size_t k)
{
    return ((uint64_t)number << 32) + k;
}

static void h_done(gex_Token_t token, void *buf, size_t nbytes)
{
    gex_Token_Info_t info;
    struct notice n;

    gex_Token_Info(token, &info, GEX_TI_ALL);
    atomic_store(&last_size, (int)nbytes);
    if (info.gex_is_req || info.gex_is_long || info.gex_ep != aq_test_ep
        || info.gex_entry->gex_index != H_DONE)
        atomic_fetch_add(&wrong, 1);
    if (nbytes >= 16) {
        const char *at;

        memset(&n, 0, sizeof(n));
        memcpy(&n, buf, nbytes);
        at = slot_of(aq_test_me, n.from);
        if (n.from != info.gex_srcrank)
            atomic_fetch_add(&wrong, 1);
        for (size_t k = 0; k < n.count; k++) { /* the data is there, no fence needed */
            uint64_t is;

            memcpy(&is, at + k * n.stride, ITEM);
            if (is != item(n.number, k)) {
                atomic_fetch_add(&wrong, 1);
                break;
            }
        }
        for (size_t k = 16; k < nbytes; k++)
            if (((const uint8_t *)buf)[k] != (uint8_t)(n.number + k))
                atomic_fetch_add(&wrong, 1);
    }
    atomic_fetch_add(&done, 1);
}

static void h_other(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token, (void)buf, (void)nbytes;
    atomic_fetch_add(&other, 1);
}

static struct notice note(uint32_t number, uint32_t count, uint32_t stride)
{
    struct notice n = { .from = aq_test_me, .number = number, .count = count, .stride = stride };

    for (size_t k = 16; k < GEX_VIS_MAX_PEERCOMPLETION; k++)
        ((uint8_t *)&n)[k] = (uint8_t)(number + k);
    return n;
}

/* A put of count items, far apart there; its completion is synchronised. */
static void put(gex_Rank_t rank, enum vis_style style, uint32_t number, uint32_t count,
                uint32_t stride)
{
    const ptrdiff_t remote_stride[1] = { (ptrdiff_t)stride }, local_stride[1] = { ITEM };
    const size_t counts[1] = { count };
    const bool leaf = style == VIS_NB_LEAF || style == VIS_NBI_LEAF;
    const gex_Flags_t flags = leaf ? GEX_FLAG_ENABLE_LEAF_LC : 0;
    char *remote_addr = slot_of(rank, aq_test_me);
    gex_Event_t ev = GEX_EVENT_INVALID;

    for (size_t k = 0; k < count; k++) {
        const uint64_t v = item(number, k);

        memcpy(local + k * ITEM, &v, ITEM);
    }
    if (style == VIS_REGION)
        gex_NBI_BeginAccessRegion(0);
    if (style == VIS_BLOCKING)
        AQ_CHECK_EQ(gex_VIS_StridedPutBlocking(aq_test_tm, rank, remote_addr, remote_stride, local,
                                               local_stride, ITEM, counts, 1, 0),
                    0);
    else if (style == VIS_NB || style == VIS_NB_LEAF)
        ev = gex_VIS_StridedPutNB(aq_test_tm, rank, remote_addr, remote_stride, local, local_stride,
                                  ITEM, counts, 1, flags);
    else
        AQ_CHECK_EQ(gex_VIS_StridedPutNBI(aq_test_tm, rank, remote_addr, remote_stride, local,
                                          local_stride, ITEM, counts, 1, flags),
                    0);
    if (style == VIS_REGION)
        ev = gex_NBI_EndAccessRegion(0);
    aq_test_sync(ev);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

static void styles(gex_Rank_t k)
{
    static const uint32_t counts[] = { 0, 1, 10, 12000 };
    const gex_Rank_t to = aq_test_peer(k);
    uint32_t number = 1;

    rule("extended 11: one message after the data, for every style, empty puts and self included");
    for (int style = 0; style < VIS_STYLES; style++)
        for (size_t i = 0; i < AQ_LENGTH(counts); i++)
            for (uint32_t stride = ITEM; stride <= 24; stride += 16) {
                struct notice n = note(number, counts[i], stride);
                const size_t sizes[] = { 16, 40, GEX_VIS_MAX_PEERCOMPLETION };
                const size_t nbytes = sizes[number % 3];

                gex_VIS_SetPeerCompletionHandler(H_DONE, &n, nbytes, 0);
                put(to, (enum vis_style)style, number, counts[i], stride);
                memset(&n, 0xee, sizeof(n)); /* the put is complete: the payload is ours */
                aq_test_wait(&done, (int)number);
                AQ_CHECK_EQ(atomic_load(&last_size), nbytes);
                put(to, (enum vis_style)style, number, counts[i],
                    stride); /* not armed: no message */
                number++;
                aq_test_barrier();
                AQ_CHECK_EQ(atomic_load(&done), number - 1);
                aq_test_barrier();
            }
    AQ_CHECK_EQ(atomic_load(&wrong), 0);
    atomic_store(&done, 0);
    aq_test_barrier();
}

static void lists(void)
{
    const gex_Rank_t to = aq_test_peer(1);
    char *remote_addr = slot_of(to, aq_test_me);
    gex_Memvec_t remote_vec[2] = { { remote_addr, 8 }, { remote_addr + 8, 24 } },
                 local_vec[1] = { { local, 32 } };
    void *remote_list[2] = { remote_addr, remote_addr + 16 },
         *local_list[4] = { local, local + 8, local + 16, local + 24 };
    struct notice n;

    rule("extended 11: vector and indexed puts, empty ones too; nothing but VIS puts uses an "
         "arming up");
    n = note(900, 4, 8);
    gex_VIS_SetPeerCompletionHandler(H_DONE, &n, 16, 0);
    for (size_t k = 0; k < 4; k++) {
        const uint64_t v = item(900, k);

        memcpy(local + k * 8, &v, 8);
    }
    gex_RMA_PutBlocking(aq_test_tm, to, remote_addr + 1000, local, 100, 0);
    gex_RMA_GetBlocking(aq_test_tm, local + 2000, to, remote_addr + 1000, 100, 0);
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&done), 0);
    aq_test_barrier();
    AQ_CHECK_EQ(gex_VIS_VectorPutBlocking(aq_test_tm, to, 2, remote_vec, 1, local_vec, 0), 0);
    aq_test_wait(&done, 1);
    gex_VIS_SetPeerCompletionHandler(H_DONE, &n, 16, 0);
    aq_test_sync(gex_VIS_IndexedPutNB(aq_test_tm, to, 2, remote_list, 16, 4, local_list, 8, 0));
    aq_test_wait(&done, 2);
    gex_VIS_SetPeerCompletionHandler(H_DONE, &n, 16, 0);
    AQ_CHECK_EQ(gex_VIS_VectorPutNBI(aq_test_tm, to, 0, NULL, 0, NULL, 0), 0);
    aq_test_wait(&done, 3);
    gex_VIS_SetPeerCompletionHandler(H_DONE, &n, 16, 0);
    AQ_CHECK_EQ(gex_VIS_IndexedPutBlocking(aq_test_tm, to, 0, NULL, 8, 0, NULL, 8, 0), 0);
    aq_test_wait(&done, 4);
    gex_NBI_Wait(GEX_EC_ALL, 0);

    rule("extended 11: an arming replaced, cancelled, and without payload");
    /* earlier announcements have arrived everywhere: announcements have no order */
    aq_test_barrier();
    gex_VIS_SetPeerCompletionHandler(H_OTHER, &n, 16, 0);
    gex_VIS_SetPeerCompletionHandler(H_DONE, NULL, 0, 0);
    AQ_CHECK_EQ(gex_VIS_VectorPutBlocking(aq_test_tm, to, 2, remote_vec, 1, local_vec, 0), 0);
    aq_test_wait(&done, 5);
    AQ_CHECK_EQ(atomic_load(&last_size), 0);
    gex_VIS_SetPeerCompletionHandler(H_OTHER, &n, 16, 0);
    gex_VIS_SetPeerCompletionHandler(0, NULL, 0, 0);
    AQ_CHECK_EQ(gex_VIS_VectorPutBlocking(aq_test_tm, to, 2, remote_vec, 1, local_vec, 0), 0);
    AQ_CHECK_EQ(gex_VIS_VectorPutBlocking(aq_test_tm, to, 2, remote_vec, 1, local_vec, 0), 0);
    aq_test_barrier();
    for (int i = 0; i < 100; i++)
        aq_test_relax();
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&done), 5);
    AQ_CHECK_EQ(atomic_load(&other), 0);
    AQ_CHECK_EQ(atomic_load(&wrong), 0);
}

/* Many at a time, to every rank. */
static void many(void)
{
    enum { EACH = 20 };
    gex_Event_t ev[EACH];
    struct notice n[EACH];
    const ptrdiff_t remote_stride[1] = { 16 }, local_stride[1] = { ITEM };
    const size_t counts[1] = { 9 };

    rule("extended 11: many puts under way, one message each");
    atomic_store(&done, 0);
    aq_test_barrier();
    for (gex_Rank_t k = 0; k < aq_test_n; k++) {
        for (uint32_t i = 0; i < EACH; i++) {
            n[i] = note(0, 0, 16);
            gex_VIS_SetPeerCompletionHandler(H_DONE, &n[i], 16 + i, 0);
            ev[i] = gex_VIS_StridedPutNB(
                aq_test_tm, aq_test_peer(k), slot_of(aq_test_peer(k), aq_test_me) + i * 1000,
                remote_stride, local + i * 1000, local_stride, ITEM, counts, 1, 0);
        }
        gex_Event_WaitAll(ev, EACH, 0);
    }
    aq_test_wait(&done, (int)(EACH * aq_test_n));
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&done), EACH * aq_test_n);
    AQ_CHECK_EQ(atomic_load(&wrong), 0);
}

int main(int argc, char **argv)
{
    static gex_AM_Entry_t table[] = {
        AQ_ENTRY(H_DONE, h_done, AQ_MP, 0),
        AQ_ENTRY(H_OTHER, h_other, AQ_MP, 0),
    };

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment((size_t)SPACE * aq_test_n);
    local = malloc(SPACE);
    rule("extended 11: payloads of 127 bytes at least");
    AQ_CHECK(GEX_VIS_MAX_PEERCOMPLETION >= 127);
    styles(0);
    styles(1);
    lists();
    many();
    return aq_test_finish();
}
