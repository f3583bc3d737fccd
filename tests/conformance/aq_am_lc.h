/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_am_lc.h - what the tests of messages' local completion share: sources of replies, which a
 * handler fills and sends with an event, and ordinary code takes back; replies counted.
 *
 * Owns      AQ_LC_SOURCES sources of AQ_LC_BYTES, which the test defines before
 * Uses      aq_test.h
 */
#ifndef AQ_AM_LC_TEST_H
#define AQ_AM_LC_TEST_H

#include "aq_test.h"

static aq_test_count_t requests, replies;

static struct aq_lc_source {
    gex_Event_t event;
    aq_test_count_t in_use; /* 1: by the handler; 2: handed over */
    char data[AQ_LC_BYTES];
} back[AQ_LC_SOURCES];

/* In a handler: a free one, filled. */
static struct aq_lc_source *aq_lc_fill(size_t nbytes, gex_AM_Arg_t seed)
{
    int i = 0;

    while (i < AQ_LC_SOURCES - 1 && atomic_load(&back[i].in_use) != 0)
        i++;
    AQ_CHECK_EQ(atomic_load(&back[i].in_use), 0);
    atomic_store(&back[i].in_use, 1);
    aq_test_fill(back[i].data, nbytes, (uint64_t)seed);
    back[i].event = GEX_EVENT_NO_OP;
    return &back[i];
}

/* In a handler: it was sent. */
static void aq_lc_hand_over(struct aq_lc_source *source)
{
    AQ_CHECK(source->event != GEX_EVENT_NO_OP);
    atomic_store(&source->in_use, 2);
}

/* Ordinary code: sources that are free again. */
static void aq_lc_collect(void)
{
    int i;

    for (i = 0; i < AQ_LC_SOURCES; i++) {
        if (atomic_load(&back[i].in_use) != 2)
            continue;
        gex_Event_Wait(back[i].event);
        memset(back[i].data, 0x44, AQ_LC_BYTES);
        atomic_store(&back[i].in_use, 0);
    }
}

/* The handler of replies. */
static void aq_lc_reply(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t seed)
{
    (void)token;
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    atomic_fetch_add(&replies, 1);
}

#endif
