/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mix_traffic.c - Aqueduct operations that are started, left under way, and finished.
 * Owns      its channels' share of the segment
 * Threads   one a channel
 * Uses      interop.h
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "interop.h"

enum { HIDX_ASK = GEX_AM_INDEX_BASE, HIDX_ASK_LONG, HIDX_ANSWER };

#define SMALL ((size_t)4096)

static const size_t sizes[] = { 0, 1, 500, 2048 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static atomic_uint answers[CHANNELS];

static unsigned char *area(const void *segment, unsigned channel, unsigned part)
{
    return (unsigned char *)(uintptr_t)segment + channel * CHANNEL_BYTES + part * AREA;
}

static unsigned char *area_of(int rank, unsigned channel, unsigned part)
{
    void *segment;

    gex_Segment_QueryBound(it.tm, (gex_Rank_t)rank, &segment, NULL, NULL);
    return area(segment, channel, part);
}

/* --- handlers --- */

static void on_ask(gex_Token_t token, void *buf, size_t n, gex_AM_Arg_t channel, gex_AM_Arg_t seed)
{
    compare("payload of a Medium", buf, n, (uint32_t)seed);
    gex_AM_ReplyShort1(token, HIDX_ANSWER, 0, channel);
}

static void on_ask_long(gex_Token_t token, void *buf, size_t n, gex_AM_Arg_t channel,
                        gex_AM_Arg_t seed)
{
    compare("payload of a Long", buf, n, (uint32_t)seed);
    gex_AM_ReplyShort1(token, HIDX_ANSWER, 0, channel);
}

static void on_answer(gex_Token_t token, gex_AM_Arg_t channel)
{
    (void)token;
    atomic_fetch_add(&answers[channel], 1);
}

void traffic_register(gex_EP_t ep)
{
    gex_AM_Entry_t table[] = {
        { HIDX_ASK, (gex_AM_Fn_t)on_ask, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 2, NULL, "ask" },
        { HIDX_ASK_LONG, (gex_AM_Fn_t)on_ask_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 2, NULL,
          "ask_long" },
        { HIDX_ANSWER, (gex_AM_Fn_t)on_answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL,
          "answer" },
    };

    gex_EP_RegisterHandlers(ep, table, sizeof(table) / sizeof(table[0]));
}

/* --- a channel's operations --- */

static size_t transfer_size(bool large)
{
    return large ? AREA : SMALL;
}

void traffic_start(struct traffic *t, unsigned channel, uint32_t seed, bool large)
{
    *t = (struct traffic){ .channel = channel, .seed = seed, .transfer = transfer_size(large) };
    t->src = malloc(AREA);
    t->dst = calloc(1, AREA);
    atomic_store(&answers[channel], 0);
    for (size_t i = 0; i < SIZES; i++) {
        fill(t->src, sizes[i], seed + (uint32_t)i);
        gex_AM_RequestMedium2(it.tm, (gex_Rank_t)right(), HIDX_ASK, t->src, sizes[i], GEX_EVENT_NOW,
                              0, (gex_AM_Arg_t)channel, (gex_AM_Arg_t)(seed + i));
    }
    fill(t->src, t->transfer, seed ^ 0x10000);
    gex_AM_RequestLong2(it.tm, (gex_Rank_t)right(), HIDX_ASK_LONG, t->src, t->transfer,
                        area_of(right(), channel, 2), GEX_EVENT_NOW, 0, (gex_AM_Arg_t)channel,
                        (gex_AM_Arg_t)(seed ^ 0x10000));
    t->sent = SIZES + 1;
    fill(t->src, t->transfer, seed ^ 0x20000);
    t->put = gex_RMA_PutNB(it.tm, (gex_Rank_t)right(), area_of(right(), channel, 1), t->src,
                           t->transfer, GEX_EVENT_DEFER, 0);
    t->get = gex_RMA_GetNB(it.tm, t->dst, (gex_Rank_t)left(), area_of(left(), channel, 0),
                           t->transfer, 0);
}

static bool event_done(gex_Event_t *event)
{
    if (*event != GEX_EVENT_INVALID && gex_Event_Test(*event) == GASNET_OK)
        *event = GEX_EVENT_INVALID;
    return *event == GEX_EVENT_INVALID;
}

bool traffic_done(struct traffic *t)
{
    bool put = event_done(&t->put), get = event_done(&t->get);

    gasnet_AMPoll();
    return put && get && atomic_load(&answers[t->channel]) >= t->sent;
}

void traffic_finish(struct traffic *t)
{
    GASNET_BLOCKUNTIL(atomic_load(&answers[t->channel]) >= t->sent);
    gex_Event_Wait(t->put);
    gex_Event_Wait(t->get);
    /* what lies there was put by its owner before the first scenario */
    compare("what a get brought", t->dst, t->transfer, (uint32_t)left() * 1000 + t->channel);
    free(t->src);
    free(t->dst);
}

void traffic_read_back(unsigned channel, uint32_t seed, bool large)
{
    const size_t n = transfer_size(large);
    unsigned char *remote_addr = calloc(1, n);

    gex_RMA_GetBlocking(it.tm, remote_addr, (gex_Rank_t)right(), area_of(right(), channel, 1), n,
                        0);
    compare("what a put has left", remote_addr, n, seed ^ 0x20000);
    free(remote_addr);
}

void traffic_arrived(unsigned channel, uint32_t seed, bool large)
{
    compare("what a put left", area(it.segment, channel, 1), transfer_size(large), seed ^ 0x20000);
    compare("what a Long left", area(it.segment, channel, 2), transfer_size(large), seed ^ 0x10000);
}
