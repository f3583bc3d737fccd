/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_agent_frame.c - framing between gasnetrun and its agents; see aq_agent_frame.h.
 * Threads   one
 */
#include "other/launcher/aq_agent_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t aq_hello_magic[AQ_HELLO_MAGIC] = { 0xff, 0x00, 'A', 'Q', '-',  'a',
                                                        'g',  'e',  'n', 't', 0xfe, '\n' };

static uint32_t aq_frame_get32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void aq_frame_put32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

uint8_t *aq_frame_space(struct aq_frame_in *in, size_t want)
{
    size_t cap;
    uint8_t *grown;

    if (in->head > 0) {
        memmove(in->buf, in->buf + in->head, in->have - in->head);
        in->have -= in->head;
        in->head = 0;
    }
    if (in->cap - in->have >= want)
        return in->buf + in->have;
    cap = in->cap * 2 > in->have + want ? in->cap * 2 : in->have + want;
    grown = realloc(in->buf, cap);
    if (grown == NULL)
        return NULL;
    in->buf = grown;
    in->cap = cap;
    return in->buf + in->have;
}

void aq_frame_added(struct aq_frame_in *in, size_t len)
{
    in->have += len;
}

void aq_frame_free(struct aq_frame_in *in)
{
    free(in->buf);
    memset(in, 0, sizeof(*in));
}

static uint32_t aq_frame_limit(uint8_t type)
{
    return type == AQ_FRAME_SETUP || type == AQ_FRAME_GATHER || type == AQ_FRAME_RESULT
               ? AQ_FRAME_LARGE
               : AQ_FRAME_SMALL;
}

int aq_frame_next(struct aq_frame_in *in, struct aq_frame *frame_out)
{
    size_t have = in->have - in->head;
    const uint8_t *at;
    uint32_t len;

    if (have < AQ_FRAME_HEAD)
        return 0;
    at = in->buf + in->head;
    len = aq_frame_get32(at);
    if (at[4] == 0 || at[4] >= AQ_FRAME_TYPES || at[6] != 0 || at[7] != 0
        || len > aq_frame_limit(at[4]))
        return -EPROTO;
    if (have - AQ_FRAME_HEAD < len)
        return 0;
    *frame_out = (struct aq_frame){
        .type = (enum aq_frame_type)at[4],
        .arg = at[5],
        .data = at + AQ_FRAME_HEAD,
        .len = len,
    };
    in->head += AQ_FRAME_HEAD + len;
    return 1;
}

int aq_frame_hello(struct aq_frame_in *in, uint32_t *protocol_out,
                   char version_out[AQ_HELLO_VERSION + 1], const char **noise_out,
                   size_t *noise_len_out)
{
    size_t have = in->have - in->head;
    const uint8_t *start = have > 0 ? in->buf + in->head : (const uint8_t *)"", *at;

    *noise_out = (const char *)start;
    *noise_len_out = have;
    if (have < AQ_HELLO_BYTES)
        return 0;
    at = memmem(start, have - (AQ_HELLO_BYTES - AQ_HELLO_MAGIC), aq_hello_magic, AQ_HELLO_MAGIC);
    if (at == NULL)
        return 0;
    *noise_len_out = (size_t)(at - start);
    *protocol_out = aq_frame_get32(at + AQ_HELLO_MAGIC);
    memcpy(version_out, at + AQ_HELLO_MAGIC + 4, AQ_HELLO_VERSION);
    version_out[AQ_HELLO_VERSION] = '\0';
    in->head += *noise_len_out + AQ_HELLO_BYTES;
    return 1;
}

void aq_frame_make_hello(uint8_t hello_out[AQ_HELLO_BYTES], const char *version)
{
    size_t len = strlen(version);

    memset(hello_out, 0, AQ_HELLO_BYTES);
    memcpy(hello_out, aq_hello_magic, AQ_HELLO_MAGIC);
    aq_frame_put32(hello_out + AQ_HELLO_MAGIC, AQ_AGENT_PROTOCOL);
    memcpy(hello_out + AQ_HELLO_MAGIC + 4, version,
           len < AQ_HELLO_VERSION ? len : AQ_HELLO_VERSION);
}

void aq_frame_head(uint8_t head_out[AQ_FRAME_HEAD], enum aq_frame_type type, uint8_t arg,
                   uint32_t len)
{
    aq_frame_put32(head_out, len);
    head_out[4] = (uint8_t)type;
    head_out[5] = arg;
    head_out[6] = head_out[7] = 0;
}

void aq_pack_bytes(struct aq_pack *p, const void *data, size_t len)
{
    if (p->failed || len == 0)
        return;
    if (p->cap - p->len < len) {
        size_t cap = p->cap * 2 > p->len + len ? p->cap * 2 : p->len + len + 64;
        uint8_t *grown = realloc(p->buf, cap);

        if (grown == NULL) {
            p->failed = true;
            return;
        }
        p->buf = grown;
        p->cap = cap;
    }
    memcpy(p->buf + p->len, data, len);
    p->len += len;
}

void aq_pack_u32(struct aq_pack *p, uint32_t value)
{
    uint8_t bytes[4];

    aq_frame_put32(bytes, value);
    aq_pack_bytes(p, bytes, sizeof(bytes));
}

void aq_pack_block(struct aq_pack *p, const void *data, size_t len)
{
    aq_pack_u32(p, (uint32_t)len);
    aq_pack_bytes(p, data, len);
}

void aq_pack_text(struct aq_pack *p, const char *text)
{
    aq_pack_block(p, text, strlen(text) + 1);
}

void aq_pack_texts(struct aq_pack *p, char *const *texts)
{
    uint32_t count = 0;

    while (texts[count] != NULL)
        count++;
    aq_pack_u32(p, count);
    for (uint32_t i = 0; i < count; i++)
        aq_pack_text(p, texts[i]);
}

const uint8_t *aq_unpack_bytes(struct aq_unpack *u, size_t len)
{
    const uint8_t *at = u->at;

    if (u->failed || len > u->left) {
        u->failed = true;
        return NULL;
    }
    u->at += len;
    u->left -= len;
    return at;
}

uint32_t aq_unpack_u32(struct aq_unpack *u)
{
    const uint8_t *at = aq_unpack_bytes(u, 4);

    return at != NULL ? aq_frame_get32(at) : 0;
}

const uint8_t *aq_unpack_block(struct aq_unpack *u, size_t *len_out)
{
    uint32_t len = aq_unpack_u32(u);
    const uint8_t *at = aq_unpack_bytes(u, len);

    *len_out = at != NULL ? len : 0;
    return at;
}

char *aq_unpack_text(struct aq_unpack *u)
{
    size_t len;
    const uint8_t *at = aq_unpack_block(u, &len);
    char *text;

    if (at == NULL || len == 0 || memchr(at, '\0', len) != at + len - 1) {
        u->failed = true;
        return NULL;
    }
    text = malloc(len);
    if (text == NULL)
        u->failed = true;
    else
        memcpy(text, at, len);
    return text;
}

char **aq_unpack_texts(struct aq_unpack *u)
{
    uint32_t count = aq_unpack_u32(u);
    char **texts;

    /* each takes at least 5 bytes: an absurd count must not cause a large allocation */
    if (u->failed || count > u->left / 5) {
        u->failed = true;
        return NULL;
    }
    texts = calloc((size_t)count + 1, sizeof(*texts));
    if (texts == NULL) {
        u->failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++)
        texts[i] = aq_unpack_text(u);
    if (!u->failed)
        return texts;
    for (uint32_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
    return NULL;
}
