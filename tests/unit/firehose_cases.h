/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * firehose_cases.h - what the tests of single cases share: rank 0 asks for memory of rank 1.
 */
#ifndef FIREHOSE_CASES_H
#define FIREHOSE_CASES_H

#include "tests/unit/firehose_sim.h"

#define PAGE AQ_FH_PAGE

static struct aq_fh_config config = {
    .peers = 1,
    .remote_bytes = 1024 * PAGE,
    .local_bytes = 256 * PAGE,
    .remote_regions = 512,
    .local_regions = 128,
    .max_region = 32 * PAGE,
    .max_chunk = 1024 * PAGE,
    .message = 4096,
    .carry = 3072,
};

static int answers;

static void on_done(struct aq_fh_request *request)
{
    (void)request;
    answers++;
}

static uintptr_t at(const struct sim *sim, unsigned rank, uint32_t page)
{
    return (uintptr_t)sim->rank[rank].arena + page * PAGE;
}

static struct aq_fh_request request_for(const struct sim *sim, uint32_t page, size_t nbytes,
                                        bool write)
{
    return (struct aq_fh_request){
        .peer = 1, .write = write, .addr = at(sim, 1, page), .nbytes = nbytes, .done = on_done
    };
}

/* Rank 0 asks for memory of rank 1 and gets it; true: by a message. */
static bool ask(struct sim *sim, struct aq_fh_request *request)
{
    const int rc = aq_fh_remote(sim->rank[0].fh, request);

    if (rc == AQ_OK) {
        request->rc = AQ_OK;
        return false;
    }
    assert_int_equal(rc, AQ_PENDING);
    sim_drain(sim);
    return true;
}

/* The same, and lets go of it at once. */
static inline bool touch(struct sim *sim, uint32_t page, bool write)
{
    struct aq_fh_request request = request_for(sim, page, 8, write);
    const bool missed = ask(sim, &request);

    assert_int_equal(request.rc, AQ_OK);
    assert_non_null(request.hold.region);
    aq_fh_release(sim->rank[0].fh, &request.hold);
    return missed;
}

static struct aq_fh_counts counts_of(const struct sim *sim, unsigned rank)
{
    struct aq_fh_counts counts;

    aq_fh_counts(sim->rank[rank].fh, &counts);
    return counts;
}

#endif
