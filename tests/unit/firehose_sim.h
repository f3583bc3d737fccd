/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * firehose_sim.h - ranks with firehose in one process, over a counting fake of the device and of
 * the network.
 *
 * A rank has an arena of real memory, whose pages can be holes (which cannot be pinned), read-only,
 * and be replaced: the page then gets a new generation, and earlier registrations refer to the old
 * one. A registration records the generations of its pages. Messages wait in a set and are
 * delivered in any order; sends fail now and then.
 *
 * The fake itself checks at every step: pinned bytes and regions stay within the two budgets;
 * nothing is unpinned twice, or while a transfer uses it; a transfer uses a live registration that
 * covers it, with the access it needs, and of pages at least as new as what the initiator can know
 * of. At the end every pin must have been undone.
 *
 * Transfers happen in two steps, start and end, with anything in between. A page of a target, and
 * of a source or destination, belongs to one operation at a time, so that bytes can be compared.
 *
 * Threads   any: the fake has a lock of its own
 */
#ifndef FIREHOSE_SIM_H
#define FIREHOSE_SIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "other/firehose/aq_fh_internal.h"
#include "tests/unit/aq_unit.h"

#define SIM_RANKS 8
#define SIM_PAGES 2048u /* of an arena */
#define SIM_PINS  65536u

enum sim_page { SIM_PLAIN, SIM_READ_ONLY, SIM_HOLE };

struct sim_pin {
    uintptr_t addr;
    size_t len;
    bool live, write;
    unsigned users;        /* transfers under way */
    uint32_t generation[]; /* of each page */
};

struct sim_message {
    struct sim_message *next;
    uint32_t from, to;
    bool is_answer;
    size_t len;
    uint8_t bytes[];
};

struct sim_rank {
    struct sim *sim;
    uint32_t rank;
    bool left; /* other ranks have been told that it has left */
    struct aq_fh *fh;
    uint8_t *arena;
    uint8_t page[SIM_PAGES];        /* enum sim_page */
    uint32_t generation[SIM_PAGES]; /* of what is there now */
    uint32_t known[SIM_PAGES];      /* that others may know of */
    bool busy[SIM_PAGES];           /* of an operation */
    struct sim_pin *reg[SIM_PINS];  /* by key */
    uint32_t regs;
    uint64_t reg_bytes, reg_regions, max_pinned;
    /* changes that the memory monitor has not passed on yet */
    struct aq_fh_memmon memmon;
    struct {
        uint32_t first, count;
    } event[64];
    unsigned events;
};

struct sim {
    uint32_t ranks;
    struct aq_fh_config config;
    pthread_mutex_t mutex;
    struct sim_rank rank[SIM_RANKS];
    struct sim_message *bag;
    unsigned in_bag;
    unsigned refuse; /* of 100 sends */
    uint64_t sends, delivered;
    void (*on_send)(struct sim *sim, struct sim_rank *from); /* before a request leaves; or NULL */
};

static _Thread_local uint64_t sim_seed = 1;

static inline uint64_t sim_random(void)
{
    sim_seed ^= sim_seed << 13;
    sim_seed ^= sim_seed >> 7;
    sim_seed ^= sim_seed << 17;
    return sim_seed;
}

static inline uint32_t sim_below(uint32_t n)
{
    return (uint32_t)((sim_random() >> 20) % n);
}

static inline void sim_lock(struct sim *sim)
{
    pthread_mutex_lock(&sim->mutex);
}

static inline void sim_unlock(struct sim *sim)
{
    pthread_mutex_unlock(&sim->mutex);
}

static inline uint32_t sim_page_of(const struct sim_rank *rank, uintptr_t addr)
{
    return (uint32_t)((addr - (uintptr_t)rank->arena) / AQ_FH_PAGE);
}

/* --- the device --- */

static int sim_op_pin(void *arg, uintptr_t addr, size_t len, bool write, struct aq_fh_reg *reg_out)
{
    struct sim_rank *rank = arg;
    const uint32_t pages = (uint32_t)(len / AQ_FH_PAGE);
    struct sim_pin *reg;

    assert_true(addr % AQ_FH_PAGE == 0 && len % AQ_FH_PAGE == 0 && len != 0);
    if (addr < (uintptr_t)rank->arena
        || addr + len > (uintptr_t)rank->arena + SIM_PAGES * AQ_FH_PAGE)
        return AQ_ERR_RESOURCE;
    sim_lock(rank->sim);
    reg = malloc(sizeof(*reg) + pages * sizeof(uint32_t));
    *reg = (struct sim_pin){ .addr = addr, .len = len, .live = true, .write = write };
    for (uint32_t i = 0; i < pages; i++) {
        const uint32_t page = sim_page_of(rank, addr) + i;

        if (rank->page[page] == SIM_HOLE || (rank->page[page] == SIM_READ_ONLY && write)) {
            sim_unlock(rank->sim);
            free(reg);
            return AQ_ERR_RESOURCE;
        }
        reg->generation[i] = rank->generation[page];
    }
    assert_true(rank->regs < SIM_PINS);
    rank->reg[rank->regs] = reg;
    reg_out->key[0] = rank->regs++;
    reg_out->key[AQ_FH_RAILS - 1] = ~reg_out->key[0];
    reg_out->handle = reg;
    rank->reg_bytes += len;
    rank->reg_regions++;
    if (rank->reg_bytes > rank->max_pinned)
        rank->max_pinned = rank->reg_bytes;
    assert_true(rank->reg_bytes <= rank->sim->config.remote_bytes + rank->sim->config.local_bytes);
    assert_true(rank->reg_regions
                <= (uint64_t)rank->sim->config.remote_regions + rank->sim->config.local_regions);
    sim_unlock(rank->sim);
    return AQ_OK;
}

static void sim_op_unpin(void *arg, const struct aq_fh_reg *handle)
{
    struct sim_rank *rank = arg;
    struct sim_pin *reg = handle->handle;

    sim_lock(rank->sim);
    assert_true(reg->live);
    assert_int_equal(reg->users, 0);
    reg->live = false;
    rank->reg_bytes -= reg->len;
    rank->reg_regions--;
    sim_unlock(rank->sim);
}

/* --- the network --- */

static void sim_put_in_bag(struct sim *sim, uint32_t from, uint32_t to, bool is_answer,
                           const void *msg, size_t len)
{
    struct sim_message *message = malloc(sizeof(*message) + len);

    *message = (struct sim_message){ .from = from, .to = to, .is_answer = is_answer, .len = len };
    memcpy(message->bytes, msg, len);
    sim_lock(sim);
    message->next = sim->bag;
    sim->bag = message;
    sim->in_bag++;
    sim_unlock(sim);
}

static int sim_op_request(void *arg, uint32_t peer, const void *msg, size_t nbytes)
{
    struct sim_rank *rank = arg;
    struct sim *sim = rank->sim;

    assert_true(nbytes <= sim->config.message && peer < sim->ranks);
    if (sim->on_send != NULL)
        sim->on_send(sim, rank);
    if (sim_below(100) < sim->refuse)
        return AQ_RETRY;
    sim_lock(sim);
    sim->sends++;
    sim_unlock(sim);
    sim_put_in_bag(sim, rank->rank, peer, false, msg, nbytes);
    return AQ_OK;
}

/* Take a message out; the link that leads to it. */
static struct sim_message *sim_take_out(struct sim *sim, struct sim_message **link)
{
    struct sim_message *message = *link;

    *link = message->next;
    sim->in_bag--;
    sim->delivered++;
    return message;
}

static void sim_handle(struct sim *sim, struct sim_message *message)
{
    _Alignas(8) uint8_t answer[AQ_FH_MESSAGE];
    size_t len;

    if (message->is_answer) {
        aq_fh_answered(sim->rank[message->to].fh, message->from, message->bytes, message->len);
    } else {
        len = aq_fh_serve(sim->rank[message->to].fh, message->from, message->bytes, message->len,
                          answer);
        assert_true(len <= sim->config.message && (len == 0) == sim->rank[message->from].left);
        if (len != 0)
            sim_put_in_bag(sim, message->to, message->from, true, answer, len);
    }
    free(message);
}

/* Deliver one message, whichever. False: there is none. */
static bool sim_deliver(struct sim *sim)
{
    struct sim_message *message, **link = &sim->bag;

    sim_lock(sim);
    if (sim->in_bag == 0) {
        sim_unlock(sim);
        return false;
    }
    for (uint32_t skip = sim_below(sim->in_bag); skip > 0; skip--)
        link = &(*link)->next;
    message = sim_take_out(sim, link);
    sim_unlock(sim);
    sim_handle(sim, message);
    return true;
}

/* --- changes of memory --- */

/* Reports one change to firehose; false if every change has been reported or is being reported. */
static bool sim_memmon_tell(struct sim_rank *rank)
{
    uint32_t first, count;

    sim_lock(rank->sim);
    if (rank->events == 0) {
        sim_unlock(rank->sim);
        return false;
    }
    rank->events--;
    first = rank->event[rank->events].first;
    count = rank->event[rank->events].count;
    sim_unlock(rank->sim);
    aq_fh_invalidate(rank->fh, (uintptr_t)rank->arena + first * AQ_FH_PAGE, count * AQ_FH_PAGE);
    atomic_fetch_sub_explicit(&rank->memmon.unsettled, 1, memory_order_release);
    return true;
}

/* What is unsettled may be for another thread to report, or a change after the last check. Its
 * maker need not come here, so a thread that waits checks again. */
static void sim_memmon_settle(struct aq_fh_memmon *memmon)
{
    struct sim_rank *rank = (struct sim_rank *)((char *)memmon - offsetof(struct sim_rank, memmon));

    while (atomic_load_explicit(&memmon->unsettled, memory_order_acquire) != 0)
        if (!sim_memmon_tell(rank))
            sched_yield();
}

/* Every 64th page cannot be monitored. */
static bool sim_unmonitored(uintptr_t addr, size_t len)
{
    const uintptr_t first = addr / AQ_FH_PAGE, last = (addr + len - 1) / AQ_FH_PAGE;

    return last - first >= 64 || (last - 5) / 64 != (first - 6) / 64;
}

static int sim_memmon_cover(struct aq_fh_memmon *memmon, uintptr_t addr, size_t len)
{
    (void)memmon;
    return sim_unmonitored(addr, len) ? AQ_ERR_RESOURCE : AQ_OK;
}

/* Replaces pages: existing registrations keep the old ones. */
static inline void sim_replace(struct sim_rank *rank, uint32_t first, uint32_t count)
{
    sim_lock(rank->sim);
    if (rank->events == 64) {
        sim_unlock(rank->sim);
        return;
    }
    for (uint32_t i = first; i < first + count; i++)
        rank->generation[i]++;
    rank->event[rank->events].first = first;
    rank->event[rank->events++].count = count;
    atomic_fetch_add_explicit(&rank->memmon.unsettled, 1, memory_order_release);
    sim_unlock(rank->sim);
}

/* The rank notifies the others, if it may: from now on they know of its changes so far. */
static inline bool sim_tell(struct sim_rank *rank)
{
    uint32_t *now = malloc(sizeof(rank->generation));
    bool quiet;

    sim_lock(rank->sim);
    memcpy(now, rank->generation, sizeof(rank->generation));
    sim_unlock(rank->sim);
    quiet = aq_fh_is_quiet(rank->fh);
    if (quiet) {
        sim_lock(rank->sim);
        for (uint32_t i = 0; i < SIM_PAGES; i++)
            if (now[i] > rank->known[i])
                rank->known[i] = now[i];
        sim_unlock(rank->sim);
    } else {
        aq_fh_settle(rank->fh);
    }
    free(now);
    return quiet;
}

/* --- life --- */

static struct sim *sim_new(uint32_t ranks, const struct aq_fh_config *config, bool monitored)
{
    const struct aq_fh_ops ops = { .reg = sim_op_pin,
                                   .dereg = sim_op_unpin,
                                   .send_request = sim_op_request };
    struct sim *sim = calloc(1, sizeof(*sim));

    sim->ranks = ranks;
    sim->config = *config;
    sim->config.size = ranks;
    pthread_mutex_init(&sim->mutex, NULL);
    for (uint32_t i = 0; i < ranks; i++) {
        struct sim_rank *rank = &sim->rank[i];

        rank->sim = sim;
        rank->rank = i;
        rank->arena = aligned_alloc(AQ_FH_GRANULE, SIM_PAGES * AQ_FH_PAGE);
        assert_non_null(rank->arena);
        memset(rank->arena, 0, SIM_PAGES * AQ_FH_PAGE);
        rank->memmon.settle = sim_memmon_settle;
        rank->memmon.cover = sim_memmon_cover;
        sim->config.rank = i;
        sim->config.memmon = monitored ? &rank->memmon : NULL;
        assert_int_equal(aq_fh_open(&sim->config, &ops, rank, &rank->fh), AQ_OK);
    }
    return sim;
}

/* The books of all ranks, against each other. No message is under way, and no transfer. */
static void sim_audit(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->ranks; i++) {
        struct aq_fh *fh = sim->rank[i].fh;
        struct aq_fh_counts counts;
        uint64_t locked = 0;

        aq_fh_counts(fh, &counts);
        assert_int_equal(counts.reg_bytes, sim->rank[i].reg_bytes);
        assert_int_equal(counts.reg_regions, sim->rank[i].reg_regions);
        assert_true(counts.local_charged <= sim->config.local_bytes);
        assert_true(fh->charged_regions <= sim->config.local_regions);
        for (uint32_t j = 0; j < sim->ranks; j++) {
            struct aq_fh_peer *target = aq_fh_peer_look(fh, j);
            struct aq_fh_peer *initiator = aq_fh_peer_look(sim->rank[j].fh, i);

            if (target == NULL || initiator == NULL || sim->rank[j].left)
                continue;
            assert_int_equal(target->referenced, initiator->used);
            assert_int_equal(target->referenced_regions, initiator->used_regions);
            assert_true(target->referenced <= fh->quota);
            assert_true(target->referenced_regions <= fh->quota_regions);
            assert_int_equal(target->recalls_wanted + target->recalls_sent, 0);
            locked += target->referenced;
        }
        assert_int_equal(locked, counts.remote_charged);
        assert_true(locked <= sim->config.remote_bytes);
        assert_int_equal(atomic_load(&fh->head.recalls), 0);
    }
}

/* Until nothing is under way. */
static void sim_drain(struct sim *sim)
{
    bool more = true;

    for (unsigned turns = 0; more; turns++) {
        assert_true(turns < 1000000);
        more = sim_deliver(sim);
        for (uint32_t i = 0; i < sim->ranks; i++) {
            aq_fh_settle(sim->rank[i].fh);
            if (aq_fh_has_work(sim->rank[i].fh)) {
                aq_fh_progress(sim->rank[i].fh);
                more = true;
            }
        }
    }
}

static void sim_free(struct sim *sim)
{
    sim_drain(sim);
    sim_audit(sim);
    for (uint32_t i = 0; i < sim->ranks; i++) {
        struct sim_rank *rank = &sim->rank[i];

        aq_fh_close(rank->fh);
        assert_int_equal(rank->reg_bytes, 0);
        assert_int_equal(rank->reg_regions, 0);
        for (uint32_t key = 0; key < rank->regs; key++) {
            assert_false(rank->reg[key]->live);
            free(rank->reg[key]);
        }
        free(rank->arena);
    }
    pthread_mutex_destroy(&sim->mutex);
    free(sim);
}

#endif
