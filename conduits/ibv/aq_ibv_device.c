/*
 * aq_ibv_device.c - loads the verbs library, opens the devices whose ports were chosen, and creates
 * the queues of each rail; see aq_ibv_device.h.
 *
 * Threads   start-up's thread only
 * Uses      aq_ibv_choose.h, base/aq_module.h, /sys. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_module.h"
#include "base/aq_rc.h"
#include "conduits/ibv/aq_ibv_choose.h"
#include "core/aq_job.h"

#define AQ_IBV_GID_ROWS 256
#define AQ_IBV_SEND_CQ  8192u  /* completions of a rail that may be due at the same time */
#define AQ_IBV_SRQ_MAX  32768u /* buffers of a rail's shared receive queue */

/* --- the library --- */

int aq_ibv_load(const struct aq_ibv_lib **lib_out, char *why, size_t len)
{
    static const struct aq_ibv_lib *loaded;
    const struct aq_ibv_lib *lib = loaded;

    if (lib == NULL)
        lib = aq_module_open("ibv", why, len);
    if (lib == NULL)
        return AQ_ERR_RESOURCE;
    if (lib->version != AQ_IBV_LIB_VERSION) {
        snprintf(why, len, "its module is of another release (%u, this is %u)", lib->version,
                 AQ_IBV_LIB_VERSION);
        return AQ_ERR_RESOURCE;
    }
    *lib_out = loaded = lib;
    return AQ_OK;
}

/* The file says "4: ACTIVE". */
static bool aq_ibv_probe_port(const char *device, const char *port)
{
    char path[512], text[64] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%.200s/ports/%.200s/state", device, port);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    if (fgets(text, sizeof(text), file) == NULL)
        text[0] = '\0';
    fclose(file);
    return strstr(text, "ACTIVE") != NULL;
}

static bool aq_ibv_probe_device(const char *device)
{
    char path[512];
    bool active = false;
    DIR *ports;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%.200s/ports", device);
    ports = opendir(path);
    if (ports == NULL)
        return true; /* it says nothing about ports */
    for (struct dirent *port = readdir(ports); port != NULL && !active; port = readdir(ports))
        active = port->d_name[0] != '.' && aq_ibv_probe_port(device, port->d_name);
    closedir(ports);
    return active;
}

int aq_ibv_probe(char *why, size_t len)
{
    const struct aq_ibv_lib *lib;
    int rc = aq_ibv_load(&lib, why, len), count = 0, active = 0;
    struct ibv_device **devices;

    if (rc != AQ_OK)
        return rc;
    devices = lib->get_device_list(&count);
    for (int i = 0; devices != NULL && i < count; i++)
        active += aq_ibv_probe_device(devices[i]->name);
    if (devices != NULL)
        lib->free_device_list(devices);
    if (count == 0)
        snprintf(why, len,
                 "there is no device: this machine has no InfiniBand or RoCE adapter, or no driver "
                 "for it is "
                 "loaded (see ibv_devices)");
    else if (active == 0)
        snprintf(why, len,
                 "no device has an active port: look at cables, network interfaces and the subnet "
                 "manager "
                 "(see ibv_devinfo)");
    return active != 0 ? AQ_OK : AQ_ERR_RESOURCE;
}

struct aq_ibv_search {
    struct aq_ibv_net *net;
    uint64_t srq_demand;
    struct ibv_device **devices;
    struct ibv_context *contexts[AQ_IBV_FOUND]; /* by index in devices */
    int device_count;
    struct aq_ibv_found found[AQ_IBV_FOUND];
    struct aq_ibv_gid_row gids[AQ_IBV_FOUND];
    struct ibv_port_attr ports[AQ_IBV_FOUND];
    uint32_t count;
};

/* --- search --- */

static uint32_t aq_ibv_device_mbps(const struct ibv_port_attr *port)
{
    static const uint32_t widths[][2] = { { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 } };
    static const uint32_t speeds[][2] = { { 1, 2500 },   { 2, 5000 },    { 4, 10000 },
                                          { 8, 10000 },  { 16, 14000 },  { 32, 25000 },
                                          { 64, 50000 }, { 128, 100000 } };
    uint32_t width = 1, speed = 2500;

    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
        if (widths[i][0] == port->active_width)
            width = widths[i][1];
    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
        if (speeds[i][0] == port->active_speed)
            speed = speeds[i][1];
    return width * speed;
}

/* The address of a port: the row to use. */
static bool aq_ibv_device_gid(const struct aq_ibv_lib *lib, struct ibv_context *context,
                              uint8_t number, const struct ibv_port_attr *port,
                              struct aq_ibv_gid_row *gid_out)
{
    struct aq_ibv_gid_row rows[AQ_IBV_GID_ROWS];
    const bool ethernet = port->link_layer == IBV_LINK_LAYER_ETHERNET;
    const int64_t pref =
        aq_env_is_set(AQ_ENV_IBV_GID_INDEX) ? aq_env_int(AQ_ENV_IBV_GID_INDEX) : -1;
    const int count = lib->query_gids(context, number, port->gid_tbl_len, rows, AQ_IBV_GID_ROWS);
    const int best = count > 0 ? aq_ibv_gid_choose(rows, (size_t)count, ethernet, pref) : -1;

    if (best < 0)
        return false;
    *gid_out = rows[best];
    return true;
}

static void aq_ibv_device_find_port(struct aq_ibv_search *search, int device, uint8_t number,
                                    const struct ibv_device_attr *attr)
{
    struct ibv_context *context = search->contexts[device];
    struct aq_ibv_found *found = &search->found[search->count];
    struct ibv_port_attr *port = &search->ports[search->count];

    memset(found, 0, sizeof(*found));
    memset(port, 0, sizeof(*port));
    if (search->net->lib->query_port(context, number, port) != 0)
        return;
    snprintf(found->device, sizeof(found->device), "%s", search->devices[device]->name);
    found->device_index = (uint32_t)device;
    found->port = number;
    found->active = port->state == IBV_PORT_ACTIVE;
    found->ethernet = port->link_layer == IBV_LINK_LAYER_ETHERNET;
    found->software = aq_ibv_numa_is_software(found->device);
    found->usable =
        attr->max_srq > 0 && search->devices[device]->transport_type == IBV_TRANSPORT_IB
        && aq_ibv_device_gid(search->net->lib, context, number, port, &search->gids[search->count]);
    found->mbps = aq_ibv_device_mbps(port);
    found->distance = found->software             ? 1
                      : search->device_count == 1 ? 0 /* there is nothing to choose */
                                                  : aq_ibv_numa_distance(found->device);
    search->count++;
}

static void aq_ibv_device_find(struct aq_ibv_search *search)
{
    const struct aq_ibv_lib *lib = search->net->lib;

    for (int i = 0; i < search->device_count && i < (int)AQ_IBV_FOUND; i++) {
        struct ibv_device_attr attr;

        search->contexts[i] = lib->open_device(search->devices[i]);
        if (search->contexts[i] == NULL || lib->query_device(search->contexts[i], &attr) != 0) {
            AQ_LOG(INFO, IBV, "device %s cannot be opened: %s", search->devices[i]->name,
                   strerror(errno));
            continue;
        }
        for (unsigned port = 1; port <= attr.phys_port_cnt && search->count < AQ_IBV_FOUND; port++)
            aq_ibv_device_find_port(search, i, (uint8_t)port, &attr);
    }
    aq_ibv_hwloc_end();
}

static void aq_ibv_device_list(const struct aq_ibv_search *search, const uint32_t *chosen,
                               uint32_t count)
{
    char gid[64];

    if (!aq_env_bool(AQ_ENV_IBV_LIST_PORTS)
        || !aq_env_rank_listed(AQ_ENV_IBV_LIST_PORTS_NODES, aq_job.rank))
        return;
    for (uint32_t i = 0; i < search->count; i++) {
        const struct aq_ibv_found *found = &search->found[i];
        bool in_use = false;

        for (uint32_t k = 0; k < count; k++)
            in_use = in_use || chosen[k] == i;
        aq_log_print("ibv: rank %u: %s:%u %s, %s, %u Mb/s, %s, address %s%s\n", aq_job.rank,
                     found->device, found->port, found->ethernet ? "Ethernet" : "InfiniBand",
                     found->active ? "active" : "not active", found->mbps,
                     found->software        ? "software"
                     : found->distance == 0 ? "close"
                                            : "not close",
                     found->usable ? aq_ibv_gid_text(search->gids[i].gid.raw, gid, sizeof(gid))
                                   : "none",
                     in_use ? ", in use" : "");
    }
}

/* --- devices and rails --- */

static int aq_ibv_dev_open(struct aq_ibv_dev *dev, struct ibv_context *context,
                           const struct aq_ibv_found *found)
{
    dev->context = context;
    dev->name = strdup(found->device);
    dev->software = found->software;
    dev->pd = dev->lib->alloc_pd(context);
    dev->comp_channel = dev->lib->create_comp_channel(context);
    if (dev->name == NULL || dev->pd == NULL || dev->comp_channel == NULL
        || dev->lib->query_device(context, &dev->attr) != 0)
        return aq_fail(AQ_ERR_SYS, "ibv: device %s gives no protection domain or channel: %s",
                       found->device, strerror(errno));
    if (fcntl(dev->comp_channel->fd, F_SETFL, O_NONBLOCK) != 0
        || fcntl(context->async_fd, F_SETFL, O_NONBLOCK) != 0)
        return aq_fail(AQ_ERR_SYS, "ibv: device %s: fcntl: %s", found->device, strerror(errno));
    return AQ_OK;
}

/* The device of a port that was found; opened if it is not yet. */
static int aq_ibv_dev_get(struct aq_ibv_search *search, const struct aq_ibv_found *found,
                          struct aq_ibv_dev **dev_out)
{
    struct aq_ibv_net *net = search->net;
    struct aq_ibv_dev *dev;

    for (uint32_t i = 0; i < net->dev_count; i++)
        if (strcmp(net->devs[i].name, found->device) == 0) {
            *dev_out = &net->devs[i];
            return AQ_OK;
        }
    dev = &net->devs[net->dev_count];
    dev->lib = net->lib;
    dev->index = net->dev_count;
    *dev_out = dev;
    if (aq_ibv_dev_open(dev, search->contexts[found->device_index], found) != AQ_OK)
        return AQ_ERR_SYS;
    search->contexts[found->device_index] = NULL; /* net owns it now */
    net->dev_count++;
    net->software = net->software || dev->software;
    return AQ_OK;
}

/* The index of the partition in the port's table. */
static int aq_ibv_rail_pkey(struct aq_ibv_rail *rail, uint32_t table_len)
{
    const char *text = aq_env_str(AQ_ENV_IBV_PKEY);
    char *end = NULL;
    const unsigned long pref = text != NULL && *text != '\0' ? strtoul(text, &end, 16) : 0;

    if (end != NULL && (*end != '\0' || pref > 0xffff))
        return aq_fail(
            AQ_ERR_ARG,
            "GASNET_IBV_PKEY is '%s', which is no partition; it must be a hexadecimal number "
            "from 0 to ffff, for example 8001",
            text);
    for (uint32_t i = 0; i < table_len; i++) {
        __be16 key;

        if (rail->dev->lib->query_pkey(rail->dev->context, rail->port, (int)i, &key) != 0)
            continue;
        rail->pkey = (uint16_t)(((uint32_t)key >> 8 & 0xff)
                                | ((uint32_t)key << 8 & 0xff00)); /* big endian */
        if (pref != 0 ? (rail->pkey & 0x7fff) == (pref & 0x7fff) : rail->pkey != 0) {
            rail->pkey_index = (uint16_t)i;
            return AQ_OK;
        }
    }
    return pref == 0 ? AQ_OK /* RoCE devices without a table: index 0 */
                     : aq_fail(AQ_ERR_ARG,
                               "ibv: port %s:%u is not in the partition GASNET_IBV_PKEY=%s; "
                               "/sys/class/infiniband/%s/ports/%u/pkeys lists those it is in",
                               rail->dev->name, rail->port, text, rail->dev->name, rail->port);
}

static uint32_t aq_ibv_rail_srq_size(const struct ibv_device_attr *attr, uint64_t demand)
{
    uint32_t size = demand < AQ_IBV_SRQ_MAX ? (uint32_t)demand : AQ_IBV_SRQ_MAX;

    if (size > (uint32_t)attr->max_srq_wr)
        size = (uint32_t)attr->max_srq_wr;
    return size > (uint32_t)attr->max_cqe ? (uint32_t)attr->max_cqe
                                          : size; /* each of them completes */
}

static int aq_ibv_rail_queues(struct aq_ibv_rail *rail, uint64_t srq_demand)
{
    struct aq_ibv_dev *dev = rail->dev;
    const uint32_t size = aq_ibv_rail_srq_size(&dev->attr, srq_demand);
    struct ibv_srq_init_attr attr = { .attr = { .max_wr = size, .max_sge = 1 } };

    rail->send_space =
        AQ_IBV_SEND_CQ < (uint32_t)dev->attr.max_cqe ? AQ_IBV_SEND_CQ : (uint32_t)dev->attr.max_cqe;
    rail->send_cq =
        dev->lib->create_cq(dev->context, (int)rail->send_space, rail, dev->comp_channel, 0);
    rail->recv_cq = dev->lib->create_cq(dev->context, (int)size, rail, dev->comp_channel, 0);
    if (rail->send_cq == NULL || rail->recv_cq == NULL)
        return aq_fail(AQ_ERR_RESOURCE,
                       "ibv: device %s makes no completion queue of %u entries: %s%s", dev->name,
                       size, strerror(errno), errno == ENOMEM ? "; raise ulimit -l" : "");
    rail->srq = dev->lib->create_srq(dev->pd, &attr);
    if (rail->srq == NULL)
        return aq_fail(
            AQ_ERR_RESOURCE, "ibv: device %s makes no shared receive queue of %u entries: %s%s",
            dev->name, size, strerror(errno), errno == ENOMEM ? "; raise ulimit -l" : "");
    rail->srq_space = size;
    return AQ_OK;
}

static int aq_ibv_rail_open(struct aq_ibv_search *search, uint32_t found, struct aq_ibv_rail *rail)
{
    const struct ibv_port_attr *port = &search->ports[found];
    const uint32_t max = (uint32_t)aq_env_int(AQ_ENV_MAX_MTU);
    int rc = aq_ibv_dev_get(search, &search->found[found], &rail->dev);

    if (rc != AQ_OK)
        return rc;
    rail->port = search->found[found].port;
    rail->ethernet = search->found[found].ethernet;
    rail->lid = port->lid;
    rail->gid = search->gids[found];
    rail->mtu = port->active_mtu;
    while (max != 0 && rail->mtu > IBV_MTU_256 && 128u << rail->mtu > max)
        rail->mtu--;
    rc = aq_ibv_rail_pkey(rail, port->pkey_tbl_len);
    return rc != AQ_OK ? rc : aq_ibv_rail_queues(rail, search->srq_demand);
}

static int aq_ibv_device_filter(struct aq_ibv_filter *filter)
{
    const char *text = aq_ibv_numa_setting(AQ_ENV_IBV_PORTS, AQ_ENV_IBV_PORTS_TYPE);
    char why[256];

    filter->count = 0;
    for (enum aq_env_id id = AQ_ENV_HCA_ID; id <= AQ_ENV_PORT_NUM; id++)
        if (aq_env_is_set(id) && aq_job.rank == 0)
            aq_warn("%s is no longer supported and does nothing; use GASNET_IBV_PORTS=device:port",
                    aq_env_rows[id].name);
    if (text != NULL && !aq_ibv_ports_parse(text, filter, why, sizeof(why)))
        return aq_fail(AQ_ERR_ARG, "GASNET_IBV_PORTS is \"%s\": %s", text, why);
    return AQ_OK;
}

static int aq_ibv_device_choose(struct aq_ibv_search *search)
{
    struct aq_ibv_net *net = search->net;
    struct aq_ibv_filter filter;
    uint32_t chosen[AQ_IBV_RAILS], count;
    char why[600], gid[64];
    int rc = aq_ibv_device_filter(&filter);

    if (rc != AQ_OK)
        return rc;
    aq_ibv_device_find(search);
    count = aq_ibv_choose(search->found, search->count, &filter, AQ_IBV_RAILS, chosen);
    aq_ibv_device_list(search, chosen, count);
    if (count == 0) {
        aq_ibv_choose_why(search->found, search->count, &filter, why, sizeof(why));
        return aq_fail(AQ_ERR_RESOURCE, "ibv: %s", why);
    }
    for (uint32_t i = 0; rc == AQ_OK && i < count; i++) {
        net->rails[i].index = i;
        rc = aq_ibv_rail_open(search, chosen[i], &net->rails[i]);
        if (rc != AQ_OK)
            break;
        net->rail_count++;
        if (aq_env_bool(AQ_ENV_IBV_PORTS_VERBOSE))
            AQ_LOG(INFO, IBV, "rail %u: %s:%u, address %s, MTU %u", i, net->rails[i].dev->name,
                   net->rails[i].port, aq_ibv_gid_text(net->rails[i].gid.gid.raw, gid, sizeof(gid)),
                   128u << net->rails[i].mtu);
    }
    return rc;
}

/* Raise the limit of locked memory as far as this process may. */
static void aq_ibv_device_memlock(void)
{
    struct rlimit limit;

    if (!aq_env_bool(AQ_ENV_MAXIMIZE_MEMLOCK) || getrlimit(RLIMIT_MEMLOCK, &limit) != 0
        || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        AQ_LOG(INFO, IBV, "the limit of locked memory stays as it is: %s", strerror(errno));
}

int aq_ibv_net_open(struct aq_ibv_net *net, uint64_t srq_demand)
{
    struct aq_ibv_search *search = calloc(1, sizeof(*search));
    int rc = AQ_ERR_RESOURCE;

    if (search == NULL)
        return aq_fail(AQ_ERR_NOMEM, "ibv: no memory for %zu bytes", sizeof(*search));
    search->net = net;
    search->srq_demand = srq_demand;
    aq_ibv_device_memlock();
    search->devices = net->lib->get_device_list(&search->device_count);
    if (search->devices != NULL) {
        rc = aq_ibv_device_choose(search);
        for (uint32_t i = 0; i < AQ_IBV_FOUND; i++)
            if (search->contexts[i] != NULL)
                (void)net->lib->close_device(search->contexts[i]); /* not in use */
        net->lib->free_device_list(search->devices);
    } else {
        aq_fail(rc, "ibv: the list of devices cannot be read: %s", strerror(errno));
    }
    free(search);
    return rc;
}

/* --- closing --- */

/* One of a job's objects stays if the verbs library refuses to destroy it: a warning, since the
 * process goes on and may start a further job. */
static void aq_ibv_close_check(const struct aq_ibv_dev *dev, const char *what, int error)
{
    if (error != 0)
        aq_warn("ibv: device %s: %s cannot be freed: %s; please report it", dev->name, what,
                strerror(error));
}

static void aq_ibv_rail_close(struct aq_ibv_rail *rail)
{
    const struct aq_ibv_dev *dev = rail->dev;

    aq_ibv_close_check(dev, "a shared receive queue", dev->lib->destroy_srq(rail->srq));
    aq_ibv_close_check(dev, "a completion queue", dev->lib->destroy_cq(rail->recv_cq));
    aq_ibv_close_check(dev, "a completion queue", dev->lib->destroy_cq(rail->send_cq));
}

static void aq_ibv_dev_close(struct aq_ibv_dev *dev)
{
    aq_ibv_close_check(dev, "a completion channel",
                       dev->lib->destroy_comp_channel(dev->comp_channel));
    aq_ibv_close_check(dev, "a protection domain", dev->lib->dealloc_pd(dev->pd));
    aq_ibv_close_check(dev, "the device", dev->lib->close_device(dev->context));
    free((void *)(uintptr_t)dev->name);
}

void aq_ibv_net_close(struct aq_ibv_net *net)
{
    for (uint32_t i = net->rail_count; i-- > 0;)
        aq_ibv_rail_close(&net->rails[i]);
    for (uint32_t i = net->dev_count; i-- > 0;)
        aq_ibv_dev_close(&net->devs[i]);
}
