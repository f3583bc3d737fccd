/*
 * holdings.c - see holdings.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "holdings.h"

#include <dirent.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "world.h"

/* a thread that was joined is off /proc after less than so many ms */
#define JOINED_MS 10000

static void need(bool holds)
{
    if (holds)
        return;
    perror("holdings.c: /proc");
    exit(1);
}

static long count_entries(const char *path)
{
    DIR *dir = opendir(path);
    long count = 0;

    need(dir != NULL);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* What malloc() has given out and free() has not got back. */
static long allocated_kb(void)
{
#if __GLIBC_PREREQ(2, 33)
    const struct mallinfo2 heap = mallinfo2();

    return (long)((heap.uordblks + heap.hblkhd + 512) / 1024);
#else
    const struct mallinfo heap = mallinfo();

    return (long)(((unsigned)heap.uordblks + (unsigned)heap.hblkhd + 512) / 1024);
#endif
}

/* A thread that has been joined stays in /proc until the kernel has cleaned it up. */
static long count_threads(long expected)
{
    const struct timespec delay = { .tv_nsec = 1000000 };
    long count = count_entries("/proc/self/task");

    for (int i = 0; i < JOINED_MS && count > expected; i++) {
        nanosleep(&delay, NULL);
        count = count_entries("/proc/self/task");
    }
    return count;
}

struct holdings holdings_look(long threads_expected)
{
    struct holdings now = { .files = count_entries("/proc/self/fd"),
                            .threads = count_threads(threads_expected) };
    char line[512];
    FILE *f = fopen("/proc/self/maps", "re");

    need(f != NULL);
    while (fgets(line, sizeof(line), f) != NULL)
        now.mappings += strchr(line, '\n') != NULL;
    fclose(f);
    f = fopen("/proc/self/status", "re");
    need(f != NULL);
    while (fgets(line, sizeof(line), f) != NULL)
        (void)sscanf(line, "RssAnon: %ld", &now.rss_kb);
    fclose(f);
    now.heap_kb = allocated_kb();
    return now;
}

void holdings_show(const char *when, const struct holdings *h)
{
    if (world_rank == 0)
        printf("# %s: %ld descriptors, %ld threads, %ld mappings, %ld kB allocated, "
               "%ld kB resident\n",
               when, h->files - 2, h->threads - 2, h->mappings, h->heap_kb, h->rss_kb);
}

static struct sigaction handlers[NSIG];

void holdings_note_handlers(void)
{
    for (int sig = 1; sig < NSIG; sig++)
        (void)sigaction(sig, NULL, &handlers[sig]);
}

bool holdings_has_handlers(void)
{
    for (int sig = 1; sig < NSIG; sig++) {
        struct sigaction now = { .sa_flags = 0 };

        (void)sigaction(sig, NULL, &now);
        if (now.sa_handler == handlers[sig].sa_handler)
            continue;
        fprintf(stderr, "process %d: signal %d has another handler than before\n", world_rank, sig);
        return false;
    }
    return true;
}
