/*
 * user_squat.c - another user of the host, who reads the names of abstract Unix sockets as they
 * appear and binds others like them: the same words and numbers, but for one number that is counted
 * through. Usage: user_squat SECONDS; ends earlier on SIGTERM. Prints "seen N taken M": sockets of
 * jobs whose names were read, names that were bound.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <ctype.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define NAMES       256
#define NAME        100 /* bytes */
#define COUNTED     64  /* values of a number that are tried */
#define LONG_NUMBER 9   /* digits; from here on it is a secret, which nobody counts through */

static struct {
    char name[NAMES][NAME];
    unsigned seen, taken;
} squat;

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
    (void)sig;
    stop = 1;
}

static bool is_known(const char *name)
{
    for (unsigned i = 0; i < squat.seen; i++)
        if (strcmp(squat.name[i], name) == 0)
            return true;
    return false;
}

/* The socket stays open: the name is ours until we end. */
static void take(const char *name)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    const size_t len = strlen(name);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    memcpy(at.sun_path + 1, name, len);
    if (fd >= 0
        && bind(fd, (struct sockaddr *)&at,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len))
               == 0)
        squat.taken++;
    else if (fd >= 0)
        close(fd);
}

/* Names with another number in place of the digits from `at` to `end`. */
static void take_others(const char *name, size_t at, size_t end)
{
    const int digits = (int)(end - at);
    char other[NAME + 16];

    for (unsigned value = 0; value < COUNTED; value++) {
        snprintf(other, sizeof(other), "%.*s%0*x%s", (int)at, name, digits, value, name + end);
        take(other);
    }
}

static void look_at(const char *name)
{
    if (strncmp(name, "aq", 2) != 0 || squat.seen == NAMES || strlen(name) >= NAME
        || is_known(name))
        return;
    strcpy(squat.name[squat.seen++], name);
    for (size_t at = 0, end; name[at] != '\0'; at = end) {
        end = at;
        while (isxdigit((unsigned char)name[end]))
            end++;
        /* a letter within a word is no number */
        if (end > at && end - at < LONG_NUMBER && at > 0 && name[at - 1] == '-'
            && strchr("-", name[end]) != NULL)
            take_others(name, at, end);
        end += end == at;
    }
}

static void look(void)
{
    char line[512], *name;
    FILE *file = fopen("/proc/net/unix", "re");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        name = strrchr(line, '@');
        if (name != NULL)
            look_at(name + 1);
    }
    if (file != NULL)
        fclose(file);
}

int main(int argc, char **argv)
{
    const time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);

    signal(SIGTERM, on_term);
    while (!stop && time(NULL) < end)
        look();
    printf("seen %u taken %u\n", squat.seen, squat.taken);
    return 0;
}
