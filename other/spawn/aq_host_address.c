/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_host_address.c - see aq_host_address.h.
 */
#include "other/spawn/aq_host_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/aq_env.h"

struct in6_addr aq_host_address_of_v4(struct in_addr in)
{
    struct in6_addr address = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

    memcpy(&address.s6_addr[12], &in, sizeof(in));
    return address;
}

const char *aq_host_address_text(const struct in6_addr *in, char text[INET6_ADDRSTRLEN])
{
    const char *done = IN6_IS_ADDR_V4MAPPED(in)
                           ? inet_ntop(AF_INET, &in->s6_addr[12], text, INET6_ADDRSTRLEN)
                           : inet_ntop(AF_INET6, in, text, INET6_ADDRSTRLEN);

    return done != NULL ? done : "";
}

static struct in6_addr aq_host_address_of(const struct ifaddrs *i)
{
    struct in6_addr in;

    if (i->ifa_addr->sa_family == AF_INET)
        return aq_host_address_of_v4(((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr);
    memcpy(&in, &((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr, sizeof(in));
    return in;
}

/* returns true if other hosts can reach this address */
static bool aq_host_address_is_useful(const struct ifaddrs *i)
{
    struct in6_addr in;

    if (i->ifa_addr == NULL || (i->ifa_flags & IFF_UP) == 0 || (i->ifa_flags & IFF_LOOPBACK) != 0)
        return false;
    if (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6)
        return false;
    in = aq_host_address_of(i);
    return !IN6_IS_ADDR_LINKLOCAL(&in);
}

static const uint8_t *aq_host_address_bytes(const struct sockaddr *sa)
{
    return (const uint8_t *)sa
           + (sa->sa_family == AF_INET ? offsetof(struct sockaddr_in, sin_addr)
                                       : offsetof(struct sockaddr_in6, sin6_addr));
}

/* Returns true if the user's preference names this interface, its address, or a network that it is
 * in. An address without "/bits" also stands for the interface's own network, since one setting
 * serves all hosts. */
static bool aq_host_address_is_preferred(const struct ifaddrs *i, const char *pref)
{
    uint8_t address[16];
    char copy[64], *slash;
    unsigned bytes = i->ifa_addr->sa_family == AF_INET ? 4 : 16, bits;

    if (strcmp(pref, i->ifa_name) == 0)
        return true;
    snprintf(copy, sizeof(copy), "%s", pref);
    slash = strchr(copy, '/');
    bits = slash != NULL ? (unsigned)strtoul(slash + 1, NULL, 10) : 0;
    if (slash != NULL)
        *slash = '\0';
    if (inet_pton(i->ifa_addr->sa_family, copy, address) != 1
        || (slash == NULL && i->ifa_netmask == NULL))
        return false;
    for (unsigned at = 0; at < bytes; at++) {
        unsigned own = bits >= 8 * at + 8 ? 0xff
                       : bits > 8 * at    ? 0xff00u >> (bits - 8 * at) & 0xff
                                          : 0;
        unsigned mask = slash != NULL ? own : aq_host_address_bytes(i->ifa_netmask)[at];

        if (((address[at] ^ aq_host_address_bytes(i->ifa_addr)[at]) & mask) != 0)
            return false;
    }
    return true;
}

/* the interface that the user has named for the job's datagrams; NULL: none that exists here */
static const char *aq_host_address_pref(const struct ifaddrs *all)
{
    static const char *const names[] = { "GASNET_UDP_INTERFACE", "GASNET_WORKERIP" };

    for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
        const char *pref = aq_env_get(names[n]);

        if (pref == NULL || *pref == '\0')
            continue;
        for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
            if (aq_host_address_is_useful(i) && aq_host_address_is_preferred(i, pref))
                return pref;
    }
    return NULL;
}

/* The address that the user prefers: the first of IPv4, else the first. */
static struct in6_addr aq_host_address_find(const struct ifaddrs *all, const char *pref)
{
    struct in6_addr first = IN6ADDR_ANY_INIT;

    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        if (!aq_host_address_is_useful(i) || !aq_host_address_is_preferred(i, pref))
            continue;
        if (i->ifa_addr->sa_family == AF_INET)
            return aq_host_address_of(i);
        if (IN6_IS_ADDR_UNSPECIFIED(&first))
            first = aq_host_address_of(i);
    }
    return first;
}

unsigned aq_host_addresses(struct in6_addr addresses_out[], unsigned max, bool *preferred_out)
{
    struct ifaddrs *all = NULL;
    unsigned count = 0;
    const char *pref;

    *preferred_out = false;
    if (getifaddrs(&all) != 0)
        return 0;
    pref = aq_host_address_pref(all);
    if (pref != NULL && max != 0) {
        *preferred_out = true;
        addresses_out[count++] = aq_host_address_find(all, pref);
    }
    for (const struct ifaddrs *i = all; i != NULL && pref == NULL && count < max; i = i->ifa_next)
        if (aq_host_address_is_useful(i))
            addresses_out[count++] = aq_host_address_of(i);
    freeifaddrs(all);
    return count;
}
