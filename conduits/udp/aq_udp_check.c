/*
 * aq_udp_check.c - is a peer lost? See aq_udp_check.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/udp/aq_udp_check.h"

#define AQ_CHECK_PROBE_NS UINT64_C(1000000000) /* from one probe to the next */
/* A longer distance between two notes means two outages, whatever was sent in between. */
#define AQ_CHECK_GAP_NS UINT64_C(5000000000)
#define AQ_CHECK_MIN    3u /* periods with a verified note, whatever their distance */

/* The note says something about what was sent in this period. */
static void aq_udp_check_noted(struct aq_udp_check *check, uint32_t period, enum aq_udp_note note)
{
    /* relaxed: ordered by the next, which pairs with the acquire in aq_udp_check_judge() */
    atomic_store_explicit(&check->verified, note, memory_order_relaxed);
    atomic_fetch_or_explicit(&check->noted, 1u << period % AQ_UDP_CHECK_PERIODS,
                             memory_order_release);
}

void aq_udp_check_verified(struct aq_udp_check *check, enum aq_udp_note note)
{
    /* relaxed: a hint needs no other data */
    atomic_store_explicit(&check->hint, note, memory_order_relaxed);
    if (check->begun_ns != 0 && check->period != 0)
        aq_udp_check_noted(check, check->period, note);
}

void aq_udp_check_note(struct aq_udp_check *check, enum aq_udp_note note, uint64_t quoted)
{
    /* relaxed, both: a hint and a hash need no other data */
    atomic_store_explicit(&check->hint, note, memory_order_relaxed);
    for (unsigned i = 0; i < AQ_UDP_CHECK_PERIODS * AQ_UDP_CHECK_HASHES && quoted != 0; i++) {
        const uint32_t period = i / AQ_UDP_CHECK_HASHES;
        uint64_t hash = quoted;

        if (atomic_compare_exchange_strong_explicit(&check->probe[period][i % AQ_UDP_CHECK_HASHES],
                                                    &hash, 0, memory_order_relaxed,
                                                    memory_order_relaxed))
            aq_udp_check_noted(check, period, note);
    }
}

static void aq_udp_check_keep(struct aq_udp_check *check, unsigned at, uint64_t hash)
{
    /* relaxed: the note that quotes it arrives through the network */
    atomic_store_explicit(&check->probe[check->period % AQ_UDP_CHECK_PERIODS][at], hash,
                          memory_order_relaxed);
}

void aq_udp_check_probed(struct aq_udp_check *check, uint64_t hash)
{
    if (check->begun_ns == 0 || check->period == 0)
        return;
    aq_udp_check_keep(check, check->sent == 0 ? 0 : 1, hash);
    check->sent++;
}

static void aq_udp_check_forget(struct aq_udp_check *check)
{
    check->count = check->silent = check->row = 0;
}

static void aq_udp_check_begin(struct aq_udp_check *check, uint64_t now_ns)
{
    /* relaxed, both: notes that quote probes of an earlier check do not count */
    for (unsigned i = 0; i < AQ_UDP_CHECK_PERIODS * AQ_UDP_CHECK_HASHES; i++)
        atomic_store_explicit(&check->probe[i / AQ_UDP_CHECK_HASHES][i % AQ_UDP_CHECK_HASHES], 0,
                              memory_order_relaxed);
    atomic_store_explicit(&check->noted, 0, memory_order_relaxed);
    check->begun_ns = check->verified_ns = now_ns;
    if (check->probe_ns < now_ns) /* however often checks begin */
        check->probe_ns = now_ns;
    check->period = 0;
    check->judged = 1;
    check->kind = AQ_UDP_NOTE_NONE;
    aq_udp_check_forget(check);
}

/* The next control datagram is the probe of a new period. */
static void aq_udp_check_next(struct aq_udp_check *check, uint64_t now_ns)
{
    const uint32_t at = ++check->period % AQ_UDP_CHECK_PERIODS;

    for (unsigned i = 0; i < AQ_UDP_CHECK_HASHES; i++)
        aq_udp_check_keep(check, i, 0);
    /* relaxed: see aq_udp_check_noted() */
    atomic_fetch_and_explicit(&check->noted, ~(1u << at), memory_order_relaxed);
    check->sent_ns[at] = now_ns;
    check->sent = 0;
    check->probe_ns = now_ns + AQ_CHECK_PROBE_NS;
}

static enum aq_udp_note aq_udp_check_heed(enum aq_udp_note note, bool waits)
{
    return note == AQ_UDP_NOTE_REFUSED && !waits ? AQ_UDP_NOTE_NONE : note;
}

static void aq_udp_check_count(struct aq_udp_check *check, enum aq_udp_note note, uint64_t now_ns)
{
    check->row = 0;
    if (note == AQ_UDP_NOTE_NONE) /* a refusal that is ignored */
        return;
    if (check->kind != AQ_UDP_NOTE_NONE && check->kind != note) {
        check->begun_ns = now_ns;
        aq_udp_check_forget(check);
    }
    check->kind = note;
    check->count++;
    check->verified_ns = now_ns;
}

/* Counts the periods of which it is known whether a note quotes them. */
static void aq_udp_check_judge(struct aq_udp_check *check, uint64_t now_ns, bool waits)
{
    const unsigned noted = atomic_load_explicit(&check->noted, memory_order_acquire);
    /* relaxed: read after the bit that was set behind it */
    const enum aq_udp_note note = atomic_load_explicit(&check->verified, memory_order_relaxed);
    uint32_t last = 0;

    for (uint32_t p = check->judged; p <= check->period; p++)
        if (noted >> p % AQ_UDP_CHECK_PERIODS & 1)
            last = p;
    for (; check->judged <= check->period; check->judged++) {
        const uint32_t at = check->judged % AQ_UDP_CHECK_PERIODS;

        if (noted >> at & 1) {
            aq_udp_check_count(check, aq_udp_check_heed(note, waits), now_ns);
            continue;
        }
        /* notes arrive in the order in which their datagrams were sent */
        if (check->judged > last && now_ns <= check->sent_ns[at] + AQ_UDP_NOTE_NS)
            return;
        check->silent++;
        if (++check->row < 2)
            continue;
        check->begun_ns = 0;
        return;
    }
}

bool aq_udp_check_step(struct aq_udp_check *check, uint64_t now_ns, uint64_t last_seen_ns,
                       bool waits)
{
    /* relaxed: see aq_udp_check_note() */
    const enum aq_udp_note hint =
        atomic_exchange_explicit(&check->hint, AQ_UDP_NOTE_NONE, memory_order_relaxed);

    if (last_seen_ns > check->begun_ns || now_ns > check->verified_ns + AQ_CHECK_GAP_NS)
        check->begun_ns = 0;
    if (check->begun_ns == 0 && aq_udp_check_heed(hint, waits) != AQ_UDP_NOTE_NONE)
        aq_udp_check_begin(check, now_ns);
    if (check->begun_ns == 0)
        return false;
    aq_udp_check_judge(check, now_ns, waits);
    if (check->begun_ns == 0 || now_ns < check->probe_ns)
        return false;
    aq_udp_check_next(check, now_ns);
    return true;
}

enum aq_udp_note aq_udp_check_lost(const struct aq_udp_check *check)
{
    const uint64_t limit =
        check->kind == AQ_UDP_NOTE_REFUSED ? AQ_UDP_REFUSED_NS : AQ_UDP_UNREACHABLE_NS;

    if (check->begun_ns == 0 || check->count < AQ_CHECK_MIN || check->count <= 2 * check->silent
        || check->verified_ns - check->begun_ns < limit)
        return AQ_UDP_NOTE_NONE;
    return check->kind;
}
