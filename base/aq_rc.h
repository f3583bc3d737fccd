/*
 * aq_rc.h - the internal return codes: 0 done, positive not yet, negative failed.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_RC_H
#define AQ_RC_H

enum aq_rc {
    AQ_OK = 0,
    AQ_PENDING = 1, /* started, completes later */
    AQ_RETRY = 2,   /* no resources at the moment: poll, then try again */
    AQ_ERR_NOMEM = -1,
    AQ_ERR_ARG = -2,
    AQ_ERR_RESOURCE = -3,
    AQ_ERR_SYS = -4,  /* a system call failed; its errno has been logged */
    AQ_ERR_NOSUP = -5 /* not supported: the caller has an alternative */
};

/* Translates an internal code to the interface's; called once, at the API. */
int aq_rc_to_gasnet(int rc);

#endif
