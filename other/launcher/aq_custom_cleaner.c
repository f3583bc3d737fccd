/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_custom_cleaner.c - SPAWNFN=C: a process that briefly outlives the master. It removes the file
 * by which workers find the master, and ends the user's command, whatever ended the master, SIGKILL
 * included.
 * Threads   one, in a process of its own
 * Wire      a pipe from the master: the command's process group when it starts, 0 once the command
 *           has been waited for. End of file means that the master has ended
 * Promise   starts before the file exists; ignores the signals of a terminal; holds none of the
 *           user's descriptors
 */
#include "other/launcher/aq_launch_self.h"

#ifdef AQ_HAVE_SODIUM

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "other/launcher/aq_launch_custom.h"

#define AQ_CLEANER_GRACE_MS 2000 /* between SIGTERM and SIGKILL */

static void aq_cleaner_end_command(pid_t group)
{
    kill(-group, SIGTERM);
    for (int ms = 0; ms < AQ_CLEANER_GRACE_MS && kill(-group, 0) == 0; ms += 20)
        usleep(20000);
    kill(-group, SIGKILL);
}

static _Noreturn void aq_cleaner_main(const char *file, int from)
{
    static const int ignored[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE };
    pid_t group = 0, next;
    ssize_t got;

    setsid();
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_IGN);
    dup2(from, STDIN_FILENO);
    close_range(STDOUT_FILENO, ~0u,
                0); /* a reader of the master's output waits for every copy to close */
    do {
        got = read(STDIN_FILENO, &next, sizeof(next));
        if (got == (ssize_t)sizeof(next))
            group = next;
    } while (got > 0 || (got < 0 && errno == EINTR));
    unlink(file);
    if (group > 0)
        aq_cleaner_end_command(group);
    _exit(0);
}

int aq_custom_start_cleaner(const char *file)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        close(ends[1]);
        aq_cleaner_main(file, ends[0]);
    }
    close(ends[0]);
    if (pid > 0)
        return ends[1];
    close(ends[1]);
    return -1;
}

void aq_custom_tell_cleaner(int fd, pid_t group)
{
    /* if the cleaner has ended, the master's own cleanup does the same */
    (void)!write(fd, &group, sizeof(group));
}

#endif
