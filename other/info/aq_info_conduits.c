/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_info_conduits.c - which conduits this library has, whether each works on this machine and why
 * not, and the limits that a client would see.
 * A child process starts a job of one rank on the conduit and ends it, so that the limits are the
 * ones that a client gets. Those of messages between hosts come from the conduit's table.
 * Uses      base/aq_report.h, gasnetex.h
 */
#include "other/info/aq_info.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/aq_report.h"
#include "gasnetex.h"

struct info_limits {
    unsigned max_args;
    unsigned pad;
    uint64_t request_medium, reply_medium, request_long, reply_long;
    uint64_t segment, max_threads;
    struct aq_job_report job;
};

extern char **environ;

/* a launcher that started aq-info must not take the child for one of its ranks */
static void info_detach_launcher(void)
{
    static const char *const prefixes[] = { "PMI", "AQ_SPAWN", "GASNET_PSHM_NODES",
                                            "SLURM_PROCID" };
    bool again = true;

    while (again) {
        again = false;
        for (char **e = environ; *e != NULL && !again; e++)
            for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]) && !again; i++)
                if (strncmp(*e, prefixes[i], strlen(prefixes[i])) == 0) {
                    char name[128];

                    snprintf(name, sizeof(name), "%.*s", (int)strcspn(*e, "="), *e);
                    again = unsetenv(name) == 0;
                    if (again)
                        break;
                }
    }
}

/* in the child: starts a job, reads its limits, reports them, ends */
static _Noreturn void info_limits_child(const char *conduit, int out)
{
    /* makes udp start a job of one rank here; other conduits ignore it */
    char self[] = "aq-info", one[] = "1", *words[] = { self, one, NULL }, **argv = words;
    int argc = 2;
    struct info_limits limits;
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(20);
    info_detach_launcher();
    setenv("GASNET_QUIET", "1", 1);
    setenv("GASNET_VERBOSEENV", "0", 1);
    setenv("GASNET_CONDUIT", conduit, 1);
    setenv("GASNET_SPAWNFN", "L", 1);
    memset(&limits, 0, sizeof(limits));
    if (gex_Client_Init(&client, &ep, &tm, "aq-info", &argc, &argv, 0) != GASNET_OK)
        _exit(1);
    limits.max_args = gex_AM_MaxArgs();
    limits.request_medium = gex_AM_MaxRequestMedium(tm, 0, GEX_EVENT_NOW, 0, 0);
    limits.reply_medium = gex_AM_MaxReplyMedium(tm, 0, GEX_EVENT_NOW, 0, 0);
    limits.request_long = gex_AM_MaxRequestLong(tm, 0, GEX_EVENT_NOW, 0, 0);
    limits.reply_long = gex_AM_MaxReplyLong(tm, 0, GEX_EVENT_NOW, 0, 0);
    limits.segment = gasnet_getMaxLocalSegmentSize();
    aq_report_job(&limits.job);
    limits.max_threads = gex_System_QueryMaxThreads();
    (void)!write(out, &limits, sizeof(limits)); /* atomic: shorter than PIPE_BUF */
    gasnet_exit(0);
}

static size_t info_drain(int fd, char *buf, size_t size)
{
    size_t used = 0;
    ssize_t got;

    while (used < size
           && ((got = read(fd, buf + used, size - used)) > 0 || (got < 0 && errno == EINTR)))
        used += got > 0 ? (size_t)got : 0;
    return used;
}

/* false: text holds the child's output on stderr */
static bool info_ask_limits(const char *conduit, struct info_limits *limits_out, char *text,
                            size_t size)
{
    int answer[2], complaint[2];
    size_t got;
    pid_t child;

    fflush(NULL);
    snprintf(text, size, "no pipe or process: %s", strerror(errno));
    if (pipe(answer) != 0)
        return false;
    if (pipe(complaint) != 0) {
        close(answer[0]);
        close(answer[1]);
        return false;
    }
    child = fork();
    if (child == 0) {
        dup2(complaint[1], STDERR_FILENO);
        close(complaint[0]);
        close(complaint[1]);
        close(answer[0]);
        info_limits_child(conduit, answer[1]);
    }
    close(answer[1]);
    close(complaint[1]);
    got = info_drain(complaint[0], text, size - 1);
    text[got] = '\0';
    got = info_drain(answer[0], (char *)limits_out, sizeof(*limits_out));
    close(answer[0]);
    close(complaint[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return got == sizeof(*limits_out);
}

/* A job of one rank has only a local rank; the table has the limits of remote ones. */
static void info_remote_limits_of(const struct aq_conduit_report *conduit)
{
    if (!conduit->network)
        return;
    aq_info_bytes("am_max_remote_medium", "AM medium, remote ranks", conduit->min_medium,
                  "in jobs with ranks that share no memory");
    aq_info_bytes("am_max_remote_long", "AM long, remote ranks", conduit->min_long, NULL);
}

static void info_limits_of(const struct aq_conduit_report *conduit)
{
    struct info_limits limits;
    char text[2048];

    if (!info_ask_limits(conduit->info->name, &limits, text, sizeof(text))) {
        text[strcspn(text, "\n")] = '\0';
        aq_info_text("start_failed", "does not start", text, NULL);
        return;
    }
    aq_info_count("am_max_args", "AM arguments", limits.max_args, NULL);
    aq_info_bytes("am_max_request_medium", "AM request medium", limits.request_medium, NULL);
    aq_info_bytes("am_max_reply_medium", "AM reply medium", limits.reply_medium, NULL);
    aq_info_bytes("am_max_request_long", "AM request long", limits.request_long, NULL);
    aq_info_bytes("am_max_reply_long", "AM reply long", limits.reply_long, NULL);
    info_remote_limits_of(conduit);
    aq_info_bytes("max_segment", "segment of a lone rank", limits.segment, limits.job.segment_from);
    aq_info_bytes("own_memory", "library's own memory", limits.job.host_bytes, "for a lone rank");
    aq_info_count("max_threads", "client threads", limits.max_threads, NULL);
}

void aq_info_conduits(bool with_limits)
{
    struct aq_conduit_report conduit;

    aq_info_list("conduits", "Conduits");
    for (size_t i = 0; aq_report_conduit(i, &conduit); i++) {
        aq_info_section(NULL, NULL);
        aq_info_text("name", NULL, conduit.info->name, NULL);
        aq_info_text("about", NULL, conduit.info->about, NULL);
        aq_info_yesno("usable", NULL, conduit.works, NULL);
        if (!conduit.works)
            aq_info_text("reason", NULL, conduit.why, NULL);
        aq_info_yesno("one_sided", NULL, conduit.one_sided, NULL);
        aq_info_text(NULL, conduit.info->name, conduit.info->about, NULL);
        if (conduit.works)
            aq_info_text(NULL, "", "can be used here", NULL);
        else
            aq_info_text(NULL, "", "cannot be used here", conduit.why);
        if (conduit.works && with_limits)
            info_limits_of(&conduit);
        aq_info_section_end();
    }
    aq_info_list_end();
}
