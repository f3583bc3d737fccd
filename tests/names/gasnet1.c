/*
 * gasnet1.c - every name of the GASNet-1 interface exists and has the right kind and type, seen
 * from C. Compiling it is the test. With GASNETEX_FIRST, gasnetex.h comes before gasnet.h.
 * Source GASNet specification 1.8. SPDX-License-Identifier: BSD-3-Clause
 */
#ifdef GASNETEX_FIRST
#include "gasnetex.h"
#endif
#include "gasnet.h"
#include "gasnetex.h"
#include "gasnet_tools.h"
#include "gasnet_vis.h"
#include "gasnet.h"

#include "aq_args.h"

#define VALUE(TYPE, ...) \
    _Static_assert(_Generic((__VA_ARGS__), TYPE : 1, default : 0), #TYPE ": " #__VA_ARGS__);
#define SAME(A, B) _Static_assert(_Generic((A)0, B : 1, default : 0), #A " is " #B);
#define DO(...)      \
    do {             \
        __VA_ARGS__; \
    } while (0);

#include "gasnet1_body.h"

/* A table as C clients write it: handlers of several types without casts. */
static void h_none(gasnet_token_t token)
{
    (void)token;
}

static void h_many(gasnet_token_t token, void *buf, size_t nbytes, int a, uint32_t b)
{
    (void)token, (void)buf, (void)nbytes, (void)a, (void)b;
}

gasnet_handlerentry_t a_table[] = { { 128, h_none }, { 0, h_many } };
