/*
 * aq_udp_auth.c - the keyed hash of datagrams.
 *
 * Hash      SipHash-2-4 (libsodium's crypto_shorthash: 64 bits, made for short inputs)
 * Keys      one for each direction between two ranks, derived from the job's key by BLAKE2b. A
 *           datagram of one rank cannot be passed off as another's or sent back to its sender
 * Covers    the head of the datagram. The header's hash field counts as the upper halves of the
 *           sequence numbers (aq_udp_above()). With GASNET_UDP_AUTH=full that value is combined, by
 *           xor, with a hash under a second key of the data behind the head
 *
 * Uses      libsodium, other/spawn. SPDX-License-Identifier: BSD-3-Clause
 */
#include <sodium.h>

#include "conduits/udp/aq_udp.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "other/spawn/aq_spawn.h"

_Static_assert(AQ_UDP_KEY == 2 * crypto_shorthash_KEYBYTES, "two keys of the hash");

int aq_udp_auth_init(void)
{
    if (sodium_init() < 0)
        return aq_fail(AQ_ERR_SYS, "udp: libsodium does not start");
    return AQ_OK;
}

void aq_udp_auth_key(gex_Rank_t from, gex_Rank_t to, uint8_t key_out[AQ_UDP_KEY])
{
    uint8_t what[16] = "udp v1";

    aq_udp_put32(what + 8, from);
    aq_udp_put32(what + 12, to);
    crypto_generichash(key_out, AQ_UDP_KEY, what, sizeof(what), aq_spawn_key(), 32);
}

/* The hash of a head, with `instead` in the place of its hash field. */
static inline uint64_t aq_udp_auth_hash(const uint8_t *key, uint8_t *head, size_t hashed,
                                        uint64_t above, const void *body, size_t body_len)
{
    uint8_t out[crypto_shorthash_BYTES];
    uint64_t data = 0;

    if (AQ_UNLIKELY(aq_udp.hash_all) && body_len != 0) {
        crypto_shorthash(out, body, body_len, key + crypto_shorthash_KEYBYTES);
        data = aq_udp_get64(out);
    }
    aq_udp_put64(head + AQ_UDP_HASH_AT, above ^ data);
    crypto_shorthash(out, head, hashed, key);
    return aq_udp_get64(out);
}

void aq_udp_auth_sign(const uint8_t *key, const struct aq_udp_packet *packet)
{
    aq_udp_put64(packet->head + AQ_UDP_HASH_AT,
                 aq_udp_auth_hash(key, packet->head, packet->head_len, packet->above, packet->body,
                                  packet->body_len));
}

bool aq_udp_auth_check(const uint8_t *key, uint8_t *datagram, size_t len,
                       const struct aq_udp_header *header, uint64_t above)
{
    return aq_udp_auth_hash(key, datagram, header->hashed, above, datagram + header->hashed,
                            len - header->hashed)
           == header->hash;
}
