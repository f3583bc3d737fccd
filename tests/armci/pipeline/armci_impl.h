/*
 * armci_impl.h - for pipeline.c: what armci_protocol.c takes from the library and from Aqueduct,
 * over a host and a network in virtual time.
 *
 * One processor copies, bc bytes a second; one network device moves what it is given in order, bn
 * bytes a second, after a latency for each transfer. Bytes really move.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_ARMCI_IMPL_H
#define AQ_ARMCI_IMPL_H 1

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "armci_protocol.h"

enum { GASNET_OK, GASNET_ERR_NOT_READY };
enum { AQ_ARMCI_HANDLE_ASSIST, AQ_ARMCI_HANDLE_ASSIST_DONE };

typedef unsigned gex_Rank_t;
typedef int gex_AM_Arg_t;
typedef int gex_Token_t;
typedef double *gex_Event_t; /* when the transfer is complete */
#define GEX_EVENT_INVALID NULL
#define GEX_EVENT_DEFER   NULL
#define GEX_EVENT_NOW     NULL

struct aq_armci_peer {
    char *base;
    size_t size;
};
struct aq_armci {
    int me, tm;
    void *heap;
    struct aq_armci_peer peers[2];
};
extern struct aq_armci aq_armci;

void vt_copy(void *dst, const void *src, size_t n);
gex_Event_t vt_transfer(void *dst, const void *src, size_t n);
void vt_wait(gex_Event_t event);
int vt_test(gex_Event_t event);
void vt_request(void *dst, const void *src, size_t n, int slot);
void vt_next_answer(void);

static inline void aq_armci_set_default(const char *name, const char *value)
{
    (void)name, (void)value;
}

static inline void *vt_pointer(gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    return (void *)((uintptr_t)(uint32_t)high << 32 | (uint32_t)low);
}

#define memcpy(dst, src, n)                             vt_copy(dst, src, n)
#define gex_RMA_PutNB(tm, rank, dst, src, n, lc, flags) vt_transfer(dst, src, n)
#define gex_RMA_GetNB(tm, dst, rank, src, n, flags)     vt_transfer(dst, src, n)
#define gex_Event_Wait(event)                           vt_wait(event)
#define gex_Event_Test(event)                           vt_test(event)
#define gasnet_getenv(name)                             getenv(name)
#define GASNET_BLOCKUNTIL(condition) \
    do {                             \
        while (!(condition))         \
            vt_next_answer();        \
    } while (0)

/* A request that the target answers with a put of n bytes. */
static inline void gex_AM_RequestShort6(int tm, gex_Rank_t rank, int handler, int flags,
                                        gex_AM_Arg_t source_high, gex_AM_Arg_t source_low,
                                        gex_AM_Arg_t dest_high, gex_AM_Arg_t dest_low,
                                        gex_AM_Arg_t n, gex_AM_Arg_t slot)
{
    (void)tm, (void)rank, (void)handler, (void)flags;
    vt_request(vt_pointer(dest_high, dest_low), vt_pointer(source_high, source_low), (size_t)n,
               slot);
}

static inline void gex_AM_ReplyLong1(gex_Token_t token, int handler, void *source, size_t n,
                                     void *dest, gex_Event_t lc, int flags, gex_AM_Arg_t slot)
{
    (void)token, (void)handler, (void)source, (void)n, (void)dest, (void)lc, (void)flags;
    (void)slot;
}

static inline size_t gex_AM_MaxReplyLong(int tm, gex_Rank_t rank, gex_Event_t lc, int flags,
                                         unsigned args)
{
    (void)tm, (void)rank, (void)lc, (void)flags, (void)args;
    return (size_t)1 << 20;
}

void aq_armci_fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void *aq_armci_heap_alloc(void *heap, size_t bytes);
void aq_armci_heap_free(void *heap, void *ptr, size_t keep);
void aq_armci_mark(int proc);
int ARMCIX_Set(const char *name, const char *value);
long ARMCIX_Counter(const char *name);
void aq_armci_on_assist(gex_Token_t token, gex_AM_Arg_t source_high, gex_AM_Arg_t source_low,
                        gex_AM_Arg_t dest_high, gex_AM_Arg_t dest_low, gex_AM_Arg_t bytes,
                        gex_AM_Arg_t slot);
void aq_armci_on_assist_done(gex_Token_t token, void *data, size_t bytes, gex_AM_Arg_t slot);

#endif
