/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_host_address.h - the addresses at which other hosts may reach this one.
 * Owns      nothing
 * Threads   any, but the environment must not change meanwhile
 * Uses      getifaddrs; GASNET_UDP_INTERFACE, GASNET_WORKERIP
 */
#ifndef AQ_HOST_ADDRESS_H
#define AQ_HOST_ADDRESS_H

#include <stdbool.h>
#include <netinet/in.h>

/** aq_host_address_of_v4 - an IPv4 address as an IPv6 socket has it. */
struct in6_addr aq_host_address_of_v4(struct in_addr in);

/** aq_host_address_text - writes an address of either kind; "" if that fails. */
const char *aq_host_address_text(const struct in6_addr *in, char text[INET6_ADDRSTRLEN]);

/**
 * aq_host_addresses - lists the addresses of interfaces that are up, without loopbacks and
 * link-local ones, as an IPv6 socket has them.
 * preferred_out  GASNET_UDP_INTERFACE or GASNET_WORKERIP names one of them, IPv4 first: the list
 *                has that one only
 * Returns how many, at most max.
 */
unsigned aq_host_addresses(struct in6_addr addresses_out[], unsigned max, bool *preferred_out);

#endif
