/*
 * reference.c - the file that slowness.sh compiles to see how fast this machine compiles. Changed,
 * it makes the figures there wrong.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct entry {
    struct entry *next;
    uint64_t key;
    char text[48];
};

static struct entry *buckets[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t hash(const char *text)
{
    uint64_t value = 14695981039346656037u;

    while (*text != '\0')
        value = (value ^ (unsigned char)*text++) * 1099511628211u;
    return value;
}

static struct entry *find(uint64_t key, const char *text)
{
    struct entry *entry = buckets[key % 64];

    while (entry != NULL && (entry->key != key || strcmp(entry->text, text) != 0))
        entry = entry->next;
    return entry;
}

static int add(const char *text)
{
    const uint64_t key = hash(text);
    struct entry *entry;

    pthread_mutex_lock(&lock);
    entry = find(key, text);
    if (entry == NULL && (entry = malloc(sizeof(*entry))) != NULL) {
        entry->key = key;
        snprintf(entry->text, sizeof(entry->text), "%s", text);
        entry->next = buckets[key % 64];
        buckets[key % 64] = entry;
    }
    pthread_mutex_unlock(&lock);
    return entry != NULL ? 0 : ENOMEM;
}

int main(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (add(argv[i]) != 0)
            return EXIT_FAILURE;
    printf("%d arguments, process %ld\n", argc, (long)getpid());
    return EXIT_SUCCESS;
}
