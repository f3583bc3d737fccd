/*
 * aq_module_find.c - finds the module of a conduit.
 *
 * Search order: only the folder that the user names (AQ_MODULE_DIR), if there is one; else
 * aqueduct/ beside the shared library that contains this code; modules/ (a build folder) and
 * lib/aqueduct/ (an installed tree) in the folders above the program; the folder that configure was
 * told. A tree therefore works wherever it is moved. A folder above the program counts only if its
 * owner could have changed the program itself: above /tmp/x/prog, anybody can make /tmp/modules.
 *
 * Uses      nothing of core, since gasnetrun searches as the program will.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/aq_module.h"

#define AQ_MODULE_ABOVE \
    4 /* folders above the program that are searched: build/tests/conformance/bin */

/* What is searched for, and the result. */
struct aq_module_search {
    const char *name;
    char *path;
    size_t len;
};

/* Returns true if dir/below/aq-NAME.so exists, usable or not. */
static bool aq_module_try(const struct aq_module_search *search, const char *dir, const char *below)
{
    const int len = snprintf(search->path, search->len, "%s%s/aq-%s.so", dir, below, search->name);

    return len > 0 && (size_t)len < search->len && access(search->path, F_OK) == 0;
}

/* Removes the last component; false if there is none. */
static bool aq_module_up(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash == NULL || slash == path)
        return false;
    *slash = '\0';
    return true;
}

/* Returns true if a file or folder belongs to root, to this user or to the program's owner, and no
 * other user may write to it. */
static bool aq_module_is_safe(const char *path, uid_t owner)
{
    struct stat is;

    return stat(path, &is) == 0 && (is.st_uid == 0 || is.st_uid == geteuid() || is.st_uid == owner)
           && (is.st_mode & S_IWOTH) == 0;
}

/* Returns true if dir/below/aq-NAME.so exists, and no other user could have put it there. */
static bool aq_module_try_above(const struct aq_module_search *search, const char *dir,
                                const char *below, uid_t owner)
{
    char *slash;
    bool safe;

    if (!aq_module_try(search, dir, below) || !aq_module_is_safe(search->path, owner))
        return false;
    slash = strrchr(search->path, '/');
    *slash = '\0';
    safe = aq_module_is_safe(search->path, owner);
    *slash = '/';
    return safe;
}

/* A program that contains this code itself has no library beside it, and a folder beside a program
 * is not trusted as one. */
static bool aq_module_beside_library(const struct aq_module_search *search)
{
    static const char self;
    char dir[PATH_MAX], program[PATH_MAX];
    struct stat is;
    Dl_info info;

    if (dladdr(&self, &info) == 0 || info.dli_fname == NULL || realpath(info.dli_fname, dir) == NULL
        || realpath("/proc/self/exe", program) == NULL || strcmp(dir, program) == 0)
        return false;
    if (stat(dir, &is) != 0 || !aq_module_up(dir))
        return false;
    return aq_module_try_above(search, dir, "/aqueduct", is.st_uid)
           || (aq_module_up(dir) && aq_module_try_above(search, dir, "/modules", is.st_uid));
}

static bool aq_module_above_program(const struct aq_module_search *search, const char *program)
{
    char dir[PATH_MAX];
    struct stat is;

    if (realpath(program, dir) == NULL || stat(dir, &is) != 0)
        return false;
    for (int i = 0; i < AQ_MODULE_ABOVE && aq_module_up(dir); i++)
        if (aq_module_try_above(search, dir, "/modules", is.st_uid)
            || aq_module_try_above(search, dir, "/lib/aqueduct", is.st_uid))
            return true;
    return false;
}

bool aq_module_find(const char *name, const char *dir, const char *program, char *path, size_t len)
{
    const struct aq_module_search search = { .name = name, .path = path, .len = len };

    if (dir != NULL && *dir != '\0')
        return aq_module_try(&search, dir, "");
    return aq_module_beside_library(&search) || aq_module_above_program(&search, program)
           || aq_module_try(&search, AQ_MODULE_FOLDER, "");
}
