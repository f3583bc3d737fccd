/*
 * aq_test.c - job start, time-limited waiting, agreement on the result and TAP output for the
 * conformance programs. See aq_test.h.
 *
 * Agreement: each rank sends rank 0 the names of the rules that failed on it (AM Medium) and then
 * how many those were (AM Short); rank 0 prints the lines and sends everybody the verdict.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RULES = 256, MAX_NOTES = 12, NAME_LEN = 160, SKIPPED = 77 };

gex_Client_t aq_test_client;
gex_EP_t aq_test_ep;
gex_TM_t aq_test_tm;
gex_Segment_t aq_test_seg;
gex_Rank_t aq_test_me;
gex_Rank_t aq_test_n;
bool aq_test_crowded;
static double timeout; /* seconds, set where the machine is slow, as an emulated one is; else 0 */
bool aq_test_quick, aq_test_slow;

static struct {
    char name[NAME_LEN];
    atomic_int failed;
} rules[MAX_RULES];
static atomic_int n_rules, now_rule, notes;
static atomic_int ranks_done, names_due, names_seen, rules_failed, verdict;
static pthread_mutex_t rules_lock = PTHREAD_MUTEX_INITIALIZER;
static void **bases;
static aq_test_count_t bases_known;

/* ---- rules ---- */

static int rule_index(const char *name)
{
    char wanted[NAME_LEN];
    int i, n;

    snprintf(wanted, sizeof(wanted), "%s", name);
    pthread_mutex_lock(&rules_lock);
    n = atomic_load(&n_rules);
    for (i = 0; i < n && strcmp(rules[i].name, wanted) != 0; i++)
        ;
    if (i == n && n < MAX_RULES) {
        memcpy(rules[i].name, wanted, sizeof(wanted));
        atomic_store(&n_rules, n + 1);
    }
    pthread_mutex_unlock(&rules_lock);
    return i < MAX_RULES ? i : MAX_RULES - 1;
}

void rule(const char *name)
{
    atomic_store(&now_rule, rule_index(name));
}

static const char *present_rule(void)
{
    return atomic_load(&n_rules) > 0 ? rules[atomic_load(&now_rule)].name : "start-up";
}

static void note(const char *file, int line, const char *fmt, va_list ap)
{
    char text[600];
    int len;

    len = snprintf(text, sizeof(text), "# rank %u: %s:%d: [%s] ", (unsigned)aq_test_me,
                   strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line, present_rule());
    if (len < (int)sizeof(text) - 2)
        len += vsnprintf(text + len, sizeof(text) - 1 - (size_t)len, fmt, ap);
    if (len > (int)sizeof(text) - 2)
        len = (int)sizeof(text) - 2;
    text[len++] = '\n';
    if (write(STDERR_FILENO, text, (size_t)len) < 0)
        return; /* nothing could be reported */
}

void aq_test_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    atomic_fetch_add(&rules[atomic_load(&now_rule)].failed, 1);
    if (atomic_fetch_add(&notes, 1) >= MAX_NOTES)
        return;
    va_start(ap, fmt);
    note(file, line, fmt, ap);
    va_end(ap);
}

static int print_rules(void)
{
    int i, bad = 0, n = atomic_load(&n_rules);

    for (i = 0; i < n; i++) {
        bool ok = atomic_load(&rules[i].failed) == 0;

        printf("%s %d - %s\n", ok ? "ok" : "not ok", i + 1, rules[i].name);
        bad += !ok;
    }
    printf("1..%d\n", n);
    fflush(stdout);
    return bad;
}

void aq_test_die(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    atomic_fetch_add(&rules[atomic_load(&now_rule)].failed, 1);
    va_start(ap, fmt);
    note(file, line, fmt, ap);
    va_end(ap);
    if (aq_test_me == 0)
        print_rules();
    gasnet_exit(1);
    _exit(1);
}

/* ---- time ---- */

double aq_test_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double aq_test_limit(void)
{
    return timeout > 0 ? timeout : aq_test_crowded ? 30.0 : 10.0;
}

void aq_test_yield(void)
{
    if (aq_test_crowded)
        sched_yield();
}

void aq_test_relax(void)
{
    gasnet_AMPoll();
    aq_test_yield();
}

/* A program stuck inside a library call cannot report the normal way: say where and go. */
static void on_alarm(int sig)
{
    static const char text[] = "# watchdog: stuck in a library call while checking: ";
    const char *name = present_rule();

    (void)sig;
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0
        || write(STDERR_FILENO, name, strlen(name)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
        _exit(1);
    kill(getpid(), SIGKILL);
}

static void start_watchdog(void)
{
    const char *seconds = getenv("AQ_TEST_WATCHDOG");
    const char *waits = getenv("AQ_TEST_PATIENCE");
    struct sigaction act;

    timeout = waits != NULL ? atof(waits) : 0;
    aq_test_slow = timeout > 0;
    memset(&act, 0, sizeof(act));
    act.sa_handler = on_alarm;
    sigaction(SIGALRM, &act, NULL);
    alarm(seconds != NULL ? (unsigned)atoi(seconds) : 50);
}

/* ---- waiting ---- */

static void wait_for(aq_test_count_t *count, int n, double limit, const char *file, int line,
                     const char *what)
{
    const double until = aq_test_clock() + limit;

    while (atomic_load(count) < n) {
        aq_test_relax();
        if (aq_test_clock() > until)
            aq_test_die(file, line, "waited %.0f s: %s is %d, expected %d", limit, what,
                        atomic_load(count), n);
    }
}

void aq_test_wait_at(aq_test_count_t *count, int n, const char *file, int line, const char *what)
{
    wait_for(count, n, aq_test_limit(), file, line, what);
}

void aq_test_sync_at(gex_Event_t event, const char *file, int line)
{
    const double until = aq_test_clock() + aq_test_limit();

    while (gex_Event_Test(event) != GASNET_OK) {
        aq_test_relax();
        if (aq_test_clock() > until)
            aq_test_die(file, line, "event not complete after %.0f s", aq_test_limit());
    }
}

void aq_test_barrier(void)
{
    aq_test_sync(gex_Coll_BarrierNB(aq_test_tm, 0));
}

struct thread_arg {
    void *(*fn)(void *);
    void *arg;
    aq_test_count_t *done;
};

static void *thread_main(void *p)
{
    struct thread_arg *t = p;

    t->fn(t->arg);
    atomic_fetch_add(t->done, 1);
    return NULL;
}

void aq_test_threads_at(int n, void *(*fn)(void *), int seconds, const char *file, int line)
{
    pthread_t *ids = calloc((size_t)n, sizeof(*ids));
    struct thread_arg *args = calloc((size_t)n, sizeof(*args));
    aq_test_count_t done = 0;
    int i;

    if (ids == NULL || args == NULL)
        aq_test_die(file, line, "no memory for %d threads", n);
    for (i = 0; i < n; i++) {
        args[i] = (struct thread_arg){ fn, (void *)(intptr_t)i, &done };
        if (pthread_create(&ids[i], NULL, thread_main, &args[i]) != 0)
            aq_test_die(file, line, "cannot start thread %d", i);
    }
    wait_for(&done, n, seconds + aq_test_limit(), file, line, "threads done");
    for (i = 0; i < n; i++)
        pthread_join(ids[i], NULL);
    free(ids);
    free(args);
}

/* ---- data ---- */

uint64_t aq_test_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u); /* Steele, Lea, Flood: SplitMix64 */

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void aq_test_fill(void *buf, size_t len, uint64_t seed)
{
    unsigned char *p = buf;
    uint64_t v;

    for (; len >= 8; len -= 8, p += 8) {
        v = aq_test_random(&seed);
        memcpy(p, &v, 8);
    }
    v = aq_test_random(&seed);
    memcpy(p, &v, len);
}

bool aq_test_same(const void *buf, size_t len, uint64_t seed)
{
    const unsigned char *p = buf;
    uint64_t v;

    for (; len >= 8; len -= 8, p += 8) {
        v = aq_test_random(&seed);
        if (memcmp(p, &v, 8) != 0)
            return false;
    }
    v = aq_test_random(&seed);
    return len == 0 || memcmp(p, &v, len) == 0; /* no bytes may be at no address */
}

bool aq_test_all(const void *buf, int value, size_t len)
{
    const unsigned char *p = buf;
    size_t i;

    for (i = 0; i < len && p[i] == (unsigned char)value; i++)
        ;
    return i == len;
}

/* ---- handlers of the harness ---- */

static void h_failed(gex_Token_t token, void *buf, size_t nbytes)
{
    char name[NAME_LEN] = "";

    (void)token;
    memcpy(name, buf, nbytes < sizeof(name) ? nbytes : sizeof(name) - 1);
    atomic_fetch_add(&rules[rule_index(name)].failed, 1);
    atomic_fetch_add(&names_seen, 1);
}

static void h_done(gex_Token_t token, gex_AM_Arg_t failed)
{
    (void)token;
    atomic_fetch_add(&names_due, failed);
    atomic_fetch_add(&ranks_done, 1);
}

static void h_verdict(gex_Token_t token, gex_AM_Arg_t bad)
{
    (void)token;
    atomic_store(&verdict, bad ? 2 : 1);
}

static void h_base(gex_Token_t token, gex_AM_Arg_t rank, gex_AM_Arg_t hi, gex_AM_Arg_t lo)
{
    (void)token;
    bases[rank] = aq_test_pointer(hi, lo);
    atomic_fetch_add(&bases_known, 1);
}

static gex_AM_Entry_t own_table[AQ_TEST_OWN] = {
    AQ_ENTRY(AQ_TEST_BASE + 0, h_failed, AQ_MQ, 0),
    AQ_ENTRY(AQ_TEST_BASE + 1, h_done, AQ_SQ, 1),
    AQ_ENTRY(AQ_TEST_BASE + 2, h_verdict, AQ_SQ, 1),
    AQ_ENTRY(AQ_TEST_BASE + 3, h_base, AQ_SQ, 3),
};

/* ---- start and finish ---- */

static void note_crowd(void)
{
    cpu_set_t set;
    gex_Rank_t mates = 1;

    CPU_ZERO(&set);
    gex_System_QueryHostInfo(NULL, &mates, NULL);
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        aq_test_crowded = mates > (gex_Rank_t)CPU_COUNT(&set);
    if (mates > (gex_Rank_t)sysconf(_SC_NPROCESSORS_ONLN))
        aq_test_crowded = true;
}

void aq_test_join(gex_Client_t client, gex_EP_t ep, gex_TM_t tm, gex_Rank_t min_ranks)
{
    int rc;

    start_watchdog();
    aq_test_client = client;
    aq_test_ep = ep;
    aq_test_tm = tm;
    aq_test_me = gex_System_QueryJobRank();
    aq_test_n = gex_System_QueryJobSize();
    aq_test_quick = getenv("AQ_TEST_QUICK") != NULL;
    note_crowd();
    bases = calloc(aq_test_n, sizeof(*bases));
    rc = gex_EP_RegisterHandlers(aq_test_ep, own_table, AQ_LENGTH(own_table));
    if (rc != GASNET_OK || bases == NULL)
        aq_test_die(__FILE__, __LINE__, "cannot register the handlers of the harness: %d", rc);
    aq_test_barrier();
    if (aq_test_n < min_ranks)
        aq_test_skip("needs more ranks");
}

void aq_test_start_flags(int *argc, char ***argv, gex_Rank_t min_ranks, gex_Flags_t flags)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    int rc;

    start_watchdog();
    rc = gex_Client_Init(&client, &ep, &tm, "AQ_TEST", argc, argv, flags);
    if (rc != GASNET_OK) {
        fprintf(stderr, "# gex_Client_Init returned %s\n", gasnet_ErrorName(rc));
        exit(1);
    }
    aq_test_join(client, ep, tm, min_ranks);
}

void aq_test_start(int *argc, char ***argv, gex_Rank_t min_ranks)
{
    aq_test_start_flags(argc, argv, min_ranks, 0);
}

void aq_test_skip(const char *reason)
{
    if (aq_test_me == 0) {
        printf("1..0 # SKIP %s\n", reason);
        fflush(stdout);
    }
    aq_test_barrier();
    gasnet_exit(SKIPPED);
    _exit(SKIPPED);
}

void aq_test_handlers(gex_AM_Entry_t *table, size_t n)
{
    int rc = gex_EP_RegisterHandlers(aq_test_ep, table, n);

    if (rc != GASNET_OK)
        aq_test_die(__FILE__, __LINE__, "gex_EP_RegisterHandlers returned %d", rc);
    aq_test_barrier();
}

#if GASNET_SEGMENT_EVERYTHING
/* There is no segment to query: every rank allocates memory, zeros like a segment, and sends its
 * address to the others. */
void aq_test_learn_bases(size_t size)
{
    void *ours = NULL;
    gex_Rank_t r;

    if (posix_memalign(&ours, GASNET_PAGESIZE, size) != 0)
        aq_test_die(__FILE__, __LINE__, "no memory for %zu bytes", size);
    memset(ours, 0, size);
    for (r = 0; r < aq_test_n; r++)
        gex_AM_RequestShort3(aq_test_tm, r, AQ_TEST_BASE + 3, 0, aq_test_me, AQ_HI(ours),
                             AQ_LO(ours));
    aq_test_wait(&bases_known, (int)aq_test_n);
}
#else
void aq_test_learn_bases(size_t size)
{
    gex_Rank_t r;

    for (r = 0; r < aq_test_n; r++) {
        uintptr_t len = 0;

        if (gex_Segment_QueryBound(aq_test_tm, r, &bases[r], NULL, &len) != 0 || len < size)
            aq_test_die(__FILE__, __LINE__, "segment of rank %u not known", (unsigned)r);
    }
}
#endif

void aq_test_segment(size_t size)
{
    int rc;

    size = (size + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
    rc = gex_Segment_Attach(&aq_test_seg, aq_test_tm, size);
    if (rc != GASNET_OK)
        aq_test_die(__FILE__, __LINE__, "gex_Segment_Attach of %zu bytes returned %d", size, rc);
    aq_test_learn_bases(size);
    aq_test_barrier();
}

void *aq_test_base(gex_Rank_t rank)
{
    return bases[rank];
}

static int send_results(void)
{
    int i, bad = 0, n = atomic_load(&n_rules);

    for (i = 0; i < n; i++) {
        if (atomic_load(&rules[i].failed) == 0)
            continue;
        gex_AM_RequestMedium0(aq_test_tm, 0, AQ_TEST_BASE, rules[i].name, strlen(rules[i].name),
                              GEX_EVENT_NOW, 0);
        bad++;
    }
    gex_AM_RequestShort1(aq_test_tm, 0, AQ_TEST_BASE + 1, 0, bad);
    return bad;
}

int aq_test_finish(void)
{
    gex_Rank_t r;
    int code;

    if (aq_test_me == 0) {
        /* Others may still be within a wait of their own, so allow them one more limit. */
        double until = aq_test_clock() + 2 * aq_test_limit();

        while ((atomic_load(&ranks_done) < (int)aq_test_n - 1
                || atomic_load(&names_seen) < atomic_load(&names_due))
               && aq_test_clock() < until)
            aq_test_relax();
        if (atomic_load(&ranks_done) < (int)aq_test_n - 1)
            aq_test_die(__FILE__, __LINE__, "only %d of %u other ranks finished",
                        atomic_load(&ranks_done), (unsigned)aq_test_n - 1);
        atomic_store(&rules_failed, print_rules());
        code = atomic_load(&rules_failed) > 0;
        for (r = 1; r < aq_test_n; r++)
            gex_AM_RequestShort1(aq_test_tm, r, AQ_TEST_BASE + 2, 0, code);
    } else {
        double until = aq_test_clock() + 3 * aq_test_limit();

        send_results();
        while (atomic_load(&verdict) == 0 && aq_test_clock() < until)
            aq_test_relax();
        code = atomic_load(&verdict) != 1;
    }
    aq_test_barrier();
    gasnet_exit(code);
    return code;
}
