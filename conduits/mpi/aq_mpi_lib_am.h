/*
 * aq_mpi_lib_am.h - the MPI functions for messages: packets of bounded size, payloads of any size.
 *
 * A packet is received into any waiting slot of its channel, from any sender. A payload goes from
 * one buffer to another, whose owners have agreed on a tag.
 *
 * Threads   one at a time. No call waits for another rank, except open and close, which are
 *           collective
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_LIB_AM_H
#define AQ_MPI_LIB_AM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The two channels are separate all the way through MPI. Replies are tested first. */
enum aq_mpi_channel { AQ_MPI_REPLY = 0, AQ_MPI_REQUEST = 1, AQ_MPI_CHANNELS = 2 };

/* Tags of payloads, 1 to AQ_MPI_TAGS. Every MPI has at least 32767 tags, and one bit distinguishes
 * the channels. */
#define AQ_MPI_TAGS 16383u

/* Two ways to receive packets: many posted receives, or few posted receives and probing. Each has a
 * table. */
enum aq_mpi_receiver { AQ_MPI_RING, AQ_MPI_PROBE, AQ_MPI_RECEIVERS };

/* A packet that has arrived in a slot of either channel. The conduit owns the slot until
 * aq_mpi_lib_am.restart(). */
struct aq_mpi_arrival {
    uint16_t channel, ring; /* ring: the channel that the slot belongs to */
    uint32_t slot, source, nbytes;
};

/* An operation that did not complete at once and has completed now. */
struct aq_mpi_completion {
    void *owner;
    size_t nbytes; /* bytes received; unspecified for sends */
};

/* Results of calls that start operations. */
#define AQ_MPI_DONE  0
#define AQ_MPI_BEGUN 1 /* completes() will return it */
/* negative: an error code of MPI's, negated */

struct aq_mpi_lib_am {
    uint32_t slots; /* best number of slots of a channel, a power of two */
    enum aq_mpi_receiver
        preferred; /* which of the tables is better with this MPI; the same in both */
    /* Begins to receive. Slot i of a channel is the nbytes at memory[channel] + i * stride. */
    int (*open)(char *const memory[AQ_MPI_CHANNELS], uint32_t slots, size_t stride, size_t nbytes);
    /* Cancels receives that wait. */
    void (*close)(void);
    /* Takes a packet of one of the channels in the mask (1 << channel). Returns 1 and the packet,
     * 0, or negative. looks: how many tests to make while there is none; 0: test every slot, for a
     * complete packet behind an incomplete one. */
    int (*take)(unsigned channels, unsigned looks, struct aq_mpi_arrival *arrival_out);
    int (*restart)(enum aq_mpi_channel ring, uint32_t slot); /* 0 or negative */
    /* packet and src must not change until the call returns AQ_MPI_DONE, or completes() returns the
     * owner. */
    int (*send)(enum aq_mpi_channel channel, uint32_t dest, const void *packet, size_t nbytes,
                void *owner);
    int (*send_payload)(enum aq_mpi_channel channel, uint32_t dest, uint32_t tag, const void *src,
                        size_t nbytes, void *owner);
    int (*receive_payload)(enum aq_mpi_channel channel, uint32_t source, uint32_t tag, void *dest,
                           size_t nbytes, void *owner);
    /* Returns how many operations have begun and were not returned by completes(). */
    uint32_t (*pending)(void);
    /* Returns up to max operations that have completed: how many, or negative. */
    int (*completes)(struct aq_mpi_completion *out, uint32_t max);
};

#endif
