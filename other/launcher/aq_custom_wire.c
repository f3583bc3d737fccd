/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_custom_wire.c - SPAWNFN=C: the messages by which master and worker prove the secret to each
 * other, and the relay of the encrypted line.
 * Owns      nothing: the state of a handshake and of a line is its caller's
 * Threads   one
 * Uses      libsodium
 * See       aq_custom_wire.h for the format
 */
#include "other/launcher/aq_custom_wire.h"

#ifdef AQ_HAVE_SODIUM

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define AQ_WIRE_CHUNK  16384u
#define AQ_WIRE_CIPHER (AQ_WIRE_CHUNK + crypto_secretstream_xchacha20poly1305_ABYTES)
#define AQ_WIRE_HEADER crypto_secretstream_xchacha20poly1305_HEADERBYTES

static const char aq_wire_magic[16] = "AQUEDUCT-WORKER1";

/* one direction of the relay: from one descriptor to the other, one message at a time */
struct aq_wire_way {
    crypto_secretstream_xchacha20poly1305_state state;
    uint8_t buf[4 + AQ_WIRE_CIPHER + AQ_WIRE_HEADER];
    size_t at, len; /* buf[at .. len) is not written yet */
    bool ended;     /* no more input */
    bool done;      /* no more input and no more output */
};

struct aq_wire_in {
    uint8_t buf[4 + AQ_WIRE_CIPHER]; /* the received part of a message */
    size_t have;
    bool started; /* the header has been received */
};

bool aq_custom_random(void *p, size_t len)
{
    if (sodium_init() < 0)
        return false;
    randombytes_buf(p, len);
    return true;
}

void aq_custom_wipe(void *p, size_t len)
{
    sodium_memzero(p, len);
}

static void aq_wire_auth(const struct aq_custom_handshake *s, char role, const void *more,
                         size_t len, uint8_t out[32])
{
    uint8_t text[1 + 64 + sizeof(struct aq_worker_info)];

    text[0] = (uint8_t)role;
    memcpy(text + 1, s->nonce_w, 32);
    memcpy(text + 33, s->nonce_m, 32);
    if (len > 0)
        memcpy(text + 65, more, len);
    crypto_auth(out, text, 65 + len, s->key);
}

static bool aq_wire_same(const uint8_t *a, const uint8_t *b)
{
    return sodium_memcmp(a, b, 32) == 0; /* constant time */
}

void aq_custom_hello(struct aq_custom_handshake *s, uint8_t hello_out[AQ_CUSTOM_HELLO])
{
    randombytes_buf(s->nonce_w, sizeof(s->nonce_w));
    memcpy(hello_out, aq_wire_magic, 16);
    memcpy(hello_out + 16, s->nonce_w, 32);
}

bool aq_custom_reply(struct aq_custom_handshake *s, const uint8_t hello[AQ_CUSTOM_HELLO],
                     uint8_t reply_out[AQ_CUSTOM_REPLY])
{
    if (memcmp(hello, aq_wire_magic, 16) != 0)
        return false;
    memcpy(s->nonce_w, hello + 16, 32);
    randombytes_buf(s->nonce_m, sizeof(s->nonce_m));
    memcpy(reply_out, s->nonce_m, 32);
    aq_wire_auth(s, 'M', NULL, 0, reply_out + 32);
    return true;
}

bool aq_custom_check_reply(struct aq_custom_handshake *s, const uint8_t reply[AQ_CUSTOM_REPLY])
{
    uint8_t mac[32];

    memcpy(s->nonce_m, reply, 32);
    aq_wire_auth(s, 'M', NULL, 0, mac);
    return aq_wire_same(mac, reply + 32);
}

void aq_custom_claim(const struct aq_custom_handshake *s, const struct aq_worker_info *info,
                     uint8_t claim_out[AQ_CUSTOM_CLAIM])
{
    memcpy(claim_out, info, sizeof(*info));
    aq_wire_auth(s, 'W', info, sizeof(*info), claim_out + sizeof(*info));
}

bool aq_custom_check_claim(const struct aq_custom_handshake *s,
                           const uint8_t claim[AQ_CUSTOM_CLAIM], struct aq_worker_info *info_out)
{
    uint8_t mac[32];

    aq_wire_auth(s, 'W', claim, sizeof(*info_out), mac);
    if (!aq_wire_same(mac, claim + sizeof(*info_out)))
        return false;
    memcpy(info_out, claim, sizeof(*info_out));
    info_out->host[sizeof(info_out->host) - 1] = '\0';
    info_out->machine[sizeof(info_out->machine) - 1] = '\0';
    info_out->rank[sizeof(info_out->rank) - 1] = '\0';
    return true;
}

void aq_custom_keys(const struct aq_custom_handshake *s, uint8_t from_master_out[32],
                    uint8_t from_worker_out[32])
{
    aq_wire_auth(s, 'm', NULL, 0, from_master_out);
    aq_wire_auth(s, 'w', NULL, 0, from_worker_out);
}

/* encrypts a message and appends it to w */
static void aq_wire_seal(struct aq_wire_way *w, const uint8_t *data, size_t len)
{
    unsigned long long cipher;
    uint8_t *to = w->buf + w->len;

    crypto_secretstream_xchacha20poly1305_push(&w->state, to + 4, &cipher, data, len, NULL, 0, 0);
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(cipher >> (24 - 8 * i));
    w->len += 4 + (size_t)cipher;
}

static void aq_wire_write(struct aq_wire_way *w, int fd)
{
    ssize_t n = write(fd, w->buf + w->at, w->len - w->at);

    if (n > 0)
        w->at += (size_t)n;
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        w->at = w->len, w->ended = true; /* the reader has closed */
    if (w->at == w->len)
        w->at = w->len = 0;
}

static void aq_wire_read_plain(struct aq_wire_way *w, int fd)
{
    uint8_t data[AQ_WIRE_CHUNK];
    ssize_t n = read(fd, data, sizeof(data));

    if (n > 0)
        aq_wire_seal(w, data, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        w->ended = true;
}

/* returns the length of the incoming message as far as it is known; 0: no message */
static size_t aq_wire_need(const struct aq_wire_in *in)
{
    size_t len = 0;

    if (!in->started)
        return AQ_WIRE_HEADER;
    if (in->have < 4)
        return 4;
    for (int i = 0; i < 4; i++)
        len = len << 8 | in->buf[i];
    return len < crypto_secretstream_xchacha20poly1305_ABYTES || len > AQ_WIRE_CIPHER ? 0 : 4 + len;
}

/* decrypts a complete message; false if it is not authentic */
static bool aq_wire_open(struct aq_wire_in *in, struct aq_wire_way *w, const uint8_t *key)
{
    unsigned long long plain;
    unsigned char tag;

    if (!in->started) {
        in->started = true;
        w->len = 0;
        return crypto_secretstream_xchacha20poly1305_init_pull(&w->state, in->buf, key) == 0;
    }
    if (crypto_secretstream_xchacha20poly1305_pull(&w->state, w->buf, &plain, &tag, in->buf + 4,
                                                   in->have - 4, NULL, 0)
        != 0)
        return false;
    w->len = (size_t)plain;
    return true;
}

/* returns true to continue; w is filled when a message was complete */
static bool aq_wire_receive(struct aq_wire_in *in, struct aq_wire_way *w,
                            const struct aq_custom_line *line, bool *got)
{
    size_t need = aq_wire_need(in);
    ssize_t n;

    *got = false;
    if (need == 0)
        return false;
    n = recv(line->sock, in->buf + in->have, need - in->have, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n == 0) {
        w->ended = true;
        return in->have == 0;
    }
    in->have += (size_t)n;
    if (in->have < aq_wire_need(in) || (in->started && in->have == 4))
        return true;
    *got = in->started;
    if (!aq_wire_open(in, w, line->rx_key))
        return false;
    in->have = 0;
    return true;
}

static void aq_wire_nonblocking(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

struct aq_wire_relay {
    struct aq_wire_way out, back;
    struct aq_wire_in in;
};

static int aq_wire_fill(const struct aq_wire_relay *r, const struct aq_custom_line *line,
                        struct pollfd fds[4])
{
    bool out_waits = r->out.len > 0, back_waits = r->back.len > 0;

    fds[0] = (struct pollfd){ !out_waits && !r->out.ended ? line->plain_in : -1, POLLIN, 0 };
    fds[1] = (struct pollfd){ out_waits ? line->sock : -1, POLLOUT, 0 };
    fds[2] = (struct pollfd){ !back_waits && !r->back.ended ? line->sock : -1, POLLIN, 0 };
    fds[3] = (struct pollfd){ back_waits ? line->plain_out : -1, POLLOUT, 0 };
    return 4;
}

/* passes on ends of file */
static void aq_wire_close_ends(struct aq_wire_relay *r, struct aq_custom_line *line)
{
    if (r->out.ended && r->out.len == 0 && !r->out.done) {
        r->out.done = true;
        shutdown(line->sock, SHUT_WR);
    }
    if (r->back.ended && r->back.len == 0 && !r->back.done) {
        r->back.done = true;
        if (line->plain_out >= 0)
            close(line->plain_out);
        line->plain_out = -1;
    }
}

static bool aq_wire_step(struct aq_wire_relay *r, struct aq_custom_line *line,
                         bool (**on_first)(struct aq_custom_line *line, const uint8_t *data,
                                           size_t len))
{
    struct pollfd fds[4];
    bool got = false;

    if (poll(fds, (nfds_t)aq_wire_fill(r, line, fds), -1) < 0)
        return errno == EINTR;
    if (fds[0].revents != 0)
        aq_wire_read_plain(&r->out, line->plain_in);
    if (fds[1].revents != 0)
        aq_wire_write(&r->out, line->sock);
    if (fds[2].revents != 0 && !aq_wire_receive(&r->in, &r->back, line, &got))
        return false;
    if (r->back.ended && *on_first != NULL)
        r->out.ended = true; /* nothing has been received */
    if (got && *on_first != NULL) {
        if (!(*on_first)(line, r->back.buf, r->back.len))
            return false;
        r->back.len = 0;
        *on_first = NULL;
        aq_wire_nonblocking(line->plain_in);
        aq_wire_nonblocking(line->plain_out);
    }
    if (fds[3].revents != 0)
        aq_wire_write(&r->back, line->plain_out);
    return true;
}

bool aq_custom_relay(struct aq_custom_line *line, const void *first, size_t first_len,
                     bool (*on_first)(struct aq_custom_line *line, const uint8_t *data, size_t len))
{
    static struct aq_wire_relay r;

    aq_wire_nonblocking(line->sock);
    if (on_first == NULL) {
        aq_wire_nonblocking(line->plain_in);
        aq_wire_nonblocking(line->plain_out);
    }
    crypto_secretstream_xchacha20poly1305_init_push(&r.out.state, r.out.buf, line->tx_key);
    r.out.len = AQ_WIRE_HEADER;
    if (first_len > 0)
        aq_wire_seal(&r.out, first, first_len);
    while (!r.out.done || !r.back.done) {
        if (!aq_wire_step(&r, line, &on_first)) {
            r.back.ended = true;
            r.back.len = 0;
            aq_wire_close_ends(&r, line);
            return false;
        }
        aq_wire_close_ends(&r, line);
    }
    return true;
}

#endif
