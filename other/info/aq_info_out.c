/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_info_out.c - prints facts as aligned text or as JSON; see aq_info.h.
 * Owns      the nesting depth, and whether a comma is due
 */
#include "other/info/aq_info.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/aq_env.h"

enum { DEPTH_MAX = 8, LABEL_WIDTH = 26, LINE_WIDTH = 96 };

static bool info_json;
static int info_depth;
static bool info_comma[DEPTH_MAX];

static void info_put_string(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void info_begin_member(const char *key)
{
    if (info_comma[info_depth])
        putchar(',');
    info_comma[info_depth] = true;
    printf("\n%*s", 2 * info_depth, "");
    if (key != NULL) {
        info_put_string(key);
        printf(": ");
    }
}

static void info_push(const char *key, char bracket)
{
    if (!info_json)
        return;
    if (info_depth > 0)
        info_begin_member(key);
    putchar(bracket);
    info_comma[++info_depth] = false;
}

static void info_pop(char bracket)
{
    if (!info_json)
        return;
    info_depth--;
    printf("\n%*s%c", 2 * info_depth, "", bracket);
}

void aq_info_open(bool json)
{
    info_json = json;
    info_push(NULL, '{');
}

bool aq_info_close(void)
{
    info_pop('}');
    if (info_json)
        putchar('\n');
    return fflush(stdout) == 0 && !ferror(stdout);
}

bool aq_info_is_json(void)
{
    return info_json;
}

static void info_heading(const char *title)
{
    if (!info_json && title != NULL)
        printf("%s\n", title);
}

void aq_info_section(const char *key, const char *title)
{
    info_heading(title);
    info_push(key, '{');
}

void aq_info_section_end(void)
{
    info_pop('}');
}

void aq_info_list(const char *key, const char *title)
{
    info_heading(title);
    info_push(key, '[');
}

void aq_info_list_end(void)
{
    info_pop(']');
}

static void info_text_line(const char *label, const char *value, const char *note)
{
    if (label == NULL)
        return;
    printf("  %-*s %s", LABEL_WIDTH, label, value);
    if (note != NULL && *note != '\0')
        printf("  (%s)", note);
    putchar('\n');
}

void aq_info_text(const char *key, const char *label, const char *value, const char *note)
{
    if (!info_json) {
        info_text_line(label, value, note);
    } else if (key != NULL) {
        info_begin_member(key);
        info_put_string(value);
    }
}

void aq_info_count(const char *key, const char *label, uint64_t value, const char *note)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    if (!info_json) {
        info_text_line(label, value == UINT64_MAX ? "unlimited" : text, note);
    } else if (key != NULL) {
        info_begin_member(key);
        printf("%s", value == UINT64_MAX ? "null" : text);
    }
}

void aq_info_bytes(const char *key, const char *label, uint64_t value, const char *note)
{
    char text[64], size[32];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    if (!info_json) {
        aq_env_format_size(value, size, sizeof(size));
        if (value >= 1024 && value < UINT64_MAX)
            snprintf(text, sizeof(text), "%" PRIu64 " bytes, %s", value, size);
        info_text_line(label, value == UINT64_MAX ? "unlimited" : text, note);
    } else if (key != NULL) {
        info_begin_member(key);
        printf("%s", value == UINT64_MAX ? "null" : text);
    }
}

void aq_info_yesno(const char *key, const char *label, bool value, const char *note)
{
    if (!info_json) {
        info_text_line(label, value ? "yes" : "no", note);
    } else if (key != NULL) {
        info_begin_member(key);
        printf("%s", value ? "true" : "false");
    }
}

void aq_info_para(int indent, const char *text)
{
    int column = 0;

    if (info_json)
        return;
    while (*text != '\0') {
        int len = (int)strcspn(text, " ");

        if (column > 0 && indent + column + 1 + len > LINE_WIDTH) {
            putchar('\n');
            column = 0;
        }
        if (column == 0)
            printf("%*s", indent, "");
        else
            putchar(' ');
        printf("%.*s", len, text);
        column += len + (column > 0);
        text += len;
        text += strspn(text, " ");
    }
    putchar('\n');
}

void aq_info_line(const char *fmt, ...)
{
    va_list args;

    if (info_json)
        return;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    putchar('\n');
}
