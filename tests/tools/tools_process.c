/*
 * tools_process.c - host, process, signals, bytes, backtraces; versions, identification,
 * annotations. "tools_process CASE" does one thing that tools.sh checks from outside: fatal,
 * fatal-nopos, kill, backtrace, backtrace-early, backtrace-signal, backtrace-user, freeze, flush,
 * close, mmap, unreachable, assume. Source: GASNet tools specification 1.20.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h"
#include "gasnet_tools.h" /* again: harmless */

#include <ctype.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <unistd.h>

#include "aq_tap.h"

GASNETT_IDENT(tools_ident, "$ToolsTestIdent: kept by the linker $");

/* --- annotations --- */

GASNETT_BEGIN_EXTERNC
int tools_pure(int x) GASNETT_PURE;
GASNETT_PUREP(tools_pure)
int tools_const(int x) GASNETT_CONST GASNETT_WARN_UNUSED_RESULT;
GASNETT_CONSTP(tools_const)
void *tools_malloc(size_t n) GASNETT_MALLOC;
GASNETT_MALLOCP(tools_malloc)
void tools_end(void) GASNETT_NORETURN GASNETT_COLD;
GASNETT_NORETURNP(tools_end)
int tools_hot(int x) GASNETT_HOT;
int tools_old(int x) GASNETT_DEPRECATED;
GASNETT_FORMAT_PRINTF(tools_format, 3, 4,
                      int tools_format(char *buf, size_t n, const char *fmt, ...));
GASNETT_END_EXTERNC
GASNETT_EXTERNC int tools_extern;
int tools_extern = 5;
static GASNETT_FORMAT_PRINTF_FUNCPTR(tools_pointer, 3, 4,
                                     int (*tools_pointer)(char *, size_t, const char *,
                                                          ...)) = tools_format;
static int tools_used GASNETT_USED;

int tools_pure(int x)
{
    return x + 1;
}
int tools_const(int x)
{
    return x + 2;
}
void *tools_malloc(size_t n)
{
    return malloc(n);
}
void tools_end(void)
{
    exit(3);
}
int tools_hot(int x)
{
    return x + 3;
}
int tools_old(int x)
{
    return x;
}

int tools_format(char *buf, size_t n, const char *fmt, ...)
{
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(buf, n, fmt, args);
    va_end(args);
    return len;
}

GASNETT_INLINE(tools_inlined) int tools_inlined(int x)
{
    return 2 * x;
}

GASNETT_NEVER_INLINE(tools_never, static int tools_never(int x))
{
    return 3 * x;
}

static int tools_eight(int a, int b, int c, int d, int e, int f, int g, int h)
{
    GASNETT_UNUSED_ARGS8(a, b, c, d, e, f, g, h);
    return 8;
}

static int tools_some(int a, int b, int c, int d, int e, int f, int g)
{
    GASNETT_UNUSED_ARGS1(a);
    GASNETT_UNUSED_ARGS2(a, b);
    GASNETT_UNUSED_ARGS3(a, b, c);
    GASNETT_UNUSED_ARGS4(a, b, c, d);
    GASNETT_UNUSED_ARGS5(a, b, c, d, e);
    GASNETT_UNUSED_ARGS6(a, b, c, d, e, f);
    GASNETT_UNUSED_ARGS7(a, b, c, d, e, f, g);
    return 7;
}

static int tools_falls(int x)
{
    int sum = 0;

    switch (x) {
    case 1:
        sum += 1;
        GASNETT_FALLTHROUGH
    case 2:
        sum += 2;
        break;
    default:
        gasnett_assume(x > 2);
        sum = -1;
    }
    return sum;
}

static void tools_copy(int *GASNETT_RESTRICT d, const int *GASNETT_RESTRICT s)
{
    *d = *s;
}

static const char *tools_name(void)
{
    return GASNETT_CURRENT_FUNCTION;
}

static void check_words(void)
{
    char buf[16];
    int from = 4, to = 0, branch = 0;
    void *memory = tools_malloc(1);

    rule("annotations leave functions as they are");
    free(memory);
    CHECK(tools_pure(1) == 2 && tools_const(1) == 3 && tools_hot(1) == 4 && tools_inlined(4) == 8);
    CHECK(tools_never(4) == 12 && tools_used == 0 && tools_extern == 5);
    CHECK(tools_eight(1, 2, 3, 4, 5, 6, 7, 8) == 8 && tools_some(1, 2, 3, 4, 5, 6, 7) == 7);
    CHECK(tools_falls(1) == 3 && tools_falls(2) == 2 && tools_falls(3) == -1);
    CHECK(tools_format(buf, sizeof(buf), "%d", 12) == 2
          && tools_pointer(buf, sizeof(buf), "%d", 1) == 1);
    tools_copy(&to, &from);
    CHECK(to == 4);
    CHECK_STR(tools_name(), "tools_name");

    rule("branches with a hint decide as ever");
    if_pf(from == 4) branch = 1;
    else branch = 2;
    CHECK_EQ(branch, 1);
    if_pt(from == 5) branch = 1;
    else branch = 2;
    CHECK_EQ(branch, 2);
    CHECK_EQ(GASNETT_PREDICT_TRUE(7), 1);
    CHECK_EQ(GASNETT_PREDICT_FALSE(0), 0);
    CHECK(gasnett_constant_p(1) == 1 || gasnett_constant_p(1) == 0);
}

/* --- fences --- */

static void check_fences(void)
{
    rule("every fence can be called");
    gasnett_local_wmb();
    gasnett_local_rmb();
    gasnett_local_mb();
    gasnett_weak_wmb();
    gasnett_weak_rmb();
    gasnett_weak_mb();
    gasnett_compiler_fence();
    gasnett_spinloop_hint();
}

/* --- version, configuration, platform --- */

static void check_version(void)
{
    const char *config = GASNETT_CONFIG_STRING;

    rule("versions");
    CHECK(GASNETT_SPEC_VERSION_MAJOR == 1 && GASNETT_SPEC_VERSION_MINOR == 20);
    CHECK(GASNETT_RELEASE_VERSION_MAJOR == 2025 && GASNETT_RELEASE_VERSION_MINOR == 8);
    CHECK(GASNET_RELEASE_VERSION_PATCH == GASNETT_RELEASE_VERSION_PATCH);
    CHECK_STR(gasnett_release_version_str(), "2025.8.0");
    CHECK(gasnett_release_version() == UINT64_C(2025080000));

    rule("the configuration string tells the release, the mode and how things are made");
    CHECK(strncmp(config, "RELEASE=2025.8.0,SPEC=1.20,PTR=64bit,", 37) == 0);
#if GASNET_DEBUG
    CHECK(strstr(config, ",debug,") != NULL);
    CHECK(strstr(gasnett_performance_warning_str(), "debug") != NULL);
#else
    CHECK(strstr(config, ",nodebug,") != NULL && GASNET_NDEBUG == 1);
#endif
    CHECK(strstr(config, "," _STRINGIFY(GASNETT_THREAD_MODEL) ",") != NULL);
    CHECK(strstr(config,
                 "timers_native,membars_native,atomics_native,atomic32_native,atomic64_native"));
    CHECK(strlen(GASNETT_SYSTEM_TUPLE) > 3 && strlen(GASNETT_CONFIGURE_ARGS) < 100000);
    CHECK(GASNETT_CONFIGURE_MISMATCH == 0 || GASNETT_CONFIGURE_MISMATCH == 1);
    CHECK(strstr(GASNETT_PLATFORM_COMPILER_IDSTR, "|COMPILER_FAMILY:") != NULL);
    CHECK(GASNETT_PLATFORM_COMPILER_FAMILYID > 0 && GASNETT_PLATFORM_COMPILER_VERSION > 0);
    CHECK(GASNETT_PLATFORM_COMPILER_ID % 10000 == GASNETT_PLATFORM_COMPILER_FAMILYID);
    CHECK(GASNETT_PAGESIZE == 1 << GASNETT_PAGESHIFT && GASNETT_CACHE_LINE_BYTES >= 16);

    rule("platform macros");
    CHECK(PLATFORM_HEADER_VERSION == 24 && _PORTABLE_PLATFORM_H == 24);
    CHECK(PLATFORM_OS_LINUX == 1 && strcmp(_STRINGIFY(PLATFORM_OS_FAMILYNAME), "LINUX") == 0);
    CHECK(PLATFORM_ARCH_64 == 1);
#if defined(__clang__)
    CHECK(PLATFORM_COMPILER_CLANG == 1 && PLATFORM_COMPILER_FAMILYID == 19);
#else
    CHECK(PLATFORM_COMPILER_GNU == 1 && PLATFORM_COMPILER_FAMILYID == 1);
    CHECK(PLATFORM_COMPILER_VERSION_EQ(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__));
    CHECK(PLATFORM_COMPILER_VERSION_GT(__GNUC__ - 1, 255, 0)
          && PLATFORM_COMPILER_VERSION_LT(99, 0, 0));
    CHECK(PLATFORM_COMPILER_VERSION_GE(__GNUC__, 0, 0) && PLATFORM_COMPILER_VERSION_LE(99, 0, 0));
#endif
#ifdef __cplusplus
    CHECK(PLATFORM_COMPILER_ID == 10000 + PLATFORM_COMPILER_FAMILYID);
    CHECK(PLATFORM_COMPILER_CXX_LANGLVL >= 201103L);
#else
    CHECK(PLATFORM_COMPILER_ID == PLATFORM_COMPILER_FAMILYID
          && PLATFORM_COMPILER_C_LANGLVL >= 199901L);
#endif
    CHECK(strstr(PLATFORM_COMPILER_IDSTR, "|COMPILER_VERSION:" PLATFORM_COMPILER_VERSION_STR "|"));
    CHECK_STR(PLATFORM_STRINGIFY(PLATFORM_ARCH_64), "1");
    CHECK_STR(_STRINGIFY(_CONCAT(a, PLATFORM_ARCH_64)), "a1");
    CHECK(MIN(1, 2) == 1 && MAX(1, 2) == 2);
}

/* --- host, process, bytes --- */

static void check_host(void)
{
    char name[256] = "", exe[4096] = "";
    const int one = 1;

    rule("host and process");
    gethostname(name, sizeof(name) - 1);
    CHECK_STR(gasnett_gethostname(), name);
    CHECK(gasnett_gethostname() == gasnett_gethostname());
    CHECK(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
    CHECK_STR(gasnett_exe_name(), exe);
    CHECK(gasnett_cpu_count() >= 1 && gasnett_cpu_count() <= sysconf(_SC_NPROCESSORS_CONF));
    CHECK(gasnett_getPhysMemSz(1) > 16u << 20);
    CHECK_EQ(gasnett_sched_yield(), 0);
    CHECK(gasnett_isLittleEndian() == *(const char *)&one);
#ifdef GASNETT_SET_AFFINITY_SUPPORT
    CHECK_EQ(gasnett_set_affinity(1), 0);
    CHECK(sched_getcpu() >= 0);
#endif
    CHECK(gasnett_set_affinity(-1) != 0);
}

static volatile int seen;

static void on_signal(int sig)
{
    seen = sig;
}

static void check_signals(void)
{
    struct rlimit limit;

    rule("signals: handlers and names");
    CHECK(gasnett_reghandler(SIGUSR2, on_signal) == SIG_DFL);
    raise(SIGUSR2);
    CHECK_EQ(seen, SIGUSR2);
    CHECK(gasnett_reghandler(SIGUSR2, SIG_IGN) == on_signal);
    CHECK_STR(gasnett_signame_fromval(SIGSEGV), "SIGSEGV");
    CHECK_STR(gasnett_signame_fromval(SIGWINCH), "SIGWINCH");
    CHECK(gasnett_signame_fromval(0) == NULL && gasnett_signame_fromval(12345) == NULL);

    rule("limits are raised to the hard ones, unless the user says no");
    getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &limit);
    gasnett_setenv("GASNET_MAXIMIZE_CORE", "0");
    CHECK(gasnett_maximize_rlimit(RLIMIT_CORE, "RLIMIT_CORE") != 0);
    getrlimit(RLIMIT_CORE, &limit);
    CHECK(limit.rlim_cur == 0);
    gasnett_unsetenv("GASNET_MAXIMIZE_CORE");
    CHECK(gasnett_maximize_rlimit(RLIMIT_CORE, "CORE") != 0);
    getrlimit(RLIMIT_CORE, &limit);
    CHECK(limit.rlim_cur == limit.rlim_max);
    CHECK(gasnett_maximize_rlimits() != 0);
}

static void check_bytes(void)
{
    unsigned char bytes[67], copy[67];
    char *self;

    rule("checksum: rotate by 8, xor the byte in");
    CHECK(gasnett_checksum("", 0) == 0);
    CHECK(gasnett_checksum("\1\2", 2) == 0x102);
    CHECK(gasnett_checksum("\1\2\3\4\5\6\7\10\11", 9) == UINT64_C(0x0203040506070808));

    rule("zero bytes are counted, in words and at any length");
    CHECK(gasnett_count0s_uint64_t(0) == 8 && gasnett_count0s_uint64_t(~UINT64_C(0)) == 0);
    CHECK(gasnett_count0s_uint64_t(UINT64_C(0x0100800000ff0001)) == 4);
    CHECK(gasnett_count0s_uint32_t(0) == 4 && gasnett_count0s_uint32_t(0x00ff0001u) == 2);
    CHECK(gasnett_count0s_uint32_t(0x80808080u) == 0);
    CHECK(gasnett_count0s_uintptr_t(0) == (int)sizeof(uintptr_t));
    for (size_t n = 0; n < sizeof(bytes); n++) {
        size_t zeros = 0;

        for (size_t i = 0; i < n; i++) {
            bytes[i] = (unsigned char)((i * 7 + n) % 5 == 0 ? 0 : i * 37 + 1);
            zeros += bytes[i] == 0;
        }
        memset(copy, 1, sizeof(copy));
        CHECK(gasnett_count0s(bytes, n) == zeros);
        CHECK(gasnett_count0s_copy(copy, bytes, n) == zeros && memcmp(copy, bytes, n) == 0);
        CHECK(copy[n] == 1);
    }

    rule("gasnett_current_loc is a new string of this place");
    self = gasnett_current_loc;
    CHECK(strncmp(self, "check_bytes() at ", 17) == 0 && strstr(self, "tools_process.c:") != NULL);
    free(self);
}

static int stats_called;

static void stats_callback(void (*print)(const char *, ...))
{
    (void)print;
    stats_called++;
}

static void check_trace(void)
{
    const void *private_names[] = { (const void *)&_gasneti_threadkey_init,
                                    (const void *)&_gasnett_trace_printf_noop };
    int evaluated = 0;

    rule("without a conduit tracing does nothing and evaluates nothing");
    CHECK_EQ(GASNETT_TRACE_ENABLED, 0);
    GASNETT_TRACE_PRINTF("%d", ++evaluated);
    GASNETT_TRACE_PRINTF_FORCE("%d", ++evaluated);
    GASNETT_STATS_PRINTF("%d", ++evaluated);
    GASNETT_STATS_PRINTF_FORCE("%d", ++evaluated);
    CHECK_EQ(evaluated, 0);
    CHECK_STR(GASNETT_TRACE_GETMASK(), "");
    CHECK_STR(GASNETT_STATS_GETMASK(), "");
    GASNETT_TRACE_SETMASK("GP");
    GASNETT_STATS_SETMASK("GP");
    CHECK_EQ(GASNETT_TRACE_GET_TRACELOCAL(), 0);
    GASNETT_TRACE_SET_TRACELOCAL(1);
    GASNETT_TRACE_SETSOURCELINE(__FILE__, __LINE__);
    GASNETT_TRACE_FREEZESOURCELINE();
    GASNETT_TRACE_UNFREEZESOURCELINE();
    CHECK_EQ(GASNETT_STATS_INIT(stats_callback), 0);
    GASNETT_STATS_DUMP(1);
    CHECK_EQ(stats_called, 0);
    CHECK(private_names[0] != NULL && private_names[1] != NULL);
}

static void check_malloc(void)
{
    gasnett_heapstats_t stats;
    char *text = (char *)gasnett_debug_malloc(8), *copy;

    rule("the debugging allocator's names are the plain allocator");
    strcpy(text, "1234567");
    text = (char *)gasnett_debug_realloc(text, 16);
    copy = gasnett_debug_strdup(text);
    CHECK_STR(copy, "1234567");
    gasnett_debug_memcheck(copy);
    gasnett_debug_memcheck_one();
    gasnett_debug_memcheck_all();
    gasnett_debug_free(copy);
    copy = gasnett_debug_strndup(text, 3);
    CHECK_STR(copy, "123");
    gasnett_debug_free(copy);
    gasnett_debug_free(text);
    text = (char *)gasnett_debug_calloc(4, 4);
    CHECK(text[0] == 0 && text[15] == 0);
    gasnett_debug_free(text);
    CHECK(gasnett_getheapstats(&stats) != 0 && stats.overhead_bytes == 0
          && stats.allocated_bytes == 0);
}

/* --- seen from outside --- */

GASNETT_NEVER_INLINE(tools_stack_bottom, static int tools_stack_bottom(int fd))
{
    int rc = gasnett_print_backtrace(fd);

    gasnett_compiler_fence();
    return rc;
}

static int users_backtrace(int fd)
{
    static const char text[] = "line one of the user's\nline two";

    return write(fd, text, sizeof(text) - 1) > 0 ? 0 : -1;
}

static void cases_of_ends(const char *name)
{
    if (strcmp(name, "fatal") == 0)
        gasnett_fatalerror("value %d of %s", 12, "something");
    if (strcmp(name, "fatal-nopos") == 0)
        gasnett_fatalerror_nopos("only %s", "this");
    if (strcmp(name, "kill") == 0) {
        printf("never seen");
        gasnett_killmyprocess(7);
    }
    if (strcmp(name, "mmap") == 0)
        gasnett_mmap(4096);
#if GASNET_DEBUG
    if (strcmp(name, "unreachable") == 0)
        gasnett_unreachable();
    if (strcmp(name, "assume") == 0)
        gasnett_assume(name[0] == 'x');
#endif
}

static int run_case(const char *name, const char *exe)
{
    cases_of_ends(name);
    if (strcmp(name, "backtrace-early") == 0)
        return tools_stack_bottom(1) == -1 ? 0 : 1;
    if (strcmp(name, "backtrace-user") == 0) {
        gasnett_backtrace_user.name = "MINE";
        gasnett_backtrace_user.fnp = users_backtrace;
    }
    gasnett_backtrace_init(exe);
    if (strncmp(name, "backtrace", 9) == 0 && strcmp(name, "backtrace-signal") != 0)
        return tools_stack_bottom(1);
    if (strcmp(name, "backtrace-signal") == 0)
        raise(SIGUSR1);
    if (strcmp(name, "freeze") == 0)
        gasnett_freezeForDebuggerNow(&gasnet_frozen, "gasnet_frozen");
    if (strcmp(name, "freeze-error") == 0)
        gasnett_freezeForDebuggerErr();
    if (strcmp(name, "flush") == 0) {
        printf("flushed");
        gasnett_flush_streams();
        _exit(0);
    }
    if (strcmp(name, "close") == 0) {
        printf("flushed");
        gasnett_close_streams();
        return write(1, "", 1) < 0 ? 0 : 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_case(argv[1], argv[0]);
    check_words();
    check_fences();
    check_version();
    check_host();
    check_signals();
    check_bytes();
    check_trace();
    check_malloc();
    (void)tools_end;
    return tap_finish();
}
