/*
 * aq_module.h - modules: parts of a conduit that need a library which not every machine has.
 *
 * Such a conduit calls that library through a table of functions (conduits/NAME/aq_NAME_lib.h),
 * which its module (conduits/NAME/module/) fills in. Static archives contain the module of their
 * conduit. The shared library, and the programs of this package, load aq-NAME.so when the conduit
 * is asked for, so that a machine without the library lacks that conduit only.
 *
 * Threads   one, during start-up
 * Uses      base/aq_env.h, dlopen. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MODULE_H
#define AQ_MODULE_H

#include <stdbool.h>
#include <stddef.h>

/**
 * aq_module_open - the table of a conduit's module: the linked one, else that of aq-NAME.so, which
 * stays loaded.
 * name      of the conduit
 * why, len  receives the reason if there is none
 * Returns the table, &aq_NAME_lib of the module, or NULL.
 */
const void *aq_module_open(const char *name, char *why, size_t len);

/**
 * aq_module_find - find the module of a conduit for a program that does not contain it.
 * dir         the only folder to search; NULL or "": see aq_module_find.c
 * program     its path: the folders above it are searched
 * path, len   receives the file's name
 * Returns false if there is none.
 */
bool aq_module_find(const char *name, const char *dir, const char *program, char *path, size_t len);

/* The module in this library, and its conduit's name (conduits/aq_conduit_list.c). Both NULL:
 * none. */
extern const char *const aq_module_inside_name;
extern const void *const aq_module_inside;

#endif
