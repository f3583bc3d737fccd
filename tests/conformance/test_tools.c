/*
 * test_tools.c - gasnet_tools.h in a job: fatal-error names, environment of the job, texts of
 * transfers and constants, values of constant size, self-tests, what the header relies on beside
 * gasnetex.h. Ranks 1+. Conduits all. Source GASNet tools specification 1.20, sections 10 to 16.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"
#include "gasnet_tools.h"

#include <unistd.h>

#ifndef gasnett_fatalerror_nopos
#error "clients test gasnett_fatalerror_nopos by #ifdef"
#endif
#if !defined(gasnett_fatalerror) || !defined(gasnett_current_loc)
#error "these are macros"
#endif

GASNETT_IDENT(test_ident, "$TestTools: 1 $");

/* What a client does at file scope against warnings about names that it does not use. */
const void *const test_private_names[] = { (const void *)&_gasneti_threadkey_init,
                                           (const void *)&_gasnett_trace_printf_noop };

static gasnett_mutex_t mutex = GASNETT_MUTEX_INITIALIZER;
static gasnett_atomic_t counter = gasnett_atomic_init(0);
static int counted;

static void check_mode(void)
{
    rule("tools 1.1: the mode follows the conduit's");
#if GASNET_PAR
    AQ_CHECK(GASNETT_THREAD_SAFE == 1);
    AQ_CHECK(strcmp(_STRINGIFY(GASNETT_THREAD_MODEL), "PAR") == 0);
#else
    AQ_CHECK(GASNETT_THREAD_SINGLE == 1);
    AQ_CHECK(strcmp(_STRINGIFY(GASNETT_THREAD_MODEL), "SEQ") == 0);
#endif
#if GASNET_SEQ
    AQ_CHECK_EQ(GASNETT_MAX_THREADS, 1);
#else
    AQ_CHECK_EQ(GASNETT_MAX_THREADS, 256);
#endif
    rule("tools 5.3: the fences of atomics have the bits of remote atomics' flags");
    AQ_CHECK_EQ(GASNETT_ATOMIC_REL, GEX_FLAG_AD_REL);
    AQ_CHECK_EQ(GASNETT_ATOMIC_ACQ, GEX_FLAG_AD_ACQ);
}

static void check_env(void)
{
    rule("tools 10: the job's environment, the same as gasnet_getenv; own values come first");
    setenv("TEST_TOOLS_LATER", "later", 1);
    AQ_CHECK(strcmp(gasnett_getenv("PATH"), gasnet_getenv("PATH")) == 0);
    AQ_CHECK(strcmp(gasnett_getenv("TEST_TOOLS_LATER"), "later") == 0);
    gasnett_setenv("TEST_TOOLS", "mine");
    AQ_CHECK(strcmp(gasnett_getenv("TEST_TOOLS"), "mine") == 0);
    AQ_CHECK(strcmp(gasnet_getenv("TEST_TOOLS"), "mine") == 0);
    gasnett_unsetenv("TEST_TOOLS");
    AQ_CHECK(gasnett_getenv("TEST_TOOLS") == NULL && gasnet_getenv("TEST_TOOLS") == NULL);
    AQ_CHECK(gasnett_verboseenv() == 0 || gasnett_verboseenv() == 1);
    AQ_CHECK_EQ(gasnett_getenv_int_withdefault("TEST_TOOLS", 77, 0), 77);
}

#if GASNET_PAR
static void *add(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10000; i++) {
        gasnett_atomic_increment(&counter, 0);
        gasnett_mutex_lock(&mutex);
        counted++;
        gasnett_mutex_unlock(&mutex);
    }
    return NULL;
}
#endif

static void check_threads(void)
{
    rule("tools 5, 8: atomics and mutexes between client threads");
#if GASNET_PAR
    aq_test_threads(4, add);
    AQ_CHECK_EQ(gasnett_atomic_read(&counter, 0), 40000);
    AQ_CHECK_EQ(counted, 40000);
#else
    gasnett_mutex_lock(&mutex);
    counted++;
    gasnett_mutex_unlock(&mutex);
    AQ_CHECK_EQ(gasnett_atomic_add(&counter, 5, GASNETT_ATOMIC_MB_POST), 5);
    AQ_CHECK_EQ(counted, 1);
#endif
}

/* one line of a neighbour's memory, which every rank of its host changes: strong atomics */
static void check_shared(void)
{
    gex_Rank_t size = 0;
    gex_RankInfo_t *info;
    gasnett_strongatomic64_t *shared = NULL;
    void *base = NULL, *local = NULL;
    uintptr_t bytes;

    rule("tools 5: strong atomics between processes");
    gex_System_QueryNbrhdInfo(&info, &size, NULL);
    gex_Event_Wait(
        gex_EP_QueryBoundSegmentNB(aq_test_tm, info[0].gex_jobrank, &base, &local, &bytes, 0));
    memset(aq_test_base(aq_test_me), 0, 64);
    aq_test_barrier();
    shared = (gasnett_strongatomic64_t *)local;
    if (shared != NULL)
        for (int i = 0; i < 1000; i++)
            gasnett_strongatomic64_add(shared, 3, GASNETT_ATOMIC_REL);
    aq_test_barrier();
    if (shared != NULL)
        AQ_CHECK_EQ(gasnett_strongatomic64_read(shared, GASNETT_ATOMIC_ACQ),
                    3000 * (long long)size);
    aq_test_barrier();
}

static void check_formats(void)
{
    static const int word[4] = { 1, 2, 3, 4 };
    gex_Memvec_t list[2];
    void *addresses[2];
    const ptrdiff_t strides[2] = { 8, -16 };
    const size_t count[2] = { 3, 2 };
    gasnett_memveclist_stats_t stats;
    char text[1024], set[512];
    size_t need;

    for (int i = 0; i < 2; i++) {
        addresses[i] = (void *)(uintptr_t)&word[2 * i];
        list[i].gex_addr = addresses[i];
        list[i].gex_len = 4u * (unsigned)(i + 1);
    }
    rule("tools 13: texts of transfers fit the size asked for, and tell what there is");
    AQ_CHECK(gasnett_format_memveclist_bufsz(2) < sizeof(text));
    stats = gasnett_format_memveclist(text, 2, list);
    AQ_CHECK(stats.minsz == 4 && stats.maxsz == 8 && stats.totalsz == 12);
    AQ_CHECK(stats.minaddr == (char *)addresses[0] && stats.maxaddr == (char *)addresses[1] + 7);
    AQ_CHECK(strlen(text) < gasnett_format_memveclist_bufsz(2)
             && strstr(text, "totalsz=12") != NULL);
    AQ_CHECK_EQ(gasnett_format_putvgetv(text, aq_test_tm, 0, 2, list, 2, list), 12);
    AQ_CHECK(strlen(text) < gasnett_format_putvgetv_bufsz(2, 2));
    gasnett_format_addrlist(text, 2, addresses, 8);
    AQ_CHECK(strlen(text) < gasnett_format_addrlist_bufsz(2));
    AQ_CHECK_EQ(gasnett_format_putigeti(text, aq_test_tm, 0, 2, addresses, 8, 1, addresses, 16),
                16);
    AQ_CHECK(strlen(text) < gasnett_format_putigeti_bufsz(2, 1));
    gasnett_format_strides(text, 2, strides);
    AQ_CHECK(strcmp(text, "[8, -16]") == 0 && strlen(text) < gasnett_format_strides_bufsz(2));
    AQ_CHECK_EQ(gasnett_format_putsgets(text, NULL, aq_test_tm, 0, addresses[0], strides,
                                        addresses[1], strides, 4, count, 2),
                24);
    AQ_CHECK(strlen(text) < gasnett_format_putsgets_bufsz(2));

    rule("tools 13: texts of sets of constants");
    need = gasnett_format_dt(NULL, GEX_DT_I32 | GEX_DT_DBL);
    AQ_CHECK_EQ(gasnett_format_dt(set, GEX_DT_I32 | GEX_DT_DBL), need);
    AQ_CHECK(strcmp(set, "GEX_DT_I32|GEX_DT_DBL") == 0 && need == strlen(set) + 1);
    need = gasnett_format_op(NULL, GEX_OP_FCAS | GEX_OP_USER_NC);
    AQ_CHECK_EQ(gasnett_format_op(set, GEX_OP_FCAS | GEX_OP_USER_NC), need);
    AQ_CHECK(strcmp(set, "GEX_OP_FCAS|GEX_OP_USER_NC") == 0 && need == strlen(set) + 1);
    need = gasnett_format_ti(NULL, GEX_TI_ALL);
    AQ_CHECK_EQ(gasnett_format_ti(set, GEX_TI_ALL), need);
    AQ_CHECK(strstr(set, "GEX_TI_SRCRANK") != NULL && need == strlen(set) + 1);
}

static gex_RMA_Value_t value_of(const void *s, size_t n)
{
    GASNETT_VALUE_RETURN(s, n);
}

static void check_memory(void)
{
    unsigned char bytes[8], copy[8];
    unsigned char *page = gasnett_mmap(3 * GASNETT_PAGESIZE - 1);

    rule("tools 13: mapping is zero, on a page, and ours");
    AQ_CHECK((uintptr_t)page % GASNETT_PAGESIZE == 0);
    AQ_CHECK(aq_test_all(page, 0, 3 * GASNETT_PAGESIZE));
    page[3 * GASNETT_PAGESIZE - 1] = 1;

    rule("tools 13: values of any size up to a register's; copies of small constant size");
    for (size_t n = 1; n <= 8; n++) {
        const gex_RMA_Value_t value = UINT64_C(0x8877665544332211) & (~UINT64_C(0) >> (64 - 8 * n));

        memset(bytes, 0xee, sizeof(bytes));
        GASNETT_VALUE_ASSIGN(bytes, UINT64_C(0x8877665544332211), n);
        AQ_CHECK(value_of(bytes, n) == value);
        AQ_CHECK(n == 8 || bytes[n] == 0xee);
    }
    memset(copy, 0, sizeof(copy));
    GASNETT_FAST_ALIGNED_MEMCPY(copy, bytes, 8);
    GASNETT_FAST_UNALIGNED_MEMCPY(copy + 1, bytes + 1, 3);
    AQ_CHECK(memcmp(copy, bytes, 8) == 0);
}

static int other_backtrace(int fd)
{
    return write(fd, "not this one\n", 13) == 13 ? 0 : -1;
}

static void check_backtrace(void)
{
    char text[4096], *line;
    ssize_t len = 0, got;
    int ends[2];

    rule("tools 11: a backtrace without gasnett_backtrace_init, lines led by the rank");
    AQ_CHECK(pipe(ends) == 0);
    AQ_CHECK_EQ(gasnett_print_backtrace(ends[1]), 0);
    close(ends[1]);
    while ((got = read(ends[0], text + len, sizeof(text) - 1 - (size_t)len)) > 0)
        len += got;
    close(ends[0]);
    text[len] = '\0';
    snprintf(text + 3000, 64, "[%u] ", (unsigned)aq_test_me);
    line = text + strlen(text + 3000);
    AQ_CHECK(strncmp(text, text + 3000, strlen(text + 3000)) == 0);
    rule("tools 11: the way is the one that GASNET_BACKTRACE_TYPE names");
    /* a debugger prints other lines first */
    AQ_CHECK(strncmp(line, "#0  0x", 6) == 0);
    AQ_CHECK(*gasnett_print_backtrace_ifenabled != NULL);
    AQ_CHECK_EQ(gasnet_frozen, 0);
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t *table;
    gex_Rank_t peer;
    int n;

    if (gasnett_ticks_now() == 0
        || gasnett_verboseenv() != -1) /* tools work before the job starts */
        return 3;
    gasnett_envstr_display("TEST_TOOLS_EARLY", "waits", 0);
    setenv("GASNET_BACKTRACE_TYPE", "EXECINFO",
           1); /* read at the start of the job; a debugger takes a second each */
    gasnett_backtrace_user.name = "OTHER"; /* which would be the first to be used */
    gasnett_backtrace_user.fnp = other_backtrace;
    aq_test_start(&argc, &argv, 1);
    gasnett_diagnostic_gethandlers(&table, &n);
    aq_test_handlers(table, (size_t)n);
    aq_test_segment(65536);
    peer = aq_test_peer(1);

    check_mode();
    check_env();
    check_threads();
    check_shared();
    check_formats();
    check_memory();
    check_backtrace();
    rule("tools 13: the library's self-tests find nothing");
    AQ_CHECK_EQ(gasnett_run_diagnostics(50, 3, NULL, aq_test_tm, aq_test_base(aq_test_me), peer,
                                        aq_test_base(peer), 1u),
                0);
    AQ_CHECK_EQ(gasnett_run_diagnostics(5, 1, "E", aq_test_tm, NULL, peer, NULL, 2u), 0);
    return aq_test_finish();
}
