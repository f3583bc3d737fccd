/*
 * aq_ibv_choose.c - which ports become rails.
 *
 * Without a filter: the first active port of each device, but only of the best kind there is:
 * hardware before software, InfiniBand before Ethernet (the two do not reach each other), near
 * devices before far ones, and of those with at least half the rate of the fastest. With a filter
 * everything that it lets through; users know. Rails are in the order of their names, so that rail
 * 0 here and rail 0 there are likely on the same network.
 *
 * Threads   pure functions
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "conduits/ibv/aq_ibv_device.h"

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

/* Leaves only the best kind; returns how many. */
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
    for (uint32_t i = 1; i < passed; i++) /* few: by insertion */
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
