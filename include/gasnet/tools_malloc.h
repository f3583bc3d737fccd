/*
 * tools_malloc.h - the names of the debugging allocator.
 *
 * GASNET_DEBUGMALLOC is not defined: address sanitizer and valgrind find more, and these libraries
 * work under both. A client that uses the names gets the system's allocator.
 * Source: GASNet tools specification 1.20, debugging allocator.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_TOOLS_MALLOC_H
#define GASNET_TOOLS_MALLOC_H 1

AQ_BEGIN_DECLS

/* Allocation that ends the program without memory; free() accepts the results. */
AQ_PUBLIC void *aq_tools_malloc(size_t n) AQ_ATTR((__malloc__));
AQ_PUBLIC void *aq_tools_realloc(void *p, size_t n);
AQ_PUBLIC void *aq_tools_calloc(size_t n, size_t size) AQ_ATTR((__malloc__));
AQ_PUBLIC char *aq_tools_strdup(const char *s) AQ_ATTR((__malloc__));
AQ_PUBLIC char *aq_tools_strndup(const char *s, size_t n) AQ_ATTR((__malloc__));

#define gasnett_debug_malloc(n)      aq_tools_malloc(n)
#define gasnett_debug_realloc(p, n)  aq_tools_realloc((p), (n))
#define gasnett_debug_calloc(n, s)   aq_tools_calloc((n), (s))
#define gasnett_debug_free(p)        free(p)
#define gasnett_debug_strdup(s)      aq_tools_strdup(s)
#define gasnett_debug_strndup(s, n)  aq_tools_strndup((s), (n))
#define gasnett_debug_memcheck(p)    ((void)(p))
#define gasnett_debug_memcheck_one() ((void)0)
#define gasnett_debug_memcheck_all() ((void)0)

typedef struct gasnett_heapstats_s {
    uint64_t allocated_bytes;
    uint64_t freed_bytes;
    uint64_t live_bytes;
    uint64_t live_bytes_max;
    uint64_t allocated_objects;
    uint64_t freed_objects;
    uint64_t live_objects;
    uint64_t live_objects_max;
    uint64_t overhead_bytes;
} gasnett_heapstats_t;

/** gasnett_getheapstats - returns non-zero: there are no statistics; *stats is all zeros. */
AQ_PUBLIC int gasnett_getheapstats(gasnett_heapstats_t *stats);
/** gasnett_heapinfo_dump - write a report to a file, "-" for stderr: it says that there is nothing
 * to report. */
AQ_PUBLIC void gasnett_heapinfo_dump(const char *filename, int show_live_objects);

AQ_END_DECLS

#endif
