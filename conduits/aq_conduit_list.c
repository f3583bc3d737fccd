/*
 * aq_conduit_list.c - the conduits that a library holds, best first, and the module inside it.
 *
 * Compiled once for each library: a static archive holds the one conduit of its name, the
 * shared library all that were built. conduits/list.h, which ./bootstrap makes of conduits/list.m4,
 * has a line for each conduit there is. SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_conduit.h"
#include "base/aq_module.h"

#define AQ_CONDUIT(name) extern const struct aq_conduit_ops aq_##name##_conduit;
#include "conduits/list.h"
#undef AQ_CONDUIT

const struct aq_conduit_ops *const aq_conduits[] = {
#define AQ_CONDUIT(name) &aq_##name##_conduit,
#include "conduits/list.h"
#undef AQ_CONDUIT
    NULL
};

/* AQ_MODULE_INSIDE is the conduit whose module this archive holds (build-aux/module.am.in). */
#ifdef AQ_MODULE_INSIDE
#define AQ_MODULE_NAME(name)     #name
#define AQ_MODULE_NAME_OF(name)  AQ_MODULE_NAME(name)
#define AQ_MODULE_TABLE(name)    aq_##name##_lib
#define AQ_MODULE_TABLE_OF(name) AQ_MODULE_TABLE(name)
extern const struct AQ_MODULE_TABLE_OF(AQ_MODULE_INSIDE) AQ_MODULE_TABLE_OF(AQ_MODULE_INSIDE);
const char *const aq_module_inside_name = AQ_MODULE_NAME_OF(AQ_MODULE_INSIDE);
const void *const aq_module_inside = &AQ_MODULE_TABLE_OF(AQ_MODULE_INSIDE);
#else
const char *const aq_module_inside_name = NULL;
const void *const aq_module_inside = NULL;
#endif
