/*
 * firehose_trace.h - what traces and statistics tell of firehose, under the name by which clients
 * include it.
 *
 * Nothing is added here: moves, hits, misses and pins are counted and traced by the library, and
 * turned on by GASNET_STATSFILE and GASNET_TRACEFILE like everything else.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef FIREHOSE_TRACE_H
#define FIREHOSE_TRACE_H 1

#include "gasnet_trace.h"

#endif
