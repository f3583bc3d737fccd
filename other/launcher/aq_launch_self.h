/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_launch_self.h - programs that start themselves: amudprun's command line, and the spawn
 * function (GASNET_SPAWNFN).
 * Threads   one
 * Promise   a variable in any of its three spellings is GASNET_X in the environment afterwards
 */
#ifndef AQ_LAUNCH_SELF_H
#define AQ_LAUNCH_SELF_H

#ifdef HAVE_CONFIG_H
#include "aq_config.h"
#endif

#include "other/launcher/aq_launch.h"

#define AQ_WORKER_WORD "--worker" /* gasnetrun --worker FILE: the command %C */
#define AQ_TUNNEL_WORD "--tunnel" /* gasnetrun --tunnel FD HOST COMMAND: takes ssh's place */

/** aq_amudprun_is - returns true if this program was called as amudprun. */
bool aq_amudprun_is(const struct aq_launch *lo);

/** aq_amudprun_parse - fills in lo from amudprun's options. Returns the index of the program's
 * word. */
int aq_amudprun_parse(struct aq_launch *lo, int argc, char **argv);

/** aq_launch_self_names - sets GASNET_X to the value of AMUDP_X or X where only those are set. */
void aq_launch_self_names(void);

/**
 * aq_launch_self_spawner - the spawner that GASNET_SPAWNFN selects. Unset: ssh for amudprun; for
 * gasnetrun ssh if the user names hosts or asks for several, else this host.
 */
enum aq_spawner aq_launch_self_spawner(const struct aq_launch *lo);

/**
 * aq_launch_custom - SPAWNFN=C: have CSPAWN_CMD start the workers, and run the job on them.
 * Returns the job's exit code
 */
int aq_launch_custom(struct aq_launch *lo);

/** aq_worker_main - the command %C: --worker FILE. */
int aq_worker_main(const char *file);

/** aq_tunnel_main - relays between an agent's link and its worker's connection: --tunnel FD HOST
 * ... */
int aq_tunnel_main(int argc, char **argv);

#endif
