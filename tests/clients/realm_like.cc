/*
 * realm_like.cc - a client in the manner of Realm's EX network module.
 *
 * Includes nothing of the tools and no <stdio.h>, chooses the thread mode itself, gets only -I and -DGASNET_CONDUIT_SMP from its build system, keeps every handle
 * as void *, hard-codes the constants' values, and sends everything through TM-pairs with IMMEDIATE. C++17; every
 * rank prints "R of N right". SPDX-License-Identifier: BSD-3-Clause
 */
#define GASNET_PAR
#include <gasnetex.h>
#include <gasnet_coll.h>
#include <gasnet_mk.h>

/* before anything else: printf and the rest come with gasnetex.h */
static void complain(unsigned rank, const char *what, int line)
{
    fprintf(stderr, "rank %u: %s (line %d)\n", rank, what, line);
    fflush(stderr);
}

#include <atomic>
#include <cstring>
#include <thread>
#include <type_traits>
#include <vector>

#if (GASNET_CONDUIT_SMP + 0) + (GASNET_CONDUIT_UDP + 0) + (GASNET_CONDUIT_MPI + 0) + (GASNET_CONDUIT_IBV + 0) != 1
#error "exactly one conduit"
#endif
#if GEX_SPEC_VERSION_MAJOR == 0 && GEX_SPEC_VERSION_MINOR < 12
#error "EX 0.12 or later"
#endif
#if GASNET_RELEASE_VERSION_MAJOR * 100 + GASNET_RELEASE_VERSION_MINOR < 202108
#error "a release with its own RMA"
#endif

/* only so that no compiler calls them unused */
void *const realm_like_unused[] = {(void *)&_gasneti_threadkey_init, (void *)&_gasnett_trace_printf_noop};

static_assert(GASNET_OK == 0 && GASNET_ERR_NOT_READY == 10004, "pinned");
static_assert(GEX_DT_U64 == 1 << 3 && GEX_OP_ADD == 1 << 3 && GEX_EP_CAPABILITY_RMA == 1, "pinned");
static_assert(GEX_FLAG_IMMEDIATE == 1 && GEX_FLAG_AM_PREPARE_LEAST_CLIENT == 1 << 11
                  && GEX_FLAG_AM_PREPARE_LEAST_ALLOC == 1 << 12, "pinned");
static_assert(sizeof(gex_Rank_t) == 4 && sizeof(gex_EP_Index_t) == 2 && sizeof(gex_AM_Arg_t) == 4
                  && std::is_unsigned<gex_Rank_t>::value, "pinned");

namespace {

using handle = void *;
handle client, ep, team;
gex_Rank_t me, ranks;
std::atomic<int> shorts{0}, mediums{0}, longs{0}, replies{0};
std::atomic<bool> stop{false};

#define NEED(cond)                                                                       \
    do {                                                                                 \
        if (!(cond)) {                                                                   \
            complain(unsigned(me), #cond, __LINE__);                                     \
            gasnet_exit(1);                                                              \
        }                                                                                \
    } while (0)

gex_TM_t pair_to(gex_EP_Index_t index = 0)
{
    return gex_TM_Pair(static_cast<gex_EP_t>(ep), index);
}

gex_Rank_t source_of(gex_Token_t token)
{
    gex_Token_Info_t info;
    const gex_TI_t got = gex_Token_Info(token, &info, GEX_TI_SRCRANK | GEX_TI_EP);

    NEED((got & GEX_TI_SRCRANK) && (got & GEX_TI_EP) && info.gex_ep == static_cast<gex_EP_t>(ep));
    NEED(gex_EP_QueryCData(info.gex_ep) == &client);
    return info.gex_srcrank;
}

void on_short(gex_Token_t token, gex_AM_Arg_t a0, gex_AM_Arg_t a1)
{
    NEED(a0 == int(source_of(token)) && a1 == -1);
    ++shorts;
    gex_AM_ReplyShort1(token, GEX_AM_INDEX_BASE + 3, 0, a0);
}

void on_medium(gex_Token_t token, const void *buf, size_t size, gex_AM_Arg_t a0, gex_AM_Arg_t a1)
{
    NEED(a0 == int(source_of(token)) && size == size_t(a1));
    for (size_t i = 0; i < size; ++i)
        NEED(static_cast<const unsigned char *>(buf)[i] == (i + size_t(a0)) % 251);
    ++mediums;
}

void on_long(gex_Token_t token, const void *buf, size_t size, gex_AM_Arg_t a0, gex_AM_Arg_t)
{
    NEED(a0 == int(source_of(token)) && size == 4096 && static_cast<const char *>(buf)[4095] == char(a0));
    ++longs;
}

void on_reply(gex_Token_t, gex_AM_Arg_t a0)
{
    NEED(a0 == int(me));
    ++replies;
}

template <typename F> gex_AM_Fn_t fn(F *f) { return reinterpret_cast<gex_AM_Fn_t>(f); }

void start(int *argc, char ***argv)
{
    gex_Client_t c;
    gex_EP_t e;
    gex_TM_t t;

    NEED(gex_AM_LUBRequestMedium() >= 512); /* before there is a client */
    setenv("GASNET_PHYSMEM_PROBE", "0", 0);
    setenv("GASNET_ODP_VERBOSE", "0", 0);
#if GASNET_IBV_MULTIRAIL
    setenv("GASNET_USE_FENCED_PUTS", "1", 0);
#endif
    NEED(gex_Client_Init(&c, &e, &t, "realm-like", argc, argv, 0) == GASNET_OK);
    client = static_cast<void *>(c);
    ep = static_cast<void *>(e);
    team = static_cast<void *>(t);
    me = gex_TM_QueryRank(t);
    ranks = gex_TM_QuerySize(t);
    gex_System_SetVerboseErrors(0);
    gex_EP_SetCData(e, &client);
    std::vector<gex_AM_Entry_t> table(4);
    std::memset(table.data(), 0, table.size() * sizeof(table[0]));
    const gex_Flags_t kinds[] = {GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST,
                                 GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP};
    const gex_AM_Fn_t fns[] = {fn(on_short), fn(on_medium), fn(on_long), fn(on_reply)};
    for (unsigned i = 0; i < 4; ++i) {
        table[i].gex_index = gex_AM_Index_t(GEX_AM_INDEX_BASE + i);
        table[i].gex_fnptr = fns[i];
        table[i].gex_flags = kinds[i];
        table[i].gex_nargs = i == 3 ? 1 : 2;
    }
    NEED(gex_EP_RegisterHandlers(e, table.data(), table.size()) == GASNET_OK);
}

/* IMMEDIATE may decline: poll, then try again, as this client does */
void messages(char *there, gex_Rank_t peer)
{
    std::vector<unsigned char> data(2000);
    std::vector<char> block(4096, char(me));
    gex_Event_t done = GEX_EVENT_INVALID;

    for (size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<unsigned char>((i + me) % 251);
    while (gex_AM_RequestShort2(pair_to(), peer, GEX_AM_INDEX_BASE, GEX_FLAG_IMMEDIATE, int(me), -1))
        gasnet_AMPoll();
    while (gex_AM_RequestMedium2(pair_to(), peer, GEX_AM_INDEX_BASE + 1, data.data(), data.size(), GEX_EVENT_NOW,
                                 GEX_FLAG_IMMEDIATE, int(me), int(data.size())))
        gasnet_AMPoll();
    while (gex_AM_RequestLong2(pair_to(), peer, GEX_AM_INDEX_BASE + 2, block.data(), block.size(), there, &done,
                               GEX_FLAG_IMMEDIATE, int(me), 0))
        gasnet_AMPoll();
    gex_Event_Wait(done);

    gex_AM_SrcDesc_t sd;
    const size_t most = gex_AM_MaxRequestMedium(pair_to(), peer, nullptr,
                                                GEX_FLAG_AM_PREPARE_LEAST_ALLOC, 2);
    while ((sd = gex_AM_PrepareRequestMedium(pair_to(), peer, nullptr, 500, most, nullptr, GEX_FLAG_IMMEDIATE, 2))
           == GEX_AM_SRCDESC_NO_OP)
        gasnet_AMPoll();
    NEED(gex_AM_SrcDescSize(sd) >= 500);
    std::memcpy(gex_AM_SrcDescAddr(sd), data.data(), 500);
    gex_AM_CommitRequestMedium2(sd, GEX_AM_INDEX_BASE + 1, 500, int(me), 500);
    sd = gex_AM_PrepareRequestMedium(pair_to(), peer, data.data(), 1, data.size(), GEX_EVENT_GROUP, 0, 2);
    NEED(gex_AM_SrcDescAddr(sd) == data.data());
    const size_t fits = gex_AM_SrcDescSize(sd);
    gex_AM_CommitRequestMedium2(sd, GEX_AM_INDEX_BASE + 1, fits, int(me), int(fits));
    gex_NBI_Wait(GEX_EC_AM, 0);
    while (shorts < 1 || mediums < 3 || longs < 1 || replies < 1)
        gasnet_AMPoll();
}

/* an all-gather built of broadcasts, several in flight, some of no bytes */
void gather_all()
{
    std::vector<int> all(ranks, -1);
    std::vector<gex_Event_t> events;

    all[me] = int(me) * 3;
    for (gex_Rank_t r = 0; r < ranks; ++r) {
        events.push_back(gex_Coll_BroadcastNB(static_cast<gex_TM_t>(team), r, &all[r], &all[r], sizeof(int), 0));
        events.push_back(gex_Coll_BroadcastNB(static_cast<gex_TM_t>(team), r, nullptr, nullptr, 0, 0));
    }
    gex_Event_WaitAll(events.data(), events.size(), 0);
    gex_Event_WaitAll(nullptr, 0, 0);
    for (gex_Rank_t r = 0; r < ranks; ++r)
        NEED(all[r] == int(r) * 3);
}

/* quiescence: progress comes from the polling thread only */
void reduce_by_poller()
{
    std::uint64_t in[2] = {me, 1}, out[2];
    const gex_Event_t event = gex_Coll_ReduceToAllNB(static_cast<gex_TM_t>(team), out, in, 8, sizeof(in[0]), 2, 8,
                                                     nullptr, nullptr, 0);
    for (int rc; (rc = event == GEX_EVENT_INVALID ? GASNET_OK : gex_Event_Test(event)) != GASNET_OK;) {
        NEED(rc == GASNET_ERR_NOT_READY);
        std::this_thread::yield();
    }
    NEED(out[0] == std::uint64_t(ranks) * (ranks - 1) / 2 && out[1] == ranks);
}

/* an endpoint and a segment of its own, if this build has more than one */
void second_endpoint()
{
#if GASNET_MAXEPS > 1
    static char memory[1 << 16];
    gex_EP_t extra = GEX_EP_INVALID;
    gex_Segment_t segment = GEX_SEGMENT_INVALID;

    NEED(gex_EP_Create(&extra, static_cast<gex_Client_t>(client), GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
    NEED(gex_EP_QueryIndex(extra) == 1);
    NEED(gex_Segment_Create(&segment, static_cast<gex_Client_t>(client), memory, sizeof(memory), GEX_MK_HOST, 0) == GASNET_OK);
    gex_EP_BindSegment(extra, segment, 0);
    NEED(gex_EP_QuerySegment(extra) == segment);
    NEED(gex_EP_PublishBoundSegment(static_cast<gex_TM_t>(team), &extra, 1, 0) == GASNET_OK);

    const gex_Rank_t peer = (me + 1) % ranks;
    std::vector<char *> where(ranks);
    where[me] = memory;
    for (gex_Rank_t r = 0; r < ranks; ++r)
        gex_Event_Wait(gex_Coll_BroadcastNB(static_cast<gex_TM_t>(team), r, &where[r], &where[r], sizeof(char *), 0));
    char byte = char(me + 1), back = 0;
    gex_Event_Wait(gex_RMA_PutNB(gex_TM_Pair(static_cast<gex_EP_t>(ep), 1), peer, where[peer] + 100, &byte, 1,
                                 GEX_EVENT_DEFER, 0));
    gex_Event_Wait(gex_RMA_GetNB(gex_TM_Pair(static_cast<gex_EP_t>(ep), 1), &back, peer, where[peer] + 100, 1, 0));
    NEED(back == byte);
    gex_Event_Wait(gex_Coll_BarrierNB(static_cast<gex_TM_t>(team), 0));
    NEED(memory[100] == char((me + ranks - 1) % ranks + 1));
#endif
}

} // namespace

int main(int argc, char **argv)
{
    start(&argc, &argv);

    gex_Segment_t segment;
    NEED(gex_Segment_Attach(&segment, static_cast<gex_TM_t>(team), 1 << 20) == GASNET_OK);
    std::vector<char *> bases(ranks);
    bases[me] = static_cast<char *>(gex_Segment_QueryAddr(segment));
    for (gex_Rank_t r = 0; r < ranks; ++r)
        gex_Event_Wait(gex_Coll_BroadcastNB(static_cast<gex_TM_t>(team), r, &bases[r], &bases[r], sizeof(char *), 0));

    std::thread poller([] {
        while (!stop) {
            gasnet_AMPoll();
            std::this_thread::yield();
        }
    });
    messages(bases[(me + 1) % ranks], (me + 1) % ranks);
    gather_all();
    reduce_by_poller();
    second_endpoint();
    gex_Event_Wait(gex_Coll_BarrierNB(static_cast<gex_TM_t>(team), 0));
    stop = true;
    poller.join();
    printf("%u of %u right\n", unsigned(me), unsigned(ranks));
    fflush(stdout);
    gex_Event_Wait(gex_Coll_BarrierNB(static_cast<gex_TM_t>(team), 0));
    gasnet_exit(0);
}
