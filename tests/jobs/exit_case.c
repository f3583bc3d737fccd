/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exit_case.c - one way for a job to end, chosen by a number; run by exit.pl, which knows what must
 * come.
 * Usage     exit_case CASE [WHO]        WHO: the rank that acts where one acts alone, default 1
 * Uses      the public interface only; several threads in par
 * Source    GASNet-EX specification 0.19, gasnet_exit; the cases up to 99 are numbered as users of
 *           GASNet's own exit test know them
 * Prints    "ready R PID" when a rank has attached; "quit-handler R" from the client's SIGQUIT
 *           handler (EXIT_CASE_QUIT=1)
 * Waits     EXIT_CASE_SECONDS, 1 if not set, in case 36
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <gasnetex.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SEGMENT (1 << 20)
#define THREADS 4
enum { H_EXIT = 200, H_DEFERRED, H_NOTHING };

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static unsigned me, ranks, who = 1;
static int number;
static gex_HSL_t hsl = GEX_HSL_INITIALIZER;

static void on_exit_request(gex_Token_t token, gex_AM_Arg_t code)
{
    (void)token;
    gasnet_exit((int)code);
}

static void on_deferred_request(gex_Token_t token, gex_AM_Arg_t code)
{
    (void)token;
    gex_HSL_Lock(&hsl);
    gasnet_exit((int)code);
}

static atomic_int reported;

static void on_nothing(gex_Token_t token)
{
    (void)token;
    atomic_store(&reported, 1);
}

static gex_AM_Entry_t table[] = {
    { H_EXIT, (gex_AM_Fn_t)on_exit_request, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 1, NULL,
      "exit" },
    { H_DEFERRED, (gex_AM_Fn_t)on_deferred_request, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 1,
      NULL, "held" },
    { H_NOTHING, (gex_AM_Fn_t)on_nothing, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 0, NULL,
      "nothing" },
};

/* what a client may do there: clean up, then leave; the code must not count */
static void on_quit(int sig)
{
    char line[] = "quit-handler 0000\n";

    (void)sig;
    line[13] = (char)('0' + me / 1000 % 10);
    line[14] = (char)('0' + me / 100 % 10);
    line[15] = (char)('0' + me / 10 % 10);
    line[16] = (char)('0' + me % 10);
    if (write(STDOUT_FILENO, line, sizeof(line) - 1) < 0)
        _exit(99);
    gasnet_exit(77);
}

static void on_quit_stay(int sig)
{
    (void)sig;
    for (;;)
        pause();
}

static void barrier(void)
{
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
}

/* --- what the ranks do that do not act --- */

static void rest_barrier(void)
{
    for (;;)
        barrier();
}

static void rest_spin(void)
{
    for (volatile unsigned i = 0;; i++)
        continue;
}

static void rest_poll(void)
{
    for (;;)
        gasnet_AMPoll();
}

static void rest_sleep(void)
{
    for (;;)
        pause();
}

static void rest_seconds(void)
{
    const char *seconds = getenv("EXIT_CASE_SECONDS");
    const time_t end = time(NULL) + 1 + (seconds != NULL ? atoi(seconds) : 1);

    GASNET_BLOCKUNTIL(atomic_load(&reported)); /* and then not seen to, until its sender is gone */
    sleep(1);
    GASNET_BLOCKUNTIL(time(NULL) > end);
}

static void rest_send(void)
{
    for (unsigned r = 0;; r = (r + 1) % ranks)
        gex_AM_RequestShort0(tm, r, H_NOTHING, 0);
}

/* --- threads --- */

static void *thread_exit(void *arg)
{
    (void)arg;
    gasnet_exit(number);
    return NULL;
}

static void *thread_rest(void *arg)
{
    void (*rest)(void) = *(void (**)(void))arg;

    rest();
    return NULL;
}

static void *thread_crash(void *arg)
{
    /* volatile, so that the compiler does not know the address */
    static int *volatile nowhere = (int *)8;

    (void)arg;
    *nowhere = 1;
    return NULL;
}

static void *thread_hold_stdout(void *arg)
{
    (void)arg;
    flockfile(stdout);
    rest_sleep();
    return NULL;
}

static void *thread_read_stdin(void *arg)
{
    (void)arg;
    if (getchar() == EOF)
        rest_sleep();
    return NULL;
}

static void threads(void *(*fn)(void *), void *arg, int count)
{
    pthread_t t;

    for (int i = 0; i < count; i++)
        if (pthread_create(&t, NULL, fn, arg) != 0)
            abort();
}

/* --- crashes --- */

static int overflow(volatile char *outer)
{
    static volatile int enough; /* never */
    volatile char self[65536];

    self[0] = outer[0];
    return enough ? 0 : overflow(self) + self[0];
}

static void crash_bus(void)
{
    FILE *f = tmpfile();
    volatile char *p;

    if (f == NULL)
        abort();
    p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
    p[0] = 1; /* beyond the end of the file */
}

static void crash(int kind)
{
    static volatile int zero;
    volatile char start[2] = { 0, 0 };

    switch (kind) {
    case 0:
    case 1:
        thread_crash(NULL);
        break;
    case 2:
        abort();
    case 3:
        zero = 1 / zero;
        raise(SIGFPE);
        break;
    case 4:
        __builtin_trap();
    case 5:
        crash_bus();
        break;
    case 6:
        raise(SIGKILL);
        break;
    case 7:
        _exit(7);
    case 8:
        exit(overflow(start));
        break;
    case 9:
        raise(SIGTERM);
        break;
    case 10:
        raise(SIGPIPE);
        break;
    default:
        exit(98);
    }
}

/* 100 + kind: rank WHO; + 100: all ranks; + 200: several threads of it */
static void crash_case(int n)
{
    int kind = n % 100, scope = n / 100;

    if (scope == 2 || me == who) {
        if (scope == 3)
            threads(thread_crash, NULL, THREADS);
        else
            crash(kind);
    }
    if (kind == 1)
        rest_spin();
    rest_barrier();
}

/* --- the cases with several threads --- */

static void thread_case(int n)
{
    static void (*rest)(void);

    rest = n == 52 ? rest_barrier : n == 53 ? rest_spin : n == 54 ? rest_poll : rest_send;
    if (n == 51) {
        threads(thread_exit, NULL, THREADS);
        thread_exit(NULL);
    }
    if (n == 28 && me == who) {
        threads(thread_hold_stdout, NULL, 1);
        usleep(50000);
        gasnet_exit(n);
    }
    if (n == 29 && me == 0) {
        threads(thread_read_stdin, NULL, 1);
        usleep(50000);
        gasnet_exit(n);
    }
    if (n == 28 || n == 29)
        rest_poll();
    if (n == 52) {
        /* one thread a rank may be in a barrier; the acting rank's other threads poll */
        if (me != who)
            rest_barrier();
        rest = rest_poll;
    }
    threads(thread_rest, &rest, THREADS);
    if (me == who) {
        usleep(50000);
        gasnet_exit(n);
    }
    rest();
}

/* --- the others --- */

static void late_handler(void)
{
    gasnet_exit(number);
}

/* children that a rank has forked are none of the job's business */
static void forked_child(void)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0)
        exit(3);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 3)
        gasnet_exit(96);
    pid = fork();
    if (pid == 0)
        thread_crash(NULL);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
        gasnet_exit(97);
    if (system("exit 5") != 5 << 8)
        gasnet_exit(98);
    barrier();
    gasnet_exit(number);
}

static bool is_at_exit;

static ssize_t write_slowly(void *cookie, const char *text, size_t bytes)
{
    struct timespec left = { 0, is_at_exit ? 500000000 : 0 }; /* files have a second at the exit */

    while (nanosleep(&left, &left) != 0)
        ;
    return write((int)(intptr_t)cookie, text, bytes);
}

static int close_file(void *cookie)
{
    return close((int)(intptr_t)cookie);
}

static FILE *open_slow(const char *name)
{
    const cookie_io_functions_t io = { .write = write_slowly, .close = close_file };
    const int fd = open(name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);

    return fd < 0 ? NULL : fopencookie((void *)(intptr_t)fd, "w", io);
}

/* What stdio holds must not be lost: exit.pl counts the bytes. Rank 0 writes long after others. */
static void write_files(void)
{
    char name[64];
    FILE *f;

    snprintf(name, sizeof(name), "out.%u", me);
    f = me == 0 ? open_slow(name) : fopen(name, "w");
    if (f == NULL)
        gasnet_exit(97);
    for (int i = 0; i < 1000; i++)
        fprintf(f, "line %d of rank %u\n", i, me);
    printf("last words of rank %u", me); /* no newline: stays in the buffer */
    barrier();
    is_at_exit = true;
    gasnet_exit(number);
}

/* more than a pipe holds: the exit writes it */
static void write_much(void)
{
    static char buffer[1 << 20];

    setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
    for (int i = 0; i < 5000; i++)
        puts("#######################################");
    barrier(); /* who exits first ends the others */
    gasnet_exit(37);
}

static void request(unsigned to, int handler)
{
    gex_AM_RequestShort1(tm, to, (gex_AM_Index_t)handler, 0, number);
}

static void handler_case(int n)
{
    if (n == 10) {
        request((me + 1) % ranks, H_EXIT);
    } else if (n == 11) {
        if (me == (who + 1) % ranks)
            request(who, H_EXIT);
    } else if (n == 12) {
        if (me == who)
            request(who, H_EXIT);
    } else if (n == 13) {
        request(who, H_EXIT);
    } else if (me == (who + 1) % ranks) {
        request(who, H_DEFERRED);
    }
    rest_poll();
}

/* small implicit puts, which a conduit may keep back, more than it sends to a rank that makes no
 * calls; nobody waits for them */
static void exit_with_puts(void)
{
    void *base = NULL;

    barrier(); /* all know each other */
    gex_Segment_QueryBound(tm, (me + 1) % ranks, &base, NULL, NULL);
    if (me == who)
        usleep(100000);
    for (int i = 0; i < 20000; i++)
        gex_RMA_PutNBIVal(tm, (me + 1) % ranks, (long *)base + i % 100, 1, sizeof(long), 0);
    gasnet_exit(number);
}

static int other_case(int n)
{
    if (n == 39)
        exit_with_puts();
    if (n == 20)
        gasnet_exit(20 + (int)me);
    if (n == 26)
        forked_child();
    if (n == 30)
        write_files();
    if (n == 37)
        write_much();
    if (n == 32) /* killed from outside, in the barrier */
        rest_barrier();
    if (n == 33)
        rest_spin();
    if (n == 34)
        rest_sleep();
    if (n == 35)
        _exit(0);  /* all of them: no reason for a message */
    if (n == 31) { /* GASNET_CATCH_EXIT=0 */
        if (me == who)
            exit(3);
        usleep(700000);
        exit(0);
    }
    if (n == 36) { /* the same, and its last words have come */
        if (me == who) {
            for (unsigned r = 0; r < ranks; r++)
                if (r != me)
                    gex_AM_RequestShort0(tm, r, H_NOTHING, 0);
            exit(3);
        }
        rest_seconds();
        exit(0);
    }
    if (n == 38) { /* the same, and the others put to it */
        void *base = NULL;

        barrier(); /* all know each other */
        if (me == who)
            exit(3);
        usleep(700000);
        gex_Segment_QueryBound(tm, who, &base, NULL, NULL);
        gex_RMA_PutBlockingVal(tm, who, base, 1, 8, 0);
        rest_spin();
    }
    if (n == 23)
        signal(SIGQUIT, SIG_IGN);
    if (n == 24)
        signal(SIGQUIT, on_quit_stay);
    if (n == 27) {
        sigset_t all;

        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
    }
    barrier();
    if (n == 25)
        return 0; /* late_handler() has the last word */
    if (me == who)
        gasnet_exit(n);
    rest_spin();
    return 0;
}

static int early_case(int n)
{
    if (n == 6)
        gasnet_exit(6);
    if (n == 7 && me == who)
        gasnet_exit(7);
    return 0;
}

static int run_case(int n)
{
    barrier();
    if (n >= 100)
        crash_case(n);
    if (n >= 51 || n == 28 || n == 29)
        thread_case(n);
    switch (n) {
    case 0:
        return 0;
    case 1:
        gasnet_exit(1);
        break;
    case 2:
        return 2;
    case 43:
        gasnet_exit(256);
        break;
    case 44:
        return 512 + 44;
    case 45:
        if (me == who)
            gasnet_exit(-2);
        break;
    case 46:
        if (me == who)
            for (int fd = 3; fd < 1024; fd++)
                close(fd);
        break;
    case 3:
    case 5:
    case 22:
        if (me == who)
            gasnet_exit(n);
        break;
    case 4:
        if (me == who)
            kill(getpid(), SIGINT);
        break;
    case 8:
    case 9:
        if (me == who)
            return n;
        break;
    case 10:
    case 11:
    case 12:
    case 13:
    case 21:
        handler_case(n);
        break;
    default:
        return other_case(n);
    }
    if (n == 5 || n == 9)
        rest_spin();
    if (n == 22)
        rest_sleep();
    rest_barrier();
    return 0;
}

int main(int argc, char **argv)
{
    number = argc > 1 ? atoi(argv[1]) : 0;
    if (number == 25)
        atexit(late_handler);
    if (gex_Client_Init(&client, &ep, &tm, "exit-case", &argc, &argv, 0) != GASNET_OK)
        return 95; /* the library has said why */
    me = gex_System_QueryJobRank();
    ranks = gex_System_QueryJobSize();
    who = (argc > 2 ? (unsigned)atoi(argv[2]) : 1) % ranks;
    if (getenv("EXIT_CASE_QUIT") != NULL)
        signal(SIGQUIT, on_quit);
    early_case(number);
    if (gex_Segment_Attach(&segment, tm, SEGMENT) != GASNET_OK
        || gex_EP_RegisterHandlers(ep, table, sizeof(table) / sizeof(table[0])) != GASNET_OK)
        gasnet_exit(94);
    printf("ready %u %d\n", me, (int)getpid());
    fflush(stdout);
    return run_case(number);
}
