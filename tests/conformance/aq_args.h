/*
 * aq_args.h - argument lists of every length, for the programs that try all 17 argument counts.
 *
 * AQ_DECLS(n)   ", gex_AM_Arg_t a0, ... a(n-1)"     parameters after the fixed ones
 * AQ_NAMES(n)   ", a0, ... a(n-1)"                  the same as values
 * AQ_GIVEN(n)   ", v[0], ... v[n-1]"                arguments to send, from an array v
 * AQ_EACH(X)    X(0) X(1) ... X(16)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_ARGS_H
#define AQ_ARGS_H

/* clang-format off */
#define AQ_EACH(X)                                                                                 \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)
/* clang-format on */

#define AQ_DECLS_0
#define AQ_DECLS_1  , gex_AM_Arg_t a0
#define AQ_DECLS_2  AQ_DECLS_1, gex_AM_Arg_t a1
#define AQ_DECLS_3  AQ_DECLS_2, gex_AM_Arg_t a2
#define AQ_DECLS_4  AQ_DECLS_3, gex_AM_Arg_t a3
#define AQ_DECLS_5  AQ_DECLS_4, gex_AM_Arg_t a4
#define AQ_DECLS_6  AQ_DECLS_5, gex_AM_Arg_t a5
#define AQ_DECLS_7  AQ_DECLS_6, gex_AM_Arg_t a6
#define AQ_DECLS_8  AQ_DECLS_7, gex_AM_Arg_t a7
#define AQ_DECLS_9  AQ_DECLS_8, gex_AM_Arg_t a8
#define AQ_DECLS_10 AQ_DECLS_9, gex_AM_Arg_t a9
#define AQ_DECLS_11 AQ_DECLS_10, gex_AM_Arg_t a10
#define AQ_DECLS_12 AQ_DECLS_11, gex_AM_Arg_t a11
#define AQ_DECLS_13 AQ_DECLS_12, gex_AM_Arg_t a12
#define AQ_DECLS_14 AQ_DECLS_13, gex_AM_Arg_t a13
#define AQ_DECLS_15 AQ_DECLS_14, gex_AM_Arg_t a14
#define AQ_DECLS_16 AQ_DECLS_15, gex_AM_Arg_t a15
#define AQ_DECLS(N) AQ_DECLS_##N

#define AQ_NAMES_0
#define AQ_NAMES_1  , a0
#define AQ_NAMES_2  AQ_NAMES_1, a1
#define AQ_NAMES_3  AQ_NAMES_2, a2
#define AQ_NAMES_4  AQ_NAMES_3, a3
#define AQ_NAMES_5  AQ_NAMES_4, a4
#define AQ_NAMES_6  AQ_NAMES_5, a5
#define AQ_NAMES_7  AQ_NAMES_6, a6
#define AQ_NAMES_8  AQ_NAMES_7, a7
#define AQ_NAMES_9  AQ_NAMES_8, a8
#define AQ_NAMES_10 AQ_NAMES_9, a9
#define AQ_NAMES_11 AQ_NAMES_10, a10
#define AQ_NAMES_12 AQ_NAMES_11, a11
#define AQ_NAMES_13 AQ_NAMES_12, a12
#define AQ_NAMES_14 AQ_NAMES_13, a13
#define AQ_NAMES_15 AQ_NAMES_14, a14
#define AQ_NAMES_16 AQ_NAMES_15, a15
#define AQ_NAMES(N) AQ_NAMES_##N

#define AQ_GIVEN_0
#define AQ_GIVEN_1  , v[0]
#define AQ_GIVEN_2  AQ_GIVEN_1, v[1]
#define AQ_GIVEN_3  AQ_GIVEN_2, v[2]
#define AQ_GIVEN_4  AQ_GIVEN_3, v[3]
#define AQ_GIVEN_5  AQ_GIVEN_4, v[4]
#define AQ_GIVEN_6  AQ_GIVEN_5, v[5]
#define AQ_GIVEN_7  AQ_GIVEN_6, v[6]
#define AQ_GIVEN_8  AQ_GIVEN_7, v[7]
#define AQ_GIVEN_9  AQ_GIVEN_8, v[8]
#define AQ_GIVEN_10 AQ_GIVEN_9, v[9]
#define AQ_GIVEN_11 AQ_GIVEN_10, v[10]
#define AQ_GIVEN_12 AQ_GIVEN_11, v[11]
#define AQ_GIVEN_13 AQ_GIVEN_12, v[12]
#define AQ_GIVEN_14 AQ_GIVEN_13, v[13]
#define AQ_GIVEN_15 AQ_GIVEN_14, v[14]
#define AQ_GIVEN_16 AQ_GIVEN_15, v[15]
#define AQ_GIVEN(N) AQ_GIVEN_##N

#endif
