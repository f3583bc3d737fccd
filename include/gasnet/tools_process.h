/*
 * tools_process.h - fatal errors, backtraces, waiting for a debugger; the host and the process.
 *
 * Source: GASNet tools specification 1.20, debugging and miscellaneous.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_TOOLS_PROCESS_H
#define GASNET_TOOLS_PROCESS_H 1

AQ_BEGIN_DECLS

/* --- exit of a program --- */

AQ_PUBLIC void aq_tools_fatal(const char *func, const char *file, int line, const char *fmt,
                              ...) AQ_NORETURN AQ_ATTR((__format__(__printf__, 4, 5)));
AQ_PUBLIC void aq_tools_fatal_nopos(const char *fmt, ...) AQ_NORETURN
    AQ_ATTR((__format__(__printf__, 1, 2)));

/**
 * gasnett_fatalerror - print "*** FATAL ERROR (proc R): in F() at FILE:LINE: text" and end the job.
 * Arguments as for printf; no newline is needed. Before that it prints a backtrace and waits for a
 * debugger if GASNET_BACKTRACE and GASNET_FREEZE_ON_ERROR request it. Does not return; any thread.
 */
#define gasnett_fatalerror(...) \
    aq_tools_fatal(GASNETT_CURRENT_FUNCTION, __FILE__, __LINE__, __VA_ARGS__)
/** gasnett_fatalerror_nopos - the same without the source position. */
#define gasnett_fatalerror_nopos aq_tools_fatal_nopos

/** gasnett_killmyprocess - end this process at once with an exit code; no exit handler runs, no
 * stream is flushed. */
AQ_PUBLIC void gasnett_killmyprocess(int exitcode) AQ_NORETURN;
/** gasnett_flush_streams - flush stdout and stderr; with GASNET_FS_SYNC sync the files too. */
AQ_PUBLIC void gasnett_flush_streams(void);
/** gasnett_close_streams - close stdin, stdout and stderr at the end of a program. */
AQ_PUBLIC void gasnett_close_streams(void);

/* --- backtraces --- */

/** gasnett_backtrace_type_t - a backtrace method: fnp writes one to fd and returns 0 on success. */
typedef struct gasnett_backtrace_type_s {
    const char *name;
    int (*fnp)(int fd);
    int threadsupport; /* it shows every thread */
} gasnett_backtrace_type_t;

/* The client's own, if it fills this in, or defines it, before gasnett_backtrace_init. */
AQ_PUBLIC extern gasnett_backtrace_type_t gasnett_backtrace_user;

/**
 * gasnett_backtrace_init - prepare for backtraces, early in a program that starts no job.
 * exename   argv[0], or gasnett_exe_name()
 * Reads GASNET_BACKTRACE and related variables; also waits for a debugger if GASNET_FREEZE is on.
 */
AQ_PUBLIC void gasnett_backtrace_init(const char *exename);
/** gasnett_print_backtrace - write this process's stack to fd; 0, or -1 before
 * gasnett_backtrace_init. */
AQ_PUBLIC int gasnett_print_backtrace(int fd);
/** gasnett_print_backtrace_ifenabled - called by fatal errors: the same if GASNET_BACKTRACE is
 * on. */
AQ_PUBLIC extern int (*gasnett_print_backtrace_ifenabled)(int fd);

/* --- waiting for a debugger --- */

/* The user sets it to 0 from a debugger. */
AQ_PUBLIC extern volatile int gasnet_frozen;

/** gasnett_freezeForDebuggerNow - set *flag, print how to attach, wait until it is 0 or SIGCONT
 * arrives. */
AQ_PUBLIC void gasnett_freezeForDebuggerNow(volatile int *flag, const char *flagname);
/** gasnett_freezeForDebuggerErr - the same with gasnet_frozen, if GASNET_FREEZE_ON_ERROR is on. */
AQ_PUBLIC void gasnett_freezeForDebuggerErr(void);

/* --- host and process --- */

/** gasnett_sched_yield - yield the core to another thread; 0. */
AQ_PUBLIC int gasnett_sched_yield(void);
/** gasnett_gethostname - this host's name; the text belongs to the library. */
AQ_PUBLIC const char *gasnett_gethostname(void);
/* the name that some clients use */
#define gasneti_gethostname gasnett_gethostname
/** gasnett_exe_name - full path of this program, "" if unknown. */
AQ_PUBLIC const char *gasnett_exe_name(void);
/** gasnett_cpu_count - cores this process may use (affinity, container quota); 0 if unknown. */
AQ_PUBLIC int gasnett_cpu_count(void);
/** gasnett_getPhysMemSz - bytes of physical memory; if unknown 0, or with fatal the program
 * ends. */
AQ_PUBLIC uint64_t gasnett_getPhysMemSz(int fatal);

/** gasnett_isLittleEndian - 1 if the least significant byte comes first. */
static inline AQ_UNUSED int gasnett_isLittleEndian(void)
{
#if PLATFORM_ARCH_LITTLE_ENDIAN
    return 1;
#else
    return 0;
#endif
}

/** gasnett_set_affinity - bind the process to the core number rank modulo the allowed cores; 0 on
 * success. */
AQ_PUBLIC int gasnett_set_affinity(int rank);
#define GASNETT_SET_AFFINITY_SUPPORT 1

typedef void (*gasnett_sighandlerfn_t)(int);

/** gasnett_reghandler - install a signal handler; returns the previous one; ends the program on
 * failure. */
AQ_PUBLIC gasnett_sighandlerfn_t gasnett_reghandler(int sig, gasnett_sighandlerfn_t fn);
/** gasnett_signame_fromval - "SIGSEGV" for its number, NULL if unknown. */
AQ_PUBLIC const char *gasnett_signame_fromval(int sig);

/** gasnett_maximize_rlimits - raise soft limits to the hard ones: CPU, DATA, RSS, STACK, AS.
 * Non-zero if all succeeded. */
AQ_PUBLIC int gasnett_maximize_rlimits(void);
/** gasnett_maximize_rlimit - one limit (RLIMIT_...); not changed with GASNET_MAXIMIZE_<desc>=0. */
AQ_PUBLIC int gasnett_maximize_rlimit(int resource, const char *desc);

/** gasnett_checksum - 64 bits: for each byte, rotate left by 8, then xor the byte in. */
AQ_PUBLIC uint64_t gasnett_checksum(const void *p, int nbytes);
/** gasnett_count0s - number of zero bytes among n bytes; _copy: the same while copying. */
AQ_PUBLIC size_t gasnett_count0s(const void *p, size_t n);
AQ_PUBLIC size_t gasnett_count0s_copy(void *GASNETT_RESTRICT d, const void *GASNETT_RESTRICT s,
                                      size_t n);

/* finds the zero bytes of a word: each becomes 0x80, without effect on other bytes */
static inline AQ_UNUSED int gasnett_count0s_uint64_t(uint64_t x)
{
    const uint64_t low = UINT64_C(0x7F7F7F7F7F7F7F7F);

    return __builtin_popcountll(~(((x & low) + low) | x | low));
}

static inline AQ_UNUSED int gasnett_count0s_uint32_t(uint32_t x)
{
    return gasnett_count0s_uint64_t(x | UINT64_C(0x0101010100000000));
}

static inline AQ_UNUSED int gasnett_count0s_uintptr_t(uintptr_t x)
{
    return gasnett_count0s_uint64_t((uint64_t)x);
}

AQ_PUBLIC char *aq_tools_place(const char *func, const char *file, int line);

/* gasnett_current_loc - "f() at file.c:5", newly allocated: free() it. */
#define gasnett_current_loc aq_tools_place(GASNETT_CURRENT_FUNCTION, __FILE__, __LINE__)

AQ_END_DECLS

#endif
