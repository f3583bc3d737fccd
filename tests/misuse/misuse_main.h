/*
 * misuse_main.h - what the two files of the program misuse share: the job, the indices of the
 * handlers, and the cases of misuse_am.c. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MISUSE_MAIN_H
#define MISUSE_MAIN_H

#include "gasnetex.h"
#include "gasnet_mk.h"
#include "misuse_case.h"

enum {
    H_PLAIN = 200,
    H_MEDIUM,
    H_LONG,
    H_TWICE,
    H_REPLY,
    H_REPLIES,
    H_REQUESTS,
    H_POLLS,
    H_KEEPS_LOCK,
    H_GROUP,
    H_KEEPS_PREPARED,
    H_PREPARES_THEN_REPLIES,
    H_PREPARES_GROUP,
    H_KEEPS_TOKEN,
    H_REPLIES_LATE,
    H_ASKS_LATE,
    H_WAITS,
    H_LOOKS_UP,
    H_ECHOES,
    H_ECHOED,
    H_NOBODY = 250,
    SEGMENT = 65536
};

extern gex_Client_t client;
extern gex_EP_t ep;
extern gex_TM_t tm;
extern gex_Segment_t segment;
extern gex_Rank_t me, n_ranks;
extern gex_HSL_t lock;
extern char buffer[1 << 20];

extern gex_AM_Entry_t misuse_table[];
extern const size_t misuse_table_len;
extern const struct misuse_case misuse_am_cases[];
extern const size_t misuse_am_count;

gex_Rank_t peer(void);
char *peer_base(void);
void ask(gex_AM_Index_t handler);
void wait_for_peer(int seconds);

#endif
