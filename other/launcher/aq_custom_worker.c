/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_custom_worker.c - SPAWNFN=C, the two ends of an encrypted line: the worker that the user's
 * command has started (the first one of a host becomes its agent, the others only wait for the
 * end), and the process that takes ssh's place in the master.
 * Threads   one
 * See       aq_custom_wire.h; aq_launch_custom.c is the master
 */
#include "other/launcher/aq_launch_self.h"

#ifdef AQ_HAVE_SODIUM

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "other/launcher/aq_agent.h"
#include "other/launcher/aq_custom_wire.h"
#include "other/launcher/aq_launch_custom.h"

#define AQ_WORKER_TRY_MS       3000 /* for one address */
#define AQ_WORKER_FILE_MS      5000
#define AQ_WORKER_HANDSHAKE_MS 30000 /* the master may be busy with many workers */

static _Noreturn void aq_worker_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void aq_worker_fail(const char *fmt, ...)
{
    char host[256] = "?", text[1024];
    va_list ap;

    gethostname(host, sizeof(host) - 1);
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fprintf(stderr, "gasnetrun: worker on host %s: %s\n", host, text);
    exit(1);
}

/* reads exactly len bytes within the time */
static bool aq_worker_read(int fd, void *data, size_t len, int ms)
{
    for (size_t have = 0; have < len;) {
        struct pollfd p = { fd, POLLIN, 0 };
        ssize_t n;

        if (poll(&p, 1, ms) <= 0)
            return false;
        n = recv(fd, (char *)data + have, len - have, 0);
        if (n <= 0)
            return false;
        have += (size_t)n;
    }
    return true;
}

static bool aq_worker_write(int fd, const void *data, size_t len)
{
    return send(fd, data, len, MSG_NOSIGNAL) == (ssize_t)len; /* far less than a socket's buffer */
}

/* returns a connected, blocking socket, or -1 */
static int aq_worker_connect_to(const struct addrinfo *ai)
{
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;
    struct pollfd p = { fd, POLLOUT, 0 };
    socklen_t len = sizeof(error);

    if (fd < 0)
        return -1;
    if ((connect(fd, ai->ai_addr, ai->ai_addrlen) == 0
         || (errno == EINPROGRESS && poll(&p, 1, AQ_WORKER_TRY_MS) == 1))
        && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0) {
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        return fd;
    }
    close(fd);
    return -1;
}

/* verifies that the other side knows the secret */
static bool aq_worker_handshake(int fd, struct aq_custom_handshake *handshake,
                                const struct aq_worker_info *info)
{
    uint8_t hello[AQ_CUSTOM_HELLO], reply[AQ_CUSTOM_REPLY], claim[AQ_CUSTOM_CLAIM];

    aq_custom_hello(handshake, hello);
    if (!aq_worker_write(fd, hello, sizeof(hello))
        || !aq_worker_read(fd, reply, sizeof(reply), AQ_WORKER_HANDSHAKE_MS)
        || !aq_custom_check_reply(handshake, reply))
        return false;
    aq_custom_claim(handshake, info, claim);
    return aq_worker_write(fd, claim, sizeof(claim));
}

static int aq_worker_connect(const char *host, const char *port,
                             struct aq_custom_handshake *handshake,
                             const struct aq_worker_info *info)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
    int fd = -1;

    if (getaddrinfo(host, port, &hints, &list) != 0)
        return -1;
    for (struct addrinfo *ai = list; ai != NULL && fd < 0; ai = ai->ai_next) {
        fd = aq_worker_connect_to(ai);
        if (fd >= 0 && !aq_worker_handshake(fd, handshake, info)) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    return fd;
}

/* text that is equal for workers on one machine and in the same namespaces, which can share
 * memory */
static void aq_worker_machine(char *text_out, size_t size)
{
    static const char *const files[] = { "/proc/self/ns/net", "/proc/self/ns/pid",
                                         "/proc/self/ns/mnt", "/proc/self/ns/ipc",
                                         "/proc/self/ns/user" };
    char boot[64] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    size_t at;

    if (f != NULL) {
        if (fgets(boot, sizeof(boot), f) == NULL)
            boot[0] = '\0';
        fclose(f);
    }
    boot[strcspn(boot, "\n")] = '\0';
    at = (size_t)snprintf(text_out, size, "%s", boot);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct stat st;

        if (stat(files[i], &st) == 0 && at < size)
            at +=
                (size_t)snprintf(text_out + at, size - at, " %llu", (unsigned long long)st.st_ino);
    }
}

/* WORKER_RANK: a number, or the name of a variable that holds one. The beginning of another text
 * goes to the master, behind a question mark: the master's message ends the job. */
static void aq_worker_rank(char rank_out[AQ_WORKER_RANK])
{
    const char *given = getenv("GASNET_WORKER_RANK"), *text = given;

    if (given == NULL || *given == '\0')
        return;
    if (strspn(given, "0123456789") != strlen(given))
        text = getenv(given);
    if (text == NULL || *text == '\0')
        text = given;
    if (strspn(text, "0123456789") == strlen(text) && strlen(text) <= 9)
        strcpy(rank_out, text);
    else
        snprintf(rank_out, AQ_WORKER_RANK, "?%s", text);
}

static void aq_worker_describe(struct aq_worker_info *info)
{
    cpu_set_t set;

    memset(info, 0, sizeof(*info));
    gethostname(info->host, sizeof(info->host) - 1);
    aq_worker_machine(info->machine, sizeof(info->machine));
    aq_launch_self_names();
    aq_worker_rank(info->rank);
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        memcpy(info->cpus, &set, sizeof(info->cpus));
}

/* opens a file that may become visible on this host after a delay */
static FILE *aq_worker_open(const char *path)
{
    FILE *f = fopen(path, "re");

    for (int ms = 0; f == NULL && errno == ENOENT && ms < AQ_WORKER_FILE_MS; ms += 100) {
        usleep(100000);
        f = fopen(path, "re");
    }
    return f;
}

/* reads the master's file: "key HEX", "port N", "address A" */
static int aq_worker_join(const char *path, struct aq_custom_handshake *handshake,
                          const struct aq_worker_info *info)
{
    FILE *f = aq_worker_open(path);
    char word[16], value[300], tried[300] = "none", port[8] = "";
    int fd = -1;

    if (f == NULL)
        aq_worker_fail("cannot read %s: %s; the folder must be shared by all hosts, GASNET_TMPDIR "
                       "names another one",
                       path, strerror(errno));
    while (fd < 0 && fscanf(f, "%15s %299s", word, value) == 2) {
        if (strcmp(word, "key") == 0 && strlen(value) == 2 * AQ_CUSTOM_KEY) {
            for (size_t i = 0; i < AQ_CUSTOM_KEY; i++)
                (void)sscanf(value + 2 * i, "%2hhx", &handshake->key[i]);
        } else if (strcmp(word, "port") == 0 && strlen(value) < sizeof(port)) {
            strcpy(port, value);
        } else if (strcmp(word, "address") == 0) {
            strcpy(tried, value);
            fd = aq_worker_connect(value, port, handshake, info);
        }
    }
    fclose(f);
    if (fd < 0)
        aq_worker_fail("no address of the first process answers (the last one tried: %s, port %s); "
                       "GASNET_MASTERIP names the "
                       "address to use, and no firewall may stand between",
                       tried, port);
    return fd;
}

static pid_t aq_worker_agent;

/* The master has chosen this worker as its host's agent; the first message contains the CPUs. */
static bool aq_worker_begin(struct aq_custom_line *line, const uint8_t *data, size_t len)
{
    int to[2], from[2];
    cpu_set_t set;

    if (len != AQ_CUSTOM_CPUS || pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        return false;
    CPU_ZERO(&set);
    memcpy(&set, data, AQ_CUSTOM_CPUS);
    aq_worker_agent = fork();
    if (aq_worker_agent < 0)
        aq_worker_fail("cannot start the agent: %s", strerror(errno));
    if (aq_worker_agent == 0) {
        /* may fail where each worker is bound to its own CPUs: its ranks then share them */
        (void)sched_setaffinity(0, sizeof(set), &set);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_DFL);
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        /* without exec close-on-exec has no effect: with a copy of its own line's other end, the
         * agent would never see it close */
        close(to[1]);
        close(from[0]);
        close(line->sock);
        exit(aq_agent_main());
    }
    close(to[0]);
    close(from[1]);
    line->plain_in = from[0];
    line->plain_out = to[1];
    return true;
}

int aq_worker_main(const char *file)
{
    struct aq_custom_line line = { .plain_in = -1, .plain_out = -1 };
    struct aq_custom_handshake handshake;
    struct aq_worker_info info;

    if (!aq_custom_random(&handshake, sizeof(handshake)))
        aq_worker_fail("no random numbers");
    aq_worker_describe(&info);
    line.sock = aq_worker_join(file, &handshake, &info);
    setsockopt(line.sock, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 },
               sizeof(int)); /* the job may begin much later */
    aq_custom_keys(&handshake, line.rx_key, line.tx_key);
    aq_custom_wipe(&handshake, sizeof(handshake));
    signal(SIGPIPE, SIG_IGN);
    /* workers whose host already has an agent receive nothing: their connection is closed at the
     * end */
    (void)aq_custom_relay(&line, NULL, 0, aq_worker_begin);
    if (aq_worker_agent > 0)
        waitpid(aq_worker_agent, NULL, 0);
    return 0; /* the master reports how the job ended */
}

int aq_tunnel_main(int argc, char **argv)
{
    struct aq_custom_line line = { .plain_in = STDIN_FILENO,
                                   .plain_out = STDOUT_FILENO,
                                   .sock = -1 };
    struct aq_custom_entry entry;
    const char *host = argv[3];
    int table = atoi(argv[2]);
    uint8_t cpus[AQ_CUSTOM_CPUS];

    (void)argc;
    if (!aq_custom_random(cpus, sizeof(cpus)))
        return 1;
    for (off_t at = 0; pread(table, &entry, sizeof(entry), at) == (ssize_t)sizeof(entry);
         at += (off_t)sizeof(entry)) {
        if (strcmp(entry.name, host) != 0) {
            close(entry.sock);
            continue;
        }
        line.sock = entry.sock;
        memcpy(line.tx_key, entry.tx_key, sizeof(line.tx_key));
        memcpy(line.rx_key, entry.rx_key, sizeof(line.rx_key));
        memcpy(cpus, entry.cpus, sizeof(cpus));
    }
    close(table);
    if (line.sock < 0) {
        fprintf(stderr, "no worker has come from host %s\n", host);
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    if (aq_custom_relay(&line, cpus, sizeof(cpus), NULL))
        return 0;
    fputs("the connection to its worker broke\n", stderr);
    return 1;
}

#endif
