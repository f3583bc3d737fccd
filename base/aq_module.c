/*
 * aq_module.c - loads the module of a conduit; see aq_module_find.c for where it is.
 *
 * Uses      base/aq_env.h, dlopen. SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/aq_module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/aq_env.h"

const void *aq_module_open(const char *name, char *why, size_t len)
{
    char path[PATH_MAX], symbol[64];
    const void *table;
    void *handle;

    if (aq_module_inside_name != NULL && strcmp(aq_module_inside_name, name) == 0)
        return aq_module_inside;
    if (!aq_module_find(name, aq_env_str(AQ_ENV_AQ_MODULE_DIR), "/proc/self/exe", path,
                        sizeof(path))) {
        snprintf(why, len,
                 "its module, aq-%s.so, is not installed (AQ_MODULE_DIR=DIR says where it is)",
                 name);
        return NULL;
    }
    /* not RTLD_GLOBAL: the client may have another release of the same library */
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL) {
        snprintf(why, len, "its module cannot be loaded: %s", dlerror());
        return NULL;
    }
    snprintf(symbol, sizeof(symbol), "aq_%s_lib", name);
    table = dlsym(handle, symbol);
    if (table == NULL)
        snprintf(why, len, "its module is of another release: %s", dlerror());
    return table;
}
