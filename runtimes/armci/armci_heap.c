/*
 * armci_heap.c - see armci_heap.h. All blocks are in one list by address. Free blocks are also in
 * lists by size, one for each power of two; used blocks are in a hash table by address.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_heap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define CLASSES 64

struct block {
    char *addr;
    size_t size;
    size_t touched; /* free block: upper bound of its bytes whose pages are in memory */
    size_t extent;  /* free block: all of those are among so many first bytes */
    bool is_free;
    bool is_retained;            /* by aq_armci_heap_reset() */
    struct block *below, *above; /* neighbours by address */
    struct block *prev, *next;   /* free: in its class; used: next in its chain of the table */
};

struct aq_armci_heap {
    char *base;
    size_t size;
    size_t touched; /* of all free blocks */
    aq_armci_give_back *give_back;
    size_t used;
    size_t nused;
    struct block *first;
    struct block *classes[CLASSES];
    uint64_t filled; /* bit c: class c has blocks */
    struct block **table;
    size_t table_size; /* a power of two */
};

static unsigned class_of(size_t size)
{
    return 63u - (unsigned)__builtin_clzll(size);
}

static void class_insert(struct aq_armci_heap *heap, struct block *block)
{
    const unsigned c = class_of(block->size);

    block->prev = NULL;
    block->next = heap->classes[c];
    if (block->next != NULL)
        block->next->prev = block;
    heap->classes[c] = block;
    heap->filled |= (uint64_t)1 << c;
    heap->touched += block->touched;
}

static void class_remove(struct aq_armci_heap *heap, struct block *block)
{
    const unsigned c = class_of(block->size);

    if (block->prev != NULL)
        block->prev->next = block->next;
    else
        heap->classes[c] = block->next;
    if (block->next != NULL)
        block->next->prev = block->prev;
    if (heap->classes[c] == NULL)
        heap->filled &= ~((uint64_t)1 << c);
    heap->touched -= block->touched;
}

static struct block **chain_of(const struct aq_armci_heap *heap, const void *addr)
{
    const uint64_t number = (uint64_t)(uintptr_t)addr / AQ_ARMCI_HEAP_ALIGN;

    return &heap->table[(number * 0x9e3779b97f4a7c15u >> 32) & (heap->table_size - 1)];
}

/* Doubles the number of chains when there are as many used blocks as chains. Without memory for
 * more chains, the chains become longer. */
static void table_grow(struct aq_armci_heap *heap)
{
    const size_t old_size = heap->table_size;
    struct block **old = heap->table, **wider;

    if (heap->nused < old_size)
        return;
    wider = calloc(2 * old_size, sizeof(struct block *));
    if (wider == NULL)
        return;
    heap->table = wider;
    heap->table_size = 2 * old_size;
    for (size_t i = 0; i < old_size; i++) {
        for (struct block *block = old[i], *next; block != NULL; block = next) {
            struct block **chain = chain_of(heap, block->addr);

            next = block->next;
            block->next = *chain;
            *chain = block;
        }
    }
    free(old);
}

static void table_insert(struct aq_armci_heap *heap, struct block *block)
{
    struct block **chain = chain_of(heap, block->addr);

    block->next = *chain;
    *chain = block;
    heap->nused++;
    heap->used += block->size;
    table_grow(heap);
}

static struct block *table_remove(struct aq_armci_heap *heap, const void *addr)
{
    for (struct block **link = chain_of(heap, addr); *link != NULL; link = &(*link)->next) {
        struct block *block = *link;

        if (block->addr == addr) {
            *link = block->next;
            heap->nused--;
            heap->used -= block->size;
            return block;
        }
    }
    return NULL;
}

struct aq_armci_heap *aq_armci_heap_create(void *base, size_t size, aq_armci_give_back *give_back)
{
    struct aq_armci_heap *heap = calloc(1, sizeof(*heap));
    struct block *all = calloc(1, sizeof(*all));

    if (heap != NULL) {
        heap->table_size = 64;
        heap->table = calloc(heap->table_size, sizeof(struct block *));
    }
    if (heap == NULL || all == NULL || heap->table == NULL) {
        if (heap != NULL)
            free(heap->table);
        free(heap);
        free(all);
        return NULL;
    }
    heap->base = base;
    heap->size = size;
    heap->give_back = give_back;
    *all = (struct block){ .addr = base, .size = size, .is_free = true };
    heap->first = all;
    class_insert(heap, all);
    return heap;
}

void aq_armci_heap_destroy(struct aq_armci_heap *heap)
{
    for (struct block *block = heap->first, *above; block != NULL; block = above) {
        above = block->above;
        free(block);
    }
    free(heap->table);
    free(heap);
}

/* The first block of at least size bytes: the lists of larger classes fit as a whole. */
static struct block *find_free(const struct aq_armci_heap *heap, size_t size)
{
    const unsigned own = class_of(size);
    const uint64_t larger = own == 63 ? 0 : heap->filled & ~(((uint64_t)2 << own) - 1);

    for (struct block *block = heap->classes[own]; block != NULL; block = block->next)
        if (block->size >= size)
            return block;
    return larger == 0 ? NULL : heap->classes[__builtin_ctzll(larger)];
}

/* Cuts what is beyond size off a block, as a free one. Without memory for it the block stays longer
 * than asked. */
static void split(struct aq_armci_heap *heap, struct block *block, size_t size)
{
    struct block *rest;

    if (block->size - size < AQ_ARMCI_HEAP_ALIGN || (rest = malloc(sizeof(*rest))) == NULL)
        return;
    *rest = (struct block){ .addr = block->addr + size,
                            .size = block->size - size,
                            .extent = block->extent > size ? block->extent - size : 0,
                            .is_free = true,
                            .below = block,
                            .above = block->above };
    rest->touched = block->touched < rest->extent ? block->touched : rest->extent;
    if (rest->above != NULL)
        rest->above->below = rest;
    block->above = rest;
    block->size = size;
    class_insert(heap, rest);
}

void *aq_armci_heap_alloc(struct aq_armci_heap *heap, size_t bytes)
{
    const size_t size = (bytes + AQ_ARMCI_HEAP_ALIGN - 1) & ~(AQ_ARMCI_HEAP_ALIGN - 1);
    struct block *block;

    if (bytes == 0 || size < bytes || (block = find_free(heap, size)) == NULL)
        return NULL;
    class_remove(heap, block);
    split(heap, block, size);
    block->is_free = block->is_retained = false;
    table_insert(heap, block);
    return block->addr;
}

/* Joins a free block to the free one below it; returns what is left of the two. */
static struct block *join(struct aq_armci_heap *heap, struct block *below, struct block *block)
{
    class_remove(heap, below);
    if (block->extent > 0)
        below->extent = below->size + block->extent;
    below->size += block->size;
    below->touched += block->touched;
    below->above = block->above;
    if (below->above != NULL)
        below->above->below = below;
    free(block);
    return below;
}

static void give_back(struct aq_armci_heap *heap, struct block *block, size_t keep)
{
    if (heap->touched <= keep || block->touched < AQ_ARMCI_HEAP_RETURN)
        return;
    heap->touched -= block->touched;
    block->touched = block->extent = 0;
    heap->give_back(block->addr, block->size); /* last: handlers may run there */
}

int aq_armci_heap_free(struct aq_armci_heap *heap, void *ptr, size_t keep)
{
    struct block *block = table_remove(heap, ptr);

    if (block == NULL)
        return -1;
    block->is_free = true;
    block->touched = block->extent = block->size;
    if (block->above != NULL && block->above->is_free) {
        struct block *above = block->above;

        class_remove(heap, above);
        class_insert(heap, block);
        block = join(heap, block, above);
    }
    if (block->below != NULL && block->below->is_free)
        block = join(heap, block->below, block);
    class_insert(heap, block);
    give_back(heap, block, keep);
    return 0;
}

int aq_armci_heap_holds(const struct aq_armci_heap *heap, const void *ptr, size_t bytes)
{
    const char *addr = ptr;

    for (const struct block *block = heap->first; block != NULL; block = block->above)
        if (!block->is_free && addr >= block->addr && addr < block->addr + block->size)
            return bytes <= (size_t)(block->addr + block->size - addr);
    return 0;
}

void aq_armci_heap_retain(struct aq_armci_heap *heap, void *ptr)
{
    struct block *block = *chain_of(heap, ptr);

    while (block != NULL && block->addr != ptr)
        block = block->next;
    if (block != NULL)
        block->is_retained = true;
}

void aq_armci_heap_each_retained(const struct aq_armci_heap *heap, void (*visit)(char *, size_t))
{
    for (const struct block *block = heap->first; block != NULL; block = block->above)
        if (!block->is_free && block->is_retained)
            visit(block->addr, block->size);
}

/* A free joins a block to its neighbours: the one below, if that is free, is what is left. */
void aq_armci_heap_reset(struct aq_armci_heap *heap)
{
    struct block *block = heap->first;

    while (block != NULL) {
        struct block *left = block->below != NULL && block->below->is_free ? block->below : block;

        if (block->is_free || block->is_retained) {
            block = block->above;
        } else {
            aq_armci_heap_free(heap, block->addr, 0);
            block = left->above;
        }
    }
}

size_t aq_armci_heap_used(const struct aq_armci_heap *heap)
{
    return heap->used;
}
