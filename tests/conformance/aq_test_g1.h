/*
 * aq_test_g1.h - start of conformance programs that use the GASNet-1 interface.
 *
 * Such a program attaches its table and a segment with gasnet_attach(); the harness then adds its
 * own handlers with gex_EP_RegisterHandlers(), at the indices of aq_test.h. Programs number theirs
 * from AQ_TEST_FREE. In segment everything the "segment" is memory from the heap.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_TEST_G1_H
#define AQ_TEST_G1_H

#include "gasnet.h"

#include "aq_test.h"

/* A row of a table for gasnet_attach(): a function of any prototype. */
#define AQ_G1_ENTRY(INDEX, FN)     \
    {                              \
        (INDEX), (gex_AM_Fn_t)(FN) \
    }

/** aq_test_join_gasnet1 - hand over to the harness a job that gasnet_attach() has made. */
static inline void aq_test_join_gasnet1(gex_Rank_t min_ranks, size_t segsize)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;

    gasnet_QueryGexObjects(&client, &ep, &tm, &aq_test_seg);
    aq_test_join(client, ep, tm, min_ranks);
    aq_test_learn_bases(segsize);
    aq_test_barrier();
}

/** aq_test_start_gasnet1 - gasnet_init() and gasnet_attach(); segsize is rounded up to pages. */
static inline void aq_test_start_gasnet1(int *argc, char ***argv, gex_Rank_t min_ranks,
                                         gasnet_handlerentry_t *table, int numentries,
                                         size_t segsize)
{
    int rc = gasnet_init(argc, argv);

    segsize = (segsize + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
    if (rc == GASNET_OK)
        rc = gasnet_attach(table, numentries, segsize, GASNET_PAGESIZE);
    if (rc != GASNET_OK) {
        fprintf(stderr, "# gasnet_init or gasnet_attach returned %s\n", gasnet_ErrorName(rc));
        exit(1);
    }
    aq_test_join_gasnet1(min_ranks, segsize);
}

#endif
