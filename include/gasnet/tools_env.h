/*
 * tools_env.h - environment variables and the forms of numbers in them.
 *
 * Before gex_Client_Init, and in programs without a conduit, values come from the process's own
 * environment; afterwards that of the job, equal on all ranks, comes first. What a program sets
 * with gasnett_setenv overrides both, in its own process.
 * Source: GASNet tools specification 1.20, environment. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_TOOLS_ENV_H
#define GASNET_TOOLS_ENV_H 1

AQ_BEGIN_DECLS

/**
 * gasnett_getenv - a variable's value, NULL if it is not set.
 * The text belongs to the library and must not be changed. Never reported. Any thread.
 */
AQ_PUBLIC char *gasnett_getenv(const char *key);

/*
 * The same with a default for a variable that is not set; reported by GASNET_VERBOSEENV. A value
 * that cannot be parsed ends the program with a message that names the variable.
 */
/** gasnett_getenv_withdefault - text. */
AQ_PUBLIC char *gasnett_getenv_withdefault(const char *key, const char *dflt);
/** gasnett_getenv_yesno_withdefault - Y, YES, 1: non-zero; N, NO, 0: zero; any case. */
AQ_PUBLIC int gasnett_getenv_yesno_withdefault(const char *key, int dflt);
/** gasnett_getenv_int_withdefault - by the rules of gasnett_parse_int, with its mult. */
AQ_PUBLIC int64_t gasnett_getenv_int_withdefault(const char *key, int64_t dflt, uint64_t mult);
/** gasnett_getenv_dbl_withdefault - a decimal number or a fraction a/b. */
AQ_PUBLIC double gasnett_getenv_dbl_withdefault(const char *key, double dflt);

/** gasnett_setenv - set a variable in this process; gasnett_unsetenv removes it. */
AQ_PUBLIC void gasnett_setenv(const char *key, const char *value);
AQ_PUBLIC void gasnett_unsetenv(const char *key);

/** gasnett_verboseenv - 1 if GASNET_VERBOSEENV is on, 0 if not, -1 while a job is starting. */
AQ_PUBLIC int gasnett_verboseenv(void);

/*
 * Report a variable that the client has read by other means: rank 0 prints a line on stderr, once
 * for each key, if GASNET_VERBOSEENV is on. Before the job has started the line waits.
 */
AQ_PUBLIC void gasnett_envstr_display(const char *key, const char *val, int is_dflt);
AQ_PUBLIC void gasnett_envint_display(const char *key, int64_t val, int is_dflt, int is_mem);
AQ_PUBLIC void gasnett_envdbl_display(const char *key, double val, int is_dflt);

/**
 * gasnett_format_number - a number as users write it.
 * is_mem   a size: "10 KB", "1536 B": in the largest unit of which it has ten or a whole number
 * Returns buf. From 2^50 on the number is hexadecimal.
 */
AQ_PUBLIC char *gasnett_format_number(int64_t val, char *buf, size_t bufsz, int is_mem);

/**
 * gasnett_parse_int - a number that a user wrote: decimal, possibly with a fraction, or 0x and
 * hexadecimal.
 * mult    unit of a number without one (B, K, M, G, T, powers of 1024, any case, whatever follows
 *         the letter); 0: a plain number, whose tail is ignored
 * Returns 0 for NULL, an empty text and a text without a number; the nearest value if it does not
 * fit.
 */
AQ_PUBLIC int64_t gasnett_parse_int(const char *text, uint64_t mult);

AQ_END_DECLS

#endif
