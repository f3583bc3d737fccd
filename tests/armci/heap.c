/*
 * heap.c - the allocator in a segment, by itself: nothing overlaps, and all that is free is one.
 * Compiled with runtimes/armci/armci_heap.c. SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_heap.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define MiB     ((size_t)1 << 20)
#define BYTES   (4 * MiB)
#define RESERVE (2 * MiB)
#define MANY    500

static char *blocks[MANY];
static size_t sizes[MANY];

static unsigned draw(unsigned below)
{
    static unsigned seed = 1;

    seed = seed * 1664525u + 1013904223u;
    return (unsigned)((unsigned long)seed * below >> 32);
}

static int is_intact(int i)
{
    for (size_t k = 0; k < sizes[i]; k++)
        if (blocks[i][k] != (char)i)
            return 0;
    return 1;
}

/* What is given back loses its content. */
static size_t given_back;
static void give_back(void *addr, size_t bytes)
{
    memset(addr, 0xee, bytes);
    given_back += bytes;
}

/* Allocations that come and go keep their pages, up to so many bytes. Returns what is wrong. */
static int keeps(void)
{
    char *base = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct aq_armci_heap *heap = aq_armci_heap_create(base, BYTES, give_back);
    void *first = aq_armci_heap_alloc(heap, MiB), *second;
    int wrong = 0;

    given_back = 0;
    for (int turn = 0; turn < 100; turn++) {
        void *passing = aq_armci_heap_alloc(heap, RESERVE);

        wrong += passing == NULL || aq_armci_heap_free(heap, passing, RESERVE) != 0;
    }
    wrong += given_back != 0;
    second = aq_armci_heap_alloc(heap, RESERVE); /* takes what was kept */
    wrong += aq_armci_heap_free(heap, first, RESERVE) != 0 || given_back != 0;
    wrong += aq_armci_heap_free(heap, second, RESERVE) != 0 || given_back != BYTES;
    aq_armci_heap_destroy(heap);
    munmap(base, BYTES);
    return wrong;
}

static char *last_retained;
static int nretained, out_of_order;

static void count_retained(char *block, size_t bytes)
{
    nretained++;
    out_of_order += block <= last_retained || bytes == 0;
    last_retained = block;
}

/* A reset leaves the blocks that are marked, and makes one free block of what is between two. */
static int resets(struct aq_armci_heap *heap)
{
    int wrong = 0, marked = 0;

    for (int i = 0; i < MANY; i++)
        if (blocks[i] != NULL && i % 3 == 0) {
            aq_armci_heap_retain(heap, blocks[i]);
            marked++;
        }
    aq_armci_heap_reset(heap);
    aq_armci_heap_each_retained(heap, count_retained);
    wrong += marked == 0 || nretained != marked || out_of_order != 0;
    for (int i = 0; i < MANY; i++)
        if (blocks[i] != NULL && i % 3 == 0)
            wrong += !is_intact(i) || aq_armci_heap_free(heap, blocks[i], 0) != 0;
        else if (blocks[i] != NULL)
            wrong += aq_armci_heap_free(heap, blocks[i], 0) != -1;
    aq_armci_heap_reset(heap);
    return wrong;
}

int main(void)
{
    char *base = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct aq_armci_heap *heap = aq_armci_heap_create(base, BYTES, give_back);
    int wrong = keeps(), refused = 0;

    given_back = 0;
    for (int turn = 0; turn < 20000; turn++) {
        const int i = (int)draw(MANY);

        if (blocks[i] != NULL) {
            wrong += !is_intact(i) || !aq_armci_heap_holds(heap, blocks[i] + sizes[i] - 1, 1)
                     || aq_armci_heap_free(heap, blocks[i], 0) != 0;
            blocks[i] = NULL;
            continue;
        }
        sizes[i] = 1 + draw(draw(10) == 0 ? 200000 : 9000);
        blocks[i] = aq_armci_heap_alloc(heap, sizes[i]);
        if (blocks[i] == NULL) {
            refused++;
            continue;
        }
        wrong += ((size_t)blocks[i] & (AQ_ARMCI_HEAP_ALIGN - 1)) != 0 || blocks[i] < base
                 || blocks[i] + sizes[i] > base + BYTES;
        memset(blocks[i], i, sizes[i]);
    }
    for (int i = 0; i < MANY; i++)
        if (blocks[i] != NULL && i % 2 == 0) {
            wrong += !is_intact(i) || aq_armci_heap_free(heap, blocks[i], 0) != 0;
            blocks[i] = NULL;
        }
    wrong += resets(heap);
    wrong += aq_armci_heap_used(heap) != 0 || aq_armci_heap_free(heap, base, 0) != -1;
    wrong +=
        aq_armci_heap_alloc(heap, BYTES + 1) != NULL || aq_armci_heap_alloc(heap, BYTES) != base;
    aq_armci_heap_destroy(heap);
    printf("%d wrong, %d refused, %zu bytes given back\n", wrong, refused, given_back);
    return wrong != 0 || refused == 0 || given_back < BYTES;
}
