/*
 * armci_heap.h - an allocator in one range of addresses, which returns free pages to the system.
 *
 * Owns      its lists, which lie outside of the range: a program that writes past its array does
 *           not damage them
 * Threads   one at a time
 * Promise   blocks may be freed in any order; neighbouring free blocks are joined. A free block of
 *           which AQ_ARMCI_HEAP_RETURN bytes may have been touched is returned to the system by the
 *           free that made it, unless that may keep it. An allocation touches no page
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_ARMCI_HEAP_H
#define AQ_ARMCI_HEAP_H 1

#include <stddef.h>

#define AQ_ARMCI_HEAP_ALIGN  ((size_t)64)
#define AQ_ARMCI_HEAP_RETURN ((size_t)1 << 20)

struct aq_armci_heap;

/* Makes a heap of [base, base+size), whose pages have not been touched. give_back returns pages to
 * the system, as far as they are inside the range that it gets; their content is lost. NULL: no
 * memory for the lists. */
typedef void aq_armci_give_back(void *addr, size_t bytes);
struct aq_armci_heap *aq_armci_heap_create(void *base, size_t size, aq_armci_give_back *give_back);
void aq_armci_heap_destroy(struct aq_armci_heap *heap);

/* Allocates bytes > 0, aligned to AQ_ARMCI_HEAP_ALIGN. NULL: no free block is large enough. */
void *aq_armci_heap_alloc(struct aq_armci_heap *heap, size_t bytes);
/* keep: nothing is returned to the system while not more free bytes than that may have been touched
 * in the whole heap. Returns 0; -1 if ptr is not an allocation. */
int aq_armci_heap_free(struct aq_armci_heap *heap, void *ptr, size_t keep);
/* Returns 1 if [ptr, ptr+bytes) lies in one allocation, else 0. */
int aq_armci_heap_holds(const struct aq_armci_heap *heap, const void *ptr, size_t bytes);
/* Marks an allocation: aq_armci_heap_reset() does not free it. */
void aq_armci_heap_retain(struct aq_armci_heap *heap, void *ptr);
/* Calls visit for every marked allocation, in the order of addresses. */
void aq_armci_heap_each_retained(const struct aq_armci_heap *heap, void (*visit)(char *, size_t));
/* Frees every allocation that is not marked. */
void aq_armci_heap_reset(struct aq_armci_heap *heap);
/* Returns the bytes in use, with the rounding of each allocation. */
size_t aq_armci_heap_used(const struct aq_armci_heap *heap);

#endif
