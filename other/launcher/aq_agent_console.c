/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent_console.c - the user's stdin, stdout and stderr, without blocking.
 * Threads   one
 * How       O_NONBLOCK belongs to the open file, which the user's shell shares. Terminals and pipes
 *           are therefore opened a second time; for sockets each call has a flag. Where neither is
 *           possible, little at a time is written, and only when poll() permits it
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "other/launcher/aq_agent.h"

#define AQ_CONSOLE_BIT 1024 /* bytes that fit whenever poll() reports space */

void aq_console_open(struct aq_console *c, int fd)
{
    char path[32];
    struct stat st;
    int own;

    memset(c, 0, sizeof(*c));
    c->fd = fd;
    if (fstat(fd, &st) != 0) {
        c->fd = -1;
        return;
    }
    c->is_socket = S_ISSOCK(st.st_mode);
    c->is_tty = isatty(fd) == 1;
    if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode))
        return; /* regular files do not block */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    own =
        open(path, (fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (own >= 0)
        c->fd = own;
    else
        c->may_block = true;
}

static bool aq_console_ready(const struct aq_console *c, short events)
{
    struct pollfd p = { c->fd, events, 0 };

    return poll(&p, 1, 0) != 0; /* an error counts as ready: the next call reports it */
}

ssize_t aq_console_write(struct aq_console *c, const char *data, size_t len)
{
    ssize_t done;

    if (c->may_block) {
        if (!aq_console_ready(c, POLLOUT))
            return 0;
        len = len < AQ_CONSOLE_BIT ? len : AQ_CONSOLE_BIT;
    }
    done = c->is_socket ? send(c->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL)
                        : write(c->fd, data, len);
    if (done < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    return done;
}

bool aq_console_may_read(const struct aq_console *c)
{
    /* a background job that reads from the terminal would be stopped */
    return c->fd >= 0 && (!c->is_tty || tcgetpgrp(c->fd) == getpgrp());
}

ssize_t aq_console_read(struct aq_console *c, char *data, size_t len)
{
    ssize_t got;

    if (c->may_block && !aq_console_ready(c, POLLIN)) {
        errno = EAGAIN;
        return -1;
    }
    got = c->is_socket ? recv(c->fd, data, len, MSG_DONTWAIT) : read(c->fd, data, len);
    if (got < 0 && errno != EAGAIN && errno != EINTR)
        return 0; /* treated as end of file */
    return got;
}
