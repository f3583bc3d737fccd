/*
 * aq_conduit_list.c - the conduits that a library holds, best first.
 *
 * Compiled once for each library: a static archive holds the one conduit of its name, the
 * shared library all that were built. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/conduit.h"

#if AQ_HAVE_CONDUIT_SMP
extern const struct aq_conduit_ops aq_smp_conduit;
#endif

const struct aq_conduit_ops *const aq_conduits[] = {
#if AQ_HAVE_CONDUIT_SMP
    &aq_smp_conduit,
#endif
    NULL
};
