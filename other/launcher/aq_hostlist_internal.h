/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_hostlist_internal.h - internal header of aq_hostlist.c and aq_hostlist_parse.c.
 * Threads   one
 */
#ifndef AQ_HOSTLIST_INTERNAL_H
#define AQ_HOSTLIST_INTERNAL_H

#include "base/aq_env.h"
#include "other/launcher/aq_hostlist.h"
#include "other/spawn/aq_jobarea.h"

/** aq_hosts_wrong - fill h->why. Returns -1. */
int aq_hosts_wrong(struct aq_hosts *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
