/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_tools_env.c - environment and numbers for clients; see include/gasnet/tools_env.h.
 * Owns      the lines for GASNET_VERBOSEENV that wait until the job has read that variable
 * Threads   any; the list of lines is under a lock
 * Uses      base/aq_env.h
 */
#include "other/tools/aq_tools.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/aq_env.h"
#include "base/aq_log.h"

/* --- lines for GASNET_VERBOSEENV --- */

/* One for each key that was shown; texts are freed once they are printed. */
struct aq_tools_shown {
    struct aq_tools_shown *next;
    char *key, *value, *meaning;
    bool is_default;
};

static struct aq_tools_shown *aq_tools_shown;
static pthread_mutex_t aq_tools_shown_lock = PTHREAD_MUTEX_INITIALIZER;
static enum { AQ_SHOW_WAIT, AQ_SHOW_YES, AQ_SHOW_NO } aq_tools_show_state; /* under the lock */

static bool aq_tools_verbose(void)
{
    const char *text = aq_env_get_live("GASNET_VERBOSEENV");

    return text != NULL && strcmp(text, "0") != 0 && strcasecmp(text, "n") != 0
           && strcasecmp(text, "no") != 0;
}

static void aq_tools_print_line(struct aq_tools_shown *line)
{
    aq_env_display(line->key, line->value, line->meaning, line->is_default);
    free(line->value);
    free(line->meaning);
    line->value = line->meaning = NULL;
}

/* oldest first */
static void aq_tools_print_waiting(struct aq_tools_shown *line)
{
    if (line == NULL)
        return;
    aq_tools_print_waiting(line->next);
    if (aq_env_claim_line(line->key))
        aq_tools_print_line(line);
}

void aq_env_report_client(bool prints)
{
    pthread_mutex_lock(&aq_tools_shown_lock);
    if (prints)
        aq_tools_print_waiting(aq_tools_shown);
    aq_tools_show_state = prints ? AQ_SHOW_YES : AQ_SHOW_NO;
    pthread_mutex_unlock(&aq_tools_shown_lock);
}

static char *aq_tools_copy(const char *text)
{
    char *copy = text != NULL ? strdup(text) : NULL;

    if (text != NULL && copy == NULL)
        aq_fatal("no memory for a text of %zu bytes", strlen(text));
    return copy;
}

/* value NULL: not set; meaning NULL: the value says it all */
static void aq_tools_show(const char *key, const char *value, const char *meaning, bool is_default)
{
    struct aq_tools_shown *line;

    if (!aq_tools_verbose())
        return;
    pthread_mutex_lock(&aq_tools_shown_lock);
    if (aq_tools_show_state == AQ_SHOW_WAIT && !aq_tools_has_job_code())
        aq_tools_show_state = AQ_SHOW_YES; /* no job will start: print at once */
    for (line = aq_tools_shown; line != NULL && strcmp(line->key, key) != 0;)
        line = line->next;
    if (line == NULL && aq_tools_show_state != AQ_SHOW_NO) {
        line = calloc(1, sizeof(*line));
        if (line == NULL)
            aq_fatal("no memory for %zu bytes", sizeof(*line));
        line->key = aq_tools_copy(key);
        line->value = aq_tools_copy(value);
        line->meaning = aq_tools_copy(meaning);
        line->is_default = is_default;
        line->next = aq_tools_shown;
        aq_tools_shown = line;
        if (aq_tools_show_state == AQ_SHOW_YES && aq_env_claim_line(key))
            aq_tools_print_line(line);
    }
    pthread_mutex_unlock(&aq_tools_shown_lock);
}

int gasnett_verboseenv(void)
{
    if (aq_tools_has_job_code())
        return aq_env_verbose();
    return aq_tools_verbose();
}

void gasnett_envstr_display(const char *key, const char *val, int is_dflt)
{
    aq_tools_show(key, val, NULL, is_dflt != 0);
}

/* raw: the text, NULL for a default; number: what was understood, if that reads differently */
static void aq_tools_show_number(const char *key, const char *raw, const char *number)
{
    const bool same = raw == NULL || strcmp(raw, number) == 0;

    aq_tools_show(key, same ? number : raw, same ? NULL : number, raw == NULL);
}

/* a value that the client has read by other means */
static void aq_tools_show_read(const char *key, const char *number, bool is_default)
{
    const char *raw = is_default ? NULL : aq_env_get_live(key);

    if (raw != NULL)
        aq_tools_show_number(key, raw, number);
    else
        aq_tools_show(key, number, NULL, is_default);
}

void gasnett_envint_display(const char *key, int64_t val, int is_dflt, int is_mem)
{
    char number[64];

    gasnett_format_number(val, number, sizeof(number), is_mem);
    aq_tools_show_read(key, number, is_dflt != 0);
}

static void aq_tools_format_real(double val, char *buf, size_t size)
{
    snprintf(buf, size, "%.10g", val);
}

void gasnett_envdbl_display(const char *key, double val, int is_dflt)
{
    char number[64];

    aq_tools_format_real(val, number, sizeof(number));
    aq_tools_show_read(key, number, is_dflt != 0);
}

/* --- reading --- */

char *gasnett_getenv(const char *key)
{
    return (char *)(uintptr_t)aq_env_get_live(key);
}

char *gasnett_getenv_withdefault(const char *key, const char *dflt)
{
    const char *text = aq_env_get_live(key);

    aq_tools_show(key, text != NULL ? text : dflt, NULL, text == NULL);
    return (char *)(uintptr_t)(text != NULL ? text : dflt);
}

static bool aq_tools_yesno(const char *key, const char *text)
{
    if (strcasecmp(text, "y") == 0 || strcasecmp(text, "yes") == 0 || strcmp(text, "1") == 0)
        return true;
    if (strcasecmp(text, "n") == 0 || strcasecmp(text, "no") == 0 || strcmp(text, "0") == 0)
        return false;
    gasnett_fatalerror_nopos(
        "environment variable %s has the value \"%s\", which cannot be understood; it "
        "must be Y, YES or 1, or N, NO or 0",
        key, text);
}

int gasnett_getenv_yesno_withdefault(const char *key, int dflt)
{
    const char *text = aq_env_get_live(key);
    const bool yes = text != NULL ? aq_tools_yesno(key, text) : dflt != 0;

    aq_tools_show(key, yes ? "YES" : "NO", NULL, text == NULL);
    return yes;
}

bool aq_tools_flag(const char *key, bool dflt)
{
    const char *text = aq_env_get_live(key);
    bool value = dflt;

    if (text != NULL && *text != '\0' && !aq_env_parse_bool(text, &value))
        gasnett_fatalerror_nopos(
            "environment variable %s has the value \"%s\", which cannot be understood; "
            "it must be yes or no",
            key, text);
    return value;
}

int64_t gasnett_getenv_int_withdefault(const char *key, int64_t dflt, uint64_t mult)
{
    const char *text = aq_env_get_live(key);
    const int64_t value = text != NULL ? gasnett_parse_int(text, mult) : dflt;
    char number[64];

    gasnett_format_number(value, number, sizeof(number), mult != 0);
    aq_tools_show_number(key, text, number);
    return value;
}

double gasnett_getenv_dbl_withdefault(const char *key, double dflt)
{
    const char *text = aq_env_get_live(key);
    double value = dflt;
    char number[64];

    if (text != NULL && !aq_env_parse_real(text, &value))
        gasnett_fatalerror_nopos(
            "environment variable %s has the value \"%s\", which cannot be understood; it "
            "must be a number or a fraction, for example 0.25 or 1/4",
            key, text);
    aq_tools_format_real(value, number, sizeof(number));
    aq_tools_show_number(key, text, number);
    return value;
}

void gasnett_setenv(const char *key, const char *value)
{
    if (!aq_env_change(key, value != NULL ? value : ""))
        gasnett_fatalerror_nopos("gasnett_setenv: \"%s\" is no name of a variable", key);
}

void gasnett_unsetenv(const char *key)
{
    if (!aq_env_change(key, NULL))
        gasnett_fatalerror_nopos("gasnett_unsetenv: \"%s\" is no name of a variable", key);
}

/* --- numbers --- */

char *gasnett_format_number(int64_t val, char *buf, size_t bufsz, int is_mem)
{
    const uint64_t size = val < 0 ? 0 - (uint64_t)val : (uint64_t)val;
    char text[32];

    if (is_mem || size >= UINT64_C(1) << 50)
        aq_env_format_size(size, text, sizeof(text));
    else
        snprintf(text, sizeof(text), "%" PRIu64, size);
    snprintf(buf, bufsz, "%s%s", val < 0 ? "-" : "", text);
    return buf;
}

int64_t gasnett_parse_int(const char *text, uint64_t mult)
{
    return aq_env_parse_loose(text, mult);
}
