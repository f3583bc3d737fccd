/*
 * test_barrier_named.c - the split-phase barriers with names: the matching matrix by wait, try and
 * the single-phase form, results, recovery after a mismatch, progress.
 * Ranks 1+. Conduits all. Source GASNet specification 1.8 with the matching rules of 1.20,
 * barriers. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include <limits.h>

enum { H_NOTIFIED = AQ_TEST_FREE, H_THROUGH };
enum {
    NAMED = 0,
    ANON = GASNET_BARRIERFLAG_ANONYMOUS,
    BAD = GASNET_BARRIERFLAG_MISMATCH,
    UNNAMED = GASNET_BARRIERFLAG_UNNAMED
};
enum { OK = GASNET_OK, MIS = GASNET_ERR_BARRIER_MISMATCH, EITHER = -1 };

static aq_test_count_t notified, through;

static void h_notified(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&notified, 1);
}

static void h_through(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&through, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_NOTIFIED, h_notified, AQ_SQ, 0),
    AQ_ENTRY(H_THROUGH, h_through, AQ_SQ, 0),
};

/* What the odd rank does and what all others do; `name` is the phase's name if named is 1. */
struct scenario {
    const char *text;
    int odd_notify, odd_id, odd_wait, odd_wait_id, odd_result;
    int notify, id, wait, wait_id, result;
    int named, name; /* named: 1 named, 0 anonymous, -1 do not ask */
    int min_ranks;
};

#define ID ((int)0xcafef00d)
static const struct scenario scenarios[] = {
    { "all named alike", NAMED, ID, NAMED, ID, OK, NAMED, ID, NAMED, ID, OK, 1, ID, 1 },
    { "name 0", NAMED, 0, NAMED, 0, OK, NAMED, 0, NAMED, 0, OK, 1, 0, 1 },
    { "name -1", NAMED, -1, NAMED, -1, OK, NAMED, -1, NAMED, -1, OK, 1, -1, 1 },
    { "name INT_MIN", NAMED, INT_MIN, NAMED, INT_MIN, OK, NAMED, INT_MIN, NAMED, INT_MIN, OK, 1,
      INT_MIN, 1 },
    { "all anonymous, ids ignored", ANON, 1, ANON, 2, OK, ANON, 3, ANON, 4, OK, 0, 0, 1 },
    { "all unnamed", UNNAMED, 0, UNNAMED, 0, OK, UNNAMED, 0, UNNAMED, 0, OK, -1, 0, 1 },
    { "one passes MISMATCH, others named", BAD, 5, BAD, 5, MIS, NAMED, 5, NAMED, 5, MIS, -1, 0, 1 },
    { "one passes MISMATCH, others anonymous", BAD, 5, BAD, 5, MIS, ANON, 5, ANON, 5, MIS, -1, 0,
      1 },
    { "all pass MISMATCH", BAD, 5, BAD, 5, MIS, BAD, 5, BAD, 5, MIS, -1, 0, 1 },
    { "clean again after a mismatch", NAMED, 6, NAMED, 6, OK, NAMED, 6, NAMED, 6, OK, 1, 6, 1 },
    { "two different names", NAMED, 1, NAMED, 1, MIS, NAMED, 2, NAMED, 2, MIS, -1, 0, 2 },
    { "two different names, one waits anonymous", NAMED, 1, ANON, 0, MIS, NAMED, 2, NAMED, 2, MIS,
      -1, 0, 2 },
    { "one named, others anonymous", NAMED, 7, NAMED, 7, OK, ANON, 0, ANON, 0, OK, 1, 7, 2 },
    { "one anonymous, others named", ANON, 0, ANON, 0, OK, NAMED, 8, NAMED, 8, OK, 1, 8, 2 },
    { "anonymous notify, named wait with the phase's name", ANON, 0, NAMED, 8, OK, NAMED, 8, NAMED,
      8, OK, 1, 8, 2 },
    { "anonymous notify, named wait with another name", ANON, 0, NAMED, 9, MIS, NAMED, 8, NAMED, 8,
      EITHER, -1, 0, 2 },
    { "anonymous phase, named waits", ANON, 0, NAMED, 3, OK, ANON, 0, NAMED, 4, OK, 0, 0, 1 },
    { "named notify, anonymous wait", NAMED, 4, ANON, 0, OK, NAMED, 4, ANON, 99, OK, 1, 4, 1 },
    { "named notify(0), named wait(1)", NAMED, 0, NAMED, 1, MIS, NAMED, 0, NAMED, 0, EITHER, -1, 0,
      1 },
    { "clean at the end", ANON, 0, ANON, 0, OK, ANON, 0, ANON, 0, OK, 0, 0, 1 },
};

static int leave(int how, int id, int flags)
{
    int rc;

    if (how == 0)
        return gasnet_barrier_wait(id, flags);
    do {
        rc = gasnet_barrier_try(id, flags); /* must make progress itself */
        aq_test_yield();
    } while (rc == GASNET_ERR_NOT_READY);
    return rc;
}

static void play(const struct scenario *s, gex_Rank_t odd, int how)
{
    const bool am_odd = aq_test_me == odd;
    const int nf = am_odd ? s->odd_notify : s->notify, ni = am_odd ? s->odd_id : s->id;
    const int wf = am_odd ? s->odd_wait : s->wait, wi = am_odd ? s->odd_wait_id : s->wait_id;
    const int want = am_odd ? s->odd_result : s->result;
    int rc, name = 12345, anonymous;

    if (how == 2 && nf == wf && ni == wi) {
        rc = gasnet_barrier(ni, nf);
    } else {
        gasnet_barrier_notify(ni, nf);
        rc = leave(how % 2, wi, wf);
    }
    if (want == EITHER)
        AQ_CHECK(rc == OK || rc == MIS);
    else if (rc != want)
        aq_test_fail(__FILE__, __LINE__, "%s (odd rank %u, way %d): got %d, expected %d", s->text,
                     (unsigned)odd, how, rc, want);
    if (s->named >= 0) {
        anonymous = gasnet_barrier_result(&name);
        if ((anonymous == 0) != (s->named == 1) || (s->named && name != s->name))
            aq_test_fail(__FILE__, __LINE__, "%s: result %d, name %d", s->text, anonymous, name);
    }
}

/* Rank 0 is late: no rank may complete the barrier, try reports that, notify does not wait. */
static void check_late(int how)
{
    const int others = (int)aq_test_n - 1;

    atomic_store(&notified, 0);
    aq_test_barrier();
    if (aq_test_me != 0) {
        gasnet_barrier_notify(11, NAMED);
        AQ_CHECK_EQ(gasnet_barrier_try(11, NAMED), GASNET_ERR_NOT_READY);
        AQ_CHECK_EQ(gasnet_barrier_try(11, NAMED), GASNET_ERR_NOT_READY);
        gex_AM_RequestShort0(aq_test_tm, 0, H_NOTIFIED, 0);
        AQ_CHECK_EQ(leave(how, 11, NAMED), OK);
    } else {
        aq_test_wait(&notified, others);
        gasnet_barrier_notify(11, NAMED);
        AQ_CHECK_EQ(leave(how, 11, NAMED), OK);
    }
    aq_test_barrier();
}

/* Rank 0 notifies and then only polls: the others must get through. */
static void check_polling_rank(void)
{
    gasnet_barrier_notify(12, NAMED);
    if (aq_test_me != 0) {
        AQ_CHECK_EQ(gasnet_barrier_wait(12, NAMED), OK);
        gex_AM_RequestShort0(aq_test_tm, 0, H_THROUGH, 0);
    } else {
        aq_test_wait(&through, (int)aq_test_n - 1);
        AQ_CHECK_EQ(gasnet_barrier_wait(12, NAMED), OK);
    }
}

/* Every second barrier is of the other kind. */
static void check_mixture(void)
{
    int i;

    for (i = 0; i < 30; i++) {
        gex_Coll_BarrierBlocking(aq_test_tm, 0);
        gasnet_barrier_notify(i, NAMED);
        AQ_CHECK_EQ(gasnet_barrier_wait(i, NAMED), OK);
        gex_Event_Wait(gex_Coll_BarrierNB(aq_test_tm, 0));
        AQ_CHECK_EQ(gasnet_barrier(-i, NAMED), OK);
    }
}

int main(int argc, char **argv)
{
    static const char *const ways[] = {
        "extended 14.2: matching matrix by notify and wait",
        "extended 14.2: matching matrix by notify and try",
        "extended 14.2: matching matrix by the single-phase form",
    };
    gex_Rank_t odd;
    size_t i;
    int how;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    for (how = 0; how < 3; how++) {
        rule(ways[how]);
        for (odd = 0; odd < aq_test_n; odd += 1 + (aq_test_n - 1) / 3)
            for (i = 0; i < AQ_LENGTH(scenarios); i++)
                if ((gex_Rank_t)scenarios[i].min_ranks <= aq_test_n)
                    play(&scenarios[i], odd, how);
    }
    rule("extended 14.2: try says NOT_READY while one rank has not notified; notify does not wait");
    check_late(0);
    check_late(1);
    rule("extended 19.49: others get through while one rank only polls");
    check_polling_rank();
    rule("extended 14.3: EX and named barriers in turn");
    check_mixture();
    return aq_test_finish();
}
