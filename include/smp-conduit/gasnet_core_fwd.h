/*
 * gasnet_core_fwd.h - the smp conduit's face: the constants that a client compiled for smp sees.
 *
 * gasnetex.h includes it before anything else of the interface. Each conduit has one of its own in
 * include/NAME-conduit/; the client's -I picks it.
 * Source: GASNet-EX specification 0.19, configuration. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_CORE_FWD_H
#define GASNET_CORE_FWD_H 1

/* Clients may define it to 1 on the command line; the same value again is no redefinition. */
#define GASNET_CONDUIT_SMP 1
#define GASNET_SMP_CONDUIT 1

/* Bare tokens, of which clients make strings and names. */
#define GASNET_CONDUIT_NAME SMP
#define GASNET_CONDUIT_NAME_STR "SMP"
#define GASNET_CORE_NAME SMP
#define GASNET_CORE_NAME_STR "SMP"
#define GASNET_CORE_VERSION 1.0
#define GASNET_CORE_VERSION_STR "1.0"
#define GASNET_EXTENDED_NAME SMP
#define GASNET_EXTENDED_NAME_STR "SMP"
#define GASNET_EXTENDED_VERSION 1.0
#define GASNET_EXTENDED_VERSION_STR "1.0"

/* Ranks of one host share memory. */
#define GASNET_PSHM 1

/* Handlers run in the client's own calls only: there is no receive or send thread. */
#define GASNET_HIDDEN_AM_CONCURRENCY_LEVEL 0

/* Endpoints a process can have: the primordial one and 32 more. */
#define GASNET_MAXEPS 33

/* A segment lies in host memory; there are no device kinds. */
#define GASNET_HAVE_MK_CLASS_HOST 1

#endif
