/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fdpass.h - hand descriptors from one rank of a host to the others.
 * Owns      an abstract Unix socket for the time of one hand-over: no path, nothing to leave behind
 * Threads   one a side
 * Wire      the taker sends the 32-byte key; the giver answers with one byte and the descriptors
 * Promise   both sides check the other's user id (SO_PEERCRED); the giver serves only who knows the
 *           key; descriptors arrive close-on-exec
 * Uses      aq_socket_name.h, the kernel; nothing else
 */
#ifndef AQ_FDPASS_H
#define AQ_FDPASS_H

#include <stdint.h>

#include "other/spawn/aq_socket_name.h"

#define AQ_FDPASS_MAX 4 /* descriptors in one hand-over */

/** aq_fdpass_listen - a socket under name, which aq_socket_name() has made. Returns it or -errno.
 * */
int aq_fdpass_listen(const char *name, uint32_t takers);

/**
 * aq_fdpass_give - serve `takers` peers, then return.
 * count       descriptors, 1 <= count <= AQ_FDPASS_MAX, or 0 to tell the takers -error instead
 * Returns 0 or -errno (-ETIMEDOUT after timeout_ms without a peer). The socket stays open.
 */
int aq_fdpass_give(int sock, uint32_t takers, const uint8_t key[32], const int *fds, int count,
                   int error, int timeout_ms);

/**
 * aq_fdpass_take - get count descriptors from the rank that listens under name.
 * Returns 0, or -errno: ours or, if the giver had a failure, its.
 */
int aq_fdpass_take(const char *name, const uint8_t key[32], int *fds_out, int count,
                   int timeout_ms);

#endif
