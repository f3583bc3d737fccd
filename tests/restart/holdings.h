/*
 * holdings.h - what the calling process holds: descriptors, threads, memory, signal handlers. For
 * comparisons before and after jobs; no job runs meanwhile. Uses world.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef HOLDINGS_H
#define HOLDINGS_H

#include <stdbool.h>

struct holdings {
    long files, threads, mappings;
    long heap_kb; /* allocated and not freed; 0 under a sanitizer */
    long rss_kb;  /* of no file: pages of code come when it is first run */
};

/** holdings_look - waits for joined threads until there are no more than expected. */
struct holdings holdings_look(long threads_expected);

/** holdings_show - a line of rank 0's. */
void holdings_show(const char *when, const struct holdings *h);

/** holdings_note_handlers - of all signals, those that MPI has installed among them. */
void holdings_note_handlers(void);

/** holdings_has_handlers - returns true if they are the same; else says which is not. */
bool holdings_has_handlers(void);

#endif
