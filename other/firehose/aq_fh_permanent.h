/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_permanent.h - memory that stays as long as the process: it may stay registered without the
 * memory monitor.
 *
 * Threads   look() and keep_heap() while the memory monitor is opened; then any
 * Uses      aq_fh_vma.h, aq_fh_ranges.h, the dynamic linker, glibc's malloc settings
 */
#ifndef AQ_FH_PERMANENT_H
#define AQ_FH_PERMANENT_H

#include <stdbool.h>
#include <stdint.h>

/** aq_fh_permanent_look - learn where the program is. Again: nothing happens. */
void aq_fh_permanent_look(void);

/**
 * aq_fh_permanent_keep_heap - tell malloc never to give memory back, and to take all of it from the
 * heap. Returns false, and the heap does not count as staying, if malloc is not the C library's.
 */
bool aq_fh_permanent_keep_heap(void);

/** aq_fh_permanent_covers - is [start, end) the program's code and data, the main thread's stack,
 * or a heap that is kept? */
bool aq_fh_permanent_covers(uintptr_t start, uintptr_t end);

/** aq_fh_permanent_end - where the staying memory at addr ends. AQ_OK, or AQ_ERR_ARG if addr does
 * not stay. */
int aq_fh_permanent_end(uintptr_t addr, uintptr_t *end_out);

/** aq_fh_permanent_is_program - does [start, end) belong to the program or to one of its loaded
 * libraries? */
bool aq_fh_permanent_is_program(uintptr_t start, uintptr_t end);

#endif
