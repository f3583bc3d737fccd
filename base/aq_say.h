/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_say.h - messages of a process that ends: a console whose reader has stopped must not block the
 * end of the job.
 * Threads   any, signal handlers included: poll and write only
 * Uses      libc only
 */
#ifndef AQ_SAY_H
#define AQ_SAY_H

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#define AQ_SAY_MS 500 /* how long to wait for a pipe or a terminal that takes nothing */

/**
 * aq_say - write len bytes of text to fd. The rest is lost if fd takes nothing for AQ_SAY_MS.
 * Returns true if all was written
 */
static inline bool aq_say(int fd, const char *text, size_t len)
{
    while (len > 0) {
        struct pollfd pfd = { fd, POLLOUT, 0 };
        const int ready = poll(&pfd, 1, AQ_SAY_MS);
        ssize_t done;

        if (ready < 0 && errno == EINTR)
            continue;
        if (ready == 0)
            return false;
        done = write(fd, text,
                     len < PIPE_BUF ? len : PIPE_BUF); /* a pipe with space takes so much at once */
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        text += done;
        len -= (size_t)done;
    }
    return true;
}

#endif
