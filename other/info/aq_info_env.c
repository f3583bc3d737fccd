/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_info_env.c - the environment variables, from the library's own table: as text, JSON, and the
 * page docs/environment.md.
 *
 * Owns      nothing. Threads: one
 * Uses      aq_info.h; base/aq_env.h and base/aq_env_rows.def
 */
#include "other/info/aq_info.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/aq_env.h"

/* The table in its order, with its headings: an entry is a title or a row. The rows that are
 * accepted for compatibility come last, from whatever folder: the table's last heading is
 * theirs. */
struct info_entry {
    const char *title;
    int id;
};

static const struct info_entry info_entries[] = {
#define AQ_ENV_GROUP(heading)                       { .title = heading },
#define AQ_ENV(ident, name, type, unit, dflt, help) { .id = AQ_ENV_##ident },
#define AQ_ENV_COMPAT(ident, name, type, unit, dflt, help)
#include "base/aq_env_rows.def"
#define AQ_ENV(ident, name, type, unit, dflt, help)
#define AQ_ENV_COMPAT(ident, name, type, unit, dflt, help) { .id = AQ_ENV_##ident },
#include "base/aq_env_rows.def"
};

enum { ENTRY_COUNT = sizeof(info_entries) / sizeof(info_entries[0]) };

static bool info_env_matches(const char *name, const char *pattern)
{
    char star[256];

    if (pattern == NULL)
        return true;
    if (strpbrk(pattern, "*?[") == NULL) {
        snprintf(star, sizeof(star), "*%s*", pattern);
        pattern = star;
    }
    return fnmatch(pattern, name, FNM_CASEFOLD) == 0;
}

static bool info_env_counts(const struct aq_env_row *row)
{
    return row->type != AQ_ENV_TYPE_CHOICE && row->unit[0] != '\0';
}

/* "time in s, from 0 to 1000s", "choice of auto|off", "boolean", "signal" */
static const char *info_env_form(int id)
{
    static char text[192];
    const struct aq_env_row *row = &aq_env_rows[id];
    const char *type = aq_env_type_name(row->type);
    char range[64];
    size_t len;

    if (row->type == AQ_ENV_TYPE_CHOICE)
        snprintf(text, sizeof(text), "%s of %s", type, row->unit);
    else if (row->type == AQ_ENV_TYPE_STR && row->unit[0] != '\0')
        snprintf(text, sizeof(text), "%s", row->unit); /* for a string: what it contains */
    else if (info_env_counts(row))
        snprintf(text, sizeof(text), "%s in %s", type, row->unit);
    else
        snprintf(text, sizeof(text), "%s", type);
    len = strlen(text);
    if (*aq_env_range_text((enum aq_env_id)id, range, sizeof(range)) != '\0')
        snprintf(text + len, sizeof(text) - len, ", %s", range);
    return text;
}

static void info_env_row_json(int id)
{
    const struct aq_env_row *row = &aq_env_rows[id];

    aq_info_section(NULL, NULL);
    aq_info_text("name", NULL, row->name, NULL);
    aq_info_text("type", NULL, aq_env_type_name(row->type), NULL);
    aq_info_text("unit", NULL, row->unit, NULL);
    if (aq_env_ranges[id].min != NULL) {
        aq_info_text("minimum", NULL, aq_env_ranges[id].min, NULL);
        aq_info_text("maximum", NULL, aq_env_ranges[id].max, NULL);
        aq_info_yesno("zero_too", NULL, aq_env_ranges[id].or_0, NULL);
    }
    aq_info_text("default", NULL, row->dflt, NULL);
    aq_info_yesno("is_set", NULL, aq_env_is_set((enum aq_env_id)id), NULL);
    if (aq_env_str((enum aq_env_id)id) != NULL)
        aq_info_text("value", NULL, aq_env_str((enum aq_env_id)id), NULL);
    aq_info_yesno("compatibility_only", NULL, row->compat, NULL);
    aq_info_text("help", NULL, row->help, NULL);
    aq_info_section_end();
}

static void info_env_row_text(int id)
{
    const struct aq_env_row *row = &aq_env_rows[id];
    const char *dflt = row->dflt;
    char line[256];
    size_t used;

    used = (size_t)snprintf(line, sizeof(line), "  %s: %s", row->name, info_env_form(id));
    if (*dflt != '\0' && used < sizeof(line))
        snprintf(line + used, sizeof(line) - used, ", default %s", dflt);
    aq_info_line("%s", line);
    if (aq_env_is_set((enum aq_env_id)id))
        aq_info_line("      now: %s", *aq_env_str((enum aq_env_id)id) != '\0'
                                          ? aq_env_str((enum aq_env_id)id)
                                          : "(empty)");
    aq_info_para(6, row->help);
}

unsigned aq_info_env(const char *pattern)
{
    const char *title = NULL;
    unsigned matched = 0;

    aq_info_list("environment", NULL);
    for (int i = 0; i < ENTRY_COUNT; i++) {
        if (info_entries[i].title != NULL) {
            title = info_entries[i].title;
            continue;
        }
        if (!info_env_matches(aq_env_rows[info_entries[i].id].name, pattern))
            continue;
        if (aq_info_is_json()) {
            info_env_row_json(info_entries[i].id);
        } else {
            if (title != NULL)
                aq_info_line("%s%s", matched > 0 ? "\n" : "", title);
            title = NULL;
            info_env_row_text(info_entries[i].id);
        }
        matched++;
    }
    aq_info_list_end();
    return matched;
}

void aq_info_env_set(void)
{
    unsigned count = 0;

    aq_info_section("environment_set", "Environment variables with a value");
    for (int id = 0; id < AQ_ENV_ID_COUNT; id++) {
        const struct aq_env_row *row = &aq_env_rows[id];

        if (!aq_env_is_set((enum aq_env_id)id))
            continue;
        aq_info_text(row->name, row->name, aq_env_str((enum aq_env_id)id),
                     row->compat ? "accepted, without effect" : NULL);
        count++;
    }
    if (count == 0)
        aq_info_line("  none; aq-info --env lists them all");
    aq_info_section_end();
}

/* ---- docs/environment.md ------------------------------------------------------------------- */

static const char info_env_intro[] =
    "# Environment variables\n"
    "\n"
    "<!-- Written by `aq-info --markdown` from base/aq_env.def and the env.def of other folders; "
    "change those, not this page. "
    "-->\n"
    "\n"
    "`aq-info --env` prints the same list with the present values, `aq-info --env PATTERN` a part "
    "of it.\nWith `GASNET_VERBOSEENV=1` rank 0 of a job prints each variable that it read.\n"
    "\n"
    "- Variables are read when the job starts; a program may set defaults with `setenv` before it\n"
    "  initialises the library. Later changes are not seen.\n"
    "- boolean: `1`, `y`, `yes`, `true`, `on` or `0`, `n`, `no`, `false`, `off`, in any case. "
    "flag: "
    "on when set to\n  anything but `0`, `n`, `no`.\n"
    "- size: a number with `B`, `KB`, `MB`, `GB` or `TB` (powers of 1024; `K`, `KiB` mean the "
    "same), "
    "such as\n  `64KB` or `1.5GB`. time: a number with `ns`, `us`, `ms`, `s`, `min` or `h`. A bare "
    "number counts in the unit\n  given here.\n"
    "- size/scope: a size, or a fraction of physical memory below 1, followed by `/P` (each rank; "
    "the default) or\n  `/H` (the host), such as `512MB/P` or `0.85/H`.\n"
    "- ranks: a list such as `0,2-4,6`, or `*` for all.\n"
    "- An empty value counts as unset, except for text and flags.\n"
    "- A value that cannot be understood, or a number out of the range given here, ends the job at "
    "start, with a "
    "message\n  that names the variable, the value and what it may be. With `GASNET_VERBOSEENV=1` "
    "a name that "
    "looks like a\n  misspelling of a known one is pointed out.\n";

static void info_markdown_cell(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|' || *text == '*' || *text == '<')
            putchar('\\');
        putchar(*text);
    }
}

static void info_markdown_row(int id)
{
    const struct aq_env_row *row = &aq_env_rows[id];

    printf("| `%s` | ", row->name);
    info_markdown_cell(info_env_form(id));
    printf(" | ");
    if (row->dflt[0] == '(')
        info_markdown_cell(row->dflt);
    else if (row->dflt[0] != '\0')
        printf("`%s`", row->dflt);
    printf(" | ");
    info_markdown_cell(row->help);
    printf(" |\n");
}

void aq_info_env_markdown(void)
{
    fputs(info_env_intro, stdout);
    for (int i = 0; i < ENTRY_COUNT; i++) {
        if (info_entries[i].title == NULL) {
            info_markdown_row(info_entries[i].id);
            continue;
        }
        printf("\n## %s\n\n", info_entries[i].title);
        if (i + 1 < ENTRY_COUNT && aq_env_rows[info_entries[i + 1].id].compat)
            printf("Scripts set them, and other implementations act on them. Here they change "
                   "nothing, for the reason given, and\ntheir values are not checked.\n\n");
        printf("| variable | form | default | meaning |\n|---|---|---|---|\n");
    }
}
