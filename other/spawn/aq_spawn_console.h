/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_console.h - programs that start their own ranks: ./prog N arguments.
 * Owns      the meaning of GASNET_SPAWNFN for a program that no launcher has started
 * Threads   one, at start
 * Promise   the client sees its arguments without N; without an N the program prints how to start
 *           it
 * Uses      aq_spawn_provider.h, base/aq_env.h
 * See       docs/launching.md
 */
#ifndef AQ_SPAWN_CONSOLE_H
#define AQ_SPAWN_CONSOLE_H

#include "base/aq_conduit_info.h"
#include "other/spawn/aq_spawn_provider.h"

/**
 * aq_spawn_console - start as many ranks as the first argument says.
 * conduit     one whose programs start themselves
 * argc, argv  of the client, may be NULL SPAWNFN=L forks the ranks: returns in each rank, AQ_OK or
 * negative. Otherwise this process becomes the conduit's launcher. Ends the process with 255 if
 * there is no number, with 1 if it is invalid.
 */
int aq_spawn_console(struct aq_spawn_state *st, const struct aq_conduit_info *conduit, int *argc,
                     char ***argv);

/** aq_spawn_console_is_asked - returns true if the first argument is a number of ranks and the
 * environment names a spawn function: aq_spawn_console() is meant, whatever GASNET_PSHM_NODES
 * says. */
bool aq_spawn_console_is_asked(const struct aq_conduit_info *conduit, const int *argc,
                               char ***argv);

#endif
