/*
 * aq_mpi_choose.c - chooses the path of transfers, by a few milliseconds of measurement when
 * segments are attached.
 *
 * The cost of a window differs between MPIs, networks and settings, so a table of costs cannot
 * exist. It also differs between ranks of one host, which have MPI's shared memory, and ranks of
 * different hosts. One pair of ranks of each class (aq_mpi_pairs.h) measures (aq_mpi_measure.c),
 * and all pairs of the class use the result:
 *
 *   one-sided   a one-sided window serves every transfer, even where messages are faster: progress
 *               without MPI calls of the target is worth more than a microsecond. Small transfers
 *               are the exception (aq_mpi_rma.c). Another window serves nothing: a put is complete
 *               after a flush, which would block this rank inside MPI until the target calls MPI,
 *               and a get wakes no target that sleeps (aq_mpi_wakeup.h), as a message does
 *   slow        small transfers to an attentive target go by a message and its answer, if these
 *               take at most AQ_MPI_SLOW_SLACK of the time of a get of 8 bytes by a one-sided
 *               window, and of 1 KiB no longer
 *   splits      payloads that MPI would send by rendezvous go in eager messages, if two of those
 *               take at most AQ_MPI_SPLIT_SLACK of the time of one as long as both; but packets
 *               of up to the largest of aq_mpi_whole_sizes that takes at most as much of the time
 *               of those two stay whole
 *   atomics     use a window that is one-sided for them and takes at most AQ_MPI_ATOMIC_SLACK times
 *               as long as a message and its answer: an MPI may implement them by a lock and
 *               several transfers. A domain has members of both classes, so both classes must agree
 *
 * Owns      aq_mpi_rma
 * Threads   one; collective over the job
 * Uses      aq_mpi_path.h, aq_mpi_measure.h, base/aq_env.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_choose.h"

#include <stdio.h>
#include <stdlib.h>

#include "conduits/mpi/aq_mpi_am.h"
#include "conduits/mpi/aq_mpi_measure.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "conduits/mpi/aq_mpi_path.h"
#include "base/aq_env.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"

struct aq_mpi_rma aq_mpi_rma AQ_JOB_STATE;

/* Longest times, relative to others. */
#define AQ_MPI_ATOMIC_SLACK 4.0
#define AQ_MPI_SPLIT_SLACK  0.8
#define AQ_MPI_SLOW_SLACK   0.8
/* Bytes from which puts take the direct path, unless GASNET_MPI_DIRECT is set. */
#define AQ_MPI_DIRECT_PUT ((size_t)65536)

enum {
    AQ_MPI_RMA_AUTO,
    AQ_MPI_RMA_WINDOW,
    AQ_MPI_RMA_MESSAGES
}; /* order of the choices in env.def */

static const char *const aq_mpi_class_names[AQ_MPI_CLASSES] = {
    [AQ_MPI_SAME_HOST] = "on one host", [AQ_MPI_OTHER_HOST] = "between hosts"
};

enum { AQ_MPI_SPLIT_AUTO, AQ_MPI_SPLIT_NEVER, AQ_MPI_SPLIT_ALWAYS }; /* likewise */

/* What each rank sends to the others: the results of the pairs that it leads, and whether it has a
 * window. */
struct aq_mpi_verdict {
    struct aq_mpi_paths paths[AQ_MPI_CLASSES];
    bool atomics[AQ_MPI_CLASSES];
    size_t split_above[AQ_MPI_CLASSES];
    bool window;
};

/* --- what follows from the measurement --- */

size_t aq_mpi_choose_split(const struct aq_mpi_latency *min)
{
    size_t above = AQ_MPI_EAGER;

    if ((double)min->split > AQ_MPI_SPLIT_SLACK * (double)min->message[AQ_MPI_SPLIT_SIZE])
        return 0;
    for (unsigned i = 0; i < AQ_MPI_WHOLES; i++) {
        if ((double)min->whole[i] > AQ_MPI_SPLIT_SLACK * (double)min->split)
            break;
        above = aq_mpi_whole_sizes[i];
    }
    return above;
}

void aq_mpi_choose_paths(const struct aq_mpi_cost *cost, struct aq_mpi_paths *paths)
{
    const struct aq_mpi_latency *min = &cost->min;

    paths->one_sided = cost->one_sided;
    paths->slow = (double)min->message[0] <= AQ_MPI_SLOW_SLACK * (double)min->get[0]
                  && min->message[1] <= min->get[1];
    paths->put_from = paths->get_from = cost->one_sided ? 0 : AQ_MPI_NEVER;
}

static void aq_mpi_choose_class(enum aq_mpi_class class, const struct aq_mpi_cost *cost,
                                struct aq_mpi_verdict *own)
{
    const struct aq_mpi_latency *min = &cost->min;

    if (!cost->known)
        return;
    aq_mpi_choose_paths(cost, &own->paths[class]);
    own->atomics[class] = cost->atomics_one_sided
                          && (double)min->fetch <= AQ_MPI_ATOMIC_SLACK * (double)min->message[0];
    own->split_above[class] = aq_mpi_choose_split(min);
    for (unsigned i = 0; i < AQ_MPI_SIZES; i++)
        AQ_LOG(INFO, MPI, "%s, %zu bytes: get %llu ns by a window, %llu ns by a message",
               aq_mpi_class_names[class], aq_mpi_sizes[i], (unsigned long long)min->get[i],
               (unsigned long long)min->message[i]);
    AQ_LOG(INFO, MPI,
           "%s: %llu ns by two eager messages, %llu and %llu ns by one of %zu and %zu bytes; "
           "packets above %zu bytes are split (0: none is)",
           aq_mpi_class_names[class], (unsigned long long)min->split,
           (unsigned long long)min->whole[0], (unsigned long long)min->whole[1],
           aq_mpi_whole_sizes[0], aq_mpi_whole_sizes[1], own->split_above[class]);
    AQ_LOG(INFO, MPI, "%s: atomic operation %llu ns; the window %s%s", aq_mpi_class_names[class],
           (unsigned long long)min->fetch,
           cost->one_sided ? "is one-sided" : "needs its target to look",
           cost->one_sided && !cost->atomics_one_sided ? ", for atomics it needs its target to look"
                                                       : "");
}

/* Measures the pairs of this rank, as leader or as partner; all ranks take the classes in one
 * order. */
static void aq_mpi_choose_measure(const struct aq_mpi_remote_pair pairs[AQ_MPI_CLASSES],
                                  struct aq_mpi_verdict *own)
{
    for (unsigned class = 0; class < AQ_MPI_CLASSES; class ++) {
        const bool leads = pairs[class].lead == aq_job.rank;
        struct aq_mpi_cost cost;

        if (!pairs[class].exists || (!leads && pairs[class].other != aq_job.rank))
            continue;
        aq_mpi_lock();
        aq_mpi_measure(aq_mpi_rma.lib, leads ? pairs[class].other : pairs[class].lead, leads,
                       &cost);
        aq_mpi_unlock();
        aq_mpi_choose_class((enum aq_mpi_class) class, &cost, own);
    }
}

/* --- the user's settings --- */

/* Formats a size from which on transfers use the window: "from 512 B on", "never". */
static const char *aq_mpi_choose_text(size_t from, char *text, size_t len)
{
    char size[32];

    if (from == AQ_MPI_NEVER)
        return "never";
    snprintf(text, len, "from %s on", aq_env_format_size(from, size, sizeof(size)));
    return text;
}

/* Settings override the measurement. */
static void aq_mpi_choose_settings(struct aq_mpi_paths *paths)
{
    if (aq_env_choice(AQ_ENV_MPI_RMA) == AQ_MPI_RMA_WINDOW)
        paths->put_from = paths->get_from = 0;
    if (aq_env_is_set(AQ_ENV_MPI_PUT_FROM))
        paths->put_from = (size_t)aq_env_size(AQ_ENV_MPI_PUT_FROM);
    if (aq_env_is_set(AQ_ENV_MPI_GET_FROM))
        paths->get_from = (size_t)aq_env_size(AQ_ENV_MPI_GET_FROM);
}

/* Shows the result for a class in the list of settings. */
static void aq_mpi_choose_show(const struct aq_mpi_paths *paths)
{
    char text[128];

    if (!aq_env_is_set(AQ_ENV_MPI_PUT_FROM))
        aq_env_set_computed(AQ_ENV_MPI_PUT_FROM,
                            aq_mpi_choose_text(paths->put_from, text, sizeof(text)));
    if (!aq_env_is_set(AQ_ENV_MPI_GET_FROM))
        aq_env_set_computed(AQ_ENV_MPI_GET_FROM,
                            aq_mpi_choose_text(paths->get_from, text, sizeof(text)));
}

static void aq_mpi_choose_tell(enum aq_mpi_class class)
{
    const struct aq_mpi_paths *paths = &aq_mpi_rma.paths[class];
    char put[128], get[128];

    if (aq_job.rank == 0)
        AQ_LOG(INFO, MPI,
               "transfers %s: by a window puts %s, gets %s; else directly puts from %zu bytes on, "
               "gets from %zu; "
               "atomics by %s",
               aq_mpi_class_names[class], aq_mpi_choose_text(paths->put_from, put, sizeof(put)),
               aq_mpi_choose_text(paths->get_from, get, sizeof(get)), paths->direct_put,
               paths->direct_get, aq_mpi_rma.atomics ? "the window where they may" : "messages");
}

bool aq_mpi_choose_needs_window(void)
{
    return aq_env_choice(AQ_ENV_MPI_RMA) != AQ_MPI_RMA_MESSAGES;
}

/* Transfers that the user has sent another way by GASNET_MPI_RMA, GASNET_MPI_DIRECT or
 * `window_from` go that way, unless GASNET_MPI_COALESCE is set too. */
static size_t aq_mpi_choose_coalesced(enum aq_env_id window_from)
{
    const uint64_t max = aq_env_size(AQ_ENV_MPI_COALESCE);
    uint64_t from = aq_env_size(AQ_ENV_MPI_DIRECT);

    if (aq_env_is_set(window_from)) {
        const uint64_t window = aq_env_size(window_from);

        from = window < from ? window : from;
    } else if (aq_env_choice(AQ_ENV_MPI_RMA) == AQ_MPI_RMA_WINDOW) {
        from = 0;
    }
    if (aq_env_is_set(AQ_ENV_MPI_COALESCE) || from > max)
        return (size_t)max;
    return from == 0 ? 0 : (size_t)from - 1;
}

size_t aq_mpi_choose_coalesced_put(void)
{
    return aq_mpi_choose_coalesced(AQ_ENV_MPI_PUT_FROM);
}

size_t aq_mpi_choose_coalesced_get(void)
{
    return aq_mpi_choose_coalesced(AQ_ENV_MPI_GET_FROM);
}

/* --- all ranks --- */

/* Unless the user has said otherwise, shorter puts are messages: an MPI may send them before their
 * target looks, and credit bounds the memory that they take there (aq_mpi_credit.h). */
static size_t aq_mpi_choose_direct_put(void)
{
    return aq_env_is_set(AQ_ENV_MPI_DIRECT) ? (size_t)aq_env_size(AQ_ENV_MPI_DIRECT)
                                            : AQ_MPI_DIRECT_PUT;
}

void aq_mpi_choose_none(void)
{
    const bool splits = aq_env_choice(AQ_ENV_AQ_MPI_SPLIT) == AQ_MPI_SPLIT_ALWAYS;

    for (unsigned class = 0; class < AQ_MPI_CLASSES; class ++)
        atomic_store_explicit(&aq_mpi_am.split_above[class], splits ? AQ_MPI_EAGER : 0,
                              memory_order_relaxed); /* see aq_mpi_am_is_split() */
    for (unsigned class = 0; class < AQ_MPI_CLASSES; class ++)
        aq_mpi_rma.paths[class] =
            (struct aq_mpi_paths){ .put_from = AQ_MPI_NEVER,
                                   .get_from = AQ_MPI_NEVER,
                                   .direct_put = aq_mpi_choose_direct_put(),
                                   .direct_get = (size_t)aq_env_size(AQ_ENV_MPI_DIRECT) };
    aq_mpi_rma.window = aq_mpi_rma.atomics = false;
}

/* Which payloads are split. */
static void aq_mpi_choose_splits(const struct aq_mpi_remote_pair pairs[AQ_MPI_CLASSES],
                                 const struct aq_mpi_verdict *all)
{
    for (unsigned class = 0; class < AQ_MPI_CLASSES; class ++)
        if (aq_env_choice(AQ_ENV_AQ_MPI_SPLIT) == AQ_MPI_SPLIT_AUTO && pairs[class].exists)
            atomic_store_explicit(&aq_mpi_am.split_above[class],
                                  all[pairs[class].lead].split_above[class],
                                  memory_order_relaxed); /* see aq_mpi_am_is_split() */
}

/* Every rank has all verdicts and uses those of the leaders. */
static void aq_mpi_choose_agree(const struct aq_mpi_remote_pair pairs[AQ_MPI_CLASSES],
                                const struct aq_mpi_verdict *all)
{
    const unsigned atomics = aq_env_choice(AQ_ENV_MPI_ATOMICS);
    bool window = true, fit = true;

    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++)
        window = window && all[rank].window;
    for (unsigned class = 0; class < AQ_MPI_CLASSES && window; class ++) {
        const struct aq_mpi_verdict *lead = &all[pairs[class].lead];

        if (!pairs[class].exists)
            continue;
        fit = fit && lead->atomics[class];
        aq_mpi_rma.paths[class] = lead->paths[class];
        aq_mpi_choose_settings(&aq_mpi_rma.paths[class]);
    }
    aq_mpi_rma.window = window;
    aq_mpi_rma.atomics =
        window && (atomics == AQ_MPI_RMA_AUTO ? fit : atomics == AQ_MPI_RMA_WINDOW);
    aq_mpi_rma.atomics_need_polls = !fit;
    for (unsigned class = 0; class < AQ_MPI_CLASSES; class ++)
        if (pairs[class].exists) {
            aq_mpi_choose_show(
                &aq_mpi_rma.paths[class]); /* if there are two classes, the one between hosts */
            aq_mpi_choose_tell((enum aq_mpi_class) class);
        }
}

int aq_mpi_choose(bool window)
{
    struct aq_mpi_remote_pair pairs[AQ_MPI_CLASSES];
    struct aq_mpi_verdict own = { .window = window };
    struct aq_mpi_verdict *all = malloc(aq_job.size * sizeof(*all));
    gex_Rank_t *first = malloc(aq_job.host_count * sizeof(*first));
    int rc = AQ_ERR_NOMEM;

    if (all == NULL || first == NULL) {
        aq_fail(rc, "mpi: no memory to agree on transfers with %u ranks", aq_job.size);
        goto free_all;
    }
    aq_mpi_pairs_find(aq_job.host_of, aq_job.nbrhd_of, aq_job.size, aq_job.host_count, first,
                      pairs);
    aq_mpi_choose_none();
    for (unsigned class = 0; class < AQ_MPI_CLASSES; class ++)
        own.paths[class] = aq_mpi_rma.paths[class];
    if (window)
        aq_mpi_choose_measure(pairs, &own);
    rc = aq_job_allgather(&own, sizeof(own), all);
    if (rc == AQ_OK) {
        aq_mpi_choose_splits(pairs, all);
        aq_mpi_choose_agree(pairs, all);
    }
free_all:
    free(first);
    free(all);
    return rc;
}
