/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * corpus_udp.c - writes the seeds of tests/fuzz/corpus/udp: inputs of fuzz_udp.c with valid, signed
 * datagrams.
 *
 *   corpus_udp FOLDER
 *
 * Includes fuzz_udp.c, so that keys and numbers are the same.
 */
#include <sys/stat.h>

#include "tests/fuzz/fuzz_udp.c"

/* libFuzzer's, which is not here */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    (void)data, (void)max_size;
    return size;
}

static uint8_t input[65536];
static size_t input_len;

static void add(uint8_t what, uint8_t time, const void *bytes, size_t len)
{
    if (input_len + FUZZ_RECORD + len > sizeof(input))
        abort();
    input[input_len] = what;
    input[input_len + 1] = time;
    aq_udp_put16(input + input_len + 2, (uint16_t)len);
    if (len != 0)
        memcpy(input + input_len + FUZZ_RECORD, bytes, len);
    input_len += FUZZ_RECORD + len;
}

static void save(const char *folder, const char *name)
{
    char path[4096];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    out = fopen(path, "wb");
    if (out == NULL || fwrite(input, 1, input_len, out) != input_len || fclose(out) != 0) {
        perror(path);
        exit(1);
    }
    input_len = 0;
}

/* A datagram of rank 1 with frames up to end; both ways in. */
static void datagram(uint8_t *at, uint8_t channel, uint8_t flags, uint32_t number,
                     const uint32_t ack[3], uint8_t *end, size_t open_end)
{
    const uint64_t first = (uint64_t)UINT32_MAX - 20;
    const size_t len = (size_t)(end - at);
    struct aq_udp_header header = { .channel = channel,
                                    .flags = flags,
                                    .src = 1,
                                    .dst = 0,
                                    .seq = (uint32_t)(first + number),
                                    .rwnd = 1024,
                                    .ts = 900000 + number,
                                    .ts_echo = 976562,
                                    .ts_delay = 3,
                                    .hashed = (uint16_t)(len - open_end) };
    struct aq_udp_packet packet = { .head = at,
                                    .head_len = header.hashed,
                                    .body = at + header.hashed,
                                    .body_len = (uint32_t)open_end };
    uint8_t key[AQ_UDP_KEY];

    for (int i = 0; i < AQ_UDP_CHANNELS; i++)
        header.ack[i] = (uint32_t)(first + ack[i]);
    packet.above = aq_udp_above(&header, first + number, (uint64_t[]){ first, first, first });
    aq_udp_header_encode(at, &header);
    aq_udp_auth_key(1, 0, key);
    aq_udp_auth_sign(key, &packet);
    add(FUZZ_DELIVER, 20, at, len);
    add(FUZZ_DELIVER_CHECKED, 10, at, len);
}

int main(int argc, char **argv)
{
    static uint8_t at[2048] __attribute__((aligned(16)));
    static const uint32_t none[3] = { 0, 0, 0 }, some[3] = { 2, 1, 3 };
    const int32_t args[AQ_UDP_MAX_ARGS] = { 1, -1, 2, 3 };
    const uint64_t bits[AQ_UDP_SACK_WORDS] = { 5, UINT64_MAX, 0, 1 };
    uint8_t *frames = at + AQ_UDP_HEADER, *end;
    struct aq_udp_frame frag = {
        .type = AQ_UDP_F_MEDIUM_FRAG, .nargs = 2, .nbytes = 64, .total = 128
    };

    if (argc != 2 || aq_udp_auth_init() != 0)
        return 1;
    mkdir(argv[1], 0777);
    end = aq_udp_am_encode(frames, AQ_UDP_F_SHORT, 130, 3, args, 0, 0);
    datagram(at, AQ_UDP_REQUEST, AQ_UDP_ACK_NOW, 0, none, end, 0);
    datagram(at, AQ_UDP_REPLY, 0, 0, none, end, 0);
    save(argv[1], "short");

    end = aq_udp_am_encode(frames, AQ_UDP_F_SHORT, 130, 16, args, 0, 0);
    end = aq_udp_am_encode(end, AQ_UDP_F_MEDIUM, 131, 1, args, 40, 0) + 40;
    datagram(at, AQ_UDP_REQUEST, 0, 1, none,
             aq_udp_am_encode(end, AQ_UDP_F_LONG, 132, 0, args, 24, 4096) + 24, 0);
    save(argv[1], "three");

    end = aq_udp_frag_encode(frames, &frag) + 64;
    datagram(at, AQ_UDP_REPLY, 0, 0, none, end, 64);
    frag.frag_offset = 64;
    datagram(at, AQ_UDP_REPLY, 0, 2, none, aq_udp_frag_encode(frames, &frag) + 64, 0);
    frag.type = AQ_UDP_F_LONG_FRAG;
    datagram(at, AQ_UDP_REPLY, 0, 1, none, aq_udp_frag_encode(frames, &frag) + 64, 64);
    save(argv[1], "parts");

    for (uint32_t i = 0; i < 40; i += 3) { /* holes, and past 2^32 */
        end = aq_udp_put_encode(frames, 32, 4096, 7) + 32;
        datagram(at, AQ_UDP_RMA, AQ_UDP_TS_ECHO, i, none, end, i % 2 == 0 ? 32 : 0);
        end = aq_udp_get_encode(frames, i, 4096, 1 << 20);
        datagram(at, AQ_UDP_RMA, AQ_UDP_TS_ECHO | AQ_UDP_HOLES, i + 1, none,
                 aq_udp_data_encode(end, 16, i, 64) + 16, 0);
        add(i % 2 == 0 ? FUZZ_PLACE : FUZZ_TIMER, 21, NULL, 0);
    }
    save(argv[1], "rma");

    for (uint8_t i = 0; i < 12; i++) { /* of ours: sent, acknowledged, lost, probed */
        const uint8_t send[2] = { (uint8_t)(i * 20), (uint8_t)(i % 3) };

        add(FUZZ_SEND, 18, send, 2);
    }
    end = aq_udp_sack_encode(aq_udp_sack_encode(frames, 0, 1, UINT32_MAX - 19, bits), 2, 1,
                             UINT32_MAX - 18, bits);
    datagram(at, AQ_UDP_CONTROL, AQ_UDP_TS_ECHO, 0, none, end, 0);
    add(FUZZ_TIMER, 25, NULL, 0);
    datagram(at, AQ_UDP_CONTROL, AQ_UDP_TS_ECHO | AQ_UDP_FULL, 1, some, frames, 0);
    add(FUZZ_TIMER, 30, NULL, 0);
    datagram(at, AQ_UDP_CONTROL, AQ_UDP_TS_ECHO | AQ_UDP_ACK_NOW, 5, some, frames, 0);
    add(FUZZ_TIMER, 33, NULL, 0);
    end = aq_udp_sack_encode(aq_udp_sack_encode(frames, 1, 4, 0, bits), 0, 3, 5, bits);
    datagram(at, AQ_UDP_CONTROL, AQ_UDP_TS_ECHO, 6, some, end, 0);
    datagram(at, AQ_UDP_CONTROL, AQ_UDP_DISCONNECT, 7, some, frames, 0);
    save(argv[1], "acks");

    add(FUZZ_REFUSE, 0, NULL, 0);
    end = aq_udp_am_encode(frames, AQ_UDP_F_SHORT, 130, 1, args, 0, 0);
    datagram(at, AQ_UDP_REQUEST, AQ_UDP_TS_ECHO, 0, none, end, 0);
    add(FUZZ_REFUSE, 39, NULL, 0);
    datagram(at, AQ_UDP_REQUEST, AQ_UDP_TS_ECHO, 0, none, end, 0);
    save(argv[1], "refused");
    return 0;
}
