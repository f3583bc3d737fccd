/*
 * aq_udp_addr.c - chooses the address of this host that the job's datagrams use.
 *
 * 1. GASNET_UDP_INTERFACE, else GASNET_WORKERIP: an interface, an address of this host, an address
 *    in one of this host's networks, or a network such as 10.0.0.0/24.
 * 2. The loopback, if all ranks are on one host.
 * 3. The address from which GASNET_MASTERIP is reached, if that is set.
 * 4. The first interface that is up, has a route, and is no bridge of a container or virtual
 * machine.
 *
 * Uses      getifaddrs. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "conduits/udp/aq_udp.h"
#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"

/* A parsed preference of the user. */
struct aq_udp_pref {
    const char *text;
    int family; /* 0: the name of an interface */
    uint8_t address[16];
    unsigned bits; /* prefix length of a network */
};

static bool aq_udp_pref_parse(const char *text, struct aq_udp_pref *pref_out)
{
    char buf[64];
    char *slash;
    unsigned max;

    *pref_out = (struct aq_udp_pref){ .text = text };
    if (strlen(text) >= sizeof(buf))
        return false;
    strcpy(buf, text);
    slash = strchr(buf, '/');
    if (slash != NULL)
        *slash = '\0';
    if (inet_pton(AF_INET, buf, pref_out->address) == 1)
        pref_out->family = AF_INET;
    else if (inet_pton(AF_INET6, buf, pref_out->address) == 1)
        pref_out->family = AF_INET6;
    else
        return slash == NULL;
    max = pref_out->family == AF_INET ? 32 : 128;
    if (slash != NULL
        && (slash[1] == '\0' || strlen(slash + 1) > 3
            || strspn(slash + 1, "0123456789") != strlen(slash + 1)))
        return false;
    pref_out->bits = slash != NULL ? (unsigned)strtoul(slash + 1, NULL, 10) : max;
    return pref_out->bits <= max;
}

static const void *aq_udp_address_bytes(const struct sockaddr *address)
{
    const union aq_udp_address *any = (const void *)address;

    return address->sa_family == AF_INET ? (const void *)&any->v4.sin_addr
                                         : (const void *)&any->v6.sin6_addr;
}

static bool aq_udp_same_network(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    const unsigned rest = bits % 8;

    if (memcmp(a, b, bits / 8) != 0)
        return false;
    return rest == 0 || (a[bits / 8] ^ b[bits / 8]) >> (8 - rest) == 0;
}

static bool aq_udp_is_preferred(const struct ifaddrs *at, const struct aq_udp_pref *pref)
{
    if (pref->family == 0)
        return strcmp(at->ifa_name, pref->text) == 0;
    return at->ifa_addr->sa_family == pref->family
           && aq_udp_same_network(pref->address, aq_udp_address_bytes(at->ifa_addr), pref->bits);
}

/* True if the preference is an address in the network of `at`. One setting then serves all
 * hosts. */
static bool aq_udp_is_nearby(const struct ifaddrs *at, const struct aq_udp_pref *pref)
{
    const uint8_t *mask, *own;

    if (pref->family == 0 || at->ifa_addr->sa_family != pref->family || at->ifa_netmask == NULL)
        return false;
    /* some systems leave the mask's family unset */
    at->ifa_netmask->sa_family = at->ifa_addr->sa_family;
    mask = aq_udp_address_bytes(at->ifa_netmask);
    own = aq_udp_address_bytes(at->ifa_addr);
    for (unsigned i = 0; i < (pref->family == AF_INET ? 4u : 16u); i++)
        if (((own[i] ^ pref->address[i]) & mask[i]) != 0)
            return false;
    return (mask[0] & 0x80) != 0; /* a mask shorter than one bit would match everything */
}

/* True if the interface looks like a network between hosts. */
static bool aq_udp_is_usual(const struct ifaddrs *at)
{
    static const char *const not_these[] = { "docker",  "veth", "virbr",  "br-", "cni",
                                             "flannel", "cali", "podman", "lxc", "vmnet",
                                             "tun",     "tap",  "wg" };

    if ((at->ifa_flags & IFF_LOOPBACK) != 0
        || (at->ifa_addr->sa_family == AF_INET6
            && IN6_IS_ADDR_LINKLOCAL(aq_udp_address_bytes(at->ifa_addr))))
        return false;
    for (size_t i = 0; i < sizeof(not_these) / sizeof(not_these[0]); i++)
        if (strncmp(at->ifa_name, not_these[i], strlen(not_these[i])) == 0)
            return false;
    return true;
}

/* Finds the local address from which `name` is reached. */
static bool aq_udp_towards(const char *name, union aq_udp_address *address_out)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
    struct addrinfo *to = NULL;
    socklen_t len = sizeof(*address_out);
    bool found = false;
    int fd;

    if (getaddrinfo(name, "9", &hints, &to) != 0)
        return false;
    fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        found = connect(fd, to->ai_addr, to->ai_addrlen) == 0
                && getsockname(fd, &address_out->any, &len) == 0;
        close(fd);
    }
    freeaddrinfo(to);
    return found;
}

static uint32_t aq_udp_mtu_of(const char *interface, int family)
{
    struct ifreq request;
    const int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    uint32_t mtu = 1280;

    memset(&request, 0, sizeof(request));
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
    if (fd >= 0 && ioctl(fd, SIOCGIFMTU, &request) == 0 && request.ifr_mtu >= 576)
        mtu = (uint32_t)request.ifr_mtu;
    if (fd >= 0)
        close(fd);
    return mtu;
}

static void aq_udp_take_address(const struct ifaddrs *at, union aq_udp_address *address_out,
                                uint32_t *mtu_out)
{
    memset(address_out, 0, sizeof(*address_out));
    memcpy(address_out, at->ifa_addr,
           at->ifa_addr->sa_family == AF_INET ? sizeof(address_out->v4) : sizeof(address_out->v6));
    if (at->ifa_addr->sa_family == AF_INET)
        address_out->v4.sin_port = 0;
    else
        address_out->v6.sin6_port = 0;
    *mtu_out = aq_udp_mtu_of(at->ifa_name, at->ifa_addr->sa_family);
}

/* The first address that matches the preference, or without one the first usual address. */
static bool aq_udp_addr_search(const struct ifaddrs *all, const struct aq_udp_pref *pref,
                               bool loopback, bool nearby, union aq_udp_address *address_out,
                               uint32_t *mtu_out)
{
    for (int family = 0; family < 2; family++) /* IPv4 first */
        for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
            if (at->ifa_addr == NULL || (at->ifa_flags & IFF_UP) == 0
                || at->ifa_addr->sa_family != (family == 0 ? AF_INET : AF_INET6))
                continue;
            if (nearby         ? aq_udp_is_nearby(at, pref)
                : pref != NULL ? aq_udp_is_preferred(at, pref)
                : loopback     ? (at->ifa_flags & IFF_LOOPBACK) != 0
                               : aq_udp_is_usual(at)) {
                aq_udp_take_address(at, address_out, mtu_out);
                return true;
            }
        }
    return false;
}

/* Lists the host's addresses for a message: "lo 127.0.0.1, eth0 10.0.0.2". */
static const char *aq_udp_addr_list(const struct ifaddrs *all, char *buf, size_t size)
{
    size_t used = 0;

    buf[0] = '\0';
    for (const struct ifaddrs *at = all; at != NULL && used < size; at = at->ifa_next) {
        char text[INET6_ADDRSTRLEN];

        if (at->ifa_addr == NULL
            || (at->ifa_addr->sa_family != AF_INET && at->ifa_addr->sa_family != AF_INET6))
            continue;
        inet_ntop(at->ifa_addr->sa_family, aq_udp_address_bytes(at->ifa_addr), text, sizeof(text));
        used += (size_t)snprintf(buf + used, size - used, "%s%s %s", used != 0 ? ", " : "",
                                 at->ifa_name, text);
    }
    return buf;
}

static int aq_udp_addr_named(const struct ifaddrs *all, const char *variable, const char *text,
                             union aq_udp_address *address_out, uint32_t *mtu_out)
{
    struct aq_udp_pref pref;
    char list[512];

    if (!aq_udp_pref_parse(text, &pref))
        return aq_fail(AQ_ERR_ARG,
                       "%s='%s' is neither an interface nor an address nor a network; write for "
                       "example eth0, 10.0.0.2 or 10.0.0.0/24",
                       variable, text);
    if (aq_udp_addr_search(all, &pref, false, false, address_out, mtu_out)
        || (strchr(text, '/') == NULL
            && aq_udp_addr_search(all, &pref, false, true, address_out, mtu_out)))
        return AQ_OK;
    return aq_fail(AQ_ERR_ARG, "%s='%s' fits no interface of this host that is up; it has: %s",
                   variable, text, aq_udp_addr_list(all, list, sizeof(list)));
}

/* The address on the route to GASNET_MASTERIP. */
static bool aq_udp_addr_by_master(const struct ifaddrs *all, union aq_udp_address *address_out,
                                  uint32_t *mtu_out)
{
    const char *master = aq_env_get("GASNET_MASTERIP");
    union aq_udp_address self;
    struct aq_udp_pref pref;

    if (master == NULL || *master == '\0' || !aq_udp_towards(master, &self))
        return false;
    pref = (struct aq_udp_pref){ .text = master,
                                 .family = self.any.sa_family,
                                 .bits = self.any.sa_family == AF_INET ? 32 : 128 };
    memcpy(pref.address, aq_udp_address_bytes(&self.any), pref.bits / 8);
    return aq_udp_addr_search(all, &pref, false, false, address_out, mtu_out)
           && !(address_out->any.sa_family == AF_INET
                && (ntohl(address_out->v4.sin_addr.s_addr) >> 24) == 127);
}

static int aq_udp_addr_choose_from(const struct ifaddrs *all, union aq_udp_address *address_out,
                                   uint32_t *mtu_out)
{
    const char *interface = aq_env_str(AQ_ENV_UDP_INTERFACE), *worker = aq_env_str(AQ_ENV_WORKERIP);
    char list[512];

    if (interface != NULL && *interface != '\0')
        return aq_udp_addr_named(all, "GASNET_UDP_INTERFACE", interface, address_out, mtu_out);
    if (worker != NULL && *worker != '\0')
        return aq_udp_addr_named(all, "GASNET_WORKERIP", worker, address_out, mtu_out);
    if (aq_job.host_count == 1 && aq_udp_addr_search(all, NULL, true, false, address_out, mtu_out))
        return AQ_OK;
    if (aq_udp_addr_by_master(all, address_out, mtu_out)
        || aq_udp_addr_search(all, NULL, false, false, address_out, mtu_out))
        return AQ_OK;
    return aq_fail(AQ_ERR_SYS,
                   "udp: no interface of this host leads to others; it has: %s; name one with "
                   "GASNET_UDP_INTERFACE, for example GASNET_UDP_INTERFACE=eth0",
                   aq_udp_addr_list(all, list, sizeof(list)));
}

int aq_udp_addr_choose(union aq_udp_address *address_out, uint32_t *mtu_out)
{
    struct ifaddrs *all;
    int rc;

    if (getifaddrs(&all) != 0)
        return aq_fail(AQ_ERR_SYS, "udp: the interfaces of this host cannot be listed: %s",
                       strerror(errno));
    rc = aq_udp_addr_choose_from(all, address_out, mtu_out);
    freeifaddrs(all);
    return rc;
}
