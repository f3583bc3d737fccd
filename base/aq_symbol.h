/*
 * aq_symbol.h - the name of the function at an address, from the symbol table of its file.
 * Threads   no state; async-signal-safe as far as dladdr() is.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SYMBOL_H
#define AQ_SYMBOL_H

#include "base/aq_line.h"

/** aq_symbol_put - appends "function+0x12 (file)" for an address, or as much of that as is
 * known. */
void aq_symbol_put(struct aq_line *line, const void *address);

#endif
