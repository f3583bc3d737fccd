/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent_ssh.c - starts an agent by ssh, and reports why it did not start.
 * Threads   one; ssh is started by vfork
 * How       GASNET_SSH_CMD, GASNET_SSH_OPTIONS, for OpenSSH options that prevent questions, then
 *           the host and the command. OpenSSH uses the first value of an option, so the user's
 *           options win. ssh gets its own session: gasnetrun handles ^C at the terminal
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "other/launcher/aq_agent.h"

#define AQ_SSH_WORDS 256

/* parses a word with '...', "..." and \ as a shell does; moves *at behind it; NULL at the end */
static char *aq_ssh_word(const char **at)
{
    char *word, *to, quote = '\0';

    while (isspace((unsigned char)**at))
        ++*at;
    if (**at == '\0')
        return NULL;
    word = to = malloc(strlen(*at) + 1);
    for (; word != NULL && **at != '\0' && (quote != '\0' || !isspace((unsigned char)**at));
         ++*at) {
        char c = **at;

        if (quote == '\0' && (c == '\'' || c == '"'))
            quote = c;
        else if (c == quote && quote != '\0')
            quote = '\0';
        else if (c == '\\' && quote != '\'' && (*at)[1] != '\0')
            *to++ = *++*at;
        else
            *to++ = c;
    }
    if (word != NULL)
        *to = '\0';
    return word;
}

static bool aq_ssh_add_words(char **words, size_t *count, const char *text)
{
    char *word;

    while (text != NULL && (word = aq_ssh_word(&text)) != NULL) {
        if (*count >= AQ_SSH_WORDS)
            return false;
        words[(*count)++] = word;
    }
    return true;
}

/* runs ssh -V only if the command's name suggests OpenSSH: others might do anything with -V */
static bool aq_ssh_is_openssh(const char *command)
{
    const char *slash = strrchr(command, '/'), *base = slash != NULL ? slash + 1 : command;
    char said[64] = "";
    int fds[2];
    pid_t pid;
    ssize_t got;

    if (strstr(base, "ssh") == NULL || pipe2(fds, O_CLOEXEC) != 0)
        return false;
    pid = fork();
    if (pid == 0) {
        int null_fd = open("/dev/null", O_RDWR);

        dup2(null_fd, STDIN_FILENO);
        dup2(fds[1], STDOUT_FILENO);
        dup2(fds[1], STDERR_FILENO);
        alarm(5);
        execlp(command, command, "-V", (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    got = read(fds[0], said, sizeof(said) - 1);
    close(fds[0]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return got > 0 && strstr(said, "OpenSSH") != NULL;
}

void aq_ssh_command(struct aq_plan *plan, const struct aq_launch *lo)
{
    static const char *const quiet[] = {
        "-T", "-x", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-o", "ClearAllForwardings=yes",
        "-o"
    };
    const char *command = getenv("GASNET_SSH_CMD");
    char **words = calloc(AQ_SSH_WORDS + 32, sizeof(*words)), *limit;
    size_t count = 0;

    if (lo->tunnel != NULL)
        command = lo->tunnel;
    else if (command == NULL || *command == '\0')
        command = "ssh";
    if (words == NULL || !aq_ssh_add_words(words, &count, command) || count == 0
        || (lo->tunnel == NULL && !aq_ssh_add_words(words, &count, getenv("GASNET_SSH_OPTIONS"))))
        aq_launch_error(lo, "GASNET_SSH_CMD='%s' and GASNET_SSH_OPTIONS make no command", command);
    if (lo->tunnel == NULL && aq_ssh_is_openssh(words[0])) {
        for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++)
            words[count++] = (char *)quiet[i]; /* never written to */
        if (asprintf(&limit, "ConnectTimeout=%u",
                     plan->timeout_ms > 0 ? (plan->timeout_ms + 999) / 1000 : 0)
            < 0)
            aq_launch_error(lo, "out of memory");
        words[count++] = limit;
    }
    plan->ssh = words;
}

/* quotes a word for the remote shell, whichever it is, if it needs quotes */
static char *aq_ssh_remote_command(const struct aq_plan *plan)
{
    const char *path = plan->remote;
    char *text = malloc(strlen(path) * 4 + 64), *to;

    if (text == NULL)
        return NULL;
    to = text + sprintf(text, "exec ");
    if (strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%")
        == strlen(path)) {
        to += sprintf(to, "%s", path);
    } else {
        *to++ = '\'';
        for (; *path != '\0'; path++)
            to += *path == '\'' ? sprintf(to, "'\\''") : sprintf(to, "%c", *path);
        *to++ = '\'';
    }
    sprintf(to, " %s", AQ_AGENT_WORD);
    return text;
}

static char **aq_ssh_argv(const struct aq_plan *plan, uint32_t host)
{
    size_t count = 0;
    char **argv;

    while (plan->ssh[count] != NULL)
        count++;
    argv = calloc(count + 3, sizeof(*argv));
    if (argv == NULL)
        return NULL;
    memcpy(argv, plan->ssh, count * sizeof(*argv));
    argv[count] = plan->host_name[host];
    argv[count + 1] = aq_ssh_remote_command(plan);
    if (argv[count + 1] != NULL)
        return argv;
    free(argv);
    return NULL;
}

static void aq_ssh_free(char **argv)
{
    size_t count = 0;

    while (argv[count] != NULL)
        count++;
    free(argv[count - 1]); /* the other words belong to the plan */
    free(argv);
}

void aq_ssh_print(const struct aq_plan *plan, uint32_t host)
{
    char **argv = aq_ssh_argv(plan, host);

    for (size_t i = 0; argv != NULL && argv[i] != NULL; i++)
        fprintf(stderr, strpbrk(argv[i], " '\"\\$") != NULL ? " \"%s\"" : " %s", argv[i]);
    fputc('\n', stderr);
    if (argv != NULL)
        aq_ssh_free(argv);
}

/* runs in the child of vfork: system calls only */
static _Noreturn void aq_ssh_become(const struct aq_node *n, struct aq_link *l, char **argv,
                                    const int fds[3], pid_t parent)
{
    aq_supervise_child(n->sv, parent);
    setsid();
    for (int i = 0; i < 3; i++)
        dup2(fds[i], i);
    execvp(argv[0], argv);
    l->exec_error = errno;
    _exit(127);
}

static void aq_ssh_close(int fds[3])
{
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* stdin, stdout, stderr of ssh; false with errno */
static bool aq_ssh_pipes(int ours[3], int peer[3])
{
    for (int i = 0; i < 3; i++)
        ours[i] = peer[i] = -1;
    for (int i = 0; i < 3; i++) {
        int fds[2], error;

        if (pipe2(fds, O_CLOEXEC) != 0) {
            error = errno;
            aq_ssh_close(ours);
            aq_ssh_close(peer);
            errno = error;
            return false;
        }
        ours[i] = fds[i == 0];
        peer[i] = fds[i != 0];
    }
    return true;
}

bool aq_ssh_start(struct aq_node *n, struct aq_link *l)
{
    char **argv = aq_ssh_argv(&n->plan, l->first);
    int ours[3], peer[3], error;
    uint32_t first = l->first, end = l->end;
    pid_t self = getpid();

    if (argv == NULL || !aq_ssh_pipes(ours, peer))
        return false; /* the caller exits */
    aq_link_init(l, ours[1], ours[0], ours[2]);
    l->first = first;
    l->end = end;
    l->pid = vfork();
    if (l->pid == 0)
        aq_ssh_become(n, l, argv, peer, self);
    error = errno;
    aq_ssh_close(peer);
    aq_ssh_free(argv);
    if (l->pid > 0)
        return true;
    l->pid = 0;
    aq_link_close(l);
    errno = error;
    return false;
}

void aq_ssh_said(const struct aq_link *l, char text_out[512])
{
    const char *from = l->text_len > 400 ? l->text + l->text_len - 400 : l->text;
    size_t to = 0;

    for (; *from != '\0' && to < 500; from++) {
        if (*from == '\n' && from[1] != '\0' && from[1] != '\n') {
            text_out[to++] = ';';
            text_out[to++] = ' ';
        } else if ((unsigned char)*from >= ' ') {
            text_out[to++] = *from;
        }
    }
    while (to > 0 && (text_out[to - 1] == ' ' || text_out[to - 1] == '.'))
        to--;
    text_out[to] = '\0';
}

static const char *aq_ssh_remedy(const char *said)
{
    static const char *const known[][2] = {
        { "Permission denied",
          "let ssh work without a password: ssh-copy-id, or keys in ssh-agent" },
        { "Host key verification failed",
          "ssh to it once by hand to accept its key, or set "
          "GASNET_SSH_OPTIONS='-o StrictHostKeyChecking=accept-new'" },
        { "HOST IDENTIFICATION HAS CHANGED",
          "if that is right, ssh-keygen -R HOST, then ssh to it once by hand" },
        { "Could not resolve", "check the name in the list of hosts" },
        { "Name or service not known", "check the name in the list of hosts" },
        { "Connection refused",
          "is sshd running there? GASNET_SSH_OPTIONS='-p PORT' names another port" },
        { "timed out", "is it up and reachable? GASNET_HOST_TIMEOUT is how long we wait" },
        { "No route to host", "is it up, and the network?" },
        { "Network is unreachable", "is it up, and the network?" },
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strstr(said, known[i][0]) != NULL)
            return known[i][1];
    return "try the same by hand (gasnetrun -t shows the command)";
}

void aq_ssh_why(const struct aq_node *n, const struct aq_link *l, char *text_out, size_t size)
{
    const char *host = n->plan.host_name[l->first];
    char said[512];
    int code = WIFEXITED(l->status) ? WEXITSTATUS(l->status) : -1;

    aq_ssh_said(l, said);
    if (l->exec_error != 0)
        snprintf(text_out, size,
                 "cannot run %s to reach host %s: %s; name the remote shell in GASNET_SSH_CMD",
                 n->plan.ssh[0], host, strerror(l->exec_error));
    else if (l->pid == 0 && (code == 127 || code == 126))
        snprintf(
            text_out, size,
            "host %s cannot run %s (%s); install this package there too, or say where it is in "
            "GASNET_REMOTE_RUN",
            host, n->plan.remote, *said != '\0' ? said : "not found");
    else if (*said != '\0')
        snprintf(text_out, size, "cannot start on host %s: %s; %s", host, said,
                 aq_ssh_remedy(said));
    else if (l->pid == 0)
        snprintf(text_out, size, "cannot start on host %s: %s ended with %s %d and no word; %s",
                 host, n->plan.ssh[0], WIFSIGNALED(l->status) ? "signal" : "status",
                 WIFSIGNALED(l->status) ? WTERMSIG(l->status) : code, aq_ssh_remedy(""));
    else
        snprintf(text_out, size,
                 "host %s has not answered in %u s (GASNET_HOST_TIMEOUT); does logging in there "
                 "wait for "
                 "something? %s",
                 host, (unsigned)((aq_jobarea_now_ns() - l->born_ns) / 1000000000u),
                 aq_ssh_remedy(""));
}
