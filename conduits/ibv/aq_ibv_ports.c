/*
 * aq_ibv_ports.c - the filter of ports that GASNET_IBV_PORTS is.
 *
 *     filter   rows joined by '+'
 *     row      device, or device:port[,port...]
 *
 * Order, doubles and devices that are not there do not matter: it filters, and chooses nothing.
 *
 * Threads   pure functions
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conduits/ibv/aq_ibv_device.h"

#define AQ_IBV_FORM \
    "; write device or device:port[,port...], joined by +, for example mlx5_0+mlx5_1:2"

static bool aq_ibv_ports_parse_numbers(const char *text, const char *end,
                                       struct aq_ibv_filter_row *row, char *why, size_t len)
{
    while (text < end) {
        char *after;
        const unsigned long port = isdigit((unsigned char)*text) ? strtoul(text, &after, 10) : 0;

        if (port == 0 || port > 255 || (after < end && *after != ',') || after > end
            || after + 1 == end) {
            snprintf(why, len, "\"%.*s\" is not a list of ports" AQ_IBV_FORM, (int)(end - text),
                     text);
            return false;
        }
        row->ports[port / 64] |= UINT64_C(1) << port % 64;
        text = after + 1;
    }
    return true;
}

static bool aq_ibv_ports_parse_row(const char *text, const char *end, struct aq_ibv_filter_row *row,
                                   char *why, size_t len)
{
    const char *colon = memchr(text, ':', (size_t)(end - text));
    const char *name_end = colon != NULL ? colon : end;

    memset(row, 0, sizeof(*row));
    if (name_end == text || (size_t)(name_end - text) >= sizeof(row->device) || colon == end - 1) {
        snprintf(why, len, "\"%.*s\" names no device, or no port after its colon" AQ_IBV_FORM,
                 (int)(end - text), text);
        return false;
    }
    memcpy(row->device, text, (size_t)(name_end - text));
    row->any = colon == NULL;
    return row->any || aq_ibv_ports_parse_numbers(colon + 1, end, row, why, len);
}

bool aq_ibv_ports_parse(const char *text, struct aq_ibv_filter *filter_out, char *why, size_t len)
{
    struct aq_ibv_filter filter = { .count = 0 };
    const char *end;

    while (isspace((unsigned char)*text))
        text++;
    for (end = text + strlen(text); end > text && isspace((unsigned char)end[-1]); end--)
        continue;
    while (text < end) {
        const char *plus = memchr(text, '+', (size_t)(end - text));
        const char *row_end = plus != NULL ? plus : end;

        if (filter.count == sizeof(filter.rows) / sizeof(filter.rows[0])) {
            snprintf(why, len, "more than %zu devices",
                     sizeof(filter.rows) / sizeof(filter.rows[0]));
            return false;
        }
        if (!aq_ibv_ports_parse_row(text, row_end, &filter.rows[filter.count++], why, len))
            return false;
        if (plus == end - 1) {
            snprintf(why, len, "nothing follows the last +" AQ_IBV_FORM);
            return false;
        }
        text = row_end + 1;
    }
    *filter_out = filter;
    return true;
}

enum aq_ibv_match aq_ibv_ports_match(const struct aq_ibv_filter *filter, const char *device,
                                     unsigned port)
{
    enum aq_ibv_match best = filter->count == 0 ? AQ_IBV_MATCH_DEVICE : AQ_IBV_NO_MATCH;

    for (uint32_t i = 0; i < filter->count; i++) {
        const struct aq_ibv_filter_row *row = &filter->rows[i];

        if (strcmp(row->device, device) != 0)
            continue;
        if (!row->any && (row->ports[port / 64] >> port % 64 & 1) != 0)
            return AQ_IBV_MATCH_PORT;
        if (row->any)
            best = AQ_IBV_MATCH_DEVICE;
    }
    return best;
}
