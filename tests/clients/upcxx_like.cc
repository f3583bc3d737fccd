/*
 * upcxx_like.cc - a client in the manner of UPC++: light public header, teams, atomics and transfers on futures.
 *
 * Its "public header" includes only gasnet_fwd.h; the runtime proper keeps handles as integers, tests events
 * without polling and makes progress by gasnet_AMPoll() alone. C++17; every rank prints "R of N right".
 * SPDX-License-Identifier: BSD-3-Clause
 */

/* --- what such a client shows to its own users: no thread mode, no function --- */
#include <gasnet_fwd.h>

#include <cstdint>

namespace rt {
enum class op : gex_OP_t {
    add = GEX_OP_ADD,
    fetch_add = GEX_OP_FADD,
    get = GEX_OP_GET,
    compare_exchange = GEX_OP_CSWAP,
    min = GEX_OP_MIN
};
template <typename T> struct type_code;
template <> struct type_code<std::int32_t> { static constexpr gex_DT_t value = GEX_DT_I32; };
template <> struct type_code<double> { static constexpr gex_DT_t value = GEX_DT_DBL; };
static_assert(GEX_OP_TO_FETCHING(GEX_OP_ADD) == GEX_OP_FADD, "twins");
} // namespace rt

/* --- the runtime --- */
#include <gasnet.h>
#include <gasnet_coll.h>
#include <gasnet_mk.h>
#include <gasnet_ratomic.h>
#include <gasnet_tools.h>
#include <gasnet_vis.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#if GASNET_RELEASE_VERSION_MAJOR < 2000
#error "this client needs an EX release"
#endif
#if GEX_SPEC_VERSION_MAJOR == 0 && GEX_SPEC_VERSION_MINOR < 10
#error "this client needs EX 0.10"
#endif
#if GASNET_SEGMENT_EVERYTHING
#error "this client needs a segment"
#endif
#if GASNET_MAXEPS < 1
#error "GASNET_MAXEPS is a plain literal"
#endif
#ifdef GASNET_NATIVE_NP_ALLOC_REQ_MEDIUM
static_assert(GASNET_NATIVE_NP_ALLOC_REQ_MEDIUM >= 0, "a literal");
#endif

static_assert(sizeof(gex_Event_t) == sizeof(std::uintptr_t), "an event is kept as an integer");
static_assert(sizeof(gex_TM_t) == sizeof(std::uintptr_t), "a team is kept as an integer");
static_assert(sizeof(gex_AD_t) == sizeof(std::uintptr_t), "a domain is kept as an integer");
static_assert(sizeof(gex_AM_SrcDesc_t) <= sizeof(std::uintptr_t), "a descriptor is kept as an integer");
static_assert(GEX_AM_INDEX_BASE <= 248, "this client's handlers are 248..255");

GASNETT_IDENT(rt_ident, "$RuntimeLikeUPCXX: 1 $");
#ifndef gasnett_fatalerror_nopos
#error "gasnett_fatalerror_nopos is asked for by #ifdef"
#endif

extern "C" const char *lite_build(void); /* upcxx_lite.c */

namespace {

gex_TM_t world;
gex_EP_t endpoint;
gex_Rank_t me, ranks;
char *segment_base;
std::vector<char *> bases;
int received, replied;
char last_text[64];

void fail(const char *what)
{
    gasnett_fatalerror("rank %u: %s", static_cast<unsigned>(me), what);
}
#define NEED(cond)     \
    do {               \
        if (!(cond))   \
            fail(#cond); \
    } while (0)

void progress_until(gex_Event_t event)
{
    while (event != GEX_EVENT_INVALID && gex_Event_Test(event) != GASNET_OK)
        gasnet_AMPoll();
}

/* --- handlers: a positional table, as this client writes it --- */

void on_medium(gex_Token_t token, void *buf, size_t len, gex_AM_Arg_t a0, gex_AM_Arg_t a1, gex_AM_Arg_t a2)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    NEED(len < sizeof(last_text) && a0 == 1 && a1 == -2 && a2 == static_cast<gex_AM_Arg_t>(info.gex_srcrank));
    std::memcpy(last_text, buf, len);
    ++received;
    gex_AM_ReplyShort2(token, 249, 0, a0, a1);
}

void on_reply(gex_Token_t, gex_AM_Arg_t a0, gex_AM_Arg_t a1)
{
    NEED(a0 == 1 && a1 == -2);
    ++replied;
}

void on_alloc(gex_Token_t, void *, size_t len, gex_AM_Arg_t expected)
{
    NEED(static_cast<gex_AM_Arg_t>(len) == expected);
    ++received;
}

using fn = gex_AM_Fn_t;
gex_AM_Entry_t handlers[] = {
    {248, reinterpret_cast<fn>(on_medium), GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 3, nullptr, "medium"},
    {249, reinterpret_cast<fn>(on_reply), GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 2, nullptr, "reply"},
    {250, reinterpret_cast<fn>(on_alloc), GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, nullptr, "alloc"},
};

/* what the client prints of its own settings is in the form of the library's */
void settings()
{
    char text[80];
    const std::int64_t heap = gasnett_getenv_int_withdefault("RT_HEAP", 128 << 20, 1);

    NEED(heap == 128 << 20 && gasnett_getenv_yesno_withdefault("RT_VERBOSE", 0) == 0);
    NEED(std::strcmp(gasnett_format_number(heap, text, sizeof(text), 1), "128 MB") == 0);
    gasnett_envstr_display("RT_MODE", "one", 1);
    gasnett_envint_display("RT_SIZE", heap, 0, 1);
#if GASNET_DEBUG
    NEED(std::strcmp(lite_build(), "debug") == 0);
#else
    NEED(std::strcmp(lite_build(), "opt") == 0);
#endif
}

void start()
{
    gex_Client_t client;

    gex_Client_Init(&client, &endpoint, &world, "upcxx", nullptr, nullptr, 0);
    me = gex_TM_QueryRank(world);
    ranks = gex_TM_QuerySize(world);
    NEED((gex_Client_QueryFlags(client) & GEX_FLAG_USES_GASNET1) == 0);
    settings();

    gex_Segment_t segment;
    std::size_t size = std::size_t{4} << 20;
    NEED(gasnet_getMaxLocalSegmentSize() >= size);
    NEED(gex_Segment_Attach(&segment, world, size) == GASNET_OK);
    NEED(gex_EP_RegisterHandlers(endpoint, handlers, sizeof(handlers) / sizeof(handlers[0])) == GASNET_OK);
    NEED(gex_AM_MaxRequestMedium(world, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 3) >= 512);
    gasnet_set_waitmode(ranks > static_cast<gex_Rank_t>(gasnett_cpu_count()) ? GASNET_WAIT_BLOCK : GASNET_WAIT_SPIN);

    for (gex_Rank_t r = 0; r < ranks; ++r) {
        void *owner, *local;
        std::uintptr_t bytes;
        NEED(gex_Segment_QueryBound(world, r, &owner, &local, &bytes) == 0 && bytes == size);
        bases.push_back(static_cast<char *>(owner));
    }
    segment_base = bases[me];

    gex_RankInfo_t *info;
    gex_Rank_t count, index;
    gex_System_QueryNbrhdInfo(&info, &count, &index);
    NEED(count > 0 && info[index].gex_jobrank == me);
    progress_until(gex_Coll_BarrierNB(world, 0));
}

/* --- messages --- */

void messages()
{
    const gex_Rank_t next = (me + 1) % ranks;
    const char text[] = "in the manner of";

    gex_AM_RequestMedium3(world, next, 248, const_cast<char *>(text), sizeof(text), GEX_EVENT_NOW, 0, 1, -2,
                          static_cast<gex_AM_Arg_t>(me));
    while (received < 1 || replied < 1)
        gasnet_AMPoll();
    NEED(std::strcmp(last_text, text) == 0);

    gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(gex_TM_Pair(endpoint, 0), next, nullptr, 64, 300, nullptr, 0, 1);
    NEED(sd != GEX_AM_SRCDESC_NO_OP && gex_AM_SrcDescSize(sd) >= 64);
    std::memset(gex_AM_SrcDescAddr(sd), 7, 64);
    gex_AM_CommitRequestMedium1(sd, 250, 64, 64);
    while (received < 2)
        gasnet_AMPoll();
    progress_until(gex_Coll_BarrierNB(world, 0));
}

/* --- teams with scratch from the segment, asked for first --- */

void teams()
{
    char *scratch = segment_base + (1 << 20);
    gex_TM_t half = GEX_TM_INVALID;
    const int color = static_cast<int>(me % 2);
    std::size_t need = gex_TM_Split(&half, world, color, static_cast<int>(me), nullptr, 0,
                                    GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED);
    NEED(need > 0 && need <= (std::size_t{2} << 20));
    gex_TM_Split(&half, world, color, static_cast<int>(me), scratch, need, 0);
    NEED(gex_TM_QueryRank(half) == me / 2);
    NEED(gex_TM_TranslateRankToJobrank(half, gex_TM_QueryRank(half)) == me);
    const gex_Rank_t other = (me + 1) % ranks;
    NEED(gex_TM_TranslateJobrankToRank(half, other) == (other % 2 == me % 2 ? other / 2 : GEX_RANK_INVALID));

    auto data = std::make_unique<int>(5);
    gex_TM_SetCData(half, data.get());
    NEED(gex_TM_QueryCData(half) == data.get());
    NEED(gex_TM_QueryEP(half) == endpoint);

    int sum = 0, mine = 1;
    progress_until(gex_Coll_ReduceToAllNB(half, &sum, &mine, GEX_DT_I32, sizeof(int), 1, GEX_OP_ADD, nullptr, nullptr, 0));
    NEED(sum == static_cast<int>(gex_TM_QuerySize(half)));
    gex_Memvec_t back;
    NEED(gex_TM_Destroy(half, &back, 0) != 0 && back.gex_addr == scratch && back.gex_len == need);

    /* everybody in reverse order, by TM_Create */
    std::vector<gex_EP_Location_t> members(ranks);
    for (gex_Rank_t r = 0; r < ranks; ++r)
        members[r] = gex_EP_Location_t{ranks - 1 - r, 0};
    need = gex_TM_Create(nullptr, 1, world, members.data(), ranks, nullptr, 0,
                         GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED | GEX_FLAG_TM_LOCAL_SCRATCH | GEX_FLAG_RANK_IS_JOBRANK);
    NEED(need > 0);
    gex_TM_t reverse;
    gex_Addr_t where = scratch;
    gex_TM_Create(&reverse, 1, world, members.data(), ranks, &where, need,
                  GEX_FLAG_TM_LOCAL_SCRATCH | GEX_FLAG_RANK_IS_JOBRANK);
    NEED(gex_TM_QueryRank(reverse) == ranks - 1 - me);
    int from = static_cast<int>(me);
    progress_until(gex_Coll_BroadcastNB(reverse, 0, &from, &from, sizeof(from), 0));
    NEED(from == static_cast<int>(ranks - 1));
    progress_until(gex_Coll_BarrierNB(reverse, 0));
    NEED(gex_TM_Destroy(reverse, &back, GEX_FLAG_GLOBALLY_QUIESCED) != 0 && back.gex_addr == scratch);
}

/* --- reductions with functions of the language --- */

struct extent {
    double low, high;
};

void reductions()
{
    extent mine = {static_cast<double>(me), static_cast<double>(me) + 1}, all = mine;
    auto widen = [](const void *left, void *right, std::size_t n, const void *cdata) {
        const extent *a = static_cast<const extent *>(left);
        extent *b = static_cast<extent *>(right);
        (void)cdata;
        for (std::size_t i = 0; i < n; ++i) {
            b[i].low = a[i].low < b[i].low ? a[i].low : b[i].low;
            b[i].high = a[i].high > b[i].high ? a[i].high : b[i].high;
        }
    };
    progress_until(gex_Coll_ReduceToAllNB(world, &all, &all, GEX_DT_USER, sizeof(extent), 1, GEX_OP_USER, widen, &mine, 0));
    NEED(all.low == 0 && all.high == static_cast<double>(ranks));
    double least = 0;
    progress_until(gex_Coll_ReduceToOneNB(world, 0, &least, &mine.high, GEX_DT_DBL, sizeof(double), 1, GEX_OP_MIN,
                                          nullptr, nullptr, 0));
    NEED(me != 0 || least == 1);
}

/* --- atomics: the domain is used at once after its creation --- */

void atomics()
{
    gex_AD_t ad;
    auto *counter = reinterpret_cast<std::int32_t *>(bases[0]);

    if (me == 0)
        *counter = 0;
    progress_until(gex_Coll_BarrierNB(world, 0));
    gex_AD_Create(&ad, world, rt::type_code<std::int32_t>::value,
                  static_cast<gex_OP_t>(rt::op::fetch_add) | static_cast<gex_OP_t>(rt::op::get), 0);
    const auto kept = reinterpret_cast<std::uintptr_t>(ad);
    std::int32_t old = -1;
    progress_until(gex_AD_OpNB_I32(reinterpret_cast<gex_AD_t>(kept), &old, 0, counter,
                                   static_cast<gex_OP_t>(rt::op::fetch_add), 1, 0,
                                   GEX_FLAG_AD_REL | GEX_FLAG_RANK_IS_JOBRANK));
    NEED(old >= 0 && old < static_cast<std::int32_t>(ranks));
    progress_until(gex_Coll_BarrierNB(world, 0));
    progress_until(gex_AD_OpNB_I32(ad, &old, 0, counter, GEX_OP_GET, 0, 0, GEX_FLAG_AD_ACQ));
    NEED(old == static_cast<std::int32_t>(ranks));
    progress_until(gex_Coll_BarrierNB(world, 0));
    gex_AD_Destroy(ad);
}

/* --- transfers: leaf events of puts, strided and indexed --- */

void transfers()
{
    const gex_Rank_t next = (me + 1) % ranks;
    char *there = bases[next] + 4096, *here = segment_base + 4096;
    std::vector<double> src(64), back(64);

    for (std::size_t i = 0; i < src.size(); ++i)
        src[i] = me * 1000.0 + static_cast<double>(i);
    gex_Event_t leaf = GEX_EVENT_INVALID;
    gex_Event_t root = gex_RMA_PutNB(world, next, there, src.data(), src.size() * sizeof(double), &leaf, 0);
    progress_until(leaf);
    progress_until(root);
    progress_until(gex_RMA_GetNB(world, back.data(), next, there, back.size() * sizeof(double), 0));
    NEED(back == src);

    /* an 8 by 8 block into a matrix of 16 columns */
    const std::ptrdiff_t far[2] = {16 * sizeof(double), sizeof(double)}, near[2] = {8 * sizeof(double), sizeof(double)};
    const std::size_t count[2] = {8, 8};
    root = gex_VIS_StridedPutNB(world, next, there, far, src.data(), near, sizeof(double), count, 2,
                                GEX_FLAG_ENABLE_LEAF_LC);
    progress_until(gex_Event_QueryLeaf(root, GEX_EC_LC));
    progress_until(root);
    std::vector<void *> chunks(8);
    for (std::size_t row = 0; row < 8; ++row)
        chunks[row] = there + row * 16 * sizeof(double);
    void *dst = back.data();
    std::fill(back.begin(), back.end(), 0);
    progress_until(gex_VIS_IndexedGetNB(world, 1, &dst, 64 * sizeof(double), next, 8, chunks.data(), 8 * sizeof(double), 0));
    NEED(back == src);
    progress_until(gex_Coll_BarrierNB(world, 0));
    NEED(*reinterpret_cast<double *>(here) == ((me + ranks - 1) % ranks) * 1000.0);
}

/* --- memory kinds: there are none here, and that is a return code --- */

void kinds()
{
    gex_MK_Create_args_t args{};
    gex_MK_t kind = GEX_MK_INVALID;

    args.gex_class = GEX_MK_CLASS_CUDA_UVA;
    args.gex_args.gex_class_cuda_uva.gex_CUdevice = 0;
#if GASNET_HAVE_MK_CLASS_CUDA_UVA
    (void)kind;
#else
    NEED(gex_MK_Create(&kind, gex_TM_QueryClient(world), &args, 0) == GASNET_ERR_BAD_ARG);
#endif
    NEED(gex_EP_QueryIndex(endpoint) == 0);
    NEED(gex_EP_PublishBoundSegment(world, nullptr, 0, 0) == GASNET_OK);
}

} // namespace

int main()
{
    start();
    messages();
    teams();
    reductions();
    atomics();
    transfers();
    kinds();
    progress_until(gex_Coll_BarrierNB(world, 0));
    char host[256];
    std::printf("%u of %u right on %s\n", static_cast<unsigned>(me), static_cast<unsigned>(ranks),
                gasnett_gethostname() ? gasnett_gethostname() : host);
    std::fflush(stdout);
    gasnet_exit(0);
}
