/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fh_pages.h - a device for tests that really pins pages: an io_uring with registered buffers. What
 * it reads and writes are the pages that were mapped when they were pinned, whatever is mapped
 * there now, as with a network's device.
 * Threads   any; one operation at a time
 */
#ifndef FH_PAGES_H
#define FH_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** fh_pages_open - false, with the reason in errno, if the kernel has no such thing or does not
 * permit it. */
bool fh_pages_open(void);
void fh_pages_close(void);

/** fh_pages_pin - pin [addr, addr+len): its number, or negative errno. */
int fh_pages_pin(uintptr_t addr, size_t len);
void fh_pages_unpin(int reg);

/** fh_pages_read - copy what the pinned pages of addr hold to dest. Returns 0 or negative errno. */
int fh_pages_read(int reg, uintptr_t addr, void *dest, size_t len);

/** fh_pages_write - the other way round. */
int fh_pages_write(int reg, uintptr_t addr, const void *src, size_t len);

#endif
