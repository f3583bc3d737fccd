/*
 * user_crowd.c - many more ranks than cores: barriers, AM round trips and all-to-all exchanges keep
 * pace with the same done by plain futexes in the same processes, and ranks that wait leave the
 * cores to those that work. Subject and limit alternate in short slices; the ratio of a row is the
 * median over the slices. Ranks 4+. Source what users suffer from.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How much slower than a plain futex, in the middle of the slices, is still a decent rate. */
#define MAX_TIMES_A_FUTEX 4.0
/* CPU time of all waiting ranks together, for each second of waiting. */
#define MAX_CPU_WAITING 0.25

enum {
    SLICES = 7,
    MAX_RANKS = 256,
    BLOCK = 1024,
    H_ASK = AQ_TEST_FREE,
    H_ANSWER,
    H_CPU,
};

/* In rank 0's segment: a barrier, and a line for each pair. */
struct shared {
    _Alignas(64) atomic_uint count;
    _Alignas(64) atomic_uint phase;
    struct {
        _Alignas(64) atomic_uint turn;
    } pair[MAX_RANKS];
};

static struct shared *shared;
static char *blocks_of[MAX_RANKS]; /* where each rank's blocks are for me */
static volatile unsigned answers;
static atomic_int cpu_reports;
static atomic_llong cpu_us;

/* --- the limit: futexes and nothing else --- */

static void futex_wait(atomic_uint *word, unsigned value)
{
    syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void futex_barrier(void)
{
    const unsigned phase = atomic_load(&shared->phase);

    if (atomic_fetch_add(&shared->count, 1) + 1 == aq_test_n) {
        atomic_store(&shared->count, 0);
        atomic_store(&shared->phase, phase + 1);
        futex_wake(&shared->phase);
    }
    while (atomic_load(&shared->phase) == phase)
        futex_wait(&shared->phase, phase);
}

/* One round trip: the even rank of a pair makes the word odd, the other one even. */
static void futex_round_trip(void)
{
    atomic_uint *turn = &shared->pair[aq_test_me / 2].turn;
    const unsigned ours = aq_test_me & 1;
    unsigned now;

    while (((now = atomic_load(turn)) & 1) != ours)
        futex_wait(turn, now);
    atomic_fetch_add(turn, 1);
    futex_wake(turn);
}

static void futex_exchange(void)
{
    for (gex_Rank_t k = 0; k < aq_test_n; k++) {
        const gex_Rank_t to = aq_test_peer(k);

        memset(blocks_of[to] + (size_t)aq_test_me * BLOCK, (int)aq_test_me, BLOCK);
    }
    futex_barrier();
}

/* --- the subject --- */

static void h_ask(gex_Token_t token)
{
    gex_AM_ReplyShort0(token, H_ANSWER, 0);
}

static void h_answer(gex_Token_t token)
{
    (void)token;
    answers++;
}

static void barrier(void)
{
    gex_Event_Wait(gex_Coll_BarrierNB(aq_test_tm, 0));
}

static void round_trip(void)
{
    const unsigned want = answers + 1;

    /* of a pair, both ask: two round trips in one, as the limit makes two hand-overs */
    gex_AM_RequestShort0(aq_test_tm, aq_test_me ^ 1, H_ASK, 0);
    GASNET_BLOCKUNTIL(answers == want);
}

static void exchange(void)
{
    static char block[BLOCK];

    memset(block, (int)aq_test_me + 1, BLOCK);
    for (gex_Rank_t k = 0; k < aq_test_n; k++) {
        const gex_Rank_t to = aq_test_peer(k);
        char *remote_addr =
            (char *)aq_test_base(to) + sizeof(struct shared) + (size_t)aq_test_me * BLOCK;

        gex_RMA_PutNBI(aq_test_tm, to, remote_addr, block, BLOCK, GEX_EVENT_DEFER, 0);
    }
    gex_NBI_Wait(GEX_EC_PUT, 0);
    barrier();
}

static void check_exchange(void)
{
    const char *ours = blocks_of[aq_test_me];

    for (gex_Rank_t from = 0; from < aq_test_n; from++)
        AQ_CHECK(aq_test_all(ours + (size_t)from * BLOCK, (int)(unsigned char)(from + 1), BLOCK));
    barrier();
}

/* --- rows --- */

static double per_round(void (*once)(void), int rounds)
{
    double began;

    futex_barrier();
    began = aq_test_clock();
    for (int i = 0; i < rounds; i++)
        once();
    barrier(); /* serves the peer that still waits for an answer: plain futexes do not poll */
    futex_barrier();
    return (aq_test_clock() - began) / rounds;
}

static int by_value(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static void row(const char *name, void (*subject)(void), void (*limit)(void), int rounds)
{
    double ratio[SLICES], took[SLICES], min[SLICES];

    for (int slice = -1; slice < SLICES; slice++) { /* the first to warm up */
        const int at = slice < 0 ? 0 : slice;
        double ours;

        ours = per_round(subject, rounds);
        min[at] = per_round(limit, rounds);
        took[at] = ours;
        ratio[at] = ours / min[at];
    }
    qsort(ratio, SLICES, sizeof(ratio[0]), by_value);
    qsort(took, SLICES, sizeof(took[0]), by_value);
    qsort(min, SLICES, sizeof(min[0]), by_value);
    if (aq_test_me != 0)
        return;
    printf("# %u ranks, %s: %.1f us, by futex %.1f us, ratio %.2f (%.2f..%.2f)\n",
           (unsigned)aq_test_n, name, took[SLICES / 2] * 1e6, min[SLICES / 2] * 1e6,
           ratio[SLICES / 2], ratio[0], ratio[SLICES - 1]);
    if (ratio[SLICES / 2] > MAX_TIMES_A_FUTEX)
        aq_test_fail(__FILE__, __LINE__,
                     "%s takes %.1f times as long as by futexes, at most %.1f allowed", name,
                     ratio[SLICES / 2], MAX_TIMES_A_FUTEX);
}

/* --- CPU time of waiting --- */

static double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
           + 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void h_cpu(gex_Token_t token, gex_AM_Arg_t us)
{
    (void)token;
    atomic_fetch_add(&cpu_us, us);
    atomic_fetch_add(&cpu_reports, 1);
}

static void check_cpu(void (*wait)(void), const char *name)
{
    const struct timespec second = { 1, 0 };
    const double spent = cpu_seconds();

    if (aq_test_me == 0)
        nanosleep(&second, NULL);
    wait();
    if (aq_test_me != 0) {
        gex_AM_RequestShort1(aq_test_tm, 0, H_CPU, 0,
                             (gex_AM_Arg_t)((cpu_seconds() - spent) * 1e6));
    } else {
        double all;

        GASNET_BLOCKUNTIL(atomic_load(&cpu_reports) == (int)aq_test_n - 1);
        all = 1e-6 * (double)atomic_exchange(&cpu_us, 0);
        atomic_store(&cpu_reports, 0);
        printf("# %u ranks wait 1 s in %s: %.3f s of CPU time together\n", (unsigned)aq_test_n - 1,
               name, all);
        AQ_CHECK(all < MAX_CPU_WAITING);
    }
    barrier();
}

static void named_barrier(void)
{
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_ASK, h_ask, AQ_SQ, 0),
    AQ_ENTRY(H_ANSWER, h_answer, AQ_SP, 0),
    AQ_ENTRY(H_CPU, h_cpu, AQ_SQ, 1),
};

int main(int argc, char **argv)
{
    const char *rounds_text = getenv("USER_CROWD_ROUNDS");
    int rounds = rounds_text != NULL ? atoi(rounds_text) : 20;
    void *self;

    aq_test_start(&argc, &argv, 4);
#if GASNET_SEGMENT_EVERYTHING
    aq_test_skip("needs segments that are mapped");
#endif
    if (aq_test_n % 2 != 0 || aq_test_n > MAX_RANKS)
        aq_test_skip("needs an even number of ranks");
    if (!aq_test_crowded)
        aq_test_skip("needs fewer cores than ranks");
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(sizeof(struct shared) + (size_t)aq_test_n * BLOCK);
    for (gex_Rank_t rank = 0; rank < aq_test_n; rank++) {
        gex_Segment_QueryBound(aq_test_tm, rank, NULL, &self, NULL);
        blocks_of[rank] = (char *)self + sizeof(struct shared);
        if (rank == 0)
            shared = self;
    }
    barrier();
    rule("oversubscription: barriers keep pace with a futex barrier of as many processes");
    row("barrier", barrier, futex_barrier, rounds);
    rule("oversubscription: AM round trips of all pairs keep pace with futex hand-overs of all "
         "pairs");
    row("AM round trip", round_trip, futex_round_trip, rounds);
    rule("oversubscription: all-to-all exchanges keep pace with plain stores and a futex barrier");
    row("all-to-all", exchange, futex_exchange, rounds / 2 > 0 ? rounds / 2 : 1);
    rule("oversubscription: the exchanged data is right");
    exchange();
    check_exchange();
    rule("oversubscription: ranks that wait leave the cores to others");
    check_cpu(barrier, "gex_Event_Wait");
    check_cpu(named_barrier, "gasnet_barrier_wait");
    return aq_test_finish();
}
