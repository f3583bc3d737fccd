/*
 * aq_mpi_lib_am.h - the MPI functions for messages: packets of bounded size, and payloads of any.
 *
 * A packet is received into any slot of its channel that waits, from any sender. A payload goes
 * from one buffer to another, whose owners have agreed on a tag.
 *
 * Threads   one at a time. No call waits for another rank, but for open and close, which are
 *           collective
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_LIB_AM_H
#define AQ_MPI_LIB_AM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Apart all the way through MPI. Replies are looked for first. */
enum aq_mpi_channel { AQ_MPI_REPLY = 0, AQ_MPI_REQUEST = 1, AQ_MPI_CHANNELS = 2 };

/* Tags of payloads, 1 to AQ_MPI_TAGS; every MPI has at least 32767 tags, and channels are told
 * apart by one bit. */
#define AQ_MPI_TAGS 16383u

/* Packets come into receives that wait for them, or most of them wait themselves to be looked for.
 * A table for each. */
enum aq_mpi_receiver { AQ_MPI_RING, AQ_MPI_PROBE, AQ_MPI_RECEIVERS };

/* A packet of a channel that has come, in a slot of either channel's, which is the conduit's until
 * aq_mpi_lib_am.restart(). */
struct aq_mpi_arrival {
    uint16_t channel, ring; /* ring: the channel whose slot it is */
    uint32_t slot, source, nbytes;
};

/* An operation that did not complete at once, and has completed now. */
struct aq_mpi_completion {
    void *owner;
    size_t nbytes; /* received; unspecified for what was sent */
};

/* What a call has come to. */
#define AQ_MPI_DONE  0
#define AQ_MPI_BEGUN 1 /* completes() will tell of it */
/* negative: an error code of MPI's, negated */

struct aq_mpi_lib_am {
    uint32_t slots; /* how many of a channel serve it best, a power of two */
    enum aq_mpi_receiver
        preferred; /* which of the tables is the better one with this MPI; in each of them */
    /* Begins to receive. Slot i of a channel is the nbytes at memory[channel] + i * stride. */
    int (*open)(char *const memory[AQ_MPI_CHANNELS], uint32_t slots, size_t stride, size_t nbytes);
    /* Cancels what is waiting. */
    void (*close)(void);
    /* Is there a packet in one of the channels of the mask 1 << channel? 1 and which, 0, or
     * negative. looks: how often to look while there is none; 0: look at every slot, for a packet
     * that is there completely although an earlier one is not. */
    int (*take)(unsigned channels, unsigned looks, struct aq_mpi_arrival *arrival_out);
    int (*restart)(enum aq_mpi_channel ring, uint32_t slot); /* 0 or negative */
    /* packet and src must not change until the call has returned AQ_MPI_DONE, or its owner has come
     * back. */
    int (*send)(enum aq_mpi_channel channel, uint32_t dest, const void *packet, size_t nbytes,
                void *owner);
    int (*send_payload)(enum aq_mpi_channel channel, uint32_t dest, uint32_t tag, const void *src,
                        size_t nbytes, void *owner);
    int (*receive_payload)(enum aq_mpi_channel channel, uint32_t source, uint32_t tag, void *dest,
                           size_t nbytes, void *owner);
    /* How many have begun and were not told of. */
    uint32_t (*pending)(void);
    /* Tells of up to most of them that are complete; how many, or negative. */
    int (*completes)(struct aq_mpi_completion *out, uint32_t max);
};

#endif
