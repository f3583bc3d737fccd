/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_link.h - how the hosts of a job that another launcher has started tell each other of its
 * end.
 * Owns      one UDP socket a host, shared by the host's ranks, and one page of what neighbours have
 *           said. Hosts form a tree: host h talks to its parent (h - 1) / 32 and to at most 32
 *           children
 * Threads   one process a host at a time, its owner: the monitor thread of the first rank, or of
 *           another that took over when the first was gone. aq_link_is_done() and friends from
 *           anywhere
 * Wire      one datagram of fixed size: all that the sender knows, a version of it and the version
 *           that it has from the receiver. What is said only grows, so that a datagram may be lost,
 *           doubled or come late; one that was not confirmed is sent again. A keyed hash is at its
 *           end
 * Promise   up the tree goes: the end has begun, with which code, my part of the tree has ended;
 *           down goes: the code is settled, ask who is left (aq_shutdown_agreed()), the whole job
 *           has ended. A neighbour whose processes are all gone is noticed within about a second,
 *           because the kernel of its host refuses datagrams then; a refusal counts if it quotes
 *           one of our last. One that was heard before and then is silent for GASNET_HOST_TIMEOUT
 *           (unplugged, no power; or a debugger has stopped the rank that speaks for it) is lost,
 *           too; neighbours speak four times as often, at least every second
 * Uses      aq_shutdown.h; sockets. Hosts must be of one byte order
 */
#ifndef AQ_SPAWN_LINK_H
#define AQ_SPAWN_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "other/spawn/aq_shutdown.h"
#include "other/spawn/aq_spawn.h"

#define AQ_LINK_ADDR_MAX 480 /* bytes of text that name a host's socket, NUL included */

/**
 * aq_link_create - the host's first rank makes what the others will share.
 * addr_out  what other hosts need to send here: a name and addresses
 * fds_out   the socket and the page, close-on-exec, for aq_link_attach()
 * Returns AQ_OK or negative, logged.
 */
int aq_link_create(char addr_out[AQ_LINK_ADDR_MAX], int fds_out[2]);

/** aq_link_attach - every rank of the host, once it knows where it is. Keeps fds[0], closes fds[1].
 * */
int aq_link_attach(const int fds[2], const struct aq_spawn_info *info, const uint8_t job_key[32]);

/** aq_link_fini - the job has ended on all hosts, and no monitor runs: give both back. */
void aq_link_fini(void);

/** aq_link_parent - the host whose address aq_link_set_parent() wants; UINT32_MAX on the first
 * host.
 * */
uint32_t aq_link_parent(const struct aq_spawn_info *info);

/** aq_link_set_parent - by the host's first rank after attaching; false if the address makes no
 * sense.
 * */
bool aq_link_set_parent(const char *address);

/** aq_link_own - be the one that speaks for this host, if nobody alive is: true if we are. */
bool aq_link_own(void);

/** aq_link_fd - the socket, for poll(); read by the owner only. -1 if there is no link. */
int aq_link_fd(void);

/**
 * aq_link_step - the owner hears and says what is new; e is its host's end.
 * ended  all ranks of this host have come to their end
 * Returns milliseconds until the next step.
 */
int aq_link_step(struct aq_shutdown *e, bool ended);

/** aq_link_is_whole - all hosts have heard of each other, so that aq_link_is_done() will become
 * true. */
bool aq_link_is_whole(void);

/** aq_link_is_done - all ranks on all hosts have come to their end. */
bool aq_link_is_done(void);

/** aq_link_has_silent - a neighbour was lost by its silence: its launcher may not know that. */
bool aq_link_has_silent(void);

/** aq_link_is_settled - this host's children know that, too: nobody needs us any more. */
bool aq_link_is_settled(void);

/** aq_link_wait_whole - sleep until aq_link_is_whole(), at most so long. */
void aq_link_wait_whole(int timeout_ms);

/** aq_link_wait_done - sleep until aq_link_is_done(), at most so long. */
void aq_link_wait_done(int timeout_ms);

#endif
