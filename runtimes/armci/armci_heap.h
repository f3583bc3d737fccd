/*
 * armci_heap.h - allocates in one stretch of address space, and gives pages back to the system.
 *
 * Owns      its own notes, outside of the memory it hands out, so that a program which writes past
 *           its array spoils no list
 * Threads   one at a time
 * Promise   any order of frees; neighbours that are free are one. The pages of a free stretch go
 *           back to the system once AQ_ARMCI_HEAP_RETURN bytes of it may have been touched. Nothing
 *           is touched by allocating
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_ARMCI_HEAP_H
#define AQ_ARMCI_HEAP_H 1

#include <stddef.h>

#define AQ_ARMCI_HEAP_ALIGN  ((size_t)64)
#define AQ_ARMCI_HEAP_RETURN ((size_t)1 << 20)

struct aq_armci_heap;

/* A heap of [base, base+size), which nobody has touched; NULL if there is no memory for its notes.
 * */
struct aq_armci_heap *aq_armci_heap_create(void *base, size_t size);
void aq_armci_heap_destroy(struct aq_armci_heap *heap);

/* bytes > 0, aligned to AQ_ARMCI_HEAP_ALIGN; NULL if no free stretch is so long. */
void *aq_armci_heap_alloc(struct aq_armci_heap *heap, size_t bytes);
/* Returns 0, or -1 if ptr is not what an allocation returned. */
int aq_armci_heap_free(struct aq_armci_heap *heap, void *ptr);
/* The allocation that [ptr, ptr+bytes) lies in as a whole? */
int aq_armci_heap_holds(const struct aq_armci_heap *heap, const void *ptr, size_t bytes);
/* Frees every allocation. */
void aq_armci_heap_reset(struct aq_armci_heap *heap);
/* Bytes in use, rounded up as they were. */
size_t aq_armci_heap_used(const struct aq_armci_heap *heap);

#endif
