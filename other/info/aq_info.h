/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_info.h - the parts of aq-info, and the writer that prints their facts as text or JSON.
 *
 * A part states each fact once, through aq_info_text() and the like. The writer prints it as an
 * aligned line or as a member of a JSON object. Sections nest in JSON; in text they are headings.
 */
#ifndef AQ_INFO_H
#define AQ_INFO_H

#include <stdbool.h>
#include <stdint.h>

/** aq_info_open - start the report. json: print JSON instead of text. */
void aq_info_open(bool json);
/** aq_info_close - end it. Returns false if it could not be written. */
bool aq_info_close(void);
bool aq_info_is_json(void);

/**
 * aq_info_section - begin an object.
 * key    member name; NULL inside a list
 * title  heading in text; NULL for none
 */
void aq_info_section(const char *key, const char *title);
void aq_info_section_end(void);

/** aq_info_list - begin a list of objects. */
void aq_info_list(const char *key, const char *title);
void aq_info_list_end(void);

/*
 * One fact. key: member name, or NULL to leave the fact out of JSON; label: in text, or NULL to
 * leave it out of text; note: printed behind the value in text, may be NULL.
 */
void aq_info_text(const char *key, const char *label, const char *value, const char *note);
void aq_info_count(const char *key, const char *label, uint64_t value, const char *note);
void aq_info_bytes(const char *key, const char *label, uint64_t value, const char *note);
void aq_info_yesno(const char *key, const char *label, bool value, const char *note);

/** aq_info_para - in text only: wrapped lines with an indent. */
void aq_info_para(int indent, const char *text);
/** aq_info_line - in text only: one line. */
void aq_info_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* the parts */
void aq_info_build(void);
/** aq_info_version - the version, one line. */
void aq_info_version(void);
void aq_info_conduits(bool with_limits);
void aq_info_machine(void);
/** pattern: part of a name or a shell pattern, any case; NULL: all. Returns how many matched. */
unsigned aq_info_env(const char *pattern);
/** aq_info_env_set - the variables that are set now, in short form. */
void aq_info_env_set(void);
/** aq_info_env_markdown - docs/environment.md on stdout. */
void aq_info_env_markdown(void);

#endif
