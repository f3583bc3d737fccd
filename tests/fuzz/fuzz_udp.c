/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_udp.c - libFuzzer's target for the udp conduit's handling of datagrams: header, frames,
 * hash, engine.
 *
 * A datagram is passed to the parser directly, behind the hash, as if an attacker knew the key; or
 * through the hash, where it must be refused unless it is unchanged since it was signed. The engine
 * gets every well-formed datagram. Besides what the sanitizers detect, the target checks that the
 * bytes in flight add up, that no number is new twice, and that what is acknowledged was sent.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conduits/udp/aq_udp.h"
#include "tests/fuzz/fuzz_udp.h"

/* what the hash wants of the library */
struct aq_udp aq_udp;
const uint8_t *aq_spawn_key(void);
const uint8_t *aq_spawn_key(void)
{
    return fuzz_key;
}
int aq_fail(int rc, const char *format, ...);
int aq_fail(int rc, const char *format, ...)
{
    (void)format;
    return rc;
}

#define PLACED_LATER 64

static struct {
    struct aq_udp_link link;
    uint64_t now, sent, acked, sum;
    uint8_t key_in[AQ_UDP_KEY], key_out[AQ_UDP_KEY];
    uint64_t later[PLACED_LATER]; /* numbers of RMA datagrams that are being placed */
    unsigned later_count;
    bool refuses;
    uint8_t *taken[AQ_UDP_CHANNELS]; /* bit by number, of the first 65536 */
} fuzz;

static void fuzz_acked(struct aq_udp_link *link, enum aq_udp_channel channel, struct aq_udp_tx *tx)
{
    (void)link, (void)channel;
    assert(tx->head != NULL); /* once */
    free(tx->head);
    tx->head = NULL;
    fuzz.acked++;
    assert(fuzz.acked <= fuzz.sent);
}

static unsigned fuzz_output(struct aq_udp_link *link, const struct aq_udp_packet *packets,
                            unsigned count)
{
    (void)link;
    for (unsigned i = 0; i < count; i++) {
        struct aq_udp_header header;

        assert(packets[i].head_len + packets[i].body_len <= AQ_UDP_MAX_DATAGRAM);
        if (!aq_udp_header_decode(packets[i].head, packets[i].head_len, &header))
            abort();
        if (!aq_udp_frames_check(packets[i].head, packets[i].head_len, &header))
            abort();
        aq_udp_auth_sign(fuzz.key_out, &packets[i]);
    }
    return count;
}

static void fuzz_open(void)
{
    static const struct aq_udp_link_config config = { .window = { 8, 64, 256 },
                                                      .probe_first_ns = 20000000,
                                                      .probe_min_ns = 4000000,
                                                      .probe_max_ns = 1000000000,
                                                      .probe_backoff = 2,
                                                      .ack_delay_ns = 1000000,
                                                      .first_seq = UINT32_MAX - 20 };
    static const struct aq_udp_link_ops ops = { .output = fuzz_output, .acked = fuzz_acked };

    memset(&fuzz, 0, sizeof(fuzz));
    aq_udp_auth_key(1, 0, fuzz.key_in);
    aq_udp_auth_key(0, 1, fuzz.key_out);
    fuzz.now = 1000000000;
    aq_udp_link_init(&fuzz.link, &config, &ops, NULL, 0, 1, 1472, 1 << 20);
}

/* Sums and bounds. */
static void fuzz_check(void)
{
    const struct aq_udp_link *link = &fuzz.link;
    uint64_t all = 0;

    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++) {
        const struct aq_udp_channel_tx *tx = &link->tx[channel];
        uint64_t flight = 0, lost = 0;

        assert(tx->una <= tx->next && tx->next <= tx->end
               && tx->end - tx->una <= link->config->window[channel]);
        for (uint64_t seq = tx->una; seq != tx->end; seq++) {
            const struct aq_udp_tx *record = &tx->ring[seq & tx->mask];

            if (record->state == AQ_UDP_TX_FLIGHT)
                flight += record->head_len + record->body_len;
            lost += record->state == AQ_UDP_TX_LOST;
        }
        assert(flight == link->channel_flight[channel]);
        assert(lost == tx->lost);
        all += flight;
        assert(link->rx[channel].next <= link->rx[channel].top);
        assert(link->rx[channel].top - link->rx[channel].next <= AQ_UDP_WINDOW);
    }
    assert(all == link->in_flight);
    assert(link->cwnd >= 2 * 1472);
    assert(link->placing == fuzz.later_count);
}

static void fuzz_new(uint8_t channel, uint64_t seq)
{
    const uint64_t number = seq - fuzz.link.config->first_seq;

    assert(seq >= fuzz.link.config->first_seq);
    if (number < 65536) {
        if (fuzz.taken[channel] == NULL)
            fuzz.taken[channel] = calloc(1, 65536 / 8);
        assert((fuzz.taken[channel][number / 8] >> number % 8 & 1) == 0);
        fuzz.taken[channel][number / 8] |= (uint8_t)(1u << number % 8);
    }
    if (channel != AQ_UDP_RMA)
        return;
    if (fuzz.later_count < PLACED_LATER)
        fuzz.later[fuzz.later_count++] = seq;
    else
        aq_udp_link_placed(&fuzz.link, seq);
}

/* Everything that a well-formed datagram says is looked at, as handlers and memory would. */
static uint64_t fuzz_read(const uint8_t *datagram, size_t len, const struct aq_udp_header *header)
{
    struct aq_udp_frame frame;
    size_t at = AQ_UDP_HEADER;
    uint64_t sum = 0;

    while (aq_udp_frame_decode(datagram, len, header, &at, &frame) > 0) {
        for (unsigned i = 0; frame.type <= AQ_UDP_F_LONG_FRAG && i < frame.nargs; i++)
            sum += (uint32_t)frame.args[i];
        for (unsigned i = 0; frame.type == AQ_UDP_F_SACK && i < frame.words; i++)
            sum += frame.bits[i];
        for (uint32_t i = 0; i < frame.nbytes; i++)
            sum += frame.data[i];
        if (frame.type == AQ_UDP_F_MEDIUM_FRAG || frame.type == AQ_UDP_F_LONG_FRAG)
            assert(frame.frag_offset <= frame.total
                   && frame.nbytes <= frame.total - frame.frag_offset);
    }
    return sum;
}

/* As aq_udp_recv.c does it. bytes are a copy of exactly their size, so that every access outside is
 * detected. */
static void fuzz_deliver(const uint8_t *bytes, size_t len, bool checked)
{
    uint8_t *datagram = len == 0 ? NULL : malloc(len);
    struct aq_udp_header header;
    uint64_t seq;

    if (len == 0)
        return;
    memcpy(datagram, bytes, len);
    if (aq_udp_header_decode(datagram, len, &header) && header.src == 1 && header.dst == 0) {
        seq = aq_udp_link_expand(&fuzz.link, header.channel, header.seq);
        if ((!checked
             || aq_udp_auth_check(fuzz.key_in, datagram, len, &header,
                                  aq_udp_link_above(&fuzz.link, &header, seq)))
            && aq_udp_frames_check(datagram, len, &header)
            && (fuzz.sum += fuzz_read(datagram, len, &header), true)
            && aq_udp_link_receive(&fuzz.link, fuzz.now, &header, seq, datagram, len,
                                   !(fuzz.refuses && header.channel == AQ_UDP_REQUEST))
                   == AQ_UDP_NEW)
            fuzz_new(header.channel, seq);
    }
    free(datagram);
    aq_udp_link_pump(&fuzz.link, fuzz.now);
}

static void fuzz_send(unsigned size, enum aq_udp_channel channel)
{
    struct aq_udp_tx *tx = aq_udp_link_add(&fuzz.link, channel);
    uint8_t *end;

    if (tx == NULL || fuzz.link.disconnected) {
        if (tx != NULL) { /* nothing is queued on a link that is gone; here it must only not hurt */
            tx->head = NULL;
            tx->state = AQ_UDP_TX_ACKED;
        }
        return;
    }
    size %= 1000;
    tx->head = calloc(1, AQ_UDP_HEADER + 64 + size);
    end = channel == AQ_UDP_RMA ? aq_udp_put_encode(tx->head + AQ_UDP_HEADER, size + 1, 4096, 0)
                                : aq_udp_am_encode(tx->head + AQ_UDP_HEADER, AQ_UDP_F_LONG, 1, 0,
                                                   NULL, size + 1, 4096);
    tx->head_len = (uint32_t)(end + size + 1 - tx->head);
    fuzz.sent++;
    aq_udp_link_pump(&fuzz.link, fuzz.now);
}

static void fuzz_place(void)
{
    while (fuzz.later_count != 0)
        aq_udp_link_placed(&fuzz.link, fuzz.later[--fuzz.later_count]);
    aq_udp_link_pump(&fuzz.link, fuzz.now);
}

static void fuzz_timers(void)
{
    for (int i = 0; i < 100 && aq_udp_link_deadline(&fuzz.link) <= fuzz.now; i++) {
        aq_udp_link_timer(&fuzz.link, fuzz.now);
        if (i == 99)
            abort(); /* a deadline that never moves */
    }
}

static void fuzz_record(uint8_t what, const uint8_t *bytes, size_t len)
{
    switch (what) {
    case FUZZ_DELIVER:
    case FUZZ_DELIVER_CHECKED:
        fuzz_deliver(bytes, len, what == FUZZ_DELIVER_CHECKED);
        break;
    case FUZZ_SEND:
        fuzz_send(len > 0 ? bytes[0] * 4u : 0,
                  (enum aq_udp_channel)(len > 1 ? bytes[1] % AQ_UDP_CHANNELS : 0));
        break;
    case FUZZ_PLACE:
        fuzz_place();
        break;
    case FUZZ_REFUSE:
        fuzz.refuses = !fuzz.refuses;
        break;
    default:
        fuzz_timers();
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return aq_udp_auth_init();
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* Half of the inputs are changed where it matters: a byte near a datagram's begin gets a value at
 * some limit. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static const uint8_t limits[] = { 0, 1, 3, 4, 5, 8, 16, 17, 18, 32, 48, 127, 128, 254, 255 };
    unsigned records = 0, pick;

    if (seed % 2 == 0 || size < FUZZ_RECORD)
        return LLVMFuzzerMutate(data, size, max_size);
    for (size_t at = 0; size - at >= FUZZ_RECORD; records++) {
        at += FUZZ_RECORD + aq_udp_get16(data + at + 2);
        at = at > size ? size : at;
    }
    pick = seed / 2 % records;
    for (size_t at = 0; size - at >= FUZZ_RECORD; pick--) {
        const size_t len = aq_udp_get16(data + at + 2);

        if (pick == 0) {
            const size_t where = at + FUZZ_RECORD + seed / 64 % 160 * (len < 160 ? len : 160) / 160;

            if (where < size)
                data[where] = seed / 16384 % 4 == 0 ? (uint8_t)(data[where] + 1)
                                                    : limits[seed / 65536 % sizeof(limits)];
            break;
        }
        at += FUZZ_RECORD + len;
        at = at > size ? size : at;
    }
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t at = 0;

    fuzz_open();
    while (size - at >= FUZZ_RECORD) {
        const uint8_t what = data[at] % FUZZ_KINDS, time = data[at + 1];
        size_t len = aq_udp_get16(data + at + 2);

        at += FUZZ_RECORD;
        if (len > size - at)
            len = size - at;
        fuzz.now += UINT64_C(1) << time % 40;
        fuzz_record(what, data + at, len);
        fuzz_check();
        at += len;
    }
    fuzz_place();
    if (!fuzz.link.disconnected)
        aq_udp_link_abandon(&fuzz.link);
    assert(fuzz.acked == fuzz.sent);
    aq_udp_link_fini(&fuzz.link);
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
        free(fuzz.taken[channel]);
    return 0;
}
