/*
 * pando_like.cc - a client in the manner of PANDO: no segment at all, handler indices left to the library, messages
 * with payloads built in place and the forms that count their arguments, a thread that lives in GASNET_BLOCKUNTIL.
 * C++17; every rank prints "R of N right". SPDX-License-Identifier: BSD-3-Clause
 */
#define GASNET_PAR 1
#include <gasnetex.h>
#include <gasnet_coll.h>
#include <gasnet_tools.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>

namespace {

gex_Client_t client = GEX_CLIENT_INVALID;
gex_EP_t endpoint = GEX_EP_INVALID;
gex_TM_t team = GEX_TM_INVALID;
std::atomic<std::uint64_t> answer{0};
std::atomic<bool> stop{false};
gex_AM_Entry_t handlers[2];

void on_answer(gex_Token_t, void *payload, std::size_t size, gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    std::uint64_t value;

    if (size != sizeof(value))
        gasnett_fatalerror("answer of %zu bytes", size);
    std::memcpy(&value, payload, size);
    *static_cast<std::atomic<std::uint64_t> *>(reinterpret_cast<void *>(GASNETI_MAKEWORD(high, low))) = value;
}

void on_ask(gex_Token_t token, void *payload, std::size_t size, gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    std::uint64_t value;

    std::memcpy(&value, payload, size);
    value *= 2;
    gex_AM_ReplyMedium(token, handlers[1].gex_index, &value, sizeof(value), GEX_EVENT_NOW, 0, high, low);
}

} // namespace

int main(int argc, char **argv)
{
    if (gex_Client_Init(&client, &endpoint, &team, "pando-like", &argc, &argv, 0) != GASNET_OK)
        return 1;
    const gex_Rank_t me = gex_TM_QueryRank(team), ranks = gex_TM_QuerySize(team), next = (me + 1) % ranks;

    handlers[0].gex_fnptr = reinterpret_cast<gex_AM_Fn_t>(on_ask);
    handlers[1].gex_fnptr = reinterpret_cast<gex_AM_Fn_t>(on_answer);
    for (gex_AM_Entry_t &entry : handlers) {
        entry.gex_index = 0;
        entry.gex_flags = GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQREP;
        entry.gex_nargs = 2;
    }
    if (gex_EP_RegisterHandlers(endpoint, handlers, 2) != GASNET_OK || handlers[0].gex_index == 0)
        return 1;
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    if (gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) != GASNET_OK)
        return 1;

    std::thread poller([] { GASNET_BLOCKUNTIL(stop); });
    const std::uint64_t question = 1000 + me;
    const auto where = reinterpret_cast<std::uintptr_t>(&answer);
    gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(team, next, nullptr, sizeof(question),
                                                      gex_AM_MaxRequestMedium(team, next, nullptr, 0, 2), nullptr, 0, 2);
    std::memcpy(gex_AM_SrcDescAddr(sd), &question, sizeof(question));
    gex_AM_CommitRequestMedium2(sd, handlers[0].gex_index, sizeof(question), gex_AM_Arg_t(GASNETI_HIWORD(where)),
                                gex_AM_Arg_t(GASNETI_LOWORD(where)));
    GASNET_BLOCKUNTIL(answer != 0);
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    stop = true;
    gex_AM_RequestMedium2(team, me, handlers[0].gex_index, &question, sizeof(question), GEX_EVENT_NOW, 0,
                          gex_AM_Arg_t(GASNETI_HIWORD(where)), gex_AM_Arg_t(GASNETI_LOWORD(where)));
    poller.join(); /* it slept until that came in */
    std::printf("%u of %u %s\n", unsigned(me), unsigned(ranks), answer == 2 * question ? "right" : "wrong");
    std::fflush(stdout);
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    gasnet_exit(answer == 2 * question ? 0 : 1);
}
