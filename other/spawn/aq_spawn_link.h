/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_link.h - how the hosts of a job that another launcher has started agree on its end.
 * Owns      one UDP socket for each host, shared by the host's ranks, and one page with the
 *           neighbours' notes. Hosts form a tree: host h exchanges datagrams with its parent
 *           (h - 1) / 32 and with at most 32 children
 * Threads   one process of a host at a time, the owner: the monitor thread of the first rank, or of
 *           another rank that took over when the first ended. aq_link_is_done() and the like: any
 * Wire      one datagram of fixed size: everything that the sender knows, the version of that, and
 *           the version that it has received from the receiver. Knowledge only grows, so a datagram
 *           may be lost, duplicated or late; an unconfirmed one is retransmitted. It ends in a
 *           keyed hash
 * Promise   up the tree go: the shutdown has begun, its code, this subtree has ended. Down go: the
 *           code is settled, ask the remaining ranks (aq_shutdown_agreed()), the whole job has
 *           ended. A neighbour whose processes have all ended is noticed within about a second,
 *           because its host's kernel then refuses datagrams; a refusal counts if it quotes one of
 *           the last datagrams. A neighbour that was heard before and is then silent for
 *           GASNET_HOST_TIMEOUT (unplugged, no power, or its owner is stopped by a debugger) is
 *           lost too; neighbours send four times as often, at least every second
 * Uses      aq_shutdown.h; sockets. All hosts must have one byte order
 */
#ifndef AQ_SPAWN_LINK_H
#define AQ_SPAWN_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "other/spawn/aq_shutdown.h"
#include "other/spawn/aq_spawn.h"

#define AQ_LINK_ADDR_MAX 480 /* bytes of text that describes a host's socket, NUL included */

/**
 * aq_link_create - called by the host's first rank: makes what the others will share.
 * addr_out  what other hosts need to send to this one: a name and addresses
 * fds_out   the socket and the page, close-on-exec, for aq_link_attach()
 * Returns AQ_OK or negative, logged.
 */
int aq_link_create(char addr_out[AQ_LINK_ADDR_MAX], int fds_out[2]);

/** aq_link_attach - called by every rank of the host, once its place in the job is known. Keeps
 * fds[0], closes fds[1]. */
int aq_link_attach(const int fds[2], const struct aq_spawn_info *info, const uint8_t job_key[32]);

/** aq_link_disconnect - all ranks have come to the end of the job, and other hosts may be the first
 * to free their links: a neighbour that does not answer is no loss any more. Any thread. */
void aq_link_disconnect(void);

/** aq_link_fini - the job has ended on all hosts, and no monitor runs: frees both. */
void aq_link_fini(void);

/** aq_link_parent - the host whose address aq_link_set_parent() needs; UINT32_MAX on the first
 * host. */
uint32_t aq_link_parent(const struct aq_spawn_info *info);

/** aq_link_set_parent - called by the host's first rank after attaching; false if the address is
 * invalid. */
bool aq_link_set_parent(const char *address);

/** aq_link_own - makes this process the owner if no living process is. Returns true if it is the
 * owner. */
bool aq_link_own(void);

/** aq_link_fd - the socket, for poll(); only the owner reads it. -1 if there is no link. */
int aq_link_fd(void);

/**
 * aq_link_step - the owner receives notes and sends changed ones; shutdown is that of its host.
 * ended  all ranks of this host have come to their end
 * Returns milliseconds until the next step.
 */
int aq_link_step(struct aq_shutdown *shutdown, bool ended);

/** aq_link_is_whole - all hosts have received from each other, so that aq_link_is_done() will
 * become true. */
bool aq_link_is_whole(void);

/** aq_link_is_done - all ranks on all hosts have come to their end. */
bool aq_link_is_done(void);

/** aq_link_has_silent - a neighbour was lost by its silence: its launcher may not know that. */
bool aq_link_has_silent(void);

/** aq_link_is_settled - this host's children know that too: no host needs this one any more. */
bool aq_link_is_settled(void);

/** aq_link_wait_whole - sleeps until aq_link_is_whole(), at most timeout_ms. */
void aq_link_wait_whole(int timeout_ms);

/** aq_link_wait_done - sleeps until aq_link_is_done(), at most timeout_ms. */
void aq_link_wait_done(int timeout_ms);

#endif
