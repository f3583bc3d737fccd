/*
 * tools_conduit.h - the tools that need a conduit: declared only after gasnetex.h.
 *
 * Mapping memory, copies and values of constant size, texts for lists of transfers and for sets of
 * constants, and the library's self-tests.
 * Source: GASNet tools specification 1.20, tools with a conduit.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_TOOLS_CONDUIT_H
#define GASNET_TOOLS_CONDUIT_H 1

AQ_BEGIN_DECLS

/**
 * gasnett_mmap - size bytes of anonymous memory, on a page boundary, zero. Without memory, and in a
 * program without a conduit, the call ends the program.
 */
AQ_PUBLIC void *gasnett_mmap(uintptr_t size);

#ifdef GASNETEX_H

/* A number of threads by which clients size tables, as large as they expect. More threads may be
 * alive at once, since no table of the library has this size: gex_System_QueryMaxThreads returns
 * the maximum. */
#if GASNET_SEQ
#define GASNETT_MAX_THREADS 1
#else
#define GASNETT_MAX_THREADS 256
#endif

/* Copies; a small constant n becomes a few moves. The first wants d and s aligned to min(n, 8). */
#define GASNETT_FAST_ALIGNED_MEMCPY(d, s, n)   ((void)memcpy((d), (s), (n)))
#define GASNETT_FAST_UNALIGNED_MEMCPY(d, s, n) ((void)memcpy((d), (s), (n)))

/* The low n bytes of a value, n from 0 to 8, stored at d; n bytes at s as a value. */
static inline AQ_UNUSED void aq_tools_value_assign(void *d, gex_RMA_Value_t value, size_t n)
{
#if PLATFORM_ARCH_BIG_ENDIAN
    memcpy(d, (const char *)&value + sizeof(value) - n, n);
#else
    memcpy(d, &value, n);
#endif
}

static inline AQ_UNUSED gex_RMA_Value_t aq_tools_value_of(const void *s, size_t n)
{
    gex_RMA_Value_t value = 0;

#if PLATFORM_ARCH_BIG_ENDIAN
    memcpy((char *)&value + sizeof(value) - n, s, n);
#else
    memcpy(&value, s, n);
#endif
    return value;
}

#define GASNETT_VALUE_ASSIGN(d, value, n) aq_tools_value_assign((d), (gex_RMA_Value_t)(value), (n))
#define GASNETT_VALUE_RETURN(s, n)        return aq_tools_value_of((s), (n))

/**
 * gasnett_run_diagnostics - the library's self-tests: fences, atomics, locks, timers, and, between
 * the ranks of a team, messages and transfers.
 * iters      how often each is repeated
 * threads    how many threads of this process take part (par); 1 elsewhere
 * sections   letters of those to run, NULL or "" all: A timers and numbers, B fences, C atomics,
 *            D locks, E messages, F transfers
 * team       collective over it; E and F need the handlers of gasnett_diagnostic_gethandlers
 * myseg      GASNETT_DIAGNOSTIC_BYTES of this rank's segment, which the tests write
 * peer       rank to test with; each rank is the peer of exactly one; peerseg: the peer's myseg
 * seed       of the random numbers
 * Returns the number of failures on this rank; each is reported on stderr.
 */
AQ_PUBLIC int gasnett_run_diagnostics(int iters, int threads, const char *sections, gex_TM_t team,
                                      void *myseg, gex_Rank_t peer, void *peerseg,
                                      unsigned int seed);
#define GASNETT_DIAGNOSTIC_BYTES 1024

/**
 * gasnett_diagnostic_gethandlers - the handlers that the self-tests need.
 * Registering the table, with other entries or alone, fills in the indices, which the tests then
 * use.
 */
AQ_PUBLIC void gasnett_diagnostic_gethandlers(gex_AM_Entry_t **table, int *count);

/* --- texts: _bufsz returns the size that buf needs --- */

typedef struct gasnett_memveclist_stats_s {
    size_t minsz, maxsz; /* of one entry, bytes */
    uintptr_t totalsz;
    char *minaddr,
        /* first byte of the lowest entry, last byte of the highest; empty entries do not count */
        *maxaddr;
} gasnett_memveclist_stats_t;

/** gasnett_format_memveclist - "3 entries, totalsz=24, ... {addr,len} ...". */
AQ_PUBLIC size_t gasnett_format_memveclist_bufsz(size_t count);
AQ_PUBLIC gasnett_memveclist_stats_t gasnett_format_memveclist(char *buf, size_t count,
                                                               const gex_Memvec_t *list);

/** gasnett_format_putvgetv - both lists of a vector transfer; returns its number of bytes. */
AQ_PUBLIC size_t gasnett_format_putvgetv_bufsz(size_t dstcount, size_t srccount);
AQ_PUBLIC size_t gasnett_format_putvgetv(char *buf, gex_TM_t tm, gex_Rank_t rank, size_t dstcount,
                                         const gex_Memvec_t *dstlist, size_t srccount,
                                         const gex_Memvec_t *srclist);

/** gasnett_format_addrlist - addresses of chunks of len bytes. */
AQ_PUBLIC size_t gasnett_format_addrlist_bufsz(size_t count);
AQ_PUBLIC void gasnett_format_addrlist(char *buf, size_t count, void *const *list, size_t len);

/** gasnett_format_putigeti - both lists of an indexed transfer; returns its number of bytes. */
AQ_PUBLIC size_t gasnett_format_putigeti_bufsz(size_t dstcount, size_t srccount);
AQ_PUBLIC size_t gasnett_format_putigeti(char *buf, gex_TM_t tm, gex_Rank_t rank, size_t dstcount,
                                         void *const *dstlist, size_t dstlen, size_t srccount,
                                         void *const *srclist, size_t srclen);

/** gasnett_format_strides - "[8, -16, 64]". */
AQ_PUBLIC size_t gasnett_format_strides_bufsz(size_t count);
AQ_PUBLIC void gasnett_format_strides(char *buf, size_t count, const ptrdiff_t *strides);

/** gasnett_format_putsgets - a strided transfer; stats is ignored; returns its number of bytes. */
AQ_PUBLIC size_t gasnett_format_putsgets_bufsz(size_t stridelevels);
AQ_PUBLIC size_t gasnett_format_putsgets(char *buf, void *stats, gex_TM_t tm, gex_Rank_t rank,
                                         void *dst, const ptrdiff_t *dststrides, void *src,
                                         const ptrdiff_t *srcstrides, size_t elemsz,
                                         const size_t *count, size_t stridelevels);

/*
 * Format a set of data types, of operations, or of token information: "GEX_DT_I32|GEX_DT_U32".
 * Returns the bytes of the text with its closing NUL; writes nothing if buf is NULL.
 */
AQ_PUBLIC size_t gasnett_format_dt(char *buf, gex_DT_t dt);
AQ_PUBLIC size_t gasnett_format_op(char *buf, gex_OP_t op);
AQ_PUBLIC size_t gasnett_format_ti(char *buf, gex_TI_t ti);

#endif

AQ_END_DECLS

#endif
