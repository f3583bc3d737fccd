/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_loop_info.c - the description of the loop conduit, for core, launcher and aq-info.
 */
#include "base/aq_conduit_info.h"

extern const struct aq_conduit_info aq_loop_info;
const struct aq_conduit_info aq_loop_info = {
    .name = "loop",
    .about = "ranks of one host, through Unix sockets: the template of a conduit",
    .one_host = true,
    .names_spawners = true,
};
