/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_firehose_recall.c - memory that is unmapped while peers reference it, while it is being
 * pinned, or unnoticed; recalls that arrive before, or between, the messages they are about; and
 * peers that leave.
 */
#include "tests/unit/firehose_cases.h"

#include "other/firehose/aq_fh_wire.h"

/* The target may not send before the initiator has forgotten the region; the initiator then gets
 * the new memory. */
static void test_recall(void **state)
{
    struct sim *sim = sim_new(2, &config, true);
    struct sim_rank *target = &sim->rank[1];
    struct aq_fh_request request = request_for(sim, 20, 8, true);
    uint32_t key;

    (void)state;
    assert_true(ask(sim, &request));
    key = request.hold.reg->key[0];
    assert_true(sim_tell(target));
    sim_replace(target, 20, 1);
    assert_false(sim_tell(target));
    assert_false(sim_tell(target)); /* known here now, but not there */
    aq_fh_progress(target->fh);
    assert_false(sim_tell(target));
    sim_drain(sim);
    assert_true(sim_tell(target));
    assert_true(target->reg[key]->live); /* the transfer may still be under way */
    aq_fh_release(sim->rank[0].fh, &request.hold);
    sim_drain(sim);
    assert_false(target->reg[key]->live);
    assert_true(ask(sim, &request));
    assert_int_not_equal(request.hold.reg->key[0], key);
    assert_int_equal(target->reg[request.hold.reg->key[0]]->generation[0], 1);
    aq_fh_release(sim->rank[0].fh, &request.hold);
    sim_free(sim);
}

/* A rank that gives pages back waits until the peer has forgotten their region. */
static void test_discard(void **state)
{
    struct sim *sim = sim_new(2, &config, false);
    struct aq_fh *fh = sim->rank[1].fh;

    (void)state;
    assert_true(touch(sim, 20, true));
    aq_fh_invalidate(fh, at(sim, 1, 21), 10 * PAGE);
    assert_false(aq_fh_is_recalling(fh));
    aq_fh_invalidate(fh, at(sim, 1, 10), 11 * PAGE);
    assert_true(aq_fh_is_recalling(fh));
    aq_fh_progress(fh);
    assert_true(aq_fh_is_recalling(fh));
    sim_drain(sim);
    assert_false(aq_fh_is_recalling(fh));
    assert_true(touch(sim, 20, true));
    sim_free(sim);
}

/* Deliver the message of a kind: an answer, or a request. */
static void deliver(struct sim *sim, bool is_answer, uint8_t kind)
{
    for (struct sim_message **link = &sim->bag; *link != NULL; link = &(*link)->next)
        if ((*link)->is_answer == is_answer && (*link)->bytes[0] == kind) {
            sim_handle(sim, sim_take_out(sim, link));
            return;
        }
    fail_msg("no such message");
}

/* The recall comes before the grant that it is about. */
static void test_recall_overtakes(void **state)
{
    struct sim *sim = sim_new(2, &config, true);
    struct aq_fh_request request = request_for(sim, 20, 8, true),
                         other = request_for(sim, 20, 8, false);

    (void)state;
    assert_int_equal(aq_fh_remote(sim->rank[0].fh, &request), AQ_PENDING);
    assert_int_equal(aq_fh_remote(sim->rank[0].fh, &other), AQ_PENDING);
    deliver(sim, false, AQ_FH_MOVE);
    sim_replace(&sim->rank[1], 20, 1);
    aq_fh_settle(sim->rank[1].fh);
    aq_fh_progress(sim->rank[1].fh);
    deliver(sim, false, AQ_FH_RECALL);
    deliver(sim, true, AQ_FH_RECALL);
    assert_true(sim_tell(&sim->rank[1]));
    deliver(sim, true, AQ_FH_MOVE);
    assert_int_equal(request.rc, AQ_RETRY);
    assert_int_equal(other.rc, AQ_RETRY);
    assert_null(request.hold.region);
    assert_true(touch(sim, 20, true));
    assert_int_equal(sim->rank[1].reg[sim->rank[1].regs - 1]->generation[0], 1);
    sim_free(sim);
}

/* A recall comes while the region is being given up by a message that then cannot be sent. */
static void recall_now(struct sim *sim, struct sim_rank *from)
{
    if (from->rank != 0)
        return;
    sim->on_send = NULL;
    sim_replace(&sim->rank[1], 20, 1);
    aq_fh_settle(sim->rank[1].fh);
    aq_fh_progress(sim->rank[1].fh);
    deliver(sim, false, AQ_FH_RECALL);
    deliver(sim, true, AQ_FH_RECALL);
    assert_true(sim_tell(&sim->rank[1]));
    sim->refuse = 100;
}

static void test_recall_while_leaving(void **state)
{
    struct aq_fh_config small = config;
    struct aq_fh_request request;
    struct sim *sim;

    (void)state;
    small.remote_bytes = PAGE;
    sim = sim_new(2, &small, true);
    touch(sim, 20, true);
    request = request_for(sim, 100, 8, true);
    sim->on_send = recall_now;
    assert_int_equal(aq_fh_remote(sim->rank[0].fh, &request), AQ_RETRY);
    sim->refuse = 0;
    assert_true(touch(sim, 20, true)); /* the old one is not found */
    assert_int_equal(sim->rank[1].reg[sim->rank[1].regs - 1]->generation[0], 1);
    sim_free(sim);
}

/* Memory goes while it is being pinned. */
static void cover_and_replace(struct sim *sim, struct sim_rank *rank)
{
    sim_replace(rank, 30, 1);
    aq_fh_settle(rank->fh);
    (void)sim;
}

static int replacing_cover(struct aq_fh_memmon *memmon, uintptr_t addr, size_t len)
{
    struct sim_rank *rank = (struct sim_rank *)((char *)memmon - offsetof(struct sim_rank, memmon));

    (void)addr, (void)len;
    memmon->cover = sim_memmon_cover;
    cover_and_replace(rank->sim, rank);
    return AQ_OK;
}

static void test_lost_while_pinned(void **state)
{
    struct sim *sim = sim_new(2, &config, true);
    struct aq_fh_request request = request_for(sim, 30, 8, true);
    struct aq_fh_hold hold;

    (void)state;
    sim->rank[1].memmon.cover = replacing_cover;
    assert_true(ask(sim, &request));
    assert_int_equal(request.rc, AQ_RETRY);
    assert_true(touch(sim, 30, true));
    sim->rank[0].memmon.cover = replacing_cover;
    assert_int_equal(aq_fh_local(sim->rank[0].fh, at(sim, 0, 30), 8, true, &hold), AQ_RETRY);
    assert_int_equal(counts_of(sim, 0).reg_bytes, 0);
    assert_int_equal(counts_of(sim, 0).local_charged, 0);
    assert_int_equal(aq_fh_local(sim->rank[0].fh, at(sim, 0, 30), 8, true, &hold), AQ_OK);
    aq_fh_invalidate(sim->rank[0].fh, 0, SIZE_MAX);      /* everything */
    assert_int_equal(counts_of(sim, 0).reg_bytes, PAGE); /* in use */
    aq_fh_release(sim->rank[0].fh, &hold);
    assert_int_equal(counts_of(sim, 0).reg_bytes, 0);
    sim_free(sim);
}

/* What cannot be monitored is unpinned after its first use, here and there. */
static void test_once(void **state)
{
    struct sim *sim = sim_new(2, &config, true);
    struct aq_fh_request request[2];
    struct aq_fh_hold hold, other;
    uint32_t page = 0;

    (void)state;
    while (!sim_unmonitored(at(sim, 1, page), PAGE))
        page++;
    assert_true(touch(sim, page, true));
    sim_drain(sim);
    assert_int_equal(counts_of(sim, 1).reg_bytes, 0);
    assert_int_equal(counts_of(sim, 0).releases, 1);
    assert_true(touch(sim, page, true));
    for (int i = 0; i < 2; i++) {
        request[i] = request_for(sim, page, 8, true);
        assert_int_equal(aq_fh_remote(sim->rank[0].fh, &request[i]), AQ_PENDING);
    }
    sim_drain(sim);
    assert_int_equal(request[0].rc, AQ_OK);
    assert_int_equal(request[1].rc, AQ_RETRY); /* who only waited for it does not get it */
    aq_fh_release(sim->rank[0].fh, &request[0].hold);
    page = 0;
    while (!sim_unmonitored(at(sim, 0, page), PAGE))
        page++;
    assert_int_equal(aq_fh_local(sim->rank[0].fh, at(sim, 0, page), 8, true, &hold), AQ_OK);
    assert_int_equal(counts_of(sim, 0).reg_bytes, PAGE);
    assert_int_equal(aq_fh_local(sim->rank[0].fh, at(sim, 0, page), 8, true, &other), AQ_OK);
    assert_int_equal(counts_of(sim, 0).reg_bytes, 2 * PAGE); /* not even two transfers at a time */
    aq_fh_release(sim->rank[0].fh, &other);
    aq_fh_release(sim->rank[0].fh, &hold);
    assert_int_equal(counts_of(sim, 0).reg_bytes, 0);
    sim_free(sim);
}

/* --- a peer that leaves: rank 0, as rank 1 hears of it --- */

static void assert_forgotten(const struct sim_rank *target)
{
    struct aq_fh_counts counts;

    aq_fh_counts(target->fh, &counts);
    assert_int_equal(counts.remote_charged, 0);
    assert_int_equal(atomic_load(&target->fh->head.peer_refs), 0);
    assert_int_equal(atomic_load(&target->fh->head.recalls), 0);
    assert_int_equal(target->fh->peer[0]->recalls_sent, 0);
    assert_int_equal(target->fh->peer[0]->recalls_wanted, 0);
}

static void leave(struct sim *sim, struct sim_rank *from)
{
    (void)from;
    sim->on_send = NULL;
    sim->rank[0].left = true;
    aq_fh_peer_disconnect(sim->rank[1].fh, 0);
}

/* It was sent a recall, which it will not answer; or it does, late; and asks for something, late.
 * */
static void test_lost(void **state)
{
    struct sim *sim = sim_new(2, &config, true);
    struct sim_rank *target = &sim->rank[1];
    struct aq_fh_request request = request_for(sim, 20, 8, true),
                         late = request_for(sim, 40, 8, true);
    uint32_t key;

    (void)state;
    assert_true(ask(sim, &request));
    touch(sim, 60, true);
    key = request.hold.reg->key[0];
    aq_fh_release(sim->rank[0].fh, &request.hold);
    sim_replace(target, 20, 1);
    assert_false(sim_tell(target));
    aq_fh_progress(target->fh);
    assert_int_equal(sim->in_bag, 1);
    leave(sim, target);
    assert_forgotten(target);
    assert_true(sim_tell(target));
    assert_false(target->reg[key]->live);
    assert_int_equal(aq_fh_remote(sim->rank[0].fh, &late), AQ_PENDING);
    sim_drain(sim);
    leave(sim, target); /* again */
    assert_forgotten(target);
    assert_null(late.hold.region);
    sim_free(sim);
}

/* It leaves while a recall is being sent, which then is not. */
static void leave_and_refuse(struct sim *sim, struct sim_rank *from)
{
    leave(sim, from);
    sim->refuse = 100;
}

static void test_lost_while_recalled(void **state)
{
    struct sim *sim = sim_new(2, &config, true);
    struct sim_rank *target = &sim->rank[1];

    (void)state;
    touch(sim, 20, true);
    sim_replace(target, 20, 1);
    assert_false(sim_tell(target));
    sim->on_send = leave_and_refuse;
    aq_fh_progress(target->fh);
    assert_int_equal(sim->in_bag, 0);
    sim->refuse = 0;
    assert_forgotten(target);
    assert_true(sim_tell(target));
    aq_fh_progress(target->fh);
    assert_int_equal(sim->in_bag, 0);
    sim_free(sim);
}

/* It leaves while its move is served. */
static int leaving_cover(struct aq_fh_memmon *memmon, uintptr_t addr, size_t len)
{
    struct sim_rank *rank = (struct sim_rank *)((char *)memmon - offsetof(struct sim_rank, memmon));

    memmon->cover = sim_memmon_cover;
    leave(rank->sim, rank);
    return sim_memmon_cover(memmon, addr, len);
}

static void test_lost_while_served(void **state)
{
    struct sim *sim = sim_new(2, &config, true);
    struct aq_fh_request request = request_for(sim, 20, 8, true);

    (void)state;
    sim->rank[1].memmon.cover = leaving_cover;
    assert_int_equal(aq_fh_remote(sim->rank[0].fh, &request), AQ_PENDING);
    sim_drain(sim);
    assert_null(request.hold.region); /* no answer */
    assert_forgotten(&sim->rank[1]);
    sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recall),
        cmocka_unit_test(test_discard),
        cmocka_unit_test(test_recall_overtakes),
        cmocka_unit_test(test_recall_while_leaving),
        cmocka_unit_test(test_lost_while_pinned),
        cmocka_unit_test(test_once),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_lost_while_recalled),
        cmocka_unit_test(test_lost_while_served),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
