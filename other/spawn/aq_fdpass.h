/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fdpass.h - passes descriptors from one rank of a host to the others.
 * Owns      an abstract Unix socket during the transfer: no path, so nothing is left behind
 * Threads   one on each side
 * Wire      the receiver sends the 32-byte key; the sender answers with one byte and the
 *           descriptors
 * Promise   both sides check the other's user id (SO_PEERCRED); the sender serves only peers that
 *           know the key; descriptors arrive close-on-exec
 * Uses      aq_socket_name.h and the kernel only
 */
#ifndef AQ_FDPASS_H
#define AQ_FDPASS_H

#include <stdint.h>

#include "other/spawn/aq_socket_name.h"

#define AQ_FDPASS_MAX 4 /* descriptors in one transfer */

/** aq_fdpass_listen - opens a socket under a name made by aq_socket_name(). Returns it or
 * -errno. */
int aq_fdpass_listen(const char *name, uint32_t takers);

/**
 * aq_fdpass_give - serve `takers` peers, then return.
 * count       number of descriptors, 1 <= count <= AQ_FDPASS_MAX; 0: report -error to the takers
 * Returns 0 or -errno (-ETIMEDOUT after timeout_ms without a peer). The socket stays open.
 */
int aq_fdpass_give(int sock, uint32_t takers, const uint8_t key[32], const int *fds, int count,
                   int error, int timeout_ms);

/**
 * aq_fdpass_take - receive count descriptors from the rank that listens under name.
 * Returns 0, or -errno: this side's, or the one that the giver reports.
 */
int aq_fdpass_take(const char *name, const uint8_t key[32], int *fds_out, int count,
                   int timeout_ms);

#endif
