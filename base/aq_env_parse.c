/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_env_parse.c - parsers of the forms that environment variables may have.
 * Threads   any: no state
 * Promise   never reads past the text; rejects trailing characters; the decimal point is a point in
 *           every locale, which is why strtod() is not used here
 * Uses      libc only
 */
#include "base/aq_env.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *aq_parse_skip(const char *p)
{
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

static bool aq_parse_at_end(const char *p)
{
    return *aq_parse_skip(p) == '\0';
}

bool aq_env_parse_bool(const char *text, bool *out)
{
    static const char *const yes[] = { "1", "y", "yes", "true", "on" };
    static const char *const no[] = { "0", "n", "no", "false", "off" };
    char word[8];

    text = aq_parse_skip(text);
    if (sscanf(text, "%7s", word) != 1 || !aq_parse_at_end(text + strlen(word)))
        return false;
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        if (strcasecmp(word, yes[i]) == 0 || strcasecmp(word, no[i]) == 0) {
            *out = strcasecmp(word, yes[i]) == 0;
            return true;
        }
    }
    return false;
}

/* parses a hexadecimal or decimal whole number that fits; false leaves *p unchanged */
static bool aq_parse_whole(const char **p, uint64_t *out)
{
    const char *s = *p;
    uint64_t base = 10, value = 0;
    bool any = false;

    if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X') && isxdigit((unsigned char)s[2])) {
        base = 16;
        s += 2;
    }
    for (; base == 16 ? isxdigit((unsigned char)*s) : isdigit((unsigned char)*s); s++) {
        int c = tolower((unsigned char)*s);
        uint64_t digit = (uint64_t)(isdigit(c) ? c - '0' : c - 'a' + 10);

        if (value > (UINT64_MAX - digit) / base)
            return false;
        value = value * base + digit;
        any = true;
    }
    if (!any)
        return false;
    *p = s;
    *out = value;
    return true;
}

bool aq_env_parse_int(const char *text, int64_t *out)
{
    const char *p = aq_parse_skip(text);
    bool negative = *p == '-';
    uint64_t value;

    if (*p == '-' || *p == '+')
        p++;
    if (!aq_parse_whole(&p, &value) || !aq_parse_at_end(p))
        return false;
    if (value > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

/* parses digits[.digits] without sign; long double represents every 64-bit whole number exactly */
static bool aq_parse_decimal(const char **p, long double *out)
{
    const char *s = *p;
    long double value = 0, scale = 1;
    bool any = false;

    for (; isdigit((unsigned char)*s); s++, any = true)
        value = value * 10 + (*s - '0');
    if (*s == '.') {
        for (s++; isdigit((unsigned char)*s); s++, any = true) {
            value = value * 10 + (*s - '0');
            scale *= 10;
        }
    }
    if (!any || !isfinite(value) || !isfinite(scale))
        return false;
    *p = s;
    *out = value / scale;
    return true;
}

bool aq_env_parse_real(const char *text, double *out)
{
    const char *p = aq_parse_skip(text);
    bool negative = *p == '-';
    long double value, below;

    if (*p == '-' || *p == '+')
        p++;
    if (!aq_parse_decimal(&p, &value))
        return false;
    if (*p == 'e' || *p == 'E') {
        char *end;
        long exponent;

        if (!isdigit((unsigned char)p[1])
            && !((p[1] == '-' || p[1] == '+') && isdigit((unsigned char)p[2])))
            return false;
        errno = 0;
        exponent = strtol(p + 1, &end, 10);
        if (errno != 0 || exponent > 400 || exponent < -400)
            return false;
        value *= powl(10, (long double)exponent);
        p = end;
    } else if (*p == '/') {
        p++;
        if (!aq_parse_decimal(&p, &below) || below == 0)
            return false;
        value /= below;
    }
    if (!aq_parse_at_end(p) || !isfinite((double)value))
        return false;
    *out = negative ? -(double)value : (double)value;
    return true;
}

/* returns the factor of K, KB, KiB, M...; 1 for B; false if p is no such word */
static bool aq_parse_size_unit(const char *p, uint64_t *factor_out)
{
    static const char suffixes[] = "KMGT";
    uint64_t factor = 1;
    const char *found;

    found = *p != '\0' ? strchr(suffixes, toupper((unsigned char)*p)) : NULL;
    if (found != NULL) {
        factor = UINT64_C(1) << (10 * (found - suffixes + 1));
        p++;
        if ((*p == 'i' || *p == 'I') && (p[1] == 'B' || p[1] == 'b'))
            p++;
    }
    if (*p == 'B' || *p == 'b')
        p++;
    else if (found == NULL)
        return false;
    if (!aq_parse_at_end(p))
        return false;
    *factor_out = factor;
    return true;
}

bool aq_env_parse_size(const char *text, const char *unit, uint64_t *bytes_out)
{
    const char *p = aq_parse_skip(text);
    uint64_t whole, factor = 1;
    long double value;

    if (*p == '+')
        p++;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        /* B is a digit here, so a hexadecimal size takes no unit */
        if (!aq_parse_whole(&p, &whole) || !aq_parse_at_end(p))
            return false;
        value = whole;
    } else if (!aq_parse_decimal(&p, &value)) {
        return false;
    }

    p = aq_parse_skip(p);
    if (*p == '\0')
        (void)aq_parse_size_unit(unit, &factor);
    else if (!aq_parse_size_unit(p, &factor))
        return false;

    value *= factor;
    if (value >= 18446744073709551616.0L)
        return false;
    *bytes_out = (uint64_t)value;
    return true;
}

/* returns nanoseconds in a unit of time, 0 if the word is none */
static double aq_parse_time_unit(const char *p)
{
    static const struct {
        const char *word;
        double ns;
    } units[] = { { "ns", 1 },    { "us", 1e3 }, { "ms", 1e6 },   { "s", 1e9 },
                  { "sec", 1e9 }, { "m", 60e9 }, { "min", 60e9 }, { "h", 3600e9 } };

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t len = strlen(units[i].word);

        if (strncasecmp(p, units[i].word, len) == 0 && aq_parse_at_end(p + len))
            return units[i].ns;
    }
    return 0;
}

bool aq_env_parse_time(const char *text, const char *unit, double *out)
{
    const char *p = aq_parse_skip(text);
    double own = aq_parse_time_unit(unit), given = own;
    long double value;

    if (*p == '+')
        p++;
    if (!aq_parse_decimal(&p, &value))
        return false;
    p = aq_parse_skip(p);
    if (*p != '\0')
        given = aq_parse_time_unit(p);
    if (given == 0 || own == 0)
        return false;
    *out = given == own ? (double)value : (double)(value * given / own);
    return true;
}

/* parses a fraction of memory: a number below 1, as 0.85 or 2/3 */
static bool aq_parse_fraction(const char *text, double *out)
{
    double value;

    if (!aq_env_parse_real(text, &value) || !(value > 0) || !(value < 1))
        return false;
    *out = value;
    return true;
}

bool aq_env_parse_segsize(const char *text, struct aq_env_segsize *out)
{
    struct aq_env_segsize seg = { .is_fraction = false };
    char amount[64];
    const char *slash;
    size_t len;

    text = aq_parse_skip(text);
    slash = strrchr(text, '/');
    if (slash != NULL && isalpha((unsigned char)*aq_parse_skip(slash + 1))) {
        const char *scope = aq_parse_skip(slash + 1);
        int suffix = toupper((unsigned char)*scope);

        if ((suffix != 'P' && suffix != 'H') || !aq_parse_at_end(scope + 1))
            return false;
        seg.per_host = suffix == 'H';
        len = (size_t)(slash - text);
    } else {
        len = strlen(text);
    }
    if (len >= sizeof(amount))
        return false;
    memcpy(amount, text, len);
    amount[len] = '\0';

    if (aq_parse_fraction(amount, &seg.fraction))
        seg.is_fraction = true;
    else if (!aq_env_parse_size(amount, "B", &seg.bytes) || seg.bytes == 0)
        return false;
    *out = seg;
    return true;
}

bool aq_env_parse_ranks(const char *text, uint32_t rank, bool *listed_out)
{
    const char *p = aq_parse_skip(text);
    bool listed = false;

    if (*p == '*' && aq_parse_at_end(p + 1)) {
        *listed_out = true;
        return true;
    }
    for (;;) {
        uint64_t first, last;

        p = aq_parse_skip(p);
        if (!isdigit((unsigned char)*p) || !aq_parse_whole(&p, &first) || first > UINT32_MAX)
            return false;
        last = first;
        p = aq_parse_skip(p);
        if (*p == '-') {
            p = aq_parse_skip(p + 1);
            if (!isdigit((unsigned char)*p) || !aq_parse_whole(&p, &last) || last > UINT32_MAX
                || last < first)
                return false;
            p = aq_parse_skip(p);
        }
        listed = listed || (first <= rank && rank <= last);
        if (*p == '\0')
            break;
        if (*p++ != ',')
            return false;
    }
    *listed_out = listed;
    return true;
}

bool aq_env_parse_choice(const char *text, const char *words, unsigned *index_out)
{
    unsigned index = 0;

    text = aq_parse_skip(text);
    for (;; index++) {
        size_t len = strcspn(words, "|");

        if (strncasecmp(text, words, len) == 0 && aq_parse_at_end(text + len)) {
            *index_out = index;
            return true;
        }
        if (words[len] == '\0')
            return false;
        words += len + 1;
    }
}

/* parses hexadecimal digits behind 0x; a number that is too large becomes the largest one */
static const char *aq_parse_hex(const char *p, long double *out)
{
    long double value = 0;

    for (; isxdigit((unsigned char)*p); p++) {
        int c = tolower((unsigned char)*p);

        value = value * 16 + (isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    *out = value;
    return p;
}

int64_t aq_env_parse_loose(const char *text, uint64_t mult)
{
    static const char suffixes[] = "BKMGT";
    const char *p = aq_parse_skip(text != NULL ? text : ""), *suffix;
    const bool negative = *p == '-';
    long double value;

    if (*p == '-' || *p == '+')
        p++;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X') && isxdigit((unsigned char)p[2]))
        p = aq_parse_hex(p + 2, &value);
    else if (!aq_parse_decimal(&p, &value))
        return 0;
    p = aq_parse_skip(p);
    if (mult != 0) {
        suffix = *p != '\0' ? strchr(suffixes, toupper((unsigned char)*p)) : NULL;
        value *= suffix != NULL ? (long double)(UINT64_C(1) << (10 * (suffix - suffixes)))
                                : (long double)mult;
    }
    if (value >= 9223372036854775808.0L)
        return negative ? INT64_MIN : INT64_MAX;
    return negative ? -(int64_t)value : (int64_t)value;
}

char *aq_env_format_size(uint64_t bytes, char *buf, size_t size)
{
    static const char *const names[] = { "B", "KB", "MB", "GB", "TB" };

    if (bytes == 0) {
        snprintf(buf, size, "0");
        return buf;
    }
    if (bytes >= UINT64_C(1) << 50) {
        snprintf(buf, size, "0x%" PRIx64, bytes);
        return buf;
    }
    for (int i = 4; i >= 0; i--) {
        uint64_t one = UINT64_C(1) << (10 * i);

        if (bytes >= 10 * one || bytes % one == 0) {
            snprintf(buf, size, "%" PRIu64 " %s", bytes / one, names[i]);
            break;
        }
        if (i == 0)
            snprintf(buf, size, "%" PRIu64 " B", bytes);
    }
    return buf;
}
