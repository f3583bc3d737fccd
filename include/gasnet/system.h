/*
 * system.h - the C library headers that gasnetex.h and gasnet_tools.h include for clients.
 *
 * Clients call printf, malloc, isdigit, sched_yield and the like, and use va_list, INT_MAX and
 * PRIu64, without including their headers. Threaded clients also get <pthread.h>, once the thread
 * mode has been chosen: the tools choose theirs by whether the client has included it. gasnet_fwd.h
 * includes none of these.
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
