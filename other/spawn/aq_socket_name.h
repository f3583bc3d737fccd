/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_socket_name.h - names of the abstract Unix sockets between the ranks of a host.
 * Every user of the host can read the names of bound sockets in /proc/net/unix, and can bind a name
 * first. Each name is therefore a keyed hash of the socket's purpose: some names tell nothing about
 * the others.
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
 * aq_socket_name - makes a name; the caller puts it behind the zero byte that makes it abstract.
 * key          of the host; the name reveals nothing of it
 * use, number  purpose of the socket, at most 32 bytes of text, and its number
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
