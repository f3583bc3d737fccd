/*
 * aq_conduit_infos.c - the conduits' descriptions of themselves, best first.
 *
 * conduits/list.h, which ./bootstrap makes of conduits/list.m4, has a line for each conduit there
 * is. gasnetrun is compiled with AQ_LIST_ALL: it knows those that were not built too.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/aq_conduit_info.h"

#include <stddef.h>
#include <string.h>

#define AQ_CONDUIT(name) extern const struct aq_conduit_info aq_##name##_info;
#include "conduits/list.h"
#undef AQ_CONDUIT

const struct aq_conduit_info *const aq_conduit_infos[] = {
#define AQ_CONDUIT(name) &aq_##name##_info,
#include "conduits/list.h"
#undef AQ_CONDUIT
    NULL
};

const struct aq_conduit_info *aq_conduit_info_find(const char *name)
{
    for (size_t i = 0; aq_conduit_infos[i] != NULL; i++)
        if (strcmp(aq_conduit_infos[i]->name, name) == 0)
            return aq_conduit_infos[i];
    return NULL;
}
