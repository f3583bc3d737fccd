/*
 * loop_const.h - limits of the loop conduit, for clients that size buffers when they are compiled.
 *
 * ./bootstrap copies the headers of this folder to include/loop-conduit.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LOOP_CONST_H
#define LOOP_CONST_H 1

/* Bytes of the largest payload of one message. */
#define LOOP_MAX_PAYLOAD 16384u

#endif
