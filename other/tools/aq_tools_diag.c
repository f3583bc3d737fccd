/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_tools_diag.c - the self-tests that a client can run; see gasnett_run_diagnostics in
 * include/gasnet/tools_conduit.h. In the conduit libraries alone.
 * Owns      the handlers' table and the counts of replies
 * Threads   one call at a time; with par it starts threads of its own, which make no call of the
 *           conduit
 */
#include "other/tools/aq_tools.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/aq_log.h"

static struct aq_diag {
    unsigned iters, threads;
    unsigned int seed;
    gex_TM_t team;
    gex_Rank_t peer;
    unsigned char *local, *remote;
    atomic_int failures;
    /* shared by the threads */
    pthread_barrier_t barrier;
    gasnett_mutex_t mutex;
    gasnett_rwlock_t rwlock;
    gasnett_strongatomic32_t count32;
    gasnett_strongatomic64_t count64;
    uint64_t under_mutex, flag, data;
    /* replies */
    atomic_uint replies, wrong;
} aq_diag;

static void aq_diag_check(bool good, const char *what)
{
    if (good)
        return;
    /* relaxed: read when the threads have been joined */
    atomic_fetch_add_explicit(&aq_diag.failures, 1, memory_order_relaxed);
    aq_warn("gasnett_run_diagnostics: failed: %s", what);
}

static uint64_t aq_diag_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 24;
}

/* --- A: timers and numbers --- */

static void aq_diag_timers(void)
{
    char text[64];

    for (unsigned i = 0; i < aq_diag.iters; i++) {
        const gasnett_tick_t first = gasnett_ticks_now(), second = gasnett_ticks_now();

        aq_diag_check(second >= first, "ticks do not go backwards");
    }
    aq_diag_check(gasnett_ticks_to_ns(0) == 0, "no ticks are no time");
    aq_diag_check(gasnett_tick_granularityus() > 0, "the clock has a step");
    aq_diag_check(gasnett_parse_int("1.5KB", 1) == 1536, "1.5KB is 1536");
    aq_diag_check(strcmp(gasnett_format_number(10240, text, sizeof(text), 1), "10 KB") == 0,
                  "10240 is 10 KB");
    aq_diag_check(gasnett_count0s("\0a\0\0b", 5) == 3, "zero bytes are counted");
}

/* --- B, C, D: what the threads do together; number is the thread's index --- */

/* one thread publishes, the others see it whole */
static void aq_diag_fences(unsigned number)
{
    for (unsigned i = 1; i <= aq_diag.iters; i++) {
        if (number == 0) {
            __atomic_store_n(&aq_diag.data, i, __ATOMIC_RELAXED);
            gasnett_local_wmb();
            __atomic_store_n(&aq_diag.flag, i, __ATOMIC_RELAXED);
        } else {
            const uint64_t seen = __atomic_load_n(&aq_diag.flag, __ATOMIC_RELAXED);

            gasnett_local_rmb();
            aq_diag_check(__atomic_load_n(&aq_diag.data, __ATOMIC_RELAXED) >= seen,
                          "what was written before a fence is seen after one");
        }
    }
}

static void aq_diag_atomics(void)
{
    for (unsigned i = 0; i < aq_diag.iters; i++) {
        gasnett_strongatomic32_increment(&aq_diag.count32, GASNETT_ATOMIC_NONE);
        gasnett_strongatomic64_add(&aq_diag.count64, 3, GASNETT_ATOMIC_REL);
        for (;;) {
            const uint64_t now = gasnett_strongatomic64_read(&aq_diag.count64, GASNETT_ATOMIC_ACQ);

            if (gasnett_strongatomic64_compare_and_swap(&aq_diag.count64, now, now - 1,
                                                        GASNETT_ATOMIC_REL))
                break;
        }
    }
}

static void aq_diag_locks(void)
{
    for (unsigned i = 0; i < aq_diag.iters; i++) {
        gasnett_mutex_lock(&aq_diag.mutex);
        aq_diag.under_mutex++;
        gasnett_mutex_unlock(&aq_diag.mutex);
        gasnett_rwlock_rdlock(&aq_diag.rwlock);
        gasnett_rwlock_unlock(&aq_diag.rwlock);
        gasnett_rwlock_wrlock(&aq_diag.rwlock);
        gasnett_rwlock_unlock(&aq_diag.rwlock);
    }
}

static const char *aq_diag_sections;

static bool aq_diag_selects(char section)
{
    return aq_diag_sections == NULL || *aq_diag_sections == '\0'
           || strchr(aq_diag_sections, section) != NULL;
}

static void *aq_diag_thread(void *number)
{
    pthread_barrier_wait(&aq_diag.barrier);
    if (aq_diag_selects('B'))
        aq_diag_fences((unsigned)(uintptr_t)number);
    pthread_barrier_wait(&aq_diag.barrier);
    if (aq_diag_selects('C'))
        aq_diag_atomics();
    pthread_barrier_wait(&aq_diag.barrier);
    if (aq_diag_selects('D'))
        aq_diag_locks();
    return NULL;
}

static void aq_diag_together(void)
{
    const uint64_t all = (uint64_t)aq_diag.iters * aq_diag.threads;
    pthread_t *thread = calloc(aq_diag.threads, sizeof(*thread));

    if (thread == NULL || pthread_barrier_init(&aq_diag.barrier, NULL, aq_diag.threads) != 0)
        gasnett_fatalerror_nopos("gasnett_run_diagnostics: no memory for %u threads",
                                 aq_diag.threads);
    for (uintptr_t i = 1; i < aq_diag.threads; i++)
        if (pthread_create(&thread[i], NULL, aq_diag_thread, (void *)i) != 0)
            gasnett_fatalerror_nopos("gasnett_run_diagnostics: cannot start thread %" PRIuPTR, i);
    aq_diag_thread(NULL);
    for (unsigned i = 1; i < aq_diag.threads; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    pthread_barrier_destroy(&aq_diag.barrier);
    if (aq_diag_selects('C')) {
        aq_diag_check(gasnett_strongatomic32_read(&aq_diag.count32, 0) == (uint32_t)all,
                      "every increment counts");
        aq_diag_check(gasnett_strongatomic64_read(&aq_diag.count64, 0) == 2 * all,
                      "every addition and exchange counts");
    }
    if (aq_diag_selects('D'))
        aq_diag_check(aq_diag.under_mutex == all, "a mutex keeps the others out");
}

/* --- E, F: with the peer --- */

static void aq_diag_on_request(gex_Token_t token, gex_AM_Arg_t a, gex_AM_Arg_t b);
static void aq_diag_on_reply(gex_Token_t token, gex_AM_Arg_t a, gex_AM_Arg_t b);

enum { AQ_DIAG_REQUEST, AQ_DIAG_REPLY, AQ_DIAG_HANDLERS };

static gex_AM_Entry_t aq_diag_table[AQ_DIAG_HANDLERS] = {
    { 0, (gex_AM_Fn_t)aq_diag_on_request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL,
      "diagnostics request" },
    { 0, (gex_AM_Fn_t)aq_diag_on_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 2, NULL,
      "diagnostics reply" },
};

static void aq_diag_on_request(gex_Token_t token, gex_AM_Arg_t a, gex_AM_Arg_t b)
{
    gex_AM_ReplyShort2(token, aq_diag_table[AQ_DIAG_REPLY].gex_index, 0, a, b);
}

static void aq_diag_on_reply(gex_Token_t token, gex_AM_Arg_t a, gex_AM_Arg_t b)
{
    (void)token;
    if (b != ~a)
        atomic_fetch_add_explicit(&aq_diag.wrong, 1, memory_order_relaxed);
    /* release: a reader of the count sees what was wrong */
    atomic_fetch_add_explicit(&aq_diag.replies, 1, memory_order_release);
}

static void aq_diag_messages(void)
{
    atomic_store_explicit(&aq_diag.replies, 0, memory_order_relaxed);
    atomic_store_explicit(&aq_diag.wrong, 0, memory_order_relaxed);
    for (unsigned i = 0; i < aq_diag.iters; i++)
        gex_AM_RequestShort2(aq_diag.team, aq_diag.peer, aq_diag_table[AQ_DIAG_REQUEST].gex_index,
                             0, (gex_AM_Arg_t)i, (gex_AM_Arg_t)~i);
    /* acquire: pairs with the release in the handler */
    GASNET_BLOCKUNTIL(atomic_load_explicit(&aq_diag.replies, memory_order_acquire)
                      == aq_diag.iters);
    aq_diag_check(atomic_load_explicit(&aq_diag.wrong, memory_order_relaxed) == 0,
                  "a message comes back as it was sent");
}

/* random ranges of the peer's memory, written and read back */
static void aq_diag_transfers(void)
{
    unsigned char out[GASNETT_DIAGNOSTIC_BYTES], back[GASNETT_DIAGNOSTIC_BYTES];
    uint64_t state = aq_diag.seed;

    for (unsigned i = 0; i < aq_diag.iters; i++) {
        const size_t at = aq_diag_random(&state) % sizeof(out);
        const size_t len = aq_diag_random(&state) % (sizeof(out) - at) + 1;

        for (size_t k = 0; k < len; k++)
            out[k] = (unsigned char)aq_diag_random(&state);
        gex_RMA_PutBlocking(aq_diag.team, aq_diag.peer, aq_diag.remote + at, out, len, 0);
        memset(back, 0, len);
        gex_RMA_GetBlocking(aq_diag.team, back, aq_diag.peer, aq_diag.remote + at, len, 0);
        aq_diag_check(memcmp(out, back, len) == 0, "what was put can be got");
    }
}

void gasnett_diagnostic_gethandlers(gex_AM_Entry_t **table, int *count)
{
    *table = aq_diag_table;
    *count = AQ_DIAG_HANDLERS;
}

int gasnett_run_diagnostics(int iters, int threads, const char *sections, gex_TM_t team,
                            void *myseg, gex_Rank_t peer, void *peerseg, unsigned int seed)
{
    if (iters < 0 || threads < 1)
        gasnett_fatalerror_nopos("gasnett_run_diagnostics: %d iterations, %d threads", iters,
                                 threads);
#if GASNET_SEQ
    threads = 1;
#endif
    memset(&aq_diag, 0, sizeof(aq_diag));
    aq_diag.iters = (unsigned)iters;
    aq_diag.threads = (unsigned)threads;
    aq_diag.seed = seed;
    aq_diag.team = team;
    aq_diag.peer = peer;
    aq_diag.local = myseg;
    aq_diag.remote = peerseg;
    aq_diag_sections = sections;
    gasnett_mutex_init(&aq_diag.mutex);
    gasnett_rwlock_init(&aq_diag.rwlock);

    if (aq_diag_selects('A'))
        aq_diag_timers();
    aq_diag_together();
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    if (aq_diag_selects('E') && aq_diag_table[AQ_DIAG_REQUEST].gex_index != 0)
        aq_diag_messages();
    if (aq_diag_selects('F') && myseg != NULL && peerseg != NULL)
        aq_diag_transfers();
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0)); /* no rank needs this one's handlers any more */
    return atomic_load_explicit(&aq_diag.failures, memory_order_relaxed);
}
