/*
 * hotpath.c - one small function for each inline fast path; run.pl checks their machine code.
 *
 * The names state what run.pl expects: plain_* no atomic instruction; atomic_* exactly one, the
 * operation itself. *_8 has a constant length of 8 bytes, *_n a variable one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_ratomic.h"
#include "gasnetex.h"

#define SELF gex_TM_t tm, gex_Rank_t rank

AQ_BEGIN_DECLS /* the names are the same in C and in C++ */

    /* --- puts --- */

    int
    plain_put_blocking_8(SELF, void *dest, const void *src);
int plain_put_blocking_8(SELF, void *dest, const void *src)
{
    return gex_RMA_PutBlocking(tm, rank, dest, src, 8, 0);
}

gex_Event_t plain_put_nb_8(SELF, void *dest, const void *src);
gex_Event_t plain_put_nb_8(SELF, void *dest, const void *src)
{
    return gex_RMA_PutNB(tm, rank, dest, src, 8, GEX_EVENT_DEFER, 0);
}

gex_Event_t plain_put_nb_leaf_8(SELF, void *dest, const void *src, gex_Event_t *leaf);
gex_Event_t plain_put_nb_leaf_8(SELF, void *dest, const void *src, gex_Event_t *leaf)
{
    return gex_RMA_PutNB(tm, rank, dest, src, 8, leaf, 0);
}

int plain_put_nbi_8(SELF, void *dest, const void *src);
int plain_put_nbi_8(SELF, void *dest, const void *src)
{
    return gex_RMA_PutNBI(tm, rank, dest, src, 8, GEX_EVENT_DEFER, 0);
}

int plain_put_blocking_n(SELF, void *dest, const void *src, size_t n);
int plain_put_blocking_n(SELF, void *dest, const void *src, size_t n)
{
    return gex_RMA_PutBlocking(tm, rank, dest, src, n, 0);
}

gex_Event_t plain_put_nb_n(SELF, void *dest, const void *src, size_t n);
gex_Event_t plain_put_nb_n(SELF, void *dest, const void *src, size_t n)
{
    return gex_RMA_PutNB(tm, rank, dest, src, n, GEX_EVENT_NOW, 0);
}

int plain_put_nbi_n(SELF, void *dest, const void *src, size_t n);
int plain_put_nbi_n(SELF, void *dest, const void *src, size_t n)
{
    return gex_RMA_PutNBI(tm, rank, dest, src, n, GEX_EVENT_GROUP, 0);
}

/* --- gets --- */

int plain_get_blocking_8(SELF, void *dest, void *src);
int plain_get_blocking_8(SELF, void *dest, void *src)
{
    return gex_RMA_GetBlocking(tm, dest, rank, src, 8, 0);
}

gex_Event_t plain_get_nb_8(SELF, void *dest, void *src);
gex_Event_t plain_get_nb_8(SELF, void *dest, void *src)
{
    return gex_RMA_GetNB(tm, dest, rank, src, 8, 0);
}

int plain_get_nbi_8(SELF, void *dest, void *src);
int plain_get_nbi_8(SELF, void *dest, void *src)
{
    return gex_RMA_GetNBI(tm, dest, rank, src, 8, 0);
}

int plain_get_blocking_n(SELF, void *dest, void *src, size_t n);
int plain_get_blocking_n(SELF, void *dest, void *src, size_t n)
{
    return gex_RMA_GetBlocking(tm, dest, rank, src, n, 0);
}

gex_Event_t plain_get_nb_n(SELF, void *dest, void *src, size_t n);
gex_Event_t plain_get_nb_n(SELF, void *dest, void *src, size_t n)
{
    return gex_RMA_GetNB(tm, dest, rank, src, n, 0);
}

int plain_get_nbi_n(SELF, void *dest, void *src, size_t n);
int plain_get_nbi_n(SELF, void *dest, void *src, size_t n)
{
    return gex_RMA_GetNBI(tm, dest, rank, src, n, 0);
}

/* --- values --- */

int plain_put_val_8(SELF, void *dest, gex_RMA_Value_t value);
int plain_put_val_8(SELF, void *dest, gex_RMA_Value_t value)
{
    return gex_RMA_PutBlockingVal(tm, rank, dest, value, 8, 0);
}

gex_Event_t plain_put_nb_val_8(SELF, void *dest, gex_RMA_Value_t value);
gex_Event_t plain_put_nb_val_8(SELF, void *dest, gex_RMA_Value_t value)
{
    return gex_RMA_PutNBVal(tm, rank, dest, value, 8, 0);
}

int plain_put_nbi_val_8(SELF, void *dest, gex_RMA_Value_t value);
int plain_put_nbi_val_8(SELF, void *dest, gex_RMA_Value_t value)
{
    return gex_RMA_PutNBIVal(tm, rank, dest, value, 8, 0);
}

gex_RMA_Value_t plain_get_val_8(SELF, void *src);
gex_RMA_Value_t plain_get_val_8(SELF, void *src)
{
    return gex_RMA_GetBlockingVal(tm, rank, src, 8, 0);
}

int plain_put_val_n(SELF, void *dest, gex_RMA_Value_t value, size_t n);
int plain_put_val_n(SELF, void *dest, gex_RMA_Value_t value, size_t n)
{
    return gex_RMA_PutBlockingVal(tm, rank, dest, value, n, 0);
}

gex_RMA_Value_t plain_get_val_n(SELF, void *src, size_t n);
gex_RMA_Value_t plain_get_val_n(SELF, void *src, size_t n)
{
    return gex_RMA_GetBlockingVal(tm, rank, src, n, 0);
}

/* --- messages: the client's part --- */

int plain_am_short_0(SELF);
int plain_am_short_0(SELF)
{
    return gex_AM_RequestShort0(tm, rank, 200, 0);
}

int plain_am_short_2(SELF, int32_t a, int32_t b);
int plain_am_short_2(SELF, int32_t a, int32_t b)
{
    return gex_AM_RequestShort2(tm, rank, 200, 0, a, b);
}

/* --- atomics: the operation itself and nothing else --- */

int plain_ad_get(gex_AD_t ad, gex_Rank_t rank, void *at, int64_t *result);
int plain_ad_get(gex_AD_t ad, gex_Rank_t rank, void *at, int64_t *result)
{
    return gex_AD_OpNBI_I64(ad, result, rank, at, GEX_OP_GET, 0, 0, GEX_FLAG_AD_ACQ);
}

int plain_ad_set(gex_AD_t ad, gex_Rank_t rank, void *at, int64_t value);
int plain_ad_set(gex_AD_t ad, gex_Rank_t rank, void *at, int64_t value)
{
    return gex_AD_OpNBI_I64(ad, NULL, rank, at, GEX_OP_SET, value, 0, GEX_FLAG_AD_REL);
}

gex_Event_t atomic_ad_fadd(gex_AD_t ad, gex_Rank_t rank, void *at, int64_t value, int64_t *result);
gex_Event_t atomic_ad_fadd(gex_AD_t ad, gex_Rank_t rank, void *at, int64_t value, int64_t *result)
{
    return gex_AD_OpNB_I64(ad, result, rank, at, GEX_OP_FADD, value, 0, 0);
}

int atomic_ad_inc(gex_AD_t ad, gex_Rank_t rank, void *at);
int atomic_ad_inc(gex_AD_t ad, gex_Rank_t rank, void *at)
{
    return gex_AD_OpNBI_U32(ad, NULL, rank, at, GEX_OP_INC, 0, 0, GEX_FLAG_AD_REL);
}

gex_Event_t atomic_ad_fcas(gex_AD_t ad, gex_Rank_t rank, void *at, uint64_t a, uint64_t b,
                           uint64_t *result);
gex_Event_t atomic_ad_fcas(gex_AD_t ad, gex_Rank_t rank, void *at, uint64_t a, uint64_t b,
                           uint64_t *result)
{
    return gex_AD_OpNB_U64(ad, result, rank, at, GEX_OP_FCAS, a, b,
                           GEX_FLAG_AD_REL | GEX_FLAG_AD_ACQ);
}

gex_Event_t atomic_ad_fadd_dbl(gex_AD_t ad, gex_Rank_t rank, void *at, double a, double *result);
gex_Event_t atomic_ad_fadd_dbl(gex_AD_t ad, gex_Rank_t rank, void *at, double a, double *result)
{
    return gex_AD_OpNB_DBL(ad, result, rank, at, GEX_OP_FADD, a, 0, 0);
}

AQ_END_DECLS

#ifdef AQ_HOTPATH_MAIN
int main(void)
{
    return plain_am_short_0(GEX_TM_INVALID, 0) + gasnet_AMPoll();
}
#endif
