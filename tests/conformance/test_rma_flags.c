/*
 * test_rma_flags.c - IMMEDIATE, also of large transfers to a peer that does not poll, locality and
 * segment assertions, zero lengths on every form. Ranks 1+. Conduits all. Source GASNet-EX
 * specification 0.19, RMA flags. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include "gasnet_vis.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

enum { LEN = 256, BATCH = 2000, AWAY_MS = 30000, H_COUNT = AQ_TEST_FREE };

static char out[LEN], in[LEN];

/* A rank that is out of the library: where it looks for the file that calls it back. */
struct away {
    char host[240];
    pid_t pid;
};

static aq_test_count_t counted; /* messages that have arrived */

static void h_count(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token;
    (void)buf;
    (void)nbytes;
    atomic_fetch_add(&counted, 1);
}

/* One operation of each form; returns false if it was declined. */
static bool try_put(int form, gex_Rank_t to, gex_Flags_t flags)
{
    char *remote_addr = aq_test_base(to);
    gex_Event_t ev;

    switch (form) {
    case 0:
        return gex_RMA_PutBlocking(aq_test_tm, to, remote_addr, out, LEN, flags) == 0;
    case 1:
        ev = gex_RMA_PutNB(aq_test_tm, to, remote_addr, out, LEN, GEX_EVENT_NOW, flags);
        if (ev == GEX_EVENT_NO_OP)
            return false;
        gex_Event_Wait(ev);
        return true;
    case 2:
        if (gex_RMA_PutNBI(aq_test_tm, to, remote_addr, out, LEN, GEX_EVENT_NOW, flags) != 0)
            return false;
        gex_NBI_Wait(GEX_EC_PUT, 0);
        return true;
    default:
        ev = gex_RMA_PutNBVal(aq_test_tm, to, remote_addr, 0x4142434445464748u, 8, flags);
        if (ev == GEX_EVENT_NO_OP)
            return false;
        gex_Event_Wait(ev);
        return true;
    }
}

static bool try_get(int form, gex_Rank_t from, gex_Flags_t flags)
{
    char *remote_addr = aq_test_base(from);
    gex_Event_t ev;

    switch (form) {
    case 0:
        return gex_RMA_GetBlocking(aq_test_tm, in, from, remote_addr, LEN, flags) == 0;
    case 1:
        ev = gex_RMA_GetNB(aq_test_tm, in, from, remote_addr, LEN, flags);
        if (ev == GEX_EVENT_NO_OP)
            return false;
        gex_Event_Wait(ev);
        return true;
    default:
        if (gex_RMA_GetNBI(aq_test_tm, in, from, remote_addr, LEN, flags) != 0)
            return false;
        gex_NBI_Wait(GEX_EC_GET, 0);
        return true;
    }
}

static void check_flags(gex_Rank_t to, gex_Flags_t flags)
{
    int form, tries;

    for (form = 0; form < 4; form++) {
        aq_test_fill(out, LEN, (uint64_t)form + flags);
        for (tries = 0; tries < 1000 && !try_put(form, to, flags); tries++)
            aq_test_relax();
        if (tries == 1000)
            AQ_CHECK(try_put(form, to, flags & ~GEX_FLAG_IMMEDIATE));
        memset(in, 0, LEN);
        for (tries = 0; tries < 1000 && !try_get(form % 3, to, flags); tries++)
            aq_test_relax();
        if (tries == 1000)
            AQ_CHECK(try_get(form % 3, to, flags & ~GEX_FLAG_IMMEDIATE));
        if (form < 3)
            AQ_CHECK(memcmp(out, in, LEN) == 0);
        else
            AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, to, aq_test_base(to), 8, flags),
                        0x4142434445464748);
    }
}

/* Many without any polling: some may be declined; those leave no trace, the others all arrive. */
static void immediate_batch(gex_Rank_t to)
{
    uint64_t *remote_addr = aq_test_base(to), last[8] = { 0 };
    int i;

    for (i = 0; i < 8; i++)
        gex_RMA_PutBlockingVal(aq_test_tm, to, &remote_addr[i], 0, 8, 0);
    for (i = 1; i <= BATCH; i++) {
        if (i % 8 == 0) /* a slot is written again only after its last put is complete */
            gex_NBI_Wait(GEX_EC_PUT, 0);
        if (gex_RMA_PutNBIVal(aq_test_tm, to, &remote_addr[i % 8], (gex_RMA_Value_t)i, 8,
                              GEX_FLAG_IMMEDIATE)
            == 0)
            last[i % 8] = (uint64_t)i;
    }
    gex_NBI_Wait(GEX_EC_PUT, 0);
    for (i = 0; i < 8; i++)
        AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, to, &remote_addr[i], 8, 0), last[i]);
}

static void zero_lengths(gex_Rank_t to)
{
    void *const wild = (void *)(uintptr_t)0x10;
    gex_Event_t lc = GEX_EVENT_INVALID;

    AQ_CHECK_EQ(gex_RMA_PutBlocking(aq_test_tm, to, wild, NULL, 0, 0), 0);
    AQ_CHECK_EQ(gex_RMA_PutBlocking(aq_test_tm, to, NULL, wild, 0, 0), 0);
    AQ_CHECK(gex_RMA_PutNB(aq_test_tm, to, wild, wild, 0, &lc, 0) == GEX_EVENT_INVALID);
    AQ_CHECK(lc == GEX_EVENT_INVALID);
    AQ_CHECK(gex_RMA_PutNB(aq_test_tm, to, NULL, NULL, 0, GEX_EVENT_NOW, 0) == GEX_EVENT_INVALID);
    AQ_CHECK_EQ(gex_RMA_PutNBI(aq_test_tm, to, wild, NULL, 0, GEX_EVENT_DEFER, 0), 0);
    AQ_CHECK_EQ(gex_RMA_PutNBI(aq_test_tm, to, wild, NULL, 0, GEX_EVENT_GROUP, 0), 0);
    AQ_CHECK_EQ(gex_RMA_GetBlocking(aq_test_tm, wild, to, NULL, 0, 0), 0);
    AQ_CHECK(gex_RMA_GetNB(aq_test_tm, NULL, to, wild, 0, 0) == GEX_EVENT_INVALID);
    AQ_CHECK_EQ(gex_RMA_GetNBI(aq_test_tm, wild, to, wild, 0, 0), 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

/* --- large ones, while the peer does not poll --- */

enum { RUN = 131072, RUNS = 128 }; /* more fragments than any queue holds */

static char large[RUN * RUNS], got[RUN * RUNS];

/* A put, a get, runs and a put whose source must be free: declined or under way. The puts write the
 * same bytes. */
static void start_all(gex_Rank_t to, char *remote_addr, gex_Event_t events[4])
{
    const ptrdiff_t apart[1] = { RUN };
    const size_t count[1] = { RUNS };

    events[0] = gex_RMA_PutNB(aq_test_tm, to, remote_addr, large, sizeof(large), GEX_EVENT_DEFER,
                              GEX_FLAG_IMMEDIATE);
    events[1] = gex_RMA_GetNB(aq_test_tm, got, to, remote_addr, sizeof(large), GEX_FLAG_IMMEDIATE);
    events[2] = gex_VIS_StridedPutNB(aq_test_tm, to, remote_addr, apart, large, apart, RUN - 8,
                                     count, 1, GEX_FLAG_IMMEDIATE);
    events[3] = gex_RMA_PutNB(aq_test_tm, to, remote_addr, large, sizeof(large), GEX_EVENT_NOW,
                              GEX_FLAG_IMMEDIATE);
}

/* As many large messages as leave at once. Returns how many have left. */
static int send_all(gex_Rank_t to, char *remote_addr)
{
    const size_t medium = gex_AM_MaxRequestMedium(aq_test_tm, to, GEX_EVENT_NOW, 0, 0),
                 max_long = gex_AM_MaxRequestLong(aq_test_tm, to, GEX_EVENT_NOW, 0, 0),
                 along = max_long < sizeof(large) ? max_long : sizeof(large);
    int i, sent = 0;

    for (i = 0; i < RUNS; i++) {
        sent += gex_AM_RequestMedium0(aq_test_tm, to, H_COUNT, large, medium, GEX_EVENT_NOW,
                                      GEX_FLAG_IMMEDIATE)
                == 0;
        sent += gex_AM_RequestLong0(aq_test_tm, to, H_COUNT, large, along, remote_addr,
                                    GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE)
                == 0;
    }
    return sent;
}

/* Out of the library until the file exists; returns false if it does not come. */
static bool stay_away(const char *file)
{
    const struct timespec pause = { 0, 1000000 };
    int ms;

    for (ms = 0; ms < AWAY_MS && access(file, F_OK) != 0; ms++)
        nanosleep(&pause, NULL);
    unlink(file);
    return ms < AWAY_MS;
}

/* Rank 0: starts what may not wait for rank 1, and makes the file. */
static int start_large(char *remote_addr, gex_Event_t events[4], const char *file)
{
    int i, sent;

    aq_test_fill(large, sizeof(large), 11);
    start_all(1, remote_addr, events);
    for (i = 0; i < 4; i++)
        if (events[i] == GEX_EVENT_NO_OP)
            events[i] = GEX_EVENT_INVALID;
    sent = send_all(1, remote_addr);
    close(open(file, O_CREAT | O_EXCL | O_WRONLY, 0600));
    return sent;
}

/* Ranks 0 and 1 learn about each other. Returns true if they see the same files; *file, by which
 * rank 0 calls rank 1 back, does not exist then. */
static bool exchange(char file_out[64])
{
    const gex_Rank_t peer = aq_test_me ^ 1;
    struct away *from_peer = aq_test_base(aq_test_me), self = { 0 };
    bool same;

    memset(from_peer, 0, sizeof(*from_peer));
    aq_test_barrier();
    gethostname(self.host, sizeof(self.host) - 1);
    self.pid = getpid();
    if (aq_test_me < 2 && aq_test_n > 1)
        gex_RMA_PutBlocking(aq_test_tm, peer, aq_test_base(peer), &self, sizeof(self), 0);
    aq_test_barrier();
    sprintf(file_out, "/tmp/aq-immediate.%ld", (long)(aq_test_me == 0 ? from_peer->pid : self.pid));
    if (aq_test_me == 1)
        unlink(file_out); /* of an earlier process */
    same = strcmp(from_peer->host, self.host) == 0;
    memset(from_peer, 0, sizeof(*from_peer));
    aq_test_barrier();
    return same;
}

/* Rank 0 tells rank 1 how many messages have left, and puts the same bytes once more. */
static void check_large(char *remote_addr, int sent)
{
    const aq_test_count_t *number = aq_test_base(aq_test_me);

    if (aq_test_me == 0) {
        gex_RMA_PutBlocking(aq_test_tm, 1, remote_addr, large, sizeof(large), 0);
        gex_RMA_GetBlocking(aq_test_tm, got, 1, remote_addr, sizeof(got), 0);
        AQ_CHECK(aq_test_same(got, sizeof(got), 11));
        gex_RMA_PutBlockingVal(aq_test_tm, 1, aq_test_base(1), (gex_RMA_Value_t)sent + 1, 8, 0);
    } else {
        GASNET_BLOCKUNTIL(atomic_load(number) != 0);
        GASNET_BLOCKUNTIL(atomic_load(&counted) == atomic_load(number) - 1);
    }
}

/* Rank 0 starts them while rank 1 is out of the library. */
static void large_immediate(void)
{
    gex_Event_t events[4] = { GEX_EVENT_INVALID, GEX_EVENT_INVALID, GEX_EVENT_INVALID,
                              GEX_EVENT_INVALID };
    char *remote_addr = (char *)aq_test_base(1 % aq_test_n) + 64, file[64];
    int sent;

    if (exchange(file) && aq_test_me < 2) {
        rule("extended 7, core 5: IMMEDIATE never waits for a peer that does not poll");
        sent = aq_test_me == 0 ? start_large(remote_addr, events, file) : 0;
        if (aq_test_me == 1)
            AQ_CHECK(stay_away(file));
        gex_Event_WaitAll(events, 4, 0);
        check_large(remote_addr, sent);
    }
    aq_test_barrier();
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t table[] = { AQ_ENTRY(H_COUNT, h_count, AQ_MQ | AQ_LQ, 0) };
    gex_Rank_t k, to;

    aq_test_start(&argc, &argv, 1);
    rule("extended 6.5: zero length: no address is looked at, no segment needed, NB gives INVALID");
    zero_lengths(aq_test_me);
    zero_lengths(aq_test_peer(1));
    aq_test_segment(sizeof(large) + 4096);
    aq_test_handlers(table, AQ_LENGTH(table));
    large_immediate();
    for (k = 0; k < (aq_test_n > 1 ? 2u : 1u); k++) {
        to = aq_test_peer(k);
        rule("extended 7: no flags; IMMEDIATE with polling in between succeeds or falls back");
        check_flags(to, 0);
        check_flags(to, GEX_FLAG_IMMEDIATE);
        immediate_batch(to);
        rule("extended 7.3: true segment assertions are tolerated");
        check_flags(to, GEX_FLAG_SELF_SEG_UNKNOWN | GEX_FLAG_PEER_SEG_BOUND);
        check_flags(to, GEX_FLAG_PEER_SEG_UNKNOWN);
        check_flags(to, GEX_FLAG_PEER_SEG_SOME);
        rule("extended 7.1: PEER_NEVER_SELF, true");
        if (to != aq_test_me)
            check_flags(to, GEX_FLAG_PEER_NEVER_SELF);
        rule("extended 6.5: zero length: no address is looked at, no segment needed, NB gives "
             "INVALID");
        zero_lengths(to);
        aq_test_barrier();
    }
    return aq_test_finish();
}
