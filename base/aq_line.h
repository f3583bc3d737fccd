/*
 * aq_line.h - text for one write(2), composed without stdio: for signal handlers.
 *
 * Text that does not fit is dropped. Depends on no other header of the library.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_LINE_H
#define AQ_LINE_H

#include <stddef.h>
#include <stdint.h>

struct aq_line {
    size_t len;
    char text[1024];
};

static inline void aq_line_put(struct aq_line *l, const char *s)
{
    while (*s != '\0' && l->len < sizeof(l->text) - 1)
        l->text[l->len++] = *s++;
    l->text[l->len] = '\0';
}

/* base: 10 or 16 */
static inline void aq_line_put_number(struct aq_line *l, uint64_t n, unsigned base)
{
    char digits[24];
    size_t at = sizeof(digits) - 1;

    digits[at] = '\0';
    do
        digits[--at] = "0123456789abcdef"[n % base];
    while ((n /= base) != 0);
    aq_line_put(l, digits + at);
}

#endif
