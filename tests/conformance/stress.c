/*
 * stress.c - random traffic that carries checksums, for seconds or minutes.
 *
 * Every rank (in par: several threads of every rank) sends random messages and transfers to random
 * ranks. Each AM carries a sender, a channel and a serial number, and a checksum over its arguments
 * and payload. The receiver counts serials and adds checksums, and answers some. At the end all
 * ranks compare what was sent with what arrived, which distinguishes lost, duplicated and damaged
 * messages.
 *
 * Usage: stress [--seconds S] [--seed X] [--threads T]
 * Ranks 1+. Conduits all. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include <unistd.h>

enum {
    H_SHORT = AQ_TEST_FREE,
    H_MEDIUM,
    H_LONG,
    H_SHORT_REP,
    H_MEDIUM_REP,
    H_LONG_REP,
    H_TOTAL,
    MAX_THREADS = 16,
    LONG_SLOTS = 4, /* Longs in flight from one channel to one rank */
    LONG_BYTES = 20000,
    RMA_BYTES = 40000,
    PENDING = 16, /* explicit operations a thread keeps outstanding */
    ARGS = 6,
};

/* Counts of one kind of traffic from one rank to another, kept at both ends. */
struct tally {
    _Atomic uint64_t count, sum;
};

static int n_threads = 1, seconds = 2;
static uint64_t seed = 1;
static struct tally *sent, *came; /* [rank] */
static _Atomic uint64_t damaged, answers_due, answers_came;
static double stop_at;
static aq_test_count_t totals_came;
static uint64_t (*their_totals)[2];
static atomic_int *long_busy; /* [thread][rank][slot] */

/* ---- segment: for each writing channel its Long slots, reply slots and its RMA area ---- */

static size_t channel_size(void)
{
    return 2 * (size_t)LONG_SLOTS * LONG_BYTES + RMA_BYTES;
}

static char *channel(gex_Rank_t owner, gex_Rank_t writer, int thread)
{
    return (char *)aq_test_base(owner)
           + ((size_t)writer * (size_t)n_threads + (size_t)thread) * channel_size();
}

static char *long_slot(gex_Rank_t owner, gex_Rank_t writer, int thread, int slot)
{
    return channel(owner, writer, thread) + (size_t)slot * LONG_BYTES;
}

/* Where the answer to a Long goes: in the asking rank's segment, area of (answering rank, thread).
 * */
static char *answer_slot(gex_Rank_t owner, gex_Rank_t writer, int thread, int slot)
{
    return channel(owner, writer, thread) + (size_t)(LONG_SLOTS + slot) * LONG_BYTES;
}

static char *rma_area(gex_Rank_t owner, gex_Rank_t writer, int thread)
{
    return channel(owner, writer, thread) + 2 * (size_t)LONG_SLOTS * LONG_BYTES;
}

/* ---- checksums ---- */

static uint32_t checksum(const void *buf, size_t len, const gex_AM_Arg_t *args, int n)
{
    const unsigned char *p = buf;
    uint64_t h = 1469598103934665603u; /* FNV-1a */
    size_t i;
    int k;

    for (i = 0; i < len; i++)
        h = (h ^ p[i]) * 1099511628211u;
    for (k = 0; k < n; k++)
        h = (h ^ (uint32_t)args[k]) * 1099511628211u;
    h ^= len;
    return (uint32_t)(h ^ (h >> 32));
}

static void tally(struct tally *t, uint32_t sum)
{
    atomic_fetch_add(&t->count, 1);
    atomic_fetch_add(&t->sum, (uint64_t)sum + 1);
}

/* args: 0 serial, 1 thread, 2 slot, 3 wants an answer, 4 random, 5 checksum of all before and data
 * */
static bool intact(const char *what, gex_Rank_t from, const void *buf, size_t len,
                   const gex_AM_Arg_t *args)
{
    if (checksum(buf, len, args, ARGS - 1) == (uint32_t)args[ARGS - 1])
        return true;
    atomic_fetch_add(&damaged, 1);
    aq_test_fail(__FILE__, __LINE__, "damaged %s of %zu bytes from rank %u, serial %d", what, len,
                 (unsigned)from, args[0]);
    return false;
}

static gex_Rank_t sender_of(gex_Token_t token)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    return info.gex_srcrank;
}

#define GET_ARGS                                                \
    const gex_AM_Arg_t args[ARGS] = { a0, a1, a2, a3, a4, a5 }; \
    const gex_Rank_t from = sender_of(token)
#define DECLS                                                                            \
    gex_AM_Arg_t a0, gex_AM_Arg_t a1, gex_AM_Arg_t a2, gex_AM_Arg_t a3, gex_AM_Arg_t a4, \
        gex_AM_Arg_t a5
#define PASS a0, a1, a2, a3, a4, a5

static void arrive(const char *what, gex_Rank_t from, const void *buf, size_t len,
                   const gex_AM_Arg_t *args)
{
    if (intact(what, from, buf, len, args))
        tally(&came[from], (uint32_t)args[ARGS - 1]);
}

static void h_short(gex_Token_t token, DECLS)
{
    GET_ARGS;
    arrive("Short", from, NULL, 0, args);
    if (a3)
        gex_AM_ReplyShort6(token, H_SHORT_REP, 0, PASS);
}

static void h_medium(gex_Token_t token, void *buf, size_t nbytes, DECLS)
{
    GET_ARGS;
    arrive("Medium", from, buf, nbytes, args);
    if (a3)
        gex_AM_ReplyMedium6(token, H_MEDIUM_REP, buf, nbytes, GEX_EVENT_NOW, 0, PASS);
}

static void h_long(gex_Token_t token, void *buf, size_t nbytes, DECLS)
{
    GET_ARGS;
    char *back = answer_slot(from, aq_test_me, a1, a2);

    arrive("Long", from, buf, nbytes, args);
    /* Always answered: the answer is what frees the slot. */
    gex_AM_ReplyLong6(token, H_LONG_REP, buf, nbytes, back, GEX_EVENT_NOW, 0, PASS);
}

static void answered(const char *what, gex_Token_t token, const void *buf, size_t len,
                     const gex_AM_Arg_t *args)
{
    intact(what, sender_of(token), buf, len, args);
    atomic_fetch_add(&answers_came, 1);
}

static void h_short_rep(gex_Token_t token, DECLS)
{
    const gex_AM_Arg_t args[ARGS] = { PASS };

    answered("Short reply", token, NULL, 0, args);
}

static void h_medium_rep(gex_Token_t token, void *buf, size_t nbytes, DECLS)
{
    const gex_AM_Arg_t args[ARGS] = { PASS };

    answered("Medium reply", token, buf, nbytes, args);
}

static void h_long_rep(gex_Token_t token, void *buf, size_t nbytes, DECLS)
{
    GET_ARGS;

    answered("Long reply", token, buf, nbytes, args);
    atomic_store(&long_busy[((size_t)a1 * aq_test_n + from) * LONG_SLOTS + (size_t)a2], 0);
}

static void h_total(gex_Token_t token, gex_AM_Arg_t c1, gex_AM_Arg_t c0, gex_AM_Arg_t s1,
                    gex_AM_Arg_t s0)
{
    const gex_Rank_t from = sender_of(token);

    their_totals[from][0] = (uint64_t)(uint32_t)c1 << 32 | (uint32_t)c0;
    their_totals[from][1] = (uint64_t)(uint32_t)s1 << 32 | (uint32_t)s0;
    atomic_fetch_add(&totals_came, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_SHORT, h_short, AQ_SQ, ARGS),
    AQ_ENTRY(H_MEDIUM, h_medium, AQ_MQ, ARGS),
    AQ_ENTRY(H_LONG, h_long, AQ_LQ, ARGS),
    AQ_ENTRY(H_SHORT_REP, h_short_rep, AQ_SP, ARGS),
    AQ_ENTRY(H_MEDIUM_REP, h_medium_rep, AQ_MP, ARGS),
    AQ_ENTRY(H_LONG_REP, h_long_rep, AQ_LP, ARGS),
    AQ_ENTRY(H_TOTAL, h_total, AQ_SQ, 4),
};

/* ---- one thread's traffic ---- */

struct actor {
    int thread;
    uint64_t random;
    int32_t serial;
    gex_Event_t pending[PENDING];
    char *buffers[PENDING];
    int next;
};

/* Mostly small, sometimes as large as allowed. */
static size_t random_size(struct actor *a, size_t max)
{
    const uint64_t r = aq_test_random(&a->random);

    switch (r % 8) {
    case 0:
        return 0;
    case 1:
        return max;
    case 2:
        return (r >> 8) % (max + 1);
    case 3:
    case 4:
        return (r >> 8) % (max < 4096 ? max + 1 : 4096);
    default:
        return (r >> 8) % 200;
    }
}

/* A buffer whose operation, if it had one, is complete; *slot_out names it. */
static char *fresh_buffer(struct actor *a, int *slot_out)
{
    const int slot = a->next++ % PENDING;

    if (aq_test_random(&a->random) % 2)
        gex_Event_Wait(a->pending[slot]);
    else
        aq_test_sync(a->pending[slot]);
    a->pending[slot] = GEX_EVENT_INVALID;
    *slot_out = slot;
    return a->buffers[slot];
}

static void make_args(struct actor *a, gex_AM_Arg_t *args, int slot, bool answer, const void *buf,
                      size_t len)
{
    args[0] = a->serial++;
    args[1] = a->thread;
    args[2] = slot;
    args[3] = answer;
    args[4] = (gex_AM_Arg_t)aq_test_random(&a->random);
    args[5] = (gex_AM_Arg_t)checksum(buf, len, args, ARGS - 1);
}

#define SIX(A) A[0], A[1], A[2], A[3], A[4], A[5]

static void note_sent(gex_Rank_t to, const gex_AM_Arg_t *args, bool answer)
{
    tally(&sent[to], (uint32_t)args[ARGS - 1]);
    if (answer)
        atomic_fetch_add(&answers_due, 1);
}

static void send_short(struct actor *a, gex_Rank_t to)
{
    gex_AM_Arg_t args[ARGS];
    const bool answer = aq_test_random(&a->random) % 2;
    int tries = 0;

    make_args(a, args, 0, answer, NULL, 0);
    note_sent(to, args, answer);
    if (aq_test_random(&a->random) % 3 == 0)
        while (gex_AM_RequestShort6(aq_test_tm, to, H_SHORT, GEX_FLAG_IMMEDIATE, SIX(args)) != 0) {
            gasnet_AMPoll();
            if (++tries < 100)
                continue;
            gex_AM_RequestShort6(aq_test_tm, to, H_SHORT, 0, SIX(args));
            break;
        }
    else
        gex_AM_RequestShort6(gex_TM_Pair(aq_test_ep, 0), to, H_SHORT, 0, SIX(args));
}

static void send_medium(struct actor *a, gex_Rank_t to)
{
    gex_AM_Arg_t args[ARGS];
    const bool answer = aq_test_random(&a->random) % 2;
    size_t max = gex_AM_MaxRequestMedium(aq_test_tm, to, GEX_EVENT_NOW, 0, ARGS), len;
    int slot;
    char *buf = fresh_buffer(a, &slot);

    if (max > gex_AM_MaxReplyMedium(aq_test_tm, to, GEX_EVENT_NOW, 0, ARGS))
        max = gex_AM_MaxReplyMedium(aq_test_tm, to, GEX_EVENT_NOW, 0, ARGS);
    len = random_size(a, max < RMA_BYTES ? max : RMA_BYTES);
    aq_test_fill(buf, len, aq_test_random(&a->random));
    make_args(a, args, slot, answer, buf, len);
    note_sent(to, args, answer);
    switch (aq_test_random(&a->random) % 3) {
    case 0:
        gex_AM_RequestMedium6(aq_test_tm, to, H_MEDIUM, buf, len, GEX_EVENT_NOW, 0, SIX(args));
        break;
    case 1:
        gex_AM_RequestMedium6(aq_test_tm, to, H_MEDIUM, buf, len, &a->pending[slot], 0, SIX(args));
        break;
    default:
        gex_AM_RequestMedium6(aq_test_tm, to, H_MEDIUM, buf, len, GEX_EVENT_GROUP, 0, SIX(args));
        gex_NBI_Wait(GEX_EC_AM, 0);
    }
}

/* The longest Long that a peer can answer with one of the same length. */
static size_t max_long(gex_Rank_t to)
{
    const size_t request = gex_AM_MaxRequestLong(aq_test_tm, to, GEX_EVENT_NOW, 0, ARGS);
    const size_t reply = gex_AM_MaxReplyLong(aq_test_tm, to, GEX_EVENT_NOW, 0, ARGS);
    const size_t max = request < reply ? request : reply;

    return max < LONG_BYTES ? max : LONG_BYTES;
}

static void send_long(struct actor *a, gex_Rank_t to)
{
    gex_AM_Arg_t args[ARGS];
    const int place = (int)(aq_test_random(&a->random) % LONG_SLOTS);
    atomic_int *busy =
        &long_busy[((size_t)a->thread * aq_test_n + to) * LONG_SLOTS + (size_t)place];
    char *dest = long_slot(to, aq_test_me, a->thread, place), *buf;
    size_t len;
    int slot;

    if (atomic_load(busy))
        return; /* the last message into this slot has not been answered */
    buf = fresh_buffer(a, &slot);
    len = random_size(a, max_long(to));
    aq_test_fill(buf, len, aq_test_random(&a->random));
    make_args(a, args, place, true, buf, len);
    atomic_store(busy, 1);
    note_sent(to, args, true);
    gex_AM_RequestLong6(aq_test_tm, to, H_LONG, buf, len, dest,
                        args[4] % 2 ? GEX_EVENT_NOW : &a->pending[slot], 0, SIX(args));
}

/* Puts into an area that only this thread writes, and reads it back in some other style. */
static void transfer(struct actor *a, gex_Rank_t to)
{
    char *area = rma_area(to, aq_test_me, a->thread), *out, *in;
    const size_t len = random_size(a, RMA_BYTES / 2);
    const size_t off = aq_test_random(&a->random) % (RMA_BYTES - len + 1);
    const uint64_t r = aq_test_random(&a->random);
    gex_Event_t leaf, ev;
    int s1, s2;

    out = fresh_buffer(a, &s1);
    in = fresh_buffer(a, &s2);
    aq_test_fill(out, len, r);
    switch (r % 4) {
    case 0:
        gex_RMA_PutBlocking(aq_test_tm, to, area + off, out, len, 0);
        break;
    case 1:
        ev = gex_RMA_PutNB(aq_test_tm, to, area + off, out, len, &leaf, 0);
        gex_Event_Wait(ev);
        break;
    case 2:
        gex_RMA_PutNBI(aq_test_tm, to, area + off, out, len, GEX_EVENT_GROUP, 0);
        gex_NBI_Wait(GEX_EC_PUT | GEX_EC_LC, 0);
        break;
    default:
        gex_NBI_BeginAccessRegion(0);
        gex_RMA_PutNBI(aq_test_tm, to, area + off, out, len / 2, GEX_EVENT_DEFER, 0);
        gex_RMA_PutNBI(aq_test_tm, to, area + off + len / 2, out + len / 2, len - len / 2,
                       GEX_EVENT_NOW, 0);
        gex_Event_Wait(gex_NBI_EndAccessRegion(0));
    }
    memset(in, 0, len);
    if (r % 3 == 0)
        gex_RMA_GetBlocking(aq_test_tm, in, to, area + off, len, 0);
    else if (r % 3 == 1)
        aq_test_sync(gex_RMA_GetNB(aq_test_tm, in, to, area + off, len, 0));
    else {
        gex_RMA_GetNBI(aq_test_tm, in, to, area + off, len, 0);
        gex_NBI_Wait(GEX_EC_GET, 0);
    }
    if (memcmp(in, out, len) != 0) {
        atomic_fetch_add(&damaged, 1);
        aq_test_fail(__FILE__, __LINE__,
                     "transfer of %zu bytes at offset %zu of rank %u came back wrong", len, off,
                     (unsigned)to);
    }
}

static void *act(void *arg)
{
    struct actor a = { .thread = (int)(intptr_t)arg };
    int i;

    a.random = seed * 1000003u + aq_test_me * 131u + (uint64_t)a.thread;
    for (i = 0; i < PENDING; i++)
        a.buffers[i] = malloc(RMA_BYTES + LONG_BYTES);
    while (aq_test_clock() < stop_at) {
        const gex_Rank_t to = (gex_Rank_t)(aq_test_random(&a.random) % aq_test_n);

        switch (aq_test_random(&a.random) % 8) {
        case 0:
        case 1:
        case 2:
            send_short(&a, to);
            break;
        case 3:
        case 4:
            send_medium(&a, to);
            break;
        case 5:
            send_long(&a, to);
            break;
        case 6:
            transfer(&a, to);
            break;
        default:
            aq_test_relax();
        }
    }
    for (i = 0; i < PENDING; i++)
        gex_Event_Wait(a.pending[i]);
    for (i = 0; i < PENDING; i++)
        free(a.buffers[i]);
    return NULL;
}

/* ---- all together ---- */

static void run_actors(void)
{
    stop_at = aq_test_clock() + seconds;
    alarm((unsigned)seconds + 100);
#if GASNET_PAR
    aq_test_crowded = aq_test_crowded || aq_test_n > 1; /* by threads */
    aq_test_threads_for(n_threads, act, seconds);
#else
    act(NULL);
#endif
}

static void compare(void)
{
    gex_Rank_t r;

    for (r = 0; r < aq_test_n; r++) {
        const uint64_t c = atomic_load(&sent[r].count), s = atomic_load(&sent[r].sum);

        gex_AM_RequestShort4(aq_test_tm, r, H_TOTAL, 0, c >> 32, c, s >> 32, s);
    }
    aq_test_wait(&totals_came, (int)aq_test_n);
    for (r = 0; r < aq_test_n; r++) {
        const uint64_t due = their_totals[r][0];

        AQ_UNTIL(atomic_load(&came[r].count) + atomic_load(&damaged) >= due);
        rule("stress: no message is lost");
        AQ_CHECK(atomic_load(&came[r].count) >= due);
        rule("stress: no message is delivered twice");
        AQ_CHECK(atomic_load(&came[r].count) <= due);
        rule("stress: the checksums of what was sent and what came add up to the same");
        AQ_CHECK_EQ(atomic_load(&came[r].sum), their_totals[r][1]);
    }
    rule("stress: every answer came");
    AQ_UNTIL(atomic_load(&answers_came) >= atomic_load(&answers_due));
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&answers_came), atomic_load(&answers_due));
}

static void read_options(int argc, char **argv)
{
    int i;

#if GASNET_PAR
    n_threads = 3;
#endif
    for (i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0)
            seconds = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--threads") == 0)
            n_threads = atoi(argv[i + 1]);
    }
    if (n_threads < 1 || n_threads > MAX_THREADS || seconds < 1)
        aq_test_die(__FILE__, __LINE__, "usage: stress [--seconds S] [--seed X] [--threads T]");
}

int main(int argc, char **argv)
{
    gex_Rank_t r;
    uint64_t total = 0;

    aq_test_start(&argc, &argv, 1);
    read_options(argc, argv);
    sent = calloc(aq_test_n, sizeof(*sent));
    came = calloc(aq_test_n, sizeof(*came));
    their_totals = calloc(aq_test_n, sizeof(*their_totals));
    long_busy = calloc((size_t)n_threads * aq_test_n * LONG_SLOTS, sizeof(*long_busy));
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment((size_t)aq_test_n * (size_t)n_threads * channel_size());
    rule("stress: nothing is damaged");
    run_actors();
    compare();
    for (r = 0; r < aq_test_n; r++)
        total += atomic_load(&sent[r].count);
    fprintf(stderr, "# rank %u sent %" PRIu64 " messages in %d s, seed %" PRIu64 "\n",
            (unsigned)aq_test_me, total, seconds, seed);
    return aq_test_finish();
}
