/*
 * aq_trace_out.c - text for traces and statistics, composed without stdio.
 *
 * Records are written at every kind of exit, also in the handler of a fatal signal: nothing here
 * allocates, locks or reads the locale.
 *
 * Threads   any; each struct aq_trace_out is on its caller's stack
 * Uses      core/aq_trace_internal.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_trace_internal.h"

void aq_trace_put_char(struct aq_trace_out *out, char c)
{
    if (out->at < out->end)
        *out->at++ = c;
}

void aq_trace_put(struct aq_trace_out *out, const char *text)
{
    while (*text != '\0' && out->at < out->end)
        *out->at++ = *text++;
}

void aq_trace_put_number(struct aq_trace_out *out, uint64_t n)
{
    char digits[24];
    size_t at = sizeof(digits);

    digits[--at] = '\0';
    do
        digits[--at] = (char)('0' + n % 10);
    while ((n /= 10) != 0);
    aq_trace_put(out, digits + at);
}

void aq_trace_put_signed(struct aq_trace_out *out, int64_t n)
{
    if (n < 0)
        aq_trace_put_char(out, '-');
    aq_trace_put_number(out, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

void aq_trace_put_hex(struct aq_trace_out *out, uint64_t n)
{
    char digits[20];
    size_t at = sizeof(digits);

    digits[--at] = '\0';
    do
        digits[--at] = "0123456789abcdef"[n & 15];
    while ((n >>= 4) != 0);
    aq_trace_put(out, "0x");
    aq_trace_put(out, digits + at);
}

void aq_trace_put_us(struct aq_trace_out *out, uint64_t ns)
{
    const unsigned rest = (unsigned)(ns % 1000);

    aq_trace_put_number(out, ns / 1000);
    aq_trace_put_char(out, '.');
    aq_trace_put_char(out, (char)('0' + rest / 100));
    aq_trace_put_char(out, (char)('0' + rest / 10 % 10));
    aq_trace_put_char(out, (char)('0' + rest % 10));
}

void aq_trace_put_padded(struct aq_trace_out *out, const char *text, size_t width)
{
    const char *before = out->at;

    aq_trace_put(out, text);
    while ((size_t)(out->at - before) < width && out->at < out->end)
        *out->at++ = ' ';
}

/* Returns the length of a well-formed UTF-8 sequence at text, 0 if there is none. */
static size_t aq_trace_utf8(const char *text, size_t len)
{
    const unsigned char *c = (const unsigned char *)text;
    const size_t size = c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf5 ? 4 : 0;

    if (size == 0 || size > len)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    /* overlong forms, surrogates, beyond the last character */
    if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f)
        || (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
        return 0;
    return size;
}

/* A client's text may contain any bytes; what is not UTF-8 becomes a question mark. */
void aq_trace_put_json(struct aq_trace_out *out, const char *text, size_t len)
{
    aq_trace_put_char(out, '"');
    for (size_t i = 0; i < len;) {
        const unsigned char c = (unsigned char)text[i];
        size_t wide = c < 0x80 ? 1 : aq_trace_utf8(text + i, len - i);

        if (c == '"' || c == '\\') {
            aq_trace_put_char(out, '\\');
            aq_trace_put_char(out, (char)c);
        } else if (c == '\n') {
            aq_trace_put(out, "\\n");
        } else if (c < 0x20 || c == 0x7f) {
            aq_trace_put(out, "\\u00");
            aq_trace_put_char(out, "0123456789abcdef"[c >> 4]);
            aq_trace_put_char(out, "0123456789abcdef"[c & 15]);
        } else if (wide == 0) {
            aq_trace_put_char(out, '?');
            wide = 1;
        } else {
            for (size_t k = 0; k < wide; k++)
                aq_trace_put_char(out, text[i + k]);
        }
        i += wide;
    }
    aq_trace_put_char(out, '"');
}
