/*
 * xmp_like.c - a client in the manner of Omni XcalableMP: seq fragment, handlers of many prototypes
 * (one with a size_t argument), an empty argument vector. Every rank prints "R of N right".
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet.h>
#include <gasnet_tools.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if PLATFORM_COMPILER_CRAY || PLATFORM_COMPILER_INTEL
#error "neither of these compilers is here"
#endif
#if !GASNET_PSHM
#error "ranks of a host share memory"
#endif

#define NEED(cond)                                                          \
    do {                                                                    \
        if (!(cond)) {                                                      \
            fprintf(stderr, "rank %u: %s, line %d\n", me, #cond, __LINE__); \
            gasnet_exit(1);                                                 \
        }                                                                   \
    } while (0)

static gasnet_node_t me;
static volatile int acquired, wide, replied;
static gasnet_hsl_t hsl;

static void on_lock(gasnet_token_t token, uint32_t a, int b, gasnet_handlerarg_t c)
{
    NEED(a == 0xffffffffu && b == -5);
    gasnet_hsl_lock(&hsl);
    acquired++;
    gasnet_hsl_unlock(&hsl);
    gasnet_AMReplyShort1(token, 201, c);
}

static void on_locked(gasnet_token_t token, gasnet_handlerarg_t c)
{
    (void)token;
    NEED(c == 77);
    replied++;
}

/* the argument register has to be clean up to its 64 bits */
static void on_wide(gasnet_token_t token, void *buf, size_t bytes, gasnet_handlerarg_t a,
                    gasnet_handlerarg_t b, size_t elements)
{
    (void)token, (void)buf;
    NEED(bytes == 8 && a == 1 && b == 2 && elements == 3);
    wide++;
}

int main(void)
{
    char **argv = NULL;
    int argc = 1;
    gasnet_handlerentry_t table[] = { { 200, (void (*)(void))on_lock },
                                      { 201, (void (*)(void))on_locked },
                                      { 202, (void (*)(void))on_wide } };

    NEED(gasnet_init(&argc, &argv) == GASNET_OK);
    me = gasnet_mynode();
    const gasnet_node_t nodes = gasnet_nodes(), next = (me + 1) % nodes;
    gasnet_hsl_init(&hsl);
    NEED(gasnet_attach(table, 3, 4 * GASNET_PAGESIZE, 0) == GASNET_OK);
    gasnet_seginfo_t *segment = calloc(nodes, sizeof(*segment));
    gasnet_getSegmentInfo(segment, (int)nodes);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);

    double value = me + 0.5, back = 0;
    gasnet_AMRequestShort3(next, 200, -1, -5, 77);
    gasnet_AMRequestMedium3(next, 202, &value, sizeof(value), 1, 2, 3);
    gasnet_put_nbi_bulk(next, segment[next].addr, &value, sizeof(value));
    gasnet_wait_syncnbi_puts();
    gasnet_get_bulk(&back, next, segment[next].addr, sizeof(back));
    NEED(back == value);
    GASNET_BLOCKUNTIL(acquired && wide && replied);
    gasnett_local_wmb();
    gasnett_local_mb();
    printf("%u of %u right\n", me, nodes);
    fflush(stdout);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_exit(0);
}
