/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_tools_conduit.c - mapping memory; transfers and sets of constants as text; see
 * include/gasnet/tools_conduit.h. In the conduit libraries alone.
 * Threads   any; no state
 */
#include "other/tools/aq_tools.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/aq_platform.h"

#define AQ_FORMAT_HEAD  200 /* maximum bytes of the text around a list */
#define AQ_FORMAT_ENTRY 64  /* maximum bytes of one entry */

void *gasnett_mmap(uintptr_t size)
{
    void *p = mmap(NULL, aq_round_up(size > 0 ? size : 1, AQ_PAGE_SIZE), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        gasnett_fatalerror_nopos("gasnett_mmap: no memory for %" PRIuPTR " bytes: %s", size,
                                 strerror(errno));
    return p;
}

/* --- lists --- */

size_t gasnett_format_memveclist_bufsz(size_t count)
{
    return AQ_FORMAT_HEAD + count * AQ_FORMAT_ENTRY;
}

static gasnett_memveclist_stats_t aq_format_stats(size_t count, const gex_Memvec_t *list)
{
    gasnett_memveclist_stats_t stats = { SIZE_MAX, 0, 0, NULL, NULL };

    for (size_t i = 0; i < count; i++) {
        char *first = list[i].gex_addr, *last = first + list[i].gex_len - 1;

        stats.minsz = MIN(stats.minsz, list[i].gex_len);
        stats.maxsz = MAX(stats.maxsz, list[i].gex_len);
        stats.totalsz += list[i].gex_len;
        if (list[i].gex_len == 0)
            continue;
        if (stats.minaddr == NULL || first < stats.minaddr)
            stats.minaddr = first;
        if (stats.maxaddr == NULL || last > stats.maxaddr)
            stats.maxaddr = last;
    }
    if (count == 0)
        stats.minsz = 0;
    return stats;
}

gasnett_memveclist_stats_t gasnett_format_memveclist(char *buf, size_t count,
                                                     const gex_Memvec_t *list)
{
    const gasnett_memveclist_stats_t stats = aq_format_stats(count, list);

    buf += sprintf(
        buf, "%zu entries, totalsz=%" PRIuPTR ", bounds=[%p..%p], minsz=%zu, maxsz=%zu, list=[",
        count, stats.totalsz, (void *)stats.minaddr, (void *)stats.maxaddr, stats.minsz,
        stats.maxsz);
    for (size_t i = 0; i < count; i++)
        buf += sprintf(buf, "%s{%p,%zu}", i > 0 ? ", " : "", list[i].gex_addr, list[i].gex_len);
    strcpy(buf, "]");
    return stats;
}

size_t gasnett_format_putvgetv_bufsz(size_t dstcount, size_t srccount)
{
    return AQ_FORMAT_HEAD + gasnett_format_memveclist_bufsz(dstcount)
           + gasnett_format_memveclist_bufsz(srccount);
}

static char *aq_format_peer(char *buf, gex_TM_t tm, gex_Rank_t rank)
{
    return buf + sprintf(buf, "(%p,%u) ", (void *)tm, (unsigned)rank);
}

size_t gasnett_format_putvgetv(char *buf, gex_TM_t tm, gex_Rank_t rank, size_t dstcount,
                               const gex_Memvec_t *dstlist, size_t srccount,
                               const gex_Memvec_t *srclist)
{
    gasnett_memveclist_stats_t stats;

    buf = aq_format_peer(buf, tm, rank);
    buf += sprintf(buf, "dst: ");
    stats = gasnett_format_memveclist(buf, dstcount, dstlist);
    buf += strlen(buf);
    buf += sprintf(buf, " src: ");
    gasnett_format_memveclist(buf, srccount, srclist);
    return stats.totalsz;
}

size_t gasnett_format_addrlist_bufsz(size_t count)
{
    return AQ_FORMAT_HEAD + count * AQ_FORMAT_ENTRY;
}

void gasnett_format_addrlist(char *buf, size_t count, void *const *list, size_t len)
{
    const char *low = NULL, *high = NULL;

    for (size_t i = 0; i < count; i++) {
        const char *at = list[i];

        if (low == NULL || at < low)
            low = at;
        if (high == NULL || at + len - 1 > high)
            high = at + len - 1;
    }
    buf += sprintf(buf, "%zu entries of %zu bytes, totalsz=%zu, bounds=[%p..%p], list=[", count,
                   len, count * len, (const void *)low, (const void *)high);
    for (size_t i = 0; i < count; i++)
        buf += sprintf(buf, "%s%p", i > 0 ? ", " : "", list[i]);
    strcpy(buf, "]");
}

size_t gasnett_format_putigeti_bufsz(size_t dstcount, size_t srccount)
{
    return AQ_FORMAT_HEAD + gasnett_format_addrlist_bufsz(dstcount)
           + gasnett_format_addrlist_bufsz(srccount);
}

size_t gasnett_format_putigeti(char *buf, gex_TM_t tm, gex_Rank_t rank, size_t dstcount,
                               void *const *dstlist, size_t dstlen, size_t srccount,
                               void *const *srclist, size_t srclen)
{
    buf = aq_format_peer(buf, tm, rank);
    buf += sprintf(buf, "dst: ");
    gasnett_format_addrlist(buf, dstcount, dstlist, dstlen);
    buf += strlen(buf);
    buf += sprintf(buf, " src: ");
    gasnett_format_addrlist(buf, srccount, srclist, srclen);
    return dstcount * dstlen;
}

size_t gasnett_format_strides_bufsz(size_t count)
{
    return 8 + count * 24;
}

void gasnett_format_strides(char *buf, size_t count, const ptrdiff_t *strides)
{
    buf += sprintf(buf, "[");
    for (size_t i = 0; i < count; i++)
        buf += sprintf(buf, "%s%td", i > 0 ? ", " : "", strides[i]);
    strcpy(buf, "]");
}

size_t gasnett_format_putsgets_bufsz(size_t stridelevels)
{
    return AQ_FORMAT_HEAD + 3 * gasnett_format_strides_bufsz(stridelevels);
}

size_t gasnett_format_putsgets(char *buf, void *stats, gex_TM_t tm, gex_Rank_t rank, void *dst,
                               const ptrdiff_t *dststrides, void *src, const ptrdiff_t *srcstrides,
                               size_t elemsz, const size_t *count, size_t stridelevels)
{
    size_t total = elemsz;

    (void)stats;
    for (size_t i = 0; i < stridelevels; i++)
        total *= count[i];
    buf = aq_format_peer(buf, tm, rank);
    buf += sprintf(buf, "stridelevels=%zu, elemsz=%zu, count=[", stridelevels, elemsz);
    for (size_t i = 0; i < stridelevels; i++)
        buf += sprintf(buf, "%s%zu", i > 0 ? ", " : "", count[i]);
    buf += sprintf(buf, "], totalsz=%zu, dst=%p, dststrides=", total, dst);
    gasnett_format_strides(buf, stridelevels, dststrides);
    buf += strlen(buf);
    buf += sprintf(buf, ", src=%p, srcstrides=", src);
    gasnett_format_strides(buf, stridelevels, srcstrides);
    return total;
}

/* --- sets of constants --- */

struct aq_format_word {
    uint32_t bit;
    const char *word;
};

/* the words of the set's members, separated by bars; a number for members without a word */
static size_t aq_format_set(char *buf, uint32_t set, const struct aq_format_word *words)
{
    size_t need = 1;
    char number[16];

    if (buf != NULL)
        *buf = '\0';
    for (; set != 0; words++) {
        const char *word = words->word;

        if (word == NULL) {
            snprintf(number, sizeof(number), "0x%" PRIx32, set);
            word = number;
        } else if ((set & words->bit) == 0) {
            continue;
        }
        set = words->word == NULL ? 0 : set & ~words->bit;
        if (buf != NULL && need > 1)
            strcat(buf, "|");
        if (buf != NULL)
            strcat(buf, word);
        need += (need > 1) + strlen(word);
    }
    if (need == 1) {
        if (buf != NULL)
            strcpy(buf, "0");
        need = 2;
    }
    return need;
}

#define AQ_WORD(name) \
    {                 \
        name, #name   \
    }

size_t gasnett_format_dt(char *buf, gex_DT_t dt)
{
    static const struct aq_format_word words[] = {
        AQ_WORD(GEX_DT_I32), AQ_WORD(GEX_DT_U32), AQ_WORD(GEX_DT_I64),  AQ_WORD(GEX_DT_U64),
        AQ_WORD(GEX_DT_FLT), AQ_WORD(GEX_DT_DBL), AQ_WORD(GEX_DT_USER), { 0, NULL },
    };

    return aq_format_set(buf, dt, words);
}

size_t gasnett_format_op(char *buf, gex_OP_t op)
{
    static const struct aq_format_word words[] = {
        AQ_WORD(GEX_OP_AND),  AQ_WORD(GEX_OP_OR),    AQ_WORD(GEX_OP_XOR),     AQ_WORD(GEX_OP_ADD),
        AQ_WORD(GEX_OP_SUB),  AQ_WORD(GEX_OP_MULT),  AQ_WORD(GEX_OP_MIN),     AQ_WORD(GEX_OP_MAX),
        AQ_WORD(GEX_OP_INC),  AQ_WORD(GEX_OP_DEC),   AQ_WORD(GEX_OP_SET),     AQ_WORD(GEX_OP_CAS),
        AQ_WORD(GEX_OP_FAND), AQ_WORD(GEX_OP_FOR),   AQ_WORD(GEX_OP_FXOR),    AQ_WORD(GEX_OP_FADD),
        AQ_WORD(GEX_OP_FSUB), AQ_WORD(GEX_OP_FMULT), AQ_WORD(GEX_OP_FMIN),    AQ_WORD(GEX_OP_FMAX),
        AQ_WORD(GEX_OP_FINC), AQ_WORD(GEX_OP_FDEC),  AQ_WORD(GEX_OP_SWAP),    AQ_WORD(GEX_OP_FCAS),
        AQ_WORD(GEX_OP_GET),  AQ_WORD(GEX_OP_USER),  AQ_WORD(GEX_OP_USER_NC), { 0, NULL },
    };

    return aq_format_set(buf, op, words);
}

size_t gasnett_format_ti(char *buf, gex_TI_t ti)
{
    static const struct aq_format_word words[] = {
        AQ_WORD(GEX_TI_SRCRANK), AQ_WORD(GEX_TI_EP),      AQ_WORD(GEX_TI_ENTRY),
        AQ_WORD(GEX_TI_IS_REQ),  AQ_WORD(GEX_TI_IS_LONG), { 0, NULL },
    };

    return aq_format_set(buf, ti, words);
}
