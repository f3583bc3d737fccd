/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_env_alias.c - see aq_env_alias.h.
 */
#include "base/aq_env_alias.h"

#include <stdio.h>
#include <string.h>

bool aq_env_alias_has_prefix(const struct aq_env_aliases *aliases, const char *name)
{
    return aliases != NULL && strncmp(name, aliases->prefix, strlen(aliases->prefix)) == 0;
}

const char *aq_env_alias_find(const struct aq_env_aliases *aliases, const char *x,
                              aq_env_getter_t get, struct aq_env_alias *out)
{
    const char *const prefixes[] = { "GASNET_", aliases->prefix, "" };

    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        char name[AQ_ENV_ALIAS_NAME];
        const char *value;

        snprintf(name, sizeof(name), "%s%s", prefixes[i], x);
        value = get(name);
        if (value == NULL)
            continue;
        if (out->value == NULL) {
            out->value = value;
            strcpy(out->name, name);
        } else if (out->other[0] == '\0' && strcmp(value, out->value) != 0) {
            out->other_value = value;
            strcpy(out->other, name);
        }
    }
    return out->value;
}

bool aq_env_alias_adopt(const struct aq_env_aliases *aliases, aq_env_getter_t get,
                        aq_env_setter_t set, aq_env_alias_warn_t warn)
{
    bool any = false;

    for (size_t i = 0; aliases->names[i] != NULL; i++) {
        char name[AQ_ENV_ALIAS_NAME];
        struct aq_env_alias alias;

        if (aq_env_alias_find(aliases, aliases->names[i], get, &alias) == NULL)
            continue;
        if (warn != NULL && alias.other[0] != '\0')
            warn(&alias);
        snprintf(name, sizeof(name), "GASNET_%s", aliases->names[i]);
        if (strcmp(name, alias.name) != 0)
            any = set(name, alias.value) || any;
    }
    return any;
}
