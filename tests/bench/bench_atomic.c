/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_atomic.c - rows of remote atomics against the processor's own on the same memory.
 * Owns      the domains
 * Threads   one in every process
 * Uses      bench.h, gasnet_ratomic.h
 *
 * The contended rows have all ranks at one word of rank 0; their time is that of one operation of
 * one rank.
 */
#include "bench.h"

#include <gasnet_ratomic.h>

static gex_AD_t aq_ints, aq_doubles;

void aq_atomic_start(struct aq_job *job)
{
    gex_AD_Create(&aq_ints, job->tm, GEX_DT_I64, GEX_OP_ADD | GEX_OP_FADD | GEX_OP_FCAS, 0);
    gex_AD_Create(&aq_doubles, job->tm, GEX_DT_DBL, GEX_OP_FADD, 0);
}

/* A word of rank 1, beside which no other row works. */
static int64_t *aq_word_owner(const struct aq_job *job)
{
    return (int64_t *)(void *)(job->peer_owner + AQ_POOL_OFFSET - 4096);
}

static int64_t *aq_word_local(const struct aq_job *job)
{
    return (int64_t *)(void *)(job->peer_local + AQ_POOL_OFFSET - 4096);
}

static void aq_fadd(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    int64_t *word = aq_word_owner(job), old;

    (void)row;
    for (uint64_t i = 0; i < iters; i++)
        gex_Event_Wait(gex_AD_OpNB_I64(aq_ints, &old, 1, word, GEX_OP_FADD, 1, 0, 0));
}

static void aq_fadd_limit(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    int64_t *word = aq_word_local(job);
    volatile int64_t old;

    (void)row;
    for (uint64_t i = 0; i < iters; i++)
        old = __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
    (void)old;
}

static void aq_add(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    int64_t *word = aq_word_owner(job);

    (void)row;
    for (uint64_t i = 0; i < iters; i++)
        gex_AD_OpNBI_I64(aq_ints, NULL, 1, word, GEX_OP_ADD, 1, 0, 0);
    gex_NBI_Wait(GEX_EC_RMW, 0);
}

static void aq_fcas(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    int64_t *word = aq_word_owner(job), old;

    (void)row;
    for (uint64_t i = 0; i < iters; i++)
        gex_Event_Wait(gex_AD_OpNB_I64(aq_ints, &old, 1, word, GEX_OP_FCAS, 1, 2, 0));
}

static void aq_fcas_limit(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    int64_t *word = aq_word_local(job);

    (void)row;
    for (uint64_t i = 0; i < iters; i++) {
        int64_t expected = 1;

        __atomic_compare_exchange_n(word, &expected, 2, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        aq_limit_compiler_barrier();
    }
}

static void aq_fadd_double(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    void *word = aq_word_owner(job) + 16;
    double old;

    (void)row;
    for (uint64_t i = 0; i < iters; i++)
        gex_Event_Wait(gex_AD_OpNB_DBL(aq_doubles, &old, 1, word, GEX_OP_FADD, 1, 0, 0));
}

/* The processor has no such instruction: compare-and-swap until it holds. */
static void aq_fadd_double_limit(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    uint64_t *word = (uint64_t *)(void *)(aq_word_local(job) + 16);

    (void)row;
    for (uint64_t i = 0; i < iters; i++) {
        uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED), sum;

        do {
            double value;

            __builtin_memcpy(&value, &old, sizeof(value));
            value += 1;
            __builtin_memcpy(&sum, &value, sizeof(sum));
        } while (
            !__atomic_compare_exchange_n(word, &old, sum, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    }
}

/* rank 0's word, for everybody */
static void aq_contended(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    unsigned char *base = job->rank == 0 ? job->segment : job->peer_owner;
    void *word = base + AQ_POOL_OFFSET - 2048;
    int64_t old;

    (void)row;
    for (uint64_t i = 0; i < iters; i++)
        gex_Event_Wait(gex_AD_OpNB_I64(aq_ints, &old, 0, word, GEX_OP_FADD, 1, 0, 0));
}

static void aq_contended_limit(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    int64_t *word = (int64_t *)(void *)(aq_job_shared_pool(job) - 2048);
    volatile int64_t old;

    (void)row;
    for (uint64_t i = 0; i < iters; i++)
        old = __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
    (void)old;
}

const struct aq_row_kind aq_kind_fadd = { .name = "fadd",
                                          .limit_name = "locked fetch-add",
                                          .subject = aq_fadd,
                                          .limit = aq_fadd_limit,
                                          .remote = { "UDP ping-pong", aq_remote_ping,
                                                      aq_remote_pong, false },
                                          .raw = AQ_RAW_FADD };
const struct aq_row_kind aq_kind_add = {
    .name = "add_nbi", .limit_name = "locked fetch-add", .subject = aq_add, .limit = aq_fadd_limit
};
const struct aq_row_kind aq_kind_fcas = {
    .name = "fcas", .limit_name = "compare-exchange", .subject = aq_fcas, .limit = aq_fcas_limit
};
const struct aq_row_kind aq_kind_fadd_double = { .name = "fadd_double",
                                                 .limit_name = "compare-exchange loop",
                                                 .subject = aq_fadd_double,
                                                 .limit = aq_fadd_double_limit };
const struct aq_row_kind aq_kind_fadd_contended = { .name = "fadd_contended",
                                                    .limit_name = "locked fetch-add",
                                                    .subject = aq_contended,
                                                    .subject_peer = aq_contended,
                                                    .limit = aq_contended_limit,
                                                    .limit_peer = aq_contended_limit,
                                                    .everyone = true };
