/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_custom_command.c - SPAWNFN=C: the port and the file by which workers find the master, and the
 * command that starts them.
 * Threads   one
 * Promise   the secret is in the file only
 */
#include "other/launcher/aq_launch_self.h"

#ifdef AQ_HAVE_SODIUM

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "other/launcher/aq_hostlist.h"
#include "other/launcher/aq_launch_custom.h"

void aq_custom_listen(struct aq_custom *c)
{
    struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_addr = in6addr_any };
    struct sockaddr_in any4 = { .sin_family = AF_INET };
    struct sockaddr_storage local;
    socklen_t len = sizeof(local);

    c->listen_fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->listen_fd >= 0) {
        setsockopt(c->listen_fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){ 0 }, sizeof(int));
        if (bind(c->listen_fd, (struct sockaddr *)&any6, sizeof(any6)) != 0) {
            close(c->listen_fd);
            c->listen_fd = -1;
        }
    }
    if (c->listen_fd < 0) { /* a system without IPv6 */
        c->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (c->listen_fd < 0 || bind(c->listen_fd, (struct sockaddr *)&any4, sizeof(any4)) != 0)
            aq_custom_give_up("cannot open a TCP port: %s", strerror(errno));
    }
    if (listen(c->listen_fd, 1024) != 0
        || getsockname(c->listen_fd, (struct sockaddr *)&local, &len) != 0)
        aq_custom_give_up("cannot listen on a TCP port: %s", strerror(errno));
    c->port = ntohs(local.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&local)->sin6_port
                                                : ((struct sockaddr_in *)&local)->sin_port);
}

/* writes the addresses at which workers try to reach this process, the likely ones first */
static void aq_custom_addresses(FILE *f)
{
    const char *given = getenv("GASNET_MASTERIP");
    struct ifaddrs *list = NULL;
    char text[NI_MAXHOST];

    if (given != NULL && *given != '\0') {
        fprintf(f, "address %s\n", given);
        return;
    }
    (void)getifaddrs(&list);
    for (int loop = 0; loop < 2; loop++) {
        for (struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
            int family = i->ifa_addr != NULL ? i->ifa_addr->sa_family : AF_UNSPEC;

            if ((family != AF_INET && family != AF_INET6) || (i->ifa_flags & IFF_UP) == 0
                || ((i->ifa_flags & IFF_LOOPBACK) != 0) != loop)
                continue;
            if (getnameinfo(i->ifa_addr,
                            family == AF_INET ? sizeof(struct sockaddr_in)
                                              : sizeof(struct sockaddr_in6),
                            text, sizeof(text), NULL, 0, NI_NUMERICHOST)
                    == 0
                && strchr(text, '%')
                       == NULL) /* a link-local address means something else on another host */
                fprintf(f, "address %s\n", text);
        }
    }
    freeifaddrs(list);
}

void aq_custom_name_file(struct aq_custom *c)
{
    static const char *const names[] = { "GASNET_TMPDIR", "HOME" };
    const char *dir = NULL;
    uint64_t number;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && (dir == NULL || *dir == '\0'); i++)
        dir = getenv(names[i]);
    if (dir == NULL || *dir == '\0')
        dir = ".";
    if (!aq_custom_random(&number, sizeof(number)))
        aq_custom_give_up("no random numbers");
    if (snprintf(c->file, sizeof(c->file), "%s/.aqueduct-job-%016" PRIx64, dir, number)
        >= (int)sizeof(c->file)) {
        c->file[0] = '\0';
        aq_custom_give_up("GASNET_TMPDIR=%s is too long", dir);
    }
}

void aq_custom_write_file(struct aq_custom *c)
{
    int fd = open(c->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;

    if (f == NULL)
        aq_custom_give_up(
            "cannot make the file %s: %s; GASNET_TMPDIR names a folder that all hosts share",
            c->file, strerror(errno));
    fputs("key ", f);
    for (size_t i = 0; i < sizeof(c->key); i++)
        fprintf(f, "%02x", c->key[i]);
    fprintf(f, "\nport %u\n", c->port);
    aq_custom_addresses(f);
    if (fflush(f) != 0 || fsync(fd) != 0) /* other hosts must see the file */
        aq_custom_give_up("cannot write %s: %s; GASNET_TMPDIR names a folder that all hosts share",
                          c->file, strerror(errno));
    fclose(f);
}

static void aq_custom_add(char **text, const char *more, size_t len)
{
    char *longer;

    if (asprintf(&longer, "%s%.*s", *text, (int)len, more) < 0)
        aq_custom_give_up("out of memory");
    free(*text);
    *text = longer;
}

/* in single quotes, unless it is plain */
static void aq_custom_add_quoted(char **text, const char *word)
{
    if (*word != '\0'
        && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%")
               == strlen(word)) {
        aq_custom_add(text, word, strlen(word));
        return;
    }
    aq_custom_add(text, "'", 1);
    for (; *word != '\0'; word++)
        aq_custom_add(text, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
    aq_custom_add(text, "'", 1);
}

const char *aq_custom_self(void)
{
    static char path[PATH_MAX];
    const char *given = getenv("GASNET_REMOTE_RUN");
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (given != NULL && *given != '\0')
        return given;
    if (len <= 0)
        aq_custom_give_up("/proc/self/exe: %s", strerror(errno));
    path[len] = '\0';
    return path;
}

static void aq_custom_add_servers(const struct aq_custom *c, char **text)
{
    struct aq_hosts hosts = { .aliases = NULL };
    const char *servers = getenv("GASNET_CSPAWN_SERVERS");

    if (servers == NULL || *servers == '\0')
        aq_custom_give_up("%%M in GASNET_CSPAWN_CMD stands for hosts: set "
                          "GASNET_CSPAWN_SERVERS='host1 host2 ...'");
    setenv("GASNET_SSH_KEEPDUP", "1", 1);
    if (aq_hosts_parse_list(&hosts, servers, " ") != 0)
        aq_custom_give_up("GASNET_CSPAWN_SERVERS%s", hosts.why);
    unsetenv("GASNET_SSH_KEEPDUP");
    if (hosts.count < c->lo->ranks)
        aq_custom_give_up("GASNET_CSPAWN_SERVERS names %zu hosts, %u are needed, one for each rank",
                          hosts.count, c->lo->ranks);
    for (uint32_t i = 0; i < c->lo->ranks; i++) {
        if (i > 0)
            aq_custom_add(text, " ", 1);
        aq_custom_add(text, hosts.name[i], strlen(hosts.name[i]));
    }
    aq_hosts_free(&hosts);
}

static void aq_custom_add_word(const struct aq_custom *c, char **text, char word)
{
    char number[16], *dir;

    switch (word) {
    case 'N':
        aq_custom_add(text, number, (size_t)snprintf(number, sizeof(number), "%u", c->lo->ranks));
        break;
    case 'C':
        aq_custom_add_quoted(text, aq_custom_self());
        aq_custom_add(text, " " AQ_WORKER_WORD " ", strlen(AQ_WORKER_WORD) + 2);
        aq_custom_add_quoted(text, c->file);
        break;
    case 'D':
        dir = getcwd(NULL, 0);
        aq_custom_add_quoted(text, dir != NULL ? dir : ".");
        free(dir);
        break;
    case 'M':
        aq_custom_add_servers(c, text);
        break;
    case 'P':
        aq_custom_add_quoted(text, c->lo->argv[0]);
        break;
    case '%':
        aq_custom_add(text, "%", 1);
        break;
    default:
        aq_custom_give_up(
            "GASNET_CSPAWN_CMD: %%%c stands for nothing; there are %%N %%C %%D %%M %%P %%%%", word);
    }
}

char *aq_custom_command(const struct aq_custom *c)
{
    const char *from = getenv("GASNET_CSPAWN_CMD");
    char *text = strdup("");

    if (from == NULL || *from == '\0' || strstr(from, "%C") == NULL)
        aq_custom_give_up("GASNET_SPAWNFN=C: set GASNET_CSPAWN_CMD to a command that starts %%C "
                          "%%N times, for instance "
                          "GASNET_CSPAWN_CMD='srun -n %%N %%C'");
    while (text != NULL && *from != '\0') {
        size_t plain = strcspn(from, "%");

        aq_custom_add(&text, from, plain);
        from += plain;
        if (from[0] == '%' && from[1] != '\0') {
            aq_custom_add_word(c, &text, from[1]);
            from += 2;
        } else if (from[0] == '%') {
            aq_custom_give_up("GASNET_CSPAWN_CMD ends in a lone %%; write %%%%");
        }
    }
    return text;
}

#endif
