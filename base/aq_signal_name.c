/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_signal_name.c - see aq_signal_name.h. In the launcher too. Uses libc only.
 */
#include "base/aq_signal_name.h"

#include <signal.h>
#include <string.h>
#include <strings.h>

static const char *const aq_signal_names[] = {
    [SIGHUP] = "SIGHUP",       [SIGINT] = "SIGINT",   [SIGQUIT] = "SIGQUIT",
    [SIGILL] = "SIGILL",       [SIGTRAP] = "SIGTRAP", [SIGABRT] = "SIGABRT",
    [SIGBUS] = "SIGBUS",       [SIGFPE] = "SIGFPE",   [SIGKILL] = "SIGKILL",
    [SIGUSR1] = "SIGUSR1",     [SIGSEGV] = "SIGSEGV", [SIGUSR2] = "SIGUSR2",
    [SIGPIPE] = "SIGPIPE",     [SIGALRM] = "SIGALRM", [SIGTERM] = "SIGTERM",
    [SIGCHLD] = "SIGCHLD",     [SIGCONT] = "SIGCONT", [SIGSTOP] = "SIGSTOP",
    [SIGTSTP] = "SIGTSTP",     [SIGTTIN] = "SIGTTIN", [SIGTTOU] = "SIGTTOU",
    [SIGURG] = "SIGURG",       [SIGXCPU] = "SIGXCPU", [SIGXFSZ] = "SIGXFSZ",
    [SIGVTALRM] = "SIGVTALRM", [SIGPROF] = "SIGPROF", [SIGWINCH] = "SIGWINCH",
    [SIGIO] = "SIGIO",         [SIGPWR] = "SIGPWR",   [SIGSYS] = "SIGSYS",
};
#define AQ_SIGNAL_COUNT ((int)(sizeof(aq_signal_names) / sizeof(aq_signal_names[0])))

const char *aq_signal_name(int sig)
{
    if (sig > 0 && sig < AQ_SIGNAL_COUNT && aq_signal_names[sig] != NULL)
        return aq_signal_names[sig];
    return "signal";
}

/* a whole number of at most two digits; 0 if the text is none */
static int aq_signal_parse_number(const char *text, size_t len)
{
    int value = 0;

    if (len > 2)
        return 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        value = value * 10 + (text[i] - '0');
    }
    return value < 32 ? value : 0;
}

int aq_signal_parse(const char *text, size_t len)
{
    for (int sig = 1; sig < AQ_SIGNAL_COUNT; sig++) {
        const char *name = aq_signal_names[sig];
        size_t all = name != NULL ? strlen(name) : 0;

        if (name == NULL)
            continue;
        if ((all == len && strncasecmp(name, text, len) == 0)
            || (all == len + 3 && strncasecmp(name + 3, text, len) == 0))
            return sig;
    }
    return aq_signal_parse_number(text, len);
}
