/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_vma.h - the mapping at an address of this process, as the kernel sees it.
 *
 * Owns      a descriptor of /proc/self/maps, if the kernel answers questions about single addresses
 *           (Linux 6.11)
 * Threads   any; it allocates nothing
 * Uses      /proc
 */
#ifndef AQ_FH_VMA_H
#define AQ_FH_VMA_H

#include <stdbool.h>
#include <stdint.h>

/* What stands behind a mapping. */
enum aq_fh_backing {
    AQ_FH_ANONYMOUS, /* nothing that anybody else could change */
    /* a file: any process that has it open can truncate it, or punch holes into it */
    AQ_FH_FILE,
    AQ_FH_DEVICE /* the kernel's own mappings, devices */
};

/* A mapping as mmap() and the kernel's merging have made it. */
struct aq_fh_vma {
    uintptr_t start, end;
    bool shared; /* MAP_SHARED, and System V shared memory */
    bool heap;   /* what brk() has made */
    bool stack;  /* the main thread's */
    enum aq_fh_backing backing;
};

/**
 * aq_fh_vma_find - the mapping at addr.
 * Returns AQ_OK; AQ_ERR_ARG: nothing is mapped there; AQ_ERR_SYS: there is no /proc to ask. Logs
 * nothing.
 */
int aq_fh_vma_find(uintptr_t addr, struct aq_fh_vma *vma_out);

/** aq_fh_vma_read - the same from the text of /proc/self/maps, as on kernels before 6.11. */
int aq_fh_vma_read(uintptr_t addr, struct aq_fh_vma *vma_out);

/** aq_fh_vma_heap - the mapping that brk() extends; AQ_ERR_ARG: there is none yet. */
int aq_fh_vma_heap(struct aq_fh_vma *vma_out);

/** aq_fh_vma_close - close the descriptor; the next question opens it again. No other thread is
 * asking. */
void aq_fh_vma_close(void);

#endif
