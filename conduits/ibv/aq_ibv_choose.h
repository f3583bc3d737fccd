/*
 * aq_ibv_choose.h - which ports and GIDs to use, and where devices are.
 *
 * aq_ibv_choose.c has pure functions over what was found; aq_ibv_numa.c and aq_ibv_hwloc.c look at
 * the machine.
 *
 * Threads   start-up's thread only
 * Uses      aq_ibv_lib.h for the rows of GIDs, base/aq_env.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_CHOOSE_H
#define AQ_IBV_CHOOSE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conduits/ibv/aq_ibv_lib.h"
#include "base/aq_env.h"

#define AQ_IBV_FOUND 64u /* ports that are looked at */
#define AQ_IBV_NAME  64u /* bytes of a device's name */

/* --- the filter GASNET_IBV_PORTS --- */

struct aq_ibv_filter_row {
    char device[AQ_IBV_NAME];
    uint64_t ports[4]; /* bit p: port p; all of them: any */
    bool any;          /* the first that is active */
};

struct aq_ibv_filter {
    uint32_t count; /* 0: no filter, everything passes */
    struct aq_ibv_filter_row rows[16];
};

/* "mlx5_0+mlx5_1:2,3"; false: why[len] says what is wrong with it. */
bool aq_ibv_ports_parse(const char *text, struct aq_ibv_filter *filter_out, char *why, size_t len);

enum aq_ibv_match { AQ_IBV_NO_MATCH, AQ_IBV_MATCH_DEVICE, AQ_IBV_MATCH_PORT };
/* MATCH_DEVICE: its first active port; MATCH_PORT: this one. Without a filter MATCH_DEVICE. */
enum aq_ibv_match aq_ibv_ports_match(const struct aq_ibv_filter *filter, const char *device,
                                     unsigned port);

/* --- GIDs --- */

/* The row to use, or -1. On Ethernet: RoCE v2 before v1, and IPv4 addresses before IPv6 addresses
 * before link-local ones, since the former are routed and known to differ between hosts. On
 * InfiniBand: the first row of the port. pref: the index that the user names, or -1. */
int aq_ibv_gid_choose(const struct aq_ibv_gid_row *rows, size_t count, bool ethernet, int64_t pref);
/* Can the one reach the other: the same kind of RoCE, the same family of addresses? */
bool aq_ibv_gid_alike(const struct aq_ibv_gid_row *a, const uint8_t b[16], uint32_t b_type);
/* "::ffff:10.0.0.2"; returns text. */
const char *aq_ibv_gid_text(const uint8_t gid[16], char *text, size_t size);

/* --- the choice --- */

struct aq_ibv_found {
    char device[AQ_IBV_NAME];
    uint32_t device_index; /* in the list of the library */
    uint8_t port;
    bool active, ethernet, software;
    bool usable; /* has a GID, and what the conduit needs */
    uint32_t mbps;
    uint32_t distance; /* from this process's cores: 0 local, 1 unknown, 2 remote */
};

/* The chosen ports, as indices of found, in the order of their names; returns how many, at most
 * max. */
uint32_t aq_ibv_choose(const struct aq_ibv_found *found, uint32_t count,
                       const struct aq_ibv_filter *filter, uint32_t max, uint32_t chosen_out[]);
/* Why there are none: for the message. */
void aq_ibv_choose_why(const struct aq_ibv_found *found, uint32_t count,
                       const struct aq_ibv_filter *filter, char *why, size_t len);

/* --- where things are (aq_ibv_numa.c) --- */

/* Distance of a device by hwloc (aq_ibv_hwloc.c): 0 at some of this process's cores, 1 in the same
 * package, 2 elsewhere. False: there is no hwloc, or it does not know the device. */
bool aq_ibv_hwloc_distance(const char *device, const cpu_set_t *own, uint32_t *distance_out);
/* Free what hwloc has loaded. */
void aq_ibv_hwloc_end(void);
/* Distance of a device from the cores that this process may use: by hwloc, else by /sys. */
uint32_t aq_ibv_numa_distance(const char *device);
/* Is there no hardware behind the device? */
bool aq_ibv_numa_is_software(const char *device);
/* A setting that depends on the place of the process: the variable base_<number> before base, where
 * how says which number; NULL: none. */
const char *aq_ibv_numa_setting(enum aq_env_id base, enum aq_env_id how);
/* The numbers that a type ("Socket", "HRank%4", "JRank/2") gives this process, as in "0_1"; "":
 * none. False: there is no such type. */
bool aq_ibv_numa_numbers(const char *type, char *text, size_t size);

#endif
