/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_ident.h - identification strings that launchers and `ident` look for in executables.
 */
#ifndef AQ_IDENT_H
#define AQ_IDENT_H

/* "$Key: value $" strings, one after the other, each ended by a NUL; an empty one ends the list.
 * Start-up refers to it, so that every executable linked with the archive contains it. */
extern const char aq_ident_strings[];

/**
 * aq_ident_value - look a key up in aq_ident_strings.
 * len_out   length of the value, which is not NUL-ended
 * Returns NULL if the key is absent
 */
const char *aq_ident_value(const char *key, unsigned *len_out);

#endif
