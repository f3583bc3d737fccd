/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_udp_info.c - what the udp conduit says about itself.
 */
#include "base/aq_conduit_info.h"

extern const struct aq_conduit_info aq_udp_info;
const struct aq_conduit_info aq_udp_info = {
    .name = "udp",
    .about = "any Ethernet: reliable messages over UDP",
    .starts_itself = true,
    .command = "amudprun",
};
