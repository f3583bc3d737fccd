/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_env.h - the environment variables of the library. One table (aq_env_rows.def, which the build
 * joins from base/aq_env.def and the env.def of other folders) serves all uses: parser,
 * GASNET_VERBOSEENV report, aq-info and docs/environment.md.
 * Owns      a snapshot of the environment, taken at init; the job's environment, if the launcher
 *           supplied one; the parsed value of each row
 * Threads   aq_env_init() and aq_env_set_job_environment() run while the process has one thread;
 *           the rest may be called by any thread afterwards
 * Promise   a value that cannot be parsed, or is out of the row's range, ends the job with a
 *           message that names the variable, the value, the legal form, an example and the range;
 *           returned strings are valid until the process ends
 * Uses      base/aq_log.h
 *
 * An empty value counts as unset, except for strings, where it is an empty string, and for
 * GASNET_VERBOSEENV, which it turns on.
 */
#ifndef AQ_ENV_H
#define AQ_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct aq_env_aliases; /* base/aq_env_alias.h */

/* AQ_ENV_<name without GASNET_, with AQ_ kept> */
enum aq_env_id {
#define AQ_ENV(id, name, type, unit, dflt, help) AQ_ENV_##id,
#include "base/aq_env_rows.def"
    AQ_ENV_ID_COUNT
};

enum aq_env_type {
    AQ_ENV_TYPE_BOOL,    /* 1 y yes true on / 0 n no false off, any case */
    AQ_ENV_TYPE_FLAG,    /* on if set to anything (even nothing) but 0, n, no */
    AQ_ENV_TYPE_INT,     /* decimal or 0x hexadecimal, with a sign */
    AQ_ENV_TYPE_REAL,    /* decimal number or a fraction a/b */
    AQ_ENV_TYPE_SIZE,    /* bytes: 4096, 64KB, 128.0MB, 1GiB; bare numbers in the row's unit */
    AQ_ENV_TYPE_TIME,    /* 250, 10us, 1.5s, 2m; bare numbers in the row's unit */
    AQ_ENV_TYPE_SEGSIZE, /* size or fraction of memory, then /P or /H */
    AQ_ENV_TYPE_RANKS,   /* 0,2-4,6 or * */
    AQ_ENV_TYPE_CHOICE,  /* one of the words that the row's unit lists: "auto|off" */
    AQ_ENV_TYPE_STR
};

struct aq_env_row {
    const char *name;
    const char *unit;
    const char *dflt; /* "": none; "(text)" describes a default that the program computes */
    const char *help;
    enum aq_env_type type;
    bool compat; /* accepted so that scripts keep working; has no effect */
};

extern const struct aq_env_row aq_env_rows[AQ_ENV_ID_COUNT];

/* the range of a row's number, as texts of its type; NULL: the row is no number */
struct aq_env_range {
    const char *min, *max;
    bool or_0; /* 0 is allowed too */
};

extern const struct aq_env_range aq_env_ranges[AQ_ENV_ID_COUNT];

/* value of GASNET_MAX_SEGSIZE */
struct aq_env_segsize {
    bool is_fraction; /* of physical memory, in fraction; else bytes */
    bool per_host;    /* /H: all ranks of a host and the library's own objects; else /P */
    double fraction;  /* 0 < fraction < 1 */
    uint64_t bytes;
};

/**
 * aq_env_init - take the snapshot and parse every row. A value that cannot be used counts as unset
 * until aq_env_refuse(). Called once, before anything else reads; a client may have called setenv()
 * before. An earlier read (after an early fatal error) returns the default.
 */
void aq_env_init(void);

/**
 * aq_env_fini - the job has ended: frees the values and texts. aq_env_init() reads the environment
 * anew. What the client has set is kept.
 */
void aq_env_fini(void);

/**
 * aq_env_refuse - end the job if some value cannot be used. Called once the ranks of a host are
 * connected, so that one of them prints the message.
 */
void aq_env_refuse(void);

/**
 * aq_env_set_job_environment - use one environment for the whole job.
 * block     len bytes of NAME=VALUE strings, each ended by a NUL; copied
 * Names found in the block override the process's own; others keep their local value. All rows
 * are parsed again. Call between aq_env_init() and the first thread.
 */
void aq_env_set_job_environment(const char *block, size_t len);

/**
 * aq_env_adopt_aliases - from here on the rows that go by three names (base/aq_env_alias.h) have
 * their values by whichever of them was set. Conduits with aliases call it first thing in their
 * init.
 * aliases  the conduit's; NULL: none
 * warns    say which spellings contradict each other: one rank of a job should
 */
void aq_env_adopt_aliases(const struct aq_env_aliases *aliases, bool warns);

/**
 * aq_env_snapshot - the process's environment in the form aq_env_set_job_environment() takes.
 * len_out   bytes in the block, 0 if the environment is empty
 * Returns the block, owned by this module
 */
const char *aq_env_snapshot(size_t *len_out);

/**
 * aq_env_report - after init, when ranks are known: if GASNET_VERBOSEENV is on, rank 0 prints an
 * "ENV parameter:" line for each variable read so far (later first reads print their own line).
 * Unless GASNET_QUIET is on, it prints suggestions for misspelt GASNET_ and AQ_ variables.
 */
void aq_env_report(uint32_t rank);

bool aq_env_bool(enum aq_env_id id);       /* BOOL, FLAG */
int64_t aq_env_int(enum aq_env_id id);     /* INT */
double aq_env_real(enum aq_env_id id);     /* REAL; TIME in the row's unit */
uint64_t aq_env_size(enum aq_env_id id);   /* SIZE, bytes */
unsigned aq_env_choice(enum aq_env_id id); /* CHOICE: index of the word in the row's unit */
bool aq_env_rank_listed(enum aq_env_id id, uint32_t rank); /* RANKS */
struct aq_env_segsize aq_env_segsize(enum aq_env_id id);   /* SEGSIZE */

/** aq_env_str - returns the value as text, any type; NULL if unset and without a default. */
const char *aq_env_str(enum aq_env_id id);

/** aq_env_is_set - returns true if the user gave a value (an empty one counts only for strings and
 * flags). */
bool aq_env_is_set(enum aq_env_id id);

/**
 * aq_env_set_computed - record the default that the program computed for an unset variable, so
 * that the verbose report can show it.
 */
void aq_env_set_computed(enum aq_env_id id, const char *text);

/**
 * aq_env_get - the job's value of any variable, as gasnet_getenv() returns it: the job's
 * environment, then the process's own at init; before aq_env_init() the live environment.
 * Returns NULL if unset; the string must not be modified or freed
 */
const char *aq_env_get(const char *name);

/**
 * aq_env_get_live - the present value, as gasnett_getenv() returns it: what aq_env_change() set,
 * else the job's environment, else the process's own at this moment, decoded. Also before
 * aq_env_init().
 */
const char *aq_env_get_live(const char *name);

/** aq_env_change - sets a variable in this process or, with NULL, removes it; false if libc
 * refuses. */
bool aq_env_change(const char *name, const char *text);

/** aq_env_claim_line - the caller reports this variable; false if the library has reported it or
 * will. */
bool aq_env_claim_line(const char *name);

/** aq_env_report_client - part of aq_env_report(): prints the client's lines; defined in
 * other/tools. */
void aq_env_report_client(bool prints);

/** aq_env_verbose - GASNET_VERBOSEENV: 1 on, 0 off, -1 unknown before aq_env_init(). */
int aq_env_verbose(void);

/** aq_env_display - prints one "ENV parameter:" line for a variable read elsewhere. */
void aq_env_display(const char *name, const char *value, const char *meaning, bool is_default);

/* Parsers: true on success; *out is written only then. The whole text must match; blanks around it
 * are ignored. */
bool aq_env_parse_bool(const char *text, bool *out);
bool aq_env_parse_int(const char *text, int64_t *out);
bool aq_env_parse_real(const char *text, double *out);
/** unit of a bare number: "B", "KB", "MB", "GB" or "TB" */
bool aq_env_parse_size(const char *text, const char *unit, uint64_t *bytes_out);
/** unit of bare numbers and of the result: "ns", "us", "ms", "s" or "min" */
bool aq_env_parse_time(const char *text, const char *unit, double *out);
bool aq_env_parse_segsize(const char *text, struct aq_env_segsize *out);
/** checks the list; *listed_out: rank is in it */
bool aq_env_parse_ranks(const char *text, uint32_t rank, bool *listed_out);
/** words: "auto|off|on"; *index_out: the one that equals text, any case */
bool aq_env_parse_choice(const char *text, const char *words, unsigned *index_out);

/** aq_env_parse_loose - a number as gasnett_parse_int() accepts it: never fails. */
int64_t aq_env_parse_loose(const char *text, uint64_t mult);

/** aq_env_format_size - formats bytes as users write them: "10 KB", "1536 B", "2 MB", "0". */
char *aq_env_format_size(uint64_t bytes, char *buf, size_t size);

/** aq_env_range_text - "0, or from 1232 to 65504"; "" for a row that is no number. */
char *aq_env_range_text(enum aq_env_id id, char *buf, size_t size);

/** aq_env_type_name - "boolean", "size", ... for listings. */
const char *aq_env_type_name(enum aq_env_type type);

/** aq_env_suggest - returns the known variable that name is most likely a misspelling of, or
 * NULL. */
const char *aq_env_suggest(const char *name);

#endif
