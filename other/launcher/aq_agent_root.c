/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent_root.c - gasnetrun on the user's host, for a job on several hosts: the root of the tree.
 * Threads   one
 * Promise   the exit status is the job's; the end of this process, however caused, ends the job
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "other/launcher/aq_agent.h"
#include "other/launcher/aq_launch_self.h"

static void aq_root_describe(const struct aq_launch *lo, const struct aq_plan *plan,
                             const char *from)
{
    char ranks[64];

    fprintf(stderr, "gasnetrun: %s %u rank%s on %u host%s (conduit %s, %s; hosts from %s):",
            lo->dry ? "would start" : "starting", plan->ranks, plan->ranks == 1 ? "" : "s",
            plan->hosts, plan->hosts == 1 ? "" : "s", lo->conduit,
            lo->workers != NULL ? "started by GASNET_CSPAWN_CMD" : "spawner ssh", from);
    for (int i = 0; plan->argv[i] != NULL; i++)
        fprintf(stderr, " %s", plan->argv[i]);
    fprintf(stderr, "\ngasnetrun: in %s there, agents by %s\n", plan->directory, plan->remote);
    for (uint32_t h = 0; h < plan->hosts; h++)
        fprintf(stderr, "gasnetrun: host %s: %s\n", plan->host_name[h],
                aq_plan_ranks(plan, h, h + 1, ranks));
}

static void aq_root_describe_tree(const struct aq_node *n)
{
    for (uint32_t i = 0; i < n->children; i++) {
        const struct aq_link *l = &n->child[i];

        fprintf(stderr, "gasnetrun:");
        aq_ssh_print(&n->plan, l->first);
        if (l->end - l->first > 1)
            fprintf(
                stderr,
                "gasnetrun: and host %s starts %u others in the same way (GASNET_SSH_OUT_DEGREE)\n",
                n->plan.host_name[l->first], l->end - l->first - 1);
    }
}

/* Writes "ibv, udp, mpi": the conduits that join hosts. Returns text. */
static const char *aq_root_networks(char *text, size_t size)
{
    size_t len = 0;

    *text = '\0';
    for (size_t i = 0; aq_conduit_infos[i] != NULL && len < size; i++)
        if (!aq_conduit_infos[i]->one_host)
            len += (size_t)snprintf(text + len, size - len, "%s%s", len > 0 ? ", " : "",
                                    aq_conduit_infos[i]->name);
    return text;
}

static void aq_root_hosts(struct aq_launch *lo, struct aq_hosts *hosts)
{
    char networks[128];
    int rc;

    if (lo->workers != NULL) {
        *hosts = *lo->workers;
        return;
    }
    hosts->aliases = lo->info->aliases;
    rc = aq_hosts_find(hosts, lo->host_list, lo->host_file, NULL, 0);
    if (rc == 1)
        aq_launch_error(
            lo, aq_amudprun_is(lo)
                    ? "on which hosts? Set GASNET_SSH_SERVERS='host1 host2 ...', or "
                      "GASNET_SPAWNFN=L for "
                      "this host"
                    : "spawner ssh: on which hosts? Write -H a,b,c or --hostfile FILE, or set "
                      "GASNET_SSH_SERVERS");
    if (rc != 0 || aq_hosts_place(hosts, lo->ranks, lo->hosts) != 0)
        aq_launch_error(lo, "%s", hosts->why);
    if (hosts->count > 1 && lo->conduit_known && lo->info->one_host)
        aq_launch_error(
            lo,
            "conduit %s runs on one host only; for the %zu of %s use one for several (%s: link the "
            "program with its archive or the shared library)",
            lo->conduit, hosts->count, hosts->from, aq_root_networks(networks, sizeof(networks)));
}

static void aq_root_say(void *arg, const char *kind, const char *line, size_t len)
{
    (void)kind;
    aq_out_push(arg, STDERR_FILENO, AQ_AGENT_NOBODY, line, len);
}

static void aq_root_start_children(struct aq_node *n)
{
    struct rlimit lim;
    rlim_t need = (rlim_t)n->children * 3 + 64;

    if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < need) {
        lim.rlim_cur = lim.rlim_max < need ? lim.rlim_max : need;
        setrlimit(RLIMIT_NOFILE, &lim);
    }
    for (uint32_t i = 0; i < n->children; i++)
        if (!aq_ssh_start(n, &n->child[i]))
            aq_launch_error(n->lo,
                            "cannot start %s for host %s: %s; raise ulimit -n or ulimit -u, or set "
                            "GASNET_SSH_OUT_DEGREE lower",
                            n->plan.ssh[0], n->plan.host_name[n->child[i].first], strerror(errno));
}

/* A worker that only waits for the job's end was killed, or its connection broke. The user, or the
 * batch system, meant to end a rank of the job. */
void aq_root_lose_idle(struct aq_node *n, struct aq_launch_idle *w)
{
    close(w->fd);
    w->fd = -1;
    /* relaxed: this thread is the one that moves it beyond SHUTDOWN */
    if (atomic_load_explicit(&n->sv->jobarea->exit_state, memory_order_relaxed) < AQ_EXIT_ASKED)
        aq_node_fail(
            n, AQ_AGENT_LOST,
            "the worker of rank %u on host %s was lost: it was killed, or its connection broke "
            "(see what GASNET_CSPAWN_CMD has said); ending the job",
            w->rank, w->host);
}

static bool aq_root_verbose(const struct aq_launch *lo)
{
    const char *text = getenv("GASNET_SPAWN_VERBOSE");
    bool on = false;

    if (text != NULL)
        aq_env_parse_bool(text, &on);
    return on || lo->verbose >= 2;
}

int aq_launch_hosts(struct aq_launch *lo)
{
    static struct aq_supervise sv;
    static struct aq_node n;
    static struct aq_hosts hosts;
    sigset_t pipe_set;
    int jobarea_fd, code;

    aq_root_hosts(lo, &hosts);
    n.lo = lo;
    n.is_root = true;
    n.sv = &sv;
    n.feed_fd = n.local_fd = -1;
    aq_plan_make(&n.plan, lo, &hosts);
    aq_node_children(&n, 0, n.plan.hosts);
    if (lo->tell)
        aq_root_describe(lo, &n.plan, hosts.from);
    if (lo->tell && (lo->dry || lo->verbose > 1))
        aq_root_describe_tree(&n);
    if (lo->dry)
        return 0;
    sv.stop_too = true;
    code = aq_supervise_open(&sv, 0, &jobarea_fd);
    if (code != 0)
        aq_launch_error(lo, "cannot make shared memory: %s%s", strerror(-code),
                        aq_jobarea_remedy(-code));
    close(jobarea_fd);
    sv.verbose = aq_root_verbose(lo);
    sv.jobarea->exit_timeout_ms = aq_jobarea_timeout_env(lo->ranks);
    /* blocked, not ignored: processes started here get the old mask back */
    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe_set, NULL);
    aq_out_init(&n);
    for (int i = 0; i < 3; i++)
        aq_console_open(&n.console[i], i);
    n.stdin_end = n.console[STDIN_FILENO].fd < 0;
    aq_root_start_children(&n);
    aq_shutdown_say_to(aq_root_say, &n);
    if (!aq_node_run_io(&n))
        aq_launch_error(lo, "out of memory");
    code = aq_supervise_run(&sv);
    aq_out_pump(&n);
    lo->signal = sv.signal;
    return code;
}
