/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_launch_custom.c - SPAWNFN=C, the master: CSPAWN_CMD starts the workers, on any hosts; they
 * connect back by TCP; the job then runs as over ssh, with an encrypted line to each host's worker
 * in ssh's place.
 * Owns      the file by which workers find this process: mode 0600, removed once all workers have
 *           connected, and in any case with this process (aq_custom_cleaner.c)
 * Threads   one
 * Promise   no secret is in an environment or a command line. An unauthenticated peer that connects
 *           learns nothing and cannot keep workers out. The loss of a worker ends the job: before
 *           it has connected (by timeout), while others are awaited, and later (aq_agent_root.c)
 * See       aq_custom_wire.h
 */
#include "other/launcher/aq_launch_self.h"

#ifndef AQ_HAVE_SODIUM

int aq_launch_custom(struct aq_launch *lo)
{
    aq_launch_error(lo, "GASNET_SPAWNFN=C: this program is built without libsodium");
}

int aq_worker_main(const char *file)
{
    fprintf(stderr, "gasnetrun: %s: this program is built without libsodium\n", file);
    return 1;
}

int aq_tunnel_main(int argc, char **argv)
{
    return aq_worker_main(argv[argc - 1]);
}

#else

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "other/launcher/aq_agent.h"
#include "other/launcher/aq_hostlist.h"
#include "other/launcher/aq_launch_custom.h"
#include "other/spawn/aq_jobarea.h"

#define AQ_CUSTOM_HANDSHAKE_NS 20000000000ull
#define AQ_CUSTOM_NOTE_NS      30000000000ull
/* timeouts after the command's end during which workers may connect */
#define AQ_CUSTOM_AFTER        6
#define AQ_CUSTOM_END_MS       5000 /* for the command to end after the job */

static struct aq_custom aq_custom_me; /* static, so that a signal handler finds it */

/* ---- cleanup ------------------------------------------------------------------------------- */

static void aq_custom_remove_file(void)
{
    if (aq_custom_me.file[0] != '\0')
        unlink(aq_custom_me.file);
    aq_custom_me.file[0] = '\0';
}

static void aq_custom_stop_command(void)
{
    if (aq_custom_me.command > 0)
        kill(-aq_custom_me.command, SIGTERM);
}

_Noreturn void aq_custom_give_up(const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "%s: ", aq_custom_me.lo->self);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap); /* the name of the file may be among the arguments */
    va_end(ap);
    fputc('\n', stderr);
    aq_custom_remove_file();
    aq_custom_stop_command();
    exit(1);
}

/* handles signals while workers are awaited; unlink() and kill() are async-signal-safe */
static void aq_custom_on_signal(int sig)
{
    aq_custom_remove_file();
    aq_custom_stop_command();
    signal(sig, SIG_DFL);
    raise(sig);
}

static void aq_custom_signals(void (*handler)(int))
{
    static const int caught[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
    struct sigaction old;

    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
        if (caught[i] != SIGHUP
            || (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN))
            signal(caught[i], handler);
}

/* raises the limit of open files: one descriptor for each worker */
static void aq_custom_raise_limit(uint32_t ranks)
{
    struct rlimit lim;

    if (getrlimit(RLIMIT_NOFILE, &lim) != 0 || lim.rlim_cur >= (rlim_t)ranks * 2 + 256)
        return;
    lim.rlim_cur = lim.rlim_max;
    setrlimit(RLIMIT_NOFILE, &lim);
    if (lim.rlim_max < (rlim_t)ranks + 128)
        aq_custom_give_up("%u workers need more descriptors than the %ju allowed; raise ulimit -n",
                          ranks, (uintmax_t)lim.rlim_max);
}

/* ---- the user's command -------------------------------------------------------------------- */

static void aq_custom_run(struct aq_custom *c, const char *command)
{
    aq_launch_tell(c->lo, "running: %s", command);
    fflush(NULL);
    c->command = fork();
    if (c->command < 0)
        aq_custom_give_up("cannot start %s: %s", command, strerror(errno));
    if (c->command == 0) {
        int null_fd = open("/dev/null", O_RDONLY);

        /* its own process group: gasnetrun handles ^C and ends the job in order */
        setpgid(0, 0);
        aq_custom_tell_cleaner(c->cleaner, getpid()); /* before the command can start anything */
        aq_custom_signals(SIG_DFL);
        dup2(null_fd, STDIN_FILENO);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    setpgid(c->command, c->command);
}

/* ---- workers connect ----------------------------------------------------------------------- */

static void aq_custom_drop(struct aq_custom *c, struct aq_unauth *v)
{
    close(v->fd);
    v->fd = -1;
    c->unauthenticated++;
}

static void aq_custom_accept(struct aq_custom *c, uint64_t now)
{
    struct aq_unauth *at = NULL;
    uint32_t dice = (uint32_t)now;
    int fd = accept4(c->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0)
        return;
    for (size_t i = 0; i < AQ_CUSTOM_PENDING && at == NULL; i++)
        if (c->unauth[i].fd < 0)
            at = &c->unauth[i];
    if (at == NULL) {
        /* Drops a random connection. If it were the oldest, an unauthenticated peer with enough
         * connections could push every worker out before the worker has answered */
        if (getrandom(&dice, sizeof(dice), GRND_NONBLOCK) != (ssize_t)sizeof(dice))
            dice ^= (uint32_t)(now >> 32);
        at = &c->unauth[dice % AQ_CUSTOM_PENDING];
        aq_custom_drop(c, at);
    }
    memset(at, 0, sizeof(*at));
    at->fd = fd;
    at->since_ns = now;
    memcpy(at->handshake.key, c->key, sizeof(c->key));
}

static void aq_custom_admit(struct aq_custom *c, struct aq_unauth *v,
                            const struct aq_worker_info *info)
{
    struct aq_worker *w = &c->worker[c->count];
    struct sockaddr_storage from;
    socklen_t len = sizeof(from);

    if (c->count == c->lo->ranks)
        aq_custom_give_up(
            "more than %u workers have come: GASNET_CSPAWN_CMD must start %%C only %%N times",
            c->lo->ranks);
    if (info->rank[0] == '?')
        aq_custom_give_up("worker on host %s: GASNET_WORKER_RANK: '%.*s' is not a rank; give a "
                          "number or the name of a variable that holds one, such as SLURM_PROCID",
                          info->host, AQ_WORKER_RANK - 2, info->rank + 1);
    memset(w, 0, sizeof(*w));
    w->fd = v->fd;
    w->rank = info->rank[0] != '\0' ? atoll(info->rank) : -1;
    w->info = *info;
    if (getpeername(v->fd, (struct sockaddr *)&from, &len) == 0 && from.ss_family == AF_INET6) {
        memcpy(w->address, &((struct sockaddr_in6 *)&from)->sin6_addr, 16);
        w->port = ntohs(((struct sockaddr_in6 *)&from)->sin6_port);
    } else if (from.ss_family == AF_INET) {
        memcpy(w->address + 12, &((struct sockaddr_in *)&from)->sin_addr, 4);
        w->port = ntohs(((struct sockaddr_in *)&from)->sin_port);
    }
    aq_custom_keys(&v->handshake, w->tx_key, w->rx_key);
    fcntl(w->fd, F_SETFL, fcntl(w->fd, F_GETFL) & ~O_NONBLOCK);
    setsockopt(w->fd, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof(int));
    v->fd = -1;
    c->count++;
    c->came_ns = aq_jobarea_now_ns();
    aq_launch_tell(c->lo, "worker %u of %u is here, from host %s", c->count, c->lo->ranks,
                   info->host);
}

static void aq_custom_receive(struct aq_custom *c, struct aq_unauth *v)
{
    size_t need = v->state == AQ_UNAUTH_HELLO ? AQ_CUSTOM_HELLO : AQ_CUSTOM_CLAIM;
    ssize_t n = recv(v->fd, v->buf + v->have, need - v->have, 0);
    uint8_t reply[AQ_CUSTOM_REPLY];
    struct aq_worker_info info;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        aq_custom_drop(c, v);
        return;
    }
    v->have += (size_t)n;
    if (v->have < need)
        return;
    v->have = 0;
    if (v->state == AQ_UNAUTH_HELLO) {
        v->state = AQ_UNAUTH_CLAIM;
        if (!aq_custom_reply(&v->handshake, v->buf, reply)
            || send(v->fd, reply, sizeof(reply), MSG_NOSIGNAL) != (ssize_t)sizeof(reply))
            aq_custom_drop(c, v);
    } else if (aq_custom_check_claim(&v->handshake, v->buf, &info)) {
        aq_custom_admit(c, v, &info);
    } else {
        aq_custom_drop(c, v);
    }
}

/* the command may end early if it has only submitted the work */
static void aq_custom_check_command(struct aq_custom *c, uint64_t now)
{
    if (c->command <= 0 || waitpid(c->command, &c->command_status, WNOHANG) != c->command)
        return;
    c->command = 0;
    aq_custom_tell_cleaner(c->cleaner, 0);
    c->ended_ns = now;
    if (!WIFEXITED(c->command_status) || WEXITSTATUS(c->command_status) != 0)
        aq_custom_give_up("GASNET_CSPAWN_CMD has ended with %s %d after %u of %u workers had come",
                          WIFEXITED(c->command_status) ? "status" : "signal",
                          WIFEXITED(c->command_status) ? WEXITSTATUS(c->command_status)
                                                       : WTERMSIG(c->command_status),
                          c->count, c->lo->ranks);
}

/* A worker that was killed, or could not start, before it connected is not reported by anything.
 * The batch system decides when the first one starts, as long as the command runs; the others
 * should follow it closely. */
static void aq_custom_check_time(struct aq_custom *c, uint64_t now)
{
    uint64_t since = c->came_ns > c->ended_ns ? c->came_ns : c->ended_ns;
    uint64_t limit = c->timeout_ns * (c->ended_ns != 0 ? AQ_CUSTOM_AFTER : 1);
    char present[1024];

    aq_custom_missing(c, present, sizeof(present));
    if (since != 0 && limit != 0 && now - since > limit)
        aq_custom_give_up("a worker is lost: %s, and none has come for %u s%s. It was killed, did "
                          "not start, or does "
                          "not reach this host. See what GASNET_CSPAWN_CMD has said; it must start "
                          "%%C %%N times. "
                          "If workers start slowly, raise GASNET_HOST_TIMEOUT",
                          present, (unsigned)((now - since) / 1000000000u),
                          c->ended_ns != 0 ? " since the command ended" : "");
    if (now - c->noted_ns > AQ_CUSTOM_NOTE_NS) {
        fprintf(stderr, "*** NOTICE: waiting for the workers of GASNET_CSPAWN_CMD: %s\n", present);
        c->noted_ns = now;
    }
}

static void aq_custom_lose_worker(struct aq_custom *c, const struct aq_worker *w)
{
    char rank[32] = "";

    if (w->rank >= 0)
        snprintf(rank, sizeof(rank), " of rank %lld", (long long)w->rank);
    aq_custom_give_up(
        "the worker%s on host %s was lost while %u of %u workers were here: it was killed, or its "
        "connection broke. See what GASNET_CSPAWN_CMD has said",
        rank, w->info.host, c->count, c->lo->ranks);
}

/* [0] the listening socket, then unauthenticated connections, then the workers. Returns how many
 * are to be polled */
static nfds_t aq_custom_fill(struct aq_custom *c, uint64_t now)
{
    struct pollfd *at = c->polled;

    *at++ = (struct pollfd){ c->listen_fd, POLLIN, 0 };
    for (size_t i = 0; i < AQ_CUSTOM_PENDING; i++) {
        if (c->unauth[i].fd >= 0 && now - c->unauth[i].since_ns > AQ_CUSTOM_HANDSHAKE_NS)
            aq_custom_drop(c, &c->unauth[i]);
        *at++ = (struct pollfd){ c->unauth[i].fd, POLLIN, 0 };
    }
    /* data from a worker is for the process that will serve it; only its end matters here */
    for (uint32_t i = 0; i < c->count; i++)
        *at++ = (struct pollfd){ c->worker[i].fd, POLLRDHUP, 0 };
    return (nfds_t)(at - c->polled);
}

static void aq_custom_gather(struct aq_custom *c)
{
    while (c->count < c->lo->ranks) {
        uint64_t now = aq_jobarea_now_ns();
        uint32_t workers = c->count;

        aq_custom_check_command(c, now);
        if (poll(c->polled, aq_custom_fill(c, now), 100) <= 0) {
            aq_custom_check_time(
                c, now); /* not while connections are pending: this process may have been stopped */
            continue;
        }
        for (uint32_t i = 0; i < workers; i++)
            if (c->polled[1 + AQ_CUSTOM_PENDING + i].revents != 0)
                aq_custom_lose_worker(c, &c->worker[i]);
        for (size_t i = 0; i < AQ_CUSTOM_PENDING; i++)
            if (c->polled[1 + i].revents != 0 && c->count < c->lo->ranks)
                aq_custom_receive(c, &c->unauth[i]);
        if (c->polled[0].revents != 0)
            aq_custom_accept(c, now);
    }
    close(c->listen_fd);
    for (size_t i = 0; i < AQ_CUSTOM_PENDING; i++)
        if (c->unauth[i].fd >= 0)
            aq_custom_drop(c, &c->unauth[i]);
    if (c->unauthenticated > 0)
        aq_launch_tell(c->lo, "%u connections were no workers of ours", c->unauthenticated);
}

/* finds the workers that become no agent: only their end is observed */
static void aq_custom_find_idle(struct aq_custom *c, const struct aq_hosts *hosts)
{
    size_t host = 0;

    c->lo->idle = calloc(c->count, sizeof(*c->lo->idle));
    if (c->lo->idle == NULL)
        aq_custom_give_up("out of memory");
    for (uint32_t i = 0; i < c->count; i++) {
        if (host < hosts->count && hosts->first[host] == i)
            host++;
        else
            c->lo->idle[c->lo->idles++] =
                (struct aq_launch_idle){ c->worker[i].fd, i, c->worker[i].info.host };
    }
}

/* the command should notice that its workers end, and end itself */
static void aq_custom_await_command(struct aq_custom *c)
{
    for (int ms = 0; c->command > 0 && ms < AQ_CUSTOM_END_MS; ms += 10) {
        pid_t pid = waitpid(c->command, NULL, WNOHANG);

        if (pid == c->command || (pid < 0 && errno == ECHILD)) {
            c->command = 0;
            aq_custom_tell_cleaner(c->cleaner, 0);
        } else {
            usleep(10000);
        }
    }
    aq_custom_stop_command(); /* the cleaner sends SIGKILL if that does not help */
}

int aq_launch_custom(struct aq_launch *lo)
{
    static struct aq_hosts hosts;
    struct aq_custom *c = &aq_custom_me;
    char *command;
    int code;

    c->lo = lo;
    if (lo->dry) {
        snprintf(c->file, sizeof(c->file), "FILE");
        command = aq_custom_command(c);
        c->file[0] = '\0';
        aq_launch_tell(lo, "would run: %s", command);
        return 0;
    }
    c->worker = calloc(lo->ranks, sizeof(*c->worker));
    c->polled = calloc((size_t)lo->ranks + 1 + AQ_CUSTOM_PENDING, sizeof(*c->polled));
    for (size_t i = 0; i < AQ_CUSTOM_PENDING; i++)
        c->unauth[i].fd = -1;
    if (c->worker == NULL || c->polled == NULL || !aq_custom_random(c->key, sizeof(c->key)))
        aq_custom_give_up("no memory or no random numbers");
    c->noted_ns = aq_jobarea_now_ns();
    aq_custom_raise_limit(lo->ranks);
    c->timeout_ns = aq_plan_host_timeout_ms(lo) * 1000000ull;
    aq_custom_name_file(c);
    c->cleaner = aq_custom_start_cleaner(c->file);
    if (c->cleaner < 0)
        aq_custom_give_up("cannot start a process: %s; raise ulimit -u or ulimit -n",
                          strerror(errno));
    aq_custom_listen(c);
    aq_custom_signals(aq_custom_on_signal);
    aq_custom_write_file(c);
    command = aq_custom_command(c);
    aq_custom_run(c, command);
    free(command);
    aq_custom_gather(c);
    aq_custom_remove_file();
    aq_custom_wipe(c->key, sizeof(c->key));
    aq_custom_signals(SIG_DFL);
    aq_custom_order(c);
    aq_custom_group(c, &hosts);
    aq_custom_find_idle(c, &hosts);
    lo->workers = &hosts;
    code = aq_launch_hosts(lo);
    for (uint32_t i = 0; i < c->count; i++)
        close(c->worker[i].fd); /* workers without a task end too */
    aq_custom_await_command(c);
    return code;
}

#endif
