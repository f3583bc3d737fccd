/*
 * aq_udp_check.c - is a peer lost? See aq_udp_check.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/udp/aq_udp_check.h"

#define AQ_CHECK_PROBE_NS UINT64_C(1000000000) /* from one probe to the next */
/* A longer distance between two notes means two outages. A host that its neighbors cannot find is
 * reported every 3 s, and hosts limit how often they refuse. */
#define AQ_CHECK_GAP_NS UINT64_C(5000000000)
#define AQ_CHECK_MIN    3u /* verified notes, whatever their distance */

void aq_udp_check_verified(struct aq_udp_check *check, enum aq_udp_note note)
{
    /* relaxed: read by the next step, which needs only the note itself */
    atomic_store_explicit(&check->verified, note, memory_order_relaxed);
}

void aq_udp_check_note(struct aq_udp_check *check, enum aq_udp_note note, uint64_t quoted)
{
    /* relaxed, both: see aq_udp_check_verified(); a hash needs no other data */
    atomic_store_explicit(&check->hint, note, memory_order_relaxed);
    for (unsigned i = 0; i < AQ_UDP_CHECK_PROBES && quoted != 0; i++) {
        uint64_t hash = quoted;

        if (atomic_compare_exchange_strong_explicit(&check->probe[i], &hash, 0,
                                                    memory_order_relaxed, memory_order_relaxed))
            aq_udp_check_verified(check, note);
    }
}

void aq_udp_check_probed(struct aq_udp_check *check, uint64_t hash)
{
    const uint32_t at = check->probed % AQ_UDP_CHECK_PROBES;

    if (check->begun_ns == 0)
        return;
    check->probed++;
    /* relaxed: the note that quotes it arrives through the network */
    atomic_store_explicit(&check->probe[at], hash, memory_order_relaxed);
}

static void aq_udp_check_begin(struct aq_udp_check *check, uint64_t now_ns)
{
    /* relaxed: notes that quote probes of an earlier check do not count */
    for (unsigned i = 0; i < AQ_UDP_CHECK_PROBES; i++)
        atomic_store_explicit(&check->probe[i], 0, memory_order_relaxed);
    check->begun_ns = check->verified_ns = now_ns;
    if (check->probe_ns < now_ns) /* however often checks begin */
        check->probe_ns = now_ns;
    check->count = 0;
    check->kind = AQ_UDP_NOTE_NONE;
}

static void aq_udp_check_count(struct aq_udp_check *check, enum aq_udp_note note, uint64_t now_ns)
{
    if (check->kind != AQ_UDP_NOTE_NONE && check->kind != note) {
        check->begun_ns = now_ns;
        check->count = 0;
    }
    check->kind = note;
    check->count++;
    check->verified_ns = now_ns;
}

/* Takes and clears what was noted since the last step. */
static enum aq_udp_note aq_udp_check_take(atomic_int *said, bool waits)
{
    /* relaxed: see aq_udp_check_verified() */
    enum aq_udp_note note = atomic_exchange_explicit(said, AQ_UDP_NOTE_NONE, memory_order_relaxed);

    return note == AQ_UDP_NOTE_REFUSED && !waits ? AQ_UDP_NOTE_NONE : note;
}

bool aq_udp_check_step(struct aq_udp_check *check, uint64_t now_ns, uint64_t last_seen_ns,
                       bool waits)
{
    const enum aq_udp_note hint = aq_udp_check_take(&check->hint, waits);
    const enum aq_udp_note verified = aq_udp_check_take(&check->verified, waits);

    if (last_seen_ns > check->begun_ns || now_ns - check->verified_ns > AQ_CHECK_GAP_NS)
        check->begun_ns = 0;
    if (check->begun_ns == 0 && (hint != AQ_UDP_NOTE_NONE || verified != AQ_UDP_NOTE_NONE))
        aq_udp_check_begin(check, now_ns);
    if (check->begun_ns == 0)
        return false;
    if (verified != AQ_UDP_NOTE_NONE)
        aq_udp_check_count(check, verified, now_ns);
    if (now_ns < check->probe_ns)
        return false;
    check->probe_ns = now_ns + AQ_CHECK_PROBE_NS;
    return true;
}

enum aq_udp_note aq_udp_check_lost(const struct aq_udp_check *check)
{
    const uint64_t limit =
        check->kind == AQ_UDP_NOTE_REFUSED ? AQ_UDP_REFUSED_NS : AQ_UDP_UNREACHABLE_NS;

    if (check->begun_ns == 0 || check->count < AQ_CHECK_MIN
        || check->verified_ns - check->begun_ns < limit)
        return AQ_UDP_NOTE_NONE;
    return check->kind;
}
