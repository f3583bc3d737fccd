/*
 * aq_mk.h - what the library does with memory of one kind: of the host, or of a device.
 *
 * A segment names the table of its kind (struct aq_segment, core/aq_job.h); aq_bound_kind() in
 * core/aq_ep.h finds it by an address. There is one table, the host's. The inline put and get, and
 * shared memory, are for host memory and look at no table: a segment of another kind is not mapped.
 *
 * Through a table go    the memory of a segment that the library allocates; what a message brings
 *                       for a segment, or takes a word from: aq_bound_place_long(), and the
 *                       reference put and get
 * Registration          is the network's, and the kind's to describe: segment_bind of the conduit
 *                       table gets the segment, and with it the kind
 * Host memory only      messages and transfers that a conduit reads from, or fills in, where the
 *                       data belongs; VIS; atomics. Another kind needs staging buffers there
 * See       GASNet-EX specification 0.19, Memory kinds. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MK_H
#define AQ_MK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gasnetex.h"

struct aq_mk_ops {
    bool is_host; /* loads and stores reach it */

    /* Memory for a segment, zeroed, its pages untouched. AQ_OK, or AQ_ERR_SYS with errno set. */
    int (*alloc)(uintptr_t size, void **base_out);
    void (*free)(void *base, uintptr_t size);

    /* From host memory to memory of the kind, and back. Complete at return; an aligned word of 1,
     * 2, 4 or 8 bytes does not tear. Any thread, in handlers too. nbytes > 0. */
    void (*copy_in)(void *dest, const void *src, size_t nbytes);
    void (*copy_out)(void *dest, const void *src, size_t nbytes);
};

extern const struct aq_mk_ops aq_mk_host;

/** aq_mk_find - the table of a client's handle; NULL: there is no such kind. */
const struct aq_mk_ops *aq_mk_find(gex_MK_t kind);

#endif
