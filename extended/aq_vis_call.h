/*
 * aq_vis_call.h - a call of gex_VIS_*, and the files that serve it.
 *
 *     aq_vis.c         the eighteen calls; the thread's peer completion
 *     aq_vis_route.c   empty, traced, mapped or not; the result of a call
 *     aq_vis_remote.c  peers that are not mapped: individual transfers, or packed in messages
 *     aq_vis_check.c   debug builds: checks of the arguments
 *
 * Uses      aq_vis.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_VIS_CALL_H
#define AQ_VIS_CALL_H

#include "extended/aq_vis.h"

#include "core/aq_op.h"
#include "core/aq_trace.h"

/* The order of the rows of a family in core/aq_trace.def. */
enum aq_vis_style { AQ_VIS_BLOCKING, AQ_VIS_NB, AQ_VIS_NBI };

struct aq_vis_family {
    const char *name[3]; /* by style */
    struct aq_op_kind blocking, nb, nb_leaf;
    enum aq_trace_kind trace; /* of the blocking call; the others follow it */
    bool is_put;
};

/* One call. */
struct aq_vis_call {
    const struct aq_vis_family *family;
    enum aq_vis_style style;
    gex_TM_t tm;
    gex_Rank_t rank;
    gex_Flags_t flags;
    uint64_t began; /* 0: not traced */
};

/* The peer completion that this thread has set for its next put. */
#if AQ_THREADED
extern _Thread_local struct aq_vis_arming aq_vis_armed __attribute__((tls_model("initial-exec")));
#else
extern struct aq_vis_arming aq_vis_armed;
#endif

/* --- routes: aq_vis_route.c --- */

/** aq_vis_strided, aq_vis_vector, aq_vis_indexed - serves a call. Returns its event:
 *  GEX_EVENT_INVALID if it is complete, GEX_EVENT_NO_OP (only with GEX_FLAG_IMMEDIATE) if nothing
 *  was sent. */
gex_Event_t aq_vis_strided(struct aq_vis_call *call, void *dst, const ptrdiff_t *dststrides,
                           void *src, const ptrdiff_t *srcstrides, size_t elemsz,
                           const size_t *count, size_t levels);
gex_Event_t aq_vis_vector(struct aq_vis_call *call, size_t dstcount, const gex_Memvec_t *dstlist,
                          size_t srccount, const gex_Memvec_t *srclist);
gex_Event_t aq_vis_indexed(struct aq_vis_call *call, size_t dstcount, void *const *dstlist,
                           size_t dstlen, size_t srccount, void *const *srclist, size_t srclen);

/* --- peers that are not mapped: aq_vis_remote.c. Return as above. --- */

gex_Event_t aq_vis_strided_remote(const struct aq_vis_call *call, const struct aq_vis_shape *shape);
gex_Event_t aq_vis_vector_remote(const struct aq_vis_call *call, const struct aq_vis_vector *dst,
                                 const struct aq_vis_vector *src);
gex_Event_t aq_vis_indexed_remote(const struct aq_vis_call *call, const struct aq_vis_indexed *dst,
                                  const struct aq_vis_indexed *src);

/** aq_vis_shape_size - bytes of a shape. */
size_t aq_vis_shape_size(const struct aq_vis_shape *shape);

/* --- debug checks: aq_vis_check.c --- */

#if GASNET_DEBUG
void aq_vis_check_call(const struct aq_vis_call *call);
void aq_vis_check_shape(const struct aq_vis_call *call, const struct aq_vis_shape *shape);
void aq_vis_check_sums(const struct aq_vis_call *call, size_t dst, size_t src);
void aq_vis_check_vector(const struct aq_vis_call *call, const struct aq_vis_vector *remote,
                         const struct aq_vis_vector *local);
void aq_vis_check_indexed(const struct aq_vis_call *call, const struct aq_vis_indexed *remote,
                          const struct aq_vis_indexed *local);
#define AQ_VIS_CHECK(statement) statement
#else
#define AQ_VIS_CHECK(statement) ((void)0)
#endif

#endif
