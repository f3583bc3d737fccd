/*
 * aq_udp_inject.c - fault injection for tests: AQ_UDP_FAULTS=drop=5%,dup=2%,reorder=5%,corrupt=1%,
 * delay=200us,seed=7; or GASNET_FAULT_RATE=0.05, which drops.
 *
 * The faults are applied between the sender's engine and its socket, after hashing, so that the
 * receiver sees them as faults of a network.
 *
 * corrupt   inverts one bit of the head; with GASNET_UDP_AUTH=full, of any byte. Otherwise only
 *           UDP's checksum protects the data behind a head, and it is computed after the inversion
 * reorder   holds a datagram until later ones have left
 * delay     holds every datagram for a random time up to the given one
 *
 * Owns      delayed datagrams, in no order: there are few
 * Threads   any; one lock. A datagram leaves with its peer's lock, at once or late
 * Uses      aq_udp_sock.c. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conduits/udp/aq_udp.h"
#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_state.h"

#define AQ_UDP_INJECT_DELAY_S  60      /* longest delay of a datagram */
#define AQ_REORDER_NS          300000u /* how long a reordered datagram is held */
#define AQ_UDP_INJECT_RETRY_NS 50000u  /* until another thread has released the peer's lock */

struct aq_udp_late {
    struct aq_udp_late *next;
    struct aq_udp_peer *peer;
    uint64_t due_ns;
    uint32_t len;
    uint8_t *bytes;
};

static struct {
    aq_lock lock;
    double drop, dup, reorder, corrupt; /* 0..1 */
    uint64_t delay_ns, random;
    struct aq_udp_late *late;
} aq_udp_inject AQ_JOB_STATE;

/* xorshift64*: the same seed gives the same faults, if the program sends the same datagrams */
static double aq_udp_inject_random(void)
{
    uint64_t x;

    aq_lock_acquire(&aq_udp_inject.lock);
    x = aq_udp_inject.random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    aq_udp_inject.random = x;
    aq_lock_release(&aq_udp_inject.lock);
    return (double)(x * UINT64_C(2685821657736338717) >> 11) / 9007199254740992.0;
}

static double aq_udp_inject_rate(const char *item, const char *value)
{
    char *end;
    double rate = strtod(value, &end);

    if (*end == '%') {
        rate /= 100;
        end++;
    }
    if (end == value || *end != '\0' || !(rate >= 0 && rate <= 1)) /* excludes NaN too */
        aq_fatal("AQ_UDP_FAULTS: '%s=%s' is not a probability from 0 to 1; write 5%% or 0.05", item,
                 value);
    return rate;
}

static uint64_t aq_udp_inject_delay_ns(const char *value)
{
    double us;

    if (!aq_env_parse_time(value, "us", &us) || us > AQ_UDP_INJECT_DELAY_S * 1e6)
        aq_fatal(
            "AQ_UDP_FAULTS: 'delay=%s' is not a time from 0 to %ds; write for example delay=200us",
            value, AQ_UDP_INJECT_DELAY_S);
    return (uint64_t)(us * 1000);
}

static uint64_t aq_udp_inject_seed(const char *value)
{
    int64_t seed;

    if (!aq_env_parse_int(value, &seed))
        aq_fatal("AQ_UDP_FAULTS: 'seed=%s' is not a whole number; write for example seed=1", value);
    return (uint64_t)seed;
}

static void aq_udp_inject_setting(char *item)
{
    char *value = strchr(item, '=');

    if (value == NULL)
        aq_fatal("AQ_UDP_FAULTS: '%s' has no value; write for example drop=5%%,dup=2%%", item);
    *value++ = '\0';
    if (strcmp(item, "drop") == 0)
        aq_udp_inject.drop = aq_udp_inject_rate(item, value);
    else if (strcmp(item, "dup") == 0)
        aq_udp_inject.dup = aq_udp_inject_rate(item, value);
    else if (strcmp(item, "reorder") == 0)
        aq_udp_inject.reorder = aq_udp_inject_rate(item, value);
    else if (strcmp(item, "corrupt") == 0)
        aq_udp_inject.corrupt = aq_udp_inject_rate(item, value);
    else if (strcmp(item, "delay") == 0)
        aq_udp_inject.delay_ns = aq_udp_inject_delay_ns(value);
    else if (strcmp(item, "seed") == 0)
        aq_udp_inject.random ^= aq_udp_inject_seed(value) * UINT64_C(0x9e3779b97f4a7c15);
    else
        aq_fatal("AQ_UDP_FAULTS: '%s' is not a fault; there are drop, dup, reorder, corrupt, delay "
                 "and seed",
                 item);
}

void aq_udp_inject_init(void)
{
    const char *text = aq_env_str(AQ_ENV_AQ_UDP_FAULTS);
    char *copy, *rest;

    aq_udp_inject.random =
        UINT64_C(0x2545f4914f6cdd1d) + aq_job.rank * UINT64_C(0xd1342543de82ef95);
    aq_udp_inject.drop = aq_env_real(AQ_ENV_FAULT_RATE);
    if (text != NULL && *text != '\0') {
        copy = strdup(text);
        if (copy == NULL)
            aq_fatal("no memory for AQ_UDP_FAULTS");
        for (char *item = strtok_r(copy, ", ", &rest); item != NULL;
             item = strtok_r(NULL, ", ", &rest))
            aq_udp_inject_setting(item);
        free(copy);
    }
    aq_udp.inject = aq_udp_inject.drop > 0 || aq_udp_inject.dup > 0 || aq_udp_inject.reorder > 0
                    || aq_udp_inject.corrupt > 0 || aq_udp_inject.delay_ns != 0;
}

/* The peer's lock is held. */
static void aq_udp_inject_send_bytes(struct aq_udp_peer *peer, uint8_t *bytes, uint32_t len)
{
    const struct aq_udp_packet packet = { .head = bytes, .head_len = len };

    (void)aq_udp_sock_send(peer, &packet, 1); /* a full socket counts as one more fault */
}

static void aq_udp_inject_defer(struct aq_udp_peer *peer, const uint8_t *bytes, uint32_t len,
                                uint64_t due_ns)
{
    struct aq_udp_late *late = malloc(sizeof(*late));

    if (late == NULL)
        return; /* dropped */
    *late = (struct aq_udp_late){
        .peer = peer, .due_ns = due_ns, .len = len, .bytes = aq_udp_buf_take(len)
    };
    memcpy(late->bytes, bytes, len);
    aq_lock_acquire(&aq_udp_inject.lock);
    late->next = aq_udp_inject.late;
    aq_udp_inject.late = late;
    aq_lock_release(&aq_udp_inject.lock);
    aq_udp_note_deadline(due_ns);
}

static void aq_udp_inject_send_copy(struct aq_udp_peer *peer, uint8_t *bytes, uint32_t len,
                                    uint32_t head_len)
{
    const uint32_t bits = 8 * (aq_udp.hash_all ? len : head_len);
    uint64_t wait = 0;

    if (aq_udp_inject.delay_ns != 0)
        wait = (uint64_t)((double)aq_udp_inject.delay_ns * aq_udp_inject_random());
    if (aq_udp_inject.reorder > 0 && aq_udp_inject_random() < aq_udp_inject.reorder)
        wait += AQ_REORDER_NS;
    if (aq_udp_inject.corrupt > 0 && aq_udp_inject_random() < aq_udp_inject.corrupt) {
        const uint32_t bit = (uint32_t)((double)bits * aq_udp_inject_random());

        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    if (wait != 0)
        aq_udp_inject_defer(peer, bytes, len, aq_now_ns() + wait);
    else
        aq_udp_inject_send_bytes(peer, bytes, len);
}

unsigned aq_udp_inject_send(struct aq_udp_peer *peer, const struct aq_udp_packet *packets,
                            unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct aq_udp_packet *packet = &packets[i];
        const uint32_t len = packet->head_len + packet->body_len;
        int copies = 1 + (aq_udp_inject.dup > 0 && aq_udp_inject_random() < aq_udp_inject.dup);

        if (aq_udp_inject.drop > 0 && aq_udp_inject_random() < aq_udp_inject.drop)
            continue;
        while (copies-- > 0) {
            uint8_t *bytes = aq_udp_buf_take(len);

            memcpy(bytes, packet->head, packet->head_len);
            if (packet->body_len != 0)
                memcpy(bytes + packet->head_len, packet->body, packet->body_len);
            aq_udp_inject_send_copy(peer, bytes, len, packet->head_len);
            aq_udp_buf_give(bytes);
        }
    }
    return count;
}

/* Returns true if the datagram can leave now: its time has come, and the peer's lock, which whoever
 * sends holds, is taken. It is only tried: a thread that sends has the peer's lock first, and then
 * the one here. */
static bool aq_udp_inject_may_send(const struct aq_udp_late *late, uint64_t now_ns)
{
    if (late->due_ns > now_ns) {
        aq_udp_note_deadline(late->due_ns);
        return false;
    }
    if (aq_lock_try(&late->peer->lock))
        return true;
    aq_udp_note_deadline(now_ns + AQ_UDP_INJECT_RETRY_NS);
    return false;
}

/* Takes a datagram whose time has come, with its peer's lock; or returns NULL. */
static struct aq_udp_late *aq_udp_inject_take(uint64_t now_ns)
{
    struct aq_udp_late **at = &aq_udp_inject.late, *late;

    aq_lock_acquire(&aq_udp_inject.lock);
    while (*at != NULL && !aq_udp_inject_may_send(*at, now_ns))
        at = &(*at)->next;
    late = *at;
    if (late != NULL)
        *at = late->next;
    aq_lock_release(&aq_udp_inject.lock);
    return late;
}

static void aq_udp_inject_free(struct aq_udp_late *late)
{
    aq_udp_buf_give(late->bytes);
    free(late);
}

void aq_udp_inject_timer(uint64_t now_ns)
{
    struct aq_udp_late *late;

    while ((late = aq_udp_inject_take(now_ns)) != NULL) {
        aq_udp_inject_send_bytes(late->peer, late->bytes, late->len);
        aq_lock_release(&late->peer->lock);
        aq_udp_inject_free(late);
    }
}

void aq_udp_inject_fini(void)
{
    while (aq_udp_inject.late != NULL) {
        struct aq_udp_late *late = aq_udp_inject.late;

        aq_udp_inject.late = late->next;
        aq_udp_inject_free(late);
    }
}
