/*
 * aq_ibv_choose.c - which ports become rails, and which GID is a port's address.
 *
 * Filter    GASNET_IBV_PORTS: rows joined by '+'; a row is device, or device:port[,port...]. Order,
 *           duplicates and devices that are not there do not matter
 * GIDs      a RoCE port has several: for each address of its interfaces one of version 1 and one of
 *           version 2, in an order that differs between hosts. So they are chosen by their kind,
 *           never by index. Version 2 is UDP: it passes routers, and some devices have nothing else
 * Choice    without a filter: the first active port of each device, but only of the best kind:
 *           hardware before software, InfiniBand before Ethernet (the two do not reach each other),
 *           devices close to this process before others, and of those the ports with at least half
 *           the rate of the fastest. With a filter: every port that it lets through. Rails are in
 *           the order of their names, so that rail 0 of two ranks is likely on one network
 * Threads   pure functions
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_choose.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the filter --- */

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

/* --- GIDs --- */

static bool aq_ibv_gid_is_v4(const uint8_t gid[16])
{
    static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

    return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

static bool aq_ibv_gid_is_local(const uint8_t gid[16])
{
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* Larger is better; 0: not usable. */
static int aq_ibv_gid_score(const struct aq_ibv_gid_row *row)
{
    const uint8_t *gid = row->gid.raw;
    const int version = row->type == AQ_IBV_GID_ROCE2 ? 10 : row->type == AQ_IBV_GID_ROCE1 ? 1 : 0;

    if (version == 0)
        return 0;
    if (aq_ibv_gid_is_v4(gid)) /* 127.x reaches no other host; 169.254.x may reach none */
        return version + (gid[12] == 127 ? 0 : gid[12] == 169 && gid[13] == 254 ? 2 : 4);
    return version + (aq_ibv_gid_is_local(gid) ? 1 : 3);
}

int aq_ibv_gid_choose(const struct aq_ibv_gid_row *rows, size_t count, bool ethernet, int64_t pref)
{
    int best = -1, score = 0;

    for (size_t i = 0; i < count; i++) {
        if (pref >= 0) {
            if (rows[i].index == (uint64_t)pref)
                return (int)i;
        } else if (!ethernet) {
            return (int)i; /* the port's own GID; others are for virtual machines */
        } else if (aq_ibv_gid_score(&rows[i]) > score) {
            score = aq_ibv_gid_score(&rows[i]);
            best = (int)i;
        }
    }
    return best;
}

bool aq_ibv_gid_alike(const struct aq_ibv_gid_row *a, const uint8_t b[16], uint32_t b_type)
{
    return a->type == b_type && aq_ibv_gid_is_v4(a->gid.raw) == aq_ibv_gid_is_v4(b);
}

const char *aq_ibv_gid_text(const uint8_t gid[16], char *text, size_t size)
{
    char plain[INET6_ADDRSTRLEN];

    if (aq_ibv_gid_is_v4(gid))
        inet_ntop(AF_INET, gid + 12, plain, sizeof(plain));
    else
        inet_ntop(AF_INET6, gid, plain, sizeof(plain));
    snprintf(text, size, "%s", plain);
    return text;
}

/* --- the choice --- */

/* Does the filter let it through? For MATCH_DEVICE an earlier active port of the device goes before
 * it. */
static bool aq_ibv_choose_passes(const struct aq_ibv_found *found, uint32_t i,
                                 const struct aq_ibv_filter *filter)
{
    const enum aq_ibv_match match = aq_ibv_ports_match(filter, found[i].device, found[i].port);

    if (!found[i].active || !found[i].usable || match == AQ_IBV_NO_MATCH)
        return false;
    for (uint32_t k = 0; match == AQ_IBV_MATCH_DEVICE && k < i; k++)
        if (found[k].active && found[k].usable && strcmp(found[k].device, found[i].device) == 0)
            return false;
    return true;
}

static uint32_t aq_ibv_choose_kind(const struct aq_ibv_found *found)
{
    return (found->software ? 8u : 0u) + (found->ethernet ? 4u : 0u) + found->distance;
}

/* Keep only the best kind; returns how many. */
static uint32_t aq_ibv_choose_best(const struct aq_ibv_found *found, uint32_t *chosen,
                                   uint32_t count)
{
    uint32_t min = UINT32_MAX, fastest = 0, remaining = 0;

    for (uint32_t i = 0; i < count; i++)
        if (aq_ibv_choose_kind(&found[chosen[i]]) < min)
            min = aq_ibv_choose_kind(&found[chosen[i]]);
    for (uint32_t i = 0; i < count; i++)
        if (aq_ibv_choose_kind(&found[chosen[i]]) == min && found[chosen[i]].mbps > fastest)
            fastest = found[chosen[i]].mbps;
    for (uint32_t i = 0; i < count; i++)
        if (aq_ibv_choose_kind(&found[chosen[i]]) == min && found[chosen[i]].mbps >= fastest / 2)
            chosen[remaining++] = chosen[i];
    return remaining;
}

static int aq_ibv_choose_order(const struct aq_ibv_found *a, const struct aq_ibv_found *b)
{
    const int names = strcmp(a->device, b->device);

    return names != 0 ? names : (int)a->port - (int)b->port;
}

uint32_t aq_ibv_choose(const struct aq_ibv_found *found, uint32_t count,
                       const struct aq_ibv_filter *filter, uint32_t max, uint32_t chosen_out[])
{
    uint32_t all[AQ_IBV_FOUND], passed = 0;

    for (uint32_t i = 0; i < count && i < AQ_IBV_FOUND; i++)
        if (aq_ibv_choose_passes(found, i, filter))
            all[passed++] = i;
    if (filter->count == 0)
        passed = aq_ibv_choose_best(found, all, passed);
    for (uint32_t i = 1; i < passed; i++) /* insertion sort: they are few */
        for (uint32_t k = i; k > 0 && aq_ibv_choose_order(&found[all[k]], &found[all[k - 1]]) < 0;
             k--) {
            const uint32_t other = all[k];

            all[k] = all[k - 1];
            all[k - 1] = other;
        }
    passed = passed < max ? passed : max;
    memcpy(chosen_out, all, passed * sizeof(*all));
    return passed;
}

void aq_ibv_choose_why(const struct aq_ibv_found *found, uint32_t count,
                       const struct aq_ibv_filter *filter, char *why, size_t len)
{
    size_t at;

    if (count == 0) {
        snprintf(why, len, "this machine has no InfiniBand or RoCE device (see ibv_devices)");
        return;
    }
    at = (size_t)snprintf(why, len, "%s; there is",
                          filter->count != 0 ? "GASNET_IBV_PORTS lets no usable port through"
                                             : "no port can be used");
    for (uint32_t i = 0; i < count && at < len; i++)
        at += (size_t)snprintf(
            why + at, len - at, "%s %s:%u (%s)", i == 0 ? "" : ",", found[i].device, found[i].port,
            !found[i].active   ? "not active: is its cable, network interface or subnet manager up?"
            : !found[i].usable ? "without an address (GID), or not what the conduit needs"
                               : "usable");
}
