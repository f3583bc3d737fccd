/*
 * aq_vis.h - internal header of non-contiguous transfers: shapes, sides, streams of bytes.
 *
 * A *shape* is a strided transfer between two places that are both mapped in this process,
 * normalised: few dimensions, long runs, an order that suits the writes. A *side* is one end of any
 * transfer, a list or one end of a shape, seen as a stream of bytes: whatever the two ends look
 * like, the n-th byte of one goes to the n-th byte of the other. Messages describe sides.
 *
 *     aq_vis.c, aq_vis_route.c, aq_vis_remote.c, aq_vis_check.c   calls and routes: aq_vis_call.h
 *     aq_vis_strided.c  shapes: normalising;  aq_vis_plane.c  shapes: copying
 *     aq_vis_lists.c    copying between lists
 *     aq_vis_side.c     sides: positions, gathering, scattering
 *     aq_vis_ref.c, aq_vis_frag.c, aq_vis_serve.c   active messages, peer completion: aq_vis_ref.h
 *
 * Promise   a transfer between mapped places allocates no memory, whatever the number of levels: a
 *           dimension of one item is dropped, and 64 dimensions of two or more are larger than any
 *           address space
 * Depends on the public headers and core/. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_VIS_H
#define AQ_VIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gasnet_vis.h"

#include "base/aq_lock.h"

struct aq_op;

#define AQ_VIS_LEVELS 63 /* maximum number of dimensions of two or more items */

/* --- strided, both ends mapped: aq_vis_strided.c, aq_vis_plane.c --- */

struct aq_vis_dim {
    size_t count;
    ptrdiff_t dst, src; /* strides, bytes */
};

/* levels 0: one run of elemsz bytes. Dimension 0 is innermost; no count is below 2; the strides of
 * the destination are positive and increase. */
struct aq_vis_shape {
    uintptr_t dst, src; /* addresses of the first element in this order */
    size_t elemsz;
    unsigned levels;
    struct aq_vis_dim dim[AQ_VIS_LEVELS];
};

/** aq_vis_normalise - makes a shape; elemsz and levels are not 0. Returns false if it is empty. */
bool aq_vis_normalise(struct aq_vis_shape *shape, uintptr_t dst, const ptrdiff_t *dststrides,
                      uintptr_t src, const ptrdiff_t *srcstrides, size_t elemsz,
                      const size_t *count, size_t levels);

/** aq_vis_copy_shape - copies; both ends are addresses of this process. */
void aq_vis_copy_shape(const struct aq_vis_shape *shape);

/** aq_vis_copy_row - copies n elements of size bytes, a stride apart on each side. */
void aq_vis_copy_row(char *dst, ptrdiff_t dststride, const char *src, ptrdiff_t srcstride, size_t n,
                     size_t size);

/* Addresses are counted in uintptr_t: a stride may temporarily lead out of an array. */
static inline uintptr_t aq_vis_move(uintptr_t at, ptrdiff_t stride, size_t times)
{
    return at + (uintptr_t)stride * times;
}

static inline char *aq_vis_at(uintptr_t at)
{
    return (char *)at;
}

/* Copies one run. A short run is copied faster than by a call; words are written whole. */
static inline void aq_vis_copy_run(char *dst, const char *src, size_t n)
{
    if (n > 64) {
        aq_copy(dst, src, n);
    } else if (n >= 32) {
        memcpy(dst, src, 32);
        memcpy(dst + n - 32, src + n - 32, 32);
    } else if (n >= 16) {
        memcpy(dst, src, 16);
        memcpy(dst + n - 16, src + n - 16, 16);
    } else if (n >= 8) {
        memcpy(dst, src, 8);
        memcpy(dst + n - 8, src + n - 8, 8);
    } else if (n >= 4) {
        memcpy(dst, src, 4);
        memcpy(dst + n - 4, src + n - 4, 4);
    } else if (n >= 2) {
        memcpy(dst, src, 2);
        memcpy(dst + n - 2, src + n - 2, 2);
    } else if (n == 1) {
        *dst = *src;
    }
}

/* --- lists: aq_vis_lists.c. The deltas are added to the addresses of their list. --- */

struct aq_vis_vector {
    size_t count;
    const gex_Memvec_t *list;
    intptr_t delta;
};

struct aq_vis_indexed {
    size_t count;
    void *const *list;
    size_t len;
    intptr_t delta;
};

/** aq_vis_copy_vector, aq_vis_copy_indexed - copies; both ends are addresses of this process. */
void aq_vis_copy_vector(const struct aq_vis_vector *dst, const struct aq_vis_vector *src);
void aq_vis_copy_indexed(const struct aq_vis_indexed *dst, const struct aq_vis_indexed *src);

/** aq_vis_vector_size - the sum of the lengths. */
size_t aq_vis_vector_size(size_t count, const gex_Memvec_t *list);

/* --- sides: aq_vis_side.c --- */

enum aq_vis_form { AQ_VIS_STRIDED, AQ_VIS_INDEXED, AQ_VIS_VECTOR };

/* A stream of bytes. It does not own what it points to. */
struct aq_vis_side {
    enum aq_vis_form form;
    unsigned levels;         /* strided */
    size_t chunk;            /* strided, indexed: bytes in a chunk */
    uintptr_t base;          /* strided */
    const size_t *count;     /* strided: [levels], innermost first */
    const ptrdiff_t *stride; /* strided: [levels] */
    union {
        void *const *addresses;     /* indexed */
        const gex_Memvec_t *vector; /* vector */
    };
};

/* A position in a stream: a chunk (in strided ones an element, counted in order), and a byte of
 * it. */
struct aq_vis_pos {
    size_t chunk, offset;
};

/* Makes a side from one end of a shape: dimensions that are contiguous at this end are merged. The
 * arrays have space for shape->levels entries. */
void aq_vis_side_of_shape(struct aq_vis_side *side, const struct aq_vis_shape *shape, bool is_dst,
                          size_t *count, ptrdiff_t *stride);

/** aq_vis_gather, aq_vis_scatter - copies n bytes of a stream to or from a buffer; advances
 * *pos. */
void aq_vis_gather(const struct aq_vis_side *side, struct aq_vis_pos *pos, char *to, size_t n);
void aq_vis_scatter(const struct aq_vis_side *side, struct aq_vis_pos *pos, const char *from,
                    size_t n);

/** aq_vis_next_run - the next contiguous bytes of a stream that has not ended, at most max;
 * advances *pos. Returns how many. */
size_t aq_vis_next_run(const struct aq_vis_side *side, struct aq_vis_pos *pos, size_t max,
                       uintptr_t *address_out);

/** aq_vis_skip - advances *pos by n bytes. */
void aq_vis_skip(const struct aq_vis_side *side, struct aq_vis_pos *pos, size_t n);

/* --- over messages: aq_vis_ref.c --- */

/* The arguments of gex_VIS_SetPeerCompletionHandler; handler 0: none. */
struct aq_vis_arming {
    gex_AM_Index_t handler;
    size_t nbytes;
    const void *source;
};

/* One transfer, as aq_vis.c passes it on. */
struct aq_vis_request {
    struct aq_op *op;
    gex_Rank_t jobrank;
    bool is_put;
    bool counts_lc;                   /* the client can observe local completion */
    size_t nbytes;                    /* not 0 */
    size_t grain;                     /* bytes that should not be divided, if known; else 0 */
    struct aq_vis_side local, remote; /* lists are not copied; arrays of strided sides are */
    struct aq_vis_arming arming;      /* puts: the peer completion */
};

/**
 * aq_vis_ref_start - transfer the bytes by messages, a bounded number of them at a time. Completion
 * is counted in request->op. Returns AQ_OK, or AQ_RETRY (only with GEX_FLAG_IMMEDIATE) if nothing
 * was sent.
 */
int aq_vis_ref_start(const struct aq_vis_request *request, gex_Flags_t flags);

/** aq_vis_notify - runs a peer completion handler at a peer now; blocks until there is credit. */
void aq_vis_notify(gex_Rank_t jobrank, const struct aq_vis_arming *arming);

/** aq_vis_init - registers handlers, reads settings. */
void aq_vis_init(void);

/** aq_vis_fini - the job has ended: frees the staging buffers. */
void aq_vis_fini(void);

/** aq_vis_progress - sends what may be sent; never blocks, runs no handler. Returns the number of
 * events. */
unsigned aq_vis_progress(void);

/* Runs of at least this length, bytes, are puts and gets of their own; shorter ones are packed. */
struct aq_vis_limits {
    size_t put_run, get_run;
};
extern struct aq_vis_limits aq_vis_limits;

#endif
