/*
 * legion1_like.cc - a client in the manner of Realm's GASNet-1 module: gasnet.h alone, thread mode chosen here,
 * messages of every length, access regions as handles, and the legacy collectives. C++; every rank prints
 * "R of N right". SPDX-License-Identifier: BSD-3-Clause
 */
#define GASNET_PAR
#define GASNETT_THREAD_SAFE 1
#include <gasnet.h>
#ifndef _INCLUDED_GASNET_TOOLS_H
#include <gasnet_tools.h>
#endif
#include <gasnet_coll.h>

#if GEX_SPEC_VERSION_MAJOR == 0 && GEX_SPEC_VERSION_MINOR < 5
#error "EX 0.5 or later"
#endif

#include <atomic>
#include <cstdio>
#include <cstring>
#include <vector>

void *const legion1_unused[] = {(void *)&_gasneti_threadkey_init, (void *)&_gasnett_trace_printf_noop};

static gex_Rank_t ex_rank_is_known;
static std::atomic<int> arrived{0};

#define NEED(cond)                                                                                  \
    do {                                                                                            \
        if (!(cond)) {                                                                              \
            std::fprintf(stderr, "rank %u: %s (line %d)\n", unsigned(gasnet_mynode()), #cond, __LINE__); \
            gasnet_exit(1);                                                                         \
        }                                                                                           \
    } while (0)

static void on_short(gasnet_token_t token, gasnet_handlerarg_t a, gasnet_handlerarg_t b)
{
    gasnet_node_t from;

    NEED(gasnet_AMGetMsgSource(token, &from) == GASNET_OK && from == gasnet_node_t(a) && b == 2);
    ++arrived;
    gasnet_AMReplyShort1(token, 253, a);
}

static void on_reply(gasnet_token_t, gasnet_handlerarg_t a)
{
    NEED(gasnet_node_t(a) == gasnet_mynode());
    ++arrived;
}

static void on_medium(gasnet_token_t, void *buf, size_t size, gasnet_handlerarg_t a, gasnet_handlerarg_t b,
                      gasnet_handlerarg_t c)
{
    NEED(size == 100 && static_cast<char *>(buf)[99] == 'm' && a == 1 && b == 2 && c == 3);
    ++arrived;
}

static void on_long(gasnet_token_t, void *buf, size_t size, gasnet_handlerarg_t, gasnet_handlerarg_t b)
{
    NEED(size == 5000 && static_cast<char *>(buf)[4999] == 'l' && b == 9);
    ++arrived;
}

typedef void (*handler_fn)();

int main(int argc, char **argv)
{
    NEED(gasnet_init(&argc, &argv) == GASNET_OK);
    const gasnet_node_t me = gasnet_mynode(), nodes = gasnet_nodes(), next = (me + 1) % nodes;
    ex_rank_is_known = me;
    gasnet_handlerentry_t table[] = {{250, reinterpret_cast<handler_fn>(on_short)},
                                     {252, reinterpret_cast<handler_fn>(on_medium)},
                                     {253, reinterpret_cast<handler_fn>(on_reply)},
                                     {254, reinterpret_cast<handler_fn>(on_long)}};
    const int rc = gasnet_attach(table, 4, 1 << 20, 0);
    if (rc != GASNET_OK) {
        std::fprintf(stderr, "%s: %s\n", gasnet_ErrorName(rc), gasnet_ErrorDesc(rc));
        gasnet_exit(1);
    }
    gasnet_set_waitmode(GASNET_WAIT_BLOCK);
    std::vector<gasnet_seginfo_t> seginfo(nodes);
    std::vector<gasnet_nodeinfo_t> place(nodes);
    NEED(gasnet_getSegmentInfo(seginfo.data(), int(nodes)) == GASNET_OK);
    NEED(gasnet_getNodeInfo(place.data(), int(nodes)) == GASNET_OK && place[me].host == place[0].host);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);

    char *there = static_cast<char *>(seginfo[next].addr);
    std::vector<char> medium(100, 'm'), block(5000, 'l');
    NEED(medium.size() <= gasnet_AMMaxMedium() && block.size() <= gasnet_AMMaxLongRequest());
    gasnet_AMRequestShort2(next, 250, me, 2);
    gasnet_AMRequestMedium3(next, 252, medium.data(), medium.size(), 1, 2, 3);
    gasnet_AMRequestLongAsync2(next, 254, block.data(), block.size(), there, 1, 9);
    while (arrived < 4)
        gasnet_AMPoll();

    /* an access region is one handle for many transfers */
    std::vector<int> mine(256), back(256);
    for (size_t i = 0; i < mine.size(); ++i)
        mine[i] = int(me * 1000 + i);
    gasnet_put(next, there + 8192, mine.data(), mine.size() * sizeof(int));
    gasnet_begin_nbi_accessregion();
    for (size_t i = 0; i < mine.size(); ++i)
        gasnet_get_nbi(&back[i], next, there + 8192 + i * sizeof(int), sizeof(int));
    gasnet_handle_t all = gasnet_end_nbi_accessregion();
    gasnet_wait_syncnb(all);
    NEED(back == mine);
    gasnet_get(back.data(), next, there + 8192, 4);
    gasnet_wait_syncnbi_gets();

    const int flags = GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_LOCAL;
    int word = me == nodes - 1 ? 31 : 0, from = int(me) + 7;
    std::vector<int> words(nodes, -1);
    gasnet_coll_broadcast(GASNET_TEAM_ALL, &word, nodes - 1, &word, sizeof(word), flags);
    NEED(word == 31);
    gasnet_coll_gather(GASNET_TEAM_ALL, 0, words.data(), &from, sizeof(from), flags);
    if (me == 0)
        for (gasnet_node_t r = 0; r < nodes; ++r)
            NEED(words[r] == int(r) + 7);
    gasnet_coll_gather_all(GASNET_TEAM_ALL, words.data(), &from, sizeof(from), flags);
    for (gasnet_node_t r = 0; r < nodes; ++r)
        NEED(words[r] == int(r) + 7);
    std::printf("%u of %u right\n", unsigned(me), unsigned(nodes));
    std::fflush(stdout);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_exit(0);
}
