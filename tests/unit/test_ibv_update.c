/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ibv_update.c - credits of the ibv conduit, exhaustively in small windows, and the list of
 * pending credit updates.
 *
 * Explored  every order of sending, arriving, handling, and telling by head or cell, for one
 *           channel of a small window, wherever the counts stand, also where they wrap: no fragment
 *           finds the receive queue empty, the sender never exceeds its limit, and every state lets
 *           a message through in the end
 * Updates   a peer is in the list at most once and leaves it when it is told; an update that is not
 *           due stays; a write without space is repeated; a peer that has disconnected is told
 *           nothing
 */
#include "tests/unit/aq_unit.h"

#include <stdlib.h>
#include <string.h>

#include "conduits/ibv/aq_ibv_credit.h"

#define WINDOW AQ_IBV_WINDOW_MIN
#define DEPTH  11 /* steps of an exploration */

/* --- one channel, every order --- */

struct model {
    struct aq_ibv_credit_out out;
    struct aq_ibv_cell cell;
    struct aq_ibv_credit_in in;
    uint32_t wire, posted, waiting; /* fragments on the way; buffers posted, in handlers' hands */
};

static void model_open(struct model *model, uint32_t base)
{
    memset(model, 0, sizeof(*model));
    aq_ibv_credit_open(&model->in, WINDOW);
    model->posted = WINDOW;
    model->out.base.sent = model->out.wanted = base;
    atomic_store(&model->out.base.limit, base + WINDOW);
    model->in.arrived = model->in.retired = model->in.want_at = base;
    atomic_store(&model->in.base.limit, base + WINDOW);
    atomic_store(&model->in.base.advertised, base + WINDOW);
    model->in.written = base + WINDOW;
}

enum step { SEND, SEND_TWO, ARRIVE, HANDLE, TELL_HEAD, TELL_CELL, STEPS };

static void model_tell(struct model *model, bool head)
{
    const uint32_t limit = aq_ibv_credit_latest(&model->in);

    if (head) {
        aq_credit_advertise(&model->in.base, limit);
        aq_ibv_credit_learn(&model->out, limit);
    } else {
        aq_ibv_credit_wrote(&model->in, limit);
        atomic_store(&model->cell.word[0], aq_ibv_cell_word(limit));
    }
}

/* False: the step changes nothing in this state. */
static bool model_step(struct model *model, enum step step)
{
    switch (step) {
    case SEND:
    case SEND_TWO:
        if (!aq_ibv_credit_claim(&model->out, &model->cell, 0, step == SEND ? 1 : 2, 0))
            return false;
        model->wire += step == SEND ? 1 : 2;
        return true;
    case ARRIVE:
        if (model->wire == 0)
            return false;
        model->wire--;
        assert_true(model->posted > 0); /* what credits promise */
        model->posted--;
        model->waiting++;
        assert_true(aq_ibv_credit_arrive(&model->in, 0));
        return true;
    case HANDLE:
        if (model->waiting == 0)
            return false;
        model->waiting--;
        aq_ibv_credit_return(&model->in, false);
        model->posted++;
        aq_ibv_credit_add(&model->in, 1);
        return true;
    default:
        if (aq_ibv_credit_latest(&model->in)
            == (step == TELL_HEAD ? atomic_load(&model->out.base.limit)
                                  : (uint32_t)atomic_load(&model->cell.word[0])))
            return false;
        model_tell(model, step == TELL_HEAD);
        return true;
    }
}

static void model_check(struct model *model, uint32_t base)
{
    const uint32_t left = aq_ibv_credit_left(&model->out, &model->cell, 0);

    assert_true(left <= WINDOW);
    assert_true(left + model->wire <= model->posted);
    assert_int_equal(model->posted + model->waiting, WINDOW);
    assert_int_equal(model->out.base.sent - base,
                     model->in.retired - base + model->waiting + model->wire);
}

/* The receiver serves everything and tells what is due: the sender has a credit. */
static void model_settles(struct model model)
{
    while (model_step(&model, ARRIVE) || model_step(&model, HANDLE))
        continue;
    if (aq_ibv_credit_due(&model.in))
        model_tell(&model, false);
    assert_true(aq_ibv_credit_left(&model.out, &model.cell, 0) > WINDOW / 2);
}

static uint64_t explore(const struct model *from, uint32_t base, int depth)
{
    uint64_t states = 1;

    for (enum step step = 0; depth > 0 && step < STEPS; step++) {
        struct model model = *from;

        if (!model_step(&model, step))
            continue;
        model_check(&model, base);
        model_settles(model);
        states += explore(&model, base, depth - 1);
    }
    return states;
}

static void test_exhaustive(void **state)
{
    /* 0, and counts that wrap: first the limit, then what was sent */
    static const uint32_t bases[] = {
        0, UINT32_MAX - 8, UINT32_MAX - WINDOW, UINT32_MAX - 1, UINT32_MAX, INT32_MAX - 2
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
        struct model model;

        model_open(&model, bases[i]);
        assert_true(explore(&model, bases[i], DEPTH) > 10000);
    }
}

/* All or nothing, with a reserve, and not while a stream has the channel. */
static void test_claim(void **state)
{
    (void)state;
    for (uint32_t fragments = 1; fragments <= WINDOW + 1; fragments++)
        for (uint32_t reserve = 0; reserve <= 1; reserve++) {
            const bool fits = fragments + reserve <= WINDOW;
            struct model model;

            model_open(&model, UINT32_MAX - 1);
            assert_int_equal(aq_ibv_credit_claim(&model.out, &model.cell, 0, fragments, reserve),
                             fits);
            assert_int_equal(aq_ibv_credit_left(&model.out, &model.cell, 0),
                             fits ? WINDOW - fragments : WINDOW);
            model_open(&model, UINT32_MAX - 1);
            model.out.barred = AQ_IBV_BARRED;
            assert_false(aq_ibv_credit_claim(&model.out, &model.cell, 0, fragments, reserve));
        }
}

/* A request for credits costs one, is made once, and again when it was not sent or was met. */
static void test_ask(void **state)
{
    struct model model;

    (void)state;
    model_open(&model, UINT32_MAX - 1);
    assert_true(aq_ibv_credit_ask(&model.out, &model.cell, 0, 9));
    assert_int_equal(aq_ibv_credit_left(&model.out, &model.cell, 0), WINDOW - 1);
    assert_false(aq_ibv_credit_ask(&model.out, &model.cell, 0, 9));
    aq_ibv_credit_unask(&model.out);
    assert_int_equal(aq_ibv_credit_left(&model.out, &model.cell, 0), WINDOW);
    assert_true(aq_ibv_credit_ask(&model.out, &model.cell, 0, 9));
    aq_ibv_credit_learn(&model.out, model.out.base.sent + 9);
    assert_true(aq_ibv_credit_ask(&model.out, &model.cell, 0, 9));
    /* nothing to ask with, or the channel is a stream's */
    model_open(&model, 0);
    assert_true(aq_ibv_credit_claim(&model.out, &model.cell, 0, WINDOW, 0));
    assert_false(aq_ibv_credit_ask(&model.out, &model.cell, 0, 9));
    model_open(&model, 0);
    model.out.barred = AQ_IBV_BARRED;
    assert_false(aq_ibv_credit_ask(&model.out, &model.cell, 0, 9));
}

/* --- pending updates --- */

#define PEERS 3

static struct aq_ibv_flow *peers[PEERS]; /* aligned */
static struct aq_ibv_cell cells[PEERS];  /* where those peers write that they have disconnected */
static struct aq_ibv_updates updates;
static int writes[PEERS], space; /* space: writes that still fit the queue */
static uint64_t words[PEERS][AQ_IBV_CELL_WORDS];

static bool write_to(struct aq_ibv_flow *flow, const uint64_t what[AQ_IBV_CELL_WORDS])
{
    for (int i = 0; i < PEERS; i++) {
        if (peers[i] != flow || space == 0)
            continue;
        space--;
        writes[i]++;
        memcpy(words[i], what, sizeof(words[i]));
        return true;
    }
    return false;
}

static int setup(void **state)
{
    (void)state;
    memset(&updates, 0, sizeof(updates));
    memset(writes, 0, sizeof(writes));
    memset(cells, 0, sizeof(cells));
    updates.write = write_to;
    space = 1000;
    for (int i = 0; i < PEERS; i++) {
        peers[i] = aligned_alloc(AQ_CACHE_LINE, sizeof(*peers[i]));
        memset(peers[i], 0, sizeof(*peers[i]));
        peers[i]->cell = &cells[i];
        for (unsigned channel = 0; channel < AQ_IBV_CHANNELS; channel++)
            aq_ibv_credit_open(&peers[i]->in[channel], 8);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < PEERS; i++)
        free(peers[i]);
    return 0;
}

/* n messages of a peer arrive and are handled. */
static void serve(int peer, unsigned channel, uint32_t n)
{
    struct aq_ibv_credit_in *in = &peers[peer]->in[channel];

    for (uint32_t i = 0; i < n; i++) {
        assert_true(aq_ibv_credit_arrive(in, 0));
        aq_ibv_credit_return(in, false);
        aq_ibv_credit_add(in, 1);
        peers[peer]->handled++;
        aq_ibv_update_queue(&updates, peers[peer], channel);
    }
}

static unsigned listed(int peer)
{
    unsigned count = 0, length = 0;

    for (struct aq_ibv_flow *flow = atomic_load(&updates.first); flow != NULL;
         flow = flow->next_pending) {
        assert_true(++length <= PEERS); /* no ring */
        count += flow == peers[peer];
    }
    return count;
}

static void test_due_or_not(void **state)
{
    (void)state;
    serve(0, AQ_IBV_REQUEST, 3); /* less than half of 8 */
    aq_ibv_updates_poll(&updates, false);
    assert_int_equal(writes[0], 0);
    assert_int_equal(listed(0), 1);
    serve(0, AQ_IBV_REQUEST, 1); /* half: due */
    serve(1, AQ_IBV_REPLY, 1);
    assert_true(atomic_load(&updates.due));
    aq_ibv_updates_poll(&updates, false);
    assert_int_equal(writes[0], 1);
    assert_int_equal(words[0][AQ_IBV_REQUEST], aq_ibv_cell_word(12));
    assert_int_equal(words[0][AQ_IBV_REPLY], aq_ibv_cell_word(8));
    assert_int_equal(words[0][AQ_IBV_CHANNELS], 4);
    assert_int_equal(listed(0), 0);
    assert_false(peers[0]->update_pending);
    assert_false(atomic_load(&updates.due));
    /* the other one stays until everything is sent */
    assert_int_equal(writes[1], 0);
    assert_int_equal(listed(1), 1);
    aq_ibv_updates_poll(&updates, true);
    assert_int_equal(writes[1], 1);
    assert_int_equal(listed(1), 0);
    assert_null(atomic_load(&updates.first));
}

/* Once in the list, however many messages were handled, in whichever channels. */
static void test_once(void **state)
{
    (void)state;
    for (int i = 0; i < PEERS; i++)
        for (unsigned channel = 0; channel < AQ_IBV_CHANNELS; channel++)
            serve(i, channel, 6);
    for (int i = 0; i < PEERS; i++)
        assert_int_equal(listed(i), 1);
    aq_ibv_updates_poll(&updates, false);
    for (int i = 0; i < PEERS; i++) {
        assert_int_equal(writes[i], 1); /* one write for both channels */
        assert_int_equal(listed(i), 0);
    }
    assert_int_equal(aq_counter_get(&updates.written), PEERS);
    /* and again */
    serve(1, AQ_IBV_REQUEST, 4);
    assert_int_equal(listed(1), 1);
}

/* Without space a due update stays due, and nobody counts it as told. */
static void test_no_space(void **state)
{
    (void)state;
    serve(0, AQ_IBV_REQUEST, 4);
    serve(1, AQ_IBV_REQUEST, 4);
    serve(2, AQ_IBV_REQUEST, 1);
    space = 1;
    aq_ibv_updates_poll(&updates, false);
    assert_int_equal(writes[0] + writes[1], 1);
    assert_int_equal(listed(0) + listed(1), 1);
    assert_int_equal(listed(2), 1);
    assert_true(atomic_load(&updates.due));
    for (int i = 0; i < 2; i++)
        assert_int_equal(aq_credit_advertised(&peers[i]->in[AQ_IBV_REQUEST].base),
                         writes[i] ? 12 : 8);
    space = 2;
    aq_ibv_updates_poll(&updates, false);
    assert_int_equal(writes[0], 1);
    assert_int_equal(writes[1], 1);
    assert_int_equal(writes[2], 0);
    assert_false(atomic_load(&updates.due));
}

/* A head has told the limit: no write, and the peer leaves the list. */
static void test_reported_by_head(void **state)
{
    struct aq_ibv_credit_in *in = &peers[0]->in[AQ_IBV_REQUEST];

    (void)state;
    serve(0, AQ_IBV_REQUEST, 5);
    aq_credit_advertise(&in->base, aq_ibv_credit_latest(in));
    aq_ibv_updates_poll(&updates, true);
    assert_int_equal(writes[0], 0);
    assert_int_equal(listed(0), 0);
    assert_false(peers[0]->update_pending);
}

static void test_disconnected(void **state)
{
    (void)state;
    serve(0, AQ_IBV_REQUEST, 8);
    atomic_store(&cells[0].disconnected, 1);
    aq_ibv_updates_poll(&updates, true);
    assert_int_equal(writes[0], 0);
    assert_int_equal(listed(0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exhaustive),
        cmocka_unit_test(test_claim),
        cmocka_unit_test(test_ask),
        cmocka_unit_test_setup_teardown(test_due_or_not, setup, teardown),
        cmocka_unit_test_setup_teardown(test_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_space, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reported_by_head, setup, teardown),
        cmocka_unit_test_setup_teardown(test_disconnected, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
