/*
 * aq_symbol.h - the name of the function at an address, from the symbol table of its file; the name
 * of that file.
 * Threads   no state; async-signal-safe as far as dladdr() is.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SYMBOL_H
#define AQ_SYMBOL_H

#include "base/aq_line.h"

/** aq_symbol_put - appends "function+0x12 (file)" for an address, or as much of that as is
 * known. */
void aq_symbol_put(struct aq_line *line, const void *address);

/** aq_symbol_file - the name of the file, without its folder, that contains an address; "" if it is
 * not known. Valid while the file is loaded. */
const char *aq_symbol_file(const void *address);

#endif
