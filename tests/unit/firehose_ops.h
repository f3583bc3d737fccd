/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * firehose_ops.h - puts and gets as a conduit makes them, step by step, over firehose_sim.h.
 *
 * An operation takes the peer's memory, then its own, transfers what both cover, and continues; the
 * bytes are compared at the end. A step never waits; the caller chooses what happens between two
 * steps.
 *
 * Threads   an operation belongs to one thread; its request may be answered on another
 */
#ifndef FIREHOSE_OPS_H
#define FIREHOSE_OPS_H

#include "tests/unit/firehose_sim.h"

#define SIM_OP_PAGES 40u

struct sim_op {
    struct sim_rank *from, *to;
    bool active, write, moving;
    atomic_bool answered, waiting;
    uintptr_t remote_addr, self;
    size_t len, at, part;
    struct aq_fh_chunks chunks;
    struct aq_fh_request request;
    struct aq_fh_hold remote, local;
    struct sim_pin *remote_pin, *local_pin;
    uint32_t *known_peer, *known_local; /* [SIM_PAGES] */
    uint64_t seed;
};

/* --- transfers by the device --- */

/* An end of a transfer is in use from here on. key: of a registration of the rank. */
static struct sim_pin *sim_use(struct sim_rank *rank, uint32_t key, uintptr_t addr, size_t len,
                               bool write, const uint32_t *known)
{
    const uint32_t first = sim_page_of(rank, addr), last = sim_page_of(rank, addr + len - 1);
    struct sim_pin *reg;

    sim_lock(rank->sim);
    assert_true(key < rank->regs);
    reg = rank->reg[key];
    assert_true(reg->live);
    assert_true(write <= reg->write);
    assert_true(addr >= reg->addr && addr + len <= reg->addr + reg->len);
    for (uint32_t page = first; page <= last; page++)
        assert_true(reg->generation[page - sim_page_of(rank, reg->addr)] >= known[page]);
    reg->users++;
    sim_unlock(rank->sim);
    return reg;
}

static void sim_unuse(struct sim_rank *rank, struct sim_pin *reg)
{
    sim_lock(rank->sim);
    assert_true(reg->live);
    reg->users--;
    sim_unlock(rank->sim);
}

/* --- operations --- */

/* Take pages that no other operation uses. */
static bool sim_take(struct sim_rank *rank, uintptr_t addr, size_t len, bool write)
{
    const uint32_t first = sim_page_of(rank, addr), last = sim_page_of(rank, addr + len - 1);
    bool free_pages = true;

    sim_lock(rank->sim);
    for (uint32_t page = first; page <= last; page++)
        if (rank->busy[page] || rank->page[page] == SIM_HOLE
            || (rank->page[page] == SIM_READ_ONLY && write))
            free_pages = false;
    for (uint32_t page = first; free_pages && page <= last; page++)
        rank->busy[page] = true;
    sim_unlock(rank->sim);
    return free_pages;
}

static void sim_give_back(struct sim_rank *rank, uintptr_t addr, size_t len)
{
    const uint32_t first = sim_page_of(rank, addr), last = sim_page_of(rank, addr + len - 1);

    sim_lock(rank->sim);
    for (uint32_t page = first; page <= last; page++)
        rank->busy[page] = false;
    sim_unlock(rank->sim);
}

static void sim_fill(uint8_t *at, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i++)
        at[i] = (uint8_t)((i * 31 + seed) ^ seed >> 8);
}

static bool sim_op_start(struct sim_op *op, struct sim_rank *from, struct sim_rank *to, bool write,
                         uintptr_t remote_addr, uintptr_t self, size_t len)
{
    if (!sim_take(to, remote_addr, len, write))
        return false;
    if (!sim_take(from, self, len, !write)) {
        sim_give_back(to, remote_addr, len);
        return false;
    }
    op->from = from;
    op->to = to;
    op->write = write;
    op->remote_addr = remote_addr;
    op->self = self;
    op->len = len;
    op->at = 0;
    op->chunks = (struct aq_fh_chunks){ 0 };
    op->remote.region = op->local.region = NULL;
    op->moving = false;
    op->seed = sim_random();
    atomic_store(&op->waiting, false);
    sim_fill((uint8_t *)(write ? self : remote_addr), len, op->seed);
    op->active = true;
    return true;
}

static void sim_op_end(struct sim_op *op)
{
    assert_memory_equal((void *)op->remote_addr, (void *)op->self, op->len);
    for (size_t i = 0; i < op->len; i += 97)
        assert_int_equal(((uint8_t *)op->self)[i], (uint8_t)((i * 31 + op->seed) ^ op->seed >> 8));
    sim_give_back(op->to, op->remote_addr, op->len);
    sim_give_back(op->from, op->self, op->len);
    op->active = false;
}

static void sim_op_answered(struct aq_fh_request *request)
{
    struct sim_op *op = request->arg;

    assert_false(atomic_exchange(&op->answered, true)); /* once */
}

/* What a rank can know of another, at the latest now. */
static void sim_know(struct sim_rank *rank, bool own, uint32_t *known_out)
{
    sim_lock(rank->sim);
    memcpy(known_out, own ? rank->generation : rank->known, sizeof(rank->known));
    sim_unlock(rank->sim);
}

static void sim_op_remote(struct sim_op *op)
{
    int rc;

    sim_know(op->to, false, op->known_peer);
    op->request = (struct aq_fh_request){ .peer = op->to->rank,
                                          .write = op->write,
                                          .addr = op->remote_addr + op->at,
                                          .nbytes = op->len - op->at,
                                          .done = sim_op_answered,
                                          .arg = op };
    if (sim_below(4) != 0)
        op->request.put = op->write ? (void *)(op->self + op->at) : NULL;
    if (sim_below(4) != 0)
        op->request.get = op->write ? NULL : (void *)(op->self + op->at);
    if (sim_below(2) != 0)
        op->request.chunk = 1 + sim_below(3) * AQ_FH_PAGE;
    atomic_store(&op->answered, false);
    atomic_store(&op->waiting, true);
    rc = aq_fh_remote(op->from->fh, &op->request);
    if (rc == AQ_PENDING)
        return;
    atomic_store(&op->waiting, false);
    if (rc == AQ_OK)
        op->remote = op->request.hold;
    else
        assert_int_equal(rc, AQ_RETRY);
}

static void sim_op_take_answer(struct sim_op *op)
{
    atomic_store(&op->waiting, false);
    assert_true(op->request.rc == AQ_OK || op->request.rc == AQ_RETRY);
    assert_true(op->request.carried <= op->len - op->at);
    op->at += op->request.carried;
    if (op->request.rc == AQ_OK)
        op->remote = op->request.hold;
    if (op->remote.region != NULL)
        assert_int_equal(op->remote.addr, op->remote_addr + op->at);
}

static void sim_op_local(struct sim_op *op)
{
    const uintptr_t addr = op->self + op->at;
    int rc;

    sim_know(op->from, true, op->known_local);
    rc = aq_fh_local_chunk(
        op->from->fh, addr, op->remote.len,
        aq_fh_chunk(&op->chunks, addr, op->remote.len, aq_fh_max_chunk(op->from->fh)), !op->write,
        &op->local);
    if (rc != AQ_OK) {
        assert_int_equal(rc, AQ_RETRY);
        return;
    }
    op->part = op->local.len;
    assert_true(op->part >= 1 && op->part <= op->remote.len && op->local.addr == addr);
    op->remote_pin = sim_use(op->to, op->remote.reg->key[0], op->remote.addr, op->part, op->write,
                             op->known_peer);
    op->local_pin =
        sim_use(op->from, op->local.reg->key[0], addr, op->part, !op->write, op->known_local);
    assert_int_equal(op->remote.reg->key[AQ_FH_RAILS - 1], ~op->remote.reg->key[0]);
    assert_ptr_equal(op->local_pin, op->local.reg->handle);
    op->moving = true;
}

static void sim_op_move(struct sim_op *op)
{
    void *remote_addr = (void *)(op->remote_addr + op->at), *self = (void *)(op->self + op->at);

    memcpy(op->write ? remote_addr : self, op->write ? self : remote_addr, op->part);
    sim_unuse(op->to, op->remote_pin);
    sim_unuse(op->from, op->local_pin);
    aq_fh_release(op->from->fh, &op->remote);
    aq_fh_release(op->from->fh, &op->local);
    op->at += op->part;
    op->moving = false;
}

/* One step of an active operation. */
static void sim_op_step(struct sim_op *op)
{
    if (op->moving)
        sim_op_move(op);
    else if (atomic_load(&op->waiting) && !atomic_load(&op->answered))
        return;
    else if (atomic_load(&op->waiting))
        sim_op_take_answer(op);
    else if (op->at == op->len)
        sim_op_end(op);
    else if (op->remote.region == NULL)
        sim_op_remote(op);
    else
        sim_op_local(op);
}

/* --- random traffic --- */

struct sim_traffic {
    struct sim *sim;
    unsigned ops;     /* at once */
    unsigned replace; /* of 1000 steps: pages are replaced */
    uint64_t steps;   /* that operations may take */
    uint64_t finish;  /* operations to be done */
};

static struct sim_op *sim_ops_new(unsigned count)
{
    struct sim_op *ops = calloc(count, sizeof(*ops));

    for (unsigned i = 0; i < count; i++) {
        ops[i].known_peer = malloc(SIM_PAGES * sizeof(uint32_t));
        ops[i].known_local = malloc(SIM_PAGES * sizeof(uint32_t));
    }
    return ops;
}

static void sim_ops_free(struct sim_op *ops, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        free(ops[i].known_peer);
        free(ops[i].known_local);
    }
    free(ops);
}

/* Somewhere: small or large, anywhere or near the last one. */
static void sim_op_random(struct sim_traffic *traffic, struct sim_op *op, uint32_t *cursor)
{
    struct sim *sim = traffic->sim;
    struct sim_rank *from = &sim->rank[sim_below(sim->ranks)],
                    *to = &sim->rank[sim_below(sim->ranks)];
    const size_t len =
        sim_below(3) != 0 ? 1 + sim_below(64) : 1 + sim_below(SIM_OP_PAGES * AQ_FH_PAGE);
    const uint32_t span = SIM_PAGES * AQ_FH_PAGE - (SIM_OP_PAGES + 1) * AQ_FH_PAGE;
    uint32_t remote_addr = sim_below(span);

    if (from == to)
        return;
    if (sim_below(2) != 0)
        remote_addr = *cursor = (uint32_t)((*cursor + len + sim_below(2) * AQ_FH_PAGE) % span);
    sim_op_start(op, from, to, sim_below(2) != 0, (uintptr_t)to->arena + remote_addr,
                 (uintptr_t)from->arena + sim_below(span), len);
}

static void sim_change(struct sim_traffic *traffic)
{
    struct sim *sim = traffic->sim;
    struct sim_rank *rank = &sim->rank[sim_below(sim->ranks)];

    if (rank->sim->config.memmon != NULL)
        sim_replace(rank, sim_below(SIM_PAGES - 64), 1 + sim_below(64));
}

/* Operations until traffic->finish are done. Fails if they do not get on. */
static void sim_traffic_run(struct sim_traffic *traffic)
{
    struct sim_op *ops = sim_ops_new(traffic->ops);
    struct sim *sim = traffic->sim;
    uint64_t done = 0, steps = 0;
    uint32_t cursor = 0;
    bool active = false;

    while (done < traffic->finish || active) {
        struct sim_op *op = &ops[sim_below(traffic->ops)];

        assert_true(steps++ < traffic->steps);
        if (op->active) {
            sim_op_step(op);
            done += !op->active;
        } else if (done < traffic->finish) {
            sim_op_random(traffic, op, &cursor);
        }
        if (sim_below(3) == 0)
            sim_deliver(sim);
        if (sim_below(1000) < traffic->replace)
            sim_change(traffic);
        if (sim_below(20) == 0)
            sim_tell(&sim->rank[sim_below(sim->ranks)]);
        if (sim_below(10) == 0)
            aq_fh_progress(sim->rank[sim_below(sim->ranks)].fh);
        active = false;
        for (unsigned i = 0; i < traffic->ops && !active && done >= traffic->finish; i++)
            active = ops[i].active;
    }
    sim_ops_free(ops, traffic->ops);
}

#endif
