/*
 * aq_am_args.h - the course of a program that sends active messages of one category with each
 * number of arguments, twice to each of two ranks: in the numbered form and in the counting one.
 * The program has value(), the argument i of a request with n arguments (20 more for a reply), and
 * a function send_N for each N, made by AQ_EACH of aq_args.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_AM_ARGS_H
#define AQ_AM_ARGS_H

#include "aq_args.h"
#include "aq_test.h"

enum { AQ_ARGS_ROUNDS = 2, AQ_ARGS_PLACES = 2 };

/* Messages of each kind, requests or replies, that come to a rank. */
enum { AQ_ARGS_MESSAGES = 17 * AQ_ARGS_ROUNDS * AQ_ARGS_PLACES };

#define AQ_ARGS_SENDER(N) send_##N,

static aq_test_count_t requests, replies;

static gex_AM_Arg_t value(int n, int i);

static inline void make_args(int n, gex_AM_Arg_t *v, int reply)
{
    for (int i = 0; i < n; i++)
        v[i] = value(n + 20 * reply, i);
}

/* Checks the arguments of a message that has come, and counts it. */
static inline void check_args(int n, const gex_AM_Arg_t *got, int reply)
{
    for (int i = 0; i < n; i++)
        AQ_CHECK_EQ(got[i], value(n + 20 * reply, i));
    atomic_fetch_add(reply ? &replies : &requests, 1);
}

/* Sends and awaits all; senders[n](place, round) sends to the rank at that place. */
static inline void send_each(int (*const senders[])(int place, int round), const char *request_rule,
                             const char *reply_rule)
{
    rule(request_rule);
    for (int round = 0; round < AQ_ARGS_ROUNDS; round++)
        for (int n = 0; n <= 16; n++)
            for (int place = 0; place < AQ_ARGS_PLACES; place++)
                AQ_CHECK_EQ(senders[n](place, round), 0);
    aq_test_wait(&requests, AQ_ARGS_MESSAGES);
    rule(reply_rule);
    aq_test_wait(&replies, AQ_ARGS_MESSAGES);
    rule("core 22: each accepted message is delivered exactly once");
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&requests), AQ_ARGS_MESSAGES);
    AQ_CHECK_EQ(atomic_load(&replies), AQ_ARGS_MESSAGES);
}

#endif
