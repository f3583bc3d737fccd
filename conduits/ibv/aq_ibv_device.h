/*
 * aq_ibv_device.h - devices and rails: what a process has opened of its RDMA hardware.
 *
 * A rail is a port in use. Rank i's rail r is connected with every other rank's rail r. A device
 * has one protection domain; memory keys belong to a device, so two ports of one device share keys.
 *
 * Owns      contexts, protection domains, completion channels, completion queues and shared receive
 *           queues, until aq_ibv_net_close()
 * Threads   opening: start-up's thread only; the struct is constant afterwards, except for the
 *           fields that name a lock or a writer
 * Uses      aq_ibv_lib.h, aq_ibv_choose.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_DEVICE_H
#define AQ_IBV_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/aq_lock.h"
#include "conduits/ibv/aq_ibv_lib.h"

#define AQ_IBV_RAILS 4u    /* ports that a process uses, at most */
#define AQ_IBV_BUF   8192u /* bytes of a message's buffer: send, receive */

struct aq_ibv_dev {
    const struct aq_ibv_lib *lib;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *comp_channel; /* of all completion queues of the device */
    struct ibv_device_attr attr;
    const char *name;
    uint32_t index;
    bool software; /* rxe, siw: the cores of this host do the device's work */
};

struct aq_ibv_rail {
    uint32_t index;
    struct aq_ibv_dev *dev;
    uint8_t port;
    bool ethernet;    /* RoCE: addressed by GID only */
    atomic_bool down; /* state of the port in the device's last event */
    uint64_t down_ns; /* time of that event; the connector's */
    uint16_t lid;
    uint16_t pkey_index;
    uint16_t pkey;
    uint8_t sl;
    enum ibv_mtu mtu;
    struct aq_ibv_gid_row gid;

    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    uint32_t srq_space;  /* capacity of srq, and of recv_cq */
    uint32_t send_space; /* capacity of send_cq */
    /* signalled requests whose completions may still arrive in send_cq: at most send_space */
    aq_counter send_claimed;
    _Alignas(AQ_CACHE_LINE) aq_lock reap_lock; /* of polling send_cq */
    _Alignas(AQ_CACHE_LINE) aq_lock recv_lock; /* of polling recv_cq */
    atomic_uint excess; /* buffers in srq whose credits a sender gave up; under excess_lock */
    aq_lock excess_lock;
};

struct aq_ibv_net {
    const struct aq_ibv_lib *lib;
    bool software; /* at least one device is a software device */
    uint32_t dev_count, rail_count;
    struct aq_ibv_dev devs[AQ_IBV_RAILS];
    struct aq_ibv_rail rails[AQ_IBV_RAILS];
};

/* Load the verbs module, once. AQ_OK, or negative and the reason in why[len]. */
int aq_ibv_load(const struct aq_ibv_lib **lib_out, char *why, size_t len);
/* Table entry: does this machine have a device with an active port? */
int aq_ibv_probe(char *why, size_t len);
/* Choose ports, open their devices, create the queues of each rail. net->lib is set.
 * srq_demand    receive buffers that this rank may post for all peers together
 * AQ_OK, or negative and logged. */
int aq_ibv_net_open(struct aq_ibv_net *net, uint64_t srq_demand);
/* Destroy the queues and close the devices; no queue pair and no registration is left. */
void aq_ibv_net_close(struct aq_ibv_net *net);

#endif
