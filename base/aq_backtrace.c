/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_backtrace.c - see aq_backtrace.h.
 *
 * A backtrace method either runs a program that examines this process (such as gdb), whose output
 * comes back through a pipe, or writes itself, into a file in memory. In both cases each line is
 * printed by one write(2), behind the rank in brackets. Used in signal handlers: fork, exec,
 * waitpid, read, write, and backtrace(), which was called once before so that it loads nothing
 * later.
 */
#include "base/aq_backtrace.h"

#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/aq_line.h"
#include "base/aq_symbol.h"
#include "gasnet_tools.h"

#define AQ_BACKTRACE_FRAMES 64
#define AQ_BACKTRACE_WAYS   8
#define AQ_BACKTRACE_ARGS   12

volatile int gasnet_frozen;

/* the client's backtrace method, filled in or defined by it; an empty one is in this object */
__attribute__((weak)) gasnett_backtrace_type_t gasnett_backtrace_user;

void (*aq_freeze_hook)(bool frozen);

/* A program that prints the stacks of another process; PID stands for that process's number. */
struct aq_backtrace_program {
    const char *name, *program;
    const char *all[AQ_BACKTRACE_ARGS], *one[AQ_BACKTRACE_ARGS];
};

static const struct aq_backtrace_program aq_backtrace_programs[] = {
    { "GDB",
      "gdb",
      { "-nx", "-batch", "-p", "PID", "-ex", "thread apply all backtrace" },
      { "-nx", "-batch", "-p", "PID", "-ex", "backtrace" } },
    { "LLDB",
      "lldb",
      { "--no-lldbinit", "--batch", "-p", "PID", "-o", "thread backtrace all", "-o", "quit" },
      { "--no-lldbinit", "--batch", "-p", "PID", "-o", "thread backtrace", "-o", "quit" } },
    { "GSTACK", "gstack", { "PID" }, { "PID" } },
    { "PSTACK", "pstack", { "PID" }, { "PID" } },
};
#define AQ_BACKTRACE_PROGRAMS (sizeof(aq_backtrace_programs) / sizeof(aq_backtrace_programs[0]))

enum aq_backtrace_how { AQ_BACKTRACE_PROGRAM, AQ_BACKTRACE_EXECINFO, AQ_BACKTRACE_USER };

static struct {
    bool configured, prepared, on_error, all_threads;
    char who[128];
    char *types;
    unsigned count;
    struct {
        enum aq_backtrace_how how;
        const struct aq_backtrace_program *program;
        char *path;
    } way[AQ_BACKTRACE_WAYS];
} aq_backtrace_cfg;

/* --- configuration --- */

/* returns the program's path, NULL if there is none in PATH */
static char *aq_backtrace_find(const char *program)
{
    const char *dir = getenv("PATH");

    while (dir != NULL && *dir != '\0') {
        size_t len = strcspn(dir, ":");
        char *path;

        if (asprintf(&path, "%.*s/%s", (int)len, dir, program) < 0)
            return NULL;
        if (access(path, X_OK) == 0)
            return path;
        free(path);
        dir += len + (dir[len] == ':');
    }
    return NULL;
}

static void aq_backtrace_add(enum aq_backtrace_how how, const struct aq_backtrace_program *program,
                             char *path)
{
    const unsigned n = aq_backtrace_cfg.count;

    if (n == AQ_BACKTRACE_WAYS)
        return;
    aq_backtrace_cfg.way[n].how = how;
    aq_backtrace_cfg.way[n].program = program;
    aq_backtrace_cfg.way[n].path = path;
    aq_backtrace_cfg.count++;
}

static void aq_backtrace_add_named(const char *name, size_t len)
{
    const char *own = gasnett_backtrace_user.name;

    if (len == strlen("EXECINFO") && strncasecmp(name, "EXECINFO", len) == 0) {
        aq_backtrace_add(AQ_BACKTRACE_EXECINFO, NULL, NULL);
        return;
    }
    if (own != NULL && gasnett_backtrace_user.fnp != NULL && len == strlen(own)
        && strncasecmp(name, own, len) == 0) {
        aq_backtrace_add(AQ_BACKTRACE_USER, NULL, NULL);
        return;
    }
    for (size_t i = 0; i < AQ_BACKTRACE_PROGRAMS; i++) {
        const struct aq_backtrace_program *program = &aq_backtrace_programs[i];
        char *path;

        if (len != strlen(program->name) || strncasecmp(name, program->name, len) != 0)
            continue;
        path = aq_backtrace_find(program->program);
        if (path != NULL)
            aq_backtrace_add(AQ_BACKTRACE_PROGRAM, program, path);
        return;
    }
    /* names of other systems' methods: not available here */
}

/* Looks for the programs, and makes libc load what backtrace() needs: not done at every start. */
static void aq_backtrace_prepare(void)
{
    const char *at = aq_backtrace_cfg.types, *own = gasnett_backtrace_user.name;
    void *frame[1];

    if (aq_backtrace_cfg.prepared)
        return;
    if (at == NULL) { /* a client that has its own method wants it used */
        if (own != NULL)
            aq_backtrace_add_named(own, strlen(own));
        at = "GDB,EXECINFO";
    }
    while (*at != '\0') {
        size_t len;

        at += strspn(at, ", \t");
        len = strcspn(at, ", \t");
        if (len > 0)
            aq_backtrace_add_named(at, len);
        at += len;
    }
    /* last, what always works */
    aq_backtrace_add(AQ_BACKTRACE_EXECINFO, NULL, NULL);
    backtrace(frame, 1);
    aq_backtrace_cfg.prepared = true;
}

void aq_backtrace_configure(const struct aq_backtrace_settings *settings)
{
    for (unsigned i = 0; i < aq_backtrace_cfg.count; i++)
        free(aq_backtrace_cfg.way[i].path);
    aq_backtrace_cfg.count = 0;
    aq_backtrace_cfg.prepared = false;
    free(aq_backtrace_cfg.types);
    aq_backtrace_cfg.types = settings->types != NULL ? strdup(settings->types) : NULL;
    snprintf(aq_backtrace_cfg.who, sizeof(aq_backtrace_cfg.who), "[%s] ", settings->who);
    aq_backtrace_cfg.all_threads = settings->all_threads;
    aq_backtrace_cfg.on_error = settings->on_error;
    if (settings->in_handlers)
        aq_backtrace_prepare();
    aq_backtrace_cfg.configured = true;
}

bool aq_backtrace_is_configured(void)
{
    return aq_backtrace_cfg.configured;
}

bool aq_backtrace_advise(void)
{
    return !aq_backtrace_cfg.on_error;
}

/* --- output: line by line --- */

static void aq_backtrace_write(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t done = write(fd, text, len);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return;
        text += done;
        len -= (size_t)done;
    }
}

/* copies everything from one file to another, the rank before each line; returns bytes read */
static size_t aq_backtrace_relay(int from, int to)
{
    struct aq_line line = { .len = 0 };
    char some[512], one[2] = "";
    size_t all = 0;
    ssize_t got;

    aq_line_put(&line, aq_backtrace_cfg.who);
    while ((got = read(from, some, sizeof(some))) > 0 || (got < 0 && errno == EINTR)) {
        for (ssize_t i = 0; i < got; i++) {
            one[0] = some[i];
            if (some[i] != '\n') {
                aq_line_put(&line, one);
                continue;
            }
            line.text[line.len] = '\n'; /* replaces the closing NUL */
            aq_backtrace_write(to, line.text, line.len + 1);
            line.len = 0;
            aq_line_put(&line, aq_backtrace_cfg.who);
        }
        all += got > 0 ? (size_t)got : 0;
    }
    if (line.len > strlen(aq_backtrace_cfg.who)) {
        line.text[line.len] = '\n';
        aq_backtrace_write(to, line.text, line.len + 1);
    }
    return all;
}

/* --- methods --- */

static _Noreturn void aq_backtrace_exec(const struct aq_backtrace_program *program,
                                        const char *path, const char *pid)
{
    const char *const *args = aq_backtrace_cfg.all_threads ? program->all : program->one;
    const char *argv[AQ_BACKTRACE_ARGS + 2] = { path };

    for (unsigned i = 0; i < AQ_BACKTRACE_ARGS && args[i] != NULL; i++)
        argv[i + 1] = strcmp(args[i], "PID") == 0 ? pid : args[i];
    execv(path, (char *const *)argv);
    _exit(127);
}

/* Another process examines this one, which must permit that where the kernel restricts ptrace to
 * parents. */
static bool aq_backtrace_by_program(const struct aq_backtrace_program *program, const char *path,
                                    int fd)
{
    struct aq_line pid_text = { .len = 0 };
    int status = 1, go[2], out[2];
    char word = 1;
    pid_t pid;

    aq_line_put_number(&pid_text, (uint64_t)getpid(), 10);
    if (pipe(go) != 0)
        return false;
    if (pipe(out) != 0) {
        close(go[0]), close(go[1]);
        return false;
    }
    pid = fork();
    if (pid == 0) {
        close(go[1]), close(out[0]);
        dup2(out[1], STDOUT_FILENO);
        dup2(out[1], STDERR_FILENO);
        if (read(go[0], &word, 1) == 1) /* waits until tracing is permitted */
            aq_backtrace_exec(program, path, pid_text.text);
        _exit(127);
    }
    close(go[0]), close(out[1]);
    if (pid > 0) {
        prctl(PR_SET_PTRACER, (unsigned long)pid, 0, 0, 0);
        if (write(go[1], &word, 1) == 1)
            aq_backtrace_relay(out[0], fd);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
    }
    close(go[1]), close(out[0]);
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* libc finds the frames, the files' symbol tables the names */
static int aq_backtrace_execinfo(int fd)
{
    void *frames[AQ_BACKTRACE_FRAMES];
    int count = backtrace(frames, AQ_BACKTRACE_FRAMES);

    for (int i = 0; i < count; i++) {
        struct aq_line line = { .len = 0 };
        const char *at = frames[i];

        aq_line_put(&line, "#");
        aq_line_put_number(&line, (uint64_t)i, 10);
        aq_line_put(&line, i < 10 ? "  0x" : " 0x");
        aq_line_put_number(&line, (uintptr_t)at, 16);
        aq_line_put(&line, " ");
        aq_symbol_put(&line, i > 0 ? at - 1 : at); /* address of the call, not of the return */
        aq_line_put(&line, "\n");
        aq_backtrace_write(fd, line.text, line.len);
    }
    return count > 0 ? 0 : -1;
}

static bool aq_backtrace_by_function(int (*fnp)(int fd), int fd)
{
    int memory = memfd_create("backtrace", MFD_CLOEXEC), rc;

    if (memory < 0)
        return fnp(fd) == 0;
    rc = fnp(memory);
    if (rc == 0 && lseek(memory, 0, SEEK_SET) == 0)
        aq_backtrace_relay(memory, fd);
    close(memory);
    return rc == 0;
}

int aq_backtrace_print(int fd)
{
    aq_backtrace_prepare();
    for (unsigned i = 0; i < aq_backtrace_cfg.count; i++) {
        bool done = false;

        switch (aq_backtrace_cfg.way[i].how) {
        case AQ_BACKTRACE_PROGRAM:
            done = aq_backtrace_by_program(aq_backtrace_cfg.way[i].program,
                                           aq_backtrace_cfg.way[i].path, fd);
            break;
        case AQ_BACKTRACE_EXECINFO:
            done = aq_backtrace_by_function(aq_backtrace_execinfo, fd);
            break;
        case AQ_BACKTRACE_USER:
            done = aq_backtrace_by_function(gasnett_backtrace_user.fnp, fd);
            break;
        }
        if (done)
            return 0;
    }
    return -1;
}

static int aq_backtrace_if_enabled(int fd)
{
    return aq_backtrace_cfg.on_error ? aq_backtrace_print(fd) : -1;
}

int (*gasnett_print_backtrace_ifenabled)(int fd) = aq_backtrace_if_enabled;

void aq_backtrace_on_error(void)
{
    if (gasnett_print_backtrace_ifenabled != NULL)
        gasnett_print_backtrace_ifenabled(STDERR_FILENO);
}

/* --- freezing --- */

static volatile int *volatile aq_freeze_flag;

static void aq_freeze_thaw(int sig)
{
    (void)sig;
    if (aq_freeze_flag != NULL)
        *aq_freeze_flag = 0;
}

static void aq_freeze_tell(const char *flagname, const char *who)
{
    struct aq_line line = { .len = 0 };
    char host[256] = "?";

    gethostname(host, sizeof(host) - 1);
    aq_line_put(&line, "*** NOTICE (");
    aq_line_put(&line, who);
    aq_line_put(&line, "): frozen on host ");
    aq_line_put(&line, host);
    aq_line_put(&line, ", process ");
    aq_line_put_number(&line, (uint64_t)getpid(), 10);
    aq_line_put(&line, ": attach a debugger (gdb -p ");
    aq_line_put_number(&line, (uint64_t)getpid(), 10);
    aq_line_put(&line, "), then set the variable ");
    aq_line_put(&line, flagname);
    aq_line_put(&line, " to 0 and continue, or send SIGCONT\n");
    aq_backtrace_write(STDERR_FILENO, line.text, line.len);
}

void aq_freeze(volatile int *flag, const char *flagname, const char *who)
{
    struct timespec tick = { 0, 100000000 };
    struct sigaction act, old;

    if (aq_freeze_hook != NULL)
        aq_freeze_hook(true);
    *flag = 1;
    aq_freeze_flag = flag;
    memset(&act, 0, sizeof(act));
    act.sa_handler = aq_freeze_thaw;
    sigaction(SIGCONT, &act, &old);
    aq_freeze_tell(flagname, who);
    while (*flag)
        nanosleep(&tick, NULL);
    sigaction(SIGCONT, &old, NULL);
    aq_freeze_flag = NULL;
    if (aq_freeze_hook != NULL)
        aq_freeze_hook(false);
}
