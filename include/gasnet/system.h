/*
 * system.h - the C library's headers that clients get from gasnetex.h and from gasnet_tools.h.
 *
 * Clients call printf, malloc, isdigit, sched_yield and the like, and use va_list, INT_MAX and
 * PRIu64, without including what declares them. Threaded ones get <pthread.h> besides, where the
 * thread mode has been chosen: the tools choose theirs by whether the client has included it.
 * gasnet_fwd.h brings none of these.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_SYSTEM_H
#define GASNET_SYSTEM_H 1

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#endif
