/*
 * aq_ibv_load.c - the verbs library, and whether this machine has something for it.
 *
 * Threads   start-up's only
 * Uses      base/aq_module.h, /sys. SPDX-License-Identifier: BSD-3-Clause
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "conduits/ibv/aq_ibv.h"
#include "conduits/ibv/aq_ibv_start.h"
#include "base/aq_module.h"
#include "base/aq_rc.h"

int aq_ibv_load(char *why, size_t len)
{
    const struct aq_ibv_lib *lib = aq_ibv.lib;

    if (lib != NULL)
        return AQ_OK;
    lib = aq_module_open("ibv", why, len);
    if (lib == NULL)
        return AQ_ERR_RESOURCE;
    if (lib->version != AQ_IBV_LIB_VERSION) {
        snprintf(why, len, "its module is of another release (%u, this is %u)", lib->version,
                 AQ_IBV_LIB_VERSION);
        return AQ_ERR_RESOURCE;
    }
    aq_ibv.lib = lib;
    return AQ_OK;
}

/* "4: ACTIVE" */
static bool aq_ibv_load_port_is_active(const char *device, const char *port)
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

static bool aq_ibv_load_device_is_active(const char *device)
{
    char path[512];
    bool active = false;
    DIR *ports;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%.200s/ports", device);
    ports = opendir(path);
    if (ports == NULL)
        return true; /* nothing to be learnt from */
    for (struct dirent *port = readdir(ports); port != NULL && !active; port = readdir(ports))
        active = port->d_name[0] != '.' && aq_ibv_load_port_is_active(device, port->d_name);
    closedir(ports);
    return active;
}

int aq_ibv_probe(char *why, size_t len)
{
    int rc = aq_ibv_load(why, len), count = 0, active = 0;
    struct ibv_device **devices;

    if (rc != AQ_OK)
        return rc;
    devices = aq_ibv.lib->get_device_list(&count);
    for (int i = 0; devices != NULL && i < count; i++)
        active += aq_ibv_load_device_is_active(devices[i]->name);
    if (devices != NULL)
        aq_ibv.lib->free_device_list(devices);
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
