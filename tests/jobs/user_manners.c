/*
 * user_manners.c - starting a job changes nothing that belongs to others: environment, signal
 * handlers and masks, limits, working directory, locale, name.
 * Usage: user_manners [tag]. Prints what was changed on stderr, ends with 0 or 1.
 * Source what users suffer from. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h"

#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

enum { SIGNALS = 32, LIMITS = 16, VARIABLES = 4096 };

struct picture {
    char *environ[VARIABLES];
    struct sigaction action[SIGNALS];
    sigset_t mask;
    struct rlimit limit[LIMITS];
    mode_t umask;
    char dir[4096], name[16], locale[64];
    int dumpable, subreaper;
};

static struct picture before, after;
static int changes;
static char rank_text[32] = "?";

static void changed(const char *what, const char *which)
{
    changes++;
    fprintf(stderr, "rank %s: changed: %s %s\n", rank_text, what, which);
}

static void take(struct picture *p)
{
    for (int i = 0; environ[i] != NULL && i < VARIABLES - 1; i++)
        p->environ[i] = strdup(environ[i]);
    for (int sig = 1; sig < SIGNALS; sig++)
        sigaction(sig, NULL, &p->action[sig]);
    pthread_sigmask(SIG_SETMASK, NULL, &p->mask);
    for (int i = 0; i < LIMITS; i++)
        getrlimit((__rlimit_resource_t)i, &p->limit[i]);
    umask(p->umask = umask(0));
    if (getcwd(p->dir, sizeof(p->dir)) == NULL)
        p->dir[0] = '\0';
    prctl(PR_GET_NAME, p->name);
    snprintf(p->locale, sizeof(p->locale), "%s", setlocale(LC_ALL, NULL));
    p->dumpable = prctl(PR_GET_DUMPABLE);
    prctl(PR_GET_CHILD_SUBREAPER, &p->subreaper);
}

static int is_ours(const char *setting)
{
    return strncmp(setting, "GASNET_", 7) == 0 || strncmp(setting, "AQ_", 3) == 0;
}

/* libpmix writes down there how it reaches its server. */
static int is_launchers(const char *setting)
{
    return strncmp(setting, "PMIX_", 5) == 0;
}

static int has(char **list, const char *setting)
{
    while (*list != NULL && strcmp(*list, setting) != 0)
        list++;
    return *list != NULL;
}

static void compare_environment(void)
{
    for (int i = 0; before.environ[i] != NULL; i++)
        if (!is_ours(before.environ[i]) && !has(after.environ, before.environ[i]))
            changed("environment, gone:", before.environ[i]);
    for (int i = 0; after.environ[i] != NULL; i++)
        if (!is_ours(after.environ[i]) && !is_launchers(after.environ[i])
            && !has(before.environ, after.environ[i]))
            changed("environment, new:", after.environ[i]);
}

/* Those that end a process may get a handler where the client had none; no other may. */
static int may_be_caught(int sig)
{
    static const int closing[] = { SIGABRT, SIGFPE,  SIGILL, SIGSEGV, SIGBUS,
                                   SIGINT,  SIGTERM, SIGHUP, SIGPIPE, SIGQUIT };

    for (size_t i = 0; i < sizeof(closing) / sizeof(closing[0]); i++)
        if (sig == closing[i])
            return before.action[sig].sa_handler == SIG_DFL;
    return 0;
}

static int same_set(const sigset_t *one, const sigset_t *other)
{
    int sig = 1;

    while (sig < SIGNALS && sigismember(one, sig) == sigismember(other, sig))
        sig++;
    return sig == SIGNALS;
}

static void compare_signals(void)
{
    for (int sig = 1; sig < SIGNALS; sig++) {
        const struct sigaction *old = &before.action[sig], *new = &after.action[sig];

        if (!may_be_caught(sig)
            && (old->sa_handler != new->sa_handler || old->sa_flags != new->sa_flags
                || !same_set(&old->sa_mask, &new->sa_mask)))
            changed("action of signal", strsignal(sig));
        if (sigismember(&before.mask, sig) != sigismember(&after.mask, sig))
            changed("mask of signal", strsignal(sig));
    }
}

static void compare_process(void)
{
    char number[16];

    for (int i = 0; i < LIMITS; i++) {
        snprintf(number, sizeof(number), "%d", i);
        if (before.limit[i].rlim_cur != after.limit[i].rlim_cur
            || before.limit[i].rlim_max != after.limit[i].rlim_max)
            changed("resource limit", number);
    }
    if (before.umask != after.umask)
        changed("umask", "");
    if (strcmp(before.dir, after.dir) != 0)
        changed("working directory, now", after.dir);
    if (strcmp(before.name, after.name) != 0)
        changed("process name, now", after.name);
    if (strcmp(before.locale, after.locale) != 0)
        changed("locale, now", after.locale);
    if (before.dumpable != after.dumpable)
        changed("dumpable", "");
    if (before.subreaper != after.subreaper)
        changed("child subreaper", "");
}

static void on_signal(int sig)
{
    (void)sig;
}

/* A client, or a library that it uses, that was there first. */
static void be_first(void)
{
    static const int ours[] = { SIGTERM, SIGSEGV, SIGCHLD, SIGUSR1, SIGURG, SIGQUIT };
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        sigaction(ours[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    setenv("OMP_NUM_THREADS", "3", 1);
    setenv("MALLOC_ARENA_MAX", "1", 1);
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Segment_t segment;

    be_first();
    take(&before);
    if (gex_Client_Init(&client, &ep, &tm, "MANNERS", &argc, &argv, 0) != GASNET_OK
        || gex_Segment_Attach(&segment, tm, GASNET_PAGESIZE) != GASNET_OK)
        return 3;
    snprintf(rank_text, sizeof(rank_text), "%u", (unsigned)gex_TM_QueryRank(tm));
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    take(&after);
    compare_environment();
    compare_signals();
    compare_process();
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    gasnet_exit(changes != 0);
}
