/*
 * coll.h - broadcast and reductions over a team.
 *
 * All are started by a call and finished by synchronising its event; all members of the team make
 * the same sequence of such calls. Part of gasnet_coll.h, not of gasnetex.h.
 *
 * Source: GASNet-EX specification 0.19, Collectives. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_COLL_PART_H
#define GASNET_COLL_PART_H 1

AQ_BEGIN_DECLS

/**
 * gex_Coll_ReduceFn_t - a client's reduction operator: y[i] = x[i] (+) y[i].
 * arg1          x, the left operands; only read
 * arg2_and_out  y, the right operands, replaced by the results; does not overlap x
 * count         elements, 1 or more; the library chooses the number
 * cdata         what this process passed as user_cdata
 * Context any thread inside any call of this process that polls, several at a time. Calls that are
 * legal while an HSL is held are legal
 */
typedef void (*gex_Coll_ReduceFn_t)(const void *arg1, void *arg2_and_out, size_t count,
                                    const void *cdata);

/**
 * gex_Coll_BroadcastNB - copy nbytes bytes from src at the root to dst at every member.
 * tm      a team, not a TM-pair
 * root    its rank in tm; the same at all members
 * dst     local, any host memory, any alignment; written at the root too
 * src     local; read at the root only, where it may equal dst (then nothing is copied there)
 * nbytes  bytes, the same at all members; 0: no address is used
 * flags   0
 * Context collective over tm; ordinary code, any thread; all members make the calls in one order
 * Returns a root event, complete when dst may be read and src reused on this process.
 * Errors: none; a debug build ends the job at an illegal argument.
 * Source: GASNet-EX specification 0.19, Collectives. Test: test_coll_broadcast.
 */
AQ_PUBLIC gex_Event_t gex_Coll_BroadcastNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src,
                                           size_t nbytes, gex_Flags_t flags) AQ_MUST_USE;

/**
 * gex_Coll_ReduceToOneNB - combine one array from each member, element by element, at the root.
 * tm, root   as above
 * dst        local, at the root: dt_cnt elements; may equal src there; ignored elsewhere
 * src        local: dt_cnt elements
 * dt, dt_sz  GEX_DT_*, and the bytes of an element; GEX_DT_USER elements may have any size
 * dt_cnt     elements, 1 or more; dt, dt_sz, dt_cnt, op are the same at all members
 * op         GEX_OP_AND, OR, XOR (integers), ADD, MULT, MIN, MAX; GEX_OP_USER, associative and
 *            commutative, or GEX_OP_USER_NC, associative: operands are combined in rank order
 * user_op, user_cdata  the operator of GEX_OP_USER and GEX_OP_USER_NC and what it is called with
 * flags      0
 * Context, Returns, Errors as above. Test: test_coll_reduce, test_coll_user.
 */
AQ_PUBLIC gex_Event_t gex_Coll_ReduceToOneNB(gex_TM_t tm, gex_Rank_t root, void *dst,
                                             const void *src, gex_DT_t dt, size_t dt_sz,
                                             size_t dt_cnt, gex_OP_t op,
                                             gex_Coll_ReduceFn_t user_op, void *user_cdata,
                                             gex_Flags_t flags) AQ_MUST_USE;

/**
 * gex_Coll_ReduceToAllNB - the same, with the result at every member.
 * dst  local: dt_cnt elements; equal to src at every member or at none
 * For the built-in operations every member gets the same bits.
 */
AQ_PUBLIC gex_Event_t gex_Coll_ReduceToAllNB(gex_TM_t tm, void *dst, const void *src, gex_DT_t dt,
                                             size_t dt_sz, size_t dt_cnt, gex_OP_t op,
                                             gex_Coll_ReduceFn_t user_op, void *user_cdata,
                                             gex_Flags_t flags) AQ_MUST_USE;

AQ_END_DECLS

#endif
