/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_smp_info.c - what the smp conduit says about itself.
 */
#include "base/aq_conduit_info.h"

extern const struct aq_conduit_info aq_smp_info;
const struct aq_conduit_info aq_smp_info = {
    .name = "smp",
    .about = "ranks of one host, through shared memory",
    .one_host = true,
    .names_spawners = true,
};
