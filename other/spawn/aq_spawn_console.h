/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_console.h - programs that start their own ranks: ./prog N arguments.
 * Owns      what GASNET_SPAWNFN means for a program that no launcher has started
 * Threads   one, at start
 * Promise   the client sees its arguments without N; without an N it is told how to be started
 * Uses      aq_spawn_provider.h, base/aq_env.h
 * See       docs/launching.md
 */
#ifndef AQ_SPAWN_CONSOLE_H
#define AQ_SPAWN_CONSOLE_H

#include "base/aq_conduit_info.h"
#include "other/spawn/aq_spawn_provider.h"

/**
 * aq_spawn_console - the number of ranks is the first argument: start them.
 * conduit     one whose programs start themselves
 * argc, argv  the client's, may be NULL
 * SPAWNFN=L forks them here: returns in each rank, AQ_OK or negative. Otherwise this process
 * becomes the conduit's launcher. Ends the process with 255 if there is no number, with 1 if it is
 * not a good one.
 */
int aq_spawn_console(struct aq_spawn_state *st, const struct aq_conduit_info *conduit, int *argc,
                     char ***argv);

#endif
