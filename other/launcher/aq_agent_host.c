/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent_host.c - gasnetrun --agent, which sshd runs on each host of a job.
 * Threads   one
 * Order     send the hello; receive the setup from the parent; start the child agents, then the
 *           ranks of this host. Each turn of the loop starts a few ranks, since starting thousands
 *           takes longer than the parent waits for a sign of life
 * Promise   stdin and stdout carry frames only; ranks never see them
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "aq_config.h"
#include "other/launcher/aq_agent.h"

#define AQ_HOST_AT_ONCE 16 /* ranks started in one turn of the loop */
/* without a setup by then, a user may have run this program by hand */
#define AQ_HOST_SETUP_MS 60000

static char *aq_host_join(const char *first, const char *second)
{
    char *text;

    if (second == NULL || *second == '\0' || strcmp(first, second) == 0)
        return strdup(first);
    return asprintf(&text, "%s:%s", first, second) > 0 ? text : NULL;
}

/* This host's PATH goes first, since it knows the host's folders. For libraries the user's path
 * goes first, since the user may have set it for this program. */
static void aq_host_environment(const struct aq_plan *plan)
{
    for (size_t i = 0; plan->set[i] != NULL; i++) {
        char *name = plan->set[i], *value = strchr(name, '='), *merged = NULL;

        if (value == NULL)
            continue;
        *value++ = '\0';
        if (strcmp(name, "PATH") == 0)
            merged = aq_host_join(getenv(name) != NULL ? getenv(name) : value, value);
        else if (strcmp(name, "LD_LIBRARY_PATH") == 0)
            merged = aq_host_join(value, getenv(name));
        setenv(name, merged != NULL ? merged : value, 1);
        free(merged);
    }
}

static void aq_host_say(void *arg, const char *kind, const char *line, size_t len)
{
    struct aq_node *n = arg;
    struct aq_pack p = { .buf = NULL };

    aq_pack_bytes(&p, kind, strlen(kind) + 1);
    aq_pack_bytes(&p, line, len);
    aq_link_send_pack(&n->up, AQ_FRAME_SAY, 0, &p);
}

static void aq_host_forked(struct aq_node *n, int error)
{
    struct aq_start *s = n->start;

    if (s->exec_error != 0)
        aq_node_fail(n, 1, "host %s cannot run %s: %s", n->plan.host_name[n->host], n->lo->program,
                     aq_start_exec_text(error));
    else if (!n->shutdown->logged)
        aq_supervise_say_fork_failed(n->sv, n->started, error);
    n->shutdown->logged = true;
    aq_shutdown_fail(n->shutdown, 1);
}

/* closes the ranks' ends of the pipes: otherwise this process would never see the ranks close
 * them */
static void aq_host_all_started(struct aq_node *n)
{
    aq_start_close(n->start);
    if (n->start->link_fd >= 0)
        close(n->start->link_fd);
    n->start->link_fd = -1;
}

void aq_host_start_some(struct aq_node *n)
{
    uint32_t size = n->sv->jobarea->size;

    if (n->started >= size || n->shutdown->start_ns != 0)
        return;
    if (n->failed[0] != '\0') {
        aq_node_fail(n, 1, "%s", n->failed);
        return;
    }
    for (int i = 0; i < AQ_HOST_AT_ONCE && n->started < size; i++) {
        int error = aq_stream_make(n, n->started, n->start->stdio)
                        ? aq_start_slot(n->start, n->started)
                        : errno;

        for (int fd = 0; fd < 3; fd++) {
            if (n->start->stdio[fd] >= 0)
                close(n->start->stdio[fd]);
            n->start->stdio[fd] = -1;
        }
        if (n->sv->child[n->started] > 0)
            n->shutdown->alive++;
        if (error != 0) {
            aq_host_forked(n, error);
            return;
        }
        n->started++;
    }
    if (n->started == size)
        aq_host_all_started(n);
}

/* The user has stopped the job at the terminal, or continued it. */
void aq_host_pause(struct aq_node *n, bool on)
{
    uint64_t now = aq_jobarea_now_ns();

    for (uint32_t i = 0; i < n->sv->jobarea->size; i++) {
        /* relaxed: written once */
        pid_t pid = atomic_load_explicit(&n->sv->jobarea->rank[i].pid, memory_order_relaxed);

        if (n->sv->child[i] <= 0)
            continue;
        kill(n->sv->child[i], on ? SIGSTOP : SIGCONT);
        if (pid > 0 && pid != n->sv->child[i])
            kill(pid, on ? SIGSTOP : SIGCONT);
    }
    n->paused = on;
    n->up.last_seen_ns = now;
    for (uint32_t i = 0; i < n->children; i++)
        n->child[i].last_seen_ns = now;
}

/* reserves stdin and stdout for frames; other output to stdout goes to stderr */
static void aq_host_take_stdio(struct aq_node *n)
{
    int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10),
        out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    uint8_t hello[AQ_HELLO_BYTES];

    if (in < 0 || out < 0 || null_fd < 0)
        exit(1);
    dup2(null_fd, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    close(null_fd);
    aq_link_init(&n->up, in, out, -1);
    n->up.state = AQ_LINK_OPEN;
    aq_frame_make_hello(hello, PACKAGE_VERSION);
    aq_pack_bytes(&n->up.tx, hello, sizeof(hello));
}

/* Waits for SETUP and BEGIN. Returns false if the parent has ended or its message is invalid: the
 * parent reports that itself. */
static bool aq_host_read_setup(struct aq_node *n, uint32_t *end_out)
{
    uint64_t limit = aq_jobarea_now_ns() + AQ_HOST_SETUP_MS * AQ_AGENT_MS;
    struct aq_frame f;
    uint8_t *blob;
    int rc;

    while (aq_jobarea_now_ns() < limit) {
        struct pollfd p[2] = { { n->up.in, POLLIN, 0 },
                               { aq_link_has_output(&n->up) ? n->up.out : -1, POLLOUT, 0 } };

        if (!aq_link_flush(&n->up))
            return false;
        poll(p, 2, 1000);
        if (p[0].revents != 0 && !aq_link_receive(&n->up))
            return false;
        while ((rc = aq_frame_next(&n->up.rx, &f)) > 0) {
            if (f.type == AQ_FRAME_SETUP && n->plan.blob == NULL) {
                blob = malloc(f.len + 1);
                if (blob == NULL || !aq_plan_read(&n->plan, memcpy(blob, f.data, f.len), f.len))
                    return false;
            } else if (f.type == AQ_FRAME_BEGIN && n->plan.blob != NULL) {
                struct aq_unpack u = { f.data, f.len, false };

                n->host = aq_unpack_u32(&u);
                *end_out = aq_unpack_u32(&u);
                n->up.credit[STDOUT_FILENO] = n->up.credit[STDERR_FILENO] = aq_unpack_u32(&u);
                return !u.failed && n->host < *end_out && *end_out <= n->plan.hosts;
            }
        }
        if (rc < 0)
            return false;
    }
    return false;
}

/* enters the folder and finds the program; a failure is reported once the loop runs */
static void aq_host_find_program(struct aq_node *n)
{
    const char *why = "", *host = n->plan.host_name[n->host];

    if (chdir(n->plan.directory) != 0)
        snprintf(n->failed, sizeof(n->failed),
                 "host %s has no directory %s (%s); GASNET_SSH_REMOTE_PATH says where to start",
                 host, n->plan.directory, strerror(errno));
    else if ((n->lo->program = aq_launch_look_up(n->plan.argv[0], &why)) == NULL)
        snprintf(n->failed, sizeof(n->failed), "host %s: %s: %s (started in %s)", host,
                 n->plan.argv[0], why, n->plan.directory);
    else
        setenv("PWD", n->plan.directory, 1); /* the remote shell has set it to its own folder */
}

static void aq_host_launch(struct aq_node *n, struct aq_launch *lo)
{
    lo->self = "gasnetrun";
    lo->info = aq_conduit_infos[0]; /* the first rank of the job knows which conduit is used */
    strcpy(lo->conduit, lo->info->name);
    lo->ranks = n->plan.host_ranks[n->host];
    lo->cpus = (int)n->plan.cpus - 1;
    lo->bind = (enum aq_launch_bind)n->plan.bind;
    lo->verbose = (int)n->plan.verbose;
    lo->spawner = AQ_SPAWNER_SSH;
    lo->argv = n->plan.argv;
    n->lo = lo;
}

static void aq_host_open(struct aq_node *n, struct aq_start *s)
{
    static struct aq_jobarea_topo topo; /* used while the job area is made */
    sigset_t pipe_set;
    int pair[2];

    topo = (struct aq_jobarea_topo){
        .job_size = n->plan.ranks,
        .rank_base = n->plan.host_first[n->host],
        .host_index = n->host,
        .host_count = n->plan.hosts,
        .host_ranks = n->plan.host_ranks,
        .job_key = n->plan.key,
        .environment = (const char *)n->plan.environment,
        .environment_bytes = n->plan.environment_bytes,
    };
    s->sv.topo = &topo;
    s->sv.follow = true;
    aq_start_open(s, n->lo);
    n->sv = &s->sv;
    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe_set, NULL);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        aq_launch_error(n->lo, "socketpair: %s", strerror(errno));
    n->local_fd = pair[0];
    s->link_fd = aq_launch_high_fd(n->lo, pair[1]);
    s->sv.jobarea->link_fd = s->link_fd;
}

int aq_agent_main(void)
{
    static struct aq_launch lo;
    static struct aq_start s;
    static struct aq_node n;
    uint32_t end;

    n.feed_fd = n.local_fd = -1;
    setsid(); /* distinguishes processes that ranks leave behind from processes of others */
    aq_host_take_stdio(&n);
    if (!aq_host_read_setup(&n, &end))
        return 1;
    aq_host_environment(&n.plan);
    aq_host_launch(&n, &lo);
    aq_host_find_program(&n);
    aq_out_init(&n);
    aq_node_children(&n, n.host + 1, end);
    n.start = &s;
    aq_stream_open(&n, lo.ranks);
    aq_host_open(&n, &s);
    if (!aq_node_run_io(&n))
        return 1;
    aq_shutdown_say_to(aq_host_say, &n);
    for (uint32_t i = 0; i < n.children; i++) {
        if (!aq_ssh_start(&n, &n.child[i])) {
            snprintf(n.failed, sizeof(n.failed), "host %s cannot start %s for host %s: %s",
                     n.plan.host_name[n.host], n.plan.ssh[0], n.plan.host_name[n.child[i].first],
                     strerror(errno));
            aq_link_close(&n.child[i]);
        }
    }
    return aq_supervise_run(n.sv);
}
