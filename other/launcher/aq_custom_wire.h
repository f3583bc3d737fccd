/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_custom_wire.h - SPAWNFN=C: authentication of a worker that connects, and the encrypted line.
 * Owns      the secret of a job's start, in a file that only the user can read
 * Threads   one
 * Wire      over TCP; W is the worker, M the master; K the secret, || concatenates
 *           W  "AQUEDUCT-WORKER1", 32 random bytes nw
 *           M  32 random bytes nm, auth(K, "M" || nw || nm)
 *           W  struct aq_worker_info, auth(K, "W" || nw || nm || info)
 *           then both ways, each with its own key, auth(K, "m" || nw || nm) and auth(K, "w" ||
 *           nw || nm): the header of a secretstream, messages as length:32 (big endian) and
 *           ciphertext
 * Promise   a side sends only random numbers to a side that does not know K; an observer on the
 *           network neither reads nor changes what the line carries
 * Uses      libsodium: crypto_auth, crypto_secretstream
 */
#ifndef AQ_CUSTOM_WIRE_H
#define AQ_CUSTOM_WIRE_H

#ifdef HAVE_CONFIG_H
#include "aq_config.h"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AQ_CUSTOM_KEY   32
#define AQ_CUSTOM_HELLO 48 /* bytes of the first message */
#define AQ_CUSTOM_REPLY 64
#define AQ_CUSTOM_CPUS  128 /* bytes of a CPU set */
#define AQ_WORKER_RANK  64  /* bytes of the text of a rank */

/* description of a worker; all text ends in NUL */
struct aq_worker_info {
    char host[256];               /* host name */
    char machine[192];            /* equal for workers that can share memory */
    char rank[AQ_WORKER_RANK];    /* its own rank, "", or "?" and what is no rank */
    uint8_t cpus[AQ_CUSTOM_CPUS]; /* CPUs that it may run on */
};

#define AQ_CUSTOM_CLAIM (sizeof(struct aq_worker_info) + 32)

/* one side's state of a handshake */
struct aq_custom_handshake {
    uint8_t key[AQ_CUSTOM_KEY];
    uint8_t nonce_w[32], nonce_m[32];
};

/* a pipe and the encrypted connection that belongs to it */
struct aq_custom_line {
    int plain_in, plain_out, sock;
    uint8_t tx_key[32], rx_key[32];
};

/** aq_custom_random - fills p with random bytes; also initializes libsodium. False if that is
 * impossible. */
bool aq_custom_random(void *p, size_t len);

void aq_custom_wipe(void *p, size_t len);

/* The worker's side of the handshake. */
void aq_custom_hello(struct aq_custom_handshake *s, uint8_t hello_out[AQ_CUSTOM_HELLO]);
bool aq_custom_check_reply(struct aq_custom_handshake *s, const uint8_t reply[AQ_CUSTOM_REPLY]);
void aq_custom_claim(const struct aq_custom_handshake *s, const struct aq_worker_info *info,
                     uint8_t claim_out[AQ_CUSTOM_CLAIM]);

/* The master's side. */
bool aq_custom_reply(struct aq_custom_handshake *s, const uint8_t hello[AQ_CUSTOM_HELLO],
                     uint8_t reply_out[AQ_CUSTOM_REPLY]);
bool aq_custom_check_claim(const struct aq_custom_handshake *s,
                           const uint8_t claim[AQ_CUSTOM_CLAIM], struct aq_worker_info *info_out);

/** aq_custom_keys - derives the keys of the two directions. */
void aq_custom_keys(const struct aq_custom_handshake *s, uint8_t from_master_out[32],
                    uint8_t from_worker_out[32]);

/**
 * aq_custom_relay - carry bytes both ways until both ends are closed.
 * first, first_len  sent before the input of plain_in; first_len 0: none
 * on_first          called once with the first received message, which is not passed on; NULL: all
 *                   messages are passed on. If it returns false, so does the relay
 * Returns false if the other side broke the protocol or closed in the middle of a message
 */
bool aq_custom_relay(struct aq_custom_line *line, const void *first, size_t first_len,
                     bool (*on_first)(struct aq_custom_line *line, const uint8_t *data,
                                      size_t len));

#endif
