/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_client.c - rows of what costs a client nothing but instructions: put and get of 8 bytes on
 * this host as clients write them, and messages to oneself.
 * Owns      the globals below, the handlers of these rows
 * Threads   one in every process; rank 0 works, the others wait in the library
 * Uses      bench.h
 *
 * Put and get: team, rank and address come from globals, which the compiler has to load anew after
 * each operation, and the peers change at random among the first 8 ranks of the job. The limit
 * loads as much: where the peer's segment is mapped from a table of pointers, the offset from the
 * same array; then a plain store or load. Nothing can be hoisted on either side. In the row
 * put8_store_rate the limit has finished addresses and is one store.
 *
 * Messages to oneself: the limit calls the handler through a pointer, with the same arguments,
 * after a copy of the payload if there is one. The budget is in nanoseconds above that.
 */
#include "bench.h"

#include <string.h>

#define AQ_TARGETS 4096 /* a power of two; more than a branch predictor learns by heart */
#define AQ_PEERS   8
#define AQ_PAYLOAD 64

struct aq_target {
    gex_Rank_t rank;
    uint64_t offset;       /* in the segment */
    void *owner, *address; /* the same place, as its owner names it and as mapped here */
};

/* Global, so that a compiler barrier makes every operation load them. */
extern gex_TM_t aq_client_tm;
extern gex_Rank_t aq_client_self;
extern unsigned char *const *aq_client_bases;
extern struct aq_target aq_client_targets[AQ_TARGETS];
extern uint64_t aq_client_word;
extern unsigned char aq_client_source[AQ_PAYLOAD], aq_client_copy[AQ_PAYLOAD];
extern void (*aq_client_short)(gex_Token_t, gex_AM_Arg_t);
extern void (*aq_client_medium)(gex_Token_t, void *, size_t, gex_AM_Arg_t);

gex_TM_t aq_client_tm;
gex_Rank_t aq_client_self;
unsigned char *const *aq_client_bases;
struct aq_target aq_client_targets[AQ_TARGETS];
uint64_t aq_client_word;
unsigned char aq_client_source[AQ_PAYLOAD], aq_client_copy[AQ_PAYLOAD];
void (*aq_client_short)(gex_Token_t, gex_AM_Arg_t);
void (*aq_client_medium)(gex_Token_t, void *, size_t, gex_AM_Arg_t);

/* --- put and get --- */

static gex_Rank_t aq_client_peers(const struct aq_job *job)
{
    return MIN(job->size, AQ_PEERS);
}

/* Are they all mapped here? */
static bool aq_client_maps_peers(const struct aq_job *job, const struct aq_row *row)
{
    (void)row;
    for (gex_Rank_t rank = 0; rank < aq_client_peers(job); rank++) {
        void *owner = NULL, *local = NULL;
        uintptr_t size;

        if (gex_Segment_QueryBound(job->tm, rank, &owner, &local, &size) != 0 || local == NULL)
            return false;
    }
    return true;
}

/* Targets over 8 pages of each peer's pool; what lies in each is the number of another one, so that
 * all of them are one circle. */
static void aq_client_prepare(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    static unsigned char *bases[AQ_PEERS];
    uint64_t random = 1;

    (void)row, (void)iters;
    if (job->rank != 0)
        return;
    aq_client_tm = job->tm;
    aq_client_bases = bases;
    for (uint64_t i = 0; i < AQ_TARGETS; i++) {
        struct aq_target *target = &aq_client_targets[i];
        void *owner = NULL, *local = NULL;
        uintptr_t size;

        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        target->rank = (gex_Rank_t)((random >> 33) % aq_client_peers(job));
        gex_Segment_QueryBound(job->tm, target->rank, &owner, &local, &size);
        bases[target->rank] = local;
        target->offset = AQ_POOL_OFFSET + 8 * i;
        target->owner = (unsigned char *)owner + target->offset;
        target->address = bases[target->rank] + target->offset;
        *(uint64_t *)target->address =
            (i * 1365 + 17) % AQ_TARGETS; /* a full period: 1364 = 4 * 341 */
    }
}

/* OPERATION on each target in turn. A macro because an operation is an expression, written out in
 * the loop as a client would. */
#define AQ_CLIENT_LOOP(name, operation)                                            \
    static void name(struct aq_job *job, const struct aq_row *row, uint64_t iters) \
    {                                                                              \
        (void)job, (void)row;                                                      \
        for (uint64_t i = 0; i < iters; i++) {                                     \
            const struct aq_target *target = &aq_client_targets[i % AQ_TARGETS];   \
                                                                                   \
            operation;                                                             \
            aq_limit_compiler_barrier();                                           \
        }                                                                          \
    }

#define AQ_CLIENT_PLACE(target) \
    (*(uint64_t *)(void *)(aq_client_bases[(target)->rank] + (target)->offset))

AQ_CLIENT_LOOP(aq_client_put, gex_RMA_PutBlocking(aq_client_tm, target->rank, target->owner,
                                                  &aq_client_word, 8, 0))
AQ_CLIENT_LOOP(aq_client_put_nbi, gex_RMA_PutNBI(aq_client_tm, target->rank, target->owner,
                                                 &aq_client_word, 8, GEX_EVENT_DEFER, 0))
AQ_CLIENT_LOOP(aq_client_put_val, gex_RMA_PutBlockingVal(aq_client_tm, target->rank, target->owner,
                                                         aq_client_word, 8, 0))
AQ_CLIENT_LOOP(aq_client_put_limit, AQ_CLIENT_PLACE(target) = aq_client_word)
AQ_CLIENT_LOOP(aq_client_store, *(uint64_t *)target->address = aq_client_word)

AQ_CLIENT_LOOP(aq_client_get, gex_RMA_GetBlocking(aq_client_tm, &aq_client_word, target->rank,
                                                  target->owner, 8, 0))
AQ_CLIENT_LOOP(aq_client_get_nbi,
               gex_RMA_GetNBI(aq_client_tm, &aq_client_word, target->rank, target->owner, 8, 0))
AQ_CLIENT_LOOP(aq_client_get_val,
               aq_client_word = gex_RMA_GetBlockingVal(aq_client_tm, target->rank, target->owner, 8,
                                                       0))
AQ_CLIENT_LOOP(aq_client_get_limit, aq_client_word = AQ_CLIENT_PLACE(target))

/* A list of global pointers: what one get brings decides rank and address of the next. */
static void aq_client_chain(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    (void)job, (void)row;
    aq_client_word = 0;
    for (uint64_t i = 0; i < iters; i++) {
        const struct aq_target *target = &aq_client_targets[aq_client_word];

        gex_RMA_GetBlocking(aq_client_tm, &aq_client_word, target->rank, target->owner, 8, 0);
        aq_limit_compiler_barrier();
    }
}

static void aq_client_chain_limit(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    (void)job, (void)row;
    aq_client_word = 0;
    for (uint64_t i = 0; i < iters; i++) {
        const struct aq_target *target = &aq_client_targets[aq_client_word];

        aq_client_word = AQ_CLIENT_PLACE(target);
        aq_limit_compiler_barrier();
    }
}

/* --- messages to oneself --- */

static void aq_h_self_short(gex_Token_t token, gex_AM_Arg_t arg)
{
    (void)token;
    aq_client_word += (uint32_t)arg;
}

static void aq_h_self_medium(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t arg)
{
    (void)token, (void)buf;
    aq_client_word += (uint32_t)arg + nbytes;
}

void aq_client_register(struct aq_job *job)
{
    gex_AM_Entry_t table[] = {
        { AQ_H_SELF_SHORT, (gex_AM_Fn_t)aq_h_self_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1,
          NULL, "self_short" },
        { AQ_H_SELF_MEDIUM, (gex_AM_Fn_t)aq_h_self_medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST,
          1, NULL, "self_medium" },
    };

    gex_EP_RegisterHandlers(job->ep, table, sizeof(table) / sizeof(table[0]));
    aq_client_tm = job->tm;
    aq_client_self = job->rank;
    aq_client_short = aq_h_self_short;
    aq_client_medium = aq_h_self_medium;
}

static void aq_client_negotiated(void)
{
    gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(aq_client_tm, aq_client_self, NULL,
                                                      AQ_PAYLOAD, AQ_PAYLOAD, NULL, 0, 1);

    memcpy(gex_AM_SrcDescAddr(sd), aq_client_source, AQ_PAYLOAD);
    gex_AM_CommitRequestMedium1(sd, AQ_H_SELF_MEDIUM, AQ_PAYLOAD, 1);
}

static void aq_client_copy_and_call(void)
{
    memcpy(aq_client_copy, aq_client_source, AQ_PAYLOAD);
    aq_limit_compiler_barrier();
    aq_client_medium(NULL, aq_client_copy, AQ_PAYLOAD, 1);
}

#define AQ_SELF_LOOP(name, operation)                                              \
    static void name(struct aq_job *job, const struct aq_row *row, uint64_t iters) \
    {                                                                              \
        (void)job, (void)row;                                                      \
        for (uint64_t i = 0; i < iters; i++) {                                     \
            operation;                                                             \
            aq_limit_compiler_barrier();                                           \
        }                                                                          \
    }

AQ_SELF_LOOP(aq_self_short,
             gex_AM_RequestShort1(aq_client_tm, aq_client_self, AQ_H_SELF_SHORT, 0, 1))
AQ_SELF_LOOP(aq_self_short_limit, aq_client_short(NULL, 1))
AQ_SELF_LOOP(aq_self_medium,
             gex_AM_RequestMedium1(aq_client_tm, aq_client_self, AQ_H_SELF_MEDIUM, aq_client_source,
                                   AQ_PAYLOAD, GEX_EVENT_NOW, 0, 1))
AQ_SELF_LOOP(aq_self_negotiated, aq_client_negotiated())
AQ_SELF_LOOP(aq_self_medium_limit, aq_client_copy_and_call())

#define CLIENT(variable, row_name, subject_fn, limit_fn, limit_text) \
    const struct aq_row_kind variable = {                            \
        .name = row_name,                                            \
        .limit_name = limit_text,                                    \
        .subject = subject_fn,                                       \
        .limit = limit_fn,                                           \
        .prepare = aq_client_prepare,                                \
        .possible = aq_client_maps_peers,                            \
    }
#define STORE "store through a table"
#define LOAD  "load through a table"

CLIENT(aq_kind_put8_rate, "put8_rate", aq_client_put, aq_client_put_limit, STORE);
CLIENT(aq_kind_put8_nbi_rate, "put8_nbi_rate", aq_client_put_nbi, aq_client_put_limit, STORE);
CLIENT(aq_kind_putval8, "putval8_rate", aq_client_put_val, aq_client_put_limit, STORE);
CLIENT(aq_kind_put8_store, "put8_store_rate", aq_client_put, aq_client_store, "one store");
CLIENT(aq_kind_get8_rate, "get8_rate", aq_client_get, aq_client_get_limit, LOAD);
CLIENT(aq_kind_get8_nbi_rate, "get8_nbi_rate", aq_client_get_nbi, aq_client_get_limit, LOAD);
CLIENT(aq_kind_getval8_rate, "getval8_rate", aq_client_get_val, aq_client_get_limit, LOAD);
CLIENT(aq_kind_get8_pair, "get8_pair_latency", aq_client_chain, aq_client_chain_limit, LOAD);

#define SELF(variable, row_name, subject_fn, limit_fn, limit_text) \
    const struct aq_row_kind variable = {                          \
        .name = row_name,                                          \
        .limit_name = limit_text,                                  \
        .subject = subject_fn,                                     \
        .limit = limit_fn,                                         \
    }

SELF(aq_kind_self_short, "self_short", aq_self_short, aq_self_short_limit, "indirect call");
SELF(aq_kind_self_medium, "self_medium", aq_self_medium, aq_self_medium_limit,
     "copy, indirect call");
SELF(aq_kind_self_negotiated, "self_negotiated", aq_self_negotiated, aq_self_medium_limit,
     "copy, indirect call");
