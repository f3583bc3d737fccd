/*
 * aq_udp_wire.h - what a datagram of the udp conduit looks like; encoding and decoding.
 *
 * A datagram is a header of AQ_UDP_HEADER bytes and frames, all little endian, frames at multiples
 * of 8 bytes. The keyed hash covers the head of the datagram, its first `hashed` bytes. Only data
 * of the last frame (of a put or a long message) can lie behind the head; GASNET_UDP_AUTH=full
 * hashes it too. No byte that controls anything is used without being authenticated.
 *
 *   0  u8  magic     AQ_UDP_MAGIC, version 1
 *   1  u8  channel:2 flags:6
 *   2  u16 ts_delay  ticks since the datagram whose timestamp is echoed arrived; 65535: more
 *   4  u32 src       jobranks
 *   8  u32 dst
 *  12  u32 seq       number of the datagram in its channel, low 32 bits; the hash covers all 64
 *  16  u32 ack[3]    of each data channel: all numbers below this have arrived; likewise
 *  28  u16 rwnd      KiB that may be on their way to the sender of this datagram
 *  30  u16 hashed    bytes of the head, header included
 *  32  u32 ts        ticks (1024 ns) of the sender's clock
 *  36  u32 ts_echo   the newest ts that the sender has seen, valid with AQ_UDP_TS_ECHO
 *  40  u64 hash
 *
 * Channels  REQUEST, REPLY: active messages. RMA: puts, gets and their data. CONTROL: datagrams
 *           that are not acknowledged themselves: selective acknowledgements, probes, disconnect
 * Promise   decoding reads no byte outside the datagram and accepts only the forms below. The
 *           caller checks that addresses lie in this process's segments
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_UDP_WIRE_H
#define AQ_UDP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define AQ_UDP_MAGIC   0xa1
#define AQ_UDP_HEADER  48 /* bytes */
#define AQ_UDP_HASH_AT 40 /* in the header */
#define AQ_UDP_MAX_DATAGRAM \
    65504 /* largest datagram: a multiple of 16 that UDP over IPv4 always carries */
#define AQ_UDP_MAX_ARGS 16
/* datagrams of a channel that may be unacknowledged: bits of the bitmaps */
#define AQ_UDP_WINDOW       256
#define AQ_UDP_SACK_WORDS   (AQ_UDP_WINDOW / 64)
#define AQ_UDP_TS_DELAY_MAX 65535u

enum aq_udp_channel {
    AQ_UDP_REQUEST,
    AQ_UDP_REPLY,
    AQ_UDP_RMA,
    AQ_UDP_CHANNELS,
    AQ_UDP_CONTROL = 3
};

/* flags */
#define AQ_UDP_ACK_NOW 1u /* the sender asks for an acknowledgement without delay */
#define AQ_UDP_HOLES \
    2u /* ack[] is incomplete, or data is still being placed: infer no losses from it */
#define AQ_UDP_TS_ECHO    4u /* ts_echo and ts_delay are valid */
#define AQ_UDP_DISCONNECT 8u /* the sender shuts down in order and will not answer any more */
/* the sender refuses requests at present: unacknowledged ones are not lost */
#define AQ_UDP_FULL  16u
#define AQ_UDP_FLAGS 31u /* all defined flags */

struct aq_udp_header {
    uint8_t channel, flags;
    uint16_t ts_delay, rwnd, hashed;
    uint32_t src, dst, seq, ack[AQ_UDP_CHANNELS], ts, ts_echo;
    uint64_t hash;
};

/*
 * Frames. nbytes is the data's length; arguments are padded to a multiple of 8 bytes, data to the
 * next frame likewise.
 *
 *   SHORT, MEDIUM, LONG      0 type 1 handler 2 nargs 3 zero 4 u32 nbytes
 *                            [8 u64 dest: LONG] args data
 *   MEDIUM_FRAG, LONG_FRAG   0 type 1 handler 2 nargs 3 zero 4 u32 nbytes (of this fragment)
 *   MEDIUM_FRAG, LONG_FRAG   0 type 1 handler 2 nargs 3 zero 4 u32 nbytes (of this part)
 *                            8 u32 message 12 u32 total 16 u32 offset 20 zero
 *                            [24 u64 dest of the whole: LONG_FRAG] args data
 *   PUT                      0 type 1 zero[3] 4 u32 nbytes 8 u64 dest 16 u64 cookie data
 *   GET                      0 type 1 zero[3] 4 u32 id 8 u64 src 16 u64 nbytes
 *   DATA                     0 type 1 zero[3] 4 u32 nbytes 8 u32 id 12 zero 16 u64 offset data
 *   PAD                      0 type 1 zero[7], then padding: tests whether the path carries a
 *                            datagram of this size
 *   SACK                     0 type 1 channel 2 words 3 zero 4 u32 base, words of 64 bits: bit i of
 *                            them says that number base + i has arrived
 */
enum aq_udp_frame_type {
    AQ_UDP_F_SHORT = 1,
    AQ_UDP_F_MEDIUM,
    AQ_UDP_F_LONG,
    AQ_UDP_F_MEDIUM_FRAG,
    AQ_UDP_F_LONG_FRAG,
    AQ_UDP_F_PUT,
    AQ_UDP_F_GET,
    AQ_UDP_F_DATA,
    AQ_UDP_F_SACK,
    AQ_UDP_F_PAD
};

struct aq_udp_frame {
    uint8_t type, handler, nargs;
    uint32_t nbytes;                      /* of data */
    uint32_t message, total, frag_offset; /* MEDIUM_FRAG, LONG_FRAG */
    uint64_t addr;                        /* LONG, LONG_FRAG, PUT: destination; GET: source */
    uint64_t cookie;                      /* PUT: the sender's own */
    uint32_t id;                          /* GET, DATA */
    uint64_t length;                      /* GET: bytes wanted; DATA: offset */
    uint8_t channel, words;               /* SACK */
    uint32_t base;                        /* SACK */
    uint64_t bits[AQ_UDP_SACK_WORDS];     /* SACK */
    const uint8_t *data;                  /* in the datagram, at a multiple of 8 from its begin */
    int32_t args[AQ_UDP_MAX_ARGS];
};

/* --- little-endian numbers in memory --- */

static inline uint16_t aq_udp_get16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t aq_udp_get32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    return value;
}

static inline uint64_t aq_udp_get64(const uint8_t *at)
{
    return aq_udp_get32(at) | (uint64_t)aq_udp_get32(at + 4) << 32;
}

static inline void aq_udp_put16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static inline void aq_udp_put32(uint8_t *at, uint32_t value)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    memcpy(at, &value, sizeof(value));
}

static inline void aq_udp_put64(uint8_t *at, uint64_t value)
{
    aq_udp_put32(at, (uint32_t)value);
    aq_udp_put32(at + 4, (uint32_t)(value >> 32));
}

static inline size_t aq_udp_pad8(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

/* --- header --- */

static inline void aq_udp_header_encode(uint8_t *at, const struct aq_udp_header *header)
{
    at[0] = AQ_UDP_MAGIC;
    at[1] = (uint8_t)(header->channel | header->flags << 2);
    aq_udp_put16(at + 2, header->ts_delay);
    aq_udp_put32(at + 4, header->src);
    aq_udp_put32(at + 8, header->dst);
    aq_udp_put32(at + 12, header->seq);
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
        aq_udp_put32(at + 16 + 4 * channel, header->ack[channel]);
    aq_udp_put16(at + 28, header->rwnd);
    aq_udp_put16(at + 30, header->hashed);
    aq_udp_put32(at + 32, header->ts);
    aq_udp_put32(at + 36, header->ts_echo);
    aq_udp_put64(at + 40, header->hash);
}

/* Returns false if the bytes are no datagram of this protocol. */
static inline bool aq_udp_header_decode(const uint8_t *at, size_t len,
                                        struct aq_udp_header *header_out)
{
    if (len < AQ_UDP_HEADER || len > AQ_UDP_MAX_DATAGRAM || at[0] != AQ_UDP_MAGIC)
        return false;
    header_out->channel = at[1] & 3;
    header_out->flags = at[1] >> 2;
    header_out->ts_delay = aq_udp_get16(at + 2);
    header_out->src = aq_udp_get32(at + 4);
    header_out->dst = aq_udp_get32(at + 8);
    header_out->seq = aq_udp_get32(at + 12);
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
        header_out->ack[channel] = aq_udp_get32(at + 16 + 4 * channel);
    header_out->rwnd = aq_udp_get16(at + 28);
    header_out->hashed = aq_udp_get16(at + 30);
    header_out->ts = aq_udp_get32(at + 32);
    header_out->ts_echo = aq_udp_get32(at + 36);
    header_out->hash = aq_udp_get64(at + 40);
    return (header_out->flags & ~AQ_UDP_FLAGS) == 0 && header_out->hashed >= AQ_UDP_HEADER
           && header_out->hashed <= len;
}

/* Returns the 64-bit number whose lower half is seq and that is nearest to expected. */
static inline uint64_t aq_udp_seq_expand(uint64_t expected, uint32_t seq)
{
    const int32_t away = (int32_t)(seq - (uint32_t)expected);

    /* no number is below 0: the candidate must be ahead */
    return away < 0 && expected < (uint64_t) - (int64_t)away ? expected + seq - (uint32_t)expected
                                                             : expected + (uint64_t)(int64_t)away;
}

/* Sums the upper halves of all numbers of a header. expected[]: the numbers that its
 * acknowledgements are nearest to. Numbers only grow, so an old header whose lower halves fit has
 * another sum. */
static inline uint64_t aq_udp_above(const struct aq_udp_header *header, uint64_t seq,
                                    const uint64_t expected[AQ_UDP_CHANNELS])
{
    uint64_t sum = seq >> 32;

    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
        sum += aq_udp_seq_expand(expected[channel], header->ack[channel]) >> 32;
    return sum;
}

/* --- maximum length of a frame without its data --- */

static inline size_t aq_udp_am_head(uint8_t type, unsigned nargs)
{
    const size_t fixed = type == AQ_UDP_F_LONG          ? 16
                         : type == AQ_UDP_F_MEDIUM      ? 16 /* with what aligns its data */
                         : type == AQ_UDP_F_MEDIUM_FRAG ? 24
                         : type == AQ_UDP_F_LONG_FRAG   ? 32
                                                        : 8;

    return fixed + aq_udp_pad8(4 * (size_t)nargs);
}
#define AQ_UDP_RMA_HEAD 24 /* bytes of PUT, GET, DATA */

/* --- encoding: datagrams are built at multiples of 16, frames at multiples of 8. Each call returns
 * the end of the frame's head, where the data goes --- */

static inline uint8_t *aq_udp_args_encode(uint8_t *at, unsigned nargs, const int32_t *args)
{
    for (unsigned i = 0; i < nargs; i++)
        aq_udp_put32(at + 4 * i, (uint32_t)args[i]);
    if (nargs % 2 != 0)
        aq_udp_put32(at + 4 * nargs, 0);
    return at + aq_udp_pad8(4 * (size_t)nargs);
}

static inline uint8_t *aq_udp_am_encode(uint8_t *at, uint8_t type, uint8_t handler, unsigned nargs,
                                        const int32_t *args, uint32_t nbytes, uint64_t dest)
{
    at[0] = type;
    at[1] = handler;
    at[2] = (uint8_t)nargs;
    at[3] = 0;
    aq_udp_put32(at + 4, nbytes);
    at += 8;
    if (type == AQ_UDP_F_LONG) {
        aq_udp_put64(at, dest);
        at += 8;
    }
    at = aq_udp_args_encode(at, nargs, args);
    if (type == AQ_UDP_F_MEDIUM && (uintptr_t)at % 16 != 0) {
        aq_udp_put64(at, 0);
        at += 8;
    }
    return at;
}

static inline uint8_t *aq_udp_frag_encode(uint8_t *at, const struct aq_udp_frame *frame)
{
    at[0] = frame->type;
    at[1] = frame->handler;
    at[2] = frame->nargs;
    at[3] = 0;
    aq_udp_put32(at + 4, frame->nbytes);
    aq_udp_put32(at + 8, frame->message);
    aq_udp_put32(at + 12, frame->total);
    aq_udp_put32(at + 16, frame->frag_offset);
    aq_udp_put32(at + 20, 0);
    at += 24;
    if (frame->type == AQ_UDP_F_LONG_FRAG) {
        aq_udp_put64(at, frame->addr);
        at += 8;
    }
    return aq_udp_args_encode(at, frame->nargs, frame->args);
}

static inline uint8_t *aq_udp_rma_encode(uint8_t *at, uint8_t type, uint32_t word, uint64_t first,
                                         uint64_t second)
{
    aq_udp_put32(at, type);
    aq_udp_put32(at + 4, word);
    aq_udp_put64(at + 8, first);
    aq_udp_put64(at + 16, second);
    return at + AQ_UDP_RMA_HEAD;
}

static inline uint8_t *aq_udp_put_encode(uint8_t *at, uint32_t nbytes, uint64_t dest,
                                         uint64_t cookie)
{
    return aq_udp_rma_encode(at, AQ_UDP_F_PUT, nbytes, dest, cookie);
}

static inline uint8_t *aq_udp_get_encode(uint8_t *at, uint32_t id, uint64_t src, uint64_t nbytes)
{
    return aq_udp_rma_encode(at, AQ_UDP_F_GET, id, src, nbytes);
}

static inline uint8_t *aq_udp_data_encode(uint8_t *at, uint32_t nbytes, uint32_t id,
                                          uint64_t offset)
{
    return aq_udp_rma_encode(at, AQ_UDP_F_DATA, nbytes, id, offset);
}

static inline uint8_t *aq_udp_sack_encode(uint8_t *at, uint8_t channel, uint8_t words,
                                          uint32_t base, const uint64_t *bits)
{
    at[0] = AQ_UDP_F_SACK;
    at[1] = channel;
    at[2] = words;
    at[3] = 0;
    aq_udp_put32(at + 4, base);
    for (unsigned i = 0; i < words; i++)
        aq_udp_put64(at + 8 + 8 * i, bits[i]);
    return at + 8 + 8 * (size_t)words;
}

static inline uint8_t *aq_udp_pad_encode(uint8_t *at)
{
    aq_udp_put64(at, AQ_UDP_F_PAD);
    return at + 8;
}

/* --- decoding --- */

/* Takes size bytes of a frame's head, which must be covered by the hash. Returns NULL if they are
 * not there. */
static inline const uint8_t *aq_udp_take(const uint8_t *datagram, size_t hashed, size_t *at,
                                         size_t size)
{
    const uint8_t *start = datagram + *at;

    if (size > hashed - *at)
        return NULL;
    *at += size;
    return start;
}

/* Takes the data behind a frame's head. Bytes beyond the hashed ones must end the datagram. */
static inline bool aq_udp_take_data(const uint8_t *datagram, size_t len, size_t hashed, size_t *at,
                                    struct aq_udp_frame *frame)
{
    if (frame->nbytes > len - *at)
        return false;
    frame->data = datagram + *at;
    if (*at + frame->nbytes > hashed && *at + frame->nbytes != len)
        return false;
    *at = aq_udp_pad8(*at + frame->nbytes);
    return true;
}

static inline bool aq_udp_am_decode(const uint8_t *datagram, size_t hashed, size_t *at,
                                    const uint8_t *fixed, struct aq_udp_frame *frame)
{
    const bool is_frag = frame->type == AQ_UDP_F_MEDIUM_FRAG || frame->type == AQ_UDP_F_LONG_FRAG;
    const bool is_long = frame->type == AQ_UDP_F_LONG || frame->type == AQ_UDP_F_LONG_FRAG;
    const uint8_t *more;

    frame->handler = fixed[1];
    frame->nargs = fixed[2];
    frame->nbytes = aq_udp_get32(fixed + 4);
    if (fixed[3] != 0 || frame->nargs > AQ_UDP_MAX_ARGS
        || (frame->type == AQ_UDP_F_SHORT && frame->nbytes != 0))
        return false;
    if (is_frag) {
        more = aq_udp_take(datagram, hashed, at, 16);
        if (more == NULL)
            return false;
        frame->message = aq_udp_get32(more);
        frame->total = aq_udp_get32(more + 4);
        frame->frag_offset = aq_udp_get32(more + 8);
        if (frame->nbytes == 0 || frame->frag_offset > frame->total
            || frame->nbytes > frame->total - frame->frag_offset || aq_udp_get32(more + 12) != 0)
            return false;
    }
    if (is_long) {
        more = aq_udp_take(datagram, hashed, at, 8);
        if (more == NULL)
            return false;
        frame->addr = aq_udp_get64(more);
    }
    more = aq_udp_take(datagram, hashed, at, aq_udp_pad8(4 * (size_t)frame->nargs));
    if (more == NULL)
        return false;
    for (unsigned i = 0; i < frame->nargs; i++)
        frame->args[i] = (int32_t)aq_udp_get32(more + 4 * i);
    return frame->type != AQ_UDP_F_MEDIUM || *at % 16 == 0
           || aq_udp_take(datagram, hashed, at, 8) != NULL;
}

static inline bool aq_udp_rma_decode(const uint8_t *datagram, size_t hashed, size_t *at,
                                     const uint8_t *fixed, struct aq_udp_frame *frame)
{
    const uint8_t *more = aq_udp_take(datagram, hashed, at, 16);

    if (more == NULL || (fixed[1] | fixed[2] | fixed[3]) != 0)
        return false;
    frame->nbytes = 0;
    switch (frame->type) {
    case AQ_UDP_F_PUT:
        frame->nbytes = aq_udp_get32(fixed + 4);
        frame->addr = aq_udp_get64(more);
        frame->cookie = aq_udp_get64(more + 8);
        return frame->nbytes != 0;
    case AQ_UDP_F_GET:
        frame->id = aq_udp_get32(fixed + 4);
        frame->addr = aq_udp_get64(more);
        frame->length = aq_udp_get64(more + 8);
        return frame->length != 0;
    default:
        frame->nbytes = aq_udp_get32(fixed + 4);
        frame->id = aq_udp_get32(more);
        frame->length = aq_udp_get64(more + 8);
        return frame->nbytes != 0 && aq_udp_get32(more + 4) == 0;
    }
}

static inline bool aq_udp_sack_decode(const uint8_t *datagram, size_t hashed, size_t *at,
                                      const uint8_t *fixed, struct aq_udp_frame *frame)
{
    const uint8_t *more;

    frame->channel = fixed[1];
    frame->words = fixed[2];
    frame->base = aq_udp_get32(fixed + 4);
    frame->nbytes = 0;
    if (fixed[3] != 0 || frame->channel >= AQ_UDP_CHANNELS || frame->words < 1
        || frame->words > AQ_UDP_SACK_WORDS)
        return false;
    more = aq_udp_take(datagram, hashed, at, 8 * (size_t)frame->words);
    for (unsigned i = 0; more != NULL && i < frame->words; i++)
        frame->bits[i] = aq_udp_get64(more + 8 * i);
    return more != NULL;
}

/*
 * Decodes the next frame of a datagram of len bytes, whose header has been decoded. *at begins at
 * AQ_UDP_HEADER. Returns 1: *frame_out is the frame; 0: no more frames; -1: malformed. Fields that
 * the type does not have are left as they are. Frames must be of the datagram's channel.
 */
static inline int aq_udp_frame_decode(const uint8_t *datagram, size_t len,
                                      const struct aq_udp_header *header, size_t *at,
                                      struct aq_udp_frame *frame_out)
{
    const size_t hashed = header->hashed;
    const uint8_t *fixed;
    bool good = false;

    if (*at >= len)
        return 0;
    if (*at >= hashed)
        return -1; /* bytes behind the hashed ones that belong to no frame */
    fixed = aq_udp_take(datagram, hashed, at, 8);
    if (fixed == NULL)
        return -1;
    frame_out->type = fixed[0];
    switch (fixed[0]) {
    case AQ_UDP_F_SHORT:
    case AQ_UDP_F_MEDIUM:
    case AQ_UDP_F_LONG:
    case AQ_UDP_F_MEDIUM_FRAG:
    case AQ_UDP_F_LONG_FRAG:
        good = header->channel <= AQ_UDP_REPLY
               && aq_udp_am_decode(datagram, hashed, at, fixed, frame_out);
        break;
    case AQ_UDP_F_PUT:
    case AQ_UDP_F_GET:
    case AQ_UDP_F_DATA:
        good = header->channel == AQ_UDP_RMA
               && aq_udp_rma_decode(datagram, hashed, at, fixed, frame_out);
        break;
    case AQ_UDP_F_PAD:
        good = header->channel == AQ_UDP_RMA && aq_udp_get64(fixed) == AQ_UDP_F_PAD;
        frame_out->nbytes = (uint32_t)(len - *at);
        break;
    case AQ_UDP_F_SACK:
        good = header->channel == AQ_UDP_CONTROL
               && aq_udp_sack_decode(datagram, hashed, at, fixed, frame_out);
        break;
    default:
        break;
    }
    if (!good || !aq_udp_take_data(datagram, len, hashed, at, frame_out))
        return -1;
    return 1;
}

/* Returns true if the whole datagram is well-formed. */
static inline bool aq_udp_frames_check(const uint8_t *datagram, size_t len,
                                       const struct aq_udp_header *header)
{
    struct aq_udp_frame frame;
    size_t at = AQ_UDP_HEADER;
    int found;

    do
        found = aq_udp_frame_decode(datagram, len, header, &at, &frame);
    while (found > 0);
    return found == 0;
}

#endif
