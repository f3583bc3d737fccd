/*
 * poll.h - progress, wait modes, blocking on a condition, thread-info macros.
 *
 * Source: GASNet-EX specification 0.19, Polling. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_POLL_H
#define GASNET_POLL_H 1

AQ_BEGIN_DECLS

/**
 * gasnet_AMPoll - poll the network: run handlers of waiting messages, make progress on operations.
 * Context ordinary code, any thread in par.
 * Returns GASNET_OK.
 */
AQ_PUBLIC int gasnet_AMPoll(void);

#define GASNET_WAIT_SPIN      0 /* spin; yield when ranks outnumber cores */
#define GASNET_WAIT_BLOCK     1 /* yield the processor at once */
#define GASNET_WAIT_SPINBLOCK 2 /* spin for a while, then yield */

/** gasnet_set_waitmode - sets how this process waits; GASNET_OK or GASNET_ERR_BAD_ARG. */
AQ_PUBLIC int gasnet_set_waitmode(int wait_mode);

/* One step of waiting for something that a handler or a peer brings about: polls, and the
 * longer nothing came, the more it gives way: pause, yield, sleep until there is work.
 * A waiter starts as AQ_WAITER_INIT. */
struct aq_waiter {
    uint32_t idle;      /* steps since something arrived */
    uint32_t asleep;    /* announced as a sleeper: the next idle step sleeps */
    uint32_t no_wakeup; /* 1: the end of this wait sends no wake-up, so sleeps are short; further
                         * bits are the library's */
    uint32_t wakeup;    /* the wake-up's value when that was announced */
    gex_Rank_t peer;    /* who could end the wait, or GEX_RANK_INVALID */
    uint64_t since;     /* when the waiting began, ns; 0 until first asked for */
    const char *what;   /* what is waited for, for the stall report */
    uint64_t began;     /* when a step first found nothing, ns; 0 unless it is traced */
    uint64_t idled;     /* the same; 0 unless a service thread watches */
};
#define AQ_WAITER_INIT(what_, peer_)      \
    {                                     \
        0, 0, 0, 0, peer_, 0, what_, 0, 0 \
    }
AQ_PUBLIC void aq_wait_step(struct aq_waiter *waiter);
AQ_PUBLIC void aq_wait_end(struct aq_waiter *waiter);

/* Look at cond between polls until it holds. */
#define GASNET_BLOCKUNTIL(cond)                                                                  \
    do {                                                                                         \
        if (!(cond)) {                                                                           \
            struct aq_waiter aq_waiter_ = AQ_WAITER_INIT("GASNET_BLOCKUNTIL", GEX_RANK_INVALID); \
            do {                                                                                 \
                aq_wait_step(&aq_waiter_);                                                       \
            } while (!(cond));                                                                   \
            aq_wait_end(&aq_waiter_);                                                            \
        }                                                                                        \
        aq_fence_acquire();                                                                      \
    } while (0)

/* Thread state is found through one thread-local pointer: these macros add nothing. */
typedef void *gasnet_threadinfo_t;
#define GASNET_BEGIN_FUNCTION()      typedef char aq_begin_function_ AQ_UNUSED
#define GASNET_POST_THREADINFO(info) gasnet_threadinfo_t aq_post_threadinfo_ AQ_UNUSED = (info)
#define GASNET_GET_THREADINFO()      ((gasnet_threadinfo_t)0)

AQ_END_DECLS

#endif
