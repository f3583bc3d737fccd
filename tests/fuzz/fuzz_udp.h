/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_udp.h - the inputs of fuzz_udp.c, which corpus_udp.c writes: a sequence of records, each
 *
 *   u8 what   0 deliver a datagram without checking its hash   1 the same, if the hash is right 2
 *             queue a datagram and send                      3 serve the timers 4 place what
 *             arrived on the RMA channel          5 toggle whether the peer is told that requests
 *             are refused
 *   u8 time   so many steps pass first: 2^(time % 40) ns
 *   u16 len   bytes that follow (little endian): the datagram; 2: its length and channel
 *
 * The fuzzed end is rank 0, the datagrams are rank 1's, the key is fixed.
 */
#ifndef FUZZ_UDP_H
#define FUZZ_UDP_H

#include <stdint.h>

enum {
    FUZZ_DELIVER,
    FUZZ_DELIVER_CHECKED,
    FUZZ_SEND,
    FUZZ_TIMER,
    FUZZ_PLACE,
    FUZZ_REFUSE,
    FUZZ_KINDS
};

#define FUZZ_RECORD 4 /* bytes before the datagram */

static const uint8_t fuzz_key[32] = { 'f', 'u', 'z', 'z' };

#endif
