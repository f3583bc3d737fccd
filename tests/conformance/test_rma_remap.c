/*
 * test_rma_remap.c - memory that transfers have used is unmapped, moved or emptied, and the next
 * mapping at its addresses is used again: each transfer accesses the present memory, not memory
 * that a network's device may still have registered. The system calls are made directly, so that no
 * library's hooks see them. Ranks 1+, the last rule 3+. Conduits all. Source GASNet-EX
 * specification 0.19, RMA: any local memory is allowed. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"
#include "gasnet_coll.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MREMAP_FIXED /* not without _GNU_SOURCE */
#define MREMAP_FIXED 2
#endif
#ifndef MREMAP_MAYMOVE
#define MREMAP_MAYMOVE 1
#endif

enum { PAGE = 4096, HALF_MAX = 160 * 1024, THREADS = 4, ROUNDS = 2000, LOWEST = 40 };

/* One thread's: where it transfers to, and when it stops. */
struct channel {
    gex_Rank_t to;
    char *remote_addr;
    uint64_t seed;
    double end;
    int round, rounds;
};

/* Of the conduits only ibv registers memory, and has a cache of registrations to lead astray. */
static double seconds_each(void)
{
    const char *conduit = getenv("GASNET_CONDUIT");

    return !aq_test_quick && conduit != NULL && strcmp(conduit, "ibv") == 0 ? 0.6 : 0.15;
}

static struct channel channel_start(int thread)
{
    struct channel channel = { .to = aq_test_peer(1),
                               .seed = (uint64_t)aq_test_me * 1000 + (uint64_t)thread };

    channel.remote_addr = (char *)aq_test_base(channel.to) + (size_t)thread * HALF_MAX;
    channel.end = aq_test_clock() + seconds_each();
    channel.rounds = aq_test_quick ? LOWEST : ROUNDS;
    return channel;
}

/* Thousands of rounds, fewer on a slow machine. */
static bool channel_goes_on(struct channel *channel)
{
    channel->round++;
    return channel->round <= LOWEST
           || (channel->round <= channel->rounds && aq_test_clock() < channel->end);
}

/* Half of what a mapping holds: a few pages mostly, at times more than any buffer of a conduit. */
static size_t channel_half(struct channel *channel)
{
    const uint64_t dice = aq_test_random(&channel->seed);

    return (size_t)(dice % 8 != 0 ? PAGE * (1 + dice / 8 % 6)
                                  : PAGE * (1 + dice / 8 % (HALF_MAX / PAGE)));
}

/* From the first half of the memory to the peer, and back to the second half. */
static void round_trip(struct channel *channel, char *memory, size_t half)
{
    const uint64_t seed = aq_test_random(&channel->seed);

    aq_test_fill(memory, half, seed);
    gex_RMA_PutBlocking(aq_test_tm, channel->to, channel->remote_addr, memory, half, 0);
    gex_RMA_GetBlocking(aq_test_tm, memory + half, channel->to, channel->remote_addr, half, 0);
    AQ_CHECK(aq_test_same(memory + half, half, seed));
}

static char *map_at(void *place, size_t size, int flags)
{
    void *memory =
        mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    if (memory == MAP_FAILED)
        aq_test_die(__FILE__, __LINE__, "cannot map %zu bytes", size);
    return memory;
}

/* --- what happens to the memory; each in one thread, then in several --- */

static void anew(struct channel *channel)
{
    char *place = NULL;

    while (channel_goes_on(channel)) {
        const size_t half = channel_half(channel);
        char *memory = map_at(place, 2 * half, 0);

        round_trip(channel, memory, half);
        round_trip(channel, memory, half);
        syscall(SYS_munmap, memory, 2 * half);
        place = memory; /* in one thread it is given out again */
    }
}

static void replaced(struct channel *channel)
{
    const size_t half = 4 * PAGE;
    char *memory = map_at(NULL, 2 * half, 0);

    while (channel_goes_on(channel)) {
        round_trip(channel, memory, half);
        map_at(memory, half + PAGE, MAP_FIXED);
    }
    syscall(SYS_munmap, memory, 2 * half);
}

static void moved(struct channel *channel)
{
    while (channel_goes_on(channel)) {
        const size_t half = channel_half(channel);
        char *memory = map_at(NULL, 2 * half, 0), *to = map_at(NULL, 2 * half, 0);
        const uint64_t seed = aq_test_random(&channel->seed);

        round_trip(channel, memory, half);
        round_trip(channel, to, half);
        aq_test_fill(memory, half, seed);
        AQ_CHECK_EQ(
            syscall(SYS_mremap, memory, 2 * half, 2 * half, MREMAP_MAYMOVE | MREMAP_FIXED, to),
            (intptr_t)to);
        /* the moved memory is the source */
        gex_RMA_PutBlocking(aq_test_tm, channel->to, channel->remote_addr, to, half, 0);
        gex_RMA_GetBlocking(aq_test_tm, to + half, channel->to, channel->remote_addr, half, 0);
        AQ_CHECK(aq_test_same(to + half, half, seed));
        /* the old place belongs to somebody else */
        memory = map_at(memory, 2 * half, 0);
        round_trip(channel, memory, half);
        syscall(SYS_mremap, to, 2 * half, PAGE, 0); /* shrinks */
        round_trip(channel, memory, half);
        syscall(SYS_munmap, memory, 2 * half);
        syscall(SYS_munmap, to, PAGE);
    }
}

static void emptied(struct channel *channel)
{
    const size_t half = 4 * PAGE;
    char *memory = map_at(NULL, 2 * half, 0);

    while (channel_goes_on(channel)) {
        round_trip(channel, memory, half);
        AQ_CHECK_EQ(syscall(SYS_madvise, memory, half, MADV_DONTNEED), 0);
        gex_RMA_PutBlocking(aq_test_tm, channel->to, channel->remote_addr, memory, half, 0);
        gex_RMA_GetBlocking(aq_test_tm, memory + half, channel->to, channel->remote_addr, half, 0);
        AQ_CHECK(aq_test_all(memory + half, 0, half));
        AQ_CHECK_EQ(syscall(SYS_madvise, memory, 2 * half, MADV_DONTNEED), 0);
        gex_RMA_GetBlocking(aq_test_tm, memory, channel->to, channel->remote_addr, half, 0);
        AQ_CHECK(aq_test_all(memory, 0, half));
    }
    syscall(SYS_munmap, memory, 2 * half);
}

static void allocated(struct channel *channel)
{
    while (channel_goes_on(channel)) {
        const size_t half = channel_half(channel), other = channel_half(channel);
        char *memory = malloc(2 * half), *more;

        if (memory == NULL)
            aq_test_die(__FILE__, __LINE__, "no memory for %zu bytes", 2 * half);
        round_trip(channel, memory, half);
        more = realloc(memory, 2 * half + 2 * other + 300 * 1024);
        if (more == NULL)
            aq_test_die(__FILE__, __LINE__, "no memory for %zu bytes", 2 * half + 2 * other);
        round_trip(channel, more + 2 * half, other);
        round_trip(channel, more, half);
        free(more);
    }
}

/* --- the rules --- */

typedef void (*what_t)(struct channel *channel);
static what_t what;

#if GASNET_PAR
static void *in_thread(void *arg)
{
    struct channel channel = channel_start((int)(intptr_t)arg);

    what(&channel);
    return NULL;
}
#endif

static void try_it(const char *name, what_t fn)
{
    struct channel channel;

    rule(name);
    what = fn;
    channel = channel_start(0);
    what(&channel);
#if GASNET_PAR
    aq_test_threads_for(THREADS, in_thread, 10);
#endif
    aq_test_barrier();
}

#if GASNET_SEGMENT_EVERYTHING
/* The peer's memory is unmapped and mapped as well; its owner announces that by a barrier. */
static void try_remote(void)
{
    struct channel channel = channel_start(0);
    char *ours = map_at(NULL, HALF_MAX, 0), *place = ours, *remote = NULL;
    const size_t len = 8 * PAGE;
    char *local = malloc(2 * len);
    int round;

    if (local == NULL)
        aq_test_die(__FILE__, __LINE__, "no memory for %zu bytes", 2 * len);
    rule("RMA to memory outside any segment: the target maps it anew between transfers");
    for (round = 0; round < (aq_test_quick ? 20 : 200); round++) {
        const uint64_t seed = aq_test_random(&channel.seed);

        if (round % 2 == 0)
            ours = map_at(ours, HALF_MAX, MAP_FIXED);
        else
            syscall(SYS_madvise, ours, HALF_MAX, MADV_DONTNEED);
        place = ours;
        memcpy(aq_test_base(aq_test_me), &place, sizeof(place));
        aq_test_barrier();
        gex_RMA_GetBlocking(aq_test_tm, &remote, channel.to, aq_test_base(channel.to),
                            sizeof(remote), 0);
        gex_RMA_GetBlocking(aq_test_tm, local, channel.to, remote, len, 0);
        AQ_CHECK(aq_test_all(local, 0, len));
        aq_test_fill(local, len, seed);
        gex_RMA_PutBlocking(aq_test_tm, channel.to, remote, local, len, 0);
        gex_RMA_GetBlocking(aq_test_tm, local + len, channel.to, remote, len, 0);
        AQ_CHECK(aq_test_same(local + len, len, seed));
        AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, channel.to, remote + len, 8, 0), 0);
        aq_test_barrier();
        AQ_CHECK(!aq_test_all(ours, 0, len)); /* it has arrived here */
    }
    syscall(SYS_munmap, ours, HALF_MAX);
    free(local);
    aq_test_barrier();
}

/* Rank 0 maps memory anew, rank 1 learns of it by a collective of the two, and lets the last rank
 * put into it. */
enum { H_GO = AQ_TEST_FREE, H_DONE };
static aq_test_count_t unmapped, done;

static void on_go(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&unmapped, 1);
}

static void on_done(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&done, 1);
}

static gex_AM_Entry_t table[] = { AQ_ENTRY(H_GO, on_go, AQ_SQ, 0),
                                  AQ_ENTRY(H_DONE, on_done, AQ_SQ, 0) };

static void tell(gex_Rank_t rank, gex_AM_Index_t handler)
{
    gex_AM_RequestShort0(aq_test_tm, rank, handler, 0);
}

static void round_of_puts(gex_TM_t pair, char *remote_addr, char *local, int round)
{
    const size_t len = 8 * PAGE;
    const uint64_t seed = 1000 + (uint64_t)round;

    if (aq_test_me == 0)
        map_at(remote_addr, len, MAP_FIXED);
    if (aq_test_me < 2)
        aq_test_sync(gex_Coll_BarrierNB(pair, 0));
    if (aq_test_me == 1)
        tell(aq_test_n - 1, H_GO);
    if (aq_test_me == aq_test_n - 1) {
        aq_test_wait(&unmapped, round);
        aq_test_fill(local, len, seed);
        gex_RMA_PutBlocking(aq_test_tm, 0, remote_addr, local, len, 0);
        tell(0, H_DONE);
    }
    if (aq_test_me == 0) {
        aq_test_wait(&done, round);
        AQ_CHECK(aq_test_same(remote_addr, len, seed));
    }
}

static void try_reported(void)
{
    char *remote_addr = map_at(NULL, HALF_MAX, 0), *ours = remote_addr;
    gex_TM_t pair = GEX_TM_INVALID;

    if (aq_test_n < 3)
        return;
    rule("RMA to memory outside any segment: a third rank is told that the target has mapped it "
         "anew");
    memcpy(aq_test_base(aq_test_me), &remote_addr, sizeof(remote_addr));
    aq_test_barrier();
    gex_RMA_GetBlocking(aq_test_tm, &remote_addr, 0, aq_test_base(0), sizeof(remote_addr), 0);
    gex_TM_Split(&pair, aq_test_tm, aq_test_me < 2, (int)aq_test_me, NULL, 0,
                 GEX_FLAG_TM_NO_SCRATCH);
    for (int round = 1; round <= (aq_test_quick ? 20 : 200); round++)
        round_of_puts(pair, remote_addr, ours, round);
    aq_test_barrier();
    gex_TM_Destroy(pair, NULL, 0);
    syscall(SYS_munmap, ours, HALF_MAX);
    aq_test_barrier();
}
#endif

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
#if defined(__SANITIZE_THREAD__)
    aq_test_skip("ThreadSanitizer does not see that a peer orders two handlers, and is too slow at "
                 "new mappings");
#endif
#if GASNET_SEGMENT_EVERYTHING
    aq_test_handlers(table, AQ_LENGTH(table));
#endif
    aq_test_segment((size_t)THREADS * HALF_MAX);
    try_it("RMA: local memory is unmapped, and mapped anew at the same address", anew);
    try_it("RMA: local memory is replaced by a new mapping", replaced);
    try_it("RMA: local memory is moved by mremap, and shrunk", moved);
    try_it("RMA: local memory is emptied by madvise", emptied);
    try_it("RMA: local memory is allocated and freed in large blocks", allocated);
#if GASNET_SEGMENT_EVERYTHING
    try_remote();
    try_reported();
#endif
    return aq_test_finish();
}
