/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_ibv_info.c - what the ibv conduit says about itself.
 */
#include "base/aq_conduit_info.h"

extern const struct aq_conduit_info aq_ibv_info;
const struct aq_conduit_info aq_ibv_info = {
    .name = "ibv",
    .about = "InfiniBand and RoCE: RDMA",
    .names_spawners = true,
};
