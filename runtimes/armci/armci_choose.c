/*
 * armci_choose.c - whether a section goes in messages, packed, or run by run.
 *
 * Over mpi a run by itself costs what MPI's window or message costs: 2 us where MPI copies within a
 * host, 9 us over TCP. It is measured when ARMCI starts. Packed, a section costs a message's way,
 * which is longer if the target must wake, and copies; and the target must take part. A window as
 * fast as memory is likely to need no part of it: where no thread of Aqueduct serves others, it
 * takes all runs of some length.
 *
 * Owns      the measured time of a run: counter run_ns
 * Threads   the program's
 * Uses      armci_impl.h
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_choose.h"

#include "armci_impl.h"
#include "gasnet_tools.h" /* after gasnetex.h, which armci_impl.h has */

#define LONG_PUT 16384 /* runs of at least so many bytes are put one by one; gets are packed */

/* Over mpi, by the measurements of aq-bench: what packing costs more than runs do. */
#define PACK_NS         45000.0 /* 20 us to a target that is awake, 130 to one that must wake */
#define PACK_NS_PER_KIB 200.0
#define QUICK_NS        4000.0 /* a run that takes no longer goes through memory or hardware, */
#define QUICK_RUN       1024   /* and so do runs of at least so many bytes */

#define RUNS  16 /* of a measurement */
#define BYTES 1024
#define TRIES 4 /* the first one only warms up */

static double run_ns; /* 0: not measured */

/* Reads the beginning of the peer's segment, run by run. Returns the time of a run. */
static double measure(int proc)
{
    static char to[RUNS * BYTES];
    char *from = aq_armci_owner(&aq_armci.peers[proc], aq_armci.peers[proc].base);
    double lower_ns = 0;

    for (int try = 0; try < TRIES; try++) {
        const gasnett_tick_t start = gasnett_ticks_now();
        double ns;

        gex_NBI_BeginAccessRegion(0);
        for (int i = 0; i < RUNS; i++)
            gex_RMA_GetNBI(aq_armci.tm, to + i * BYTES, (gex_Rank_t)proc, from + i * BYTES, BYTES,
                           0);
        gex_Event_Wait(gex_NBI_EndAccessRegion(0));
        ns = (double)gasnett_ticks_to_ns(gasnett_ticks_now() - start) / RUNS;
        if (try <= 1 || ns < lower_ns)
            lower_ns = ns;
    }
    return lower_ns;
}

void aq_armci_choose_start(void)
{
    run_ns = 0;
    for (int i = 1; i < aq_armci.nproc && run_ns == 0 && aq_armci_is_over_mpi(); i++) {
        const int proc = (aq_armci.me + i) % aq_armci.nproc;

        if (!aq_armci_is_local(&aq_armci.peers[proc]) && aq_armci.peers[proc].size >= RUNS * BYTES)
            run_ns = measure(proc);
    }
    aq_armci_counters[AQ_ARMCI_COUNT_run_ns] = (unsigned long)run_ns;
}

bool aq_armci_by_messages(const struct aq_armci_section *section, int proc)
{
    const struct aq_armci_peer *peer = &aq_armci.peers[proc];

    if (aq_armci_is_local(peer))
        return false;
    if (aq_armci_protocol.put != AQ_ARMCI_PUT_AUTO)
        return aq_armci_protocol.put == AQ_ARMCI_PUT_EAGER;
    if (section->levels > 0 && aq_armci_protocol.strided != AQ_ARMCI_STRIDED_AUTO)
        return false;
    /* a put that needs no thread of the target is as quick as a message, and arrives while the
     * target computes */
    return !peer->one_sided && section->bytes * section->runs <= aq_armci_protocol.eager;
}

bool aq_armci_by_segments(const struct aq_armci_section *section, bool is_put)
{
    if (aq_armci_protocol.strided != AQ_ARMCI_STRIDED_AUTO)
        return aq_armci_protocol.strided == AQ_ARMCI_STRIDED_SEGMENTS;
    if (run_ns == 0)
        return is_put && section->bytes >= LONG_PUT;
    if (aq_armci.must_poll && run_ns <= QUICK_NS && section->bytes >= QUICK_RUN)
        return true;
    return (double)section->runs * (run_ns - PACK_NS_PER_KIB / 1024 * (double)section->bytes)
           <= PACK_NS;
}
