/*
 * aq_module.c - finds and loads the module of a conduit.
 *
 * Looked for, in this order: AQ_MODULE_DIR, if set, and then nowhere else; aqueduct/ beside the shared library that this
 * code is in; modules/ (a build folder) and lib/aqueduct/ (an installed tree) in the folders above the program; the
 * folder that configure was told. So a tree works wherever it was moved.
 *
 * Uses      core/aq_env.h, dlopen. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "core/aq_module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/aq_env.h"

#define AQ_MODULE_ABOVE 4 /* folders above the program that are looked at: build/tests/conformance/bin */

/* What is looked for, and with what result. */
struct aq_module_search {
    const char *name;
    void *handle;
    char *why;
    size_t len;
};

/* Tries dir/aq-NAME.so. True: the search is over, for the file is there, usable or not. */
static bool aq_module_try(struct aq_module_search *search, const char *dir, const char *below)
{
    char path[PATH_MAX];
    const int len = snprintf(path, sizeof(path), "%s%s/aq-%s.so", dir, below, search->name);

    if (len < 0 || (size_t)len >= sizeof(path) || access(path, F_OK) != 0)
        return false;
    /* not RTLD_GLOBAL: the client may have another release of the same library */
    search->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (search->handle == NULL)
        snprintf(search->why, search->len, "its module cannot be loaded: %s", dlerror());
    return true;
}

/* Cuts the last component off; false if there is none. */
static bool aq_module_up(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash == NULL || slash == path)
        return false;
    *slash = '\0';
    return true;
}

static bool aq_module_beside_library(struct aq_module_search *search)
{
    char dir[PATH_MAX];
    Dl_info info;

    if (dladdr(&aq_module_inside, &info) == 0 || info.dli_fname == NULL)
        return false;
    if (snprintf(dir, sizeof(dir), "%s", info.dli_fname) >= (int)sizeof(dir) || !aq_module_up(dir))
        return false;
    return aq_module_try(search, dir, "/aqueduct") || aq_module_try(search, dir, "/../modules");
}

static bool aq_module_above_program(struct aq_module_search *search)
{
    char dir[PATH_MAX];
    const ssize_t len = readlink("/proc/self/exe", dir, sizeof(dir) - 1);

    if (len <= 0)
        return false;
    dir[len] = '\0';
    for (int i = 0; i < AQ_MODULE_ABOVE && aq_module_up(dir); i++)
        if (aq_module_try(search, dir, "/modules") || aq_module_try(search, dir, "/lib/aqueduct"))
            return true;
    return false;
}

const void *aq_module_open(const char *name, char *why, size_t len)
{
    struct aq_module_search search = { .name = name, .why = why, .len = len };
    const char *dir = aq_env_str(AQ_ENV_AQ_MODULE_DIR);
    const void *table;
    char symbol[64];

    if (aq_module_inside_name != NULL && strcmp(aq_module_inside_name, name) == 0)
        return aq_module_inside;
    snprintf(why, len, "its module, aq-%s.so, is not installed (AQ_MODULE_DIR=DIR says where it is)", name);
    if (dir != NULL && *dir != '\0')
        (void)aq_module_try(&search, dir, "");
    else if (!aq_module_beside_library(&search) && !aq_module_above_program(&search))
        (void)aq_module_try(&search, AQ_MODULE_FOLDER, "");
    if (search.handle == NULL)
        return NULL;
    snprintf(symbol, sizeof(symbol), "aq_%s_lib", name);
    table = dlsym(search.handle, symbol);
    if (table == NULL)
        snprintf(why, len, "its module is of another release: %s", dlerror());
    return table;
}
