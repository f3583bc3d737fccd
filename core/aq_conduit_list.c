/*
 * aq_conduit_list.c - the conduits that a library holds, best first.
 *
 * Compiled once for each library: a static archive holds the one conduit of its name, the
 * shared library all that were built. conduits/list.h, which ./bootstrap makes of conduits/list.m4,
 * has a line for each conduit there is. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/conduit.h"

#define AQ_CONDUIT(name) extern const struct aq_conduit_ops aq_##name##_conduit;
#include "conduits/list.h"
#undef AQ_CONDUIT

const struct aq_conduit_ops *const aq_conduits[] = {
#define AQ_CONDUIT(name) &aq_##name##_conduit,
#include "conduits/list.h"
#undef AQ_CONDUIT
    NULL
};
