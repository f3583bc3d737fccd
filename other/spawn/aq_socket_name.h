/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_socket_name.h - what the host's ranks call the abstract Unix sockets they reach each other by.
 * Every user of the host reads the names of bound sockets in /proc/net/unix, and may bind a name
 * first. So each name is a keyed hash of what the socket is for: who has read some of them knows
 * nothing of the others.
 * Threads   pure function
 * Uses      aq_siphash.h
 */
#ifndef AQ_SOCKET_NAME_H
#define AQ_SOCKET_NAME_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "other/spawn/aq_siphash.h"

#define AQ_SOCKET_NAME 48 /* bytes of a name, NUL included */

/**
 * aq_socket_name - the name, behind the zero byte that makes it abstract.
 * key          the host's; no part of it is to be seen in what comes out
 * use, number  what the socket is for, at most 32 bytes of text, and which of them
 */
static inline void aq_socket_name(char name_out[AQ_SOCKET_NAME], const uint8_t key[32],
                                  const char *use, uint32_t number)
{
    uint64_t half[2];
    char what[64];

    for (int i = 0; i < 2; i++) {
        const int len = snprintf(what, sizeof(what), "socket %d: %.32s %" PRIu32, i, use, number);

        half[i] = aq_siphash(key, what, (size_t)len) ^ aq_siphash(key + 16, what, (size_t)len);
    }
    snprintf(name_out, AQ_SOCKET_NAME, "aq-%016" PRIx64 "%016" PRIx64, half[0], half[1]);
}

#endif
